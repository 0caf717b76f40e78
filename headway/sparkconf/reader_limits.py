"""How each kind of source limits the size of a batch: the option of its reader.

Only few sources count rows. A source silently ignores an option that it does not know and reads
without limit, so an option is only given for sources that are known to have it. Sources are
distinguished by their description in a query's progress.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from headway.lazy_classes import dataclass


class Counts(StrEnum):
    """What a reader's limit counts."""

    ROWS = "rows"
    ROWS_PER_PARTITION = "rows of each source partition"
    FILES = "files"
    BYTES = "bytes of files"
    NO_ROWS = "no rows"

    @property
    def of_files(self) -> bool:
        """Whether the source reads files, and takes whole ones."""
        return self in (Counts.FILES, Counts.BYTES)


@dataclass(frozen=True, slots=True)
class ReaderLimit:
    """The limit of one kind of source.

    ``key`` is the reader's option, None if rows cannot be limited; ``why_none`` says why they
    cannot, or not without recorded file sizes, and what can be done instead. ``source`` is the name
    of a source that has a limit.
    """

    counts: Counts
    source: str = ""
    key: str | None = None
    why_none: str = ""


#: What Kafka's reader takes, and what stands for the rate limit where no source is spoken of.
KAFKA = ReaderLimit(Counts.ROWS, "Kafka", "maxOffsetsPerTrigger")


#: Kafka's minimum of tasks: partitions of a topic that has fewer are split.
MIN_PARTITIONS_KEY = "minPartitions"


def _none(why_none: str) -> ReaderLimit:
    return ReaderLimit(Counts.NO_ROWS, why_none=why_none)


def _files(counts: Counts, source: str, key: str, alternatives: str) -> ReaderLimit:
    why = (
        f"{source} limits files or bytes, not rows, and the size of its files is not recorded: "
        f"set {key}{alternatives} to what contains so many rows"
    )
    return ReaderLimit(counts, source, key, why)


# By the class that a source calls itself, first match first. Read in the sources' own
# documentation and, of Spark's, in the classes of Spark 4.3.
_KINDS: Mapping[str, ReaderLimit] = {
    r"Kafka": KAFKA,
    r"EventHubs": ReaderLimit(Counts.ROWS, "Event Hubs", "maxEventsPerTrigger"),
    r"SparkMicroBatchStream": ReaderLimit(
        Counts.ROWS, "Iceberg", "streaming-max-rows-per-micro-batch"
    ),
    r"clock\b|ClockSource": ReaderLimit(Counts.ROWS, "the clock source", "maxRowsPerTrigger"),
    r"KinesisV2Micro[Bb]atch": ReaderLimit(
        Counts.ROWS_PER_PARTITION, "Kinesis", "kinesis.maxFetchRecordsPerShard"
    ),
    r"KinesisSource": ReaderLimit(
        Counts.ROWS_PER_PARTITION, "Kinesis", "kinesis.executor.maxFetchRecordsPerShard"
    ),
    r"Kinesis": _none(
        "this source of Kinesis fetches ahead of the query, and has no limit of rows per batch"
    ),
    r"CloudFiles": _files(
        Counts.BYTES,
        "Auto Loader",
        "cloudFiles.maxBytesPerTrigger",
        " or cloudFiles.maxFilesPerTrigger",
    ),
    r"Delta": _files(Counts.BYTES, "Delta", "maxBytesPerTrigger", " or maxFilesPerTrigger"),
    r"FileStream": _files(
        Counts.FILES,
        "the file source",
        "maxFilesPerTrigger",
        ", or from Spark 4.0 on maxBytesPerTrigger",
    ),
    r"RatePerMicroBatch": _none(
        "the source rate-micro-batch makes rowsPerBatch rows for each batch: there is never a "
        "backlog that a limit could hold back"
    ),
    r"Rate": _none(
        "the rate source has no limit: its rowsPerSecond determines what arrives, and after a "
        "pause one batch takes all of it"
    ),
    r"TextSocket": _none("the socket source has no limit"),
    r"Memory": _none("the memory source has no limit"),
    r"declared$": _none(
        "the source was not declared; for Kafka the option is maxOffsetsPerTrigger"
    ),
}

#: Every option of a reader that can carry a rate limit.
READER_LIMIT_KEYS: tuple[str, ...] = tuple(
    dict.fromkeys(limit.key for limit in _KINDS.values() if limit.key is not None)
)


def reader_limit(description: str) -> ReaderLimit:
    """The limit that a source supports, by its description in a query's progress.

    >>> reader_limit("KafkaV2[Subscribe[orders]]").key
    'maxOffsetsPerTrigger'
    >>> reader_limit("FileStreamSource[file:/data/in]").key
    'maxFilesPerTrigger'
    >>> reader_limit("MyStream").why_none
    'no option of MyStream is known that limits the rows of a batch'
    """
    class_name = re.split(r"[\[@:]", description)[0].strip().rsplit(".", 1)[-1]
    for pattern, limit in _KINDS.items():
        if re.match(pattern, class_name):
            return limit
    source = class_name if class_name.isidentifier() else "this source"
    return _none(f"no option of {source} is known that limits the rows of a batch")


#: Output operations that run at the same time; 1 by default, and not documented.
CONCURRENT_JOBS_KEY = "spark.streaming.concurrentJobs"
#: What receivers collect into one task.
BLOCK_KEY = "spark.streaming.blockInterval"
BACKPRESSURE_KEY = "spark.streaming.backpressure.enabled"
#: Most rows a second of each receiver, and of each partition of a direct Kafka stream.
RECEIVER_RATE_KEY = "spark.streaming.receiver.maxRate"
PARTITION_RATE_KEY = "spark.streaming.kafka.maxRatePerPartition"
STREAMING_KEYS = (
    *(CONCURRENT_JOBS_KEY, BLOCK_KEY, BACKPRESSURE_KEY),
    *(RECEIVER_RATE_KEY, PARTITION_RATE_KEY),
)


def concurrent_jobs_of(properties: Mapping[str, str]) -> int:
    """Output operations of a DStreams application that run at the same time.

    >>> concurrent_jobs_of({"spark.streaming.concurrentJobs": "2"}), concurrent_jobs_of({})
    (2, 1)
    """
    stated = properties.get(CONCURRENT_JOBS_KEY, "")
    return int(stated) if stated.isdecimal() and int(stated) > 0 else 1
