"""The chain of batches on a grid, against what is known of it and against simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from headway.models.batches.batch_chain import BatchChain, batch_chain
from headway.models.batches.microbatch import AffineDuration, steady_state
from headway.models.batches.trigger_planning import freerun_moments
from headway.models.batches.tuple_latency import tuple_latency_mean, tuple_latency_quantile
from tests.oracles.microbatch_runs import simulate_microbatch_runs

RATE_PER_S = 1e6


def chain(
    inflation: float, noise: float, trigger_s: float, autocorrelation: float = 0.0
) -> BatchChain | None:
    duration = AffineDuration(1.0, inflation / RATE_PER_S, noise)
    return batch_chain(
        duration, RATE_PER_S, trigger_s, dispersion=0.0, autocorrelation=autocorrelation
    )


@pytest.mark.parametrize("inflation", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_free_running_moments_are_the_exact_ones(inflation: float, noise: float) -> None:
    found = chain(inflation, noise, 0.0)
    assert found is not None
    exact = freerun_moments(1.0, inflation, noise)
    # The heaviest tail is cut somewhere.
    is_heavy = inflation == 0.9 and noise == 0.3
    mean_s, sd_s = float(exact.mean_duration_s), float(exact.sd_duration_s)
    assert found.duration_mean_s == pytest.approx(mean_s, rel=1e-4 if is_heavy else 1e-6)
    assert found.duration_sd_s == pytest.approx(sd_s, rel=0.05 if is_heavy else 0.01)


@pytest.mark.parametrize("trigger_s", [0.0, 1.5, 4.0])
def test_light_noise_gives_what_the_fixed_point_gives(trigger_s: float) -> None:
    found = chain(0.4, 0.05, trigger_s)
    assert found is not None
    state = steady_state(AffineDuration(1.0, 0.4 / RATE_PER_S, 0.05), RATE_PER_S, trigger_s, 0.0)
    assert found.latency_mean_s == pytest.approx(float(tuple_latency_mean(state)), rel=0.003)
    for q in (0.5, 0.99):
        expected = float(tuple_latency_quantile(state, q))
        assert float(found.latency_quantile_s(q)) == pytest.approx(expected, rel=0.005)


def test_all_of_the_noise_and_the_commit_count() -> None:
    duration = AffineDuration(1.0, 4e-4, 0.05, 0.1, 0.2, after_commit_s=0.3)
    state = steady_state(duration, 1000.0, 2.0, 50.0)
    found = batch_chain(duration, 1000.0, 2.0, dispersion=50.0)
    assert found is not None
    assert found.duration_sd_s == pytest.approx(float(state.sd_duration_s), rel=0.01)
    assert found.latency_mean_s == pytest.approx(float(tuple_latency_mean(state)), rel=0.003)


@pytest.mark.parametrize("inflation", [1.0, 1.2])
def test_over_capacity_there_is_no_law(inflation: float) -> None:
    assert chain(inflation, 0.1, 1.0) is None


def test_where_the_variance_diverges_there_is_no_law() -> None:
    limit = math.sqrt(1.0 / 0.9**2 - 1.0)
    assert chain(0.9, 0.99 * limit, 0.0) is not None
    assert chain(0.9, 1.01 * limit, 0.0) is None


def test_noise_that_lasts_makes_latencies_longer() -> None:
    at_memory = [chain(0.6, 0.1, 2.0, memory) for memory in (0.0, 0.5, 0.9)]
    p99_s = [float(one.latency_quantile_s(0.99)) for one in at_memory if one is not None]
    assert len(p99_s) == 3
    assert p99_s[0] < p99_s[1] < p99_s[2]


@pytest.mark.parametrize("autocorrelation", [-0.1, 1.0])
def test_what_is_out_of_range_is_refused(autocorrelation: float) -> None:
    with pytest.raises(ValueError, match="autocorrelation must lie in"):
        chain(0.5, 0.1, 1.0, autocorrelation)


_CELLS = [
    (inflation, noise, utilization, memory)
    for inflation, noise, utilization, memory in itertools.product(
        (0.3, 0.7, 0.9), (0.1, 0.3), (0.0, 0.8, 0.95, 1.1), (0.0, 0.5, 0.9)
    )
    if utilization == 0.0 or utilization > inflation
]


def log_mean_square(inflation: float, noise: float, memory: float, num_batches: int) -> float:
    """Logarithm of the mean square of what so many free-running batches make of a duration.

    Its growth decides whether the variance is finite, however rare the batches behind it.
    """
    log_variance = math.log1p(noise**2)
    lags = np.arange(1, num_batches)
    variance_of_sum = num_batches + 2.0 * float(((num_batches - lags) * memory**lags).sum())
    return (
        num_batches * (2.0 * math.log(inflation) - log_variance)
        + 2.0 * log_variance * variance_of_sum
    )


@pytest.mark.statistical
@pytest.mark.parametrize(("inflation", "noise", "utilization", "memory"), _CELLS)
def test_against_the_event_simulation(
    inflation: float, noise: float, utilization: float, memory: float
) -> None:
    trigger_s = 1.0 / (utilization - inflation) if utilization else 0.0
    found = chain(inflation, noise, trigger_s, memory)
    if found is None:
        assert log_mean_square(inflation, noise, memory, 400) > 0.0
        return
    assert log_mean_square(inflation, noise, memory, 400) < 0.0
    duration = AffineDuration(1.0, inflation / RATE_PER_S, noise)
    traces = [
        simulate_microbatch_runs(
            duration,
            RATE_PER_S,
            trigger_s,
            num_runs=500,
            num_batches=1_000,
            num_warmup_batches=400,
            seed=seed,
            dispersion=0.0,
            autocorrelation=memory,
        )
        for seed in range(4)
    ]
    mean_s = np.array([trace.latency_mean_s() for trace in traces])
    p99_s = np.array([float(trace.latency_quantile_s(0.99)) for trace in traces])
    # The rule max(B, D) waits a little longer than the epoch grid, the more so close to capacity.
    for value, played, margin in (
        (found.latency_mean_s, mean_s, 0.09),
        (float(found.latency_quantile_s(0.99)), p99_s, 0.05),
    ):
        chance = 4.0 * played.std(ddof=1) / math.sqrt(len(played)) / played.mean()
        error = value / played.mean() - 1.0
        assert -0.012 - chance <= error <= margin + chance
