"""Whole pipelines: what operators can use under skew, and what order costs."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from headway.domain.ordered import (
    Operator,
    OrderedPipeline,
    Reordering,
    ReorderScheme,
)
from headway.models.arrays import Array
from headway.models.ordered.chain import (
    most_workers,
    on_spark,
    operator_latency,
    partition_shares,
    pipeline_allocation,
)
from headway.models.ordered.exit_laws import reordered_throughput_per_s
from headway.models.ordered.tuple_queues import simulate_queues

SESSIONS = Operator(name="sessions", type="partitioned", cost_s=2e-5)
PARSE = Operator(name="parse", type="stateless", cost_s=1e-5)
TOP = Operator(name="top", type="stateful", cost_s=4e-6)


def test_workers_that_an_operator_can_use() -> None:
    assert most_workers(PARSE, 16) == 16.0
    assert most_workers(TOP, 16) == 1.0
    assert most_workers(SESSIONS, 16) == 16.0
    assert most_workers(replace(SESSIONS, queue="shared"), 16) == pytest.approx(10.5, 0.1)
    skewed = replace(SESSIONS, exponent=1.0, num_keys=100_000)
    hottest = float(partition_shares(skewed, 16)[0])
    assert most_workers(skewed, 16) == pytest.approx(min(16.0, 1 / hottest))
    # Sixteen partitions of one worker each are fuller than the fullest of a hundred.
    assert most_workers(replace(skewed, queue="partitioned"), 16) < most_workers(skewed, 16)


def test_one_operator_alone_is_its_own_formula() -> None:
    for which in get_args(ReorderScheme):
        for number in (1, 4, 12, 24):
            given = Reordering(scheme=which, store_s=1e-7, send_s=1e-6, lock_s=1e-7)
            whole = OrderedPipeline(num_workers=number, operators=(PARSE,), reordering=given)
            found = pipeline_allocation(whole)
            formula = reordered_throughput_per_s(number, 1e-5, given)
            assert found.throughput_per_s == pytest.approx(formula, rel=1e-6)


@pytest.mark.parametrize("send_us", [0.5, 2.0])
def test_a_chain_with_a_lock_never_carries_more(send_us: float) -> None:
    chain = (PARSE, SESSIONS, TOP)
    for number in (2, 8, 16):
        free, locked = (
            pipeline_allocation(
                OrderedPipeline(
                    num_workers=number,
                    operators=chain,
                    reordering=Reordering(scheme=which, send_s=send_us * 1e-6, store_s=1e-7),
                )
            )
            for which in reversed(get_args(ReorderScheme))
        )
        assert locked.throughput_per_s <= free.throughput_per_s * (1 + 1e-9)
        assert free.workers.sum() <= number * (1 + 1e-6)


def test_what_limits_is_named() -> None:
    slow_top = replace(TOP, cost_s=1e-4)
    found = pipeline_allocation(OrderedPipeline(num_workers=16, operators=(PARSE, slow_top)))
    assert found.limiting == 1
    assert found.throughput_per_s == pytest.approx(1e4)
    assert pipeline_allocation(OrderedPipeline(num_workers=2, operators=(PARSE,))).limiting is None


def test_latency_of_hybrid_queues_is_near_the_cost_and_of_partitioned_ones_far_above() -> None:
    chain = OrderedPipeline(num_workers=16, operators=(SESSIONS,))
    hybrid = operator_latency(SESSIONS, chain, 0.9 * 16)
    apart = operator_latency(replace(SESSIONS, queue="partitioned"), chain, 0.9 * 16)
    assert hybrid.mean_s < 1.6 * SESSIONS.cost_s
    assert apart.mean_s > 5 * hybrid.mean_s
    assert np.isinf(operator_latency(replace(SESSIONS, queue="partitioned"), chain, 15.9).mean_s)
    assert operator_latency(TOP, chain, 0.5).mean_s == pytest.approx(4.6e-6, rel=0.01)


def simulated_exit_s(operator: Operator, workers: int, num_busy: float, seed: int) -> Array:
    """From start to ordered exit, tuple by tuple."""
    random, num = np.random.default_rng(seed), 150_000
    cv = operator.cost_spread_ratio
    shares = partition_shares(operator, workers)
    run = simulate_queues(
        operator.queue,
        random.gamma(cv**-2, cv**2 * operator.cost_s, num),
        random.choice(len(shares), num, p=shares),
        workers,
        arrival_s=np.cumsum(random.exponential(operator.cost_s / num_busy, num)),
    )
    return (run.exit_s - run.start_s)[num // 10 :]


FEW = replace(SESSIONS, cost_s=2e-3, cost_spread_ratio=0.4, partitions=24)


@pytest.mark.parametrize(
    "operator",
    [
        FEW,
        replace(FEW, queue="shared", partitions=200),
        # Even a tenth of the tuples in one partition is another law.
        replace(FEW, partitions=400, exponent=0.9, num_keys=5_000),
    ],
    ids=["few partitions", "a shared queue", "skewed keys"],
)
def test_where_no_formula_holds_the_latency_is_simulated(operator: Operator) -> None:
    num_busy = 6.0
    chain = OrderedPipeline(
        num_workers=12, operators=(operator,), reordering=Reordering(store_s=0.0, send_s=0.0)
    )
    found = operator_latency(operator, chain, num_busy)
    left_s = simulated_exit_s(operator, 12, num_busy, seed=5)
    assert found.is_simulated
    assert found.mean_s == pytest.approx(float(left_s.mean()), rel=0.04)
    # Waits behind a heavy key are long and seldom.
    assert found.p99_s == pytest.approx(float(np.quantile(left_s, 0.99)), rel=0.1)


def test_within_its_range_the_formula_is_used() -> None:
    many = replace(FEW, partitions=400)
    chain = OrderedPipeline(num_workers=12, operators=(many,))
    found = operator_latency(many, chain, 9.0)
    assert not found.is_simulated
    left_s = simulated_exit_s(many, 12, 9.0, seed=6)
    assert found.p99_s == pytest.approx(float(np.quantile(left_s, 0.99)), rel=0.06)


def test_a_saturated_partition_has_no_latency_with_any_queue() -> None:
    skewed = replace(SESSIONS, exponent=1.3, num_keys=1_000)
    chain = OrderedPipeline(num_workers=16, operators=(skewed,))
    busy = most_workers(skewed, 16)
    assert np.isinf(operator_latency(skewed, chain, busy).p99_s)
    assert np.isfinite(operator_latency(skewed, chain, 0.7 * busy).p99_s)


def test_beyond_the_knee_the_buffer_makes_the_latency() -> None:
    given = Reordering(send_s=1e-6, store_s=1e-7, num_buffered=64)
    chain = OrderedPipeline(num_workers=16, operators=(PARSE,), reordering=given)
    assert operator_latency(PARSE, chain, 16.0).mean_s == pytest.approx(8e-5, rel=0.01)


def test_on_spark_stages_follow_each_other_or_share_the_slots() -> None:
    pipeline = OrderedPipeline(num_workers=8, operators=(PARSE, SESSIONS, TOP))
    micro_batch_per_s, real_time = on_spark(pipeline)
    assert micro_batch_per_s == pytest.approx(1 / (1e-5 / 8 + 2e-5 / 8 + 4e-6))
    assert real_time is not None
    assert real_time.num_tasks[2] == 1
    assert on_spark(replace(pipeline, num_workers=2))[1] is None
