"""What comes nearest to a target that no configuration meets, in words."""

from __future__ import annotations

import math

from headway.domain import FindingCode, InfeasiblePlan, StreamAnswer
from headway.units import counted, format_rate
from headway.words.predictions import duration_against


def infeasible_facts(plan: InfeasiblePlan) -> tuple[tuple[str, str], ...]:
    """The lowest possible value of the target and the nearest plan, as label and text.

    While batches grow, there is no lowest value that lasts.
    """
    if any(finding.code is FindingCode.BATCHES_GROW for finding in plan.findings):
        nearest = f"{nearest_text(plan)}, with batches as long as the mean of the profile"
        return (("without growth", nearest),)
    return (
        (f"lowest possible {plan.target.statistic}", lowest_text(plan)),
        ("nearest plan", nearest_text(plan)),
    )


def lowest_text(plan: InfeasiblePlan) -> str:
    """The lowest value that any configuration reaches at the rate, or why there is none.

    It is one of the planned confidence: with less of it, lower values are reached.
    """
    rate = format_rate(plan.arrivals.rate_per_s)
    if math.isfinite(plan.floor_s):
        return f"{duration_against(plan.floor_s, plan.target.limit_s)} at {rate}"
    if plan.prediction.is_quotable:
        return f"none at {rate}: the upper end of batch durations is too close to saturation"
    if plan.prediction.is_stability_open:
        return (
            f"none: no configuration is known to keep up at {rate}, since the profile has batches "
            "of one size, which do not show what a row costs"
        )
    return f"none: every configuration is over capacity at {rate}, or too close to saturation"


def nearest_text(plan: InfeasiblePlan) -> str:
    """Nodes of the nearest plan, and what it reaches."""
    nodes = counted(plan.nodes, "node")
    if plan.prediction.is_stability_open:
        return f"{nodes}, not known to keep up"
    if not (plan.prediction.stable or plan.prediction.is_close_to_saturation):
        return f"{nodes}, over capacity"
    if math.isinf(plan.planned_latency_s):
        end = " at the upper end" if plan.prediction.is_quotable else ""
        return f"{nodes}, too close to saturation{end}"
    planned = duration_against(plan.planned_latency_s, plan.target.limit_s)
    return f"{nodes}, {plan.target.statistic} up to {planned}"


def nearest_rows(plan: StreamAnswer, label: str) -> list[tuple[str, str]]:
    """The nearest feasible targets, with the part that is relaxed; none for feasible plans."""
    nearest = () if plan.feasible else plan.nearest
    return [(label.format(target.gives_way), target.text) for target in nearest]
