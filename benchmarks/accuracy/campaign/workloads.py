"""The jobs that are run: what they do with lines that arrive on the wall clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headway.profiler.spark.session import local_checkpoint_conf
from headway.runtime.word_count import clock_lines, count_words

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ARRIVALS, WINDOWS = "arrivals", "windows"
NUM_PIECES = 20
"""Parts of equal size that the arrivals of a batch are reported in, where they come in bursts."""

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What arrives: lines per second, since when, and how many of them a batch may take."""

    rate_per_s: float
    start_epoch_s: float | None = None
    max_rows_per_trigger: int | None = None
    burst_share_ratio: float = 1.0
    burst_period_s: float = 1.0
    bulk_rows: int | None = None
    source_partitions: int = 2
    seed: int = 1

    @property
    def is_even(self) -> bool:
        """Whether rows arrive one by one at equal distances."""
        return self.burst_share_ratio == 1 and self.bulk_rows is None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowShape:
    """Windows of a workload, whose ends are observed behind the aggregation [s]."""

    size_s: float
    watermark_delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A job: its query over a stream, and the settings that are part of what it is."""

    name: str
    does: str
    build: Callable[[SparkSession, Stream], DataFrame]
    output_mode: str = "update"
    conf: Mapping[str, str] = field(default_factory=dict)
    burst_share_ratio: float = 1.0
    burst_period_s: float = 1.0
    bulk_rows: int | None = None
    source_partitions: int = 2
    probe_rows: tuple[int, int] = (5_000, 100_000)
    windows: WindowShape | None = None

    def query(self, spark: SparkSession, stream: Stream) -> DataFrame:
        """The query over a stream, with the bursts that belong to the workload."""
        return self.build(spark, self.arriving(stream))

    def arriving(self, stream: Stream) -> Stream:
        """The stream as its rows arrive in this workload."""
        return replace(
            stream,
            burst_share_ratio=self.burst_share_ratio,
            burst_period_s=self.burst_period_s,
            bulk_rows=self.bulk_rows,
            source_partitions=self.source_partitions,
        )


def _lines(spark: SparkSession, stream: Stream) -> DataFrame:
    """Lines whose arrivals every batch reports; in parts of equal size where they are not even."""
    lines = clock_lines(
        spark,
        rate_per_s=stream.rate_per_s,
        num_source_partitions=stream.source_partitions,
        start_epoch_s=stream.start_epoch_s,
        max_rows_per_trigger=stream.max_rows_per_trigger,
        burst_share_ratio=stream.burst_share_ratio,
        burst_period_s=stream.burst_period_s,
        bulk_rows=stream.bulk_rows,
        seed=stream.seed,
    )
    return observed_arrivals(lines, is_even=stream.is_even)


def observed_arrivals(rows: DataFrame, *, is_even: bool) -> DataFrame:
    """The same rows, whose ``arrival`` every batch reports; in parts of equal size if uneven."""
    from pyspark.sql import functions

    arrival_us = functions.unix_micros("arrival")
    observed = [
        functions.count(functions.lit(1)).alias("num_rows"),
        functions.min(arrival_us).alias("first_us"),
        functions.max(arrival_us).alias("last_us"),
    ]
    if not is_even:
        shares = [place / NUM_PIECES for place in range(NUM_PIECES + 1)]
        observed.append(functions.percentile_approx(arrival_us, shares, 1000).alias("quantiles_us"))
    return rows.observe(ARRIVALS, *observed)


def _worked(lines: DataFrame, num_rounds: int = 30) -> DataFrame:
    """The lines after some microseconds of work each: their text is a stretched hash now."""
    from pyspark.sql import functions

    text = functions.col("text")
    for _ in range(num_rounds):
        text = functions.sha2(text, 256)
    return lines.withColumn("text", text)


def _key(num_keys: int) -> Column:
    """One of so many keys, evenly drawn."""
    from pyspark.sql import functions

    return functions.pmod(functions.xxhash64("text"), functions.lit(num_keys))


def _observed_windows(counts: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    ends_us = functions.collect_set(functions.unix_micros("window.end"))
    return counts.observe(WINDOWS, ends_us.alias("ends_us"))


def _aggregation(spark: SparkSession, stream: Stream) -> DataFrame:
    return count_words(_lines(spark, stream), hash_rounds=4)


def _json(spark: SparkSession, stream: Stream) -> DataFrame:
    from pyspark.sql import functions

    written = functions.to_json(functions.struct("arrival", "text", _key(1000).alias("user")))
    parsed = functions.from_json(written, "arrival timestamp, text string, user long")
    rows = _worked(_lines(spark, stream)).select(parsed.alias("row")).select("row.*")
    return rows.where("user % 2 = 0").withColumn("length", functions.length("text"))


def _tumbling(spark: SparkSession, stream: Stream) -> DataFrame:
    from pyspark.sql import functions

    late = _worked(_lines(spark, stream)).withWatermark("arrival", "500 milliseconds")
    window = functions.window("arrival", "2 seconds")
    return _observed_windows(late.groupBy(window, _key(200).alias("user")).count())


def _sliding(spark: SparkSession, stream: Stream) -> DataFrame:
    from pyspark.sql import functions

    late = _worked(_lines(spark, stream)).withWatermark("arrival", "1 second")
    window = functions.window("arrival", "4 seconds", "1 second")
    return _observed_windows(late.groupBy(window, _key(50).alias("user")).count())


def _sessions(spark: SparkSession, stream: Stream) -> DataFrame:
    from pyspark.sql import functions

    late = _worked(_lines(spark, stream)).withWatermark("arrival", "500 milliseconds")
    session = functions.session_window("arrival", "500 milliseconds")
    return late.groupBy(session, _key(10_000).alias("user")).count()


def _join(spark: SparkSession, stream: Stream) -> DataFrame:
    from pyspark.sql import functions

    half = replace(stream, rate_per_s=stream.rate_per_s / 2)
    if half.max_rows_per_trigger is not None:
        half = replace(half, max_rows_per_trigger=half.max_rows_per_trigger // 2)
    left = _worked(_lines(spark, half)).select(
        functions.col("arrival").alias("clicked"), _key(100_000).alias("user")
    )
    lines = clock_lines(
        spark,
        rate_per_s=half.rate_per_s,
        num_source_partitions=stream.source_partitions,
        start_epoch_s=stream.start_epoch_s,
        max_rows_per_trigger=half.max_rows_per_trigger,
        seed=stream.seed + 1,
    )
    other = _worked(lines).select(
        functions.col("arrival").alias("bought"), _key(100_000).alias("buyer")
    )
    return left.withWatermark("clicked", "1 second").join(
        other.withWatermark("bought", "1 second"),
        functions.expr(
            "user = buyer AND bought BETWEEN clicked - INTERVAL 1 SECOND "
            "AND clicked + INTERVAL 1 SECOND"
        ),
    )


def _deduplication(spark: SparkSession, stream: Stream) -> DataFrame:
    keyed = _worked(_lines(spark, stream)).withColumn("user", _key(50_000))
    return keyed.withWatermark("arrival", "2 seconds").dropDuplicatesWithinWatermark(["user"])


def _pandas(spark: SparkSession, stream: Stream) -> DataFrame:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql import functions

    def weight(text: str) -> int:
        return sum(place * code for _ in range(4) for place, code in enumerate(text.encode()))

    def total(texts):  # type: ignore[no-untyped-def]
        return texts.map(weight)

    # Spark reads them when it runs, when names of this function are not known by their text.
    total.__annotations__ = {"texts": pd.Series, "return": pd.Series}
    summed = functions.pandas_udf(total, "long")  # type: ignore[attr-defined]
    rows = _lines(spark, stream).select(summed("text").alias("total"), _key(1000).alias("user"))
    return rows.groupBy("user").agg(functions.sum("total").alias("total"))


def _skewed(spark: SparkSession, stream: Stream) -> DataFrame:
    """Three rows in ten go to one task of the middle stage, which does the work."""
    from pyspark.sql import functions

    key = functions.when(_key(10) < 3, functions.lit(0)).otherwise(_key(1000))
    dealt = _lines(spark, stream).withColumn("user", key).repartition("user")
    return count_words(dealt, hash_rounds=4)


def _growing(spark: SparkSession, stream: Stream) -> DataFrame:
    from pyspark.sql import functions

    return _worked(_lines(spark, stream)).groupBy(functions.xxhash64("text").alias("line")).count()


def _waiting(spark: SparkSession, stream: Stream) -> DataFrame:
    """Rows that wait for somebody else take no processor time, so 2 cores carry many slots."""
    from pyspark.sql import functions

    waited = functions.expr("reflect('java.lang.Thread', 'sleep', 2L)")
    rows = _lines(spark, stream).select(_key(1000).alias("user"), waited.alias("waited"))
    return rows.groupBy("user").agg(functions.count("*").alias("seen"), functions.max("waited"))


def varying(workload: Workload) -> Workload:
    """The same job, at a rate that is 1.7 times its mean for a while and then nothing."""
    return replace(workload, burst_share_ratio=0.6, burst_period_s=7.3)


_FAST = local_checkpoint_conf()
_WORKLOADS = (
    Workload(name="aggregation", does="words counted, five hashes each", build=_aggregation),
    Workload(
        name="slow-checkpoint",
        does="the aggregation with the default checkpoint file manager",
        build=_aggregation,
        conf={_MANAGER: _FAST[_MANAGER].replace("FileSystemBased", "FileContextBased")},
    ),
    Workload(
        name="rocksdb",
        does="the aggregation with RocksDB state and changelog",
        build=_aggregation,
        conf={_PROVIDER: _ROCKS, _CHANGELOG: "true"},
    ),
    Workload(
        name="bursty",
        does="the aggregation; the rows of 1.3 s arrive within 0.4 s",
        build=_aggregation,
        burst_share_ratio=0.3,
        burst_period_s=1.3,
    ),
    Workload(
        name="bulks",
        does="the aggregation; rows arrive 15,000 at a time, at random times",
        build=_aggregation,
        bulk_rows=15_000,
    ),
    Workload(
        name="json", does="JSON parsed and filtered, no state", build=_json, output_mode="append"
    ),
    Workload(
        name="tumbling",
        does="counts in windows of 2 s, final ones only",
        build=_tumbling,
        output_mode="append",
        windows=WindowShape(size_s=2.0, watermark_delay_s=0.5),
    ),
    Workload(
        name="sliding",
        does="counts in windows of 4 s every second, updated",
        build=_sliding,
        windows=WindowShape(size_s=4.0, watermark_delay_s=1.0),
    ),
    Workload(
        name="sessions", does="session windows per key", build=_sessions, output_mode="append"
    ),
    Workload(name="join", does="two streams joined within 1 s", build=_join, output_mode="append"),
    Workload(
        name="deduplication",
        does="duplicates of 2 s dropped",
        build=_deduplication,
        output_mode="append",
    ),
    Workload(name="pandas", does="a pandas UDF, then a sum per key", build=_pandas),
    Workload(name="skewed", does="one key has 30% of the rows", build=_skewed),
    Workload(name="growing", does="every row a new key: the state grows", build=_growing),
    Workload(
        name="waiting",
        does="every row waits 2 ms for another system",
        build=_waiting,
        source_partitions=16,
        probe_rows=(320, 3_200),
    ),
)
WORKLOADS = {workload.name: workload for workload in _WORKLOADS}
