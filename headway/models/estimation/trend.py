"""Trends of the durations of batches: whether they rise, how fast, and until when."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from headway.assumptions import fits
from headway.domain import Z90
from headway.few_numbers import median_of
from headway.models.arrays import Array


class Trend(NamedTuple):
    """A line through values in order of time, from ``first`` to ``last``.

    ``score`` is that of the sign test, and ``later_share`` the share of the rise that is in the
    later half of the time. ``rise_low`` and ``rise_high`` are the ends of the 90% interval of the
    rise.
    """

    first: float
    last: float
    score: float
    later_share: float
    rise_low: float = 0.0
    rise_high: float = 0.0

    @property
    def rise(self) -> float:
        """By how much the line rises."""
        return self.last - self.first

    @property
    def is_growth(self) -> bool:
        """Whether the values rise for certain, by a relevant amount, and still do at the end."""
        return (
            self.score >= fits.LEAST_TREND_SCORE.value
            and self.last > (1.0 + fits.LEAST_BATCH_GROWTH_RATIO.value) * max(self.first, 0.0)
            and self.later_share >= fits.LEAST_LATER_SHARE.value
        )


def trend_of(at_s: Array, values: Array) -> Trend:
    """The trend of values over time; without a score for fewer than ten of them.

    Parameters
    ----------
    at_s : (n,) array, times of the values, rising [s]
    values : (n,) array, e.g. durations of batches over those expected of their rows

    **(E45)** Growth of a job. The batches are divided into `k = min(n, 20)` blocks of equally many
    consecutive ones, which evens out what lasts for a few batches. With `m_i` the medians of the
    blocks, let `S` be the number of pairs `i < j` with `m_j > m_i` minus that with `m_j < m_i`.
    Without a trend, `S/√(k(k-1)(2k+5)/18)` is about standard normal (Mann 1945,
    doi:10.2307/1907187; Kendall 1975). The slope is the median of `(m_j-m_i)/(t_j-t_i)` over all
    pairs (Sen 1968, doi:10.1080/01621459.1968.10480934), and the line goes through the median of
    `m_i` minus slope times `t_i`. Batches grow if the score is 3.1 or more (one in a thousand by
    chance), the line rises by a fifth or more, and at least a third of the rise, by the slopes of
    both halves, is in the later half: what levels off is no growth. A plan is refused (P27) if it
    goes on for two minutes. The values are the durations over those that the fit expects of the
    rows, so a rising load is no growth either. The 90% interval of the slope has the slopes of
    ranks `(N ± 1.645√(k(k-1)(2k+5)/18))/2` of all `N` as its ends (Sen 1968).

    >>> at_s = np.arange(60.0)
    >>> growing = trend_of(at_s, 1.0 + at_s / 30.0)
    >>> growing.is_growth, round(growing.last, 2), round(growing.later_share, 2)
    (True, 2.97, 0.5)
    >>> round(growing.rise_low, 2), round(growing.rise_high, 2)
    (1.97, 1.97)
    >>> trend_of(at_s, 2.0 - np.exp(-at_s / 10.0)).is_growth
    False
    """
    if len(values) < fits.LEAST_BATCHES_TO_CUT.value:
        return Trend(first=0.0, last=0.0, score=0.0, later_share=0.0)
    blocks = np.array_split(np.arange(len(values)), min(len(values), fits.TREND_BLOCKS.value))
    middle_s = np.array([median_of(at_s[block]) for block in blocks])
    medians = np.array([median_of(values[block]) for block in blocks])
    slope_per_s = _sen_slope(middle_s, medians)
    low_per_s, high_per_s = _slope_interval(middle_s, medians)
    span_s = float(at_s[-1] - at_s[0])
    level = median_of(medians - slope_per_s * middle_s)
    half = len(blocks) // 2
    halves = (slice(None, half + 1), slice(half, None))
    rises = [
        _sen_slope(middle_s[part], medians[part]) * float(np.ptp(middle_s[part])) for part in halves
    ]
    return Trend(
        first=level + slope_per_s * float(at_s[0]),
        last=level + slope_per_s * float(at_s[-1]),
        score=_sign_score(medians),
        later_share=rises[1] / sum(rises) if sum(rises) > 0 else 0.0,
        rise_low=low_per_s * span_s,
        rise_high=high_per_s * span_s,
    )


def _sign_score(values: Array) -> float:
    """The statistic of Mann and Kendall over its standard deviation, one step closer to zero."""
    total = float(np.sum(np.triu(np.sign(values[None, :] - values[:, None]), 1)))
    return float(np.sign(total) * max(abs(total) - 1.0, 0.0) / _sign_deviation(len(values)))


def _sign_deviation(count: int) -> float:
    """Standard deviation of the statistic of Mann and Kendall without a trend."""
    return math.sqrt(count * (count - 1) * (2 * count + 5) / 18.0)


def _sen_slope(at_s: Array, values: Array) -> float:
    slopes = _slopes(at_s, values)
    return median_of(slopes) if len(slopes) else 0.0


def _slope_interval(at_s: Array, values: Array) -> tuple[float, float]:
    """The ends of the 90% interval of the slope."""
    slopes = np.sort(_slopes(at_s, values))
    if not len(slopes):
        return 0.0, 0.0
    reach = Z90 * _sign_deviation(len(values))
    low, high = (0.5 * (len(slopes) + sign * reach) for sign in (-1.0, 1.0))
    last = len(slopes) - 1
    return float(slopes[max(math.floor(low), 0)]), float(slopes[min(math.ceil(high), last)])


def _slopes(at_s: Array, values: Array) -> Array:
    """Slopes between all pairs of values at different times."""
    earlier, later = np.triu_indices(len(values), 1)
    span_s = at_s[later] - at_s[earlier]
    distinct = span_s > 0
    return np.asarray((values[later] - values[earlier])[distinct] / span_s[distinct])
