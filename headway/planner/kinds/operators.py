"""A pipeline of ordered operators: its throughput, schedulers side by side, and workers.

The latency under a scheduler depends on slices and queues and is only known by simulation, so a
plan takes the throughput from (O10) and the latency from (S10).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

from headway.assumptions.planning import MOST_WORKERS_OF_PLAN
from headway.domain import Target
from headway.domain.ordered import OrderedPipeline, Scheduler
from headway.domain.result import Result
from headway.errors import InputError, argument
from headway.limits import MOST_CORES
from headway.models.ordered.chain import (
    Allocation,
    OperatorLatency,
    WholeAllocation,
    most_workers,
    on_spark,
    operator_latency,
    pipeline_allocation,
)
from headway.models.simulation.ordered_schedulers import SchedulerRun, simulate_scheduler

_TUPLES_OF_PLAN, _TUPLES = 50_000, 200_000
_SINGLE_STEPS = 8  # of one worker each, from the bound on
_MOST_SLICES = 50e6  # of all schedulers; beyond this, a simulation takes minutes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OperatorsPrediction(Result):
    """Predictions for a pipeline of ordered operators by formulas.

    ``allocation`` has the maximum throughput with order preserved (O10), ``unordered`` the one if
    ordering cost nothing (O1). ``workers`` are those of each operator at its rate, and
    ``latencies`` are from its start to the exit in order. As stages of Spark, the same work is done
    at ``micro_batch_per_s``, and in ``real_time``, which needs as many slots as stages.
    """

    result_kind = "ordered-prediction"
    pipeline: OrderedPipeline
    allocation: Allocation
    unordered: Allocation
    workers: tuple[float, ...]
    latencies: tuple[OperatorLatency, ...]
    micro_batch_per_s: float
    real_time: WholeAllocation | None

    @property
    def is_saturated(self) -> bool:
        """Whether the arrival rate exceeds its throughput."""
        rate_per_s = self.pipeline.rate_per_s
        return rate_per_s is not None and rate_per_s >= self.allocation.throughput_per_s

    @property
    def limiting(self) -> str:
        """What limits the rate: an operator by its name, or the workers."""
        index = self.allocation.limiting
        return "the workers" if index is None else self.pipeline.operators[index].name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OperatorsRuns(Result):
    """Simulated schedulers of a pipeline, and the results of formulas."""

    result_kind = "ordered-simulation"
    predicted: OperatorsPrediction
    runs: dict[Scheduler, SchedulerRun]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OperatorsPlan(Result):
    """The fewest workers with which a scheduler meets a target.

    ``pipeline`` has the planned number of workers; the maximum if none is sufficient. ``run`` is
    that of the scheduler in use, simulated with these workers; None if they cannot keep up. Fewer
    than ``proved_workers`` cannot sustain the rate by (O10), with any scheduler.
    """

    result_kind = "ordered-plan"
    pipeline: OrderedPipeline
    target: Target
    run: SchedulerRun | None
    proved_workers: int

    @property
    def planned_s(self) -> float:
        """Value of the target's statistic. [s]"""
        if self.run is None:
            return float("inf")
        statistics_s = {None: self.run.mean_s, 0.5: self.run.p50_s, 0.99: self.run.p99_s}
        return statistics_s[self.target.quantile]

    @property
    def feasible(self) -> bool:
        """Whether the target is met."""
        return self.planned_s <= self.target.limit_s

    @property
    def is_saturated(self) -> bool:
        """Whether no number of workers can sustain the rate."""
        return self.run is None


def predict_operators(pipeline: OrderedPipeline) -> OperatorsPrediction:
    """Throughput of a pipeline, and the latency of each operator at its rate."""
    allocation = pipeline_allocation(pipeline)
    throughput_per_s = allocation.throughput_per_s
    share = min(1.0, (pipeline.rate_per_s or throughput_per_s) / throughput_per_s)
    workers = tuple(share * float(num_workers) for num_workers in allocation.workers)
    micro_batch_per_s, real_time = on_spark(pipeline)
    return OperatorsPrediction(
        pipeline=pipeline,
        allocation=allocation,
        unordered=pipeline_allocation(pipeline, reordered=False),
        workers=workers,
        latencies=tuple(
            operator_latency(operator, pipeline, busy)
            for operator, busy in zip(pipeline.operators, workers, strict=True)
        ),
        micro_batch_per_s=micro_batch_per_s,
        real_time=real_time,
    )


def simulate_operators(pipeline: OrderedPipeline) -> OperatorsRuns:
    """Simulate each scheduler of a pipeline.

    Raises InputError if there would be more slices than can be simulated in minutes.
    """
    _require_few_slices(pipeline, len(pipeline.compare) * _TUPLES)
    return OperatorsRuns(
        predicted=predict_operators(pipeline),
        runs={
            scheduler: simulate_scheduler(pipeline, scheduler, _limits(pipeline))
            for scheduler in pipeline.compare
        },
    )


def plan_operators(
    pipeline: OrderedPipeline, target: Target, *, most_workers: int | None = None
) -> OperatorsPlan:
    """The fewest workers with which the first scheduler meets a target.

    Raises InputError if no rate is given, or the target is on a statistic that is not simulated.
    """
    if pipeline.rate_per_s is None:
        raise InputError(f"{argument('rate')}: saturated has no plan; expected a rate, e.g. 50k/s")
    if target.quantile not in (None, 0.5, 0.99):
        raise InputError(
            f"target {target}: not simulated for ordered operators; expected mean, p50 or p99"
        )
    _require_few_slices(pipeline, _TUPLES_OF_PLAN)
    worker_limit = min(most_workers or MOST_WORKERS_OF_PLAN.value, MOST_CORES)
    fewest = _fewest_workers(pipeline, worker_limit)
    if fewest is None:
        return OperatorsPlan(
            pipeline=replace(pipeline, num_workers=worker_limit),
            target=target,
            run=None,
            proved_workers=worker_limit + 1,
        )

    def with_workers(num_workers: int) -> OperatorsPlan:
        planned = replace(pipeline, num_workers=num_workers)
        run = simulate_scheduler(
            planned, pipeline.compare[0], _limits(planned), num_tuples=_TUPLES_OF_PLAN
        )
        return OperatorsPlan(pipeline=planned, target=target, run=run, proved_workers=fewest)

    plan, too_few, step = with_workers(fewest), fewest - 1, 1
    while not plan.feasible and plan.pipeline.num_workers < worker_limit:
        too_few = plan.pipeline.num_workers
        # At first one more each time, then larger steps.
        step = step if too_few < fewest + _SINGLE_STEPS else 2 * step
        plan = with_workers(min(too_few + step, worker_limit))
    while plan.feasible and plan.pipeline.num_workers - too_few > 1:
        between = with_workers((plan.pipeline.num_workers + too_few) // 2)
        if between.feasible:
            plan = between
        else:
            too_few = between.pipeline.num_workers
    return plan


def _require_few_slices(pipeline: OrderedPipeline, num_tuples: int) -> None:
    """A slice has at least one tuple, and as many as fit into it if tuples arrive together."""
    reaching, num_slices = 1.0, 0.0
    for operator in pipeline.operators:
        slices_per_tuple = min(1.0, operator.cost_s / pipeline.slice_s)
        if pipeline.rate_per_s is not None:
            # Queues are short; if a tuple of the source produces several, they arrive together.
            slices_per_tuple = max(slices_per_tuple, 1.0 / max(reaching, 1.0))
        num_slices += num_tuples * reaching * slices_per_tuple
        reaching *= operator.selectivity_ratio
    if num_slices > _MOST_SLICES:
        raise InputError(
            f"{num_slices / 1e6:,.0f} million slices would take too long to simulate; expected at "
            f"most {_MOST_SLICES / 1e6:.0f} million: a longer slice, fewer schedulers to compare, "
            "or fewer outputs per tuple; headway predict uses the formulas alone"
        )


def _fewest_workers(pipeline: OrderedPipeline, worker_limit: int) -> int | None:
    """The fewest workers that sustain the rate by (O10); None if the maximum does not."""
    rate_per_s = pipeline.rate_per_s
    assert rate_per_s is not None

    def carries(num_workers: int) -> bool:
        planned = replace(pipeline, num_workers=num_workers)
        return pipeline_allocation(planned).throughput_per_s > rate_per_s

    if not carries(worker_limit):
        return None
    return bisect_left(range(1, worker_limit), True, key=carries) + 1


def _limits(pipeline: OrderedPipeline) -> list[float]:
    return [most_workers(operator, pipeline.num_workers) for operator in pipeline.operators]
