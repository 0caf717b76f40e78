"""What the runs of an exploration showed, and how far the answer is narrowed."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from headway.api.profile import reading
from headway.domain import JobProfile, ObservedSetting, StreamAnswer
from headway.domain.log_questions import LogsQuestion
from headway.errors import EventLogError
from headway.models.job.predict import predict
from headway.profiler.streaming.backtest import observed_latency
from headway.profiler.streaming.job_runs import runs_of_job
from headway.report.advice import asked_interval


def measured_p99_s(recording: Path, query_id: str) -> float | None:
    """The p99 of the tuple latency in a run [s]; None if no two of its batches are consecutive."""
    try:
        with reading([recording], LogsQuestion(engine="in-process")) as logs_read:
            runs = runs_of_job(logs_read.collected, logs_read.logs, (query_id,)).runs
            return observed_latency(runs[0]).p99_s
    except EventLogError:
        return None


def predicted_p99_s(job_profile: JobProfile, observed: ObservedSetting) -> float | None:
    """What a profile predicts for a run that it does not contain [s]; None if nothing."""
    arrivals = replace(job_profile.arrivals, rate_per_s=observed.rate_per_s)
    prediction = predict(
        job_profile, observed.configuration, arrivals, jvm_age_s=observed.jvm_age_s
    )
    return None if prediction.tuple_latency is None else prediction.tuple_latency.p99_s


def width_ratio(answer: StreamAnswer) -> float:
    """Half the 90% interval of the latency in question over its middle; inf if none is quoted."""
    _, interval = asked_interval(answer)
    if interval is None or interval.is_open:
        return math.inf
    return (interval.high - interval.low) / (interval.high + interval.low)
