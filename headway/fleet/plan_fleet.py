"""The cheapest plan for a fleet, with a proven gap to the minimum cost.

The linear relaxation bounds the cost of every plan. The integer problem needs only the columns
whose reduced cost is less than the remaining gap; leaving out the others cannot make a plan more
expensive.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np

from headway.errors import SolverError
from headway.fleet.billing import bill_of, cost_by_job, limits_broken, nodes_needed
from headway.fleet.infeasible import diagnose
from headway.fleet.moves import with_better_moves, with_fewer_open
from headway.fleet.nouns import Fleet, FleetPlan, Infeasible, Whole
from headway.fleet.problem import Columns, Goal, Solved, columns_where, solve, supply_of
from headway.fleet.reduced_cost import node_prices
from headway.fleet.relaxation import Relaxed, is_large, relaxation

_MOST_COMPARED_CASES = 200
_TIME_LIMIT_S = 60.0
# Maximum time to search for a better plan of a large fleet that has one. [s]
_TIME_TO_DO_BETTER_S = 8.0
_TOLERANCE = 1e-7


def plan_fleet(
    fleet: Fleet, *, gap_ratio: float = 1e-3, time_limit_s: float = _TIME_LIMIT_S
) -> FleetPlan | Infeasible:
    """The cheapest plan that serves every job, or why there is none.

    The plan's cost may exceed the proven minimum by the share ``gap_ratio``. If the time limit of
    an integer problem ends before that, the plan's own gap states what is proven. Raises
    SolverError if the solver ends without an answer, or with one that exceeds a limit.
    """
    small = compact(fleet)
    plan = _planned(small, gap_ratio, time_limit_s)
    return plan_of(fleet, plan.supply_of, plan.bound_per_day) if plan.feasible else plan


def serve_most(fleet: Fleet, *, gap_ratio: float = 1e-3) -> FleetPlan:
    """The plan that serves as many jobs, by weight, as the limits allow; of these, the cheapest.

    The gap and errors are those of :func:`plan_fleet`. Jobs that can run nowhere are not served.
    """
    full, fleet = fleet, compact(fleet)
    columns = columns_where(fleet.allowed)
    if not fleet.allowed.any():
        return plan_of(full, np.full(len(full.jobs), -1, dtype=np.int64), 0.0)
    goal = Goal(penalty=1.0, counts_cost=False, fees_of_served=True)
    max_served = solve(fleet, columns, goal, integer=True, time_limit_s=_TIME_LIMIT_S)
    if max_served is None:
        raise SolverError("HiGHS found no plan; expected at least the one without jobs")
    least_served = float(fleet.weights @ np.round(max_served.served))
    goal = Goal(least_served=least_served, fees_of_served=True)
    solved = solve(
        fleet, columns, goal, integer=True, gap_ratio=gap_ratio, time_limit_s=_TIME_LIMIT_S
    )
    if solved is None:
        raise SolverError("HiGHS contradicts itself: what it served cannot be served")
    plan = plan_of(full, supply_of(fleet, columns, solved.use), solved.bound)
    return replace(plan, most_weight=float(fleet.weights.sum()) - max_served.bound)


def plan_of(fleet: Fleet, supply_of_job: Whole, bound: float) -> FleetPlan:
    """The plan that assigns jobs to supplies; everything else follows, and is checked."""
    nodes = nodes_needed(fleet, supply_of_job)
    bill = bill_of(fleet, nodes)
    fees = np.where(supply_of_job >= 0, fleet.fees, 0.0)
    broken = limits_broken(fleet, nodes, bill.cost_per_day + float(fees.sum()))
    misplaced_jobs = [
        fleet.jobs[job]
        for job, supply_index in enumerate(supply_of_job)
        if supply_index >= 0 and not fleet.allowed[job, supply_index]
    ]
    if broken or misplaced_jobs:
        breaches = "; ".join([*broken, *(f"{name}: cannot run there" for name in misplaced_jobs)])
        raise SolverError(
            f"HiGHS returned a plan that breaks a limit: {breaches}; please report it"
        )
    return FleetPlan(
        supply_of=supply_of_job,
        nodes=nodes,
        bill=bill,
        bound_per_day=min(bound, bill.cost_per_day),
        cost_by_job=cost_by_job(fleet, supply_of_job, nodes, bill),
        fees_by_job=fees,
    )


def _planned(fleet: Fleet, gap_ratio: float, time_limit_s: float) -> FleetPlan | Infeasible:
    if not fleet.allowed.any(axis=1).all():
        return diagnose(fleet, time_limit_s=time_limit_s)
    quick = _without_reserve(fleet, gap_ratio)
    if quick is not None and quick.gap_ratio <= gap_ratio:
        return quick
    relaxed = relaxation(fleet, gap_ratio)
    if relaxed is None:
        return diagnose(fleet, time_limit_s=time_limit_s)
    rounded = _cheaper(quick, _rounded(fleet, relaxed), relaxed.bound)
    if rounded is None and is_large(fleet):
        rounded = _of_chosen_columns(fleet, relaxed, gap_ratio)
    if rounded is not None and rounded.gap_ratio <= gap_ratio:
        return rounded
    columns, left_out = _worthwhile(fleet, relaxed, rounded, gap_ratio)
    if rounded is not None and is_large(fleet):
        time_limit_s = min(time_limit_s, _TIME_TO_DO_BETTER_S)
    solved = _solved_in_time(fleet, columns, gap_ratio, time_limit_s, required=rounded is None)
    if solved is None:
        return rounded or diagnose(fleet, time_limit_s=time_limit_s)
    bound = max(relaxed.bound, min(solved.bound, left_out))
    plan = plan_of(fleet, supply_of(fleet, columns, solved.use), bound)
    if rounded is not None and rounded.bill.cost_per_day < plan.bill.cost_per_day:
        plan = plan_of(fleet, rounded.supply_of, bound)
    return plan


def _solved_in_time(
    fleet: Fleet, columns: Columns, gap_ratio: float, time_limit_s: float, *, required: bool
) -> Solved | None:
    """The integer problem; None if the time ends without an answer and none is required."""
    try:
        return solve(
            fleet, columns, Goal(), integer=True, gap_ratio=gap_ratio, time_limit_s=time_limit_s
        )
    except SolverError:
        if required:
            raise
        return None


def _without_reserve(fleet: Fleet, gap_ratio: float) -> FleetPlan | None:
    """The rounded plan of a large fleet, with a bound that ignores reserve nodes.

    They cost little there, and determining which jobs open which supply takes longest.
    """
    if not any(supply.failures and supply.shared for supply in fleet.supplies):
        return None
    if not is_large(fleet):
        return None
    supplies = tuple(replace(supply, failures=0) for supply in fleet.supplies)
    relaxed = relaxation(replace(fleet, supplies=supplies), gap_ratio)
    return None if relaxed is None else _rounded(fleet, relaxed)


def _cheaper(first: FleetPlan | None, second: FleetPlan | None, bound: float) -> FleetPlan | None:
    """The cheaper of two plans, with the best of their bounds and another one."""
    plans = [plan for plan in (first, second) if plan is not None]
    if not plans:
        return None
    best = min(plans, key=lambda plan: plan.bill.cost_per_day)
    return replace(best, bound_per_day=min(max(best.bound_per_day, bound), best.bill.cost_per_day))


def _rounded(fleet: Fleet, relaxed: Relaxed) -> FleetPlan | None:
    """Each job on the supply with the largest share of it in the relaxation, then supplies are
    closed and jobs moved if that is cheaper; None if a limit is exceeded.
    """
    job_of, supply_of_column = columns_where(relaxed.chosen)
    by_largest_share = np.full(len(fleet.jobs), -1, dtype=np.int64)
    order = np.argsort(relaxed.solved.use, kind="stable")
    by_largest_share[job_of[order]] = supply_of_column[order]
    node_price = node_prices(fleet, relaxed.solved)
    closed_first = with_better_moves(fleet, with_fewer_open(fleet, by_largest_share), node_price)
    moved_first = with_fewer_open(fleet, with_better_moves(fleet, by_largest_share, node_price))
    plans = []
    for supply_of_job in (closed_first, moved_first):
        with suppress(SolverError):
            plans.append(plan_of(fleet, supply_of_job, relaxed.bound))
    return min(plans, key=lambda plan: plan.bill.cost_per_day, default=None)


def _of_chosen_columns(fleet: Fleet, relaxed: Relaxed, gap_ratio: float) -> FleetPlan | None:
    """The best plan among the few columns that the relaxation generated, if rounding exceeds a
    limit: the integer problem takes a second there, and a minute with all columns. None if none is
    found.
    """
    columns = columns_where(relaxed.chosen)
    solved = _solved_in_time(fleet, columns, gap_ratio / 2, _TIME_TO_DO_BETTER_S, required=False)
    if solved is None:
        return None
    return plan_of(fleet, supply_of(fleet, columns, solved.use), relaxed.bound)


def _worthwhile(
    fleet: Fleet, relaxed: Relaxed, rounded: FleetPlan | None, gap_ratio: float
) -> tuple[Columns, float]:
    """The columns that a plan better than the rounded one may use, and the minimum cost of any plan
    that uses another: the bound plus that column's reduced cost.

    In a large fleet, only plans that are better by the gap are considered.
    """
    if rounded is None:
        return columns_where(fleet.allowed), math.inf
    left_out = rounded.bill.cost_per_day
    if is_large(fleet):
        left_out *= 1 - gap_ratio
    keep = fleet.allowed & (relaxed.reduced_cost <= left_out - relaxed.bound + _TOLERANCE)
    jobs = np.arange(len(fleet.jobs))
    keep[jobs, rounded.supply_of] = True
    return columns_where(keep), math.inf if keep[fleet.allowed].all() else left_out


def compact(fleet: Fleet) -> Fleet:
    """A fleet with the same plans and costs, without load cases that are covered by others.

    Periods with the same load cases have the same nodes in a cheapest plan, so they become one with
    the hours of all. Within a period, a case that needs no more than another one, for any job on
    any supply, never determines the nodes.
    """
    return _without_lighter_cases(_with_like_periods_joined(fleet))


def _with_like_periods_joined(fleet: Fleet) -> Fleet:
    periods_by_units: dict[bytes, list[int]] = {}
    for period in range(fleet.num_periods):
        units = np.ascontiguousarray(fleet.units[:, :, fleet.period_of == period]).tobytes()
        periods_by_units.setdefault(units, []).append(period)
    firsts = [periods[0] for periods in periods_by_units.values()]
    first_cases = np.flatnonzero(np.isin(fleet.period_of, firsts))
    return replace(
        fleet,
        units=fleet.units[:, :, first_cases],
        period_of=np.searchsorted(firsts, fleet.period_of[first_cases]),
        hours=np.array([fleet.hours[periods].sum() for periods in periods_by_units.values()]),
    )


def _without_lighter_cases(fleet: Fleet) -> Fleet:
    num_cases = len(fleet.period_of)
    if num_cases == fleet.num_periods or num_cases > _MOST_COMPARED_CASES:
        return fleet
    drop = np.zeros(num_cases, dtype=bool)
    for case in range(num_cases):
        for covering_case in range(num_cases):
            same_period = fleet.period_of[case] == fleet.period_of[covering_case]
            if case == covering_case or drop[covering_case] or not same_period:
                continue
            if np.all(fleet.units[:, :, case] <= fleet.units[:, :, covering_case]):
                drop[case] = True
                break
    return replace(fleet, units=fleet.units[:, :, ~drop], period_of=fleet.period_of[~drop])
