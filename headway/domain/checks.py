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
