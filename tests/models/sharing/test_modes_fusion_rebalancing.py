"""Modes, fusion and rebalancing: the numbers of the paper, its traps, enumeration as the oracle."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from statistics import pvariance

import pytest

from headway.models.sharing.fusion import (
    Component,
    OperatorGraph,
    attributes_score,
    best_fusion,
    fewest_rows,
    fused,
    rows_between,
    rows_score,
)
from headway.models.sharing.modes import (
    WindowWork,
    after_moves,
    flux_moves,
    mode_pause_s,
    mode_work_s,
    split_break_even_windows,
)
from tests.oracles.migrations import Migration, migration_costs

WORK = WindowWork(
    num_rows=1.8e7,
    row_s=2e-6,
    num_windows=4,
    num_panes=60,
    num_groups=2000,
    num_keys=2000,
    num_merges=86,
    copy_s=5e-7,
    merge_s=2e-7,
)


def test_work_of_the_modes() -> None:
    assert mode_work_s(WORK)["shared, split"] == pytest.approx(36.0944)
    unshared = [mode_work_s(replace(WORK, num_windows=w))["unshared"] for w in (1, 2, 4, 6)]
    assert unshared == pytest.approx([36, 72, 144, 216])
    assert split_break_even_windows(WORK) == pytest.approx(1.0026, abs=5e-5)
    assert split_break_even_windows(replace(WORK, num_rows=1e5)) == pytest.approx(1.472)
    assert split_break_even_windows(replace(WORK, num_rows=0.0)) == math.inf


def test_one_component_beats_two_where_nothing_moves() -> None:
    _, in_place, split = mode_work_s(WORK).values()
    assert in_place < split
    moving = replace(WORK, num_migrations=5000, migration_pause_s=0.1)
    _, in_place, split = mode_work_s(moving).values()
    assert in_place > split
    assert mode_pause_s(moving)["shared in place"] == pytest.approx(500.0)
    assert mode_pause_s(moving)["shared, split"] == 0.0


def test_break_even_is_where_both_cost_the_same() -> None:
    even = replace(WORK, num_rows=1e5, num_windows=1.472, num_migrations=7)
    unshared, _, split = mode_work_s(even).values()
    assert unshared == pytest.approx(split)


def test_a_row_is_in_one_window_at_least() -> None:
    with pytest.raises(ValueError, match="num_windows is 0"):
        replace(WORK, num_windows=0.5)


def graph(attributes: list[str], *edges: tuple[int, int, float]) -> OperatorGraph:
    return OperatorGraph(
        attributes=tuple(map(frozenset, attributes)),
        edges=edges,
    )


def operators(components: tuple[Component, ...]) -> list[list[int]]:
    return [sorted(operators) for operators, _ in components]


def test_the_job_of_figure_1() -> None:
    # Attributes: a area, u user, d date; the global averages have none.
    job = graph(["aud", "a", "a", "", ""], (0, 1, 100), (0, 2, 100), (1, 3, 10), (2, 4, 10))
    for score in (rows_score, attributes_score):
        components = fused(job, score)
        assert operators(components) == [[0, 1, 2], [3], [4]]
        assert components[0][1] == frozenset("a")


def test_greedy_fusion_walks_into_the_trap() -> None:
    trap = graph(["ab", "a", "b", "b"], (0, 1, 10), (0, 2, 9), (0, 3, 9))
    for score in (rows_score, attributes_score):
        assert rows_between(trap, fused(trap, score)) == 18
    best = best_fusion(trap)
    assert rows_between(trap, best) == 10
    assert [0, 2, 3] in operators(best)


def test_enumeration_is_never_worse_and_every_component_has_attributes_in_common() -> None:
    seeded = random.Random(1)
    better = 0
    for _ in range(200):
        number = seeded.randint(2, 6)
        pairs = [(a, b) for a in range(number) for b in range(a + 1, number)]
        chosen = seeded.sample(pairs, min(len(pairs), seeded.randint(1, 8)))
        job = graph(
            ["".join(seeded.sample("abcd", seeded.randint(0, 3))) for _ in range(number)],
            *((a, b, seeded.uniform(1, 10)) for a, b in chosen),
        )
        least = rows_between(job, best_fusion(job))
        for score in (rows_score, attributes_score):
            components = fused(job, score)
            assert least <= rows_between(job, components) + 1e-9
            better += least < rows_between(job, components) - 1e-9
            for numbers, attributes in components:
                common = frozenset.intersection(*(job.attributes[n] for n in numbers))
                assert attributes == common
                assert common or len(numbers) == 1
    assert better > 0


def test_large_graphs_are_fused_greedily() -> None:
    chain = graph(["a"] * 20, *((n, n + 1, 1.0) for n in range(19)))
    with pytest.raises(ValueError, match="19 edges"):
        best_fusion(chain)
    assert operators(fewest_rows(chain)) == [list(range(20))]


def test_an_edge_joins_two_operators_of_the_graph() -> None:
    with pytest.raises(ValueError, match="edge 0-2"):
        graph(["a", "a"], (0, 2, 1.0))


def test_flux_moves_one_group_and_then_none() -> None:
    nodes = ((30.0, 25.0, 20.0), (20.0, 20.0), (15.0, 10.0), (10.0,))
    moves = flux_moves(nodes)
    assert moves == ((0, 3, 30.0),)
    moved = after_moves(nodes, moves)
    assert [sum(groups) for groups in moved] == [45, 40, 25, 40]
    assert flux_moves(moved) == ()


def test_flux_lowers_the_variance_until_it_stops() -> None:
    seeded = random.Random(2)
    for _ in range(100):
        nodes = tuple(
            tuple(seeded.uniform(1, 10) for _ in range(seeded.randint(1, 6))) for _ in range(5)
        )
        for _ in range(100):
            moves = flux_moves(nodes)
            if not moves:
                break
            moved = after_moves(nodes, moves)
            assert pvariance(map(sum, moved)) < pvariance(map(sum, nodes))
            nodes = moved
        else:
            pytest.fail("it goes on for ever")


def test_instant_migration_costs_no_pause_and_the_same_work_as_a_disruptive_one() -> None:
    costs = migration_costs(state_copies=1000, copy_s=1e-3, longest_window_s=60.0, rows_work_s=6.0)
    assert costs[Migration.INSTANT].pause_s == costs[Migration.SMOOTH].pause_s == 0.0
    assert costs[Migration.DISRUPTIVE].pause_s == 1.0
    assert costs[Migration.INSTANT].work_s == costs[Migration.DISRUPTIVE].work_s
    assert costs[Migration.SMOOTH].takes_s == 60.0
    with pytest.raises(ValueError, match="copy_s"):
        migration_costs(state_copies=1, copy_s=-1.0, longest_window_s=1.0, rows_work_s=1.0)
