"""The law of a pipeline's latency: two uniform waits and a remainder, taken as normal."""

from __future__ import annotations

from collections.abc import Sequence
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
WINDOW_PHASES = ("last rows of all mappers", "finalize")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatencyPart:
    """One phase of a latency. Phases may depend on each other, so variances need not add up."""

    name: str  # What happens in it.
    mean_s: Array
    variance_s2: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineLatency:
    """A latency of the pipeline; all ``inf`` if it is unstable.

    The law is that of ``mean_s`` plus two independent uniform waits, each centred, plus a centred
    normal with the rest of the variance. Without the waits it is normal.

    **(L8)** `L` is the sum of its mean, a centred uniform of width `B_sh - S`, another of width
    `B_ch - Op`, and a normal with the remaining variance. With `h(x) = E[((x-Z)^+)^2]/2` for the
    normal `Z`: `P(L ≤ x) = (h(y)-h(y-a)-h(y-b)+h(y-a-b))/(ab)`. Without `Z`, and for
    `1 - q ≤ min(a, b)/(2 max(a, b))`, the quantile is `E[L] + (a+b)/2 - sqrt(2(1-q) ab)`.

    >>> law = PipelineLatency(
    ...     parts=(), mean_s=np.array(0.239), variance_s2=np.array(0.0047213),
    ...     uniform_widths_s=(np.array(0.1925), np.array(0.14)), run_to_run_sd_s=np.array(0.0),
    ... )
    >>> float(law.quantile_s(0.99)), float(law.cantelli_bound_s(0.99))
    (0.382, 0.923)
    """

    parts: tuple[LatencyPart, ...]  # Phases in order; their means add up to ``mean_s``.
    mean_s: Array  # Over all rows, or windows, of all runs, as is the variance. [s]
    variance_s2: Array
    uniform_widths_s: tuple[Array, Array]  # Of the uniform waits, 0 for none. [s]
    run_to_run_sd_s: Array
    """Standard deviation of the mean between runs that the phases of polls cause. If batches are
    packed less often than polled, the order in the queue adds to it. [s]"""

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
        mean, first, second, sd = _mean_widths_and_sd(self)
        share = _cdf_beyond_mean(np.asarray(x_s, dtype=np.float64) - mean, first, second, sd)
        return np.where(self.is_stable, share, 0.0)

    def quantile_s(self, q: Numeric) -> Array:
        """Quantiles, 0 < q < 1; ``inf`` if unstable. [s]"""
        probability = open_probability(q)
        mean, first, second, sd = _mean_widths_and_sd(self)
        reach = 0.5 * (first + second)
        score = np.minimum(np.abs(ndtri(probability)) + 1.0, _FARTHEST_SCORE) * sd
        shape = np.broadcast_shapes(probability.shape, mean.shape)
        # Bisection relative to the mean, so that precision does not depend on it.
        offset = bisect_increasing(
            lambda offset: _cdf_beyond_mean(offset, first, second, sd),
            probability,
            np.broadcast_to(-reach - score, shape),
            np.broadcast_to(reach + score, shape),
        )
        return np.where(self.is_stable, mean + offset, np.inf)

    def cantelli_bound_s(self, q: Numeric) -> Array:
        """Upper bound of a quantile, 0 < q < 1, which the paper uses if no law is known. [s]

        **(D9)** Cantelli's bound of a quantile, for any law: `μ + σ sqrt(q/(1-q))` (VLDB'15, eq.
        4). A law on two points attains it.
        """
        probability = open_probability(q)
        return self.mean_s + self.sd_s * np.sqrt(probability / (1.0 - probability))


def latency_of_parts(
    names: tuple[str, ...], moments: tuple[tuple[Numeric, Numeric], ...], stable: NDArray[np.bool_]
) -> PipelineLatency:
    """Phases with their means [s] and variances [s^2], as if independent, with a normal sum (L9).

    >>> latency = latency_of_parts(("map",), ((0.2, 0.01),), np.array(False))
    >>> latency.parts[0].name, float(latency.mean_s)
    ('map', inf)
    """
    parts = tuple(
        LatencyPart(
            name=name,
            mean_s=np.where(stable, mean_s, np.inf),
            variance_s2=np.where(stable, variance_s2, np.inf),
        )
        for name, (mean_s, variance_s2) in zip(names, moments, strict=True)
    )
    mean_s = sum((part.mean_s for part in parts), np.zeros(()))
    no_width = np.zeros_like(mean_s)
    return PipelineLatency(
        parts=parts,
        mean_s=mean_s,
        variance_s2=sum((part.variance_s2 for part in parts), np.zeros(())),
        uniform_widths_s=(no_width, no_width),
        run_to_run_sd_s=no_width,
    )


def in_series(latencies: tuple[PipelineLatency, ...]) -> PipelineLatency:
    r"""Latency through several pipelines in series with independent clocks, and all their parts.

    Parameters
    ----------
    latencies : tuple of PipelineLatency, latencies of the rounds, at least one

    **(L10)** Rounds in series: means and variances add up, and the two widest uniforms are kept.
    The paper gives each round a limit of its own, here in proportion to its latency. This is exact
    for means and too strict for quantiles.

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


def split_limit_s(limit_s: float, round_latencies_s: Sequence[float]) -> tuple[float, ...]:
    r"""A limit for each round of a job, as the paper divides the limit of the whole job (L10).

    They are in proportion to the latencies, and add up to ``limit_s``. [s] Exact for means. For a
    quantile it requires more than is needed, since the quantiles of the rounds add up to more than
    the quantile of their sum, `in_series`.

    Parameters
    ----------
    limit_s : float, > 0, limit of the whole
    round_latencies_s : sequence of float, > 0, the limited metric of each round: mean or quantile

    >>> split_limit_s(2.0, (0.3, 0.1))
    (1.5, 0.5)
    """
    if not round_latencies_s or not all(
        0.0 < latency_s < np.inf for latency_s in round_latencies_s
    ):
        raise ValueError("round_latencies_s must be positive and finite, at least one")
    if not 0.0 < limit_s < np.inf:
        raise ValueError("limit_s must be positive and finite")
    total_s = sum(round_latencies_s)
    return tuple(limit_s * latency_s / total_s for latency_s in round_latencies_s)


def _mean_widths_and_sd(latency: PipelineLatency) -> tuple[Array, Array, Array, Array]:
    """Of the uniform waits and the normal remainder; placeholders if the latency is infinite."""
    stable = latency.is_stable
    mean, variance, first, second = (
        np.where(stable, value, 1.0)
        for value in (latency.mean_s, latency.variance_s2, *latency.uniform_widths_s)
    )
    remainder_s2 = np.maximum(variance - (first**2 + second**2) / 12.0, 0.0)
    min_width_s = np.maximum(_SMALLEST_WIDTH_RATIO / _NARROWEST_RATIO * mean, _SMALLEST_WIDTH_S)
    for _ in range(2):
        scale = np.maximum(
            np.maximum(first, second), np.maximum(np.sqrt(remainder_s2), min_width_s)
        )
        narrow_first = first < _NARROWEST_RATIO * scale
        narrow_second = second < _NARROWEST_RATIO * scale
        remainder_s2 = remainder_s2 + np.where(narrow_first, first**2, 0.0) / 12.0
        remainder_s2 = remainder_s2 + np.where(narrow_second, second**2, 0.0) / 12.0
        first = np.where(narrow_first, 0.0, first)
        second = np.where(narrow_second, 0.0, second)
    scale = np.maximum(np.maximum(first, second), np.maximum(mean, min_width_s))
    return mean, first, second, np.maximum(np.sqrt(remainder_s2), _SMALLEST_SD_RATIO * scale)


def _cdf_beyond_mean(offset: Array, first: Array, second: Array, sd: Array) -> Array:
    """Differences of the normal law integrated once for each uniform wait."""
    start = offset + 0.5 * (first + second)
    wide, narrow = np.maximum(first, second), np.minimum(first, second)
    has_wide, has_narrow = wide > 0.0, narrow > 0.0
    two_waits = _twice(start, sd) - _twice(start - wide, sd)
    two_waits = two_waits - _twice(start - narrow, sd) + _twice(start - wide - narrow, sd)
    one_wait = _once(start, sd) - _once(start - wide, sd)
    value = np.where(
        has_narrow,
        two_waits / np.where(has_narrow, wide * narrow, 1.0),
        np.where(has_wide, one_wait / np.where(has_wide, wide, 1.0), ndtr(offset / sd)),
    )
    return np.clip(value, 0.0, 1.0)


def _once(x: Array, sd: Array) -> Array:
    """Mean of the positive part of ``x - Z``, Z the normal remainder."""
    score = x / sd
    return sd * (score * ndtr(score) + _density(score))


def _twice(x: Array, sd: Array) -> Array:
    """Half the mean square of that positive part."""
    score = x / sd
    return 0.5 * sd**2 * ((score * score + 1.0) * ndtr(score) + score * _density(score))


def _density(score: Array) -> Array:
    bounded = np.clip(score, -_FARTHEST_SCORE, _FARTHEST_SCORE)
    return np.exp(-0.5 * bounded * bounded) / _ROOT_TWO_PI
