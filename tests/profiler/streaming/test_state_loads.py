"""Loading of state in the first batch of a run that went on from its checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import headway
from headway.domain import JobProfile
from headway.formats.profile_file import dump_profile, load_profile
from tests.profiler.event_log import EPOCH_S, Event, Query, write_plain
from tests.profiler.streaming.test_summarize import PLAIN, log

NEW = replace(PLAIN, run_id="a" * 8, warm_up=(3.0,))
"""A run that began without state; its first batch took three times as long in a fresh JVM."""
WENT_ON = replace(PLAIN, run_id="b" * 8, first_batch_id=40, warm_up=(6.0,), seed=7)
"""A run that went on from the checkpoint: six times as long."""


def lines_of(query: Query, app_id: str, **reported: int) -> list[str]:
    """Its log, with what its state store reports of the first batch, over all four stores."""
    written = log(query, app_id=app_id)
    for number, event in enumerate(written.of("QueryProgressEvent")):
        operator: Event = event["progress"]["stateOperators"][0]
        operator |= {"numRowsTotal": 8_000_000, "numRowsUpdated": 5_000}
        if reported:
            operator["customMetrics"] = {
                name: value if number == 0 else 0 for name, value in reported.items()
            }
    return written.lines


def profiled(folder: Path, *logs: list[str]) -> JobProfile:
    paths = [write_plain(lines, folder / f"log-{number}") for number, lines in enumerate(logs)]
    profile = headway.profile(paths)
    assert isinstance(profile, JobProfile)
    return profile


def test_the_default_store_is_compared_with_a_run_that_began_without_state(tmp_path: Path) -> None:
    profile = profiled(tmp_path, lines_of(NEW, "app-1"), lines_of(WENT_ON, "app-2"))
    assert profile.warm_up is not None
    loaded = profile.warm_up.loaded
    assert loaded is not None
    # Four tasks of 30 ms and 12 us for each of 500 rows took six instead of three times as long.
    assert loaded.load_s == pytest.approx(3 * (4 * 0.030 + 500 * 12e-6), rel=0.1)
    assert loaded.replay_s is None
    assert (loaded.rows, loaded.num_stores) == (8_000_000, 4)
    # Half of eleven batches of 5,000 rows.
    assert loaded.replayed_rows == pytest.approx(27_500)


def test_loading_is_not_a_part_of_what_every_first_batch_takes(tmp_path: Path) -> None:
    alone = profiled(tmp_path, lines_of(NEW, "app-1")).warm_up
    both = profiled(tmp_path, lines_of(NEW, "app-1"), lines_of(WENT_ON, "app-2")).warm_up
    assert alone is not None
    assert alone.loaded is None
    assert both is not None
    assert both.loaded is not None
    # The driver's phases, which are not loading, took six times as long, too: the mean of both.
    driver_s = sum(PLAIN.phases_s.values())
    assert both.first_batch_extra_s < alone.first_batch_extra_s + 3 * driver_s + 0.5


def test_rocksdb_reports_what_loading_took(tmp_path: Path) -> None:
    reported = lines_of(
        WENT_ON,
        "app-2",
        rocksdbLoadLatencyMs=900,
        rocksdbLoadFromSnapshotLatencyMs=300,
        rocksdbReplayChangeLogLatencyMs=500,
        rocksdbNumReplayChangelogFiles=28,
    )
    profile = profiled(tmp_path, reported)
    assert profile.warm_up is not None
    loaded = profile.warm_up.loaded
    assert loaded is not None
    assert (loaded.load_s, loaded.replay_s) == (0.9, 0.5)
    # Of each of four stores seven files, of batches of 5,000 rows.
    assert loaded.replayed_rows == pytest.approx(35_000)
    (tmp_path / "a.yaml").write_text(dump_profile(profile), encoding="utf-8")
    again = load_profile(tmp_path / "a.yaml").warm_up
    assert again is not None
    assert again.loaded == loaded


def test_a_run_that_went_on_alone_tells_nothing_of_the_default_store(tmp_path: Path) -> None:
    """What is usual is left out of its first batch: the loading of eight million rows."""
    gone_on = profiled(tmp_path, lines_of(WENT_ON, "app-2")).warm_up
    new = profiled(tmp_path, lines_of(replace(WENT_ON, first_batch_id=0), "app-2")).warm_up
    assert gone_on is not None
    assert new is not None
    assert gone_on.loaded is None
    assert gone_on.first_batch_extra_s < new.first_batch_extra_s


def test_the_logs_begin_with_fresh_jvms() -> None:
    assert NEW.started_s - EPOCH_S < 30.0


def test_a_store_that_was_loaded_before_says_nothing(tmp_path: Path) -> None:
    """An aggregation loads its stores twice in a batch, and Spark reports the second time."""
    reported = lines_of(
        WENT_ON, "app-2", rocksdbLoadLatencyMs=85, rocksdbLoadFromSnapshotLatencyMs=0
    )
    warm_up = profiled(tmp_path, reported).warm_up
    assert warm_up is not None
    assert warm_up.loaded is None


def test_what_is_less_than_loading_classes_takes_does_not_count(tmp_path: Path) -> None:
    """Three and a half times as long instead of three times."""
    somewhat = replace(WENT_ON, warm_up=(3.5,))
    warm_up = profiled(tmp_path, lines_of(NEW, "app-1"), lines_of(somewhat, "app-2")).warm_up
    assert warm_up is not None
    assert warm_up.loaded is None
