"""Plans of jobs that end in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from headway.assumptions.planning import SAME_FIGURE_RATIO
from headway.digits import format_money, rounded_up
from headway.domain import BatchAnswer, Deadline, DeadlinePoint, FindingCode
from headway.domain.node_type import currency_of
from headway.domain.sheet import Kind, Section, Sheet, setting_lines
from headway.formats.as_json import deadline_json
from headway.formats.codec import data_of
from headway.report.wording import (
    MOST_NOTES,
    changes_section,
    executors_text,
    likely_text,
    nodes_meet,
    settings_section,
)
from headway.units import counted, duration_beside, format_duration, unit_of_duration
from headway.words import all_words, missed_text
from headway.words.predictions import duration_against, with_limit

_MOST_ROWS, _FEW_ROWS = 16, 3
#: They say why more nodes do not help, which matters if there are too few.
_ABOUT_OTHER_SIZES: tuple[FindingCode, ...] = (
    FindingCode.MORE_NODES_LESS_SURE,
    FindingCode.MODEL_RISES,
)


def deadline_sheet(plan: BatchAnswer) -> Sheet:
    """The answer first and what to paste last."""
    expected, planned = _times_beside(plan, plan.run)
    sure = f"with {plan.confidence:.0%} confidence{likely_text(plan.kept_probability)}"
    return Sheet(
        about=f"Headway plan of a {'batch job' if plan.backlog is None else 'backlog'}",
        headline=deadline_headline(plan),
        verdict=plan.feasible,
        facts=(
            ("configuration", configuration_text(plan)),
            *backlog_facts(plan),
            ("run time", f"{expected} expected, up to {planned} {sure}"),
            ("physical floor", duration_against(plan.floor_s, plan.deadline.limit_s)),
            *cost_facts(plan),
        ),
        sections=(
            Section(title="binding constraints", texts=plan.binding),
            replace(_improvements(plan), detail=plan.feasible),
            Section(title="rejected node types", texts=plan.refused_node_types),
            Section(lead="note", texts=all_words(plan.findings)),
            *run_time_sections(plan),
            changes_section(plan),
            Section(title="Spark configuration", code=setting_lines(plan.spark_conf)),
        ),
    )


def _improvements(plan: BatchAnswer) -> Section:
    return Section(title="other improvements", texts=tuple(advice.text for advice in plan.advice))


def _brief_sheet(plan: BatchAnswer) -> Sheet:
    """The plan on one screen; of an infeasible one why no number of nodes is enough."""
    return replace(
        deadline_sheet(plan),
        facts=tuple(_brief_facts(plan)),
        sections=_plan_sections(plan) if plan.feasible else _obstacle_sections(plan),
    )


def _brief_facts(plan: BatchAnswer) -> Iterator[tuple[str, str]]:
    if plan.feasible:
        if _has_deadline_of_profile(plan):
            yield "deadline", "the lowest that the profiled setting meets: no other was given"
        expected, planned, limit = run_time_texts(plan)
        sure = f"including the safety margin{likely_text(plan.kept_probability)}"
        yield "run time", f"{expected} expected, up to {planned} of {limit}, {sure}"
    else:
        nodes, nearest = counted(plan.nodes, "node"), Deadline(limit_s=rounded_up(plan.planned_s))
        expected, planned = _times_beside(plan, plan.run)
        yield "shortest run", f"{expected} expected, up to {planned}, with {nodes}"
        yield "nearest target", f"{nearest} with {nodes}, {configuration_text(plan)}"
    yield from backlog_facts(plan)
    yield from cost_facts(plan)
    if plan.feasible:
        yield "binding constraint", plan.binding[-1]


def _has_deadline_of_profile(plan: BatchAnswer) -> bool:
    return any(finding.code is FindingCode.TARGET_OF_PROFILE for finding in plan.findings)


def run_time_texts(plan: BatchAnswer) -> tuple[str, str, str]:
    """The expected and the planned run time, and the deadline, in one unit."""
    limit_s = plan.deadline.limit_s
    planned, limit = with_limit(plan.planned_s, limit_s)
    expected, (unit, unit_s) = format_duration(plan.expected_s), unit_of_duration(planned)
    num_units = plan.expected_s / unit_s
    if num_units >= 1.0 and not expected.endswith(f" {unit}"):
        expected = f"{num_units:.3g} {unit}"
    return expected, planned, limit


def _plan_sections(plan: BatchAnswer) -> tuple[Section, ...]:
    """What to set, and what of the run matters for the chosen number of nodes."""
    by_nodes: list[Section] = []
    left_out = _ABOUT_OTHER_SIZES
    if _has_deadline_of_profile(plan):
        table, *legends = run_time_sections(plan)
        # The deadline has a line of its own, and all of it must fit on one screen.
        by_nodes = [replace(table, text_rows=_FEW_ROWS - 1), *legends]
        left_out = (FindingCode.TARGET_OF_PROFILE,)
    findings = [finding for finding in plan.findings if finding.code not in left_out]
    further = "" if len(findings) <= MOST_NOTES else "more notes, "
    pointer = f"--verbose shows {further}the run time by nodes, and the source of every number"
    return (
        *(replace(section, detail=False) for section in by_nodes),
        settings_section(plan),
        Section(title="rejected node types", texts=plan.refused_node_types),
        Section(lead="note", texts=all_words(findings[:MOST_NOTES])),
        Section(texts=(pointer,), close=len(findings) > 0),
    )


def _obstacle_sections(plan: BatchAnswer) -> tuple[Section, ...]:
    """Why no number of nodes is enough; the first reason, the shortest run, is a fact."""
    table, *legends = run_time_sections(plan)
    legend = "; ".join(text for section in legends for text in section.texts)
    # What the table shows is explained first.
    first = (FindingCode.LOG_INCOMPLETE, *_ABOUT_OTHER_SIZES)
    findings = sorted(plan.findings, key=lambda finding: finding.code not in first)
    notes = all_words(findings[:MOST_NOTES])
    # Each rejected node type takes the line of a row, so that all of it fits one screen.
    num_rows = max(_FEW_ROWS - len(plan.refused_node_types), 1)
    return (
        Section(title="binding constraints", texts=plan.binding[1:]),
        _improvements(plan),
        Section(title="rejected node types", texts=plan.refused_node_types),
        replace(table, text_rows=num_rows),
        Section(texts=(legend,), close=True),
        Section(lead="note", texts=notes),
        Section(texts=("--verbose shows the nearest plan in full",), close=len(notes) > 0),
    )


def deadline_headline(plan: BatchAnswer) -> str:
    """The answer in one sentence."""
    if plan.feasible:
        part = " for the recorded part of the job" if is_partial(plan) else ""
        return f"{nodes_meet(plan.nodes, plan.deadline)}{part}"
    return f"infeasible: {missed_text(plan)}"


def is_partial(plan: BatchAnswer) -> bool:
    """Whether the log of the profiled run is incomplete."""
    return any(finding.code is FindingCode.LOG_INCOMPLETE for finding in plan.findings)


def configuration_text(plan: BatchAnswer) -> str:
    """The executors of a plan, and the cores per task."""
    return executors_text(plan.executors, plan.cores_per_executor, plan.task_cpus)


def cost_facts(plan: BatchAnswer) -> Iterator[tuple[str, str]]:
    """The nodes of a plan, if a type was given, and what they cost."""
    if plan.node_type is not None:
        cost = ""
        if plan.cost is not None:
            cost = f", {format_money(plan.cost, currency=plan.node_type.currency)} per run"
        yield "nodes", f"{counted(plan.nodes, 'node')} of {plan.node_type.name}{cost}"


def backlog_facts(plan: BatchAnswer) -> Iterator[tuple[str, str]]:
    """What a run of a streaming query reads; nothing for a batch job."""
    backlog = plan.backlog
    if backlog is not None:
        batches = f"in {counted(backlog.num_batches, 'batch', 'batches')} of"
        size = f"{'up to ' if backlog.num_batches > 1 else ''}{backlog.batch_rows:,.0f} rows"
        yield "backlog", f"{backlog.backlog_rows:,.0f} rows, {batches} {size}, as the profiled ones"


def run_time_sections(plan: BatchAnswer) -> tuple[Section, Section, Section]:
    """Run time and cost by the number of nodes, and what the marks of rows and of figures mean."""
    points, least_s, rows, has_worse = all_points(plan), math.inf, [], False
    limit_s = plan.deadline.limit_s
    has_cost = any(point.cost_per_run is not None for point in points)
    for point in points:
        is_worse = point.planned_s > least_s * SAME_FIGURE_RATIO.value
        has_worse = has_worse or is_worse
        least_s = min(least_s, point.planned_s)
        expected, planned = _times_beside(plan, point)
        rows.append(
            (
                f"{point.nodes:,}",
                expected,
                planned + ("*" if is_worse else " "),
                "met" if point.planned_s <= limit_s else "missed",
                *((_cost_per_run(plan, point),) if has_cost else ()),
            )
        )
    plan_mark = ">" if plan.feasible else "~"
    nearest: tuple[str, ...] = () if plan.feasible else ("~ the nearest plan",)
    worse = "* a longer planned run time than with fewer nodes: see the notes"
    table = Section(
        title="run time by nodes",
        head=("nodes", "expected", "up to ", "deadline", *(("cost/run",) if has_cost else ())),
        rows=tuple(rows),
        right=(0, 1, 2, *((4,) if has_cost else ())),
        marks=tuple(plan_mark if point.nodes == plan.nodes else "" for point in points),
        text_rows=_MOST_ROWS,
        detail=plan.feasible,
    )
    legend = Section(close=True, detail=plan.feasible)
    return (
        table,
        replace(legend, texts=nearest, only_in_text=True),
        replace(legend, texts=(worse,) if has_worse else ()),
    )


def _times_beside(plan: BatchAnswer, point: DeadlinePoint) -> tuple[str, str]:
    """The expected and the planned run time with so many nodes, as in the table of all of them."""
    limit_s = plan.deadline.limit_s
    return duration_beside(point.mean_s, limit_s), duration_against(point.planned_s, limit_s)


def _cost_per_run(plan: BatchAnswer, point: DeadlinePoint) -> str:
    if point.cost_per_run is None:
        return "-"
    return format_money(point.cost_per_run, currency=currency_of(plan.node_type))


def all_points(plan: BatchAnswer) -> tuple[DeadlinePoint, ...]:
    """The numbers of nodes that were tried for the table, and the plan's own among them."""
    points = {point.nodes: point for point in plan.frontier} | {plan.nodes: plan.run}
    return tuple(sorted(points.values(), key=lambda point: point.nodes))


def _points(plan: BatchAnswer) -> Iterator[dict[str, object]]:
    """The table of nodes as data, with the plan's own number, which is marked."""
    for point in all_points(plan):
        yield {**data_of(point), "is_plan": plan.feasible and point.nodes == plan.nodes}


KINDS = {
    "deadline-plan": Kind(
        sheet=deadline_sheet,
        brief=_brief_sheet,
        data=deadline_json,
        main=_points,
        is_read_back=True,
    )
}
