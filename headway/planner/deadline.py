"""Batch jobs: the fewest nodes, or the lowest cost, with which a job is done in time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headway.assumptions.advice import FAR_OFF_RATIO
from headway.assumptions.planning import CONFIDENCE, NODE_COUNTS_TRIED, SAME_FIGURE_RATIO
from headway.assumptions.predictions import CALIBRATED_DOUBLINGS
from headway.domain import (
    ApplicationProfile,
    BatchAnswer,
    Change,
    Deadline,
    DeadlinePlan,
    DeadlinePoint,
    Finding,
    FindingCode,
    InfeasibleDeadlinePlan,
    NodeType,
    Objective,
    PlannedSetting,
    Provenance,
)
from headway.domain.configuration import task_slots
from headway.domain.job import JobTime
from headway.models.job.calibration import is_within_reach
from headway.planner.batch_run_time import BatchRunTime, seen_slots_of
from headway.planner.profiled_memory import (
    before_words,
    beside_heap_conf,
    profiled_sizes,
    same_value,
)
from headway.planner.purchase import best_of, reserve_findings
from headway.sparkconf import KNOBS, KNOBS_BY_KEY, STREAMING
from headway.units import S_PER_HOUR, counted, format_duration, spark_memory_text


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineSpace:
    """What may be bought for a batch job."""

    max_nodes: int
    executors_per_node: int
    cores_per_executor: int
    task_cpus: int = 1
    node_type: NodeType | None = None
    executor_memory_bytes: int | None = None

    def num_slots(self, nodes: int) -> int:
        """Task slots of a number of nodes."""
        return task_slots(nodes * self.executors_per_node, self.cores_per_executor, self.task_cpus)


def plan_for_deadline(
    profile: ApplicationProfile,
    deadline: Deadline,
    spaces: Sequence[DeadlineSpace],
    *,
    confidence: float = CONFIDENCE.value,
    objective: Objective = Objective.NODES,
) -> BatchAnswer:
    """The fewest nodes with which a batch job is done in time, or the cheapest of those.

    Parameters
    ----------
    profile : ApplicationProfile
        The job, of the kind 'batch'.
    deadline : Deadline
        The promise.
    spaces : sequence of DeadlineSpace
        What is on offer.
    confidence : float in [0.5, 1)
        Plan on run times that are exceeded with at most the remaining probability.
    objective : Objective
        Fewest nodes, lowest cost of a run, or shortest run.

    Raises
    ------
    InputError
        If the profile is not that of a batch job, or its cores are not on record.

    Notes
    -----
    **(P16)** Batch jobs: the stages on record as the graph of (J1)-(J5), where one without parents
    waits for the stage that ended last before it began, since jobs follow each other as the program
    submits them; light stages are work shared out over the slots, and the driver's time alone is
    added. The whole is scaled by the run on record over the model at its slots; what was declared
    is scaled by none (P19). A plan takes the normal quantile of the confidence times `s` of (P2) in
    the logarithm, with `s_r = 0.08`, one thing learned of one run (`k = m = 1`: the run on record
    and the run to come are off by as much each), the doublings of slots, and those of core speed
    (P11). It is calibrated up to two doublings of slots. The expected run time falls with every
    slot, but the upper end rises again once what more slots win is less than what the plan is less
    sure of; and where stages compete for slots, (J4), which follows them in the mean only, may say
    longer for more slots although the simulated schedule does not. Both are shown beside the table.

    The stage graph of (J1)-(J5), scaled to the run on record.
    """
    profile.require_can_promise(deadline)
    job = BatchRunTime.of(profile, seen_slots_of(profile))
    every = [_plan(job, deadline, space, confidence, objective) for space in spaces]
    feasible = [one for one in every if one.feasible]
    if not feasible:
        return min(every, key=lambda one: one.planned_s)
    return best_of(feasible, objective)


def fewest_in_time(
    profile: ApplicationProfile, deadline: Deadline, space: DeadlineSpace, confidence: float
) -> int | None:
    """The fewest nodes with which a batch job is done in time; None where no number will do.

    Parameters
    ----------
    profile : ApplicationProfile
        The job, of the kind 'batch', with its cores on record.
    deadline, space, confidence
        As of :func:`plan_for_deadline`, which finds the same.
    """
    job = BatchRunTime.of(profile, seen_slots_of(profile))
    found = _fewest_in_time(job, space, deadline, confidence)
    return None if found is None else found.nodes


def _plan(
    job: BatchRunTime,
    deadline: Deadline,
    space: DeadlineSpace,
    confidence: float,
    objective: Objective,
) -> BatchAnswer:
    points = [_point(job, space, nodes, confidence) for nodes in _node_counts(space.max_nodes)]
    fewest = _fewest_in_time(job, space, deadline, confidence)
    looked_at = points if fewest is None else [*points, fewest]
    in_time = [point for point in looked_at if point.planned_s <= deadline.limit_s]
    if objective is Objective.COST and in_time:
        run = min(in_time, key=lambda point: (point.cost_per_run or 0.0, point.nodes))
    elif fewest is None or objective is Objective.LATENCY:
        run = min(looked_at, key=lambda point: (point.planned_s, point.nodes))
    else:
        run = fewest
    speed = 1.0 if space.node_type is None else space.node_type.core_speed_ratio
    floor_s = job.mean_s(sum(stage.num_tasks for stage in job.dag.stages), speed)
    fewer = None if run.nodes == 1 else _point(job, space, run.nodes - 1, confidence)
    executors = run.nodes * space.executors_per_node
    conf = {
        KNOBS["executors"].key: str(executors),
        KNOBS["cores_per_executor"].key: str(space.cores_per_executor),
        **_task_cpus_conf(job.profile, space),
        **_memory_conf(job.profile, space),
        "spark.dynamicAllocation.enabled": "false",
    }
    settings = tuple(planned_settings(job.profile, conf))
    slots = space.num_slots(run.nodes)
    in_range = bool(is_within_reach(job.doublings_beyond(slots)))
    measured = job.profile.provenance is Provenance.MEASURED
    return (DeadlinePlan if in_time else InfeasibleDeadlinePlan)(
        deadline=deadline,
        nodes=run.nodes,
        executors=executors,
        cores_per_executor=space.cores_per_executor,
        task_cpus=space.task_cpus,
        run=run,
        frontier=tuple(points),
        floor_s=floor_s,
        modelled_ratio=job.modelled_ratio,
        parts_s=job.parts_s(slots, speed),
        confidence=confidence,
        node_type=space.node_type,
        binding=tuple(_binding(deadline, run, fewer, floor_s, feasible=bool(in_time))),
        spark_conf=conf,
        calibrated=in_range and measured,
        changes=tuple(_changes(settings)) if measured else (),
        settings=settings,
        spark_version=job.profile.application.spark_version,
        declared=job.profile.declared,
        findings=(
            *_findings(job, None if in_range else slots),
            *(() if space.node_type is None else reserve_findings(space.node_type)),
            *_why_no_better(job, points),
        ),
    )


def _why_no_better(job: BatchRunTime, points: Sequence[DeadlinePoint]) -> Iterator[Finding]:
    """Why more nodes are said to do no better, where they are.

    Notes
    -----
    theory.md (P16). The plan is less sure of sizes further from the profiled one, by more than
    they win at last; and (J4) follows stages that compete for slots in the mean only.
    """
    best = min(points, key=lambda point: (point.planned_s, point.nodes))
    shortest_s, rises, less_sure = math.inf, [], False
    for point in points:
        if point.mean_s > SAME_FIGURE_RATIO.value * shortest_s:
            rises.append((point.nodes, point.mean_s / shortest_s))
        elif point.nodes > best.nodes and point.planned_s > best.planned_s:
            less_sure = True
        shortest_s = min(shortest_s, point.mean_s)
    if less_sure:
        yield Finding(
            code=FindingCode.MORE_NODES_LESS_SURE,
            numbers={
                "nodes": float(best.nodes),
                "planned_s": best.planned_s,
                "seen_slots": float(job.seen_slots),
            },
        )
    if rises:
        numbers = {"nodes": float(rises[0][0]), "ratio": max(ratio for _, ratio in rises)}
        yield Finding(code=FindingCode.MODEL_RISES, numbers=numbers)


def _task_cpus_conf(profile: ApplicationProfile, space: DeadlineSpace) -> dict[str, str]:
    """What a task takes, unless it is Spark's one core and always was."""
    if space.task_cpus == profile.cluster.task_cpus == 1:
        return {}
    return {KNOBS["task_cpus"].key: str(space.task_cpus)}


def _memory_conf(profile: ApplicationProfile, space: DeadlineSpace) -> dict[str, str]:
    """The heap, and what the run on record set beside it."""
    heap = space.executor_memory_bytes
    beside = beside_heap_conf(profile.application)
    if heap is None:
        return beside
    return {KNOBS["executor_memory"].key: spark_memory_text(heap), **beside}


def _profiled_values(profile: ApplicationProfile) -> dict[str, str]:
    """What the keys of a plan were in the run on record, by Spark's key, where that is known."""
    if profile.declared is not None:
        return {}
    cluster = profile.cluster
    counts = {
        KNOBS["executors"].key: cluster.executors,
        KNOBS["cores_per_executor"].key: cluster.cores_per_executor,
        KNOBS["task_cpus"].key: cluster.task_cpus,
    }
    known = {key: str(count) for key, count in counts.items() if count is not None}
    properties = profile.application.properties
    streaming = {key: properties[key] for key in STREAMING if key in properties}
    return known | streaming | profiled_sizes(profile.application)


def planned_settings(
    profile: ApplicationProfile, conf: Mapping[str, str]
) -> Iterator[PlannedSetting]:
    """Every key of the plan beside what it was in the run on record."""
    had = _profiled_values(profile)
    for key, value in conf.items():
        knob = KNOBS_BY_KEY[key]
        yield PlannedSetting(
            setting=knob.label,
            key=key,
            value=value,
            applies=knob.applies,
            profiled=value if same_value(key, had.get(key), value) else had.get(key),
        )


def _changes(settings: Sequence[PlannedSetting]) -> Iterator[Change]:
    """What the next run is submitted with instead of what the run on record had."""
    for one in settings:
        if one.profiled != one.value:
            yield Change(
                setting=one.setting,
                before=one.profiled or before_words(one.key, {}),
                after=one.value,
                applies=one.applies,
            )


def _point(job: JobTime, space: DeadlineSpace, nodes: int, confidence: float) -> DeadlinePoint:
    slots = space.num_slots(nodes)
    speed = 1.0 if space.node_type is None else space.node_type.core_speed_ratio
    mean_s = job.mean_s(slots, speed)
    price = None if space.node_type is None else space.node_type.price_per_hour
    return DeadlinePoint(
        nodes=nodes,
        mean_s=mean_s,
        planned_s=job.planned_s(slots, speed, confidence),
        cost_per_run=None if price is None else nodes * price * mean_s / S_PER_HOUR,
    )


def _node_counts(max_nodes: int) -> list[int]:
    """All counts, or of many so many that each is a little more than the one before."""
    if max_nodes <= NODE_COUNTS_TRIED.value:
        return list(range(1, max_nodes + 1))
    ratio = max_nodes ** (1.0 / (NODE_COUNTS_TRIED.value - 1))
    return sorted({min(round(ratio**place), max_nodes) for place in range(NODE_COUNTS_TRIED.value)})


def _fewest_in_time(
    job: JobTime, space: DeadlineSpace, deadline: Deadline, confidence: float
) -> DeadlinePoint | None:
    """The first node count that is in time: every count is looked at, from the first whose slots
    have time for the work. More nodes may take longer, since the plan is less sure of them."""
    speed = 1.0 if space.node_type is None else space.node_type.core_speed_ratio
    for nodes in range(1, space.max_nodes + 1):
        if job.least_s(space.num_slots(nodes), speed, confidence) > deadline.limit_s:
            continue
        point = _point(job, space, nodes, confidence)
        if point.planned_s <= deadline.limit_s:
            return point
    return None


def _binding(
    deadline: Deadline,
    run: DeadlinePoint,
    fewer: DeadlinePoint | None,
    floor_s: float,
    *,
    feasible: bool,
) -> Iterator[str]:
    if feasible:
        yield f"{deadline}: the run takes up to {format_duration(run.planned_s)}"
        if fewer is None:
            yield "one node is the minimum"
        else:
            yield f"one node fewer: up to {format_duration(fewer.planned_s)}"
        return
    nodes = counted(run.nodes, "node")
    yield f"the shortest run takes up to {format_duration(run.planned_s)}, with {nodes}"
    if floor_s > deadline.limit_s:
        yield (
            "no number of nodes suffices: driver plus the longest chain of stages already take "
            f"{format_duration(floor_s)}"
        )


def _findings(job: BatchRunTime, slots_far_off: int | None) -> Iterator[Finding]:
    """What speaks against the plan; ``slots_far_off`` are its slots where few like it were seen."""
    if job.profile.provenance is Provenance.DECLARED:
        yield Finding(code=FindingCode.DECLARED)
        return
    if slots_far_off is not None:
        yield Finding(
            code=FindingCode.SLOTS_FAR_OFF,
            numbers={
                "slots": slots_far_off,
                "least": job.seen_slots,
                "most": job.seen_slots,
                "reach_doublings": CALIBRATED_DOUBLINGS.value,
            },
        )
    ratio = job.modelled_ratio
    if not 1.0 / FAR_OFF_RATIO.value <= ratio <= FAR_OFF_RATIO.value:
        yield Finding(code=FindingCode.MODEL_FAR_OFF, numbers={"modelled_ratio": ratio})
    if job.profile.num_jobs_failed:
        numbers: dict[str, float] = {"num_jobs": job.profile.num_jobs_failed}
        yield Finding(code=FindingCode.JOBS_FAILED, numbers=numbers)
    largest = max(job.profile.stages, key=lambda stage: stage.task_time_s)
    mean_s, longest_s = largest.task_time.mean_s, largest.task_time.max_s
    if longest_s > 3.0 * mean_s:
        numbers = {"stage_id": largest.id, "longest_s": longest_s, "mean_s": mean_s}
        yield Finding(code=FindingCode.SKEWED_STAGE, numbers=numbers)
