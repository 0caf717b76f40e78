"""Klink's node against arithmetic and what the paper prints of it."""

from __future__ import annotations

import pytest

from tests.oracles.operator_scheduling import (
    NodeLoad,
    OperatorOutcome,
    OperatorPolicy,
    simulate_operators,
)


def simulated(policy: OperatorPolicy, num_queries: int) -> OperatorOutcome:
    return simulate_operators(policy, NodeLoad(num_queries=num_queries), length_s=240.0)


@pytest.mark.parametrize("policy", OperatorPolicy)
def test_below_the_knee_all_policies_are_alike(policy: OperatorPolicy) -> None:
    # 24 cores at 57.6 us a row carry 41.7 queries of 10,000 rows/s.
    found = simulated(policy, 40)
    assert found.mean_s < 0.3
    assert found.rows_per_s == pytest.approx(400_000.0, rel=0.01)
    assert found.starved_ratio == 0.0


@pytest.mark.parametrize("policy", OperatorPolicy)
def test_above_it_rows_leave_at_capacity(policy: OperatorPolicy) -> None:
    # Six operators a row: 2.5 million operator rows a second.
    assert 6.0 * simulated(policy, 80).rows_per_s == pytest.approx(2.5e6, rel=0.05)


def test_spark_like_sharing_is_what_the_paper_measured() -> None:
    # A full buffer of 78,000 rows at an eightieth of the capacity.
    assert simulated(OperatorPolicy.DEFAULT, 80).mean_s == pytest.approx(15.0, rel=0.1)


def test_the_order_alone_does_not_halve_the_latency() -> None:
    default = simulated(OperatorPolicy.DEFAULT, 80)
    for policy in (OperatorPolicy.SBOX, OperatorPolicy.LEAST_SLACK):
        found = simulated(policy, 80)
        assert found.starved_ratio == 0.0
        assert 0.7 < found.mean_s / default.mean_s < 0.95
    # Behind full buffers the memory policy can, but by starving queries.
    memory = simulate_operators(OperatorPolicy.LEAST_SLACK_MEMORY, NodeLoad(num_queries=80))
    assert memory.mean_s < 0.6 * default.mean_s
    assert memory.starved_ratio > 0.2


def test_memory_pressure_slows_everything_down() -> None:
    slow = simulate_operators(
        OperatorPolicy.DEFAULT, NodeLoad(num_queries=80, slowdown=2.5 / 3.25), length_s=120.0
    )
    assert slow.rows_per_s == pytest.approx(416_667.0 * 2.5 / 3.25, rel=0.03)


def test_queries_start_within_20_seconds() -> None:
    with pytest.raises(ValueError, match="20 s within which"):
        simulate_operators(OperatorPolicy.FCFS, NodeLoad(num_queries=1), length_s=10.0)
