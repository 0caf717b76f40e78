"""Jobs drawn at random, the log that a production run of one rate leaves, and what is true."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headway.assumptions.fits import (
    EMPTY_BATCH_SD_RATIO,
    SET_UP_BEHIND_EXCHANGE_S,
    SET_UP_CPU_S,
    SET_UP_SD_S,
    TIME_PER_CPU_RATIO,
    TIME_PER_CPU_SD_RATIO,
    USUAL_PARTS_SD_S,
)
from headway.assumptions.predictions import POOLED_SPREAD_RATIO
from headway.domain import Application, Configuration, JobProfile
from headway.profiler.operators import Operator
from headway.profiler.streaming.samples import (
    ArrivalSeries,
    BatchSample,
    QueryRun,
    StageSample,
    StateSample,
)
from headway.profiler.streaming.summarize import profile_of_runs
from tests.factories import a_configuration, a_profile, a_stage_sample

SLOTS, NUM_BATCHES, BATCH_RATIO = 4, 40, 0.1
RUN_RATIO = POOLED_SPREAD_RATIO.value
# Time for rows grows as a power of them that is near one, so that no model is exact.
EXPONENT_SD = 0.1
KINDS = ("alike", "alike", "alike", "empty batch", "unequal tasks")


@dataclass(frozen=True, kw_only=True)
class DrawnStage:
    """Times of a task at the profiled size [s], by what they depend on.

    A stage with ``operators`` is behind an exchange.
    """

    num_tasks: int
    reported_s: float
    set_up_s: float
    waiting_s: float
    rows_s: float
    rows_cpu_ratio: float
    operators: tuple[str, ...] = ()
    other_sd_ratio: float = 0.1

    @property
    def fixed_s(self) -> float:
        return self.reported_s + self.set_up_s + self.waiting_s


@dataclass(frozen=True, kw_only=True)
class DrawnJob:
    """A job whose true durations are known for any size of batch."""

    kind: str
    rows: float
    driver_s: float
    stages: tuple[DrawnStage, ...]
    exponent: float

    def mean_s(self, rows_ratio: float) -> float:
        """Mean duration of a batch of so many times the profiled rows."""
        rows_factor = float(rows_ratio**self.exponent)
        return self.driver_s + sum(
            stage.num_tasks / SLOTS * (stage.fixed_s + rows_factor * stage.rows_s)
            for stage in self.stages
        )

    @property
    def limit_per_s(self) -> float:
        """Rate at which the rows of a second take nine tenths of a second, at the profiled cost."""
        rows_s = sum(stage.num_tasks / SLOTS * stage.rows_s for stage in self.stages)
        return 0.9 * self.rows / rows_s

    @property
    def configuration(self) -> Configuration:
        return a_configuration(executors=1, cores_per_executor=SLOTS, shuffle_partitions=8)


def drawn_job(rng: np.random.Generator) -> DrawnJob:
    """Any share of the time for rows, and of the rest for set-up and for waiting."""
    rows_share = float(rng.uniform(0.0, 1.0))
    num_stages = int(rng.integers(1, 3))
    stages = []
    for _ in range(num_stages):
        task_s = float(np.exp(rng.uniform(np.log(0.02), np.log(3.0))))
        share = float(np.clip(rows_share + rng.normal(0.0, 0.05), 0.001, 0.999))
        fixed_s = (1.0 - share) * task_s
        reported_s = min(float(rng.uniform(0.002, 0.02)), fixed_s)
        set_up_s = min(abs(float(rng.normal(0.0, USUAL_PARTS_SD_S.value))), fixed_s - reported_s)
        stages.append(
            DrawnStage(
                num_tasks=8,
                reported_s=reported_s,
                set_up_s=set_up_s,
                waiting_s=fixed_s - reported_s - set_up_s,
                rows_s=share * task_s,
                rows_cpu_ratio=float(rng.uniform(0.0, 1.0)),
            )
        )
    return DrawnJob(
        kind=KINDS[int(rng.integers(len(KINDS)))],
        rows=float(round(np.exp(rng.uniform(np.log(1e3), np.log(1e6))))),
        driver_s=float(rng.uniform(0.05, 0.3)),
        stages=tuple(stages),
        exponent=float(rng.normal(1.0, EXPONENT_SD)),
    )


def drawn_job_of_own_operators(rng: np.random.Generator) -> DrawnJob:
    """As Spark's own operators behave: rows need the CPU, and set-up takes little (E46)."""
    stages = []
    for _ in range(int(rng.integers(1, 3))):
        set_up_s = abs(float(rng.normal(SET_UP_BEHIND_EXCHANGE_S.value, SET_UP_SD_S.value)))
        time_per_cpu = abs(float(rng.normal(TIME_PER_CPU_RATIO.value, TIME_PER_CPU_SD_RATIO.value)))
        stages.append(
            DrawnStage(
                num_tasks=8,
                reported_s=float(rng.uniform(0.002, 0.02)),
                set_up_s=SET_UP_CPU_S.value,
                waiting_s=max(set_up_s - SET_UP_CPU_S.value, 0.0),
                rows_s=float(np.exp(rng.uniform(np.log(0.005), np.log(3.0)))),
                rows_cpu_ratio=1.0 / max(time_per_cpu, 1.0),
                operators=("HashAggregate", "Exchange"),
            )
        )
    return DrawnJob(
        kind=("alike", "alike", "unequal tasks")[int(rng.integers(3))],
        rows=float(round(np.exp(rng.uniform(np.log(1e4), np.log(1e6))))),
        driver_s=float(rng.uniform(0.05, 0.3)),
        stages=tuple(stages),
        exponent=float(rng.normal(1.0, EXPONENT_SD)),
    )


def profile_from_one_run(job: DrawnJob, rng: np.random.Generator) -> JobProfile:
    """The profile of a run of one rate."""
    application = Application(id="drawn", name="drawn", spark_version="4.1.0")
    return profile_of_runs((run_of(job, rng),), (application,), "0.1.0")


def run_of(job: DrawnJob, rng: np.random.Generator) -> QueryRun:
    """A run of one rate."""
    slowness = np.exp(rng.normal(0.0, RUN_RATIO))
    batches = tuple(
        _a_batch(job, number, 1.0, slowness * np.exp(rng.normal(0.0, BATCH_RATIO)))
        for number in range(1, NUM_BATCHES + 1)
    )
    empty: tuple[BatchSample, ...] = ()
    if job.kind == "empty batch":
        empty = (_a_batch(job, 0, 0.0, np.exp(rng.normal(0.0, EMPTY_BATCH_SD_RATIO.value))),)
    return QueryRun(
        query_id="drawn",
        query_name="drawn",
        shape=replace(a_profile().shape, stateful_operators=(), watermarked=False),
        configuration=job.configuration,
        arrivals=ArrivalSeries(
            counted="offsets",
            arrived_rows=np.full(NUM_BATCHES, job.rows),
            interval_s=np.full(NUM_BATCHES, 1.0),
            lag_rows=None,
            partition_rows={},
        ),
        rate_per_s=job.rows,
        num_cut=0,
        pinned_state_partitions=None,
        source_partitions=8,
        batches=batches,
        without_rows=empty,
    )


def _a_batch(job: DrawnJob, number: int, rows_ratio: float, factor: float) -> BatchSample:
    stages = tuple(
        _a_stage(job, level, stage, rows_ratio, factor) for level, stage in enumerate(job.stages)
    )
    stages_s = sum(stage.span_s for stage in stages)
    return BatchSample(
        batch_id=number,
        started_s=float(number),
        interval_s=1.0,
        jvm_age_s=10_000.0 + number,
        duration_s=factor * job.driver_s + stages_s,
        phases_s={"add_batch": factor * job.driver_s + stages_s},
        num_rows=round(rows_ratio * job.rows),
        state_commit_s=0.0,
        state=StateSample(num_rows=0, memory_bytes=0, num_stores=0),
        event_time_lag_s=None,
        stages_s=stages_s,
        stages=stages,
    )


def _a_stage(
    job: DrawnJob, level: int, stage: DrawnStage, rows_ratio: float, factor: float
) -> StageSample:
    task_s = factor * (stage.fixed_s + rows_ratio * stage.rows_s)
    rows = rows_ratio * job.rows
    per_task = rows / stage.num_tasks
    # Of unequal tasks the rows vary by half, their times by as much as rows take, and otherwise.
    is_unequal = job.kind == "unequal tasks"
    rows_sd = 0.5 * per_task if is_unequal else 0.0
    rows_sd_s = factor * rows_ratio * stage.rows_s * 0.5 if is_unequal else 0.0
    other_sd_s = stage.other_sd_ratio * task_s
    return a_stage_sample(
        level=level,
        has_parents=bool(stage.operators),
        operators=tuple(
            Operator(is_replanned=False, position=position, name=name, table=None)
            for position, name in enumerate(stage.operators)
        ),
        num_tasks=stage.num_tasks,
        rows=rows,
        task_mean_s=task_s,
        task_sd_s=float(np.hypot(rows_sd_s, other_sd_s)),
        rows_variance=rows_sd**2,
        rows_time_covariance_s=rows_sd * rows_sd_s,
        outside_run_s=factor * stage.reported_s,
        span_s=task_s * stage.num_tasks / SLOTS,
        run_s=stage.num_tasks * (task_s - factor * stage.reported_s),
        cpu_s=stage.num_tasks
        * factor
        * (stage.set_up_s + stage.rows_cpu_ratio * rows_ratio * stage.rows_s),
    )
