"""What the page of a streaming query's plan shows beside its text: charts, and other settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from headway.digits import format_rate_down
from headway.domain import Prediction, StreamAnswer
from headway.domain.sheet import Section, Sheet
from headway.report.charts import dot_charts, frontier_charts, latency_charts
from headway.report.comparison import Comparison, comparison_sections
from headway.report.explanation import rule_section, sensitivity_section
from headway.report.stream import answer_sheet, frontier_sections, reason_sections, setting_sections
from headway.report.wording import (
    METRIC_NAMES,
    brief_setting_text,
    executors_text,
    interval_text,
    latencies,
    percent,
    trigger_text,
)
from headway.units import counted, format_duration


def stream_page_sheet(
    plan: StreamAnswer, comparisons: Sequence[Comparison] = (), evidence: Sequence[Section] = ()
) -> Sheet:
    """A plan with its charts, compared with measured runs, and with what only its profile shows."""
    frontier, legend = frontier_sections(plan, on_page=True)
    return replace(
        answer_sheet(plan),
        key_figures=tuple(_key_figures(plan)),
        sections=(
            *reason_sections(plan),
            replace(frontier, charts=frontier_charts(plan)),
            legend,
            *evidence,
            p99_section(plan.prediction),
            Section(title="predicted and measured", charts=dot_charts(comparisons)),
            *comparison_sections(comparisons),
            sensitivity_section(plan),
            _rules(plan),
            *setting_sections(plan),
        ),
    )


def _rules(plan: StreamAnswer) -> Section:
    """The rules of thumb with their settings, for which text has no room."""
    section = rule_section(plan)
    rules = zip(section.rows, plan.rules if plan.feasible else (), strict=True)
    rows = tuple((*row, brief_setting_text(rule.configuration)) for row, rule in rules)
    return replace(section, head=(*section.head, "setting"), rows=rows)


def p99_section(prediction: Prediction) -> Section:
    """The phases of the p99 as a bar; empty if no latency is quoted."""
    title = "where the p99 of the tuple latency goes"
    return Section(title=title, charts=latency_charts(prediction))


def _key_figures(plan: StreamAnswer) -> Iterator[tuple[str, str, str]]:
    """Label, figure and remark."""
    configuration, prediction = plan.configuration, plan.prediction
    executors = executors_text(configuration.executors, configuration.cores_per_executor)
    yield "nodes" if plan.feasible else "nodes of the nearest plan", f"{plan.nodes:,}", executors
    if plan.feasible:
        limit = format_duration(plan.target.limit_s)
        remark = f"limit {limit}, including the safety margin"
        yield f"planned {plan.target.statistic}", format_duration(plan.planned_latency_s), remark
    distribution = latencies(prediction).get(METRIC_NAMES[plan.target.metric])
    if distribution is not None:
        values_s, intervals = distribution.statistics_s, distribution.intervals90_s
        for name in dict.fromkeys((plan.target.statistic, "mean")):
            if name in values_s:
                interval = intervals.get(name)
                remark = "" if interval is None else f"90% interval {interval_text(interval)}"
                yield f"predicted {name}", format_duration(values_s[name]), remark
        stable_up_to = f"stable up to {format_rate_down(prediction.sustainable_rate_per_s)}"
        yield "utilisation", percent(prediction.utilization_ratio), stable_up_to
    max_rows = configuration.max_offsets_per_trigger
    remark = (
        "no rate limit" if max_rows is None else f"at most {counted(max_rows, 'row')} per batch"
    )
    yield "trigger", trigger_text(configuration.trigger_s), remark
