"""Stages of a job that can be treated as one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.assumptions.predictions import ALIKE_STAGES_RATIO

# Computed from spreads of up to 10, which may be off by a rounding.
_MOST_CV = 10.0 * (1.0 + 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStage:
    """A stage of a batch job, with one task or more that are similar.

    >>> JobStage(num_tasks=8, mean_s=0.5, cv=0.3).work_s
    4.0
    """

    num_tasks: int
    mean_s: float  # time of a task, above 0
    cv: float  # coefficient of variation of that, 0 to 10, taken as lognormal
    parents: tuple[int, ...] = ()  # numbers, below its own, of stages that must have ended before

    def __post_init__(self) -> None:
        if self.num_tasks < 1 or not 0.0 < self.mean_s < np.inf or not 0.0 <= self.cv <= _MOST_CV:
            raise ValueError(
                f"need a task, mean_s > 0 and cv in 0..10, got "
                f"{self.num_tasks}, {self.mean_s} and {self.cv}"
            )

    @property
    def work_s(self) -> float:
        """Mean work of all tasks together. [s]"""
        return self.num_tasks * self.mean_s


def sinks_of(stages: tuple[JobStage, ...]) -> tuple[int, ...]:
    """Numbers of the stages that no other stage waits for, ascending (J3).

    >>> first = JobStage(num_tasks=1, mean_s=1.0, cv=0.0)
    >>> sinks_of((first, first, JobStage(num_tasks=1, mean_s=1.0, cv=0.0, parents=(0,))))
    (1, 2)
    """
    parents = {parent for stage in stages for parent in stage.parents}
    return tuple(number for number in range(len(stages)) if number not in parents)


def pooled_stages(stages: tuple[JobStage, ...]) -> tuple[tuple[JobStage, ...], tuple[int, ...]]:
    r"""Merge stages that begin together, have the same successors, and are similar.

    Returns the merged stages, parents first, and for each original stage, the number of the one
    that contains it.

    **(J3)** Stages of successive numbers with the same parents and the same children form one pool
    if the variance between their means is at most a tenth of that within them. The pool has the
    mean and the variance of all their tasks.

    >>> scans = tuple(JobStage(num_tasks=4, mean_s=mean, cv=0.5) for mean in (1.0, 1.2, 9.0))
    >>> merged, pool_of = pooled_stages(scans)
    >>> pool_of, merged[0].num_tasks, merged[0].mean_s
    ((0, 0, 1), 8, 1.1)
    """
    families, pools = _families(stages), list[list[int]]()
    for number in range(len(stages)):
        is_brother = number > 0 and families[number] == families[number - 1]
        if is_brother and _are_alike(stages, [*pools[-1], number]):
            pools[-1].append(number)
        else:
            pools.append([number])
    pool_of = {member: number for number, members in enumerate(pools) for member in members}
    merged = tuple(_one(stages, members, pool_of) for members in pools)
    return merged, tuple(pool_of[number] for number in range(len(stages)))


def _families(stages: tuple[JobStage, ...]) -> list[tuple[set[int], set[int]]]:
    """Parents and children of each stage."""
    children: list[set[int]] = [set() for _ in stages]
    for number, stage in enumerate(stages):
        for parent in stage.parents:
            children[parent].add(number)
    return [(set(stage.parents), children[number]) for number, stage in enumerate(stages)]


def _are_alike(stages: tuple[JobStage, ...], members: list[int]) -> bool:
    within, between = _variances(stages, members)
    return between <= ALIKE_STAGES_RATIO.value * within + 1e-18 * stages[members[0]].mean_s ** 2


def _variances(stages: tuple[JobStage, ...], members: list[int]) -> tuple[float, float]:
    """Variance of task times within stages, and of their means."""
    count, mean, cv = (
        np.array([getattr(stages[member], name) for member in members], dtype=np.float64)
        for name in ("num_tasks", "mean_s", "cv")
    )
    weight = count / count.sum()
    centre = float(weight @ mean)
    return float(weight @ (cv * mean) ** 2), float(weight @ (mean - centre) ** 2)


def _one(stages: tuple[JobStage, ...], members: list[int], pool_of: dict[int, int]) -> JobStage:
    num_tasks = sum(stages[member].num_tasks for member in members)
    mean_s = sum(stages[member].work_s for member in members) / num_tasks
    return JobStage(
        num_tasks=num_tasks,
        mean_s=mean_s,
        cv=min(float(np.sqrt(sum(_variances(stages, members)))) / mean_s, 10.0),
        parents=tuple(sorted({pool_of[parent] for parent in stages[members[0]].parents})),
    )
