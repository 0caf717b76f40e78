"""Runs whose batches a gate let start: recognised, and their starts tell nothing of the trigger."""

from __future__ import annotations

from pathlib import Path

import pytest

import headway
from tests.profiler.event_log import AppLog, Query, write_plain

MARK = "headway.gate.triggerMillis"
# Whenever it is its turn: on no grid.
GATED = Query(trigger_s=0.83, start_delay_s=0.1, num_batches=40)


def profiled(folder: Path, *, from_batch: int, trigger: float | None = None) -> headway.JobProfile:
    written = AppLog().add(GATED)
    for job in written.of("SparkListenerJobStart"):
        if int(job["Properties"]["streaming.sql.batchId"]) >= from_batch:
            job["Properties"][MARK] = "2000"
    path = write_plain(written.end(GATED.started_s + 100.0).lines, folder / "log")
    return headway.profile(path, trigger=trigger)


def test_the_trigger_is_the_querys_own_and_not_read_off_the_starts(tmp_path: Path) -> None:
    profile = profiled(tmp_path, from_batch=0)
    assert profile.baseline.trigger_s == 2.0
    (note,) = [note for note in profile.notes if "headway.schedule" in note]
    assert "batches were started by a gate (headway.schedule), not by its trigger of 2.00 s" in note
    # What batches cost is the same, whoever starts them.
    plain = profiled(tmp_path, from_batch=40)
    assert not any("headway.schedule" in note for note in plain.notes)
    assert [stage.task_per_row_s for stage in profile.stages] == pytest.approx(
        [stage.task_per_row_s for stage in plain.stages]
    )


def test_a_gate_that_came_later_is_counted(tmp_path: Path) -> None:
    profile = profiled(tmp_path, from_batch=30)
    assert profile.baseline.trigger_s == 2.0
    assert any(note.startswith("query orders") and "10 of 3" in note for note in profile.notes)


def test_a_stated_trigger_is_taken(tmp_path: Path) -> None:
    profile = profiled(tmp_path, from_batch=0, trigger=5.0)
    assert profile.baseline.trigger_s == 5.0
    assert not any("contradicts" in note for note in profile.notes)
