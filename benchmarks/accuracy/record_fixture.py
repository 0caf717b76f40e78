"""Records the small event log of real runs that a test holds the whole path against.

Three short runs of the aggregation in one JVM; the log and what was measured go to the folder.

    python benchmarks/run.py record_fixture tests/data/recorded
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

import zstandard
from campaign.running import Query, campaign_session, run_query
from campaign.schedule import GROUPS
from campaign.truth import truth_of
from campaign.workloads import WORKLOADS, Stream

from headway.errors import HeadwayError
from headway.profiler.redaction import allowed_properties

WORKLOAD = WORKLOADS["aggregation"]
RATE_PER_S = 20_000.0
WARM_S = 6.0
RUNS = ((1.0, 2, 8.0), (2.0, 4, 12.0), (1.0, 4, 8.0))
"""Trigger, partitions, and how long it is measured [s]."""
_PATH = re.compile(r"/(?:tmp|work|home|root|Users)/[^\"\s,\])\\]*")
_ABOUT_THE_MACHINE = (
    "JVM Information",
    "System Properties",
    "Classpath Entries",
    "Hadoop Properties",
    "Metrics Properties",
)


def record(folder: Path) -> None:
    """Run, and keep the log of the runs and their truth."""
    with tempfile.TemporaryDirectory(prefix="headway-fixture-") as scratch:
        work = Path(scratch)
        truths = []
        with campaign_session(GROUPS["two-cores"], work) as spark:
            for trigger_s, partitions, measured_s in RUNS:
                name = f"aggregation {trigger_s:g}s {partitions} partitions"
                print(name, file=sys.stderr)
                query = Query(
                    name=name,
                    workload=WORKLOAD,
                    stream=Stream(rate_per_s=RATE_PER_S),
                    trigger_s=trigger_s,
                    partitions=partitions,
                )
                started_s, events = run_query(spark, query, run_s=WARM_S + measured_s, folder=work)
                truth = truth_of(events, started_s + WARM_S, None)
                if truth is None:
                    raise HeadwayError(f"{name}: too few batches")
                truths.append(
                    {
                        "name": name,
                        "trigger_s": trigger_s,
                        "partitions": partitions,
                        "rate_per_s": RATE_PER_S,
                        "truth": truth.as_json(),
                    }
                )
        (log,) = (work / "log").glob("eventlog_v2_*")
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("eventlog_v2_*"):
            shutil.rmtree(old)
        shutil.copytree(log, folder / log.name, ignore=shutil.ignore_patterns(".*"))
        for part in (folder / log.name).glob("events_*.zstd"):
            part.write_bytes(without_machine(part.read_bytes()))
        (folder / "truth.json").write_text(json.dumps(truths, indent=1) + "\n")
        print(folder)


def without_machine(events: bytes) -> bytes:
    """The log without paths, and with those Spark properties only that a profile may hold."""
    lines = []
    reader = zstandard.ZstdDecompressor().stream_reader(events, read_across_frames=True)
    for line in reader.read().decode().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerEnvironmentUpdate":
            event |= {name: {} for name in _ABOUT_THE_MACHINE}
            event["Spark Properties"] = allowed_properties(event["Spark Properties"])
        lines.append(_PATH.sub("/job", json.dumps(event, separators=(",", ":"))))
    return zstandard.ZstdCompressor(level=19).compress(("\n".join(lines) + "\n").encode())


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path)


def run(given: argparse.Namespace) -> None:
    """Record into the folder given."""
    record(given.folder)
