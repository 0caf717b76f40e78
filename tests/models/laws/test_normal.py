"""The normal distribution against scipy, and on both sides of the size where scipy takes over."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from headway.models.laws.normal import log_ndtr, ndtr, ndtri, quick_ndtr

SCORES = np.concatenate([np.linspace(-37.0, 37.0, 2001), [-np.inf, np.inf, 0.0]])


def test_probabilities_agree_to_the_last_digits() -> None:
    assert ndtr(SCORES) == pytest.approx(special.ndtr(SCORES), rel=1e-13, abs=0.0)


def test_logarithms_agree_where_the_probability_differs_from_zero() -> None:
    scores = SCORES[np.isfinite(SCORES)]
    assert log_ndtr(scores) == pytest.approx(special.log_ndtr(scores), rel=1e-12, abs=1e-300)
    assert float(log_ndtr(-60.0)) == -np.inf


def test_scores_agree_and_the_ends_are_infinite() -> None:
    probs = np.concatenate([np.geomspace(1e-300, 0.5, 400), 1.0 - np.geomspace(1e-15, 0.5, 400)])
    assert ndtri(probs) == pytest.approx(special.ndtri(probs), rel=1e-12, abs=1e-14)
    assert ndtri(np.array([0.0, 1.0])).tolist() == [-np.inf, np.inf]
    assert np.isnan(ndtri(1.5))


def test_large_arrays_agree_with_small_ones() -> None:
    scores = np.linspace(-8.0, 8.0, 60_000)
    assert ndtr(scores)[:100] == pytest.approx(ndtr(scores[:100]), rel=1e-14)
    probs = np.linspace(0.001, 0.999, 60_000)
    assert ndtri(probs)[:100] == pytest.approx(ndtri(probs[:100]), rel=1e-13)


def test_the_table_is_right_to_rounding_and_its_tails_to_ten_digits() -> None:
    scores = np.random.default_rng(5).uniform(-12.0, 12.0, 200_000)
    assert quick_ndtr(scores) == pytest.approx(special.ndtr(scores), rel=0.0, abs=4e-16)
    inside = scores[np.abs(scores) < 8.9]
    assert quick_ndtr(inside) == pytest.approx(special.ndtr(inside), rel=2e-11, abs=0.0)
    ends = quick_ndtr(np.array([-np.inf, np.inf, -40.0] * 100))[:3]
    assert ends == pytest.approx([0.0, 1.0, 0.0], abs=2e-19)
