"""How predictions and plans of streaming queries are shown; in terminals on one screen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from headway.domain import (
    Advice,
    Finding,
    FindingCode,
    InfeasiblePlan,
    JobProfile,
    Metric,
    Plan,
    Prediction,
    StreamAnswer,
)
from headway.domain.sheet import Kind, Section, Sheet
from headway.domain.target import targets_text
from headway.errors import InputError
from headway.formats.as_json import prediction_json, stream_json
from headway.formats.codec import data_of
from headway.lazy_names import loads_when_called
from headway.report.advice import narrowing_text
from headway.report.facts import after_start_fact, purchase_fact
from headway.report.frontier import NO_RATE, frontier_rows, max_rate_text
from headway.report.stream import (
    answer_sheet,
    longer_triggers_section,
    nearest_section,
    needs_section,
    prediction_sheet,
    rates_section,
    relaxation_fact,
    skew_sections,
)
from headway.report.wording import (
    METRIC_NAMES,
    MOST_NOTES,
    caution_texts,
    cautions,
    changed_section,
    headline,
    interval_text,
    latencies,
    notes,
    promise_text,
    settings_section,
    stability_text,
)
from headway.units import counted, format_duration
from headway.words import words_of
from headway.words.plans import with_checkpoint_text

_MOST_REASONS_OF_OBSTACLES, MOST_NOTES_OF_OBSTACLES = 4, 2


def _brief_sheet(plan: StreamAnswer) -> Sheet:
    """The plan within 25 lines; of an infeasible one why no setting meets the targets."""
    return _plan_sheet(plan) if plan.feasible else _obstacles_sheet(plan)


def _plan_sheet(plan: Plan) -> Sheet:
    shown_first = {finding.code: words_of(finding) for finding in _shown_first(plan)}
    all_notes = tuple(note for note in notes(plan) if note not in shown_first.values())
    # The table takes their room, and so does what goes before them.
    has_room = not plan.rates and FindingCode.CHECKPOINT_WOULD_DO not in shown_first
    num_notes = min(MOST_NOTES, len(all_notes)) if has_room else 0
    return Sheet(
        about="Headway plan",
        headline=headline(plan),
        verdict=True,
        cautions=(
            *(caution for caution in cautions(plan) if caution not in shown_first.values()),
            *caution_texts(plan.prediction),
        ),
        facts=tuple(_facts(plan)),
        sections=(
            replace(rates_section(plan), title="") if plan.rates else _latencies(plan),
            longer_triggers_section(plan),
            *map(_briefly, skew_sections(plan)),
            changed_section(plan) if plan.rates and plan.changes else settings_section(plan),
            Section(title="rejected node types", texts=plan.refused_node_types),
            Section(lead="note", texts=all_notes[:num_notes]),
            Section(
                texts=(_further(plan, len(all_notes) - num_notes),),
                close=num_notes > 0 or bool(plan.rates),
            ),
        ),
    )


def _obstacles_sheet(plan: InfeasiblePlan) -> Sheet:
    """Why no setting meets the targets, and the cheapest ways out, each said once."""
    answer, reasons = answer_sheet(plan), plan.binding
    if plan.target.limit_s < plan.floor_s < math.inf and len(reasons) > 1:
        # The first one is the lowest possible value, which is a fact.
        reasons = reasons[1:]
    return replace(
        answer,
        facts=tuple((label, text) for label, text in answer.facts if text != NO_RATE),
        sections=(
            nearest_section(plan),
            needs_section(plan),
            Section(title="binding constraints", texts=reasons[:_MOST_REASONS_OF_OBSTACLES]),
            *map(_briefly, skew_sections(plan)),
            Section(
                title="other improvements",
                texts=tuple(advice.text for advice in (_first_advice(plan),) if advice is not None),
            ),
            Section(lead="note", texts=notes(plan)[:MOST_NOTES_OF_OBSTACLES]),
            Section(texts=("--verbose shows the nearest plan in full, and the frontier",)),
        ),
    )


def _briefly(skew: Section) -> Section:
    """Skew without its table, if this compares nothing."""
    return replace(skew, head=(), rows=(), right=()) if len(skew.rows) == 1 else skew


def _shown_first(plan: Plan) -> Iterator[Finding]:
    """What was not asked, and what the checkpoint would do: facts, or the table of rates."""
    for finding in plan.findings:
        is_rate = finding.code is FindingCode.RATE_OF_PROFILE and plan.rates
        if is_rate or finding.code in (
            FindingCode.TARGET_OF_PROFILE,
            FindingCode.CHECKPOINT_WOULD_DO,
        ):
            yield finding


def _facts(plan: Plan) -> Iterator[tuple[str, str]]:
    shown_first = {finding.code: finding for finding in _shown_first(plan)}
    if today := shown_first.get(FindingCode.TARGET_OF_PROFILE):
        yield "profiled setting", _today_text(plan, today)
    yield f"planned {plan.target.statistic}", promise_text(plan)
    if checkpoint := shown_first.get(FindingCode.CHECKPOINT_WOULD_DO):
        yield "checkpoint", _with_checkpoint_text(checkpoint)
    yield from purchase_fact(plan)
    if plan.also:
        yield "also met", targets_text(plan.also)
    yield "binding constraint", plan.binding[-1]
    if not plan.rates:
        yield "max rate", max_rate_text(plan)
    yield from relaxation_fact(plan)
    if not plan.rates:
        yield "stability", stability_text(plan.prediction)
    yield from after_start_fact(plan)
    run = plan.prediction.next_run
    if run is not None and run.narrowing is not None:
        yield "next run", narrowing_text(run, plan.configuration, with_interval_now=False)


def _with_checkpoint_text(finding: Finding) -> str:
    """What the existing checkpoint would do, in one line."""
    partitions = counted(round(finding.numbers["partitions"]), "shuffle partition")
    existing = f"the existing one, with {partitions}, also meets the target"
    return f"{existing}: {with_checkpoint_text(finding)} (--checkpoint existing)"


def _today_text(plan: Plan, finding: Finding) -> str:
    """What the profiled setting does today, of which the plan is to do the same."""
    limit = f"up to {format_duration(plan.target.limit_s)} with the safety margin"
    predicted_s = finding.numbers.get("predicted_s")
    if predicted_s is not None:
        limit = f"{format_duration(predicted_s)} predicted, {limit}"
    return f"p99 {limit}, which is the target"


def _latencies(plan: Plan) -> Section:
    """The predicted latencies, with the interval of the highest quantile."""
    rows = []
    for name, distribution in latencies(plan.prediction).items():
        if name == METRIC_NAMES[Metric.BATCH] and plan.target.metric is not Metric.BATCH:
            continue
        interval = distribution.intervals90_s.get("p99")
        figures = map(format_duration, distribution.statistics_s.values())
        rows.append((name, *figures, "" if interval is None else interval_text(interval)))
    head = ("predicted", "mean", "p50", "p95", "p99", "90% interval of p99")
    return Section(head=head, rows=tuple(rows), right=(1, 2, 3, 4))


def _further(plan: Plan, num_notes_left: int) -> str:
    """What is printed with ``--verbose`` only."""
    notes_left = f"{counted(num_notes_left, 'more note')}, " if num_notes_left > 0 else ""
    improvements = "" if _first_advice(plan) is None else "other improvements, "
    return f"--verbose shows {notes_left}{improvements}the frontier, and the source of every number"


def _first_advice(plan: StreamAnswer) -> Advice | None:
    """The first advice of a plan; one from a file has all of it only."""
    return plan.first_advice or next(iter(plan.advice), None)


def _frontier_data(plan: StreamAnswer) -> Iterator[Mapping[str, object]]:
    """The frontier as text and page show it: with the plan's own setting, which is marked."""
    for point, is_plan in frontier_rows(plan):
        yield {**data_of(point), "is_plan": is_plan}


def _what_if_data(plan: StreamAnswer, profile: JobProfile | None) -> Iterator[Mapping[str, object]]:
    """Its job with other numbers of nodes, triggers and rates."""
    from headway.planner.tasks import with_source_partitions
    from headway.report.what_if import WhatIf, grid_of, grid_rows

    if profile is None:
        raise InputError("profile: missing; what_if predicts the job again, by its profile or log")
    question = WhatIf.of(plan)
    job = with_source_partitions(profile, plan.source_partitions)
    return grid_rows(question, grid_of(job, question, lambda *_: None))


def _statistics(prediction: Prediction) -> Iterator[Mapping[str, object]]:
    """The latencies, a row for each statistic; not a number where none may be quoted."""
    quoted = latencies(prediction)
    columns = dict.fromkeys((METRIC_NAMES[Metric.TUPLE], *quoted, METRIC_NAMES[Metric.BATCH]))
    for statistic in ("mean", "p50", "p95", "p99"):
        yield {
            "statistic": statistic,
            **{
                f"{name.replace(' ', '_')}_s": quoted[name].statistics_s[statistic]
                if name in quoted
                else math.nan
                for name in columns
            },
        }


# Commands that make no page start faster without charts.
KINDS = {
    "plan": Kind(
        headline=headline,
        sheet=loads_when_called("headway.report.stream_page.stream_page_sheet"),
        brief=_brief_sheet,
        data=stream_json,
        main=_frontier_data,
        tables={"frontier": lambda plan, _: _frontier_data(plan), "what_if": _what_if_data},
        charts=loads_when_called("headway.report.charts.frontier_charts"),
        is_read_back=True,
    ),
    "prediction": Kind(
        headline=stability_text,
        sheet=prediction_sheet,
        data=prediction_json,
        main=_statistics,
        charts=loads_when_called("headway.report.charts.latency_charts"),
        is_read_back=True,
    ),
}
