"""What the recorder costs a query: batch durations with and without it, in one JVM.

One query runs all the time while the recorder is switched on and off, block after block, each pair
of blocks in the opposite order of the pair before, so that drift affects both. Every pair gives one
difference of median batch durations, which a pause of the machine does not change; the interval is
Student's over the pairs.

    python benchmarks/run.py recorder --output docs/recorder.md
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pages import made_by
from scipy import stats

from headway.errors import InputError
from headway.profiler.recording.recorder import record
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.clock_source import clock_source_jar
from headway.runtime.measure import begun_epoch_s, progress_events
from headway.runtime.word_count import word_count
from headway.units import ms_to_s, spark_trigger_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
CORES = 2
CONFIDENCE = 0.95
SETTLE_S = 1.0
"""Left out of each block, since switching is not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A way to run the query; a backlog makes batches of one size, one right after the other."""

    trigger_s: float
    rows_per_batch: int
    from_backlog: bool


CASES = {
    "every second": Case(trigger_s=1.0, rows_per_batch=20_000, from_backlog=False),
    "back to back": Case(trigger_s=0.0, rows_per_batch=20_000, from_backlog=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A stretch of time with the recorder on or off; instants in seconds since 1970.

    ``processor_s`` is what the driver's JVM and this process computed in it, ``own_s`` the part of
    it in threads that the recorder works in.
    """

    is_recorded: bool
    begin_s: float
    end_s: float
    processor_s: float
    own_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The measurements of one case."""

    num_pairs: int
    num_batches: int
    without_s: float
    with_s: float
    difference_s: float
    half_interval_s: float
    processor_without_s: float
    processor_difference_s: float
    processor_half_interval_s: float
    own_s: float
    own_half_interval_s: float
    batches_per_s: float
    bytes_per_batch: float
    num_lost: int


def run_blocks(
    spark: SparkSession, query: StreamingQuery, recording: Path, num_pairs: int, block_s: float
) -> tuple[list[Block], int]:
    """Switch the recorder on and off while the query runs; blocks, and events it lost."""
    blocks, num_lost = [], 0
    for number in range(num_pairs):
        print(f"pair {number + 1} of {num_pairs}", file=sys.stderr)
        for is_recorded in (False, True) if number % 2 == 0 else (True, False):
            recorder = record(spark, recording, max_bytes=10**12) if is_recorded else None
            time.sleep(SETTLE_S)
            begin_s, computed_s, own_s = time.time(), processor_s(spark), recorder_threads_s(spark)
            time.sleep(block_s)
            blocks.append(
                Block(
                    is_recorded=is_recorded,
                    begin_s=begin_s,
                    processor_s=processor_s(spark) - computed_s,
                    own_s=recorder_threads_s(spark) - own_s,
                    end_s=time.time(),
                )
            )
            if recorder is not None:
                recorder.stop()
                num_lost += recorder.num_lost
        if not query.isActive:
            sys.exit(f"the query ended: {query.exception()}")
    return blocks, num_lost


def processor_s(spark: SparkSession) -> float:
    """Processor time of the driver's JVM, which is Spark and all its tasks, and of this process."""
    assert spark._jvm is not None
    jvm = spark._jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get()
    return float(jvm.toNanos()) / 1e9 + time.process_time()


def recorder_threads_s(spark: SparkSession) -> float:
    """Processor time of this process, and of the JVM's threads that serve it and notify listeners.

    Anything else on the machine is not included. While the query runs, only the recorder asks the
    JVM for anything.
    """
    assert spark._jvm is not None
    threads = spark._jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    total_ns = 0
    for thread in threads.dumpAllThreads(False, False):
        if thread.getThreadName().startswith(("Thread-", "spark-listener-group")):
            total_ns += max(threads.getThreadCpuTime(thread.getThreadId()), 0)
    return total_ns / 1e9 + time.process_time()


def durations_s(progress: Sequence[Mapping[str, Any]], block: Block) -> list[float]:
    """Durations of the batches within a block."""
    found = []
    for event in progress:
        started_s = begun_epoch_s(event)
        duration_s = ms_to_s(event["durationMs"]["triggerExecution"])
        is_inside = block.begin_s <= started_s and started_s + duration_s <= block.end_s
        if is_inside and event["numInputRows"] > 0:
            found.append(duration_s)
    return found


def measure(
    spark: SparkSession, case: Case, folder: Path, *, num_pairs: int, block_s: float, warm_s: float
) -> Cost:
    """Run one case."""
    folder.mkdir()
    recording = folder / "word-count.headway.jsonl"
    lines_per_s = case.rows_per_batch / (case.trigger_s or 1.0)
    query = (
        word_count(
            spark,
            rate_per_s=lines_per_s,
            num_source_partitions=CORES,
            hash_rounds=1,
            start_epoch_s=time.time() - 86_400 if case.from_backlog else None,
            max_rows_per_trigger=case.rows_per_batch if case.from_backlog else None,
        )
        .writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime=spark_trigger_text(case.trigger_s))
        .start()
    )
    try:
        time.sleep(warm_s)
        blocks, num_lost = run_blocks(spark, query, recording, num_pairs, block_s)
        progress = progress_events(query)
    finally:
        query.stop()
    return cost(progress, blocks, recording.read_bytes(), num_lost)


def cost(
    progress: Sequence[Mapping[str, Any]], blocks: Sequence[Block], recorded: bytes, num_lost: int
) -> Cost:
    """Medians of the blocks, and the differences of their pairs."""
    of_block = [durations_s(progress, block) for block in blocks]
    if not all(of_block):
        sys.exit("a block has no whole batch; give longer blocks")
    wall_s = [statistics.median(durations) for durations in of_block]
    work_s = [
        block.processor_s / len(durations)
        for block, durations in zip(blocks, of_block, strict=True)
    ]
    own_s = [
        block.own_s / len(durations) for block, durations in zip(blocks, of_block, strict=True)
    ]
    wall, work, own = (compared(values_s, blocks) for values_s in (wall_s, work_s, own_s))
    return Cost(
        num_pairs=len(blocks) // 2,
        num_batches=sum(map(len, of_block)),
        without_s=wall.without_s,
        with_s=wall.without_s + wall.difference_s,
        difference_s=wall.difference_s,
        half_interval_s=wall.half_interval_s,
        processor_without_s=work.without_s,
        processor_difference_s=work.difference_s,
        processor_half_interval_s=work.half_interval_s,
        own_s=own.difference_s,
        own_half_interval_s=own.half_interval_s,
        batches_per_s=sum(map(len, of_block))
        / sum(block.end_s - block.begin_s for block in blocks),
        bytes_per_batch=len(recorded) / max(recorded.count(b'QueryProgressEvent"'), 1),
        num_lost=num_lost,
    )


class Compared(NamedTuple):
    """Mean without the recorder, and how much more with it."""

    without_s: float
    difference_s: float
    half_interval_s: float


def compared(values_s: Sequence[float], blocks: Sequence[Block]) -> Compared:
    """The differences of the pairs, with Student's interval."""
    both = list(zip(values_s, blocks, strict=True))
    on = [value_s for value_s, block in both if block.is_recorded]
    off = [value_s for value_s, block in both if not block.is_recorded]
    differences = [with_s - without_s for with_s, without_s in zip(on, off, strict=True)]
    quantile = float(stats.t.ppf(0.5 * (1.0 + CONFIDENCE), len(differences) - 1))
    return Compared(
        statistics.mean(off),
        statistics.mean(differences),
        quantile * statistics.stdev(differences) / math.sqrt(len(differences)),
    )


def section(costs: Mapping[str, Cost], block_s: float) -> str:
    """The measurement as Markdown."""
    made = (
        f"Word count on `local[{CORES}]`, {CORES} source and {CORES} shuffle partitions, recorder "
        f"on and off in turn, {block_s:.0f} s each, in one JVM. Figures are means over the blocks: "
        "of the median batch duration, and of the processor time per batch. Each difference is "
        f"recorded minus not recorded, with its {CONFIDENCE:.0%} interval. The recorder's own "
        "threads are those of its process, and those of the JVM that serve it or notify "
        "listeners; their time is also a difference. "
        f"{made_by('python benchmarks/run.py recorder', 'PySpark')}"
    )
    columns = (
        "batches",
        "pairs",
        "batches seen",
        "not recorded",
        "recorded",
        "difference",
        "of the duration",
        "processor time, not recorded",
        "difference",
        "of the processor time",
        "recorder's own threads, per batch",
        f"of {CORES} cores",
        "file, per batch",
        "events lost",
    )
    lines = [made, "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    for name, found in costs.items():
        share, half = (
            100.0 * seconds / found.without_s
            for seconds in (found.difference_s, found.half_interval_s)
        )
        lines.append(
            f"| {name} | {found.num_pairs} | {found.num_batches} "
            f"| {1e3 * found.without_s:.1f} ms | {1e3 * found.with_s:.1f} ms "
            f"| {1e3 * found.difference_s:+.2f} ± {1e3 * found.half_interval_s:.2f} ms "
            f"| {share:+.2f} ± {half:.2f}% "
            f"| {1e3 * found.processor_without_s:.0f} ms "
            f"| {1e3 * found.processor_difference_s:+.2f} "
            f"± {1e3 * found.processor_half_interval_s:.2f} ms "
            f"| {100 * found.processor_difference_s / found.processor_without_s:+.2f} "
            f"± {100 * found.processor_half_interval_s / found.processor_without_s:.2f}% "
            f"| {1e3 * found.own_s:.2f} ± {1e3 * found.own_half_interval_s:.2f} ms "
            f"| {100 * found.own_s * found.batches_per_s / CORES:.2f}% "
            f"| {found.bytes_per_batch / 1e3:.1f} kB "
            f"| {found.num_lost} |"
        )
    return "\n".join(lines)


def between_markers(page: str, text: str) -> str:
    """The page with the text where its markers are."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"the page has no {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--output", type=Path, help="Markdown page with markers; else printed")
    parser.add_argument("--pairs", type=int, default=45, help="at least 2")
    parser.add_argument("--block", type=float, default=6.0, help="seconds")
    parser.add_argument("--warm", type=float, default=45.0, help="seconds before the first block")


def run(given: argparse.Namespace) -> None:
    """Measure, and write the section."""
    if given.pairs < 2:
        raise InputError("--pairs: expected at least 2")
    costs = {}
    with tempfile.TemporaryDirectory(prefix="headway-recorder-") as scratch:
        jar = clock_source_jar()
        with embedded_session(
            app_name="headway recorder benchmark",
            master=f"local[{CORES}]",
            jars=[jar],
            extra_conf={
                "spark.sql.shuffle.partitions": str(CORES),
                "spark.sql.streaming.numRecentProgressUpdates": "100000",
                **local_checkpoint_conf(),
            },
        ) as spark:
            for name, case in CASES.items():
                print(name, file=sys.stderr)
                costs[name] = measure(
                    spark,
                    case,
                    Path(scratch, name.replace(" ", "-")),
                    num_pairs=given.pairs,
                    block_s=given.block,
                    warm_s=given.warm,
                )
    text = section(costs, given.block)
    if given.output is None:
        print(text)
    else:
        given.output.write_text(between_markers(given.output.read_text(), text))
        print(given.output)
