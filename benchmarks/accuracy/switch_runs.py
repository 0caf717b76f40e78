"""Runs pairs of real queries that differ in one switch of Spark, and keeps facts and event logs.

Each pair is a query at one rate before and after a switch was turned, everything else equal; runs
of a pair follow each other in one JVM. What is run and judged is in ``switches-split.json``. A pair
that is not complete in the results is run again as a whole.

    python benchmarks/run.py switch_runs build/switches --minutes 30
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.running import measured_run, warm_up
from campaign.workloads import WORKLOADS
from kafka_broker.broker import Lane, running_lane
from kafka_broker.jars import connector_jars
from result_lines import keep, lines_of, this_machine
from switches.facts import facts_of
from switches.jobs import SwitchQuery
from switches.pairs import SESSIONS, Pair, PairRun, Split, read_split, runs_of, split_digest

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
_START_S, _BETWEEN_S = 30.0, 1.5
"""About how long a JVM takes to start and warm up, and a run beside its own time."""
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
    measured_s = given.seconds or split.measured_s
    for session in SESSIONS:
        left = _left(split, session, given)
        if left and not given.count and _room_s(left[0], split.warm_s + measured_s, until_s) > 0:
            _run_pairs(session, left, given, split.warm_s, measured_s, until_s)
    left = [pair for session in SESSIONS for pair in _left(split, session, given)]
    print(_left_in_words(left, split))


def _left(split: Split, session: str, given: argparse.Namespace) -> list[tuple[int, Pair]]:
    """Pairs of a kind of JVM that are not complete, with their numbers."""
    lines = [line for line in lines_of(given.results) if line["split"] == split_digest()]
    done = {line["run"] for line in lines if line["truth"]}
    return [
        (number, pair)
        for number, pair in enumerate(split.pairs)
        if pair.session == session
        and (given.pair is None or pair.name in given.pair)
        and any(pair_run.name not in done for pair_run in runs_of(pair, number))
    ]


def _left_in_words(left: Sequence[tuple[int, Pair]], split: Split) -> str:
    if not left:
        return "nothing is left to run"
    num_runs = sum(len(list(runs_of(pair, number))) for number, pair in left)
    num_sessions = len({pair.session for _, pair in left})
    takes_s = num_runs * (split.run_s + _BETWEEN_S) + num_sessions * _START_S
    names = "; ".join(pair.name for _, pair in left)
    return f"left: {num_runs} runs in about {format_duration(takes_s)} ({names})"


def _room_s(numbered: tuple[int, Pair], run_s: float, until_s: float) -> float:
    """Time that would be left after a pair in a JVM that has to be started."""
    number, pair = numbered
    num_runs = len(list(runs_of(pair, number)))
    return until_s - time.monotonic() - _START_S - num_runs * (run_s + _BETWEEN_S)


def _run_pairs(
    session: str,
    left: Sequence[tuple[int, Pair]],
    given: argparse.Namespace,
    warm_s: float,
    measured_s: float,
    until_s: float,
) -> None:
    """Run pairs in one JVM, as long as there is time."""
    # Checkpoints of each JVM are its own: the warm-up begins anew.
    folder = given.folder.resolve() / f"{session.replace(' ', '-')}-{os.getpid()}"
    with _session(session, folder, given.folder.resolve() / "log") as (spark, lane):
        warm_up(spark, WORKLOADS["aggregation"], folder, _WARM_UP_RATE_PER_S, _WARM_UP_S)
        for number, pair in left:
            if _room_s((number, pair), warm_s + measured_s, until_s) + _START_S < 0:
                print(f"no time for {pair.name}; the rest is left", file=sys.stderr)
                return
            for pair_run in runs_of(pair, number):
                print(f"{time.strftime('%H:%M:%S')} {pair_run.name}", file=sys.stderr, flush=True)
                keep(given.results, _line(spark, lane, pair_run, folder, warm_s, measured_s))


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


def _line(
    spark: SparkSession,
    lane: Lane | None,
    pair_run: PairRun,
    folder: Path,
    warm_s: float,
    measured_s: float,
) -> Line:
    """Carry out a run; what is known of it."""
    pair = pair_run.pair
    query = SwitchQuery(
        run=pair_run,
        name=f"{pair_run.name}@{os.getpid()}",
        servers=lane.servers if lane else "",
    )
    line = {
        "run": pair_run.name,
        "split": split_digest(),
        "machine": this_machine(),
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
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
            run = measured_run(spark, query, warm_s=warm_s, measured_s=measured_s, folder=folder)
    except HeadwayError as error:
        print(error, file=sys.stderr)
        return {**line, "truth": None, "failed": str(error)}
    facts = facts_of(run.events, run.started_s + warm_s)
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
