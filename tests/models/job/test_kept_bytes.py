"""Bytes that a checkpoint keeps, against a list of files from which old ones are deleted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headway.domain import JobProfile
from headway.models.job.batch_files import checkpoint_bytes, sink_log_bytes_per_day
from tests.factories import a_profile
from tests.models.job.test_batch_files import STATE, a_stateful_profile

STREAMING = "spark.sql.streaming"
ROWS, BYTES, CHANGED = 1000, 80_000, 50.0


def with_state(*, store: str | None = None, metrics: Any = None, **properties: str) -> JobProfile:
    """State of 1000 rows in 80,000 bytes, of which a profiled batch changes fifty."""
    profile = a_stateful_profile(8, store=store, **properties)
    assert profile.state is not None
    (operator,) = profile.state.operators
    state = replace(
        profile.state,
        rows=ROWS,
        memory_bytes=BYTES,
        updated_rows=CHANGED,
        operators=(replace(operator, store_metrics=metrics or {}),),
    )
    return replace(profile, state=state)


def profiled_rows(profile: JobProfile) -> float:
    (setting,) = profile.settings
    return 0.5 * (setting.rows_per_batch_low + setting.rows_per_batch_high)


def simulated_bytes(every: int, retained: int, num_batches: int) -> float:
    """Mean bytes of snapshots and changes, where what no kept batch needs is deleted."""
    kept_bytes = []
    for last in range(num_batches // 2, num_batches):
        oldest = (last - retained) // every * every
        snapshots = [batch for batch in range(oldest, last + 1) if batch % every == 0]
        kept_bytes.append(len(snapshots) * BYTES + (last - oldest) * BYTES * CHANGED / ROWS)
    return float(np.mean(kept_bytes))


@pytest.mark.parametrize("retained", [20, 100])
@pytest.mark.parametrize("interval_s", [1.0, 2.0])
def test_snapshots_and_changes_of_the_kept_batches(interval_s: float, retained: int) -> None:
    kept = {f"{STREAMING}.minBatchesToRetain": str(retained)} if retained != 100 else {}
    profile = with_state(**kept)
    # A snapshot each minute: of 60 or 30 batches.
    predicted = checkpoint_bytes(profile, interval_s, profiled_rows(profile))
    assert predicted is not None
    simulated = simulated_bytes(round(60 / interval_s), retained, 24_000)
    assert float(predicted) == pytest.approx(simulated, rel=0.02)


def test_snapshots_of_rocksdb_share_their_tables() -> None:
    metrics = {"rocksdbSstFileSize": 5e6, "rocksdbBytesCopied": 2e4}
    profile = with_state(store="RocksDBStateStoreProvider", metrics=metrics)
    kept_bytes = checkpoint_bytes(profile, 1.0, profiled_rows(profile))
    assert kept_bytes is not None
    assert float(kept_bytes) == pytest.approx(5e6 + 100 * 2e4)
    # Half as many rows in a batch: half as many bytes are uploaded.
    fewer = checkpoint_bytes(profile, 1.0, 0.5 * profiled_rows(profile))
    assert fewer is not None
    assert float(fewer) == pytest.approx(5e6 + 100 * 1e4)
    changelog = {f"{STATE}.rocksdb.changelogCheckpointing.enabled": "true"}
    logged = with_state(store="RocksDBStateStoreProvider", metrics=metrics, **changelog)
    with_changes = checkpoint_bytes(logged, 1.0, profiled_rows(profile))
    assert with_changes is not None
    # And changes of 5% of the rows in the hundred batches and, on average, half of sixty.
    assert float(with_changes) == pytest.approx(5e6 + 100 * 2e4 + 130 * 0.05 * 5e6)


@pytest.mark.parametrize(
    "profile",
    [replace(a_profile(), state=None), with_state(store="RocksDBStateStoreProvider")],
    ids=["no state", "RocksDB without the size of its tables"],
)
def test_what_the_log_does_not_show_is_unknown(profile: JobProfile) -> None:
    assert checkpoint_bytes(profile, 1.0, 1000.0) is None


def test_the_log_of_a_sink_is_kept_in_copies() -> None:
    profile = a_profile()
    assert sink_log_bytes_per_day(profile, 1.0, 2) is None
    shape = replace(profile.shape, sink="FileSink[s3a://bucket/out]")
    files = replace(profile, shape=shape)
    # A compacted file every ten seconds, each kept for ten minutes.
    day = sink_log_bytes_per_day(files, 1.0, 2)
    assert day is not None
    assert float(day) == pytest.approx(86_400 * 2 * 250 * 61)
    properties = {
        f"{STREAMING}.fileSink.log.compactInterval": "100",
        f"{STREAMING}.fileSink.log.cleanupDelay": "100s",
    }
    application = replace(profile.application, properties=properties)
    seldom = sink_log_bytes_per_day(replace(files, applications=(application,)), 1.0, 2)
    assert seldom is not None
    assert float(seldom) == pytest.approx(86_400 * 2 * 250 * 2)
