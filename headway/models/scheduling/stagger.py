"""Start times of periodic batches so that few of them collide."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headway.models.arrays import Array

_TICKS_PER_S = 1000
_MOST_CANDIDATES = 200


def common_period_s(periods_s: Sequence[float]) -> float:
    r"""Greatest common divisor of trigger intervals, which Spark keeps in whole milliseconds: (G6).

    >>> common_period_s([4.0, 6.0]), common_period_s([0.5, 0.75])
    (2.0, 0.25)
    """
    ticks = [round(period * _TICKS_PER_S) for period in periods_s]
    if not ticks or min(ticks) < 1:
        raise ValueError("periods_s must be positive, in whole milliseconds")
    return math.gcd(*ticks) / _TICKS_PER_S


def stagger_offsets_s(
    periods_s: Sequence[float],
    durations_s: Sequence[float],
    earliest_s: Sequence[float] | None = None,
) -> tuple[float, ...]:
    r"""Offsets from the trigger grid that keep batches apart as far as possible.

    That of each query's ticks, from 0 to less than its period. [s]

    Parameters
    ----------
    periods_s : sequence of float, > 0, trigger intervals, in whole milliseconds [s]
    durations_s : sequence of float, > 0
    earliest_s : sequence of float, or None
        Best time in its interval for each query's tick: just after its windows close. [s]

    **(G6)** Periodic batches never collide iff `d_a ≤ (φ_b-φ_a) mod G ≤ G - d_b` with
    `G = gcd(T_a, T_b)`. Offsets that satisfy this exist iff `d_a + d_b ≤ G` (Korst, Aarts and
    Lenstra 1991). Exact.

    Batches are placed longest first. Each gets the earliest offset, counted from its best tick, at
    which it overlaps least with those already placed. Each pair is compared modulo the greatest
    common divisor of its periods.

    >>> stagger_offsets_s([1.0, 1.0, 1.0], [0.2, 0.3, 0.2])
    (0.3, 0.0, 0.5)
    >>> stagger_offsets_s([4.0, 6.0], [1.0, 1.0])
    (0.0, 1.0)
    """
    best = [0.0] * len(periods_s) if earliest_s is None else list(earliest_s)
    if not len(periods_s) == len(durations_s) == len(best):
        raise ValueError("need a duration and a wish of each period")
    placed: list[int] = []
    offsets_s = np.zeros(len(periods_s))
    for index in sorted(range(len(periods_s)), key=lambda index: -durations_s[index]):
        period = periods_s[index]
        common_s = np.array([common_period_s([period, periods_s[other]]) for other in placed])
        others_s = offsets_s[placed]
        theirs_s = np.array([durations_s[other] for other in placed])
        # Candidates: right after each placed batch, right before it, and opposite to it.
        starts = (others_s + theirs_s, others_s - durations_s[index], others_s + 0.5 * common_s)
        candidates = np.unique(
            np.concatenate(
                ([best[index] % period], *(np.round(start % period, 9) for start in starts))
            )
            % period
        )
        candidates = candidates[:: max(len(candidates) // _MOST_CANDIDATES, 1)]
        together_s = _overlaps_s(
            common_s, others_s - candidates[:, None], durations_s[index], theirs_s
        )
        later_s = np.round((candidates - best[index]) % period, 6)
        offsets_s[index] = candidates[np.lexsort((later_s, np.round(together_s, 6)))[0]]
        placed.append(index)
    return tuple(float(offset_s) for offset_s in offsets_s)


def _overlaps_s(common_s: Array, between_s: Array, first_s: float, second_s: Array) -> Array:
    """For each candidate, the time that it overlaps with the others in the worst case."""
    after_s = between_s % common_s
    before_s = np.maximum(second_s - (common_s - after_s), 0.0)
    overlaps_s: Array = (np.maximum(first_s - after_s, 0.0) + before_s).sum(axis=1)
    return overlaps_s


def num_at_once(
    duration_s: float, executor_s: float, num_queries: int, *, driver_ratio: float = 0.0
) -> int:
    r"""Batches that may run at the same time, at least 1, at most the number of queries (G8).

    With fewer than ``D / D_executor`` batches, cores idle while drivers plan and commit; in local
    mode, the drivers use some of them. With more, batches slow each other down, which Klink
    (SIGMOD 2021) avoids by ordering queries.

    Parameters
    ----------
    duration_s : float, > 0, mean duration of a batch that runs alone [s]
    executor_s : float, > 0, part of it during which executors work [s]
    num_queries : int, >= 1
    driver_ratio : float, >= 0
        Share of the executors' cores that a driver takes while it works: 0 on a cluster, one core
        of them in local mode. [-]

    >>> num_at_once(0.28, 0.2, 16), num_at_once(0.18, 0.1, 16), num_at_once(0.18, 0.1, 1)
    (2, 2, 1)
    >>> num_at_once(0.4, 0.1, 16), num_at_once(0.4, 0.1, 16, driver_ratio=0.5)
    (4, 2)
    """
    used_s = executor_s + driver_ratio * (duration_s - executor_s)
    return max(min(math.ceil(duration_s / used_s - 1e-9), num_queries), 1)
