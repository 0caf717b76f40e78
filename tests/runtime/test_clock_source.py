"""The clock source against the clock, its own seed and Zipf's law."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from headway.runtime.word_count import clock_lines


class Collected:
    """Rows of a stream by batch, as (arrival in us since 1970, text); a repeat replaces."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[int, str]]] = {}

    @property
    def rows(self) -> list[tuple[int, str]]:
        return sorted(row for batch in self.batches.values() for row in batch)

    def run(self, lines: DataFrame, checkpoint: Path, *, num_batches: int) -> None:
        """Add at least so many batches."""

        def collect(batch: DataFrame, batch_id: int) -> None:
            rows = batch.selectExpr("unix_micros(arrival) AS us", "text").collect()
            self.batches[batch_id] = [(row.us, row.text) for row in rows]

        wanted = len(self.batches) + num_batches
        query = (
            lines.writeStream.foreachBatch(collect)
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime="250 milliseconds")
            .start()
        )
        try:
            deadline_s = time.monotonic() + 60
            while len(self.batches) < wanted:
                assert query.isActive, query.exception()
                assert time.monotonic() < deadline_s, "no batch for a minute"
                time.sleep(0.05)
        finally:
            query.stop()


def test_rows_arrive_when_the_rate_says(spark: SparkSession, tmp_path: Path) -> None:
    start_us = 1_000_000 * int(time.time() - 2)
    collected = Collected()
    lines = clock_lines(
        spark, rate_per_s=300, num_source_partitions=3, start_epoch_s=start_us / 1e6
    )
    before_us = time.time_ns() // 1000
    collected.run(lines, tmp_path, num_batches=3)
    after_us = time.time_ns() // 1000
    arrivals_us = [us for us, _ in collected.rows]
    assert arrivals_us == [start_us + i * 1_000_000 // 300 for i in range(len(arrivals_us))]
    first_batch_us = [us for us, _ in collected.batches[0]]
    # All that arrived before the query began, and nothing from the future.
    assert max(first_batch_us) > before_us - 10_000
    assert max(arrivals_us) <= after_us


def test_a_restart_neither_repeats_nor_skips_a_row(spark: SparkSession, tmp_path: Path) -> None:
    def lines() -> DataFrame:
        # No start given: the clock must come back out of the checkpoint.
        return clock_lines(spark, rate_per_s=1000, num_source_partitions=2)

    collected = Collected()
    collected.run(lines(), tmp_path, num_batches=2)
    collected.run(lines(), tmp_path, num_batches=2)
    arrivals_us = [us for us, _ in collected.rows]
    assert arrivals_us == [arrivals_us[0] + 1000 * i for i in range(len(arrivals_us))]


def test_the_first_batch_run_again_keeps_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    def fail(_batch: DataFrame, _batch_id: int) -> None:
        raise RuntimeError("before the first commit")

    lines = clock_lines(spark, rate_per_s=1000, num_source_partitions=1)
    failing = (
        lines.writeStream.foreachBatch(fail).option("checkpointLocation", str(tmp_path)).start()
    )
    with pytest.raises(StreamingQueryException, match="before the first commit"):
        failing.awaitTermination(60)
    failed_by_us = time.time_ns() // 1000
    time.sleep(0.3)
    collected = Collected()
    collected.run(lines, tmp_path, num_batches=2)
    arrivals_us = [us for us, _ in collected.rows]
    assert max(us for us, _ in collected.batches[0]) < failed_by_us
    assert arrivals_us == [arrivals_us[0] + 1000 * i for i in range(len(arrivals_us))]


def test_the_text_depends_on_row_and_seed_alone(spark: SparkSession, tmp_path: Path) -> None:
    start_s = float(int(time.time()) - 5)

    def texts(name: str, partitions: int, seed: int) -> list[str]:
        collected = Collected()
        lines = clock_lines(
            spark,
            rate_per_s=100,
            num_source_partitions=partitions,
            start_epoch_s=start_s,
            max_rows_per_trigger=500,
            seed=seed,
        )
        collected.run(lines, tmp_path / name, num_batches=1)
        return [text for _, text in sorted(collected.batches[0])]

    one = texts("one", 1, 7)
    assert len(one) == 500
    assert texts("three", 3, 7) == one
    assert texts("other", 1, 8) != one


def test_the_read_limit_caps_every_batch(spark: SparkSession, tmp_path: Path) -> None:
    collected = Collected()
    lines = clock_lines(
        spark,
        rate_per_s=1000,
        num_source_partitions=2,
        start_epoch_s=time.time() - 10,
        max_rows_per_trigger=700,
    )
    collected.run(lines, tmp_path, num_batches=3)
    assert [len(collected.batches[batch_id]) for batch_id in range(3)] == [700, 700, 700]
    arrivals_us = np.array([us for us, _ in collected.rows])
    assert np.all(np.diff(arrivals_us) == 1000)


def test_bulks_come_at_random_times(spark: SparkSession, tmp_path: Path) -> None:
    num_bulks, bulk_rows, rate_per_s = 900, 20, 2000.0
    start_us = 1_000_000 * int(time.time() - 20)

    def arrivals_us(name: str, seed: int) -> list[int]:
        collected = Collected()
        lines = clock_lines(
            spark,
            rate_per_s=rate_per_s,
            num_source_partitions=2,
            start_epoch_s=start_us / 1e6,
            bulk_rows=bulk_rows,
            max_rows_per_trigger=num_bulks * bulk_rows,
            seed=seed,
        )
        collected.run(lines, tmp_path / name, num_batches=1)
        return [us for us, _ in sorted(collected.batches[0])]

    found = arrivals_us("one", 3)
    assert len(found) == num_bulks * bulk_rows
    assert set(Counter(found).values()) == {bulk_rows}
    gaps_s = np.diff(np.array(sorted({start_us, *found}))) / 1e6
    # Five standard deviations of the mean and of the variance of exponential gaps.
    expected_s = bulk_rows / rate_per_s
    assert gaps_s.mean() == pytest.approx(expected_s, rel=5 / np.sqrt(num_bulks))
    assert gaps_s.var() == pytest.approx(expected_s**2, rel=5 * np.sqrt(8 / num_bulks))
    assert arrivals_us("again", 3) == found
    assert arrivals_us("other", 4) != found


def test_no_bulk_arrives_before_its_time(spark: SparkSession, tmp_path: Path) -> None:
    collected = Collected()
    lines = clock_lines(spark, rate_per_s=2000, num_source_partitions=2, bulk_rows=100)
    collected.run(lines, tmp_path, num_batches=4)
    assert max(us for us, _ in collected.rows) <= time.time_ns() // 1000
    sizes = {len(batch) for batch in collected.batches.values()}
    assert all(size % 100 == 0 for size in sizes)
    assert len(sizes) > 1


def test_words_follow_zipf(spark: SparkSession, tmp_path: Path) -> None:
    num_words, exponent = 50, 1.2
    collected = Collected()
    lines = clock_lines(
        spark,
        rate_per_s=10_000,
        num_source_partitions=2,
        start_epoch_s=time.time() - 10,
        max_rows_per_trigger=10_000,
        num_words=num_words,
        zipf_exponent=exponent,
        words_per_row=5,
    )
    collected.run(lines, tmp_path, num_batches=1)
    counts = Counter(word for _, text in collected.batches[0] for word in text.split(" "))
    num_drawn = sum(counts.values())
    assert num_drawn == 50_000
    share = np.arange(1, num_words + 1) ** -exponent
    expected = np.sort(num_drawn * share / share.sum())
    observed = np.sort(list(counts.values()))
    assert len(observed) == num_words
    # Sorting by count pairs the ranks but for ties; 5 sigma of a binomial count each.
    assert np.all(np.abs(observed - expected) <= 5 * np.sqrt(expected))


def test_another_rate_on_an_old_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    collected = Collected()
    collected.run(
        clock_lines(spark, rate_per_s=100, num_source_partitions=1), tmp_path, num_batches=1
    )
    with pytest.raises(AssertionError, match=r"checkpoint was written at 100\.0 rows/s"):
        collected.run(
            clock_lines(spark, rate_per_s=200, num_source_partitions=1), tmp_path, num_batches=1
        )


@pytest.mark.parametrize(("rate_per_s", "words_per_row"), [(0.0, 1), (-1.0, 1), (1.0, 0)])
def test_options_out_of_range_are_named(
    spark: SparkSession, tmp_path: Path, rate_per_s: float, words_per_row: int
) -> None:
    with pytest.raises(Exception, match=r"clock source: the option (rowsPerSecond|wordsPerRow)"):
        Collected().run(
            clock_lines(
                spark,
                rate_per_s=rate_per_s,
                num_source_partitions=1,
                words_per_row=words_per_row,
            ),
            tmp_path,
            num_batches=1,
        )


def test_bulks_and_bursts_exclude_each_other(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="clock source: the option bulkRows must be 0 where"):
        Collected().run(
            clock_lines(
                spark,
                rate_per_s=100,
                num_source_partitions=1,
                burst_share_ratio=0.5,
                bulk_rows=10,
            ),
            tmp_path,
            num_batches=1,
        )


def test_rows_arrive_at_rates_that_change_and_go_on_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    start_us = 1_000_000 * int(time.time() - 6)
    steps = [(1.5, 700.0), (4.0, 300.0)]

    def lines(steps: list[tuple[float, float]]) -> DataFrame:
        return clock_lines(
            spark,
            rate_per_s=100,
            rate_steps=steps,
            num_source_partitions=3,
            start_epoch_s=start_us / 1e6,
        )

    collected = Collected()
    collected.run(lines(steps), tmp_path, num_batches=2)
    time.sleep(0.5)  # rows arrive that nobody reads
    collected.run(lines(steps), tmp_path, num_batches=2)
    since_s = [(us - start_us) / 1e6 for us, _ in collected.rows]
    # 150 rows in the first 1.5 s, 1750 in the next 2.5 s, then 300 a second.
    assert np.allclose(since_s[:150], np.arange(150) / 100, atol=2e-6)
    assert np.allclose(since_s[150:1900], 1.5 + np.arange(1750) / 700, atol=2e-6)
    rest_s = since_s[1900:]
    assert len(rest_s) > 600
    assert np.allclose(rest_s, 4.0 + np.arange(len(rest_s)) / 300, atol=2e-6)
    with pytest.raises(AssertionError, match=r"with rateSteps \"1\.5:700\.0,4\.0:300\.0\""):
        collected.run(lines([(1.5, 700.0)]), tmp_path, num_batches=1)


@pytest.mark.parametrize("steps", [[(0.0, 9.0)], [(2.0, 9.0), (1.0, 9.0)], [(1.0, 0.0)]])
def test_steps_out_of_range_are_refused(
    spark: SparkSession, tmp_path: Path, steps: list[tuple[float, float]]
) -> None:
    lines = clock_lines(spark, rate_per_s=100, rate_steps=steps, num_source_partitions=1)
    with pytest.raises(Exception, match="clock source: the option rateSteps must be seconds"):
        Collected().run(lines, tmp_path, num_batches=1)
