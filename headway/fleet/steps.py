"""How many executors a job needs at a rate, from its frontier."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The highest rate that each number of executors sustains, fewest first.

    Examples
    --------
    >>> steps = Steps(points=((1, 800.0), (2, 1500.0), (4, 2900.0)))
    >>> steps.executors_for(1000.0), steps.executors_for(0.0), steps.executors_for(5000.0)
    (2, 1, None)
    """

    points: tuple[tuple[int, float], ...]

    def executors_for(self, rate_per_s: float) -> int | None:
        """The fewest executors that are known to sustain a rate; None where none does."""
        return next((count for count, most in self.points if most >= rate_per_s), None)
