"""When memory is short, so that the query that frees the most memory runs first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway.assumptions.turns import MEMORY_LOOK_AHEAD_S


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReading:
    """State sizes of the queries that could run, when memory is checked.

    Parameters
    ----------
    used_bytes : float, >= 0
        State of all queries. [bytes]
    limit_bytes : float, > 0
        Limit from which memory is short. [bytes]
    relieving_since_s : float or None
        Time since when the memory policy has been in force; None if it is not. [s]
    used_then_bytes : float
        Memory used when the policy came into force. [bytes]
    """

    used_bytes: float
    limit_bytes: float
    relieving_since_s: float | None = None
    used_then_bytes: float = 0.0

    def later(self, used_bytes: float, now_s: float) -> MemoryReading:
        """The next reading of memory, with which relief continues, ends or begins.

        Examples
        --------
        >>> reading = MemoryReading(used_bytes=0.0, limit_bytes=800.0).later(900.0, 10.0)
        >>> reading.relieving_since_s, reading.used_then_bytes
        (10.0, 900.0)
        >>> [reading.later(used, 11.0).relieving_since_s for used in (500.0, 400.0)]
        [10.0, None]
        """
        reading = replace(self, used_bytes=used_bytes)
        if reading.relieving_since_s is not None and is_memory_short(reading, now_s):
            return reading
        if used_bytes < self.limit_bytes:
            return MemoryReading(used_bytes=used_bytes, limit_bytes=self.limit_bytes)
        return MemoryReading(
            used_bytes=used_bytes,
            limit_bytes=self.limit_bytes,
            relieving_since_s=now_s,
            used_then_bytes=used_bytes,
        )


def is_memory_short(reading: MemoryReading, now_s: float) -> bool:
    r"""Whether the query that frees the most goes first.

    theory.md (G7); Klink (SIGMOD 2021, 3.4): from when the limit is reached until half of the used
    memory is free or 3 s have passed.

    Examples
    --------
    >>> is_memory_short(MemoryReading(used_bytes=9e8, limit_bytes=8e8), 0.0)
    True
    >>> going_on = MemoryReading(
    ...     used_bytes=6e8, limit_bytes=8e8, relieving_since_s=0.0, used_then_bytes=9e8
    ... )
    >>> is_memory_short(going_on, 1.0), is_memory_short(going_on, 3.5)
    (True, False)
    """
    if reading.relieving_since_s is None:
        return reading.used_bytes >= reading.limit_bytes
    return (
        now_s - reading.relieving_since_s < MEMORY_LOOK_AHEAD_S.value
        and reading.used_bytes > 0.5 * reading.used_then_bytes
    )
