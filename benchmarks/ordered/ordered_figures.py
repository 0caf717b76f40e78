"""The values of the paper's figures 8 to 14, by formula and by simulation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple, get_args

import numpy as np

from headway.domain.ordered import (
    Operator,
    OperatorType,
    OrderedPipeline,
    QueueScheme,
    Reordering,
    ReorderScheme,
    Scheduler,
)
from headway.models.ordered.chain import most_workers, operator_latency, pipeline_allocation
from headway.models.ordered.exit_laws import (
    ServiceLaw,
    hybrid_exit_law,
    partitioned_exit_law,
    reordered_throughput_per_s,
    skewed_workers,
    tuple_cost_s,
)
from headway.models.ordered.tuple_queues import simulate_queues
from headway.models.simulation.ordered_schedulers import SchedulerRun, simulate_scheduler
from tests.oracles.closed_forms import gaussian_shares
from tests.oracles.ordered_reordering import simulate_reordering

WORKERS = (2, 4, 8, 12, 16)
SIGMAS = (float("inf"), 1.0, 0.5, 0.3, 0.2, 0.1, 0.05)
COSTS_US = (10.0, 100.0, 1000.0, 10_000.0)
SCHEDULERS: tuple[Scheduler, ...] = ("CT keep", "CT", "LP", "QST", "ET")
_SL: OperatorType = "stateless"
_PS: OperatorType = "partitioned"
_SF: OperatorType = "stateful"
SCHEMES: tuple[QueueScheme, ...] = ("hybrid", "partitioned")
#: About a hundred tuples, as many as a slice of 1 ms has if a tuple takes 10 us.
SLICE_S = 1e-4
#: Work and time to send of a tuple [us], and outputs per tuple, in figures 12 and 13.
REORDERED = ((20.0, 1.0, 1.0), (100.0, 0.5, 50.0))
FREE = Reordering(send_s=0.0, store_s=0.0, lock_s=0.0)
#: Our costs of putting outputs in order: the paper prints none.
LIGHT = Reordering(send_s=2e-7, store_s=2e-8, lock_s=2e-8)


def _operator(
    name: str, kind: OperatorType, cost_us: float, out: float = 1.0, **more: object
) -> Operator:
    found = Operator(name=name, type=kind, cost_s=cost_us * 1e-6, selectivity_ratio=out)
    return replace(found, **more)  # type: ignore[arg-type]


#: Chains like those of Table 1, with the paper's operators and our costs, selectivities and keys.
#: The last operator of Q2 and Q4, the hot items of Q3 and the ten categories of Q15 are chosen such
#: that they are the bottleneck at the number of cores at which the paper's throughput peaks.
CHAINS = {
    "Q1": (
        _operator("filter", _SL, 0.8), _operator("baskets", _PS, 3.2),
        _operator("pairs", _PS, 2.4, 0.5), _operator("top", _SF, 0.5),
    ),
    "Q2": (
        _operator("filter", _SL, 0.5), _operator("sessions", _PS, 1.5, 0.3),
        _operator("pairs", _SL, 3.0, 5.0), _operator("counts", _PS, 0.8, 0.2),
        _operator("top", _SF, 1.9),
    ),
    "Q3": (
        _operator("filter", _SL, 0.5), _operator("views", _PS, 2.0, 0.5),
        _operator("items", _PS, 3.7, exponent=1.3, num_keys=1000),
    ),
    "Q4": (
        _operator("filter", _SL, 0.5), _operator("sessions", _PS, 1.5, 0.2),
        _operator("abandoned", _SL, 4.0), _operator("mean", _SF, 1.9),
    ),
    "Q15": (
        _operator("filter", _SL, 0.5, 0.6), _operator("day", _SL, 0.4),
        _operator("trend", _PS, 5.0, partitions=10),
    ),
}  # fmt: skip


def chain(name: str, num_workers: int, reordering: Reordering = FREE) -> OrderedPipeline:
    """A chain on ``num_workers`` workers."""
    return OrderedPipeline(
        num_workers=num_workers, operators=CHAINS[name], reordering=reordering, slice_s=SLICE_S
    )


def peak_workers(name: str) -> int:
    """The fewest workers that reach the maximum throughput of the chain, within 5%."""
    rates = {n: pipeline_allocation(chain(name, n)).throughput_per_s for n in WORKERS}
    return next(n for n in WORKERS if rates[n] > 0.95 * max(rates.values()))


@cache
def scheduled(
    name: str, num_workers: int, scheduler: Scheduler, *, load: float | None = None, num: int
) -> SchedulerRun:
    """A chain under a scheduler, with unlimited input or at a share of its maximum."""
    pipeline = chain(name, num_workers)
    most = [most_workers(one, num_workers) for one in pipeline.operators]
    if load is not None:
        rate_per_s = load * pipeline_allocation(pipeline).throughput_per_s
        pipeline = replace(pipeline, rate_per_s=rate_per_s)
    return simulate_scheduler(pipeline, scheduler, most, num_tuples=num)


class Skew(NamedTuple):
    """Busy workers out of 16 under skew, by formula and simulated."""

    sigma: float
    partitioned: float
    partitioned_simulated: float
    hybrid: float
    hybrid_simulated: float


@cache
def skews(num: int) -> tuple[Skew, ...]:
    """Figure 9."""
    return tuple(_skews(num))


def _skews(num: int) -> Iterator[Skew]:
    for sigma in SIGMAS:
        found = []
        for scheme, number in zip(reversed(SCHEMES), (16, 100), strict=True):
            random = np.random.default_rng(9)
            shares = gaussian_shares(sigma, number)
            places = random.choice(number, num, p=shares)
            run = simulate_queues(scheme, random.gamma(11.1, 0.09, num), places, 16)
            found += [skewed_workers(shares, 16), run.busy_workers]
        yield Skew(sigma, *found)


class Latency(NamedTuple):
    """Mean latency [s] of both queues at a cost, by formula and simulated."""

    cost_us: float
    utilization_ratio: float
    hybrid_s: float
    hybrid_simulated_s: float
    partitioned_s: float
    partitioned_simulated_s: float
    partitioned_start_s: float


@cache
def latencies(num: int) -> tuple[Latency, ...]:
    """Figure 10."""
    return tuple(_latencies(num))


def _latencies(num: int) -> Iterator[Latency]:
    for cost_us in COSTS_US:
        for ratio in (0.5, 0.9):
            random = np.random.default_rng(10)
            cost_s = cost_us * 1e-6
            law = ServiceLaw(mean_s=cost_s, cv=0.3)
            service = random.gamma(1 / 0.09, 0.09 * cost_s, num)
            arrival = np.cumsum(random.exponential(cost_s / (16 * ratio), num))
            hybrid = simulate_queues(
                "hybrid", service, random.integers(100, size=num), 16, arrival_s=arrival
            )
            apart = simulate_queues(
                "partitioned", service, random.integers(16, size=num), 16,
                arrival_s=arrival,
            )  # fmt: skip
            kept = slice(num // 10, None)
            yield Latency(
                cost_us,
                ratio,
                hybrid_exit_law(law, 16, 100, ratio).mean_s,
                float((hybrid.exit_s - hybrid.start_s)[kept].mean()),
                partitioned_exit_law(law, np.full(16, 1 / 16), 16, ratio).mean_s,
                float((apart.exit_s - arrival)[kept].mean()),
                float((apart.exit_s - apart.start_s)[kept].mean()),
            )


class Schemes(NamedTuple):
    """Throughput [1/s] and latency [s] of a chain with each of two schemes."""

    name: str
    num_workers: int
    first_per_s: float
    second_per_s: float
    first_s: float
    second_s: float


def queue_schemes(num_keys: int | None = None, exponent: float = 0.0) -> Iterator[Schemes]:
    """Figure 11: hybrid, then partitioned; latency at 0.8 of the rate that both carry."""
    for name, operators in CHAINS.items():
        for number in WORKERS:
            rates, sums = [], []
            pipelines = [
                OrderedPipeline(
                    num_workers=number,
                    operators=tuple(
                        replace(one, queue=scheme)
                        if one.num_keys or num_keys is None
                        else replace(one, queue=scheme, num_keys=num_keys, exponent=exponent)
                        for one in operators
                    ),
                    reordering=LIGHT,
                )
                for scheme in SCHEMES
            ]
            found = [pipeline_allocation(one) for one in pipelines]
            rate_per_s = 0.8 * min(one.throughput_per_s for one in found)
            for pipeline, allocation in zip(pipelines, found, strict=True):
                rates.append(allocation.throughput_per_s)
                busy = allocation.workers * rate_per_s / allocation.throughput_per_s
                sums.append(
                    sum(
                        operator_latency(one, pipeline, float(workers)).mean_s
                        for one, workers in zip(pipeline.operators, busy, strict=True)
                    )
                )
            yield Schemes(name, number, *rates, *sums)


class Reordered(NamedTuple):
    """Speedup [-] and cost per tuple [s] with one scheme, by formula and simulated."""

    num_workers: int
    scheme: ReorderScheme
    speedup: float
    speedup_simulated: float
    cost_s: float
    latency_s: float


@cache
def reordered(
    cost_us: float, send_us: float, num: int, selectivity: float
) -> tuple[Reordered, ...]:
    """Figures 12 and 13."""
    return tuple(_reordered(cost_us, send_us, num, selectivity))


def _reordered(cost_us: float, send_us: float, num: int, selectivity: float) -> Iterator[Reordered]:
    for number in (1, 2, 4, 8, 12, 16):
        for scheme in get_args(ReorderScheme):
            given = Reordering(
                scheme=scheme, num_buffered=4 * number, store_s=1e-7, lock_s=1e-7,
                send_s=send_us * 1e-6,
            )  # fmt: skip
            cost_s = cost_us * 1e-6
            alone_s = tuple_cost_s(cost_s, given, selectivity)
            formula = reordered_throughput_per_s(
                number, cost_s, given, selectivity_ratio=selectivity
            )
            service = np.random.default_rng(12).gamma(1 / 0.09, 0.09 * cost_s, num)
            run = simulate_reordering(service, number, given, selectivity_ratio=selectivity)
            yield Reordered(
                number,
                scheme,
                formula * alone_s,
                run.throughput_per_s * alone_s,
                number / run.throughput_per_s,
                run.mean_s,
            )


def reorder_schemes() -> Iterator[Schemes]:
    """Figure 14: non-blocking, then lock; latency at 0.8 of the rate that both carry."""
    for name, operators in CHAINS.items():
        pipelines = [
            OrderedPipeline(
                num_workers=16, operators=operators, reordering=replace(LIGHT, scheme=scheme)
            )
            for scheme in reversed(get_args(ReorderScheme))
        ]
        found = [pipeline_allocation(one) for one in pipelines]
        rate_per_s = 0.8 * min(one.throughput_per_s for one in found)
        sums = [
            sum(
                operator_latency(one, pipeline, float(workers)).mean_s
                for one, workers in zip(
                    pipeline.operators,
                    allocation.workers * rate_per_s / allocation.throughput_per_s,
                    strict=True,
                )
            )
            for pipeline, allocation in zip(pipelines, found, strict=True)
        ]
        yield Schemes(name, 16, *(one.throughput_per_s for one in found), *sums)


def ratios(values: Sequence[Schemes]) -> list[float]:
    """Throughput of the first over that of the second scheme."""
    return [one.first_per_s / one.second_per_s for one in values]
