"""Runs ordinary jobs at the rates about which Headway and the probe of their capacity disagree.

A probe works off a backlog, so its capacity is not quite what a job carries of a live stream: all
rows of a backlog are late, and nothing produces beside them. Where a verdict of `judge_ordinary.py`
contradicts it, a run at that very rate decides: whether rows become ever older, or no batch ends.
Only streams that Spark itself makes and files that land can have any rate, up to a million rows per
second; runs that are on record are not made again.

    python benchmarks/run.py ordinary_limits WORK_FOLDER --minutes 20
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from campaign.blocks import Window
from campaign.fixed_work import fixed_work
from campaign.record import RESULTS
from campaign.schedule import Group
from campaign.workloads import Stream
from judge_ordinary import judged_lines
from ordinary.events import HIGHEST_RATE_PER_S
from ordinary.jobs import CLOCK, FILES, JOBS, PLAIN
from ordinary.limits import LIMITS, NO_BATCH_ENDED, AskedRate, contradictions, decided
from ordinary.running import WARM_UP_S, job_session
from ordinary.split import ADVISED, PRODUCTION
from ordinary.tables import judged_lines_of, shows_trend
from result_lines import keep

WARM_S, MEASURED_S, JVM_S = 20.0, 60.0, 40.0
STOPPED_WITHIN_S = 60
"""A batch that has not ended so long after the run is not waited for; nor are further runs."""
Row = dict[str, Any]


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="work folder, outside the repository")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results")
    parser.add_argument("--minutes", type=float, help="begin only runs that end within so long")


def run(given: argparse.Namespace) -> None:
    """Run what is disputed and not on record."""
    window = Window(given.minutes)
    partitions = disputed_rates(judged_lines(given.results))
    done = decided(given.results)
    left = sorted((rate for rate in partitions if rate not in done), key=attrgetter("cores"))
    for cores, rates in groupby(left, key=attrgetter("cores")):
        _run_on(cores, {rate: partitions[rate] for rate in rates}, given, window)
    print(f"{given.results / LIMITS}: {len(decided(given.results))} rates decided")


def disputed_rates(rows: Sequence[Row]) -> dict[AskedRate, int]:
    """Rates that a run can decide, with the partitions of the setting that was asked."""
    rates: dict[AskedRate, int] = {}
    for role in (PRODUCTION, ADVISED):
        for row in filter(shows_trend, judged_lines_of(rows, role)):
            job = JOBS[row["workload"]]
            for rate, _ in contradictions(row):
                is_possible = job.source in (CLOCK, FILES) and job.session == PLAIN
                if is_possible and rate.rate_per_s <= HIGHEST_RATE_PER_S:
                    rates.setdefault(rate, row["setting"]["partitions"])
    return rates


def _run_on(
    cores: int, rates: dict[AskedRate, int], given: argparse.Namespace, window: Window
) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    group = Group(name=f"limits-{cores}", master=f"local[{cores}]", workloads=(), num_slots=cores)
    place = given.folder / group.name
    place.mkdir(parents=True, exist_ok=True)
    needed_s = WARM_UP_S + WARM_S + MEASURED_S
    if not window.has_room_for(JVM_S + needed_s):
        return
    with job_session(group, PLAIN, place) as jobs, fixed_work(place / "fixed.jsonl"):
        jobs.spark.conf.set("spark.sql.streaming.stopTimeout", f"{STOPPED_WITHIN_S}s")
        for rate, shuffle_partitions in rates.items():
            if not window.has_room_for(needed_s):
                return
            job, stream = JOBS[rate.workload], Stream(rate_per_s=float(rate.rate_per_s))
            jobs.warm_up_once(job)
            name = f"limit/{rate.workload}/{rate.rate_per_s}/{cores}"
            print(name, file=sys.stderr)
            query = jobs.query(job, name, stream, 0.0, shuffle_partitions)
            try:
                truth = jobs.measured(query, warm_s=WARM_S, measured_s=MEASURED_S)["truth"]
            except (PySparkException, Py4JJavaError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                keep(given.results / LIMITS, {**rate._asdict(), "truth": NO_BATCH_ENDED})
                return
            keep(given.results / LIMITS, {**rate._asdict(), "truth": truth or NO_BATCH_ENDED})
