"""Whether a target is met in the first minutes after a start, while the JVM is young."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from headway.assumptions.planning import MINUTES_AFTER_START, SAME_AFTER_START_RATIO
from headway.domain import AfterStart, Configuration, JobProfile, Metric, Target
from headway.errors import InputError, argument
from headway.models.arrays import Array
from headway.models.batches.intervals import grid_point_after
from headway.models.job.restart import restart_at, start_again
from headway.models.laws.distributions import uniform_mixture_quantile
from headway.planner.candidates import Candidates
from headway.planner.recovery import Pace

_MINUTE_S = 60.0
_MOST_BATCHES = 3000


def for_fresh_jvm(profile: JobProfile) -> JobProfile:
    """The job with all batches as long as those of a fresh JVM, except for its first batch (P20).

    Raises InputError if the profile does not contain the batch durations of a fresh JVM.
    """
    warm_up = profile.warm_up
    if warm_up is None:
        raise InputError(f"{argument('from_start')}: {_why_unavailable(profile)}")
    ratio = _slower_ratio(profile, warm_up.start_age_s)
    return replace(
        profile,
        driver_phases=tuple(
            replace(phase, mean_s=ratio * phase.mean_s, sd_s=ratio * phase.sd_s)
            for phase in profile.driver_phases
        ),
        stages=tuple(stage.with_task_times(ratio) for stage in profile.stages),
        # No batch after the first is slower than that.
        drift=replace(profile.drift, exponent=0.0, driver_exponent=0.0),
        warm_up=replace(warm_up, points=()),
    )


def after_start(setting: Candidates, configuration: Configuration, planned_s: float) -> AfterStart:
    """Minute from which a planned setting meets its target, and the values before that.

    ``setting`` is the chosen one on its own, and ``configuration`` is the same with its rate limit;
    ``planned_s`` is the planned value of the target's statistic once the JVM is warm. [s]

    **(P20)** After a restart, batches are followed one by one at an even rate; the first has the
    rows of a usual interval. Each takes `f max(w(age), 1) D(n)`, with `f` of (P4) and `w` of (E30),
    and the first takes longer by `f` times the recorded excess of a first batch and the loading of
    its state (Z2). Batches start as in (B2), with the rate limit if there is one. For each minute,
    the target's statistic is computed over the rows of the batches that start in it, without noise.
    Its excess over that of the steady batch is added to the planned latency, and with `f = 1` to
    the expected one. The target is met from the minute after the last one that misses it at `f`.
    Rows that accumulated while the query was down are not counted; they are subject to a separate
    target (P8). If no fresh JVM is recorded, this is unavailable. `--from-start` plans with all
    durations multiplied by `w` at the age of the first batch.
    """
    question = setting.question
    profile, target = question.profile, question.target
    if profile.warm_up is None:
        return AfterStart(evidence="unavailable", reason=_why_unavailable(profile))
    factor = float(setting.planned_ratio(question.rate_per_s)[0])
    expected_s = float(setting.promised().statistic_s(setting.expected_law(question.rate_per_s))[0])
    first_batch_s, by_minute_s = _minutes(setting, configuration, factor, planned_s)
    _, expected_by_minute_s = _minutes(setting, configuration, 1.0, expected_s)
    limit_s = target.limit_s
    missed = [minute for minute, value_s in enumerate(by_minute_s, start=1) if value_s > limit_s]
    holds_from = max(missed, default=0) + 1
    return AfterStart(
        evidence="measured",
        reason="from the first batches of a fresh JVM in the profile",
        holds_from_minute=holds_from if holds_from <= len(by_minute_s) else None,
        by_minute_s=tuple(_shown_minutes(by_minute_s, planned_s, holds_from)),
        expected_first_minute_s=expected_by_minute_s[0],
        first_batch_s=first_batch_s,
        restart=restart_at(profile, configuration, factor),
    )


def _minutes(
    setting: Candidates, configuration: Configuration, factor: float, warm_s: float
) -> tuple[float, list[float]]:
    """The first batch, and the target's statistic in each minute, finally ``warm_s`` [s]."""
    target, pace = setting.question.target, Pace.of(setting.question.profile, configuration, factor)
    batches = _simulated_batches(setting.question.profile, configuration, pace)
    unseen_s = factor * setting.promised().after_commit_s
    duration_s, most_wait_s = pace.duration_s(pace.usual_rows), pace.usual_rows / pace.rate_per_s
    steady_s = _statistic_s(target, np.array([[0.0, duration_s, 0.0, most_wait_s]]), unseen_s)
    return float(batches[0, 1]), [
        warm_s + max(_statistic_s(target, minute_batches, unseen_s) - steady_s, 0.0)
        for minute_batches in _by_minute(batches)
    ]


def _by_minute(batches: Array) -> Iterator[Array]:
    """The batches that start in each minute; if none does, the running one."""
    start_s, duration_s = batches[:, 0], batches[:, 1]
    first_s = float(start_s[0])
    end_s = min(start_s[-1] + duration_s[-1], first_s + MINUTES_AFTER_START.value * _MINUTE_S)
    for minute in range(math.ceil((end_s - first_s) / _MINUTE_S)):
        begin_s = first_s + minute * _MINUTE_S
        minute_batches = batches[(start_s >= begin_s) & (start_s < begin_s + _MINUTE_S)]
        yield minute_batches if len(minute_batches) else batches[start_s < begin_s][-1:]


def _shown_minutes(by_minute_s: list[float], planned_s: float, holds_from: int) -> list[float]:
    """The minutes up to the one from which the target is met, and those that are still slower."""
    same_s = SAME_AFTER_START_RATIO.value * planned_s
    slower = [minute for minute, value_s in enumerate(by_minute_s, start=1) if value_s > same_s]
    return by_minute_s[: max([holds_from, *slower])]


def _slower_ratio(profile: JobProfile, jvm_age_s: float) -> float:
    """How much longer a batch takes at an age than planned; at least 1."""
    return max(profile.age_factor(jvm_age_s), 1.0)


def _why_unavailable(profile: JobProfile) -> str:
    if profile.declared is not None:
        return "declared costs do not describe a fresh JVM"
    return (
        "the profile has no batches of a fresh JVM; profile a log that begins with the application"
    )


def _simulated_batches(profile: JobProfile, configuration: Configuration, pace: Pace) -> Array:
    """Batches from the first on, at an even rate; the first has the rows of a usual interval.

    A row for each: its start, its duration, and the waits of its last and its first row [s]. What
    accumulated while the query was down is not included: see `catch_up`.
    """
    rate_per_s, trigger_s = profile.arrivals.rate_per_s, configuration.trigger_s
    longest_s = (configuration.max_offsets_per_trigger or math.inf) / rate_per_s
    factor = float(pace.factor)
    warm_up = profile.warm_up
    assert warm_up is not None  # others are not reported
    begun_s, most_wait_s = warm_up.start_age_s, float(pace.usual_rows) / rate_per_s
    # The first batch takes longer than its rows do, and loads its state: (Z2).
    start = start_again(
        profile,
        configuration.size,
        interval_s=float(pace.interval_s(pace.usual_rows)),
        batch_rows=rate_per_s * most_wait_s,
    )
    extra_s = 0.0 if start is None else float(start.longer_s)
    read_until_s = begun_s - most_wait_s
    batches: list[tuple[float, ...]] = []
    end_s = begun_s + MINUTES_AFTER_START.value * _MINUTE_S
    while begun_s < end_s and len(batches) < _MOST_BATCHES:
        until_s = min(begun_s, read_until_s + longest_s)
        mean_s = float(pace.model.mean_s(rate_per_s * (until_s - read_until_s)))
        duration_s = factor * (_slower_ratio(profile, begun_s) * mean_s + extra_s)
        batches.append((begun_s, duration_s, begun_s - until_s, begun_s - read_until_s))
        grid_s = float(grid_point_after(begun_s, trigger_s)) if trigger_s else 0.0
        begun_s, read_until_s, extra_s = max(begun_s + duration_s, grid_s), until_s, 0.0
    return np.array(batches)


def _statistic_s(target: Target, batches: Array, unseen_s: float) -> float:
    """The target's statistic over the rows of some batches, or over the batches [s]."""
    _, duration_s, least_wait_s, most_wait_s = batches.T
    if target.metric is Metric.BATCH:
        if target.quantile is None:
            return float(duration_s.mean())
        return float(np.quantile(duration_s, target.quantile, method="inverted_cdf"))
    low_s, high_s = least_wait_s + duration_s - unseen_s, most_wait_s + duration_s - unseen_s
    if target.quantile is None:
        return float(np.average(0.5 * (low_s + high_s), weights=most_wait_s - least_wait_s))
    return float(
        uniform_mixture_quantile(target.quantile, low_s, high_s, most_wait_s - least_wait_s)
    )
