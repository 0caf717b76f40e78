"""Memory, driver and machines: Spark's own defaults, and what is kept free beside them."""

from __future__ import annotations

from headway.assumptions import Assumption
from headway.units import parse_size_bytes

SPARK_PARTITIONS = Assumption(
    name="Shuffle partitions where nobody sets them",
    value=200,
    unit="partitions",
    source="Spark: spark.sql.shuffle.partitions",
    influences="rules of thumb beside a plan (P12), and queries that were declared",
)
BACKLOG_TIMEOUT_S = Assumption(
    name="Time that tasks wait before dynamic allocation asks for executors",
    value=1.0,
    unit="s",
    source="Spark: spark.dynamicAllocation.schedulerBacklogTimeout",
    influences="the rule of thumb of dynamic allocation (P12)",
)
MEASURED_LAUNCHES_PER_S = Assumption(
    name="Task launches of the driver that were measured",
    value=1500.0,
    unit="tasks/s",
    source="Spark 0.8, talk on Sparrow: Ousterhout et al. (2013), doi:10.1145/2517349.2522716",
    influences="advice to launch fewer tasks (P14)",
)
LAUNCHES_PER_S = Assumption(
    name="Task launches that the driver is trusted with",
    value=4500.0,
    unit="tasks/s",
    source="Ousterhout et al. (2013) expected two to three times what they measured",
    influences="settings of many short tasks, which are out (P18)",
)
DEFAULT_HEAP_BYTES = Assumption(
    name="Heap of an executor where nobody sets it",
    value=parse_size_bytes("1g"),
    unit="bytes",
    source="Spark: spark.executor.memory",
    influences="the smallest heap of a plan (P10)",
)
LEAST_HEAP_BYTES = Assumption(
    name="Smallest heap that Spark starts with",
    value=parse_size_bytes("450m"),
    unit="bytes",
    source="Spark: 1.5 times the reserved memory (UnifiedMemoryManager)",
    influences="memory of executors (P10)",
)
LARGEST_USEFUL_HEAP_BYTES = Assumption(
    name="Largest heap of a plan",
    value=parse_size_bytes("31g"),
    unit="bytes",
    source="JVM: beyond 32 GiB pointers take twice the room",
    influences="how much of a node's memory becomes heap (P10)",
)
RESERVED_BYTES = Assumption(
    name="Heap that Spark keeps for itself",
    value=parse_size_bytes("300m"),
    unit="bytes",
    source="Spark: UnifiedMemoryManager",
    influences="memory of executors (P10)",
)
UNIFIED_RATIO = Assumption(
    name="Share of the heap for execution and storage",
    value=0.6,
    unit="-",
    source="Spark: spark.memory.fraction",
    influences="the heap that keeps tasks from spilling (P10)",
)
HEAP_ROOM_RATIO = Assumption(
    name="Heap, over what was measured to be needed",
    value=1.2,
    unit="-",
    source="judgement: a heap that is nearly full is collected all the time",
    influences="memory of executors (P10)",
)
OVERHEAD_RATIO = Assumption(
    name="Memory beside the heap, over the heap",
    value=0.1,
    unit="-",
    source="Spark: spark.executor.memoryOverheadFactor",
    influences="memory of executors (P10)",
)
PYTHON_OVERHEAD_RATIO = Assumption(
    name="The same of executors with Python workers of unknown size",
    value=0.4,
    unit="-",
    source="Spark on Kubernetes: spark.kubernetes.memoryOverheadFactor of non-JVM jobs",
    influences="memory of executors (P10)",
)
LEAST_OVERHEAD_BYTES = Assumption(
    name="Least memory beside the heap",
    value=parse_size_bytes("384m"),
    unit="bytes",
    source="Spark: spark.executor.minMemoryOverhead",
    influences="memory of executors (P10)",
)
BLOCK_INTERVAL_S = Assumption(
    name="Block interval of a receiver where nobody sets it",
    value=0.2,
    unit="s",
    source="Spark: spark.streaming.blockInterval",
    influences="latencies of DStreams with receivers (V1)",
)
SHUFFLE_BUFFER_BYTES = Assumption(
    name="Buffer of a task that sends rows to another, in Real-Time Mode",
    value=parse_size_bytes("32k"),
    unit="bytes",
    source="Spark 4.3: networkBufferSize of the streaming shuffle",
    influences="latencies of Real-Time Mode behind a shuffle (N5)",
)
SHUFFLE_MAX_WAIT_S = Assumption(
    name="Longest that such a buffer is kept",
    value=0.05,
    unit="s",
    source="Spark 4.3: networkBufferMaxWaitTimeMs of the streaming shuffle",
    influences="latencies of Real-Time Mode behind a shuffle (N5)",
)
SHUFFLE_FULL_RATIO = Assumption(
    name="Share of such a buffer from which on it is sent",
    value=0.9,
    unit="-",
    source="Spark 4.3: streaming shuffle",
    influences="latencies of Real-Time Mode behind a shuffle (N5)",
)
FLEET_STREAM_EXECUTORS = Assumption(
    name="Executors of one streaming job of a fleet at most",
    value=256,
    unit="executors",
    source="judgement: larger ones are planned by themselves",
    influences="the needs of a job in a capacity plan",
)
FLEET_BATCH_EXECUTORS = Assumption(
    name="Executors of one batch job of a fleet at most",
    value=1024,
    unit="executors",
    source="judgement: batch jobs are wider than streaming ones, and cheaper to plan",
    influences="the needs of a job in a capacity plan",
)
FLEET_EXECUTOR_CORES = Assumption(
    name="Cores of an executor where neither file nor profile tells",
    value=4,
    unit="cores",
    source="judgement: the usual advice is four to five",
    influences="the executors of a batch job in a capacity plan",
)
