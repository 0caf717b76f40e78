"""The time between the starts of two batches: the longer of trigger interval and duration.

Triggers may wait for a minimum of rows, as those of Kafka with minOffsetsPerTrigger do.
"""

from __future__ import annotations

import math

import numpy as np

from headway.assumptions.switches import ARRIVED_SPREAD_RATIO, MOST_TRIGGER_DELAY_S
from headway.lazy_classes import dataclass
from headway.models.arrays import Array, Numeric
from headway.models.laws.normal import quick_ndtr

NARROWEST_LOG_SD = 1e-9  # a constant is the lognormal of this width
_MOST_SPREADS = 6.0
_NEXT_TRIGGER_RATIO = 1e-9
_ROUNDING = 1e-9  # a start on the grid may be below it by a rounding error


@dataclass(frozen=True, slots=True)
class IntervalMoments:
    """Moments of the larger of the trigger interval and a lognormal duration. [s, s^2]"""

    mean: Array
    mean_square: Array
    variance: Array
    overrun_probability: Array  # of the duration being the larger
    duration_mean_s: Array
    duration_variance_s2: Array
    duration_log_sd: Array
    scores: Array  # of batches, of their time and of its square beyond the trigger interval
    shares: Array  # likewise

    def slopes(self) -> tuple[Array, Array, Array, Array]:
        """Derivatives of mean and mean square, each by the duration's mean, then its variance."""
        mean, variance = self.duration_mean_s, self.duration_variance_s2
        log_sd = self.duration_log_sd
        mean_square = mean * mean + variance
        _, first_over, second_over = self.shares
        scores = self.scores[1:]
        first_density, second_density = np.exp(-0.5 * scores * scores) / np.sqrt(2.0 * np.pi)
        width_by_variance = 1.0 / (2.0 * log_sd * mean_square)
        width_by_mean = -variance / (log_sd * mean * mean_square)
        return (
            first_over + mean * first_density * width_by_mean,
            mean * first_density * width_by_variance,
            2.0 * mean * second_over + 2.0 * mean_square * second_density * width_by_mean,
            second_over + 2.0 * mean_square * second_density * width_by_variance,
        )


def interval_moments(trigger_s: Array, mean_s: Array, variance_s2: Array) -> IntervalMoments:
    r"""Moments of the time between the starts of two batches.

    ``mean_s``, above 0, and ``variance_s2`` are those of the batch duration.

    **(B2)** The time between the starts of two batches is `T = max(B, D)`. With `s, z` of (D1),
    (D2) at `x = B`, `E[T] = B Φ(z) + m Φ(s-z)` and `E[T^2] = B^2 Φ(z) + m^2 e^(s^2) Φ(2s-z)`. The
    variance is computed from moments of `T - B`.

    >>> one = np.array(1.0)
    >>> float(interval_moments(2.0 * one, one, 0.0 * one).mean)
    2.0
    """
    log_sd = np.maximum(np.sqrt(np.log1p(variance_s2 / (mean_s * mean_s))), NARROWEST_LOG_SD)
    with np.errstate(divide="ignore"):
        score = np.log(trigger_s / mean_s) / log_sd + 0.5 * log_sd
    scores = np.empty((3, *score.shape))
    scores[0], scores[1], scores[2] = -score, log_sd - score, 2.0 * log_sd - score
    shares = quick_ndtr(scores)
    overrun_share = shares[0]
    over_mean, over_square = mean_s * shares[1], (mean_s * mean_s + variance_s2) * shares[2]
    mean = trigger_s * (1.0 - overrun_share) + over_mean
    # Centred at the trigger interval: nearly all intervals equal it if batches fit.
    excess = over_mean - trigger_s * overrun_share
    excess_square = (
        over_square - 2.0 * trigger_s * over_mean + trigger_s * trigger_s * overrun_share
    )
    variance = np.maximum(excess_square - excess * excess, 0.0)
    mean_square = variance + mean * mean
    return IntervalMoments(
        mean, mean_square, variance, overrun_share, mean_s, variance_s2, log_sd, scores, shares
    )


def held_back_trigger_s(
    trigger_s: float, rate_per_s: float, min_rows: float, max_delay_s: float | None = None
) -> float:
    """The trigger interval [s] at which a query effectively runs if batches have a minimum of rows.

    Parameters
    ----------
    trigger_s : float, >= 0, trigger interval of the query; 0 is as fast as possible [s]
    rate_per_s : float, > 0, rows that arrive per second, evenly
    min_rows : float, > 0, minimum rows of a batch (``minOffsetsPerTrigger``)
    max_delay_s : float or None, > 0
        How long a trigger waits at most (``maxTriggerDelay``); None is Spark's default. [s]

    **(Y10)** A source with a minimum of `N` rows gives a batch nothing before so many have arrived,
    or a delay `d` has passed since the last batch: the query waits for `t = min(N/λ, d)`. It looks
    at each trigger, so batches start every `B ⌈t/B⌉` with a trigger interval `B`, and every `t`
    without. Where about as many rows arrive by a trigger, some batches start then and others at the
    next: `⌈t/B⌉` is its mean for a normal `N/λ` with the standard deviation `ς N/λ`. Latencies are
    those of this interval, if batches are not longer than it.

    Source: ``ReadMinRows`` and Kafka's ``KafkaMicroBatchStream`` of Spark (4.3, 2026).

    >>> held_back_trigger_s(0.5, 2000.0, 4100.0), held_back_trigger_s(0.5, 2000.0, 4000.0)
    (2.5, 2.25)
    >>> held_back_trigger_s(0.0, 2000.0, 4100.0), held_back_trigger_s(0.0, 1.0, 1e6, 10.0)
    (2.05, 10.0)
    """
    longest_s = MOST_TRIGGER_DELAY_S.value if max_delay_s is None else max_delay_s
    wait_s = min(min_rows / rate_per_s, longest_s)
    if trigger_s == 0.0:
        return wait_s
    num_triggers = wait_s / trigger_s
    if wait_s == longest_s:
        # A quotient of equal times may be a whole number but for its last digit.
        return trigger_s * max(math.ceil(num_triggers * (1.0 - _NEXT_TRIGGER_RATIO)), 1)
    spread = ARRIVED_SPREAD_RATIO.value * num_triggers
    # A batch starts later than at so many triggers; all but those nearby are certain.
    first = max(math.floor(num_triggers - _MOST_SPREADS * spread), 1)
    last = math.ceil(num_triggers + _MOST_SPREADS * spread)
    later = np.arange(first, last + 1, dtype=np.float64)
    return trigger_s * float(first + quick_ndtr((num_triggers - later) / spread).sum())


def grid_point_after(moment: Numeric, trigger_s: float) -> Array:
    """The next trigger after a moment, a multiple of the interval (S6). [s]

    Parameters
    ----------
    moment : (...) array or float
    trigger_s : float, > 0

    >>> grid_point_after(np.array([0.0, 1.9]), 2.0)
    array([2., 2.])
    """
    return np.asarray(trigger_s * (np.floor(moment / trigger_s + _ROUNDING) + 1.0))
