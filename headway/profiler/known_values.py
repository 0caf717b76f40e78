"""Values known to Spark: for properties with few values, only these may leave a log.

Text that looks like the name of a class, a codec or a version may be anything that somebody pasted
into the wrong line.
"""

from __future__ import annotations

import re

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
# By the first number of the runtime: https://docs.databricks.com/release-notes/runtime/
_SPARK_OF_RUNTIME = {
    7: "3.0",
    8: "3.1",
    9: "3.1",
    10: "3.2",
    11: "3.3",
    12: "3.3",
    13: "3.4",
    14: "3.5",
    15: "3.5",
    16: "3.5",
    17: "4.0",
}
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
    return value in words or value.casefold() in {
        word.casefold() for word in words if "." not in word
    }


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
