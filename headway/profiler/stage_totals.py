"""The tasks of an attempt of a stage, summed in whole milliseconds, bytes and rows.

Whole numbers have no rounding: sums of parts can be added in any order.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from headway.profiler.schema import StageInfo, TaskEnd, TaskInfo, TaskMetrics

SAID_AGAIN = "Resubmitted"
"""The reason of a second end of a task that had ended well, when what it had written was lost."""
# What Spark calls the time in Python workers, by version; of a stage, in milliseconds.
_PYTHON_TIMES = ("time to run Python workers",)
_MOST_DIGITS = 15
_MS_PER_S = 1e3
_NS_PER_S = 1e9


class StageTotals(msgspec.Struct, gc=False, array_like=True):
    """What the ends of a stage attempt and of its tasks say, summed; times of tasks that finished.

    ``squares`` and ``products`` are sums of squares and of products of two quantities of a task.
    """

    num_ends: int = 0
    num_tasks: int | None = None
    parent_ids: tuple[int | None, ...] | None = None
    submitted_ms: int | None = None
    completed_ms: int | None = None
    failed: bool = False
    python_ms: int | None = None
    num_ended: int = 0
    num_failed: int = 0
    num_finished: int = 0
    wall_ms: int = 0
    wall_squares_ms2: int = 0
    wall_max_ms: int = 0
    first_launch_ms: int = 0
    last_finish_ms: int = 0
    outside_run_ms: int = 0
    run_ms: int = 0
    cpu_ns: int = 0
    gc_ms: int = 0
    scheduler_delay_ms: int = 0
    rows_read: int = 0
    rows_squares: int = 0
    rows_wall_products_ms: int = 0
    rows_largest: int = 0
    rows_written: int = 0
    input_bytes: int = 0
    shuffle_read_bytes: int = 0
    shuffle_write_bytes: int = 0
    spilled_bytes: int = 0
    peak_memory_bytes: int = 0
    peak_heap_bytes: int = 0

    def add_end(self, info: StageInfo) -> None:
        """One line about the end of the attempt; lines that stand twice are one."""
        self.num_ends += 1
        self.num_tasks = most(self.num_tasks, info.num_tasks)
        if info.parent_ids is not None:
            parents = tuple(info.parent_ids)
            self.parent_ids = _first_of(self.parent_ids, parents)
        self.submitted_ms = most(self.submitted_ms, info.submitted_ms)
        self.completed_ms = most(self.completed_ms, info.completed_ms)
        self.failed |= info.failure is not None
        self.python_ms = most(self.python_ms, python_ms(info))

    def add_task(self, task: TaskEnd) -> None:
        """One task that ended."""
        info, metrics = task.info, task.metrics
        self.num_ended += 1
        if not succeeded(task):
            self.num_failed += 1
            return
        wall_ms = measured_ms(info, metrics)
        if wall_ms is None or info is None or metrics is None:
            return
        launched_ms, finished_ms = info.launched_ms or 0, info.finished_ms or 0
        run_ms = metrics.run_ms or 0
        read, written, got = metrics.shuffle_read, metrics.shuffle_write, metrics.input
        if self.num_finished == 0:
            self.first_launch_ms, self.last_finish_ms = launched_ms, finished_ms
        else:
            if launched_ms < self.first_launch_ms:
                self.first_launch_ms = launched_ms
            if finished_ms > self.last_finish_ms:
                self.last_finish_ms = finished_ms
        rows = 0
        if got is not None:
            rows += got.num_rows or 0
            self.input_bytes += got.num_bytes or 0
        if read is not None:
            rows += read.num_rows or 0
            self.shuffle_read_bytes += (read.remote_bytes or 0) + (read.local_bytes or 0)
        if metrics.output is not None:
            self.rows_written += metrics.output.num_rows or 0
        if written is not None:
            self.rows_written += written.num_rows or 0
            self.shuffle_write_bytes += written.num_bytes or 0
        peak_memory_bytes = metrics.peak_memory_bytes or 0
        heap_bytes = 0
        if task.executor_metrics is not None:
            heap_bytes = task.executor_metrics.heap_bytes or 0
        if self.num_finished == 0:
            self.wall_max_ms, self.rows_largest = wall_ms, rows
            self.peak_memory_bytes, self.peak_heap_bytes = peak_memory_bytes, heap_bytes
        else:
            if wall_ms > self.wall_max_ms:
                self.wall_max_ms = wall_ms
            if rows > self.rows_largest:
                self.rows_largest = rows
            if peak_memory_bytes > self.peak_memory_bytes:
                self.peak_memory_bytes = peak_memory_bytes
            if heap_bytes > self.peak_heap_bytes:
                self.peak_heap_bytes = heap_bytes
        self.num_finished += 1
        self.wall_ms += wall_ms
        self.wall_squares_ms2 += wall_ms * wall_ms
        if wall_ms > run_ms:
            self.outside_run_ms += wall_ms - run_ms
        self.run_ms += run_ms
        self.cpu_ns += metrics.cpu_ns or 0
        self.gc_ms += metrics.gc_ms or 0
        self.scheduler_delay_ms += scheduler_delay_ms(info, metrics, wall_ms)
        self.rows_read += rows
        self.rows_squares += rows * rows
        self.rows_wall_products_ms += rows * wall_ms
        self.spilled_bytes += metrics.spilled_bytes or 0

    def add(self, other: StageTotals) -> None:
        """What stood in another part of the log."""
        self.num_ends += other.num_ends
        for name in ("num_tasks", "submitted_ms", "completed_ms", "python_ms"):
            setattr(self, name, most(getattr(self, name), getattr(other, name)))
        self.failed |= other.failed
        if other.parent_ids is not None:
            self.parent_ids = _first_of(self.parent_ids, other.parent_ids)
        self.num_ended += other.num_ended
        self.num_failed += other.num_failed
        if other.num_finished == 0:
            return
        if self.num_finished == 0:
            for name in _LEAST + _MOST:
                setattr(self, name, getattr(other, name))
        for name in _LEAST:
            setattr(self, name, min(getattr(self, name), getattr(other, name)))
        for name in _MOST:
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def record(self) -> dict[str, Any]:
        """The same in seconds, with means and spreads.

        Keys: num_tasks, parent_ids, submitted_s, completed_s, failed, python_s (time of all tasks
        in Python workers), None where the end of the stage was not seen; num_ended tasks,
        num_failed, and over the tasks that succeeded and reported metrics: num_finished, and, None
        where that is 0, task_mean_s, task_sd_s, task_max_s, launch_to_finish_s (first launch to
        last finish), first_launch_s, outside_run_s (mean time of a task outside the executor's run
        time), run_s, cpu_s, gc_s (sums), scheduler_delay_s (mean), rows_read, rows_largest (of the
        largest task), rows_variance and rows_time_covariance_s (of rows and time between the
        tasks), rows_written, input_bytes, shuffle_read_bytes, shuffle_write_bytes, spilled_bytes,
        peak_memory_bytes (of a task), peak_heap_bytes.
        """
        ended = self.num_ends > 0
        found: dict[str, Any] = {
            "num_tasks": self.num_tasks,
            "parent_ids": None if self.parent_ids is None else list(self.parent_ids),
            "submitted_s": seconds(self.submitted_ms),
            "completed_s": seconds(self.completed_ms),
            "failed": self.failed if ended else None,
            "python_s": seconds(self.python_ms),
            "num_ended": self.num_ended,
            "num_failed": self.num_failed,
            "num_finished": self.num_finished,
        }
        n = self.num_finished
        if n == 0:
            return found | _NO_TASKS
        spread = n * self.wall_squares_ms2 - self.wall_ms**2
        joint_spread = n * self.rows_wall_products_ms - self.rows_read * self.wall_ms
        return found | {
            "task_mean_s": self.wall_ms / n / _MS_PER_S,
            "task_sd_s": math.sqrt(spread / (n * (n - 1))) / _MS_PER_S if n > 1 else None,
            "task_max_s": self.wall_max_ms / _MS_PER_S,
            "first_launch_s": self.first_launch_ms / _MS_PER_S,
            "launch_to_finish_s": (self.last_finish_ms - self.first_launch_ms) / _MS_PER_S,
            "outside_run_s": self.outside_run_ms / n / _MS_PER_S,
            "run_s": self.run_ms / _MS_PER_S,
            "cpu_s": self.cpu_ns / _NS_PER_S,
            "gc_s": self.gc_ms / _MS_PER_S,
            "scheduler_delay_s": self.scheduler_delay_ms / n / _MS_PER_S,
            "rows_read": float(self.rows_read),
            "rows_largest": float(self.rows_largest),
            "rows_variance": (n * self.rows_squares - self.rows_read**2) / n**2,
            "rows_time_covariance_s": joint_spread / n**2 / _MS_PER_S,
            "rows_written": float(self.rows_written),
            "input_bytes": float(self.input_bytes),
            "shuffle_read_bytes": float(self.shuffle_read_bytes),
            "shuffle_write_bytes": float(self.shuffle_write_bytes),
            "spilled_bytes": float(self.spilled_bytes),
            "peak_memory_bytes": float(self.peak_memory_bytes),
            "peak_heap_bytes": float(self.peak_heap_bytes),
        }


_LEAST = ("first_launch_ms",)
_MOST = (
    "wall_max_ms",
    "last_finish_ms",
    "rows_largest",
    "peak_memory_bytes",
    "peak_heap_bytes",
)
_SUMS = (
    "num_finished",
    "wall_ms",
    "wall_squares_ms2",
    "outside_run_ms",
    "run_ms",
    "cpu_ns",
    "gc_ms",
    "scheduler_delay_ms",
    "rows_read",
    "rows_squares",
    "rows_wall_products_ms",
    "rows_written",
    "input_bytes",
    "shuffle_read_bytes",
    "shuffle_write_bytes",
    "spilled_bytes",
)
_NO_TASKS = dict.fromkeys(
    (
        *("task_mean_s", "task_sd_s", "task_max_s", "first_launch_s", "launch_to_finish_s"),
        *("outside_run_s", "run_s", "cpu_s", "gc_s", "scheduler_delay_s"),
        *("rows_read", "rows_largest", "rows_variance", "rows_time_covariance_s", "rows_written"),
        *("input_bytes", "shuffle_read_bytes", "shuffle_write_bytes", "spilled_bytes"),
        *("peak_memory_bytes", "peak_heap_bytes"),
    )
)


def succeeded(task: TaskEnd) -> bool:
    """Whether the task ended well: the flags came with later versions, the reason always stood."""
    reason, info = task.reason, task.info
    if reason is not None and reason.reason is not None and reason.reason != "Success":
        return False
    return info is None or not (info.failed or info.killed)


def measured_ms(info: TaskInfo | None, metrics: TaskMetrics | None) -> int | None:
    """How long a task that reported metrics took; None where that cannot be told.

    A clock that was set back during the task leaves no usable time.
    """
    if info is None or metrics is None or info.launched_ms is None or info.finished_ms is None:
        return None
    wall_ms = info.finished_ms - info.launched_ms
    return wall_ms if info.launched_ms > 0 and wall_ms >= 0 else None


def scheduler_delay_ms(info: TaskInfo, metrics: TaskMetrics, wall_ms: int) -> int:
    """Time of a task in which neither it nor its result was worked on."""
    busy_ms = (metrics.run_ms or 0) + (metrics.deserialize_ms or 0) + (metrics.serialize_ms or 0)
    getting_ms = info.getting_result_ms
    if getting_ms is not None and getting_ms > 0:
        busy_ms += (info.finished_ms or 0) - getting_ms
    return max(wall_ms - busy_ms, 0)


def python_ms(info: StageInfo) -> int | None:
    """Time of the tasks of a stage in Python workers; None without."""
    stated = [
        metric.value
        for metric in info.accumulables or ()
        if metric is not None and metric.name in _PYTHON_TIMES
    ]
    texts = [str(value) for value in stated if type(value) in (int, str)]
    known = [text for text in texts if text.isdecimal() and text.isascii()]
    return sum(int(text) for text in known if len(text) <= _MOST_DIGITS) if stated else None


def seconds(milliseconds: float | None) -> float | None:
    """Milliseconds as seconds; None stays None."""
    return None if milliseconds is None else milliseconds / _MS_PER_S


def most(one: int | None, other: int | None) -> int | None:
    """The larger one of those that are known."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _first_of(
    one: tuple[int | None, ...] | None, other: tuple[int | None, ...]
) -> tuple[int | None, ...]:
    """One of two lists of parents, the same whichever comes first."""
    return other if one is None else min(one, other, key=repr)
