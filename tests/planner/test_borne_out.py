"""What an infeasible plan offers is feasible when it is asked for, by the chain too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.planner.test_nearest import answered, asked, given_way


@pytest.mark.parametrize("seed", range(60))
def test_the_nearest_promises_are_planned_when_they_are_asked_for(seed: int) -> None:
    question = asked(seed)
    answer = answered(question)
    if answer.feasible:
        return
    for one in answer.nearest:
        there, _ = given_way(question, one)
        most = max(int(one.numbers["nodes"]), there.space.min_nodes)
        again = answered(replace(there, space=replace(there.space, max_nodes=most)))
        assert again.feasible, one.text
