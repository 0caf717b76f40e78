"""Node types: prices, speeds, memory, budgets; held against enumeration over types."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.domain import (
    Arrivals,
    NodeType,
    Objective,
    StreamAnswer,
    Target,
)
from headway.errors import InputError
from headway.planner.purchase import at_core_speed
from headway.planner.question import SearchSpace
from tests.factories import a_profile
from tests.planner.enumeration import highest_rate, random_case
from tests.planner.jobs import GIB, with_memory
from tests.planner.plans import plan
from tests.seeds import first_of

TARGET = Target.parse("p99 <= 2s")
SPACE = SearchSpace(max_nodes=8)


def random_types(random: np.random.Generator) -> list[NodeType]:
    return [
        NodeType(
            name=f"type {number}",
            cores=int(random.integers(1, 5)),
            price_per_hour=float(random.uniform(0.05, 0.5)),
            core_speed_ratio=float(random.choice([0.7, 1.0, 1.4])),
            executors_per_node=1,
        )
        for number in range(int(random.integers(2, 4)))
    ]


def enumerated(seed: int) -> tuple[int | None, float | None]:
    """Fewest nodes and lowest cost over all types and counts, each setting scanned."""
    case, random = random_case(seed), np.random.default_rng(seed)
    nodes, costs = [], []
    for kind in random_types(random):
        space = replace(case.space, executors_per_node=1, cores_per_executor=kind.cores)
        profile = at_core_speed(case.profile, kind.core_speed_ratio)
        alone = replace(case, profile=profile, space=space)
        for count in range(1, space.max_nodes + 1):
            best = max(
                highest_rate(
                    alone,
                    space.num_slots(count),
                    partitions,
                    space.trigger_choices_s(profile, case.target.limit_s),
                )
                for partitions in space.partition_choices(profile, count)
            )
            if best >= case.arrivals.rate_per_s:
                assert kind.price_per_hour is not None
                nodes.append(count)
                costs.append(count * kind.price_per_hour)
                break
    return min(nodes, default=None), min(costs, default=None)


def answer(seed: int, objective: Objective) -> StreamAnswer:
    case = random_case(seed)
    return plan(
        case.profile,
        case.arrivals,
        case.target,
        case.space,
        confidence=case.confidence,
        objective=objective,
        node_types=random_types(np.random.default_rng(seed)),
    )


def check_against_enumeration(seed: int) -> None:
    nodes, cost = enumerated(seed)
    fewest, cheapest = answer(seed, "nodes"), answer(seed, "cost")
    assert fewest.feasible == cheapest.feasible == (nodes is not None)
    if nodes is not None:
        assert fewest.nodes == nodes
        assert cheapest.cost_per_hour == pytest.approx(cost, rel=0.01)


@pytest.mark.parametrize("seed", first_of([2, 5, 8, 11, 14, 17], 3))
def test_types_equal_enumeration(seed: int) -> None:
    check_against_enumeration(seed)


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(20, 120))
def test_types_equal_enumeration_at_length(seed: int) -> None:
    check_against_enumeration(seed)


def planned(*types: NodeType, objective: Objective = "cost", **options: object) -> StreamAnswer:
    return plan(
        a_profile(),
        Arrivals(rate_per_s=5000.0),
        TARGET,
        SPACE,
        objective=objective,
        node_types=types,
        **options,  # type: ignore[arg-type]
    )


SMALL = NodeType(name="small", cores=4, price_per_hour=0.2)
LARGE = NodeType(name="large", cores=16, price_per_hour=0.7)


def test_the_cheaper_type_wins_where_both_will_do() -> None:
    found = planned(LARGE, SMALL)
    assert found.node_type == SMALL
    assert found.cost_per_hour == pytest.approx(0.2 * found.nodes)
    assert all(point.cost_per_hour == pytest.approx(0.2 * point.nodes) for point in found.frontier)


def test_the_lowest_latency_under_a_budget() -> None:
    fast = planned(SMALL, LARGE, objective="latency", budget_per_hour=0.75)
    cheap = planned(SMALL, LARGE)
    assert fast.cost_per_hour is not None
    assert fast.cost_per_hour <= 0.75
    assert fast.planned_latency_s < cheap.planned_latency_s
    richer = planned(SMALL, LARGE, objective="latency", budget_per_hour=5.0)
    assert richer.planned_latency_s <= fast.planned_latency_s / 0.98


def test_a_neighbour_that_only_the_latency_rules_out_is_said_to_meet_the_target() -> None:
    fastest = planned(SMALL, objective="latency")
    fewest = planned(SMALL)
    assert fewest.nodes < fastest.nodes
    fewer = next(text for text in fastest.binding if text.startswith("one node fewer"))
    assert fewer.endswith(", which meets the target, too, and is slower")
    assert not any("and is slower" in text for text in fewest.binding)


def test_executors_fill_the_node_and_stay_like_the_profiled() -> None:
    found = planned(LARGE)
    assert found.configuration.cores_per_executor == 4
    assert found.configuration.executors == 4 * found.nodes
    fixed = planned(LARGE, cores_per_executor=8)
    assert fixed.configuration.cores_per_executor == 8
    assert fixed.configuration.executors == 2 * fixed.nodes


def test_a_faster_core_never_takes_more_nodes() -> None:
    heavy = Arrivals(rate_per_s=60000.0)
    needed = []
    for speed in (0.5, 0.8, 1.0):
        kind = replace(SMALL, core_speed_ratio=speed)
        found = plan(a_profile(), heavy, TARGET, SPACE, node_types=[kind])
        needed.append(found.nodes if found.feasible else 99)
    assert needed == sorted(needed, reverse=True)


def test_a_type_with_too_little_memory_is_refused_with_the_number() -> None:
    tight = NodeType(name="tight", cores=4, memory_bytes=2 * GIB, price_per_hour=0.01)
    roomy = NodeType(name="roomy", cores=4, memory_bytes=16 * GIB, price_per_hour=0.2)
    found = plan(
        with_memory(), Arrivals(rate_per_s=5000.0), TARGET, SPACE, node_types=[tight, roomy]
    )
    assert found.node_type == roomy
    (refused,) = found.refused_node_types
    assert refused.startswith("tight: too little memory: an executor of 4 cores needs ")
    assert "a node of 2g" in refused
    with pytest.raises(InputError, match="no node type can run the job: tight: too little memory"):
        plan(with_memory(), Arrivals(rate_per_s=5000.0), TARGET, SPACE, node_types=[tight])


def test_state_that_one_node_cannot_hold_takes_more() -> None:
    profile = with_memory(state_bytes=40 * GIB, peak_heap_bytes=24 * GIB)
    kind = NodeType(name="r", cores=4, memory_bytes=24 * GIB)
    found = plan(profile, Arrivals(rate_per_s=5000.0), TARGET, SPACE, node_types=[kind])
    assert found.feasible
    assert found.nodes > 1
    assert found.frontier[0].nodes == found.nodes
    assert any("too little memory" in text for text in found.binding)
    assert found.memory is not None
    assert found.memory.container_bytes <= 24 * GIB
    assert found.memory.heap_bytes >= found.memory.needed_heap_bytes


@pytest.mark.parametrize(
    ("types", "options", "said"),
    [
        ((), {"objective": "cost"}, "price of a node type"),
        ((replace(SMALL, price_per_hour=None),), {}, "price of small"),
        ((replace(SMALL, price_per_hour=None),), {"budget_per_hour": 1.0}, "price of small"),
        ((SMALL,), {"budget_per_hour": 0.1}, "more than the budget of 0.1"),
        ((SMALL,), {"cores_per_executor": 8}, "too few for an executor of 8"),
    ],
)
def test_what_cannot_be_bought_is_one_line(
    types: tuple[NodeType, ...], options: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        planned(*types, **options)  # type: ignore[arg-type]
