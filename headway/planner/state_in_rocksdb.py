"""State that executors keep in RocksDB, from what its stores report."""

from __future__ import annotations

from collections.abc import Mapping

from headway.assumptions.resources import (
    ROCKSDB_BOUND_BYTES,
    ROCKSDB_CACHE_BYTES,
    ROCKSDB_WRITE_BUFFER_RATIO,
)
from headway.domain import JobProfile
from headway.models.job.batch_files import commit_files, num_state_stores
from headway.models.job.rocksdb_memory import StateInRocksDb
from headway.sparkconf.rocksdb import BOUND_KEY, BOUNDED_KEY, CACHE_KEY, WRITE_BUFFER_KEY
from headway.units import parse_size_bytes

_MIB = parse_size_bytes("1m")


def state_in_rocksdb(profile: JobProfile, executors: int) -> StateInRocksDb | None:
    """What one of several executors keeps of a job's state; None if not RocksDB, or not recorded.

    Parameters
    ----------
    profile : JobProfile
        With the bytes that its stores wrote, which Spark reports since 3.2.
    executors : int, >= 1

    Returns
    -------
    StateInRocksDb or None

    Notes
    -----
    theory.md (Z1). The bytes of a row are those written per write. The memory for blocks is that of
    the profiled run, so that the plan keeps its hit ratio: `blockCacheSizeMB` of each store, or of
    a run with a bound what its write buffers left of that.

    Examples
    --------
    >>> from headway.formats.profile_file import load_profile
    >>> state_in_rocksdb(load_profile("examples/word-count.profile.yaml"), 1) is None
    True
    """
    state = profile.state
    if state is None or not profile.pins.is_rocksdb or not profile.num_state_rows:
        return None
    totals = {
        name: sum(operator.store_metrics.get(name, 0.0) for operator in state.operators)
        for name in ("rocksdbPutCount", "rocksdbTotalBytesWritten")
    }
    num_writes, written_bytes = totals.values()
    if not (num_writes > 0 and written_bytes > 0 and state.updated_rows):
        return None
    files = commit_files(profile)
    rate_ratio = profile.arrivals.rate_per_s / profile.settings[-1].rate_per_s
    num_stores = float(num_state_stores(profile, profile.baseline.shuffle_partitions))
    row_bytes = written_bytes / num_writes
    cache_bytes = _cache_bytes(profile.application.properties, num_stores, profile)
    return StateInRocksDb(
        rows=profile.num_state_rows / executors,
        row_bytes=row_bytes,
        num_stores=max(num_stores / executors, 1.0),
        rows_per_batch=rate_ratio * state.updated_rows / executors,
        batches_per_flush=files.commits_per_snapshot if files.keeps_changes else 1,
        data_hit_ratio=min(cache_bytes / (profile.num_state_rows * row_bytes), 1.0),
    )


def _cache_bytes(conf: Mapping[str, str], num_stores: float, profile: JobProfile) -> float:
    """Memory for blocks that all executors of the profiled run had together [bytes]."""
    if conf.get(BOUNDED_KEY, "").lower() == "true":
        bound_bytes = _number(conf.get(BOUND_KEY), ROCKSDB_BOUND_BYTES.value / _MIB) * _MIB
        buffers_ratio = _number(conf.get(WRITE_BUFFER_KEY), ROCKSDB_WRITE_BUFFER_RATIO.value)
        return profile.baseline.executors * bound_bytes * (1.0 - buffers_ratio)
    return num_stores * _number(conf.get(CACHE_KEY), ROCKSDB_CACHE_BYTES.value / _MIB) * _MIB


def _number(text: str | None, default: float) -> float:
    """A number of the configuration; the default if it is not set, or is none."""
    try:
        return default if text is None else float(text)
    except ValueError:
        return default
