"""Jobs other than micro-batches: DStreams, stage graphs of batch jobs, Real-Time Mode."""

from __future__ import annotations

from itertools import product

import numpy as np

from formulas.cells import Cell, Family, judged
from headway.models.batches.dstreams import DStreamJobs, dstreams_latency
from headway.models.queues.times import lognormal_time
from headway.models.real_time.latency import real_time_latency
from headway.models.real_time.stages import RealTimeStage
from headway.models.stages.dag import StageDag, run_time
from headway.models.stages.schedule import JobStage
from tests.oracles.dstreams import simulate_dstreams
from tests.oracles.queue import correlated_lognormal_s
from tests.oracles.real_time import PlayedStage, simulate_real_time
from tests.oracles.stage_dag import simulated_lognormal_stage_dag

_NUM_BATCHES, _NUM_JOBS, _NUM_ROWS = 400_000, 2_000, 400_000
_NUM_REPLICATIONS = 4
_FLUSH_S = 0.05
_TRIGGER_S = 5.0
"""Short, so that the shuffle clocks, which restart in each batch, average out."""


def simulated_dstreams(utilization: float, cv: float, num_concurrent: int, memory: float) -> Cell:
    """One job per batch of 1 s, ``num_concurrent`` of them at a time."""
    job = lognormal_time(utilization * num_concurrent, cv)
    jobs = DStreamJobs(job=job, num_concurrent=num_concurrent, autocorrelation=memory)
    latency = dstreams_latency(1.0, jobs)
    traces = [
        simulate_dstreams(
            1.0,
            correlated_lognormal_s(job.mean_s, cv, memory, num_values=_NUM_BATCHES, seed=seed)[
                :, np.newaxis
            ],
            num_concurrent=num_concurrent,
            num_warmup=_NUM_BATCHES // 20,
        )
        for seed in range(_NUM_REPLICATIONS)
    ]
    return {
        "mean": judged(latency.tuple_mean_s, [trace.tuple_mean_s for trace in traces]),
        "p99": judged(
            float(latency.tuple_quantile_s(0.99)),
            [float(trace.tuple_quantile_s(0.99)) for trace in traces],
        ),
    }


_SHAPES = {
    "chain": ((24, ()), (8, (0,)), (4, (1,))),
    "join": ((16, ()), (24, ()), (8, (0, 1))),
    "diamond": ((12, ()), (20, (0,)), (7, (0,)), (10, (1, 2))),
    "fan-in": ((9, ()), (9, ()), (30, ()), (6, (0, 1, 2))),
}


def simulated_dag(shape: str, num_cores: int, cv: float) -> Cell:
    """A batch job with tasks of 1 s on average."""
    stages = tuple(
        JobStage(num_tasks=num_tasks, mean_s=1.0, cv=cv, parents=parents)
        for num_tasks, parents in _SHAPES[shape]
    )
    found = run_time(StageDag(stages=stages), num_cores)
    traces = [
        simulated_lognormal_stage_dag(
            [(stage.num_tasks, stage.mean_s, stage.cv) for stage in stages],
            [stage.parents for stage in stages],
            num_cores,
            num_replications=_NUM_JOBS,
            seed=seed,
        ).run_time_s
        for seed in range(_NUM_REPLICATIONS)
    ]
    return {
        "mean": judged(found.mean_s, [float(trace.mean()) for trace in traces]),
        "standard deviation": judged(found.sd_s, [float(trace.std()) for trace in traces]),
    }


def simulated_real_time(
    num_tasks: int, utilization: float, cv: float, largest_share: float
) -> Cell:
    """Four tasks that read, and ``num_tasks`` that aggregate after one shuffle."""
    row_s = 1e-3
    share = max(largest_share, 1.0 / num_tasks)
    rate_per_s = utilization / (share * row_s)
    stages = (
        RealTimeStage(num_tasks=4, row_s=0.1 / rate_per_s * 4.0, row_cv=0.5),
        RealTimeStage(num_tasks=num_tasks, row_s=row_s, row_cv=cv, largest_share=share),
    )
    latency = real_time_latency(
        rate_per_s,
        stages,
        trigger_s=_TRIGGER_S,
        flush_s=_FLUSH_S,
    )
    simulated_runs = [
        simulate_real_time(
            rate_per_s,
            [
                PlayedStage(shares=stage.shares, row_s=stage.row_s, row_cv=stage.row_cv)
                for stage in stages
            ],
            flush_s=_FLUSH_S,
            trigger_s=_TRIGGER_S,
            gap_s=0.0,
            num_rows=_NUM_ROWS,
            seed=seed,
        )
        for seed in range(_NUM_REPLICATIONS)
    ]
    return {
        "mean": judged(latency.mean_s, [float(one.mean()) for one in simulated_runs]),
        "p99": judged(
            float(latency.quantile_s(0.99)),
            [float(np.quantile(one, 0.99)) for one in simulated_runs],
        ),
    }


_UTILIZATIONS = (0.3, 0.5, 0.7, 0.9)
DSTREAMS = Family(
    title="DStreams, one job at a time",
    equations="theory.md (V1), (V2)",
    over="utilization 0.3-0.9, lognormal jobs with cv 0.1-1",
    judge=f"{_NUM_REPLICATIONS} x {_NUM_BATCHES:,} batches",
    cells={
        f"utilization {rho:g}, cv {cv:g}": (rho, cv, 1, 0.0)
        for rho, cv in product(_UTILIZATIONS, (0.1, 0.3, 1.0))
    },
    simulate=simulated_dstreams,
)
DSTREAMS_LASTING = Family(
    title="DStreams, noise that lasts, or several jobs at a time",
    equations="theory.md (V3), (V4)",
    over=(
        "correlation 0.5 and 0.8 of successive jobs, or 2 and 4 jobs at a time; utilization 0.5-0.9"
    ),
    judge=f"{_NUM_REPLICATIONS} x {_NUM_BATCHES:,} batches",
    cells={
        f"utilization {rho:g}, cv {cv:g}, "
        + (f"correlation {memory:g}" if memory else f"{workers} at a time"): (
            rho,
            cv,
            workers,
            memory,
        )
        for rho, cv, (workers, memory) in product(
            _UTILIZATIONS[1:], (0.1, 0.3, 1.0), ((1, 0.5), (1, 0.8), (2, 0.0), (4, 0.0))
        )
    },
    simulate=simulated_dstreams,
)
BATCH_JOBS = Family(
    title="Run time of a batch job",
    equations="theory.md (J1)-(J6)",
    over="chains, joins, diamonds and fan-ins of 36-54 tasks on 4-32 cores, cv of a task 0.1-1",
    judge=f"{_NUM_REPLICATIONS} x {_NUM_JOBS:,} jobs, list scheduling over the graph",
    cells={
        f"{shape}, {num_cores} cores, cv {cv:g}": (shape, num_cores, cv)
        for shape, num_cores, cv in product(_SHAPES, (4, 8, 16, 32), (0.1, 0.3, 1.0))
    },
    simulate=simulated_dag,
)
REAL_TIME = Family(
    title="Real-Time Mode",
    equations="theory.md (N1)-(N8)",
    over=(
        "four reading and 4-32 aggregating tasks; utilization of the busiest task 0.3-0.85; rows "
        "spread evenly, or a third of them at one task; cv of a row 0.5 and 1; shuffle buffers of "
        "50 ms"
    ),
    judge=f"{_NUM_REPLICATIONS} x {_NUM_ROWS:,} rows",
    cells={
        f"{tasks} tasks, utilization {rho:g}, cv {cv:g}{', skewed' if share else ''}": (
            tasks,
            rho,
            cv,
            share,
        )
        for tasks, rho, cv, share in product(
            (4, 8, 32), (0.3, 0.5, 0.7, 0.85), (0.5, 1.0), (0.0, 1.0 / 3.0)
        )
    },
    simulate=simulated_real_time,
)
