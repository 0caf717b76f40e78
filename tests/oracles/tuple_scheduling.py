"""Tuples of two costs before one reducer, under overload: which are done in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from headway.models.arrays import Array
from tests.oracles.d_over import d_over
from tests.oracles.subset import kept_counts


class TupleOrder(StrEnum):
    """In what order a reducer takes its tuples."""

    NONE = "none"
    """As they come, late ones too."""
    BATCH = "batch"
    """Whole batches by the deadline of their first tuple, those that are late left out."""
    EARLIEST = "edf"
    """By deadline, the cheapest first of one time stamp, late ones left out."""
    SUBSET = "subset"
    """The largest subset that can be in time, by deadline: VLDB'15, Algorithm 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TupleOutcome:
    """Shares of tuples, after the warm-up.

    Parameters
    ----------
    in_time_ratio : float
        Done within the limit. [-]
    num_tuples : int
        Tuples that arrived. [-]
    """

    in_time_ratio: float
    num_tuples: int


def simulate_tuples(
    order: TupleOrder,
    *,
    rate_per_s: float,
    shares: Sequence[float],
    costs_s: Sequence[float],
    limit_s: float,
    length_s: float,
    num_steps: int = 50,
    seed: int = 1,
) -> TupleOutcome:
    r"""Simulate a reducer that is offered tuples of several costs.

    Parameters
    ----------
    order : TupleOrder
        Which tuple comes next.
    rate_per_s : float, > 0
        Tuples per second, Poisson. [1/s]
    shares, costs_s : sequences
        Share of the tuples in each cost group, cheapest first, and their time. [-, s]
    limit_s : float, > 0
        A tuple counts if it is done so long after its arrival. [s]
    length_s : float
        Time that is simulated, longer than twice the limit, after which counting begins. [s]
    num_steps : int, >= 2
        Steps into which the limit is cut; tuples of one step have one time stamp.
    seed : int
        Seed of the generator.

    Returns
    -------
    TupleOutcome
        How many were in time.

    Notes
    -----
    **(S8)** Tuples before one reducer, the setting of VLDB'15, Figure 7: Poisson counts in steps of
    a fiftieth of the limit; each step of work is spent on whole tuples, and what is left of it is
    carried over. D-over (G2) is simulated tuple by tuple.

    Examples
    --------
    >>> simulate_tuples(TupleOrder.NONE, rate_per_s=1e5, shares=[1.0], costs_s=[5e-6], limit_s=0.5,
    ...                 length_s=5.0).in_time_ratio
    1.0
    """
    if not (rate_per_s > 0.0 and limit_s > 0.0 and length_s > 2.0 * limit_s and num_steps >= 2):
        raise ValueError("need a rate, a limit, two steps, and a length above twice the limit")
    generator = np.random.default_rng(seed)
    step_s = limit_s / num_steps
    costs = np.asarray(costs_s, dtype=np.float64)
    mean_counts = rate_per_s * step_s * np.asarray(shares, dtype=np.float64)
    # Tuples by step of arrival and cost group, oldest first; beside them whether they still count.
    queue: list[tuple[int, list[int]]] = []
    is_blind = order in (TupleOrder.NONE, TupleOrder.BATCH)
    budget_s, in_time, arrived = 0.0, 0, 0
    all_steps = round(length_s / step_s)
    # The first fill the queue; of the last it would not be known.
    first_counted, last_counted = num_steps, all_steps - num_steps
    for step in range(all_steps):
        counts = generator.poisson(mean_counts)
        # A tuple of this step is there for the next.
        budget_s = (budget_s if queue else 0.0) + step_s
        if order is not TupleOrder.NONE:
            queue = [one for one in queue if one[0] + num_steps > step]
        if order is TupleOrder.SUBSET and queue:
            queue = _largest(queue, step, step_s, num_steps, costs)
        elif order is TupleOrder.BATCH and queue:
            queue = _whole(queue, step, step_s, num_steps, costs)
        while queue and budget_s > 0.0:
            came, left = queue[0]
            done = _spend(left, costs, budget_s, blind=is_blind)
            spent_s = float(np.dot(done, costs))
            if spent_s == 0.0 and any(left):
                break
            budget_s -= spent_s
            for group, count in enumerate(done):
                left[group] -= count
            if first_counted <= came < last_counted and step < came + num_steps:
                in_time += int(np.sum(done))
            if any(left):
                break
            queue.pop(0)
        queue.append((step, [int(count) for count in counts]))
        if first_counted <= step < last_counted:
            arrived += int(counts.sum())
    return TupleOutcome(in_time_ratio=in_time / max(arrived, 1), num_tuples=arrived)


def simulate_d_over(
    *,
    rate_per_s: float,
    shares: Sequence[float],
    costs_s: Sequence[float],
    limit_s: float,
    length_s: float,
    stamp_s: float = 0.0,
    seed: int = 1,
) -> TupleOutcome:
    r"""Simulate D-over on the same tuples, one by one.

    Parameters
    ----------
    rate_per_s : float, > 0
        Tuples per second, Poisson. [1/s]
    shares, costs_s : sequences
        Share of the tuples in each cost group, and their time. [-, s]
    limit_s : float, > 0
        A tuple counts if it is done so long after its arrival. [s]
    length_s : float
        Time that is simulated. [s]
    stamp_s : float, >= 0
        Resolution of time stamps; 0 gives each tuple its own deadline. [s]
    seed : int
        Seed of the generator.

    Returns
    -------
    TupleOutcome
        How many were in time.

    Notes
    -----
    theory.md (S8), (G2); VLDB'15, Figure 7(d). What D-over reaches depends on the stamps: with fine
    ones it drops dear tuples, for their laxity runs out first; within one stamp it is blind.

    Examples
    --------
    >>> simulate_d_over(rate_per_s=1e3, shares=[1.0], costs_s=[5e-4], limit_s=0.5,
    ...                 length_s=2.0).in_time_ratio
    1.0
    """
    generator = np.random.default_rng(seed)
    num = int(generator.poisson(rate_per_s * length_s))
    release: Array = np.sort(generator.uniform(0.0, length_s, num))
    groups = generator.choice(len(shares), num, p=shares)
    stamps = np.floor(release / stamp_s) * stamp_s if stamp_s > 0.0 else release
    done, _ = d_over(release, stamps + limit_s, np.asarray(costs_s)[groups])
    counted = (release >= 2.0 * limit_s) & (release < length_s - limit_s)
    if not counted.any():
        counted = np.ones(num, dtype=bool)
    return TupleOutcome(in_time_ratio=float(done[counted].mean()), num_tuples=int(counted.sum()))


def _largest(
    queue: list[tuple[int, list[int]]], step: int, step_s: float, num_steps: int, costs: Array
) -> list[tuple[int, list[int]]]:
    deadlines = np.array([(came + num_steps - step) * step_s for came, _ in queue])
    kept = kept_counts(0.0, deadlines, costs, np.array([counts for _, counts in queue]))
    return [
        (came, [int(count) for count in row])
        for (came, _), row in zip(queue, kept, strict=True)
        if row.any()
    ]


def _whole(
    queue: list[tuple[int, list[int]]], step: int, step_s: float, num_steps: int, costs: Array
) -> list[tuple[int, list[int]]]:
    """Batches that can still be done before the deadline of their first tuple."""
    return [
        (came, counts)
        for came, counts in queue
        if float(np.dot(counts, costs)) <= (came + num_steps - step) * step_s
    ]


def _spend(counts: list[int], costs: Array, budget_s: float, *, blind: bool) -> list[int]:
    """How many of each group are done with so much time: cheapest first, or in proportion."""
    total_s = float(np.dot(counts, costs))
    if total_s <= budget_s:
        return list(counts)
    if blind:
        return [int(count * budget_s / total_s) for count in counts]
    done = []
    for count, cost in zip(counts, costs, strict=True):
        here = min(count, int(budget_s / cost))
        budget_s -= here * cost
        done.append(here)
    return done
