"""What each promise of a plan takes by itself, and which of them fails."""

from __future__ import annotations

from headway.domain import InfeasiblePlan, PromiseNeed, StreamAnswer
from headway.units import counted, format_duration


def failing_promises(plan: InfeasiblePlan) -> str:
    """The promises that no searched setting keeps: those that fail alone, or all together."""
    alone = [need.promise for need in plan.needs if not need.within]
    if alone:
        return " nor ".join(alone)
    every = " and ".join(map(str, plan.promises))
    return f"{every} together" if plan.also else every


def needs_rows(plan: StreamAnswer) -> list[tuple[str, ...]]:
    """Each promise, what it takes alone and what it gets there; then all together.

    Nothing where there is only one promise, which the headline and the nearest targets cover.
    """
    needs = () if plan.feasible else plan.needs
    if len(needs) < 2 and plan.budget_per_hour is None:
        return []
    rows: list[tuple[str, ...]] = [(need.promise, "alone", _need_text(need)) for need in needs]
    if len(rows) > 1:
        rows.append(("all targets", "together", f"not with {_most_text(plan)}"))
    if plan.budget_per_hour is not None:
        most = plan.frontier[-1].nodes if plan.frontier else plan.nodes
        budget = f"budget of {plan.budget_per_hour:.4g} per hour"
        rows.append((budget, "buys", _of_type(most, _type_name(plan))))
    return rows


def _need_text(need: PromiseNeed) -> str:
    if need.nodes is None:
        most = counted(need.most_nodes, "node")
        tried = "" if need.proved else "the numbers tried, "
        return f"not with {tried}up to {most}"
    text = _of_type(need.nodes, need.node_type)
    if need.cost_per_hour is not None:
        text += f", {need.cost_per_hour:.4g} per hour"
    if need.reached_s is not None:
        text += f", up to {format_duration(need.reached_s)}"
    return text if need.within else f"{text}, more than allowed"


def _most_text(plan: StreamAnswer) -> str:
    most = plan.frontier[-1].nodes if plan.frontier else plan.nodes
    return f"up to {_of_type(most, _type_name(plan))}"


def _of_type(nodes: int, name: str | None) -> str:
    return counted(nodes, "node") + ("" if name is None else f" of {name}")


def _type_name(plan: StreamAnswer) -> str | None:
    return None if plan.node_type is None else plan.node_type.name
