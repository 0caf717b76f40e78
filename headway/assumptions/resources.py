"""Memory, driver and machines: Spark's own defaults, and what is kept in reserve."""

from __future__ import annotations

from headway.assumptions import Assumption
from headway.units import parse_size_bytes

SPARK_PARTITIONS = Assumption(
    name="Default shuffle partitions",
    value=200,
    unit="partitions",
    source="Spark: spark.sql.shuffle.partitions",
    influences="rules of thumb beside a plan (P12), and declared queries",
)
ADVISORY_PARTITION_BYTES = Assumption(
    name="Default size that adaptive execution gives a task",
    value=parse_size_bytes("64m"),
    unit="bytes",
    source="Spark: spark.sql.adaptive.advisoryPartitionSizeInBytes",
    influences="tasks of stages whose shuffle partitions are coalesced (T7)",
)
LEAST_PARTITION_BYTES = Assumption(
    name="Default least size of a task under adaptive execution",
    value=parse_size_bytes("1m"),
    unit="bytes",
    source="Spark: spark.sql.adaptive.coalescePartitions.minPartitionSize, since 3.2",
    influences="tasks of stages whose shuffle partitions are coalesced (T7)",
)
MOST_SPLIT_BYTES = Assumption(
    name="Default maximum size of a split of files",
    value=parse_size_bytes("128m"),
    unit="bytes",
    source="Spark: spark.sql.files.maxPartitionBytes",
    influences="tasks that read a source of files (T9)",
)
OPEN_COST_BYTES = Assumption(
    name="Default cost of opening a file, in bytes",
    value=parse_size_bytes("4m"),
    unit="bytes",
    source="Spark: spark.sql.files.openCostInBytes",
    influences="tasks that read a source of files (T9)",
)
BACKLOG_TIMEOUT_S = Assumption(
    name="Backlog timeout of dynamic allocation",
    value=1.0,
    unit="s",
    source="Spark: spark.dynamicAllocation.schedulerBacklogTimeout",
    influences="the rule of thumb of dynamic allocation (P12)",
)
MEASURED_LAUNCHES_PER_S = Assumption(
    name="Measured task launch rate of the driver",
    value=1500.0,
    unit="tasks/s",
    source="Spark 0.8, talk on Sparrow: Ousterhout et al. (2013), doi:10.1145/2517349.2522716",
    influences="advice to launch fewer tasks (P14)",
)
LAUNCHES_PER_S = Assumption(
    name="Maximum task launch rate of the driver",
    value=4500.0,
    unit="tasks/s",
    source="Ousterhout et al. (2013) expected two to three times what they measured",
    influences="which settings with many short tasks are excluded (P18)",
)
DEFAULT_HEAP_BYTES = Assumption(
    name="Default heap of an executor",
    value=parse_size_bytes("1g"),
    unit="bytes",
    source="Spark: spark.executor.memory",
    influences="the smallest heap of a plan (P10)",
)
LEAST_HEAP_BYTES = Assumption(
    name="Minimum heap of an executor",
    value=parse_size_bytes("450m"),
    unit="bytes",
    source="Spark: 1.5 times the reserved memory (UnifiedMemoryManager)",
    influences="memory of executors (P10)",
)
LARGEST_USEFUL_HEAP_BYTES = Assumption(
    name="Maximum heap of an executor",
    value=parse_size_bytes("31g"),
    unit="bytes",
    source="JVM: beyond 32 GiB, pointers take twice the space",
    influences="how much of a node's memory becomes heap (P10)",
)
RESERVED_BYTES = Assumption(
    name="Heap reserved by Spark",
    value=parse_size_bytes("300m"),
    unit="bytes",
    source="Spark: UnifiedMemoryManager",
    influences="memory of executors (P10)",
)
UNIFIED_RATIO = Assumption(
    name="Share of the heap for execution and storage",
    value=0.6,
    source="Spark: spark.memory.fraction",
    influences="the heap that keeps tasks from spilling (P10)",
)
HEAP_ROOM_RATIO = Assumption(
    name="Heap headroom, over the measured need",
    value=1.2,
    source="judgement: a nearly full heap causes constant garbage collection",
    influences="memory of executors (P10)",
)
OVERHEAD_RATIO = Assumption(
    name="Memory overhead, as a share of the heap",
    value=0.1,
    source="Spark: spark.executor.memoryOverheadFactor",
    influences="memory of executors (P10)",
)
PYTHON_OVERHEAD_RATIO = Assumption(
    name="Memory overhead with Python workers of unknown size, as a share of the heap",
    value=0.4,
    source="Spark on Kubernetes: spark.kubernetes.memoryOverheadFactor of non-JVM jobs",
    influences="memory of executors (P10)",
)
LEAST_OVERHEAD_BYTES = Assumption(
    name="Minimum memory overhead",
    value=parse_size_bytes("384m"),
    unit="bytes",
    source="Spark: spark.executor.minMemoryOverhead",
    influences="memory of executors (P10)",
)
BLOCK_INTERVAL_S = Assumption(
    name="Default block interval of a receiver",
    value=0.2,
    unit="s",
    source="Spark: spark.streaming.blockInterval",
    influences="latencies of DStreams with receivers (V1)",
)
SHUFFLE_BUFFER_BYTES = Assumption(
    name="Shuffle buffer of Real-Time Mode",
    value=parse_size_bytes("32k"),
    unit="bytes",
    source="Spark 4.3: networkBufferSize of the streaming shuffle",
    influences="latencies of Real-Time Mode behind a shuffle (N5)",
)
SHUFFLE_MAX_WAIT_S = Assumption(
    name="Maximum wait in a shuffle buffer of Real-Time Mode",
    value=0.05,
    unit="s",
    source="Spark 4.3: networkBufferMaxWaitTimeMs of the streaming shuffle",
    influences="latencies of Real-Time Mode behind a shuffle (N5)",
)
SHUFFLE_FULL_RATIO = Assumption(
    name="Fill level at which a shuffle buffer of Real-Time Mode is sent",
    value=0.9,
    source="Spark 4.3: streaming shuffle",
    influences="latencies of Real-Time Mode behind a shuffle (N5)",
)
FLEET_STREAM_EXECUTORS = Assumption(
    name="Maximum executors of a streaming job in a fleet",
    value=256,
    unit="executors",
    source="judgement: larger ones are planned on their own",
    influences="the needs of a job in a capacity plan",
)
FLEET_BATCH_EXECUTORS = Assumption(
    name="Maximum executors of a batch job in a fleet",
    value=1024,
    unit="executors",
    source="judgement: batch jobs are wider than streaming ones, and cheaper to plan",
    influences="the needs of a job in a capacity plan",
)
FLEET_EXECUTOR_CORES = Assumption(
    name="Default cores of an executor in a fleet",
    value=4,
    unit="cores",
    source="judgement: the usual advice is four to five",
    influences="the executors of a batch job in a capacity plan",
)
COMMITS_PER_SNAPSHOT = Assumption(
    name="Default number of commits between two snapshots of a state store",
    value=10,
    unit="commits",
    source="Spark: spark.sql.streaming.stateStore.minDeltasForSnapshot",
    influences="files and write requests of a checkpoint (F1)",
)
MOST_TRIGGER_DELAY_S = Assumption(
    name="Default time that a trigger waits at most for a minimum of rows",
    value=900.0,
    unit="s",
    source="Spark: maxTriggerDelay, an option of Kafka's reader",
    influences="predictions with minOffsetsPerTrigger (Y10)",
)
ASYNC_LOG_INTERVAL_S = Assumption(
    name="Default interval of files of offsets and commits under asynchronous progress tracking",
    value=1.0,
    unit="s",
    source="Spark: asyncProgressTrackingCheckpointIntervalMs, an option of the writer",
    influences="files and write requests of a checkpoint (F2)",
)
MAINTENANCE_INTERVAL_S = Assumption(
    name="Default interval of the maintenance of state stores",
    value=60.0,
    unit="s",
    source="Spark: spark.sql.streaming.stateStore.maintenanceInterval",
    influences="files and write requests of a checkpoint (F1)",
)
TABLES_PER_SNAPSHOT = Assumption(
    name="New files of RocksDB with each snapshot of a state store",
    value=1.09,
    unit="files",
    source="counted on Spark 4.3, 2026-11-27, one aggregation: 16.7 files of 8 stores per batch",
    influences="files and write requests of a checkpoint (F1)",
)
