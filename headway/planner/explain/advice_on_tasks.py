"""Advice on the number of tasks, with the size of its effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headway.assumptions.planning import WORTHWHILE_LATENCY_RATIO
from headway.domain import Advice, Configuration
from headway.models.stages.coalescing import num_tasks_at
from headway.planner.candidates import candidates_at
from headway.planner.planned_batch import PlannedBatch
from headway.planner.question import Question
from headway.planner.tasks import short_of_tasks, with_source_partitions, without_coalescing
from headway.units import counted, format_duration

_COALESCE_KEY = "spark.sql.adaptive.coalescePartitions.enabled"


def latency_of(question: Question, configuration: Configuration, nodes: int) -> float:
    """Planned latency of a setting, for a question whose profile may be changed [s]."""
    candidates = candidates_at(
        question, [(nodes, configuration.shuffle_partitions, configuration.trigger_s)]
    )
    return float(candidates.latency_s(question.rate_per_s)[0])


def more_source_partitions(
    question: Question, configuration: Configuration, nodes: int, latency_s: float
) -> Iterator[Advice]:
    """Slots without a task in the first stages are paid for but idle."""
    profile, slots = question.profile, configuration.num_slots
    short = list(short_of_tasks(profile, slots, PlannedBatch.of(question, configuration).rows))
    if not short:
        return
    wider = replace(question, profile=with_source_partitions(profile, slots))
    improved_s = latency_of(wider, configuration, nodes)
    if improved_s < WORTHWHILE_LATENCY_RATIO.value * latency_s:
        text = (
            f"{slots} source partitions (or that many input splits, Kafka's minPartitions) instead "
            f"of {short[0].num_tasks} would use every slot: "
            f"{question.target.statistic} up to {format_duration(improved_s)}"
        )
        yield Advice(text=text, latency_s=improved_s)


def coalescing_off(
    question: Question, configuration: Configuration, nodes: int, latency_s: float
) -> Iterator[Advice]:
    """Adaptive execution may leave slots without a task, to have tasks of some size."""
    profile, slots, rows = question.profile, configuration.num_slots, None
    for stage in profile.stages:
        if stage.coalescing is None:
            continue
        rows = PlannedBatch.of(question, configuration).rows if rows is None else rows
        num_tasks = num_tasks_at(stage, rows, slots, configuration.shuffle_partitions)
        if num_tasks >= min(slots, stage.coalescing.most_tasks(configuration.shuffle_partitions)):
            continue
        improved_s = latency_of(
            replace(question, profile=without_coalescing(profile)), configuration, nodes
        )
        if improved_s < WORTHWHILE_LATENCY_RATIO.value * latency_s:
            text = (
                f"adaptive execution merges the {configuration.shuffle_partitions} partitions of "
                f"{stage.called} into {counted(num_tasks, 'task')} on {counted(slots, 'slot')}: "
                f"without it ({_COALESCE_KEY}=false), {question.target.statistic} would be up to "
                f"{format_duration(improved_s)}, {1.0 - improved_s / latency_s:.0%} less"
            )
            yield Advice(text=text, latency_s=improved_s)
            return
