"""Limits on the number of tasks: partitions of the source, and the driver that launches them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.resources import LAUNCHES_PER_S
from headway.domain import JobProfile, StageProfile, TasksRule
from headway.models.arrays import Array, Numeric


def most_launches_per_s(profile: JobProfile) -> float:
    """Tasks per second that a driver can launch: as expected, or as recorded if that is more.

    Notes
    -----
    **(P18)** The driver launches every task. A setting that launches more than 4,500 per second, in
    batches of the planned length, is rejected. Ousterhout et al. (2013) measured 1,500 per second
    for the scheduler of Spark 0.8 and expected two to three times that for later ones. If the
    profiled runs launched more, that is the limit.
    """
    seen = (
        float(
            launches_per_s(
                profile,
                one.configuration.shuffle_partitions,
                max(one.configuration.trigger_s, one.batch_duration_mean_s),
            )
        )
        for one in profile.settings
        if one.batch_duration_mean_s > 0.0
    )
    return max(LAUNCHES_PER_S.value, 0.0, *seen)


def launches_per_s(
    profile: JobProfile, partitions: int | NDArray[np.int_], interval_s: Numeric
) -> Array:
    """Tasks that settings launch per second, with a batch in every interval [1/s].

    Notes
    -----
    theory.md (P18).
    """
    tasks = sum(
        partitions if stage.num_source_tasks is None else stage.num_source_tasks
        for stage in profile.stages
    )
    return np.asarray(tasks / np.maximum(interval_s, 1e-6))


def launch_ratio(profile: JobProfile, partitions: NDArray[np.int_], interval_s: Array) -> Array:
    """The same over the rate that the driver can sustain. [-]"""
    return launches_per_s(profile, partitions, interval_s) / most_launches_per_s(profile)


def with_source_partitions(profile: JobProfile, source_partitions: int) -> JobProfile:
    """The job with its source read by a given number of tasks, each with its share of the rows.

    Notes
    -----
    theory.md (P14). Partitions of the source, or input splits: Kafka's ``minPartitions``.
    """
    stages = tuple(
        replace(stage, num_source_tasks=source_partitions) if stage.reads_source else stage
        for stage in profile.stages
    )
    return replace(profile, stages=stages)


def with_usual_tasks(profile: JobProfile) -> JobProfile:
    """The job with as many tasks in coalesced stages as in the profiled runs, at any rate.

    For tables of durations that hold powers of the rows only.
    """
    stages = tuple(
        replace(stage, tasks_rule=TasksRule.FIXED, coalescing=None) if stage.coalescing else stage
        for stage in profile.stages
    )
    return replace(profile, stages=stages)


def without_coalescing(profile: JobProfile) -> JobProfile:
    """The job with a task for each shuffle partition where adaptive execution coalesces them."""
    stages = tuple(
        replace(stage, tasks_rule=TasksRule.SHUFFLE, num_source_tasks=None, coalescing=None)
        if stage.coalescing
        else stage
        for stage in profile.stages
    )
    return replace(profile, stages=stages)


def short_of_tasks(profile: JobProfile, num_slots: int) -> Iterator[StageProfile]:
    """Stages that read the source and have fewer tasks than there are slots."""
    for stage in profile.stages:
        if stage.reads_source and (stage.num_source_tasks or 0) < num_slots:
            yield stage
