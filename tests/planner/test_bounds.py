"""Bounds: no setting beats them, and the search over many nodes finds what a scan finds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from headway.assumptions.planning import NODE_COUNTS_TRIED
from headway.domain import Arrivals, JobProfile, StageResources, Target
from headway.models.job.bends import bends_through
from headway.models.job.duration import DurationModel, LevelSpan
from headway.planner.candidates import all_candidates, candidates_at
from headway.planner.explain.infeasible import physical_floor_s
from headway.planner.fewest_nodes import fewest_nodes
from headway.planner.frontier import sustainable_rates_per_s
from headway.planner.noise_free import _rows_of_duration, lowest_latency, most_rates_per_s
from headway.planner.question import Question, SearchSpace
from headway.planner.relaxation import relaxed_nodes
from tests.factories import a_configuration, a_profile, a_stage_observed
from tests.planner.enumeration import random_case
from tests.planner.plans import plan
from tests.seeds import seeds


def question_of(seed: int, *, varies_slots: bool = False) -> Question:
    case = random_case(seed)
    profile = with_other_slots(case.profile, seed) if varies_slots else case.profile
    return Question(
        profile=replace(profile, arrivals=case.arrivals),
        target=case.target,
        space=case.space,
        confidence=case.confidence,
    )


def with_other_slots(profile: JobProfile, seed: int) -> JobProfile:
    """Profiled on a large machine of its own, where tasks waited, and with slots of their own."""
    random = np.random.default_rng(seed)
    stages = tuple(
        replace(
            stage,
            observed=replace(a_stage_observed(), shared_wait_ratio=float(random.uniform(0.2, 0.9))),
            resources=None
            if random.random() < 0.5
            else StageResources(needs="half a GPU", slots_ratio=float(random.choice([0.5, 2.0]))),
        )
        for stage in profile.stages
    )
    seen = replace(profile.settings[0], configuration=a_configuration(cores_per_executor=16))
    application = replace(profile.application, id="local-1")
    return replace(profile, stages=stages, settings=(seen,), applications=(application,))


@pytest.mark.parametrize("varies_slots", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_no_setting_sustains_more_than_the_bound_of_its_size(seed: int, varies_slots: bool) -> None:
    question = question_of(seed, varies_slots=varies_slots)
    triggers_s = question.space.trigger_choices_s(question.profile, question.target.limit_s)
    for nodes, partitions, bound_per_s in most_rates_per_s(question):
        settings = candidates_at(question, [(nodes, partitions, one) for one in triggers_s])
        assert sustainable_rates_per_s(settings, 1e-3).max() <= bound_per_s * (1 + 1e-3)


def test_bounds_hold_where_durations_bend_upwards() -> None:
    # At first nothing seems to reach half a second, and from a million rows on each is expensive.
    start_s, bends = bends_through(np.array([0.0, 1e3, 1e6, 2e6]), np.array([0.1, 0.2, 0.2, 50.0]))
    model = DurationModel(0.0, (LevelSpan("stage", start_s, (), bends),))
    limits_s = np.array([0.05, 0.15, 0.3, 0.5, 20.0, 100.0])
    rows = _rows_of_duration(model, limits_s)
    assert rows[0] == 0.0
    assert model.mean_s(rows[1:]) == pytest.approx(limits_s[1:])


@pytest.mark.parametrize("varies_slots", [False, True])
@pytest.mark.parametrize("seed", seeds(6, 25))
def test_no_plan_goes_below_the_relaxation(seed: int, varies_slots: bool) -> None:
    question = question_of(seed, varies_slots=varies_slots)
    nodes, relaxed = fewest_nodes(question).nodes, relaxed_nodes(question)
    assert 0 < relaxed <= (math.inf if nodes is None else nodes)


@pytest.mark.parametrize("seed", seeds(6, 25))
def test_no_setting_is_faster_than_the_floor_for_any_number_of_nodes(seed: int) -> None:
    question = question_of(seed, varies_slots=True)
    every = all_candidates(question, range(1, question.space.max_nodes + 1))
    assert physical_floor_s(question) <= lowest_latency(every)[1]


def test_the_relaxation_of_a_single_stage_is_its_work_over_the_time_there_is() -> None:
    # One level, all rows alike, free running: T = D, so that 2 D = limit in the worst case and
    # slots = rate * cost / (1 - driver / D).
    stage = replace(
        a_profile().stages[0],
        num_source_tasks=1000,
        task_fixed_s=0.0,
        task_per_partition_s=0.0,
        task_per_row_s=1e-3,
    )
    phases = (replace(a_profile().driver_phases[0], mean_s=0.1),)
    profile = replace(a_profile(), stages=(stage,), driver_phases=phases)
    noise = replace(profile.noise, run_to_run_ratio=0.0)
    question = Question(
        profile=replace(profile, noise=noise, arrivals=Arrivals(rate_per_s=10000.0)),
        target=Target.parse("mean <= 1.5s"),
        space=SearchSpace(max_nodes=100),
        confidence=0.5,
    )
    assert relaxed_nodes(question) == pytest.approx(10.0 / (1.0 - 0.1 / 1.0), rel=2e-3)


def test_what_the_relaxation_rules_out_is_out() -> None:
    question = replace(question_of(0), target=Target.parse("p99 <= 1ms"))
    assert relaxed_nodes(question) == math.inf


def large(rate_per_s: float, max_nodes: int) -> Question:
    stages = (
        replace(a_profile().stages[0], num_source_tasks=4000, task_per_row_s=2e-4),
        a_profile().stages[1],
    )
    seen = replace(a_profile().settings[0], rows_per_batch_high=1e7)
    profile = replace(a_profile(), stages=stages, settings=(seen,))
    return Question(
        profile=replace(profile, arrivals=Arrivals(rate_per_s=rate_per_s)),
        target=Target.parse("p99 <= 20s"),
        space=SearchSpace(max_nodes=max_nodes, cores_per_executor=4, trigger_s=5.0),
        confidence=0.8,
    )


@pytest.mark.parametrize("rate_per_s", np.geomspace(1e5, 1.6e6, 5).tolist())
def test_many_nodes_are_searched_as_well_as_one_by_one(
    rate_per_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = large(rate_per_s, 150)
    quick = fewest_nodes(question)
    monkeypatch.setattr(
        "headway.planner.enumeration.NODE_COUNTS_TRIED", replace(NODE_COUNTS_TRIED, value=1000)
    )
    scanned = fewest_nodes(question)
    assert quick.nodes == scanned.nodes
    if quick.nodes is not None:
        assert quick.optimality.least_nodes <= quick.nodes
        assert 0 <= quick.optimality.gap_ratio(quick.nodes) < 1
        assert scanned.optimality.proved


def test_a_plan_states_how_far_from_the_best_it_can_be() -> None:
    case = random_case(1)
    found = plan(
        case.profile,
        case.arrivals,
        case.target,
        case.space,
        confidence=case.confidence,
        relaxation=True,
    )
    assert found.optimality is not None
    assert found.optimality.proved
    assert found.optimality.gap_ratio(found.nodes) == 0.0
    assert found.optimality.relaxed_nodes is not None
