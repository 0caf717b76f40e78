"""Predictions and plans as plain text for terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.domain import InfeasiblePlan, Metric, Prediction, StreamAnswer
from headway.report.advice import next_run_lines
from headway.report.columns import aligned, bar, pairs, paragraph, width
from headway.report.frontier import another_carries_more, frontier_rows, needs_rows, rate_text
from headway.report.infeasible import nearest_rows
from headway.report.memory import memory_rows
from headway.report.wording import (
    APPLIES,
    METRIC_NAMES,
    brief_setting_text,
    caution_text,
    cautions,
    cost_text,
    facts,
    headline,
    latency_rows,
    notes,
    percent,
    prediction_notes,
    promise_text,
    rejection_rows,
    setting_text,
    stability_text,
)
from headway.units import format_duration, format_rate

if TYPE_CHECKING:
    from headway.domain import AnyAnswer

_BAR_WIDTH, _LEAST_BAR_WIDTH = 30, 8
_BESIDE_BAR = 20  # indent, gaps, duration and share
_MOST_REASONS, _MOST_NOTES = 4, 2


def prediction_text(prediction: Prediction) -> str:
    """A prediction as lines: stability, latencies, phases, warnings."""
    return _joined(
        _stability_lines(prediction),
        paragraph(setting_text(prediction.configuration), lead="configuration: "),
        [*_latency_lines(prediction), *next_run_lines(prediction)],
        _phase_lines(prediction) if prediction.is_quotable else [],
        _note_lines(prediction_notes(prediction)),
    )


def plan_text(plan: AnyAnswer, *, verbose: bool = False) -> str:
    """A plan of any job as lines, with the answer first.

    For an infeasible plan only the obstacles and the ways out, unless ``verbose``.
    """
    if not plan.ends and not plan.feasible and not verbose:
        return infeasible_text(plan)
    if plan.ends:
        from headway.report.deadline import deadline_text

        return deadline_text(plan)
    return stream_text(plan)


def infeasible_text(plan: InfeasiblePlan) -> str:
    """Why no setting meets the targets, and the cheapest ways out, within 25 lines."""
    return _joined(
        _answer_lines(plan),
        _titled("nearest feasible targets", aligned(nearest_rows(plan, "other {}"))),
        _titled("nodes for each target", aligned(needs_rows(plan))),
        _titled(
            "binding constraints",
            [line for text in plan.binding[:_MOST_REASONS] for line in paragraph(text, lead="  ")],
        ),
        _skew_lines(plan),
        _titled(
            "other improvements",
            [line for advice in plan.advice[:1] for line in paragraph(advice.text, lead="  ")],
        ),
        _note_lines(notes(plan)[:_MOST_NOTES]),
        ["--verbose shows the nearest plan in full, and the frontier"],
    )


def stream_text(plan: StreamAnswer) -> str:
    """A plan of a stream as lines, the answer first and what to paste last.

    Lines of the Spark configuration and the query options are never broken, however long, so that
    they can be copied.
    """
    return _joined(
        _answer_lines(plan),
        [
            *_stability_lines(plan.prediction),
            *(["", *_latency_lines(plan.prediction)] if plan.prediction.is_quotable else []),
            *next_run_lines(plan.prediction),
        ],
        _titled(
            "binding constraints",
            [line for text in plan.binding for line in paragraph(text, lead="  ")],
        ),
        _skew_lines(plan),
        _titled("nodes for each target", aligned(needs_rows(plan))),
        _titled(
            "nearest feasible targets",
            aligned(nearest_rows(plan, "other {}")),
        ),
        _titled(
            "other improvements",
            [line for advice in plan.advice for line in paragraph(advice.text, lead="  ")],
        ),
        _titled(
            "rejected node types",
            [line for text in plan.refused_node_types for line in paragraph(text, lead="  ")],
        ),
        _note_lines(notes(plan)),
        _titled(
            f"frontier: max rate within {_promised(plan)}, by number of nodes",
            _frontier_lines(plan),
        ),
        _titled("rejected neighbours", aligned(rejection_rows(plan))),
        _titled("changes against the profiled run", _change_lines(plan)),
        _titled(
            "executor memory",
            [] if plan.memory is None else aligned(memory_rows(plan.memory), right=(1,)),
        ),
        _titled("Spark configuration", pairs(plan.spark_conf)),
        _titled("query options, set in the query itself", pairs(plan.query_options)),
    )


def answer_text(plan: StreamAnswer) -> str:
    """Only the answer of a plan: whether it is feasible, the nodes, and the configuration."""
    return "\n".join(_answer_lines(plan))


def _answer_lines(plan: StreamAnswer) -> list[str]:
    return [
        *paragraph(headline(plan)),
        *_caution_lines(plan),
        *aligned([*_promise(plan), *facts(plan)]),
    ]


def _caution_lines(plan: StreamAnswer) -> list[str]:
    return [line for text in cautions(plan) for line in paragraph(text, lead="  ")]


def _promised(plan: StreamAnswer) -> str:
    return " and ".join(map(str, plan.promises))


def _promise(plan: StreamAnswer) -> list[tuple[str, str]]:
    relaxed = plan.optimality and plan.optimality.relaxed_nodes
    return [
        *([(f"planned {plan.target.statistic}", promise_text(plan))] if plan.feasible else []),
        *([("convex relaxation", f"{relaxed:.3g} nodes")] if relaxed is not None else []),
    ]


def _stability_lines(prediction: Prediction) -> list[str]:
    caution = caution_text(prediction)
    return [*paragraph(stability_text(prediction)), *([caution] if caution else [])]


def _latency_lines(prediction: Prediction) -> list[str]:
    return aligned(latency_rows(prediction), right=(1, 2, 3, 4), indent=0)


def _phase_lines(prediction: Prediction) -> list[str]:
    """The phases of the mean latency, then what the stages among them compute."""
    phases_s = prediction.phases_s
    total_s = sum(phases_s.values())
    if not total_s > 0:
        return []
    room = width() - _BESIDE_BAR - max(map(len, phases_s))
    columns = min(max(room, _LEAST_BAR_WIDTH), _BAR_WIDTH)
    rows = [
        (
            name,
            format_duration(value_s),
            percent(value_s / total_s),
            bar(value_s / total_s, width=columns),
        )
        for name, value_s in phases_s.items()
    ]
    works = [
        line
        for name, work in prediction.stage_work.items()
        for line in paragraph(work, lead=f"  {name}: ")
    ]
    title = f"mean {METRIC_NAMES[Metric.TUPLE]} by phase"
    return [*_titled(title, aligned(rows, right=(1, 2))), *works]


def _note_lines(warnings: tuple[str, ...]) -> list[str]:
    return [line for text in warnings for line in paragraph(text, lead="note: ")]


def _frontier_lines(plan: StreamAnswer) -> list[str]:
    if not plan.frontier:
        return []
    requested_rate_per_s = plan.arrivals.rate_per_s
    has_cost = any(point.cost_per_hour is not None for point in plan.frontier)
    cost: tuple[str, ...] = ("cost/h",) if has_cost else ()
    rows: list[tuple[str, ...]] = [
        (
            "",
            "nodes",
            "max rate ",
            f"at {format_rate(requested_rate_per_s)}",
            *cost,
            "configuration",
        )
    ]
    for row in frontier_rows(plan):
        point = row.point
        rate_per_s, setting = point.sustainable_rate_per_s, point.configuration
        rows.append(
            (
                ">" if row.is_plan else "",
                f"{point.nodes:,}",
                row.rate + (" " if point.calibrated or rate_per_s <= 0 else "*"),
                "met" if rate_per_s >= requested_rate_per_s else "missed",
                *((cost_text(point.cost_per_hour),) if has_cost else ()),
                "-" if setting is None else brief_setting_text(setting),
            )
        )
    lines = aligned(rows, right=(1, 2), indent=0)
    if any(row[0] == ">" for row in rows):
        better_point = another_carries_more(plan)
        other = (
            ""
            if better_point is None
            else f"; another with as many nodes sustains {rate_text(better_point)}"
        )
        lines += paragraph(f"> the planned configuration{other}")
    if any(row[2].endswith("*") for row in rows):
        lines.append(
            "* extrapolated: more than four times outside the profiled range"
            if plan.declared is None
            else "* from declared costs: nothing was measured"
        )
    return lines


def _skew_lines(plan: StreamAnswer) -> list[str]:
    if plan.skew is None:
        return []
    from headway.report.ordered import skew_lines

    return skew_lines(plan.skew)


def _change_lines(plan: StreamAnswer) -> list[str]:
    return aligned(
        [
            (change.setting, f"{change.before} -> {change.after}", APPLIES[change.applies])
            for change in plan.changes
        ]
    )


def _titled(title: str, lines: list[str]) -> list[str]:
    return [*paragraph(title), *lines] if lines else []


def _joined(*blocks: list[str]) -> str:
    """The non-empty blocks, with an empty line between them."""
    return "\n\n".join("\n".join(block) for block in blocks if block)
