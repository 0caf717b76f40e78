"""Parts of the noise come back from batches that have them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.models.arrays import Array
from headway.models.estimation.lines import relative_huber_lines
from headway.models.estimation.variance_function import NoiseLaw, noise_law
from tests.models.estimation.batches import FIXED_S, PER_ROW_S, lognormal, mean_s


def noisy_s(random: np.random.Generator, rows: Array, law: NoiseLaw) -> Array:
    """Lognormal durations with the variance of a law."""
    mean = mean_s(rows)
    sd = law.sd_s(FIXED_S, PER_ROW_S * rows)
    log_variance = np.log1p((sd / mean) ** 2)
    score = random.standard_normal(len(rows))
    return np.asarray(mean * np.exp(np.sqrt(log_variance) * score - 0.5 * log_variance))


def test_two_loads_give_the_part_of_the_driver_and_that_of_the_rows() -> None:
    true = NoiseLaw(0.3, 0.0, 0.15, 2)
    rows = np.repeat([2e3, 2e4], 4000)
    found = noise_law(rows, noisy_s(np.random.default_rng(1), rows, true), FIXED_S, PER_ROW_S)
    assert found.num_loads == 2
    assert found.relative_noise == 0.0
    assert found.additive_sd_s == pytest.approx(0.3, rel=0.05)
    assert found.per_row_noise == pytest.approx(0.15, rel=0.05)


def test_three_loads_give_all_parts() -> None:
    true = NoiseLaw(0.5, 0.2, 0.3, 3)
    rows = np.repeat([0.0, 1e4, 1e6], 5000)
    found = noise_law(rows, noisy_s(np.random.default_rng(2), rows, true), FIXED_S, PER_ROW_S)
    assert found.num_loads == 3
    for load in (0.0, 1e4, 1e6):
        work = PER_ROW_S * load
        sd = float(true.sd_s(FIXED_S, work))
        assert float(found.sd_s(FIXED_S, work)) == pytest.approx(sd, rel=0.05)


def test_one_load_gives_the_proportion() -> None:
    rows = np.full(1000, 1e4)
    duration = mean_s(rows) * lognormal(np.random.default_rng(3), 0.2, 1000)
    found = noise_law(rows, duration, FIXED_S, PER_ROW_S)
    assert (found.num_loads, found.additive_sd_s, found.per_row_noise) == (1, 0.0, 0.0)
    assert found.relative_noise == pytest.approx(0.2, rel=0.1)


def test_loads_are_one_within_a_tenth() -> None:
    close = np.array([1.0e4, 1.05e4, 1.09e4])
    assert noise_law(close, mean_s(close) * 1.1, FIXED_S, PER_ROW_S, 0).num_loads == 1
    apart = np.array([1.0e4, 1.12e4, 1.5e4])
    assert noise_law(apart, mean_s(apart) * 1.1, FIXED_S, PER_ROW_S, 0).num_loads == 3


def test_few_batches_are_told_without_bias() -> None:
    true = NoiseLaw(0.3, 0.0, 0.15, 2)
    rows = np.repeat([2e3, 2e4], 15)
    variances = []
    for seed in range(200):
        duration = noisy_s(np.random.default_rng(seed), rows, true)
        line = relative_huber_lines(rows, duration)
        found = noise_law(rows, duration, float(line[0]), float(line[1]))
        variances.append([float(found.sd_s(line[0], line[1] * n)) ** 2 for n in (2e3, 2e4)])
    expected = [float(true.sd_s(FIXED_S, PER_ROW_S * n)) ** 2 for n in (2e3, 2e4)]
    assert np.mean(variances, axis=0) == pytest.approx(expected, rel=0.08)


def test_many_loads_are_told_at_both_ends() -> None:
    true = NoiseLaw(0.3, 0.0, 0.15, 20)
    rows = np.tile(np.geomspace(1e2, 1e6, 20), 10)
    ends = PER_ROW_S * np.array([1e2, 1e6])
    ratios = []
    for seed in range(30):
        duration = noisy_s(np.random.default_rng(seed), rows, true)
        found = noise_law(rows, duration, FIXED_S, PER_ROW_S, num_parameters=0)
        ratios.append(found.sd_s(FIXED_S, ends) / true.sd_s(FIXED_S, ends))
    assert np.mean(ratios, axis=0) == pytest.approx([1.0, 1.0], abs=0.08)
    assert np.all(np.std(ratios, axis=0) < 0.13)


def test_from_light_loads_a_constant_ratio_misleads() -> None:
    """Noise of the driver dominates where it was measured, and not where it is asked for."""
    true = NoiseLaw(0.4, 0.0, 0.05, 2)
    rows = np.repeat([2e3, 5e3], 200)
    duration = noisy_s(np.random.default_rng(4), rows, true)
    found = noise_law(rows, duration, FIXED_S, PER_ROW_S)
    asked = PER_ROW_S * 5e4
    sd = float(true.sd_s(FIXED_S, asked))
    constant = float(np.std(duration / mean_s(rows))) * (FIXED_S + asked)
    assert abs(float(found.sd_s(FIXED_S, asked)) / sd - 1.0) < 1.0
    assert constant / sd > 2.5


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0.0, 1e6), st.floats(1e-3, 1e3)), min_size=3, max_size=12),
    st.floats(0.0, 10.0),
    st.floats(1e-6, 1e-2),
)
def test_parts_are_never_negative_nor_nan(
    batches: list[tuple[float, float]], fixed_s: float, per_row_s: float
) -> None:
    rows, duration = np.array(batches).T
    found = noise_law(rows + 1.0, duration, fixed_s, per_row_s)
    assert np.all(np.isfinite(found))
    assert np.all(np.array(found) >= 0.0)
    sd = found.sd_s(fixed_s, np.linspace(0.0, 100.0, 9))
    assert np.all(np.diff(sd) >= 0.0)


def test_no_noise_is_no_noise() -> None:
    rows = np.repeat([5e3, 1.5e4], 5)
    found = noise_law(rows, mean_s(rows), FIXED_S, PER_ROW_S)
    assert np.array(found[:3]) == pytest.approx(np.zeros(3), abs=1e-9)


def test_refusals() -> None:
    rows, duration = np.array([1e4, 2e4, 3e4]), np.array([5.0, 8.0, 11.0])
    with pytest.raises(ValueError, match="more batches"):
        noise_law(rows, duration, 2.0, 3e-4, num_parameters=3)
    with pytest.raises(ValueError, match="finite"):
        noise_law(rows, duration * np.nan, 2.0, 3e-4)
    with pytest.raises(ValueError, match="every fit positive"):
        noise_law(rows, duration, 0.0, 0.0)
