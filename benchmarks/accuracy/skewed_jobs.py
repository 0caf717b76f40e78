"""Jobs with heavy keys in real time: queries by key or by bucket, and the rows of their tasks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from campaign.running import backlog_stream
from campaign.workloads import Stream, Workload

from headway.domain.ordered import KeyPlacement
from headway.errors import HeadwayError
from headway.models.stages.spark_hash import spark_hash
from headway.runtime.word_count import clock_lines, observe_arrivals

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

BY_KEY, PLACED = "by key", "placed"
_HASH_ROUNDS = 30
_COUNTED_WITHIN_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewedJob:
    """Rows that are partitioned by a key, with some microseconds of work on each row.

    Without an exponent, ``num_heavy`` keys share ``heavy_percent`` of the rows, and all other keys
    have equal shares of the rest. A row is a function of its number and of the stream's seed.
    """

    name: str
    does: str
    target: str
    num_keys: int
    exponent: float | None = None
    num_heavy: int = 0
    heavy_percent: int = 0
    keeps_state: bool

    def workload(self, placed: KeyPlacement | None = None) -> Workload:
        """The query by key, or by the buckets of placed keys."""
        return Workload(
            name=self.name if placed is None else f"{self.name}-placed",
            does=self.does,
            build=lambda spark, stream: self._query(spark, stream, placed),
            output_mode="update" if self.keeps_state else "append",
        )

    def rows(self, spark: SparkSession, stream: Stream) -> DataFrame:
        """Lines with their key; each batch reports their arrivals."""
        by_word = self.exponent is not None
        lines = clock_lines(
            spark,
            rate_per_s=stream.rate_per_s,
            num_source_partitions=stream.source_partitions,
            start_epoch_s=stream.start_epoch_s,
            max_rows_per_trigger=stream.max_rows_per_trigger,
            num_words=self.num_keys if by_word else 1000,
            zipf_exponent=self.exponent or 0.0,
            words_per_row=1 if by_word else 8,
            seed=stream.seed,
        )
        return observe_arrivals(lines).withColumn("user", self._key())

    def _key(self) -> Column:
        from pyspark.sql import functions as F  # noqa: N812

        if self.exponent is not None:
            return F.col("text")

        def drawn(salt: int, number: int) -> Column:
            return F.pmod(F.xxhash64("text", F.lit(salt)), F.lit(number))

        heavy = F.concat(F.lit("heavy"), drawn(1, self.num_heavy).cast("string"))
        light = F.concat(F.lit("key"), drawn(2, self.num_keys).cast("string"))
        return F.when(drawn(0, 100) < self.heavy_percent, heavy).otherwise(light)

    def _query(self, spark: SparkSession, stream: Stream, placed: KeyPlacement | None) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or "200")
        rows, by = self.rows(spark, stream), "user"
        if placed is not None:
            rows, by = rows.withColumn("bucket", _bucket(placed)), "bucket"
        text = F.col("text")
        for _ in range(_HASH_ROUNDS):
            text = F.sha2(text, 256)
        scored = rows.repartition(partitions, by).select(by, text.alias("score"))
        if not self.keeps_state:
            return scored
        return scored.groupBy(by).agg(
            F.count("*").alias("num_seen"), F.bit_xor(F.xxhash64("score")).alias("fingerprint")
        )


def _bucket(placed: KeyPlacement) -> Column:
    """The bucket column that ``headway ordered`` prints for plain Spark."""
    from pyspark.sql import functions as F  # noqa: N812

    pairs = zip(placed.keys, placed.buckets, strict=True)
    table = F.create_map(*(F.lit(x) for key, bucket in pairs for x in (str(key), bucket)))
    others = F.array(*map(F.lit, placed.spread_ids))
    spread = F.pmod(F.xxhash64("user"), F.lit(len(placed.spread_ids))).cast("int") + 1
    return F.coalesce(table[F.col("user")], F.element_at(others, spread))


class CountedKey(NamedTuple):
    """Rows of a key, and its hash by Spark's xxhash64."""

    num_rows: int
    hash64: int


def counted_keys(
    spark: SparkSession, job: SkewedJob, seed: int, num_rows: int, folder: Path
) -> dict[str, CountedKey]:
    """The first rows of a stream, generated again and counted by key with Spark.

    Raises
    ------
    HeadwayError
        If the count fails or takes too long.
    """
    found: dict[str, CountedKey] = {}

    def count(frame: DataFrame, _number: int) -> None:
        if not found:
            by_key = frame.groupBy("user").count().selectExpr("*", "xxhash64(user) AS hash64")
            found.update(
                {row["user"]: CountedKey(row["count"], row["hash64"]) for row in by_key.collect()}
            )

    stream = replace(backlog_stream(num_rows), seed=seed)
    running = (
        job.rows(spark, stream)
        .writeStream.foreachBatch(count)
        .option("checkpointLocation", str(folder / f"counted-{time.time_ns()}"))
        .start()
    )
    until_s = time.monotonic() + _COUNTED_WITHIN_S
    try:
        while not found and running.isActive and time.monotonic() < until_s:
            time.sleep(0.1)
    finally:
        running.stop()
    num_found = sum(one.num_rows for one in found.values())
    if num_found != num_rows:
        raise HeadwayError(f"{job.name}: counted {num_found:,} rows by key, expected {num_rows:,}")
    return found


def rows_of_partitions(
    counts: Mapping[str, CountedKey], partitions: int, placed: KeyPlacement | None
) -> list[int]:
    """Rows of each partition, computed with Headway's implementation of Spark's hash."""
    num_rows = np.array([one.num_rows for one in counts.values()])
    if placed is None:
        hashed = spark_hash(list(counts), "string")
    else:
        bucket_of = {str(key): at for key, at in zip(placed.keys, placed.buckets, strict=True)}
        ids = placed.spread_ids
        buckets = [bucket_of.get(key, ids[one.hash64 % len(ids)]) for key, one in counts.items()]
        hashed = spark_hash(buckets, "int")
    partition = np.mod(hashed.astype(np.int64), partitions)
    return [int(n) for n in np.bincount(partition, num_rows, partitions)]


@dataclass(slots=True)
class StageRun:
    """The last stage of one batch: when its tasks ran, and how many rows each had."""

    batch: int
    begun_s: float = float("inf")
    ended_s: float = 0.0
    rows_of_tasks: dict[int, int] = field(default_factory=dict)

    @property
    def took_s(self) -> float:
        """From the launch of its first task to the end of its last."""
        return self.ended_s - self.begun_s


def last_stages(log: Path, query_id: str) -> list[StageRun]:
    """The last stage of each batch of a query, from uncompressed event logs."""
    found: dict[int, StageRun] = {}
    last: dict[int, int] = {}  # of each batch, which may have several jobs
    done: set[int] = set()
    for event in _events(log):
        kind = event["Event"]
        if kind == "SparkListenerJobStart":
            about = event.get("Properties") or {}
            if about.get("sql.streaming.queryId") == query_id:
                stage_id, batch = max(event["Stage IDs"]), int(about["streaming.sql.batchId"])
                found[stage_id] = StageRun(batch)
                last[batch] = max(stage_id, last.get(batch, stage_id))
        elif kind == "SparkListenerTaskEnd":
            stage, info = found.get(event["Stage ID"]), event["Task Info"]
            read = ((event.get("Task Metrics") or {}).get("Shuffle Read Metrics")) or {}
            if stage is not None and not info["Failed"] and not info["Killed"]:
                stage.begun_s = min(stage.begun_s, info["Launch Time"] / 1e3)
                stage.ended_s = max(stage.ended_s, info["Finish Time"] / 1e3)
                stage.rows_of_tasks[info["Index"]] = read.get("Total Records Read", 0)
        elif "Failure Reason" not in event["Stage Info"]:
            done.add(event["Stage Info"]["Stage ID"])
    return [found[last[batch]] for batch in sorted(last) if last[batch] in done]


_KINDS = ("SparkListenerJobStart", "SparkListenerTaskEnd", "SparkListenerStageCompleted")
_BEGINNINGS = tuple(f'{{"Event":"{kind}"' for kind in _KINDS)


def _events(log: Path) -> Iterator[dict[str, Any]]:
    """Events of jobs, tasks and stages, in the order in which they were written."""
    for path in sorted(log.rglob("events_*"), key=lambda path: int(path.name.split("_")[1])):
        with path.open(encoding="utf-8") as lines:
            for text in lines:
                # A line that is still being written has no newline yet.
                if text.startswith(_BEGINNINGS) and text.endswith("\n"):
                    yield json.loads(text)


def total_rows_of_tasks(stages: Sequence[StageRun], partitions: int) -> list[int]:
    """Total rows of each task over all batches."""
    return [sum(stage.rows_of_tasks.get(at, 0) for stage in stages) for at in range(partitions)]
