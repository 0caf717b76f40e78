"""Plans of jobs that end as text."""

from __future__ import annotations

import math

from headway.assumptions.planning import SAME_FIGURE_RATIO
from headway.digits import format_money
from headway.domain import BatchAnswer, DeadlinePoint, Verdict
from headway.report.columns import aligned, pairs, paragraph
from headway.report.wording import APPLIES, likely_text, per_task_text
from headway.units import counted, format_duration
from headway.words import all_words, certainty_text

_MOST_ROWS = 16


def deadline_text(plan: BatchAnswer) -> str:
    """A plan as lines of at most 100 columns."""
    expected, planned = format_duration(plan.run.mean_s), format_duration(plan.run.planned_s)
    sure = f"with {plan.confidence:.0%} confidence"
    facts = [
        ("configuration", configuration_text(plan)),
        *backlog_facts(plan),
        (
            "run time",
            f"{expected} expected, up to {planned} {sure}{likely_text(plan.kept_probability)}",
        ),
        ("physical floor", format_duration(plan.floor_s)),
    ]
    if plan.node_type is not None:
        facts.append(("node type", plan.node_type.name))
    if plan.run.cost_per_run is not None:
        facts.append(
            ("cost per run", format_money(plan.run.cost_per_run, currency=_currency(plan)))
        )
    blocks = [
        [*paragraph(deadline_headline(plan)), *aligned(facts)],
        [
            "binding constraints",
            *(line for text in plan.binding for line in paragraph(text, lead="  ")),
        ],
        advice_lines(plan),
        [line for text in all_words(plan.findings) for line in paragraph(text, lead="note: ")],
        ["run time by nodes", *run_time_lines(plan)],
        ["changes against the profiled run", *aligned(_change_rows(plan))] if plan.changes else [],
        ["Spark configuration", *pairs(plan.spark_conf)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def advice_lines(plan: BatchAnswer) -> list[str]:
    """What would decide a verdict that is too close to tell."""
    lines = [line for advice in plan.advice for line in paragraph(advice.text, lead="  ")]
    return ["other improvements", *lines] if lines else []


def _currency(plan: BatchAnswer) -> str:
    return "" if plan.node_type is None else plan.node_type.currency


def deadline_headline(plan: BatchAnswer) -> str:
    """The answer in one sentence."""
    if not plan.feasible:
        if plan.verdict is Verdict.TOO_CLOSE and plan.kept_probability is not None:
            certainty = certainty_text(plan.kept_probability, plan.confidence)
            return f"infeasible: {plan.deadline} is {certainty}"
        return f"infeasible: no configuration meets {plan.deadline}"
    verb = "meets" if plan.nodes == 1 else "meet"
    return f"{counted(plan.nodes, 'node')} {verb} {plan.deadline}"


def configuration_text(plan: BatchAnswer) -> str:
    """The executors of a plan, and the cores per task."""
    executors = counted(plan.executors, "executor")
    cores = counted(plan.cores_per_executor, "core")
    return f"{executors} x {cores}{per_task_text(plan.task_cpus)}"


def backlog_facts(plan: BatchAnswer) -> list[tuple[str, str]]:
    """What a run of a streaming query reads; nothing for a batch job."""
    backlog = plan.backlog
    if backlog is None:
        return []
    batches = f"in {counted(backlog.num_batches, 'batch', 'batches')} of"
    size = f"{'up to ' if backlog.num_batches > 1 else ''}{backlog.batch_rows:,.0f} rows"
    return [
        ("backlog", f"{backlog.backlog_rows:,.0f} rows, {batches} {size}, as the profiled ones")
    ]


def run_time_lines(plan: BatchAnswer) -> list[str]:
    """Run time and cost by the number of nodes."""
    return [*aligned(_rows(plan), right=(1, 2, 3, 4)), *_legend(plan)]


def _change_rows(plan: BatchAnswer) -> list[tuple[str, ...]]:
    return [
        (change.setting, f"{change.before} -> {change.after}", APPLIES[change.applies])
        for change in plan.changes
    ]


def all_points(plan: BatchAnswer) -> tuple[DeadlinePoint, ...]:
    """The numbers of nodes that were tried for the table, and the plan's own among them."""
    points = {point.nodes: point for point in plan.frontier}
    return tuple(sorted({**points, plan.nodes: plan.run}.values(), key=lambda point: point.nodes))


def _worse_than_fewer(plan: BatchAnswer) -> set[int]:
    """Numbers of nodes with a longer planned run time than fewer nodes."""
    worse, least_s = set(), math.inf
    for point in all_points(plan):
        if point.planned_s > least_s * SAME_FIGURE_RATIO.value:
            worse.add(point.nodes)
        least_s = min(least_s, point.planned_s)
    return worse


def _legend(plan: BatchAnswer) -> list[str]:
    return (
        ["* a longer planned run time than with fewer nodes: see the notes"]
        if _worse_than_fewer(plan)
        else []
    )


def _rows(plan: BatchAnswer) -> list[tuple[str, ...]]:
    """The plan and points around it, and some of the others."""
    points = all_points(plan)
    step = -(-len(points) // _MOST_ROWS)
    shown_points = [
        point
        for index, point in enumerate(points)
        if index % step == 0 or point.nodes == plan.nodes
    ]
    head = ("", "nodes", "expected", "up to ", "cost")
    worse = _worse_than_fewer(plan)
    return [
        head,
        *(
            (
                ">" if plan.feasible and point.nodes == plan.nodes else "",
                f"{point.nodes:,}",
                format_duration(point.mean_s),
                format_duration(point.planned_s) + ("*" if point.nodes in worse else " "),
                "-" if point.cost_per_run is None else format_money(point.cost_per_run),
            )
            for point in shown_points
        ),
    ]
