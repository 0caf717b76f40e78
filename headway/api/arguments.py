"""Arguments of the calls, read and checked: jobs, rates, targets, node types, numbers.

Each function refuses what it cannot use by an ``InputError`` that names the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from headway.api.file_kinds import is_log
from headway.domain import AnyPromise, Arrivals, Deadline, JobProfile, NodeType, Promise, Target
from headway.domain.argument import JobKind
from headway.domain.argument_values import PROMISES, RATE, TRIGGER_ABOVE_ZERO, paths_of
from headway.domain.configuration import FIRST_WITH_FRACTIONS
from headway.domain.profile import has_fractions_of_cores
from headway.errors import InputError, RefusedArgumentError, argument
from headway.formats.profile_file import load_any_profile, load_profile
from headway.units import counted, format_duration, format_rate

if TYPE_CHECKING:
    from headway.domain import ApplicationProfile, Job
    from headway.domain.ordered import KeyCounts
    from headway.domain.query_questions import OrderedQuestion
    from headway.domain.question import PlanQuestion, SettingQuestion
    from headway.domain.writes import StorePrice
    from headway.planner.question import SearchSpace


#: The files of the gate.
SPECS = paths_of("the path of a spec file, or a list of them")
_PLAN = "a plan of a streaming query or of a batch job, or the path of one"


def wrong_kind(name: str, value: object, expected: str) -> InputError:
    """The refusal of an argument that is an object of another kind."""
    return InputError(
        f"{argument(name)} is of the type {type(value).__name__}; expected {expected}"
    )


def any_plan(plan: Any, *more_kinds: str) -> Any:
    """The plan of a streaming query or of a batch job, as given or loaded from its file.

    Anything else is refused, except for results of ``more_kinds``.
    """
    if isinstance(plan, str | Path):
        # Most commands read no plan.
        from headway.formats.from_json import load_any_plan

        return load_any_plan(plan)
    if getattr(plan, "result_kind", None) not in ("plan", "deadline-plan", *more_kinds):
        raise wrong_kind("plan", plan, _PLAN)
    return plan


def require_room_for_tasks(cores: int, task_cpus: float) -> None:
    """Refuse executors in which no task could run: a task that takes more cores than one has."""
    if task_cpus > cores:
        raise InputError(
            f"an executor of {counted(cores, 'core')} has no room for a task of {task_cpus:g} "
            f"(spark.task.cpus); give more {argument('cores')} or fewer {argument('task_cpus')}"
        )


def require_startable_tasks(job: Job, task_cpus: float | None) -> None:
    """Refuse a stated fraction of a core if the profiled version of Spark does not start with it.

    ``task_cpus`` is what a question states, None if it is as profiled.
    """
    if task_cpus is not None:
        require_fractions_of_cores(job.application.spark_version, argument("task_cpus"), task_cpus)


def require_fractions_of_cores(spark_version: str, name: str, task_cpus: float) -> None:
    """Refuse cores per task, called ``name``, with which a version of Spark does not start."""
    if task_cpus % 1 and not has_fractions_of_cores(spark_version):
        first = ".".join(map(str, FIRST_WITH_FRACTIONS))
        raise InputError(
            f"{name} {task_cpus:g}: Spark {spark_version} does not start with a fraction of a core "
            f"per task; expected a whole number, or Spark {first} or later"
        )


def job_from(
    profile: JobProfile | ApplicationProfile | str | Path,
    promise: Promise | None = None,
    queries: Sequence[str] | None = None,
) -> JobProfile:
    """The profile of a query, as of `any_job`; it must be one that can have such a target."""
    job = any_job(profile, queries, load_profile)
    if promise is not None:
        job.require_can_promise(promise)
    if job.job_kind is not JobKind.QUERY:
        instead = (
            "; a batch job is planned for a deadline" if job.job_kind is JobKind.ENDING else ""
        )
        raise InputError(
            f"the profile of {job.called}; expected that of a streaming query{instead}"
        )
    return cast("JobProfile", job)


def any_job(
    profile: JobProfile | ApplicationProfile | str | Path,
    queries: Sequence[str] | None = None,
    load: Callable[[str | Path], JobProfile | ApplicationProfile] = load_any_profile,
) -> JobProfile | ApplicationProfile:
    """The profile of a job: as given, loaded from its file, or made of its event logs.

    ``queries`` are those of the logs that it is made of; all by default.
    """
    if is_log(profile):
        # What reads logs takes time to load, and most jobs have been profiled before.
        from headway.api.profile import profile_and_tables

        return profile_and_tables(cast("str | Path", profile), None, queries=queries or ())[0]
    if queries:
        raise RefusedArgumentError(
            f"{argument('queries')}: it chooses queries of an event log; this is a profile"
        )
    if isinstance(profile, str | Path):
        return load(profile)
    if not hasattr(profile, "require_can_promise"):
        raise wrong_kind("profile", profile, "a profile, the path of one, or event logs")
    return profile


def positive_trigger_s(question: SettingQuestion) -> float | None:
    """The trigger where 0 is none: a batch interval of DStreams, a batch length in Real-Time Mode.

    An interval of 0 is refused.
    """
    trigger_s = question.trigger_s
    return None if trigger_s is None else TRIGGER_ABOVE_ZERO.read(trigger_s, "trigger")


def deadline_in(target: object) -> Deadline | None:
    """The deadline of a batch job, if the target is one."""
    promises = PROMISES.read(target, "target")
    deadline = next((promise for promise in promises if isinstance(promise, Deadline)), None)
    if deadline is not None and len(promises) > 1:
        raise InputError(f"'{deadline}' is for jobs that end and must be the only target")
    return deadline


def arrivals_from(job: JobProfile, rate: float | str | None) -> Arrivals:
    """The arrivals of a job at a rate; as profiled if none is given.

    One must be given if the profiled run drained a backlog.
    """
    if rate is None:
        if job.drain is not None:
            raise InputError(
                f"{argument('rate')} is missing: the profiled query read a backlog of "
                f"{job.drain.backlog_rows:,.0f} rows in {format_duration(job.drain.duration_s)} "
                "(Trigger.AvailableNow or Once), which is not the rate at which rows arrive; give "
                "that rate, e.g. 50k/s, or plan a deadline"
            )
        return job.arrivals
    return replace(job.arrivals, rate_per_s=RATE.read(rate, "rate"))


def executors_by_cores(node_cores: int, cores: int) -> int:
    """Executors that fit on a node by its cores alone, at least one."""
    if node_cores < cores:
        raise InputError(
            f"a node of {counted(node_cores, 'core')} has no room for an executor of {cores}; "
            f"give a larger {argument('node_cores')} or fewer {argument('cores')}"
        )
    return node_cores // cores


def promises_from(
    target: AnyPromise | str | Sequence[AnyPromise | str],
) -> tuple[Target, list[Promise]]:
    """The first latency target, which a plan is made for, and the other targets."""
    promises: list[Promise] = []
    for promise in PROMISES.read(target, "target"):
        if isinstance(promise, Deadline):
            raise InputError(
                f"target '{promise}': a streaming job has no end; use a latency, e.g. 'p99 <= 3s'"
            )
        promises.append(promise)
    first = next((promise for promise in promises if isinstance(promise, Target)), None)
    if first is None:
        raise InputError(
            f"target '{promises[0]}' needs a latency target beside it, e.g. 'p99 <= 3s'"
        )
    promises.remove(first)
    return first, promises


def node_types_of(question: PlanQuestion) -> list[NodeType]:
    """Node types to choose from, read if they are texts; none may be named twice.

    A text without figures is a name in the catalogue, by default the one that comes with Headway;
    what the platform reserves is subtracted from such a node. Figures are what Spark can use.
    Arguments that they contradict or do not need are refused.
    """
    if not any(
        isinstance(node_type, str) and ":" not in node_type for node_type in question.node_types
    ):
        unused = ("platform",) if question.checkpoint_store else ("platform", "catalog")
        for name in unused:
            if name in question.named_arguments:
                raise RefusedArgumentError(
                    f"{argument(name)}: it applies to node types of the catalogue; give "
                    f"{argument('node_types')} NAME"
                )
    types = [
        node_type
        if isinstance(node_type, NodeType)
        else NodeType.parse(node_type)
        if ":" in node_type
        else _catalogued(node_type.strip(), question)
        for node_type in question.node_types
    ]
    names = [node_type.name for node_type in types]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"node type {name!r} is given twice")
    if types and question.node_cores is not None:
        raise InputError(
            f"{argument('node_cores')} contradicts {argument('node_types')}: a node type has its "
            "own number of cores"
        )
    return types


def store_price_of(question: PlanQuestion, job: JobProfile) -> StorePrice | None:
    """What the store of the checkpoint charges; None if the store is unknown, or its price."""
    store = question.checkpoint_store or job.shape.checkpoint_store
    if store is None:
        return None
    from headway.spec.parts import catalog_at, store_price

    return store_price(store, catalog_at(question.catalog))


def _catalogued(name: str, question: PlanQuestion) -> NodeType:
    from headway.spec.parts import node_type_named

    return node_type_named(name, question.catalog, question.platform)


def key_counts(question: PlanQuestion | OrderedQuestion) -> KeyCounts | None:
    """How often each key occurs, read if it is a file; None if nothing is given."""
    keys = question.keys
    if keys is None:
        if question.key_type is not None or question.total_rows is not None:
            raise InputError(
                f"{argument('key_type')} and {argument('total_rows')} are about the keys of "
                f"a file; give {argument('keys')}"
            )
        return None
    from headway.formats.key_counts import any_key_counts

    return any_key_counts(keys, kind=question.key_type, total_rows=question.total_rows)


def target_of_profile(job: JobProfile, space: SearchSpace, confidence: float) -> Target:
    """The lowest p99 that the profiled setting meets at the rate of the job."""
    from headway.planner.search import question_of
    from headway.planner.verdict import lowest_target

    any_p99 = Target(quantile=0.99, limit_s=1.0)
    target = lowest_target(question_of(job, any_p99, space, confidence), job.baseline)
    if target is None:
        raise InputError(
            f"{argument('target')} is missing, and the profiled setting meets none at "
            f"{format_rate(job.arrivals.rate_per_s)}; expected what is to be met, e.g. 'p99 <= 3s'"
        )
    return target
