"""Task metrics and their sums by attempt of a stage, in whole milliseconds, bytes and rows.

Whole numbers are not rounded, so sums of parts can be added in any order.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from operator import add
from typing import Any, NamedTuple, TypeAlias

import msgspec

from headway.profiler import operators, schema
from headway.profiler.schema import StageInfo, TaskEnd

SAID_AGAIN = "Resubmitted"
"""Reason of the second end of a task that had succeeded, but whose output was lost."""
# Per stage, in milliseconds.
_PYTHON_TIME = "time to run Python workers"
_MOST_DIGITS = 15
_MS_PER_S = 1e3
_NS_PER_S = 1e9
_NO_METRICS, _NO_EXECUTOR = schema.TaskMetrics(), schema.ExecutorMetrics()
_NO_INPUT, _NO_OUTPUT = schema.InputMetrics(), schema.OutputMetrics()
_NO_READ, _NO_WRITE = schema.ShuffleReadMetrics(), schema.ShuffleWriteMetrics()


class Measures(NamedTuple):
    """Metrics of one task, or of several together."""

    wall_ms: int
    run_ms: int
    cpu_ns: int
    gc_ms: int
    deserialize_ms: int
    scheduler_delay_ms: int
    fetch_wait_ms: int
    outside_run_ms: int
    rows_read: int
    rows_written: int
    input_bytes: int
    shuffle_read_bytes: int
    shuffle_write_bytes: int
    spilled_bytes: int
    peak_memory_bytes: int
    peak_heap_bytes: int

    def in_units(self) -> dict[str, float]:
        return {
            "wall_s": self.wall_ms / _MS_PER_S,
            "run_s": self.run_ms / _MS_PER_S,
            "cpu_s": self.cpu_ns / _NS_PER_S,
            "gc_s": self.gc_ms / _MS_PER_S,
            "deserialize_s": self.deserialize_ms / _MS_PER_S,
            "scheduler_delay_s": self.scheduler_delay_ms / _MS_PER_S,
            "fetch_wait_s": self.fetch_wait_ms / _MS_PER_S,
            "outside_run_s": self.outside_run_ms / _MS_PER_S,
            **{name: float(getattr(self, name)) for name in self._fields[_FIRST_COUNT:]},
        }


_FIRST_COUNT = Measures._fields.index("rows_read")


def measures(task: TaskEnd, wall_ms: int) -> Measures:
    """Metrics of a task with a given duration; 0 for unreported ones."""
    metrics = task.metrics or _NO_METRICS
    shuffle_read = metrics.shuffle_read or _NO_READ
    shuffle_written = metrics.shuffle_write or _NO_WRITE
    input_metrics, output_metrics = metrics.input or _NO_INPUT, metrics.output or _NO_OUTPUT
    run_ms, deserialize_ms = metrics.run_ms or 0, metrics.deserialize_ms or 0
    busy_ms = run_ms + deserialize_ms + (metrics.serialize_ms or 0)
    info = task.info
    if info is not None and info.getting_result_ms is not None and info.getting_result_ms > 0:
        busy_ms += (info.finished_ms or 0) - info.getting_result_ms
    return Measures(
        wall_ms,
        run_ms,
        metrics.cpu_ns or 0,
        metrics.gc_ms or 0,
        deserialize_ms,
        max(wall_ms - busy_ms, 0),
        shuffle_read.fetch_wait_ms or 0,
        max(wall_ms - run_ms, 0),
        (input_metrics.num_rows or 0) + (shuffle_read.num_rows or 0),
        (output_metrics.num_rows or 0) + (shuffle_written.num_rows or 0),
        input_metrics.num_bytes or 0,
        (shuffle_read.remote_bytes or 0) + (shuffle_read.local_bytes or 0),
        shuffle_written.num_bytes or 0,
        metrics.spilled_bytes or 0,
        metrics.peak_memory_bytes or 0,
        (task.executor_metrics or _NO_EXECUTOR).heap_bytes or 0,
    )


TaskSpan: TypeAlias = tuple[int, int, str, int]
"""When a task was launched and finished [ms], its executor, and its id."""


def most_waited_for(spans: Iterable[TaskSpan]) -> int | None:
    """Most tasks of a stage at once on an executor; None if none had to wait for another.

    >>> most_waited_for([(0, 10, "1", 0), (0, 10, "1", 1), (10, 20, "1", 2)])
    2
    >>> most_waited_for([(0, 10, "1", 0), (11, 20, "2", 1)])
    """
    highest, has_waited = 0, False
    running: dict[str, list[int]] = {}
    for launched_ms, finished_ms, executor_id, _ in sorted(spans):
        ends_ms = running.setdefault(executor_id, [])
        while ends_ms and ends_ms[0] <= launched_ms:
            heapq.heappop(ends_ms)
            has_waited = True
        heapq.heappush(ends_ms, finished_ms)
        highest = max(highest, len(ends_ms))
    return highest if has_waited else None


class StageTotals(msgspec.Struct, gc=False):
    """Sums over the ends of a stage attempt and of its tasks.

    ``sums`` and ``largest`` (time, rows, two peaks) are over finished tasks, None without any;
    squares and products are sums over them.
    """

    num_ends: int = 0
    num_tasks: int | None = None
    parent_ids: tuple[int | None, ...] | None = None
    submitted_ms: int | None = None
    completed_ms: int | None = None
    failed: bool = False
    python_ms: int | None = None
    cached_rows: int | None = None
    scopes: tuple[str, ...] | None = None
    call: str | None = None
    first_rdd_id: int | None = None
    num_scans: int | None = None
    resource_profile_id: int | None = None
    is_barrier: bool = False
    metric_ids: tuple[int, ...] | None = None
    num_ended: int = 0
    num_failed: int = 0
    num_finished: int = 0
    first_launch_ms: int | None = None
    last_finish_ms: int | None = None
    sums: tuple[int, ...] | None = None
    largest: tuple[int, ...] | None = None
    wall_squares_ms2: int = 0
    rows_squares: int = 0
    rows_wall_products_ms: int = 0
    spans: set[TaskSpan] = set()

    def add_end(self, info: StageInfo) -> None:
        """Add one line about the end of the attempt; duplicate lines count once."""
        end = StageTotals() if self.num_ends else self
        end.num_ends = 1
        end.num_tasks = info.num_tasks
        end.parent_ids = None if info.parent_ids is None else tuple(info.parent_ids)
        end.submitted_ms, end.completed_ms = info.submitted_ms, info.completed_ms
        end.failed = info.failure is not None
        end.python_ms = python_ms(info)
        end.scopes = operators.scopes(info)
        end.cached_rows = cached_rows(info, end.scopes)
        end.call = operators.call_of_program(info, end.scopes)
        end.first_rdd_id = operators.first_rdd_id(info)
        end.num_scans = operators.num_scans(info)
        end.resource_profile_id = info.resource_profile_id
        end.is_barrier = operators.is_barrier(info)
        end.metric_ids = operators.rows_metric_ids(info)
        if end is not self:
            self.add(end)

    def add_names(self, info: StageInfo) -> None:
        """What an attempt without an end computes, from its start."""
        if not self.num_ends:
            self.scopes = operators.scopes(info)
            self.call = operators.call_of_program(info, self.scopes)

    def add_task(self, task: TaskEnd) -> None:
        self.num_ended += 1
        if not succeeded(task):
            self.num_failed += 1
            return
        info, wall_ms = task.info, measured_ms(task)
        if info is None or wall_ms is None:
            return
        of_task = measures(task, wall_ms)
        rows = of_task.rows_read
        self.num_finished += 1
        self.first_launch_ms = least(self.first_launch_ms, info.launched_ms)
        self.last_finish_ms = most(self.last_finish_ms, info.finished_ms)
        peaks = wall_ms, rows, of_task.peak_memory_bytes, of_task.peak_heap_bytes
        self._add_measures(of_task, peaks)
        self.wall_squares_ms2 += wall_ms * wall_ms
        self.rows_squares += rows * rows
        self.rows_wall_products_ms += rows * wall_ms

    def keep_span(self, task: TaskEnd) -> None:
        """Note when and where a task ran; for :func:`most_waited_for`."""
        info = task.info
        if info is not None and info.launched_ms and info.finished_ms:
            task_id = -1 if info.task_id is None else info.task_id
            self.spans.add((info.launched_ms, info.finished_ms, info.executor_id or "", task_id))

    def _add_measures(self, sums: tuple[int, ...], largest: tuple[int, ...]) -> None:
        self.sums = sums if self.sums is None else tuple(map(add, self.sums, sums))
        self.largest = largest if self.largest is None else tuple(map(max, self.largest, largest))

    def add(self, other: StageTotals) -> None:
        """Add data from another part of the log."""
        for name in _MOST:
            setattr(self, name, most(getattr(self, name), getattr(other, name)))
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failed |= other.failed
        self.is_barrier |= other.is_barrier
        # Of several ends of an attempt, the same one in any order.
        for name in _ONE_OF_SEVERAL:
            theirs = getattr(other, name)
            if theirs is not None:
                mine = getattr(self, name)
                setattr(self, name, theirs if mine is None else min(mine, theirs, key=repr))
        self.first_launch_ms = least(self.first_launch_ms, other.first_launch_ms)
        self.spans |= other.spans
        if other.sums is not None and other.largest is not None:
            self._add_measures(other.sums, other.largest)

    def end(self) -> dict[str, Any]:
        """Data from the end of the attempt; None if it is not recorded."""
        return {
            "num_tasks": self.num_tasks,
            "parent_ids": None if self.parent_ids is None else list(self.parent_ids),
            "submitted_s": seconds(self.submitted_ms),
            "completed_s": seconds(self.completed_ms),
            "failed": self.failed if self.num_ends else None,
            "python_s": seconds(self.python_ms),
        }

    def record(self) -> dict[str, Any]:
        """The totals in seconds, with means and spreads.

        Columns of :meth:`end`, num_ended tasks, num_failed, and over the tasks that succeeded and
        reported metrics: num_finished, and (None if that is 0) the sums of
        :meth:`Measures.in_units`, except for means per task for scheduler_delay_s and outside_run_s
        and the maximum of peak_memory_bytes and peak_heap_bytes; task_mean_s, task_sd_s,
        task_max_s, first_launch_s, launch_to_finish_s (first launch to last finish), rows_largest
        (of a task), rows_variance and rows_time_covariance_s (of rows and time between the tasks).

        Of a cache, tasks count column batches of up to 10,000 rows as rows read, so a stage that
        reads one has the rows of its operators, taken as evenly distributed.
        """
        columns = self.end() | {
            "num_ended": self.num_ended,
            "num_failed": self.num_failed,
            "num_finished": self.num_finished,
        }
        if self.sums is None or self.largest is None:
            return columns | NO_TASKS
        n, sums = self.num_finished, Measures(*self.sums)
        longest_ms, rows_largest, peak_memory_bytes, peak_heap_bytes = self.largest
        launched_ms, finished_ms = self.first_launch_ms or 0, self.last_finish_ms or 0
        spread = n * self.wall_squares_ms2 - sums.wall_ms**2
        joint_spread = n * self.rows_wall_products_ms - sums.rows_read * sums.wall_ms
        rows_read = (self.cached_rows or 0) * n / max(self.num_tasks or n, n)
        of_cache = {
            "rows_read": rows_read,
            "rows_largest": rows_read / n,
            "rows_variance": 0.0,
            "rows_time_covariance_s": 0.0,
        }
        return (
            columns
            | sums.in_units()
            | {
                "task_mean_s": sums.wall_ms / n / _MS_PER_S,
                "task_sd_s": math.sqrt(spread / (n * (n - 1))) / _MS_PER_S if n > 1 else None,
                "task_max_s": longest_ms / _MS_PER_S,
                "first_launch_s": launched_ms / _MS_PER_S,
                "launch_to_finish_s": (finished_ms - launched_ms) / _MS_PER_S,
                "outside_run_s": sums.outside_run_ms / n / _MS_PER_S,
                "scheduler_delay_s": sums.scheduler_delay_ms / n / _MS_PER_S,
                "rows_largest": float(rows_largest),
                "rows_variance": (n * self.rows_squares - sums.rows_read**2) / n**2,
                "rows_time_covariance_s": joint_spread / n**2 / _MS_PER_S,
                "peak_memory_bytes": float(peak_memory_bytes),
                "peak_heap_bytes": float(peak_heap_bytes),
            }
            | (of_cache if rows_read > sums.rows_read else {})
        )


_MOST = (
    *("num_tasks", "num_scans", "resource_profile_id"),
    *("submitted_ms", "completed_ms", "python_ms", "cached_rows", "last_finish_ms"),
)
_ONE_OF_SEVERAL = ("parent_ids", "scopes", "call", "first_rdd_id", "metric_ids")
_SUMS = (
    *("num_ends", "num_ended", "num_failed", "num_finished"),
    *("wall_squares_ms2", "rows_squares", "rows_wall_products_ms"),
)
SUMS_OF_TASKS = (
    *("run_s", "cpu_s", "gc_s", "rows_read", "rows_written", "input_bytes"),
    *("shuffle_read_bytes", "shuffle_write_bytes", "spilled_bytes"),
)
"""Columns of :meth:`StageTotals.record` that are sums over its tasks, as profiles keep them."""
NO_TASKS = dict.fromkeys(
    (
        *Measures(*(0 for _ in Measures._fields)).in_units(),
        *("task_mean_s", "task_sd_s", "task_max_s", "first_launch_s", "launch_to_finish_s"),
        *("rows_largest", "rows_variance", "rows_time_covariance_s"),
    )
)


def succeeded(task: TaskEnd) -> bool:
    """Whether the task succeeded; later versions have flags, and all versions the reason."""
    reason, info = task.reason, task.info
    if reason is not None and reason.reason is not None and reason.reason != "Success":
        return False
    return info is None or not (info.failed or info.killed)


def measured_ms(task: TaskEnd) -> int | None:
    """Duration of a task that reported metrics; None if unknown.

    If a clock was set back during the task, its time is not usable.
    """
    info = task.info
    if info is None or info.launched_ms is None or info.finished_ms is None or task.metrics is None:
        return None
    wall_ms = info.finished_ms - info.launched_ms
    return wall_ms if info.launched_ms > 0 and wall_ms >= 0 else None


def python_ms(info: StageInfo) -> int | None:
    """Time of the tasks of a stage in Python workers; None without."""
    return sum(times_ms) if (times_ms := _numbers(info, _PYTHON_TIME)) is not None else None


def cached_rows(info: StageInfo, scopes: Sequence[str] | None) -> int | None:
    """The most rows of any operator of a stage that reads a cache; None if it reads none."""
    if operators.CACHE_SCAN not in (scopes or ()):
        return None
    return max(_numbers(info, operators.OUTPUT_ROWS) or (), default=None)


def _numbers(info: StageInfo, name: str) -> list[int] | None:
    """Values of the metrics of a stage with this name, where they are numbers; None without any."""
    stated = [
        metric.value
        for metric in info.accumulables or ()
        if metric is not None and metric.name == name
    ]
    texts = [str(value) for value in stated if type(value) in (int, str)]
    decimal_texts = [text for text in texts if text.isdecimal() and text.isascii()]
    return [int(text) for text in decimal_texts if len(text) <= _MOST_DIGITS] if stated else None


def seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / _MS_PER_S


def most(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return max(first, second)


def least(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return min(first, second)
