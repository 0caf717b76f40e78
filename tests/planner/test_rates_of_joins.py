"""Rates up to which joins meet their targets, whose state makes batches longer at higher rates."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from headway.domain import (
    Arrivals,
    CatchUp,
    DeclaredCosts,
    InfeasiblePlan,
    JobProfile,
    Prediction,
    StatedRange,
    StateLoad,
    StateProfile,
    StreamAnswer,
    Target,
    WarmUp,
)
from headway.models.job.capacity import Capacity
from headway.models.job.predict import predict, predictions_at
from headway.models.job.setting import duration_model
from headway.planner.candidates import candidates_at
from headway.planner.frontier import sustainable_rates_per_s
from headway.planner.nodes_by_rate import NodesByRate
from headway.planner.noise_free import noise_free_rate_per_s
from headway.planner.question import Question, SearchSpace
from tests.factories import a_configuration, a_profile, kept
from tests.planner.plans import plan

TARGET = Target.parse("p99 <= 2s")
SPACE = SearchSpace(max_nodes=2, cores_per_executor=4, shuffle_partitions=8, trigger_s=1.0)
RATES_PER_S = (500.0, 4000.0, 9000.0, 60_000.0)


def joining(
    state_row_s: float = 4e-6, *, exponent: float = 1.0, updated_rows: float = 5000.0
) -> JobProfile:
    """A join that keeps 400,000 rows at 5,000 rows/s, each of which costs every batch its time."""
    state = StateProfile(
        rows=400_000,
        memory_bytes=2 * 10**8,
        commit_per_partition_s=0.001,
        growth_per_s=0.0,
        updated_rows=updated_rows,
        rate_exponent=exponent,
    )
    profile = a_profile(state=state)
    scan, join = profile.stages
    shape = replace(profile.shape, stateful_operators=("symmetricHashJoin",), state_rows=400_000)
    return replace(
        profile, shape=shape, stages=(scan, replace(join, task_per_state_row_s=state_row_s))
    )


def at_rate(profile: JobProfile, rate_per_s: float) -> JobProfile:
    return replace(profile, arrivals=Arrivals(rate_per_s=rate_per_s))


def question_at(
    rate_per_s: float, profile: JobProfile | None = None, target: Target = TARGET
) -> Question:
    return Question(
        profile=at_rate(profile or joining(), rate_per_s),
        target=target,
        space=SPACE,
        confidence=0.95,
    )


@cache
def planned_at(rate_per_s: float) -> StreamAnswer:
    return plan(joining(), Arrivals(rate_per_s=rate_per_s), TARGET, SPACE)


def upper_p99_s(prediction: Prediction) -> float:
    """The upper end of the 90% interval."""
    assert prediction.tuple_latency is not None
    interval_s = prediction.tuple_latency.interval90_p99_s
    assert interval_s is not None
    return interval_s.high


def test_max_rates_do_not_depend_on_the_requested_rate() -> None:
    frontiers = set()
    for rate_per_s in RATES_PER_S:
        points = planned_at(rate_per_s).frontier
        frontiers.add(tuple(point.sustainable_rate_per_s for point in points))
    # Beyond the number of nodes of a plan only two more are shown.
    assert len(frontiers) == 1
    ((of_one, of_two),) = frontiers
    assert 500.0 < of_one < of_two < 60_000.0


def test_plans_at_the_printed_max_rate_are_feasible_and_beyond_it_they_are_not() -> None:
    (point, _) = planned_at(500.0).frontier
    one_node = replace(SPACE, max_nodes=1)
    rate_per_s = point.sustainable_rate_per_s
    at_most = plan(joining(), Arrivals(rate_per_s=rate_per_s), TARGET, one_node)
    assert kept(at_most).max_rate_per_s == rate_per_s
    beyond = plan(joining(), Arrivals(rate_per_s=1.03 * rate_per_s), TARGET, one_node)
    assert isinstance(beyond, InfeasiblePlan)
    of_rate = [nearest for nearest in beyond.nearest if nearest.gives_way == "rate"]
    assert [nearest.numbers["rate_per_s"] for nearest in of_rate] == [rate_per_s]


def test_predictions_agree_with_the_max_rate() -> None:
    """The upper end of the 90% interval is the plan's at 95% confidence."""
    for point in planned_at(500.0).frontier:
        for ratio, is_met in ((1.0, True), (1.03, False)):
            rate_per_s = ratio * point.sustainable_rate_per_s
            assert point.configuration is not None
            prediction = predict(joining(), point.configuration, Arrivals(rate_per_s=rate_per_s))
            assert (upper_p99_s(prediction) <= TARGET.limit_s) is is_met


def test_rules_of_thumb_have_rates_that_do_not_depend_on_the_requested_one() -> None:
    low, high = (
        {(rule.rule, rule.nodes): rule.sustainable_rate_per_s for rule in kept(answer).rules}
        for answer in map(planned_at, RATES_PER_S[:2])
    )
    assert low
    # Dynamic allocation settles at other numbers of nodes at other rates.
    same = low.keys() & high.keys()
    assert len(same) >= len(low) - 1
    assert {rule: low[rule] for rule in same} == {rule: high[rule] for rule in same}


@pytest.mark.parametrize("trigger_s", [0.0, 1.0])
@pytest.mark.parametrize("limit", [None, 6000])
def test_stable_up_to_agrees_with_predictions(trigger_s: float, limit: int | None) -> None:
    configuration = a_configuration(trigger_s=trigger_s, max_offsets_per_trigger=limit)
    # Many rows in the state, so that they decide how many rows a batch with a limit is full of.
    profile = joining(4e-5)
    up_to = {
        rate_per_s: predict(
            profile, configuration, Arrivals(rate_per_s=rate_per_s)
        ).sustainable_rate_per_s
        for rate_per_s in RATES_PER_S
    }
    (rate_per_s,) = {float(f"{value:.3g}") for value in up_to.values()}
    exact_per_s = up_to[500.0]
    assert max(up_to.values()) == pytest.approx(min(up_to.values()), rel=1e-9)
    below, above = (
        predict(profile, configuration, Arrivals(rate_per_s=ratio * exact_per_s))
        for ratio in (0.995, 1.005)
    )
    assert rate_per_s > 0 and below.stable and not above.stable


@pytest.mark.parametrize("trigger_s", [0.0, 1.0])
def test_predictions_at_several_rates_are_those_at_each(trigger_s: float) -> None:
    rates_per_s, configuration = (1000.0, 4000.0, 8000.0), a_configuration(trigger_s=trigger_s)
    together = predictions_at(joining(), configuration, Arrivals(rate_per_s=1.0), rates_per_s)
    for rate_per_s, prediction in zip(rates_per_s, together, strict=True):
        alone = predict(joining(), configuration, Arrivals(rate_per_s=rate_per_s))
        assert alone.tuple_latency is not None
        assert prediction.tuple_latency is not None
        assert prediction.tuple_latency.p99_s == pytest.approx(alone.tuple_latency.p99_s, rel=1e-6)
        assert upper_p99_s(prediction) == pytest.approx(upper_p99_s(alone), rel=1e-6)


def test_a_latency_is_quoted_up_to_the_same_rate_from_everywhere() -> None:
    profile, configuration = joining(4e-5), a_configuration(trigger_s=0.0)
    up_to = {
        Capacity.of(at_rate(profile, rate_per_s), configuration).latency_up_to_per_s()
        for rate_per_s in RATES_PER_S
    }
    assert len(up_to) == 1


def random_join(random: np.random.Generator) -> JobProfile:
    updated_rows = float(random.choice([0.0, 5000.0, 100_000.0]))
    return joining(
        float(np.exp(random.uniform(np.log(2e-7), np.log(2e-5)))),
        exponent=float(random.choice([0.4, 1.0])),
        updated_rows=updated_rows,
    )


def meets_alone(question: Question, setting: tuple[int, int, float], rate_per_s: float) -> bool:
    """Whether a setting meets the target at a rate that is the requested one, too."""
    at_this_rate = candidates_at(question.at_rate(rate_per_s), [setting])
    return bool(at_this_rate.meets_by_moments(rate_per_s)[0])


@pytest.mark.parametrize("seed", range(6))
def test_max_rates_equal_an_enumeration_of_requested_rates(seed: int) -> None:
    random = np.random.default_rng(seed)
    profile = random_join(random)
    target = Target.parse(str(random.choice(["p99 <= 3s", "mean <= 1s", "batch p95 <= 2s"])))
    settings = [
        (nodes, partitions, float(random.choice([0.0, 0.5, 2.0])))
        for nodes in (1, 2)
        for partitions in (4, 9)
    ]
    requested_per_s = float(np.exp(random.uniform(np.log(100.0), np.log(1e5))))
    question = question_at(requested_per_s, profile, target)
    candidates = candidates_at(question, settings)
    rates_per_s = sustainable_rates_per_s(candidates)
    bounds_per_s = noise_free_rate_per_s(candidates)
    for setting, rate_per_s, bound_per_s in zip(settings, rates_per_s, bounds_per_s, strict=True):
        tried_per_s = np.geomspace(10.0, 1e6, 40).tolist()
        met = [meets_alone(question, setting, tried) for tried in tried_per_s]
        # More rate is more state and longer batches: no rate is met above one that is missed.
        assert met == sorted(met, reverse=True)
        if not any(met):
            assert rate_per_s < tried_per_s[0]
            continue
        low_per_s, high_per_s = tried_per_s[met.index(False) - 1 : met.index(False) + 1]
        while high_per_s > 1.0005 * low_per_s:
            middle_per_s = (low_per_s * high_per_s) ** 0.5
            is_met = meets_alone(question, setting, middle_per_s)
            low_per_s, high_per_s = (
                (middle_per_s, high_per_s) if is_met else (low_per_s, middle_per_s)
            )
        assert rate_per_s == pytest.approx(low_per_s, rel=1e-3)
        assert bound_per_s >= low_per_s


@pytest.mark.parametrize("requested_per_s", RATES_PER_S)
def test_the_fewest_nodes_at_many_rates_are_those_of_a_plan_at_each(
    requested_per_s: float,
) -> None:
    rates_per_s = (500.0, 4000.0, 6000.0)
    expected = tuple(kept(planned_at(rate_per_s)).nodes for rate_per_s in rates_per_s)
    assert NodesByRate(question_at(requested_per_s)).fewest_nodes(rates_per_s) == expected


def test_a_state_that_does_not_follow_the_rate_leaves_the_durations_as_they_are() -> None:
    for profile in (joining(exponent=0.0), joining(0.0), joining(updated_rows=400_000.0)):
        model = duration_model(profile, 8, 8)
        assert not model.follows_rate
        assert model.at_rate(1.0) is model
        assert model.over_interval(1.0) is model


def test_durations_at_a_rate_are_those_of_a_job_with_this_rate() -> None:
    profile = joining(exponent=0.7)
    model = duration_model(profile, 8, 8)
    for rate_per_s in (1e-3, 10.0, 5000.0, 1e5):
        alone = duration_model(at_rate(profile, rate_per_s), 8, 8)
        rows = np.array([0.0, 100.0, 1e5])
        np.testing.assert_allclose(model.at_rate(rate_per_s).mean_s(rows), alone.mean_s(rows))
        again = model.at_rate(1e12).at_rate(rate_per_s)
        np.testing.assert_array_equal(again.mean_s(rows), model.at_rate(rate_per_s).mean_s(rows))
    interval_s = 2.0
    over = model.over_interval(interval_s).mean_s(20_000.0)
    assert float(over) == pytest.approx(float(model.at_rate(10_000.0).mean_s(20_000.0)))


def test_the_state_that_is_loaded_after_an_outage_is_that_of_the_rate() -> None:
    loaded = StateLoad(rows=400_000, num_stores=8, replayed_rows=0.0, load_s=40.0)
    warm_up = WarmUp(start_age_s=10.0, first_batch_extra_s=1.0, steady_age_s=60.0, loaded=loaded)
    profile = replace(joining(), warm_up=warm_up)
    promise = CatchUp(limit_s=900.0, after=60.0)
    times_s = {
        rate_per_s: candidates_at(
            question_at(rate_per_s, profile), [(1, 8, 1.0)]
        ).promised_latency_s(promise, 4000.0)[0]
        for rate_per_s in RATES_PER_S
    }
    assert times_s[500.0] > 10.0
    assert max(times_s.values()) == pytest.approx(min(times_s.values()), rel=1e-9)


def test_a_declared_job_has_its_state_at_any_rate() -> None:
    profile = joining()
    cost = StatedRange(low_s=1e-6, mid_s=2e-6, high_s=1e-5)
    costs = DeclaredCosts(
        driver=cost,
        task_fixed=cost,
        task_per_row=(cost, cost),
        configuration=a_configuration(),
        partitions_are_stated=True,
    )
    declared = replace(profile, settings=(), declared=costs)
    assert not duration_model(declared, 8, 8).follows_rate
