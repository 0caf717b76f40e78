"""Batch jobs: the fewest nodes, or the lowest cost, to finish a job in time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from headway.assumptions.planning import CONFIDENCE, NODE_COUNTS_TRIED
from headway.digits import rounded_up
from headway.domain import (
    Advice,
    BatchAnswer,
    Deadline,
    DeadlinePlan,
    DeadlinePoint,
    EndingJob,
    Finding,
    FindingCode,
    Objective,
    Verdict,
)
from headway.planner.enumeration import (
    IS_SLOWER,
    Fewest,
    best_count,
    enumerated,
    fewest_of,
    spread_counts,
)
from headway.planner.kinds.batch_run_time import JobTime, run_time_of
from headway.planner.memory import fewest_nodes_by_memory
from headway.planner.profiled_memory import profiled_memory
from headway.planner.purchase import reserve_findings
from headway.planner.question import SearchSpace
from headway.planner.spark_settings import (
    changes_of,
    executor_conf,
    planned_settings,
    profiled_values,
)
from headway.units import S_PER_HOUR, counted, format_duration, spark_memory_text, unit_of_duration
from headway.words.predictions import duration_against


def with_room_for_state(space: SearchSpace, job: EndingJob) -> SearchSpace | str:
    """The numbers of nodes whose executors have memory for the state of a stream, or why none."""
    if job.backlog is None:
        return space
    heap_bytes = space.executor_memory_bytes or profiled_memory(job.application).heap_bytes
    with_heap = replace(space, executor_memory_bytes=heap_bytes)
    min_nodes = fewest_nodes_by_memory(job.backlog.profile, with_heap)
    if min_nodes is None:
        return (
            f"{counted(space.max_nodes, 'node')}, the most that are allowed, have no memory for "
            f"the state of the query in executors with a heap of {spark_memory_text(heap_bytes)}; "
            "expected more nodes, or larger ones"
        )
    return replace(space, min_nodes=min_nodes)


def plan_for_deadline(
    profile: EndingJob,
    deadline: Deadline,
    spaces: Sequence[SearchSpace],
    *,
    confidence: float = CONFIDENCE.value,
    objective: Objective = "nodes",
) -> BatchAnswer:
    """The fewest nodes with which a batch job finishes in time, or the cheapest ones.

    The job is a batch application, or the backlog of a stream. Run times are exceeded with at most
    the remaining probability of ``confidence``. The ``objective`` is the fewest nodes, the lowest
    cost per run, or the shortest run. Raises InputError if the profile is not that of a batch job,
    or its cores are not recorded.

    **(P16)** Batch jobs: the recorded stages form the graph of (J1)-(J5). A stage without parents
    waits for the stage that ended last before it started, since jobs follow each other as the
    program submits them. The tasks of a stage vary as recorded, but by no more than the spread with
    which the longest of them (X2) is the longest recorded one. Light stages are work distributed
    over the slots, but take no less than what their longest recorded tasks add to the longest
    chain of all stages. The driver's time alone is added. If the recorded run took longer than the
    model at its slots, the total is scaled by the ratio; if it took less, the stages are, since the
    driver's time was measured. No run time is below the driver's time and the recorded work over
    the slots (less what overlapped on record, since Spark counts a task until the driver has its
    result), nor below the physical floor: the driver's time, and the longest chain of stages with
    the longest recorded task of each. Declared figures are not scaled (P19). Nor is a log without
    its start, its end or more than a hundredth of its tasks: that plan is of the recorded work, and
    not calibrated. With less than half of the tasks, there is no plan. A plan adds to the logarithm
    the normal quantile of the confidence times `s` of (P2), with `s_r = 0.08`, one parameter fitted
    to one run (`k = m = 1`: the recorded run and the future run deviate by as much each), the
    doublings of slots, and those of core speed (P11). It is calibrated up to two doublings of
    slots. The expected run time falls with every slot, but its upper end rises again once more
    slots gain less than they add in uncertainty. And if stages compete for slots, (J4), which
    follows them in the mean only, may predict a longer run for more slots although the simulated
    schedule is not longer. Both are shown beside the table.
    """
    profile.require_can_promise(deadline)
    offers = [_OfBatchJob.of(profile, deadline, space, confidence) for space in spaces]
    index, run, fewest = enumerated(offers, objective)
    return _answer(profile, offers[index], run, feasible=fewest.nodes is not None)


def fewest_in_time(
    profile: EndingJob, deadline: Deadline, space: SearchSpace, confidence: float
) -> int | None:
    """The fewest nodes with which a batch job finishes in time; None if no number is enough."""
    return _OfBatchJob.of(profile, deadline, space, confidence).fewest().nodes


def lowest_deadline(profile: EndingJob, confidence: float) -> Deadline:
    """The lowest deadline, of three digits in its unit, that the profiled slots meet."""
    job = run_time_of(profile)
    run_s = job.planned_s(job.seen_slots, confidence)
    _, unit_s = unit_of_duration(format_duration(run_s))
    return Deadline(limit_s=unit_s * rounded_up(run_s / unit_s))


@dataclass(frozen=True, kw_only=True)
class _OfBatchJob:
    """A batch job on the nodes of an offer: an `Offered`."""

    job: JobTime
    deadline: Deadline
    space: SearchSpace
    confidence: float

    @classmethod
    def of(
        cls, profile: EndingJob, deadline: Deadline, space: SearchSpace, confidence: float
    ) -> _OfBatchJob:
        job = run_time_of(profile, space.core_speed_ratio)
        return cls(job=job, deadline=deadline, space=space, confidence=confidence)

    @property
    def most_room(self) -> float:
        return self.space.num_slots(self.space.max_nodes) * self.space.core_speed_ratio

    @cached_property
    def table(self) -> tuple[DeadlinePoint, ...]:
        """Run times for the numbers of nodes that are shown."""
        counts = spread_counts(self.space.max_nodes, NODE_COUNTS_TRIED.value)
        min_nodes = self.space.min_nodes
        return tuple(map(self.point, sorted({max(nodes, min_nodes) for nodes in counts})))

    def point(self, nodes: int) -> DeadlinePoint:
        slots, cost_per_hour = self.space.num_slots(nodes), self.space.cost_per_hour(nodes)
        mean_s = self.job.mean_s(slots)
        return DeadlinePoint(
            nodes=nodes,
            mean_s=mean_s,
            planned_s=self.job.planned_s(slots, self.confidence),
            cost_per_run=None if cost_per_hour is None else cost_per_hour * mean_s / S_PER_HOUR,
        )

    def against(self, run_s: float) -> str:
        return duration_against(run_s, self.deadline.limit_s)

    def fewest(self) -> Fewest:
        """Every count is tried, since more nodes may take longer because of their uncertainty."""
        max_nodes = self.space.max_nodes
        counts = range(self.space.min_nodes, max_nodes + 1)
        return fewest_of(counts, self.keeps, max_nodes=max_nodes, tries_every=True)

    def keeps(self, nodes: int) -> bool:
        """Only counts whose slots have enough time for the work are examined further."""
        slots, limit_s = self.space.num_slots(nodes), self.deadline.limit_s
        is_possible = self.job.least_s(slots, self.confidence) <= limit_s
        return is_possible and self.point(nodes).planned_s <= limit_s

    def size(self, fewest: int, objective: Objective) -> DeadlinePoint:
        if objective == "nodes":
            return self.point(fewest)
        counts = [point.nodes for point in self.table]

        def value(nodes: int) -> float:
            point = self.point(nodes)
            if point.planned_s > self.deadline.limit_s:
                return math.inf
            return (point.cost or 0.0) if objective == "cost" else point.planned_s

        return self.point(best_count([*counts, fewest], value))

    def nearest(self) -> DeadlinePoint:
        return min(self.table, key=_shortest)


def _shortest(point: DeadlinePoint) -> tuple[float, int]:
    return point.planned_s, point.nodes


def _answer(
    profile: EndingJob, offer: _OfBatchJob, run: DeadlinePoint, *, feasible: bool
) -> BatchAnswer:
    job, space = offer.job, offer.space
    slots, floor_s = space.num_slots(run.nodes), job.floor_s()
    findings = tuple(job.findings(slots))
    probability: float | None = None  # unknown for a job of which the log has a part
    if not any(finding.code is FindingCode.LOG_INCOMPLETE for finding in findings):
        promised_probability = offer.confidence if feasible else 0.0
        probability = max(job.kept_probability(slots, offer.deadline.limit_s), promised_probability)
    executors = run.nodes * space.executors_per_node
    conf = executor_conf(profile, executors, space)
    settings = planned_settings(conf, profiled_values(profile))
    return DeadlinePlan(
        feasible=feasible,
        deadline=offer.deadline,
        nodes=run.nodes,
        executors=executors,
        cores_per_executor=space.cores_per_executor,
        task_cpus=space.task_cpus,
        run=run,
        frontier=offer.table,
        floor_s=floor_s,
        modelled_ratio=job.modelled_ratio,
        parts_s=job.parts_s(slots),
        confidence=offer.confidence,
        node_type=space.node_type,
        binding=tuple(_binding(offer, run, floor_s, feasible=feasible)),
        spark_conf=conf,
        calibrated=job.is_calibrated(slots),
        changes=tuple(changes_of(settings)) if profile.provenance == "measured" else (),
        settings=settings,
        spark_version=profile.application.spark_version,
        declared=profile.declared,
        findings=(
            *findings,
            *(() if space.node_type is None else reserve_findings(space.node_type)),
            *_why_no_better(job, offer.table),
        ),
        advice=tuple(_settling_advice(offer, slots, probability)),
        kept_probability=probability,
        backlog=None if profile.backlog is None else profile.backlog.planned,
    )


def _settling_advice(offer: _OfBatchJob, slots: int, probability: float | None) -> Iterator[Advice]:
    """Effect of a run of this size on the verdict, if it is too close to tell: theory.md (P16).

    A profile of that run would have these slots and cores.
    """
    if probability is None:
        return
    job, verdict = offer.job, Verdict.of(probability, offer.confidence)
    now = job.spread_ratio(slots)
    then = replace(job, core_speed_ratio=1.0).spread_ratio(job.seen_slots)
    # What whole per cents do not show is no gain.
    if verdict is not Verdict.TOO_CLOSE or not round(then, 2) < round(now, 2):
        return
    text = (
        f"a run of this configuration would narrow the uncertainty of its run time from {now:.0%} "
        f"to {then:.0%}"
    )
    yield Advice(text=text)


def _why_no_better(job: JobTime, points: Sequence[DeadlinePoint]) -> Iterator[Finding]:
    """Why more nodes are not predicted to be faster, if so: theory.md (P16).

    Sizes further from the profiled one are less certain, in the end by more than
    they gain; and (J4) follows stages that compete for slots in the mean only.
    """
    best = min(points, key=_shortest)
    shortest_s, rises, less_sure = math.inf, [], False
    for point in points:
        if round(point.mean_s / shortest_s, 2) > 1.0:  # what whole per cents show
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
                "mean_s": best.mean_s,
                "lowest_mean_s": min(
                    larger.mean_s for larger in points if larger.nodes > best.nodes
                ),
                "seen_slots": float(job.seen_slots),
            },
        )
    if rises:
        numbers = {"nodes": float(rises[0][0]), "ratio": max(ratio for _, ratio in rises)}
        yield Finding(code=FindingCode.MODEL_RISES, numbers=numbers)


def _binding(
    offer: _OfBatchJob, run: DeadlinePoint, floor_s: float, *, feasible: bool
) -> Iterator[str]:
    if feasible:
        yield f"{offer.deadline}: the run takes up to {offer.against(run.planned_s)}"
        if run.nodes == 1:
            yield "one node is the minimum"
        elif run.nodes == offer.space.min_nodes:
            yield "executor memory: fewer nodes have no room for the state of the query"
        else:
            fewer = offer.point(run.nodes - 1)
            is_met = fewer.planned_s <= offer.deadline.limit_s
            slower = IS_SLOWER if is_met and fewer.planned_s > run.planned_s else ""
            yield f"one node fewer: up to {offer.against(fewer.planned_s)}{slower}"
        return
    nodes = counted(run.nodes, "node")
    yield f"the shortest run takes up to {offer.against(run.planned_s)}, with {nodes}"
    if floor_s > offer.deadline.limit_s:
        yield (
            "no number of nodes suffices: driver plus the longest chain of stages already take "
            f"{offer.against(floor_s)}"
        )
