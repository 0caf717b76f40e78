"""Quantiles of mixtures of uniforms against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.laws.distributions import uniform_mixture_quantile
from tests.oracles.closed_forms import uniform_mixture_cdf

parts = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 10), st.integers(1, 5)), min_size=1, max_size=8
)


def test_one_part_is_uniform() -> None:
    q = np.array([0.0, 0.3, 1.0])
    quantile = uniform_mixture_quantile(q, np.array([2.0]), np.array([12.0]), np.array([7.0]))
    assert quantile == pytest.approx([2.0, 5.0, 12.0])


def test_an_atom_holds_its_whole_weight() -> None:
    low, high, weight = np.array([0.0, 1.0]), np.array([2.0, 1.0]), np.array([1.0, 1.0])
    q = np.array([0.2, 0.25, 0.5, 0.75, 0.8])
    assert uniform_mixture_quantile(q, low, high, weight) == pytest.approx(
        [0.8, 1.0, 1.0, 1.0, 1.2]
    )


def test_quantiles_are_those_of_a_sample() -> None:
    random = np.random.default_rng(2)
    low = random.uniform(0.0, 5.0, 40)
    high = low + random.uniform(0.0, 5.0, 40)
    weight = random.uniform(0.0, 1.0, 40)
    chosen = random.choice(40, 300_000, p=weight / weight.sum())
    sample = random.uniform(low[chosen], high[chosen])
    q = np.array([0.05, 0.5, 0.95])
    exact = uniform_mixture_quantile(q, low, high, weight)
    assert exact == pytest.approx(np.quantile(sample, q), abs=0.03)


@given(parts, st.floats(0.0, 1.0))
def test_the_quantile_is_the_first_value_that_reaches_q(
    listed: list[tuple[int, int, int]], q: float
) -> None:
    table = np.array(listed, dtype=np.float64)
    low, high, weight = table[:, 0], table[:, 0] + table[:, 1], table[:, 2]
    value = float(uniform_mixture_quantile(q, low, high, weight))
    reached, before = uniform_mixture_cdf(np.array([value, value - 1e-6]), low, high, weight)
    assert reached >= q - 1e-9
    assert value <= low.min() + 1e-9 or before <= q + 1e-9


def test_refusals() -> None:
    one = np.array([1.0])
    with pytest.raises(ValueError, match="low <= high"):
        uniform_mixture_quantile(0.5, one, one - 1.0, one)
    with pytest.raises(ValueError, match="not all zero"):
        uniform_mixture_quantile(0.5, one, one, 0.0 * one)
    with pytest.raises(ValueError, match="one length"):
        uniform_mixture_quantile(0.5, one, np.array([1.0, 2.0]), one)
    with pytest.raises(ValueError, match="q must"):
        uniform_mixture_quantile(-0.5, one, one, one)
