"""The law of a pipeline's latency: two uniform waits and a remainder, taken as normal."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, Numeric, open_probability
from headway.models.laws.distributions import bisect_increasing
from headway.models.laws.normal import ndtr, ndtri

# A uniform narrower than this share of the scale is taken as normal; its terms would cancel.
_NARROWEST_RATIO = 1e-3
# Widths this small relative to the mean, or in absolute terms, are ignored, too.
_SMALLEST_WIDTH_RATIO = 1e-6
_SMALLEST_WIDTH_S = 1e-100
# The remainder has at least this standard deviation, which keeps the law smooth.
_SMALLEST_SD_RATIO = 1e-9
_FARTHEST_SCORE = 38.0
_ROOT_TWO_PI = float(np.sqrt(2.0 * np.pi))

PHASES = (
    "packing of the input batch",
    "queue of the distributor",
    "transfer of the input batch",
    "queue of the mapper",
    "map",
    "packing of the shuffle batch",
    "queue of the disk",
    "write of the shuffle batch",
    "wait for the poll",
    "transfer of the shuffle batch",
    "queue of the reducer",
    "update",
)
"""The 12 phases of a row, from the distributor to the end of its update function."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatencyPart:
    """One phase of a latency. Phases may depend on each other, so variances need not add up."""

    name: str
    """What happens in it."""
    mean_s: Array
    variance_s2: Array


def latency_parts(
    names: tuple[str, ...], moments: tuple[tuple[Numeric, Numeric], ...], stable: NDArray[np.bool_]
) -> tuple[LatencyPart, ...]:
    """Phases with their means [s] and variances [s^2], ``inf`` where unstable: (L7), (L11).

    Examples
    --------
    >>> (part,) = latency_parts(("map",), ((0.2, 0.01),), np.array(False))
    >>> part.name, float(part.mean_s)
    ('map', inf)
    """
    return tuple(
        LatencyPart(
            name=name,
            mean_s=np.where(stable, mean_s, np.inf),
            variance_s2=np.where(stable, variance_s2, np.inf),
        )
        for name, (mean_s, variance_s2) in zip(names, moments, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineLatency:
    """A latency of the pipeline; all ``inf`` if it is unstable.

    The law is that of ``mean_s`` plus two independent uniform waits, each centred, plus a centred
    normal with the rest of the variance. Without the waits it is normal.

    Parameters
    ----------
    parts : tuple of LatencyPart
        Phases in order; their means add up to ``mean_s``.
    mean_s, variance_s2 : arrays
        Moments of the latency over all rows, or windows, of all runs of the setting. [s], [s^2]
    uniform_widths_s : tuple of two arrays
        Widths of the uniform waits, 0 for none. [s]
    run_to_run_sd_s : array
        Standard deviation of the mean between runs that the phases of polls cause. If batches are
        packed less often than polled, the order in the queue adds to it. [s]

    Notes
    -----
    **(L8)** `L` is the sum of its mean, a centred uniform of width `B_sh - S`, another of width
    `B_ch - Op`, and a normal with the remaining variance. With `h(x) = E[((x-Z)^+)^2]/2` for the
    normal `Z`: `P(L ≤ x) = (h(y)-h(y-a)-h(y-b)+h(y-a-b))/(ab)`. Without `Z`, and for
    `1 - q ≤ min(a, b)/(2 max(a, b))`, the quantile is `E[L] + (a+b)/2 - sqrt(2(1-q) ab)`.

    Examples
    --------
    >>> law = PipelineLatency(
    ...     parts=(), mean_s=np.array(0.239), variance_s2=np.array(0.0047213),
    ...     uniform_widths_s=(np.array(0.1925), np.array(0.14)), run_to_run_sd_s=np.array(0.0),
    ... )
    >>> float(law.quantile_s(0.99)), float(law.cantelli_bound_s(0.99))
    (0.382, 0.923)
    """

    parts: tuple[LatencyPart, ...]
    mean_s: Array
    variance_s2: Array
    uniform_widths_s: tuple[Array, Array]
    run_to_run_sd_s: Array

    @property
    def sd_s(self) -> Array:
        """Standard deviation. [s]"""
        return np.sqrt(self.variance_s2)

    @property
    def is_stable(self) -> NDArray[np.bool_]:
        """Whether the latency is finite."""
        return np.isfinite(self.mean_s)

    def with_independent_phases(self) -> PipelineLatency:
        """The normal law of the latency if its phases were independent.

        Notes
        -----
        **(L9)** For comparison: independent phases with a normal sum, and Cantelli's bound
        `E + σ sqrt(q/(1-q))`, for any law.
        """
        no_width = np.zeros_like(self.mean_s)
        return replace(
            self,
            variance_s2=sum((part.variance_s2 for part in self.parts), np.zeros(())),
            uniform_widths_s=(no_width, no_width),
        )

    def cdf(self, x_s: Numeric) -> Array:
        """Probability of a latency of at most ``x_s`` [s]; 0 if unstable. [-]"""
        law = _Law.of(self)
        return np.where(self.is_stable, law.cdf(np.asarray(x_s, dtype=np.float64)), 0.0)

    def quantile_s(self, q: Numeric) -> Array:
        """Quantiles, 0 < q < 1; ``inf`` if unstable. [s]"""
        probability = open_probability(q)
        law = _Law.of(self)
        reach = 0.5 * (law.first + law.second)
        score = np.minimum(np.abs(ndtri(probability)) + 1.0, _FARTHEST_SCORE) * law.sd
        shape = np.broadcast_shapes(probability.shape, law.mean.shape)
        # Bisection relative to the mean, so that precision does not depend on it.
        offset = bisect_increasing(
            law.cdf_beyond_mean,
            probability,
            np.broadcast_to(-reach - score, shape),
            np.broadcast_to(reach + score, shape),
        )
        return np.where(self.is_stable, law.mean + offset, np.inf)

    def cantelli_bound_s(self, q: Numeric) -> Array:
        """Upper bound of a quantile, 0 < q < 1, which the paper uses if no law is known. [s]

        Notes
        -----
        **(D9)** Cantelli's bound of a quantile, for any law: `μ + σ sqrt(q/(1-q))` (VLDB'15, eq.
        4). A law on two points attains it.
        """
        probability = open_probability(q)
        return self.mean_s + self.sd_s * np.sqrt(probability / (1.0 - probability))


def in_series(latencies: tuple[PipelineLatency, ...]) -> PipelineLatency:
    r"""Latency through several pipelines in series with independent clocks.

    Parameters
    ----------
    latencies : tuple of PipelineLatency
        Latencies of the rounds, at least one.

    Returns
    -------
    PipelineLatency
        ``parts`` are those of all rounds.

    Notes
    -----
    **(L10)** Rounds in series: means and variances add up, and the two widest uniforms are kept.
    The paper gives each round a limit of its own, here in proportion to its latency. This is exact
    for means and too strict for quantiles.

    Examples
    --------
    >>> latency = PipelineLatency(
    ...     parts=(), mean_s=np.array(0.2), variance_s2=np.array(0.004),
    ...     uniform_widths_s=(np.array(0.1), np.array(0.2)), run_to_run_sd_s=np.array(0.03),
    ... )
    >>> series = in_series((latency, latency))
    >>> float(series.mean_s), float(series.run_to_run_sd_s)
    (0.4, 0.0424)
    >>> [float(width) for width in series.uniform_widths_s]
    [0.2, 0.2]
    """
    if not latencies:
        raise ValueError("need at least one round")
    widths = np.broadcast_arrays(
        *(width for latency in latencies for width in latency.uniform_widths_s)
    )
    widest = np.sort(np.stack(widths), axis=0)[::-1]
    return PipelineLatency(
        parts=tuple(
            replace(part, name=f"round {number}: {part.name}")
            for number, latency in enumerate(latencies, start=1)
            for part in latency.parts
        ),
        mean_s=sum((latency.mean_s for latency in latencies), np.zeros(())),
        variance_s2=sum((latency.variance_s2 for latency in latencies), np.zeros(())),
        uniform_widths_s=(widest[0], widest[1]),
        run_to_run_sd_s=np.sqrt(
            sum((latency.run_to_run_sd_s**2 for latency in latencies), np.zeros(()))
        ),
    )


def split_limit_s(limit_s: Numeric, round_latencies_s: tuple[Numeric, ...]) -> tuple[Array, ...]:
    r"""A limit for each round of a job, as the paper divides the limit of the whole job.

    Parameters
    ----------
    limit_s : float or (n,) array, > 0
        Limit of the whole.
    round_latencies_s : tuple of float or (n,) arrays, > 0
        Value of the limited metric for each round, at least one: its mean, or its quantile.

    Returns
    -------
    tuple of arrays
        Limits in proportion to the latencies, which add up to ``limit_s``. [s]

    Notes
    -----
    theory.md (L10). Exact for means. For a quantile it requires more than is needed, since the
    quantiles of the rounds add up to more than the quantile of their sum, `in_series`.

    Examples
    --------
    >>> [float(limit) for limit in split_limit_s(2.0, (0.3, 0.1))]
    [1.5, 0.5]
    """
    latencies_s = [np.asarray(latency_s, dtype=np.float64) for latency_s in round_latencies_s]
    limit = np.asarray(limit_s, dtype=np.float64)
    if not latencies_s or not all(
        np.all(latency_s > 0.0) and np.all(np.isfinite(latency_s)) for latency_s in latencies_s
    ):
        raise ValueError("round_latencies_s must be positive and finite, at least one")
    if not (np.all(limit > 0.0) and np.all(np.isfinite(limit))):
        raise ValueError("limit_s must be positive and finite")
    total = sum(latencies_s, np.zeros(()))
    return tuple(limit * latency_s / total for latency_s in latencies_s)


@dataclass(frozen=True, slots=True, eq=False)
class _Law:
    """Numbers of the law, with placeholders if the latency is infinite."""

    mean: Array
    first: Array
    second: Array
    sd: Array

    @classmethod
    def of(cls, latency: PipelineLatency) -> _Law:
        stable = latency.is_stable
        mean, variance, first, second = (
            np.where(stable, value, 1.0)
            for value in (latency.mean_s, latency.variance_s2, *latency.uniform_widths_s)
        )
        remainder_s2 = np.maximum(variance - (first**2 + second**2) / 12.0, 0.0)
        least = np.maximum(_SMALLEST_WIDTH_RATIO / _NARROWEST_RATIO * mean, _SMALLEST_WIDTH_S)
        for _ in range(2):
            scale = np.maximum(np.maximum(first, second), np.maximum(np.sqrt(remainder_s2), least))
            narrow_first = first < _NARROWEST_RATIO * scale
            narrow_second = second < _NARROWEST_RATIO * scale
            remainder_s2 = remainder_s2 + np.where(narrow_first, first**2, 0.0) / 12.0
            remainder_s2 = remainder_s2 + np.where(narrow_second, second**2, 0.0) / 12.0
            first = np.where(narrow_first, 0.0, first)
            second = np.where(narrow_second, 0.0, second)
        scale = np.maximum(np.maximum(first, second), np.maximum(mean, least))
        return cls(
            mean, first, second, np.maximum(np.sqrt(remainder_s2), _SMALLEST_SD_RATIO * scale)
        )

    def cdf(self, x: Array) -> Array:
        return self.cdf_beyond_mean(x - self.mean)

    def cdf_beyond_mean(self, offset: Array) -> Array:
        """Differences of the normal law integrated once for each uniform wait."""
        start = offset + 0.5 * (self.first + self.second)
        wide = np.maximum(self.first, self.second)
        narrow = np.minimum(self.first, self.second)
        has_wide, has_narrow = wide > 0.0, narrow > 0.0
        two_waits = self._twice(start) - self._twice(start - wide)
        two_waits = two_waits - self._twice(start - narrow) + self._twice(start - wide - narrow)
        one_wait = self._once(start) - self._once(start - wide)
        value = np.where(
            has_narrow,
            two_waits / np.where(has_narrow, wide * narrow, 1.0),
            np.where(has_wide, one_wait / np.where(has_wide, wide, 1.0), ndtr(offset / self.sd)),
        )
        return np.clip(value, 0.0, 1.0)

    def _once(self, x: Array) -> Array:
        """Mean of the positive part of ``x - Z``, Z the normal remainder."""
        score = x / self.sd
        return self.sd * (score * ndtr(score) + _density(score))

    def _twice(self, x: Array) -> Array:
        """Half the mean square of that positive part."""
        score = x / self.sd
        return 0.5 * self.sd**2 * ((score * score + 1.0) * ndtr(score) + score * _density(score))


def _density(score: Array) -> Array:
    bounded = np.clip(score, -_FARTHEST_SCORE, _FARTHEST_SCORE)
    return np.exp(-0.5 * bounded * bounded) / _ROOT_TWO_PI
