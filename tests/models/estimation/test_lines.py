"""Many lines at once against one line at a time, and the spread of their coefficients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from headway.models.arrays import Array
from headway.models.estimation.lines import relative_huber_lines, relative_noise
from headway.models.estimation.nonnegative import nonnegative_least_squares
from headway.models.estimation.regression import relative_huber
from tests.models.estimation.batches import FIXED_S, PER_ROW_S, lognormal, mean_s, two_loads

# The design study, 2000 samples of batches at two loads, noise 0.1: batches, share of batches that
# take Exp(4 s) longer, and rmse of the fixed time, the time per row and the duration between, %.
RELATIVE_HUBER = {
    (20, 0.00): (10.0, 8.2, 2.4),
    (20, 0.05): (11.0, 8.4, 2.8),
    (60, 0.05): (6.1, 4.9, 1.6),
    (200, 0.05): (3.5, 2.7, 1.0),
}
LEAST_SQUARES = {
    (20, 0.00): (9.9, 7.7, 2.4),
    (20, 0.05): (36.0, 20.0, 7.4),
    (60, 0.05): (21.0, 12.0, 5.3),
    (200, 0.05): (14.0, 6.3, 4.7),
}


def samples(num_samples: int, num_batches: int, outliers: float, seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    rows = two_loads(num_batches)
    duration = mean_s(rows) * lognormal(random, 0.1, (num_samples, num_batches))
    hit = random.random(duration.shape) < outliers
    return rows, duration + hit * random.exponential(4.0, duration.shape)


def rmse_percent(lines: Array) -> Array:
    ratio = lines / [FIXED_S, PER_ROW_S]
    between = mean_s_of(lines, 1e4) / float(mean_s(np.array(1e4)))
    error = np.column_stack([ratio, between]) - 1.0
    return np.asarray(np.sqrt(np.mean(error**2, axis=0)) * 100.0)


def mean_s_of(lines: Array, rows: float) -> Array:
    return lines[:, 0] + lines[:, 1] * rows


def least_squares_lines(rows: Array, duration_s: Array) -> Array:
    terms = np.column_stack([np.ones_like(rows), rows / 1e4])
    return np.array([nnls(terms, row)[0] for row in duration_s]) / [1.0, 1e4]


@pytest.mark.parametrize("outliers", [0.0, 0.1])
@pytest.mark.parametrize("num_batches", [4, 10, 40])
def test_many_lines_are_each_the_line_of_one_sample(num_batches: int, outliers: float) -> None:
    rows, duration = samples(20, num_batches, outliers, seed=3)
    one_by_one = [
        relative_huber(np.column_stack([np.ones_like(rows), rows]), row, np.ones(num_batches))
        for row in duration
    ]
    # A median of residuals may hop between two values for ever: both then stop where they are.
    assert relative_huber_lines(rows, duration) == pytest.approx(np.array(one_by_one), rel=1e-3)


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(1e-2, 1e3)), min_size=1, max_size=8),
)
def test_a_closed_form_equals_the_active_set(batches: list[tuple[float, float]]) -> None:
    rows, duration = np.array(batches).T
    line = relative_huber_lines(rows, duration)
    assert np.all(line >= 0.0)
    assert np.all(np.isfinite(line))
    again = relative_huber_lines(np.stack([rows, rows]), np.stack([duration, duration]))
    assert again[0] == pytest.approx(line)


@settings(max_examples=100)
@given(st.floats(0, 100), st.floats(0, 1e-2), st.lists(st.floats(1, 1e5), min_size=2, max_size=9))
def test_a_line_without_noise_comes_back(
    fixed_s: float, per_row_s: float, sizes: list[float]
) -> None:
    rows = np.array([*sizes, 2.0 * max(sizes)])
    duration = 0.01 + fixed_s + per_row_s * rows
    line = relative_huber_lines(rows, duration)
    assert line[0] + line[1] * rows == pytest.approx(duration, rel=1e-5)


def test_one_size_gives_one_coefficient() -> None:
    line = relative_huber_lines(np.full(6, 1e4), np.full(6, 5.0))
    assert np.count_nonzero(line) == 1
    assert line[0] + 1e4 * line[1] == pytest.approx(5.0)


def test_noise_comes_back_without_bias() -> None:
    rows, duration = samples(2000, 10, 0.0, seed=4)
    noise = relative_noise(rows, duration, relative_huber_lines(rows, duration))
    assert np.mean(noise**2) == pytest.approx(0.01, rel=0.04)


def test_without_negative_coefficients_columns_may_be_of_any_size() -> None:
    random = np.random.default_rng(1)
    terms = random.uniform(0.5, 2.0, (12, 3)) * [1.0, 1e9, 1e-9]
    y = terms @ [2.0, 3e-9, 0.0] + 0.1 * random.standard_normal(12)
    weights = random.uniform(0.1, 3.0, 12)
    root = np.sqrt(weights)
    found = nonnegative_least_squares(terms, y, weights)
    plain, _ = nnls(terms / [1.0, 1e9, 1e-9] * root[:, np.newaxis], y * root)
    assert found * [1.0, 1e9, 1e-9] == pytest.approx(plain, abs=1e-12)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="at least one batch"):
        relative_huber_lines(np.zeros((3, 0)), np.zeros((3, 0)))
    with pytest.raises(ValueError, match="must be positive"):
        relative_huber_lines(np.ones(2), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="must be positive"):
        relative_huber_lines(np.ones(2), np.array([1.0, np.nan]))
    with pytest.raises(ValueError, match="more batches"):
        relative_noise(np.ones(2), np.ones(2), np.array([1.0, 0.0]))


@pytest.mark.statistical
@pytest.mark.parametrize(("num_batches", "outliers"), RELATIVE_HUBER)
def test_table_of_robust_lines(num_batches: int, outliers: float) -> None:
    rows, duration = samples(2000, num_batches, outliers, seed=5)
    robust = rmse_percent(relative_huber_lines(rows, duration))
    assert robust == pytest.approx(RELATIVE_HUBER[num_batches, outliers], rel=0.15, abs=0.3)
    plain = rmse_percent(least_squares_lines(rows, duration))
    assert plain == pytest.approx(LEAST_SQUARES[num_batches, outliers], rel=0.25, abs=0.3)
