"""What measured batches can tell of fixed time and time per row, and what to run to learn more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.planning import CONFIDENCE
from headway.models.arrays import Array
from headway.models.laws.normal import ndtri

_MOST_BATCHES = 1 << 20


# A slope is identified if its 90% interval stays within half of it on either side.
class NextRun(NamedTuple):
    """Batches to run next."""

    num_rows: float
    num_batches: int


def next_run(
    num_rows: Array,
    fixed_s: float,
    per_row_s: float,
    relative_noise: float,
    *,
    planned_rows: float,
    possible_rows: Array,
    accuracy_ratio: float,
    confidence: float = CONFIDENCE.value,
) -> NextRun | None:
    r"""Which size of batches to run next, and how many, to know a planned one well enough.

    Parameters
    ----------
    num_rows : (n,) array, >= 0
        Rows of each independent batch measured so far; all may be of one size. [rows]
    fixed_s, per_row_s : float, >= 0
        The line, every batch with a positive duration. [s, s/row]
    relative_noise : float, > 0
        Noise in proportion to the duration. [-]
    planned_rows : float, > 0
        Size of the batches to predict. [rows]
    possible_rows : (m,) array, >= 0
        Sizes that can be run. [rows]
    accuracy_ratio : float, > 0
        Largest error of the mean duration there, over itself. [-]
    confidence : float, 0 to 1, both excluded
        Probability of keeping it. [-]

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
    **(E17)** A line is known to `ε` at `n` rows with confidence `z` where
    `z^2(V_aa+2nV_ab+n^2 V_bb) ≤ ε^2(a+bn)^2`; `k` further batches of `n'` rows add `k` times their
    term to (E15), and the fewest that do follow by halving. Noise in proportion makes small batches
    the cheapest source of `a`.

    Equal to trying every size and every number of batches.

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
    """What batches say of the line: the inverse of its covariance.

    Notes
    -----
    **(E15)** Covariance of a line: the inverse of `Σ_i xxᵀ/(c(a+bn_i))^2`, `x = (1, n_i)`. A
    constant rate tells nothing of `b`: batches of one size leave it open.
    """
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
