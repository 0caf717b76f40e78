"""Subsets of tasks and rows against brute force and the figures of the paper."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headway.models.scheduling.punctual import punctual_subset
from tests.oracles.closed_forms import goodput_per_s, share_in_time
from tests.oracles.d_over import d_over
from tests.oracles.subset import DeadlineTree, kept_counts, largest_subset

FIGURE_5 = [(10.0, 2.0), (10.0, 2.0), (15.0, 3.0), (15.0, 1.0), (15.0, 2.0), (20.0, 4.0)]


def most_in_time(start_s: float, tasks: list[tuple[float, float]]) -> int:
    """Of all subsets, the largest that meets its deadlines when run by increasing deadline."""
    for size in range(len(tasks), 0, -1):
        for chosen in itertools.combinations(sorted(tasks), size):
            ends = start_s + np.cumsum([cost for _, cost in chosen])
            if all(end <= deadline for end, (deadline, _) in zip(ends, chosen, strict=True)):
                return size
    return 0


def random_tasks(generator: np.random.Generator) -> list[tuple[float, float]]:
    num = int(generator.integers(1, 9))
    deadlines = generator.integers(1, 16, num).astype(float)
    costs = generator.integers(1, 6, num).astype(float)
    return list(zip(deadlines.tolist(), costs.tolist(), strict=True))


def tree_of(tasks: list[tuple[float, float]]) -> DeadlineTree:
    tree = DeadlineTree([deadline for deadline, _ in tasks])
    for deadline, cost in tasks:
        tree.add(deadline, cost)
    return tree


def counted(tasks: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    deadlines = np.unique([deadline for deadline, _ in tasks])
    costs = np.unique([cost for _, cost in tasks])
    counts = np.zeros((len(deadlines), len(costs)), dtype=int)
    for deadline, cost in tasks:
        counts[np.searchsorted(deadlines, deadline), np.searchsorted(costs, cost)] += 1
    return deadlines, costs, counts


@pytest.mark.parametrize(("start_s", "num_kept"), [(5, 6), (6, 5), (8, 4), (10, 3), (16, 1)])
def test_the_tasks_of_figure_5(start_s: float, num_kept: int) -> None:
    tree = tree_of(FIGURE_5)
    tree.drop_excess(start_s)
    assert len(tree) == num_kept
    assert kept_counts(start_s, *counted(FIGURE_5)).sum() == num_kept


def test_one_long_task_does_not_keep_three_short_ones_out() -> None:
    tasks = [(10.0, 9.0), (11.0, 3.0), (11.0, 3.0), (11.0, 3.0)]
    deadlines, costs = map(np.array, zip(*tasks, strict=True))
    assert largest_subset(0.0, deadlines, costs).tolist() == [False, True, True, True]
    assert d_over(np.zeros(4), deadlines, costs)[0].sum() == 1


def test_tree_arrays_and_heap_keep_as_many_as_brute_force() -> None:
    generator = np.random.default_rng(1)
    for _ in range(400):
        tasks = random_tasks(generator)
        start_s = float(generator.integers(0, 5))
        best = most_in_time(start_s, tasks)
        deadlines, costs = map(np.array, zip(*tasks, strict=True))
        kept = largest_subset(start_s, deadlines, costs)
        counts = counted(tasks)
        by_count = kept_counts(start_s, *counts)
        tree = tree_of(tasks)
        dropped = tree.drop_excess(start_s)
        assert len(tree) == len(tasks) - len(dropped) == best
        assert by_count.sum() == best
        assert np.all(by_count <= counts[2])
        # What is kept meets its deadlines as it is.
        chosen = [task for task, keep in zip(tasks, kept, strict=True) if keep]
        assert len(chosen) == best == most_in_time(start_s, chosen)
        left = [
            (float(deadline), float(cost))
            for row, deadline in zip(by_count, counts[0], strict=True)
            for count, cost in zip(row, counts[1], strict=True)
            for _ in range(count)
        ]
        assert most_in_time(start_s, left) == best


def test_the_tree_runs_what_it_keeps_in_time() -> None:
    generator = np.random.default_rng(2)
    for _ in range(100):
        tree = tree_of(random_tasks(generator))
        tree.drop_excess(2.0)
        now_s, num_kept, num_run = 2.0, len(tree), 0
        while (task := tree.pop_next(now_s)) is not None:
            now_s += task[1]
            assert now_s <= task[0]
            num_run += 1
        assert num_run == num_kept
        assert tree.latest_start_s == np.inf


def test_a_margin_for_noisy_costs_makes_fewer_of_the_kept_late() -> None:
    generator = np.random.default_rng(3)
    late = dict.fromkeys((0.0, 1.0), 0)
    for _ in range(200):
        deadlines, costs = generator.uniform(0, 20, 40), generator.uniform(0.5, 1.5, 40)
        for margin in late:
            kept = largest_subset(0.0, deadlines, costs, margin=margin, cost_cv=1.0)
            order = np.argsort(deadlines[kept])
            ends = np.cumsum(generator.exponential(costs[kept][order]))
            late[margin] += int((ends > deadlines[kept][order]).sum())
    assert 0 < late[1.0] < 0.5 * late[0.0]


def test_d_over_with_equal_values_never_takes_the_server_for_a_task_without_laxity() -> None:
    generator = np.random.default_rng(4)
    for _ in range(50):
        release = np.sort(generator.uniform(0, 50, 80))
        costs = generator.uniform(0.2, 2, 80)
        deadlines = release + costs + generator.uniform(0, 6, 80)
        done, num_takeovers = d_over(release, deadlines, costs)
        assert num_takeovers == 0
        assert 0 < done.sum() < 80
    # With values it can.
    worth = np.where(generator.uniform(size=80) < 0.2, 50.0, 1.0)
    assert d_over(release, deadlines, costs, worth)[1] > 0


def test_d_over_does_every_task_of_a_set_that_fits() -> None:
    generator = np.random.default_rng(5)
    release = np.cumsum(generator.uniform(1.0, 2.0, 50))
    costs = generator.uniform(0.1, 0.9, 50)
    assert d_over(release, release + costs + 0.01, costs)[0].all()


def most_punctual(
    tasks: list[tuple[float, float]], now_s: float, fixed_s: float, shed_cost_s: float
) -> int:
    for size in range(len(tasks), 0, -1):
        for chosen in itertools.combinations(tasks, size):
            spent = sum(cost for _, cost in chosen) + shed_cost_s * (len(tasks) - size)
            if now_s + fixed_s + spent <= min(deadline for deadline, _ in chosen):
                return size
    return 0


def test_the_punctual_subset_is_the_best_of_all_subsets() -> None:
    generator = np.random.default_rng(6)
    for _ in range(300):
        tasks = random_tasks(generator)[:7]
        fixed_s, shed_cost_s = float(generator.integers(0, 4)), float(generator.choice([0.0, 0.5]))
        deadlines, costs, counts = counted(tasks)
        kept, end_s = punctual_subset(
            1.0, deadlines, costs, counts, fixed_s=fixed_s, shed_cost_s=shed_cost_s
        )
        assert kept.sum() == most_punctual(tasks, 1.0, fixed_s, shed_cost_s)
        assert np.all(kept <= counts)
        if kept.sum():
            assert end_s <= deadlines[kept.sum(axis=1) > 0].min()


def test_goodput_and_shares_of_the_note() -> None:
    rates = np.array([1e5, 2e5, 4e5, 9e5])
    kept = goodput_per_s(rates, 1.0, 0.2, 5e-6, 1e-6)
    np.testing.assert_allclose(kept, [1e5, 1.5e5, 1e5, 0.0])
    # Nothing shed for free: blind to costs, it is what capacity is of the load.
    assert share_in_time(1.44, 0.0, 0.0) == pytest.approx(0.694, abs=1e-3)
    assert share_in_time(0.9, 0.8, 0.64) == 1.0
