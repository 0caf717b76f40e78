"""How many executors a job needs at a rate, from its frontier; how many a deadline asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

#: Spread (of the logarithm) of run times between runs of a batch job, where none was measured.
RUN_SPREAD_RATIO = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The highest rate that each number of executors sustains, fewest first.

    Examples
    --------
    >>> steps = Steps(points=((1, 800.0), (2, 1500.0), (4, 2900.0)))
    >>> steps.executors_for(1000.0), steps.executors_for(0.0), steps.executors_for(5000.0)
    (2, 1, None)
    """

    points: tuple[tuple[int, float], ...]

    def executors_for(self, rate_per_s: float) -> int | None:
        """The fewest executors that are known to sustain a rate; None where none does."""
        return next((count for count, most in self.points if most >= rate_per_s), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWork:
    """A batch job as its stages, for any number of cores.

    ``dag`` is a :class:`headway.models.stages.dag.StageDag`; ``spread_ratio`` the spread of the
    logarithm of its run time beyond what its tasks tell.
    """

    dag: object
    spread_ratio: float
    most_cores: int


def declared_work(
    *, work_s: float, driver_s: float, num_tasks: int, num_stages: int, spread_ratio: float
) -> BatchWork:
    """A batch job of declared figures: equal stages that follow each other.

    Parameters
    ----------
    work_s, driver_s : float
        Core time of all tasks, and time in which none runs. [s]
    num_tasks, num_stages : int
        Tasks of the widest stage, and stages.
    spread_ratio : float
        Spread of the logarithm of the run time. [-]
    """
    from headway.models.stages.dag import StageDag
    from headway.models.stages.pooling import JobStage

    mean_s = work_s / (num_tasks * num_stages)
    stages = tuple(
        JobStage(num_tasks=num_tasks, mean_s=mean_s, cv=0.5, parents=(at - 1,) if at else ())
        for at in range(num_stages)
    )
    dag = StageDag(stages=stages, driver_gap_s=driver_s / num_stages)
    return BatchWork(dag=dag, spread_ratio=spread_ratio, most_cores=num_tasks)


def run_time_at_most_s(work: BatchWork, num_cores: int, confidence: float) -> float:
    """The run time that a run exceeds with at most the remaining probability [s]."""
    from headway.models.stages.dag import StageDag, run_time

    assert isinstance(work.dag, StageDag)
    found = run_time(work.dag, num_cores)
    z = NormalDist().inv_cdf(confidence)
    spread = math.hypot(work.spread_ratio, found.sd_s / found.mean_s)
    return found.mean_s * math.exp(z * spread)


def executors_for_deadline(
    work: BatchWork, cores_per_executor: int, deadline_s: float, confidence: float
) -> int | None:
    """The fewest executors that are done in time; None where no number is.

    More executors than the widest stage has tasks are of no use.
    """

    def is_done(executors: int) -> bool:
        cores = executors * cores_per_executor
        return run_time_at_most_s(work, cores, confidence) <= deadline_s

    most = -(-work.most_cores // cores_per_executor)
    return _fewest(is_done, most) if is_done(most) else None


def _fewest(is_enough: Callable[[int], bool], most: int) -> int:
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle + 1
    return high
