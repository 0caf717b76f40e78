"""Carries out the runs of a group in one JVM, and keeps what was measured, line by line."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cores import Cores, cores_between, cpu_time
from result_lines import keep, lines_of

from campaign.fixed_work import fixed_work
from campaign.schedule import VARIED, Group, Run, fit_set_digest
from campaign.truth import Event, Truth, truth_of
from campaign.workloads import WORKLOADS, Stream, WindowShape, Workload, varying
from headway.errors import HeadwayError
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.clock_source import clock_source_jar
from headway.runtime.measure import progress_events, wait_while_running
from headway.units import spark_trigger_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PROBE_S = 7.0
WARM_UP_S = 30.0
_STATE = "org.apache.spark.sql.execution.streaming.state"
_WARM_UP_RATE_PER_S = 40_000.0
_BACKLOG_RATE_PER_S = 1e6
_BACKLOG_AGE_S = 3600.0
_BACKLOG_BATCH_S = 2.0
"""Work in a batch of a run from a backlog."""


class Startable(Protocol):
    """A query that can be started and measured, with the windows that it observes, if any."""

    @property
    def name(self) -> str:
        """What it is called, in event logs and results."""

    @property
    def windows(self) -> WindowShape | None:
        """Windows whose ends it observes."""

    def start(self, spark: SparkSession, folder: Path) -> StreamingQuery:
        """Start it with its checkpoint in a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query of a workload, to a sink that keeps nothing."""

    name: str
    workload: Workload
    stream: Stream
    trigger_s: float
    partitions: int

    @property
    def windows(self) -> WindowShape | None:
        """Those of its workload."""
        return self.workload.windows

    def start(self, spark: SparkSession, folder: Path) -> StreamingQuery:
        """It runs from a checkpoint of its own in ``folder``, one for each JVM."""
        checkpoint = folder / "checkpoints" / f"{os.getpid()}-{self.name.replace('/', '-')}"
        conf = {**self.workload.conf, "spark.sql.shuffle.partitions": str(self.partitions)}
        with in_settings(spark, conf):
            return (
                self.workload.query(spark, self.stream)
                .writeStream.format("noop")
                .queryName(self.name)
                .outputMode(self.workload.output_mode)
                .option("checkpointLocation", str(checkpoint))
                .trigger(processingTime=spark_trigger_text(self.trigger_s))
                .start()
            )


def run_group(
    group: Group,
    folder: Path,
    runs: Sequence[Run],
    has_room_for: Callable[[float], bool] = lambda _seconds: True,
) -> None:
    """Carry out runs of a group in one JVM; results and logs in ``folder``.

    A run for which there is no room any more is not begun, nor are those after it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "truth.jsonl"
    rates = {row["workload"]: row["carried_per_s"] for row in lines_of(folder / "probes.jsonl")}
    chosen = list(dict.fromkeys(run.workload for run in runs))
    with campaign_session(group, folder) as spark, fixed_work(folder / "fixed.jsonl") as beside:
        for place, name in enumerate(chosen):
            if place == 0:
                # What all of them share is compiled before anything is measured.
                shared = WORKLOADS["aggregation"]
                warm_up(spark, shared, folder, _WARM_UP_RATE_PER_S, WARM_UP_S)
            if name not in rates:
                rates[name] = _probe(spark, WORKLOADS[name], folder)
            else:
                # This JVM has not compiled it yet.
                _backlog(spark, WORKLOADS[name], WORKLOADS[name].probe_rows[0], folder)
        for place, run in enumerate(runs):
            if not has_room_for(run.lasts_s):
                print(f"{group.name}: no time for {run.name}; the rest is left", file=sys.stderr)
                return
            print(f"{group.name}: {place + 1} of {len(runs)}, {run.name}", file=sys.stderr)
            forget_others(spark)
            begun_s = time.time()
            measured_line = _measured(spark, run, rates[run.workload], folder)
            seen = beside.between(begun_s, time.time())
            work = {"fixed_work": seen, "fit_set": fit_set_digest(), "others_forgotten": True}
            keep(results, {**measured_line, **work})


def campaign_session(
    group: Group,
    folder: Path,
    *,
    jars: Sequence[Path] = (),
    extra_conf: Mapping[str, str] | None = None,
) -> AbstractContextManager[SparkSession]:
    """The JVM of a group, with an event log below the folder; ``jars`` beside the clock source."""
    return embedded_session(
        app_name=f"headway campaign {group.name}",
        master=group.master,
        event_log_dir=folder / "log",
        jars=[clock_source_jar(), *jars],
        driver_memory=group.driver_memory,
        extra_conf={
            **local_checkpoint_conf(),
            "spark.sql.streaming.numRecentProgressUpdates": "100000",
            # More than a hundred pieces of generated code, and each run would find its own thrown
            # away and compile it anew, which no query that runs alone ever does.
            "spark.sql.codegen.cache.maxEntries": "10000",
            **(extra_conf or {}),
        },
    )


def warm_up(
    spark: SparkSession, workload: Workload, folder: Path, carried_per_s: float, warm_s: float
) -> None:
    """Run a workload for a while in a JVM that has not compiled it yet."""
    query = Query(
        name=f"warm-up/{workload.name}",
        workload=workload,
        stream=Stream(rate_per_s=0.4 * carried_per_s),
        trigger_s=0.0,
        partitions=4,
    )
    run_query(spark, query, run_s=warm_s, folder=folder)


def forget_others(spark: SparkSession) -> None:
    """Unload the state of queries that have ended, and collect what they left in the heap.

    Spark keeps it for up to a minute, and the collector marks it beside the next query.
    """
    jvm: Any = spark.sparkContext._jvm
    stores = jvm.java.lang.Class.forName(f"{_STATE}.StateStore$")
    stores.getField("MODULE$").get(None).unloadAll()
    jvm.java.lang.System.gc()


def _measured(spark: SparkSession, run: Run, carried_per_s: float, folder: Path) -> dict[str, Any]:
    workload, setting = WORKLOADS[run.workload], run.setting
    if run.role == VARIED:
        workload = varying(workload)
    stream = Stream(rate_per_s=setting.share * carried_per_s, seed=run.repeat)
    if setting.backlog:
        limit = max(int(_BACKLOG_BATCH_S * carried_per_s), 1)
        # As live rows: a state that follows event time holds what it holds at this rate.
        stream = backlog_stream(limit, carried_per_s)
    query = Query(
        name=f"{run.name}@{os.getpid()}",
        workload=workload,
        stream=stream,
        trigger_s=setting.trigger_s,
        partitions=setting.partitions,
    )
    try:
        measured = measured_run(
            spark,
            query,
            warm_s=setting.warm_s,
            measured_s=setting.measured_s(run.role),
            folder=folder,
        ).as_json()
    except HeadwayError as error:
        print(error, file=sys.stderr)
        measured = {"truth": None, "failed": str(error)}
    return {
        "group": run.group,
        "workload": run.workload,
        "role": run.role,
        "play": run.repeat,
        "name": run.name,
        "query": query.name,
        "setting": setting._asdict(),
        "rate_per_s": stream.rate_per_s,
        "carried_per_s": carried_per_s,
        "max_rows": stream.max_rows_per_trigger,
        **measured,
    }


def _probe(spark: SparkSession, workload: Workload, folder: Path) -> float:
    """Rows per second at which one more row costs as much time as it takes to arrive."""
    # The larger first: it compiles more.
    few, many = workload.probe_rows
    large_s, small_s = (_backlog(spark, workload, rows, folder) for rows in (many, few))
    carried_per_s = (many - few) / max(large_s - small_s, 1e-3)
    row = {"workload": workload.name, "carried_per_s": carried_per_s}
    keep(
        folder / "probes.jsonl",
        {**row, "rows": workload.probe_rows, "duration_s": [small_s, large_s]},
    )
    print(f"{workload.name}: carries {carried_per_s:,.0f} rows/s", file=sys.stderr)
    return carried_per_s


def _backlog(spark: SparkSession, workload: Workload, num_rows: int, folder: Path) -> float:
    """Median duration of batches of so many rows, the first ones left out [s]."""
    query = Query(
        name=f"probe/{workload.name}/{num_rows}",
        workload=workload,
        stream=backlog_stream(num_rows),
        trigger_s=0.0,
        partitions=2,
    )
    return usual_duration_s(spark, query, run_s=PROBE_S, folder=folder)


def usual_duration_s(spark: SparkSession, query: Startable, *, run_s: float, folder: Path) -> float:
    """Median duration of the later half of the batches of a run [s]."""
    _, events = run_query(spark, query, run_s=run_s, folder=folder)
    durations_ms = [event["durationMs"]["triggerExecution"] for event in events]
    kept = sorted(durations_ms[len(durations_ms) // 2 :])
    if not kept:
        raise HeadwayError(f"{query.name}: no batch was finished in {run_s:g} s")
    return float(kept[len(kept) // 2]) / 1e3


def backlog_stream(num_rows: int, rate_per_s: float = _BACKLOG_RATE_PER_S) -> Stream:
    """More rows than can be worked off, in batches of so many, which arrived at a rate."""
    return Stream(
        rate_per_s=rate_per_s,
        start_epoch_s=time.time() - _BACKLOG_AGE_S,
        max_rows_per_trigger=num_rows,
    )


class Compiled(NamedTuple):
    """What the driver's JVM has compiled so far."""

    generated_classes: int
    jit_s: float


def compiled(spark: SparkSession) -> Compiled:
    """Classes that Spark generated, and processor time of the just-in-time compilers."""
    jvm: Any = spark.sparkContext._jvm
    classes = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    compilers = jvm.java.lang.management.ManagementFactory.getCompilationMXBean()
    return Compiled(int(classes.getCount()), compilers.getTotalCompilationTime() / 1e3)


class MeasuredRun(NamedTuple):
    """A run, what was measured of it after its warm-up, and what else kept the machine busy."""

    started_s: float
    events: list[Event]
    cores: Cores
    compiled: Compiled
    truth: Truth | None

    def as_json(self) -> dict[str, Any]:
        """What every line of results says of its run."""
        return {
            "started_s": self.started_s,
            "cores_of_others": self.cores.of_others,
            "cores_busy": self.cores.busy,
            "cores_stolen": self.cores.stolen,
            "compiled": self.compiled._asdict(),
            "truth": None if self.truth is None else self.truth.as_json(),
        }


def measured_run(
    spark: SparkSession, query: Startable, *, warm_s: float, measured_s: float, folder: Path
) -> MeasuredRun:
    """Run a query, and measure it once it has been warmed up."""
    before, compiled_before = cpu_time(), compiled(spark)
    started_s, events = run_query(spark, query, run_s=warm_s + measured_s, folder=folder)
    cores, compiled_after = cores_between(before, cpu_time()), compiled(spark)
    truth = truth_of(events, started_s + warm_s, query.windows)
    meanwhile = Compiled(
        compiled_after.generated_classes - compiled_before.generated_classes,
        compiled_after.jit_s - compiled_before.jit_s,
    )
    return MeasuredRun(started_s, events, cores, meanwhile, truth)


def run_query(
    spark: SparkSession, query: Startable, *, run_s: float, folder: Path
) -> tuple[float, list[Event]]:
    """Run a query for a while; the instant of its start, and its progress."""
    running = query.start(spark, folder)
    started_s = time.time()
    try:
        wait_while_running(running, run_s)
        events = progress_events(running)
    finally:
        running.stop()
    return started_s, events


@contextmanager
def in_settings(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session while a query starts; as they were after it."""
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
