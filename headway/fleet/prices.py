"""Costs of limits and targets: the fleet is planned again with one of them slightly looser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from headway.assumptions.advice import SAVING_SHOWN_PER_DAY, WHOLE_SAVING_RATIO
from headway.fleet.billing import bill_of, limits_broken, nodes_needed, nodes_of_supply
from headway.fleet.nouns import Array, Fleet, FleetPlan, Quota, ShadowPrice
from headway.fleet.plan_fleet import plan_fleet
from headway.units import DAYS_PER_MONTH

# Maximum pairs of a job and a supply for fleets that are planned again for every price.
MOST_PAIRS = 3000
_TIME_LIMIT_S = 5.0
_SMALLER_GAP = 0.1


def shadow_prices(fleet: Fleet, plan: FleetPlan, *, gap_ratio: float) -> tuple[ShadowPrice, ...]:
    """Saving per day from slightly more of each limit, largest first.

    ``gap_ratio`` is the gap with which the plan, which serves every job, was computed. More is one
    node, or the cores of one more smallest node, for each limit whose relaxation makes the fleet
    cheaper than the proven minimum within the limits. There are none for fleets that are too large
    to be planned again for every limit.
    """
    if not is_planned_again(fleet) or (plan.supply_of < 0).any():
        return ()
    prices = []
    for quota, wider, step_text in _with_a_little_more(fleet):
        per_day, is_all = _saving(plan, wider, gap_ratio)
        if per_day > SAVING_SHOWN_PER_DAY.value:
            text = f"{step_text} more in {quota.label} would save {saving_text(per_day, is_all)}"
            prices.append(ShadowPrice(name=quota.name, saves_per_day=per_day, text=text))
    return tuple(sorted(prices, key=lambda price: -price.saves_per_day))


def saving_text(per_day: float, is_all: bool) -> str:
    """A saving by the month."""
    return f"{'' if is_all else 'at least '}{per_day * DAYS_PER_MONTH:,.2f} per month"


def is_planned_again(fleet: Fleet) -> bool:
    """Whether a fleet is so small that it is planned again for every price."""
    return int(fleet.allowed.sum()) <= MOST_PAIRS


def saving_of_job(
    fleet: Fleet, plan: FleetPlan, looser: Fleet, job_index: int, *, gap_ratio: float
) -> tuple[float, bool]:
    """Certain saving per day if a single job needs less, and whether that is all it can save.

    ``looser`` is the same fleet with other needs of the job at the index. Small fleets are planned
    again. In large ones, only the job is moved to its best place, which saves at least this much.
    """
    if is_planned_again(fleet):
        return _saving(plan, looser, gap_ratio)
    least_per_day = float(costs_of_moves(plan, looser, job_index).min())
    return max(plan.bound_per_day - least_per_day, 0.0), False


def costs_of_moves(plan: FleetPlan, looser: Fleet, job_index: int) -> Array:
    """Cost of the nodes per day if a single job is moved to each supply: (S,).

    ``looser`` is the fleet of the plan with other needs of the job at an index; ``inf`` is where
    that cannot run, or a limit would be exceeded. Less needs never cost more.
    """
    supply_of_job = plan.supply_of.copy()
    supply_of_job[job_index] = -1
    others_nodes = nodes_needed(looser, supply_of_job)
    costs = np.full(len(looser.supplies), np.inf)
    for supply_index in np.flatnonzero(looser.allowed[job_index]).tolist():
        nodes = others_nodes.copy()
        members = np.append(np.flatnonzero(supply_of_job == supply_index), job_index)
        nodes[supply_index] = nodes_of_supply(looser, supply_index, members)
        cost = bill_of(looser, nodes, like=plan.bill).cost_per_day
        if not limits_broken(looser, nodes, cost + looser.all_fees_per_day):
            costs[supply_index] = cost
    return costs


def _saving(plan: FleetPlan, looser: Fleet, gap_ratio: float) -> tuple[float, bool]:
    """The difference to the plan of the looser fleet, as far as the bounds of both prove it."""
    looser_plan = plan_fleet(looser, gap_ratio=_SMALLER_GAP * gap_ratio, time_limit_s=_TIME_LIMIT_S)
    if not looser_plan.feasible:
        return 0.0, False
    min_per_day = max(plan.bound_per_day - looser_plan.bill.cost_per_day, 0.0)
    max_per_day = plan.bill.cost_per_day - looser_plan.bound_per_day
    return min_per_day, min_per_day >= WHOLE_SAVING_RATIO.value * max_per_day


def _with_a_little_more(fleet: Fleet) -> Iterator[tuple[Quota, Fleet, str]]:
    """Each limit, the fleet with more of it, and how much more, as text."""
    for quota_index, quota in enumerate(fleet.quotas):
        weights = quota.weights[quota.weights > 0]
        if not len(weights):
            continue
        step = float(weights.min())
        quotas = list(fleet.quotas)
        quotas[quota_index] = replace(quota, limit=quota.limit + step)
        singular_unit = quota.unit.removesuffix("s")
        step_text = f"one {singular_unit}" if step == 1.0 else f"{step:g} {quota.unit}"
        yield quota, replace(fleet, quotas=tuple(quotas)), step_text
