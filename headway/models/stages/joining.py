"""The later of random points in time, which may share sources of noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headway.models.arrays import Array
from headway.models.laws.normal import ndtr

_SCORES = np.arange(-8.0, 8.01, 0.04)
_SMALLEST_SKEWNESS = 1e-3  # below, a shifted lognormal is practically normal
_NO_NOISE = 1e-12


@dataclass(frozen=True, slots=True)
class Moment:
    """A random point in time: its mean, and how far each source of noise moves it per unit.

    ``noise_s`` has the standard deviation that each independent source contributes.
    """

    mean_s: float
    noise_s: Array

    @property
    def sd_s(self) -> float:
        """Standard deviation. [s]"""
        return float(np.sqrt(self.noise_s @ self.noise_s))


def latest(moments: Sequence[Moment], skewness: Array) -> Moment:
    r"""The latest of several random points in time.

    Parameters
    ----------
    moments : sequence of Moment
        At least one, or it raises ``ValueError``; all with the same n sources of noise.
    skewness : (n,) array, of each source

    **(J5)** The later of two random points in time. The noise that they share is set aside. The
    rest is taken as independent shifted lognormals with two moments and the skewness that result
    from the stages. Mean and variance of the later one are computed by quadrature of `F_1 F_2`, and
    its noise coefficients are weighted in proportion to `P(first is later)`. More than two are
    combined one after the other.

    Exact for two points in time whose unshared parts are shifted lognormals.

    >>> pair = Moment(0.0, np.array([1.0, 0.0])), Moment(0.0, np.array([0.0, 1.0]))
    >>> latest(pair, np.zeros(2)).mean_s, latest(pair, np.zeros(2)).sd_s
    (0.5642, 0.826)
    """
    if not moments:
        raise ValueError("need at least one moment")
    last = moments[0]
    for moment in moments[1:]:
        last = _later(last, moment, skewness)
    return last


def _later(first: Moment, second: Moment, skewness: Array) -> Moment:
    same_sign = np.sign(first.noise_s) == np.sign(second.noise_s)
    shared = np.where(same_sign, np.minimum(np.abs(first.noise_s), np.abs(second.noise_s)), 0.0)
    shared = shared * np.sign(first.noise_s)
    unshared = [Moment(moment.mean_s, moment.noise_s - shared) for moment in (first, second)]
    largest = max(abs(first.mean_s), abs(second.mean_s), _NO_NOISE)
    if all(moment.sd_s <= _NO_NOISE * largest for moment in unshared):
        return first if first.mean_s >= second.mean_s else second
    mean, variance, share = _larger_of_independent(unshared[0], unshared[1], skewness)
    noise = share * unshared[0].noise_s + (1.0 - share) * unshared[1].noise_s
    carried = float(noise @ noise)
    scale = float(np.sqrt(variance / carried)) if carried > 0.0 else 1.0
    return Moment(mean, shared + scale * noise)


def _larger_of_independent(
    first: Moment, second: Moment, skewness: Array
) -> tuple[float, float, float]:
    """Mean and variance of the larger, and the probability that it is the first."""
    laws = [_shifted_lognormal(moment, skewness) for moment in (first, second)]
    point = np.unique(np.concatenate([quantiles_s for quantiles_s, _ in laws]))
    below = [cdf(point) for _, cdf in laws]
    joint = below[0] * below[1]
    width = np.diff(point)
    middle_joint = 0.5 * (joint[1:] + joint[:-1])
    mean = float(point[-1] - width @ middle_joint)
    middle = 0.5 * (point[1:] + point[:-1])
    second_moment = float((point[-1] - mean) ** 2 - 2.0 * (width * (middle - mean)) @ middle_joint)
    share = float(np.diff(below[0]) @ (0.5 * (below[1][1:] + below[1][:-1])))
    return mean, max(second_moment, 0.0), min(max(share, 0.0), 1.0)


def _shifted_lognormal(moment: Moment, skewness: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Quantiles and distribution function of a shifted lognormal; of a normal without skewness."""
    # A constant is a narrow normal: one formula serves both.
    sd_s = max(moment.sd_s, _NO_NOISE * max(abs(moment.mean_s), 1.0))
    third = max(float(skewness @ moment.noise_s**3) / sd_s**3, 0.0)
    if third < _SMALLEST_SKEWNESS:
        return (
            moment.mean_s + sd_s * _SCORES,
            lambda point_s: ndtr((point_s - moment.mean_s) / sd_s),
        )
    # exp(s^2) of the lognormal with this skewness: the real root of a cubic.
    root = np.cbrt(1.0 + 0.5 * third * third + third * np.sqrt(1.0 + 0.25 * third * third))
    excess = float((root - 1.0) ** 2 / root)
    log_sd, scale_s = float(np.sqrt(np.log1p(excess))), sd_s / float(np.sqrt(excess))
    median_s, lowest_s = scale_s * float(np.exp(-0.5 * log_sd**2)), moment.mean_s - scale_s

    def cdf(point_s: Array) -> Array:
        ratio = np.maximum(point_s - lowest_s, 0.0) / median_s
        with np.errstate(divide="ignore"):
            return ndtr(np.log(ratio) / log_sd)

    return lowest_s + median_s * np.exp(log_sd * _SCORES), cdf
