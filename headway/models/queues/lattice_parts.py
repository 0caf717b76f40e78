"""Parts of a latency on one lattice: uniform waits and waits with known moments."""

from __future__ import annotations

import numpy as np

from headway.models.arrays import Array, Numeric, open_probability
from headway.models.laws.gamma import gammainc, gammaincinv
from headway.models.queues.lattice import LatticeLaw, lattice_law
from headway.models.queues.queueing import WaitMoments

_NEGLIGIBLE = 1e-9
_SMALLEST_SCV = 1e-8  # of a positive wait; below this it is a constant at any step


def uniform_law(width_s: float, step_s: float) -> LatticeLaw:
    r"""A time that is uniform from 0 to a width (V5).

    Parameters
    ----------
    width_s : float, >= 0
        Longest time; 0 means no time. [s]
    step_s : float, > 0

    Raises
    ------
    LatticeTooLongError
        If the width needs more than a million steps.

    Examples
    --------
    >>> uniform_law(1.0, 0.5).probability
    array([0.25, 0.5 , 0.25])
    """
    if not (np.isfinite(width_s) and width_s >= 0.0):
        raise ValueError(f"width_s must be finite and not negative, got {width_s}")
    if width_s == 0.0:
        return LatticeLaw(step_s=step_s, lowest_index=0, probability=np.ones(1))
    return lattice_law(lambda time: np.clip(time / width_s, 0.0, 1.0), step_s, 0.0, width_s)


def zero_or_gamma_law(wait: WaitMoments, step_s: float) -> LatticeLaw:
    r"""A wait with known moments, taken as zero or gamma distributed (Q15).

    Parameters
    ----------
    wait : WaitMoments
        Of one queue, finite.
    step_s : float, > 0

    Raises
    ------
    LatticeTooLongError
        If the wait needs more than a million steps.

    Examples
    --------
    >>> law = zero_or_gamma_law(WaitMoments(np.array(1.0), np.array(3.0), np.array(0.5)), 0.01)
    >>> law.mean_s, law.variance_s2, float(law.probability[0])
    (1.0, 3.0, 0.50)
    """
    mean, variance, prob = (float(value) for value in wait)
    if not (0.0 <= mean < np.inf and 0.0 <= variance < np.inf and 0.0 <= prob <= 1.0):
        raise ValueError("the moments of the wait must be finite and not negative")
    if mean <= _NEGLIGIBLE * step_s or prob == 0.0:
        return LatticeLaw(step_s=step_s, lowest_index=0, probability=np.ones(1))
    centre = mean / prob
    scv = max(variance / (prob * centre * centre) - (1.0 - prob), _SMALLEST_SCV)

    shape = 1.0 / scv

    def positive(time: Array) -> Array:
        return np.asarray(gammainc(shape, np.maximum(time, 0.0) / (centre * scv)))

    highest_s = centre * scv * float(gammaincinv(shape, 1.0 - _NEGLIGIBLE))
    law = lattice_law(positive, step_s, 0.0, max(highest_s, step_s))
    probability = prob * law.probability
    probability[-law.lowest_index] += 1.0 - prob
    return LatticeLaw(step_s=step_s, lowest_index=law.lowest_index, probability=probability)


def smooth_quantile_s(law: LatticeLaw | None, q: Numeric) -> Array:
    r"""Quantile of a law without atoms: the mass of each time is spread over its step.

    Parameters
    ----------
    law : LatticeLaw or None
        On a lattice, of a time that has a density; None if the time is unbounded.
    q : float or (n,) array, 0 < q < 1

    Returns
    -------
    array
        Shape of ``q``; ``inf`` without a law. [s]

    Notes
    -----
    **(V5)** Quantiles: the mass of each lattice time is spread evenly over its step. There are no
    atoms, since `VB` is uniform.

    `LatticeLaw.quantile_s` returns whole steps, which suits laws with atoms.

    Examples
    --------
    >>> float(smooth_quantile_s(uniform_law(1.0, 0.01), 0.9))
    0.90
    """
    level = open_probability(q)
    if law is None:
        return np.full(level.shape, np.inf)
    edge = law.step_s * (law.lowest_index - 0.5 + np.arange(len(law.probability) + 1.0))
    below = np.concatenate([[0.0], np.cumsum(law.probability)])
    return np.asarray(np.maximum(np.interp(level * below[-1], below, edge), 0.0))
