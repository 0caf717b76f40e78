"""The linear relaxation of a fleet's problem, whose value bounds the cost of every plan.

Most pairs of a job and a supply are irrelevant. The relaxation is therefore solved over few
columns, and its prices determine which others could lower it, until none does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headway.errors import SolverError
from headway.fleet.moves import estimated_cost
from headway.fleet.nouns import Array, Fleet, Mask
from headway.fleet.problem import Goal, Solved, columns_where, solve
from headway.fleet.reduced_cost import gains, reduced_costs

_FIRST_COLUMNS = 4
_NEW_COLUMNS = 3
_MOST_ROUNDS = 60
_SMALL_FLEET = 3000
# A part of a job this small is left out only by rounding.
_NOBODY = 1e-6
# Share of the gap that the relaxation itself may leave open.
_CLOSE_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relaxed:
    """The linear relaxation over all columns: its value, and the reduced cost of each column."""

    solved: Solved
    bound: float
    reduced_cost: Array
    chosen: Mask


def is_large(fleet: Fleet) -> bool:
    """Whether a fleet has too many pairs of a job and a supply to consider all at once."""
    return int(fleet.allowed.sum()) > _SMALL_FLEET


def relaxation(fleet: Fleet, gap_ratio: float) -> Relaxed | None:
    """The linear relaxation by column generation; None if even that has no solution.

    Its bound is the best of all rounds; each is valid, even if the relaxation is not yet solved.
    """
    column_mask = _cheapest_columns(fleet)
    close_ratio = max(_CLOSE_SHARE * gap_ratio, 1e-7)
    best: Relaxed | None = None
    for _ in range(_MOST_ROUNDS):
        solved = solve(fleet, columns_where(column_mask), Goal(), integer=False)
        if solved is None:
            wider = _with_room_for_all(fleet, column_mask)
            if wider is None:
                return None
            column_mask = wider
            continue
        least_below, of_relaxation = reduced_costs(fleet, solved, column_mask)
        gain = gains(least_below)
        bound = solved.value + float(gain.sum())
        if best is None or bound > best.bound:
            beyond = least_below - gain[:, None]
            best = Relaxed(solved=solved, bound=bound, reduced_cost=beyond, chosen=column_mask)
        wider = _with_new_columns(column_mask, least_below, of_relaxation)
        close = solved.value - best.bound <= close_ratio * max(abs(solved.value), 1.0)
        if close or np.array_equal(wider, column_mask):
            return replace(best, solved=solved, chosen=column_mask)
        column_mask = wider
    if best is None:
        raise SolverError("HiGHS contradicts itself about the room for all jobs; please report it")
    return best


def _with_room_for_all(fleet: Fleet, column_mask: Mask) -> Mask | None:
    """Columns with room for every job, at any cost.

    None if no columns have it. As few jobs as possible are left out, and the prices of that problem
    determine which columns would serve more, so no price for a job left out has to be guessed.
    """
    equally_weighted = replace(fleet, weights=np.ones(len(fleet.jobs)))
    goal = Goal(penalty=1.0, counts_cost=False)
    for _ in range(_MOST_ROUNDS):
        solved = solve(equally_weighted, columns_where(column_mask), goal, integer=False)
        assert solved is not None  # leaving every job out is within all limits
        if solved.value <= _NOBODY:
            return column_mask
        least_below, of_relaxation = reduced_costs(fleet, solved, column_mask)
        if solved.value + float(gains(least_below).sum()) > _NOBODY:
            return None
        wider = _with_new_columns(column_mask, least_below, of_relaxation)
        if np.array_equal(wider, column_mask):
            break
        column_mask = wider
    return fleet.allowed.copy()


def _with_new_columns(column_mask: Mask, *reduced: Array) -> Mask:
    """The columns plus those that could lower the value most, a few per job."""
    wider = column_mask
    for column_costs in reduced:
        unseen = np.where(column_mask, np.inf, column_costs)
        best = np.argsort(unseen, axis=1, kind="stable")[:, :_NEW_COLUMNS]
        added = np.zeros_like(column_mask)
        np.put_along_axis(added, best, True, axis=1)
        wider = column_mask | (added & (unseen < 0.0))
        if not np.array_equal(wider, column_mask):
            break
    return wider


def _cheapest_columns(fleet: Fleet) -> Mask:
    if not is_large(fleet):
        return fleet.allowed.copy()
    column_mask = np.zeros_like(fleet.allowed)
    best = np.argsort(estimated_cost(fleet), axis=1, kind="stable")[:, :_FIRST_COLUMNS]
    np.put_along_axis(column_mask, best, True, axis=1)
    return column_mask & fleet.allowed
