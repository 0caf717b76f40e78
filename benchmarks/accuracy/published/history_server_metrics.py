"""Where the answers of the History Server have metrics of tasks, and which columns are ours."""

from __future__ import annotations

from typing import NamedTuple

from published.figures import MS_PER_S, NS_PER_S


class Metric(NamedTuple):
    """One metric of tasks: places in the answers (added up), and the column that is ours."""

    name: str
    of_stage: tuple[str, ...]
    of_task: tuple[tuple[str, ...], ...]
    column: str
    per_ours: float = 1.0


METRICS = (
    Metric("run time, ms", ("executorRunTime",), (("executorRunTime",),), "run_s", MS_PER_S),
    Metric("CPU time, ns", ("executorCpuTime",), (("executorCpuTime",),), "cpu_s", NS_PER_S),
    Metric("garbage collection, ms", ("jvmGcTime",), (("jvmGcTime",),), "gc_s", MS_PER_S),
    Metric(
        "deserialization, ms",
        ("executorDeserializeTime",),
        (("executorDeserializeTime",),),
        "deserialize_s",
        MS_PER_S,
    ),
    Metric(
        "shuffle fetch wait, ms",
        ("shuffleFetchWaitTime",),
        (("shuffleReadMetrics", "fetchWaitTime"),),
        "fetch_wait_s",
        MS_PER_S,
    ),
    Metric("input, bytes", ("inputBytes",), (("inputMetrics", "bytesRead"),), "input_bytes"),
    Metric(
        "shuffle read, bytes",
        ("shuffleReadBytes",),
        (("shuffleReadMetrics", "localBytesRead"), ("shuffleReadMetrics", "remoteBytesRead")),
        "shuffle_read_bytes",
    ),
    Metric(
        "shuffle write, bytes",
        ("shuffleWriteBytes",),
        (("shuffleWriteMetrics", "bytesWritten"),),
        "shuffle_write_bytes",
    ),
    Metric(
        "spilled from memory, bytes",
        ("memoryBytesSpilled",),
        (("memoryBytesSpilled",),),
        "spilled_bytes",
    ),
    Metric(
        "records read, input and shuffle",
        ("inputRecords", "shuffleReadRecords"),
        (("inputMetrics", "recordsRead"), ("shuffleReadMetrics", "recordsRead")),
        "rows_read",
    ),
    Metric(
        "records written, output and shuffle",
        ("outputRecords", "shuffleWriteRecords"),
        (("outputMetrics", "recordsWritten"), ("shuffleWriteMetrics", "recordsWritten")),
        "rows_written",
    ),
    Metric(
        "peak execution memory, bytes",
        ("peakExecutionMemory",),
        (("peakExecutionMemory",),),
        "peak_memory_bytes",
    ),
)
# Places of the same metrics in summaries of tasks.
QUANTILES = {
    "executorRunTime": ("run_s", MS_PER_S),
    "executorCpuTime": ("cpu_s", NS_PER_S),
    "executorDeserializeTime": ("deserialize_s", MS_PER_S),
    "jvmGcTime": ("gc_s", MS_PER_S),
    "duration": ("wall_s", MS_PER_S),
    "schedulerDelay": ("scheduler_delay_s", MS_PER_S),
    "peakExecutionMemory": ("peak_memory_bytes", 1.0),
    "memoryBytesSpilled": ("spilled_bytes", 1.0),
    "inputMetrics.bytesRead": ("input_bytes", 1.0),
    "shuffleReadMetrics.readBytes": ("shuffle_read_bytes", 1.0),
    "shuffleReadMetrics.fetchWaitTime": ("fetch_wait_s", MS_PER_S),
    "shuffleWriteMetrics.writeBytes": ("shuffle_write_bytes", 1.0),
}
