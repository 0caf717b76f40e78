"""The settings as a table, and a configuration in Spark's terms.

This table condenses the ground-truth notes, which distinguish between what was measured on Spark
4.3 and what was read elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from headway.assumptions.resources import LEAST_HEAP_BYTES
from headway.domain import Applies, Configuration
from headway.domain.configuration import TaskCores, recorded_task_cores
from headway.domain.profile import spark_release
from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.limits import MOST_LONG
from headway.sparkconf import reader_limits, rocksdb
from headway.sparkconf.task_resources import resource_words
from headway.units import spark_memory_bytes, spark_memory_text, spark_trigger_text

_CORES = re.compile(r"\d{1,10}(?:\.\d{1,10})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting of a plan as Spark knows it.

    ``setting`` is the field of :class:`headway.domain.Configuration`, or ``executor_memory``;
    ``label`` says it in words, and ``key`` is Spark's name for it: a configuration key, a reader
    option, or ``trigger``. A change requires what ``applies`` says for a query without state, and
    ``applies_with_state`` with state in a checkpoint. Until ``pinned_before_version`` of Spark, a
    checkpoint fixes the value of stateless queries too.

    >>> KNOBS["shuffle_partitions"].key
    'spark.sql.shuffle.partitions'
    """

    setting: str
    label: str
    key: str
    unit: str
    applies: Applies = "new application"
    applies_with_state: Applies = "new application"
    pinned_before_version: str | None = None


_AT_RESTART: tuple[Applies, Applies] = ("restart", "restart")
_RATE_KEY = reader_limits.KAFKA.key or ""
_TABLE = (
    Knob("executors", "executors", "spark.executor.instances", "executors"),
    Knob("cores_per_executor", "cores per executor", "spark.executor.cores", "cores"),
    Knob("task_cpus", "cores per task", "spark.task.cpus", "cores"),
    Knob("executor_memory", "executor memory", "spark.executor.memory", "bytes"),
    Knob(
        "shuffle_partitions",
        "shuffle partitions",
        "spark.sql.shuffle.partitions",
        "tasks",
        applies="restart",
        # The offset log keeps the number and a restart takes it from there, without a word.
        applies_with_state="new checkpoint",
        pinned_before_version="4.1",
    ),
    Knob("trigger_s", "trigger", "trigger", "seconds", *_AT_RESTART),
    Knob("max_offsets_per_trigger", "rate limit", _RATE_KEY, "records", *_AT_RESTART),
)

#: Every knob of a plan, by setting.
KNOBS: Mapping[str, Knob] = MappingProxyType({knob.setting: knob for knob in _TABLE})

# What a plan sets beside its knobs.
_BESIDE = (
    Knob("driver_cores", "driver cores", "spark.driver.cores", "cores"),
    Knob("driver_memory", "driver memory", "spark.driver.memory", "bytes"),
    Knob("dynamic_allocation", "dynamic allocation", "spark.dynamicAllocation.enabled", "flag"),
    Knob("overhead", "memory beside the heap", "spark.executor.memoryOverhead", "bytes"),
    Knob("python_memory", "Python workers", "spark.executor.pyspark.memory", "bytes"),
    Knob("off_heap", "memory off the heap", "spark.memory.offHeap.enabled", "flag"),
    Knob("off_heap_size", "size off the heap", "spark.memory.offHeap.size", "bytes"),
    Knob(
        "rocksdb_bounded", "whether the memory of RocksDB has a bound", rocksdb.BOUNDED_KEY, "flag"
    ),
    Knob("rocksdb_bound", "bound of the memory of RocksDB", rocksdb.BOUND_KEY, "MiB"),
    Knob("rocksdb_buffers", "share of it for write buffers", rocksdb.WRITE_BUFFER_KEY, "-"),
    Knob("rocksdb_indexes", "share of it for indexes", rocksdb.HIGH_PRIORITY_KEY, "-"),
    Knob(
        "source_partitions",
        "source partitions",
        reader_limits.MIN_PARTITIONS_KEY,
        "tasks",
        *_AT_RESTART,
    ),
    Knob("concurrent_jobs", "jobs at a time", reader_limits.CONCURRENT_JOBS_KEY, "jobs"),
    Knob("receiver_rate", "rate limit of a receiver", reader_limits.RECEIVER_RATE_KEY, "rows/s"),
    Knob("partition_rate", "rate limit of a partition", reader_limits.PARTITION_RATE_KEY, "rows/s"),
)

ASYNC_PROGRESS_KEY = "asyncProgressTrackingEnabled"
PROVIDER_KEY = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG_KEY = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
FILE_MANAGER_KEY = "spark.sql.streaming.checkpointFileManagerClass"
CHECKSUMS_KEY = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
UNLOAD_KEY = "spark.sql.streaming.stateStore.unloadOnCommit"
EMPTY_BATCHES_KEY = "spark.sql.streaming.noDataMicroBatches.enabled"
ADAPTIVE_KEY = "spark.sql.adaptive.enabled"
COALESCE_KEY = "spark.sql.adaptive.coalescePartitions.enabled"
STATELESS_ADAPTIVE_KEY = "spark.sql.adaptive.streaming.stateless.enabled"


def _of_switch(label: str, key: str, with_state: Applies = "restart") -> Knob:
    """A switch of Spark, which a query reads when it starts."""
    return Knob(key, label, key, "flag", "restart", with_state)


_SWITCHES = (
    _of_switch("asynchronous progress tracking", ASYNC_PROGRESS_KEY),
    # A checkpoint keeps the kind of its state store.
    _of_switch("state store", PROVIDER_KEY, "new checkpoint"),
    _of_switch("changelog checkpointing", CHANGELOG_KEY),
    _of_switch("file manager of the checkpoint", FILE_MANAGER_KEY),
    _of_switch("checksums of checkpoint files", CHECKSUMS_KEY),
    _of_switch("unloading of state", UNLOAD_KEY),
    _of_switch("batches without rows", EMPTY_BATCHES_KEY),
    _of_switch("adaptive execution", ADAPTIVE_KEY),
    _of_switch("coalescing", COALESCE_KEY),
    _of_switch("adaptive execution of streams", STATELESS_ADAPTIVE_KEY),
)

#: Those and all knobs, by Spark's key, except amounts of resources: `knob_of`.
KNOBS_BY_KEY: Mapping[str, Knob] = MappingProxyType(
    {knob.key: knob for knob in (*_TABLE, *_BESIDE, *_SWITCHES)}
    # The rate limit in the words of other sources than Kafka.
    | {
        key: replace(KNOBS["max_offsets_per_trigger"], key=key)
        for key in reader_limits.READER_LIMIT_KEYS
        if key != _RATE_KEY
    }
)


def knob_of(key: str) -> Knob:
    """The entry for a key of a plan: the one place that says when it applies.

    >>> knob_of("spark.executor.resource.gpu.amount").label
    'gpu of an executor'
    """
    knob = KNOBS_BY_KEY.get(key)
    return Knob(key, resource_words(key), key, "units") if knob is None else knob


def knob_named(name: str) -> Knob | None:
    """The entry for a setting, a Spark key or a label in words; None if there is none.

    >>> knob_named("shuffle partitions") is knob_named("spark.sql.shuffle.partitions")
    True
    >>> knob_named("colour") is None
    True
    """
    for knob in KNOBS_BY_KEY.values():
        in_words = knob.setting.replace("_", " ")
        if name in (knob.setting, knob.key, knob.label, in_words):
            return knob
    return None


def applies_when(knob: Knob, *, stateful: bool, spark_version: str) -> Applies:
    """What it takes for a changed value of ``knob`` to reach a query that has a checkpoint.

    Raises InputError if the version does not start with two numbers.

    >>> partitions = KNOBS["shuffle_partitions"]
    >>> str(applies_when(partitions, stateful=False, spark_version="4.3.0"))
    'restart'
    >>> str(applies_when(partitions, stateful=False, spark_version="3.5.9"))
    'new checkpoint'
    >>> str(applies_when(partitions, stateful=True, spark_version="4.3.0"))
    'new checkpoint'
    """
    if stateful:
        return knob.applies_with_state
    if knob.pinned_before_version is not None and _release(spark_version) < _release(
        knob.pinned_before_version
    ):
        return "new checkpoint"
    return knob.applies


def spark_conf(configuration: Configuration, *, executor_memory: str | None) -> dict[str, str]:
    """The Spark configuration for this size.

    ``executor_memory`` is the heap of an executor, ``8g`` or ``8Gi``, or a number of MiB; it is
    written in a form that every Spark version reads, and None leaves the key out. Raises InputError
    if the memory is not a size, or is less than Spark needs to start.

    >>> configuration = Configuration(
    ...     executors=2, cores_per_executor=4, shuffle_partitions=8, trigger_s=1.0
    ... )
    >>> for key, value in spark_conf(configuration, executor_memory="8Gi").items():
    ...     print(key, value)
    spark.executor.instances 2
    spark.executor.cores 4
    spark.executor.memory 8g
    spark.dynamicAllocation.enabled false
    spark.sql.shuffle.partitions 8
    """
    conf = {
        KNOBS["executors"].key: str(configuration.executors),
        KNOBS["cores_per_executor"].key: str(configuration.cores_per_executor),
    }
    if configuration.task_cpus != 1:
        conf[KNOBS["task_cpus"].key] = str(configuration.task_cpus)
    if executor_memory is not None:
        conf[KNOBS["executor_memory"].key] = _memory_text(executor_memory)
    # Dynamic allocation would treat the planned number as a mere start.
    conf["spark.dynamicAllocation.enabled"] = "false"
    conf[KNOBS["shuffle_partitions"].key] = str(configuration.shuffle_partitions)
    return conf


def task_cpus_of(properties: Mapping[str, str]) -> TaskCores:
    """Cores per task as set by an application; Spark's default is 1.

    >>> task_cpus_of({"spark.task.cpus": "2"}), task_cpus_of({"spark.task.cpus": "0.5"})
    (2, 0.5)
    >>> task_cpus_of({}), task_cpus_of({"spark.task.cpus": "0"})
    (1, 1)
    """
    stated = properties.get(KNOBS["task_cpus"].key, "1").strip()
    if not _CORES.fullmatch(stated):
        return 1
    return recorded_task_cores(float(stated))


def query_options(
    configuration: Configuration, reader_limit: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Options for the query itself; Spark configuration cannot contain them.

    ``reader_limit`` is the rate limit as an option of the query's source; None writes it as for
    Kafka.

    >>> configuration = Configuration(
    ...     executors=2, cores_per_executor=4, shuffle_partitions=8, trigger_s=2.0,
    ...     max_offsets_per_trigger=100_000,
    ... )
    >>> query_options(configuration)
    {'trigger': '2 seconds', 'maxOffsetsPerTrigger': '100000'}
    """
    options = {KNOBS["trigger_s"].key: spark_trigger_text(configuration.trigger_s)}
    rows = configuration.max_offsets_per_trigger
    if reader_limit is None:
        limit = KNOBS["max_offsets_per_trigger"].key
        return options if rows is None else {**options, limit: str(rows)}
    return {**options, **reader_limit}


def _memory_text(executor_memory: str) -> str:
    size_bytes, least_bytes = spark_memory_bytes(executor_memory), LEAST_HEAP_BYTES.value
    if not least_bytes <= size_bytes <= MOST_LONG:
        raise InputError(
            f"executor memory {executor_memory!r} is out of range; "
            f"expected at least {spark_memory_text(least_bytes)}, e.g. 8g"
        )
    return spark_memory_text(size_bytes)


def _release(version: str) -> tuple[int, int]:
    release = spark_release(version)
    if release is None:
        raise InputError(f"{version!r} is not a Spark version; expected e.g. 4.3.0")
    return release
