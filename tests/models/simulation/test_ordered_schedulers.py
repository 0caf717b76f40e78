"""Schedulers of a pipeline: golden values of the design, and what no scheduler can pass."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from headway.domain.ordered import Operator, OrderedPipeline, Scheduler
from headway.models.ordered.chain import pipelined_allocation, source_work_s
from headway.models.simulation.ordered_schedulers import SchedulerRun, _Slices, simulate_scheduler
from tests.models.ordered.cases import most, pipeline
from tests.oracles.ordered_slices import PlainSlices
from tests.seeds import first_of

BOUND = {"A": 163_265, "B": 33_333, "C": 50_000}


def run(name: str, scheduler: Scheduler, *, rate_per_s: float | None = None) -> SchedulerRun:
    return simulate_scheduler(
        pipeline(name, rate_per_s=rate_per_s), scheduler, most(name), num_tuples=100_000
    )


@pytest.mark.parametrize(
    ("name", "scheduler", "throughput", "band"),
    [
        ("A", "CT", 163_109, 0.01),
        ("A", "CT as printed", 135_594, 0.02),
        ("A", "LP", 163_293, 0.01),
        ("A", "QST", 163_241, 0.02),
        ("B", "CT", 31_030, 0.05),
        ("B", "CT keep", 33_337, 0.01),
        ("B", "LP", 30_524, 0.07),
        ("B", "QST", 33_304, 0.02),
        ("C", "CT", 50_000, 0.02),
        ("C", "CT as printed", 14_947, 0.06),
        ("C", "LP", 50_000, 0.02),
        ("C", "QST", 46_659, 0.08),
    ],
)
def test_golden_throughput(name: str, scheduler: Scheduler, throughput: float, band: float) -> None:
    found = run(name, scheduler)
    assert found.throughput_per_s == pytest.approx(throughput, rel=band)
    assert found.throughput_per_s <= BOUND[name] * 1.01


@pytest.mark.parametrize("name", BOUND)
def test_with_endless_input_the_longest_queue_is_the_first_for_ever(name: str) -> None:
    found = run(name, "ET")
    assert found.throughput_per_s == 0.0
    assert np.isinf(found.mean_s)
    assert found.busy_workers[0] == pytest.approx(8.0, rel=0.01)


def test_latency_is_least_for_the_last_then_the_slowest_then_the_throttled() -> None:
    schedulers: tuple[Scheduler, ...] = ("LP", "CT", "QST")
    found = {one: run("A", one).mean_s for one in schedulers}
    assert found["LP"] < found["CT"] < found["QST"]


@pytest.mark.parametrize("name", first_of(BOUND, 1))
@pytest.mark.parametrize("scheduler", ["CT", "LP", "ET", "QST"])
def test_all_carry_nine_tenths_with_short_queues(name: str, scheduler: Scheduler) -> None:
    rate_per_s = 0.9 * BOUND[name]
    found = run(name, scheduler, rate_per_s=rate_per_s)
    assert found.throughput_per_s == pytest.approx(rate_per_s, rel=0.02)
    assert found.p99_s < 0.05
    work = source_work_s(pipeline(name))
    expected = pipelined_allocation(work, most(name), 8)
    share = rate_per_s / expected.throughput_per_s
    assert found.busy_workers == pytest.approx(expected.workers * share, rel=0.05)


def test_more_workers_than_a_skewed_operator_can_use_share_what_it_can() -> None:
    limited = most("A")
    limited[1] = 1.5
    found = simulate_scheduler(pipeline("A"), "CT keep", limited, num_tuples=50_000)
    assert found.throughput_per_s == pytest.approx(1.5 / 20e-6, rel=0.05)


def test_the_same_every_time() -> None:
    first, second = run("B", "LP"), run("B", "LP")
    assert (first.throughput_per_s, first.p99_s) == (second.throughput_per_s, second.p99_s)


def test_too_few_tuples_are_refused() -> None:
    with pytest.raises(ValueError, match="num_tuples >= 1000"):
        simulate_scheduler(pipeline("A"), "CT", most("A"), num_tuples=10)


@pytest.mark.parametrize("scheduler", get_args(Scheduler))
@pytest.mark.parametrize("seed", range(6))
def test_every_slice_is_that_of_the_plain_loop(scheduler: Scheduler, seed: int) -> None:
    random = np.random.default_rng([seed, 31])
    number = int(random.integers(1, 7))
    operators = tuple(
        Operator(
            name=f"o{at}", type="stateless",
            cost_s=float(10 ** random.uniform(-6, -3.5)),
            selectivity_ratio=float(random.choice([0.3, 1.0, 2.5])),
        )
        for at in range(number)
    )  # fmt: skip
    workers = int(random.integers(1, 20))
    most_workers = random.choice([np.inf, 1.0, 1.7, 4.0], number)
    work = source_work_s(OrderedPipeline(num_workers=workers, operators=operators))
    best = pipelined_allocation(work, most_workers, workers).throughput_per_s
    for share in (None, 0.3, 0.9, 1.2):
        chain = OrderedPipeline(
            num_workers=workers,
            operators=operators,
            rate_per_s=None if share is None else share * best,
        )
        given = chain, scheduler, most_workers, 500.0
        fast, plain = _Slices(*given), PlainSlices(*given)
        for one in (fast, plain):
            one.run(3_000 / best)
        assert fast.started == plain.started
        assert fast.exited == plain.exited
        assert fast.busy_s == plain.busy_s


@pytest.mark.parametrize("scheduler", get_args(Scheduler))
def test_workers_that_wait_for_a_tuple_an_hour_are_not_simulated_waiting(
    scheduler: Scheduler,
) -> None:
    chain = pipeline("B", rate_per_s=1 / 3600)
    found = simulate_scheduler(chain, scheduler, most("B"), num_tuples=3000)
    assert found.throughput_per_s == pytest.approx(1 / 3600, rel=0.01)
    # Each operator is polled for once, twenty times a slice.
    assert found.p99_s < 1e-3
