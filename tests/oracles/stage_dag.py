"""Stages of a batch job on shared cores, task by task: oracle of `headway.models.stages.dag`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.models.arrays import Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageDagTrace:
    """What each stage of each replication of a job did.

    Parameters
    ----------
    ready_s : (r, n) array
        When the stage could start its tasks. [s]
    end_s : (r, n) array
        When its last task ended. [s]

    Examples
    --------
    >>> trace = StageDagTrace(ready_s=np.zeros((1, 2)), end_s=np.array([[1.0, 3.0]]))
    >>> trace.run_time_s
    array([3.])
    """

    ready_s: Array
    end_s: Array

    @property
    def run_time_s(self) -> Array:
        """Run time of the job, (r,). [s]"""
        longest: Array = self.end_s.max(axis=1)
        return longest


def simulate_stage_dag(
    task_times_s: Sequence[Array],
    parents: Sequence[Sequence[int]],
    num_cores: int,
    *,
    driver_gap_s: float = 0.0,
) -> StageDagTrace:
    r"""Simulate a job whose stages share cores as in Spark's FIFO scheduling.

    A stage is ready once all its parents have ended and the driver has taken its time. A free core
    takes the next task of the ready stage with the lowest number.

    Parameters
    ----------
    task_times_s : sequence of n (r, t) arrays, >= 0
        Task times of each stage in the order of their launch, launch overhead included; a row per
        replication. [s]
    parents : sequence of n sequences of int
        Numbers of the stages that must have ended, all lower than the stage's own.
    num_cores : int, >= 1
        Cores, all free at the start. [-]
    driver_gap_s : float, >= 0
        Time from the end of the last parent to the first launch. [s]

    Returns
    -------
    StageDagTrace
        Of all stages and replications.

    Raises
    ------
    ValueError
        If an argument is outside its range or the parts do not match.

    Notes
    -----
    **(J6)** Simulation: one task per step, all replications at once. Compared with an event loop.

    Exact; one step per task, all replications at once.

    Examples
    --------
    >>> two, one = np.array([[2.0, 2.0]]), np.array([[1.0]])
    >>> simulate_stage_dag([two, one, one], [[], [], [0, 1]], 2).run_time_s
    array([4.])
    """
    times = [np.atleast_2d(np.asarray(stage, dtype=np.float64)) for stage in task_times_s]
    _check(times, parents, num_cores, driver_gap_s)
    counts = np.array([stage.shape[1] for stage in times])
    first_task = np.concatenate([[0], np.cumsum(counts)])
    every_task = np.concatenate(times, axis=1)
    num_replications, num_tasks = every_task.shape
    row = np.arange(num_replications)
    free_at = np.zeros((num_replications, num_cores))
    launched = np.zeros((num_replications, len(times)), dtype=np.int64)
    end = np.zeros((num_replications, len(times)))
    ready = np.full((num_replications, len(times)), np.inf)
    ready[:, [not above for above in parents]] = driver_gap_s
    for _ in range(num_tasks):
        waiting = np.where(launched < counts, ready, np.inf)
        core = free_at.argmin(axis=1)
        # A stage whose parents have tasks to launch cannot become ready before this moment.
        now = np.maximum(free_at[row, core], waiting.min(axis=1))
        stage = (waiting <= now[:, np.newaxis]).argmax(axis=1)
        done = now + every_task[row, first_task[stage] + launched[row, stage]]
        free_at[row, core] = done
        launched[row, stage] += 1
        end[row, stage] = np.maximum(end[row, stage], done)
        _release(ready, launched == counts, end, parents, driver_gap_s)
    return StageDagTrace(ready_s=ready, end_s=end)


def _release(
    ready: Array,
    all_launched: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    end: Array,
    parents: Sequence[Sequence[int]],
    driver_gap_s: float,
) -> None:
    """Stages whose parents' ends are known become ready at the last of them, plus the gap."""
    for number, above in enumerate(parents):
        if not above:
            continue
        of_parents = list(above)
        known = np.isinf(ready[:, number]) & all_launched[:, of_parents].all(axis=1)
        if known.any():
            ready[known, number] = end[known][:, of_parents].max(axis=1) + driver_gap_s


def simulated_lognormal_stage_dag(
    stages: Sequence[tuple[int, float, float]],
    parents: Sequence[Sequence[int]],
    num_cores: int,
    *,
    driver_gap_s: float = 0.0,
    num_replications: int,
    seed: int,
) -> StageDagTrace:
    r"""Simulate a job with lognormal task times, replicated.

    Parameters
    ----------
    stages : sequence of n (count, mean_s, cv)
        Tasks of each stage: how many [-], mean time [s], coefficient of variation [-].
    parents, num_cores, driver_gap_s
        As in `simulate_stage_dag`.
    num_replications : int, >= 1
        How many jobs to simulate. [-]
    seed : int
        Seed of the generator.

    Returns
    -------
    StageDagTrace
        Of all stages and replications.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (J6).

    Examples
    --------
    >>> stages = [(4, 1.0, 0.0), (2, 3.0, 0.0)]
    >>> simulated_lognormal_stage_dag(
    ...     stages, [[], [0]], 2, driver_gap_s=0.5, num_replications=1, seed=1
    ... ).run_time_s
    array([6.])
    """
    if num_replications < 1:
        raise ValueError(f"need at least one replication, got {num_replications}")
    if not all(count >= 1 and mean > 0.0 and cv >= 0.0 for count, mean, cv in stages):
        raise ValueError("a stage needs a task, a positive mean and cv >= 0")
    generator = np.random.default_rng(seed)
    times = []
    for count, mean, cv in stages:
        log_variance = float(np.log1p(cv * cv))
        normal = generator.standard_normal((num_replications, count))
        times.append(mean * np.exp(np.sqrt(log_variance) * normal - log_variance / 2.0))
    return simulate_stage_dag(times, parents, num_cores, driver_gap_s=driver_gap_s)


def _check(
    times: list[Array], parents: Sequence[Sequence[int]], num_cores: int, driver_gap_s: float
) -> None:
    if not times or len(times) != len(parents):
        raise ValueError("need at least one stage, and the parents of each")
    if len({len(stage) for stage in times}) != 1 or any(stage.size == 0 for stage in times):
        raise ValueError("every stage needs a task, and one row per replication")
    if not all(np.all(stage >= 0.0) for stage in times):
        raise ValueError("task times must not be negative")
    if any(not 0 <= parent < number for number, above in enumerate(parents) for parent in above):
        raise ValueError("parents must have lower numbers than their stage")
    if num_cores < 1 or not driver_gap_s >= 0.0:
        raise ValueError("need num_cores >= 1 and driver_gap_s >= 0")
