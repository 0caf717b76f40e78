"""Bytes that a query keeps: in its checkpoint, in the log of its sink, in memory of RocksDB."""

from __future__ import annotations

import math

import numpy as np

from headway.assumptions import files, resources
from headway.domain import JobProfile, RocksDbMemory
from headway.lazy_classes import dataclass
from headway.models.arrays import Array, Numeric
from headway.models.job.batch_files import (
    FILE_SINK,
    commit_files,
    duration_setting_s,
    snapshots_per_batch,
)
from headway.units import S_PER_DAY, parse_size_bytes

_STREAMING = "spark.sql.streaming"
_TABLES_METRIC, _UPLOADED_METRIC = "rocksdbSstFileSize", "rocksdbBytesCopied"
_MIB = parse_size_bytes("1m")
_DIGITS = 3
_ADDRESS_BYTES = 16


def checkpoint_bytes(profile: JobProfile, interval_s: Numeric, batch_rows: Numeric) -> Array | None:
    """Bytes of state that the checkpoint keeps; None if the log does not show the state's size.

    Parameters
    ----------
    profile : JobProfile, with its state at the rate in question
    interval_s, batch_rows : float or (n,) array, > 0, time between two batches [s], and their rows

    **(F5)** Bytes that a checkpoint keeps. Spark keeps what is needed to go back `K` batches
    (`minBatchesToRetain`, 100): the last snapshot before them and all later ones, with `s`
    snapshots per batch (F1) `1 + K s`, and the changes since that snapshot, of
    `K + 1/(2 s)` batches. Of a state of `n` rows in `S` bytes, a batch changes `u` rows:
    `S (1 + K s + (K + 1/(2 s)) u/n)`. Snapshots of RocksDB share their tables: with `w` bytes
    uploaded per batch they take `S + K w`, changelogs beside. `S` are the tables of RocksDB as
    reported, else the memory of the state on the heap, which is more than its compressed files
    take: an upper end. Files of offsets and commits are left out.

    Source: Spark's ``HDFSBackedStateStoreProvider`` and ``RocksDBFileManager`` (4.3, 2026).

    >>> from headway.formats.profile_file import load_profile
    >>> checkpoint_bytes(load_profile("examples/word-count.profile.yaml"), 1.0, 1000.0) is None
    True
    """
    state, num_rows = profile.state, profile.num_state_rows
    if state is None or not num_rows or not profile.settings:
        return None
    commits, rows_ratio = commit_files(profile), num_rows / max(state.rows, 1)
    interval = np.asarray(interval_s, dtype=np.float64)
    retained = _count(profile, "minBatchesToRetain", files.RETAINED_BATCHES.value)
    last = profile.settings[-1]
    per_row = np.asarray(batch_rows) / last.rows_per_batch_middle
    reported_bytes = _reported(profile, _TABLES_METRIC) if commits.tables else state.memory_bytes
    if not reported_bytes:
        return None
    state_bytes = rows_ratio * reported_bytes
    changed_rows = np.minimum(per_row * (state.updated_rows or 0.0), num_rows)
    snapshots = snapshots_per_batch(commits, interval)
    kept_bytes = np.full_like(interval, state_bytes)
    if commits.tables:
        uploaded_bytes = _reported(profile, _UPLOADED_METRIC)
        kept_bytes += retained * uploaded_bytes * per_row
    else:
        kept_bytes += state_bytes * retained * snapshots
    if commits.keeps_changes:
        num_changes = retained + 0.5 / snapshots
        kept_bytes += state_bytes * num_changes * changed_rows / num_rows
    return kept_bytes


def sink_log_bytes_per_day(
    profile: JobProfile, interval_s: Numeric, files_per_batch: Numeric
) -> Array | None:
    """Bytes by which the log of Spark's own file sink grows in a day; None for other sinks.

    Parameters
    ----------
    profile : JobProfile, the job: its sink, and the settings of the sink's log
    interval_s : float or (n,) array, > 0, time between two batches [s]
    files_per_batch : float or (n,) array, files of rows that a batch writes

    **(F6)** Growth of a sink's log. It has an entry of `b` bytes for each of the `w` files of a
    batch, of all batches ever. Compaction writes all of them into one file every `c` batches, and
    files are deleted when they are `d` old (10 minutes unless set otherwise), so `1 + d/(c T)` of
    the compacted ones are kept. In a day these grow by `86400/T w b (1 + d/(c T))`.

    Source: Spark's ``CompactibleFileStreamLog`` (4.3, 2026).

    >>> from headway.formats.profile_file import load_profile
    >>> sink_log_bytes_per_day(load_profile("examples/word-count.profile.yaml"), 1.0, 2.0) is None
    True
    """
    if not profile.shape.sink.startswith(FILE_SINK):
        return None
    interval = np.asarray(interval_s, dtype=np.float64)
    entries_per_day = S_PER_DAY / interval * np.asarray(files_per_batch)
    batches = _count(profile, "fileSink.log.compactInterval", files.COMPACTION_BATCHES.value)
    delay = profile.application.properties.get(f"{_STREAMING}.fileSink.log.cleanupDelay")
    delay_s = duration_setting_s(delay, files.SINK_LOG_DELAY_S.value)
    kept_copies = 1.0 + delay_s / (batches * interval)
    return np.asarray(entries_per_day * files.SINK_ENTRY_BYTES.value * kept_copies)


def _reported(profile: JobProfile, metric: str) -> float:
    """A mean per batch that the state stores report, all together; 0 if they do not."""
    operators = () if profile.state is None else profile.state.operators
    return sum(operator.store_metrics.get(metric, 0.0) for operator in operators)


def _count(profile: JobProfile, name: str, default: int) -> int:
    """A number of batches among the settings of streams."""
    text = profile.application.properties.get(f"{_STREAMING}.{name}", "")
    return max(int(text), 1) if text.isdecimal() else default


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInRocksDb:
    """State that the stores of one executor keep in RocksDB."""

    rows: float
    row_bytes: float
    num_stores: float
    rows_per_batch: float  # that a batch writes
    batches_per_flush: int  # until they leave the buffers: 1, or with changelogs until a snapshot
    data_hit_ratio: float  # share of the rows' own blocks that are found in memory


def rocksdb_memory(state: StateInRocksDb) -> RocksDbMemory:
    """The memory that a state needs in RocksDB, on one executor.

    **(Z1)** Memory of RocksDB. `m` stores of an executor share a bound of write buffers `W`,
    indexes and filters `F`, and blocks of rows `C`. Of `S` state rows with `b` bytes, a batch
    writes `u`, and they stay in the buffers for `k` batches: 1, or with changelogs as many as there
    are between snapshots. So `W = 8/7 m min(max(k u (b + 64)/m, 1 MiB), 64 MiB)`, since RocksDB
    flushes at 7/8 of its buffers, a buffered row takes 64 bytes more, and no store needs more than
    one buffer of RocksDB's own size. `F = S (10/8 + b/4096 (b + 16))`: a filter of 10 bits per key,
    and an entry of a key and an address for each block of 4 KiB. `C = h S b` for a share `h` of
    rows that are found in memory, and at least a twentieth of `W + F`, since Spark refuses shares
    that add up to 1. The bound is `M = W + F + C` in whole MiB; with it come its share `W/M` for
    write buffers and `F/M` for indexes and filters. Spark does not let RocksDB refuse memory
    beyond `M`, and memory that is freed is not returned at once, so 1.25 `M` is reserved in the
    container. A lookup asks for a filter, an index and a block, so that RocksDB
    counts a hit ratio of `(2 + h)/3`.

    >>> state = StateInRocksDb(rows=1e6, row_bytes=64, num_stores=4, rows_per_batch=50e3,
    ...                        batches_per_flush=1, data_hit_ratio=0.9)
    >>> memory = rocksdb_memory(state)
    >>> memory.bound_bytes // 2**20, memory.write_buffer_ratio, round(memory.hit_ratio, 3)
    (65, 0.107, 0.967)
    """
    row_bytes = state.row_bytes + resources.ROCKSDB_BUFFERED_ROW_BYTES.value
    store_bytes = state.batches_per_flush * state.rows_per_batch * row_bytes / state.num_stores
    least_bytes, most_bytes = (
        resources.ROCKSDB_LEAST_BUFFER_BYTES.value,
        resources.ROCKSDB_LARGEST_BUFFER_BYTES.value,
    )
    store_bytes = min(max(store_bytes, least_bytes), most_bytes)
    buffers_bytes = state.num_stores * store_bytes / resources.ROCKSDB_FLUSH_RATIO.value
    entry_bytes = state.row_bytes + _ADDRESS_BYTES
    index_bytes = state.rows * (
        resources.ROCKSDB_BITS_PER_KEY.value / 8
        + state.row_bytes / resources.ROCKSDB_BLOCK_BYTES.value * entry_bytes
    )
    blocks_bytes = max(
        state.data_hit_ratio * (state.rows * state.row_bytes),
        resources.ROCKSDB_LEAST_BLOCKS_RATIO.value * (buffers_bytes + index_bytes),
    )
    bound_bytes = _MIB * math.ceil((buffers_bytes + index_bytes + blocks_bytes) / _MIB)
    return RocksDbMemory(
        bound_bytes=bound_bytes,
        write_buffer_ratio=round(buffers_bytes / bound_bytes, _DIGITS),
        high_priority_ratio=round(index_bytes / bound_bytes, _DIGITS),
        native_bytes=_MIB * math.ceil(resources.ROCKSDB_ROOM_RATIO.value * bound_bytes / _MIB),
        hit_ratio=(2.0 + state.data_hit_ratio) / 3.0,
    )
