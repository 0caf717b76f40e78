"""What a job carries: batches from a backlog, repeated until they become no faster.

A query that was just compiled takes several times as long as it will; and small batches say
little of a row, since most of their time is that of the batch. Both once made capacities up to
nine times too low.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from headway.errors import HeadwayError
from headway.runtime.measure import progress_events, wait_while_running
from ordinary.events import HIGHEST_RATE_PER_S

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

LARGE_BATCH_S = 1.5
"""A batch of a capacity is at least this long, so that its rows weigh more than its beginning."""
GROWTH = 5
"""How many times more rows the next larger batch has."""
FULL_RATIO = 0.9
STEADY_RATIO = 0.95
_COMPARED = 4
_LEAST_S, _MOST_S, _LOOK_EVERY_S = 6.0, 30.0, 0.5
_MOST_FOR_TWO_S = 150.0
"""How long two full batches are waited for: one of a slow job takes longer than half a minute."""


class Capacity(NamedTuple):
    """Batches of two sizes: their rows, and how long they take in the end [s]."""

    num_rows: tuple[int, int]
    duration_s: tuple[float, float]

    @property
    def carried_per_s(self) -> float:
        """Rows per second at which one more row costs as much time as it takes to arrive.

        Examples
        --------
        >>> Capacity((10_000, 50_000), (0.5, 2.5)).carried_per_s
        20000.0
        """
        (few, many), (small_s, large_s) = self.num_rows, self.duration_s
        return (many - few) / max(large_s - small_s, 1e-3)


def capacity_of(
    steady_s: Callable[[int, float], float], first_rows: int, most_rows: int, arriving_per_s: float
) -> Capacity:
    """Enlarge batches until they are long, and compare with smaller ones until neither is faster.

    Parameters
    ----------
    steady_s : callable
        Duration of batches [s] of so many rows, which arrived at a rate [rows/s].
    first_rows, most_rows : int
        Rows of the first batches, and the most that a source has a backlog for.
    arriving_per_s : float
        Rate of the first; later ones arrive as fast as earlier ones were worked off, so that
        windows and state hold what they hold near the limit.

    Examples
    --------
    >>> capacity_of(lambda rows, rate_per_s: 0.5 + rows / 1e5, 5_000, 10**6, 1e4)
    Capacity(num_rows=(25000, 125000), duration_s=(0.75, 1.75))
    """
    many = min(first_rows, most_rows)
    large_s = steady_s(many, arriving_per_s)
    while True:
        arriving_per_s = min(max(many / large_s, arriving_per_s), HIGHEST_RATE_PER_S)
        if large_s < LARGE_BATCH_S and many < most_rows:
            many = min(GROWTH * many, most_rows)
            large_s = steady_s(many, arriving_per_s)
            continue
        few = max(many // GROWTH, 1)
        small_s, again_s = steady_s(few, arriving_per_s), steady_s(many, arriving_per_s)
        if again_s >= STEADY_RATIO * large_s:
            return Capacity((few, many), (small_s, again_s))
        large_s = again_s


def steady_duration_s(running: StreamingQuery) -> float:
    """Duration of the full batches of a running query once they become no faster [s].

    Raises
    ------
    HeadwayError
        If the query ends, or works off fewer than two full batches.
    """
    began_s = time.monotonic()
    durations_s: list[float] = []
    while (passed_s := time.monotonic() - began_s) < (
        _MOST_S if len(durations_s) >= 2 else _MOST_FOR_TWO_S
    ):
        wait_while_running(running, _LOOK_EVERY_S)
        durations_s = full_batches_s(
            [
                (int(event["numInputRows"]), event["durationMs"]["triggerExecution"] / 1e3)
                for event in progress_events(running)
            ]
        )
        if passed_s > _LEAST_S and is_steady(durations_s):
            break
    if len(durations_s) < 2:
        raise HeadwayError(f"{running.name}: fewer than two full batches in {_MOST_FOR_TWO_S:g} s")
    return median(durations_s[-_COMPARED:])


def full_batches_s(batches: Sequence[tuple[int, float]]) -> list[float]:
    """Durations of the batches that have as many rows as the limit allows.

    Examples
    --------
    >>> full_batches_s([(0, 0.1), (100, 2.0), (98, 1.0), (40, 0.5)])
    [2.0, 1.0]
    """
    most = max((num_rows for num_rows, _ in batches), default=0)
    return [
        duration_s for num_rows, duration_s in batches if num_rows and num_rows >= FULL_RATIO * most
    ]


def is_steady(durations_s: Sequence[float]) -> bool:
    """Whether the last few batches are hardly faster than those before them.

    Examples
    --------
    >>> is_steady([9, 4, 2, 2, 2, 2, 2, 2, 2, 2]), is_steady([9, 8, 7, 6, 5, 4, 3, 2])
    (True, False)
    """
    if len(durations_s) < 2 * _COMPARED:
        return False
    earlier_s, later_s = durations_s[-2 * _COMPARED : -_COMPARED], durations_s[-_COMPARED:]
    return median(later_s) >= STEADY_RATIO * median(earlier_s)
