"""A plan as one HTML page that needs nothing beside itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from headway.domain import (
    LatencyDistribution,
    Prediction,
    StreamAnswer,
)
from headway.formats.as_json import json_text, plan_json
from headway.report.charts import dot_charts, frontier_chart, phase_segments
from headway.report.comparison import ComparisonRow
from headway.report.frontier import frontier_rows, needs_rows
from headway.report.wording import (
    APPLIES,
    METRIC_NAMES,
    brief_setting_text,
    caution_text,
    cautions,
    facts,
    headline,
    interval_text,
    latencies,
    latency_rows,
    nearest_rows,
    notes,
    percent,
    rejection_rows,
    stability_text,
    trigger_words,
)
from headway.units import counted, format_duration, format_rate

if TYPE_CHECKING:
    from jinja2 import Environment


def plan_page(plan: StreamAnswer, comparisons: Sequence[ComparisonRow] = ()) -> str:
    """The page: answer, key figures, charts, tables, configuration, and the plan as JSON.

    It loads nothing, runs no script, and follows the reader's light or dark scheme.
    """
    # Imported when a page is made: the commands that make none start faster without.
    from markupsafe import Markup

    answer = headline(plan)
    # The target stays on one line where the headline has to wrap.
    target = str(plan.target)
    return (
        environment()
        .get_template("plan.html.jinja")
        .render(
            plan=plan,
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
            needs_rows=needs_rows(plan),
            nearest_rows=nearest_rows(plan, "{}"),
            rejection_rows=rejection_rows(plan),
            segments=phase_segments(plan.prediction.phases_s)
            if plan.prediction.is_quotable
            else (),
            dot_charts=dot_charts(comparisons),
            # A name with a closing tag must not end the script element that holds the JSON.
            plan_json=Markup(json_text(plan_json(plan)).replace("<", "\\u003c")),
        )
    )


def _key_figures(plan: StreamAnswer) -> list[tuple[str, str, str]]:
    """Label, figure and what to know about it."""
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
    stable_up_to = f"stable up to {format_rate(prediction.sustainable_rate_per_s)}"
    return ("utilisation", percent(prediction.utilization_ratio), stable_up_to)


def _predicted_figures(
    statistic: str, distribution: LatencyDistribution
) -> list[tuple[str, str, str]]:
    values_s, intervals = distribution.statistics_s, distribution.intervals90_s
    asked = [name for name in dict.fromkeys((statistic, "mean")) if name in values_s]
    return [
        (
            f"expected {name}",
            format_duration(values_s[name]),
            f"90% interval {interval_text(intervals[name])}" if name in intervals else "",
        )
        for name in asked
    ]


@cache
def environment() -> Environment:
    """The templates of all pages, with their filters."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("headway.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        applies=APPLIES.__getitem__,
        counted=counted,
        duration=format_duration,
        rate=format_rate,
        setting=brief_setting_text,
        place=_place,
    )
    return environment


def _place(place_percent: float) -> str:
    return f"{place_percent:.2f}%"
