"""Spark's settings for the memory of state stores in RocksDB."""

from __future__ import annotations

from collections.abc import Mapping

from headway.assumptions.resources import (
    ROCKSDB_BOUND_BYTES,
    ROCKSDB_CACHE_BYTES,
    ROCKSDB_WRITE_BUFFER_RATIO,
)
from headway.domain import RocksDbMemory
from headway.units import parse_size_bytes

_PREFIX = "spark.sql.streaming.stateStore.rocksdb"
_MIB = parse_size_bytes("1m")

#: Whether all stores of an executor share one bound.
BOUNDED_KEY = f"{_PREFIX}.boundedMemoryUsage"
#: That bound, in MiB.
BOUND_KEY = f"{_PREFIX}.maxMemoryUsageMB"
#: The share of it for write buffers.
WRITE_BUFFER_KEY = f"{_PREFIX}.writeBufferCacheRatio"
#: The share of it for indexes and filters, which stay longer than other blocks.
HIGH_PRIORITY_KEY = f"{_PREFIX}.highPriorityPoolRatio"
#: The memory of each store for blocks if there is no bound, in MiB.
CACHE_KEY = f"{_PREFIX}.blockCacheSizeMB"


def rocksdb_conf(memory: RocksDbMemory) -> dict[str, str]:
    """The settings of a bound: what counts with it, so that the size of a cache is not set.

    >>> memory = RocksDbMemory(
    ...     bound_bytes=64 * 2**20, write_buffer_ratio=0.5, high_priority_ratio=0.1,
    ...     native_bytes=80 * 2**20, hit_ratio=0.9,
    ... )
    >>> rocksdb_conf(memory)[BOUND_KEY], rocksdb_conf(memory)[WRITE_BUFFER_KEY]
    ('64', '0.5')
    """
    return {
        BOUNDED_KEY: "true",
        BOUND_KEY: str(memory.bound_bytes // _MIB),
        WRITE_BUFFER_KEY: f"{memory.write_buffer_ratio:g}",
        HIGH_PRIORITY_KEY: f"{memory.high_priority_ratio:g}",
    }


def cache_bytes(conf: Mapping[str, str], num_stores: float, executors: int) -> float:
    """Memory for blocks that the stores of a configuration have together [bytes].

    They are a cache of each of ``num_stores``, those of all executors; with a bound, what its write
    buffers leave of it.

    >>> cache_bytes({}, 4.0, 2) / 2**20
    32.0
    >>> cache_bytes({BOUNDED_KEY: "true", BOUND_KEY: "100"}, 4.0, 2) / 2**20
    100.0
    """
    if conf.get(BOUNDED_KEY, "").lower() == "true":
        bound_bytes = _number(conf.get(BOUND_KEY), ROCKSDB_BOUND_BYTES.value / _MIB) * _MIB
        buffers_ratio = _number(conf.get(WRITE_BUFFER_KEY), ROCKSDB_WRITE_BUFFER_RATIO.value)
        return executors * bound_bytes * (1.0 - buffers_ratio)
    return num_stores * _number(conf.get(CACHE_KEY), ROCKSDB_CACHE_BYTES.value / _MIB) * _MIB


def _number(text: str | None, default: float) -> float:
    """A number of a configuration; the default if it is not set, or is none."""
    try:
        return default if text is None else float(text)
    except ValueError:
        return default
