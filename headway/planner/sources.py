"""The tasks that the source decides: its partitions, or the splits they are read in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headway.domain import JobProfile, StageProfile


def with_source_partitions(profile: JobProfile, num_partitions: int) -> JobProfile:
    """The job with its source read by so many tasks, each with its share of the rows.

    Notes
    -----
    theory.md (P14). Partitions of the source, or input splits: Kafka's ``minPartitions``.
    """
    stages = tuple(
        replace(stage, num_source_tasks=num_partitions) if _reads_source(stage) else stage
        for stage in profile.stages
    )
    return replace(profile, stages=stages)


def short_of_tasks(profile: JobProfile, num_slots: int) -> Iterator[StageProfile]:
    """Stages that read the source and have fewer tasks than there are slots."""
    for stage in profile.stages:
        if _reads_source(stage) and (stage.num_source_tasks or 0) < num_slots:
            yield stage


def _reads_source(stage: StageProfile) -> bool:
    return stage.num_source_tasks is not None and stage.level == 0
