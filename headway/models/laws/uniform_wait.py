"""A uniform wait before an independent duration, whatever the law of that duration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headway.models.arrays import Array

# Below this share of the scale the difference quotient has no digits left; its limit has them all.
_VANISHING_RATIO = 1e-8


def uniform_wait_cdf(
    x: Array,
    interval: Array,
    scale: Array,
    cdf: Callable[[Array], Array],
    partial_expectation: Callable[[Array], Array],
) -> Array:
    r"""Distribution function of a uniform wait plus an independent duration.

    Parameters
    ----------
    x : (n,) array
        Where to evaluate, any unit.
    interval : (n,) array, >= 0
        Length of the uniform wait, unit of ``x``.
    scale : (n,) array, > 0
        Typical size of the duration, unit of ``x``: what an interval is small against.
    cdf : callable
        Distribution function of the duration.
    partial_expectation : callable
        Its integral, the mean of the positive part of ``x - D``.

    Returns
    -------
    array
        Inputs broadcast, 0 to 1. [-] For inner loops: nothing is checked.

    Notes
    -----
    theory.md (D4). Exact for every law of which the integral is.

    Examples
    --------
    >>> one = np.array(1.0)
    >>> step = lambda x: np.where(x >= 5.0, 1.0, 0.0)
    >>> ramp = lambda x: np.maximum(x - 5.0, 0.0)
    >>> float(uniform_wait_cdf(np.array(12.5), 10.0 * one, 5.0 * one, step, ramp))
    0.75
    """
    vanishing = interval <= _VANISHING_RATIO * np.maximum(np.abs(x), scale)
    difference = partial_expectation(x) - partial_expectation(x - interval)
    quotient = difference / np.where(vanishing, 1.0, interval)
    return np.clip(np.where(vanishing, cdf(x), quotient), 0.0, 1.0)
