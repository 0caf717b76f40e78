"""Checks that several nouns share."""

from __future__ import annotations

import math


def require_not_negative(where: str, **values: float) -> None:
    """Refuse negative, infinite and undefined values.

    Raises
    ------
    ValueError
        Names the value.
    """
    for name, value in values.items():
        if not 0 <= value < math.inf:
            raise ValueError(f"{where}: {name} is {value}; expected 0 or more")


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
