"""How long a batch job takes: stages that wait for each other and share the cores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headway.assumptions.predictions import ALIKE_STAGES_RATIO
from headway.models.laws.distributions import max_lognormal
from headway.models.stages.schedule import JobStage, Moment, StageSchedule, latest


@dataclass(frozen=True, kw_only=True)
class StageDag:
    """The stages of a job in the order of their numbers.

    There is at least one; parents come first. If several are ready, cores go to the one with the
    lowest number first.

    >>> scan = JobStage(num_tasks=8, mean_s=0.5, cv=0.3)
    >>> StageDag(stages=(scan, JobStage(num_tasks=4, mean_s=1.0, cv=0.3, parents=(0,)))).work_s
    8.0
    """

    stages: tuple[JobStage, ...]

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("a job needs at least one stage")
        for number, stage in enumerate(self.stages):
            if any(not 0 <= parent < number for parent in stage.parents):
                raise ValueError(f"stage {number} has a parent that does not come before it")

    @property
    def work_s(self) -> float:
        """Mean work of all tasks together. [s]"""
        return sum(stage.work_s for stage in self.stages)

    @cached_property
    def pooled(self) -> tuple[JobStage, ...]:
        """The stages, merged by (J3)."""
        return pooled_stages(self.stages)[0]


def run_time(dag: StageDag, num_cores: int) -> Moment:
    r"""Run time of a batch job on cores that it shares with no other job (J4).

    Its mean is estimated, and kept within the bounds (J1) and (J2), which are proven.

    Parameters
    ----------
    num_cores : int, >= 1, all are free at the start

    >>> scans = (JobStage(num_tasks=24, mean_s=1.0, cv=0.3),) * 2
    >>> join = JobStage(num_tasks=8, mean_s=1.0, cv=0.3, parents=(0, 1))
    >>> time = run_time(StageDag(stages=(*scans, join)), 16)
    >>> time.mean_s, time.sd_s
    (5.24, 0.42)
    """
    lower_s, upper_s = run_time_bounds(dag, num_cores)
    schedule = StageSchedule(dag.pooled, num_cores)
    stage_ends = schedule.stage_ends()
    last = latest([stage_ends[number] for number in sinks_of(dag.pooled)], schedule.skewness)
    return Moment(min(max(last.mean_s, lower_s), upper_s), last.noise_s)


def run_time_bounds(dag: StageDag, num_cores: int) -> tuple[float, float]:
    r"""Lower and upper bound of the mean run time of a job [s]; all cores are free at the start.

    **(J1)** Two lower bounds of the mean run time: `Σ w/C`, with `w` the work of a stage; and
    the longest path if each stage takes `max(E[max _j d_j], w/C)`, by (X2). In each run a stage
    takes at least its own makespan, since other tasks only make cores free later; the bound of the
    mean follows by Jensen's inequality.

    **(J2)** Upper bound, after Graham (1966, doi:10.1002/j.1538-7305.1966.tb01709.x). Whenever a
    core is idle, some stage on one path from start to end has its longest task running. A run
    therefore takes at most `Σ w/C + Σ_path (1-1/C) max _j d_j` for the longest such path. The mean
    of the longest path is bounded over the `n` parents of a stage by `E max ≤ max E + sqrt((n-1)/n
    Σ Var)` (Aven 1985) and `Var max ≤ Σ Var`, however dependent they are. Proven, given (X2).

    Both are proven for independent task times, whose largest lognormals are by (X2).

    >>> run_time_bounds(StageDag(stages=(JobStage(num_tasks=8, mean_s=1.0, cv=0.0),)), 4)
    (2.0, 2.75)
    """
    if num_cores < 1:
        raise ValueError(f"num_cores must be at least 1, got {num_cores}")
    lower: list[float] = []
    upper: list[tuple[float, float]] = []
    for stage in dag.stages:
        longest = max_lognormal(stage.num_tasks, stage.cv)
        longest_s, sd_s = longest.mean * stage.mean_s, longest.sd * stage.mean_s
        shortest_span_s = max(longest_s, stage.work_s / num_cores)
        above = max((lower[parent] for parent in stage.parents), default=0.0)
        lower.append(above + shortest_span_s)
        mean_s, variance_s2 = _largest_at_most([upper[parent] for parent in stage.parents])
        idle = 1.0 - 1.0 / num_cores
        upper.append((mean_s + idle * longest_s, variance_s2 + (idle * sd_s) ** 2))
    chain_s, _ = _largest_at_most([upper[number] for number in sinks_of(dag.stages)])
    even_s = dag.work_s / num_cores
    lower_s = max(*lower, even_s)
    return lower_s, max(even_s + chain_s, lower_s)  # equal bounds may differ by rounding


def _largest_at_most(times: list[tuple[float, float]]) -> tuple[float, float]:
    """(J2): bounds of mean and variance of the largest of any times, dependent or not."""
    if not times:
        return 0.0, 0.0
    means, variances = zip(*times, strict=True)
    spread = (len(times) - 1.0) / len(times) * sum(variances)
    return max(means) + float(np.sqrt(spread)), sum(variances)


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
