"""Settings that say what others can do: whoever is slower in everything has no lower latency."""

from __future__ import annotations

import numpy as np
import pytest

from headway.planner.candidates import Candidates, all_candidates
from headway.planner.node_counts import is_slower, shortest_trigger_first
from tests.planner.test_nodes_by_rate import a_question
from tests.seeds import seeds

# Chains of different settings have different cells; far within a limit tails are their rounding.
BY_CELLS, NEAR_LIMIT = 0.1, -1.0


def settings_near_their_limit(seed: int) -> tuple[Candidates, float]:
    """A few settings of a count, and a rate that some sustain by moments."""
    random, question = np.random.default_rng(seed), a_question(seed)
    settings = all_candidates(question, (int(random.integers(2, 8)),))
    rates_per_s = np.geomspace(500.0, 1e6, 200)
    num_met = [int(settings.meets_by_moments(rate_per_s).sum()) for rate_per_s in rates_per_s]
    rate_per_s = rates_per_s[max(np.flatnonzero(num_met), default=0)]
    law = settings.planned_law(rate_per_s)
    launches = settings.launch_ratio(settings.planned_pace(rate_per_s))
    is_limited_by_latency = (law.offered_load_ratio <= law.allowed_offered_load) & (launches <= 1.0)
    likely = np.flatnonzero(is_limited_by_latency & (law.overrun_probability > 0.001))
    return settings.take(random.permutation(likely)[:12]), float(rate_per_s)


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_a_setting_that_is_slower_has_no_lower_latency(seed: int) -> None:
    settings, rate_per_s = settings_near_their_limit(seed)
    law = settings.planned_law(rate_per_s)
    excess_of = settings.certified_excess_of(rate_per_s)
    excess = np.array([excess_of(index, with_gain=False) for index in range(len(settings))])
    for index in np.flatnonzero(excess > NEAR_LIMIT).tolist():
        slower = is_slower(settings, law, index)
        assert (excess[slower] >= excess[index] - BY_CELLS).all()


def test_some_settings_are_slower_than_others() -> None:
    """The test above would say little if none were."""
    num_pairs = 0
    for seed in range(3):
        settings, rate_per_s = settings_near_their_limit(seed)
        law = settings.planned_law(rate_per_s)
        num_pairs += sum(int(is_slower(settings, law, i).sum()) - 1 for i in range(len(settings)))
    assert num_pairs > 20


def test_of_settings_that_differ_by_their_trigger_the_shortest_one_comes_first() -> None:
    settings, rate_per_s = settings_near_their_limit(1)
    law = settings.planned_law(rate_per_s)
    order = shortest_trigger_first(settings, law)
    assert sorted(order) == list(range(len(settings)))
    by_planned: dict[tuple[float, ...], list[float]] = {}
    for index in order.tolist():
        state = law.take(np.array([index]))
        planned = state.offered_load_ratio.item(), state.fixed_s.item()
        columns = int(settings.partitions[index]), *(round(value, 6) for value in planned)
        by_planned.setdefault(columns, []).append(float(settings.trigger_s[index]))
    assert all(triggers_s == sorted(triggers_s) for triggers_s in by_planned.values())
    assert max(map(len, by_planned.values())) > 1
