"""The steady state of a query: golden values, limits, laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from headway.models.batches.intervals import interval_moments
from headway.models.batches.microbatch import AffineDuration, steady_state
from tests.oracles.closed_forms import freerun_moments

WORKED = AffineDuration(fixed_s=2.0, per_row_s=3e-4, relative_noise=0.1)
RATE_PER_S = 1500.0


def test_on_the_grid_the_interval_is_the_trigger() -> None:
    state = steady_state(WORKED, RATE_PER_S, 8.0, 0.0)
    assert float(state.mean_duration_s) == pytest.approx(5.6, rel=1e-4)
    assert float(state.sd_duration_s) == pytest.approx(0.56, rel=1e-4)
    assert float(state.mean_interval_s) == pytest.approx(8.0, rel=1e-4)
    assert float(state.offered_load_ratio) == pytest.approx(0.45)
    assert float(state.utilization_ratio) == pytest.approx(0.7, rel=1e-4)


def test_free_running_meets_its_exact_moments() -> None:
    state = steady_state(WORKED, RATE_PER_S, 0.0, 0.0)
    exact = freerun_moments(2.0, 0.45, 0.1)
    assert float(state.mean_duration_s) == pytest.approx(float(exact.mean_duration_s))
    assert float(state.sd_duration_s) == pytest.approx(float(exact.sd_duration_s))
    assert float(state.overrun_probability) == 1.0
    assert float(state.utilization_ratio) == 1.0


def test_additive_noise_while_free_running() -> None:
    state = steady_state(AffineDuration(2.0, 3e-4, additive_sd_s=0.2), RATE_PER_S, 0.0, 0.0)
    assert float(state.sd_duration_s) == pytest.approx(0.2 / np.sqrt(1.0 - 0.45**2))


def test_each_kind_of_noise_on_the_grid() -> None:
    def sd(duration: AffineDuration, dispersion: float) -> float:
        return float(steady_state(duration, RATE_PER_S, 20.0, dispersion).sd_duration_s)

    assert sd(AffineDuration(2.0, 3e-4, additive_sd_s=0.3), 0.0) == pytest.approx(0.3)
    counts = 3e-4 * np.sqrt(100.0 * RATE_PER_S * 20.0)
    assert sd(AffineDuration(2.0, 3e-4), 100.0) == pytest.approx(counts)


def test_without_noise_the_larger_of_trigger_and_duration() -> None:
    triggers = np.array([0.0, 2.0, 3.6, 4.0, 9.0])
    state = steady_state(AffineDuration(2.0, 0.45), 1.0, triggers, 0.0)
    settled = 2.0 / 0.55
    assert state.mean_interval_s == pytest.approx(np.maximum(triggers, settled), rel=1e-6)


@pytest.mark.parametrize("trigger_s", [0.0, 5.0, 50.0])
def test_unstable_is_infinite(trigger_s: float) -> None:
    state = steady_state(
        AffineDuration(2.0, 1e-3, 0.1), np.array([999.0, 1000.0, 2000.0]), trigger_s
    )
    assert state.is_stable.tolist()[1:] == [False, False]
    for values in (state.mean_duration_s, state.sd_duration_s, state.mean_interval_s):
        assert np.all(np.isinf(values[1:]))
    assert state.overrun_probability[1:].tolist() == [1.0, 1.0]


def test_infinite_variance_counts_as_unstable() -> None:
    assert not steady_state(AffineDuration(2.0, 0.9, 0.6), 1.0, 0.0, 0.0).is_stable
    assert steady_state(AffineDuration(2.0, 0.9, 0.1), 1.0, 0.0, 0.0).is_stable


@pytest.mark.parametrize("offered_load", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03, 0.1, 0.3])
def test_the_transition_has_a_solution_everywhere(offered_load: float, noise: float) -> None:
    utilization = np.linspace(offered_load + 0.02, 1.5, 60)
    trigger = 1.0 / (utilization - offered_load)
    state = steady_state(AffineDuration(1.0, offered_load, noise), 1.0, trigger, 0.0)
    assert np.all(state.is_stable)
    assert np.all(np.diff(state.mean_interval_s) <= 1e-6 * state.mean_interval_s[1:])


def test_settings_do_not_influence_each_other() -> None:
    rates = np.array([100.0, 900.0, 5000.0, 600.0])
    duration = AffineDuration(1.0, 1e-3, 0.2)
    together = steady_state(duration, rates, 4.0).sd_duration_s
    alone = [float(steady_state(duration, rate, 4.0).sd_duration_s) for rate in rates.tolist()]
    assert together == pytest.approx(alone)


def test_settings_broadcast() -> None:
    state = steady_state(
        AffineDuration(np.array([[1.0], [2.0]]), 1e-3), np.array([100.0, 200.0, 300.0]), 9.0
    )
    assert state.mean_duration_s.shape == (2, 3)
    assert state.mean_duration_s[1, 2] == pytest.approx(4.7, rel=1e-4)


@given(st.floats(0.01, 100.0), st.floats(0.01, 100.0), st.floats(0.0, 5.0))
def test_interval_moments_by_quadrature(trigger_s: float, mean_s: float, cv: float) -> None:
    sigma2 = np.log1p(cv * cv)
    score = np.linspace(-12.0, 14.0 + 2.0 * np.sqrt(sigma2), 20_001)
    density = np.exp(-0.5 * score * score) / np.sqrt(2.0 * np.pi)
    interval = np.maximum(trigger_s, mean_s * np.exp(np.sqrt(sigma2) * score - sigma2 / 2.0))
    moments = interval_moments(np.array(trigger_s), np.array(mean_s), np.array((cv * mean_s) ** 2))
    assert float(moments.mean) == pytest.approx(trapezoid(interval * density, score), rel=1e-4)
    assert float(moments.mean_square) == pytest.approx(
        trapezoid(interval**2 * density, score), rel=1e-4
    )


@given(
    st.floats(0.01, 50.0),
    st.floats(0.0, 1.3),
    st.floats(0.0, 40.0),
    st.floats(0.0, 0.8),
    st.floats(0.0, 50.0),
)
def test_never_nan(a: float, r: float, trigger_s: float, noise: float, dispersion: float) -> None:
    state = steady_state(AffineDuration(a, r / 1000.0, noise), 1000.0, trigger_s, dispersion)
    for values in (state.mean_duration_s, state.sd_duration_s, state.mean_square_interval_s2):
        assert not np.any(np.isnan(values))
    assert 0.0 <= float(state.overrun_probability) <= 1.0
    assert float(state.mean_duration_s) >= a
    if r >= 1.0:
        assert not state.is_stable


@pytest.mark.parametrize(
    "field",
    [
        {"fixed_s": 0.0},
        {"per_row_s": -1.0},
        {"relative_noise": -0.1},
        {"additive_sd_s": float("nan")},
        {"after_commit_s": 1.1},
        {"after_commit_s": -0.1},
    ],
)
def test_a_duration_refuses(field: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(field))):
        AffineDuration(**{"fixed_s": 1.0, "per_row_s": 1.0} | field)


@pytest.mark.parametrize(
    ("rate", "trigger", "dispersion"),
    [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, -1.0), (1.0, np.inf, 1.0)],
)
def test_a_steady_state_refuses(rate: float, trigger: float, dispersion: float) -> None:
    with pytest.raises(ValueError, match="rate_per_s"):
        steady_state(AffineDuration(1.0, 1e-3), rate, trigger, dispersion)
