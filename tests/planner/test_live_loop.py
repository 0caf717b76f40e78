"""The closed loop of a plan: policies side by side, and the optimum held against enumeration."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from headway.domain import Arrivals, RateTrace, StreamAnswer, Target
from headway.domain.live import PolicyComparison
from headway.errors import InputError
from headway.models.simulation.closed_loop import LoopTrace
from headway.planner.playback import simulate_plan
from headway.planner.question import SearchSpace
from headway.tuner.rule.loop import POLICIES, compare_policies
from headway.tuner.rule.optimum import Indices, PathCosts, cheapest_path, optimal_steps, path_costs
from headway.tuner.rule.policies import PathPolicy
from headway.tuner.rule.table import capacity_table
from tests.planner.live_cases import TRIGGER_S, the_case, the_question, waves_profile
from tests.planner.plans import plan
from tests.seeds import seeds


def random_costs(seed: int, num_steps: int = 6, num_sizes: int = 3) -> PathCosts:
    random = np.random.default_rng(seed)
    return PathCosts(
        sizes=np.sort(random.choice(np.arange(1.0, 9.0), num_sizes, replace=False)),
        step_s=30.0,
        late_s=random.uniform(0.0, 30.0, (num_steps, num_sizes)),
        removal_late_s=random.uniform(0.0, 12.0, (num_steps, num_sizes)),
        added_s=float(random.uniform(0.0, 90.0)),
    )


def total(costs: PathCosts, path: Indices, price: float) -> float:
    """Node-seconds of a path, with what its late arrivals cost."""
    cost = 0.0
    for step, size in enumerate(path):
        cost += float(costs.staying(step, price)[size])
        if step and size != path[step - 1]:
            cost += float(costs.going(step, price)[path[step - 1], size])
    return cost


def late_s(costs: PathCosts, path: Indices) -> float:
    """Seconds of late arrivals of a path."""
    late = float(costs.late_s[np.arange(len(path)), path].sum())
    down = np.flatnonzero(np.diff(costs.sizes[path]) < 0.0) + 1
    return late + float(costs.removal_late_s[down, path[down]].sum())


@pytest.mark.parametrize("seed", seeds(5, 25))
@pytest.mark.parametrize("price", [0.0, 1.0, 7.0, 200.0])
def test_the_path_is_the_best_of_all(seed: int, price: float) -> None:
    costs = random_costs(seed)
    best = min(
        total(costs, np.array(path), price)
        for path in itertools.product(range(3), repeat=len(costs.late_s))
    )
    assert total(costs, cheapest_path(costs, price), price) == pytest.approx(best)


def test_a_higher_price_means_fewer_late_seconds() -> None:
    for seed in range(10):
        costs = random_costs(seed, num_steps=40, num_sizes=4)
        late = [late_s(costs, cheapest_path(costs, price)) for price in (0.0, 1.0, 10.0, 1e4)]
        assert late == sorted(late, reverse=True)


def test_the_optimum_keeps_the_target_with_fewer_nodes_than_the_peak_needs() -> None:
    case = the_case()
    trace = LoopTrace(
        edges_s=np.array([0.0, 1800.0, 3600.0, 5400.0]), rates_per_s=np.array([60e3, 200e3, 60e3])
    )
    costs = path_costs(case.table, trace, TRIGGER_S)

    def late_ratio(steps: list[tuple[float, int]]) -> float:
        return case.run(PathPolicy(steps=steps), trace, 1).late_ratio

    steps = optimal_steps(costs, 0.0, late_ratio, 0.01)
    assert late_ratio(steps) <= 0.01
    run = case.run(PathPolicy(steps=steps), trace, 1)
    peak = case.table.need(200e3, TRIGGER_S)
    assert peak is not None
    assert run.executor_s < 0.75 * peak * 5400.0
    assert run.num_changes == 2


@cache
def planned() -> StreamAnswer:
    space = SearchSpace(
        max_nodes=12, cores_per_executor=4, shuffle_partitions=48, trigger_s=TRIGGER_S
    )
    arrivals, target = Arrivals(rate_per_s=80e3), Target.parse("p99 <= 3s")
    return plan(waves_profile(), arrivals, target, space)


TRACE = RateTrace(times_s=(0.0, 1800.0, 3600.0), rates_per_s=(60e3, 150e3, 60e3), end_s=5400.0)


@cache
def compared() -> PolicyComparison:
    policies = [(name, None) for name in POLICIES]
    return compare_policies(planned(), waves_profile(), TRACE, policies, executors=(1, 12))


def test_every_policy_meets_the_same_rows() -> None:
    found = compared()
    assert [one.policy for one in found.outcomes] == list(POLICIES)
    by_name = {one.policy: one for one in found.outcomes}
    assert by_name["static"].changes_per_run == 0.0
    assert by_name["static"].executor_s == pytest.approx(planned().executors * 5400.0)
    assert by_name["optimum"].late_ratio <= 0.02
    assert by_name["headway"].executor_s >= by_name["optimum"].executor_s * 0.95
    assert by_name["headway"].changes_per_run <= 4.0
    assert by_name["headway"].reversals_per_run == 0.0
    assert by_name["headway"].late_ratio < by_name["static"].late_ratio
    assert np.mean(found.stretch_rates_per_s) == pytest.approx(90e3, rel=0.01)


def test_without_a_policy_it_is_the_playback_of_the_plan() -> None:
    trace = RateTrace(times_s=(0.0,), rates_per_s=(80e3,), end_s=7200.0)
    playback = simulate_plan(planned(), trace, num_runs=4)
    found = compare_policies(
        planned(), waves_profile(), trace, [("static", None)], executors=(1, 12), num_runs=4
    )
    assert found.outcomes[0].late_ratio == pytest.approx(playback.late_ratio, abs=0.003)


def test_the_trigger_is_changed_where_executors_are_at_their_end() -> None:
    """What two executors miss at a long interval they keep at a short one."""
    slow = replace(
        planned(), configuration=replace(planned().configuration, executors=4, trigger_s=2.4)
    )
    fast_per_s = capacity_table(the_question(), [4], [1.0]).sustained(4, 1.0)
    slow_per_s = capacity_table(the_question(), [4], [2.4]).sustained(4, 2.4)
    assert slow_per_s < fast_per_s
    rate = 0.3 * slow_per_s + 0.7 * fast_per_s
    trace = RateTrace(times_s=(0.0,), rates_per_s=(rate,), end_s=5400.0)
    kept, changed = (
        compare_policies(
            slow,
            waves_profile(),
            trace,
            [("headway", None)],
            executors=(4, 4),
            num_runs=1,
            triggers_s=also,
        )
        for also in ((), (1.0,))
    )
    assert [one.trigger_s for one in kept.outcomes[0].steps] == [2.4]
    assert [one.trigger_s for one in changed.outcomes[0].steps] == [2.4, 1.0]
    assert changed.outcomes[0].late_ratio < 0.5 * kept.outcomes[0].late_ratio


def test_what_cannot_be_compared_is_one_line() -> None:
    with pytest.raises(InputError, match=r"expected e.g. 2..12"):
        compare_policies(planned(), waves_profile(), TRACE, [("static", None)], executors=(5, 2))
