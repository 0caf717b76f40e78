"""Tasks on cores, one by one: the oracle of `headway.models.stages.makespan`."""

from __future__ import annotations

import numpy as np

from headway.models.arrays import Array


def list_scheduling_makespan(task_times_s: Array, num_cores: int) -> Array:
    r"""Makespan of given tasks, each taken in order by the core that is free first.

    Parameters
    ----------
    task_times_s : (t,) or (r, t) array, >= 0
        Task times in the order of their start; a row per replication. Any one unit. [s]
    num_cores : int, >= 1
        Cores, all free at the start. [-]

    Returns
    -------
    array
        0-d or (r,), unit of ``task_times_s``. [s]

    Raises
    ------
    ValueError
        If there is no task, a time is negative, or ``num_cores`` is below 1.

    Notes
    -----
    **(S1)** List scheduling: each task in order goes to the core that is free first.

    Examples
    --------
    >>> float(list_scheduling_makespan(np.array([3.0, 1.0, 1.0, 2.0]), 2))
    4.0
    """
    times = np.asarray(task_times_s, dtype=np.float64)
    if times.ndim not in (1, 2) or times.shape[-1] == 0 or not np.all(times >= 0.0):
        raise ValueError("task_times_s must hold at least one task, with no negative time")
    if num_cores < 1:
        raise ValueError(f"num_cores must be at least 1, got {num_cores}")
    rows = np.atleast_2d(times)
    free_at = np.zeros((rows.shape[0], num_cores))
    replication = np.arange(rows.shape[0])
    for task_time in rows.T:
        core = free_at.argmin(axis=1)
        free_at[replication, core] += task_time
    makespan: Array = free_at.max(axis=1).reshape(times.shape[:-1])
    return makespan


def simulated_lognormal_makespans(
    num_tasks: int, num_cores: int, cv: float, *, num_replications: int, seed: int
) -> Array:
    r"""Makespans of lognormal tasks of mean 1, replicated.

    Parameters
    ----------
    num_tasks, num_cores : int, >= 1
        Size of the stage and of the cluster. [-]
    cv : float, >= 0
        Coefficient of variation of one task time. [-]
    num_replications : int, >= 1
        How many stages to simulate. [-]
    seed : int
        Seed of the generator.

    Returns
    -------
    (num_replications,) array
        In units of the mean task time. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (S1).

    Examples
    --------
    >>> simulated_lognormal_makespans(5, 2, 0.0, num_replications=2, seed=1)
    array([3., 3.])
    """
    if num_tasks < 1 or num_replications < 1 or not cv >= 0.0:
        raise ValueError("need at least one task and one replication, and cv >= 0")
    log_variance = float(np.log1p(cv * cv))
    normal = np.random.default_rng(seed).standard_normal((num_replications, num_tasks))
    times = np.exp(np.sqrt(log_variance) * normal - log_variance / 2.0)
    return list_scheduling_makespan(times, num_cores)
