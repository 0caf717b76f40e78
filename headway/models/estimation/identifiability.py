"""What measured batches can tell of fixed time and time per row, and what to run to learn more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, Numeric
from headway.models.laws.normal import ndtri

_MOST_BATCHES = 1 << 20
# A slope is told if its 90 % interval stays within half of it on either side.
_TOLD_RATIO = 0.3


class LineCovariance(NamedTuple):
    """Uncertainty of a fitted line; inf where batches of one size leave it open."""

    fixed_variance_s2: float
    covariance_s2: float
    """Of fixed time and time per row; -inf where they are open. [s^2/row]"""
    per_row_variance_s2: float


class LineIdentification(NamedTuple):
    """Whether fixed time and time per row are told apart."""

    fixed_error_ratio: float
    """Standard error of the fixed time over itself. [-]"""
    per_row_error_ratio: float
    """Standard error of the time per row over itself. [-]"""
    separates: bool
    """Whether both errors are small beside the smaller of the two parts."""


class RowRange(NamedTuple):
    """Sizes of batches, both included."""

    fewest: float
    most: float


class NextRun(NamedTuple):
    """Batches to run next."""

    num_rows: float
    num_batches: int


def slope_error_ratio(
    fixed_s: Numeric,
    per_row_s: Numeric,
    relative_noise: Numeric,
    mean_rows: Numeric,
    rows_cv: Numeric,
    num_batches: Numeric,
) -> Array:
    r"""Standard error of the time per row, over itself, from the spread of batch sizes.

    Parameters
    ----------
    fixed_s : float or (n,) array, >= 0
        Duration of a batch without rows. [s]
    per_row_s : float or (n,) array, > 0
        Additional duration per row. [s/row]
    relative_noise : float or (n,) array, >= 0
        Noise in proportion to the duration. [-]
    mean_rows : float or (n,) array, > 0
        Mean size of a batch. [rows]
    rows_cv : float or (n,) array, >= 0
        Coefficient of variation of the sizes. [-]
    num_batches : float or (n,) array, >= 1
        Independent batches; fewer than were run if their noise lasts, see `effective_batches`.

    Returns
    -------
    array
        Inputs broadcast; ``inf`` for batches of one size. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (E15). A quick answer; `line_covariance` is right for any spread.

    Examples
    --------
    >>> slope_error_ratio(2.0, 3e-4, 0.1, 1e4, np.array([0.01, 0.2, 0.5]), 100)
    array([1.67, 0.08, 0.03])
    """
    a, b, c, rows, cv, batches = np.broadcast_arrays(
        *(
            np.asarray(value, dtype=np.float64)
            for value in (fixed_s, per_row_s, relative_noise, mean_rows, rows_cv, num_batches)
        )
    )
    if not (np.all(a >= 0.0) and np.all(c >= 0.0) and np.all(cv >= 0.0)):
        raise ValueError("fixed_s, relative_noise and rows_cv must not be negative")
    if not (np.all(b > 0.0) and np.all(rows > 0.0) and np.all(batches >= 1.0)):
        raise ValueError("per_row_s and mean_rows must be positive and num_batches at least 1")
    spread = b * rows * cv * np.sqrt(batches)
    told = spread > 0.0
    return np.where(told, c * (a + b * rows) / np.where(told, spread, 1.0), np.inf)


def line_covariance(
    num_rows: Array, fixed_s: float, per_row_s: float, relative_noise: float
) -> LineCovariance:
    r"""Uncertainty of fixed time and time per row, from the batches that tell them.

    Parameters
    ----------
    num_rows : (n,) array, >= 0
        Rows of each independent batch. [rows]
    fixed_s, per_row_s : float, >= 0
        The line, every batch with a positive duration. [s, s/row]
    relative_noise : float, > 0
        Noise in proportion to the duration. [-]

    Returns
    -------
    LineCovariance
        ``inf`` for batches of one size.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (E15), weighted least squares; at most 3 % below the spread of (E9) over simulated
    samples of 10 to 200 batches.

    Examples
    --------
    >>> found = line_covariance(np.repeat([5e3, 1.5e4], 30), 2.0, 3e-4, 0.1)
    >>> round(found.fixed_variance_s2**0.5, 3), round(found.per_row_variance_s2**0.5, 7)
    (0.113, 1.35e-05)
    """
    rows = np.asarray(num_rows, dtype=np.float64)
    return _inverse(_information(rows, _line(fixed_s, per_row_s), relative_noise))


def line_identification(
    num_rows: Array, fixed_s: float, per_row_s: float, relative_noise: float
) -> LineIdentification:
    r"""Whether batches tell fixed time and time per row apart.

    Parameters
    ----------
    num_rows, fixed_s, per_row_s, relative_noise
        As in `line_covariance`.

    Returns
    -------
    LineIdentification
        Standard errors over the values themselves, ``inf`` for a value of 0.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (E15). Apart means that the standard error of the split of a mean batch into fixed
    time and rows is at most 0.3 of the smaller part; of a part below a tenth of the batch, at most
    0.03 of the batch.

    Examples
    --------
    >>> steady = np.tile([9.9e3, 1.01e4], 50)
    >>> line_identification(steady, 2.0, 3e-4, 0.1).separates
    False
    >>> line_identification(np.tile([5e3, 1.5e4], 10), 2.0, 3e-4, 0.1).separates
    True
    """
    found = line_covariance(num_rows, fixed_s, per_row_s, relative_noise)
    fixed_error = float(np.sqrt(found.fixed_variance_s2))
    slope_error = float(np.sqrt(found.per_row_variance_s2))
    work = per_row_s * float(np.mean(num_rows))
    part = max(min(fixed_s, work), 0.1 * (fixed_s + work))
    work_error = slope_error * float(np.mean(num_rows))
    return LineIdentification(
        fixed_error / fixed_s if fixed_s > 0.0 else float("inf"),
        slope_error / per_row_s if per_row_s > 0.0 else float("inf"),
        max(fixed_error, work_error) <= _TOLD_RATIO * part,
    )


def trusted_rows(
    covariance: LineCovariance,
    fixed_s: float,
    per_row_s: float,
    accuracy_ratio: float,
    confidence: float = 0.95,
) -> RowRange | None:
    r"""Sizes of batches whose mean duration a fitted line tells to a wished accuracy.

    Parameters
    ----------
    covariance : LineCovariance
        Uncertainty of the line.
    fixed_s, per_row_s : float, >= 0
        The line. [s, s/row]
    accuracy_ratio : float, > 0
        Largest error over the duration. [-]
    confidence : float, 0 to 1, both excluded
        Probability of keeping it, at each single size. [-]

    Returns
    -------
    RowRange or None
        From 0 or more rows up to ``inf``; None if no size is known that well.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (E16). What noise leaves open, if the line is right everywhere.

    Examples
    --------
    >>> two_loads = line_covariance(np.repeat([5e3, 1.5e4], 30), 2.0, 3e-4, 0.1)
    >>> [round(size) for size in trusted_rows(two_loads, 2.0, 3e-4, 0.05)]
    [3369, 24368]
    """
    if not (accuracy_ratio > 0.0 and 0.0 < confidence < 1.0):
        raise ValueError("accuracy_ratio must be positive, and confidence between 0 and 1")
    if not np.isfinite(covariance.fixed_variance_s2):
        return None
    allowed = float(accuracy_ratio / ndtri(0.5 + 0.5 * confidence)) ** 2
    # Where the variance of the line exceeds what is allowed, this parabola is positive.
    square = covariance.per_row_variance_s2 - allowed * per_row_s**2
    slope = 2.0 * (covariance.covariance_s2 - allowed * fixed_s * per_row_s)
    constant = covariance.fixed_variance_s2 - allowed * fixed_s**2
    best = _best_known_rows(covariance, fixed_s, per_row_s)
    if (square * best + slope) * best + constant > 0.0:
        return None
    fewest, most = _bounds_around(best, square, slope, constant)
    return RowRange(max(fewest, 0.0), most)


def next_run(
    num_rows: Array,
    fixed_s: float,
    per_row_s: float,
    relative_noise: float,
    *,
    planned_rows: float,
    possible_rows: Array,
    accuracy_ratio: float,
    confidence: float = 0.95,
) -> NextRun | None:
    r"""Which size of batches to run next, and how many, to know a planned one well enough.

    Parameters
    ----------
    num_rows, fixed_s, per_row_s, relative_noise
        As in `line_covariance`; the batches may all be of one size.
    planned_rows : float, > 0
        Size of the batches to predict. [rows]
    possible_rows : (m,) array, >= 0
        Sizes that can be run. [rows]
    accuracy_ratio, confidence : float
        As in `trusted_rows`.

    Returns
    -------
    NextRun or None
        The size that needs the fewest batches, 0 if enough is known; None if a million do not do.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (E17). Equal to trying every size and every number of batches.

    Examples
    --------
    >>> next_run(
    ...     np.full(40, 1e4), 2.0, 3e-4, 0.1, planned_rows=2e4,
    ...     possible_rows=np.array([1e3, 2e4]), accuracy_ratio=0.05,
    ... )
    NextRun(num_rows=1000.0, num_batches=5)
    """
    sizes = np.asarray(possible_rows, dtype=np.float64)
    if sizes.size == 0 or not (np.all(sizes >= 0.0) and planned_rows > 0.0):
        raise ValueError("planned_rows must be positive, and possible_rows one size at least")
    if not (accuracy_ratio > 0.0 and 0.0 < confidence < 1.0):
        raise ValueError("accuracy_ratio must be positive, and confidence between 0 and 1")
    line = _line(fixed_s, per_row_s)
    known = _information(np.asarray(num_rows, dtype=np.float64), line, relative_noise)
    duration = fixed_s + per_row_s * planned_rows
    goal = float(accuracy_ratio * duration / ndtri(0.5 + 0.5 * confidence)) ** 2
    if _variance_at(known, planned_rows) <= goal:
        return NextRun(float(sizes[0]), 0)
    needed = [
        _batches_needed(
            known, _information(sizes[i : i + 1], line, relative_noise), planned_rows, goal
        )
        for i in range(len(sizes))
    ]
    best = int(np.argmin(needed))
    return NextRun(float(sizes[best]), needed[best]) if needed[best] <= _MOST_BATCHES else None


def _line(fixed_s: float, per_row_s: float) -> NDArray[np.float64]:
    if not (fixed_s >= 0.0 and per_row_s >= 0.0 and fixed_s + per_row_s > 0.0):
        raise ValueError("fixed_s and per_row_s must not be negative, nor both 0")
    return np.array([fixed_s, per_row_s])


def _information(rows: Array, line: Array, relative_noise: float) -> Array:
    """What batches say of the line: the inverse of its covariance."""
    mean = line[0] + line[1] * rows
    if not (rows.size and np.all(rows >= 0.0) and np.all(mean > 0.0) and relative_noise > 0.0):
        raise ValueError(
            "need batches with rows >= 0, of positive duration, and relative_noise > 0"
        )
    weight = (relative_noise * mean) ** -2.0
    return np.array(
        [
            [weight.sum(), (weight * rows).sum()],
            [(weight * rows).sum(), (weight * rows * rows).sum()],
        ]
    )


def _determinant(information: Array) -> float:
    """Zero where rounding is all that is left of it."""
    product = information[0, 0] * information[1, 1]
    determinant = float(product - information[0, 1] ** 2)
    return determinant if determinant > 1e-13 * product else 0.0


def _inverse(information: Array) -> LineCovariance:
    determinant = _determinant(information)
    if determinant == 0.0:
        return LineCovariance(np.inf, -np.inf, np.inf)
    return LineCovariance(
        float(information[1, 1] / determinant),
        float(-information[0, 1] / determinant),
        float(information[0, 0] / determinant),
    )


def _variance_at(information: Array, rows: float) -> float:
    """Variance of the mean duration of batches of one size."""
    ones, first, second = information[0, 0], information[0, 1], information[1, 1]
    determinant = _determinant(information)
    if determinant > 0.0:
        return float((second - 2.0 * rows * first + rows * rows * ones) / determinant)
    # Batches of one size tell the duration of that size only.
    at_that_size = np.isclose(rows * ones, first, rtol=1e-6, atol=0.0)
    return float(1.0 / ones) if at_that_size else float("inf")


def _batches_needed(known: Array, of_one: Array, rows: float, goal: float) -> int:
    """Fewest further batches, by halving; one more than the most if they never suffice."""
    low, high = 0, _MOST_BATCHES + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _variance_at(known + middle * of_one, rows) <= goal:
            high = middle
        else:
            low = middle
    return high


def _best_known_rows(covariance: LineCovariance, fixed_s: float, per_row_s: float) -> float:
    """Where the standard error over the duration is least: a zero of its derivative."""
    by_slope = covariance.per_row_variance_s2 * fixed_s - covariance.covariance_s2 * per_row_s
    by_level = covariance.fixed_variance_s2 * per_row_s - covariance.covariance_s2 * fixed_s
    return max(by_level / by_slope, 0.0) if by_slope > 0.0 else 0.0


def _bounds_around(
    inside: float, square: float, slope: float, constant: float
) -> tuple[float, float]:
    """Where the parabola, not positive ``inside``, becomes so to the left and to the right."""
    roots = np.roots([square, slope, constant])
    real = np.sort(roots[np.isreal(roots)].real)
    below, above = real[real <= inside], real[real >= inside]
    return (
        float(below[-1]) if len(below) else -np.inf,
        float(above[0]) if len(above) else np.inf,
    )
