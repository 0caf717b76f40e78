"""Each stateful operator is in the profile: its rows, its stores, and parts of their commits."""

from __future__ import annotations

from pathlib import Path

import pytest

import headway
from headway.domain import JobProfile
from headway.formats.profile_file import dump_profile, load_profile
from headway.report.profiles import profile_summary
from tests.profiler.event_log import Event, write_plain
from tests.profiler.streaming.test_summarize import PLAIN, of_progress

ROCKSDB = {
    "rocksdbCommitCheckpointLatency": 12,
    "rocksdbCommitFileSyncLatencyMs": 40,
    "rocksdbCommitFlushLatency": 0,
    "rocksdbPinnedBlocksMemoryUsage": 1_000_000,
    "api_key_of_somebody": 7,
    "rocksdbBadType": "12",
}


def two_operators(number: int, progress: Event) -> None:
    """A deduplication before an aggregation; the first one keeps its state in RocksDB."""
    (aggregation,) = progress["stateOperators"]
    deduplication = {
        **aggregation,
        "operatorName": "dedupe",
        "numRowsTotal": 100 * (number + 1),
        "memoryUsedBytes": 3 * 2**20,
        "customMetrics": ROCKSDB,
    }
    progress["stateOperators"] = [deduplication, aggregation]


def profiled(folder: Path) -> JobProfile:
    path = write_plain(of_progress(two_operators), folder / "log")
    profile = headway.profile(path)
    assert isinstance(profile, JobProfile)
    return profile


def test_each_operator_is_in_the_profile_and_its_file(tmp_path: Path) -> None:
    profile = profiled(tmp_path)
    assert profile.state is not None
    deduplication, aggregation = profile.state.operators
    assert (deduplication.name, aggregation.name) == ("dedupe", PLAIN.operators[0])
    assert deduplication.rows == 100 * PLAIN.num_batches
    assert (aggregation.rows, aggregation.memory_bytes) == (1000, 0)
    assert profile.state.rows == deduplication.rows + aggregation.rows
    assert deduplication.num_stores == aggregation.num_stores == PLAIN.partitions
    assert deduplication.commit_s == pytest.approx(0.02 * PLAIN.partitions)
    assert aggregation.store_metrics == {}
    # Only what Spark's own stores report, and only numbers.
    assert deduplication.store_metrics == dict(list(ROCKSDB.items())[:4])
    (tmp_path / "a.yaml").write_text(dump_profile(profile), encoding="utf-8")
    loaded = load_profile(tmp_path / "a.yaml")
    assert loaded.state is not None
    assert [one.store_metrics for one in loaded.state.operators] == [
        one.store_metrics for one in profile.state.operators
    ]
    assert loaded.state.operators[0].commit_s == pytest.approx(deduplication.commit_s)


def test_the_summary_has_a_line_for_each_with_the_longest_parts_of_its_commits(
    tmp_path: Path,
) -> None:
    lines = [line.strip() for line in profile_summary(profiled(tmp_path)).splitlines()]
    # Spark lists the operator next to the sink first, the summary in the order of the rows.
    aggregation, deduplication = [line for line in lines if line.startswith("state of ")]
    assert deduplication == (
        f"state of dedupe: {100 * PLAIN.num_batches:,} rows, 3 MiB in {PLAIN.partitions} stores; "
        f"its commits take {20 * PLAIN.partitions} ms of task time per batch "
        "(file sync 40 ms, checkpoint 12 ms)"
    )
    assert "(" not in aggregation
