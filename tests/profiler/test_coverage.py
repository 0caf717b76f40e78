"""What a log lacks is said in words, with what to do about it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headway.api.profile import survey
from headway.domain import Coverage, Share
from headway.profiler.coverage import gaps, together
from tests.profiler.event_log import AppLog, Query, write_plain

_ALL = Share(seen=4, expected=4)
WHOLE = Coverage(
    tasks=_ALL,
    stages=_ALL,
    jobs=_ALL,
    batches=_ALL,
    executors=_ALL,
    has_start=True,
    has_end=True,
)


def test_a_whole_log_lacks_nothing() -> None:
    assert gaps(WHOLE) == ()


@pytest.mark.parametrize(("missing", "said"), [(1, "1 part of a"), (3, "3 parts of a")])
def test_parts_that_are_not_there_are_reported(missing: int, said: str) -> None:
    (gap,) = gaps(together([WHOLE, replace(WHOLE, missing_parts=missing)]))
    assert gap.startswith(said)
    assert "profile the whole folder" in gap


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (WHOLE, True),
        (replace(WHOLE, has_end=False), False),
        (replace(WHOLE, has_start=False), False),
        (replace(WHOLE, compacted=True), False),
        (replace(WHOLE, missing_parts=1), False),
    ],
)
def test_what_a_cut_log_lacks_is_not_laid_on_dropped_events(log: Coverage, said: bool) -> None:
    found = gaps(replace(log, tasks=Share(seen=2, expected=4)))
    assert any("events were dropped" in gap for gap in found) is said


def test_a_stage_that_was_cut_with_its_query_lacks_no_tasks(tmp_path: Path) -> None:
    events = [json.loads(line) for line in AppLog().add(Query(num_batches=20)).lines]
    ends = [one for one in events if one["Event"] == "SparkListenerStageCompleted"]
    cut = ends[-1]["Stage Info"]

    def gaps_of(name: str) -> tuple[str, ...]:
        left = [
            json.dumps(one)
            for one in events
            if one["Event"] != "SparkListenerTaskEnd" or one["Stage ID"] != cut["Stage ID"]
        ]
        (log,) = survey(write_plain(left, tmp_path / name), engine="in-process").logs
        assert log.coverage is not None
        return gaps(log.coverage)

    assert any("tasks missing" in gap for gap in gaps_of("lost"))
    cut["Failure Reason"] = "[SPARK_JOB_CANCELLED] Job 39 cancelled"
    assert not any("tasks missing" in gap for gap in gaps_of("cut"))


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_task_that_was_cut_with_its_query_is_not_missing(tmp_path: Path, is_cut: bool) -> None:
    # It ran when the query was stopped, so its id is used, but its end is not recorded.
    query = Query(num_batches=6)
    log = AppLog().add(query).add(replace(query, started_s=query.started_s + 60.0, seed=2))
    stage = log.of("StageCompleted")[2 * query.num_batches - 1]["Stage Info"]
    if is_cut:
        stage["Failure Reason"] = "[SPARK_JOB_CANCELLED] Job 11 cancelled"
    lost = next(end for end in log.of("TaskEnd") if end["Stage ID"] == stage["Stage ID"])
    log.events.remove(lost)
    (found,) = survey(write_plain(log.lines, tmp_path / "log"), engine="in-process").logs
    assert found.coverage is not None
    assert any("1 of 96 tasks missing" in gap for gap in gaps(found.coverage)) != is_cut
