"""Row latency: golden values, limits, laws, and the event simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from headway.models.batches.microbatch import AffineDuration, steady_state
from headway.models.batches.tuple_latency import (
    empirical_latency_mean,
    empirical_latency_quantile,
    tuple_latency_cdf,
    tuple_latency_mean,
    tuple_latency_quantile,
)
from tests.oracles.closed_forms import freerun_moments, uniform_plus_lognormal_quantile
from tests.oracles.microbatch import simulate_microbatch

WORKED = AffineDuration(fixed_s=2.0, per_row_s=0.45, relative_noise=0.1)
LEVELS = np.array([0.5, 0.95, 0.99])


@pytest.mark.parametrize(
    ("trigger_s", "mean", "quantiles"),
    [(8.0, 9.6000, (9.6000, 13.2986, 14.0167)), (0.0, 5.49797, (5.4547, 7.4997, 8.2098))],
)
def test_latencies_are_those_of_the_table(
    trigger_s: float, mean: float, quantiles: tuple[float, ...]
) -> None:
    state = steady_state(WORKED, 1.0, trigger_s, 0.0)
    assert float(tuple_latency_mean(state)) == pytest.approx(mean, rel=1e-5)
    assert tuple_latency_quantile(state, LEVELS) == pytest.approx(quantiles, rel=1e-5)


def test_on_the_grid_a_uniform_wait_plus_the_duration() -> None:
    state = steady_state(AffineDuration(1.0, 0.2, 0.1), 1.0, 20.0, 0.0)
    expected = uniform_plus_lognormal_quantile(LEVELS, 20.0, 5.0, 0.5)
    assert tuple_latency_quantile(state, LEVELS) == pytest.approx(expected, rel=1e-8)


def test_without_noise_latency_is_uniform() -> None:
    state = steady_state(AffineDuration(2.0, 0.5), 1.0, np.array([0.0, 10.0]), 0.0)
    quantiles = tuple_latency_quantile(state, np.array([[0.25], [0.75]]))
    assert quantiles == pytest.approx(np.array([[5.0, 9.5], [7.0, 14.5]]), rel=1e-4)


def test_the_mean_belongs_to_the_distribution() -> None:
    for trigger_s in (0.0, 3.7, 8.0):
        state = steady_state(AffineDuration(2.0, 0.45, 0.2), 1.0, trigger_s, 0.0)
        x = np.linspace(0.0, 200.0, 40_001)
        mean = trapezoid(1.0 - tuple_latency_cdf(state, x), x)
        assert float(tuple_latency_mean(state)) == pytest.approx(mean, rel=1e-4)


def test_what_follows_the_commit_shifts_the_law() -> None:
    def law(
        after_commit_s: float,
    ) -> tuple[float, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
        duration = AffineDuration(2.0, 0.45, 0.1, after_commit_s=after_commit_s)
        state = steady_state(duration, 1.0, 4.0, 0.0)
        return float(tuple_latency_mean(state)), tuple_latency_quantile(state, LEVELS)

    mean, quantiles = law(0.0)
    earlier_mean, earlier_quantiles = law(0.5)
    assert earlier_mean == pytest.approx(mean - 0.5)
    assert earlier_quantiles == pytest.approx(quantiles - 0.5, rel=1e-8)


def test_unstable_is_never_in_time() -> None:
    state = steady_state(AffineDuration(2.0, 1e-3, 0.1), np.array([500.0, 1000.0]), 8.0)
    assert np.isfinite(tuple_latency_mean(state)).tolist() == [True, False]
    assert np.isfinite(tuple_latency_quantile(state, 0.99)).tolist() == [True, False]
    assert tuple_latency_cdf(state, 1e4) == pytest.approx([1.0, 0.0])


@given(
    st.floats(0.05, 20.0),
    st.floats(0.0, 1.2),
    st.floats(0.0, 30.0),
    st.floats(0.0, 0.4),
    st.floats(0.0, 30.0),
)
def test_quantiles_are_ordered_and_invert(
    a: float, r: float, trigger_s: float, noise: float, dispersion: float
) -> None:
    state = steady_state(AffineDuration(a, r / 1000.0, noise), 1000.0, trigger_s, dispersion)
    quantiles = tuple_latency_quantile(state, LEVELS)
    assert not np.any(np.isnan(quantiles))
    assert np.all(quantiles[1:] >= quantiles[:-1])
    if state.is_stable:
        above = tuple_latency_cdf(state, quantiles * (1.0 + 1e-6))
        below = tuple_latency_cdf(state, quantiles * (1.0 - 1e-6))
        assert np.all(above >= LEVELS - 1e-9)
        assert np.all(below <= LEVELS + 1e-9)
    else:
        assert np.all(np.isinf(quantiles))


@pytest.mark.parametrize("trigger_s", [0.0, 2.0, 10.0])
def test_latency_rises_with_the_rate(trigger_s: float) -> None:
    state = steady_state(AffineDuration(1.0, 1e-3, 0.1), np.arange(10.0, 990.0, 10.0), trigger_s)
    p99 = tuple_latency_quantile(state, 0.99)
    assert np.all(p99[1:] >= p99[:-1])
    assert np.all(np.diff(tuple_latency_cdf(state, 12.0)) <= 1e-9)


def test_latency_does_not_fall_with_the_trigger() -> None:
    state = steady_state(AffineDuration(2.0, 0.5, 0.1), 1.0, np.arange(0.0, 12.0, 0.25), 0.0)
    p99 = tuple_latency_quantile(state, 0.99)
    assert np.all(p99[1:] >= p99[:-1] * 0.998)


@pytest.mark.parametrize(
    ("offered_load", "noise", "utilization", "mean_error", "p99_error"),
    [
        (0.3, 0.1, 0.8, 0.003, 0.003),
        (0.3, 0.3, 1.0, 0.03, 0.02),
        (0.5, 0.1, 0.95, 0.025, 0.01),
        (0.7, 0.03, 1.0, 0.02, 0.01),
        (0.7, 0.1, 1.1, 0.01, 0.012),
    ],
)
def test_against_simulation(
    offered_load: float, noise: float, utilization: float, mean_error: float, p99_error: float
) -> None:
    duration, trigger_s = (
        AffineDuration(1.0, offered_load / 1000.0, noise),
        1.0 / (utilization - offered_load),
    )
    trace = simulate_microbatch(
        duration, 1000.0, trigger_s, num_batches=12_000, seed=3, dispersion=0.0
    )
    state = steady_state(duration, 1000.0, trigger_s, 0.0)
    assert float(tuple_latency_mean(state)) == pytest.approx(trace.latency_mean_s(), rel=mean_error)
    assert float(tuple_latency_quantile(state, 0.99)) == pytest.approx(
        float(trace.latency_quantile_s(0.99)), rel=p99_error
    )


def test_bursty_rows_against_simulation() -> None:
    duration = AffineDuration(1.0, 0.4 / 1000.0, 0.05, additive_sd_s=0.1)
    trace = simulate_microbatch(duration, 1000.0, 2.5, num_batches=12_000, seed=4, dispersion=300.0)
    state = steady_state(duration, 1000.0, 2.5, 300.0)
    assert float(state.sd_duration_s) == pytest.approx(trace.duration_s.std(), rel=0.02)
    assert tuple_latency_quantile(state, LEVELS) == pytest.approx(
        trace.latency_quantile_s(LEVELS), rel=0.02
    )


@pytest.mark.statistical
@pytest.mark.parametrize("offered_load", [0.1, 0.3, 0.5, 0.7])
@pytest.mark.parametrize(
    ("noise", "mean_error", "p99_error"),
    [(0.03, 0.03, 0.012), (0.1, 0.03, 0.012), (0.3, 0.04, 0.075)],
)
@pytest.mark.parametrize("utilization", [0.75, 0.8, 0.9, 0.95, 1.0, 1.1, 1.5, None])
def test_grid_against_simulation(
    offered_load: float,
    noise: float,
    mean_error: float,
    p99_error: float,
    utilization: float | None,
) -> None:
    trigger_s = 0.0 if utilization is None else 1.0 / (utilization - offered_load)
    duration = AffineDuration(1.0, offered_load / 1000.0, noise)
    trace = simulate_microbatch(
        duration, 1000.0, trigger_s, num_batches=60_000, seed=3, dispersion=0.0
    )
    state = steady_state(duration, 1000.0, trigger_s, 0.0)
    assert float(tuple_latency_mean(state)) == pytest.approx(trace.latency_mean_s(), rel=mean_error)
    assert float(tuple_latency_quantile(state, 0.99)) == pytest.approx(
        float(trace.latency_quantile_s(0.99)), rel=p99_error
    )


def test_free_running_latency_against_its_exact_moments() -> None:
    noise = np.array([0.01, 0.1, 0.2])
    state = steady_state(AffineDuration(1.0, 0.5, noise), 1.0, 0.0, 0.0)
    exact = freerun_moments(1.0, 0.5, noise)
    assert tuple_latency_mean(state) == pytest.approx(exact.mean_latency_s)


def test_empirical_latency_of_two_batches() -> None:
    intervals, durations = np.array([10.0, 30.0]), np.array([4.0, 8.0])
    trace = (intervals, durations, 50.0 * intervals)
    assert empirical_latency_mean(*trace) == pytest.approx(19.5)
    assert float(empirical_latency_quantile(0.4, *trace)) == pytest.approx(14.0)


def test_empirical_latency_meets_the_simulated_rows() -> None:
    trace = simulate_microbatch(
        AffineDuration(1.0, 5e-4, 0.2), 1000.0, 2.2, num_batches=400, seed=9, dispersion=0.0
    )
    batches = (trace.interval_s, trace.duration_s, 1000.0 * trace.interval_s)
    empirical = empirical_latency_quantile(LEVELS, *batches)
    assert empirical == pytest.approx(trace.latency_quantile_s(LEVELS), rel=1e-6)
    assert empirical_latency_mean(*batches) == pytest.approx(trace.latency_mean_s())


def test_refusals() -> None:
    state = steady_state(WORKED, 1.0, 8.0)
    for q in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="q must"):
            tuple_latency_quantile(state, q)
    with pytest.raises(ValueError, match="one length"):
        empirical_latency_mean(np.ones(2), np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="negative"):
        empirical_latency_quantile(0.5, -np.ones(2), np.ones(2), np.ones(2))
