"""Least squares without negative coefficients, beside those of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from headway.models.estimation.regression import nonnegative_least_squares


@pytest.mark.parametrize("num_terms", [1, 2, 3, 6])
@pytest.mark.parametrize("num_rows", [1, 2, 5, 40, 1000])
def test_squares_are_as_small_as_scipys(num_terms: int, num_rows: int) -> None:
    rng = np.random.default_rng(num_terms * 10_007 + num_rows)
    num_compared = 0
    for _ in range(50):
        terms = rng.normal(size=(num_rows, num_terms)) * 10.0 ** rng.integers(-3, 7, num_terms)
        y = rng.normal(size=num_rows)
        weights = rng.random(num_rows)
        root = np.sqrt(weights)
        found = nonnegative_least_squares(terms, y, weights)
        scale = np.linalg.norm(terms * root[:, np.newaxis], axis=0)
        try:
            theirs, _ = nnls(terms * root[:, np.newaxis] / scale, y * root)
        except RuntimeError:
            # That of scipy 1.13 goes round in circles where there are fewer rows than terms.
            assert num_rows < num_terms
            continue
        num_compared += 1
        ours = np.linalg.norm((terms @ found - y) * root)
        assert found.min() >= 0
        assert ours == pytest.approx(
            np.linalg.norm((terms @ (theirs / scale) - y) * root), rel=1e-9, abs=1e-12
        )
        if num_rows > num_terms:
            assert found * scale == pytest.approx(theirs, rel=1e-6, abs=1e-9)
    assert num_compared >= 40


def test_columns_that_say_the_same_or_nothing_are_no_obstacle() -> None:
    ones = np.ones(20)
    terms = np.column_stack([ones, ones, np.zeros(20), -ones])
    found = nonnegative_least_squares(terms, 3.0 * ones, ones)
    assert found[:2].sum() == pytest.approx(3.0)
    assert found[2:].tolist() == [0.0, 0.0]
