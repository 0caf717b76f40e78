"""What a fit leaves open, predicted beforehand, against fits of runs that were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from headway.domain import (
    Arrivals,
    DriverPhase,
    DurationNoise,
    JobProfile,
    ObservedSetting,
    RowsLaw,
    StageProfile,
)
from headway.models.job.advice import SettingLatency, advised_runs
from headway.models.job.duration import DurationModel, level_spans
from headway.models.job.fit_error import FitError, Shares
from headway.profiler.streaming.fit import fit_duration
from headway.profiler.streaming.samples import (
    ArrivalSeries,
    BatchSample,
    QueryRun,
    StageSample,
    StateSample,
)
from tests.factories import a_configuration, a_profile, a_stage_sample
from tests.seeds import first_of

DRIVER_S, FIXED_S, PARTS_SD_S, NUM_BATCHES = 0.05, (0.05, 0.06), 0.015, 8
RUN_RATIO, BATCH_RATIO = 0.08, 0.04


def the_job() -> JobProfile:
    """Two map tasks that write for an exchange, and a stage behind it: the truth of all draws."""
    return replace(
        a_profile(),
        driver_phases=(DriverPhase(name="add_batch", mean_s=DRIVER_S, sd_s=0.0),),
        stages=(
            StageProfile(
                name="stage 0", level=0, tasks_rule="source", num_source_tasks=2,
                rows=RowsLaw(scale=1.0, exponent=1.0), task_fixed_s=FIXED_S[0],
                task_per_row_s=1e-5, task_per_partition_s=5e-4,
                task_noise_ratio=0.0, separation="batches",
            ),
            StageProfile(
                name="stage 1", level=1, tasks_rule="shuffle",
                rows=RowsLaw(scale=1.0, exponent=1.0), task_fixed_s=FIXED_S[1],
                task_per_row_s=4e-6, task_noise_ratio=0.0, separation="batches",
            ),
        ),
        noise=DurationNoise(
            batch_ratio=BATCH_RATIO, autocorrelation=0.0, run_to_run_ratio=RUN_RATIO
        ),
        settings=tuple(a_setting(rows) for rows in (40_000, 60_000, 90_000)),
        arrivals=Arrivals(rate_per_s=20_000.0),
    )  # fmt: skip


def a_setting(rows: float, partitions: int = 2, trigger_s: float = 2.0) -> ObservedSetting:
    return replace(
        a_profile().settings[0],
        configuration=a_configuration(
            executors=1, cores_per_executor=2, shuffle_partitions=partitions, trigger_s=trigger_s
        ),
        rate_per_s=rows / 2.0,
        num_batches=NUM_BATCHES,
        rows_per_batch_low=float(rows),
        rows_per_batch_high=float(rows),
    )


def drawn(
    setting: ObservedSetting, job: JobProfile, parts_s: Sequence[float], rng: np.random.Generator
) -> QueryRun:
    """A run of a setting: all of it slower or faster by one draw, and each batch by another."""
    partitions = setting.configuration.shuffle_partitions
    slowness = float(np.exp(rng.normal(0.0, RUN_RATIO) - 0.5 * RUN_RATIO**2))
    batches = []
    for number in range(setting.num_batches):
        factor = slowness * (1.0 + rng.normal(0.0, BATCH_RATIO))
        rows = 0.5 * (setting.rows_per_batch_low + setting.rows_per_batch_high)
        stages = tuple(
            a_stage(stage, rows, partitions, part_s, factor)
            for stage, part_s in zip(job.stages, parts_s, strict=True)
        )
        stages_s = sum(stage.span_s for stage in stages)
        batches.append(
            BatchSample(
                batch_id=number,
                started_s=2.0 * number,
                interval_s=2.0,
                jvm_age_s=300.0 + number,
                duration_s=factor * DRIVER_S + stages_s,
                phases_s={"add_batch": factor * DRIVER_S + stages_s},
                num_rows=round(rows),
                state_commit_s=0.0,
                state=StateSample(num_rows=0, memory_bytes=0, num_stores=partitions),
                event_time_lag_s=None,
                stages_s=stages_s,
                stages=stages,
            )
        )
    return QueryRun(
        query_id=setting.query_id,
        query_name="drawn",
        shape=job.shape,
        configuration=setting.configuration,
        arrivals=ArrivalSeries(
            counted="rows",
            arrived_rows=np.full(setting.num_batches, rows),
            interval_s=np.full(setting.num_batches, 2.0),
            lag_rows=None,
            partition_rows={},
        ),
        rate_per_s=setting.rate_per_s,
        num_cut=0,
        pinned_state_partitions=partitions,
        source_partitions=2,
        batches=tuple(batches),
    )


def a_stage(
    stage: StageProfile, rows: float, partitions: int, part_s: float, factor: float
) -> StageSample:
    num_tasks = stage.num_tasks(partitions)
    task_s = (
        stage.task_fixed_s
        + stage.task_per_row_s * rows / num_tasks
        + stage.task_per_partition_s * partitions
    )
    return a_stage_sample(
        level=stage.level,
        num_tasks=num_tasks,
        rows=rows,
        task_mean_s=factor * task_s,
        outside_run_s=part_s,
        span_s=factor * task_s * max(num_tasks / 2, 1.0),
        run_s=1.0,
        cpu_s=1.0,
    )


def seen_error(job: JobProfile, asked: ObservedSetting, num_draws: int = 60) -> float:
    """How far fitted durations lie from the true one, over many draws of all runs."""
    rng = np.random.default_rng(7)
    true_s = duration_s(DRIVER_S, job.stages, asked)
    logs = []
    for _ in range(num_draws):
        parts_s = [max(rng.normal(fixed_s, PARTS_SD_S), 0.0) for fixed_s in FIXED_S]
        fit = fit_duration([drawn(one, job, parts_s, rng) for one in job.settings])
        driver_s = sum(phase.mean_s for phase in fit.driver_phases)
        logs.append(np.log(duration_s(driver_s, fit.stages, asked) / true_s))
    return float(np.sqrt(np.mean(np.square(logs))))


def duration_s(driver_s: float, stages: Sequence[StageProfile], asked: ObservedSetting) -> float:
    size = asked.configuration.num_slots, asked.configuration.shuffle_partitions
    spans = level_spans(stages, *size)
    return float(DurationModel(driver_s, spans).mean_s(asked.rows_per_batch_low))


@cache
def predicted_and_seen(
    settings: tuple[ObservedSetting, ...], asked: ObservedSetting
) -> tuple[float, float]:
    job = replace(the_job(), settings=settings)
    shares = Shares.of(job, asked.configuration, asked.rows_per_batch_low)
    predicted = FitError(profile=job, settings=settings).ratio(shares)
    return predicted, seen_error(job, asked)


SMALL = a_setting(8_000, trigger_s=0.0)
SMALL_ASKED, LARGE_ASKED, MANY_ASKED = (
    a_setting(5_000), a_setting(120_000), a_setting(40_000, 8),
)  # fmt: skip


@pytest.mark.parametrize("asked", first_of([MANY_ASKED, SMALL_ASKED, LARGE_ASKED], 1))
@pytest.mark.parametrize("more", [(), (SMALL, SMALL), (a_setting(40_000, 8), a_setting(40_000, 8))])
def test_the_error_of_a_fit_is_predicted_before_it_is_made(
    asked: ObservedSetting, more: tuple[ObservedSetting, ...]
) -> None:
    predicted, seen = predicted_and_seen((*the_job().settings, *more), asked)
    assert predicted == pytest.approx(seen, rel=0.3, abs=0.01)


def test_a_run_as_named_narrows_as_much_as_predicted_and_more_than_others_of_its_cost() -> None:
    job = the_job()
    question = SettingLatency(
        configuration=replace(job.settings[0].configuration, trigger_s=0.0),
        arrivals=Arrivals(rate_per_s=20_000.0),
    )
    named = advised_runs(job, question)[0]
    assert named.configuration.trigger_s == 0.0
    assert named.narrowing is not None
    others = (a_setting(90_000), a_setting(60_000, 8), a_setting(150_000))
    rows = round(named.num_rows)
    as_named = a_setting(rows, named.configuration.shuffle_partitions, 0.0)
    asked = a_setting(6_000)
    before = predicted_and_seen(job.settings, asked)[1]
    after = {
        one.rows_per_batch_low: predicted_and_seen((*job.settings, one, one), asked)[1]
        for one in (as_named, *others)
    }
    predicted = named.narrowing.error_after_ratio / named.narrowing.error_now_ratio
    assert after[float(rows)] / before == pytest.approx(predicted, rel=0.35)
    assert after[float(rows)] < 0.8 * min(
        error for of_rows, error in after.items() if of_rows != float(rows)
    )
