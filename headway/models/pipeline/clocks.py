"""Effects of clocks on a pipeline: batches are packed by one period and fetched by another."""

from __future__ import annotations

import numpy as np

from headway.few_numbers import together
from headway.models.arrays import Array, Numeric
from headway.models.laws.normal import ndtr

_MICROSECONDS = 1e6
_FEWEST_POLLS = 32
_MOST_POLLS = 512
_NO_SPREAD = 1e-300
_NUM_LAST_ROW_NODES = 400


def common_tick_s(first_period_s: Numeric, second_period_s: Numeric) -> Array:
    r"""Greatest common divisor of the periods of two clocks: how far the means of runs can differ.

    They are mean waits for the next tick of the second clock, starting at the ticks of the first
    one. Periods are at least a microsecond, and are taken in whole microseconds.

    **(L3)** Wait from the ticks of a clock of period `B_1` to the next tick of a clock of period
    `B_2`, at a fixed phase, with `g = gcd(B_1, B_2)`: the wait takes `B_2/g` values with variance
    `(B_2^2-g^2)/12`; its mean is within `(B_2∓ g)/2`, depending on the phase. Exact. With equal
    periods there is no variance within a run, but runs differ by up to a period. With `M_t R_t`
    pairs of phases, the mean of a run has the variance `g^2/(12M_t R_t)`.

    >>> float(common_tick_s(0.3, 0.4))
    0.1
    """
    periods = [np.asarray(value, dtype=np.float64) for value in (first_period_s, second_period_s)]
    if not all(np.all(np.isfinite(p)) and np.all(p >= 1.0 / _MICROSECONDS) for p in periods):
        raise ValueError("periods must be finite and at least a microsecond")
    ticks = [np.round(period * _MICROSECONDS).astype(np.int64) for period in periods]
    return np.asarray(np.gcd(*ticks) / _MICROSECONDS)


def poll_sharing(num_mappers: Numeric, shuffle_periods_per_poll: Numeric) -> tuple[Array, Array]:
    r"""Other batches in the poll of a random batch, if mappers have random phases.

    Their mean number, and the variance of the number served first, given the moment of packing.
    Each of the mappers, at least one, packs one batch per shuffle period.
    ``shuffle_periods_per_poll`` is finite and above 0.

    **(L4)** Mean number of other batches in the poll of a batch: `O = (M_t-1) q + E[k^2]/E[k] - 1`
    with `q = B_ch/B_sh`, and `k = ⌊ q⌋` or one more. Half of the others are ahead. Exact for random
    phases. Given the moment of packing, each of the `M_t - 1` others adds `(⌊ q⌋/6+f^2/2-f^3/3)/q`,
    `f = q - ⌊ q⌋`, to the variance of the number ahead.

    >>> [float(value) for value in poll_sharing(8, 1.0)]
    [7.0000, 1.1667]
    """
    mappers = np.asarray(num_mappers, dtype=np.float64)
    ratio = np.asarray(shuffle_periods_per_poll, dtype=np.float64)
    if not (np.all(mappers >= 1.0) and np.all(ratio > 0.0) and np.all(np.isfinite(ratio))):
        raise ValueError("need num_mappers >= 1 and finite shuffle_periods_per_poll > 0")
    num_whole = np.floor(ratio)
    part = ratio - num_whole
    # A mapper has `num_whole` batches in a poll, or one more with probability `part`.
    num_same_mapper = (num_whole * num_whole + (2.0 * num_whole + 1.0) * part) / ratio - 1.0
    # It has one of two successive counts, each in a share of the poll period: a Bernoulli trial.
    spread = (num_whole / 6.0 + part * part / 2.0 - part**3 / 3.0) / ratio
    return (mappers - 1.0) * ratio + num_same_mapper, (mappers - 1.0) * spread


def poll_carry_over(
    poll_period_s: Numeric,
    work_per_poll_s: Numeric,
    work_variance_s2: Numeric,
    batch_s: Numeric,
    num_other_mappers: Numeric,
    shuffle_periods_per_poll: Numeric,
) -> tuple[Array, Array]:
    r"""Mean [s] and variance [s^2] of work left over from earlier polls at the moment of a poll.

    ``work_per_poll_s`` is the mean work that a poll adds, less than ``poll_period_s``, and
    ``work_variance_s2`` its variance for a given number of batches, independent from poll to poll.
    ``batch_s`` is the work in one batch. Each of the other mappers has a batch per shuffle period
    at a random phase. ``shuffle_periods_per_poll`` is above 0, the other numbers are not negative.

    **(L5)** Work left over from earlier polls: Spitzer's mean `Σ_j 1/j E[(X_j-jB_ch)^+]` holds for
    exchangeable increments, and thus for clocked batches, too. The work `X_j` of `j` polls is taken
    as normal, with the count variance `(M_t-1) f_j(1-f_j)`, `f_j = jq mod 1`, up to one shuffle
    period.

    >>> mean_s, variance_s2 = poll_carry_over(1.0, 0.5, 1.0, 0.0, 0, 4.0)
    >>> round(float(mean_s), 3), round(float(variance_s2), 2)
    (0.531, 0.82)
    """
    of_polls = (poll_period_s, work_per_poll_s, work_variance_s2, batch_s)
    period, work, noise, batch, mappers, ratio = (
        values[..., np.newaxis]
        for values in together(*of_polls, num_other_mappers, shuffle_periods_per_poll)
    )
    if not (np.all(work >= 0.0) and np.all(work < period) and np.all(ratio > 0.0)):
        raise ValueError("need 0 <= work_per_poll_s < poll_period_s and a positive ratio")
    if not (np.all(noise >= 0.0) and np.all(batch >= 0.0) and np.all(mappers >= 0.0)):
        raise ValueError("variance, batch_s and num_other_mappers must not be negative")
    longest = 2.0 / float(ratio.min()) if ratio.size else 1.0
    polls = np.arange(1.0, min(max(_FEWEST_POLLS, np.ceil(longest)), _MOST_POLLS) + 1.0)
    # After each whole shuffle period, counts are the same again.
    part = np.mod(polls * ratio, 1.0)
    within_period = polls * ratio <= np.maximum(ratio, 1.0)
    count_variance = np.where(within_period, mappers * part * (1.0 - part), 0.0)
    sd = np.sqrt(np.maximum(polls * noise + count_variance * batch * batch, _NO_SPREAD))
    drift = polls * (work - period)
    score = drift / sd
    density = np.exp(-0.5 * np.maximum(score, -38.0) ** 2) / np.sqrt(2.0 * np.pi)
    above = ndtr(score)
    first = np.maximum(sd * (score * above + density), 0.0)
    second = np.maximum(sd * sd * ((score * score + 1.0) * above + score * density), 0.0)
    return np.sum(first / polls, axis=-1), np.sum(second / polls, axis=-1)


def last_packing(
    map_period_s: Numeric,
    input_period_s: Numeric,
    shuffle_period_s: Numeric,
    num_mappers: Numeric,
    map_s: Numeric,
) -> tuple[Array, Array]:
    r"""Time from the end of a window until the last mapper has packed the window's last rows (L13).

    Mean [s] and variance [s^2] of the largest of ``num_mappers`` sums of two uniforms, by
    quadrature. ``map_period_s`` is the time between input batches of one mapper, ``map_s`` that of
    the map function on one input batch. Each mapper has clocks of its own.

    >>> mean_s, _ = last_packing(0.005, 0.005, 0.2, 1, 0.0)
    >>> round(float(mean_s), 4)
    0.1025
    """
    period, batch, packed, mappers = (
        values[..., np.newaxis]
        for values in together(map_period_s, input_period_s, shuffle_period_s, num_mappers)
    )
    # Input batches that end within one input period after the window's end still contain rows of
    # it. A mapper receives the last of these at a random time in its own period, and packs at a
    # random time after that.
    node = (np.arange(_NUM_LAST_ROW_NODES) + 0.5) / _NUM_LAST_ROW_NODES
    span = period + packed
    moment = node * span
    not_all = 1.0 - _sum_of_uniforms_cdf(moment, period, packed) ** mappers
    step = span[..., 0] / _NUM_LAST_ROW_NODES
    mean = np.sum(not_all, axis=-1) * step
    second = 2.0 * np.sum(moment * not_all, axis=-1) * step
    # With few mappers, only the first rows of that input batch belong to the window.
    window_share = np.where(
        period[..., 0] >= batch[..., 0],
        1.0 - 0.5 * batch[..., 0] / period[..., 0],
        0.5 * period[..., 0] / batch[..., 0],
    )
    start = batch[..., 0] - period[..., 0]
    return start + mean + window_share * map_s, np.maximum(second - mean * mean, 0.0)


def _sum_of_uniforms_cdf(x: Array, first: Array, second: Array) -> Array:
    """Distribution function of the sum of two uniforms from 0 to their widths."""

    def square(value: Array) -> Array:
        return np.maximum(value, 0.0) ** 2

    area = square(x) - square(x - first) - square(x - second) + square(x - first - second)
    cdf: Array = np.clip(area / (2.0 * first * second), 0.0, 1.0)
    return cdf
