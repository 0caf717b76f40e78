"""Memory, driver and machines: Spark's own defaults, and what is kept in reserve."""

from __future__ import annotations

from headway.assumptions import Assumption, seconds, size
from headway.units import parse_size_bytes

SPARK_PARTITIONS = Assumption(
    name="Default shuffle partitions",
    value=200,
    unit="partitions",
    source="Spark: spark.sql.shuffle.partitions",
    influences="rules of thumb beside a plan (P12), and declared queries",
)
ADVISORY_PARTITION_BYTES = size(
    name="Default size that adaptive execution gives a task",
    value=parse_size_bytes("64m"),
    source="Spark: spark.sql.adaptive.advisoryPartitionSizeInBytes",
    influences="tasks of stages whose shuffle partitions are coalesced (T7)",
)
LEAST_PARTITION_BYTES = size(
    name="Default least size of a task under adaptive execution",
    value=parse_size_bytes("1m"),
    source="Spark: spark.sql.adaptive.coalescePartitions.minPartitionSize, since 3.2",
    influences="tasks of stages whose shuffle partitions are coalesced (T7)",
)
MOST_SPLIT_BYTES = size(
    name="Default maximum size of a split of files",
    value=parse_size_bytes("128m"),
    source="Spark: spark.sql.files.maxPartitionBytes",
    influences="tasks that read a source of files (T9)",
)
OPEN_COST_BYTES = size(
    name="Default cost of opening a file, in bytes",
    value=parse_size_bytes("4m"),
    source="Spark: spark.sql.files.openCostInBytes",
    influences="tasks that read a source of files (T9)",
)
BACKLOG_TIMEOUT_S = seconds(
    name="Backlog timeout of dynamic allocation",
    value=1.0,
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
DEFAULT_HEAP_BYTES = size(
    name="Default heap of an executor",
    value=parse_size_bytes("1g"),
    source="Spark: spark.executor.memory",
    influences="the smallest heap of a plan (P10)",
)
LEAST_HEAP_BYTES = size(
    name="Minimum heap of an executor",
    value=parse_size_bytes("450m"),
    source="Spark: 1.5 times the reserved memory (UnifiedMemoryManager)",
    influences="memory of executors (P10)",
)
LARGEST_USEFUL_HEAP_BYTES = size(
    name="Maximum heap of an executor",
    value=parse_size_bytes("31g"),
    source="JVM: beyond 32 GiB, pointers take twice the space",
    influences="how much of a node's memory becomes heap (P10)",
)
RESERVED_BYTES = size(
    name="Heap reserved by Spark",
    value=parse_size_bytes("300m"),
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
LEAST_OVERHEAD_BYTES = size(
    name="Minimum memory overhead",
    value=parse_size_bytes("384m"),
    source="Spark: spark.executor.minMemoryOverhead",
    influences="memory of executors (P10)",
)
BLOCK_INTERVAL_S = seconds(
    name="Default block interval of a receiver",
    value=0.2,
    source="Spark: spark.streaming.blockInterval",
    influences="latencies of DStreams with receivers (V1)",
)
SHUFFLE_BUFFER_BYTES = size(
    name="Shuffle buffer of Real-Time Mode",
    value=parse_size_bytes("32k"),
    source="Spark 4.3: networkBufferSize of the streaming shuffle",
    influences="latencies of Real-Time Mode behind a shuffle (N5)",
)
SHUFFLE_MAX_WAIT_S = seconds(
    name="Maximum wait in a shuffle buffer of Real-Time Mode",
    value=0.05,
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
DRIVER_CORES = Assumption(
    name="Default cores of a driver",
    value=1,
    unit="cores",
    source="Spark: spark.driver.cores",
    influences="what a plan sets for the driver (U2)",
)
DRIVER_HEAP_BYTES = size(
    name="Default heap of a driver",
    value=parse_size_bytes("1g"),
    source="Spark: spark.driver.memory",
    influences="what a plan sets for the driver (U4)",
)
DRIVER_CPU_RATIO = Assumption(
    name="Core time of a driver, over the time of its phases outside of stages",
    value=1.22,
    source="runs of 1 to 4 queries on Spark 4.3: docs/driver.md",
    influences="how busy the driver is, and how many queries saturate it (U1)-(U3)",
)
ALONE_PROCESSOR_RATIO = Assumption(
    name="Share of its time that a task of a query alone is on a processor",
    value=0.87,
    source="a run of 1 query on Spark 4.3: docs/driver.md; of other queries, 0.8 to 0.95",
    influences="how much batches of other queries slowed the driver in local mode (U1)",
)
COMPILER_CORE_S = seconds(
    name="Core time of the compiler of a driver, as cores times the age of its JVM",
    value=20.0,
    source="runs of 1 to 4 queries in JVMs of a minute: docs/driver.md; beyond that, judgement",
    influences="how busy a young driver is, and how many queries saturate it (U1)-(U3)",
)
MOST_COMPILER_CORES = Assumption(
    name="Maximum cores of the compiler of a driver",
    value=0.5,
    unit="cores",
    source="runs of 1 to 4 queries on Spark 4.3: 0.31 to 0.5; docs/driver.md",
    influences="how busy a young driver is (U1)-(U3)",
)
DRIVER_CPU_SPREAD_RATIO = Assumption(
    name="Spread of the core time of a driver, as a standard deviation of its logarithm",
    value=0.15,
    source="judgement: other versions, listeners and sinks differ more than runs of docs/driver.md",
    influences="the interval of the number of queries that saturate a driver (U3)",
)
MOST_DRIVER_RATIO = Assumption(
    name="Maximum planned utilisation of a driver",
    value=0.7,
    source="judgement: batches start together on the trigger grid, and a busier driver delays all",
    influences="the cores that a plan gives the driver (U2)",
)
RETAINED_EXECUTIONS = Assumption(
    name="Executions that the status store of a driver keeps",
    value=1000,
    unit="executions",
    source="Spark: spark.sql.ui.retainedExecutions",
    influences="the heap that a plan gives the driver (U4)",
)
DRIVER_SPARK_BYTES = size(
    name="Heap of a driver without queries",
    value=parse_size_bytes("70m"),
    source="runs of 1 to 4 queries on Spark 4.3: docs/driver.md",
    influences="the heap that a plan gives the driver (U4)",
)
DRIVER_QUERY_BYTES = size(
    name="Heap of a driver for a query",
    value=parse_size_bytes("2m"),
    source="runs of 1 to 4 queries on Spark 4.3: docs/driver.md",
    influences="the heap that a plan gives the driver (U4)",
)
DRIVER_EXECUTION_BYTES = size(
    name="Heap of a driver for an execution in its status store",
    value=parse_size_bytes("40k"),
    source="runs of 1 to 4 queries on Spark 4.3: docs/driver.md",
    influences="the heap that a plan gives the driver (U4)",
)
DRIVER_LIVE_RATIO = Assumption(
    name="Maximum share of a driver's heap that is live",
    value=0.5,
    source="judgement: a fuller heap is collected so often that batches wait",
    influences="the heap that a plan gives the driver (U4)",
)
ROCKSDB_BITS_PER_KEY = Assumption(
    name="Filter of RocksDB, per key",
    value=10.0,
    unit="bits",
    source="RocksDB: BloomFilter, as Spark makes it",
    influences="memory of RocksDB (Z1)",
)
ROCKSDB_BLOCK_BYTES = size(
    name="Block of RocksDB",
    value=parse_size_bytes("4k"),
    source="Spark: spark.sql.streaming.stateStore.rocksdb.blockSizeKB",
    influences="memory of RocksDB (Z1)",
)
ROCKSDB_BUFFERED_ROW_BYTES = size(
    name="What a row in a write buffer of RocksDB takes beyond its own bytes",
    value=64.0,
    source="judgement: a node of a skip list, a sequence number and two lengths",
    influences="memory of RocksDB (Z1)",
)
ROCKSDB_FLUSH_RATIO = Assumption(
    name="Share of RocksDB's write buffers at which it flushes",
    value=7 / 8,
    source="RocksDB: WriteBufferManager",
    influences="memory of RocksDB (Z1)",
)
ROCKSDB_LARGEST_BUFFER_BYTES = size(
    name="Write buffer of a store in RocksDB",
    value=parse_size_bytes("64m"),
    source="RocksDB: write_buffer_size, which Spark leaves as it is",
    influences="memory of RocksDB (Z1)",
)
ROCKSDB_LEAST_BUFFER_BYTES = size(
    name="Smallest write buffer of a store in RocksDB",
    value=parse_size_bytes("1m"),
    source="RocksDB: memory of write buffers is taken in blocks of 1 MiB",
    influences="memory of RocksDB (Z1)",
)
ROCKSDB_ROOM_RATIO = Assumption(
    name="Memory reserved for RocksDB, over its bound",
    value=1.25,
    source="judgement: Spark does not make the bound strict (SPARK-44878)",
    influences="memory of RocksDB (Z1)",
)
JVM_START_S = seconds(
    name="From the start of a process until the application begins",
    value=2.7,
    source="measured on Spark 4.3, local, 2 cores",
    influences="starting again (Z2)",
)
LOADED_STORE_S = seconds(
    name="Opening a store of Spark's default kind",
    value=0.05,
    source="judgement: it lists its files and opens them",
    influences="starting again, without a restart on record (Z2)",
)
LOADED_ROW_S = Assumption(
    name="Loading a row of a snapshot of Spark's default store",
    value=3.5e-6,
    unit="s/row",
    source="measured on Spark 4.3: 600,000 rows in 4 stores on 2 cores, 2026-11-29",
    influences="starting again, without a restart on record (Z2)",
)
REPLAYED_ROW_S = Assumption(
    name="Replaying a changed row of Spark's default store",
    value=3.5e-6,
    unit="s/row",
    source="judgement: as a row of a snapshot",
    influences="starting again, without a restart on record (Z2)",
)
ROCKSDB_LOADED_STORE_S = seconds(
    name="Opening a store of RocksDB",
    value=0.5,
    source="measured on Spark 4.3: 4 stores on 2 cores, 2026-11-29",
    influences="starting again, without a restart on record (Z2)",
)
ROCKSDB_LOADED_ROW_S = Assumption(
    name="Loading a row of a snapshot of RocksDB",
    value=1e-7,
    unit="s/row",
    source="judgement: files of 30 bytes per row, copied at 300 MB/s",
    influences="starting again, without a restart on record (Z2)",
)
ROCKSDB_REPLAYED_ROW_S = Assumption(
    name="Replaying a changed row of RocksDB",
    value=5e-6,
    unit="s/row",
    source="measured on Spark 4.3: 210,000 rows in 4 stores on 2 cores, 2026-11-29",
    influences="starting again, without a restart on record (Z2)",
)
ROCKSDB_CACHE_BYTES = size(
    name="Default cache of a store in RocksDB",
    value=parse_size_bytes("8m"),
    source="Spark: spark.sql.streaming.stateStore.rocksdb.blockCacheSizeMB",
    influences="memory of RocksDB (Z1)",
)
ROCKSDB_BOUND_BYTES = size(
    name="Default bound of all stores in RocksDB, if it is on",
    value=parse_size_bytes("500m"),
    source="Spark: spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB",
    influences="memory of RocksDB (Z1)",
)
ROCKSDB_WRITE_BUFFER_RATIO = Assumption(
    name="Default share of the bound of RocksDB for write buffers",
    value=0.5,
    source="Spark: spark.sql.streaming.stateStore.rocksdb.writeBufferCacheRatio",
    influences="memory of RocksDB (Z1)",
)
ROCKSDB_LEAST_BLOCKS_RATIO = Assumption(
    name="Least memory of RocksDB for blocks, over that for buffers and indexes",
    value=0.05,
    source="judgement: Spark refuses shares of the bound that leave nothing",
    influences="memory of RocksDB (Z1)",
)
