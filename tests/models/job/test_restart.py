"""Starting again: what loading a state takes, from records and from what is usual."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway.domain import JobProfile, StateLoad, StateProfile, WarmUp
from headway.models.job.restart import (
    LoadSpeed,
    load_speed,
    most_replayed_batches,
    restart_of,
    start_again,
    usual_load_speed,
)
from tests.factories import a_profile

ROWS = 1_000_000
DEFAULT, ROCKSDB = "HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider"
CHANGELOG = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}


def started(
    store: str = DEFAULT, loaded: StateLoad | None = None, conf: dict[str, str] | None = None
) -> JobProfile:
    """The counting query with a million state rows; its JVM was there for 3 s when it began."""
    profile = a_profile(
        state=StateProfile(
            rows=ROWS, memory_bytes=10**8, commit_per_partition_s=0.001, growth_per_s=0.0
        )
    )
    return replace(
        profile,
        applications=(replace(profile.application, properties=conf or {}),),
        state_partitions=8,
        state_store=store,
        warm_up=WarmUp(start_age_s=3.0, first_batch_extra_s=2.0, steady_age_s=60.0, loaded=loaded),
    )


def again(profile: JobProfile, slots: int = 4, partitions: int = 8, **asked: Any) -> Any:
    options: dict[str, Any] = {"interval_s": 10.0, "batch_rows": 50_000.0, "replayed_batches": 0}
    return start_again(profile, (slots, partitions), **(options | asked))


def test_tasks_load_the_state_in_waves() -> None:
    """Eight tasks on four slots: two after another, each an eighth of all."""
    speed = usual_load_speed(DEFAULT)
    all_tasks_s = 8 * speed.store_s + ROWS * speed.row_s
    assert float(again(started()).load_s) == pytest.approx(all_tasks_s * 2 / 8)
    assert float(again(started(), slots=8).load_s) == pytest.approx(all_tasks_s / 8)
    # The busiest of three slots has three of the eight.
    assert float(again(started(), slots=3).load_s) == pytest.approx(all_tasks_s * 3 / 8)


def test_what_changed_since_the_snapshot_is_replayed() -> None:
    speed = usual_load_speed(DEFAULT)
    start = again(started(), replayed_batches=7)
    assert float(start.replay_s) == pytest.approx(7 * 50_000 * speed.replayed_row_s / 4)
    # No batch changes more rows than there are.
    most = again(started(), replayed_batches=1, batch_rows=1e9)
    assert float(most.replay_s) == pytest.approx(ROWS * speed.replayed_row_s / 4)


def test_snapshots_are_made_by_maintenance() -> None:
    """Every minute, and after more than ten changes in Spark's default store, ten in RocksDB."""
    fast, slow = 2.0, 60.0
    of_default = started()
    assert float(most_replayed_batches(of_default, fast)) == 30.0
    assert float(most_replayed_batches(of_default, slow)) == 11.0
    assert float(most_replayed_batches(started(ROCKSDB), fast)) == 0.0
    assert float(most_replayed_batches(started(ROCKSDB, conf=CHANGELOG), slow)) == 10.0


def test_a_record_scales_the_usual_speed() -> None:
    """A state of a tenth of the rows in two stores took 1.5 times what is usual."""
    usual = usual_load_speed(DEFAULT)
    took_s = 1.5 * (2 * usual.store_s + 100_000 * usual.row_s + 20_000 * usual.replayed_row_s)
    loaded = StateLoad(rows=100_000, num_stores=2, replayed_rows=20_000.0, load_s=took_s)
    speed = load_speed(started(loaded=loaded))
    assert speed == pytest.approx(tuple(1.5 * part for part in usual))


def test_rocksdb_tells_loading_from_replaying() -> None:
    usual = usual_load_speed(ROCKSDB)
    snapshot_s = 2 * usual.store_s + 100_000 * usual.row_s
    loaded = StateLoad(
        rows=100_000,
        num_stores=2,
        replayed_rows=50_000.0,
        load_s=2.0 * snapshot_s + 0.5,
        replay_s=0.5,
    )
    speed = load_speed(started(ROCKSDB, loaded))
    assert speed.row_s == pytest.approx(2.0 * usual.row_s)
    assert speed.replayed_row_s == pytest.approx(0.5 / 50_000)
    # Without changes on record, they are as much slower than usual as the rest.
    none = replace(loaded, replayed_rows=0.0, load_s=2.0 * snapshot_s, replay_s=0.0)
    assert load_speed(started(ROCKSDB, none)).replayed_row_s == pytest.approx(
        2.0 * usual.replayed_row_s
    )


def test_a_restart_has_five_parts() -> None:
    profile = started()
    restart = restart_of(profile, profile.baseline, 50_000.0, replayed_batches=7, factor=1.2)
    assert restart is not None
    assert restart.session_s == 3.0
    start = again(profile, profile.baseline.num_slots, profile.baseline.shuffle_partitions)
    assert restart.load_s == pytest.approx(1.2 * float(start.load_s))
    assert restart.total_s == pytest.approx(
        restart.jvm_s + 3.0 + restart.load_s + restart.replay_s + restart.first_batch_s
    )
    longer = restart_of(profile, profile.baseline, 100_000.0, replayed_batches=0)
    assert longer is not None
    assert longer.first_batch_s > restart.first_batch_s / 1.2


def test_nothing_is_said_without_a_start_on_record() -> None:
    profile = replace(started(), warm_up=None)
    assert again(profile) is None
    assert restart_of(profile, profile.baseline, 1000.0) is None


def test_a_job_without_state_loads_none() -> None:
    profile = replace(started(), state=None)
    start = again(profile)
    assert float(start.longer_s) == 2.0
    assert start.before_s == pytest.approx(start.jvm_s + 3.0)


def test_speeds_add_up() -> None:
    assert float(LoadSpeed(0.5, 1e-6, 3e-6).task_s(2, 1e6, 1e6)) == pytest.approx(5.0)
