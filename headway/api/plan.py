"""The fewest nodes for a target, and the Spark configuration that meets it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast, overload

from headway.api.arguments import (
    DEFAULT_PLATFORM,
    arrivals_from,
    confidence_level,
    count,
    deadline_in,
    during_bursts,
    executors_by_cores,
    flag,
    given_arguments,
    heap_bytes,
    is_number,
    job_from,
    key_counts,
    node_types_from,
    one_of,
    promises_from,
    refuse_node_cores,
    require_room_for_tasks,
    seconds,
)
from headway.api.pipelines import is_pipeline, plan_pipeline, refuse_for_pipelines
from headway.api.predict import at_source_partitions, with_next_run
from headway.assumptions.planning import CONFIDENCE, MOST_NODES_OF_PLAN
from headway.domain import (
    Burst,
    Deadline,
    JobProfile,
    NodeType,
    Objective,
    Promise,
    StreamAnswer,
    Target,
)
from headway.domain.later import later, with_changes
from headway.errors import InputError, argument
from headway.limits import MOST_CORES, MOST_NODES, MOST_PARTITIONS

if TYPE_CHECKING:
    from headway.api.pipelines import AnyPipeline, AnyPipelinePlan
    from headway.domain import AnyAnswer, ApplicationProfile, BatchAnswer
    from headway.domain.ordered import KeyCounts
    from headway.domain.plan_parts import PlannedSkew


@overload
def plan(
    profile: AnyPipeline,
    *,
    rate: float | str | None = ...,
    target: Target | str | None = ...,
    max_nodes: int = ...,
) -> AnyPipelinePlan: ...


@overload
def plan(
    profile: JobProfile | str | Path,
    *,
    rate: float | str,
    target: Target | str | Sequence[Promise | str],
    max_nodes: int = ...,
    node_cores: int | None = ...,
    cores: int | None = ...,
    partitions: int | None = ...,
    trigger: float | str | None = ...,
    confidence: float = ...,
    objective: Objective | str = ...,
    node_types: Sequence[NodeType | str] = ...,
    catalog: str | Path | None = ...,
    budget: float | None = ...,
    checkpoint: str | None = ...,
    source_partitions: int | None = ...,
    task_cpus: int | None = ...,
    bursts: Sequence[Burst | str] = ...,
    relaxation: bool = ...,
    lower_memory: bool = ...,
    executor_memory_bytes: int | None = ...,
    platform: str = ...,
    from_start: bool = ...,
    keys: KeyCounts | str | Path | None = ...,
    key_type: str | None = ...,
    total_rows: float | None = ...,
) -> StreamAnswer: ...


@overload
def plan(
    profile: ApplicationProfile | JobProfile | str | Path,
    *,
    target: Deadline | str,
    rows: float | str | None = ...,
    max_nodes: int = ...,
    node_cores: int | None = ...,
    cores: int | None = ...,
    confidence: float = ...,
    objective: Objective | str = ...,
    node_types: Sequence[NodeType | str] = ...,
    catalog: str | Path | None = ...,
    task_cpus: int | None = ...,
    lower_memory: bool = ...,
    executor_memory_bytes: int | None = ...,
    platform: str = ...,
) -> BatchAnswer: ...


def plan(
    profile: JobProfile | ApplicationProfile | AnyPipeline | str | Path,
    *,
    rate: float | str | None = None,
    target: Target | Deadline | str | Sequence[Promise | str] | None = None,
    max_nodes: int = MOST_NODES_OF_PLAN.value,
    node_cores: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    trigger: float | str | None = None,
    confidence: float = CONFIDENCE.value,
    objective: Objective | str = Objective.NODES,
    node_types: Sequence[NodeType | str] = (),
    catalog: str | Path | None = None,
    budget: float | None = None,
    checkpoint: str | None = None,
    source_partitions: int | None = None,
    task_cpus: int | None = None,
    bursts: Sequence[Burst | str] = (),
    relaxation: bool = False,
    lower_memory: bool = False,
    executor_memory_bytes: int | None = None,
    platform: str = DEFAULT_PLATFORM,
    from_start: bool = False,
    keys: KeyCounts | str | Path | None = None,
    key_type: str | None = None,
    total_rows: float | None = None,
    rows: float | str | None = None,
) -> AnyAnswer | AnyPipelinePlan:
    """Find the fewest nodes that meet a target, and their Spark configuration.

    Parameters
    ----------
    profile : JobProfile, ApplicationProfile, MicroBatchPipeline, OrderedPipeline or path
        The job: a streaming query, or with a deadline a batch job, or a streaming query that read a
        backlog and ended. A pipeline takes only ``rate``,
        ``target`` and ``max_nodes``, which its file may contain; for the path of its spec file the
        result is that of `headway.api.pipelines.plan_pipeline`.
    rate : float or str
        Input rate to plan a query for, records per second or e.g. ``"50k/s"``.
    target : Target, Deadline or str, or several
        The target, e.g. ``"p99 <= 3s"``, ``"window p95 <= 20s"``, for a batch job ``"deadline <=
        10m"``. If there are several, for instance also ``"catch_up <= 15m after 30m"``, all must be
        met; the plan refers to the first latency target.
    max_nodes : int
        Maximum number of nodes.
    node_cores, cores : int
        Cores per node and per executor; by default as profiled, with one executor per node.
    partitions : int
        Shuffle partitions, if fixed (by an existing checkpoint).
    trigger : float or str
        Trigger interval, if it is fixed.
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
        Maximum price of all nodes per hour.
    checkpoint : str
        ``"existing"`` starts from the checkpoint, which fixes the shuffle partitions; ``"new"``
        does not; by default the current number is preferred, and a change is marked as needing a
        new checkpoint.
    source_partitions : int
        Number of source partitions, or input splits, to plan for; as profiled by default.
    task_cpus : int
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

    ``rate``, ``partitions``, ``trigger``, ``budget``, ``checkpoint``, ``source_partitions``,
    ``bursts``, ``relaxation``, ``from_start`` and ``keys`` are for queries only.

    Raises
    ------
    InputError
        If a value is invalid, or not for jobs of this kind. A target that cannot be met is no
        error: the plan then has ``feasible=False``, and says why.
    """
    if is_pipeline(profile):
        refuse_for_pipelines(
            node_cores=node_cores, cores=cores, partitions=partitions, trigger=trigger,
            node_types=node_types, catalog=catalog, budget=budget, checkpoint=checkpoint,
            source_partitions=source_partitions, task_cpus=task_cpus, bursts=bursts,
            relaxation=relaxation, lower_memory=lower_memory, from_start=from_start,
            executor_memory_bytes=executor_memory_bytes, keys=keys, key_type=key_type,
            total_rows=total_rows, rows=rows,
            confidence=None if confidence == CONFIDENCE.value else confidence,
            objective=None if objective == Objective.NODES else objective,
            platform=None if platform == DEFAULT_PLATFORM else platform,
        )  # fmt: skip
        return plan_pipeline(
            cast("AnyPipeline", profile),
            target=cast("Target | str | None", target),  # what else is given is refused there
            rate=rate,
            max_nodes=None if max_nodes == MOST_NODES_OF_PLAN.value else max_nodes,
        )
    if target is None:
        raise InputError(
            f"{argument('target')} is missing; expected what is to be met, e.g. 'p99 <= 3s'"
        )
    profile = cast("JobProfile | ApplicationProfile | str | Path", profile)
    from headway.planner.checkpoint import Checkpoint
    from headway.planner.profiled_memory import MemoryRule
    from headway.planner.search import plan as search
    from headway.planner.space import SearchSpace

    deadline = deadline_in(target)
    if deadline is not None:
        query_arguments = {
            "rate": rate, "partitions": partitions, "trigger": trigger, "budget": budget,
            "checkpoint": checkpoint, "source_partitions": source_partitions, "bursts": bursts,
            "relaxation": relaxation, "from_start": from_start, "keys": keys,
            "key_type": key_type, "total_rows": total_rows,
        }  # fmt: skip
        from headway.api.deadlines import plan_deadline

        argument_names = given_arguments(query_arguments)
        if argument_names:
            raise InputError(f"{argument_names}: not with a deadline")
        return plan_deadline(
            profile,
            target=deadline,
            rows=rows,
            max_nodes=max_nodes,
            node_cores=node_cores,
            cores=cores,
            node_types=node_types,
            catalog=catalog,
            objective=objective,
            confidence=confidence,
            executor_memory_bytes=executor_memory_bytes,
            lower_memory=lower_memory,
            platform=platform,
            task_cpus=task_cpus,
        )
    if rows is not None:
        raise InputError(f"{argument('rows')}: only with a deadline, e.g. 'deadline <= 10m'")
    if rate is None:
        raise InputError(
            f"{argument('rate')} is missing; expected the input rate to plan for, e.g. '50k/s'"
        )
    first, others = promises_from(target)
    job = job_from(profile, first)
    per_executor = count(
        job.baseline.cores_per_executor if cores is None else cores, "cores", MOST_CORES
    )
    per_node = count(per_executor if node_cores is None else node_cores, "node_cores", MOST_CORES)
    executors_per_node = executors_by_cores(per_node, per_executor)
    per_task = count(
        job.baseline.task_cpus if task_cpus is None else task_cpus, "task_cpus", MOST_CORES
    )
    require_room_for_tasks(per_executor, per_task)
    confidence = confidence_level(confidence)
    types = node_types_from(node_types, catalog, platform)
    refuse_node_cores(node_cores, types)
    if budget is not None and not (is_number(budget) and 0 < budget < math.inf):
        raise InputError(f"{argument('budget')} is {budget!r}; expected a positive price per hour")
    others += during_bursts(bursts, [first, *others])
    if source_partitions is not None:
        job = at_source_partitions(job, source_partitions)
    counts = key_counts(keys, key_type=key_type, total_rows=total_rows)
    if counts is not None:
        from headway.planner.ordered import with_known_keys

        job = with_known_keys(job, counts)
    answer = search(
        job,
        arrivals_from(job, rate),
        first,
        SearchSpace(
            max_nodes=count(max_nodes, "max_nodes", MOST_NODES),
            executors_per_node=executors_per_node,
            cores_per_executor=per_executor,
            task_cpus=per_task,
            tasks_per_executor=job.baseline.tasks_per_executor,
            shuffle_partitions=None
            if partitions is None
            else count(partitions, "partitions", MOST_PARTITIONS),
            trigger_s=None if trigger is None else seconds(trigger, "trigger"),
            memory=MemoryRule(
                heap_bytes=heap_bytes(executor_memory_bytes),
                may_lower=flag(lower_memory, "lower_memory"),
            ),
        ),
        confidence=confidence,
        further_targets=others,
        objective=one_of(Objective, objective, "objective"),
        node_types=types,
        cores_per_executor=None if cores is None else per_executor,
        budget_per_hour=budget,
        checkpoint=None if checkpoint is None else one_of(Checkpoint, checkpoint, "checkpoint"),
        relaxation=flag(relaxation, "relaxation"),
        from_start=flag(from_start, "from_start"),
    )
    return with_changes(
        answer,
        prediction=with_next_run(answer.prediction, job, first),
        skew=later(lambda: _skew(answer, job, counts)),
    )


def _skew(answer: StreamAnswer, job: JobProfile, counts: KeyCounts | None) -> PlannedSkew | None:
    """Effect of the heaviest key on its stage, on the planned cores."""
    if counts is None and not any(stage.hot_share_ratio for stage in job.stages):
        return None
    from headway.planner.ordered import plan_skew
    from headway.planner.purchase import at_core_speed

    speed = 1.0 if answer.node_type is None else answer.node_type.core_speed_ratio
    return plan_skew(at_core_speed(job, speed), answer.configuration, answer.rate_per_s, counts)
