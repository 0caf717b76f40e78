"""Queries in Real-Time Mode: a prediction for a setting, a plan for the fewest nodes."""

from __future__ import annotations

from dataclasses import replace

from headway.api.arguments import (
    arrivals_from,
    positive_trigger_s,
    promises_from,
    require_room_for_tasks,
)
from headway.api.nodes_to_buy import spaces_of
from headway.assumptions.real_time import BATCH_LENGTH_S, PATH_S
from headway.domain import JobProfile
from headway.domain.configuration import task_slots
from headway.domain.question import PlanQuestion, PredictQuestion
from headway.domain.real_time import RealTimePlan, RealTimePrediction, RealTimeSetting
from headway.errors import InputError, argument
from headway.models.real_time.stages import required_slots
from headway.planner.kinds.real_time import (
    predicted,
    require_batch_length,
    require_promises,
    require_real_time,
    stages_of,
)
from headway.planner.kinds.real_time_search import RealTimeSearch, best_plan
from headway.planner.purchase import at_core_speed
from headway.units import counted


def predict_in_real_time(job: JobProfile, question: PredictQuestion) -> RealTimePrediction:
    """Latency of a query in Real-Time Mode, from its profile in micro-batches.

    By default executors have a slot for each task of all stages, and batches take five minutes.
    """
    require_real_time(job)
    cores = question.cores or job.baseline.cores_per_executor
    task_cpus = question.task_cpus or job.baseline.task_cpus
    require_room_for_tasks(cores, task_cpus)
    sources = _sources_of(job, question)
    partitions = question.shuffle_partitions or job.baseline.shuffle_partitions
    batch_length_s = positive_trigger_s(question) or BATCH_LENGTH_S.value
    require_batch_length(batch_length_s)
    slots = required_slots(stages_of(job, sources, partitions))
    num_needed = -(-slots // task_slots(1, cores, task_cpus))
    setting = RealTimeSetting(
        executors=question.executors or num_needed,
        cores_per_executor=cores,
        source_partitions=sources,
        shuffle_partitions=partitions,
        batch_length_s=batch_length_s,
        task_cpus=task_cpus,
    )
    if setting.executors < num_needed:
        have = f"{'has' if setting.executors == 1 else 'have'} {counted(setting.num_slots, 'slot')}"
        raise InputError(
            f"{counted(slots, 'task')} of all stages run at once in Real-Time Mode, and "
            f"{counted(setting.executors, 'executor')} {have}; "
            f"expected {argument('executors')} {num_needed} or fewer {argument('partitions')} "
            "(Spark: CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT)"
        )
    rate_per_s = arrivals_from(job, question.rate_per_s).rate_per_s
    return predicted(job, setting, rate_per_s, question.path_s or PATH_S.value)


def plan_in_real_time(job: JobProfile, question: PlanQuestion) -> RealTimePlan:
    """The fewest nodes that meet a latency of rows in Real-Time Mode, and a target to catch up."""
    rate_per_s = arrivals_from(job, question.rate_per_s).rate_per_s
    first, further_targets = promises_from(question.targets)
    require_real_time(job, first)
    batch_length_s = positive_trigger_s(question)
    if batch_length_s is not None:
        require_batch_length(batch_length_s)
    spaces, refused = spaces_of(job, question)
    catch_ups = require_promises(further_targets)
    searches = [
        RealTimeSearch(
            profile=at_core_speed(job, space.core_speed_ratio),
            rate_per_s=rate_per_s,
            target=first,
            also=catch_ups,
            space=space,
            source_partitions=_sources_of(job, question),
            shuffle_partitions=question.shuffle_partitions,
            batch_length_s=batch_length_s,
            path_s=question.path_s or PATH_S.value,
            confidence=question.confidence,
        )
        for space in spaces
    ]
    return replace(best_plan(searches, question.objective), refused_node_types=refused)


def _sources_of(job: JobProfile, question: PlanQuestion | PredictQuestion) -> int:
    return question.source_partitions or job.stages[0].num_source_tasks or 1
