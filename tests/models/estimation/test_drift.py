"""Run lengths of the alarm against simulated scores and an integral equation solved numerically."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain import DurationNoise
from headway.models.arrays import Array
from headway.models.estimation.drift import (
    cusum,
    cusum_run_length,
    cusum_threshold,
    first_alarm,
)
from headway.models.estimation.run_level import innovations_of
from headway.models.laws.normal import ndtr
from tests.models.estimation.batches import correlated_scores
from tests.seeds import examples

# The design study: simulated mean run lengths without and with a shift of one.
SIMULATED = {(0.5, 4.0): (333, 8.4), (0.5, 5.0): (919, 10.6), (0.25, 8.0): (732, 11.3)}
# With autocorrelation 0.3 and no pre-whitening.
CORRELATED = {(0.5, 4.0): 112, (0.5, 5.0): 191, (0.25, 8.0): 190}


def run_length_by_integral_equation(shift: float, allowance: float, threshold: float) -> float:
    """Page's equation for normal scores, by Gauss-Legendre quadrature."""
    node, weight = np.polynomial.legendre.leggauss(80)
    place = 0.5 * threshold * (node + 1.0)
    weight = 0.5 * threshold * weight
    points = np.concatenate([[0.0], place])
    drift = shift - allowance
    step = place[np.newaxis, :] - points[:, np.newaxis] - drift
    kernel = np.exp(-0.5 * step**2) / np.sqrt(2 * np.pi) * weight
    to_zero = np.asarray(ndtr(-points - drift))[:, np.newaxis]
    moves = np.concatenate([to_zero, kernel], axis=1)
    return float(np.linalg.solve(np.eye(len(points)) - moves, np.ones(len(points)))[0])


def simulated_run_lengths(scores: Array, allowance: float, threshold: float) -> Array:
    """Of many runs at once, Page's rule one batch after the other."""
    total = np.zeros(len(scores))
    length = np.full(len(scores), scores.shape[1])
    running = np.ones(len(scores), dtype=bool)
    for batch, values in enumerate(scores.T):
        total = np.maximum(0.0, total + values - allowance)
        ended = running & (total > threshold)
        length[ended] = batch + 1
        running &= ~ended
    return length


@pytest.mark.parametrize(("allowance", "threshold"), SIMULATED)
def test_published_run_lengths(allowance: float, threshold: float) -> None:
    found = cusum_run_length(np.array([0.0, 1.0]), allowance, threshold)
    assert found == pytest.approx(SIMULATED[allowance, threshold], rel=0.03)


@pytest.mark.parametrize("threshold", [2.0, 3.0, 4.0, 6.0, 8.0])
@pytest.mark.parametrize("allowance", [0.1, 0.25, 0.5, 1.0])
def test_run_lengths_solve_the_integral_equation(allowance: float, threshold: float) -> None:
    shifts = np.array([-0.5, 0.0, 0.25, 0.5, 1.0, 2.0])
    exact = [run_length_by_integral_equation(s, allowance, threshold) for s in shifts]
    found = cusum_run_length(shifts, allowance, threshold)
    trusted = np.array(exact) < 1e9  # beyond, the equation itself is ill-conditioned
    assert found[trusted] == pytest.approx(np.array(exact)[trusted], rel=0.25)


def test_run_lengths_hold_in_simulated_scores() -> None:
    random = np.random.default_rng(1)
    lengths = simulated_run_lengths(1.0 + random.standard_normal((4000, 120)), 0.5, 4.0)
    assert np.mean(lengths) == pytest.approx(float(cusum_run_length(1.0, 0.5, 4.0)), rel=0.03)
    exact = run_length_by_integral_equation(1.0, 0.5, 4.0)
    assert np.mean(lengths) == pytest.approx(exact, rel=0.025)


@examples(25, 100)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.floats(0.0, 2.0))
def test_the_sum_is_page_s_recursion(values: list[float], allowance: float) -> None:
    total, expected = 0.0, []
    for value in values:
        total = max(0.0, total + value - allowance)
        expected.append(total)
    assert cusum(np.array(values), allowance) == pytest.approx(expected, abs=1e-9)


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.0, 2.0), st.floats(0.1, 20.0))
def test_a_larger_shift_is_found_sooner(a: float, b: float, allowance: float, h: float) -> None:
    small, large = sorted((a, b))
    slow, quick = cusum_run_length(np.array([small, large]), allowance, h)
    assert not np.isnan(slow)
    assert quick <= slow * (1.0 + 1e-9)
    assert quick > 0.0


def test_without_drift_the_limit_is_smooth() -> None:
    near = cusum_run_length(0.5 + np.array([-1e-5, -1e-7, 0.0, 1e-7, 1e-5]), 0.5, 4.0)
    assert near == pytest.approx(5.166**2, rel=1e-3)
    assert np.all(np.diff(near) < 0.0)


def test_two_sides_halve_the_time_between_false_alarms() -> None:
    one, two = (cusum_run_length(0.0, 0.5, 4.0, two_sided=side) for side in (False, True))
    assert float(one) == pytest.approx(2.0 * float(two))


@examples(15, 60)
@given(st.floats(10, 1e7), st.floats(0.0, 1.5), st.booleans())
def test_a_threshold_gives_its_run_length(wished: float, allowance: float, both: bool) -> None:
    threshold = cusum_threshold(wished, allowance, two_sided=both)
    found = float(cusum_run_length(0.0, allowance, threshold, two_sided=both))
    assert found == pytest.approx(wished, rel=1e-6)


def test_a_drift_is_found_with_its_beginning() -> None:
    random = np.random.default_rng(2)
    threshold = cusum_threshold(10_000, 0.5, two_sided=True)
    found = []
    for _ in range(200):
        scores = random.standard_normal(120)
        scores[60:] -= 1.5
        alarm = first_alarm(scores, 0.5, threshold)
        assert alarm is not None
        batch, first_batch = alarm
        if batch >= 60:
            found.append((batch - 59, first_batch - 60))
    assert len(found) > 190
    delay, begin = np.mean(found, axis=0)
    assert delay == pytest.approx(float(cusum_run_length(1.5, 0.5, threshold)), rel=0.15)
    assert abs(begin) < 2.0


def test_both_sides_raise_alarms() -> None:
    rising = np.repeat([0.0, 3.0], 20)
    assert first_alarm(rising, 0.5, 4.0) == (21, 20)
    assert first_alarm(-rising, 0.5, 4.0) == (21, 20)
    assert first_alarm(np.zeros(0), 0.5, 4.0) is None


def test_refusals() -> None:
    with pytest.raises(ValueError, match="allowance"):
        cusum(np.ones(3), -0.1)
    with pytest.raises(ValueError, match="threshold"):
        first_alarm(np.ones(3), 0.5, 0.0)
    with pytest.raises(ValueError, match="threshold > 0"):
        cusum_run_length(0.0, 0.5, 0.0)
    with pytest.raises(ValueError, match="must be finite and exceed"):
        cusum_threshold(1.0, 0.5)


@pytest.mark.statistical
@pytest.mark.parametrize(("allowance", "threshold"), SIMULATED)
def test_table_of_run_lengths(allowance: float, threshold: float) -> None:
    random = np.random.default_rng(5)
    for shift, expected in zip((0.0, 1.0), SIMULATED[allowance, threshold], strict=True):
        scores = shift + random.standard_normal((4000, 12_000 if shift == 0.0 else 300))
        length = simulated_run_lengths(scores, allowance, threshold)
        noise = 4.0 * length.std() / 4000**0.5
        exact = run_length_by_integral_equation(shift, allowance, threshold)
        assert np.mean(length) == pytest.approx(exact, abs=noise)
        assert np.mean(length) == pytest.approx(expected, rel=0.08)


@pytest.mark.statistical
@pytest.mark.parametrize(("allowance", "threshold"), CORRELATED)
def test_table_of_correlated_run_lengths(allowance: float, threshold: float) -> None:
    scores = correlated_scores(np.random.default_rng(6), 0.3, (3000, 8000))
    plain = np.mean(simulated_run_lengths(scores, allowance, threshold))
    assert plain == pytest.approx(CORRELATED[allowance, threshold], rel=0.1)
    noise = DurationNoise(
        batch_ratio=0.1, autocorrelation=1.0 - 1e-9, run_to_run_ratio=0.0, persistence_ratio=0.3
    )
    spread = np.sqrt(np.log1p(0.1**2))
    deviations = spread * scores - 0.5 * spread**2
    ones = np.ones(scores.shape[1])
    fresh = np.array([innovations_of(row, ones, noise)[0] for row in deviations[:600]])
    whitened = np.mean(simulated_run_lengths(fresh, allowance, threshold))
    # A score counts as 3 at most, which makes false alarms somewhat rarer.
    formula = float(cusum_run_length(0.0, allowance, threshold))
    assert 0.92 * formula <= whitened <= 1.3 * formula
