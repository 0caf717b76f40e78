"""Memory that RocksDB needs for the state of a query, outside of the heap of an executor."""

from __future__ import annotations

import math

from headway.assumptions.resources import (
    ROCKSDB_BITS_PER_KEY,
    ROCKSDB_BLOCK_BYTES,
    ROCKSDB_BUFFERED_ROW_BYTES,
    ROCKSDB_FLUSH_RATIO,
    ROCKSDB_LARGEST_BUFFER_BYTES,
    ROCKSDB_LEAST_BLOCKS_RATIO,
    ROCKSDB_LEAST_BUFFER_BYTES,
    ROCKSDB_ROOM_RATIO,
)
from headway.domain import RocksDbMemory
from headway.lazy_classes import dataclass
from headway.units import parse_size_bytes

_MIB = parse_size_bytes("1m")
_DIGITS = 3
_ADDRESS_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInRocksDb:
    """State that the stores of one executor keep in RocksDB.

    ``rows_per_batch`` are the rows that a batch writes, and ``batches_per_flush`` the batches until
    what was written leaves the write buffers: 1, or with changelogs as many as there are between
    two snapshots. ``data_hit_ratio`` is the share of the rows' own blocks that are found in memory.
    """

    rows: float
    row_bytes: float
    num_stores: float
    rows_per_batch: float
    batches_per_flush: int
    data_hit_ratio: float


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

    >>> memory = rocksdb_memory(
    ...     StateInRocksDb(
    ...         rows=1e6, row_bytes=64, num_stores=4, rows_per_batch=50e3, batches_per_flush=1,
    ...         data_hit_ratio=0.9,
    ...     )
    ... )
    >>> memory.bound_bytes // 2**20, memory.write_buffer_ratio, round(memory.hit_ratio, 3)
    (65, 0.107, 0.967)
    """
    buffer_bytes = (
        state.batches_per_flush
        * state.rows_per_batch
        * (state.row_bytes + ROCKSDB_BUFFERED_ROW_BYTES.value)
        / state.num_stores
    )
    least_bytes, most_bytes = ROCKSDB_LEAST_BUFFER_BYTES.value, ROCKSDB_LARGEST_BUFFER_BYTES.value
    buffers_bytes = (
        state.num_stores
        * min(max(buffer_bytes, least_bytes), most_bytes)
        / ROCKSDB_FLUSH_RATIO.value
    )
    entry_bytes = state.row_bytes + _ADDRESS_BYTES
    index_bytes = state.rows * (
        ROCKSDB_BITS_PER_KEY.value / 8 + state.row_bytes / ROCKSDB_BLOCK_BYTES.value * entry_bytes
    )
    blocks_bytes = max(
        state.data_hit_ratio * (state.rows * state.row_bytes),
        ROCKSDB_LEAST_BLOCKS_RATIO.value * (buffers_bytes + index_bytes),
    )
    bound_bytes = _MIB * math.ceil((buffers_bytes + index_bytes + blocks_bytes) / _MIB)
    return RocksDbMemory(
        bound_bytes=bound_bytes,
        write_buffer_ratio=round(buffers_bytes / bound_bytes, _DIGITS),
        high_priority_ratio=round(index_bytes / bound_bytes, _DIGITS),
        native_bytes=_MIB * math.ceil(ROCKSDB_ROOM_RATIO.value * bound_bytes / _MIB),
        hit_ratio=(2.0 + state.data_hit_ratio) / 3.0,
    )
