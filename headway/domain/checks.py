"""Checks that several nouns share."""

from __future__ import annotations

import math

from headway.limits import LONGEST_SUM_S, MOST_LONG, MOST_SPREAD_RATIO


def require_not_negative(where: str, **values: float) -> None:
    """Refuse values that are negative, undefined, or more than their unit allows.

    Raises
    ------
    ValueError
        Names the value.
    """
    for name, value in values.items():
        most = _most_of(name)
        if not 0 <= value <= most:
            up_to = "" if value < 0 or math.isnan(value) else f", up to {most:g}"
            raise ValueError(f"{where}: {name} is {value}; expected 0 or more{up_to}")


def require_spread(where: str, **ratios: float) -> None:
    """Refuse spreads of durations that no law here can have.

    Raises
    ------
    ValueError
        Names the value.
    """
    for name, ratio in ratios.items():
        if not 0 <= ratio <= MOST_SPREAD_RATIO:
            raise ValueError(
                f"{where}: {name} is {ratio}; expected 0 or more, up to {MOST_SPREAD_RATIO:g}"
            )


def require_count(most: int, **counts: int) -> None:
    """Refuse counts below 1 or above ``most``.

    Raises
    ------
    ValueError
        Names the value.
    """
    for name, count in counts.items():
        if not 1 <= count <= most:
            up_to = "" if count < 1 else f", up to {most:,}"
            raise ValueError(f"{name} is {count}; expected at least 1{up_to}")


def _most_of(name: str) -> float:
    """By the unit in which the name of a quantity ends."""
    return LONGEST_SUM_S if name.endswith("_s") else MOST_LONG


def require_seconds(**values_s: float) -> None:
    """Refuse durations that are not positive and finite.

    Raises
    ------
    ValueError
        Names the value.
    """
    for name, value_s in values_s.items():
        if not 0 < value_s < math.inf:
            raise ValueError(f"{name} is {value_s}; expected a positive number of seconds")
