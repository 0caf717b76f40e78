"""Capacity plans as plain text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from headway.assumptions.advice import SAVING_SHOWN_PER_DAY
from headway.fleet.nouns import Capacity, FleetPlan, Infeasible, Supply, TargetPrice
from headway.formats.codec import data_of
from headway.report.columns import aligned, paragraph, width
from headway.units import DAYS_PER_MONTH, counted

CAPACITY_SCHEMA = "headway.capacity/v1"
_SAME_WEIGHT = 1e-6
_SAME_GAP = 1e-6
_INDENT = 3  # before the names of supplies, and behind them


def capacity_text(answer: Capacity) -> str:
    """A capacity plan as lines: the answer first, then which job runs where, and what to buy."""
    plan = answer.plan
    if not plan.feasible:
        return "\n".join(_infeasible_lines(answer, plan))
    blocks = [
        _headline(answer, plan),
        _titled("jobs", _job_rows(answer, plan)),
        _not_served_lines(answer, plan),
        _titled("nodes to buy", _purchase_rows(answer, plan)),
        _hour_lines(answer, plan),
        _titled("cost of targets", _promise_rows(answer)),
        _titled("cost of limits", [(price.text,) for price in answer.shadow_prices]),
        _titled("growth", _growth_rows(answer)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def capacity_json(answer: Capacity) -> dict[str, object]:
    """A capacity plan as data for :func:`headway.formats.as_json.json_text`."""
    plan = answer.plan
    head: dict[str, object] = {
        "schema": CAPACITY_SCHEMA,
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
            "relaxations": [relaxation.text for relaxation in plan.relaxations],
        }
    return head | {
        "proof": _proof_text(answer, plan),
        "cost_per_day": _rounded(plan.bill.cost_per_day),
        "budget_per_day": answer.fleet.budget_per_day,
        "bound_per_day": _rounded(plan.bound_per_day),
        "gap": _rounded(plan.gap_ratio),
        "jobs": [_job_json(answer, plan, job_index) for job_index in range(len(answer.fleet.jobs))],
        "purchases": [
            {
                "node_type": offer.name,
                "nodes": plan.bill.nodes[offer_index].tolist(),
                "spot": plan.bill.spot[offer_index].tolist(),
                "committed": int(plan.bill.committed[offer_index]),
                "cost_per_day": _rounded(plan.bill.cost_by_offer[offer_index]),
            }
            for offer_index, offer in enumerate(answer.fleet.offers)
            if plan.bill.nodes[offer_index].any() or plan.bill.committed[offer_index]
        ],
        "period_hours": answer.fleet.hours.tolist(),
        "promise_prices": data_of(answer.target_prices),
        "shadow_prices": data_of(answer.shadow_prices),
        "growth": [
            {
                "month": point.month,
                "ratio": _rounded(point.ratio),
                "cost_per_day": _rounded(point.plan.bill.cost_per_day)
                if point.plan.feasible
                else None,
                "max_nodes": int(point.plan.bill.nodes.sum(axis=0).max())
                if point.plan.feasible
                else None,
                "why": "" if point.plan.feasible else _first_reason(point.plan),
            }
            for point in answer.growth
        ],
    }


def _job_json(answer: Capacity, plan: FleetPlan, job_index: int) -> dict[str, object]:
    supply_index = int(plan.supply_of[job_index])
    if supply_index < 0:
        name = answer.fleet.jobs[job_index]
        return {"job": name, "served": False, "why": _why_not_served(answer, name)}
    supply = answer.fleet.supplies[supply_index]
    return {
        "job": answer.fleet.jobs[job_index],
        "served": True,
        "pool": supply.pool,
        "zone": supply.zone,
        "node_type": answer.fleet.offers[supply.offer].name,
        "executors" if supply.shared else "nodes": answer.fleet.units[
            job_index, supply_index
        ].tolist(),
        "cost_per_day": _rounded(plan.cost_by_job[job_index]),
        **_kept_json(answer, answer.fleet.jobs[job_index]),
    }


def _headline(answer: Capacity, plan: FleetPlan) -> list[str]:
    num_jobs, num_served = len(answer.fleet.jobs), int((plan.supply_of >= 0).sum())
    served = (
        counted(num_jobs, "job") if num_served == num_jobs else f"{num_served} of {num_jobs} jobs"
    )
    cost = plan.bill.cost_per_day
    max_nodes = int(plan.bill.nodes.sum(axis=0).max())
    by_day, by_month = _money(answer, cost), _money(answer, cost * DAYS_PER_MONTH)
    nodes = counted(max_nodes, "node")
    lines = paragraph(
        f"{answer.name}: {served} on at most {nodes}, {by_day} per day ({by_month} per month)"
    )
    proved = _proof_text(answer, plan)
    lines += paragraph(f"{proved}; prices of {answer.prices_of}; {answer.scenarios}", lead="  ")
    budget = answer.fleet.budget_per_day
    if budget is not None:
        lines.append(f"  budget {_by_month(answer, budget)} per month, {cost / budget:.0%} used")
    return lines


def _proof_text(answer: Capacity, plan: FleetPlan) -> str:
    """What is proven about plans that cost less or serve more."""
    num_jobs, num_served = len(answer.fleet.jobs), int((plan.supply_of >= 0).sum())
    no_plan = "no plan with these executors"
    if num_served < num_jobs:
        no_plan = "no plan that serves as much"
    proved = (
        f"{no_plan} costs less"
        if plan.gap_ratio < 1e-9
        else f"{no_plan} costs less than {_by_month(answer, plan.bound_per_day)} per month: "
        f"gap {plan.gap_ratio:.2%}"
    )
    if plan.gap_ratio > answer.gap_asked_ratio + _SAME_GAP:
        proved += f", not the requested {answer.gap_asked_ratio:.2%}: the time limit was reached"
    if num_served < num_jobs:
        proved = f"{_as_much_as_can_be(answer, plan)}; {proved}"
    return proved


def _as_much_as_can_be(answer: Capacity, plan: FleetPlan) -> str:
    """Whether it is proven that no more can be served."""
    weight = float(answer.fleet.weights[plan.supply_of >= 0].sum())
    max_weight = weight if plan.most_weight is None else plan.most_weight
    if max_weight <= weight * (1 + _SAME_WEIGHT) + _SAME_WEIGHT:
        return "no plan within the limits serves more, by weight"
    return (
        f"no plan within the limits serves more than {max_weight:.3g} by weight, "
        f"this one {weight:.3g}"
    )


def _not_served_lines(answer: Capacity, plan: FleetPlan) -> list[str]:
    names = [
        answer.fleet.jobs[job_index] for job_index in np.flatnonzero(plan.supply_of < 0).tolist()
    ]
    lines = [
        line
        for name in names
        for line in paragraph(f"{name}: {_why_not_served(answer, name)}", lead="  ")
    ]
    return ["not served", *lines] if lines else []


def _why_not_served(answer: Capacity, name: str) -> str:
    if name in answer.why_impossible:
        return f"cannot run anywhere: {answer.why_impossible[name]}"
    return "the limits leave no room for it besides the served jobs"


def _job_rows(answer: Capacity, plan: FleetPlan) -> list[tuple[str, ...]]:
    probability = ("probability",) if answer.kept else ()
    rows: list[tuple[str, ...]] = [
        ("job", "pool", "node type", "needs", "cost/month", *probability)
    ]
    for job_index in np.argsort(-plan.cost_by_job, kind="stable").tolist():
        supply_index = int(plan.supply_of[job_index])
        if supply_index < 0:
            continue
        supply = answer.fleet.supplies[supply_index]
        rows.append(
            (
                answer.fleet.jobs[job_index],
                _pool(supply),
                answer.fleet.offers[supply.offer].name,
                _span(
                    answer.fleet.units[job_index, supply_index],
                    "executor" if supply.shared else "node",
                ),
                _by_month(answer, float(plan.cost_by_job[job_index])),
                *_probability(answer, answer.fleet.jobs[job_index]),
            )
        )
    return rows


def _kept_json(answer: Capacity, name: str) -> dict[str, object]:
    estimate = answer.kept.get(name)
    if estimate is None:
        return {}
    return {"kept_probability": _rounded(estimate.probability), "verdict": estimate.verdict}


def _probability(answer: Capacity, name: str) -> tuple[str, ...]:
    """Probability that a job meets its targets in its busiest hour: a column, if any is known."""
    if not answer.kept:
        return ()
    estimate = answer.kept.get(name)
    return ("" if estimate is None else f"{estimate.probability:.1%}",)


def _purchase_rows(answer: Capacity, plan: FleetPlan) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("node type", "nodes", "spot", "committed", "cost/month")]
    bill = plan.bill
    for offer_index, offer in enumerate(answer.fleet.offers):
        if bill.nodes[offer_index].any() or bill.committed[offer_index]:
            rows.append(
                (
                    offer.name,
                    _span(bill.nodes[offer_index], ""),
                    _span(bill.spot[offer_index], "") if bill.spot[offer_index].any() else "",
                    str(bill.committed[offer_index]) if bill.committed[offer_index] else "",
                    _money(answer, float(bill.cost_by_offer[offer_index])),
                )
            )
    return rows


def _hour_lines(answer: Capacity, plan: FleetPlan) -> list[str]:
    """The scaling schedule: nodes of each supply by hour, if their number changes."""
    if answer.fleet.num_periods == 1:
        return []
    rows = [("hour", [f"{hour:02d}" for hour in range(answer.fleet.num_periods)])]
    for supply_index, supply in enumerate(answer.fleet.supplies):
        if plan.nodes[supply_index].any():
            name = f"{_pool(supply)} {answer.fleet.offers[supply.offer].name}"
            rows.append((name, [str(count) for count in plan.nodes[supply_index]]))
    cell_width = max(len(text) for _, cells in rows for text in cells)
    name_width = max(len(name) for name, _ in rows)
    lines = []
    for hours in _hours_on_a_line(
        answer.fleet.num_periods, width() - name_width - _INDENT, cell_width + 1
    ):
        lines += [
            f"  {name:<{name_width}} " + "".join(f" {text:>{cell_width}}" for text in cells[hours])
            for name, cells in rows
        ]
    return ["nodes by hour", *(line.rstrip() for line in lines)]


def _hours_on_a_line(num_hours: int, room: int, cell_width: int) -> Iterator[slice]:
    """The same number of hours on each line, as many as fit."""
    max_hours = max(room // cell_width, 1)
    num_lines = -(-num_hours // max_hours)
    hours_per_line = -(-num_hours // num_lines)
    return (slice(first, first + hours_per_line) for first in range(0, num_hours, hours_per_line))


def _promise_rows(answer: Capacity) -> list[tuple[str, ...]]:
    return [
        (
            price.job,
            f"{price.promise} costs {_saving(answer, price)} more per month than {price.looser}",
        )
        for price in answer.target_prices
        if price.saves_per_day >= SAVING_SHOWN_PER_DAY.value
    ]


def _saving(answer: Capacity, price: TargetPrice) -> str:
    return f"{'' if price.is_all else 'at least '}{_by_month(answer, price.saves_per_day)}"


def _growth_rows(answer: Capacity) -> list[tuple[str, ...]]:
    if not answer.growth:
        return []
    rows: list[tuple[str, ...]] = [("month", "rates", "max nodes", "cost/month")]
    for point in answer.growth:
        if not point.plan.feasible:
            rows.append((point.month, f"{point.ratio:.2f}x", "no plan", _first_reason(point.plan)))
        else:
            max_nodes = int(point.plan.bill.nodes.sum(axis=0).max())
            cost = _by_month(answer, point.plan.bill.cost_per_day)
            rows.append((point.month, f"{point.ratio:.2f}x", str(max_nodes), cost))
    return rows


def _infeasible_lines(answer: Capacity, plan: Infeasible) -> list[str]:
    lines = [f"{answer.name}: infeasible"]
    for name in plan.impossible:
        why = answer.why_impossible[name]
        lines += paragraph(f"{name} cannot run anywhere: {why}", lead="  ")
    if plan.unserved and not plan.impossible:
        which = "the fewest jobs" if plan.fewest_unserved else "jobs"
        lines += paragraph(f"{which} to leave out: {', '.join(plan.unserved)}", lead="  ")
    if plan.impossible:
        lines.append("alternatives:")
    elif plan.relaxations:
        lines.append("smallest changes of a limit, each sufficient by itself:")
    if plan.relaxations:
        for relaxation in plan.relaxations:
            lines += paragraph(relaxation.text, lead="  ")
    return lines


def _first_reason(plan: Infeasible) -> str:
    if plan.relaxations:
        return plan.relaxations[0].text
    return f"without {', '.join(plan.unserved)}" if plan.unserved else ""


def _pool(supply: Supply) -> str:
    return supply.pool if supply.zone == "-" else f"{supply.pool}/{supply.zone}"


def _span(counts: Sequence[int] | np.ndarray, unit: str) -> str:
    low, high = int(min(counts)), int(max(counts))
    span = str(high) if low == high else f"{low} to {high}"
    if not unit:
        return span
    return f"{span} {unit if high == 1 else unit + 's'}"


def _money(answer: Capacity, amount: float) -> str:
    return f"{amount:,.2f} {answer.currency}"


def _by_month(answer: Capacity, cost_per_day: float) -> str:
    return _money(answer, cost_per_day * DAYS_PER_MONTH)


def _rounded(number: float) -> float:
    return float(f"{number:.6g}")


def _titled(title: str, rows: list[tuple[str, ...]]) -> list[str]:
    return [title, *aligned(rows)] if len(rows) > (1 if title in _WITH_HEADING else 0) else []


_WITH_HEADING = ("jobs", "nodes to buy", "growth")
