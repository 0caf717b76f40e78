"""A job whose batches take some parts less: phases of the driver, and tasks of stages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from headway.domain import Z90, DriverPhase, JobProfile, StageProfile

#: What a batch takes less [s], or more where it is negative: phases of the driver by name, and of
#: each task of the stages, by their indices.
TimesSaved: TypeAlias = tuple[Mapping[str, float], Mapping[int, float]]


class TurnedJob(NamedTuple):
    """A job with a switch turned: as expected, and with the least and the most gain of 90%."""

    expected: JobProfile
    least: JobProfile
    most: JobProfile


def turned_job(
    profile: JobProfile, expected: TimesSaved, least: TimesSaved, most: TimesSaved
) -> TurnedJob:
    """The job with times saved as expected, and at both ends of the 90% interval.

    **(Y1)** Interval of a gain: what the log leaves open is a range from `g_l` to `g_h`, which is
    widened by the noise between runs: `g_l e^(-1.645 s)` and `g_h e^(1.645 s)`, with `s = s_r` of
    (E5). Where a saved time is negative, the ends change places. No part becomes shorter than 0.

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> saved = {"wal_commit": 0.004}, {1: 0.01}
    >>> turned = turned_job(profile, saved, saved, saved)
    >>> [round(job.stages[1].task_fixed_s, 4) for job in (profile, *turned)]
    [0.0231, 0.0131, 0.0153, 0.0102]
    """
    wider = math.exp(Z90 * profile.noise.run_to_run_ratio)
    return TurnedJob(
        with_times_saved(profile, expected),
        with_times_saved(profile, least, 1.0 / wider),
        with_times_saved(profile, most, wider),
    )


def _at_end(saved_s: float, gain_ratio: float) -> float:
    """A saved time at an end of its interval; of a time that is added, the other end is worse."""
    return saved_s * gain_ratio if saved_s >= 0.0 else saved_s / gain_ratio


def with_times_saved(profile: JobProfile, saved: TimesSaved, gain_ratio: float = 1.0) -> JobProfile:
    """The job whose batches take some parts less; no part becomes shorter than 0 (Y1).

    Of a task the fixed time is saved, and where that is not enough, that of its rows.

    Parameters
    ----------
    gain_ratio : float, > 0, multiplier of what is gained

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> with_times_saved(profile, ({}, {})) == profile
    True
    """
    phases_s, tasks_s = saved
    return replace(
        profile,
        driver_phases=tuple(
            _shorter_phase(phase, _at_end(phases_s.get(phase.name, 0.0), gain_ratio))
            for phase in profile.driver_phases
        ),
        stages=tuple(
            _with_shorter_tasks(profile, stage, _at_end(tasks_s.get(index, 0.0), gain_ratio))
            for index, stage in enumerate(profile.stages)
        ),
    )


def _shorter_phase(phase: DriverPhase, saved_s: float) -> DriverPhase:
    mean_s = max(phase.mean_s - saved_s, 0.0)
    ratio = mean_s / phase.mean_s if phase.mean_s else 1.0
    return replace(phase, mean_s=mean_s, sd_s=min(ratio, 1.0) * phase.sd_s)


def _with_shorter_tasks(profile: JobProfile, stage: StageProfile, saved_s: float) -> StageProfile:
    fixed_s = max(stage.task_fixed_s - saved_s, 0.0)
    more_s = saved_s - (stage.task_fixed_s - fixed_s)
    rows = task_rows(profile, stage)
    per_row_s = stage.task_per_row_s
    if more_s > 0.0 and rows > 0.0:
        per_row_s = max(per_row_s - more_s / rows, 0.0)
    return replace(stage, task_fixed_s=fixed_s, task_per_row_s=per_row_s)


def task_rows(profile: JobProfile, stage: StageProfile) -> float:
    """Rows of a task of a stage in the last profiled run, on average (T2).

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> task_rows(profile, profile.stages[0]) > 0.0
    True
    """
    last = profile.settings[-1]
    batch_rows = last.rows_per_batch_middle
    return stage.rows.rows(batch_rows) / stage.num_tasks(last.configuration.shuffle_partitions)
