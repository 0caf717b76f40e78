"""The highest rate at which a setting meets its targets, first by moments, then by the chain."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from headway.models.laws.inverse import last_kept
from headway.planner.candidates import Candidates
from headway.planner.question import burst_of

_PLACES_PER_DECADE = 900  # numbers with three digits
_FIRST_STEP, _GROWTH, _BEYOND_THE_LINE = 16, 8, 1.2
_MOST_PLACES_BELOW = 4 * _PLACES_PER_DECADE
_SOLVED_WITHIN = 1.002


def borne_out_per_s(
    setting: Candidates, by_moments_per_s: float, *, below_per_s: float = math.inf
) -> float:
    """The highest rate at which one setting meets its targets by (T4), too, in three digits.

    Parameters
    ----------
    setting : Candidates
        One setting.
    by_moments_per_s : float, >= 0
        The highest rate at which it meets the targets by moments.
    below_per_s : float
        A rate at which a target is known to be missed.

    Notes
    -----
    **(P24)** The max rate of a setting is the highest number of three digits (or the requested
    rate, if that is the next one) at which the targets are met both by its moments and by the chain
    (T4). For a number of nodes, it is that of the setting with the highest rate by moments. The
    search goes down from the rate by moments, along the line through the last two numbers tried, to
    a ten-thousandth of it. So a plan for any rate that is shown is feasible, and all outputs show
    the same rate.
    """
    if not by_moments_per_s > 0:
        return 0.0
    # At the rate of a burst and above, it is none: no such question can be asked.
    bursts = filter(None, map(burst_of, setting.question.of_change))
    below_per_s = min((below_per_s, *(burst.rate_per_s for burst in bursts)))
    asked_per_s = setting.question.rate_per_s
    # A rate solved to a thousandth may just miss the next number, or the requested one.
    for next_per_s in (number_at(place_of(by_moments_per_s) + 1), asked_per_s):
        if by_moments_per_s < next_per_s <= _SOLVED_WITHIN * by_moments_per_s:
            by_moments_per_s = next_per_s if setting.meets(next_per_s)[0] else by_moments_per_s
    most = place_of(min(by_moments_per_s, below_per_s))
    if number_at(most) >= below_per_s:
        most -= 1

    def excess(place: int, *, with_gain: bool = True) -> float:
        return setting.certified_excess(number_at(place), with_gain=with_gain)

    place = _last_place(partial(excess, with_gain=False), most)
    # The gain of errors needs a second chain, so it is computed only if everything else is met.
    if place is not None and excess(place) > 0.0:
        place = _last_place(excess, place)
    if place is None:
        return 0.0
    is_next = number_at(place) < asked_per_s < number_at(place + 1)
    if is_next and asked_per_s <= by_moments_per_s and asked_per_s < below_per_s:
        return asked_per_s if setting.is_certain(asked_per_s) else number_at(place)
    return number_at(place)


def _last_place(excess: Callable[[int], float], most: int) -> int | None:
    """The last place at which targets are met, searched downwards along the line so far."""
    high, at_high = most, excess(most)
    if at_high <= 0.0:
        return most
    least, step = most - _MOST_PLACES_BELOW, _FIRST_STEP
    while high > least:
        low = max(high - step, least)
        at_low = excess(low)
        if at_low <= 0.0:
            return last_kept(excess, low, high, at_low, at_high)
        fallen = at_high - at_low
        along = at_low / fallen * (high - low) if 0.0 < fallen < math.inf else 2.0 * step
        high, at_high = low, at_low
        step = math.ceil(min(max(_BEYOND_THE_LINE * along, step), _GROWTH * step))
    return None


def place_of(number: float) -> int:
    """Index of the last number with three digits that is not above, in the list of all of them.

    Examples
    --------
    >>> place_of(100.0), place_of(57_483.0) - place_of(57_300.0)
    (1800, 1)
    """
    exponent = math.floor(math.log10(number))
    # A number that already has three digits keeps them.
    digits = math.floor(round(number / 10.0 ** (exponent - 2), 9))
    return _PLACES_PER_DECADE * exponent + digits - 100


def number_at(place: int) -> float:
    """The number with three digits at an index.

    Examples
    --------
    >>> number_at(place_of(57_483.0)), number_at(place_of(0.0123)), number_at(place_of(999.0) + 1)
    (57400.0, 0.0123, 1000.0)
    """
    exponent, digits = divmod(place, _PLACES_PER_DECADE)
    return float(f"{digits + 100}e{exponent - 2}")


def rounded_down(value: float) -> float:
    """The last number with three digits that is not above.

    Examples
    --------
    >>> rounded_down(57_483.0), rounded_down(0.0)
    (57400.0, 0.0)
    """
    return number_at(place_of(value)) if 0.0 < value < math.inf else value


def rounded_up(value: float) -> float:
    """The next number with three digits that is not below.

    Examples
    --------
    >>> rounded_up(0.44202), rounded_up(2.0), rounded_up(float("inf"))
    (0.443, 2.0, inf)
    """
    if not 0.0 < value < math.inf:
        return value
    place = place_of(value)
    return number_at(place + (number_at(place) < value * (1.0 - 1e-11)))
