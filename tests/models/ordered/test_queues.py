"""Queues of partitioned operators: golden values of the design, and the simulation of each."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from headway.domain.ordered import QueueScheme
from headway.models.arrays import Array
from headway.models.ordered.exit_laws import (
    ServiceLaw,
    hybrid_exit_law,
    is_hybrid_law_in_range,
    partitioned_exit_law,
    skewed_workers,
)
from headway.models.ordered.tuple_queues import QueueRun, simulate_queues
from tests.oracles.closed_forms import gaussian_shares

EVEN = np.full(16, 1 / 16)


@pytest.mark.parametrize(
    ("cv", "utilization", "mean", "p99"),
    [
        (0.0, 0.5, 2.49, 5.7), (0.0, 0.9, 16.1, 35),
        (0.3, 0.5, 2.77, 6.4), (0.3, 0.9, 17.6, 39),
        (1.0, 0.5, 5.51, 13.5), (1.0, 0.9, 32.9, 73),
    ],
)  # fmt: skip
def test_golden_partitioned(cv: float, utilization: float, mean: float, p99: float) -> None:
    law = partitioned_exit_law(ServiceLaw(mean_s=1.0, cv=cv), EVEN, 16, utilization)
    assert law.mean_s == pytest.approx(mean, rel=0.01)
    assert law.quantile_s(0.99) == pytest.approx(p99, rel=0.02)


@pytest.mark.parametrize(
    ("cv", "utilization", "mean"),
    [(0.0, 0.5, 1.11), (0.0, 0.9, 1.31), (0.3, 0.5, 1.32), (0.3, 0.9, 1.55),
     (1.0, 0.5, 2.86), (1.0, 0.9, 3.70)],
)  # fmt: skip
def test_hybrid_exits_are_those_of_the_table(cv: float, utilization: float, mean: float) -> None:
    law = hybrid_exit_law(ServiceLaw(mean_s=1.0, cv=cv), 16, 100, utilization)
    assert law.mean_s == pytest.approx(mean, rel=0.07)


@pytest.mark.parametrize(
    ("workers", "partitions", "num_busy", "is_inside"),
    [
        (16, 400, 14.4, True), (32, 800, 9.6, True), (8, 200, 4.8, True),
        (16, 100, 14.4, False),  # a seventh of the partitions is busy
        (16, 32, 4.8, False), (4, 400, 3.6, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cv", [0.0, 0.3, 1.0])
def test_the_hybrid_law_holds_within_its_range_and_may_not_beyond(
    workers: int, partitions: int, num_busy: float, is_inside: bool, cv: float
) -> None:
    even = np.full(partitions, 1.0 / partitions)
    assert is_hybrid_law_in_range(even, num_busy) is is_inside
    if is_inside:
        law = ServiceLaw(mean_s=1.0, cv=cv)
        found = hybrid_exit_law(law, workers, partitions, num_busy / workers)
        random = np.random.default_rng(11)
        num = 60_000
        run = simulate_queues(
            "hybrid",
            np.ones(num) if cv == 0 else random.gamma(cv**-2, cv**2, num),
            random.integers(partitions, size=num),
            workers,
            arrival_s=np.cumsum(random.exponential(1.0 / num_busy, num)),
        )
        left = (run.exit_s - run.start_s)[num // 10 :]
        assert found.mean_s == pytest.approx(float(left.mean()), rel=0.06)
        assert found.quantile_s(0.99) == pytest.approx(float(np.quantile(left, 0.99)), rel=0.08)


def test_uneven_partitions_are_outside_the_range_of_the_hybrid_law() -> None:
    shares = np.full(400, 0.98 / 399)
    shares[0] = 0.02
    assert not is_hybrid_law_in_range(shares, 8.0)


GAUSSIAN = [
    (np.inf, 16.0, 16.0), (1.0, 13.7, 16.0), (0.5, 9.7, 16.0), (0.3, 6.2, 16.0),
    (0.2, 4.3, 16.0), (0.1, 2.5, 12.6), (0.05, 2.0, 6.4),
]  # fmt: skip


@pytest.mark.parametrize(("sigma", "partitioned", "hybrid"), GAUSSIAN)
def test_busy_workers_under_skew_are_those_of_the_table(
    sigma: float, partitioned: float, hybrid: float
) -> None:
    assert skewed_workers(gaussian_shares(sigma, 16), 16) == pytest.approx(partitioned, abs=0.06)
    assert skewed_workers(gaussian_shares(sigma, 100), 16) == pytest.approx(hybrid, abs=0.11)


def drawn(
    scheme: QueueScheme,
    shares: Array,
    cv: float,
    *,
    utilization: float | None = None,
    num: int = 60_000,
    seed: int = 1,
) -> QueueRun:
    random = np.random.default_rng(seed)
    service = np.ones(num) if cv == 0 else random.gamma(cv**-2, cv**2, num)
    partition = random.choice(len(shares), num, p=shares)
    arrival = None
    if utilization is not None:
        arrival = np.cumsum(random.exponential(1 / (16 * utilization), num))
    return simulate_queues(scheme, service, partition, 16, arrival_s=arrival)


@pytest.mark.parametrize("sigma", [np.inf, 0.5, 0.2, 0.05])
def test_skew_against_the_simulation(sigma: float) -> None:
    numbers: dict[QueueScheme, int] = {"partitioned": 16, "hybrid": 100}
    for scheme, number in numbers.items():
        shares = gaussian_shares(sigma, number)
        found = drawn(scheme, shares, 0.3).busy_workers
        assert found == pytest.approx(skewed_workers(shares, 16), rel=0.04)


def test_a_shared_queue_keeps_two_thirds_of_the_workers_busy() -> None:
    found = drawn("shared", np.full(100, 0.01), 0.0).busy_workers
    assert found == pytest.approx(10.5, rel=0.06)


@pytest.mark.parametrize("utilization", [0.5, 0.9])
@pytest.mark.parametrize("cv", [0.0, 0.3, 1.0])
def test_exits_against_the_simulation(utilization: float, cv: float) -> None:
    law = ServiceLaw(mean_s=1.0, cv=cv)
    hybrid = drawn("hybrid", np.full(100, 0.01), cv, utilization=utilization)
    kept = slice(6_000, None)
    mean = float((hybrid.exit_s - hybrid.start_s)[kept].mean())
    assert hybrid_exit_law(law, 16, 100, utilization).mean_s == pytest.approx(mean, rel=0.08)
    if utilization == 0.5:
        random = np.random.default_rng(3)
        num = 200_000
        arrival = np.cumsum(random.exponential(1 / (16 * utilization), num))
        service = np.ones(num) if cv == 0 else random.gamma(cv**-2, cv**2, num)
        run = simulate_queues(
            "partitioned", service, random.integers(16, size=num), 16, arrival_s=arrival
        )
        found = partitioned_exit_law(law, EVEN, 16, utilization)
        assert found.mean_s == pytest.approx(float((run.exit_s - arrival).mean()), rel=0.04)


def test_uneven_partitions_against_the_simulation() -> None:
    shares = np.array([0.3, 0.3, 0.2, 0.2])
    random = np.random.default_rng(4)
    num = 300_000
    arrival = np.cumsum(random.exponential(0.5, num))
    service = random.gamma(1 / 0.09, 0.09, num)
    partition = random.choice(4, num, p=shares)
    run = simulate_queues("partitioned", service, partition, 4, arrival_s=arrival)
    law = partitioned_exit_law(ServiceLaw(mean_s=1.0, cv=0.3), shares, 4, 0.5)
    assert law.mean_s == pytest.approx(float((run.exit_s - arrival).mean()), rel=0.03)


@pytest.mark.parametrize("scheme", get_args(QueueScheme))
@pytest.mark.parametrize("seed", range(5))
def test_order_is_kept_and_nobody_shares_a_partition(scheme: QueueScheme, seed: int) -> None:
    random = np.random.default_rng(seed)
    num, workers = 3_000, int(random.integers(1, 12))
    service = random.exponential(1.0, num)
    partition = random.choice(9, num, p=random.dirichlet(np.ones(9)))
    arrival = np.cumsum(random.exponential(1.5 / workers, num))
    run = simulate_queues(scheme, service, partition, workers, arrival_s=arrival)
    assert np.all(np.diff(run.exit_s) >= 0.0)
    assert np.all(run.start_s >= arrival)
    assert np.all(run.exit_s >= run.end_s)
    for one in range(9):
        own = partition == one
        assert np.all(run.start_s[own][1:] >= run.end_s[own][:-1] - 1e-9)
    began, ended = np.sort(run.start_s), np.sort(run.end_s)
    at_once = np.arange(1, num + 1) - np.searchsorted(ended, began + 1e-9)
    assert at_once.max() <= workers


def brute_force_hybrid(service: Array, partition: NDArray[np.int64], workers: int) -> list[float]:
    """The algorithm of figure 7 on a clock, step by step, in integers."""
    import heapq

    master = list(range(len(service)))
    count = dict.fromkeys(partition.tolist(), 0)
    queues: dict[int, list[int]] = {p: [] for p in count}
    for at in master:
        queues[int(partition[at])].append(at)
    starts = [0.0] * len(service)
    ready = [(0.0, worker, -1) for worker in range(workers)]
    heapq.heapify(ready)
    while ready:
        now, worker, place = heapq.heappop(ready)
        if place >= 0:
            count[place] -= 1
            if count[place] > 0:
                at = queues[place].pop(0)
                starts[at] = now
                heapq.heappush(ready, (now + float(service[at]), worker, place))
                continue
        while master:
            place = int(partition[master.pop(0)])
            count[place] += 1
            if count[place] == 1:
                at = queues[place].pop(0)
                starts[at] = now
                heapq.heappush(ready, (now + float(service[at]), worker, place))
                break
    return starts


def test_hybrid_queues_do_what_figure_7_says() -> None:
    random = np.random.default_rng(11)
    service = random.integers(1, 50, 400) + random.uniform(0, 1, 400)
    partition = random.choice(6, 400, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1])
    run = simulate_queues("hybrid", service, partition, 3)
    assert run.start_s == pytest.approx(brute_force_hybrid(service, partition, 3))


def test_what_cannot_be_is_refused() -> None:
    law = ServiceLaw(mean_s=1.0, cv=0.0)
    with pytest.raises(ValueError, match="saturated"):
        partitioned_exit_law(law, np.array([0.9, 0.1]), 2, 0.9)
    with pytest.raises(ValueError, match="add up to 1"):
        skewed_workers(np.array([0.5, 0.2]), 2)
    with pytest.raises(ValueError, match="sigma > 0"):
        gaussian_shares(0.0, 4)
