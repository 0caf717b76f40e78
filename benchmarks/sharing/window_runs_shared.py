"""Real runs of windows counted directly, from panes, by hand, fused, and from a log.

Rows come from Spark's ``rate-micro-batch`` source: as many in every batch, a second of event time
each. Two settings of the direct query are profiled; eight others are predicted from that, and run.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import headway
from headway.domain.sharing import WindowsHow
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.measure import progress_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PARTITIONS = 2
WARM_BATCHES, BATCHES, REPEATS = 30, 60, 3
ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
HOURS = ("1 hour every 1 minute",)
MINUTE = ("60 seconds every 5 seconds",)
FOUR = ("20 seconds every 5 seconds",)


@dataclass(frozen=True)
class Setting:
    keys: int
    rows: int
    windows: tuple[str, ...]
    manager: str = "local"
    store: str = "hdfs"

    @property
    def name(self) -> str:
        return f"{self.keys}-{self.rows}-{len(self.windows)}-{self.manager}-{self.store}"


PROFILED = (Setting(1_000, 50_000, MINUTE), Setting(10_000, 150_000, MINUTE))
JUDGED = (
    Setting(100, 400_000, MINUTE),
    Setting(1_000, 10_000, MINUTE),
    Setting(1_000, 200_000, MINUTE),
    Setting(10_000, 100_000, MINUTE),
    Setting(1_000, 200_000, FOUR),
    Setting(1_000, 100_000, HOURS),
    Setting(1_000, 200_000, MINUTE, manager="default"),
    Setting(10_000, 100_000, MINUTE, store="rocksdb"),
)
BY_HAND = "by hand"


def measure(results: Path, *, short: bool) -> None:
    """Profile, predict, run, and write a line for each way at each setting."""
    with tempfile.TemporaryDirectory() as folder, results.open("w") as out:
        for row in _rows(Path(folder), short=short):
            out.write(json.dumps(row) + "\n")
            out.flush()


def _rows(folder: Path, *, short: bool) -> Iterator[dict[str, Any]]:
    logs = folder / "logs"
    logs.mkdir()
    profiled = (Setting(100, 2_000, FOUR), Setting(100, 6_000, FOUR)) if short else PROFILED
    for setting in profiled:
        with _session(setting, logs) as spark:
            _batches_s(spark, setting, "direct", folder, warm=3 if short else WARM_BATCHES,
                       number=6 if short else BATCHES)  # fmt: skip
    job = headway.profile(str(logs))
    for setting in (Setting(100, 4_000, FOUR),) if short else JUDGED:
        gain = headway.windows(job, setting.windows, rate=float(setting.rows), trigger=1.0)
        predicted = {way.how.value: way.batch_mean_s for way in gain.ways}
        ways = [how.value for how in WindowsHow]
        measured: dict[str, list[float]] = {how: [] for how in (*ways, BY_HAND)}
        for _ in range(1 if short else REPEATS):
            with _session(setting, None) as spark:
                for how in measured:
                    measured[how].append(
                        fmean(
                            _batches_s(spark, setting, how, folder,
                                       warm=3 if short else WARM_BATCHES,
                                       number=6 if short else BATCHES)
                        )
                    )  # fmt: skip
        for how, seconds in measured.items():
            yield {
                "setting": setting.name,
                **asdict(setting),
                "how": how,
                "predicted_s": predicted.get(how, predicted["panes"]),
                "measured_s": seconds,
            }


def _session(setting: Setting, logs: Path | None) -> Any:
    return embedded_session(
        app_name="window sharing",
        master="local[2]",
        event_log_dir=logs,
        driver_memory="4g",
        extra_conf={
            "spark.sql.shuffle.partitions": str(PARTITIONS),
            **(local_checkpoint_conf() if setting.manager == "local" else {}),
            **(ROCKSDB if setting.store == "rocksdb" else {}),
        },
    )


def _batches_s(
    spark: SparkSession, setting: Setting, how: str, folder: Path, *, warm: int, number: int
) -> list[float]:
    """Durations of the batches after the warm-up."""
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    place = Path(tempfile.mkdtemp(dir=folder))
    query = _started(_source(spark, setting), setting, how, place)
    try:
        while len(query.recentProgress) < warm + number:
            if query.awaitTermination(1):
                break
    finally:
        query.stop()
        spark.conf.unset("spark.sql.streaming.statefulOperator.useStrictDistribution")
        shutil.rmtree(place, ignore_errors=True)
    events = [e for e in progress_events(query) if e["numInputRows"]][warm : warm + number]
    return [event["durationMs"]["triggerExecution"] / 1000 for event in events]


def _source(spark: SparkSession, setting: Setting) -> DataFrame:
    rows = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", setting.rows)
        .option("numPartitions", PARTITIONS)
        .option("advanceMillisPerBatch", 1000)
        .load()
    )
    return rows.selectExpr(
        "timestamp AS ts", f"pmod(hash(value), {setting.keys}) AS k", "value % 100 AS v"
    ).withWatermark("ts", "0 seconds")


def _started(df: DataFrame, setting: Setting, how: str, place: Path) -> StreamingQuery:
    asked: dict[str, Any] = {
        "time": "ts",
        "key": ["k"],
        "windows": setting.windows,
        "aggregates": {"n": "count(*)", "total": "sum(v)"},
    }
    checkpoint, every = str(place / "checkpoint"), {"processingTime": "1 second"}
    if how == WindowsHow.LOG:
        log = headway.window_log(df, **asked, store=str(place / "store"), emit="early")
        return log.start(sink=_into_nothing, checkpoint=checkpoint, trigger=every)
    if how == BY_HAND:
        counted = _by_hand(df, setting.windows)
    else:
        counted = headway.shared_windows(df, **asked, how=how, checkpoint=checkpoint)  # type: ignore[arg-type]
    writer = counted.writeStream.format("noop").outputMode("append")
    return writer.option("checkpointLocation", checkpoint).trigger(**every).start()


def _into_nothing(batch: DataFrame, number: int) -> None:  # noqa: ARG001
    batch.write.format("noop").mode("overwrite").save()


def _by_hand(df: DataFrame, windows: Sequence[str]) -> DataFrame:
    """Two chained windows, as people write them for one size."""
    from pyspark.sql import functions as F  # noqa: N812

    size, slide = windows[0].split(" every ")
    pane = df.groupBy(F.window("ts", slide), "k").agg(
        F.count("*").alias("n"), F.sum("v").alias("total")
    )
    return (
        pane.select(F.window_time("window").alias("at"), "k", "n", "total")
        .groupBy(F.window("at", size, slide), "k")
        .agg(F.sum("n").alias("n"), F.sum("total").alias("total"))
    )
