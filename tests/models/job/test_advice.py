"""What to run next follows from what the runs so far leave open."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

import headway
from headway.domain import Arrivals, JobProfile, ObservedSetting
from headway.formats.as_json import json_text, plan_json
from headway.formats.from_json import parse_plan
from headway.models.job.advice import SettingLatency, advised_runs
from headway.models.job.capacity import sustainable_rate_per_s
from headway.report.advice import next_run_texts
from headway.report.explanation import explanation_text
from tests.factories import a_configuration, a_profile

EXAMPLE = "examples/word-count.profile.yaml"


def a_run(profile: JobProfile, trigger_s: float, partitions: int, share: float) -> ObservedSetting:
    """A run at a share of what can be carried, on a trigger that it does not overrun."""
    configuration = replace(profile.baseline, shuffle_partitions=partitions, trigger_s=trigger_s)
    rate_per_s = share * sustainable_rate_per_s(profile, configuration)
    return replace(
        profile.settings[0],
        configuration=configuration,
        rate_per_s=rate_per_s,
        rows_per_batch_low=rate_per_s * trigger_s,
        rows_per_batch_high=rate_per_s * trigger_s,
    )


def fitted_on_neighbours() -> JobProfile:
    profile = a_profile()
    runs = ((3.0, 2, 0.6), (2.0, 8, 0.45), (1.0, 2, 0.6))
    return replace(profile, settings=tuple(a_run(profile, *run) for run in runs))


def test_a_slow_run_as_fast_as_possible_is_named_where_no_batch_was_small() -> None:
    profile = fitted_on_neighbours()
    small = [run for run in advised_runs(profile) if run.configuration.trigger_s == 0.0]
    assert small
    most_per_s = sustainable_rate_per_s(profile, small[0].configuration)
    assert small[0].rate_per_s == pytest.approx(0.3 * most_per_s)
    assert small[0].num_rows < profile.rows_per_batch_range[0]


def test_no_run_needs_more_rows_than_a_source_has() -> None:
    """Where rows cost almost nothing, it was "37 days at 2.14G/s"."""
    stages = (replace(stage, task_per_row_s=1e-12) for stage in a_profile().stages)
    profile = replace(a_profile(), stages=tuple(stages))
    assert sustainable_rate_per_s(profile, profile.baseline) > 1e9
    runs = advised_runs(profile)
    assert max(run.num_rows for run in runs) <= 50.0 * profile.rows_per_batch_range[1]
    assert max(run.duration_s for run in runs) < 1800.0


def test_sizes_lie_far_apart_and_partitions_differ_each_twice() -> None:
    runs = advised_runs(a_profile(state_partitions=8))
    *on_these_slots, more_slots = runs
    assert max(run.num_rows for run in on_these_slots) > 5 * min(
        run.num_rows for run in on_these_slots
    )
    assert {run.configuration.shuffle_partitions for run in runs} == {8, 32}
    assert {run.num_repeats for run in runs} == {2}
    assert more_slots.configuration.executors == 2 * a_configuration().executors
    assert all(run.new_checkpoint is (run.configuration.shuffle_partitions != 8) for run in runs)


@pytest.mark.parametrize(("trigger_s", "longest_s"), [(1.0, 3.0), (4.0, 5.0), (20.0, 20.0)])
def test_runs_have_enough_batches_within_two_minutes_where_the_trigger_allows(
    trigger_s: float, longest_s: float
) -> None:
    profile = a_profile()
    last = replace(profile.settings[0], configuration=a_configuration(trigger_s=trigger_s))
    runs = advised_runs(replace(profile, settings=(last,)))
    assert max(run.configuration.trigger_s for run in runs) <= longest_s
    for run in runs:
        assert run.num_batches >= 24
        assert run.duration_s >= 24 * run.configuration.trigger_s


def test_many_partitions_are_tried_with_fewer() -> None:
    many = replace(a_profile().settings[0], configuration=a_configuration(shuffle_partitions=200))
    counts = {
        run.configuration.shuffle_partitions for run in advised_runs(a_profile(settings=(many,)))
    }
    assert counts <= {200, 50}
    assert 50 in counts


def test_each_run_leaves_less_open_than_the_one_before() -> None:
    profile = fitted_on_neighbours()
    configuration = replace(profile.baseline, trigger_s=0.0)
    rate_per_s = 0.5 * sustainable_rate_per_s(profile, configuration)
    question = SettingLatency(configuration=configuration, arrivals=Arrivals(rate_per_s=rate_per_s))
    runs = advised_runs(profile, question)
    assert len(runs) >= 2
    gains = [run.narrowing for run in runs]
    for gain in gains:
        assert gain is not None
        assert gain.error_after_ratio < gain.error_now_ratio
        assert gain.interval_now_s is not None
        assert gain.interval_after_s is not None
        assert _width(gain.interval_after_s) < _width(gain.interval_now_s)
    assert question.next_run(profile) == runs[0]
    # What the second would add stands beside the first.
    assert gains[1].error_now_ratio == gains[0].error_after_ratio  # type: ignore[union-attr]


def _width(interval: object) -> float:
    return float(interval.high - interval.low)  # type: ignore[attr-defined]


def test_what_was_run_often_enough_is_not_run_again() -> None:
    profile = fitted_on_neighbours()
    question = SettingLatency(
        configuration=replace(profile.baseline, trigger_s=1.0), arrivals=profile.arrivals
    )
    runs = advised_runs(profile, question)
    as_named = tuple(a_run_as(profile, run.configuration, run.num_rows) for run in runs)
    often = replace(profile, settings=(*profile.settings, *(as_named * 20)))
    assert advised_runs(often, question) == ()
    assert question.next_run(often) is None


def a_run_as(profile: JobProfile, configuration: object, rows: float) -> ObservedSetting:
    return replace(
        profile.settings[0],
        configuration=configuration,  # type: ignore[arg-type]
        rows_per_batch_low=rows,
        rows_per_batch_high=rows,
    )


def test_a_question_of_more_slots_asks_for_a_run_there() -> None:
    profile = fitted_on_neighbours()
    question = SettingLatency(
        configuration=replace(profile.baseline, executors=8), arrivals=profile.arrivals
    )
    run = question.next_run(profile)
    assert run is not None
    assert run.configuration.executors == 8


def test_beyond_capacity_a_run_is_named_all_the_same() -> None:
    profile = fitted_on_neighbours()
    question = SettingLatency(configuration=profile.baseline, arrivals=Arrivals(rate_per_s=1e9))
    run = question.next_run(profile)
    assert run is not None
    assert run.narrowing is not None
    assert run.narrowing.interval_now_s is None
    assert math.isfinite(run.narrowing.error_after_ratio)


def test_predict_plan_and_explain_name_one_run() -> None:
    prediction = headway.predict(EXAMPLE, rate="30k/s", trigger="0s")
    (line, *_) = next_run_texts(prediction)
    assert line.startswith("next run: 2 min at ")
    plan = headway.plan(EXAMPLE, rate="60k/s", target="p99 <= 3s")
    assert plan.prediction.next_run is not None
    text = json_text(plan_json(plan))
    assert json.loads(text)["prediction"]["next_run"]["narrowing"]["statistic"] == "p99"
    read = parse_plan(text, name="plan")
    assert next_run_texts(read.prediction) == next_run_texts(plan.prediction)
    assert "Next run: 2 min at " in explanation_text(read)


def test_a_join_whose_batches_had_one_interval_is_run_at_another_first() -> None:
    """Rows and state are in one proportion at one interval, whatever the rate (E29)."""
    profile = fitted_on_neighbours()
    shape = replace(profile.shape, stateful_operators=("symmetricHashJoin",))
    runs = tuple(a_run(profile, 2.0, 8, share) for share in (0.3, 0.6))
    (first, *_) = advised_runs(replace(profile, shape=shape, settings=runs))
    assert first.learns == "what a row of the state costs"
    assert first.configuration.trigger_s != 2.0
    assert first.configuration.shuffle_partitions == 8
    (other, *_) = advised_runs(replace(profile, settings=runs))
    assert other.learns != first.learns
