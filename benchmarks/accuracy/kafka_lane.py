"""Kafka to Spark to Kafka on a real broker: latency predicted and measured, append to commit.

Maven fetches a broker of one node and the connector once, into the user's cache; broker, load and
Spark end with this program. Raw results go to a JSONL file, and the page is made from that.

    python benchmarks/run.py kafka_lane --results benchmarks/accuracy/results/kafka.jsonl \\
        --output docs/kafka-accuracy.md
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kafka.cases import MICRO_BATCH_CASES, REAL_TIME_CASES, Case, Mode
from kafka.judging import judge
from kafka.page import page
from kafka.real_time import judge_real_time, with_launches
from kafka.runs import Record, run_case, warm_up
from kafka_broker.broker import Lane, running_lane
from kafka_broker.jars import KafkaUnavailableError, connector_jars
from read_logs import read_logs_of_runs
from result_lines import lines_of

from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
# Real-Time Mode refuses a query unless every task has a slot; the cores are the same two.
REAL_TIME_SLOTS = 8
WARM_S, RUN_S = 6.0, 16.0
REAL_TIME_RUN_S = 26.0
JIT_WARM_S = 30.0
_SEED = 5

REAL_TIME_CONF = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

PLANNED_RESULTS = "planned-real-time.jsonl"


def micro_batches(lane: Lane, cases: Sequence[Case], folder: Path) -> list[Record]:
    """Run the cases in one JVM, in a random order, and predict them from the fitted ones."""
    order = list(cases)
    random.Random(_SEED).shuffle(order)
    records = []
    with embedded_session(
        app_name="kafka lane",
        master=f"local[{CORES}]",
        event_log_dir=folder / "log",
        jars=connector_jars(),
        extra_conf={
            **local_checkpoint_conf(),
            "spark.sql.streaming.numRecentProgressUpdates": "100000",
        },
    ) as spark:
        for job in sorted({case.job for case in cases}):
            first = Case(job=job, partitions=4, rate_per_s=12000, trigger_s=0.0, repeat=99)
            tell(f"warm-up: {first.name}")
            warm_up(spark, lane, first, folder, JIT_WARM_S)
        for number, case in enumerate(order, start=1):
            tell(f"{number}/{len(order)}: {case.name}")
            records.append(_measured(spark, lane, case, folder, RUN_S))
    _write(records, folder / "measured.jsonl")
    tell("profiling and predicting")
    return judge(records, read_logs_of_runs(folder / "log"), CORES)


def real_time(lane: Lane, cases: Sequence[Case], folder: Path) -> list[Record]:
    """Run the cases of Real-Time Mode."""
    records: list[Record] = []
    with embedded_session(
        app_name="kafka lane, real time",
        master=f"local[{REAL_TIME_SLOTS}]",
        event_log_dir=folder / "log",
        jars=connector_jars(),
        extra_conf={**local_checkpoint_conf(), **REAL_TIME_CONF},
    ) as spark:
        first = replace(REAL_TIME_CASES[1], repeat=99)
        tell(f"warm-up: {first.name}")
        warm_up(spark, lane, first, folder, REAL_TIME_RUN_S)
        for number, case in enumerate(cases, start=1):
            tell(f"real time {number}/{len(cases)}: {case.name}")
            records.append(_measured(spark, lane, case, folder, REAL_TIME_RUN_S))
    records = with_launches(records, read_logs_of_runs(folder / "log"))
    _write(records, folder / "measured.jsonl")
    return judge_real_time(records)


def _measured(spark: SparkSession, lane: Lane, case: Case, folder: Path, run_s: float) -> Record:
    """A run, or why there is none: Spark refuses the query, or it completes no batch."""
    try:
        return run_case(spark, lane, case, folder, warm_s=WARM_S, run_s=run_s)
    except KafkaUnavailableError:
        raise
    except Exception as error:
        why = str(error).strip().splitlines()[0]
        tell(f"failed: {why}")
        return {"name": case.name, "case": asdict(case), "failed": why}


def _write(records: Sequence[Record], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records))


def _real_time_judged(records: Sequence[Record]) -> list[Record]:
    """The records; those of Real-Time Mode with predictions of the current models."""
    runs = [one for one in records if one.get("case", {}).get("mode") == Mode.REAL_TIME]
    others = [one for one in records if one not in runs]
    return [*others, *judge_real_time(runs)]


def tell(text: str) -> None:
    """Progress, on the terminal."""
    print(f"{datetime.now():%H:%M:%S} {text}", file=sys.stderr)


def about() -> Record:
    """Where and with what the runs were made."""
    import pyspark

    return {
        "about": {
            "made": f"{datetime.now(UTC):%Y-%m-%d}",
            "command": "make kafka-accuracy",
            "headway": __version__,
            "python": platform.python_version(),
            "pyspark": pyspark.__version__,
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            "jars": sorted(jar.name for jar in connector_jars()),
            "warm_s": WARM_S,
            "run_s": RUN_S,
        }
    }


def measure(wanted: str | None, scratch: Path) -> list[Record]:
    """Everything, or the cases whose name contains a text."""
    micro = [case for case in MICRO_BATCH_CASES if wanted is None or wanted in case.name]
    instant = [case for case in REAL_TIME_CASES if wanted is None or wanted in case.name]
    records = [about()]
    with running_lane(scratch / "broker") as lane:
        if micro:
            records += micro_batches(lane, micro, scratch / "micro")
        if instant:
            records += real_time(lane, instant, scratch / "real-time")
    return records


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--results", type=Path, required=True, help="JSONL, written or read")
    parser.add_argument("--render", action="store_true", help="only make the page from the results")
    parser.add_argument("--only", help="run the cases whose name contains this")
    parser.add_argument("--keep", type=Path, help="keep logs and checkpoints in this folder")


def text(given: argparse.Namespace) -> str | None:
    """Measure unless asked not to; then the page."""
    try:
        if not given.render:
            with tempfile.TemporaryDirectory(prefix="headway-kafka-") as scratch:
                records = measure(given.only, given.keep or Path(scratch))
            _write(records, given.results)
    except KafkaUnavailableError as error:
        print(f"kafka_lane: skipped: {error}", file=sys.stderr)
        return None
    records = [json.loads(line) for line in given.results.read_text().splitlines()]
    return page(_real_time_judged(records), lines_of(given.results.with_name(PLANNED_RESULTS)))
