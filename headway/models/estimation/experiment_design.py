"""Which settings to run so that few runs determine a model best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array

_STARTS = 8
_MOST_SWEEPS = 100
# An exchange must gain at least this much, so that rounding causes no cycles.
_LEAST_GAIN = 1e-9
# The information of fewer than k settings is singular; this part of the whole keeps it solvable.
_HINT = 1e-6


def log_information(columns: Array, indices: NDArray[np.intp]) -> float:
    r"""Logarithm of the determinant of the information of the chosen settings: theory.md (E20).

    ``columns`` has a row per setting: what each coefficient is multiplied by, over the expected
    duration. ``indices`` may be repeated. The result is ``-inf`` if a coefficient stays open. Only
    differences are meaningful: k ln 2 more halves the variances.

    >>> loads = np.column_stack([np.ones(3), [1.0, 2.0, 3.0]])
    >>> round(log_information(loads, np.array([0, 2])), 4)
    1.3863
    """
    rows = np.asarray(columns, dtype=np.float64)[indices]
    length = np.linalg.norm(columns, axis=0)
    if len(rows) < columns.shape[1] or np.any(length == 0.0):
        return float("-inf")
    singular = np.linalg.svd(rows / length, compute_uv=False)
    if singular[-1] <= 1e-10 * singular[0]:
        return float("-inf")
    return float(2.0 * (np.log(singular).sum() + np.log(length).sum()))


def d_optimal_design(
    columns: Array, num_runs: int, *, already_run: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    r"""The settings that are most informative on all coefficients together, found by exchange.

    The result are the indices of the candidates to run, ascending, without those already run. It
    raises ``ValueError`` if there are too few candidates, or they cannot determine all
    coefficients.

    Parameters
    ----------
    columns : (m, k) array, as in `log_information`, a row per candidate
    num_runs : int, >= 0, candidates to choose, ``already_run`` not counted
    already_run : (r,) array of int, optional
        Candidates that have been run, with repetitions: the choice complements them.

    **(E20)** D-optimal design: the candidate settings with the largest `det Σ xxᵀ`, where `x` are
    the columns of the model over the expected duration. Found by Fedorov's exchange from a greedy
    and eight random starts. Swapping `x_i` for `x_j` multiplies the determinant by
    `(1-d_i)(1+d_j) + d_ij^2`, `d_ij = x_iᵀ M^-1 x_j`.

    Fedorov (1972). Compared with enumeration of all designs of small candidate sets, it found the
    best in every case.

    >>> loads = np.column_stack([np.ones(5), np.linspace(1.0, 3.0, 5)])
    >>> d_optimal_design(loads, 2)
    array([0, 4])
    """
    candidates = np.asarray(columns, dtype=np.float64)
    before = np.zeros(0, dtype=np.intp) if already_run is None else np.asarray(already_run)
    num_candidates, num_coefficients = candidates.shape
    if not 0 <= num_runs <= num_candidates:
        raise ValueError(f"num_runs must not exceed the {num_candidates} candidates")
    if num_runs + len(before) < num_coefficients:
        raise ValueError(f"{num_coefficients} coefficients need at least as many runs")
    scaled = candidates / np.maximum(np.linalg.norm(candidates, axis=0), 1e-300)
    random = np.random.default_rng(0)
    starts = [_greedy(scaled, num_runs, before)]
    starts += [random.permutation(num_candidates)[:num_runs] for _ in range(_STARTS)]
    designs = [_exchanged(scaled, start, before) for start in starts]
    informations = [
        log_information(candidates, np.concatenate([before, design])) for design in designs
    ]
    best = int(np.argmax(informations))
    if informations[best] == float("-inf"):
        raise ValueError("these candidates leave a coefficient open, whichever are run")
    return np.sort(designs[best])


def _greedy(scaled: Array, num_runs: int, before: NDArray[np.intp]) -> NDArray[np.intp]:
    """One setting after the other, each the one with the largest variance so far."""
    information = _hint(scaled) + scaled[before].T @ scaled[before]
    design = np.zeros(num_runs, dtype=np.intp)
    for index in range(num_runs):
        inverse = np.asarray(np.linalg.inv(information), dtype=np.float64)
        variance = _variance(scaled, inverse)
        variance[design[:index]] = -np.inf
        design[index] = np.argmax(variance)
        information += np.outer(scaled[design[index]], scaled[design[index]])
    return design


def _exchanged(
    scaled: Array, start: NDArray[np.intp], before: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Swap runs for candidates as long as the determinant grows."""
    design = start.copy()
    for _ in range(_MOST_SWEEPS):
        if not _swap_best(scaled, design, before):
            break
    return design


def _swap_best(scaled: Array, design: NDArray[np.intp], before: NDArray[np.intp]) -> bool:
    """Swap one run for one candidate, if that adds information; the best of all such pairs."""
    rows = np.concatenate([before, design]).astype(np.intp)
    information = scaled[rows].T @ scaled[rows]
    if np.linalg.matrix_rank(information) < len(information):
        information = information + _hint(scaled)
    inverse = np.asarray(np.linalg.inv(information), dtype=np.float64)
    cross_variance = scaled[design] @ inverse @ scaled.T
    of_run = _variance(scaled[design], inverse)
    # Factor on the determinant: one run out, one candidate in.
    factor = (1.0 - of_run)[:, np.newaxis] * (1.0 + _variance(scaled, inverse)) + cross_variance**2
    factor[:, design] = -np.inf
    if factor.size == 0:
        return False
    run, candidate = np.unravel_index(int(np.argmax(factor)), factor.shape)
    if factor[run, candidate] <= 1.0 + _LEAST_GAIN:
        return False
    design[run] = candidate
    return True


def _variance(rows: Array, inverse_information: Array) -> Array:
    """Variance of the duration of each setting."""
    return np.asarray(np.einsum("ij,jk,ik->i", rows, inverse_information, rows))


def _hint(scaled: Array) -> Array:
    """A trace of information on every coefficient."""
    return _HINT * np.eye(scaled.shape[1])
