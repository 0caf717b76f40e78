"""Batches that ran other stages than most are left out, counted, and described."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import headway
from headway.api.results import as_text
from headway.assumptions.fits import LEAST_BATCHES
from headway.domain import FindingCode
from headway.errors import InputError
from headway.profiler.streaming.job_runs import same_stages
from headway.profiler.streaming.samples import QueryRun
from headway.profiler.streaming.stage_kinds import StageKind
from tests.profiler.event_log import EPOCH_S, AppLog, Query, Stage, write_plain
from tests.profiler.streaming.test_stage_fit import a_run

READ = Stage(num_tasks=2, per_row_s=10e-6, scopes=("Scan json",))
SIDE = Stage(num_tasks=2, per_row_s=10e-6, scopes=("Scan parquet",))
JOIN = Stage(num_tasks=None, scopes=("SortMergeJoin",))
USUAL = Query(
    jobs=((READ,), (SIDE,), (JOIN,)), operators=(), run_id="6d1c7e0a-0d51-4a0e-9d1d-1f2e3d4c5b6a"
)


def notes_of(folder: Path, *others: Query) -> list[str]:
    log = AppLog().add(USUAL)
    for query in others:
        log.add(query)
    profile = headway.profile(write_plain(log.lines, folder / "log"))
    assert len(profile.stages) == 3
    return [note for note in profile.notes if "left out of the fit" in note]


def of_shape(jobs: tuple[tuple[Stage, ...], ...], num_batches: int, place: int) -> Query:
    return replace(
        USUAL, jobs=jobs, num_batches=num_batches, first_batch_id=40 + 20 * place,
        started_s=EPOCH_S + 100.0 + 50.0 * place,
    )  # fmt: skip


def test_batches_of_the_usual_stages_need_no_note(tmp_path: Path) -> None:
    assert notes_of(tmp_path) == []


@pytest.mark.parametrize("num_batches", [LEAST_BATCHES.value - 1, 12])
def test_an_empty_side_is_named_and_timed_where_there_is_enough(
    tmp_path: Path, num_batches: int
) -> None:
    (note,) = notes_of(tmp_path, of_shape(((READ,), (JOIN,)), num_batches, 0))
    assert f"{num_batches} of " in note
    assert f"{num_batches} without 'read parquet'" in note
    assert ("on average, the usual ones" in note) == (num_batches == 12)


def test_each_shape_is_named(tmp_path: Path) -> None:
    broadcast = replace(JOIN, scopes=("BroadcastHashJoin",))
    (note,) = notes_of(
        tmp_path,
        of_shape(((READ,), (JOIN,)), 3, 0),
        of_shape(((READ,), (SIDE,), (broadcast,)), 8, 1),
    )
    assert "8 without 'sort merge join', with 'broadcast hash join', " in note
    assert "3 without 'read parquet'" in note


def test_a_stage_with_another_plan_is_named_once(tmp_path: Path) -> None:
    two_scans = replace(READ, scopes=("Scan json", "Scan json"))
    (note,) = notes_of(tmp_path, of_shape(((two_scans,), (SIDE,), (JOIN,)), 3, 0))
    assert "3 with another plan of 'read json'" in note


@pytest.mark.parametrize("per_row_s", [10e-6, 60e-6])
def test_predictions_and_plans_say_that_slow_batches_are_left_out(
    tmp_path: Path, per_row_s: float
) -> None:
    branch = replace(READ, per_row_s=per_row_s, scopes=("Scan json", "WriteFiles"))
    log = AppLog().add(USUAL).add(of_shape(((branch,), (SIDE,), (JOIN,)), 10, 0))
    profile = headway.profile(write_plain(log.lines, tmp_path / "log"))
    last = profile.settings[-1]
    assert last.other_batches == 10
    assert last.other_batch_mean_s is not None
    is_longer = last.other_batch_mean_s > 1.1 * last.batch_duration_mean_s
    assert is_longer == (per_row_s == 60e-6)
    prediction = headway.predict(profile)
    plan = headway.plan(profile, target="p99 <= 20s")
    for answer in (prediction, plan):
        findings = [
            finding
            for finding in answer.findings
            if finding.code is FindingCode.SLOW_BATCHES_LEFT_OUT
        ]
        assert len(findings) == is_longer
        text = as_text(answer)
        assert text.count("ran other stages and took") == is_longer
    if is_longer:
        assert findings[0].numbers["num_left_out"] == 10
        assert findings[0].numbers["num_batches"] == 10 + last.num_batches


def in_shapes(run: QueryRun, *num_batches: int) -> QueryRun:
    """A run whose batches have stages of so many kinds, one shape after the other."""
    shapes = [shape for shape, count in enumerate(num_batches) for _ in range(count)]
    batches = tuple(
        replace(
            run.batches[0],
            stages=tuple(
                replace(stage, kind=StageKind(0, stage.has_parents, (f"shape {shape}",), level))
                for level, stage in enumerate(run.batches[0].stages)
            ),
        )
        for shape in shapes
    )
    return replace(run, batches=batches)


def test_runs_of_which_less_than_half_the_batches_are_usual_are_of_one_job() -> None:
    runs = [in_shapes(a_run(rows, 2, grows=False), 12, 9, 4) for rows in (35_000, 200_000)]
    notes: list[str] = []
    assert [len(run.batches) for run in same_stages(runs, notes)] == [12, 12]
    assert all("13 of 25 batches left out of the fit" in note for note in notes)


def test_a_run_that_mostly_has_another_shape_is_of_another_job() -> None:
    runs = [
        in_shapes(a_run(35_000, 2, grows=False), 20, 5),
        in_shapes(a_run(200_000, 2, grows=False), 9, 10),
    ]
    with pytest.raises(InputError, match="the queries are different jobs: growing"):
        same_stages(runs, [])
