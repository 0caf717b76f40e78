"""Data that may enter the profiler: allowed properties, harmless descriptions, redacted text.

An event log contains every property, path and message of an application, including secrets. The
events of :mod:`headway.profiler.schema` call this as they are decoded, so no output can forget it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from headway.redaction import printable, redact, without_logins
from headway.sparkconf import is_resource_key

# Values known to Spark: of properties with few values, only these may leave a log.
_CODECS = frozenset({"lz4", "lzf", "snappy", "zstd"})
_CODEC_CLASSES = frozenset(
    f"org.apache.spark.io.{name}CompressionCodec" for name in ("LZ4", "LZF", "Snappy", "ZStd")
)
_ROCKSDB_CODECS = frozenset({"bzip2", "lz4", "lz4hc", "none", "snappy", "xpress", "zlib", "zstd"})
_WORDS: dict[str, frozenset[str]] = {
    "spark.eventLog.compression.codec": _CODECS | _CODEC_CLASSES,
    "spark.io.compression.codec": _CODECS | _CODEC_CLASSES,
    "spark.scheduler.mode": frozenset({"FAIR", "FIFO", "NONE"}),
    "spark.serializer": frozenset(
        f"org.apache.spark.serializer.{name}Serializer" for name in ("Java", "Kryo")
    ),
    "spark.sql.streaming.multipleWatermarkPolicy": frozenset({"max", "min"}),
    "spark.sql.streaming.stateStore.compression.codec": _CODECS | _CODEC_CLASSES,
    "spark.sql.streaming.stateStore.encodingFormat": frozenset({"avro", "unsaferow"}),
    "spark.sql.streaming.stateStore.rocksdb.compression": _ROCKSDB_CODECS,
    "spark.submit.deployMode": frozenset({"client", "cluster"}),
}
# Some have their own; only such classes end in this way.
_CLASSES = {
    "spark.sql.streaming.checkpointFileManagerClass": "CheckpointFileManager",
    "spark.sql.streaming.stateStore.providerClass": "StateStoreProvider",
}
_CLASS = re.compile(r"(?:[a-z][a-z0-9_]{0,30}\.){1,12}[A-Z][A-Za-z0-9]{0,80}")
DATABRICKS_RUNTIME = "spark.databricks.clusterUsageTags.sparkVersion"
_RUNTIME = re.compile(
    r"(\d{1,2})\.\d{1,2}\.x(?:-(?:aarch64|cpu|gpu|hls|ml|photon|snapshot|scala2\.1[1-3])){0,5}"
)
# By the first number of the runtime, from 7: https://docs.databricks.com/release-notes/runtime/
_SPARK_OF_RUNTIME = dict(
    enumerate(("3.0", "3.1", "3.1", "3.2", "3.3", "3.3", "3.4", "3.5", "3.5", "3.5", "4.0"), 7)
)
KNOWN_VALUE_PROPERTIES: frozenset[str] = frozenset({*_WORDS, *_CLASSES, DATABRICKS_RUNTIME})
"""Properties whose values are words or classes that Spark knows."""

# Numbers, and suffixes used by Spark, Java and vendors.
_VERSION = re.compile(
    r"\d{1,4}(?:[._]\d{1,5}){0,5}"
    r"(?:[-.+_](?:\d{1,5}|(?:alpha|amzn|beta|b|build|cdh|cdp|cloudera|databricks|dbr|ea|emr|ga|gpu"
    r"|hadoop|hdp|ibm|internal|jre|jvmci|lts|mapr|microsoft|openjdk|photon|preview|rc|scala|snapshot"
    r"|u|x)\d{0,4})(?![A-Za-z0-9])){0,8}(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_VENDORS = frozenset(
    (
        *("AdoptOpenJDK", "Alibaba", "Alpine", "Amazon.com Inc.", "Apple Inc.", "Arch Linux"),
        *("Azul Systems, Inc.", "BellSoft", "Debian", "Eclipse Adoptium", "Eclipse Foundation"),
        *("Eclipse OpenJ9", "Fedora Project", "GraalVM Community", "Homebrew", "IBM Corporation"),
        *("International Business Machines Corporation", "JetBrains s.r.o.", "Microsoft", "N/A"),
        *("Oracle Corporation", "Private Build", "Raspbian", "Red Hat, Inc.", "Rocky Linux"),
        *("SAP SE", "Sun Microsystems Inc.", "Temurin", "Tencent", "Ubuntu"),
    )
)


def is_known_value(key: str, value: str) -> bool:
    """Whether Spark knows the value of the property, one of :data:`KNOWN_VALUE_PROPERTIES`.

    >>> is_known_value("spark.io.compression.codec", "LZ4")
    True
    >>> is_known_value("spark.serializer", "com.hunter2.TopSecret")
    False
    """
    if key == DATABRICKS_RUNTIME:
        return _RUNTIME.fullmatch(value) is not None
    if key in _CLASSES:
        return value.endswith(_CLASSES[key]) and _CLASS.fullmatch(value) is not None
    words = _WORDS[key]
    folded = {word.casefold() for word in words if "." not in word}
    return value in words or value.casefold() in folded


def spark_of_runtime(runtime: str | None) -> str | None:
    """The Spark version of a Databricks runtime; None if it is not known.

    >>> spark_of_runtime("13.3.x-photon-scala2.12"), spark_of_runtime("99.1.x-scala2.13")
    ('3.4', None)
    """
    runtime_match = _RUNTIME.fullmatch(runtime or "")
    return _SPARK_OF_RUNTIME.get(int(runtime_match[1])) if runtime_match else None


def known_version(text: str | None) -> str | None:
    """The part of a Spark or Java version that is certainly a version; None if there is none.

    >>> known_version("3.3.0-amzn-0"), known_version("17.0.12 (Eclipse Adoptium)")
    ('3.3.0-amzn-0', '17.0.12 (Eclipse Adoptium)')
    >>> known_version("17.0.12 (hunter2)"), known_version("com.hunter2.TopSecret")
    ('17.0.12', None)
    """
    version_match = _VERSION.match((text or "").strip())
    if version_match is None:
        return None
    vendor = (text or "").strip()[version_match.end() :].strip()
    is_vendor_known = vendor[1:-1] in _VENDORS and vendor == f"({vendor[1:-1]})"
    return f"{version_match[0]} {vendor}" if is_vendor_known else version_match[0]


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
