"""The gamma distribution against scipy and, where scipy has too few digits, against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import special

from headway.models.laws.gamma import gammainc, gammaincc, gammaincinv, gammaln, log_excess

SHAPES = np.concatenate([np.geomspace(1e-3, 1e6, 181), [1.0, 19.999, 20.0, 20.001]])
# From far below the mean to far above it, and on both sides of where the method changes.
RATIOS = np.concatenate(
    [np.geomspace(1e-6, 0.65, 41), np.linspace(0.65, 1.35, 57), np.geomspace(1.35, 50.0, 31)]
)


@pytest.mark.parametrize("is_upper", [False, True])
def test_both_tails_agree_with_scipy(is_upper: bool) -> None:
    shape, ratio = np.meshgrid(SHAPES, RATIOS)
    ours, theirs = (gammaincc, special.gammaincc) if is_upper else (gammainc, special.gammainc)
    expected = theirs(shape, shape * ratio)
    # Below that, scipy itself is right to fewer digits.
    is_compared = expected > 1e-100
    assert np.count_nonzero(is_compared) > 12_000
    assert ours(shape, shape * ratio)[is_compared] == pytest.approx(
        expected[is_compared], rel=5e-12, abs=0.0
    )


@pytest.mark.parametrize(
    ("shape", "x"),
    [
        *((0.05, 40.0), (0.5, 1e-9), (3.0, 200.0), (19.9, 21.0), (20.0, 14.1), (20.0, 25.9)),
        *((400.0, 300.0), (400.0, 540.0), (1e4, 9_300.0), (1e5, 99_000.0), (1e5, 101_200.0)),
    ],
)
def test_tails_agree_with_forty_digits(shape: float, x: float) -> None:
    with mpmath.workdps(60):
        upper = mpmath.gammainc(shape, x, mpmath.inf, regularized=True)
        expected = float(1 - upper), float(upper)
    found = float(gammainc(shape, x)), float(gammaincc(shape, x))
    assert found == pytest.approx(expected, rel=1e-11, abs=0.0)


def test_the_ends_are_certain() -> None:
    ends = np.array([-1.0, 0.0, np.inf])
    assert gammainc(2.0, ends).tolist() == [0.0, 0.0, 1.0]
    assert gammaincc(2.0, ends).tolist() == [1.0, 1.0, 0.0]
    assert gammaincinv(2.0, np.array([0.0, 1.0])).tolist() == [0.0, np.inf]


def test_quantiles_agree_with_scipy() -> None:
    shapes = np.concatenate([np.geomspace(0.01, 1e5, 81), [20.0]])
    probs = np.concatenate([np.geomspace(1e-12, 0.5, 25), 1.0 - np.geomspace(1e-11, 0.5, 25)])
    shape, prob = np.meshgrid(shapes, probs)
    expected = special.gammaincinv(shape, prob)
    is_compared = expected > 1e-250
    quantile = np.asarray(gammaincinv(shape, prob))
    assert quantile[is_compared] == pytest.approx(
        np.asarray(expected)[is_compared], rel=1e-9, abs=0.0
    )


def test_quantiles_of_almost_constant_values_are_normal() -> None:
    # Shapes as a wait has them that hardly varies; the third cumulant is Cornish and Fisher's term.
    shape, scores = 1e10, np.array([-2.0, 0.0, 3.0])
    expected = shape + scores * np.sqrt(shape) + (scores**2 - 1.0) / 3.0
    assert gammaincinv(shape, special.ndtr(scores)) == pytest.approx(expected, rel=1e-12)


def test_logarithms_agree_with_scipy_and_mpmath() -> None:
    assert gammaln(SHAPES) == pytest.approx(special.gammaln(SHAPES), rel=1e-13, abs=1e-13)
    for ratio in (-0.9, -0.011, -0.009, 1e-7, 0.009, 0.011, 30.0):
        with mpmath.workdps(60):
            exact = (mpmath.mpf(ratio) - mpmath.log1p(ratio)) / mpmath.mpf(ratio) ** 2
        assert float(log_excess(ratio)) == pytest.approx(float(exact), rel=1e-11)
