"""Files per batch follow the state store, its settings, the partitions and the sink."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.domain import JobProfile, StateOperatorProfile, StateProfile
from headway.domain.writes import StorePrice
from headway.models.job.batch_files import (
    CommitFiles,
    checkpoint_files,
    num_state_stores,
    price_of_job,
    sink_files,
    store_files,
)
from tests.factories import a_profile

STATE = "spark.sql.streaming.stateStore"


def a_stateful_profile(*stores: int, store: str | None = None, **properties: str) -> JobProfile:
    """The counting query at eight partitions, with operators of so many stores."""
    profile = a_profile()
    operators = tuple(
        StateOperatorProfile(name="s", rows=1, memory_bytes=1, num_stores=number, commit_s=0.1)
        for number in stores
    )
    application = replace(profile.application, properties=properties)
    return replace(
        profile,
        applications=(application,),
        state_partitions=8,
        state_store=store,
        state=StateProfile(
            rows=1,
            memory_bytes=1,
            commit_per_partition_s=0.0,
            growth_per_s=0.0,
            operators=operators,
        ),
    )


def simulated_snapshots(interval_s: float, least_commits: int, num_batches: int) -> int:
    """Snapshots by a clock that looks every minute whether enough commits came since the last."""
    num_snapshots, since, next_look_s = 0, 0, 60.0
    for batch in range(1, num_batches + 1):
        since += 1
        while next_look_s <= batch * interval_s + 1e-9:
            next_look_s += 60.0
            if since >= least_commits:
                num_snapshots, since = num_snapshots + 1, 0
    return num_snapshots


@pytest.mark.parametrize("interval_s", [0.25, 1.0, 5.0, 10.0, 30.0, 120.0])
def test_snapshots_are_as_often_as_maintenance_makes_them(interval_s: float) -> None:
    num_batches = 20_000
    default = CommitFiles(True, 0.0, 11, 60.0, checksums=0)
    simulated = simulated_snapshots(interval_s, 11, num_batches) / num_batches
    predicted = float(store_files(default, interval_s).total) - 1.0
    assert predicted == pytest.approx(simulated, abs=0.01)


def test_a_checksum_is_written_beside_each_file_except_those_of_rocksdb() -> None:
    with_changes = CommitFiles(True, 1.0, 10, 60.0, checksums=1)
    # Every tenth batch: a zip, its checksum, and a table.
    assert float(store_files(with_changes, 6.0).renamed) == pytest.approx(2.2)
    assert float(store_files(with_changes, 6.0).in_place) == pytest.approx(0.1)
    without = CommitFiles(False, 1.0, 10, 60.0, checksums=1)
    assert float(store_files(without, 6.0).total) == 3.0


def test_stores_follow_the_partitions_unless_there_is_one() -> None:
    partitions = np.array([2.0, 8.0, 16.0])
    assert num_state_stores(a_stateful_profile(8), partitions).tolist() == [2, 8, 16]
    assert num_state_stores(a_stateful_profile(32), partitions).tolist() == [8, 32, 64]
    assert num_state_stores(a_stateful_profile(8, 1), partitions).tolist() == [3, 9, 17]


def test_without_stores_on_record_the_operators_count() -> None:
    profile = replace(a_profile(), state=None)
    for operators, stores in (
        ((), 0),
        (("stateStoreSave",), 8),
        (("symmetricHashJoin", "dedupe"), 40),
    ):
        shape = replace(profile.shape, stateful_operators=operators)
        assert float(num_state_stores(replace(profile, shape=shape), 8)) == stores


def test_rocksdb_writes_twice_as_many_without_its_changelog() -> None:
    rocksdb = "RocksDBStateStoreProvider"
    changelog = {f"{STATE}.rocksdb.changelogCheckpointing.enabled": "true"}
    default = checkpoint_files(a_stateful_profile(8), 8, 0.1)
    without = checkpoint_files(a_stateful_profile(8, store=rocksdb), 8, 0.1)
    with_it = checkpoint_files(a_stateful_profile(8, store=rocksdb, **changelog), 8, 0.1)
    assert float(default.total) == pytest.approx(10.0, rel=0.01)
    assert float(with_it.total) == pytest.approx(10.0, rel=0.01)
    # Eight zips, and as many files of RocksDB or a few more.
    assert float(without.total) == pytest.approx(18.7, abs=0.1)
    assert 8.0 <= float(without.in_place) < 9.0


def test_settings_of_the_job_count() -> None:
    often = {f"{STATE}.maintenanceInterval": "1000", f"{STATE}.minDeltasForSnapshot": "1"}
    # A look each second, and two commits suffice: a snapshot every other batch of a second.
    files = checkpoint_files(a_stateful_profile(8, **often), 8, 1.0)
    assert float(files.total) == pytest.approx(2 + 8 * 1.5)
    seconds = {f"{STATE}.maintenanceInterval": "30s"}
    assert float(checkpoint_files(a_stateful_profile(8, **seconds), 8, 1.0).total) == pytest.approx(
        2 + 8 * (1 + 1 / 30)
    )
    unreadable = {f"{STATE}.maintenanceInterval": "soon"}
    assert float(checkpoint_files(a_stateful_profile(8, **unreadable), 8, 1.0).total) == (
        pytest.approx(2 + 8 * (1 + 1 / 60))
    )


def test_checksums_count_if_they_are_on() -> None:
    on = {"spark.sql.streaming.checkpoint.fileChecksum.enabled": "true"}
    files = checkpoint_files(a_stateful_profile(8, **on), 8, 0.001)
    assert float(files.total) == pytest.approx(18, rel=0.001)


def test_a_source_of_files_has_a_log_too() -> None:
    profile = a_stateful_profile()
    shape = replace(profile.shape, sources=("FileStreamSource[#12345678]",), stateful_operators=())
    assert float(checkpoint_files(replace(profile, shape=shape, state=None), 8, 1.0).total) == 3.0


def test_files_of_sinks() -> None:
    profile = a_profile()

    def of(sink: str) -> float | None:
        files = sink_files(replace(profile, shape=replace(profile.shape, sink=sink)), 6)
        return None if files is None else float(files.total)

    assert of("FileSink[#12345678]") == 7.0
    assert of("KafkaTable") == 0.0
    assert of("ForeachBatchSink") is None
    (setting,) = profile.settings
    setting = replace(setting, written_files_per_batch=24.0)
    # Three files of each of the eight tasks on record.
    logged = replace(
        profile,
        settings=(setting,),
        shape=replace(profile.shape, sink="ForeachBatchSink"),
    )
    files = sink_files(logged, 6)
    assert files is not None
    assert float(files.total) == 18.0


def test_requests_depend_on_how_a_file_gets_its_name() -> None:
    price = StorePrice(
        store="s3",
        price_per_write=5e-6,
        requests_in_place=1,
        requests_renamed=2,
        date="2026-11-21",
    )
    profile = a_profile()
    shape = replace(profile.shape, sink="FileSink[#12345678]")
    files = sink_files(replace(profile, shape=shape), 6)
    assert files is not None
    assert float(files.requests(price)) == 8.0


@pytest.mark.parametrize(
    ("manager", "lists"),
    [
        (None, 10.0),
        ("org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager", 5.0),
        ("org.apache.spark.sql.execution.streaming.FileContextBasedCheckpointFileManager", 10.0),
    ],
)
def test_lists_depend_on_the_manager_of_checkpoint_files(manager: str | None, lists: float) -> None:
    price = StorePrice(
        store="s3",
        price_per_write=5e-6,
        requests_in_place=1,
        requests_renamed=2,
        date="2026-11-29",
        lists_in_place=1,
        lists_renamed=10,
        lists_by_file_system=5,
    )
    key = "spark.sql.streaming.checkpointFileManagerClass"
    profile = a_stateful_profile(8, **({} if manager is None else {key: manager}))
    files = checkpoint_files(profile, 8, 0.1)
    of_job = price_of_job(profile, price)
    assert float(files.lists(of_job)) == pytest.approx(lists * 10.0, rel=0.01)
    assert float(files.requests(of_job)) == pytest.approx((lists + 2.0) * 10.0, rel=0.01)
