"""What configures DStreams: the keys of ``spark.streaming`` that Headway reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class StreamingKeys(NamedTuple):
    """Keys of Spark's configuration, by what they set."""

    jobs: str = "spark.streaming.concurrentJobs"
    """Output operations that run at the same time; 1 by default, and not documented."""
    block: str = "spark.streaming.blockInterval"
    """What receivers collect into one task."""
    backpressure: str = "spark.streaming.backpressure.enabled"
    receiver_rate: str = "spark.streaming.receiver.maxRate"
    """Most rows a second of each receiver."""
    partition_rate: str = "spark.streaming.kafka.maxRatePerPartition"
    """Most rows a second of each partition of a direct Kafka stream."""


STREAMING = StreamingKeys()


def streaming_number(properties: Mapping[str, str], key: str) -> int | None:
    """A positive whole number that an application set; None where it set none.

    Examples
    --------
    >>> streaming_number({"spark.streaming.concurrentJobs": "2"}, STREAMING.jobs)
    2
    >>> streaming_number({}, STREAMING.jobs) is None
    True
    """
    stated = properties.get(key, "")
    return int(stated) if stated.isdecimal() and int(stated) > 0 else None
