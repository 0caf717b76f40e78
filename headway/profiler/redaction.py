"""Data that may leave the profiler: allowed properties, harmless descriptions, redacted text.

An event log contains every property, path and message of an application, including secrets. A
property is passed on only if its name is allowed and its value has the expected form; text that
must be shown is searched for the shapes of credentials.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import unicodedata
from collections.abc import Mapping

from headway.profiler.known_values import KNOWN_VALUE_PROPERTIES, is_known_value

HIDDEN = "***"


def _keys(prefix: str, names: str) -> frozenset[str]:
    return frozenset(f"{prefix}.{name}" for name in names.split())


_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"
_QUANTITIES = (
    _keys(
        "spark",
        """cores.max default.parallelism task.cpus task.maxFailures
        locality.wait locality.wait.process locality.wait.node locality.wait.rack
        speculation network.timeout rdd.compress rpc.message.maxSize python.worker.reuse
        checkpoint.compress broadcast.blockSize io.compression.zstd.level
        io.compression.lz4.blockSize storage.memoryFraction shuffle.memoryFraction""",
    )
    | _keys("spark.driver", "cores memory memoryOverhead memoryOverheadFactor maxResultSize")
    | _keys(
        "spark.executor",
        """cores instances memory memoryOverhead memoryOverheadFactor minMemoryOverhead
        pyspark.memory heartbeatInterval""",
    )
    | _keys("spark.memory", "fraction storageFraction offHeap.enabled offHeap.size")
    | _keys(
        "spark.dynamicAllocation",
        """enabled minExecutors maxExecutors initialExecutors executorIdleTimeout
        cachedExecutorIdleTimeout schedulerBacklogTimeout sustainedSchedulerBacklogTimeout
        executorAllocationRatio shuffleTracking.enabled shuffleTracking.timeout""",
    )
    | _keys(
        "spark.speculation", "interval multiplier quantile minTaskRuntime task.duration.threshold"
    )
    | _keys(
        "spark.scheduler",
        "minRegisteredResourcesRatio maxRegisteredResourcesWaitingTime revive.interval",
    )
    | _keys(
        "spark.shuffle",
        """compress spill.compress file.buffer sort.bypassMergeThreshold service.enabled
        io.numConnectionsPerPeer io.maxRetries push.enabled""",
    )
    | _keys("spark.reducer", "maxSizeInFlight maxReqsInFlight maxBlocksInFlightPerAddress")
    | _keys(
        "spark.eventLog",
        """enabled compress rolling.enabled rolling.maxFileSize logBlockUpdates.enabled overwrite
        logStageExecutorMetrics buffer.kb includeTaskMetricsAccumulators""",
    )
    | _keys("spark.kryoserializer", "buffer buffer.max")
    | _keys(
        "spark.streaming",
        """concurrentJobs blockInterval backpressure.enabled backpressure.initialRate
        receiver.maxRate kafka.maxRatePerPartition""",
    )
    | _keys("spark.kubernetes", "memoryOverheadFactor allocation.batch.size allocation.batch.delay")
    | _keys(
        "spark.kubernetes",
        "executor.request.cores executor.limit.cores driver.request.cores driver.limit.cores",
    )
    | _keys("spark.yarn", "executor.memoryOverhead driver.memoryOverhead am.cores am.memory")
    | _keys(
        "spark.sql",
        """shuffle.partitions autoBroadcastJoinThreshold broadcastTimeout
        join.preferSortMergeJoin files.maxPartitionBytes files.openCostInBytes
        files.minPartitionNum files.maxPartitionNum ansi.enabled codegen.wholeStage
        inMemoryColumnarStorage.batchSize inMemoryColumnarStorage.compressed
        execution.pythonUDF.arrow.enabled cbo.enabled ui.retainedExecutions""",
    )
    | _keys(
        "spark.sql.execution.arrow",
        """enabled pyspark.enabled maxRecordsPerBatch maxBytesPerBatch
        pyspark.fallback.enabled pyspark.selfDestruct.enabled""",
    )
    | _keys(
        "spark.sql.adaptive",
        """enabled forceApply localShuffleReader.enabled advisoryPartitionSizeInBytes
        nonEmptyPartitionRatioForBroadcastJoin autoBroadcastJoinThreshold
        maxShuffledHashJoinLocalMapThreshold optimizeSkewsInRebalancePartitions.enabled
        rebalancePartitionsSmallPartitionFactor forceOptimizeSkewedJoin
        coalescePartitions.enabled coalescePartitions.parallelismFirst
        coalescePartitions.minPartitionSize coalescePartitions.minPartitionNum
        coalescePartitions.initialPartitionNum
        skewJoin.enabled skewJoin.skewedPartitionFactor
        skewJoin.skewedPartitionThresholdInBytes streaming.stateless.enabled""",
    )
    | _keys(
        "spark.sql.streaming",
        """noDataMicroBatches.enabled pollingDelay metricsEnabled numRecentProgressUpdates
        noDataProgressEventInterval minBatchesToRetain maxBatchesToRetainInMemory
        stopActiveRunOnRestart stopTimeout statefulOperator.allowMultiple
        statefulOperator.useStrictDistribution sessionWindow.merge.sessions.in.local.partition
        aggregation.stateFormatVersion join.stateFormatVersion
        flatMapGroupsWithState.stateFormatVersion fileSource.cleaner.numThreads
        stateStore.minDeltasForSnapshot stateStore.maintenanceInterval
        stateStore.numStateStoreMaintenanceThreads stateStore.checkpointFormatVersion
        stateStore.rowChecksum.enabled stateStore.unloadOnCommit internal.stateStore.partitions
        asyncLogPurge.enabled offsetLog.formatVersion realTimeMode.minBatchDuration
        checkpoint.fileChecksum.enabled fileSource.log.compactInterval
        stateStore.formatValidation.enabled stateStore.skipNullsForStreamStreamJoins.enabled""",
    )
    | _keys(
        _ROCKSDB,
        """changelogCheckpointing.enabled compactOnCommit blockSizeKB blockCacheSizeMB
        lockAcquireTimeoutMs resetStatsOnLoad trackTotalNumberOfRows writeBufferSizeMB
        maxWriteBufferNumber boundedMemoryUsage maxMemoryUsageMB writeBufferCacheRatio
        highPriorityPoolRatio allowFAllocate maxOpenFiles formatVersion""",
    )
)
ALLOWED_PROPERTIES: frozenset[str] = _QUANTITIES | KNOWN_VALUE_PROPERTIES
"""Properties of sizing and behaviour; none names a place, a person or a secret."""

_QUANTITY = re.compile(
    r"(?:true|false|-?\d{1,19}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,2})? ?"
    r"(?:[kmgtp]?b?|[kmgtp]ib?|us|ms|s|min|h|d|(?:second|minute|hour|day)s?)?)",
    re.IGNORECASE,
)


def allowed_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Those of :data:`ALLOWED_PROPERTIES` whose value has the expected form: a number, size,
    duration or flag, or a word or class that Spark knows.

    >>> allowed_properties({"spark.executor.memory": "8g", "spark.executor.cores": "hunter2",
    ...                     "spark.hadoop.fs.s3a.secret.key": "wJalr"})
    {'spark.executor.memory': '8g'}
    """
    return {
        key: value.strip()
        for key, value in properties.items()
        if key in ALLOWED_PROPERTIES and _is_of_its_kind(key, value.strip())
    }


def _is_of_its_kind(key: str, value: str) -> bool:
    if key in _QUANTITIES:
        return _QUANTITY.fullmatch(value) is not None
    return is_known_value(key, value) and redact(value) == value


_UNKNOWN = "unknown"
_TYPE = re.compile(r"[A-Za-z_][\w.$]{0,199}", re.ASCII)
_ADDRESS = re.compile(r"@[0-9a-f]{1,16}$")
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
    text = _ADDRESS.sub("", _harmless(description or "").strip())
    if not text:
        return _UNKNOWN
    found = _TYPE.match(text)
    name = redact(found[0].rstrip(".$").rsplit(".", 1)[-1]) if found else _UNKNOWN
    rest = text[found.end() :].strip() if found else text
    if not rest:
        return name
    arguments = rest.removeprefix("[").removesuffix("]") if rest.startswith("[") else rest
    return f"{name}[{_arguments(name, arguments, rest)}]"


def _arguments(name: str, arguments: str, digested: str) -> str:
    kafka = _KAFKA.fullmatch(arguments) if name.startswith("Kafka") else None
    if kafka and _TOPICS.fullmatch(kafka[2]):
        topics = [redact(topic.strip()) for topic in kafka[2].split(",")]
        return f"{kafka[1]}[{','.join(topics)}]"
    if kafka and _TOPIC_PATTERN.fullmatch(kafka[2]) and redact(kafka[2]) == kafka[2]:
        return f"{kafka[1]}[{kafka[2]}]"
    if name.startswith("Rate") and _RATE_OPTIONS.fullmatch(arguments):
        return arguments
    place = _without_logins(digested).encode("utf-8", "replace")
    return "#" + hashlib.sha256(place).hexdigest()[:8]


# Free text. Every expression is bounded or possessive, so the time is linear in the text.

_LONGEST = 200
_KEY_NAME = (
    r"(?:(?:pass(?:word|wd|phrase|code)|secret|token|credential|signature|bearer|authorization"
    r"|(?:api|access|account|private|secret|encryption|master|signing|storage|shared)[_.\- ]?key)"
    r"[\w.\-]{0,128}+"
    r"|(?<![A-Za-z])(?:pwd|pass|auth|sas|sig|creds?)(?![A-Za-z]))"
)
_SCHEME = r"(?:(?:bearer|basic|digest|negotiate|token|apikey)\s{1,4}+)?"
_VALUE = _SCHEME + r"""(?:"(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|\S++)"""
_KEY_VALUE = re.compile(
    rf"""({_KEY_NAME}["'\]]{{0,2}}+\s{{0,4}}+(?:=>|[=:>])\s{{0,4}}+){_VALUE}""", re.IGNORECASE
)
_OPTION = re.compile(
    rf"((?<![\w-])--?[\w-]{{0,32}}?{_KEY_NAME}\s{{1,4}}+)(?!\*\*\*)\S++", re.IGNORECASE
)
_BEARER = re.compile(r"(\bbearer\s{1,4}+)(?=\S{0,64}?[\d._~+/-])\S++", re.IGNORECASE)
_QUERY_VALUE = re.compile(r"([?&][\w.~%\-]{1,64}+=)[^\s&#\"'<>]++")
_ORACLE_LOGIN = re.compile(r"(jdbc:oracle:\w{1,10}:)[^\s@]{1,256}@")
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{1,60}-----.*?(?:-----END [A-Z0-9 ]{1,60}-----|\Z)")
_WELL_KNOWN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA|AGPA|ANPA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS
    r"|gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_\w{20,}+"
    r"|glpat-[\w-]{16,}+"  # GitLab
    r"|xox[a-z]-[\w-]{10,}+|xapp-[\w-]{10,}+"  # Slack
    r"|AIza[\w-]{30,}+|ya29\.[\w-]{16,}+|GOCSPX-[\w-]{16,}+"  # Google
    r"|dapi[0-9a-f]{32}(?:-\d)?"  # Databricks
    r"|(?:sk|rk)_(?:live|test)_\w{16,}+|sk-[\w-]{20,}+|hf_[A-Za-z0-9]{20,}+|npm_[A-Za-z0-9]{20,}+"
    r"|SG\.[\w-]{16,}+\.[\w-]{16,}+"
    r"|[A-Za-z0-9+/]{86}=="  # an Azure account key
    r")"
)
_JWT = re.compile(r"(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{4,}+(?:\.[\w-]*+)?")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_HEX = re.compile(r"(?<![A-Za-z0-9])(?<!spark-)[0-9a-fA-F]{32,}+(?![A-Za-z0-9])")
_RUN = re.compile(r"[A-Za-z0-9+/_\-]{32,}+={0,2}")
_LEAST_RUN = 32
_LEAST_HEX_DIGITS = 8
# In a key, small letters, capitals and digits are mixed at random: most neighbours are of different
# kinds, and a sixth are digits. In names, even in CamelCase, this is rare.
_LEAST_CHANGES_RATIO = 0.4
_LEAST_DIGITS = 2


def redact(text: str, *, longest: int = _LONGEST) -> str:
    """Text without apparent credentials, on one line and cut at ``longest`` characters.

    ``***`` replaces logins in URLs, values of query strings, values after names that suggest a
    credential, well-known shapes of tokens and keys, and long runs that look random. Control and
    invisible characters become spaces.

    Notes
    -----
    This finds shapes, not secrets. It does not detect a password that is an ordinary word in an
    ordinary place or consists of several words, nor a key of fewer than 32 characters without a
    name before it, nor names of hosts, buckets, people and tables. Data that must not be passed on
    needs an allow-list, such as :func:`allowed_properties`.

    >>> redact("cannot read s3a://AKIA:s3cr3t@bucket/orders: password=hunter2 rejected")
    'cannot read s3a://***@bucket/orders: password=*** rejected'
    >>> redact("application_1578436911597_0052")
    'application_1578436911597_0052'
    """
    if longest < 1:
        raise ValueError(f"longest is {longest}; expected at least 1")
    shown = _harmless(text)
    shown = _PEM.sub(HIDDEN, shown)
    shown = _without_logins(shown)
    for named in (_QUERY_VALUE, _KEY_VALUE, _OPTION, _BEARER):
        shown = named.sub(rf"\1{HIDDEN}", shown)
    for shape in (_JWT, _WELL_KNOWN):
        shown = shape.sub(HIDDEN, shown)
    shown = _HEX.sub(lambda found: _hidden_if(_is_random_hex(found[0]), found[0]), shown)
    shown = _RUN.sub(lambda found: _hidden_if(_is_random(found[0]), found[0]), shown)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _harmless(text: str) -> str:
    """Text without characters that move the cursor, are invisible, or change the text direction."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text)


def _without_logins(text: str) -> str:
    text = _ORACLE_LOGIN.sub(rf"\1{HIDDEN}@", text)
    return re.sub(r"\S++", lambda word: _without_login(word[0]), text) if "@" in text else text


def _without_login(word: str) -> str:
    """A word without the part between ``://`` and the last ``@``, if that can be a login."""
    scheme, slashes, rest = word.partition("://")
    _, at, place = rest.rpartition("@")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    # A secret may contain a slash; then everything up to the last @ is taken as the login.
    is_host = "@" not in authority and re.fullmatch(r"[^:]*+(?::\d{1,5})?", authority)
    if not slashes or not at or is_host:
        return word
    return f"{scheme}://{HIDDEN}@{place}"


def _hidden_if(is_secret: bool, text: str) -> str:
    return HIDDEN if is_secret else text


def _is_random_hex(text: str) -> bool:
    return len(set(text)) >= _LEAST_HEX_DIGITS


def _is_random(run: str) -> bool:
    """Whether a long run, or a part of it between slashes, looks drawn at random."""
    rest = _UUID.sub("", run)
    return any(
        len(part) >= _LEAST_RUN
        and sum(map(str.isdigit, part)) >= _LEAST_DIGITS
        and _changes_ratio(part) >= _LEAST_CHANGES_RATIO
        for part in (rest, *rest.split("/"))
    )


def _changes_ratio(text: str) -> float:
    kinds = [_kind(character) for character in text]
    changes = sum(a != b for a, b in itertools.pairwise(kinds) if a and b)
    return changes / len(text)


def _kind(character: str) -> str:
    if character.isdigit():
        return "0"
    if character.isalpha():
        return "A" if character.isupper() else "a"
    return ""
