"""The highest rate at which a setting meets its targets, by the chain of its batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from headway.digits import RANKS_PER_DECADE, number_at, rank_of
from headway.models.laws.inverse import last_nonpositive
from headway.planner.candidates import Candidates
from headway.planner.question import burst_of

_FIRST_STEP, _GROWTH, _BEYOND_THE_LINE = 16, 8, 1.2
_HIGHEST_PER_S = 1e15
_MOST_RANKS_BELOW = 4 * RANKS_PER_DECADE


def certified_rate_per_s(
    setting: Candidates, by_moments_per_s: float, *, below_per_s: float = math.inf
) -> float:
    """The highest rate at which one setting meets its targets by (T4), in three digits.

    ``by_moments_per_s`` is the highest rate at which it meets the targets by moments; at
    ``below_per_s`` a target is known to be missed.

    **(P24)** One law: a setting meets the targets if it does so by the chain (T4), whose figures
    are printed, at the upper end of durations (P4). Moments only rule out settings, since the chain
    takes milliseconds for each: a setting may meet them by the chain if it does by moments at the
    rate over `1.002+0.15 c`, with latencies up to `0.1 c` above their limits, and `c` the noise of
    batches. The max rate of a setting is the highest number
    of three digits (or the requested rate, if that is the next one) at which it meets the targets;
    that of a number of nodes is the maximum over its settings. The search for it starts with the
    setting that is best by moments; any other one that meets the targets at the next number takes
    its place. So a plan for any rate that is shown is feasible, no other setting sustains more, and
    all outputs show the same rate.
    """
    if not by_moments_per_s > 0:
        return 0.0
    below_per_s = below_bursts_per_s(setting, below_per_s)
    highest_rank = _last_below(by_moments_per_s * setting.beyond_moments_ratio, below_per_s)
    first_rank = min(rank_of(by_moments_per_s), highest_rank)
    excess = partial(_excess, setting)
    rank = _last_rank(partial(excess, with_gain=False), first_rank, highest_rank)
    # The gain of errors needs further chains, so it is computed only if everything else is met.
    if rank is not None and excess(rank) > 0.0:
        rank = _last_rank(excess, rank, rank)
    if rank == highest_rank:
        return highest_from_per_s(setting, number_at(rank), below_per_s=below_per_s)
    return 0.0 if rank is None else _shown_per_s(setting, rank, below_per_s)


def highest_from_per_s(setting: Candidates, met_per_s: float, *, below_per_s: float) -> float:
    """The same, from a rate at which the setting meets its targets, which is seldom far below.

    ``below_per_s`` is that of `below_bursts_per_s`.
    """
    highest_rank = _last_below(_HIGHEST_PER_S, below_per_s)
    low = min(rank_of(met_per_s), highest_rank)
    excess, step, at_low = partial(_excess, setting), 1, -math.inf
    while low < highest_rank:
        high = min(low + step, highest_rank)
        at_high = excess(high)
        if at_high > 0.0:
            low = last_nonpositive(excess, low, high, at_low, at_high)
            break
        low, at_low, step = high, at_high, 2 * step
    return max(met_per_s, _shown_per_s(setting, low, below_per_s))


def below_bursts_per_s(setting: Candidates, below_per_s: float) -> float:
    """A rate, or that of a burst: at its rate and above it is none, so no such question exists."""
    bursts = filter(None, map(burst_of, setting.question.of_change))
    return min((below_per_s, *(burst.rate_per_s for burst in bursts)))


def _excess(setting: Candidates, rank: int, *, with_gain: bool = True) -> float:
    return setting.certified_excess(number_at(rank), with_gain=with_gain)


def _shown_per_s(setting: Candidates, rank: int, below_per_s: float) -> float:
    """The rate of a rank, or the requested one if it is met and the next to be shown."""
    rate_per_s, requested_per_s = number_at(rank), setting.question.rate_per_s
    is_next = rate_per_s < requested_per_s < min(number_at(rank + 1), below_per_s)
    is_met = is_next and setting.certified_excess(requested_per_s) <= 0.0
    return requested_per_s if is_met else rate_per_s


def next_rate_per_s(rate_per_s: float, requested_per_s: float) -> float:
    """The next rate that may be shown: of three digits, or the requested one.

    >>> next_rate_per_s(57_400.0, 1e3), next_rate_per_s(57_400.0, 57_483.0)
    (57500.0, 57483.0)
    """
    next_per_s = number_at(rank_of(rate_per_s) + 1)
    return requested_per_s if rate_per_s < requested_per_s < next_per_s else next_per_s


def _last_below(most_per_s: float, below_per_s: float) -> int:
    """The last rank up to a rate and below another one."""
    rank = rank_of(min(most_per_s, below_per_s))
    return rank - 1 if number_at(rank) >= below_per_s else rank


def _last_rank(excess: Callable[[int], float], first_rank: int, highest_rank: int) -> int | None:
    """The last rank up to the highest one at which targets are met, by a search from the first one.

    Upwards it is bracketed; downwards it follows the line through the last two ranks.
    """
    at_first = excess(first_rank)
    if at_first <= 0.0:
        return _last_above(excess, first_rank, at_first, highest_rank)
    high, at_high = first_rank, at_first
    lowest_rank, step = first_rank - _MOST_RANKS_BELOW, _FIRST_STEP
    while high > lowest_rank:
        low = max(high - step, lowest_rank)
        at_low = excess(low)
        if at_low <= 0.0:
            return last_nonpositive(excess, low, high, at_low, at_high)
        fall = at_high - at_low
        secant_step = at_low / fall * (high - low) if 0.0 < fall < math.inf else 2.0 * step
        high, at_high = low, at_low
        step = math.ceil(min(max(_BEYOND_THE_LINE * secant_step, step), _GROWTH * step))
    return None


def _last_above(
    excess: Callable[[int], float], first_rank: int, at_first: float, highest_rank: int
) -> int:
    """The same, if the targets are met at the first rank."""
    low, at_low = first_rank, at_first
    for high in sorted({min(first_rank + 1, highest_rank), highest_rank}):
        at_high = excess(high) if high > low else at_low
        if at_high > 0.0:
            return last_nonpositive(excess, low, high, at_low, at_high)
        low, at_low = high, at_high
    return low
