"""Small streaming queries of one application, more and more of them, until its driver saturates.

Each run is an application of its own on a real Spark: a JVM that is warmed up by queries as fast as
possible, then 1 to 40 small queries with a trigger of a second. What is kept of a run are facts:
durations by query and phase, CPU time of the JVM by kind of thread, heap after a full collection,
tasks. Which runs a prediction may use and which are judged is in `driver-split.json`, which was
committed before the first run. Event logs stay in FOLDER, for `driver_page.py` predicts from them.

    python benchmarks/run.py driver_runs FOLDER --count
    python benchmarks/run.py driver_runs FOLDER --minutes 15     # resumes where it stopped
    python benchmarks/run.py driver_runs FOLDER --trial
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import zstandard
from result_lines import keep, lines_of, this_machine

from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.measure import begun_epoch_s, progress_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

RESULTS = Path(__file__).parent / "results" / "driver-runs.jsonl"
SPLIT = Path(__file__).parent / "driver-split.json"
NUM_KEYS = 10
_LEAST_CPU_S = 0.02
_JVM_S, _QUERY_S = 14.0, 0.4
"""How long starting and stopping a JVM, and a query, take: for what is left."""
_TRIAL = {"warm_up_s": 4, "settle_s": 2, "window_s": 5}

Line = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRun:
    """A run with a number of queries."""

    num_queries: int
    repeat: int = 1

    @property
    def name(self) -> str:
        """Name of the run in the results and of its folder."""
        return f"{self.num_queries:02d}-queries-{self.repeat}"


class Split:
    """Sizes and times of all runs, which runs are fitted, and which are judged."""

    @cached_property
    def settings(self) -> Line:
        """The file."""
        return dict(json.loads(SPLIT.read_text(encoding="utf-8")))

    def runs(self) -> Iterator[DriverRun]:
        """All runs: each number of queries once, then the repeats."""
        settings = self.settings
        for num_queries in (*settings["fitted"], *settings["judged"]):
            yield DriverRun(num_queries=num_queries)
        for num_queries in settings["repeated"]:
            yield DriverRun(num_queries=num_queries, repeat=2)

    def needed_s(self, run: DriverRun) -> float:
        """About how long a run takes."""
        settings = self.settings
        in_jvm_s = settings["warm_up_s"] + settings["settle_s"] + settings["window_s"]
        return float(_JVM_S + in_jvm_s + _QUERY_S * run.num_queries)


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="for event logs, outside the repository")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--minutes", type=float, help="begin only runs that end within so long")
    parser.add_argument("--count", action="store_true", help="print what is left, and run nothing")
    parser.add_argument(
        "--trial", action="store_true", help="two queries for seconds; keep nothing"
    )


def run(given: argparse.Namespace) -> None:
    """Run what is missing from the results, or say what it is."""
    split, started_s = Split(), time.monotonic()
    if given.trial:
        facts = _measured(DriverRun(num_queries=2), {**split.settings, **_TRIAL}, given.folder)
        print(json.dumps(facts, indent=1))
        return
    ends_s = started_s + 60.0 * given.minutes if given.minutes else float("inf")
    while left := _left(split, given.results):
        if given.count or time.monotonic() + split.needed_s(left[0]) > ends_s:
            break
        print(f"{time.strftime('%H:%M:%S')} {left[0].name}", file=sys.stderr, flush=True)
        keep(given.results, _measured(left[0], split.settings, given.folder))
    minutes = sum(map(split.needed_s, left)) / 60.0
    print(f"{len(left)} runs left, {minutes:.0f} minutes: {', '.join(run.name for run in left)}")


def _left(split: Split, results: Path) -> list[DriverRun]:
    done = {line["run"] for line in lines_of(results)}
    return [run for run in split.runs() if run.name not in done]


def _measured(run: DriverRun, settings: Mapping[str, Any], folder: Path) -> Line:
    own = folder / f"{run.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    conf = {
        **local_checkpoint_conf(),
        "spark.sql.shuffle.partitions": str(settings["shuffle_partitions"]),
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    with embedded_session(
        app_name=f"headway driver {run.name}",
        master=f"local[{settings['cores']}]",
        event_log_dir=own / "log",
        extra_conf=conf,
    ) as spark:
        application = _Application(spark, settings, own / "checkpoints")
        warm_up_batches = application.warm_up()
        idle_heap_bytes = application.heap_after_gc_bytes()
        queries = [application.start(f"query-{index:02d}") for index in range(run.num_queries)]
        time.sleep(settings["settle_s"])
        before = application.usage()
        time.sleep(settings["window_s"])
        after = application.usage()
        heap_bytes = application.heap_after_gc_bytes()
        failures = [str(query.exception()) for query in queries if not query.isActive]
        progress = [progress_events(query) for query in queries]
        for query in queries:
            query.stop()
    if failures:
        raise RuntimeError(f"{run.name}: a query ended: {failures[0]}")
    window = before.epoch_s, after.epoch_s
    batches = [_batches_of(events, window) for events in progress]
    num_batches = sum(query["num_batches"] for query in batches)
    window_s = after.epoch_s - before.epoch_s
    planned = run.num_queries * window_s / settings["trigger_s"]
    return {
        "run": run.name,
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": this_machine(),
        "log": str((own / "log").relative_to(folder)),
        "num_queries": run.num_queries,
        "repeat": run.repeat,
        "cores": settings["cores"],
        "machine_cores": os.cpu_count(),
        "trigger_s": settings["trigger_s"],
        "window_s": window_s,
        "window_begins_s": before.epoch_s,
        "num_batches": num_batches,
        "batches_per_s": num_batches / window_s,
        "on_time_ratio": num_batches / planned,
        "jvm_cpu_s": after.jvm_cpu_s - before.jvm_cpu_s,
        "machine_cpu_s": after.machine_cpu_s - before.machine_cpu_s,
        "thread_cpu_s": _thread_cpu_s(before, after),
        "idle_heap_bytes": idle_heap_bytes,
        "heap_bytes": heap_bytes,
        "num_batches_ever": warm_up_batches
        + sum(events[-1]["batchId"] + 1 for events in progress if events),
        **_tasks_of(own / "log", window),
        "queries": batches,
    }


class _Usage(NamedTuple):
    """CPU times until now."""

    epoch_s: float
    jvm_cpu_s: float
    machine_cpu_s: float
    cpu_s_by_thread: Mapping[tuple[str, str], float]


class _Application:
    """A running application: its queries, and what its JVM uses."""

    def __init__(self, spark: SparkSession, settings: Mapping[str, Any], checkpoints: Path) -> None:
        self._spark, self._settings, self._checkpoints = spark, settings, checkpoints
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._process = Path("/proc") / str(jvm.java.lang.ProcessHandle.current().pid())

    def start(self, name: str, *, trigger_s: float | None = None) -> StreamingQuery:
        """Start a small query: rows are counted by key."""
        from pyspark.sql import functions

        trigger_s = self._settings["trigger_s"] if trigger_s is None else trigger_s
        rows = (
            self._spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", self._settings["rows_per_batch"])
            .option("numPartitions", self._settings["source_partitions"])
            .option("advanceMillisPerBatch", 1000)
            .load()
        )
        counts = rows.withColumn("key", functions.col("value") % NUM_KEYS).groupBy("key").count()
        return (
            counts.writeStream.queryName(name)
            .outputMode("update")
            .option("checkpointLocation", str(self._checkpoints / name))
            .trigger(processingTime=f"{round(1000.0 * trigger_s)} milliseconds")
            .format("noop")
            .start()
        )

    def warm_up(self) -> int:
        """Queries as fast as possible, so that the JVM has compiled what batches execute."""
        queries = [
            self.start(f"warm-up-{index}", trigger_s=0.0)
            for index in range(self._settings["warm_up_queries"])
        ]
        time.sleep(self._settings["warm_up_s"])
        num_batches = 0
        for query in queries:
            num_batches += max(
                (event["batchId"] + 1 for event in progress_events(query)), default=0
            )
            query.stop()
        return num_batches

    def heap_after_gc_bytes(self) -> int:
        """Used heap after full collections."""
        runtime = self._jvm.java.lang.Runtime.getRuntime()
        for _ in range(2):
            self._jvm.java.lang.System.gc()
        return int(runtime.totalMemory() - runtime.freeMemory())

    def usage(self) -> _Usage:
        """CPU times of the JVM, of its threads, and of the machine."""
        threads = {}
        for thread in (self._process / "task").iterdir():
            try:
                name = (thread / "comm").read_text().strip()
                threads[thread.name, name] = _cpu_s(thread / "stat")
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        busy_ticks = sum(map(int, fields[:3])) + sum(map(int, fields[5:8]))
        return _Usage(
            time.time(), _cpu_s(self._process / "stat"), busy_ticks / _TICKS_PER_S, threads
        )


_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _cpu_s(stat: Path) -> float:
    """User and system time of a process or thread, from its file in /proc."""
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def _thread_cpu_s(before: _Usage, after: _Usage) -> dict[str, float]:
    """CPU time by the first seven letters of the threads' names, of which Linux keeps few."""
    used_s: defaultdict[str, float] = defaultdict(float)
    earlier_s = {number: cpu_s for (number, _name), cpu_s in before.cpu_s_by_thread.items()}
    for (number, name), cpu_s in after.cpu_s_by_thread.items():
        used_s[name[:7].strip()] += cpu_s - earlier_s.get(number, 0.0)
    most_first = sorted(used_s.items(), key=lambda used: -used[1])
    return {name: round(cpu_s, 2) for name, cpu_s in most_first if cpu_s > _LEAST_CPU_S}


def _batches_of(events: Sequence[Mapping[str, Any]], window: tuple[float, float]) -> Line:
    """Durations of a query's batches that began in the window [s], by phase."""
    durations_ms = [
        event["durationMs"]
        for event in events
        if event["numInputRows"] and window[0] <= begun_epoch_s(event) < window[1]
    ]
    phases = sorted({phase for batch in durations_ms for phase in batch})
    times_s = np.array([batch["triggerExecution"] for batch in durations_ms]) / 1000.0
    if not len(times_s):
        return {"num_batches": 0}
    p50_s, p95_s = np.quantile(times_s, (0.5, 0.95))
    return {
        "num_batches": len(times_s),
        "mean_s": round(float(times_s.mean()), 4),
        "p50_s": round(float(p50_s), 4),
        "p95_s": round(float(p95_s), 4),
        "max_s": float(times_s.max()),
        "phases_s": {
            phase: round(sum(batch.get(phase, 0) for batch in durations_ms) / len(times_s) / 1e3, 4)
            for phase in phases
        },
    }


def _tasks_of(log: Path, window: tuple[float, float]) -> Line:
    """Tasks that ended in the window, by the event log: how many, how long, their CPU time [s]."""
    num_tasks, run_s, cpu_s = 0, 0.0, 0.0
    for file in sorted(log.rglob("events_*")):
        with file.open("rb") as packed:
            reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
            for line in reader.read().splitlines():
                if not line.startswith(b'{"Event":"SparkListenerTaskEnd"'):
                    continue
                task = json.loads(line)
                if not window[0] <= task["Task Info"]["Finish Time"] / 1e3 < window[1]:
                    continue
                metrics = task["Task Metrics"]
                num_tasks += 1
                run_s += (metrics["Executor Run Time"] + metrics["Executor Deserialize Time"]) / 1e3
                cpu_s += (
                    metrics["Executor CPU Time"] + metrics["Executor Deserialize CPU Time"]
                ) / 1e9
    return {
        "num_tasks": num_tasks,
        "tasks_per_s": num_tasks / (window[1] - window[0]),
        "task_s": run_s,
        "task_cpu_s": cpu_s,
    }
