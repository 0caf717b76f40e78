"""Prediction for a DStreams application at a setting, with 90% intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from headway.assumptions.predictions import CALIBRATED_DOUBLINGS, HIGHEST_QUOTED_UTILIZATION_RATIO
from headway.domain import Z90, Finding, FindingCode, LatencyDistribution
from headway.domain.dstreams import DStreamsPrediction, DStreamsSetting
from headway.domain.prediction import QUOTED_PROBABILITIES, Interval
from headway.models.batches.dstreams import DStreamJobs, DStreamsLatency, busy_time
from headway.models.job.calibration import is_within_reach
from headway.models.laws.distributions import lognormal_cdf, lognormal_quantile
from headway.planner.kinds.dstreams_batches import DStreamsBatches
from headway.sparkconf.reader_limits import BACKPRESSURE_KEY


def predicted(
    batches: DStreamsBatches, setting: DStreamsSetting, load: float
) -> DStreamsPrediction:
    """Prediction for a setting, with 90% intervals."""
    middle = batches.jobs(setting, load)
    low = batches.optimistic.jobs(setting, load, math.exp(-Z90 * batches.spread(setting, load)))
    high = batches.cautious.jobs(setting, load, batches.upper_factor(setting, load, Z90))
    busy = middle.work_s / (setting.concurrent_jobs * setting.batch_interval_s)
    busiest = HIGHEST_QUOTED_UTILIZATION_RATIO.value
    quotable = busy <= busiest
    latency = batches.latency(setting, middle) if quotable else None
    kept_share = float(
        lognormal_cdf(setting.batch_interval_s, busy_time(middle).mean_s, batches.cv)
    )
    reasons = tuple(_reasons(batches, setting, load))
    return DStreamsPrediction(
        setting=setting,
        rate_per_s=batches.rate_at(load),
        stable=busy < 1.0,
        utilization_ratio=min(busy, 1.0),
        offered_load_ratio=busy,
        overrun_probability=1.0 - kept_share,
        calibrated=quotable and not reasons,
        findings=(*reasons, *_findings(batches, setting, load, busy)),
        processing_time=None
        if latency is None
        else _with_ends(*(_processing(batches, jobs) for jobs in (middle, low, high))),
        scheduling_delay=None if latency is None else _delay(batches, latency),
        tuple_latency=None
        if latency is None
        else _with_ends(
            _latency(latency),
            _latency(batches.latency(setting, low)),
            _latency(batches.latency(setting, high)),
        ),
        phases_s={} if latency is None else _phases_s(batches, setting, middle, latency),
        sustainable_rate_per_s=batches.rate_at(batches.highest_load(setting, busiest=busiest)),
    )


def _processing(batches: DStreamsBatches, jobs: DStreamJobs) -> LatencyDistribution:
    mean_s = busy_time(jobs).mean_s
    quantiles = lognormal_quantile(np.array(QUOTED_PROBABILITIES), mean_s, batches.cv)
    return LatencyDistribution.of(mean_s, quantiles)


def _delay(batches: DStreamsBatches, latency: DStreamsLatency) -> LatencyDistribution:
    quantiles = latency.wait.quantile_s(np.array(QUOTED_PROBABILITIES)) + batches.start_s
    return LatencyDistribution.of(latency.wait.mean_s + batches.start_s, quantiles)


def _latency(latency: DStreamsLatency) -> LatencyDistribution:
    quantiles = latency.tuple_quantile_s(np.array(QUOTED_PROBABILITIES))
    return LatencyDistribution.of(latency.tuple_mean_s, quantiles)


def _with_ends(
    middle: LatencyDistribution, low: LatencyDistribution, high: LatencyDistribution
) -> LatencyDistribution:
    return replace(
        middle,
        interval90_mean_s=Interval(low=low.mean_s, high=high.mean_s),
        interval90_p99_s=Interval(low=low.p99_s, high=high.p99_s),
    )


def _phases_s(
    batches: DStreamsBatches, setting: DStreamsSetting, jobs: DStreamJobs, latency: DStreamsLatency
) -> dict[str, float]:
    return {
        "wait for the batch": 0.5 * setting.batch_interval_s + batches.block_s,
        "start of the batch": batches.start_s,
        "wait for earlier batches": latency.wait.mean_s,
        "processing": busy_time(jobs).mean_s,
    }


def _reasons(batches: DStreamsBatches, setting: DStreamsSetting, load: float) -> Iterator[Finding]:
    """Why a setting is outside the profiled range."""
    of_slots, of_rows = batches.doublings(setting, load)
    reach, baseline = CALIBRATED_DOUBLINGS.value, batches.profiled_setting
    if not is_within_reach(of_slots):
        yield Finding(
            code=FindingCode.SLOTS_FAR_OFF,
            numbers={
                "slots": setting.num_slots,
                "least": baseline.num_slots,
                "most": baseline.num_slots,
                "reach_doublings": reach,
            },
        )
    if not is_within_reach(of_rows):
        ratio = load * setting.batch_interval_s / baseline.batch_interval_s
        numbers = {"rows_ratio": ratio, "reach_doublings": reach}
        yield Finding(code=FindingCode.BATCH_SIZE_FAR_OFF, numbers=numbers)
    if setting.concurrent_jobs != baseline.concurrent_jobs:
        yield Finding(
            code=FindingCode.CONCURRENT_JOBS_NOT_PROFILED,
            numbers={
                "concurrent_jobs": setting.concurrent_jobs,
                "profiled_concurrent_jobs": baseline.concurrent_jobs,
            },
        )


def _findings(
    batches: DStreamsBatches, setting: DStreamsSetting, load: float, busy: float
) -> Iterator[Finding]:
    if not math.isclose(load * setting.batch_interval_s, batches.profiled_setting.batch_interval_s):
        yield Finding(code=FindingCode.ROW_COST_UNKNOWN)
    if HIGHEST_QUOTED_UTILIZATION_RATIO.value < busy < 1.0:
        numbers = {"utilization_ratio": busy}
        yield Finding(code=FindingCode.TOO_CLOSE_TO_SATURATION, numbers=numbers)
    if batches.was_behind:
        numbers = {"shortest_delay_s": batches.shortest_delay_s}
        yield Finding(code=FindingCode.BACKLOG_WHEN_PROFILED, numbers=numbers)
    if setting.concurrent_jobs > 1:
        yield Finding(code=FindingCode.BATCHES_MAY_OVERTAKE)
    properties = batches.profile.application.properties
    if properties.get(BACKPRESSURE_KEY) == "true":
        yield Finding(code=FindingCode.BACKPRESSURE_WHEN_PROFILED)
