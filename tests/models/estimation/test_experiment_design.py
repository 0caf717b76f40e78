"""Designs against enumeration of all designs, and what they are worth in simulated fits."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from headway.models.arrays import Array
from headway.models.estimation.autocorrelation import mean_inflation
from headway.models.estimation.experiment_design import (
    batches_per_level,
    d_optimal_design,
    design_efficiency,
    log_information,
    setting_time_s,
)
from headway.models.estimation.makespan_units import StageSetting, task_terms
from tests.models.estimation.batches import lognormal

# The design study: four terms of Ernest, three loads and five core counts.
LOADS, CORES = (2e4, 6e4, 2e5), (1, 2, 4, 8, 16)
TRUE = np.array([2.0, 1e-4, 0.5, 0.05])
CANDIDATES = np.array([(n, c) for n in LOADS for c in CORES], dtype=float)


def ernest(settings_: Array) -> Array:
    rows, cores = settings_.T
    return np.column_stack([np.ones_like(cores), rows / cores, np.log(cores), cores])


def relative(terms: Array, coefficients: Array) -> Array:
    return np.asarray(terms / (terms @ coefficients)[:, np.newaxis])


def best_by_enumeration(columns: Array, num_runs: int, most_repeats: int) -> float:
    choose = combinations if most_repeats == 1 else combinations_with_replacement
    return max(
        log_information(columns, np.array(chosen))
        for chosen in choose(range(len(columns)), num_runs)
        if np.bincount(chosen).max() <= most_repeats
    )


@pytest.mark.parametrize("num_runs", [4, 5, 6, 7])
def test_the_study_is_solved_as_by_enumeration(num_runs: int) -> None:
    columns = relative(ernest(CANDIDATES), TRUE)
    design = d_optimal_design(columns, num_runs)
    assert len(set(design.chosen)) == num_runs
    length = np.linalg.norm(columns, axis=0)
    best = max(
        np.linalg.slogdet(rows.T @ rows)[1]
        for chosen in combinations(range(len(columns)), num_runs)
        for rows in [columns[list(chosen)] / length]
    )
    assert design.log_information == pytest.approx(best + 2 * np.log(length).sum(), abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("num_runs", "most_repeats"), [(4, 1), (5, 3), (6, 2)])
def test_random_candidates_are_solved_as_by_enumeration(
    seed: int, num_runs: int, most_repeats: int
) -> None:
    columns = np.random.default_rng(seed).standard_normal((7, 3))
    design = d_optimal_design(columns, num_runs, most_repeats=most_repeats)
    assert np.bincount(design.chosen).max() <= most_repeats
    best = best_by_enumeration(columns, num_runs, most_repeats)
    assert design.log_information == pytest.approx(best, abs=1e-6)


def test_what_has_been_run_is_complemented() -> None:
    columns = np.column_stack([np.ones(6), np.arange(6.0)])
    before = np.array([5, 5, 5])
    design = d_optimal_design(columns, 2, already_run=before)
    best = max(
        log_information(columns, np.array([5, 5, 5, *chosen]))
        for chosen in combinations(range(6), 2)
    )
    assert design.log_information == pytest.approx(best)
    assert 0 in design.chosen


@settings(max_examples=40)
@given(st.integers(0, 1000), st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=3))
def test_units_do_not_change_the_choice(seed: int, units: list[float]) -> None:
    columns = np.random.default_rng(seed).standard_normal((8, 3))
    plain, scaled = d_optimal_design(columns, 4), d_optimal_design(columns * units, 4)
    assert scaled.log_information == pytest.approx(
        plain.log_information + 2.0 * sum(log(unit) for unit in units), abs=1e-5
    )


def test_information_is_that_of_independent_repetitions() -> None:
    columns = np.random.default_rng(1).standard_normal((5, 2))
    once, twice = np.array([0, 3, 4]), np.array([0, 3, 4, 0, 3, 4])
    gain = log_information(columns, twice) - log_information(columns, once)
    assert gain == pytest.approx(2 * log(2.0))
    assert design_efficiency(columns, twice, once) == pytest.approx(1.0)


def test_open_coefficients_are_told() -> None:
    one_load = np.column_stack([np.ones(4), np.full(4, 3.0)])
    assert log_information(one_load, np.arange(4)) == -np.inf
    assert log_information(np.column_stack([np.ones(3), np.zeros(3)]), np.arange(3)) == -np.inf
    with pytest.raises(ValueError, match="whichever are run"):
        d_optimal_design(one_load, 3)
    loads = np.column_stack([np.ones(3), [1.0, 2.0, 3.0]])
    assert design_efficiency(loads, np.array([1, 1]), np.array([0, 2])) == 0.0
    with pytest.raises(ValueError, match="compare"):
        design_efficiency(loads, np.array([0, 2]), np.array([1, 1]))


def test_too_few_runs_are_refused() -> None:
    loads = np.column_stack([np.ones(3), [1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="at least as many runs"):
        d_optimal_design(loads, 1)
    with pytest.raises(ValueError, match="must not exceed"):
        d_optimal_design(loads, 4)


@pytest.mark.parametrize("num_tasks", [16, 24, 40, 200])
@pytest.mark.parametrize(("driver", "fixed", "row"), [(1.0, 0.05, 1e-4), (0.2, 0.2, 2e-5)])
def test_two_loads_at_the_fewest_and_the_most_cores_come_out(
    num_tasks: int, driver: float, fixed: float, row: float
) -> None:
    """The rule of thumb for experiments: a third core count would only check the model."""
    grid = np.array([(n, c) for n in (1e4, 3e4, 1e5) for c in (2, 3, 4, 6, 8, 12, 16)], dtype=float)
    rows, cores = grid.T
    terms = task_terms(
        [StageSetting("scan", np.full(len(rows), num_tasks), cores, rows, 0.3)]
    ).columns
    columns = relative(terms, np.array([driver, fixed, row]))
    chosen = grid[d_optimal_design(columns, 6, most_repeats=2).chosen]
    assert set(chosen[:, 0]) == {1e4, 1e5}
    assert set(chosen[:, 1]) == {2.0, 16.0}
    rule = np.flatnonzero(np.isin(rows, (1e4, 1e5)) & np.isin(cores, (2, 16)))
    best = d_optimal_design(columns, 4, most_repeats=4).chosen
    assert design_efficiency(columns, rule, best) > 0.6


def test_batches_per_level_are_enough_in_simulation() -> None:
    random = np.random.default_rng(1)
    for noise, accuracy in ((0.1, 0.05), (0.3, 0.05), (0.3, 0.1)):
        num_batches = int(batches_per_level(noise, accuracy))
        means = lognormal(random, noise, (20_000, num_batches)).mean(axis=1)
        assert np.mean(np.abs(means - 1.0) <= accuracy) == pytest.approx(0.95, abs=0.012)


def test_lasting_noise_needs_more_batches() -> None:
    plain, lasting = batches_per_level(0.2, 0.05), batches_per_level(0.2, 0.05, 0.95, 0.5)
    independent = float(lasting) / float(mean_inflation(float(lasting), 0.5))
    assert independent == pytest.approx(float(plain), rel=0.03)


@given(st.floats(0.0, 2.0), st.floats(0.0, 2.0), st.floats(1e-3, 1.0))
def test_more_noise_needs_no_fewer_batches(one: float, other: float, accuracy: float) -> None:
    low, high = sorted((one, other))
    assert 1 <= int(batches_per_level(low, accuracy)) <= int(batches_per_level(high, accuracy))


def test_time_of_a_setting() -> None:
    assert setting_time_s(20, np.array([0.5, 60.0])).tolist() == [70.0, 1800.0]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="accuracy_ratio > 0"):
        batches_per_level(0.1, 0.0)
    with pytest.raises(ValueError, match="autocorrelation"):
        batches_per_level(0.1, 0.1, autocorrelation=1.0)
    with pytest.raises(ValueError, match="no number"):
        batches_per_level(1.0, 1e-12)
    with pytest.raises(ValueError, match="trigger_s > 0"):
        setting_time_s(20, 0.0)


DESIGNS = ("all 15", "D-optimal 5", "D-optimal 7", "one load", "4 and 8 cores")


def settings_of(name: str) -> NDArray[np.intp]:
    columns = relative(ernest(CANDIDATES), TRUE)
    if name.startswith("D-optimal"):
        return d_optimal_design(columns, int(name[-1])).chosen
    rows, cores = CANDIDATES.T
    keep = {
        "all 15": np.ones(15, dtype=bool),
        "one load": rows == LOADS[1],
        "4 and 8 cores": np.isin(cores, (4, 8)),
    }[name]
    return np.flatnonzero(keep)


def design_errors(name: str, repeats: int, cores: tuple[int, ...], samples: int = 600) -> Array:
    random = np.random.default_rng(3)
    terms = ernest(np.repeat(CANDIDATES[settings_of(name)], repeats, axis=0))
    asked = ernest(np.array([(2e5, c) for c in cores], dtype=float))
    errors = []
    for _ in range(samples):
        duration = terms @ TRUE * lognormal(random, 0.1, len(terms))
        fit = duration
        for _ in range(4):  # weights from the fit, not from the data
            weighted = terms / fit[:, np.newaxis]
            length = np.linalg.norm(weighted, axis=0)
            found = nnls(weighted / length, duration / fit)[0] / length
            fit = terms @ found
        errors.append(asked @ found / (asked @ TRUE) - 1.0)
    return np.asarray(np.abs(np.array(errors)).ravel() * 100.0)


@pytest.mark.statistical
def test_few_chosen_settings_are_worth_nearly_all() -> None:
    near = {name: np.quantile(design_errors(name, 5, (6, 12)), 0.95) for name in DESIGNS}
    far = {name: np.quantile(design_errors(name, 5, (24, 32)), 0.95) for name in DESIGNS}
    assert near["D-optimal 7"] < 1.6 * near["all 15"]
    assert far["D-optimal 7"] < 1.5 * far["all 15"]
    assert near["one load"] > 1.5 * near["D-optimal 5"]
    assert far["4 and 8 cores"] > 2.0 * far["D-optimal 7"]
