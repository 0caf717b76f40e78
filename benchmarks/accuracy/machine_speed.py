"""The same batch again and again: how far runs lie apart by what the machine does.

One query works off a backlog in batches of the same rows, in one JVM, for some minutes; beside it
runs fixed work that has nothing to do with Spark. Whatever both share is the machine's.

    python benchmarks/run.py machine_speed --output results/machine-speed.jsonl
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from campaign.fixed_work import FixedWork, fixed_work
from campaign.running import Query, backlog_stream, campaign_session, run_query
from campaign.schedule import GROUPS
from campaign.truth import Event
from campaign.workloads import WORKLOADS
from pages import made_by

from headway.runtime.measure import begun_epoch_s
from headway.units import ms_to_s

BATCH_ROWS = 400_000
WARM_S, RUN_S = 45.0, 240.0

Row = dict[str, object]


def measure(folder: Path) -> list[Row]:
    """Batches in the order they ran, and what fixed work took meanwhile."""
    query = Query(
        name="the same batch",
        workload=WORKLOADS["aggregation"],
        stream=backlog_stream(BATCH_ROWS),
        trigger_s=0.0,
        partitions=2,
    )
    with (
        campaign_session(GROUPS["two-cores"], folder) as spark,
        fixed_work(folder / "fixed-work.jsonl") as beside,
    ):
        started_s, events = run_query(spark, query, run_s=WARM_S + RUN_S, folder=folder)
        return [
            _row(event, beside)
            for event in events
            if event["numInputRows"] == BATCH_ROWS and begun_epoch_s(event) > started_s + WARM_S
        ]


def _row(event: Event, beside: FixedWork) -> Row:
    begun_s = begun_epoch_s(event)
    duration_s = ms_to_s(event["durationMs"]["triggerExecution"])
    took_s = beside.between(begun_s, begun_s + duration_s) or {}
    return {"begun_s": begun_s, "duration_s": duration_s, **took_s}


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--output", type=Path, required=True, help="JSON lines")


def write_speed(path: Path) -> int:
    """Run, and write the lines; how many batches there were."""
    with tempfile.TemporaryDirectory(prefix="headway-speed-") as scratch:
        rows = measure(Path(scratch))
    lines = [{"made": made_by("make accuracy-campaign", "PySpark")}, *rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return len(rows)


def run(given: argparse.Namespace) -> None:
    """Run, and write the lines."""
    print(f"{given.output}: {write_speed(given.output)} batches")
