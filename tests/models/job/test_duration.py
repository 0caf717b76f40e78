"""Durations of batches: hand-computed levels, stacks, laws in slots and rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain import (
    Coalescing,
    DefaultParallelism,
    FileSplits,
    RecordSplits,
    RowsLaw,
    SourceTasks,
    StageProfile,
)
from headway.models.job.duration import DurationModel, LevelSpan, level_spans, stacked
from headway.models.stages.makespan import makespan_moments
from headway.models.stages.task_counts import coalesced_tasks
from tests.factories import a_shuffle_stage as a_stage


def span_s(*stages: StageProfile, slots: int, partitions: int, rows: float) -> float:
    return sum(float(level.at(rows)) for level in level_spans(stages, slots, partitions))


def test_one_wave_takes_one_task() -> None:
    # 8 tasks of 1000 rows each on 8 slots.
    assert span_s(a_stage(), slots=8, partitions=8, rows=8000.0) == pytest.approx(0.06)


def test_one_task_more_than_slots_takes_a_second_wave() -> None:
    assert span_s(a_stage(), slots=8, partitions=9, rows=9000.0) == pytest.approx(2 * 0.06)


def test_source_tasks_do_not_follow_the_partitions() -> None:
    source = a_stage(level=0, tasks_rule="source", num_source_tasks=4)
    for partitions in (1, 8, 100):
        assert span_s(source, slots=2, partitions=partitions, rows=400.0) == pytest.approx(0.102)


def test_the_rows_of_the_state_are_dealt_out_to_the_tasks_that_hold_them() -> None:
    holds = a_stage(task_per_state_row_s=1e-6)
    for partitions in (2, 8):
        empty, full = (
            float(level_spans((holds,), 2, partitions, rows)[0].at(0.0)) for rows in (0.0, 400e3)
        )
        # A second for every million, and two slots work on it.
        assert full - empty == pytest.approx(0.2)


def test_writing_for_an_exchange_costs_per_partition() -> None:
    writer = a_stage(level=0, tasks_rule="source", num_source_tasks=2, task_per_partition_s=1e-3)
    assert span_s(writer, slots=2, partitions=30, rows=0.0) == pytest.approx(0.05 + 0.03)


def test_rows_of_a_stage_follow_its_law() -> None:
    stage = a_stage(rows=RowsLaw(scale=20.0, exponent=0.5))
    # sqrt(10 000) = 100, times 20, over 4 tasks, at 10 us.
    expected_s = 0.05 + 1e-5 * 2000.0 / 4
    assert span_s(stage, slots=4, partitions=4, rows=10000.0) == pytest.approx(expected_s)


def test_noisy_tasks_take_the_makespan_of_their_spread() -> None:
    stage = a_stage(task_noise_ratio=0.3)
    unit = makespan_moments(24, 16, 0.3).mean
    rows = 24000.0
    assert span_s(stage, slots=16, partitions=24, rows=rows) == pytest.approx(unit * 0.06)


def test_stages_of_a_level_share_the_slots_and_levels_add_up() -> None:
    first, second = a_stage(name="a"), a_stage(name="b")
    (level,) = level_spans((first, second), 4, 4)
    assert level.name == "a+b"
    # Eight tasks of 60 ms on four slots.
    assert float(level.at(4000.0)) == pytest.approx(0.12)
    later = replace(second, level=2)
    assert [one.name for one in level_spans((first, later), 4, 4)] == ["a", "b"]
    both_s = span_s(first, later, slots=4, partitions=4, rows=4000.0)
    assert both_s == pytest.approx(0.12)


def test_spreads_of_stages_that_share_a_level_are_pooled_by_tasks() -> None:
    source = a_stage(name="a", tasks_rule="source", num_source_tasks=2, task_noise_ratio=0.5)
    other = a_stage(name="b", task_noise_ratio=0.1)
    (level,) = level_spans((source, other), 4, 6)
    pooled = np.sqrt((2 * 0.25 + 6 * 0.01) / 8)
    unit = makespan_moments(8, 4, float(pooled)).mean
    assert float(level.at(0.0)) == pytest.approx(unit * 0.05)


def test_the_driver_is_added_to_the_levels() -> None:
    model = DurationModel(0.2, level_spans((a_stage(),), 2, 4))
    assert float(model.mean_s(0.0)) == pytest.approx(0.2 + 2 * 0.05)
    assert model.mean_s(np.zeros((2, 3))).shape == (2, 3)


def test_a_slope_is_the_derivative() -> None:
    model = DurationModel(0.2, level_spans((a_stage(rows=RowsLaw(scale=3.0, exponent=0.7)),), 2, 4))
    rows, step = np.array([10.0, 1e3, 1e6]), 1e-4
    numeric = (model.mean_s(rows * (1 + step)) - model.mean_s(rows * (1 - step))) / (
        2 * step * rows
    )
    assert model.slope_s(rows) == pytest.approx(numeric, rel=1e-6)


def test_the_slope_below_one_row_is_that_at_one() -> None:
    model = DurationModel(0.0, level_spans((a_stage(rows=RowsLaw(scale=3.0, exponent=0.5)),), 2, 4))
    assert float(model.slope_s(0.0)) == float(model.slope_s(1.0))


def test_a_stack_answers_as_its_models_do() -> None:
    stages = (
        a_stage(level=0, tasks_rule="source", num_source_tasks=3),
        a_stage(name="b", level=1, task_noise_ratio=0.2),
        a_stage(name="c", level=1, rows=RowsLaw(scale=3.0, exponent=0.6)),
    )
    models = [
        DurationModel(0.3, level_spans(stages, slots, partitions))
        for slots, partitions in ((1, 4), (4, 4), (5, 17))
    ]
    stack = stacked(models)
    rows = np.array([1.0, 500.0, 1e5])
    for order in (np.array([0, 1, 2]), np.array([2, 0, 0])):
        chosen = [models[place] for place in order]
        together = stack.take(order).over_axes(2)
        for method in ("mean_s", "slope_s"):
            alone = np.array([getattr(model, method)(rows) for model in chosen])
            assert getattr(together, method)(np.tile(rows, (3, 1))) == pytest.approx(alone)
    assert stack.mean_s(rows) == pytest.approx(
        [float(model.mean_s(n)) for model, n in zip(models, rows.tolist(), strict=True)]
    )


def test_a_model_without_stages_is_the_driver() -> None:
    assert float(DurationModel(0.2, ()).mean_s(1e9)) == 0.2
    assert float(LevelSpan("none", 0.1, ()).slope_at(1e9)) == 0.0


@given(
    slots=st.integers(1, 40),
    more=st.integers(1, 40),
    partitions=st.integers(1, 60),
    noise=st.sampled_from([0.0, 0.1, 0.4, 1.0]),
)
def test_more_slots_are_never_slower(slots: int, more: int, partitions: int, noise: float) -> None:
    stage = a_stage(task_noise_ratio=noise)
    few = span_s(stage, slots=slots, partitions=partitions, rows=1e5)
    many = span_s(stage, slots=slots + more, partitions=partitions, rows=1e5)
    # The renewal approximation of the makespan is good to 2.5%.
    assert many <= few * (1.0 if noise == 0.0 else 1.03)


@given(rows=st.lists(st.floats(0.0, 1e9), min_size=2, max_size=2), exponent=st.floats(0.0, 1.0))
def test_more_rows_never_take_less(rows: list[float], exponent: float) -> None:
    stage = a_stage(rows=RowsLaw(scale=2.0, exponent=exponent))
    fewer, more = sorted(rows)
    small_s = span_s(stage, slots=3, partitions=5, rows=fewer)
    assert small_s <= span_s(stage, slots=3, partitions=5, rows=more) * (1 + 1e-12)


def test_a_hot_key_keeps_one_slot_busy_however_many_tasks_there_are() -> None:
    hot = a_stage(task_fixed_s=0.0, hot_share_ratio=0.4)
    # 0.4 + 0.6 / 8 of 8000 rows are one task's, at 10 us each, and there is a slot for each.
    assert span_s(hot, slots=8, partitions=8, rows=8000) == pytest.approx(0.038)
    many = span_s(hot, slots=8, partitions=256, rows=8000)
    assert 0.4 * 0.08 < many < 0.038
    even = span_s(a_stage(task_fixed_s=0.0), slots=8, partitions=256, rows=8000)
    assert even == pytest.approx(0.08 / 8)


def test_a_hot_key_costs_nothing_on_one_slot() -> None:
    hot, even = a_stage(hot_share_ratio=0.4), a_stage()
    assert span_s(hot, slots=1, partitions=8, rows=8000) == pytest.approx(
        span_s(even, slots=1, partitions=8, rows=8000)
    )


RULE = Coalescing(exchange_bytes_per_row=100.0, advisory_bytes=2**26, smallest_bytes=2**20)
MERGED = a_stage(tasks_rule="coalesced", num_source_tasks=4, coalescing=RULE, task_noise_ratio=0.2)
BATCH_ROWS = (0.0, 100.0, 5e3, 2e4, 5e4, 2e5, 3e6, 4e7, 1e9)


@pytest.mark.parametrize("slots", [2, 8, 32])
def test_a_coalesced_stage_has_the_tasks_of_its_bytes(slots: int) -> None:
    ratios = []
    for rows in np.geomspace(100.0, 1e9, 200).tolist():
        tasks = coalesced_tasks(RULE, 100.0 * rows, slots, 64)
        fixed = replace(MERGED, tasks_rule="fixed", coalescing=None, num_source_tasks=tasks)
        there_s = span_s(fixed, slots=slots, partitions=64, rows=rows)
        (at_size,) = level_spans((MERGED,), slots, 64, batch_rows=rows)
        assert float(at_size.at(rows)) == pytest.approx(there_s)
        ratios.append(span_s(MERGED, slots=slots, partitions=64, rows=rows) / there_s)
    # The number of tasks jumps, and the line does not.
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.04)
    assert min(ratios) > 0.65
    assert max(ratios) < 1.5


def test_a_small_batch_gains_nothing_from_more_slots() -> None:
    few, many = (span_s(MERGED, slots=slots, partitions=64, rows=5000.0) for slots in (2, 32))
    assert few == pytest.approx(many) == pytest.approx(0.05 + 5000 * 1e-5)
    # Of a batch of many mebibytes, each slot gets a part.
    few, many = (span_s(MERGED, slots=slots, partitions=64, rows=3e6) for slots in (2, 32))
    assert few > 8 * many


@given(st.floats(1.0, 1e8), st.floats(0.3, 1.0), st.floats(0.0, 1e5))
def test_bends_change_the_slope_as_they_change_the_time(
    rows: float, exponent: float, static_rows: float
) -> None:
    law = RowsLaw(scale=2.0, exponent=exponent, static_rows=static_rows)
    model = DurationModel(0.2, level_spans((replace(MERGED, rows=law),), 8, 64))
    assert float(model.mean_s(rows)) > 0.2
    # A line between two sizes falls by next to nothing where the power of the rows is curved.
    steps_s = np.diff(model.mean_s(rows * np.linspace(0.5, 2.0, 1501))) / (1e-3 * rows)
    assert float(model.slope_s(rows)) == pytest.approx(float(steps_s.mean()), abs=1e-12)
    # It does not jump: where a bend enters the range, it changes a few times as fast as the rows.
    assert float(model.slope_s(1.001 * rows)) == pytest.approx(float(steps_s.mean()), rel=5e-3)
    assert steps_s.min() > -1e-7


@pytest.mark.parametrize("exponent", [0.3, 0.6, 1.0])
@pytest.mark.parametrize("slots", [2, 8, 32])
def test_a_level_never_falls_however_large_its_batches_are(slots: int, exponent: float) -> None:
    law = RowsLaw(scale=24.0, exponent=exponent, static_rows=0.0)
    stages = (replace(MERGED, rows=law),)
    model = DurationModel(0.2, level_spans(stages, slots, 64))
    rows = np.geomspace(0.1, 1e15, 3_000)
    durations_s = model.mean_s(rows)
    # Where the power of the rows is curved, a line between two sizes falls by next to nothing.
    assert (durations_s >= 0.99 * np.maximum.accumulate(durations_s)).all()
    # Each task is as large as it may be there: their number follows the rows no longer.
    (largest,) = level_spans(stages, slots, 64, batch_rows=1e15)
    assert durations_s[-1] == pytest.approx(0.2 + float(largest.at(1e15)), rel=1e-6)


def a_stage_of_tasks_by_rows(rule: str, random: np.random.Generator) -> StageProfile:
    """A stage whose number of tasks follows the rows of the batch by one of Spark's rules."""
    costs: dict[str, Any] = {
        "task_fixed_s": 10 ** random.uniform(-2.0, -0.5),
        "task_per_row_s": 10 ** random.uniform(-7.0, -4.5),
        "task_noise_ratio": 0.2,
    }
    if rule == "coalesced":
        smallest_bytes = int(10 ** random.uniform(4.0, 6.5))
        coalescing = Coalescing(
            exchange_bytes_per_row=10 ** random.uniform(0.5, 3.0),
            advisory_bytes=int(smallest_bytes * 10 ** random.uniform(0.0, 2.0)),
            smallest_bytes=smallest_bytes,
        )
        law = RowsLaw(
            scale=10 ** random.uniform(-1.0, 1.0),
            exponent=1.0,
            static_rows=random.choice([0.0, 1e4]),
        )
        return replace(MERGED, **costs, coalescing=coalescing, rows=law)
    if rule == "records":
        records = RecordSplits(
            topic_partitions=int(random.integers(1, 65)),
            max_records=int(random.integers(99, 100_000)),
        )
        source = SourceTasks(records=records)
    else:
        files = FileSplits(
            file_rows=10 ** random.uniform(1.0, 6.0),
            file_bytes=10 ** random.uniform(3.0, 8.5),
            max_split_bytes=2**27,
            open_cost_bytes=2**22,
            splits_files=rule == "files that split",
        )
        source = SourceTasks(files=files, parallelism=DefaultParallelism())
    return a_stage(**costs, tasks_rule="source", num_source_tasks=4, source_tasks=source)


@pytest.mark.parametrize("rule", ["coalesced", "records", "files that split", "whole files"])
def test_bends_follow_the_mean_of_batches_of_about_the_same_size(rule: str) -> None:
    """Numbers of tasks are whole, so durations jump; the line is near their mean around a size."""
    random = np.random.default_rng(5)
    mean_errors = []
    for _ in range(12):
        stage = a_stage_of_tasks_by_rows(rule, random)
        setting = int(random.choice([1, 2, 8, 32])), int(random.choice([2, 16, 200]))
        (span,) = level_spans((stage,), *setting)
        rows = np.geomspace(1.0, 1e9, 40)
        around_s = [
            [
                float(level_spans((stage,), *setting, batch_rows=ratio * size)[0].at(size))
                for ratio in np.geomspace(0.75, 4 / 3, 7)
            ]
            for size in rows
        ]
        errors = np.abs(np.log(span.at(rows) / np.mean(around_s, axis=1)))
        assert errors.max() < 0.35
        mean_errors.append(errors.mean())
    assert np.mean(mean_errors) < 0.01


@pytest.mark.parametrize(
    "law", [RowsLaw(scale=0.0, exponent=1.0, static_rows=4e5), RowsLaw(scale=4e5, exponent=0.0)]
)
def test_a_level_whose_rows_do_not_follow_the_batch_takes_the_same_time(law: RowsLaw) -> None:
    stage = replace(MERGED, rows=law)
    (at_any_size,) = level_spans((stage,), 8, 64)
    (at_one_size,) = level_spans((stage,), 8, 64, batch_rows=1.0)
    expected_s = pytest.approx(float(at_one_size.at(1.0)))
    assert [float(at_any_size.at(rows)) for rows in (1.0, 1e4, 1e9)] == [expected_s] * 3


def test_stacks_keep_the_bends_of_each_setting() -> None:
    stages = (a_stage(level=0, tasks_rule="source", num_source_tasks=3), MERGED)
    settings = [(2, 8), (8, 8), (8, 64), (32, 200)]
    models = [DurationModel(0.3, level_spans(stages, *setting)) for setting in settings]
    chosen = np.array([3, 1, 1, 0])
    stack = stacked(models).take(chosen).over_axes(2)
    rows = np.array(BATCH_ROWS)
    for place, number in enumerate(chosen):
        assert stack.mean_s(rows)[place] == pytest.approx(models[number].mean_s(rows))
        assert stack.slope_s(rows)[place] == pytest.approx(models[number].slope_s(rows))
