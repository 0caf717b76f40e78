"""Real runs of windows counted directly, from panes, by hand, fused, and from a log.

Rows come from Spark's ``rate-micro-batch`` source: the same number in every batch, with a second of
event time. Two settings of the direct query are profiled; eight others are run, and are predicted
from that profile when the page is made. All run as fast as possible.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast, get_args

from result_lines import keep, lines_of

import headway
from headway.domain.sharing import WindowsHow
from headway.domain.window_set import WindowSet
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.measure import progress_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headway.runtime.sharing.shared_windows import How
    from headway.runtime.sharing.window_log import SharedLog

PARTITIONS = 2
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
        copies = WindowSet.parse(self.windows).num_copies
        return f"{self.keys}-{self.rows}-{copies:g}-{self.manager}-{self.store}"


# Many rows of few keys, and few rows of many keys, so that the two costs can be separated.
PROFILED = (Setting(1_000, 300_000, MINUTE), Setting(10_000, 30_000, MINUTE))
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
WAYS = (*get_args(WindowsHow), BY_HAND)


@dataclass(frozen=True)
class Amount:
    """How much is run: everything, or the minimum that shows that it works."""

    profiled: Sequence[Setting] = PROFILED
    judged: Sequence[Setting] = JUDGED
    warm: int = 30
    batches: int = 60
    repeats: int = 3
    profiled_batches: int = 300

    def warm_batches(self, setting: Setting) -> int:
        """Batches of the warm-up: at least until the first window is closed."""
        slide_s = max(spec.slide_ms for spec in WindowSet.parse(setting.windows).windows) // 1000
        return max(self.warm, slide_s + 5)


ALL = Amount()
SHORT = Amount(
    profiled=(Setting(100, 2_000, FOUR), Setting(100, 6_000, FOUR)),
    judged=(Setting(100, 4_000, FOUR),),
    warm=3,
    batches=6,
    repeats=1,
    profiled_batches=6,
)


def measure(results: Path, *, short: bool) -> None:
    """Profile two direct runs, then add a line for each judged run that is missing."""
    amount = SHORT if short else ALL
    done = {(line["setting"], line["how"], line["repeat"]) for line in lines_of(results)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profile = results.with_name("profile.yaml")
        if not profile.exists():
            logs = results.with_name("logs")
            _run_profiled(logs, folder, amount)
            headway.profile(str(logs)).save(profile)
        for repeat in range(amount.repeats):
            for setting in amount.judged:
                # A different way is first in each repeat: the first one warms up the JVM.
                ways = [*WAYS[repeat:], *WAYS[:repeat]]
                ways = [how for how in ways if (setting.name, how, repeat) not in done]
                if not ways:
                    continue
                with _session(setting, None) as spark:
                    if len(ways) < len(WAYS):
                        # The ways that are done would have warmed up the JVM.
                        _batches_s(spark, setting, "direct", folder, amount, amount.batches)
                    for how in ways:
                        seconds = _batches_s(spark, setting, how, folder, amount, amount.batches)
                        _kept(results, setting, how, repeat, seconds)


def _kept(results: Path, setting: Setting, how: str, repeat: int, seconds: list[float]) -> None:
    line = {"setting": setting.name, **asdict(setting), "how": how, "repeat": repeat}
    keep(results, {**line, "batches_s": seconds})
    print(setting.name, how, repeat, f"{fmean(seconds):.3f} s", flush=True)


def _run_profiled(logs: Path, folder: Path, amount: Amount) -> None:
    logs.mkdir()
    for setting in amount.profiled:
        with _session(setting, logs) as spark:
            _batches_s(spark, setting, "direct", folder, amount, amount.profiled_batches)


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
    spark: SparkSession, setting: Setting, how: str, folder: Path, amount: Amount, number: int
) -> list[float]:
    """Durations of a number of batches after the warm-up. [s]"""
    warm = amount.warm_batches(setting)
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
    checkpoint = str(place / "checkpoint")
    if how == "log":
        log: SharedLog = headway.window_log(df, **asked, store=str(place / "store"), emit="early")
        return log.start(sink=_into_nothing, checkpoint=checkpoint)
    if how == BY_HAND:
        counted = _by_hand(df, setting.windows)
    else:
        counted = headway.shared_windows(df, **asked, how=cast("How", how), checkpoint=checkpoint)
    writer = counted.writeStream.format("noop").outputMode("append")
    return writer.option("checkpointLocation", checkpoint).start()


def _into_nothing(batch: DataFrame, number: int) -> None:  # noqa: ARG001
    batch.write.format("noop").mode("overwrite").save()


def _by_hand(df: DataFrame, windows: Sequence[str]) -> DataFrame:
    """Two chained windows, as a user would write them for one size."""
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
