"""A pipeline of ordered operators: the workers of each, and its throughput with order preserved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headway.assumptions.predictions import FULLEST_PARTITION_RATIO
from headway.domain.ordered import Operator, OrderedPipeline
from headway.models.arrays import Array
from headway.models.ordered import exit_laws
from headway.models.ordered.tuple_queues import simulate_queues
from headway.models.stages.skew import random_partition_loads, zipf_key_shares

_PLACEMENTS = 64
_SHARED_TUPLES = 20_000
_LATENCY_TUPLES = 200_000
_DRAWN = 2018  # random seed of placements and tuples


class Allocation(NamedTuple):
    """Throughput of a pipeline [1/s], its workers by operator [-], and what limits it.

    ``limiting`` is the place of the operator whose maximum parallelism limits the throughput, None
    if the workers do.
    """

    throughput_per_s: float
    workers: Array
    limiting: int | None


class WholeAllocation(NamedTuple):
    """Tasks of each stage [-], their throughput [1/s], and the bound of (O1) [1/s]."""

    num_tasks: tuple[int, ...]
    throughput_per_s: float
    bound_per_s: float


def source_work_s(pipeline: OrderedPipeline) -> Array:
    r"""Worker time per tuple of the source at each operator of a pipeline (O1). [s]

    >>> from headway.domain.ordered import Operator
    >>> first = Operator(name="a", type="stateless", cost_s=1e-5, selectivity_ratio=0.5)
    >>> operators = (first, Operator(name="b", type="stateless", cost_s=3e-5))
    >>> source_work_s(OrderedPipeline(num_workers=4, operators=operators)) * 1e6
    array([10., 15.])
    """
    cost_s = np.array([operator.cost_s for operator in pipeline.operators])
    selectivity_ratio = np.array([operator.selectivity_ratio for operator in pipeline.operators])
    work: Array = cost_s * np.concatenate(([1.0], np.cumprod(selectivity_ratio)[:-1]))
    return work


def pipelined_allocation(
    work_s: Sequence[float] | Array, most_workers: Sequence[float] | Array, num_workers: float
) -> Allocation:
    r"""Throughput of a pipeline whose operators run at the same time, and the workers of each.

    The throughput is in tuples of the source.

    Parameters
    ----------
    work_s : (k,) sequence, > 0, worker time per tuple of the source, as from `source_work_s`
    most_workers : (k,) sequence, > 0, most workers that each operator can use; ``inf`` for no limit
    num_workers : float, > 0

    **(O1)** All operators at the same time: `X = min(n/Σ d_i, min_i M_i/d_i)` tuples of the source
    per second, with `d_i = c_i s_1...s_(i-1)` the worker-seconds per tuple of the source and `M_i`
    the maximum number of workers of an operator, which has `X d_i` workers. This is an exact upper
    bound for every scheduler, and is reached by those that keep a limited operator busy. Prasaad,
    Ramalingam and Rajan (2018), whose equation (3), as printed, also divides by the selectivity of
    the operator itself, without mentioning it.

    >>> limited = pipelined_allocation([1e-5, 3e-5, 2e-5], [np.inf, 1, np.inf], 8)
    >>> round(limited.throughput_per_s), limited.workers.round(2).tolist(), limited.limiting
    (33333, [0.33, 1.0, 0.67], 1)
    """
    work, max_workers = _checked(work_s, most_workers, num_workers)
    by_operator = max_workers / work
    narrowest = int(np.argmin(by_operator))
    by_workers = num_workers / float(work.sum())
    if by_workers <= by_operator[narrowest]:
        return Allocation(by_workers, by_workers * work, None)
    throughput = float(by_operator[narrowest])
    return Allocation(throughput, throughput * work, narrowest)


def staged_throughput_per_s(
    work_s: Sequence[float] | Array, most_workers: Sequence[float] | Array, num_workers: float
) -> float:
    r"""Throughput of a pipeline whose operators run one after another, like the stages of a batch.

    It is in tuples of the source, without fixed times of tasks and batches. Arguments are those of
    :func:`pipelined_allocation`; the workers are slots.

    **(O2)** One stage at a time: `X_b = 1/Σ d_i/min(C, M_i)`. Equal to (O1) if every stage can use
    all `C` slots; otherwise the gain of pipelining is lost. Exact for tasks without fixed time.

    >>> round(staged_throughput_per_s([1e-5, 3e-5, 2e-5], [np.inf, 1, np.inf], 8))
    29630
    """
    work, max_workers = _checked(work_s, most_workers, num_workers)
    return float(1.0 / (work / np.minimum(max_workers, num_workers)).sum())


def water_filled_slots(
    work_s: Sequence[float] | Array,
    num_slots: int,
    *,
    tied: Sequence[int] | None = None,
    most_tasks: Sequence[float] | Array | None = None,
) -> WholeAllocation:
    r"""Tasks of stages that run at the same time in whole slots, so that the busiest is least busy.

    The throughput is in rows of the source.

    Parameters
    ----------
    work_s : (k,) sequence, > 0, slot time of each stage per row of the source
    num_slots : int, at least the number of stages
    tied : (k,) sequence of int, optional
        Stages with the same number have equally many tasks, like stateful shuffles; by default,
        each stage is on its own.
    most_tasks : (k,) sequence, >= 1, optional, most tasks of each stage, e.g. of its source

    **(O9)** Whole slots: maximise `min_i t_i/d_i` with `Σ t_i ≤ C` by giving the next slots to the
    stage, or the tied stages, with the least `t_i/d_i`, until they no longer fit or the stage has
    its maximum number of tasks. Exact, since any better setting would give that stage more slots.
    Never above (O1).

    >>> allocation = water_filled_slots([1e-5, 2e-5, 1.5e-5, 4e-6], 16)
    >>> allocation.num_tasks, round(allocation.throughput_per_s), round(allocation.bound_per_s)
    ((3, 6, 5, 2), 300000, 326531)
    >>> water_filled_slots([1e-5, 2e-5, 1.5e-5, 4e-6], 16, tied=[0, 0, 0, 0]).num_tasks
    (4, 4, 4, 4)
    """
    unlimited = np.full(len(work_s), np.inf)
    work, max_tasks = _checked(work_s, unlimited if most_tasks is None else most_tasks, num_slots)
    group = np.arange(len(work)) if tied is None else np.unique(tied, return_inverse=True)[1]
    if len(group) != len(work):
        raise ValueError("tied needs a number for each stage")
    size, heaviest = np.bincount(group), np.zeros(group.max() + 1)
    np.maximum.at(heaviest, group, work)
    highest = np.full(len(size), np.inf)
    np.minimum.at(highest, group, max_tasks)
    tasks, num_free = np.ones(len(size), dtype=np.int64), num_slots - int(size.sum())
    if num_free < 0:
        raise ValueError(f"{len(work)} stages need as many slots, got {num_slots}")
    while (
        size[busiest := int(np.argmin(tasks / heaviest))] <= num_free
        and tasks[busiest] < highest[busiest]
    ):
        num_free -= int(size[busiest])
        tasks[busiest] += 1
    return WholeAllocation(
        tuple(int(num_tasks) for num_tasks in tasks[group]),
        float((np.minimum(tasks, highest) / heaviest).min()),
        min(num_slots / float(work.sum()), float((max_tasks / work).min())),
    )


def _checked(
    work_s: Sequence[float] | Array, most_workers: Sequence[float] | Array, num_workers: float
) -> tuple[Array, Array]:
    work = np.asarray(work_s, dtype=np.float64)
    max_workers = np.asarray(most_workers, dtype=np.float64)
    if work.ndim != 1 or not work.size or work.shape != max_workers.shape:
        raise ValueError("work_s and most_workers must be of one length, at least 1")
    if not (np.all(work > 0.0) and np.all(np.isfinite(work)) and np.all(max_workers > 0.0)):
        raise ValueError("work_s and most_workers must be positive")
    if not 0.0 < num_workers < np.inf:
        raise ValueError(f"num_workers must be positive, got {num_workers}")
    return work, max_workers


class OperatorLatency(NamedTuple):
    """Mean and p99 time [s] from a tuple's start at an operator to its exit in order.

    With partitioned queues it starts at the tuple's arrival, which waits for its own worker.
    ``is_simulated`` where no formula holds.
    """

    mean_s: float
    p99_s: float
    is_simulated: bool = False


def partition_shares(operator: Operator, num_workers: int) -> Array:
    r"""Shares of the partitions of an operator, largest first, for randomly hashed keys (K2), (K3).

    They are means over placements: of the largest share, the second largest, and so on. Partitioned
    queues have at most as many partitions as workers.

    >>> ten = Operator(name="t", type="partitioned", cost_s=1.0, partitions=10)
    >>> partition_shares(ten, 16).tolist() == [0.1] * 10
    True
    """
    number = operator.partitions
    if operator.queue == "partitioned":
        number = min(number, num_workers)
    if operator.num_keys is None:
        return np.full(number, 1.0 / number)
    keys = zipf_key_shares(operator.num_keys, operator.exponent)
    loads = random_partition_loads(keys, number, num_replications=_PLACEMENTS, seed=_DRAWN)
    mean_loads: Array = np.sort(loads, axis=1)[:, ::-1].mean(axis=0)
    return mean_loads


def most_workers(operator: Operator, num_workers: int) -> float:
    r"""Workers, at most ``num_workers``, that an operator keeps busy if it always has input (O8).

    One for a stateful operator, all for a stateless one. A shared queue is simulated (S11), since
    no formula is known for it.

    Parameters
    ----------
    num_workers : int, >= 1, workers of the machine

    >>> ten = Operator(name="t", type="partitioned", cost_s=1.0, partitions=10)
    >>> most_workers(ten, 16), most_workers(ten, 4)
    (10.0, 4.0)
    """
    if operator.type == "stateless":
        return float(num_workers)
    if operator.type == "stateful":
        return 1.0
    shares = partition_shares(operator, num_workers)
    if operator.queue != "shared":
        return exit_laws.skewed_workers(shares, num_workers)
    random = np.random.default_rng(_DRAWN)
    partitions = random.choice(len(shares), _SHARED_TUPLES, p=shares)
    run = simulate_queues("shared", np.ones(_SHARED_TUPLES), partitions, num_workers)
    return run.busy_workers


def pipeline_allocation(pipeline: OrderedPipeline, *, reordered: bool = True) -> Allocation:
    r"""Throughput of a pipeline with order preserved, and the workers of each operator.

    The throughput is in tuples of the source. Workers that wait for the lock are counted, too.

    Parameters
    ----------
    reordered : bool, whether putting outputs in order takes time, as ``pipeline.reordering`` says

    **(O10)** A chain with order preserved: the largest `X` with `Σ_i w_i(X s_1...s_(i-1)) ≤ n`,
    where `w_i` is the number of workers with this throughput by (O3), at most `M_i`. Equal to (O1)
    if ordering costs nothing. Throughput is interpolated linearly between whole numbers of workers.

    >>> chain = tuple(Operator(name=str(c), type="stateless", cost_s=c * 1e-6)
    ...               for c in (10, 30))
    >>> whole = OrderedPipeline(num_workers=4, operators=chain)
    >>> plan = pipeline_allocation(whole, reordered=False)
    >>> round(plan.throughput_per_s), plan.workers.round(2).tolist(), plan.limiting
    (100000, [1.0, 3.0], None)
    """
    number = pipeline.num_workers
    grid = np.arange(number + 1, dtype=np.float64)
    carried, max_workers = [], []
    input_ratio = 1.0
    for operator in pipeline.operators:
        cost_s, selectivity = operator.cost_s, operator.selectivity_ratio
        without_reordering = not reordered or operator.type == "stateful"
        rates = [
            w / cost_s
            if without_reordering
            else exit_laws.reordered_throughput_per_s(
                w, cost_s, pipeline.reordering, selectivity_ratio=selectivity
            )
            for w in grid[1:]
        ]
        carried.append([rate / input_ratio for rate in (0.0, *rates)])
        max_workers.append(most_workers(operator, number))
        input_ratio *= selectivity
    highest = [
        float(np.interp(top, grid, rates)) for top, rates in zip(max_workers, carried, strict=True)
    ]

    def workers(rate_per_s: float) -> Array:
        return np.array([np.interp(rate_per_s, *_rising(grid, rates)) for rates in carried])

    narrowest = int(np.argmin(highest))
    needed_workers = workers(highest[narrowest])
    if needed_workers.sum() <= number * (1.0 + 1e-9):
        by_workers = needed_workers[narrowest] >= number * (1.0 - 1e-9)
        return Allocation(highest[narrowest], needed_workers, None if by_workers else narrowest)
    low, high = 0.0, highest[narrowest]
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if workers(middle).sum() <= number else (low, middle)
    return Allocation(low, workers(low), None)


def _rising(grid: Array, rates: list[float]) -> tuple[Array, Array]:
    """Rates that still increase with the number of workers, and these numbers."""
    rate = np.asarray(rates)
    rises = np.concatenate(([True], np.diff(np.maximum.accumulate(rate)) > 1e-12 * rate.max()))
    return rate[rises], grid[rises]


def operator_latency(
    operator: Operator, pipeline: OrderedPipeline, num_busy: float
) -> OperatorLatency:
    r"""Latency of one operator of a pipeline, from start to exit in order, by (O4) to (O7).

    One worker by its own time, several workers by the ordered exit, partitioned operators by their
    queues. Shared queues, and hybrid ones outside the range of (O7), are simulated (S11). The time
    to send is added once. It is ``inf`` if a partition is saturated.

    Parameters
    ----------
    operator : Operator, one of ``pipeline.operators``
    num_busy : float, > 0, workers busy with it, e.g. from `pipeline_allocation`

    >>> parse = Operator(name="parse", type="stateless", cost_s=1e-5)
    >>> chain = OrderedPipeline(num_workers=4, operators=(parse,))
    >>> operator_latency(parse, chain, 3.0).mean_s * 1e6
    10.6
    """
    law = exit_laws.ServiceLaw(mean_s=operator.cost_s, cv=min(operator.cost_spread_ratio, 3.0))
    reordering, number = pipeline.reordering, pipeline.num_workers
    if operator.type == "partitioned":
        exit_latency = _partitioned_latency(operator, law, number, num_busy)
    else:
        busy = 1.0 if operator.type == "stateful" else max(num_busy, 1.0)
        exit_latency = _by_law(exit_laws.ordered_exit_law(law, busy))
    sent_s = (
        exit_laws.tuple_cost_s(operator.cost_s, reordering, operator.selectivity_ratio)
        - operator.cost_s
    )
    send_s = reordering.send_s * operator.selectivity_ratio
    knee = np.inf if send_s == 0.0 else (operator.cost_s + reordering.store_s + send_s) / send_s
    full_s = 0.0
    if operator.type != "stateful" and num_busy > knee and reordering.scheme == "non-blocking":
        full_s = exit_laws.saturated_latency_s(round(num_busy), operator.cost_s, reordering)
        full_s *= operator.selectivity_ratio
    return exit_latency._replace(
        mean_s=max(exit_latency.mean_s + sent_s, full_s),
        p99_s=max(exit_latency.p99_s + sent_s, full_s),
    )


def _by_law(exit_law: exit_laws.TimeLaw) -> OperatorLatency:
    return OperatorLatency(exit_law.mean_s, exit_law.quantile_s(0.99))


def _partitioned_latency(
    operator: Operator, law: exit_laws.ServiceLaw, num_workers: int, num_busy: float
) -> OperatorLatency:
    """From start (with partitioned queues from arrival) to exit in order, without sending."""
    shares = partition_shares(operator, num_workers)
    if num_busy * float(shares.max()) >= FULLEST_PARTITION_RATIO.value:
        return OperatorLatency(np.inf, np.inf)
    ratio = min(max(num_busy / num_workers, 1e-6), 1.0)
    if operator.queue == "partitioned":
        return _by_law(exit_laws.partitioned_exit_law(law, shares, num_workers, ratio))
    if operator.queue == "hybrid" and exit_laws.is_hybrid_law_in_range(shares, num_busy):
        return _by_law(exit_laws.hybrid_exit_law(law, num_workers, len(shares), ratio))
    random = np.random.default_rng(_DRAWN)
    num_tuples = _LATENCY_TUPLES
    services = np.full(num_tuples, law.mean_s)
    if not law.is_constant:
        services = random.gamma(law.cv**-2, law.cv**2 * law.mean_s, num_tuples)
    # Workers that are always busy find all tuples there.
    arrivals = None
    if ratio < 1.0:
        arrivals = np.cumsum(random.exponential(law.mean_s / (ratio * num_workers), num_tuples))
    partitions = random.choice(len(shares), num_tuples, p=shares)
    run = simulate_queues(operator.queue, services, partitions, num_workers, arrival_s=arrivals)
    left_s = (run.exit_s - run.start_s)[num_tuples // 10 :]
    return OperatorLatency(float(left_s.mean()), float(np.quantile(left_s, 0.99)), True)


def on_spark(pipeline: OrderedPipeline) -> tuple[float, WholeAllocation | None]:
    r"""Throughput of a pipeline as stages of Spark, (O2), (O9), without fixed times of tasks.

    Rows per second of micro-batches, without fixed times of these either, and the tasks of
    Real-Time Mode; None if there are fewer slots than stages. A stage of Real-Time Mode has tasks
    of one operator. Stateful operators cannot be divided and have one task. There are as many slots
    as the pipeline has workers.

    >>> chain = tuple(Operator(name=str(c), type="stateless", cost_s=c * 1e-6)
    ...               for c in (10, 20, 15, 4))
    >>> micro_batch_per_s, real_time = on_spark(OrderedPipeline(num_workers=16, operators=chain))
    >>> round(micro_batch_per_s), real_time.num_tasks
    (326531, (3, 6, 5, 2))
    """
    number, work = pipeline.num_workers, source_work_s(pipeline)
    max_workers = np.array([most_workers(operator, number) for operator in pipeline.operators])
    carried = staged_throughput_per_s(work, max_workers, number)
    if number < len(work):
        return carried, None
    return carried, water_filled_slots(work, number, most_tasks=max_workers)
