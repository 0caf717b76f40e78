"""The frontier of a plan, and where on it the plan's own setting stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from headway.assumptions.planning import SAME_FIGURE_RATIO
from headway.domain import FrontierPoint, StreamAnswer
from headway.units import counted, format_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierRow:
    """A setting and its maximum rate within target; the plan's own, or the best of its nodes."""

    point: FrontierPoint
    is_plan: bool

    @property
    def rate(self) -> str:
        """The maximum rate for people."""
        return rate_text(self.point)


def rate_text(point: FrontierPoint) -> str:
    """A maximum rate for people."""
    rate_per_s = point.sustainable_rate_per_s
    return format_rate(rate_per_s) if rate_per_s > 0 else "no rate"


def frontier_rows(plan: StreamAnswer) -> tuple[FrontierRow, ...]:
    """One row for each number of nodes, and before the one of the plan's the plan's own.

    Where the plan's own setting is the best of its nodes, there is one row for both.
    """
    return tuple(_rows(plan))


def _rows(plan: StreamAnswer) -> Iterator[FrontierRow]:
    own = plan.chosen if plan.feasible else None
    for point in plan.frontier:
        if own is not None and point.nodes == own.nodes:
            yield FrontierRow(point=own, is_plan=True)
            if not _is_own(plan, point):
                yield FrontierRow(point=point, is_plan=False)
        else:
            yield FrontierRow(point=point, is_plan=False)


def max_rate_text(plan: StreamAnswer) -> str:
    """The maximum rate within target: of the plan's own setting, or else of any that was searched.

    Another setting of the same nodes that carries more is named.
    """
    if not plan.feasible:
        best = max(plan.frontier, key=lambda one: one.sustainable_rate_per_s, default=None)
        if best is None or best.sustainable_rate_per_s <= 0:
            return "no rate"
        return f"{rate_text(best)} with {counted(best.nodes, 'node')}"
    if plan.chosen is None:
        return "unknown"
    text = f"{rate_text(plan.chosen)} in this configuration"
    more = another_carries_more(plan)
    if more is None:
        return text
    nodes = counted(more.nodes, "node")
    return f"{text}; {rate_text(more)} in another with {nodes}, see the frontier"


def another_carries_more(plan: StreamAnswer) -> FrontierPoint | None:
    """The best setting of the plan's nodes, if it is another one and carries more."""
    own = plan.chosen
    if own is None or not plan.feasible:
        return None
    of_nodes = (point for point in plan.frontier if point.nodes == own.nodes)
    return next((point for point in of_nodes if not _is_own(plan, point)), None)


def _is_own(plan: StreamAnswer, point: FrontierPoint) -> bool:
    """Whether a point says nothing that the plan's own does not."""
    own = plan.chosen
    assert own is not None
    if point.configuration is None or own.configuration is None:
        return point.sustainable_rate_per_s <= own.sustainable_rate_per_s * SAME_FIGURE_RATIO.value
    same = replace(own.configuration, max_offsets_per_trigger=None) == point.configuration
    return (
        same or point.sustainable_rate_per_s <= own.sustainable_rate_per_s * SAME_FIGURE_RATIO.value
    )
