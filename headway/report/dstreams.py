"""Predictions and plans of DStreams applications in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headway.digits import format_rate_down
from headway.domain.dstreams import DStreamsPlan, DStreamsPrediction, DStreamsSetting
from headway.domain.sheet import Kind, Section, Sheet, setting_lines
from headway.formats.as_json import other_plan_json, result_json
from headway.report.facts import nodes_fact, profiled_nodes
from headway.report.wording import (
    MOST_NOTES,
    changes_section,
    executors_text,
    nodes_meet,
    percent,
    settings_section,
    shown_parts,
)
from headway.units import counted, format_duration, format_rate
from headway.words import all_words, as_sentence
from headway.words.predictions import duration_against, with_limit

_FEW_ROWS = 6


def dstreams_prediction_sheet(prediction: DStreamsPrediction) -> Sheet:
    """Whether it is stable first, then its latency."""
    return Sheet(
        about="Headway prediction of a DStreams application",
        headline=as_sentence(_verdict(prediction)),
        verdict=prediction.stable,
        sections=(
            Section(lead="configuration", texts=(_setting(prediction.setting),), close=True),
            _latencies(prediction),
            Section(
                title="mean tuple latency by phase",
                rows=tuple(
                    (name, format_duration(phase_s), percent(share))
                    for name, phase_s, share in shown_parts(prediction.phases_s)
                ),
                right=(1, 2),
            ),
            Section(lead="note", texts=all_words(prediction.findings)),
        ),
    )


def dstreams_plan_sheet(plan: DStreamsPlan) -> Sheet:
    """The answer first and what to paste last."""
    planned, expected = map(format_duration, (plan.planned_s, plan.point.expected_s))
    missed = f"infeasible: no configuration meets {plan.target}"
    answer = nodes_meet(plan.nodes, plan.target) if plan.feasible else missed
    return Sheet(
        about="Headway plan of a DStreams application",
        headline=f"{answer} at {_rate(plan.rate_per_s)}",
        verdict=plan.feasible,
        facts=(
            ("setting", _setting(plan.setting)),
            (
                f"planned {plan.target.statistic}",
                f"{planned} with {plan.confidence:.0%} confidence, {expected} expected",
            ),
            *_max_rate_fact(plan),
            *nodes_fact(plan.nodes, plan.node_type, plan.cost, profiled_nodes(plan)),
        ),
        sections=(
            Section(texts=(_verdict(plan.expected),)),
            _latencies(plan.expected),
            Section(title="binding constraints", texts=plan.binding),
            Section(title="rejected node types", texts=plan.refused_node_types),
            Section(lead="note", texts=all_words(plan.findings)),
            replace(_by_nodes(plan), detail=plan.feasible),
            changes_section(plan),
            Section(title="Spark configuration", code=setting_lines(plan.spark_conf)),
        ),
    )


def _by_nodes(plan: DStreamsPlan) -> Section:
    planned_nodes = plan.nodes if plan.feasible else None
    return Section(
        title="latency by nodes",
        head=("nodes", "expected", "planned"),
        rows=tuple(
            (f"{point.nodes:,}", *map(format_duration, (point.expected_s, point.planned_s)))
            for point in plan.frontier
        ),
        right=(0, 1, 2),
        marks=tuple(">" if point.nodes == planned_nodes else "" for point in plan.frontier),
    )


def _brief_sheet(plan: DStreamsPlan) -> Sheet:
    """The plan on one screen."""
    all_notes, by_nodes = all_words(plan.findings), replace(_by_nodes(plan), text_rows=_FEW_ROWS)
    further = ["more notes"] if len(all_notes) > MOST_NOTES else []
    further += ["the latency by nodes", "all settings"] if plan.feasible else ["all settings"]
    return replace(
        dstreams_plan_sheet(plan),
        facts=tuple(_brief_facts(plan)),
        sections=(
            _latencies(plan.expected),
            settings_section(plan) if plan.feasible else by_nodes,
            Section(title="rejected node types", texts=plan.refused_node_types),
            Section(lead="note", texts=all_notes[:MOST_NOTES]),
            Section(texts=(f"--verbose shows {', '.join(further)}",), close=len(all_notes) > 0),
        ),
    )


def _brief_facts(plan: DStreamsPlan) -> Iterator[tuple[str, str]]:
    limit_s, statistic = plan.target.limit_s, plan.target.statistic
    if plan.feasible:
        planned, limit = with_limit(plan.planned_s, limit_s)
        yield f"planned {statistic}", f"up to {planned} of {limit}, including the safety margin"
    else:
        lowest = duration_against(plan.planned_s, limit_s)
        yield f"lowest possible {statistic}", f"up to {lowest}, with {_setting(plan.setting)}"
    yield from nodes_fact(plan.nodes, plan.node_type, plan.cost, profiled_nodes(plan))
    for reason in plan.binding[1:]:
        yield "binding constraint", reason
    if plan.feasible:
        yield from _max_rate_fact(plan)
    yield "stability", as_sentence(_verdict(plan.expected))


def _max_rate_fact(plan: DStreamsPlan) -> Iterator[tuple[str, str]]:
    rate_per_s = plan.max_rate_per_s
    if rate_per_s is not None:
        rate = format_rate(rate_per_s) if rate_per_s > 0 else "no rate in this configuration"
        yield "max rate within target", rate


def dstreams_header(plan: DStreamsPlan, version: str) -> list[str]:
    """The comment above the settings in a file."""
    missed = f"!!! INFEASIBLE: no configuration meets {plan.target}. !!!"
    interval = format_duration(plan.setting.batch_interval_s)
    return [
        *([] if plan.feasible else [missed]),
        f"Generated by headway {version}",
        f"target: {plan.target} at {_rate(plan.rate_per_s)}",
        f"nodes: {plan.nodes}",
        f"batch interval, set in the application's code: {interval}",
        *(f"warning: {text}" for text in all_words(plan.findings)),
    ]


def _verdict(prediction: DStreamsPrediction) -> str:
    max_rate_per_s = prediction.sustainable_rate_per_s
    up_to = "" if max_rate_per_s is None else f"; stable up to {format_rate_down(max_rate_per_s)}"
    busy = f"utilisation {prediction.utilization_ratio:.0%}"
    state = "stable" if prediction.stable else "not stable: the backlog grows"
    return f"{state} at {_rate(prediction.rate_per_s)}: {busy}{up_to}"


def _setting(setting: DStreamsSetting) -> str:
    text = executors_text(setting.executors, setting.cores_per_executor, setting.task_cpus)
    text += f", batch interval {format_duration(setting.batch_interval_s)}"
    if setting.concurrent_jobs > 1:
        text += f", {setting.concurrent_jobs} jobs at a time"
    if setting.num_receivers:
        text += f", {counted(setting.num_receivers, 'receiver')}"
    return text


def _latencies(prediction: DStreamsPrediction) -> Section:
    named = (
        ("tuple latency", prediction.tuple_latency),
        ("scheduling delay", prediction.scheduling_delay),
        ("processing time", prediction.processing_time),
    )
    rows = tuple(
        (name, *map(format_duration, distribution.statistics_s.values()))
        for name, distribution in named
        if distribution is not None
    )
    return Section(head=("", "mean", "p50", "p95", "p99"), rows=rows, right=(1, 2, 3, 4))


def _rate(rate_per_s: float | None) -> str:
    return "the profiled rate" if rate_per_s is None else format_rate(rate_per_s)


KINDS = {
    "dstreams-prediction": Kind(sheet=dstreams_prediction_sheet, data=result_json),
    "dstreams-plan": Kind(
        sheet=dstreams_plan_sheet, brief=_brief_sheet, data=other_plan_json, main="frontier"
    ),
}
