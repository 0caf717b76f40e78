"""What noise that lasts over several batches leaves of their number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, Numeric


class RunEvidence(NamedTuple):
    """What runs of correlated batches say of a mean and of a spread."""

    variance_factor: float
    """True variance of a mean over the one by resampling within runs; inf if none is left. [-]"""
    degrees_of_freedom: float
    """Of the variance within runs. [-]"""


def mean_inflation(num_batches: Numeric, autocorrelation: Numeric) -> Array:
    r"""By how much autocorrelation inflates the variance of a mean.

    Parameters
    ----------
    num_batches : float or (n,) array, >= 1
        Successive batches of a run. [-]
    autocorrelation : float or (n,) array, 0 to 1, 1 excluded
        Correlation of the noise of a batch with that of the one before. [-]

    Returns
    -------
    array
        Inputs broadcast, at least 1. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (E18). Exact for noise whose correlation falls off geometrically; for long runs
    (1 + phi) / (1 - phi).

    Examples
    --------
    >>> mean_inflation(np.array([1.0, 5.0, 1e6]), 0.3).round(3)
    array([1.   , 1.613, 1.857])
    """
    num, phi = np.broadcast_arrays(
        np.asarray(num_batches, dtype=float), np.asarray(autocorrelation, dtype=float)
    )
    if not (np.all(num >= 1.0) and np.all((phi >= 0.0) & (phi < 1.0))):
        raise ValueError("need num_batches >= 1 and autocorrelation in 0..1, 1 excluded")
    at_the_ends = 2.0 * phi * -np.expm1(num * np.log(np.maximum(phi, 1e-300)))
    return np.asarray((1.0 + phi) / (1.0 - phi) - at_the_ends / (num * (1.0 - phi) ** 2))


def effective_batches(num_batches: Numeric, autocorrelation: Numeric) -> Array:
    r"""Independent batches whose mean would be as certain as that of correlated ones.

    Parameters
    ----------
    num_batches, autocorrelation
        As in `mean_inflation`.

    Returns
    -------
    array
        Inputs broadcast, 1 to ``num_batches``. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (E18).

    Examples
    --------
    >>> effective_batches(np.array([10.0, 40.0]), 0.3).round(2)
    array([ 5.76, 21.9 ])
    """
    return np.asarray(num_batches / mean_inflation(num_batches, autocorrelation))


def run_evidence(run_lengths: Array | NDArray[np.int_], autocorrelation: float) -> RunEvidence:
    r"""How to correct a variance that was found by resampling within runs.

    Parameters
    ----------
    run_lengths : (r,) array, >= 1
        Batches of each run.
    autocorrelation : float, 0 to 1, 1 excluded
        As in `mean_inflation`.

    Returns
    -------
    RunEvidence
        ``inf`` and 0 where every run is a single batch.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (E18). Independent batches: N / (N - r) and N - r. The degrees of freedom of
    correlated ones are Satterthwaite's (1946), from exact moments of the variance within runs.

    Examples
    --------
    >>> run_evidence(np.array([10.0, 10.0]), 0.0)
    RunEvidence(variance_factor=1.1111, degrees_of_freedom=18.0)
    >>> run_evidence(np.array([10.0, 10.0]), 0.3)
    RunEvidence(variance_factor=2.0988, degrees_of_freedom=15.7033)
    """
    lengths = np.asarray(run_lengths, dtype=np.float64)
    if lengths.size == 0:
        raise ValueError("need at least one run")
    inflation = mean_inflation(lengths, autocorrelation)
    spare = float(np.sum(lengths - inflation))
    squares = sum(_square_moment(int(length), autocorrelation) for length in lengths)
    if spare <= 0.0 or squares <= 0.0:
        return RunEvidence(float("inf"), 0.0)
    return RunEvidence(float(np.sum(lengths * inflation)) / spare, spare**2 / squares)


def _square_moment(length: int, phi: float) -> float:
    """Half the variance of the sum of squares about the mean of a run of variance 1."""
    lag = np.arange(1.0, length)
    of_pairs = length + 2.0 * float(np.sum((length - lag) * phi ** (2.0 * lag)))
    place = np.arange(length, dtype=np.float64)
    row_sum = (1.0 + phi - phi ** (place + 1.0) - phi ** (length - place)) / (1.0 - phi)
    of_rows = float(np.sum(row_sum**2)) / length
    return max(of_pairs - 2.0 * of_rows + (float(row_sum.sum()) / length) ** 2, 0.0)
