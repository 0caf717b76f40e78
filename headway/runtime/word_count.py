"""The demonstration job: words counted in lines that arrive on the wall clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from headway.runtime.clock_source import CLOCK_SOURCE_FORMAT
from headway.runtime.given import F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ARRIVALS_METRIC = "arrivals"
"""Name of a batch's arrivals in ``observedMetrics``."""

MOST_HASH_ROUNDS = 60
"""Spark's analyzer fails on an expression that is some hundred calls deep."""

_MICROSECOND = timedelta(microseconds=1)
_MILLISECOND = timedelta(milliseconds=1)


def clock_lines(
    spark: SparkSession,
    *,
    rate_per_s: float,
    num_source_partitions: int,
    start_epoch_s: float | None = None,
    max_rows_per_trigger: int | None = None,
    burst_period_s: float = 1.0,
    burst_share_ratio: float = 1.0,
    bulk_rows: int | None = None,
    rate_steps: Sequence[tuple[float, float]] = (),
    num_words: int = 1000,
    zipf_exponent: float = 1.1,
    words_per_row: int = 8,
    seed: int = 1,
) -> DataFrame:
    """Lines of text on the wall clock: ``arrival`` (timestamp), ``text``.

    The session has the jar of `headway.runtime.clock_source`. Lines are distributed to the map
    tasks of a batch in turn. The first one arrives at ``start_epoch_s``, seconds since 1970, or at
    the start of the query. They arrive at a constant rate; in bursts, within a share of each
    period, which is in whole milliseconds; in bulks of some rows together, at the instants of a
    Poisson process; or with changes of the rate, by seconds since the first line. Lines arrive
    whether or not a query reads them; a restart must use the same steps. The word of rank k, of
    ``num_words``, is drawn in proportion to k to the minus ``zipf_exponent``.
    """
    options: dict[str, bool | float | int | str | None] = {
        "rowsPerSecond": rate_per_s,
        "numPartitions": num_source_partitions,
        "words": num_words,
        "zipf": zipf_exponent,
        "wordsPerRow": words_per_row,
        "seed": seed,
        "burstPeriodMillis": round(timedelta(seconds=burst_period_s) / _MILLISECOND),
        "burstShare": burst_share_ratio,
    }
    if bulk_rows is not None:
        options["bulkRows"] = bulk_rows
    if rate_steps:
        options["rateSteps"] = ",".join(f"{from_s!r}:{per_s!r}" for from_s, per_s in rate_steps)
    if start_epoch_s is not None:
        options["startEpochMicros"] = round(timedelta(seconds=start_epoch_s) / _MICROSECOND)
    if max_rows_per_trigger is not None:
        options["maxRowsPerTrigger"] = max_rows_per_trigger
    return spark.readStream.format(CLOCK_SOURCE_FORMAT).options(**options).load()


def word_count(
    spark: SparkSession,
    *,
    rate_per_s: float,
    num_source_partitions: int,
    hash_rounds: int,
    start_epoch_s: float | None = None,
    max_rows_per_trigger: int | None = None,
) -> DataFrame:
    """The whole job: `count_words` of observed `clock_lines`, with the same parameters."""
    lines = clock_lines(
        spark,
        rate_per_s=rate_per_s,
        num_source_partitions=num_source_partitions,
        start_epoch_s=start_epoch_s,
        max_rows_per_trigger=max_rows_per_trigger,
    )
    return count_words(observe_arrivals(lines), hash_rounds=hash_rounds)


def observe_arrivals(lines: DataFrame) -> DataFrame:
    """The same rows; each batch reports its arrivals as the observed metric ``arrivals``.

    Lines have a timestamp ``arrival``, as from `clock_lines`. The metric has ``num_rows``, and
    ``first_us`` and ``last_us``, microseconds since 1970. It is part of the batch's own job and of
    its progress event, and needs no second pass.
    """
    arrival_us = F.unix_micros("arrival")
    return lines.observe(
        ARRIVALS_METRIC,
        F.count(F.lit(1)).alias("num_rows"),
        F.min(arrival_us).alias("first_us"),
        F.max(arrival_us).alias("last_us"),
    )


def count_words(lines: DataFrame, *, hash_rounds: int) -> DataFrame:
    """Count words of ``text``, and combine a repeated hash of each into a fingerprint.

    0 to 60 SHA-256 rounds per word determine the processor time per line. The result has ``word``,
    ``num_seen`` and ``fingerprint``, for update mode if the lines are a stream.
    """
    if not 0 <= hash_rounds <= MOST_HASH_ROUNDS:
        raise ValueError(f"hash_rounds is {hash_rounds}; expected 0 to {MOST_HASH_ROUNDS}")
    words = lines.select(F.explode(F.split("text", " ")).alias("word"))
    stretched_hash = F.col("word")
    for _ in range(hash_rounds):
        stretched_hash = F.sha2(stretched_hash, 256)
    hashed = words.select("word", stretched_hash.alias("hash"))
    # The aggregate uses the hash, otherwise the optimizer would drop it. As a long it allows a hash
    # aggregation, while the maximum of a string would force a sort.
    fingerprint = F.bit_xor(F.xxhash64("hash")).alias("fingerprint")
    return hashed.groupBy("word").agg(F.count(F.lit(1)).alias("num_seen"), fingerprint)
