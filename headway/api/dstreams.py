"""DStreams applications: a prediction for a setting, a plan for the fewest nodes."""

from __future__ import annotations

from dataclasses import replace

from headway.api.arguments import positive_trigger_s, require_room_for_tasks
from headway.api.nodes_to_buy import spaces_of
from headway.domain import ApplicationProfile, Metric, Target
from headway.domain.dstreams import DStreamsPlan, DStreamsPrediction
from headway.domain.question import PlanQuestion, PredictQuestion
from headway.errors import InputError, argument
from headway.planner.kinds.dstreams import DStreamsSearch, plan_dstreams
from headway.planner.kinds.dstreams_batches import DStreamsBatches
from headway.planner.kinds.dstreams_prediction import predicted
from headway.units import counted


def predict_application(job: ApplicationProfile, question: PredictQuestion) -> DStreamsPrediction:
    """Latency of a DStreams application at a setting; by default everything is as profiled."""
    batches = DStreamsBatches.of(job)
    profiled = batches.profiled_setting
    setting = replace(
        profiled,
        executors=question.executors or profiled.executors,
        cores_per_executor=question.cores or profiled.cores_per_executor,
        task_cpus=question.task_cpus or profiled.task_cpus,
        concurrent_jobs=question.concurrent_jobs or profiled.concurrent_jobs,
        batch_interval_s=positive_trigger_s(question) or profiled.batch_interval_s,
    )
    require_room_for_tasks(setting.cores_per_executor, setting.task_cpus)
    if not setting.num_slots:
        raise InputError(
            f"{counted(setting.num_receivers, 'receiver')} hold every slot of "
            f"{counted(setting.executors, 'executor')}; give more {argument('executors')} or "
            f"{argument('cores')}"
        )
    return predicted(batches, setting, batches.load_of(question.rate_per_s))


def plan_application(job: ApplicationProfile, question: PlanQuestion) -> DStreamsPlan:
    """The fewest nodes with which a DStreams application meets a target for its rows.

    Without an interval, others than the profiled one are tried, too.
    """
    batches = DStreamsBatches.of(job)
    spaces, refused = spaces_of(job, question)
    batch_interval_s, target = positive_trigger_s(question), _latency_target(question)
    load = batches.load_of(question.rate_per_s)
    searches = [
        DStreamsSearch(
            batches=replace(batches, core_speed_ratio=space.core_speed_ratio),
            load=load,
            target=target,
            space=space,
            concurrent_jobs=question.concurrent_jobs or batches.profiled_setting.concurrent_jobs,
            batch_interval_s=batch_interval_s,
            confidence=question.confidence,
        )
        for space in spaces
    ]
    return replace(plan_dstreams(searches, question.objective), refused_node_types=refused)


def _latency_target(question: PlanQuestion) -> Target:
    if len(question.targets) != 1:
        raise InputError(
            f"DStreams are planned for one target, e.g. {argument('target')} 'p99 <= 5s'"
        )
    (promise,) = question.targets
    if not isinstance(promise, Target) or promise.metric is not Metric.TUPLE:
        raise InputError(
            f"target '{promise}': of DStreams the latency of rows is planned, e.g. 'p99 <= 5s'; "
            "their windows, their recovery and bursts are not modelled"
        )
    return promise
