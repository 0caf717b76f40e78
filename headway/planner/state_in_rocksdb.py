"""State that executors keep in RocksDB, from what its stores report."""

from __future__ import annotations

from headway.domain import JobProfile
from headway.models.job.batch_files import commit_files, num_state_stores
from headway.models.job.rocksdb_memory import StateInRocksDb
from headway.sparkconf.rocksdb import cache_bytes


def state_in_rocksdb(profile: JobProfile, executors: int) -> StateInRocksDb | None:
    """What one of several executors keeps of a job's state; None if not RocksDB, or not recorded.

    The profile has the bytes that its stores wrote, which Spark reports since 3.2.

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
    cached_bytes = cache_bytes(
        profile.application.properties, num_stores, profile.baseline.executors
    )
    return StateInRocksDb(
        rows=profile.num_state_rows / executors,
        row_bytes=row_bytes,
        num_stores=max(num_stores / executors, 1.0),
        rows_per_batch=rate_ratio * state.updated_rows / executors,
        batches_per_flush=files.commits_per_snapshot if files.keeps_changes else 1,
        data_hit_ratio=min(cached_bytes / (profile.num_state_rows * row_bytes), 1.0),
    )
