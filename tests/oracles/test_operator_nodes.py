"""Klink over several nodes against arithmetic and against one node."""

from __future__ import annotations

import pytest

from tests.oracles.operator_nodes import NodesOutcome, simulate_nodes
from tests.oracles.operator_scheduling import NodeLoad, OperatorPolicy, simulate_operators

POLICIES = (OperatorPolicy.DEFAULT, OperatorPolicy.FCFS, OperatorPolicy.LEAST_SLACK)


def simulated(policy: OperatorPolicy, num_queries: int, num_nodes: int) -> NodesOutcome:
    return simulate_nodes(policy, NodeLoad(num_queries=num_queries), num_nodes, length_s=240.0)


@pytest.mark.parametrize("policy", POLICIES)
def test_more_nodes_carry_more_rows(policy: OperatorPolicy) -> None:
    # 41.7 queries a node: 80 are too many for one node, and few for four.
    assert simulated(policy, 80, 1).rows_per_s == pytest.approx(416_667.0, rel=0.03)
    four = simulated(policy, 80, 4)
    assert four.rows_per_s == pytest.approx(800_000.0, rel=0.01)
    assert four.mean_s < 0.5


def test_one_node_of_halves_is_the_node_of_whole_queries() -> None:
    for policy in (OperatorPolicy.DEFAULT, OperatorPolicy.FCFS):
        whole = simulate_operators(policy, NodeLoad(num_queries=80), length_s=240.0)
        assert simulated(policy, 80, 1).mean_s == pytest.approx(whole.mean_s, rel=0.25)


def test_nothing_is_forwarded_to_a_node_that_decides_by_arrival() -> None:
    load = NodeLoad(num_queries=100)
    forwarded, alone = (
        simulate_nodes(OperatorPolicy.FCFS, load, 2, forwards=one, length_s=120.0)
        for one in (True, False)
    )
    assert forwarded == alone


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="need a node"):
        simulate_nodes(OperatorPolicy.FCFS, NodeLoad(num_queries=1), 0)
