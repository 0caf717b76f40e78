"""How fast turns are decided, and how fast queries and tuples that take turns are simulated.

    python benchmarks/run.py scheduling --output docs/scheduling-speed.md

Medians of several rounds on one core; the decisions of a real gate are those of 80 small queries on
Spark, each from the moment that a query is idle until the grants are given, in the JVM. The cost of
a gate in rows is measured with queries that never pause, with and without the gate in turn.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pages import headed, made_by
from query_progress import batches_of
from result_lines import keep, lines_of

from headway.domain import Policy, QueryState, ScheduledQuery, ScheduleReport, Target, WindowGrid
from headway.models.scheduling.order import grant_order
from headway.models.scheduling.stagger import stagger_offsets_s
from headway.models.simulation.gate import QueryWork, simulate_gate
from tests.oracles.operator_scheduling import (
    NodeLoad,
    OperatorPolicy,
    simulate_operators,
)
from tests.oracles.tuple_scheduling import TupleOrder, simulate_tuples

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

RESULTS = Path(__file__).parents[1] / "scheduling" / "results" / "gate-on-spark.jsonl"
NUM_QUERIES = 80
LENGTH_S = 1200.0
_NUM_DECISIONS = 2000


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--measure", action="store_true", help="run real gates on Spark, a quarter of an hour"
    )
    parser.add_argument("--spark-seconds", type=float, default=120.0, help="of the real gate")
    parser.add_argument("--phases", type=int, default=25, help="of 20 s, without a gate and gated")


def text(given: argparse.Namespace) -> str | None:
    """The page; None if real gates were run for it."""
    if given.measure:
        keep(RESULTS, _on_spark(given))
        return None
    return "\n".join(_lines(given)) + "\n"


def _on_spark(given: argparse.Namespace) -> dict[str, Any]:
    """What a real gate costs, as a line of the results."""
    report = _real_gate(given.spark_seconds)
    without, gated = _throughputs(given.phases)
    num_grants = sum(query.num_grants for query in report.queries)
    return {
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "decision_p50_s": report.decision_p50_s,
        "decision_p99_s": report.decision_p99_s,
        "num_decisions": report.num_decisions,
        "ahead_ratio": report.num_ahead / max(num_grants, 1),
        "num_gated_phases": len(gated),
        "rows_change": _ratio_words(without, gated),
        "between_change": f"{_between_words(gated)}, {_between_words(without)}",
    }


def _lines(given: argparse.Namespace) -> Iterator[str]:
    on_spark = lines_of(RESULTS)[-1]
    yield "# Speed of scheduling\n"
    yield (
        f"{made_by('make speed-scheduling', 'numpy')} Figures of real gates were measured on "
        f"{on_spark['day']} by `make speed-scheduling-spark`.\n"
    )
    yield from headed("| what | measured | goal |")
    num_tuples, took_s = _rounds(_tuples, given.rounds)
    yield f"| tuples decided (Algorithm 1, arrays) | {num_tuples / took_s / 1e6:.1f} M/s | 1 M/s |"
    _, took_s = _rounds(_operators, given.rounds)
    yield f"| {NUM_QUERIES} queries on a node of operators, 20 minutes | {took_s:.1f} s | 10 s |"
    _, took_s = _rounds(_gate, given.rounds)
    yield f"| {NUM_QUERIES} queries behind a gate, 20 minutes | {took_s:.2f} s | 1 s |"
    _, took_s = _rounds(_offsets, given.rounds)
    yield f"| offsets of {NUM_QUERIES} staggered queries | {1000 * took_s:.1f} ms | - |"
    times_s = _decisions()
    yield (
        f"| order of {NUM_QUERIES} waiting queries, p99 | "
        f"{1000 * float(np.quantile(times_s, 0.99)):.2f} ms | 5 ms |"
    )
    yield (
        f"| decision and grants of a real gate, {NUM_QUERIES} queries, p50 | "
        f"{1000 * on_spark['decision_p50_s']:.2f} ms | - |"
    )
    yield (
        f"| the same, p99 of {on_spark['num_decisions']} decisions | "
        f"{1000 * on_spark['decision_p99_s']:.2f} ms | 5 ms |"
    )
    yield (
        "| turns that were passed on in the JVM, decided ahead | "
        f"{on_spark['ahead_ratio']:.0%} | - |"
    )
    yield (
        "| rows per second of 4 queries without a pause, gated over ungated "
        f"({on_spark['num_gated_phases']} phases between ungated ones) | "
        f"{on_spark['rows_change']} | within 1% |"
    )
    yield (
        "| share of their time that these queries are between two batches, gated and ungated | "
        f"{on_spark['between_change']} | differ by 1% |"
    )


def _rounds(work: Callable[[], float], rounds: int) -> tuple[float, float]:
    """What a round found, and the median of the times [s]."""
    times_s, found = [], 0.0
    for _ in range(rounds):
        began_s = time.perf_counter()
        found = work()
        times_s.append(time.perf_counter() - began_s)
    return found, statistics.median(times_s)


def _tuples() -> float:
    return simulate_tuples(
        TupleOrder.SUBSET,
        rate_per_s=4e5,
        shares=[0.8, 0.2],
        costs_s=[2e-6, 1e-5],
        limit_s=0.5,
        length_s=20.0,
    ).num_tuples


def _operators() -> float:
    load = NodeLoad(num_queries=NUM_QUERIES)
    return simulate_operators(OperatorPolicy.LEAST_SLACK, load, length_s=LENGTH_S).mean_s


def _gate() -> float:
    run = simulate_gate(_works(), Policy.PROMISE, cores=8.0, at_once=4, length_s=LENGTH_S)
    return float(run.window_latency_s.mean())


def _offsets() -> float:
    return stagger_offsets_s([1.0] * NUM_QUERIES, np.linspace(0.1, 0.2, NUM_QUERIES).tolist())[0]


def _works() -> Sequence[QueryWork]:
    return [
        QueryWork(
            query=ScheduledQuery(
                name=f"q{at:02}",
                trigger_s=0.001,
                windows=WindowGrid(slide_s=10.0, offset_s=10.0 * at / NUM_QUERIES),
                window_target=Target.parse("window p99 <= 2.5s"),
            ),
            rate_per_s=1000.0,
            before_s=0.05,
            after_s=0.03,
            fixed_core_s=0.1,
            per_row_core_s=5e-6,
            noise_ratio=0.15,
            closing_delay_s=0.005,
        )
        for at in range(NUM_QUERIES)
    ]


def _decisions() -> list[float]:
    """Times of decisions over states as a gate would see them [s]."""
    generator = np.random.default_rng(1)
    times_s = []
    for _ in range(_NUM_DECISIONS):
        closing_s = generator.uniform(0.0, 10.0, NUM_QUERIES)
        states = [
            QueryState(
                name=f"q{at:02}",
                ready_s=0.0,
                oldest_unread_s=0.0,
                last_grant=at,
                duration_s=0.2,
                pair_s=0.4,
                closing_s=float(closing_s[at]),
                emits=closing_s[at] < 1.0,
                window_limit_s=2.0,
            )
            for at in range(NUM_QUERIES)
        ]
        began_s = time.perf_counter()
        grant_order(Policy.PROMISE, states, 5.0)
        times_s.append(time.perf_counter() - began_s)
    return times_s


def _real_gate(seconds: float) -> ScheduleReport:
    import headway
    from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
    from headway.runtime.clock_source import clock_source_jar
    from headway.runtime.word_count import clock_lines

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with embedded_session(
            app_name="gate of many queries",
            master="local[2]",
            jars=[clock_source_jar()],
            driver_memory="3g",
            extra_conf=local_checkpoint_conf(),
        ) as spark:
            queries = []
            try:
                for at in range(NUM_QUERIES):
                    lines = clock_lines(spark, rate_per_s=20, num_source_partitions=1)
                    writer = lines.writeStream.format("noop").queryName(f"q{at:02}")
                    writer = writer.option("checkpointLocation", str(folder / f"q{at:02}"))
                    queries.append(writer.trigger(processingTime="2 seconds").start())
                with headway.schedule(spark, "promise") as gate:
                    for query in queries:
                        gate.add(query, target="p99 <= 20s")
                    time.sleep(seconds)
                    return gate.report()
            finally:
                for query in queries:
                    query.stop()


_ROWS_A_BATCH, _PHASE_S, _SETTLED_S, _COMPILED_WITHIN_S = 400_000, 20.0, 10.0, 90.0


class _Phase(NamedTuple):
    """Rows per second, and share of the time that the queries are between batches."""

    rows_per_s: float
    between_ratio: float


def _throughputs(num_phases: int) -> tuple[list[_Phase], list[_Phase]]:
    """Queries that always have rows, without a gate, and all in one, in turn."""
    import headway
    from headway.profiler.spark.session import embedded_session, local_checkpoint_conf

    with (
        tempfile.TemporaryDirectory() as name,
        embedded_session(
            app_name="gate without a pause",
            master="local[2]",
            driver_memory="2g",
            extra_conf={
                **local_checkpoint_conf(),
                "spark.sql.streaming.numRecentProgressUpdates": "10000",
            },
        ) as spark,
    ):
        queries: list[StreamingQuery] = []
        try:
            for at in range(4):
                rows = spark.readStream.format("rate-micro-batch").option(
                    "rowsPerBatch", _ROWS_A_BATCH
                )
                hashed = rows.load().selectExpr("bit_xor(xxhash64(value, timestamp)) AS hash")
                writer = hashed.writeStream.format("noop").outputMode("complete")
                writer = writer.option("checkpointLocation", str(Path(name) / f"q{at}"))
                queries.append(writer.trigger(processingTime="1 millisecond").start())
            time.sleep(_COMPILED_WITHIN_S)
            found: tuple[list[_Phase], list[_Phase]] = ([], [])
            for phase in range(num_phases):
                if phase % 2 == 0:
                    found[0].append(_measured_phase(queries))
                    continue
                with headway.schedule(spark, "fcfs", at_once=len(queries)) as gate:
                    for at, query in enumerate(queries):
                        gate.add(query, name=f"q{at}")
                    found[1].append(_measured_phase(queries))
            return found
        finally:
            for query in queries:
                query.stop()


def _measured_phase(queries: Sequence[StreamingQuery]) -> _Phase:
    """From the batches that have ended, over a while after settling."""
    time.sleep(_SETTLED_S)
    began_s, since_s, before = time.monotonic(), time.time(), _num_ended(queries)
    time.sleep(_PHASE_S)
    rows_per_s = _ROWS_A_BATCH * (_num_ended(queries) - before) / (time.monotonic() - began_s)
    between_s = whole_s = 0.0
    for query in queries:
        batches = [one for one in batches_of(query.recentProgress) if one[0] >= since_s]
        for (start_s, took_s, _), (next_s, *_) in pairwise(batches):
            between_s += next_s - start_s - took_s
            whole_s += next_s - start_s
    return _Phase(rows_per_s, between_s / whole_s)


def _num_ended(queries: Sequence[StreamingQuery]) -> int:
    ended = [query.lastProgress for query in queries]
    return sum(one["batchId"] + 1 for one in ended if one is not None)


def _ratio_words(without: Sequence[_Phase], gated: Sequence[_Phase]) -> str:
    """Each gated phase over the mean of its ungated neighbours: the mean, and its standard error.

    So a drift, as of a JVM that still compiles, counts on both sides.

    >>> without = [_Phase(rate, 0.0) for rate in (100.0, 110.0, 120.0)]
    >>> _ratio_words(without, [_Phase(105.0, 0.0), _Phase(115.0, 0.0)])
    '+0.0% ± 0.0%'
    """
    ratios = [
        2.0 * one.rows_per_s / (before.rows_per_s + after.rows_per_s)
        for one, (before, after) in zip(gated, pairwise(without), strict=False)
    ]
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else float("nan")
    return f"{statistics.fmean(ratios) - 1.0:+.1%} ± {error:.1%}"


def _between_words(phases: Sequence[_Phase]) -> str:
    return f"{statistics.fmean(one.between_ratio for one in phases):.2%}"
