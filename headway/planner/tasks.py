"""Limits on the number of tasks: partitions of the source, the driver that launches them, and slots
for those of a barrier stage, which start together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.resources import LAUNCHES_PER_S
from headway.domain import JobProfile, ObservedSetting, StageProfile
from headway.models.arrays import Array, Numeric
from headway.models.stages.task_counts import num_tasks_at
from headway.units import counted


def most_launches_per_s(profile: JobProfile) -> float:
    """Tasks per second that a driver can launch: as expected, or as recorded if that is more.

    **(P18)** The driver launches every task. A setting that launches more than 4,500 per second, in
    batches of the planned length, is rejected. Ousterhout et al. (2013) measured 1,500 per second
    for the scheduler of Spark 0.8 and expected two to three times that for later ones. If the
    profiled runs launched more, that is the limit.
    """
    profiled_per_s = (
        _profiled_launches_per_s(profile, setting)
        for setting in profile.settings
        if setting.batch_duration_mean_s > 0.0
    )
    return max(LAUNCHES_PER_S.value, 0.0, *profiled_per_s)


def _profiled_launches_per_s(profile: JobProfile, setting: ObservedSetting) -> float:
    num_slots, partitions = setting.configuration.size
    interval_s = max(setting.configuration.trigger_s, setting.batch_duration_mean_s)
    batch_rows = setting.rate_per_s * interval_s
    return float(launches_per_s(profile, num_slots, partitions, batch_rows, interval_s))


def launches_per_s(
    profile: JobProfile,
    num_slots: int | NDArray[np.int_],
    partitions: int | NDArray[np.int_],
    batch_rows: Numeric,
    interval_s: Numeric,
) -> Array:
    """Tasks that settings launch per second, with a batch in every interval [1/s]: (P18)."""
    tasks = sum(_num_tasks(stage, num_slots, partitions, batch_rows) for stage in profile.stages)
    return np.asarray(tasks / np.maximum(interval_s, 1e-6))


def _num_tasks(
    stage: StageProfile,
    num_slots: int | NDArray[np.int_],
    partitions: int | NDArray[np.int_],
    batch_rows: Numeric,
) -> Array:
    """Tasks of a stage in a batch of each setting."""
    if not stage.tasks_vary:
        of_rule = stage.num_source_tasks
        return np.asarray(partitions if of_rule is None else of_rule, dtype=np.float64)
    columns = np.broadcast_arrays(batch_rows, num_slots, partitions)
    settings = zip(*(column.ravel().tolist() for column in columns), strict=True)
    of_stage = [num_tasks_at(stage, *setting) for setting in settings]
    return np.array(of_stage, dtype=np.float64).reshape(columns[0].shape)


def launch_ratio(
    profile: JobProfile,
    num_slots: NDArray[np.int_],
    partitions: NDArray[np.int_],
    batch_rows: Array,
    interval_s: Array,
) -> Array:
    """Tasks over those that can be launched: by the driver in a second, or at once on slots. [-]"""
    launched_per_s = launches_per_s(profile, num_slots, partitions, batch_rows, interval_s)
    launched = launched_per_s / most_launches_per_s(profile)
    return np.maximum(launched, _barrier_ratio(profile, num_slots, partitions))


def why_no_room(profile: JobProfile, num_slots: int, shuffle_partitions: int) -> str | None:
    """Why the slots have no room for a barrier stage; None if they have, or there is none.

    **(P30)** All tasks of a barrier stage start together. If there are more of them than slots,
    Spark fails the job, so a plan has a slot for each. Tasks whose number follows the rows or the
    slots are left out.
    """
    for stage in _barrier_stages(profile):
        num_tasks, slots = stage.num_tasks(shuffle_partitions), stage.usable_slots(num_slots)
        if num_tasks > slots:
            return (
                f"{stage.called} is a barrier stage, whose {counted(num_tasks, 'task')} start "
                f"together: there {'is' if slots == 1 else 'are'} {counted(slots, 'slot')} for "
                "them, so that Spark would fail the job"
            )
    return None


def _barrier_ratio(
    profile: JobProfile, num_slots: NDArray[np.int_], partitions: NDArray[np.int_]
) -> Array:
    """Tasks of the largest barrier stage over the slots that it can use: (P30)."""
    ratio = np.zeros(len(num_slots))
    for stage in _barrier_stages(profile):
        settings = zip(num_slots.tolist(), partitions.tolist(), strict=True)
        of_stage = [stage.num_tasks(count) / stage.usable_slots(slots) for slots, count in settings]
        ratio = np.maximum(ratio, of_stage)
    return ratio


def _barrier_stages(profile: JobProfile) -> Iterator[StageProfile]:
    return (stage for stage in profile.stages if stage.is_barrier and not stage.tasks_vary)


def with_source_partitions(profile: JobProfile, source_partitions: int | None) -> JobProfile:
    """The job with its source read by a given number of tasks, each with its share of the rows.

    They are partitions of the source, or input splits (Kafka's ``minPartitions``): theory.md (P14).
    None leaves them as profiled.
    """
    if source_partitions is None:
        return profile
    stages = tuple(
        replace(stage, num_source_tasks=source_partitions, source_tasks=None)
        if stage.reads_source
        else stage
        for stage in profile.stages
    )
    return replace(profile, stages=stages)


def with_usual_tasks(profile: JobProfile) -> JobProfile:
    """The job with as many tasks as in the profiled runs where they follow the rows of a batch.

    For tables of durations that hold powers of the rows only.
    """
    return replace(profile, stages=tuple(map(_with_usual_tasks, profile.stages)))


def _with_usual_tasks(stage: StageProfile) -> StageProfile:
    if not stage.follows_rows:
        return stage
    if stage.coalescing:
        return replace(stage, tasks_rule="fixed", coalescing=None)
    return replace(stage, source_tasks=None)


def short_of_tasks(
    profile: JobProfile, num_slots: int, batch_rows: float | None = None
) -> Iterator[tuple[StageProfile, int]]:
    """Stages that read the source and have fewer tasks than there are slots, with their tasks.

    Without ``batch_rows``, only those whose number of tasks does not follow the rows of a batch.
    """
    for stage in profile.stages:
        if not stage.reads_source or (batch_rows is None and stage.follows_rows):
            continue
        num_tasks = num_tasks_at(stage, batch_rows or 0.0, num_slots, 1)
        if num_tasks < stage.usable_slots(num_slots):
            yield stage, num_tasks
