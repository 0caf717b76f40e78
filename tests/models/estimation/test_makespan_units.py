"""Task costs come back from batches that were played task by task."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from headway.models.arrays import Array
from headway.models.estimation.makespan_units import (
    StageSetting,
    TaskTerms,
    fit_task_costs,
    identification,
    task_costs_duration_s,
    task_terms,
)
from tests.models.estimation.batches import lognormal
from tests.oracles.list_scheduling import list_scheduling_makespan

# One stage of the design study.
NUM_TASKS, TASK_CV = 24, 0.3
DRIVER_S, TASK_FIXED_S, PER_ROW_S = 1.0, 0.05, 1e-4
FITTED_CORES, FITTED_ROWS = (2, 4, 8, 16), (1e4, 1e5)
PREDICTED_CORES = (3, 5, 6, 7, 9, 10, 12, 20, 24, 32)
FIXED_NAME, ROW_NAME = "scan: fixed time of a task", "scan: time per row"


def stage(cores: Array, rows: Array, name: str = "scan", tasks: int = NUM_TASKS) -> StageSetting:
    return StageSetting(name, np.full(len(cores), tasks), cores, rows, TASK_CV)


def every(cores: tuple[int, ...], rows: tuple[float, ...], times: int) -> tuple[Array, Array]:
    grid = np.array([(c, n) for c in cores for n in rows for _ in range(times)], dtype=float).T
    return grid[0], grid[1]


def played_s(random: np.random.Generator, cores: int, rows: float, num_batches: int) -> Array:
    """A driver phase, and tasks that cores take in order; both vary."""
    task_s = TASK_FIXED_S + PER_ROW_S * rows / NUM_TASKS
    times = task_s * lognormal(random, TASK_CV, (num_batches, NUM_TASKS))
    driver = DRIVER_S * lognormal(random, 0.05, num_batches)
    return driver + list_scheduling_makespan(times, cores)


@lru_cache
def true_mean_s(cores: int, rows: float) -> float:
    return float(played_s(np.random.default_rng(99), cores, rows, 20_000).mean())


def played_batches(seed: int, times: int) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(seed)
    cores, rows = every(FITTED_CORES, FITTED_ROWS, times)
    duration = [played_s(random, c, n, times) for c in FITTED_CORES for n in FITTED_ROWS]
    return cores, rows, np.concatenate(duration)


def ernest_columns(cores: Array, rows: Array) -> Array:
    """Rows over cores, logarithm and count of cores: no waves."""
    return np.column_stack([np.ones_like(cores), rows / cores / 1e4, np.log(cores), cores])


def errors_percent(seed: int, times: int, rows: float) -> tuple[Array, Array]:
    """Of other core counts than those fitted: by makespan units, and by Ernest's terms."""
    cores, sizes, duration = played_batches(seed, times)
    costs = fit_task_costs(task_terms([stage(cores, sizes)]), duration)
    asked = np.array(PREDICTED_CORES, dtype=float)
    same = np.full(len(asked), rows)
    true = np.array([true_mean_s(int(c), rows) for c in asked])
    units = task_costs_duration_s(costs, task_terms([stage(asked, same)]))
    weight = 1.0 / duration
    smooth, _ = nnls(ernest_columns(cores, sizes) * weight[:, np.newaxis], duration * weight)
    return (units / true - 1.0) * 100, (ernest_columns(asked, same) @ smooth / true - 1.0) * 100


def test_costs_come_back_from_played_batches() -> None:
    cores, rows, duration = played_batches(1, times=40)
    costs = fit_task_costs(task_terms([stage(cores, rows)]), duration)
    assert costs.at_zero == ()
    assert costs.identification.entangled == ()
    assert costs.coefficients == pytest.approx([DRIVER_S, TASK_FIXED_S, PER_ROW_S], rel=0.06)


@pytest.mark.parametrize("seed", range(3))
def test_other_core_counts_are_predicted(seed: int) -> None:
    units, ernest = (np.abs(part) for part in errors_percent(seed, times=20, rows=1e5))
    assert np.median(units) < 2.0
    assert np.max(units) < 4.0
    assert np.max(ernest) > 10.0


def test_standard_errors_of_shares_meet_their_spread() -> None:
    cores, rows = every((2, 4, 8), (1e4, 4e4, 1e5), times=4)
    terms = task_terms([stage(cores, rows)])
    mean = terms.columns @ [DRIVER_S, TASK_FIXED_S, PER_ROW_S]
    random = np.random.default_rng(2)
    fits = [fit_task_costs(terms, mean * lognormal(random, 0.05, len(mean))) for _ in range(300)]
    share = np.sqrt(np.mean((terms.columns / mean[:, np.newaxis]) ** 2, axis=0))
    spread = np.std([fit.coefficients for fit in fits], axis=0) * share
    assert np.mean([fit.share_error for fit in fits], axis=0) == pytest.approx(spread, rel=0.15)


def test_one_load_entangles_overhead_and_rows() -> None:
    cores, rows = every((2, 4, 8), (1e4,), times=5)
    found = identification(task_terms([stage(cores, rows)]))
    assert found.entangled == ((FIXED_NAME, ROW_NAME),)
    assert found.condition == np.inf


def test_one_core_count_entangles_driver_and_overhead() -> None:
    cores, rows = every((8,), (1e4, 1e5), times=5)
    assert identification(task_terms([stage(cores, rows)])).entangled == (("driver", FIXED_NAME),)


def test_stages_of_one_shape_are_entangled_in_pairs() -> None:
    cores, rows = every((2, 4, 8), (1e4, 1e5), times=3)
    twins = [stage(cores, rows, "join"), stage(cores, rows, "sort")]
    costs = fit_task_costs(task_terms(twins), np.full(len(cores), 2.0))
    assert costs.identification.entangled == (
        ("join: fixed time of a task", "sort: fixed time of a task"),
        ("join: time per row", "sort: time per row"),
    )
    assert np.isfinite(costs.share_error[0])
    assert np.all(np.isinf(costs.share_error[1:]))


def test_stages_of_two_shapes_are_told_apart() -> None:
    cores, rows = every((2, 3, 5, 8, 16), (1e4, 1e5), times=3)
    two = [stage(cores, rows, "scan", tasks=24), stage(cores, 0.1 * rows**0.8, "sink", tasks=5)]
    terms = task_terms(two)
    assert identification(terms).entangled == ()
    true = np.array([0.5, 0.02, 1e-4, 0.1, 3e-4])
    costs = fit_task_costs(terms, terms.columns @ true)
    assert costs.coefficients == pytest.approx(true, rel=1e-6)
    assert costs.relative_noise == pytest.approx(0.0, abs=1e-9)


def test_rows_that_never_come_leave_their_cost_open() -> None:
    cores, rows = every((2, 4, 8), (0.0,), times=3)
    assert identification(task_terms([stage(cores, rows)])).entangled == ((ROW_NAME,),)


def test_fewer_batches_than_coefficients_are_told() -> None:
    found = identification(task_terms([stage(np.array([2.0, 4.0]), np.array([1e4, 1e5]))]))
    assert found.condition == np.inf
    assert found.entangled


def test_coefficients_at_zero_are_named() -> None:
    cores, rows = every((2, 4, 8), (1e4, 1e5), times=3)
    terms = task_terms([stage(cores, rows)])
    costs = fit_task_costs(terms, terms.columns @ [0.0, 0.2, 1e-4])
    assert costs.at_zero == ("driver",)
    faster_with_rows = fit_task_costs(terms, terms.columns @ [5.0, 0.5, -1e-5])
    assert ROW_NAME in faster_with_rows.at_zero
    assert np.all(faster_with_rows.coefficients >= 0.0)


@settings(max_examples=60)
@given(st.floats(0.0, 10.0), st.floats(0.0, 1.0), st.floats(0.0, 1e-3), st.floats(1e-3, 1e6))
def test_units_do_not_matter(driver: float, fixed: float, row: float, unit: float) -> None:
    cores, rows = every((2, 4, 8), (1e4, 1e5), times=1)
    terms = task_terms([stage(cores, rows)])
    duration = 1e-3 + terms.columns @ [driver, fixed, row]
    scaled = TaskTerms(terms.names, terms.columns * [1.0, 1.0, unit])
    one, other = fit_task_costs(terms, duration), fit_task_costs(scaled, duration)
    assert terms.columns @ one.coefficients == pytest.approx(duration, rel=1e-6)
    assert scaled.columns @ other.coefficients == pytest.approx(duration, rel=1e-6)
    assert identification(terms).condition == pytest.approx(identification(scaled).condition)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="at least one stage"):
        task_terms([])
    good = stage(np.array([2.0]), np.array([1e4]))
    with pytest.raises(ValueError, match="name of its own"):
        task_terms([good, good])
    with pytest.raises(ValueError, match="same settings"):
        task_terms([good, stage(np.array([2.0, 4.0]), np.array([1e4, 1e4]), "sink")])
    with pytest.raises(ValueError, match="negative number of rows"):
        task_terms([stage(np.array([2.0]), np.array([-1.0]))])
    with pytest.raises(ValueError, match="at least 1 task"):
        task_terms([stage(np.array([0.0]), np.array([1.0]))])
    with pytest.raises(ValueError, match="one duration"):
        fit_task_costs(task_terms([good]), np.ones(2))
    with pytest.raises(ValueError, match="positive"):
        fit_task_costs(task_terms([good]), np.zeros(1))
    with pytest.raises(ValueError, match="other stages"):
        costs = fit_task_costs(task_terms([good]), np.ones(1))
        task_costs_duration_s(costs, task_terms([stage(np.ones(1), np.ones(1), "sink")]))


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [1e4, 1e5, 2e5])
def test_table_of_core_counts(rows: float) -> None:
    both = [errors_percent(seed, times=20, rows=rows) for seed in range(40)]
    units, ernest = (np.abs(part) for part in np.array(both).transpose(1, 0, 2))
    assert np.median(units) < 1.0
    assert np.max(units) < 5.0
    assert np.max(np.abs(np.mean([part[0] for part in both], axis=0))) < 2.6  # that of (M2)-(M5)
    assert np.median(ernest) > 3.0 * np.median(units)
