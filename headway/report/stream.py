"""Predictions and plans of streaming queries in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from headway.digits import format_money, size_text
from headway.domain import FrontierPoint, Metric, PlannedRate, Prediction, StreamAnswer
from headway.domain.finding import FindingCode
from headway.domain.sheet import Section, Sheet, setting_lines
from headway.domain.target import targets_text
from headway.domain.writes import PlannedWrites
from headway.report.advice import next_run_texts
from headway.report.driver import driver_section
from headway.report.facts import facts, memory_rows, nearest_rows, restart_text
from headway.report.frontier import another_carries_more, frontier_rows, needs_rows, rate_text
from headway.report.wording import (
    METRIC_NAMES,
    brief_setting_text,
    caution_texts,
    cautions,
    changes_section,
    cost_head,
    cost_text,
    headline,
    interval_text,
    latencies,
    notes,
    percent,
    prediction_notes,
    promise_text,
    rejection_rows,
    setting_text,
    shown_parts,
    stability_text,
    trigger_text,
)
from headway.units import HOURS_PER_MONTH, format_duration, format_rate

_STATISTICS = ("mean", "p50", "p95", "p99")


def prediction_sheet(prediction: Prediction) -> Sheet:
    """Stability first, then latencies, phases, warnings."""
    latency = latency_section(prediction)
    restart = (restart_text(prediction.restart).strip(),) if prediction.restart else ()
    return Sheet(
        about="Headway prediction",
        headline=stability_text(prediction),
        verdict=prediction.stable,
        sections=(
            Section(texts=caution_texts(prediction), close=True),
            Section(lead="configuration", texts=(_setting_of(prediction),)),
            latency,
            Section(texts=next_run_texts(prediction), close=not latency.is_empty),
            _phases(prediction) if prediction.is_quotable else Section(),
            Section(lead="note", texts=prediction_notes(prediction)),
            Section(texts=restart, detail=True),
        ),
    )


def _setting_of(prediction: Prediction) -> str:
    return setting_text(prediction.configuration, prediction.source_partitions)


def answer_sheet(plan: StreamAnswer) -> Sheet:
    """Only the answer of a plan: whether it is feasible, the nodes, and the configuration."""
    planned = f"planned {plan.target.statistic}"
    promise = ((planned, promise_text(plan)),) if plan.feasible else ()
    return Sheet(
        about="Headway plan",
        headline=headline(plan),
        verdict=plan.feasible,
        cautions=cautions(plan),
        facts=(*promise, *relaxation_fact(plan), *facts(plan)),
    )


def relaxation_fact(plan: StreamAnswer) -> Iterator[tuple[str, str]]:
    """The bound of the convex relaxation, if it was asked for."""
    relaxed = plan.optimality and plan.optimality.relaxed_nodes
    if relaxed is not None:
        yield "convex relaxation", f"{relaxed:.3g} nodes"


def stream_sheet(plan: StreamAnswer) -> Sheet:
    """A plan in full, the answer first and what to paste last."""
    return replace(
        answer_sheet(plan),
        sections=(*reason_sections(plan), *frontier_sections(plan), *setting_sections(plan)),
    )


def reason_sections(plan: StreamAnswer) -> tuple[Section, ...]:
    """The latency, and what prevents a cheaper plan, or any."""
    return (
        Section(texts=(stability_text(plan.prediction), *caution_texts(plan.prediction))),
        latency_section(plan.prediction),
        Section(texts=next_run_texts(plan.prediction), close=True),
        rates_section(plan),
        longer_triggers_section(plan),
        Section(title="binding constraints", texts=plan.binding),
        writes_section(plan),
        driver_section(plan.driver),
        *skew_sections(plan),
        needs_section(plan),
        nearest_section(plan),
        Section(title="other improvements", texts=tuple(advice.text for advice in plan.advice)),
        Section(title="rejected node types", texts=plan.refused_node_types),
        Section(lead="note", texts=notes(plan)),
    )


def setting_sections(plan: StreamAnswer) -> tuple[Section, ...]:
    """Why not less, what changes, and what to paste."""
    memory = () if plan.memory is None else tuple(memory_rows(plan.memory))
    in_query = "query options, set in the query itself"
    return (
        Section(title="rejected neighbours", rows=tuple(rejection_rows(plan))),
        changes_section(plan),
        Section(title="executor memory", rows=memory, right=(1,)),
        Section(title="Spark configuration", code=setting_lines(plan.spark_conf)),
        Section(title=in_query, code=setting_lines(plan.query_options)),
    )


def latency_section(prediction: Prediction) -> Section:
    """The quoted latencies with their intervals; empty if there are none."""
    rows: list[tuple[str, ...]] = []
    for name, distribution in latencies(prediction).items():
        figures_s, intervals = distribution.statistics_s, distribution.intervals90_s
        rows.append((name, *map(format_duration, figures_s.values())))
        if intervals:
            lows = {name: format_duration(interval.low) for name, interval in intervals.items()}
            highs = {name: format_duration(interval.high) for name, interval in intervals.items()}
            rows.append(("90% low", *(lows.get(statistic, "") for statistic in figures_s)))
            rows.append(("90% high", *(highs.get(statistic, "") for statistic in figures_s)))
    return Section(head=("", *_STATISTICS), rows=tuple(rows), right=(1, 2, 3, 4))


def rates_section(plan: StreamAnswer) -> Section:
    """What other rates need for the same targets, if no rate was given; the plan is marked."""
    # Of other percentiles only the upper end is known, which is the target at most.
    statistics = [name for name in _STATISTICS if name in ("mean", plan.target.statistic, "p99")]
    has_cost = any(planned.cost is not None for planned in plan.rates)
    cost = (cost_head(plan),) if has_cost else ()
    head = ("nodes", *cost, "trigger", *statistics, "90% interval of p99")
    marks = tuple(">" if planned.rate_per_s == plan.rate_per_s else "" for planned in plan.rates)
    rows = []
    for planned, mark in zip(plan.rates, marks, strict=True):
        rate = format_rate(planned.rate_per_s) + (" (profiled)" if mark else "")
        rows.append((rate, *_rate_cells(planned, statistics, has_cost)))
    return Section(
        title=f"nodes for other rates within {targets_text(plan.promises)}",
        head=(f"{METRIC_NAMES[plan.target.metric]} at", *head),
        rows=tuple(rows),
        right=tuple(range(1, len(head))),
        marks=marks,
        indent=0,
    )


def longer_triggers_section(plan: StreamAnswer) -> Section:
    """Why lower rates have a longer trigger than the plan, if one has."""
    triggers_s = (
        planned.configuration.trigger_s
        for planned in plan.rates
        if planned.configuration is not None and planned.rate_per_s < plan.rate_per_s
    )
    is_longer = any(trigger_s > plan.configuration.trigger_s for trigger_s in triggers_s)
    why = "At lower rates a longer trigger meets the target too, with fewer checkpoints."
    return Section(texts=(why,) if is_longer else (), close=True)


def _rate_cells(planned: PlannedRate, statistics: Sequence[str], has_cost: bool) -> tuple[str, ...]:
    """The nodes, the trigger interval and the predicted latency of the plan for a rate."""
    cost = (cost_text(planned.cost),) if has_cost else ()
    if planned.nodes is None or planned.configuration is None or planned.predicted is None:
        return ("none", *cost, *("-" for _ in ("trigger", *statistics, "interval")))
    values_s = planned.predicted.statistics_s
    return (
        f"{planned.nodes:,}",
        *cost,
        trigger_text(planned.configuration.trigger_s),
        *(format_duration(values_s[name]) for name in statistics),
        interval_text(planned.predicted.intervals90_s.get("p99")),
    )


def frontier_sections(plan: StreamAnswer, *, on_page: bool = False) -> tuple[Section, Section]:
    """The max rate by number of nodes, and what the marks mean; empty if there is no such rate.

    On pages, rows are named instead of marked.
    """
    if not any(point.sustainable_rate_per_s > 0.0 for point in plan.frontier):
        return Section(), Section()
    requested_rate_per_s = plan.arrivals.rate_per_s
    has_cost = any(point.cost_per_hour is not None for point in plan.frontier)
    points = list(frontier_rows(plan))
    rows = [
        (
            f"{point.nodes:,}",
            f"{rate_text(point)}{'*' if _is_extrapolated(point) else ' '}",
            "met" if point.sustainable_rate_per_s >= requested_rate_per_s else "missed",
            *((cost_text(point.cost_per_hour),) if has_cost else ()),
            "-" if point.configuration is None else brief_setting_text(point.configuration),
        )
        for point, _ in points
    ]
    promised, cost = targets_text(plan.promises), (cost_head(plan),) if has_cost else ()
    requested = f"at {format_rate(requested_rate_per_s)}"
    nodes = "nodes" if plan.node_type is None else f"nodes of {plan.node_type.name}"
    return (
        Section(
            title=f"frontier: max rate within {promised}{_on_trigger(plan)}, by number of {nodes}",
            head=("nodes", "max rate ", requested, *cost, "configuration"),
            rows=tuple(rows),
            right=(0, 1),
            marks=tuple(">" if is_plan else "" for _, is_plan in points),
            indent=0,
        ),
        Section(texts=tuple(_legend(plan, points, on_page=on_page)), close=True),
    )


def _on_trigger(plan: StreamAnswer) -> str:
    """Without a target of its own, a plan keeps the profiled trigger interval."""
    if not any(finding.code is FindingCode.TARGET_OF_PROFILE for finding in plan.findings):
        return ""
    return f" on the profiled trigger of {trigger_text(plan.configuration.trigger_s)}"


def _is_extrapolated(point: FrontierPoint) -> bool:
    return point.sustainable_rate_per_s > 0 and not point.calibrated


def _legend(
    plan: StreamAnswer, points: Iterable[tuple[FrontierPoint, bool]], *, on_page: bool
) -> Iterator[str]:
    if any(is_plan for _, is_plan in points):
        better_point, better_text = another_carries_more(plan), ""
        if better_point is not None:
            better_text = f"with as many nodes sustains {rate_text(better_point)}"
        if not on_page:
            yield "> the planned configuration" + (better_text and f"; another {better_text}")
        elif better_text:
            yield f"Another configuration {better_text}."
    if any(_is_extrapolated(point) for point, _ in points):
        measured = "extrapolated: more than four times outside the profiled range"
        declared = "from declared costs: nothing was measured"
        yield f"* {measured if plan.declared is None else declared}"


def _phases(prediction: Prediction) -> Section:
    """The phases of the mean latency, but for those that take next to nothing."""
    parts = shown_parts(prediction.phases_s)
    return Section(
        title=f"mean {METRIC_NAMES[Metric.TUPLE]} by phase",
        rows=tuple(
            (prediction.phase_called(name), format_duration(phase_s), percent(share))
            for name, phase_s, share in parts
        ),
        right=(1, 2),
        bar_share=tuple(share for _, _, share in parts),
    )


def writes_section(plan: StreamAnswer) -> Section:
    """Files that the query writes, and the requests and the money that they take."""
    writes = plan.writes
    if writes is None:
        return Section()
    rows: list[tuple[str, float | None]] = [
        ("files of the checkpoint", writes.checkpoint_files_per_batch),
        ("files of the sink", writes.sink_files_per_batch),
    ]
    if writes.requests_per_hour is not None:
        per_batch = writes.requests_per_hour / writes.batches_per_hour
        rows.append((f"write requests to {writes.store}", per_batch))
    if writes.lists_per_hour:
        rows.append(("of these, LIST", writes.lists_per_hour / writes.batches_per_hour))
    shown = (
        (name, "unknown", "unknown")
        if number is None
        else (name, _number(number), _number(number * writes.batches_per_hour))
        for name, number in rows
    )
    return Section(
        title="files and write requests",
        head=("", "per batch", "per hour"),
        rows=(("batches", "", _number(writes.batches_per_hour)), *shown),
        right=(1, 2),
        texts=tuple(_about_writes(writes)),
    )


def _about_writes(writes: PlannedWrites) -> Iterator[str]:
    if writes.store is None:
        yield (
            "Write requests are not priced, since the store of the checkpoint is not in the log: "
            "give --checkpoint-store."
        )
    elif writes.cost_per_hour is not None:
        per_month = writes.cost_per_hour * HOURS_PER_MONTH
        by_month = format_money(per_month, currency=writes.currency)
        yield f"Write requests cost {by_month} per month, at prices of {writes.prices_of}."
    if writes.kept_bytes:
        state = f"{size_text(writes.kept_bytes)} of state"
        yield f"The checkpoint keeps up to {state} for minBatchesToRetain batches."
    if writes.sink_log_bytes_per_day:
        growth = f"{size_text(writes.sink_log_bytes_per_day)} a day"
        yield f"The log of the sink grows by {growth}, which is not part of the cost."
    if writes.sink_files_per_batch:
        yield (
            "The sink gets a file from each task of the last stage, or one for each partition of "
            "the table that the task has rows of."
        )
    elif writes.sink_files_per_batch is None:
        yield "The log does not show how many files the sink gets."


def _number(number: float) -> str:
    """Three digits, without an exponent."""
    return f"{float(f'{number:.3g}'):,.10g}"


def needs_section(plan: StreamAnswer) -> Section:
    """The nodes that each target takes alone."""
    return Section(title="nodes for each target", rows=tuple(needs_rows(plan)))


def nearest_section(plan: StreamAnswer) -> Section:
    """The nearest targets that can be met."""
    return Section(title="nearest feasible targets", rows=tuple(nearest_rows(plan, "other {}")))


def skew_sections(plan: StreamAnswer) -> Iterator[Section]:
    """The effect of the heaviest key, if one is known to be heavy."""
    if plan.skew is not None:
        # Most plans have none, and start faster without.
        from headway.report.ordered import skew_section

        yield skew_section(plan.skew)
