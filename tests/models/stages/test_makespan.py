"""The makespan approximation against list scheduling, simulated task by task."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.laws.distributions import max_lognormal
from headway.models.stages.makespan import makespan_lower_bound, makespan_moments
from tests.oracles.list_scheduling import (
    list_scheduling_makespan,
    simulated_lognormal_makespans,
)
from tests.seeds import examples

# Simulated means of the design study, for 0.5, 1, 1.5, 2, 4, 10 and 50 tasks per core.
TASKS_PER_CORE = (0.5, 1.0, 1.5, 2.0, 4.0, 10.0, 50.0)
SIMULATED_MEANS = {
    (4, 0.1): (1.057, 1.105, 2.000, 2.148, 4.211, 10.31, 50.39),
    (4, 0.3): (1.167, 1.323, 2.003, 2.421, 4.458, 10.45, 50.47),
    (4, 1.0): (1.455, 1.985, 2.551, 3.075, 5.160, 11.14, 51.19),
    (16, 0.1): (1.148, 1.189, 2.088, 2.260, 4.362, 10.49, 50.52),
    (16, 0.3): (1.476, 1.630, 2.293, 2.734, 4.759, 10.76, 50.78),
    (16, 1.0): (2.638, 3.434, 4.094, 4.699, 6.958, 13.13, 53.17),
    (64, 0.1): (1.224, 1.258, 2.165, 2.355, 4.485, 10.58, 50.60),
    (64, 0.3): (1.774, 1.920, 2.584, 3.031, 5.042, 11.04, 51.06),
    (64, 1.0): (4.320, 5.355, 6.170, 6.848, 9.369, 15.70, 55.46),
}


@pytest.mark.parametrize(("num_cores", "cv"), SIMULATED_MEANS)
def test_table_of_simulated_means(num_cores: int, cv: float) -> None:
    means = [makespan_moments(int(f * num_cores), num_cores, cv).mean for f in TASKS_PER_CORE]
    assert means == pytest.approx(SIMULATED_MEANS[num_cores, cv], rel=0.01)


def test_worked_example() -> None:
    moments = makespan_moments(24, 16, 0.3)
    assert 0.5 * moments.mean == pytest.approx(1.148, rel=2e-3)
    assert 0.5 * moments.sd == pytest.approx(0.148, rel=1e-2)
    # The design study's own approximation, 0.2% below its simulation.
    assert 0.5 * moments.mean == pytest.approx(1.1455, rel=4e-3)


def test_without_noise_25_tasks_take_four_waves_of_8_cores() -> None:
    assert makespan_moments(25, 8, 0.0) == (4.0, 0.0)


@pytest.mark.parametrize(("num_tasks", "num_cores"), [(6, 4), (8, 4), (5, 2), (24, 16), (70, 8)])
@pytest.mark.parametrize("cv", [0.05, 0.3, 1.0])
def test_small_stages_against_simulation(num_tasks: int, num_cores: int, cv: float) -> None:
    sample = simulated_lognormal_makespans(num_tasks, num_cores, cv, num_replications=9000, seed=1)
    moments = makespan_moments(num_tasks, num_cores, cv)
    assert moments.mean == pytest.approx(sample.mean(), rel=0.02)
    assert moments.sd == pytest.approx(sample.std(), rel=0.20)


@pytest.mark.statistical
@pytest.mark.parametrize("num_cores", [2, 4, 16, 64])
@pytest.mark.parametrize("cv", [0.05, 0.1, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("tasks_per_core", [1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0])
def test_grid_against_simulation(num_cores: int, cv: float, tasks_per_core: float) -> None:
    num_tasks = int(tasks_per_core * num_cores)
    num_replications = int(4e6 / num_tasks / max(num_cores, 16) ** 0.5)
    sample = simulated_lognormal_makespans(
        num_tasks, num_cores, cv, num_replications=num_replications, seed=1
    )
    moments = makespan_moments(num_tasks, num_cores, cv)
    noise = 4.0 * sample.std() / num_replications**0.5
    assert moments.mean == pytest.approx(sample.mean(), abs=0.026 * sample.mean() + noise)
    assert moments.sd == pytest.approx(sample.std(), rel=0.40)


@given(st.integers(1, 600), st.integers(1, 300))
def test_without_noise_whole_waves(num_tasks: int, num_cores: int) -> None:
    assert makespan_moments(num_tasks, num_cores, 0.0) == (-(-num_tasks // num_cores), 0.0)


@pytest.mark.parametrize(("num_tasks", "num_cores"), [(25, 8), (24, 8), (33, 16), (9, 2)])
def test_vanishing_noise_meets_whole_waves(num_tasks: int, num_cores: int) -> None:
    moments = makespan_moments(num_tasks, num_cores, 1e-4)
    assert moments.mean == pytest.approx(-(-num_tasks // num_cores), abs=5e-4)
    assert moments.sd < 3e-4


def test_one_wave_is_the_exact_maximum() -> None:
    assert tuple(makespan_moments(12, 16, 0.4)) == tuple(max_lognormal(12, 0.4))


def test_one_core_adds_up() -> None:
    assert makespan_moments(9, 1, 0.5) == pytest.approx((9.0, 1.5))


def test_nearby_cvs_share_a_result() -> None:
    assert makespan_moments(40, 8, 0.30004) == makespan_moments(40, 8, 0.3)


@examples(30, 150)
@given(st.integers(1, 400), st.integers(1, 200), st.floats(0.0, 3.0))
def test_never_nan_and_never_below_the_bound(num_tasks: int, num_cores: int, cv: float) -> None:
    moments = makespan_moments(num_tasks, num_cores, cv)
    bound = float(makespan_lower_bound(num_tasks, num_cores))
    assert np.isfinite(moments.mean)
    assert np.isfinite(moments.sd)
    assert moments.mean >= bound * (1.0 - 1e-6)
    assert moments.sd >= 0.0


@pytest.mark.parametrize("cv", [0.05, 0.3, 1.0])
def test_more_cores_are_not_slower_and_more_tasks_not_faster(cv: float) -> None:
    cores = np.array([makespan_moments(96, num_cores, cv).mean for num_cores in range(1, 130)])
    assert np.all(np.diff(cores) <= 0.012 * cores[1:])
    tasks = np.array([makespan_moments(num_tasks, 12, cv).mean for num_tasks in range(1, 130)])
    assert np.all(np.diff(tasks) >= -0.012 * tasks[1:])


def test_the_bound_broadcasts() -> None:
    bound = makespan_lower_bound(np.array([[4.0], [40.0]]), np.array([8.0, 16.0]))
    assert bound.tolist() == [[1.0, 1.0], [5.0, 2.5]]


@pytest.mark.parametrize(("num_tasks", "num_cores", "cv"), [(0, 1, 0.1), (1, 0, 0.1), (1, 1, -0.1)])
def test_refusals(num_tasks: int, num_cores: int, cv: float) -> None:
    with pytest.raises(ValueError, match=r"at least 1|cv must"):
        makespan_moments(num_tasks, num_cores, cv)
    with pytest.raises(ValueError, match="at least 1"):
        makespan_lower_bound(0.0, 1.0)


def test_list_scheduling_by_brute_force() -> None:
    times = np.random.default_rng(8).uniform(0.1, 2.0, (20, 7))
    for row, makespan in zip(times, list_scheduling_makespan(times, 3), strict=True):
        free = [0.0] * 3
        for task in row:
            core = min(range(3), key=lambda number: free[number])
            free[core] += float(task)
        assert makespan == pytest.approx(max(free))


def test_list_scheduling_lies_between_its_bounds() -> None:
    for num_tasks, num_cores in itertools.product((3, 9, 20), (1, 4, 8)):
        times = np.random.default_rng(num_tasks).exponential(1.0, (50, num_tasks))
        makespan = list_scheduling_makespan(times, num_cores)
        even = times.sum(axis=1) / num_cores
        longest = times.max(axis=1)
        assert np.all(makespan >= np.maximum(even, longest) - 1e-9)
        assert np.all(makespan <= even + (1.0 - 1.0 / num_cores) * longest + 1e-9)


def test_list_scheduling_refuses() -> None:
    with pytest.raises(ValueError, match="num_cores"):
        list_scheduling_makespan(np.ones(3), 0)
    with pytest.raises(ValueError, match="at least one task"):
        list_scheduling_makespan(np.ones((2, 0)), 1)
    with pytest.raises(ValueError, match="one replication"):
        simulated_lognormal_makespans(3, 2, 0.1, num_replications=0, seed=1)
