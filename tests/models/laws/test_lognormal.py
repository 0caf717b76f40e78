"""What holds for every law of a duration, tried on the lognormal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.models.laws.distributions import (
    lognormal_cdf,
    lognormal_partial_expectation,
    lognormal_quantile,
    uniform_plus_lognormal_cdf,
)
from tests.oracles.closed_forms import uniform_plus_lognormal_quantile

few = settings(max_examples=15)
means, cvs = st.floats(1e-3, 1e4), st.floats(0.0, 4.0)
places = st.floats(-1.0, 50.0)
levels = st.floats(1e-4, 1.0 - 1e-4)
waits = st.floats(0.0, 20.0)


@few
@given(places, places, means, cvs)
def test_distribution_functions_rise_from_0_to_1(
    one: float, other: float, mean: float, cv: float
) -> None:
    x = mean * np.sort(np.array([one, other]))
    below, above = lognormal_cdf(x, mean, cv)
    assert 0.0 <= below <= above <= 1.0
    ends = lognormal_cdf(np.array([-1e300, 0.0, 1e300]), mean, cv)
    assert ends.tolist() == [0.0, 0.0, 1.0]


@few
@given(levels, levels, means, cvs)
def test_quantiles_rise_and_invert(one: float, other: float, mean: float, cv: float) -> None:
    q = np.sort(np.array([one, other]))
    value = lognormal_quantile(q, mean, cv)
    assert np.all(np.isfinite(value))
    assert 0.0 <= value[0] <= value[1] * (1.0 + 1e-9)
    assert np.all(lognormal_cdf(value * (1.0 + 1e-6), mean, cv) >= q - 1e-9)


@few
@given(levels, means, cvs, st.floats(1e-3, 1e3))
def test_units_do_not_matter(q: float, mean: float, cv: float, unit: float) -> None:
    scaled = float(lognormal_quantile(q, unit * mean, cv))
    assert scaled == pytest.approx(unit * float(lognormal_quantile(q, mean, cv)), rel=1e-7)
    x = 1.3 * mean
    assert float(lognormal_cdf(unit * x, unit * mean, cv)) == pytest.approx(
        float(lognormal_cdf(x, mean, cv)), abs=1e-9
    )


@few
@given(places, st.floats(0.0, 10.0), means, cvs)
def test_partial_expectations_are_integrals(
    place: float, step: float, mean: float, cv: float
) -> None:
    x = mean * np.array([place, place + step])
    low, high = lognormal_cdf(x, mean, cv)
    below, above = lognormal_partial_expectation(x, mean, cv)
    rounding = 1e-9 * mean * (1.0 + abs(place) + step)
    assert low * step * mean - rounding <= above - below <= high * step * mean + rounding
    # Jensen, and what remains far beyond all mass.
    assert below >= max(float(x[0]) - mean, 0.0) - rounding
    assert above <= max(float(x[1]), 0.0) + rounding


@few
@given(places, means, cvs, st.floats(1.0, 5.0))
def test_longer_means_take_longer(place: float, mean: float, cv: float, ratio: float) -> None:
    short = float(lognormal_cdf(place * mean, mean, cv))
    assert float(lognormal_cdf(place * mean, ratio * mean, cv)) <= short + 1e-12


@few
@given(means)
def test_vanishing_noise_is_a_step_at_each_mode(mean: float) -> None:
    q = np.array([0.2, 0.8])
    still = lognormal_quantile(q, mean, 0.0)
    assert lognormal_quantile(q, mean, 1e-7) == pytest.approx(still, abs=1e-5 * mean)


@few
@given(levels, levels, means, cvs, waits, st.floats(0.0, 5.0))
def test_waits_lengthen_by_no_more_than_themselves(
    one: float, other: float, mean: float, cv: float, wait: float, more: float
) -> None:
    q = np.sort(np.array([one, other]))
    own = lognormal_quantile(q, mean, cv)
    shorter = uniform_plus_lognormal_quantile(q, wait * mean, mean, cv * mean)
    longer = uniform_plus_lognormal_quantile(q, (wait + more) * mean, mean, cv * mean)
    rounding = 1e-7 * (np.abs(longer) + mean)
    assert np.all(np.isfinite(longer))
    assert np.all(own <= shorter + rounding)
    assert np.all(shorter <= longer + rounding)
    assert np.all(longer <= own + (wait + more) * mean + rounding)
    assert shorter[0] <= shorter[1] + rounding[0]


@few
@given(places, means, cvs, waits)
def test_waiting_is_never_sooner(place: float, mean: float, cv: float, wait: float) -> None:
    x = place * mean
    waited = float(uniform_plus_lognormal_cdf(x, wait * mean, mean, cv * mean))
    assert 0.0 <= waited <= float(lognormal_cdf(x, mean, cv)) + 1e-7
    assert waited >= float(lognormal_cdf(x - wait * mean, mean, cv)) - 1e-7
