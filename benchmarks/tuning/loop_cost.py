"""Cost of the tuning loop: a decision, the lookup table, and the tuner's thread in a real query.

    python benchmarks/run.py loop_cost --run 60 --repeats 3

On a quiet machine, the query runs with and without a tuner in turn, and the CPU time of driver and
Python is measured. Each finished run is a line of the results and is not run again.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from result_lines import keep, lines_of

from headway.api.tune import tune
from headway.domain import JobProfile, QuerySetting, Target
from headway.domain.live import Bounds, SeenBatch, Signal
from headway.formats.profile_file import load_profile
from headway.planner.question import Question, SearchSpace
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.tuner.rule.memory import Memory
from headway.tuner.rule.rule import decide
from headway.tuner.rule.table import capacity_table

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results" / "loop-cost.jsonl"
NUM_LOOKS, LOOK_S = 4000, 2.0
NUM_EXECUTORS = 12
NUM_CORES = 2
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def options(parser: argparse.ArgumentParser) -> None:
    """Duration and number of runs."""
    parser.add_argument("--run", type=float, default=60.0, help="Duration of each run in seconds.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)


def text(given: argparse.Namespace) -> str:
    """The figures as a page."""
    profile = load_profile(ROOT / "examples" / "word-count.profile.yaml")
    decision_s, table_s = decisions(profile)
    with tempfile.TemporaryDirectory(prefix="headway-loop-") as folder:
        beside_a_query(profile, Path(folder), given)
    runs = [one for one in lines_of(given.results) if one["run_s"] == given.run]
    thread = [one["thread"] for one in runs if one["is_tuned"]]
    alone = [one["cores"] for one in runs if not one["is_tuned"]]
    tuned = [one["cores"] for one in runs if one["is_tuned"]]
    added = [(more - less) / NUM_CORES for more, less in zip(tuned, alone, strict=True)]
    lines = [
        "# What the loop costs",
        "",
        f"{len(decision_s)} decisions, each among 1 to {NUM_EXECUTORS} executors.",
        f"Each run took {given.run:.0f} s on local[{NUM_CORES}]: {len(tuned)} with the tuner and",
        f"{len(alone)} without it, in turn.",
        "",
        "| what | measured | goal |",
        "|---|---|---|",
        f"| a decision, median | {1e3 * statistics.median(decision_s):.2f} ms | |",
        f"| a decision, 99% | {1e3 * sorted(decision_s)[int(0.99 * len(decision_s))]:.2f} ms | |",
        f"| a decision, longest | {1e3 * max(decision_s):.2f} ms | 20 ms |",
        f"| the lookup table, computed when the profile or the bounds change | {table_s:.2f} s | |",
        f"| thread of the tuner, share of the cores | {statistics.median(thread):.3%} | 1% |",
        f"| CPU time of Python and JVM, with the tuner | {_shown(tuned)} cores | |",
        f"| CPU time of Python and JVM, query alone | {_shown(alone)} cores | |",
        f"| added by the tuner, share of the cores | {_shown(added, '.1%')} | 1% |",
        "",
        "The last three rows contain every run, in order. Each run costs less than the one before,",
        "because the JVM is still compiling. What the tuner adds is the difference between a run",
        "and the following one without the tuner, so it is overstated, least in the last pair.",
    ]
    return "\n".join(lines) + "\n"


def _shown(values: list[float], form: str = ".3f") -> str:
    return ", ".join(format(value, form) for value in values)


def decisions(profile: JobProfile) -> tuple[list[float], float]:
    """Durations of the decisions, and of computing the lookup table [s].

    The tuner decides once per bin of 15 s; in between it only counts rows.
    """
    space = SearchSpace(
        max_nodes=NUM_EXECUTORS,
        cores_per_executor=profile.baseline.cores_per_executor,
        shuffle_partitions=profile.baseline.shuffle_partitions,
    )
    question = Question(
        profile=profile, target=Target.parse("p99 <= 5s"), space=space, confidence=0.95
    )
    began_s = time.perf_counter()
    table = capacity_table(question, range(1, NUM_EXECUTORS + 1), (1.0, LOOK_S))
    table_s = time.perf_counter() - began_s
    memory, bounds = Memory(), Bounds(min_executors=1, max_executors=NUM_EXECUTORS)
    rate, took_s = profile.arrivals.rate_per_s, []
    for number in range(NUM_LOOKS):
        at_s = LOOK_S * number
        signal = Signal(
            at_s=at_s,
            arrived_rows=rate * at_s,
            backlog_rows=0.0,
            executors=1 + (number // 500) % NUM_EXECUTORS,
            batch=SeenBatch(batch_rows=LOOK_S * rate, duration_s=0.5, late_rows=0.0),
        )
        began_s = time.perf_counter()
        found = decide(memory, signal, table, bounds, LOOK_S)
        if found.estimate is not None:
            took_s.append(time.perf_counter() - began_s)
        memory = found.memory
    return took_s, table_s


def beside_a_query(profile: JobProfile, folder: Path, given: argparse.Namespace) -> None:
    """Run the query with and without a tuner in turn; a line each, with the busy cores."""
    done = {one["number"] for one in lines_of(given.results) if one["run_s"] == given.run}
    todo = [one for one in range(1, 2 * given.repeats + 1) if one not in done]
    if not todo:
        return
    conf = {"spark.sql.shuffle.partitions": "2", **local_checkpoint_conf()}
    small = replace(profile, arrivals=replace(profile.arrivals, rate_per_s=1000.0))
    with embedded_session(
        app_name="loop cost", master=f"local[{NUM_CORES}]", driver_memory="1g", extra_conf=conf
    ) as spark:
        jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        # Run 0 warms up the JVM.
        for number in (0, *todo):
            print(f"run {number} of {2 * given.repeats}", file=sys.stderr, flush=True)
            build = _build_into(folder / str(number))
            is_tuned = bool(number % 2)
            with contextlib.ExitStack() as tuned:
                if is_tuned:
                    tuner = tuned.enter_context(
                        tune(
                            spark,
                            build,
                            profile=small,
                            target="p99 <= 30s",
                            state=folder / f"{number}.json",
                            triggers=(),
                            rate_limit=False,
                        )
                    )
                    query: Any = tuner.query
                else:
                    query = build(spark, QuerySetting(configuration=profile.baseline))
                time.sleep(given.run / 4)  # starting costs more
                before_s, began_s = _busy_s(jvm), time.perf_counter()
                thread_s = tuner.status.busy_s if is_tuned else 0.0
                time.sleep(given.run)
                elapsed_s = time.perf_counter() - began_s
                cores = (_busy_s(jvm) - before_s) / elapsed_s
                own_s = tuner.status.busy_s - thread_s if is_tuned else 0.0
            query.stop()
            if number:
                line = {"number": number, "run_s": given.run, "is_tuned": is_tuned, "cores": cores}
                keep(given.results, {**line, "thread": own_s / elapsed_s / NUM_CORES})


def _build_into(folder: Path) -> Any:
    def build(spark: Any, setting: QuerySetting) -> Any:
        rows = spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
        counts = rows.groupBy((rows.value % 100).alias("key")).count()
        return (
            counts.writeStream.format("noop")
            .outputMode("update")
            .option("checkpointLocation", str(folder))
            .trigger(**setting.trigger)
            .start()
        )

    return build


def _busy_s(jvm: int) -> float:
    """CPU time of this process and of the JVM with its launcher [s]."""
    return sum(map(_own_s, {os.getpid(), *_group(jvm)}))


def _group(leader: int) -> Iterator[int]:
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpgid(int(path.name)) == leader:
                    yield int(path.name)


def _own_s(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
