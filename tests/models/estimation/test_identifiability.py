"""What batches tell of a line: against simulated fits, scans and enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.models.arrays import Array
from headway.models.estimation.identifiability import (
    LineCovariance,
    line_covariance,
    line_identification,
    next_run,
    slope_error_ratio,
    trusted_rows,
)
from headway.models.estimation.lines import relative_huber_lines
from tests.models.estimation.batches import FIXED_S, PER_ROW_S, lognormal, mean_s

NOISE, MEAN_ROWS = 0.1, 1e4
# The design study: spread of batch sizes, simulated error of the slope for 100 batches. At 0.01
# fits were free to become negative there.
SIMULATED = {0.05: 0.34, 0.2: 0.088, 0.5: 0.040}


def sizes(rows_cv: float, num_batches: int, seed: int) -> Array:
    score = np.random.default_rng(seed).standard_normal(num_batches)
    return np.asarray(MEAN_ROWS * (1.0 + rows_cv * (score - score.mean()) / score.std())).clip(0.0)


def variance_at(found: LineCovariance, rows: Array) -> Array:
    by_slope = 2.0 * found.covariance_s2 + rows * found.per_row_variance_s2
    return np.asarray(found.fixed_variance_s2 + rows * by_slope)


@pytest.mark.parametrize("rows_cv", SIMULATED)
def test_published_errors_of_the_slope(rows_cv: float) -> None:
    found = slope_error_ratio(FIXED_S, PER_ROW_S, NOISE, MEAN_ROWS, rows_cv, 100)
    assert float(found) == pytest.approx(SIMULATED[rows_cv], rel=0.18)


def test_covariance_is_the_inverse_of_the_normal_equations() -> None:
    rows = np.array([1e3, 5e3, 5e3, 2e4])
    weighted = np.column_stack([np.ones(4), rows]) / (NOISE * mean_s(rows))[:, np.newaxis]
    expected = np.linalg.inv(weighted.T @ weighted)
    found = line_covariance(rows, FIXED_S, PER_ROW_S, NOISE)
    assert found.fixed_variance_s2 == pytest.approx(expected[0, 0])
    assert found.covariance_s2 == pytest.approx(expected[0, 1])
    assert found.per_row_variance_s2 == pytest.approx(expected[1, 1])


@pytest.mark.parametrize("num_batches", [20, 60, 200])
@pytest.mark.parametrize("ratio", [1.5, 3.0, 10.0])
def test_covariance_meets_the_spread_of_robust_fits(num_batches: int, ratio: float) -> None:
    rows = np.repeat([5e3, 5e3 * ratio], num_batches // 2)
    random = np.random.default_rng(1)
    # A long fixed time, so that no fit is cut off at zero.
    mean = 10.0 + 1e-3 * rows
    lines = relative_huber_lines(rows, mean * lognormal(random, 0.05, (2500, num_batches)))
    found = line_covariance(rows, 10.0, 1e-3, 0.05)
    error = np.sqrt([found.fixed_variance_s2, found.per_row_variance_s2])
    assert np.std(lines, axis=0) == pytest.approx(error, rel=0.10)


def test_one_size_tells_nothing_apart() -> None:
    assert line_covariance(np.full(50, 1e4), 2.0, 3e-4, 0.1)[0] == np.inf
    assert float(slope_error_ratio(2.0, 3e-4, 0.1, 1e4, 0.0, 50)) == np.inf
    found = line_identification(np.full(50, 1e4), 2.0, 3e-4, 0.1)
    assert (found.fixed_error_ratio, found.separates) == (np.inf, False)
    assert trusted_rows(line_covariance(np.full(50, 1e4), 2.0, 3e-4, 0.1), 2.0, 3e-4, 0.1) is None


def test_a_constant_rate_does_not_separate_and_two_loads_do() -> None:
    # Poisson counts about ten thousand vary by one percent.
    steady = np.random.default_rng(1).poisson(1e4, 400).astype(float)
    assert not line_identification(steady, FIXED_S, PER_ROW_S, NOISE).separates
    loads = np.repeat([5e3, 1.5e4], 20)
    assert line_identification(loads, FIXED_S, PER_ROW_S, NOISE).separates


def test_a_missing_part_is_judged_by_the_whole() -> None:
    found = line_identification(np.repeat([5e3, 1.5e4], 4), 0.0, PER_ROW_S, 0.2)
    assert found.fixed_error_ratio == np.inf
    assert not found.separates
    assert line_identification(np.repeat([5e3, 1.5e4], 40), 0.0, PER_ROW_S, 0.05).separates


@settings(max_examples=80)
@given(
    st.floats(1.2, 20.0),
    st.integers(2, 60),
    st.floats(0.02, 0.5),
    st.floats(0.02, 0.5),
    st.floats(0.1, 20.0),
)
def test_trusted_rows_equal_a_scan(
    ratio: float, num_batches: int, noise: float, accuracy: float, fixed_s: float
) -> None:
    rows = np.tile([5e3, 5e3 * ratio], num_batches)
    found = line_covariance(rows, fixed_s, PER_ROW_S, noise)
    limits = trusted_rows(found, fixed_s, PER_ROW_S, accuracy)
    scan = np.concatenate([[0.0], np.geomspace(1.0, 1e9, 4000)])
    error = 1.959964 * np.sqrt(variance_at(found, scan)) / (fixed_s + PER_ROW_S * scan)
    known = scan[error <= accuracy]
    if limits is None:
        assert np.all(error >= accuracy * (1.0 - 1e-4))
        return
    assert 0.0 <= limits.fewest <= limits.most
    inside = (scan > limits.fewest * 1.000001) & (scan < limits.most * 0.999999)
    assert np.all(error[inside] <= accuracy * (1.0 + 1e-4))
    assert np.all(known >= limits.fewest * (1.0 - 1e-4))
    assert np.all(known <= limits.most * (1.0 + 1e-4))


def test_trust_holds_in_simulation() -> None:
    rows = np.repeat([5e3, 1.5e4], 30)
    found = line_covariance(rows, FIXED_S, PER_ROW_S, NOISE)
    limits = trusted_rows(found, FIXED_S, PER_ROW_S, 0.05)
    assert limits is not None
    random = np.random.default_rng(2)
    lines = relative_huber_lines(rows, mean_s(rows) * lognormal(random, NOISE, (4000, 60)))
    for size in (limits.fewest, limits.most):
        error = (lines[:, 0] + lines[:, 1] * size) / float(mean_s(np.array(size))) - 1.0
        assert np.mean(np.abs(error) <= 0.05) == pytest.approx(0.95, abs=0.025)


def test_more_accuracy_is_trusted_less_far() -> None:
    found = line_covariance(np.repeat([5e3, 1.5e4], 100), FIXED_S, PER_ROW_S, NOISE)
    ranges = [trusted_rows(found, FIXED_S, PER_ROW_S, e) for e in (0.02, 0.03, 0.05, 0.1, 0.5)]
    reach = [limits.most if limits else 0.0 for limits in ranges]
    assert reach == sorted(reach)
    assert reach[-1] == np.inf


def least_batches(rows: Array, size: float, planned: float, accuracy: float) -> int:
    """By trying one number after the other."""
    limit = (accuracy * float(mean_s(np.array(planned))) / 1.959964) ** 2
    for num_batches in range(400):
        tried = np.concatenate([rows, np.full(num_batches, size)])
        found = line_covariance(tried, FIXED_S, PER_ROW_S, NOISE)
        if np.isfinite(found.fixed_variance_s2):
            if float(variance_at(found, np.array(planned))) <= limit * (1.0 + 1e-9):
                return num_batches
        elif planned == rows[0] and (NOISE * mean_s(rows)[0]) ** 2 / len(tried) <= limit:
            return num_batches
    return 400


@pytest.mark.parametrize("planned", [1e4, 2e4, 6e4])
@pytest.mark.parametrize("before", [np.full(30, 1e4), np.repeat([5e3, 1.5e4], 10)])
def test_the_next_run_equals_trying_all(before: Array, planned: float) -> None:
    possible = np.array([0.0, 1e3, 3e3, 2e4, 3e4, 8e4])
    found = next_run(
        before,
        FIXED_S,
        PER_ROW_S,
        NOISE,
        planned_rows=planned,
        possible_rows=possible,
        accuracy_ratio=0.04,
    )
    needed = [least_batches(before, size, planned, 0.04) for size in possible]
    assert found is not None
    assert found.num_batches == min(needed)
    if found.num_batches:
        assert found.num_rows == possible[int(np.argmin(needed))]


def test_no_run_is_enough_where_the_other_load_is_too_little_known() -> None:
    one = np.array([1e4])
    found = next_run(
        one, FIXED_S, PER_ROW_S, 0.5, planned_rows=1e6, possible_rows=one, accuracy_ratio=0.01
    )
    assert found is None


def test_refusals() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        slope_error_ratio(2.0, 0.0, 0.1, 1e4, 0.1, 10)
    with pytest.raises(ValueError, match="must not be negative"):
        slope_error_ratio(-2.0, 1.0, 0.1, 1e4, 0.1, 10)
    with pytest.raises(ValueError, match="need batches"):
        line_covariance(np.zeros(0), 2.0, 3e-4, 0.1)
    with pytest.raises(ValueError, match="nor both 0"):
        line_covariance(np.ones(3), 0.0, 0.0, 0.1)
    known = line_covariance(np.array([1.0, 2.0]), 2.0, 3e-4, 0.1)
    with pytest.raises(ValueError, match="accuracy_ratio"):
        trusted_rows(known, 2.0, 3e-4, 0.0)
    with pytest.raises(ValueError, match="planned_rows"):
        next_run(
            np.ones(3), 2.0, 3e-4, 0.1,
            planned_rows=0.0, possible_rows=np.ones(1), accuracy_ratio=0.1,
        )  # fmt: skip
    with pytest.raises(ValueError, match="accuracy_ratio"):
        next_run(
            np.ones(3), 2.0, 3e-4, 0.1,
            planned_rows=1.0, possible_rows=np.ones(1), accuracy_ratio=-1.0,
        )  # fmt: skip
