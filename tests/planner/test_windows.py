"""Plans for window latency, several promises at once, and recovery."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headway.domain import (
    Arrivals,
    CatchUp,
    Metric,
    StreamAnswer,
    Target,
)
from headway.errors import InputError
from headway.models.job.duration import DurationModel, LevelSpan
from headway.models.job.predict import predict
from headway.planner.candidates import all_candidates
from headway.planner.noise_free import noise_free_latency_s, noise_free_rate_per_s
from headway.planner.question import Question, SearchSpace
from headway.planner.recovery import Pace, limited_recovery_s, recovery_s
from tests.factories import a_profile
from tests.planner.jobs import windowed
from tests.planner.plans import plan

SPACE = SearchSpace(max_nodes=4, cores_per_executor=4)
ARRIVALS = Arrivals(rate_per_s=5000.0)


def answer(target: str, **shape: Any) -> StreamAnswer:
    return plan(windowed(**shape), ARRIVALS, Target.parse(target), SPACE)


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ("window p99 <= 14s", {}),
        ("window mean <= 13s", {}),
        ("window p95 <= 3s", {"output_mode": "update"}),
        ("window mean <= 3s", {"output_mode": "complete"}),
    ],
)
def test_what_is_planned_for_windows_is_predicted_to_hold(
    target: str, shape: dict[str, Any]
) -> None:
    found = answer(target, **shape)
    assert found.feasible
    predicted = found.prediction.window_latency
    assert predicted is not None
    expected_s = {"mean": predicted.mean_s, "p95": predicted.p95_s, "p99": predicted.p99_s}
    assert expected_s[found.target.statistic] <= found.planned_latency_s * (1 + 1e-6)
    assert found.planned_latency_s <= found.target.limit_s


@pytest.mark.parametrize("shape", [{}, {"output_mode": "update"}], ids=["append", "update"])
@pytest.mark.parametrize("statistic", ["mean", "p50", "p99"])
def test_no_window_beats_the_bound(shape: dict[str, Any], statistic: str) -> None:
    question = Question(
        profile=replace(windowed(**shape), arrivals=ARRIVALS),
        target=Target.parse(f"window {statistic} <= 16s"),
        space=SPACE,
        confidence=0.95,
    )
    every = all_candidates(question, (1, 2, 3, 4))
    latency_s = every.latency_s(ARRIVALS.rate_per_s)
    assert np.all(noise_free_latency_s(every, ARRIVALS.rate_per_s) <= latency_s * (1 + 1e-9))
    met = every.meets_by_moments(ARRIVALS.rate_per_s)
    assert met.any()
    assert np.all(noise_free_rate_per_s(every)[met] >= ARRIVALS.rate_per_s)


def test_the_watermark_delay_is_a_floor_that_no_node_moves() -> None:
    found = answer("window p99 <= 9s")
    assert not found.feasible
    assert found.physical_floor_s is not None
    assert found.physical_floor_s > 10.4
    assert "no number of nodes suffices" in found.binding[1]
    assert not any(one.gives_way == "nodes" for one in found.nearest)


def test_a_watermark_that_just_misses_a_trigger_is_said() -> None:
    # The end plus 10.5 s is read half a second after a trigger, with a whole one to wait.
    space = replace(SPACE, trigger_s=10.0)
    found = plan(windowed(), ARRIVALS, Target.parse("window p99 <= 40s"), space)
    (advice,) = [one for one in found.advice if "watermark" in one.text]
    assert advice.latency_s is not None
    assert found.planned_latency_s - advice.latency_s == pytest.approx(10.0, rel=0.1)
    assert "shorter by 501 ms" in advice.text
    # It keeps its word: predicted with that delay, a trigger is won.
    lowered = windowed(watermark_delay_s=10.0 - 0.501)
    before, after = (
        predict(profile, found.configuration, ARRIVALS).window_latency
        for profile in (windowed(), lowered)
    )
    assert before is not None
    assert after is not None
    assert before.p99_s - after.p99_s == pytest.approx(10.0, rel=0.02)


@pytest.mark.parametrize(
    ("shape", "said"),
    [({"windows": ()}, "no windows"), ({"output_mode": None}, "has no output mode")],
)
def test_a_window_target_without_windows_is_one_line(shape: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        answer("window p99 <= 9s", **shape)


def test_every_promise_holds_beside_the_target() -> None:
    target = Target.parse("p99 <= 4s")
    alone = plan(a_profile(), ARRIVALS, target, SPACE)
    assert alone.prediction.batch_duration is not None
    # Planned with a margin, the same setting would not keep to what is expected of it.
    limit_s = alone.prediction.batch_duration.p99_s
    shorter = Target(metric=Metric.BATCH, quantile=0.99, limit_s=limit_s)
    both = plan(a_profile(), ARRIVALS, target, SPACE, further_targets=[shorter])
    assert both.feasible
    assert both.prediction.batch_duration is not None
    assert both.prediction.batch_duration.p99_s <= limit_s
    assert both.prediction.batch_duration.p99_s < 0.9 * limit_s
    assert both.planned_latency_s <= target.limit_s


def test_one_promise_that_cannot_be_kept_beside_the_others_is_named() -> None:
    also = [Target.parse("batch p99 <= 1ms")]
    found = plan(a_profile(), ARRIVALS, Target.parse("p99 <= 4s"), SPACE, further_targets=also)
    assert not found.feasible
    assert "batch p99 <= 1 ms" in found.binding[0]


def test_recovery_is_the_chain_of_batches() -> None:
    model = DurationModel(0.5, (LevelSpan("stage", 0.0, ((1e-4, 1.0, 1.0),)),))
    rate_per_s, trigger_s, outage_s = 5000.0, 1.0, 100.0
    left_s, taken_s = outage_s, 0.0
    usual = float(rate_per_s * max(trigger_s, 0.5 / (1 - 0.5)))
    while rate_per_s * left_s > 1.1 * usual:
        left_s = max(trigger_s, 0.5 + 1e-4 * rate_per_s * left_s)
        taken_s += left_s
    found = recovery_s(Pace(model=model, rate_per_s=rate_per_s, trigger_s=trigger_s), outage_s)
    assert float(found) == pytest.approx(taken_s)


def test_recovery_behind_a_limit_is_the_chain_of_batches() -> None:
    model = DurationModel(0.5, (LevelSpan("stage", 0.0, ((1e-4, 1.0, 1.0),)),))
    rate_per_s, trigger_s, outage_s, usual, limit = 5000.0, 1.0, 100.0, 5000.0, 10000.0
    waiting, taken_s = rate_per_s * outage_s, 0.0
    while waiting > 1.1 * usual:
        taken = min(waiting, limit)
        interval_s = max(trigger_s, 0.5 + 1e-4 * taken)
        waiting += rate_per_s * interval_s - taken
        taken_s += interval_s
    pace = Pace(model=model, rate_per_s=rate_per_s, trigger_s=trigger_s)
    assert limited_recovery_s(pace, outage_s, limit) == pytest.approx(taken_s)
    assert limited_recovery_s(pace, outage_s, 1e9) == float(recovery_s(pace, outage_s))
    assert limited_recovery_s(replace(pace, trigger_s=2.0), 9.0, limit) == math.inf


def test_a_promise_to_catch_up_takes_the_nodes_it_needs() -> None:
    profile = replace(
        a_profile(),
        stages=(replace(a_profile().stages[0], num_source_tasks=64, task_per_row_s=5e-4),),
        settings=(replace(a_profile().settings[0], rows_per_batch_high=1e6),),
    )
    arrivals = Arrivals(rate_per_s=20000.0)
    target, space = Target.parse("p99 <= 20s"), SearchSpace(max_nodes=20, cores_per_executor=4)
    needed = [
        plan(
            profile,
            arrivals,
            target,
            space,
            further_targets=[CatchUp(limit_s=limit_s, after=600.0)],
        )
        for limit_s in (1e5, 900.0, 600.0)
    ]
    assert [one.feasible for one in needed] == [True] * 3
    nodes = [one.nodes for one in needed]
    assert nodes == sorted(nodes)
    assert nodes[0] < nodes[-1]
    assert nodes[0] == plan(profile, arrivals, target, space).nodes


@pytest.mark.parametrize(
    ("shape", "causes"),
    [
        ({}, "the watermark delay of 10.0 s plus the event-time lag of 500 ms plus driver plus"),
        ({"output_mode": "update"}, "the event-time lag of 500 ms plus driver plus one task"),
    ],
)
def test_a_delay_that_no_setting_changes_is_named_as_the_cause(
    shape: dict[str, Any], causes: str
) -> None:
    """A plan named the driver alone below a watermark delay of seconds."""
    found = answer("window p99 <= 400ms", **shape)
    assert not found.feasible
    (physical,) = (text for text in found.binding if "no number of nodes suffices" in text)
    assert causes in physical
