"""The frontier of a plan, the position of its own setting, and what each target needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headway.assumptions.planning import SAME_FIGURE_RATIO
from headway.digits import format_max_rate, format_money
from headway.domain import FrontierPoint, PromiseNeed, StreamAnswer
from headway.domain.node_type import currency_of
from headway.units import counted, format_duration

NO_RATE = "no rate"
"""The max rate of what meets no target at any rate."""


def rate_text(point: FrontierPoint) -> str:
    """A maximum rate for people."""
    rate_per_s = point.sustainable_rate_per_s
    return format_max_rate(rate_per_s) if rate_per_s > 0 else NO_RATE


def frontier_rows(plan: StreamAnswer) -> Iterator[tuple[FrontierPoint, bool]]:
    """Settings, and whether each is the plan's own: one for each number of nodes, the best there.

    Before that of the plan's nodes comes the plan's own, unless it is the best itself.
    """
    planned_point = plan.chosen if plan.feasible else None
    for point in plan.frontier:
        if planned_point is not None and point.nodes == planned_point.nodes:
            yield planned_point, True
            if _is_own(plan, point):
                continue
        yield point, False


def max_rate_text(plan: StreamAnswer) -> str:
    """The max rate within target: of the plan's own setting, or else of any that was searched.

    Another setting with the same nodes and a higher rate is mentioned.
    """
    if not plan.feasible:
        best = max(plan.frontier, key=lambda point: point.sustainable_rate_per_s, default=None)
        if best is None or best.sustainable_rate_per_s <= 0:
            return NO_RATE
        return f"{rate_text(best)} with {counted(best.nodes, 'node')}"
    if plan.chosen is None:
        return "unknown"
    text = f"{rate_text(plan.chosen)} in this configuration"
    better_point = another_carries_more(plan)
    if better_point is None:
        return text
    nodes = counted(better_point.nodes, "node")
    return f"{text}; {rate_text(better_point)} in another with {nodes}"


def another_carries_more(plan: StreamAnswer) -> FrontierPoint | None:
    """The best setting for the plan's nodes, if it is another one with a higher rate."""
    planned_point = plan.chosen
    if planned_point is None or not plan.feasible:
        return None
    point = plan.most_on_nodes
    if point is None:
        # Only plans from files lack it: the frontier takes longer than the plan.
        of_nodes = (point for point in plan.frontier if point.nodes == planned_point.nodes)
        point = next(of_nodes, None)
    return None if point is None or _is_own(plan, point) else point


def _is_own(plan: StreamAnswer, point: FrontierPoint) -> bool:
    """Whether a point adds nothing to the plan's own."""
    planned_point = plan.chosen
    assert planned_point is not None
    setting, rate_per_s = planned_point.configuration, planned_point.sustainable_rate_per_s
    unlimited = None if setting is None else replace(setting, max_offsets_per_trigger=None)
    is_same = unlimited is not None and unlimited == point.configuration
    return is_same or point.sustainable_rate_per_s <= rate_per_s * SAME_FIGURE_RATIO.value


def needs_rows(plan: StreamAnswer) -> list[tuple[str, ...]]:
    """Each target, what it needs alone and the value reached there; then all together.

    Nothing if there is only one target, which the headline and the nearest targets cover.
    """
    needs = () if plan.feasible else plan.needs
    if len(needs) < 2 and plan.budget_per_hour is None:
        return []
    max_nodes = plan.frontier[-1].nodes if plan.frontier else plan.nodes
    most_nodes = _of_type(max_nodes, None if plan.node_type is None else plan.node_type.name)
    currency = currency_of(plan.node_type)
    rows: list[tuple[str, ...]] = [
        (need.promise, "alone", _need_text(need, currency)) for need in needs
    ]
    if len(rows) > 1:
        rows.append(("all targets", "together", f"not with up to {most_nodes}"))
    if plan.budget_per_hour is not None:
        budget = f"budget of {format_money(plan.budget_per_hour, currency=currency)} per hour"
        rows.append((budget, "buys", most_nodes))
    return rows


def _need_text(need: PromiseNeed, currency: str) -> str:
    if need.nodes is None:
        max_nodes = counted(need.most_nodes, "node")
        tried = "" if need.proved else "the numbers tried, "
        return f"not with {tried}up to {max_nodes}"
    text = _of_type(need.nodes, need.node_type)
    if need.cost_per_hour is not None:
        text += f", {format_money(need.cost_per_hour, currency=currency)} per hour"
    if need.reached_s is not None:
        text += f", up to {format_duration(need.reached_s)}"
    return text if need.within else f"{text}, more than allowed"


def _of_type(nodes: int, name: str | None) -> str:
    return counted(nodes, "node") + ("" if name is None else f" of {name}")
