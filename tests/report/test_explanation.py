"""A plan in words: what is in it, and that it fits a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.domain import (
    Arrivals,
    NodeType,
    StreamAnswer,
    Target,
)
from headway.planner.question import SearchSpace
from headway.report.explanation import explanation_text
from tests.factories import a_plan, a_profile
from tests.planner.enumeration import random_case
from tests.planner.jobs import windowed, with_memory
from tests.planner.plans import plan
from tests.seeds import seeds

SPACE = SearchSpace(max_nodes=4, cores_per_executor=4)


def planned(target: str, **options: object) -> StreamAnswer:
    return plan(
        windowed() if target.startswith("window") else with_memory(),
        Arrivals(rate_per_s=5000.0),
        Target.parse(target),
        SPACE,
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("seed", seeds(4, 15))
def test_every_plan_fits_a_terminal(seed: int) -> None:
    text = explanation_text(random_case(seed).answer())
    assert all(len(line) <= 100 and line == line.rstrip() for line in text.splitlines())
    assert text.startswith("Answer\n")
    assert "theory.md" in text


def test_numbers_come_with_formula_and_source() -> None:
    text = explanation_text(planned("p99 <= 2s"))
    for part in (
        "meets p99 <= 2.00 s at 5k/s",
        "(B5), (B6)",
        "(P2), (P4)",
        "(P10)",
        "makespan of its tasks; (T2)",
        "Comparison with rules of thumb",
        "200 shuffle partitions, Spark's default",
        "rate +10%",
        "new checkpoint",
        "heap needed",
    ):
        assert part in text


def test_windows_have_their_own_formula() -> None:
    assert "(W1)-(W3)" in explanation_text(planned("window p99 <= 14s"))


def test_what_cannot_be_kept_is_reported_with_what_is_near() -> None:
    found = planned("p99 <= 200ms")
    text = explanation_text(found)
    assert text.startswith("Answer\n  infeasible")
    assert "with another limit" in text
    assert "Physical floor: " in text


def test_money_is_reported_where_there_is_any() -> None:
    kind = NodeType(name="m", cores=4, memory_bytes=2**35, price_per_hour=0.25)
    tight = replace(kind, name="t", memory_bytes=2**30)
    text = explanation_text(planned("p99 <= 2s", node_types=[kind, tight], objective="cost"))
    assert "of m, 0.25 per hour" in text
    assert "t: too little memory" in text


def test_a_plan_of_an_older_kind_is_explained_as_far_as_it_goes() -> None:
    text = explanation_text(a_plan())
    assert "2 nodes meet p99 <= 3.00 s" in text
    assert "Rules of thumb" not in text


def test_a_large_plan_states_its_gap() -> None:
    found = plan(a_profile(), Arrivals(rate_per_s=5000.0), Target.parse("p99 <= 2s"), SPACE)
    assert found.optimality is not None
    unproved = replace(found.optimality, least_nodes=3, proved=False, relaxed_nodes=2.5)
    text = explanation_text(replace(found, nodes=4, optimality=unproved))
    assert "No plan has fewer than 3 nodes" in text
    assert "at most 25% above" in text
    assert "needs 2.5 nodes" in text
