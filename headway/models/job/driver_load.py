"""Work of the driver for the queries of an application: how many it carries, and its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from headway.assumptions import resources
from headway.domain import Z90, Application, JobProfile
from headway.domain.plan_parts import PlannedDriver
from headway.domain.profile import CHECKPOINT_PHASES
from headway.domain.stage import StageObserved
from headway.models.job.batch_files import LEAST_INTERVAL_S
from headway.models.stages.task_counts import num_tasks_at
from headway.units import parse_size_bytes

_MIB = parse_size_bytes("1m")
_LEAST_BUSY_CORES = 1e-9


class DriverWork(NamedTuple):
    """What the batches of a query take of the driver: core time of one, time between two [s]."""

    core_s: float
    interval_s: float
    has_tasks: bool = False  # in the driver's JVM: their time is then included
    compiler_cores: float = 0.0  # that its compiler keeps busy at the age of the JVM

    @property
    def busy_cores(self) -> float:
        """Cores that the query keeps busy."""
        return self.core_s / max(self.interval_s, LEAST_INTERVAL_S)


def driver_work(
    profile: JobProfile,
    size: tuple[int, int],
    *,
    batch_rows: float,
    interval_s: float,
    has_tasks: bool | None = None,
) -> DriverWork:
    """Work of the driver for a query.

    Parameters
    ----------
    size : two int, >= 1, task slots and shuffle partitions of the query
    batch_rows : float, >= 0, rows of a batch [rows]
    interval_s : float, >= 0, between starts of batches: the trigger interval, or a longer batch [s]
    has_tasks : bool or None, whether tasks run in its JVM; None if as when profiled

    **(U1)** Core time of the driver for a batch: `c = κ d v + k/μ`, with `d` the time of its phases
    outside of stages, `k` the tasks of the batch, `μ` the tasks that one core launches in a second,
    and `κ` the core time of all threads of the driver, and of the system for its files, over the
    part `v` of `d` that was not spent waiting for batches of other queries: `v = 1` if none ran at
    the same time. Writing to a checkpoint that is known to be on no disk is not part of `d`: the
    driver waits for the network. Where tasks run in the JVM of the driver, in local mode, their own
    core time is added: the time of each times the recorded share that it was on a processor, or all
    of it if none is recorded. There, threads of the driver got a processor as its tasks did:
    `v = min(ρ/ρ_0, 1)`, with `ρ` the share of their time that tasks were on a processor, in the
    stage in which it is largest, and `ρ_0` that of a query alone; and `m` batches of length `D` at
    once, on average, had no more than all cores: with its tasks, a batch took at most
    `(C - b) D/m`. `C` are the cores of the profiled driver, and `b = B/A` those of its compiler at
    the age `A` of the JVM. Where tasks ran elsewhere, `v = min((C - b)/m, 1)`, and only the share
    of a batch that is not in stages counts for `m`.

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> 0.0 < driver_work(profile, (2, 8), batch_rows=0.0, interval_s=1.0).busy_cores < 2.0
    True
    """
    num_tasks = sum(num_tasks_at(stage, batch_rows, *size) for stage in profile.stages)
    core_s = _phases_core_s(profile) + num_tasks / resources.LAUNCHES_PER_S.value
    has_tasks = profile.application.is_local if has_tasks is None else has_tasks
    if has_tasks:
        core_s += _tasks_core_s(profile, size, batch_rows)
    return DriverWork(core_s, interval_s, has_tasks, _compiler_cores(profile))


def _tasks_core_s(profile: JobProfile, size: tuple[int, int], batch_rows: float) -> float:
    """Core time of the tasks of a batch [s]."""
    rows = profile.num_held_rows, batch_rows
    return sum(
        _on_processor_ratio(stage.observed)
        * stage.tasks_s(num_tasks_at(stage, batch_rows, *size), size[1], *rows)
        for stage in profile.stages
    )


def _phases_s(profile: JobProfile) -> float:
    """Time of the phases of a batch in which the driver computes, or writes to a disk [s]."""
    is_remote = profile.shape.checkpoint_store not in (None, "disk")
    waits = CHECKPOINT_PHASES if is_remote else ()
    return sum(phase.mean_s for phase in profile.driver_phases if phase.name not in waits)


def _compiler_cores(profile: JobProfile) -> float:
    """Cores of the compiler at the age of the JVM in the last profiled run."""
    if not profile.settings or not profile.settings[-1].jvm_age_s > 0.0:
        return 0.0
    return min(
        resources.COMPILER_CORE_S.value / profile.settings[-1].jvm_age_s,
        resources.MOST_COMPILER_CORES.value,
    )


def _phases_core_s(profile: JobProfile) -> float:
    """Core time of the driver for its phases of a batch, without waits for other batches [s]."""
    phases_s, last = _phases_s(profile), profile.settings[-1] if profile.settings else None
    alone_s = resources.DRIVER_CPU_RATIO.value * phases_s
    if last is None or last.concurrent_batches is None or not last.batch_duration_mean_s:
        return alone_s
    at_once, duration_s = last.concurrent_batches, last.batch_duration_mean_s
    if not profile.application.is_local:
        at_once = 1.0 + (at_once - 1.0) * min(phases_s / duration_s, 1.0)
        cores = driver_cores(profile.application) - _compiler_cores(profile)
        return alone_s * min(cores / at_once, 1.0)
    recorded = (stage.observed for stage in profile.stages if stage.observed is not None)
    most_ratio = max(map(_on_processor_ratio, recorded), default=1.0)
    batch_rows = last.rows_per_batch_middle
    size = profile.baseline.size
    of_batch_s = (size[0] - _compiler_cores(profile)) * duration_s / at_once
    left_s = of_batch_s - _tasks_core_s(profile, size, batch_rows)
    return min(
        alone_s * most_ratio / resources.ALONE_PROCESSOR_RATIO.value, alone_s, max(left_s, 0.0)
    )


def driver_cores(application: Application) -> int:
    """Cores of the driver of an application by its settings; Spark's default if it was local (U1).

    >>> driver_cores(Application(id="app-1", name="a", spark_version="4.0.1"))
    1
    """
    stated = application.properties.get("spark.driver.cores", "").strip()
    if application.is_local or not (stated.isdecimal() and int(stated) > 0):
        return resources.DRIVER_CORES.value
    return int(stated)


def _on_processor_ratio(observed: StageObserved | None) -> float:
    """Share of the time of a stage's tasks in which they are on a processor; 1 if unknown."""
    return observed.cpu_ratio if observed is not None and observed.cpu_ratio > 0.0 else 1.0


def planned_driver(works: Sequence[DriverWork], cores: int | None = None) -> PlannedDriver:
    """How busy queries keep their driver, how many of them saturate it, and what to give it.

    Parameters
    ----------
    works : sequence of DriverWork, the queries of the application, at least one
    cores : int or None, >= 1, cores of the driver; None for as many as it needs

    **(U2)** Utilisation of the driver: `u = (Σ c_q/I_q + b)/C` over its queries, with `c_q` of
    (U1), `I_q` the time between two batches, `C` the cores of the driver and `b` those of its
    compiler, at the age of the profiled JVM. It needs the fewest cores for which `u ≤ 0.7`
    with `c_q e^(1.645 s)`, `s` being the spread of `κ`: the rest is for batches of several queries
    that start at the same instant of the trigger grid.

    **(U3)** The knee: `N^* = N (C - b)/(Σ c_q/I_q)` queries in the same proportions saturate the
    driver, in the limit of operational analysis (Denning and Buzen 1978,
    doi:10.1145/356733.356735): with fewer, every batch starts at its trigger;
    with `N > N^*`, the time between two batches of each query is `N/N^*` times as long. The 90%
    interval is `N^* e^(±1.645 s)`.

    Four queries of which each takes 50 ms of a core every second:

    >>> driver = planned_driver([DriverWork(core_s=0.05, interval_s=1.0)] * 4, cores=2)
    >>> driver.utilization_ratio, driver.knee_queries, driver.needed_cores
    (0.1, 40.0, 1)
    """
    busy_cores = sum(work.busy_cores for work in works)
    compiler_cores = max((work.compiler_cores for work in works), default=0.0)
    margin = math.exp(Z90 * resources.DRIVER_CPU_SPREAD_RATIO.value)
    highest_cores = busy_cores * margin + compiler_cores
    needed_cores = max(math.ceil(highest_cores / resources.MOST_DRIVER_RATIO.value), 1)
    given_cores = needed_cores if cores is None else cores
    queries_per_core = len(works) / max(busy_cores, _LEAST_BUSY_CORES)
    knee_queries = (given_cores - compiler_cores) * queries_per_core
    return PlannedDriver(
        num_queries=len(works),
        busy_cores=busy_cores + compiler_cores,
        cores=given_cores,
        needed_cores=needed_cores,
        knee_queries=knee_queries,
        knee_low_queries=knee_queries / margin,
        knee_high_queries=knee_queries * margin,
        heap_bytes=driver_heap_bytes(len(works)),
        is_shared_with_tasks=any(work.has_tasks for work in works),
    )


def live_heap_bytes(num_queries: int, num_executions: int) -> float:
    """What a driver keeps on its heap for its queries, after a full collection [bytes].

    The executions are the batches that its queries have run since the application started.

    **(U4)** Live heap of a driver: `H = h_0 + h_q N + h_e min(E, 1000)`, with `h_0` what Spark
    itself keeps, `h_q` what a query keeps (its session, plans and recent progress), and `h_e` what
    the status store keeps of each of the last 1000 executions (`spark.sql.ui.retainedExecutions`),
    with their jobs and stages. The heap to set is `2 H`, for a collector with a heap half full of
    live objects rarely has to stop the driver, in whole MiB and at least Spark's default. What a
    job's own code brings to the driver (`collect`, tables that are broadcast) is not part of it.

    >>> live_heap_bytes(2, 5000) == live_heap_bytes(2, 1000) > live_heap_bytes(1, 1000)
    True
    """
    retained = min(num_executions, resources.RETAINED_EXECUTIONS.value)
    return (
        resources.DRIVER_SPARK_BYTES.value
        + resources.DRIVER_QUERY_BYTES.value * num_queries
        + resources.DRIVER_EXECUTION_BYTES.value * retained
    )


def driver_heap_bytes(num_queries: int) -> int:
    """Heap to set for a driver that has run for long, in whole MiB: theory.md (U4).

    >>> driver_heap_bytes(1) == 2**30 < driver_heap_bytes(400)
    True
    """
    live_bytes = live_heap_bytes(num_queries, resources.RETAINED_EXECUTIONS.value)
    whole_mib = math.ceil(live_bytes / resources.DRIVER_LIVE_RATIO.value / _MIB) * _MIB
    return max(whole_mib, resources.DRIVER_HEAP_BYTES.value)
