"""Memory of RocksDB by rows and bytes, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.job.rocksdb_memory import StateInRocksDb, rocksdb_memory

MIB = 2**20
STATE = StateInRocksDb(
    rows=2**20,
    row_bytes=64,
    num_stores=4,
    rows_per_batch=2**17,
    batches_per_flush=10,
    data_hit_ratio=0.5,
)


def test_the_bound_is_buffers_and_indexes_and_blocks() -> None:
    memory = rocksdb_memory(STATE)
    # Ten batches of 2^17 rows with 128 bytes: 160 MiB in buffers that flush at 7/8.
    buffers = 160 * MIB * 8 / 7
    # A filter of 10 bits per row; 80 bytes for each of 2^14 blocks.
    indexes = 2**20 * 10 / 8 + 2**14 * 80
    blocks = 32 * MIB
    assert memory.bound_bytes == pytest.approx(buffers + indexes + blocks, abs=MIB)
    assert memory.write_buffer_ratio == pytest.approx(buffers / memory.bound_bytes, abs=1e-3)
    assert memory.high_priority_ratio == pytest.approx(indexes / memory.bound_bytes, abs=1e-3)
    assert memory.native_bytes == pytest.approx(1.25 * memory.bound_bytes, abs=MIB)
    # Of three blocks of a lookup two are always there, and the third in half of the cases.
    assert memory.hit_ratio == pytest.approx(2.5 / 3)


def test_no_store_needs_more_than_a_buffer_of_its_own() -> None:
    one_buffer_each = 4 * 64 * MIB * 8 / 7
    memory = rocksdb_memory(replace(STATE, rows_per_batch=1e9))
    assert memory.write_buffer_ratio * memory.bound_bytes == pytest.approx(
        one_buffer_each, rel=0.01
    )
    idle = rocksdb_memory(replace(STATE, rows_per_batch=0.0))
    assert idle.write_buffer_ratio * idle.bound_bytes == pytest.approx(4 * MIB * 8 / 7, rel=0.02)


@given(
    rows=st.floats(1, 1e9),
    stores=st.integers(1, 500),
    per_batch=st.floats(0, 1e7),
    hit=st.floats(0, 1),
)
def test_spark_accepts_the_shares(rows: float, stores: int, per_batch: float, hit: float) -> None:
    memory = rocksdb_memory(
        replace(STATE, rows=rows, num_stores=stores, rows_per_batch=per_batch, data_hit_ratio=hit)
    )
    assert memory.bound_bytes >= MIB
    # Spark refuses shares that add up to 1.
    assert memory.write_buffer_ratio + memory.high_priority_ratio < 1.0
