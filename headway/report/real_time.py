"""Predictions and plans of Real-Time Mode in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headway.digits import format_rate_down
from headway.domain.real_time import RealTimePlan, RealTimePrediction, RealTimeSetting
from headway.domain.sheet import Kind, Section, Sheet, setting_lines
from headway.domain.stage import stage_called
from headway.domain.target import targets_text
from headway.formats.as_json import other_plan_json, result_json
from headway.report.facts import nodes_fact
from headway.report.wording import executors_text, interval_text, nodes_meet, percent
from headway.units import counted, format_duration, format_rate
from headway.words.predictions import with_limit
from headway.words.sentences import stable_up_to

_NEARLY_ALL = 0.99
_NOT_CALIBRATED = (
    "not calibrated: the cost of rows is that of micro-batches; the gap between batches and the "
    "time through source and sink are those of other runs; docs/kafka-accuracy.md has the errors"
)
_NEW_CHECKPOINT = (
    "state is kept in RocksDB, checkpoint format 2: a checkpoint of another store or format cannot "
    "be taken over"
)


def real_time_prediction_sheet(prediction: RealTimePrediction) -> Sheet:
    """The verdict first, then the latency and its parts."""
    state = "stable" if prediction.stable else "not stable: the backlog grows"
    slots = counted(prediction.num_slots_needed, "slot")
    rate = format_rate(prediction.rate_per_s)
    bound = stable_up_to(prediction.sustainable_rate_per_s)
    return Sheet(
        about="Headway prediction in Real-Time Mode",
        headline=f"Real-Time Mode: {state} at {rate}, on {slots}; {bound}",
        verdict=prediction.stable,
        sections=(
            Section(lead="configuration", texts=(_setting(prediction.setting),), close=True),
            *_latency(prediction),
            Section(lead="note", texts=(_gap(prediction), _NOT_CALIBRATED)),
        ),
    )


def real_time_plan_sheet(plan: RealTimePlan) -> Sheet:
    """The answer first and what to paste last."""
    targets = targets_text(plan.promises)
    missed = f"infeasible: no configuration meets {targets}"
    answer = nodes_meet(plan.nodes, targets) if plan.feasible else missed
    return Sheet(
        about="Headway plan in Real-Time Mode",
        headline=f"{answer} at {format_rate(plan.rate_per_s)} in Real-Time Mode",
        verdict=plan.feasible,
        facts=(
            *([] if plan.feasible else [("binding constraint", plan.binding[0])]),
            ("configuration" if plan.feasible else "nearest", _setting(plan.setting)),
            (
                f"planned {plan.target.statistic}",
                f"{format_duration(plan.planned_s)} with {plan.confidence:.0%} confidence",
            ),
            *_max_rate_fact(plan),
            *nodes_fact(plan.nodes, plan.node_type, plan.cost),
        ),
        sections=(
            Section(
                title="binding constraints" if plan.feasible else "also in the way",
                texts=plan.binding if plan.feasible else plan.binding[1:],
            ),
            Section(title="rejected node types", texts=plan.refused_node_types),
            *_latency(plan.expected, are_details=plan.feasible),
            Section(lead="note", texts=tuple(_notes(plan))),
            Section(title="Spark configuration", code=setting_lines(plan.spark_conf)),
            Section(title="in the query", rows=_in_the_query(plan.setting)),
        ),
    )


def _brief_sheet(plan: RealTimePlan) -> Sheet:
    """The plan on one screen; of an infeasible one why no setting meets the targets."""
    full, settings = real_time_plan_sheet(plan), {**plan.spark_conf, **plan.code_options}
    further = "--verbose shows the latency by part, and the other notes"
    return replace(
        full,
        facts=tuple(_brief_facts(plan)) if plan.feasible else full.facts,
        sections=(
            Section(title="also in the way", texts=() if plan.feasible else plan.binding[1:]),
            *_latency_in_short(plan.expected),
            Section(title="configuration", code=setting_lines(settings) if plan.feasible else ()),
            Section(title="rejected node types", texts=plan.refused_node_types),
            Section(lead="note", texts=(_NOT_CALIBRATED,)),
            Section(texts=(further,), close=True),
        ),
    )


def _brief_facts(plan: RealTimePlan) -> Iterator[tuple[str, str]]:
    planned, limit = with_limit(plan.planned_s, plan.target.limit_s)
    sure = f"with {plan.confidence:.0%} confidence"
    yield f"planned {plan.target.statistic}", f"up to {planned} of {limit}, {sure}"
    yield from nodes_fact(plan.nodes, plan.node_type, plan.cost)
    yield "binding constraint", plan.binding[0]
    yield from _max_rate_fact(plan)


def _latency_in_short(prediction: RealTimePrediction) -> Iterator[Section]:
    """The predicted latency in a row."""
    latency = prediction.tuple_latency
    if latency is not None:
        figures = map(format_duration, latency.statistics_s.values())
        row = ("tuple latency", *figures, interval_text(latency.intervals90_s.get("p99")))
        head = ("predicted", *latency.statistics_s, "90% interval of p99")
        yield Section(head=head, rows=(row,), right=(1, 2, 3, 4))


def _max_rate_fact(plan: RealTimePlan) -> Iterator[tuple[str, str]]:
    if plan.max_rate_per_s is not None:
        yield "max rate within target", format_rate_down(plan.max_rate_per_s)


def real_time_header(plan: RealTimePlan, version: str) -> list[str]:
    """The comment above the settings in a file."""
    targets = targets_text(plan.promises)
    missed = f"!!! INFEASIBLE: no configuration meets {targets}. !!!"
    return [
        *([] if plan.feasible else [missed]),
        f"Generated by headway {version}",
        f"target: {targets} at {format_rate(plan.rate_per_s)}, Real-Time Mode",
        f"nodes: {plan.nodes}",
        *(f"in the query: {name}: {value}" for name, value in _in_the_query(plan.setting)),
        *(f"note: {text}" for text in _notes(plan)),
    ]


def _in_the_query(setting: RealTimeSetting) -> tuple[tuple[str, str], ...]:
    length = format_duration(setting.batch_length_s)
    return (("output mode", "update"), ("trigger", f"realTime, batches of {length}"))


def _notes(plan: RealTimePlan) -> Iterator[str]:
    yield _gap(plan.expected)
    yield "one query on the cluster: its tasks hold their slots as long as it runs"
    if plan.keeps_state:
        yield _NEW_CHECKPOINT
    yield _NOT_CALIBRATED


def _gap(prediction: RealTimePrediction) -> str:
    gap, length = map(format_duration, (prediction.gap_s, prediction.setting.batch_length_s))
    text = f"between two batches nothing is read for {gap}"
    # A growing backlog delays all rows, not the gap.
    if prediction.stable:
        share = percent(prediction.gap_share)
        if prediction.gap_share > _NEARLY_ALL:
            share = f"more than {percent(_NEARLY_ALL)}"
        text += f", which delays {share} of the rows"
    return f"{text}; after a failure a batch of {length} is repeated from its beginning"


def _setting(setting: RealTimeSetting) -> str:
    return (
        f"{executors_text(setting.executors, setting.cores_per_executor, setting.task_cpus)}, "
        f"{counted(setting.source_partitions, 'source partition')}, "
        f"{counted(setting.shuffle_partitions, 'shuffle partition')}, batches of "
        f"{format_duration(setting.batch_length_s)}"
    )


def _latency(prediction: RealTimePrediction, *, are_details: bool = False) -> Iterator[Section]:
    """The latency, if there is one, and its parts, which may be details."""
    latency = prediction.tuple_latency
    if latency is None:
        return
    yield Section(
        head=("tuple latency", "predicted", "90% interval"),
        rows=tuple(
            (f"  {name}", format_duration(value_s), interval_text(latency.intervals90_s.get(name)))
            for name, value_s in latency.statistics_s.items()
        ),
        right=(1,),
    )
    work, busy_ratio = prediction.stage_work, prediction.busy_ratio
    stages = (
        (stage_called(name, work.get(name)), mean_s, percent(busy_ratio[name]))
        for name, mean_s in prediction.stage_mean_s.items()
    )
    parts = (
        ("source and sink", prediction.path_s, "-"),
        *stages,
        ("gaps between batches", prediction.gap_mean_s, "-"),
    )
    yield Section(
        title="mean tuple latency by part",
        head=("", "mean", "share", "busiest task"),
        rows=tuple(
            (name, format_duration(mean_s), f"{mean_s / latency.mean_s:.0%}", busy)
            for name, mean_s, busy in parts
        ),
        right=(1, 2, 3),
        detail=are_details,
    )


KINDS = {
    "real-time-prediction": Kind(sheet=real_time_prediction_sheet, data=result_json),
    "real-time-plan": Kind(sheet=real_time_plan_sheet, brief=_brief_sheet, data=other_plan_json),
}
