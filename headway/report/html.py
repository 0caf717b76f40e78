"""A plan as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headway.digits import format_rate_down
from headway.domain import (
    LatencyDistribution,
    Prediction,
    StreamAnswer,
)
from headway.formats.as_json import json_text, plan_json
from headway.report.charts import dot_charts, frontier_chart, latency_segments
from headway.report.comparison import ComparisonRow
from headway.report.frontier import frontier_rows, needs_rows
from headway.report.infeasible import nearest_rows
from headway.report.page import Origin, embedded, page_text
from headway.report.wording import (
    METRIC_NAMES,
    caution_text,
    cautions,
    cost_per_month_text,
    facts,
    headline,
    interval_text,
    latencies,
    latency_rows,
    notes,
    percent,
    rejection_rows,
    stability_text,
    trigger_words,
)
from headway.units import counted, format_duration

if TYPE_CHECKING:
    from headway.report.evidence import Evidence


def plan_page(
    plan: StreamAnswer,
    comparisons: Sequence[ComparisonRow] = (),
    *,
    evidence: Evidence | None = None,
    origin: Origin | None = None,
) -> str:
    """The page: answer, key figures, charts, tables, configuration, and the plan as JSON.

    It loads nothing, and follows the reader's light or dark scheme. ``evidence`` are the parts that
    need the profile, ``origin`` is the source of the page.
    """
    answer = headline(plan)
    # The target stays on one line where the headline has to wrap.
    target = str(plan.target)
    return page_text(
        "plan.html.jinja",
        origin=origin or Origin.of(spark_version=plan.spark_version),
        kind="Headway plan",
        plan=plan,
        verdict=plan.feasible,
        title=answer,
        headline=answer[:1].upper() + answer[1:].replace(target, target.replace(" ", "\u00a0")),
        facts=facts(plan),
        cautions=cautions(plan),
        key_figures=_key_figures(plan),
        stability=stability_text(plan.prediction),
        caution=caution_text(plan.prediction),
        latency_rows=latency_rows(plan.prediction),
        notes=notes(plan),
        frontier=frontier_chart(plan),
        frontier_rows=frontier_rows(plan),
        has_costs=any(point.cost_per_hour is not None for point in plan.frontier),
        month=cost_per_month_text,
        spark_conf_text=_lines(plan.spark_conf),
        query_options_text=_lines(plan.query_options),
        needs_rows=needs_rows(plan),
        nearest_rows=nearest_rows(plan, "{}"),
        rejection_rows=rejection_rows(plan),
        segments=latency_segments(plan.prediction),
        dot_charts=dot_charts(comparisons),
        evidence=evidence,
        plan_json=embedded(json_text(plan_json(plan))),
    )


def _lines(settings: Mapping[str, str]) -> str:
    return "\n".join(f"{key} {value}" for key, value in settings.items())


def _key_figures(plan: StreamAnswer) -> list[tuple[str, str, str]]:
    """Label, figure and remark."""
    configuration, prediction = plan.configuration, plan.prediction
    executors = counted(configuration.executors, "executor")
    cores = counted(configuration.cores_per_executor, "core")
    figures = [
        (
            "nodes" if plan.feasible else "nodes of the nearest plan",
            f"{plan.nodes:,}",
            f"{executors} x {cores}",
        )
    ]
    if plan.feasible:
        figures.append(
            (
                f"planned {plan.target.statistic}",
                format_duration(plan.planned_latency_s),
                f"limit {format_duration(plan.target.limit_s)}, including the safety margin",
            )
        )
    distribution = latencies(prediction).get(METRIC_NAMES[plan.target.metric])
    if distribution is not None:
        figures += _predicted_figures(plan.target.statistic, distribution)
        figures.append(_load_figure(prediction))
    limit = configuration.max_offsets_per_trigger
    figures.append(
        (
            "trigger",
            trigger_words(configuration.trigger_s).removeprefix("every "),
            "no rate limit" if limit is None else f"at most {counted(limit, 'row')} per batch",
        )
    )
    return figures


def _load_figure(prediction: Prediction) -> tuple[str, str, str]:
    stable_up_to = f"stable up to {format_rate_down(prediction.sustainable_rate_per_s)}"
    return ("utilisation", percent(prediction.utilization_ratio), stable_up_to)


def _predicted_figures(
    statistic: str, distribution: LatencyDistribution
) -> list[tuple[str, str, str]]:
    values_s, intervals = distribution.statistics_s, distribution.intervals90_s
    statistics = [name for name in dict.fromkeys((statistic, "mean")) if name in values_s]
    return [
        (
            f"predicted {name}",
            format_duration(values_s[name]),
            f"90% interval {interval_text(intervals[name])}" if name in intervals else "",
        )
        for name in statistics
    ]
