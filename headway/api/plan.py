"""The fewest nodes for a target, and the Spark configuration that meets it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, overload

from headway.api.arguments import (
    any_job,
    arrivals_from,
    deadline_in,
    executors_by_cores,
    job_from,
    key_counts,
    node_types_of,
    promises_from,
    require_room_for_tasks,
    require_startable_tasks,
    store_price_of,
    target_of_profile,
)
from headway.api.file_kinds import is_pipeline
from headway.api.predict import JobOptions, at_source_partitions, with_next_run
from headway.assumptions.planning import RATES_SHOWN
from headway.domain import (
    Deadline,
    DuringBurst,
    Finding,
    FindingCode,
    Job,
    JobProfile,
    Objective,
    Promise,
    StreamAnswer,
    Target,
)
from headway.domain.argument import JobKind, given_names, question_for, takes
from headway.domain.argument_values import ROWS
from headway.domain.backlog import ending_job
from headway.domain.later import later, with_changes
from headway.domain.question import PlanQuestion, asks_for_real_time
from headway.errors import InputError, argument
from headway.formats.profile_file import load_any_profile, load_stream_profile
from headway.lazy_names import loads_when_called

if TYPE_CHECKING:
    from headway.api.pipelines import AnyPipeline, AnyPipelinePlan
    from headway.domain import ApplicationProfile, BatchAnswer
    from headway.domain.dstreams import DStreamsPlan
    from headway.domain.ordered import KeyCounts
    from headway.domain.plan_parts import PlannedSkew
    from headway.domain.real_time import RealTimePlan


class PlanOptions(JobOptions, total=False):
    """Arguments of a plan, as the library takes them; a call has ``rate`` and ``target``, too."""

    rows: float | str | None
    max_nodes: int | None
    node_cores: int | None
    node_types: Any
    catalog: str | Path | None
    platform: str | None
    objective: Objective | str | None
    budget: float | None
    checkpoint: str | None
    checkpoint_store: str | None
    retention: float | str | None
    limit: Any
    allow: Any
    bursts: Any
    relaxation: bool
    lower_memory: bool
    executor_memory_bytes: int | None
    from_start: bool
    keys: KeyCounts | str | Path | None
    key_type: str | None
    total_rows: float | None
    confidence: float | None


_Targets: TypeAlias = Target | str | Sequence[Promise | str]
#: What plans jobs of each kind; only its module is loaded.
_PLANNERS = {
    JobKind.QUERY: loads_when_called("headway.api.plan.plan_query"),
    JobKind.REAL_TIME: loads_when_called("headway.api.real_time.plan_in_real_time"),
    JobKind.DSTREAMS: loads_when_called("headway.api.dstreams.plan_application"),
    JobKind.ENDING: loads_when_called("headway.api.deadlines.plan_ending"),
    JobKind.PIPELINE: loads_when_called("headway.api.pipelines.plan_pipeline"),
}


@overload
def plan(
    profile: AnyPipeline,
    *,
    rate: float | str | None = ...,
    target: Target | str,
    max_nodes: int = ...,
) -> AnyPipelinePlan: ...


@overload
def plan(
    profile: AnyPipeline | str | Path, *, rate: float | str | None = ..., max_nodes: int = ...
) -> AnyPipelinePlan: ...


@overload
def plan(
    profile: JobProfile | str | Path,
    *,
    rate: float | str | None,
    target: _Targets,
    mode: Literal["real-time"],
    **options: Unpack[PlanOptions],
) -> RealTimePlan: ...


@overload
def plan(
    profile: JobProfile | str | Path,
    *,
    rate: float | str | None,
    target: _Targets,
    **options: Unpack[PlanOptions],
) -> StreamAnswer: ...


@overload
def plan(
    profile: JobProfile, *, rate: float | str | None = ..., **options: Unpack[PlanOptions]
) -> StreamAnswer: ...


@overload
def plan(
    profile: ApplicationProfile,
    *,
    rate: float | str | None,
    target: Target | str,
    **options: Unpack[PlanOptions],
) -> DStreamsPlan: ...


@overload
def plan(
    profile: Job | str | Path, *, target: Deadline | str, **options: Unpack[PlanOptions]
) -> BatchAnswer: ...


@takes(PlanQuestion)
def plan(profile: Any, **options: Any) -> Any:
    """Find the fewest nodes that meet a target, and their Spark configuration.

    Parameters
    ----------
    profile : JobProfile, ApplicationProfile, MicroBatchPipeline, OrderedPipeline or path
        The job: a streaming query, a DStreams application, or with a deadline a batch job, or a
        streaming query that read a backlog and ended. Event logs are profiled first. A pipeline
        takes only ``rate``, ``target`` and ``max_nodes``, which its file may contain.
    queries : sequence of str
        Names or ids of the queries of event logs; all by default.
    rate : float or str
        Input rate to plan a query for, records per second or e.g. ``"50k/s"``; by default that of
        the profiled run, and ``rates`` of the plan says what other rates need.
    target : Target, Deadline or str, or several
        The target, e.g. ``"p99 <= 3s"``, ``"window p95 <= 20s"``, for a batch job ``"deadline <=
        10m"``. If there are several, for instance also ``"catch_up <= 15m after 30m"``, all must be
        met; the plan refers to the first latency target. By default the lowest p99, of a batch job
        the lowest deadline, that the profiled setting meets.
    max_nodes : int
        Maximum number of nodes.
    node_cores, cores : int
        Cores per node and per executor; by default as profiled, with one executor per node.
    partitions : int
        Shuffle partitions, if fixed (by an existing checkpoint).
    trigger : float or str
        Trigger interval, if it is fixed; the batch interval of DStreams, the batch length of
        Real-Time Mode.
    confidence : float
        Confidence level: durations exceed the planned ones with at most the remaining probability.
    objective : str
        ``"nodes"``, ``"cost"`` or ``"latency"``: the quantity to minimise.
    node_types : sequence of NodeType or str
        Node types to choose from, e.g. ``"m6i.xlarge:cores=4,memory=14g,price=0.192"``, or the name
        of a node in the catalogue.
    catalog : path
        A spec file of the kind NodeCatalog; by default the one that comes with Headway.
    budget : float
        Maximum cost per hour: of the nodes, and of write requests if their price is known.
    checkpoint : str
        ``"existing"`` starts from the checkpoint, which fixes the shuffle partitions; ``"new"``
        does not; by default the current number is preferred, and a change is marked as needing a
        new checkpoint.
    checkpoint_store : str
        ``"s3"``, ``"gcs"``, ``"adls"``, ``"hdfs"`` or ``"disk"``: where the checkpoint is, and so
        what its write requests cost; by default the store in the log. They count in ``budget``,
        and in what ``objective="cost"`` minimises.
    retention : float or str
        How long the source keeps rows, e.g. ``"7d"`` (``retention.ms`` of a Kafka topic): the plan
        says which outages lose none, and refuses a target after one that does.
    limit : FilesLimit or str, or several
        Limit beside the targets: ``"files <= 500/h"`` is the maximum number of files that the query
        writes to its checkpoint and, as far as known, to its sink.
    allow : Switch or str, or several
        Switches of Spark that the plan may turn, e.g. ``"changelog"``; findings say what became of
        each.
    source_partitions : int
        Number of source partitions, or input splits, to plan for; as profiled by default.
    task_cpus : float
        Cores per task (``spark.task.cpus``); as profiled by default.
    bursts : sequence of Burst or str
        Bursts during which every latency target must be met, e.g. ``"150k/s:2m"`` or, once an hour,
        ``"150k/s:2m:1h"``; ``rate`` is the input rate at all other times.
    relaxation : bool
        Also compute the bound of the convex relaxation, which loads cvxpy.
    lower_memory : bool
        Allow less heap than in the profiled run, down to the measured peak plus headroom; without
        this, no executor gets less than in the profiled run. Peaks of local runs do not lower it.
    executor_memory_bytes : int
        Heap of an executor, if it is fixed. [bytes]
    platform : str
        Platform that runs Spark, which reserves part of each catalogue node. By default Kubernetes.
    from_start : bool
        Plan for batches that always take as long as in a fresh JVM, as after a restart.
    keys : KeyCounts or path
        How often each key occurs, for the stage with the most work behind an exchange: all rows of
        a key go to one task, and ``skew`` of the plan shows the effect.
    key_type, total_rows
        As in :func:`headway.ordered_plan`.
    rows : float or str
        With a deadline for a streaming query that read a backlog and ended: rows of the backlog,
        e.g. ``"40M"``; as profiled by default.
    mode : str
        ``"micro-batch"`` or ``"real-time"``: the execution mode of the query.
    path : float or str
        In Real-Time Mode: constant time of a row from the source and to the sink.
    concurrent_jobs : int
        Of DStreams: jobs that run at the same time, ``spark.streaming.concurrentJobs``.

    Not every argument means something for every kind of job; those that do not are refused.

    Raises
    ------
    InputError
        If a value is invalid, or not for jobs of this kind. A target that cannot be met is no
        error: the plan then has ``feasible=False``, and says why.
    """
    kind, job = planned_job(profile, options)
    return plan_job(kind, job, options)


def planned_job(profile: Any, options: Mapping[str, Any]) -> tuple[JobKind, Any]:
    """The job to plan, read if it is a file, and its kind, which decides what can be asked.

    It is refused if it cannot have such a target; a query in micro-batches and a job that ends need
    none.
    """
    if is_pipeline(profile):
        return JobKind.PIPELINE, profile
    target: Any = options.get("target")
    queries = options.get("queries")
    has_target, is_real_time = "target" in given_names(options), asks_for_real_time(options)
    if has_target and is_real_time:
        return JobKind.REAL_TIME, job_from(profile, promises_from(target)[0], queries)
    deadline = deadline_in(target) if has_target else None
    if deadline is not None:
        rows = options.get("rows")
        num_rows = None if rows is None else ROWS.read(rows, "rows")
        return JobKind.ENDING, ending_job(any_job(profile, queries), deadline, num_rows)
    load = load_stream_profile if has_target else load_any_profile
    job: Job = any_job(profile, queries, load)
    if not has_target and (is_real_time or job.job_kind not in (JobKind.QUERY, JobKind.ENDING)):
        name = argument("target")
        raise InputError(f"{name} is missing; expected what is to be met, e.g. 'p99 <= 3s'")
    if has_target and job.job_kind is JobKind.ENDING:
        job.require_can_promise(promises_from(target)[0])
    return job.job_kind, job


def plan_job(kind: JobKind, job: Any, options: Mapping[str, Any]) -> Any:
    """Plan a job of a known kind; errors are those of `plan`."""
    question = question_for(kind, PlanQuestion, options)
    if kind is not JobKind.PIPELINE:
        require_startable_tasks(job, question.task_cpus)
    return _PLANNERS[kind](job, question)


def plan_query(job: JobProfile, question: PlanQuestion) -> StreamAnswer:
    """Plan a streaming query in micro-batches."""
    from headway.planner.question import Question, SearchSpace
    from headway.planner.search import plan as search
    from headway.planner.source_partitions import with_stated_partitions

    arrivals = arrivals_from(job, question.rate_per_s)
    cores = question.cores or job.baseline.cores_per_executor
    executors_per_node = executors_by_cores(question.node_cores or cores, cores)
    task_cpus = question.task_cpus or job.baseline.task_cpus
    require_room_for_tasks(cores, task_cpus)
    node_types = node_types_of(question)
    as_profiled, job = job, at_source_partitions(job, question.source_partitions)
    counts = key_counts(question)
    if counts is not None:
        from headway.planner.kinds.ordered import with_known_keys

        job = with_known_keys(job, counts)
    space = SearchSpace(
        max_nodes=question.max_nodes,
        executors_per_node=executors_per_node,
        cores_per_executor=cores,
        task_cpus=task_cpus,
        tasks_per_executor=job.baseline.tasks_per_executor,
        shuffle_partitions=question.shuffle_partitions,
        trigger_s=question.trigger_s,
        executor_memory_bytes=question.executor_memory_bytes,
        lower_memory=question.lower_memory,
    )
    at_rate = replace(job, arrivals=arrivals)
    targets = question.targets or (target_of_profile(at_rate, space, question.confidence),)
    first, further_targets = promises_from(targets)
    further_targets += [
        DuringBurst(target=promise, burst=burst)
        for burst in question.bursts
        for promise in (first, *further_targets)
        if isinstance(promise, Target)
    ]
    job_question = Question(
        profile=at_rate,
        target=first,
        also=tuple(further_targets),
        space=space,
        confidence=question.confidence,
        objective=question.objective,
        checkpoint=question.checkpoint,
        store_price=store_price_of(question, job),
        retention_s=question.retention_s,
        most_files_per_hour=question.most_files_per_hour,
        allowed=question.allowed,
    )
    at_other_rates = job_question
    if not question.targets:
        # The fewest nodes that do what the profiled setting does: what else would do is no reason
        # to change the trigger, or to give up the state.
        at_other_rates = job_question.with_state()
        job_question = at_other_rates.at_profiled_trigger()
    answer = search(
        job_question,
        node_types=node_types,
        cores_per_executor=question.cores,
        budget_per_hour=question.budget_per_hour,
        relaxation=question.relaxation,
        from_start=question.from_start,
        at_other_rates=at_other_rates,
        rate_ratios=RATES_SHOWN.value if question.rate_per_s is None else (),
    )
    answer = with_stated_partitions(answer, as_profiled, question.source_partitions)
    return with_changes(
        answer,
        prediction=with_next_run(answer.prediction, job, first),
        findings=(*_as_profiled(question, answer, job), *answer.findings),
        skew=later(lambda: _skew(answer, job, counts)),
    )


def _as_profiled(
    question: PlanQuestion, answer: StreamAnswer, job: JobProfile
) -> Iterator[Finding]:
    """What of the question is that of the profiled run."""
    if question.rate_per_s is None:
        numbers = {"rate_per_s": answer.rate_per_s}
        yield Finding(code=FindingCode.RATE_OF_PROFILE, numbers=numbers)
    if not question.targets:
        from headway.models.job.predict import predict

        today = predict(job, job.baseline, answer.arrivals).tuple_latency
        numbers = {} if today is None else {"predicted_s": today.p99_s}
        names = {"target": str(answer.target)}
        yield Finding(code=FindingCode.TARGET_OF_PROFILE, numbers=numbers, names=names)


def _skew(answer: StreamAnswer, job: JobProfile, counts: KeyCounts | None) -> PlannedSkew | None:
    """Effect of the heaviest key on its stage, on the planned cores."""
    if counts is None and not any(stage.hot_share_ratio for stage in job.stages):
        return None
    from headway.planner.kinds.ordered import plan_skew
    from headway.planner.purchase import at_core_speed

    speed = 1.0 if answer.node_type is None else answer.node_type.core_speed_ratio
    return plan_skew(at_core_speed(job, speed), answer.configuration, answer.rate_per_s, counts)
