"""The law of two uniform waits and a normal rest, rounds in series, and limits split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from headway.models.pipeline.latency import LatencyPart, PipelineLatency, in_series, split_limit_s
from tests.seeds import examples

LEVELS = np.array([0.001, 0.05, 0.5, 0.95, 0.99, 0.999])


def law(
    mean_s: float, first_s: float, second_s: float, rest_sd_s: float, run_to_run_sd_s: float = 0.0
) -> PipelineLatency:
    variance = (first_s**2 + second_s**2) / 12.0 + rest_sd_s**2
    return PipelineLatency(
        parts=(LatencyPart(name="all", mean_s=np.array(mean_s), variance_s2=np.array(variance)),),
        mean_s=np.array(mean_s),
        variance_s2=np.array(variance),
        uniform_widths_s=(np.array(first_s), np.array(second_s)),
        run_to_run_sd_s=np.array(run_to_run_sd_s),
    )


def two_uniform_quantile(mean: float, a: float, b: float, q: float) -> float:
    """Closed form for the upper tail, 1 - q <= min(a, b) / (2 max(a, b))."""
    return mean + 0.5 * (a + b) - float(np.sqrt(2.0 * (1.0 - q) * a * b))


# Means and p99 of the design's table: mean, shuffle period, poll period, reducer's busy share, p99.
@pytest.mark.parametrize(
    ("mean", "shuffle", "poll", "busy", "p99"),
    [
        (0.239, 0.2, 0.2, 0.3, 0.382),
        (0.193, 0.2, 0.13, 0.3, 0.316),
        (0.419, 0.3, 0.4, 0.3, 0.663),
        (0.269, 0.2, 0.2, 0.6, 0.384),
        (0.289, 0.2, 0.2, 0.8, 0.387),
        (0.299, 0.1, 0.3, 0.6, 0.390),
    ],
)
def test_golden_two_uniforms(
    mean: float, shuffle: float, poll: float, busy: float, p99: float
) -> None:
    first, second = shuffle * (1.0 - busy / 8.0), poll * (1.0 - busy)
    latency = law(mean, first, second, 0.0)
    assert float(latency.quantile_s(0.99)) == pytest.approx(p99, abs=6e-4)
    closed = two_uniform_quantile(mean, first, second, 0.99)
    assert float(latency.quantile_s(0.99)) == pytest.approx(closed, rel=1e-6)


@pytest.mark.parametrize(
    ("first", "second", "rest"),
    [(1.0, 0.5, 0.1), (0.5, 1.0, 0.01), (1.0, 0.0, 0.1), (1.0, 1e-5, 0.0), (0.01, 0.02, 1.0)],
)
def test_quantiles_against_draws(first: float, second: float, rest: float) -> None:
    random = np.random.default_rng(2)
    draws = 5.0 + rest * random.standard_normal(400_000)
    for width in (first, second):
        draws += width * (random.random(len(draws)) - 0.5)
    latency = law(5.0, first, second, rest)
    assert latency.quantile_s(LEVELS) == pytest.approx(np.quantile(draws, LEVELS), abs=0.02)
    assert latency.cdf(latency.quantile_s(LEVELS)) == pytest.approx(LEVELS, abs=1e-6)


def test_without_waits_it_is_normal() -> None:
    latency = law(2.0, 0.0, 0.0, 0.3)
    assert latency.quantile_s(LEVELS) == pytest.approx(2.0 + 0.3 * ndtri(LEVELS))


def test_cantelli_is_a_bound() -> None:
    latency = law(2.0, 0.5, 1.5, 0.3)
    assert float(latency.cantelli_bound_s(0.99)) == pytest.approx(
        2.0 + 9.9499 * float(latency.sd_s), rel=1e-4
    )
    assert np.all(latency.cantelli_bound_s(LEVELS) >= latency.quantile_s(LEVELS))


@examples(15, 30)
@given(st.floats(0.0, 10.0), st.floats(0.0, 10.0), st.floats(0.0, 10.0), st.floats(0.0, 100.0))
def test_quantiles_are_ordered_and_within_reach(
    first: float, second: float, rest: float, mean: float
) -> None:
    latency = law(mean, first, second, rest)
    quantiles = latency.quantile_s(LEVELS)
    assert np.all(np.isfinite(quantiles))
    assert np.all(np.diff(quantiles) >= 0.0)
    assert np.all(
        np.abs(quantiles - mean) <= 0.5 * (first + second) + 5.0 * rest + 1e-6 * mean + 0.1
    )


def test_unstable_is_infinite() -> None:
    latency = law(np.inf, 0.1, 0.1, 0.1)
    assert np.isinf(latency.quantile_s(0.5))
    assert float(latency.cdf(1e9)) == 0.0
    assert not latency.is_stable


def test_rounds_in_series() -> None:
    rounds = (law(1.0, 0.8, 0.1, 0.05, 0.3), law(2.0, 0.0, 1.2, 0.1, 0.4))
    whole = in_series(rounds)
    random = np.random.default_rng(3)
    draws = np.full(400_000, 3.0)
    for width in (0.8, 0.1, 1.2):
        draws += width * (random.random(len(draws)) - 0.5)
    draws += np.hypot(0.05, 0.1) * random.standard_normal(len(draws))
    assert float(whole.mean_s) == pytest.approx(3.0)
    assert float(whole.run_to_run_sd_s) == pytest.approx(0.5)
    assert whole.quantile_s(LEVELS) == pytest.approx(np.quantile(draws, LEVELS), abs=0.01)
    assert [part.name for part in whole.parts] == ["round 1: all", "round 2: all"]


def test_a_split_limit_asks_for_more_than_the_whole_needs() -> None:
    rounds = (law(1.0, 0.8, 0.1, 0.05), law(2.0, 0.0, 1.2, 0.1))
    alone = [float(one.quantile_s(0.99)) for one in rounds]
    limits = split_limit_s(4.0, alone)
    assert sum(limits) == pytest.approx(4.0)
    assert limits[0] / alone[0] == pytest.approx(limits[1] / alone[1])
    assert float(in_series(rounds).quantile_s(0.99)) < sum(alone)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="strictly"):
        law(1.0, 0.0, 0.0, 1.0).quantile_s(1.0)
    with pytest.raises(ValueError, match="at least one round"):
        in_series(())
    with pytest.raises(ValueError, match="round_latencies_s"):
        split_limit_s(1.0, (np.inf, 1.0))
    with pytest.raises(ValueError, match="limit_s"):
        split_limit_s(0.0, (1.0,))
