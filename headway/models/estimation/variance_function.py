"""How the noise of batch durations grows with rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array, Numeric

_MOST_ROUNDS = 500
_TOLERANCE = 1e-6
# Of the mean square: a part that fell to nothing could never rise again.
_LEAST_PART, _NEGLIGIBLE = 1e-14, 1e-10
# Sizes closer than this are one load.
_SAME_LOAD = 0.1


class NoiseLaw(NamedTuple):
    """``Var(D | n) = additive_sd_s^2 + (relative_noise (a + b n))^2 + (per_row_noise b n)^2``."""

    additive_sd_s: float
    relative_noise: float
    per_row_noise: float
    num_loads: int
    """Loads the three were told from: one gives ``relative_noise``, two the other two."""

    def sd_s(self, fixed_s: Numeric, work_s: Numeric) -> Array:
        """Standard deviation of a batch, of ``work_s`` seconds of rows. [s]"""
        mean = np.asarray(fixed_s, dtype=np.float64) + work_s
        proportional = np.square(self.relative_noise * mean)
        by_rows = np.square(self.per_row_noise * np.asarray(work_s, dtype=np.float64))
        return np.asarray(np.sqrt(self.additive_sd_s**2 + proportional + by_rows))


def noise_law(
    num_rows: Array, duration_s: Array, fixed_s: float, per_row_s: float, num_parameters: int = 2
) -> NoiseLaw:
    r"""Noise with a part of the driver's, one in proportion, and one of the rows'.

    Parameters
    ----------
    num_rows : (n,) array, >= 0
        Rows of each batch. [rows]
    duration_s : (n,) array, > 0
        How long each took. [s]
    fixed_s, per_row_s : float, >= 0, not both 0
        The fitted line. [s, s/row]
    num_parameters : int, >= 0
        Parameters that were fitted on these batches; n must be larger.

    Returns
    -------
    NoiseLaw
        Only as many parts as loads can tell: three from three loads on; of two loads the driver's
        and the rows', the safe reading of noise that grows more slowly than durations; of one load
        the proportion.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (E12). Loads count as one if they differ by less than a tenth. The likeliest
    parts for normal residuals; standard deviations from 200 batches are known to 9 %, at both ends.

    Examples
    --------
    >>> rows = np.repeat([0.0, 1e4], 2)
    >>> law = noise_law(rows, np.array([1.9, 2.1, 4.5, 5.5]), 2.0, 3e-4, num_parameters=0)
    >>> round(law.additive_sd_s, 3), law.relative_noise, round(law.per_row_noise, 3)
    (0.1, 0.0, 0.163)
    """
    rows, duration = np.asarray(num_rows, dtype=float), np.asarray(duration_s, dtype=float)
    if rows.shape != duration.shape or rows.ndim != 1 or len(rows) <= num_parameters:
        raise ValueError("need one duration per batch, and more batches than fitted parameters")
    if not (np.all(rows >= 0.0) and np.all(duration > 0.0) and np.all(np.isfinite(duration))):
        raise ValueError("num_rows must not be negative and duration_s must be positive and finite")
    if not (fixed_s >= 0.0 and per_row_s >= 0.0 and np.all(fixed_s + per_row_s * rows > 0.0)):
        raise ValueError("fixed_s and per_row_s must not be negative, and every fit positive")
    work = per_row_s * rows
    mean = fixed_s + work
    square = np.square(duration - mean) * len(rows) / (len(rows) - num_parameters)
    num_loads = _num_loads(rows) if np.any(work > 0.0) else 1
    if num_loads == 1:
        ratio = float(np.sqrt(np.mean(square / mean**2)))
        return NoiseLaw(0.0, ratio, 0.0, num_loads)
    terms = [np.ones_like(mean), np.square(work)]
    if num_loads > 2:
        terms.insert(1, np.square(mean))
    parts = np.sqrt(_variance_parts(np.column_stack(terms), square))
    proportional = float(parts[1]) if num_loads > 2 else 0.0
    return NoiseLaw(float(parts[0]), proportional, float(parts[-1]), num_loads)


def _num_loads(rows: Array) -> int:
    """Sizes of batches that differ by more than a tenth, counted from the smallest on."""
    loads, reached = 0, -1.0
    for size in np.sort(rows):
        if size > reached * (1.0 + _SAME_LOAD):
            loads, reached = loads + 1, float(size)
    return loads


def _variance_parts(terms: Array, square: Array) -> Array:
    """The likeliest non-negative parts; every step makes them likelier, none leaves the range."""
    scale = np.mean(terms, axis=0)
    if not np.any(square > 0.0):
        return np.zeros_like(scale)
    unit = float(np.mean(square))
    columns, ratio = terms / scale, square / unit
    parts = np.full(len(scale), 1.0 / len(scale))
    for _ in range(_MOST_ROUNDS):
        variance = columns @ parts
        wanted, given = columns.T @ (ratio / variance**2), columns.T @ (1.0 / variance)
        step = np.maximum(parts * np.sqrt(wanted / given), _LEAST_PART)
        converged = np.allclose(step, parts, rtol=_TOLERANCE, atol=_TOLERANCE)
        parts = step
        if converged:
            break
    return np.asarray(np.where(parts > _NEGLIGIBLE, parts, 0.0) * unit / scale)
