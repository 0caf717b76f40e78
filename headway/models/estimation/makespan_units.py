"""Driver time and task costs from batches at several core counts, in units of the makespan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array
from headway.models.estimation.regression import relative_huber
from headway.models.stages.makespan import makespan_moments

DRIVER = "driver"
# Beyond it a coefficient is known a thousand times worse than the durations it explains.
_WORST_CONDITION = 1e3
# Share of a coefficient in a direction that the settings do not determine.
_LEAST_SHARE = 1e-2
# Below this part of a duration a coefficient explains rounding only.
_NOTHING = 1e-9


class StageSetting(NamedTuple):
    """One stage at each of the settings that were run."""

    name: str
    num_tasks: Array
    """(n,) Tasks of the stage. [-]"""
    num_cores: Array
    """(n,) Cores that take them. [-]"""
    num_rows: Array
    """(n,) Rows that enter the stage. [rows]"""
    cv: float
    """Coefficient of variation of one task time. [-]"""


class TaskTerms(NamedTuple):
    """What each coefficient is multiplied by, batch for batch."""

    names: tuple[str, ...]
    columns: Array
    """(n, k): ones for the driver, then for each stage its makespan, without and with rows."""


class Identification(NamedTuple):
    """Which coefficients the settings can tell, whatever the durations turn out to be."""

    condition: float
    """Largest over smallest singular value of the scaled columns; inf for dependent ones. [-]"""
    entangled: tuple[tuple[str, ...], ...]
    """Groups of which only sums are known: more settings are needed to tell them apart."""


class TaskCosts(NamedTuple):
    """``D = driver + sum of w(T, C, cv) (t0 + b n / T)`` over stages."""

    names: tuple[str, ...]
    coefficients: Array
    """(k,) Driver time [s], then for each stage t0 [s] and b [s/row]."""
    share_error: Array
    """(k,) Standard error of the share that each has in a duration; inf if entangled. [-]"""
    relative_noise: float
    """Root mean square of the relative residuals. [-]"""
    at_zero: tuple[str, ...]
    """Coefficients on their lower limit: the true ones may lie above, never below."""
    identification: Identification


def task_terms(stages: Sequence[StageSetting]) -> TaskTerms:
    r"""Columns of the model that is linear in driver time, task overhead and time per row.

    Parameters
    ----------
    stages : sequence of StageSetting
        Stages that run one after another, all with the same n settings; tasks and cores are whole
        numbers from 1 on, rows are not negative.

    Returns
    -------
    TaskTerms
        ``driver`` and, for every stage, ``<name>: fixed time of a task`` and ``<name>: time per
        row``.

    Raises
    ------
    ValueError
        If there is no stage, two share a name, lengths differ, or a value is outside its range.

    Notes
    -----
    theory.md (E10). Ernest (Venkataraman et al. 2016) takes rows over cores in place of the
    makespan and cannot know waves.

    Examples
    --------
    >>> scan = StageSetting(
    ...     "scan", np.array([24, 24]), np.array([8, 16]), np.array([2.4e4, 2.4e4]), cv=0.0
    ... )
    >>> task_terms([scan]).columns
    array([[1.e+00, 3.e+00, 3.e+03], [1.e+00, 2.e+00, 2.e+03]])
    """
    if not stages or len({stage.name for stage in stages}) < len(stages):
        raise ValueError("need at least one stage, and every stage a name of its own")
    if len({np.shape(values) for stage in stages for values in stage[1:4]}) > 1:
        raise ValueError("all stages need tasks, cores and rows of the same settings")
    names, columns = [DRIVER], [np.ones(len(stages[0].num_tasks))]
    for stage in stages:
        if not np.all(np.asarray(stage.num_rows) >= 0.0):
            raise ValueError(f"stage {stage.name} has a negative number of rows")
        makespan = _makespan_units(stage)
        names += [f"{stage.name}: fixed time of a task", f"{stage.name}: time per row"]
        columns += [makespan, makespan * stage.num_rows / stage.num_tasks]
    return TaskTerms(tuple(names), np.column_stack(columns))


def identification(terms: TaskTerms) -> Identification:
    r"""Whether the settings can tell the coefficients apart, before anything is fitted.

    Parameters
    ----------
    terms : TaskTerms
        Columns of the settings, or of settings with each row divided by its duration.

    Returns
    -------
    Identification
        Condition number, and the groups of coefficients that stand for each other.

    Notes
    -----
    theory.md (E11). Columns are scaled to one length, so that the answer does not depend on units.

    Examples
    --------
    >>> one_load = StageSetting(
    ...     "scan", np.array([8, 8]), np.array([8, 4]), np.array([1e4, 1e4]), cv=0.0
    ... )
    >>> identification(task_terms([one_load])).entangled
    (('scan: fixed time of a task', 'scan: time per row'),)
    """
    length = np.maximum(np.linalg.norm(terms.columns, axis=0), 1e-300)
    _, singular, directions = np.linalg.svd(terms.columns / length, full_matrices=True)
    singular = np.concatenate([singular, np.zeros(len(directions) - len(singular))])
    largest, smallest = float(singular[0]), float(singular[-1])
    unknown = directions[singular * _WORST_CONDITION < largest]
    known_to_machine = smallest > largest * np.finfo(float).eps * max(terms.columns.shape)
    condition = largest / smallest if known_to_machine else float("inf")
    return Identification(condition, _groups(unknown.T @ unknown, terms.names))


def fit_task_costs(terms: TaskTerms, duration_s: Array) -> TaskCosts:
    r"""Driver time, task overhead and time per row from measured batches.

    Parameters
    ----------
    terms : TaskTerms
        Columns, a row per batch.
    duration_s : (n,) array, > 0
        Batch durations. [s]

    Returns
    -------
    TaskCosts
        No coefficient negative; with what is at zero and what is entangled, by name.

    Raises
    ------
    ValueError
        If a duration is not positive, or there are not as many as rows of ``terms``.

    Notes
    -----
    theory.md (E10), (E11), by (E3). 24 tasks fitted at 2, 4, 8 and 16 cores and two loads predict
    3 to 32 cores with a median error of 0.5 % and 2.4 % at most in simulation, where rows over
    cores in its place are 5 % and 23 % off.

    Examples
    --------
    >>> tasks, cores, rows = np.full(4, 24), np.array([4, 8, 4, 8]), np.array([1, 1, 4, 4]) * 2.4e4
    >>> terms = task_terms([StageSetting("scan", tasks, cores, rows, cv=0.0)])
    >>> fit_task_costs(terms, terms.columns @ [1.0, 0.2, 1e-4]).coefficients
    array([1.e+00, 2.e-01, 1.e-04])
    """
    duration = np.asarray(duration_s, dtype=np.float64)
    if duration.shape != terms.columns.shape[:1]:
        raise ValueError("need one duration per batch")
    if not np.all((duration > 0.0) & np.isfinite(duration)):
        raise ValueError("duration_s must be positive and finite")
    coefficients = relative_huber(terms.columns, duration, np.ones(len(duration)))
    fit = terms.columns @ coefficients
    relative = terms.columns / fit[:, np.newaxis]
    share = np.sqrt(np.mean(np.square(relative), axis=0))
    spare = max(len(duration) - len(coefficients), 1)
    noise = float(np.sqrt(np.sum(np.square(duration / fit - 1.0)) / spare))
    found = identification(TaskTerms(terms.names, relative))
    at_zero = tuple(
        name
        for name, part in zip(terms.names, coefficients * share, strict=True)
        if part <= _NOTHING
    )
    share_error = _share_error(relative, share, noise, terms.names, found)
    return TaskCosts(terms.names, coefficients, share_error, noise, at_zero, found)


def task_costs_duration_s(costs: TaskCosts, terms: TaskTerms) -> Array:
    r"""Mean batch durations by fitted costs at other settings.

    Parameters
    ----------
    costs : TaskCosts
        Fitted at some settings.
    terms : TaskTerms
        Of the same stages, at the settings to predict.

    Returns
    -------
    (n,) array
        Mean durations. [s]

    Raises
    ------
    ValueError
        If the stages differ.

    Notes
    -----
    theory.md (E10). Entangled coefficients predict well only where the sums they stand for keep
    their proportions.

    Examples
    --------
    >>> fitted = task_terms(
    ...     [StageSetting("scan", np.full(3, 8), np.array([2, 4, 8]), np.array([0, 8e3, 4e4]), 0.0)]
    ... )
    >>> costs = fit_task_costs(fitted, fitted.columns @ [1.0, 0.2, 1e-4])
    >>> asked = task_terms(
    ...     [StageSetting("scan", np.array([8]), np.array([5]), np.array([8e3]), 0.0)]
    ... )
    >>> task_costs_duration_s(costs, asked)
    array([1.6])
    """
    if costs.names != terms.names:
        raise ValueError("costs were fitted to other stages than those to predict")
    return np.asarray(terms.columns @ costs.coefficients)


def _makespan_units(stage: StageSetting) -> Array:
    return np.array(
        [
            makespan_moments(int(tasks), int(cores), stage.cv).mean
            for tasks, cores in zip(stage.num_tasks, stage.num_cores, strict=True)
        ]
    )


def _groups(unknown: Array, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Coefficients joined by directions that no setting determines; a projection tells them."""
    joined = np.abs(unknown) > _LEAST_SHARE
    groups, left = [], [place for place in range(len(names)) if joined[place, place]]
    while left:
        group = {left[0]}
        while (wider := group | {i for i in left if any(joined[i, j] for j in group)}) != group:
            group = wider
        groups.append(tuple(names[place] for place in sorted(group)))
        left = [place for place in left if place not in group]
    return tuple(groups)


def _share_error(
    relative: Array, share: Array, noise: float, names: tuple[str, ...], found: Identification
) -> Array:
    """Standard errors by least squares; what is entangled has none."""
    scaled = relative / np.maximum(share, 1e-300)
    variance = np.diag(np.linalg.pinv(scaled.T @ scaled))
    entangled = {name for group in found.entangled for name in group}
    known = np.array([name not in entangled for name in names])
    return np.where(known, noise * np.sqrt(np.maximum(variance, 0.0)), np.inf)
