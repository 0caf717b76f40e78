"""A block of the campaign in legs: what one JVM does, and what is left of it.

A block has the run in production of each of its jobs first, then what Headway advises after these
and what is judged on two cores, then what is judged on one core. Jobs of different sessions
(Spark alone, with Kafka, with Delta Lake) have JVMs of their own.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.fixed_work import fixed_work
from campaign.schedule import Group
from campaign.workloads import Stream
from read_logs import read_logs_of_runs
from result_lines import keep, lines_of

from headway.errors import HeadwayError
from ordinary.advice import NO_ADVICE, advised_lines, advised_run
from ordinary.events import HIGHEST_RATE_PER_S
from ordinary.jobs import JOBS, PLAIN
from ordinary.running import PROBE_S, WARM_UP_S, JobSession, job_session
from ordinary.split import (
    CORES,
    FEWER_CORES,
    MOST_ADVISED,
    PRODUCTION,
    SEED,
    OrdinaryRun,
    blocks,
    judged_runs,
    production_run,
    split_digest,
)

FIRST, SECOND, FEWER = "production", "two-cores", "one-core"
PHASES = (FIRST, SECOND, FEWER)
MOST_SHARED_PER_S = 0.8 * HIGHEST_RATE_PER_S
"""Rates are shares of the capacity on two cores, or of this where a job carries more."""
ADVISED_FILE, PROBES_FILE = "advised.jsonl", "probes.jsonl"
JVM_S, BETWEEN_S = 25.0, 1.0
"""Until a JVM runs its first query and is gone; between two runs [s]."""

Line = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """What one JVM does: a phase of the jobs of a block that share a kind of session."""

    block: int
    session: str
    phase: str
    jobs: tuple[str, ...]

    @property
    def name(self) -> str:
        """For the command line of another interpreter."""
        return f"{self.block}/{self.session}/{self.phase}"

    @property
    def group(self) -> Group:
        """Runs of one session on the same number of cores; their logs lie together."""
        cores = FEWER_CORES if self.phase == FEWER else CORES
        return Group(
            name=f"{self.session}-{'one' if cores == FEWER_CORES else 'two'}",
            master=f"local[{cores}]",
            workloads=self.jobs,
            num_slots=cores,
        )

    def runs(self, folder: Path) -> list[OrdinaryRun]:
        """All of its runs, in the order in which they are carried out."""
        if self.phase == FIRST:
            return [production_run(self.block, job) for job in self.jobs]
        cores = FEWER_CORES if self.phase == FEWER else CORES
        runs = [
            run for job in self.jobs for run in judged_runs(self.block, job) if run.cores == cores
        ]
        if self.phase == SECOND:
            advice = lines_of(folder / ADVISED_FILE)
            runs += [
                advised_run(self.block, line)
                for line in advice
                if line["left_out"] is None and line["workload"] in self.jobs
            ]
        random.Random(f"{SEED}-{self.name}").shuffle(runs)
        return runs

    def left(self, folder: Path) -> list[OrdinaryRun]:
        """Those that are not on record yet."""
        done = {line["name"] for line in lines_of(folder / self.group.name / "truth.jsonl")}
        return [run for run in self.runs(folder) if run.name not in done]

    def left_s(self, folder: Path) -> float:
        """What they take [s]; before Headway has advised, as much as it may at most."""
        runs = self.left(folder)
        needed_s = sum(run.lasts_s + BETWEEN_S for run in runs)
        if self.phase == SECOND:
            advised = {line["workload"] for line in lines_of(folder / ADVISED_FILE)}
            longest_s = max((run.lasts_s for run in self.runs(folder)), default=0.0)
            needed_s += MOST_ADVISED * longest_s * sum(job not in advised for job in self.jobs)
        if not needed_s:
            return 0.0
        return needed_s + self.beginning_s

    @property
    def beginning_s(self) -> float:
        """Until its first run begins, at most [s]."""
        each_s = WARM_UP_S if self.phase == SECOND else PROBE_S
        return JVM_S + each_s * len(self.jobs)


def legs_of(block: int) -> Iterator[Leg]:
    """The legs of a block in their order, those of Spark alone first in each phase."""
    jobs = blocks()[block - 1]
    sessions = sorted({JOBS[job].session for job in jobs}, key=lambda kind: (kind != PLAIN, kind))
    for phase in PHASES:
        for session in sessions:
            of_session = tuple(job for job in jobs if JOBS[job].session == session)
            yield Leg(block=block, session=session, phase=phase, jobs=of_session)


def carry_out(leg: Leg, folder: Path, has_room_for: Callable[[float], bool]) -> None:
    """Run what is left of a leg in one JVM, and write down what is advised after its first one."""
    runs = leg.left(folder)
    if runs and has_room_for(leg.beginning_s + runs[0].lasts_s):
        place = folder / leg.group.name
        place.mkdir(parents=True, exist_ok=True)
        with (
            job_session(leg.group, leg.session, place) as jobs,
            fixed_work(place / "fixed.jsonl") as beside,
        ):
            carried = _carried(leg, jobs, folder, [run.job for run in runs])
            for at, run in enumerate(runs):
                if run.job not in carried:
                    continue
                if not has_room_for(run.lasts_s):
                    print(f"{leg.name}: no time for {run.name}", file=sys.stderr)
                    return
                print(f"{leg.name}: {at + 1} of {len(runs)}, {run.name}", file=sys.stderr)
                began_s = time.time()
                line = _measured(jobs, leg, run, carried[run.job])
                seen = beside.between(began_s, time.time())
                keep(place / "truth.jsonl", {**line, "fixed_work": seen})
    if leg.phase == FIRST:
        _advise(leg, folder)


def _carried(
    leg: Leg, jobs: JobSession, folder: Path, names: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """What rates of a job are shares of, and its capacity on the cores of the leg.

    Each job is compiled by that.
    """
    main = leg.group.name.replace("-one", "-two")
    of_main = {line["workload"]: line for line in lines_of(folder / main / PROBES_FILE)}
    carried = {}
    for name in dict.fromkeys(names):
        try:
            own = _probed(jobs, name, folder / leg.group.name / PROBES_FILE, of_main.get(name))
        except HeadwayError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        on_two_per_s = float(of_main.get(name, own)["carried_per_s"])
        carried[name] = min(on_two_per_s, MOST_SHARED_PER_S), float(own["carried_per_s"])
    return carried


def _probed(jobs: JobSession, name: str, probes: Path, other: Line | None) -> Line:
    """The line of a job's capacity; it is measured unless it is on record."""
    for line in lines_of(probes):
        if line["workload"] == name:
            jobs.warm_up_once(JOBS[name])
            return line
    _, enough_rows = (other or {}).get("rows", (None, None))
    line = jobs.capacity(JOBS[name], enough_rows)
    keep(probes, line)
    return line


def _measured(jobs: JobSession, leg: Leg, run: OrdinaryRun, carried: tuple[float, float]) -> Line:
    shared_per_s, own_per_s = carried
    # Advice may ask for more than events can be numbered at.
    rate_per_s = min(run.setting.share * shared_per_s, HIGHEST_RATE_PER_S)
    stream = Stream(rate_per_s=rate_per_s)
    setting = run.setting
    query = jobs.query(JOBS[run.job], run.name, stream, setting.trigger_s, setting.partitions)
    return {
        "group": leg.group.name,
        "block": run.block,
        "workload": run.job,
        "role": run.role,
        "why": run.why,
        "play": run.repeat,
        "name": run.name,
        "query": query.name,
        "setting": setting._asdict(),
        "cores": run.cores,
        "rate_per_s": stream.rate_per_s,
        "carried_per_s": shared_per_s,
        "limit_per_s": own_per_s,
        "max_rows": None,
        "fit_set": split_digest(),
        **jobs.measured(query, warm_s=run.warm_s, measured_s=run.measured_s),
    }


def _advise(leg: Leg, folder: Path) -> None:
    """Ask Headway after each run in production, once."""
    asked = {line["workload"] for line in lines_of(folder / ADVISED_FILE)}
    place = folder / leg.group.name
    ran = {
        line["workload"]: line
        for line in lines_of(place / "truth.jsonl")
        if line["role"] == PRODUCTION and line["workload"] not in asked
    }
    if not ran:
        return
    log = read_logs_of_runs(place / "log")
    for job in sorted(ran):
        try:
            profile = log.profile([ran[job]["query"]])
            lines = list(advised_lines(profile, ran[job]["carried_per_s"], job))
        except HeadwayError as error:
            lines = [{"workload": job, "left_out": f"{NO_ADVICE}: {error}"}]
        for line in lines:
            keep(folder / ADVISED_FILE, line)
