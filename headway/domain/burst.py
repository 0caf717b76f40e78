"""A time in which more rows arrive than usual."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from headway.errors import InputError
from headway.units import exact_duration, exact_rate, parse_duration_s, parse_rate_per_s

_EXPECTED = "e.g. '150k/s for 2m' or '150k/s for 2m every 1h'"
_SHORT = "e.g. 150k/s:2m or 150k/s:2m:1h"


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """A higher rate for a while, once or again and again.

    Parameters
    ----------
    rate_per_s : float, > 0
        Total input rate while it lasts [records/s].
    length_s : float, > 0
        How long it lasts [s].
    every_s : float or None, > length_s
        From the start of one to the start of the next [s]; None means once.

    Examples
    --------
    >>> Burst.parse("150k/s for 2m every 1h")
    Burst(rate_per_s=150000.0, length_s=120.0, every_s=3600.0)
    """

    rate_per_s: float = field(metadata={"exact": True})
    length_s: float = field(metadata={"exact": True})
    every_s: float | None = field(default=None, metadata={"exact": True})

    def __post_init__(self) -> None:
        for name in ("rate_per_s", "length_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a positive number")
        if self.every_s is not None and not self.length_s < self.every_s < math.inf:
            raise ValueError(f"every_s is {self.every_s}; expected more than {self.length_s}")

    @classmethod
    def parse(cls, text: str) -> Burst:
        """Read a burst as it is written in a target.

        Raises
        ------
        InputError
            If the text is no burst.
        """
        match = re.fullmatch(r"\s*(.+?)\s+for\s+(.+?)(?:\s+every\s+(.+?))?\s*", text)
        if match is None:
            raise InputError(f"{text!r} is no burst; expected {_EXPECTED}")
        return cls._of(text, *match.groups())

    @classmethod
    def parse_short(cls, text: str) -> Burst:
        """Read a burst as the option ``--burst`` has it: ``RATE:DURATION[:EVERY]``.

        Raises
        ------
        InputError
            If the text is no burst.

        Examples
        --------
        >>> str(Burst.parse_short("150k/s:2m:1h"))
        '150k/s for 2 min every 60 min'
        """
        parts = [part.strip() for part in text.split(":")]
        if len(parts) not in (2, 3) or not all(parts):
            raise InputError(f"{text!r} is no burst; expected {_SHORT}")
        return cls._of(text, *parts)

    @classmethod
    def _of(cls, text: str, rate: str, length: str, interval: str | None = None) -> Burst:
        try:
            rate_per_s = parse_rate_per_s(rate)
            length_s = parse_duration_s(length)
            every_s = None if interval is None else parse_duration_s(interval)
        except InputError as error:
            raise InputError(f"burst {text!r}: {error}") from None
        if not length_s > 0:
            raise InputError(f"burst {text!r}: the duration must be above zero")
        if every_s is not None and every_s <= length_s:
            raise InputError(
                f"burst {text!r}: one begins before the last has ended; give the longer time from "
                "the start of one to the start of the next, or plan for the rate as it is always"
            )
        return cls(rate_per_s=rate_per_s, length_s=length_s, every_s=every_s)

    def mean_rate_per_s(self, otherwise_per_s: float) -> float:
        """Mean rate of a stream with such bursts; for a single burst the rate at other times.

        Examples
        --------
        >>> Burst(rate_per_s=300.0, length_s=60.0, every_s=120.0).mean_rate_per_s(100.0)
        200.0
        """
        if self.every_s is None:
            return otherwise_per_s
        share = self.length_s / self.every_s
        return share * self.rate_per_s + (1.0 - share) * otherwise_per_s

    def __str__(self) -> str:
        again = "" if self.every_s is None else f" every {exact_duration(self.every_s)}"
        return f"{exact_rate(self.rate_per_s)} for {exact_duration(self.length_s)}{again}"
