"""Quantiles of distributions of which only the distribution function is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, Numeric, open_probability

_LEAST_TAIL = 1e-16
_MOST_DOUBLINGS = 60
_MOST_ROOT_STEPS, _TOLERANCE_RATIO = 100, 1e-10
_MOST_SLOW_STEPS = 2
_SLOPE_FALLS, _MOST_VALUE = 4.0, 3.0


def averaged_quantile_s(
    cdf: Callable[[Array], Array], guess_s: Array, q: Numeric, stable: NDArray[np.bool_]
) -> Array:
    """Inverse of a distribution function that is a mixture (T5), for each ``q`` and setting.

    Parameters
    ----------
    cdf : callable, takes times [s], in the broadcast shape of ``q`` and the settings
    guess_s : (n,) array, > 0, where the search starts, about the mean; ignored where unstable [s]
    q : float or array, 0 < q < 1, broadcasts against the settings
    stable : (n,) bool array, of the settings; the quantile is ``inf`` elsewhere

    >>> def cdf(x_s):
    ...     return 1.0 - np.exp(-x_s)
    >>> averaged_quantile_s(cdf, np.ones(2), [0.5, 0.99], np.array([True, True])).round(3)
    array([0.693, 4.605])
    """
    probability, guess = np.broadcast_arrays(open_probability(q), np.where(stable, guess_s, 1.0))

    def excess(x_s: Array) -> Array:
        # The logarithm of the tail is nearly linear.
        tail = np.maximum(1.0 - cdf(x_s), _LEAST_TAIL)
        return np.where(stable, np.log((1.0 - probability) / tail), 0.0)

    return np.where(stable, increasing_root(excess, guess), np.inf)


def increasing_root(function: Callable[[Array], Array], guess: Array) -> Array:
    """Zeros of increasing functions, for whole arrays at once.

    ``function`` increases in each element of its argument. The root is searched up to twice the
    guess, and beyond if it is not there. The function is not positive at the result, which is 0
    where it is positive throughout.

    Chandrupatla 1997: inverse quadratic interpolation where that is safe, else bisection.

    >>> increasing_root(lambda x: x**2 - np.array([4.0, 9.0]), np.full(2, 2.5))
    array([2., 3.])
    """
    newest, other = np.zeros_like(guess), 2.0 * guess
    f_newest, f_other = function(newest), function(other)
    rootless = f_newest > 0.0
    for _ in range(_MOST_DOUBLINGS):
        short = f_other < 0.0
        if not np.any(short):
            break
        newest, f_newest = np.where(short, other, newest), np.where(short, f_other, f_newest)
        other = np.where(short, 2.0 * other, other)
        f_other = function(other)
    step = np.full_like(guess, 0.5)
    for _ in range(_MOST_ROOT_STEPS):
        point = newest + step * (other - newest)
        value = function(point)
        same_side = np.sign(value) == np.sign(f_newest)
        third, f_third = np.where(same_side, newest, other), np.where(same_side, f_newest, f_other)
        other, f_other = np.where(same_side, other, newest), np.where(same_side, f_other, f_newest)
        newest, f_newest = point, value
        width, scale = np.abs(other - newest), np.maximum(newest, other)
        if np.all(rootless | (width <= _TOLERANCE_RATIO * scale) | (f_newest == 0.0)):
            break
        # If one end is almost the root, a step this small brings the other end close to it.
        smallest = 0.5 * _TOLERANCE_RATIO * scale / np.where(width > 0.0, width, 1.0)
        step = _interpolated_step(newest, other, third, f_newest, f_other, f_third)
        step = np.clip(step, np.minimum(smallest, 0.5), np.maximum(1.0 - smallest, 0.5))
    return np.where(rootless, 0.0, np.where(f_newest <= 0.0, newest, other))


def last_nonpositive(
    excess: Callable[[int], float], low: int, high: int, at_low: float, at_high: float
) -> int:
    """Largest integer at which an increasing function is not above zero.

    Parameters
    ----------
    excess : callable, increasing; may be infinite
    low, high : int, an integer at which it is not above zero, and one at which it is
    at_low, at_high : float, values of the function at these two

    Notes
    -----
    Regula falsi (Illinois variant, Dowell and Jarratt 1971: the value at an end that stays twice is
    halved), and bisection if two steps have not halved the bracket. It always terminates, and the
    result does not depend on the steps taken.

    >>> last_nonpositive(lambda number: number**2 - 50.0, 0, 100, -50.0, 9950.0)
    7
    """
    num_slow = 0
    was_kept: bool | None = None
    while high - low > 1:
        width, root = high - low, 0.5 * (low + high)
        if num_slow < _MOST_SLOW_STEPS and 0.0 < at_high - at_low < math.inf:
            root = low - at_low * width / (at_high - at_low)
        middle = min(max(math.floor(root), low + 1), high - 1)
        value = excess(middle)
        is_kept = value <= 0.0
        if is_kept:
            low, at_low, at_high = middle, value, at_high / (2.0 if was_kept is True else 1.0)
        else:
            high, at_high, at_low = middle, value, at_low / (2.0 if was_kept is False else 1.0)
        was_kept, num_slow = is_kept, num_slow + 1 if 2 * (high - low) > width else 0
    return low


def last_nonpositive_near(
    excess: Callable[[int], float],
    low: int,
    high: int,
    *,
    guess: int,
    slope: float,
    at_low: float = math.nan,
) -> int:
    """The same by steps from a guess, if the function has a value at neither end, or at the lower.

    Parameters
    ----------
    excess : callable, increasing; may be infinite
    low, high : int, an integer at which it is known not to be above zero, and one at which it is
    guess : int, where to begin
    slope : float, > 0, about how much the function grows from an integer to the next
    at_low : float, <= 0, optional, value of the function at the lower end

    Notes
    -----
    The steps along the slope become longer; with a value at both ends, `last_nonpositive` goes on:
    the Illinois variant (Dowell and Jarratt 1971), and bisection.

    >>> last_nonpositive_near(lambda number: number**2 - 50.0, -1, 100, guess=9, slope=10.0)
    7
    """
    at_high = math.nan
    while high - low > 1:
        number = min(max(guess, low + 1), high - 1)
        value = excess(number)
        if value <= 0.0:
            low, at_low = number, value
        else:
            high, at_high = number, value
        if not math.isnan(at_low + at_high):
            return last_nonpositive(excess, low, high, at_low, at_high)
        guess = math.floor(number - min(max(value, -_MOST_VALUE), _MOST_VALUE) / slope)
        slope /= _SLOPE_FALLS
    return low


def _interpolated_step(
    newest: Array, other: Array, third: Array, f_newest: Array, f_other: Array, f_third: Array
) -> Array:
    """Step from the newest point to the one across the zero, as a share; a half if unsafe."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        position_ratio = (newest - other) / (third - other)
        height = (f_newest - f_other) / (f_third - f_other)
        safe = (height**2 < position_ratio) & ((1.0 - height) ** 2 < 1.0 - position_ratio)
        step = f_newest / (f_other - f_newest) * f_third / (f_other - f_third) + (
            (third - newest) / (other - newest)
        ) * f_newest / (f_third - f_newest) * f_other / (f_third - f_other)
    return np.where(safe & np.isfinite(step), step, 0.5)
