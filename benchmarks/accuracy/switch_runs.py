"""Runs pairs of real queries that differ in one switch of Spark, and keeps facts and event logs.

Each pair is a query at one rate before and after a switch was turned, everything else equal. Both
sides of a pair run in one JVM: once each to be thrown away, then twice each in an order in which
the age of the JVM does not matter. What is run and judged is in ``switches-split.json``. A pair
that is not complete in the results, or was disturbed, is run again as a whole.

    python benchmarks/run.py switch_runs build/switches --minutes 27
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.running import measured_run, run_query, warm_up
from campaign.workloads import WORKLOADS
from kafka_broker.broker import Lane, running_lane
from kafka_broker.jars import connector_jars
from result_lines import keep, lines_of, this_machine
from switches.facts import facts_of, mean_window_delay_s
from switches.jobs import SwitchQuery
from switches.pairs import (
    SESSIONS,
    Pair,
    PairRun,
    Split,
    measured_runs,
    read_split,
    runs_of,
    split_digest,
    warm_up_runs,
)

from headway.errors import HeadwayError
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.clock_source import clock_source_jar
from headway.sparkconf.knobs import PROVIDER_KEY, ROCKSDB_PROVIDER
from headway.units import format_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = Path(__file__).parent / "results" / "switch-runs.jsonl"
CORES = 2
_TOPIC_PARTITIONS = 4
_START_S = 28.0
"""About how long a JVM takes to start, warm up and end."""
_WARM_UP_S, _WARM_UP_RATE_PER_S = 15.0, 40_000.0
_SLOW_FILES = "slow files"
"""Sessions with Spark's default file manager, which is slow on a local folder."""

Line = dict[str, Any]


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="folder for the event logs")
    parser.add_argument("--minutes", type=float, help="begin only what ends within this time")
    parser.add_argument("--count", action="store_true", help="print what is left, and run nothing")
    parser.add_argument("--pair", action="append", help="run only the pair of this name")
    parser.add_argument("--seconds", type=float, help="measured time of a run, for a trial")
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSON lines, appended to")


def run(given: argparse.Namespace) -> None:
    """Run the pairs that are missing from the results."""
    split, until_s = read_split(), time.monotonic() + 60.0 * (given.minutes or float("inf"))
    if given.seconds:
        split = replace(split, measured_s=given.seconds)
    for session in SESSIONS:
        left = _left(split, session, given)
        if left and not given.count and _has_room(split, left[0][1], until_s - _START_S):
            _run_pairs(session, left, given, split, until_s)
    left = [pair for session in SESSIONS for pair in _left(split, session, given)]
    print(_left_in_words(left, split))


def _left(split: Split, session: str, given: argparse.Namespace) -> list[tuple[int, Pair]]:
    """Pairs of a kind of JVM that are not complete, with their numbers."""
    complete = measured_runs(split, lines_of(given.results))
    return [
        (number, pair)
        for number, pair in enumerate(split.pairs)
        if pair.session == session
        and (given.pair is None or pair.name in given.pair)
        and pair.name not in complete
    ]


def _left_in_words(left: Sequence[tuple[int, Pair]], split: Split) -> str:
    if not left:
        return "nothing is left to run"
    num_sessions = len({pair.session for _, pair in left})
    takes_s = sum(split.takes_s(pair) for _, pair in left) + num_sessions * _START_S
    names = "; ".join(pair.name for _, pair in left)
    return f"left: {len(left)} pairs in about {format_duration(takes_s)} ({names})"


def _has_room(split: Split, pair: Pair, until_s: float) -> bool:
    """Whether all runs of a pair end in time."""
    return time.monotonic() + split.takes_s(pair) <= until_s


def _run_pairs(
    session: str,
    left: Sequence[tuple[int, Pair]],
    given: argparse.Namespace,
    split: Split,
    until_s: float,
) -> None:
    """Run pairs in one JVM, as long as there is time."""
    # Checkpoints of each JVM are its own: the warm-up begins anew.
    folder = given.folder.resolve() / f"{session.replace(' ', '-')}-{os.getpid()}"
    with _session(session, folder, given.folder.resolve() / "log") as (spark, lane):
        warm_up(spark, WORKLOADS["aggregation"], folder, _WARM_UP_RATE_PER_S, _WARM_UP_S)
        for number, pair in left:
            if not _has_room(split, pair, until_s):
                print(f"no time for {pair.name}; the rest is left", file=sys.stderr)
                return
            print(f"{time.strftime('%H:%M:%S')} {pair.name}", file=sys.stderr, flush=True)
            for pair_run in warm_up_runs(pair):
                _warm_up(spark, lane, pair_run, folder, split.warm_up_s)
            for pair_run in runs_of(pair, number):
                keep(given.results, _line(spark, lane, pair_run, folder, split))


@contextmanager
def _session(session: str, folder: Path, log: Path) -> Iterator[tuple[SparkSession, Lane | None]]:
    with ExitStack() as stack:
        lane = stack.enter_context(running_lane(folder / "broker")) if session == "kafka" else None
        spark = stack.enter_context(
            embedded_session(
                app_name=f"headway switches, {session}",
                master=f"local[{CORES}]",
                event_log_dir=log,
                jars=[clock_source_jar(), *(connector_jars() if lane else ())],
                extra_conf={
                    **({} if session == _SLOW_FILES else local_checkpoint_conf()),
                    **({PROVIDER_KEY: ROCKSDB_PROVIDER} if session == "rocksdb" else {}),
                    "spark.sql.streaming.numRecentProgressUpdates": "100000",
                    "spark.sql.codegen.cache.maxEntries": "10000",
                },
            )
        )
        yield spark, lane


def _query(spark: SparkSession, lane: Lane | None, pair_run: PairRun) -> SwitchQuery:
    return SwitchQuery(
        run=pair_run,
        name=f"{pair_run.name}@{_jvm(spark)}",
        servers=lane.servers if lane else "",
    )


def _jvm(spark: SparkSession) -> str:
    """Name of a JVM, which no other ever has."""
    return str(spark.sparkContext.applicationId)


def _warm_up(
    spark: SparkSession, lane: Lane | None, pair_run: PairRun, folder: Path, run_s: float
) -> None:
    """Carry out a run that is thrown away."""
    query = _query(spark, lane, pair_run)
    try:
        with _flow(lane, query) if lane else nullcontext():
            run_query(spark, query, run_s=run_s, folder=folder)
    except HeadwayError as error:
        print(error, file=sys.stderr)


def _line(
    spark: SparkSession, lane: Lane | None, pair_run: PairRun, folder: Path, split: Split
) -> Line:
    """Carry out a run; what is known of it."""
    pair, query = pair_run.pair, _query(spark, lane, pair_run)
    warm_s, measured_s = split.warm_s + pair.settle_s, split.measured_s
    line = {
        "run": pair_run.name,
        "split": split_digest(),
        "machine": this_machine(),
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
        "jvm": _jvm(spark),
        "pair": pair.name,
        "switch": pair.switch,
        "side": pair_run.side,
        "repeat": pair_run.repeat,
        "query": query.name,
        "set": asdict(pair.side(pair_run.side)),
        "trigger_s": pair.trigger_s,
        "rate_per_s": pair.rate_per_s,
        "partitions": query.partitions,
    }
    try:
        with _flow(lane, query) if lane else nullcontext():
            run = measured_run(
                spark,
                query,
                warm_s=warm_s,
                measured_s=measured_s + pair.emit_s,
                folder=folder,
            )
    except HeadwayError as error:
        print(error, file=sys.stderr)
        return {**line, "truth": None, "failed": str(error)}
    from_s = run.started_s + warm_s
    facts = facts_of(run.events, from_s)
    if pair.window_s is not None:
        whole_s = measured_s // pair.burst_period_s * pair.burst_period_s
        facts["window_delay_s"] = mean_window_delay_s(run.events, from_s, from_s + whole_s)
        if facts["window_delay_s"] is None:
            return {**line, "truth": None, "failed": "no window was emitted"}
    return {**line, "facts": facts, **run.as_json()}


@contextmanager
def _flow(lane: Lane, query: SwitchQuery) -> Iterator[None]:
    """Rows that arrive in the topic of a query while it runs."""
    lane.make_topic(query.topic, _TOPIC_PARTITIONS)
    lane.start_flow(query.topic, _TOPIC_PARTITIONS, query.run.pair.rate_per_s)
    try:
        yield
    finally:
        lane.stop_flow(query.topic)
