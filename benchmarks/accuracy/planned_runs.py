"""Plans for random promises, each run for real: was the promise kept?

Profiles are those of the fitted runs of a campaign (`run_campaign`) on two cores; rates, promises
and pinned partitions are drawn with a fixed seed before anything is run. Each plan is run as it is,
feasible or not: an infeasible one names the setting that comes nearest. `run_campaign` runs those
of a block after its workloads; a plan that is on record is not run again.

    python benchmarks/run.py planned_runs WORK_FOLDER
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.blocks import BETWEEN_S, JVM_S, MAIN
from campaign.fixed_work import fixed_work
from campaign.reading import MeasuredGroup, read_group
from campaign.running import (
    MeasuredRun,
    Query,
    campaign_session,
    measured_run,
    warm_up,
)
from campaign.schedule import FIT, SEED, WARM_S, fit_set_digest
from campaign.workloads import WORKLOADS, Stream
from result_lines import keep, lines_of

import headway
from headway.domain import (
    JobProfile,
    StreamAnswer,
)

TARGETS_EACH = 5
WARM_UP_S = 15.0
LEAST_MEASURED_S = 12.0
USUAL_TRIGGER_S, PLANNING_S = 1.0, 1.5
"""What plans are thought to come to, before any of them is made [s]."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A promise to plan for."""

    name: str
    workload: str
    rate_per_s: float
    target: str
    pinned_partitions: int | None


def asked_of(workload: str, carried_per_s: float) -> Iterator[Asked]:
    """Random promises about a workload: from easy to impossible."""
    draw = random.Random(f"{SEED}-{workload}")
    for number in range(TARGETS_EACH):
        statistic = draw.choice(("mean", "p95", "p99"))
        limit_s = math.exp(draw.uniform(math.log(0.25), math.log(5.0)))
        yield Asked(
            name=f"plan/{workload}/{number}",
            workload=workload,
            rate_per_s=draw.uniform(0.1, 0.85) * carried_per_s,
            target=f"{statistic} <= {limit_s * 1000:.0f}ms",
            pinned_partitions=draw.choice((None, None, 2, 4, 8)),
        )


def profiles(measured: MeasuredGroup, workloads: Iterable[str]) -> dict[str, JobProfile]:
    """A profile of each workload from its fitted runs, of those that have some."""
    fitted = {
        name: [row for row in measured.of(name) if row["role"] == FIT and row["truth"] is not None]
        for name in workloads
    }
    return {name: measured.fitted_on(rows) for name, rows in fitted.items() if rows}


def planned(profile: JobProfile, asked: Asked) -> StreamAnswer:
    """The plan for the machine the profile comes from."""
    return headway.plan(
        profile,
        rate=asked.rate_per_s,
        target=asked.target,
        max_nodes=1,
        node_cores=MAIN.num_slots,
        cores=MAIN.num_slots,
        partitions=asked.pinned_partitions,
        checkpoint="new",
    )


def left(folder: Path, workloads: Sequence[str]) -> list[Asked]:
    """The promises that are not run yet, shuffled; of workloads whose rate is known."""
    carried = {
        row["workload"]: row["carried_per_s"]
        for row in lines_of(folder / MAIN.name / "probes.jsonl")
    }
    done = {row["name"] for row in lines_of(_results(folder))}
    every = [one for name in workloads if name in carried for one in asked_of(name, carried[name])]
    random.Random(SEED).shuffle(every)
    return [one for one in every if one.name not in done]


def left_s(folder: Path, workloads: Sequence[str]) -> float:
    """What they take in a JVM of their own, where triggers are as usual [s]."""
    done = {row["name"] for row in lines_of(_results(folder))}
    names = [name for name in workloads if not _all_done(name, done)]
    num_left = TARGETS_EACH * len(names) - sum(one.split("/")[1] in names for one in done)
    if not num_left:
        return 0.0
    each_s = WARM_S + USUAL_TRIGGER_S + LEAST_MEASURED_S + PLANNING_S + BETWEEN_S
    return JVM_S + WARM_UP_S * len(names) + each_s * num_left


def _all_done(workload: str, done: set[str]) -> bool:
    return all(f"plan/{workload}/{number}" in done for number in range(TARGETS_EACH))


def _results(folder: Path) -> Path:
    return folder / "planned" / "truth.jsonl"


def run_plans(
    folder: Path,
    workloads: Sequence[str] = MAIN.workloads,
    has_room_for: Callable[[float], bool] = lambda _seconds: True,
) -> None:
    """Plan and run what is not yet run, as long as there is room."""
    asked = left(folder, workloads)
    if not asked:
        return
    known = profiles(read_group(MAIN, folder / MAIN.name), workloads)
    work = folder / "planned"
    work.mkdir(exist_ok=True)
    with (
        campaign_session(MAIN, work) as spark,
        fixed_work(work / "fixed.jsonl") as beside,
    ):
        for name in dict.fromkeys(one.workload for one in asked):
            rate_per_s = next(one.rate_per_s for one in asked if one.workload == name)
            warm_up(spark, WORKLOADS[name], work, rate_per_s, WARM_UP_S)
        for place, one in enumerate(asked):
            if one.workload not in known:
                continue
            plan = planned(known[one.workload], one)
            setting = plan.configuration
            warm_s = WARM_S + setting.trigger_s
            measured_s = max(LEAST_MEASURED_S, 4 * setting.trigger_s)
            if not has_room_for(warm_s + measured_s):
                print(f"no time for {one.name}; the rest is left", file=sys.stderr)
                return
            print(f"{place + 1} of {len(asked)}: {one.name}, {one.target}", file=sys.stderr)
            query = Query(
                name=f"{one.name}@{os.getpid()}",
                workload=WORKLOADS[one.workload],
                stream=Stream(
                    rate_per_s=one.rate_per_s,
                    max_rows_per_trigger=setting.max_offsets_per_trigger,
                ),
                trigger_s=setting.trigger_s,
                partitions=setting.shuffle_partitions,
            )
            measured = measured_run(spark, query, warm_s=warm_s, measured_s=measured_s, folder=work)
            to_s = measured.started_s + warm_s + measured_s
            seen = beside.between(measured.started_s, to_s)
            work_beside = {"fixed_work": seen, "fit_set": fit_set_digest()}
            keep(_results(folder), {**_row(one, plan, measured), **work_beside})


def _row(asked: Asked, plan: StreamAnswer, measured: MeasuredRun) -> Row:
    setting, latency = plan.configuration, plan.prediction.tuple_latency
    return {
        "name": asked.name,
        "workload": asked.workload,
        "rate_per_s": asked.rate_per_s,
        "target": asked.target,
        "statistic": plan.target.statistic,
        "limit_s": plan.target.limit_s,
        "pinned_partitions": asked.pinned_partitions,
        **answer(plan),
        "predicted": None if latency is None else {"mean": latency.mean_s, "p99": latency.p99_s},
        "setting": {
            "trigger_s": setting.trigger_s,
            "partitions": setting.shuffle_partitions,
            "max_rows": setting.max_offsets_per_trigger,
        },
        **measured.as_json(),
    }


def answer(plan: StreamAnswer) -> Row:
    """What a plan says of its promise."""
    planned_s = plan.planned_latency_s
    return {
        "feasible": plan.feasible,
        "planned_latency_s": planned_s if math.isfinite(planned_s) else None,
        "kept_probability": plan.kept_probability,
        "verdict": None if plan.verdict is None else str(plan.verdict),
    }


def plan_rows(folder: Path) -> list[Row]:
    """The plans of a campaign that were run."""
    return lines_of(_results(folder))


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="work folder of run_campaign")


def run(given: argparse.Namespace) -> None:
    """Plan, and run what is left."""
    run_plans(given.folder)
    print(f"{given.folder}: {len(plan_rows(given.folder))} plans")
