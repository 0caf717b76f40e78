"""Data that may enter the profiler: allowed properties, harmless descriptions, redacted text.

An event log contains every property, path and message of an application, including secrets. A
property is passed on only if its name is allowed and its value has the expected form; text that
must be shown is searched for the shapes of credentials. The events of
:mod:`headway.profiler.schema` do this as they are decoded, so that no output can forget it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from headway.profiler.known_values import KNOWN_VALUE_PROPERTIES, is_known_value
from headway.redaction import printable, redact, without_logins
from headway.sparkconf import is_resource_key

# Names below a prefix whose values are numbers, sizes, durations or flags.
_QUANTITIES_BELOW = {
    "spark": """cores.max default.parallelism task.cpus task.maxFailures
        locality.wait locality.wait.process locality.wait.node locality.wait.rack
        speculation network.timeout rdd.compress rpc.message.maxSize python.worker.reuse
        checkpoint.compress broadcast.blockSize io.compression.zstd.level
        io.compression.lz4.blockSize storage.memoryFraction shuffle.memoryFraction""",
    "spark.driver": "cores memory memoryOverhead memoryOverheadFactor maxResultSize",
    "spark.executor": """cores instances memory memoryOverhead memoryOverheadFactor
        minMemoryOverhead pyspark.memory heartbeatInterval""",
    "spark.memory": "fraction storageFraction offHeap.enabled offHeap.size",
    "spark.dynamicAllocation": """enabled minExecutors maxExecutors initialExecutors
        executorIdleTimeout cachedExecutorIdleTimeout schedulerBacklogTimeout
        sustainedSchedulerBacklogTimeout executorAllocationRatio shuffleTracking.enabled
        shuffleTracking.timeout""",
    "spark.speculation": "interval multiplier quantile minTaskRuntime task.duration.threshold",
    "spark.scheduler": """minRegisteredResourcesRatio maxRegisteredResourcesWaitingTime
        revive.interval""",
    "spark.shuffle": """compress spill.compress file.buffer sort.bypassMergeThreshold
        service.enabled io.numConnectionsPerPeer io.maxRetries push.enabled""",
    "spark.reducer": "maxSizeInFlight maxReqsInFlight maxBlocksInFlightPerAddress",
    "spark.eventLog": """enabled compress rolling.enabled rolling.maxFileSize
        logBlockUpdates.enabled overwrite logStageExecutorMetrics buffer.kb
        includeTaskMetricsAccumulators""",
    "spark.kryoserializer": "buffer buffer.max",
    "spark.streaming": """concurrentJobs blockInterval backpressure.enabled
        backpressure.initialRate receiver.maxRate kafka.maxRatePerPartition""",
    "spark.kubernetes": """memoryOverheadFactor allocation.batch.size allocation.batch.delay
        executor.request.cores executor.limit.cores driver.request.cores driver.limit.cores""",
    "spark.yarn": "executor.memoryOverhead driver.memoryOverhead am.cores am.memory",
    "spark.sql": """shuffle.partitions autoBroadcastJoinThreshold broadcastTimeout
        join.preferSortMergeJoin files.maxPartitionBytes files.openCostInBytes
        files.minPartitionNum files.maxPartitionNum ansi.enabled codegen.wholeStage
        inMemoryColumnarStorage.batchSize inMemoryColumnarStorage.compressed
        execution.pythonUDF.arrow.enabled cbo.enabled ui.retainedExecutions""",
    "spark.sql.execution.arrow": """enabled pyspark.enabled maxRecordsPerBatch maxBytesPerBatch
        pyspark.fallback.enabled pyspark.selfDestruct.enabled""",
    "spark.sql.adaptive": """enabled forceApply localShuffleReader.enabled
        advisoryPartitionSizeInBytes nonEmptyPartitionRatioForBroadcastJoin
        autoBroadcastJoinThreshold maxShuffledHashJoinLocalMapThreshold
        optimizeSkewsInRebalancePartitions.enabled rebalancePartitionsSmallPartitionFactor
        forceOptimizeSkewedJoin coalescePartitions.enabled coalescePartitions.parallelismFirst
        coalescePartitions.minPartitionSize coalescePartitions.minPartitionNum
        coalescePartitions.initialPartitionNum skewJoin.enabled skewJoin.skewedPartitionFactor
        skewJoin.skewedPartitionThresholdInBytes streaming.stateless.enabled""",
    "spark.sql.streaming": """noDataMicroBatches.enabled pollingDelay metricsEnabled
        numRecentProgressUpdates noDataProgressEventInterval minBatchesToRetain
        maxBatchesToRetainInMemory stopActiveRunOnRestart stopTimeout
        statefulOperator.allowMultiple statefulOperator.useStrictDistribution
        sessionWindow.merge.sessions.in.local.partition aggregation.stateFormatVersion
        join.stateFormatVersion flatMapGroupsWithState.stateFormatVersion
        fileSource.cleaner.numThreads stateStore.minDeltasForSnapshot
        stateStore.maintenanceInterval stateStore.numStateStoreMaintenanceThreads
        stateStore.checkpointFormatVersion stateStore.rowChecksum.enabled stateStore.unloadOnCommit
        internal.stateStore.partitions asyncLogPurge.enabled offsetLog.formatVersion
        realTimeMode.minBatchDuration checkpoint.fileChecksum.enabled
        fileSource.log.compactInterval fileSink.log.compactInterval
        fileSink.log.cleanupDelay stateStore.formatValidation.enabled
        stateStore.skipNullsForStreamStreamJoins.enabled""",
    "spark.sql.streaming.stateStore.rocksdb": """changelogCheckpointing.enabled compactOnCommit
        blockSizeKB blockCacheSizeMB lockAcquireTimeoutMs resetStatsOnLoad trackTotalNumberOfRows
        writeBufferSizeMB maxWriteBufferNumber boundedMemoryUsage maxMemoryUsageMB
        writeBufferCacheRatio highPriorityPoolRatio allowFAllocate maxOpenFiles formatVersion""",
}
_QUANTITIES = frozenset(
    f"{prefix}.{name}" for prefix, names in _QUANTITIES_BELOW.items() for name in names.split()
)
ALLOWED_PROPERTIES: frozenset[str] = _QUANTITIES | KNOWN_VALUE_PROPERTIES
"""Properties of sizing and behaviour; none names a place, a person or a secret."""

_QUANTITY = re.compile(
    r"(?:true|false|-?\d{1,19}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,2})? ?"
    r"(?:[kmgtp]?b?|[kmgtp]ib?|us|ms|s|min|h|d|(?:second|minute|hour|day)s?)?)",
    re.IGNORECASE,
)


def allowed_properties(properties: Mapping[str, str | None]) -> dict[str, str]:
    """Those that are allowed and whose value has the expected form: a number, size, duration or
    flag, or a word or class that Spark knows.

    >>> allowed_properties({"spark.executor.memory": "8g", "spark.executor.cores": "hunter2",
    ...                     "spark.hadoop.fs.s3a.secret.key": "wJalr"})
    {'spark.executor.memory': '8g'}
    """
    return {
        key: value.strip()
        for key, value in properties.items()
        if value is not None and is_allowed(key) and _is_of_its_kind(key, value.strip())
    }


def is_allowed(key: str) -> bool:
    """Whether a property may leave a log: one that is known, or the amount of any resource.

    >>> is_allowed("spark.task.resource.npu.amount"), is_allowed("spark.npu.secret")
    (True, False)
    """
    return key in ALLOWED_PROPERTIES or (is_resource_key(key) and redact(key) == key)


def _is_of_its_kind(key: str, value: str) -> bool:
    if key in KNOWN_VALUE_PROPERTIES:
        return is_known_value(key, value) and redact(value) == value
    return _QUANTITY.fullmatch(value) is not None


_UNKNOWN = "unknown"
_TYPE = re.compile(r"[A-Za-z_][\w.$]{0,199}", re.ASCII)
_ADDRESS = re.compile(r"@[0-9a-f]{1,16}$")
# What a recorder wrote has been described before.
_DESCRIBED = re.compile(r"[A-Za-z_]\w{0,99}\[#[0-9a-f]{8}\]", re.ASCII)
_KAFKA = re.compile(r"(Subscribe|SubscribePattern|Assign)\[(.{1,400})\]")
_TOPICS = re.compile(r"[A-Za-z0-9._-]{1,249}(?:, ?[A-Za-z0-9._-]{1,249})*+")
_TOPIC_PATTERN = re.compile(r"[A-Za-z0-9._*+?|()\[\]{}^$\\-]+")
_RATE_OPTIONS = re.compile(r"\w{1,40}=(?:\d{1,18}|default)(?:, \w{1,40}=(?:\d{1,18}|default))*+")


def describe_source(description: str | None) -> str:
    """A source or sink as a profile may name it: its type, and harmless arguments.

    Topics of Kafka and numbers of the rate source are kept. Anything else in brackets, mostly a
    path or a host, is replaced by a short digest without login, so that different paths stay
    different. Package and object address of a class are dropped.

    >>> describe_source("KafkaV2[Subscribe[orders]]")
    'KafkaV2[Subscribe[orders]]'
    >>> describe_source("FileStreamSource[s3a://key:secret@bucket/orders]")
    'FileStreamSource[#83457fe3]'
    >>> describe_source("org.apache.spark.sql.execution.streaming.ConsoleTable$@514ba885")
    'ConsoleTable'
    """
    text = _ADDRESS.sub("", printable(description or "").strip())
    if not text:
        return _UNKNOWN
    if _DESCRIBED.fullmatch(text):
        return text
    type_match = _TYPE.match(text)
    name = redact(type_match[0].rstrip(".$").rsplit(".", 1)[-1]) if type_match else _UNKNOWN
    tail = text[type_match.end() :].strip() if type_match else text
    if not tail:
        return name
    arguments = tail.removeprefix("[").removesuffix("]") if tail.startswith("[") else tail
    return f"{name}[{_arguments(name, arguments, tail)}]"


def _arguments(name: str, arguments: str, digested: str) -> str:
    kafka = _KAFKA.fullmatch(arguments) if name.startswith("Kafka") else None
    if kafka and _TOPICS.fullmatch(kafka[2]):
        topics = [redact(topic.strip()) for topic in kafka[2].split(",")]
        return f"{kafka[1]}[{','.join(topics)}]"
    if kafka and _TOPIC_PATTERN.fullmatch(kafka[2]) and redact(kafka[2]) == kafka[2]:
        return f"{kafka[1]}[{kafka[2]}]"
    if name.startswith("Rate") and _RATE_OPTIONS.fullmatch(arguments):
        return arguments
    digest_input = without_logins(digested).encode("utf-8", "replace")
    # Few logs have anything to digest, and OpenSSL takes long to load.
    import hashlib

    return "#" + hashlib.sha256(digest_input).hexdigest()[:8]


_redacted = lru_cache(maxsize=4096)(redact)
_described = lru_cache(maxsize=4096)(describe_source)


def name_of(text: str | None) -> str | None:
    """A name that an application or its cluster chose, as it may be shown; most occur very often.

    >>> name_of("jdbc:postgresql://db?password=hunter2")
    'jdbc:postgresql://db?password=***'
    """
    return text if text is None else _redacted(text)


def description_of(text: str | None) -> str | None:
    """As `describe_source`; None if there is none."""
    return text if text is None else _described(text)
