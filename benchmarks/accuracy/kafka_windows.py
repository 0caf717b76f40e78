"""Windows of a real Kafka topic, directly and by the best shared way: latency and every row.

The direct query is profiled at two settings. From that, the durations of the direct query and of
the best way are predicted before either runs at a third setting. The rows that each has written
are compared, one by one, with what Spark counts over the whole topic afterwards. Steps that are in
the results are not run again.

    python benchmarks/run.py kafka_windows --results benchmarks/sharing/results/kafka.jsonl
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka.runs import FIRST_BATCH_WITHIN_S, wait_from_first_batch
from kafka_broker.broker import Lane, running_lane
from kafka_broker.jars import KafkaUnavailableError, connector_jars
from result_lines import keep, lines_of

import headway
from headway.domain.sharing import WindowsHow
from headway.errors import HeadwayError
from headway.formats.profile_file import load_profile
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.measure import begun_epoch_s, committed_epoch_s, progress_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headway.runtime.sharing.window_log import SharedLog

RESULTS = Path(__file__).parents[1] / "sharing" / "results" / "kafka.jsonl"
TOPIC_PARTITIONS, SHUFFLE_PARTITIONS, CORES = 4, 2, 2
# Texts of the load process; each is a key.
KEYS = 8192
DELAY = "1 second"


@dataclass(frozen=True)
class Amount:
    """How much is run."""

    window: str = "60 seconds every 5 seconds"
    rate_per_s: float = 12_000.0
    profiled: tuple[tuple[float, float], ...] = ((6_000.0, 1.0), (18_000.0, 2.0))
    """Rates and triggers of the direct runs that predictions are based on."""
    trigger_s: float = 1.0
    warm_s: float = 65.0
    run_s: float = 80.0
    profiled_s: float = 75.0


ALL = Amount()
SHORT = Amount(
    window="4 seconds every 2 seconds", rate_per_s=2_000.0,
    profiled=((1_000.0, 1.0), (3_000.0, 2.0)), warm_s=10.0, run_s=15.0, profiled_s=20.0,
)  # fmt: skip


def options(parser: argparse.ArgumentParser) -> None:
    """Where results are, and how much is run."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSONL; lines are appended")
    parser.add_argument("--short", action="store_true", help="two minutes, for a trial")


def run(given: argparse.Namespace) -> None:
    """Profile, then run the direct query and the best way; each adds a line."""
    amount = SHORT if given.short else ALL
    given.results.parent.mkdir(parents=True, exist_ok=True)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="headway-kafka-") as scratch,
            running_lane(Path(scratch) / "broker") as lane,
        ):
            _measure(lane, amount, given.results, Path(scratch))
    except KafkaUnavailableError as error:
        print(f"kafka_windows: skipped: {error}", file=sys.stderr)


def runs_of(results: Path) -> dict[str, Mapping[str, Any]]:
    """Finished runs by their way."""
    return {line["how"]: line for line in lines_of(results)}


def _measure(lane: Lane, amount: Amount, results: Path, scratch: Path) -> None:
    profile = results.with_name("kafka-profile.yaml")
    if not profile.exists():
        _profile(lane, amount, scratch, profile)
    gain = headway.windows(
        load_profile(profile), [amount.window], rate=amount.rate_per_s,
        trigger=amount.trigger_s, num_keys=KEYS,
    )  # fmt: skip
    ways = {way.how: way for way in gain.ways}
    best = max(gain.ways[1:], key=lambda way: way.saved_s)
    ways_run: tuple[WindowsHow, ...] = ("direct", best.how)
    for how in ways_run:
        if how in runs_of(results):
            continue
        tell(f"{how}: {amount.warm_s + amount.run_s:.0f} s")
        with _session(scratch, None) as spark:
            found = _judged(spark, lane, amount, how, scratch)
        expected = ways[how]
        line = {
            "how": how,
            "made": f"{datetime.now(UTC):%Y-%m-%d}",
            **asdict(amount),
            "predicted_batch_s": expected.batch_mean_s,
            "predicted_window_p99_s": expected.window_p99_s,
            **found,
        }
        keep(results, line)


def _profile(lane: Lane, amount: Amount, scratch: Path, profile: Path) -> None:
    logs = scratch / "logs"
    logs.mkdir()
    names = [f"profiled-{place}" for place in range(len(amount.profiled))]
    with _session(scratch, logs) as spark:
        for name, (rate_per_s, trigger_s) in zip(names, amount.profiled, strict=True):
            tell(f"profiling: {rate_per_s:,.0f} rows/s, trigger {trigger_s:g} s")
            _followed(
                spark, lane, amount.window, "direct", rate_per_s, trigger_s,
                amount.warm_s + amount.profiled_s, scratch / name,
            )  # fmt: skip
    # Each reads a topic of its own: without their names they would be different jobs.
    headway.profile(str(logs), queries=names).save(profile)


def _session(scratch: Path, logs: Path | None) -> Any:
    return embedded_session(
        app_name="kafka windows",
        master=f"local[{CORES}]",
        event_log_dir=logs,
        driver_memory="2g",
        jars=connector_jars(),
        extra_conf={
            **local_checkpoint_conf(),
            "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
            "spark.sql.streaming.numRecentProgressUpdates": "100000",
            "spark.local.dir": str(scratch),
        },
    )


def _judged(
    spark: SparkSession, lane: Lane, amount: Amount, how: WindowsHow, scratch: Path
) -> Mapping[str, Any]:
    folder = scratch / f"judged-{how}"
    events = _followed(
        spark, lane, amount.window, how, amount.rate_per_s, amount.trigger_s,
        amount.warm_s + amount.run_s, folder,
    )  # fmt: skip
    after_s = begun_epoch_s(events[0]) + amount.warm_s
    counted = [e for e in events if e["numInputRows"] and begun_epoch_s(e) >= after_s]
    latencies_s = [
        commit_s - end_s
        for end_s, commit_s in _commits_s(spark, folder / "out", events).items()
        if end_s > after_s
    ]
    durations_s = [e["durationMs"]["triggerExecution"] / 1e3 for e in counted]
    return {
        "num_batches": len(counted),
        "rows_per_batch": sum(e["numInputRows"] for e in counted) / max(len(counted), 1),
        "batches_s": durations_s,
        "windows_s": sorted(latencies_s),
        **_compared(spark, lane, amount.window, folder),
    }


def _followed(
    spark: SparkSession,
    lane: Lane,
    window: str,
    how: WindowsHow,
    rate_per_s: float,
    trigger_s: float,
    seconds: float,
    folder: Path,
) -> Sequence[Mapping[str, Any]]:
    """Progress of a query on a topic of its own that fills while it runs."""
    topic = folder.name
    lane.make_topic(topic, TOPIC_PARTITIONS)
    lane.start_flow(topic, TOPIC_PARTITIONS, rate_per_s)
    try:
        query = _started(_rows(spark, lane, topic, "readStream"), window, how, trigger_s, folder)
        try:
            wait_from_first_batch(query, seconds)
        finally:
            query.stop()
    finally:
        lane.stop_flow(topic)
        spark.conf.unset("spark.sql.streaming.statefulOperator.useStrictDistribution")
    events = progress_events(query)
    if not events:
        raise HeadwayError(f"{topic}: no batch in {FIRST_BATCH_WITHIN_S + seconds:.0f} s")
    return events


def _rows(spark: SparkSession, lane: Lane, topic: str, reader: str) -> DataFrame:
    rows: DataFrame = (
        getattr(spark, reader)
        .format("kafka")
        .option("kafka.bootstrap.servers", lane.servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    found = rows.selectExpr("timestamp AS ts", "CAST(value AS STRING) AS text")
    return found.withWatermark("ts", DELAY) if reader == "readStream" else found


def _asked(window: str) -> dict[str, Any]:
    return {
        "time": "ts",
        "key": ["text"],
        "windows": [window],
        "aggregates": {"n": "count(*)", "longest": "max(length(text))"},
    }


def _started(
    rows: DataFrame, window: str, how: WindowsHow, trigger_s: float, folder: Path
) -> StreamingQuery:
    checkpoint, name = str(folder / "checkpoint"), folder.name
    every = {"processingTime": f"{trigger_s:g} seconds"}
    sink = _into(folder / "out")
    if how == "log":
        log: SharedLog = headway.window_log(
            rows, **_asked(window), store=str(folder / "store"), emit="early", rollups=[]
        )
        return log.start(sink=sink, checkpoint=checkpoint, trigger=every, name=name)
    counted: DataFrame = headway.shared_windows(
        rows, **_asked(window), how=how, checkpoint=checkpoint
    )
    writer = counted.writeStream.foreachBatch(sink).outputMode("append").queryName(name)
    return writer.option("checkpointLocation", checkpoint).trigger(**every).start()


def _into(folder: Path) -> Callable[[DataFrame, int], None]:
    """A sink that overwrites what an earlier run of the same batch has written."""

    def write(windows: DataFrame, number: int) -> None:
        windows.write.mode("overwrite").parquet(str(folder / f"batch={number}"))

    return write


def _commits_s(
    spark: SparkSession, out: Path, events: Sequence[Mapping[str, Any]]
) -> dict[float, float]:
    """End of each window that was written, and when its batch was committed [s since 1970]."""
    commit_s = {event["batchId"]: committed_epoch_s(event) for event in events}
    written = spark.read.parquet(str(out)).selectExpr("batch", "unix_millis(window.end) AS end_ms")
    return {
        row.end_ms / 1e3: commit_s[row.batch]
        for row in written.distinct().collect()
        if row.batch in commit_s
    }


def _compared(spark: SparkSession, lane: Lane, window: str, folder: Path) -> Mapping[str, int]:
    """Written rows, compared one by one with Spark's own windows over the whole topic."""
    written = spark.read.parquet(str(folder / "out")).drop("batch")
    last = written.selectExpr("max(window.end) AS last").first()
    assert last is not None
    topic = _rows(spark, lane, folder.name, "read")
    whole = headway.shared_windows(topic, **_asked(window), how="direct")
    due = whole.where(whole["window.end"] <= last["last"]).select(written.columns)
    return {
        "num_rows": written.count(),
        "num_missing": due.exceptAll(written).count(),
        "num_beyond": written.exceptAll(due).count(),
    }


def tell(text: str) -> None:
    """Progress, on the terminal."""
    print(f"{datetime.now():%H:%M:%S} {text}", file=sys.stderr)
