"""What is predicted of a run of a campaign, promised of it, and what its errors are made of."""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import replace
from typing import Any

from campaign.figures import LONGEST, is_backlog
from campaign.parts import at_factor, latency_given_duration, longest_window_s, parts_of
from campaign.reading import MeasuredGroup
from campaign.reliability import outcomes_of
from campaign.schedule import Setting
from headway.domain import (
    Arrivals,
    Configuration,
    FindingCode,
    Interval,
    JobProfile,
    LatencyDistribution,
    Prediction,
)
from headway.models.job.predict import predict
from headway.models.job.setting import duration_model

Row = dict[str, Any]
_ABOUT_LOAD = (FindingCode.TOO_CLOSE_TO_SATURATION, FindingCode.MOSTLY_OVERRUNS)


def age_as_said_s(jvm_age_s: float) -> float:
    """The age of a JVM as a user could tell it before the run: to the nearest doubling."""
    return 60.0 * 2.0 ** round(math.log2(jvm_age_s / 60.0))


def configuration_of(measured: MeasuredGroup, row: Row) -> Configuration:
    """The setting of a run, on the slots of its group."""
    setting = row["setting"]
    return Configuration(
        executors=1,
        cores_per_executor=measured.group.num_slots,
        shuffle_partitions=setting["partitions"],
        trigger_s=setting["trigger_s"],
        max_offsets_per_trigger=row["max_rows"],
    )


def arrivals_of(profile: JobProfile, row: Row, *, is_even: bool) -> Arrivals:
    """What arrives in the run asked about is known: evenly, unless bursts belong to the job.

    Random bulks of some seconds come to more or less than their rate: what came, where it shows.
    """
    rate_per_s, truth = row["rate_per_s"], row["truth"]
    if is_even:
        return Arrivals(rate_per_s=rate_per_s, dispersion_ratio=0.0)
    seen_per_s = truth["rows_per_s"] if truth["kept_up"] else rate_per_s
    dispersion_ratio = profile.arrivals.dispersion_ratio
    return Arrivals(rate_per_s=seen_per_s, dispersion_ratio=dispersion_ratio)


def predicted_of(
    profile: JobProfile,
    measured: MeasuredGroup,
    row: Row,
    arrivals: Arrivals,
    slower: float | None,
) -> Row:
    """What is predicted of a run; ``slower`` is how much slower the machine was beside it."""
    configuration = configuration_of(measured, row)
    age_s = age_as_said_s(measured.jvm_age_s(row))
    factor, aged = profile.age_factor(age_s), profile.at_age(age_s)
    if is_backlog(row):
        return worked_off(aged, configuration, row, factor)
    said = predict(profile, configuration, arrivals, jvm_age_s=age_s)
    asked = replace(aged, arrivals=arrivals)
    return {
        "stable": said.stable,
        "calibrated": said.calibrated,
        "near_saturation": any(one.code in _ABOUT_LOAD for one in said.findings),
        "sustainable_rate_per_s": said.sustainable_rate_per_s,
        "latency": _as_row(said.tuple_latency),
        "duration": _as_row(said.batch_duration),
        "windows": _windows(said, aged, configuration, row, factor),
        "at_speed": None if slower is None else at_factor(asked, configuration, factor * slower),
        "run_to_run_ratio": profile.noise.run_to_run_ratio,
        "jvm_age_s": age_s,
    }


def worked_off(profile: JobProfile, configuration: Configuration, row: Row, factor: float) -> Row:
    """Batch after batch of a backlog, each with the state that the rows before it leave.

    A state that grows keeps all of them, a join those within its retention at the rate at which
    they arrived; any other state is as large as it was profiled.
    """
    setting, rows = Setting(**row["setting"]), float(row["max_rows"])
    slots, partitions = configuration.size
    until_s = setting.warm_s + setting.measured_s(row["role"])
    passed_s, durations_s = 0.0, list[float]()
    for num_before in itertools.count():
        at_its_state = _with_rows_of_backlog(profile, row, num_before)
        duration_s = factor * float(duration_model(at_its_state, slots, partitions).mean_s(rows))
        if passed_s >= setting.warm_s:
            durations_s.append(duration_s)
        passed_s += duration_s
        if passed_s >= until_s and durations_s:
            break
    mean_s = statistics.fmean(durations_s)
    return {"rows_per_s": rows / mean_s, "duration_mean": mean_s}


def _with_rows_of_backlog(profile: JobProfile, row: Row, num_before: int) -> JobProfile:
    """The job in the batch that comes after so many batches of a backlog."""
    state, rows = profile.state, float(row["max_rows"])
    if state is None:
        return profile
    if profile.shape.keeps_rows:
        profiled_per_s = profile.settings[-1].rate_per_s
        most_rows = profile.num_held_rows * row["rate_per_s"] / profiled_per_s
        held_rows = min(rows * num_before, most_rows) + (state.updated_rows or 0.0)
    elif profile.state_growth_per_s > 0:
        held_rows = rows * (num_before + 1) * state.growth_per_s / profile.settings[-1].rate_per_s
    else:
        return profile
    return replace(profile, state=replace(state, rows=round(held_rows)))


def promises_of(
    profile: JobProfile, measured: MeasuredGroup, row: Row, arrivals: Arrivals
) -> list[list[float]] | None:
    """Random promises about a run, each with its probability and whether it was kept; (P23)."""
    if is_backlog(row):
        return None
    configuration = configuration_of(measured, row)
    age_s = age_as_said_s(measured.jvm_age_s(row))
    said = predict(profile, configuration, arrivals, jvm_age_s=age_s).tuple_latency
    if said is None:
        return None
    aged = profile.at_age(age_s)
    found = outcomes_of(aged, configuration, arrivals, said, row["truth"]["latency"], row["name"])
    return [[one.probability, float(one.kept)] for one in found]


def errors_by_part(
    profile: JobProfile, measured: MeasuredGroup, row: Row, arrivals: Arrivals
) -> Row | None:
    """Where the error of a run comes from; None where too few of its batches are on record."""
    run = measured.run_of(row)
    if run is None or row["setting"]["backlog"]:
        return None
    age_s = measured.jvm_age_s(row)
    factor = profile.age_factor(age_s)
    # A state that follows the rate has the size that it has at this one.
    aged = replace(profile.at_age(age_s), arrivals=arrivals)
    parts = parts_of(aged, run, row["truth"]["from_s"], factor)
    if parts is None:
        return None
    duration_s = row["truth"]["duration"]["mean"]
    given = latency_given_duration(aged, run, arrivals, duration_s)
    return {**parts, "latency_given_duration": given}


def _as_row(predicted: LatencyDistribution | None) -> Row | None:
    if predicted is None:
        return None
    return {
        "mean": predicted.mean_s,
        "p50": predicted.p50_s,
        "p95": predicted.p95_s,
        "p99": predicted.p99_s,
        "mean90": _ends(predicted.interval90_mean_s),
        "p99_90": _ends(predicted.interval90_p99_s),
    }


def _windows(
    said: Prediction, profile: JobProfile, configuration: Configuration, row: Row, factor: float
) -> Row | None:
    """What is said of windows, and of the longest of as many as there were."""
    predicted, seen = _as_row(said.window_latency), row["truth"]["windows"]
    if predicted is None or seen is None:
        return predicted
    asked = replace(profile, arrivals=said.arrivals)
    return {**predicted, LONGEST: longest_window_s(asked, configuration, seen["count"], factor)}


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]
