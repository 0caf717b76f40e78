"""The prepared law: quantiles are where its distribution function says, in any regime and shape."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

from headway.models.batches import tuple_latency
from headway.models.batches.microbatch import AffineDuration, SteadyState, steady_state
from headway.models.batches.tuple_latency import LatencyLaw

RATE_PER_S = 1e4


def settings(num_settings: int, *, noise: float = 0.3, dispersion: float = 1.0) -> SteadyState:
    """From light load over triggers that are overrun to free running, close to capacity."""
    random = np.random.default_rng(3)
    offered_load = random.uniform(0.05, 0.9, num_settings)
    utilization = random.uniform(0.3, 1.3, num_settings)
    fixed_s = random.uniform(0.2, 3.0, num_settings)
    trigger_s = np.where(
        utilization > offered_load, fixed_s / np.maximum(utilization - offered_load, 0.01), 0.0
    )
    duration = AffineDuration(
        fixed_s,
        offered_load / RATE_PER_S,
        random.uniform(0.0, noise, num_settings),
        after_commit_s=0.1 * fixed_s,
    )
    return steady_state(duration, RATE_PER_S, trigger_s, dispersion)


@pytest.mark.parametrize("q", [0.01, 0.5, 0.99, 0.99999])
@pytest.mark.parametrize("num_settings", [1, 300])
def test_a_quantile_is_reached_with_its_probability(q: float, num_settings: int) -> None:
    state = settings(num_settings, dispersion=50.0)
    law = LatencyLaw(state)
    found = law.quantile(np.array(q))
    stable = state.is_stable
    assert np.all(np.isinf(found[~stable]))
    assert law.cdf(found)[stable] == pytest.approx(q, abs=1e-8)


def test_few_nodes_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    state = settings(400)
    few = LatencyLaw(state).quantile(np.array([[0.5], [0.99], [0.999]]))
    nodes, weights = leggauss(200)
    for name, value in (("_NUM_NODES", 200), ("_NODE", nodes), ("_WEIGHT", weights)):
        monkeypatch.setattr(tuple_latency, name, value)
    monkeypatch.setattr(tuple_latency, "_FARTHEST_SCORE", 9.0)
    many = LatencyLaw(state).quantile(np.array([[0.5], [0.99], [0.999]]))
    known = np.isfinite(many)
    error = np.abs(few[known] / many[known] - 1.0)
    assert error.max() < 0.01
    assert error.mean() < 5e-4


def test_pairs_broadcast_and_do_not_touch_each_other() -> None:
    state = settings(5)
    levels = np.array([[0.5], [0.95], [0.99]])
    together = LatencyLaw(state).quantile(levels)
    assert together.shape == (3, 5)
    assert np.all(np.diff(together, axis=0) >= 0.0)
    for row, q in zip(together, levels[:, 0], strict=True):
        assert row == pytest.approx(LatencyLaw(state).quantile(np.array(q)), rel=1e-8)


def test_without_noise_the_law_is_uniform() -> None:
    state = steady_state(AffineDuration(1.0, 0.0), 1.0, np.array([0.0, 4.0]), 0.0)
    law = LatencyLaw(state)
    # A second of waiting at most and one of work; four of waiting.
    assert law.quantile(np.array([0.5])) == pytest.approx([1.5, 3.0], rel=1e-6)
    assert law.cdf(np.array([1.25, 2.0])) == pytest.approx([0.25, 0.25], rel=1e-6)


def test_blocks_are_seamless(monkeypatch: pytest.MonkeyPatch) -> None:
    state = settings(50)
    whole = LatencyLaw(state).quantile(np.array(0.99))
    monkeypatch.setattr(tuple_latency, "_BLOCK", 7)
    assert LatencyLaw(state).quantile(np.array(0.99)) == pytest.approx(whole, rel=1e-9)
