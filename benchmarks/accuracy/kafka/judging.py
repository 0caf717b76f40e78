"""Runs predicted from profiles of other runs, all from one event log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from read_logs import LogsOfRuns

from headway.domain import Arrivals, Configuration, JobProfile, LatencyDistribution, Prediction
from headway.errors import HeadwayError
from headway.models.job.predict import predict
from headway.models.job.setting import duration_model
from headway.planner.recovery import Pace, limited_recovery_s, recovery_s
from headway.words import all_words
from kafka.cases import Job, Mode
from kafka.runs import Record

if TYPE_CHECKING:
    pass

# Written after the batch has begun to commit, or before it starts: with asynchronous progress
# another thread does both.
_ASYNCHRONOUS_PHASES = ("wal_commit", "commit_offsets")


def judge(records: Sequence[Record], log: LogsOfRuns, cores: int) -> list[Record]:
    """The records with predictions, and with what the profiler finds in each run."""
    profiles = {
        job: log.profile([run["name"] for run in records if _is_fitted(run, job)])
        for job in (Job.TRANSFORM, Job.COUNT)
    }
    return [
        run
        if "failed" in run
        else {
            **run,
            "profiled": _profiled(log, run["name"]),
            "predicted": _predicted(profiles[Job(run["case"]["job"])], run, log, cores),
        }
        for run in records
    ]


def _is_fitted(run: Record, job: Job) -> bool:
    return bool(run["case"]["is_fitted"]) and run["case"]["job"] == job and "failed" not in run


def _profiled(log: LogsOfRuns, name: str) -> Record:
    """What the profiler finds in one run alone: trigger, partitions, arrivals, lag."""
    try:
        profile = log.profile([name])
    except HeadwayError as error:
        return {"error": str(error)}
    observed = profile.observed_arrivals
    assert observed is not None
    setting = profile.settings[-1]
    return {
        "trigger_s": setting.configuration.trigger_s,
        "rate_per_s": setting.rate_per_s,
        "source_partitions": profile.source_partitions,
        "state_partitions": profile.state_partitions,
        "counted": observed.counted,
        "lag_p95_rows": observed.lag_p95_rows,
        "lag_max_rows": observed.lag_max_rows,
        "largest_partition_share": observed.largest_partition_share,
        "dispersion_ratio": profile.arrivals.dispersion_ratio,
        "source": profile.shape.sources[0],
        "notes": list(profile.notes),
    }


def _predicted(fitted: JobProfile, run: Record, log: LogsOfRuns, cores: int) -> Record:
    case = run["case"]
    profile = _on_partitions(fitted, case["partitions"])
    configuration = Configuration(
        executors=1,
        cores_per_executor=cores,
        shuffle_partitions=run["shuffle_partitions"],
        trigger_s=case["trigger_s"],
        max_offsets_per_trigger=case["max_offsets"],
    )
    arrivals = Arrivals(
        rate_per_s=case["rate_per_s"], dispersion_ratio=profile.arrivals.dispersion_ratio
    )
    # The middle of a run of some 20 s.
    age_s = datetime.fromisoformat(run["started"]).timestamp() + 15.0 - log.jvm_starts_s[0]
    record = {
        **_figures(predict(profile, configuration, arrivals)),
        "at_age": _figures(predict(profile, configuration, arrivals, jvm_age_s=age_s)),
    }
    if case["mode"] == Mode.ASYNC_PROGRESS:
        left = tuple(
            phase for phase in profile.driver_phases if phase.name not in _ASYNCHRONOUS_PHASES
        )
        without = replace(profile, driver_phases=left)
        record["without_logs"] = _figures(predict(without, configuration, arrivals))
    if case["mode"] == Mode.OUTAGE:
        record["recovery"] = _recovery(profile, configuration, arrivals, run)
    return record


def _on_partitions(profile: JobProfile, partitions: int) -> JobProfile:
    """The job on a topic with this number of partitions, which is the number of reading tasks."""
    return replace(
        profile,
        stages=tuple(
            replace(stage, num_source_tasks=partitions) if stage.tasks_rule == "source" else stage
            for stage in profile.stages
        ),
    )


def _recovery(
    profile: JobProfile, configuration: Configuration, arrivals: Arrivals, run: Record
) -> Record:
    """Recovery time by theory.md (P8), as the planner computes it, without its margin."""
    pace = Pace(
        model=duration_model(profile, *configuration.size),
        rate_per_s=arrivals.rate_per_s,
        trigger_s=configuration.trigger_s,
    )
    piled_up_s, limit = run["recovery"]["piled_up_s"], configuration.max_offsets_per_trigger
    if limit is None:
        time_s = float(recovery_s(pace, piled_up_s))
    else:
        time_s = limited_recovery_s(pace, piled_up_s, float(limit))
    return {"time_s": time_s}


def _figures(prediction: Prediction) -> Record:
    return {
        "stable": prediction.is_quotable,
        "calibrated": prediction.calibrated,
        "warnings": list(all_words(prediction.findings)),
        "tuple_latency_s": _distribution(prediction.tuple_latency),
        "batch_duration_s": _distribution(prediction.batch_duration),
    }


def _distribution(law: LatencyDistribution | None) -> Record | None:
    if law is None:
        return None
    figures: Record = {"mean": law.mean_s, "p50": law.p50_s, "p95": law.p95_s, "p99": law.p99_s}
    for name, interval in (("mean", law.interval90_mean_s), ("p99", law.interval90_p99_s)):
        if interval is not None:
            figures[f"interval90_{name}"] = [interval.low, interval.high]
    return figures
