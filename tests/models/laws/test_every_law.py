"""What holds for every law of a duration, tried on each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.models.arrays import Array, Numeric
from headway.models.laws.distributions import (
    lognormal_cdf,
    lognormal_partial_expectation,
    lognormal_quantile,
    uniform_plus_lognormal_cdf,
    uniform_plus_lognormal_quantile,
)
from headway.models.laws.gamma import gamma_cdf, gamma_partial_expectation, gamma_quantile
from headway.models.laws.mixtures import DurationMixture, usual_and_slow, with_pauses
from headway.models.laws.modes import SlowMode


class Law(NamedTuple):
    """Functions of a mean and a coefficient of variation."""

    name: str
    cdf: Callable[[Numeric, float, float], Array]
    partial_expectation: Callable[[Numeric, float, float], Array]
    quantile: Callable[[Numeric, float, float], Array]
    waited_cdf: Callable[[Numeric, float, float, float], Array]
    waited_quantile: Callable[[Numeric, float, float, float], Array]
    """With the length of a uniform wait as their last argument."""


def of_mixture(name: str, mixture: Callable[[float, float], DurationMixture]) -> Law:
    return Law(
        name,
        lambda x, mean, cv: mixture(mean, cv).cdf(x),
        lambda x, mean, cv: mixture(mean, cv).partial_expectation_s(x),
        lambda q, mean, cv: mixture(mean, cv).quantile_s(q),
        lambda x, mean, cv, wait: mixture(mean, cv).after_uniform_wait_cdf(x, wait),
        lambda q, mean, cv, wait: mixture(mean, cv).after_uniform_wait_quantile_s(q, wait),
    )


def half_paused(mean: float, cv: float) -> DurationMixture:
    return with_pauses(mean / 2.0, cv * mean / 2.0, pause_prob=0.5, pause_mean_s=mean)


def mostly_usual(mean: float, cv: float) -> DurationMixture:
    return usual_and_slow(mean / 1.2, cv, SlowMode(share=0.1, ratio=3.0))


LAWS = (
    Law(
        "lognormal",
        lognormal_cdf,
        lognormal_partial_expectation,
        lognormal_quantile,
        lambda x, mean, cv, wait: uniform_plus_lognormal_cdf(x, wait, mean, cv * mean),
        lambda q, mean, cv, wait: uniform_plus_lognormal_quantile(q, wait, mean, cv * mean),
    ),
    of_mixture("usual and slow", mostly_usual),
    of_mixture("with pauses", half_paused),
)
LAWS_AND_GAMMA = (
    *LAWS,
    LAWS[0]._replace(
        name="gamma",
        cdf=gamma_cdf,
        partial_expectation=gamma_partial_expectation,
        quantile=gamma_quantile,
    ),
)
few = settings(max_examples=15)
each_law = pytest.mark.parametrize("law", LAWS_AND_GAMMA, ids=lambda law: law.name)
each_waited_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
means, cvs = st.floats(1e-3, 1e4), st.floats(0.0, 4.0)
places = st.floats(-1.0, 50.0)
levels = st.floats(1e-4, 1.0 - 1e-4)
waits = st.floats(0.0, 20.0)


@each_law
@few
@given(places, places, means, cvs)
def test_distribution_functions_rise_from_0_to_1(
    law: Law, one: float, other: float, mean: float, cv: float
) -> None:
    x = mean * np.sort(np.array([one, other]))
    below, above = law.cdf(x, mean, cv)
    assert 0.0 <= below <= above <= 1.0
    ends = law.cdf(np.array([-1e300, 0.0, 1e300]), mean, cv)
    assert ends.tolist() == [0.0, 0.0, 1.0]


@each_law
@few
@given(levels, levels, means, cvs)
def test_quantiles_rise_and_invert(
    law: Law, one: float, other: float, mean: float, cv: float
) -> None:
    q = np.sort(np.array([one, other]))
    value = law.quantile(q, mean, cv)
    assert np.all(np.isfinite(value))
    assert 0.0 <= value[0] <= value[1] * (1.0 + 1e-9)
    assert np.all(law.cdf(value * (1.0 + 1e-6), mean, cv) >= q - 1e-9)


@each_law
@few
@given(levels, means, cvs, st.floats(1e-3, 1e3))
def test_units_do_not_matter(law: Law, q: float, mean: float, cv: float, unit: float) -> None:
    scaled = float(law.quantile(q, unit * mean, cv))
    assert scaled == pytest.approx(unit * float(law.quantile(q, mean, cv)), rel=1e-7)
    x = 1.3 * mean
    assert float(law.cdf(unit * x, unit * mean, cv)) == pytest.approx(
        float(law.cdf(x, mean, cv)), abs=1e-9
    )


@each_law
@few
@given(places, st.floats(0.0, 10.0), means, cvs)
def test_partial_expectations_are_integrals(
    law: Law, place: float, step: float, mean: float, cv: float
) -> None:
    x = mean * np.array([place, place + step])
    low, high = law.cdf(x, mean, cv)
    below, above = law.partial_expectation(x, mean, cv)
    rounding = 1e-9 * mean * (1.0 + abs(place) + step)
    assert low * step * mean - rounding <= above - below <= high * step * mean + rounding
    # Jensen, and what remains far beyond all mass.
    assert below >= max(float(x[0]) - mean, 0.0) - rounding
    assert above <= max(float(x[1]), 0.0) + rounding


@each_law
@few
@given(places, means, cvs, st.floats(1.0, 5.0))
def test_longer_means_take_longer(
    law: Law, place: float, mean: float, cv: float, ratio: float
) -> None:
    short = float(law.cdf(place * mean, mean, cv))
    assert float(law.cdf(place * mean, ratio * mean, cv)) <= short + 1e-12


@each_law
@few
@given(means)
def test_vanishing_noise_is_a_step_at_each_mode(law: Law, mean: float) -> None:
    q = np.array([0.2, 0.8])
    still = law.quantile(q, mean, 0.0)
    assert law.quantile(q, mean, 1e-7) == pytest.approx(still, abs=1e-5 * mean)


@each_waited_law
@few
@given(levels, levels, means, cvs, waits, st.floats(0.0, 5.0))
def test_waits_lengthen_by_no_more_than_themselves(
    law: Law, one: float, other: float, mean: float, cv: float, wait: float, more: float
) -> None:
    q = np.sort(np.array([one, other]))
    own = law.quantile(q, mean, cv)
    shorter = law.waited_quantile(q, mean, cv, wait * mean)
    longer = law.waited_quantile(q, mean, cv, (wait + more) * mean)
    rounding = 1e-7 * (np.abs(longer) + mean)
    assert np.all(np.isfinite(longer))
    assert np.all(own <= shorter + rounding)
    assert np.all(shorter <= longer + rounding)
    assert np.all(longer <= own + (wait + more) * mean + rounding)
    assert shorter[0] <= shorter[1] + rounding[0]


@each_waited_law
@few
@given(places, means, cvs, waits)
def test_waiting_is_never_sooner(
    law: Law, place: float, mean: float, cv: float, wait: float
) -> None:
    x = place * mean
    waited = float(law.waited_cdf(x, mean, cv, wait * mean))
    assert 0.0 <= waited <= float(law.cdf(x, mean, cv)) + 1e-7
    assert waited >= float(law.cdf(x - wait * mean, mean, cv)) - 1e-7
