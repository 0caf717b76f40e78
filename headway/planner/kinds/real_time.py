"""Real-Time Mode: latency of a profiled query at a setting, and what Spark does not run there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from headway.assumptions.real_time import (
    GAP_RATIOS,
    PATH_RATIOS,
    ROW_CV,
    SHORTEST_BATCH_S,
    STATEFUL_GAP_S,
    STATELESS_GAP_S,
)
from headway.assumptions.resources import SHUFFLE_MAX_WAIT_S
from headway.domain import (
    CatchUp,
    Interval,
    JobProfile,
    LatencyDistribution,
    Metric,
    Promise,
    StageProfile,
    Target,
)
from headway.domain.prediction import QUOTED_PROBABILITIES
from headway.domain.real_time import RealTimePrediction, RealTimeSetting
from headway.errors import InputError, argument
from headway.models.job.calibration import of_runs_and_fit
from headway.models.real_time.latency import RealTimeLatency, gap_probability, real_time_latency
from headway.models.real_time.stages import (
    RealTimeStage,
    required_slots,
    shuffle_wait_limit_s,
    sustainable_rate_per_s,
)
from headway.units import format_duration

_LEAST_ROW_S = 1e-9  # of a stage whose rows cost too little to be measured
_Z90 = 1.6448536
_FIRST_SPARK, _FIRST_SPARK_WITH_STATE = (4, 1), (4, 3)
# Spark 4.3.0, RealTimeModeAllowlist, as progress and plans name them.
_STATE_OPERATORS = frozenset({"statestoresave", "dedupe", "transformwithstateexec"})
_SINKS = re.compile(r"kafka|foreachwriter|console|memory", re.IGNORECASE)
_MODE = "STREAMING_REAL_TIME_MODE"


def stages_of(
    profile: JobProfile, source_partitions: int, shuffle_partitions: int, factor: float = 1.0
) -> list[RealTimeStage]:
    """The stages of a profiled query, as they run in Real-Time Mode.

    **(N9)** From a profile of micro-batches: a stage has one task per source partition or shuffle
    partition. A row takes its `t_1` of (T2), lognormal with a coefficient of variation of 1, since
    tasks only show the mean of many rows. The rows that enter a stage are those of the smallest
    profiled batch, or, if batches combine rows, those that enter the stage before: nothing is
    combined row by row, and a stage that both multiplies and combines rows counts as passing each
    row on once. The busiest task has the share of the busiest partition, or that of the hottest key
    plus its share of the other rows. Rows arrive one by one, Poisson. Each takes 2 ms more from the
    source and to the sink, which is not work of a task. Intervals are for gaps of 0.49 and of 2.2
    times the usual one, with all rows `e^(-1.645 s)` and `e^(1.645 s)` times as long, `s` of (P2)
    without doublings; a latency at a confidence level has its own quantile of the latter.
    """
    stages: list[RealTimeStage] = []
    rows_ratio, fewest = 1.0, max(profile.rows_per_batch_range[0], 1.0)
    for stage in profile.stages:
        passed_ratio = stage.rows.stream_rows(fewest) / fewest
        if not stage.is_static:
            rows_ratio = max(min(rows_ratio, stage.rows.scale), passed_ratio)
        num_tasks = source_partitions if stage.reads_source else stage.num_tasks(shuffle_partitions)
        stages.append(
            RealTimeStage(
                num_tasks=num_tasks,
                row_s=max(factor * stage.task_per_row_s, _LEAST_ROW_S),
                row_cv=ROW_CV.value,
                rows_ratio=max(passed_ratio if stage.is_static else rows_ratio, _LEAST_ROW_S),
                largest_share=_largest_share(profile, stage, num_tasks),
            )
        )
    return stages


def predicted(
    profile: JobProfile, setting: RealTimeSetting, rate_per_s: float, path_s: float
) -> RealTimePrediction:
    """Prediction for a setting, which must have enough slots: theory.md (N1)-(N9)."""
    latency_with = partial(latency_at, profile, setting, rate_per_s)
    latency = latency_with()
    gap_s, busy = gap_of(profile), latency.utilization_ratio
    stages = stages_of(profile, setting.source_partitions, setting.shuffle_partitions)
    names = [stage.name for stage in profile.stages]
    highest, tuple_latency = max(busy), None
    if latency.is_stable:
        factor, (low_gap, high_gap) = math.exp(_Z90 * spread_of(profile)), GAP_RATIOS.value
        low, high = latency_with(1.0 / factor, low_gap), latency_with(factor, high_gap)
        tuple_latency = _with_interval(path_s, latency, low, high)
    return RealTimePrediction(
        setting=setting,
        rate_per_s=rate_per_s,
        stable=latency.is_stable,
        num_slots_needed=required_slots(stages),
        tuple_latency=tuple_latency,
        path_s=path_s,
        stage_mean_s=dict(zip(names, latency.stage_mean_s, strict=True)),
        gap_mean_s=latency.gap_mean_s,
        gap_s=gap_s,
        gap_share=gap_probability(highest, setting.batch_length_s, gap_s) if highest < 1.0 else 1.0,
        busy_ratio=dict(zip(names, busy, strict=True)),
        stage_work=profile.stage_work,
        sustainable_rate_per_s=sustainable_rate_per_s(
            stages, trigger_s=setting.batch_length_s, gap_s=gap_s
        ),
    )


def gap_of(profile: JobProfile) -> float:
    """Time between two batches in which nothing is read [s]."""
    keeps_state = bool(profile.shape.stateful_operators)
    return STATEFUL_GAP_S.value if keeps_state else STATELESS_GAP_S.value


def latency_at(
    profile: JobProfile,
    setting: RealTimeSetting,
    rate_per_s: float,
    factor: float = 1.0,
    gap_ratio: float = 1.0,
) -> RealTimeLatency:
    """Latency of a query at a setting, with times of rows and gaps multiplied by factors."""
    stages = stages_of(profile, setting.source_partitions, setting.shuffle_partitions, factor)
    return real_time_latency(
        rate_per_s,
        stages,
        trigger_s=setting.batch_length_s,
        gap_s=gap_ratio * gap_of(profile),
        flush_s=_flush_s(profile, stages, rate_per_s),
    )


def _with_interval(
    path_s: float, latency: RealTimeLatency, low: RealTimeLatency, high: RealTimeLatency
) -> LatencyDistribution:
    low_path_s, high_path_s = (ratio * path_s for ratio in PATH_RATIOS.value)
    distribution = LatencyDistribution.of(
        path_s + latency.mean_s, path_s + latency.quantile_s(np.array(QUOTED_PROBABILITIES))
    )
    p99 = QUOTED_PROBABILITIES[-1]
    return replace(
        distribution,
        interval90_mean_s=Interval(low=low_path_s + low.mean_s, high=high_path_s + high.mean_s),
        interval90_p99_s=Interval(
            low=low_path_s + float(low.quantile_s(p99)),
            high=high_path_s + float(high.quantile_s(p99)),
        ),
    )


def spread_of(profile: JobProfile) -> float:
    return of_runs_and_fit(profile.noise.run_to_run_ratio, len(profile.settings))


def _largest_share(profile: JobProfile, stage: StageProfile, num_tasks: int) -> float | None:
    """Share of the busiest task, if it is more than an even share."""
    even_share = 1.0 / num_tasks
    if stage.num_source_tasks is None:
        share = stage.hot_share_ratio + (1.0 - stage.hot_share_ratio) * even_share
    else:
        arrivals = profile.observed_arrivals
        partition_share = None if arrivals is None else arrivals.largest_partition_share
        share = (
            partition_share
            if partition_share is not None and num_tasks == stage.num_source_tasks
            else even_share
        )
    return share if share > even_share else None


def _flush_s(profile: JobProfile, stages: Sequence[RealTimeStage], rate_per_s: float) -> float:
    """Time until the slowest buffer between two tasks is full (N5) [s]."""
    wait_limits_s = [
        shuffle_wait_limit_s(
            rate_per_s * after.rows_ratio / (before.num_tasks * after.num_tasks), row_bytes
        )
        for before, after, stage in zip(stages[:-1], stages[1:], profile.stages[1:], strict=True)
        if stage.observed is not None
        and (row_bytes := stage.observed.shuffle_read_bytes_per_row) > 0.0
    ]
    if len(wait_limits_s) < len(stages) - 1:
        return SHUFFLE_MAX_WAIT_S.value
    return max(wait_limits_s, default=SHUFFLE_MAX_WAIT_S.value)


def require_real_time(profile: JobProfile, target: Target | None = None) -> None:
    """Reject a query that Spark rejects in Real-Time Mode, or that is not modelled there."""
    why = next(iter((*_of_target(target), *_of_profile(profile), *_of_query(profile))), None)
    if why is not None:
        raise InputError(why)


def require_batch_length(batch_length_s: float) -> None:
    """Reject a batch length that is too short for Spark."""
    least_s = SHORTEST_BATCH_S.value
    if batch_length_s < least_s:
        raise InputError(
            f"a batch length of {format_duration(batch_length_s)} is too short in Real-Time Mode; "
            f"expected {argument('trigger')} of {format_duration(least_s)} or more (Spark: "
            "INVALID_STREAMING_REAL_TIME_MODE_TRIGGER_INTERVAL)"
        )


def require_promises(promises: list[Promise]) -> list[CatchUp]:
    """The further targets, of which those about the time after an outage can be planned for."""
    catch_ups = []
    for promise in promises:
        if not isinstance(promise, CatchUp) or promise.outage_s is None:
            raise InputError(
                f"target '{promise}': in Real-Time Mode one latency of rows is planned, e.g. "
                "'p99 <= 300ms', and at most 'catch_up <= 5m after 1m' beside it"
            )
        catch_ups.append(promise)
    return catch_ups


def _of_target(target: Target | None) -> Iterator[str]:
    if target is not None and target.metric is not Metric.TUPLE:
        yield (
            f"target '{target}': in Real-Time Mode the latency of rows is planned, e.g. "
            "'p99 <= 300ms'"
        )


def _of_profile(profile: JobProfile) -> Iterator[str]:
    if profile.declared is not None:
        yield (
            "the costs of this job were declared; for Real-Time Mode profile a log of it in "
            "micro-batches"
        )
    levels = [stage.level for stage in profile.stages]
    if len(set(levels)) < len(levels):
        yield (
            "queries whose stages run side by side, as with several sources, are not modelled in "
            "Real-Time Mode"
        )
    if profile.stages[0].num_source_tasks is None:
        yield (
            "the first stage of the profile does not read a source, as Real-Time Mode needs; "
            "profile the query anew"
        )


def _of_query(profile: JobProfile) -> Iterator[str]:
    shape, spark = profile.shape, profile.application.spark_version
    version = tuple(int(part) for part in re.findall(r"\d+", spark)[:2])
    if version < _FIRST_SPARK:
        yield (
            f"Real-Time Mode needs Spark 4.1 or later, and the profile is of {spark}; profile the "
            "query there"
        )
    if shape.stateful_operators and version < _FIRST_SPARK_WITH_STATE:
        yield (
            f"state needs Spark 4.3 or later in Real-Time Mode, and the profile is of {spark}; "
            "profile it there"
        )
    for source in shape.sources:
        if "kafka" not in source.lower():
            yield (
                f"source {source}: expected Kafka in Real-Time Mode "
                f"(Spark: {_MODE}.INPUT_STREAM_NOT_SUPPORTED)"
            )
    if not _SINKS.search(shape.sink):
        yield (
            f"sink {shape.sink}: expected Kafka, foreach, console or memory in Real-Time Mode "
            f"(Spark: {_MODE}.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST)"
        )
    if shape.output_mode not in (None, "update"):
        yield (
            f"output mode {shape.output_mode}: expected update in Real-Time Mode "
            f"(Spark: {_MODE}.OUTPUT_MODE_NOT_SUPPORTED)"
        )
    refused = [
        *(
            operator
            for operator in shape.stateful_operators
            if operator.lower() not in _STATE_OPERATORS
        ),
        *(join for join in shape.joins if not join.startswith("BroadcastHashJoin")),
        *shape.python_operators,
    ]
    for name in refused:
        yield (
            f"operator {name}: expected only projections, filters, aggregates, dropDuplicates, "
            "transformWithState and joins with a broadcast table in Real-Time Mode "
            f"(Spark: {_MODE}.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST)"
        )
