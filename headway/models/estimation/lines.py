"""Many robust lines through many samples at once: what a bootstrap refits hundreds of times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, Numeric

_HUBER = 1.345  # as in `regression`: 95 % efficient under normal noise
_MAD_TO_SD = 1.4826
_MOST_ROUNDS = 50
_TOLERANCE = 1e-9
# Columns whose cosine is this close to 1 carry one coefficient.
_PARALLEL = 1e-12


def relative_huber_lines(num_rows: Array, duration_s: Array) -> Array:
    r"""Non-negative intercepts and slopes of many samples, relative residuals small.

    Parameters
    ----------
    num_rows : (..., n) array, >= 0
        Rows of each batch; leading axes count samples. [rows]
    duration_s : (..., n) array, > 0
        How long each took. [s]

    Returns
    -------
    (..., 2) array
        Duration without rows [s] and duration per row [s/row]. Where all batches of a sample are
        of one size, only one of the two is not zero.

    Raises
    ------
    ValueError
        If an argument is outside its range or there is no batch.

    Notes
    -----
    theory.md (E9): the minimum of (E3) for two coefficients, which needs no iterated active set:
    where the free solution is negative, the better of the two edges is the solution. Equal to
    `regression.relative_huber` to its tolerance.

    Examples
    --------
    >>> rows = np.array([1e4, 1e4, 3e4, 3e4])
    >>> relative_huber_lines(rows, np.array([[5.0, 5.0, 11.0, 11.0], [4.0, 4.0, 12.0, 12.0]]))
    array([[2.0e+00, 3.0e-04], [0.0e+00, 4.0e-04]])
    """
    rows, duration = np.broadcast_arrays(
        np.asarray(num_rows, dtype=np.float64), np.asarray(duration_s, dtype=np.float64)
    )
    if rows.ndim == 0 or rows.shape[-1] == 0:
        raise ValueError("a line needs at least one batch")
    if not (np.all(rows >= 0.0) and np.all((duration > 0.0) & np.isfinite(duration))):
        raise ValueError("num_rows must not be negative and duration_s must be positive and finite")
    unit = np.maximum(rows.max(axis=-1, keepdims=True), 1e-300)
    scaled = rows / unit
    line = _weighted_line(scaled, duration, duration**-2.0)
    for _ in range(_MOST_ROUNDS):
        fit = np.maximum(line[..., :1] + line[..., 1:] * scaled, 1e-12)
        step = _weighted_line(scaled, duration, _huber_weight(duration / fit - 1.0) / fit**2)
        converged = np.allclose(step, line, rtol=_TOLERANCE, atol=0.0)
        line = step
        if converged:
            break
    return np.concatenate([line[..., :1], line[..., 1:] / unit], axis=-1)


def relative_noise(
    num_rows: Array, duration_s: Array, line: Array, mean_inflation: Numeric = 1.0
) -> Array:
    r"""Noise in proportion to the mean, from the residuals of lines.

    Parameters
    ----------
    num_rows, duration_s : (..., n) arrays
        As in `relative_huber_lines`, n at least 3. [rows, s]
    line : (..., 2) array
        Its result. [s, s/row]
    mean_inflation : float or (...) array, >= 1
        By how much autocorrelation inflates the variance of a mean, (E18). [-]

    Returns
    -------
    (...) array
        Root mean square of the relative residuals, corrected for the two parameters that were
        fitted to them. [-]

    Raises
    ------
    ValueError
        If too few batches are left to tell noise.

    Notes
    -----
    theory.md (E9). All residuals count: what Huber's weight keeps from pulling the line still
    happens. Split off rare slow batches first where they are many (E13).

    Examples
    --------
    >>> rows, line = np.array([1e4, 1e4, 3e4, 3e4]), np.array([2.0, 3e-4])
    >>> float(relative_noise(rows, np.array([4.5, 5.5, 9.9, 12.1]), line))
    0.1414
    """
    residual = duration_s / (line[..., :1] + line[..., 1:] * num_rows) - 1.0
    spare = residual.shape[-1] - 2.0 * np.asarray(mean_inflation, dtype=np.float64)
    if not np.all(spare > 0.0):
        raise ValueError("noise needs more batches than the two parameters of the line")
    return np.asarray(np.sqrt(np.square(residual).sum(axis=-1) / spare))


def _huber_weight(residual: Array) -> Array:
    distance = np.abs(residual)
    spread = np.maximum(_MAD_TO_SD * np.median(distance, axis=-1, keepdims=True), 1e-9)
    return np.minimum(1.0, _HUBER * spread / np.maximum(distance, 1e-300))


def _weighted_line(x: Array, y: Array, weight: Array) -> Array:
    """Non-negative least squares with two coefficients, in closed form."""
    ones, first, second = weight.sum(-1), (weight * x).sum(-1), (weight * x * x).sum(-1)
    level, moment = (weight * y).sum(-1), (weight * x * y).sum(-1)
    determinant = ones * second - first * first
    solvable = determinant > _PARALLEL * ones * second
    safe = np.where(solvable, determinant, 1.0)
    intercept = (second * level - first * moment) / safe
    slope = (ones * moment - first * level) / safe
    inside = solvable & (intercept >= 0.0) & (slope >= 0.0)
    edge = _better_edge(level, ones, moment, second)
    return np.stack(
        [np.where(inside, intercept, edge[0]), np.where(inside, slope, edge[1])], axis=-1
    )


def _better_edge(level: Array, ones: Array, moment: Array, second: Array) -> NDArray[np.float64]:
    """Only an intercept or only a slope, whichever explains more."""
    with_rows = np.maximum(second, 1e-300)
    flat = level**2 / ones >= moment**2 / with_rows
    return np.array([np.where(flat, level / ones, 0.0), np.where(flat, 0.0, moment / with_rows)])
