"""What a query takes beside the state that an ended one left in the heap of its JVM.

A state store stays loaded for up to a minute after its query ended, and its garbage until a
collection has marked the heap. Two queries run at a third of their capacity: in a JVM that has
forgotten others, after a query whose state grew, and again after that was forgotten.

    python benchmarks/run.py left_states --output benchmarks/accuracy/results/left-states.jsonl
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.blocks import MAIN, Window
from campaign.running import (
    Query,
    backlog_stream,
    campaign_session,
    forget_others,
    measured_run,
    run_query,
    usual_duration_s,
    warm_up,
)
from campaign.workloads import WORKLOADS, Stream
from pages import made_by
from result_lines import keep, lines_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOBS, NUM_REPEATS = ("json", "sliding"), 2
FORGOTTEN, LEFT, AGAIN = "others forgotten", "a state left", "forgotten again"
SHARE, TRIGGER_S, WARM_S, RUN_S = 0.3, 1.0, 3.5, 20.0
GROWING_ROWS, PROBE_RUN_S = 200_000, 7.0


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--output", type=Path, required=True, help="JSON lines")
    parser.add_argument("--minutes", type=float, help="begin only what ends within so long")


def run(given: argparse.Namespace) -> None:
    """Run the jobs that are not on record whole, a JVM for each."""
    window = Window(given.minutes)
    of_job_s = 2.0 * PROBE_RUN_S + 60.0 + (3 * NUM_REPEATS + 1) * (WARM_S + RUN_S)
    for job in JOBS:
        lines = [line for line in lines_of(given.output) if line.get("job") == job]
        if len(lines) == 3 * NUM_REPEATS:
            continue
        if not window.has_room_for(of_job_s):
            print(f"{job}: left, {of_job_s / 60:.1f} min")
            continue
        if not lines_of(given.output):
            keep(given.output, {"made": made_by("benchmarks/run.py left_states", "PySpark")})
        with (
            tempfile.TemporaryDirectory() as folder,
            campaign_session(MAIN, Path(folder)) as spark,
        ):
            rows = measured_job(spark, job, Path(folder))
        for row in rows:
            keep(given.output, row)
            print(row)


def measured_job(spark: SparkSession, job: str, folder: Path) -> list[dict[str, Any]]:
    """Its runs in the three conditions."""
    few, many = WORKLOADS[job].probe_rows
    warm_up(spark, WORKLOADS[job], folder, 50_000.0, 20.0)
    large_s, small_s = (
        usual_duration_s(
            spark, _query(job, f"probe-{rows}", rows), run_s=PROBE_RUN_S, folder=folder
        )
        for rows in (many, few)
    )
    rate_per_s = SHARE * (many - few) / max(large_s - small_s, 1e-3)
    rows = []
    for condition in (FORGOTTEN, LEFT, AGAIN):
        if condition == LEFT:
            run_query(spark, _query("growing", "grow", GROWING_ROWS), run_s=RUN_S, folder=folder)
        else:
            forget_others(spark)
        for repeat in range(1, NUM_REPEATS + 1):
            query = Query(
                name=f"{job}/{condition}/{repeat}",
                workload=WORKLOADS[job],
                stream=Stream(rate_per_s=rate_per_s),
                trigger_s=TRIGGER_S,
                partitions=2,
            )
            measured = measured_run(spark, query, warm_s=WARM_S, measured_s=RUN_S, folder=folder)
            figures = measured.as_json()
            truth = figures["truth"] or {}
            rows.append(
                {
                    "job": job,
                    "condition": condition,
                    "repeat": repeat,
                    "rate_per_s": rate_per_s,
                    "cores_busy": figures["cores_busy"],
                    "cores_of_others": figures["cores_of_others"],
                    "duration": truth.get("duration"),
                }
            )
    return rows


def _query(job: str, name: str, max_rows: int) -> Query:
    return Query(
        name=f"{job}/{name}",
        workload=WORKLOADS[job],
        stream=backlog_stream(max_rows),
        trigger_s=0.0,
        partitions=2,
    )
