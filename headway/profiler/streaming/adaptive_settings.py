"""Settings of adaptive execution that decide how many tasks a stage has."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headway.assumptions.resources import ADVISORY_PARTITION_BYTES, LEAST_PARTITION_BYTES
from headway.domain import Coalescing
from headway.domain.configuration import TaskCores
from headway.domain.profile import spark_release
from headway.errors import InputError
from headway.limits import MOST_LONG, MOST_PARTITIONS
from headway.units import parse_size_bytes

_PREFIX = "spark.sql.adaptive."
# The least size of a task is one of its settings since then.
_SINCE_LEAST_SIZE = (3, 2)
_LEAST_BEFORE_BYTES = 16


def adaptive_settings(
    properties: Mapping[str, str], spark_version: str | None, task_cpus: TaskCores = 1
) -> Coalescing | None:
    """How an application coalesces the partitions of a stage, which has no bytes per row yet.

    None if its settings switch that off.

    >>> adaptive_settings({"spark.default.parallelism": "8"}, "4.1.0").parallelism
    8
    >>> adaptive_settings({"spark.sql.adaptive.coalescePartitions.enabled": "false"}, "4.1.0")
    """

    def stated(name: str) -> str | None:
        return properties.get(_PREFIX + name)

    for name in ("enabled", "coalescePartitions.enabled"):
        if (stated(name) or "").lower() == "false":
            return None
    parallelism = count_of(stated("coalescePartitions.minPartitionNum"))
    if parallelism is None:
        aims_high = (stated("coalescePartitions.parallelismFirst") or "true").lower() != "false"
        parallelism = count_of(properties.get("spark.default.parallelism")) if aims_high else 1
    release = spark_release(spark_version or "")
    least_bytes = LEAST_PARTITION_BYTES.value
    if release is not None and release < _SINCE_LEAST_SIZE:
        least_bytes = _LEAST_BEFORE_BYTES
    advisory_bytes = size_bytes_of(stated("advisoryPartitionSizeInBytes"))
    smallest_bytes = size_bytes_of(stated("coalescePartitions.minPartitionSize"))
    initial_partitions = count_of(stated("coalescePartitions.initialPartitionNum"))
    if initial_partitions is not None and initial_partitions > MOST_PARTITIONS:
        initial_partitions = None
    return Coalescing(
        exchange_bytes_per_row=0.0,
        advisory_bytes=advisory_bytes or ADVISORY_PARTITION_BYTES.value,
        smallest_bytes=smallest_bytes or least_bytes,
        parallelism=parallelism,
        task_cpus=task_cpus,
        initial_partitions=initial_partitions,
    )


def count_of(text: str | None) -> int | None:
    """A whole number above 0; None for anything else."""
    return int(text) if text and re.fullmatch(r"[1-9]\d{0,8}", text.strip(), re.ASCII) else None


def size_bytes_of(text: str | None) -> int | None:
    """A size as Spark reads it here: a bare number is bytes; None for anything else."""
    if text is None:
        return None
    try:
        size_bytes = int(text) if text.strip().isdecimal() else parse_size_bytes(text)
    except InputError:
        return None
    return size_bytes if 0 < size_bytes <= MOST_LONG else None


def setting_size_text(size_bytes: int) -> str:
    """In the unit in which Spark's settings are given: k or m."""
    return f"{size_bytes / 2**10:.4g}k" if size_bytes < 2**20 else f"{size_bytes / 2**20:.4g}m"
