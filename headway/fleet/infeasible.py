"""Why a fleet has no plan: jobs that are left out, and the smallest relaxation of a limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headway.errors import SolverError
from headway.fleet.billing import bill_of, nodes_needed
from headway.fleet.nouns import Fleet, Infeasible
from headway.fleet.problem import Columns, Goal, Solved, columns_where, solve, supply_of

_WIDE = 1e-6


def diagnose(fleet: Fleet, *, time_limit_s: float = 60.0) -> Infeasible:
    """Why not every job can be served; never without a reason.

    Jobs that no supply can run; else the fewest jobs, by weight, to leave out, and for each limit
    its smallest relaxation with all others unchanged.
    """
    impossible = tuple(
        name for name, row in zip(fleet.jobs, fleet.allowed, strict=True) if not row.any()
    )
    if impossible:
        return Infeasible(impossible=impossible, unserved=impossible, relaxations=())
    columns = columns_where(fleet.allowed)
    goal = Goal(penalty=1.0, counts_cost=False, fees_of_served=True)
    solved = solve(fleet, columns, goal, integer=True, time_limit_s=time_limit_s)
    served = np.zeros(len(fleet.jobs)) if solved is None else solved.served
    unserved = tuple(name for name, is_in in zip(fleet.jobs, served, strict=True) if is_in < 0.5)
    problem = (fleet, columns, time_limit_s)
    single = [*_wider_quotas(*problem), *_higher_budget(*problem)]
    return reasoned(
        Infeasible(
            impossible=(),
            unserved=unserved,
            relaxations=tuple(single or _everything(*problem)),
            fewest_unserved=solved is not None and _is_proved(solved),
        )
    )


def reasoned(diagnosis: Infeasible) -> Infeasible:
    """The same, if it names a job and a limit to relax; else nothing shows it is infeasible."""
    if not (diagnosis.unserved and diagnosis.relaxations):
        raise SolverError(
            "no plan was found, but neither was a job to leave out nor a limit in the way; "
            "expected one of the two for an infeasible fleet; please report it"
        )
    return diagnosis


def _wider_quotas(fleet: Fleet, columns: Columns, time_limit_s: float) -> list[str]:
    """For each quota, the lowest limit at which all jobs fit, if it is the only obstacle."""
    relaxations = []
    for quota in fleet.quotas:
        goal = Goal(counts_cost=False, elastic=quota.label)
        solved = solve(fleet, columns, goal, integer=True, time_limit_s=time_limit_s)
        if solved is not None and solved.excess > _WIDE:
            needed_limit = int(np.ceil(quota.limit + solved.excess - _WIDE))
            text = f"{quota.label}: {quota.text(needed_limit)} instead of {quota.limit:g}"
            relaxations.append(text + _if_less_may_do(solved))
    return relaxations


def _higher_budget(fleet: Fleet, columns: Columns, time_limit_s: float) -> list[str]:
    """The lowest budget that serves every job, if it is the only obstacle."""
    if fleet.budget_per_day is None:
        return []
    goal = Goal(within_budget=False)
    solved = solve(fleet, columns, goal, integer=True, time_limit_s=time_limit_s)
    if solved is None:
        return []
    needed_per_day = solved.value + fleet.all_fees_per_day
    if needed_per_day <= fleet.budget_per_day + _WIDE:
        return []
    return [
        _budget_text(fleet.budget_per_day, needed_per_day, fleet.currency) + _if_less_may_do(solved)
    ]


def _everything(fleet: Fleet, columns: Columns, time_limit_s: float) -> list[str]:
    """If no single limit is enough: all limits as needed by the cheapest plan without limits."""
    free = replace(fleet, quotas=(), budget_per_day=None)
    solved = solve(free, columns, Goal(), integer=True, time_limit_s=time_limit_s)
    if solved is None:
        return []
    nodes = nodes_needed(free, supply_of(free, columns, solved.use))
    parts = [
        f"{quota.label}: {quota.text(peak_use)} instead of {quota.limit:g}"
        for quota in fleet.quotas
        if (peak_use := float((quota.weights @ nodes).max())) > quota.limit
    ]
    cost = bill_of(free, nodes).cost_per_day + fleet.all_fees_per_day
    if fleet.budget_per_day is not None and cost > fleet.budget_per_day:
        parts.append(_budget_text(fleet.budget_per_day, cost, fleet.currency))
    return ["together: " + "; ".join(parts)] if parts else []


def _budget_text(budget_per_day: float, needed_per_day: float, currency: str) -> str:
    """What a budget must at least be, rounded up to whole cents."""
    needed_budget = np.ceil(needed_per_day * 100 - _WIDE) / 100
    money = f"{needed_budget:.2f} {currency}".rstrip()
    return f"budget: {money} a day instead of {budget_per_day:.2f}"


def _if_less_may_do(solved: Solved) -> str:
    """Note on a limit if the time ended before it was proven to be the lowest."""
    return "" if _is_proved(solved) else " (enough; less may do)"


def _is_proved(solved: Solved) -> bool:
    return solved.value - solved.bound <= _WIDE * max(abs(solved.value), 1.0)
