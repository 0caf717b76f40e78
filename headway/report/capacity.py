"""Capacity plans in words and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress

import numpy as np

from headway.assumptions.advice import SAVING_SHOWN_PER_DAY
from headway.domain.sheet import Kind, Section, Sheet
from headway.fleet.nouns import Capacity, FleetPlan, GrowthPoint, Infeasible, Supply
from headway.formats.codec import data_of
from headway.units import DAYS_PER_MONTH, counted, span_text

_ABOUT = "Headway capacity plan"
_SAME_WEIGHT = 1e-6
_SAME_GAP = 1e-6
_HOURS_ON_A_LINE = 12


def capacity_sheet(answer: Capacity) -> Sheet:
    """The answer first, then which job runs where, and what to buy."""
    plan = answer.plan
    return _infeasible_sheet(answer, plan) if not plan.feasible else _plan_sheet(answer, plan)


def _plan_sheet(answer: Capacity, plan: FleetPlan) -> Sheet:
    num_jobs, num_served = len(answer.fleet.jobs), int((plan.supply_of >= 0).sum())
    served = f"{num_served} of {counted(num_jobs, 'job')}"
    if num_served == num_jobs:
        served = counted(num_jobs, "job")
    nodes, cost, limits = counted(_max_nodes(plan), "node"), plan.cost_per_day, answer.shadow_prices
    by_day, by_month = _money(answer, cost), _by_month(answer, cost)
    texts = [f"{_proof_text(answer, plan)}; prices of {answer.prices_of}; {answer.scenarios}"]
    fees_per_day = cost - plan.bill.cost_per_day
    if fees_per_day:
        parts = (_by_month(answer, part) for part in (plan.bill.cost_per_day, fees_per_day))
        texts.append("per month: nodes {}, write requests {}".format(*parts))
    names = (answer.fleet.jobs[index] for index in np.flatnonzero(plan.supply_of < 0))
    not_served = tuple(f"{name}: {_why_not_served(answer, name)}" for name in names)
    budget = answer.fleet.budget_per_day
    if budget is not None:
        texts.append(f"budget {_by_month(answer, budget)} per month, {cost / budget:.0%} used")
    return Sheet(
        about=_ABOUT,
        headline=(
            f"{answer.name}: {served} on at most {nodes}, {by_day} per day ({by_month} per month)"
        ),
        verdict=num_served == num_jobs,
        key_figures=(
            ("cost per month", by_month, "of 30 days"),
            ("most nodes at a time", f"{_max_nodes(plan):,}", ""),
        ),
        sections=(
            Section(texts=tuple(texts), indent=2, close=True),
            _jobs(answer, plan),
            _writes(answer),
            Section(title="not served", texts=not_served),
            _purchases(answer, plan),
            *_hours(answer, plan),
            Section(title="cost of targets", rows=tuple(_target_rows(answer))),
            Section(title="cost of limits", texts=tuple(price.text for price in limits)),
            _growth(answer),
            Section(texts=answer.notes, lead="note"),
        ),
    )


def capacity_json(answer: Capacity) -> dict[str, object]:
    """A capacity plan as data for :func:`headway.formats.as_json.json_text`."""
    plan = answer.plan
    head: dict[str, object] = {
        "schema": "headway.capacity/v1",
        "name": answer.name,
        "feasible": answer.feasible,
        "currency": answer.currency,
        "prices_of": answer.prices_of,
        "scenarios": answer.scenarios,
    }
    if not plan.feasible:
        return head | {
            "impossible": [
                {"job": name, "why": answer.why_impossible[name]} for name in plan.impossible
            ],
            "unserved": list(plan.unserved),
            "relaxations": list(plan.relaxations),
        }
    bill = plan.bill
    return head | {
        "proof": _proof_text(answer, plan),
        "cost_per_day": _rounded(bill.cost_per_day),
        "requests_cost_per_day": _rounded(plan.cost_per_day - bill.cost_per_day),
        "bill_per_day": _rounded(plan.cost_per_day),
        "budget_per_day": answer.fleet.budget_per_day,
        "bound_per_day": _rounded(plan.bound_per_day),
        "gap": _rounded(plan.gap_ratio),
        "jobs": [_job_json(answer, plan, job_index) for job_index in range(len(answer.fleet.jobs))],
        "purchases": [
            {
                "node_type": answer.fleet.offers[index].name,
                "nodes": bill.nodes[index].tolist(),
                "spot": bill.spot[index].tolist(),
                "committed": int(bill.committed[index]),
                "cost_per_day": _rounded(bill.cost_by_offer[index]),
            }
            for index in _bought(answer, plan)
        ],
        "period_hours": answer.fleet.hours.tolist(),
        "promise_prices": data_of(answer.target_prices),
        "shadow_prices": data_of(answer.shadow_prices),
        "growth": [_growth_json(point) for point in answer.growth],
        "notes": list(answer.notes),
    }


def _job_json(answer: Capacity, plan: FleetPlan, job_index: int) -> dict[str, object]:
    name, supply_index = answer.fleet.jobs[job_index], int(plan.supply_of[job_index])
    if supply_index < 0:
        return {"job": name, "served": False, "why": _why_not_served(answer, name)}
    supply = answer.fleet.supplies[supply_index]
    estimate = answer.target_probabilities.get(name)
    units = answer.fleet.units[job_index, supply_index]
    certainty: dict[str, object] = {}
    if estimate is not None:
        certainty = {"kept_probability": _rounded(estimate[0]), "verdict": estimate[1]}
    return {
        "job": name,
        "served": True,
        "pool": supply.pool,
        "zone": supply.zone,
        "node_type": answer.fleet.offers[supply.offer].name,
        "executors" if supply.shared else "nodes": units.tolist(),
        "cost_per_day": _rounded(plan.cost_by_job[job_index]),
        "requests_cost_per_day": _rounded(plan.fees_by_job[job_index]),
        "writes": data_of(answer.writes.get(name)),
        **certainty,
    }


def _growth_json(point: GrowthPoint) -> dict[str, object]:
    month, ratio, plan = point
    return {
        "month": month,
        "ratio": _rounded(ratio),
        "cost_per_day": _rounded(plan.bill.cost_per_day) if plan.feasible else None,
        "bill_per_day": _rounded(plan.cost_per_day) if plan.feasible else None,
        "max_nodes": _max_nodes(plan) if plan.feasible else None,
        "why": "" if plan.feasible else _first_reason(plan),
    }


def _max_nodes(plan: FleetPlan) -> int:
    return int(plan.bill.nodes.sum(axis=0).max())


def _bought(answer: Capacity, plan: FleetPlan) -> list[int]:
    """Indexes of the offers of which nodes are bought."""
    nodes, committed, num_offers = plan.bill.nodes, plan.bill.committed, len(answer.fleet.offers)
    return [index for index in range(num_offers) if nodes[index].any() or committed[index]]


def _proof_text(answer: Capacity, plan: FleetPlan) -> str:
    """What is proven about plans that cost less or serve more."""
    serves_all = (plan.supply_of >= 0).all()
    proved = f"no plan {'with these executors' if serves_all else 'that serves as much'} costs less"
    if not plan.gap_ratio < 1e-9:
        bound = _by_month(answer, plan.bound_per_day)
        proved += f" than {bound} per month: gap {plan.gap_ratio:.2%}"
    if plan.gap_ratio > answer.gap_asked_ratio + _SAME_GAP:
        proved += f", not the requested {answer.gap_asked_ratio:.2%}: the time limit was reached"
    return proved if serves_all else f"{_as_much_as_can_be(answer, plan)}; {proved}"


def _as_much_as_can_be(answer: Capacity, plan: FleetPlan) -> str:
    """Whether it is proven that no more can be served."""
    weight = float(answer.fleet.weights[plan.supply_of >= 0].sum())
    max_weight = weight if plan.most_weight is None else plan.most_weight
    no_plan = "no plan within the limits serves more"
    if max_weight <= weight * (1 + _SAME_WEIGHT) + _SAME_WEIGHT:
        return f"{no_plan}, by weight"
    return f"{no_plan} than {max_weight:.3g} by weight, this one {weight:.3g}"


def _why_not_served(answer: Capacity, name: str) -> str:
    if name in answer.why_impossible:
        return f"cannot run anywhere: {answer.why_impossible[name]}"
    return "the limits leave no room for it besides the served jobs"


def _jobs(answer: Capacity, plan: FleetPlan) -> Section:
    """Where each served job runs, the most expensive first."""
    costs, fees = plan.cost_by_job + plan.fees_by_job, plan.fees_by_job
    rows: list[tuple[str, ...]] = []
    for job_index in np.argsort(-costs, kind="stable").tolist():
        name, supply_index = answer.fleet.jobs[job_index], int(plan.supply_of[job_index])
        if supply_index < 0:
            continue
        supply = answer.fleet.supplies[supply_index]
        estimate = answer.target_probabilities.get(name)
        counts = answer.fleet.units[job_index, supply_index]
        probability = "" if estimate is None else f"{estimate[0]:.1%}"
        rows.append(
            (
                name,
                _pool(supply),
                answer.fleet.offers[supply.offer].name,
                _span(counts, "executor" if supply.shared else "node"),
                _by_month(answer, float(costs[job_index])),
                *((_by_month(answer, float(fees[job_index])),) if fees.any() else ()),
                *((probability,) if answer.target_probabilities else ()),
            )
        )
    head = ["job", "pool", "node type", "needs", "cost/month"]
    head += ["requests/month"] if fees.any() else []
    head += ["probability"] if answer.target_probabilities else []
    return Section(title="jobs", head=tuple(head), rows=tuple(rows), right=(4, 5, 6))


def _writes(answer: Capacity) -> Section:
    """What each job writes whose store is known, the most first."""
    rows = []
    for name, writes in sorted(answer.writes.items(), key=lambda item: -item[1].files_per_day):
        requests = writes.requests_per_day
        shown_requests = "unknown" if requests is None else f"{requests:,.0f}"
        rows.append((name, f"{writes.files_per_day:,.0f}", shown_requests, writes.store))
    head = ("job", "files/day", "write requests/day", "store")
    return Section(title="files", head=head, rows=tuple(rows), right=(1, 2))


def _purchases(answer: Capacity, plan: FleetPlan) -> Section:
    bill = plan.bill
    rows = [
        (
            answer.fleet.offers[index].name,
            _span(bill.nodes[index]),
            _span(bill.spot[index]) if bill.spot[index].any() else "",
            str(bill.committed[index]) if bill.committed[index] else "",
            _by_month(answer, float(bill.cost_by_offer[index])),
        )
        for index in _bought(answer, plan)
    ]
    head = ("node type", "nodes", "spot", "committed", "cost/month")
    # What is bought of no node type has no column.
    used = [any(row[index] for row in rows) for index in range(len(head))]
    shown_head, *shown_rows = (tuple(compress(row, used)) for row in (head, *rows))
    right = tuple(range(1, len(shown_head)))
    return Section(title="nodes to buy", head=shown_head, rows=tuple(shown_rows), right=right)


def _hours(answer: Capacity, plan: FleetPlan) -> Iterator[Section]:
    """The scaling schedule: nodes of each supply by hour, if their number changes."""
    num_hours = answer.fleet.num_periods if answer.fleet.num_periods > 1 else 0
    for first in range(0, num_hours, _HOURS_ON_A_LINE):
        hours = range(first, min(first + _HOURS_ON_A_LINE, num_hours))
        yield Section(
            title="" if first else "nodes by hour",
            head=("hour", *(f"{hour:02d}" for hour in hours)),
            rows=tuple(
                (
                    f"{_pool(supply)} {answer.fleet.offers[supply.offer].name}",
                    *(str(plan.nodes[supply_index][hour]) for hour in hours),
                )
                for supply_index, supply in enumerate(answer.fleet.supplies)
                if plan.nodes[supply_index].any()
            ),
            right=tuple(range(1, len(hours) + 1)),
            indent=2,
            close=first > 0,
        )


def _target_rows(answer: Capacity) -> Iterator[tuple[str, str]]:
    for price in answer.target_prices:
        if price.saves_per_day >= SAVING_SHOWN_PER_DAY.value:
            at_least = "" if price.is_all else "at least "
            saving = f"{at_least}{_by_month(answer, price.saves_per_day)}"
            yield price.job, f"{price.promise} costs {saving} more per month than {price.looser}"


def _growth(answer: Capacity) -> Section:
    rows = []
    for month, ratio, plan in answer.growth:
        if plan.feasible:
            figures = (str(_max_nodes(plan)), _by_month(answer, plan.cost_per_day))
        else:
            figures = ("no plan", _first_reason(plan))
        rows.append((month, f"{ratio:.2f}x", *figures))
    head = ("month", "rates", "max nodes", "cost/month")
    return Section(title="growth", head=head, rows=tuple(rows), right=(1, 2))


def _infeasible_sheet(answer: Capacity, plan: Infeasible) -> Sheet:
    reasons = [
        f"{name} cannot run anywhere: {answer.why_impossible[name]}" for name in plan.impossible
    ]
    if plan.unserved and not plan.impossible:
        which = "the fewest jobs" if plan.fewest_unserved else "jobs"
        reasons.append(f"{which} to leave out: {', '.join(plan.unserved)}")
    ways_out = "smallest changes of a limit, each sufficient by itself:"
    return Sheet(
        about=_ABOUT,
        headline=f"{answer.name}: infeasible",
        verdict=False,
        sections=(
            Section(texts=tuple(reasons), indent=2, close=True),
            Section(
                title="alternatives:" if plan.impossible else ways_out,
                texts=plan.relaxations,
                close=True,
            ),
        ),
    )


def _first_reason(plan: Infeasible) -> str:
    if plan.relaxations:
        return plan.relaxations[0]
    return f"without {', '.join(plan.unserved)}" if plan.unserved else ""


def _pool(supply: Supply) -> str:
    return supply.pool if supply.zone == "-" else f"{supply.pool}/{supply.zone}"


def _span(counts: Sequence[int] | np.ndarray, unit: str = "") -> str:
    low, high = int(min(counts)), int(max(counts))
    span = span_text(str(low), str(high))
    return f"{span} {unit if high == 1 else unit + 's'}" if unit else span


def _money(answer: Capacity, amount: float) -> str:
    return f"{amount:,.2f} {answer.currency}"


def _by_month(answer: Capacity, cost_per_day: float) -> str:
    return _money(answer, cost_per_day * DAYS_PER_MONTH)


def _rounded(number: float) -> float:
    return float(f"{number:.6g}")


KINDS = {"capacity": Kind(sheet=capacity_sheet, data=capacity_json, main="jobs")}
