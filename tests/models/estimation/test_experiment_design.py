"""Designs against enumeration of all designs, and what they are worth in simulated fits."""

from __future__ import annotations

from itertools import combinations
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from headway.models.arrays import Array
from headway.models.estimation.experiment_design import (
    d_optimal_design,
    log_information,
)
from tests.models.estimation.batches import lognormal
from tests.seeds import examples

# The design study: four terms of Ernest, three loads and five core counts.
LOADS, CORES = (2e4, 6e4, 2e5), (1, 2, 4, 8, 16)
TRUE = np.array([2.0, 1e-4, 0.5, 0.05])
CANDIDATES = np.array([(n, c) for n in LOADS for c in CORES], dtype=float)


def ernest(settings_: Array) -> Array:
    rows, cores = settings_.T
    return np.column_stack([np.ones_like(cores), rows / cores, np.log(cores), cores])


def relative(terms: Array, coefficients: Array) -> Array:
    return np.asarray(terms / (terms @ coefficients)[:, np.newaxis])


def best_by_enumeration(columns: Array, num_runs: int) -> float:
    return max(
        log_information(columns, np.array(chosen))
        for chosen in combinations(range(len(columns)), num_runs)
    )


@pytest.mark.parametrize("num_runs", [4, 5, 6, 7])
def test_the_study_is_solved_as_by_enumeration(num_runs: int) -> None:
    columns = relative(ernest(CANDIDATES), TRUE)
    design = d_optimal_design(columns, num_runs)
    assert len(set(design)) == num_runs
    length = np.linalg.norm(columns, axis=0)
    best = max(
        np.linalg.slogdet(rows.T @ rows)[1]
        for chosen in combinations(range(len(columns)), num_runs)
        for rows in [columns[list(chosen)] / length]
    )
    information = log_information(columns, design)
    assert information == pytest.approx(best + 2 * np.log(length).sum(), abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("num_runs", [4, 5, 6])
def test_random_candidates_are_solved_as_by_enumeration(seed: int, num_runs: int) -> None:
    columns = np.random.default_rng(seed).standard_normal((7, 3))
    design = d_optimal_design(columns, num_runs)
    assert len(set(design)) == num_runs
    best = best_by_enumeration(columns, num_runs)
    assert log_information(columns, design) == pytest.approx(best, abs=1e-6)


def test_what_has_been_run_is_complemented() -> None:
    columns = np.column_stack([np.ones(6), np.arange(6.0)])
    before = np.array([5, 5, 5])
    design = d_optimal_design(columns, 2, already_run=before)
    best = max(
        log_information(columns, np.array([5, 5, 5, *chosen]))
        for chosen in combinations(range(6), 2)
    )
    assert log_information(columns, np.concatenate([before, design])) == pytest.approx(best)
    assert 0 in design


@examples(20, 40)
@given(st.integers(0, 1000), st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=3))
def test_units_do_not_change_the_choice(seed: int, units: list[float]) -> None:
    columns = np.random.default_rng(seed).standard_normal((8, 3))
    plain, scaled = (
        log_information(choices, d_optimal_design(choices, 4))
        for choices in (columns, columns * units)
    )
    assert scaled == pytest.approx(plain + 2.0 * sum(log(unit) for unit in units), abs=1e-5)


def test_information_is_that_of_independent_repetitions() -> None:
    columns = np.random.default_rng(1).standard_normal((5, 2))
    once, twice = np.array([0, 3, 4]), np.array([0, 3, 4, 0, 3, 4])
    gain = log_information(columns, twice) - log_information(columns, once)
    assert gain == pytest.approx(2 * log(2.0))


def test_open_coefficients_are_reported() -> None:
    one_load = np.column_stack([np.ones(4), np.full(4, 3.0)])
    assert log_information(one_load, np.arange(4)) == -np.inf
    assert log_information(np.column_stack([np.ones(3), np.zeros(3)]), np.arange(3)) == -np.inf
    with pytest.raises(ValueError, match="whichever are run"):
        d_optimal_design(one_load, 3)


def test_too_few_runs_are_refused() -> None:
    loads = np.column_stack([np.ones(3), [1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="at least as many runs"):
        d_optimal_design(loads, 1)
    with pytest.raises(ValueError, match="must not exceed"):
        d_optimal_design(loads, 4)


DESIGNS = ("all 15", "D-optimal 5", "D-optimal 7", "one load", "4 and 8 cores")


def settings_of(name: str) -> NDArray[np.intp]:
    columns = relative(ernest(CANDIDATES), TRUE)
    if name.startswith("D-optimal"):
        return d_optimal_design(columns, int(name[-1]))
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
