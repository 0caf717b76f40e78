"""Calls for jobs that end: the nodes that a deadline needs."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from headway.api.nodes_to_buy import spaces_of
from headway.domain import BatchAnswer, Deadline, EndingJob, Finding, FindingCode
from headway.domain.question import PlanQuestion
from headway.planner.kinds.deadline import lowest_deadline, plan_for_deadline, with_room_for_state


def plan_ending(job: EndingJob, question: PlanQuestion) -> BatchAnswer:
    """The fewest nodes, or the lowest cost of a run, with which a job meets its deadline."""
    (deadline,) = question.targets or (lowest_deadline(job, question.confidence),)
    spaces, refused = spaces_of(
        job,
        question,
        lambda nodes: with_room_for_state(
            replace(nodes, tasks_per_executor=job.slots.tasks_per_executor), job
        ),
    )
    answer = plan_for_deadline(
        job,
        cast("Deadline", deadline),
        spaces,
        confidence=question.confidence,
        objective=question.objective,
    )
    findings = answer.findings
    if not question.targets:
        names = {"target": str(deadline)}
        findings = (Finding(code=FindingCode.TARGET_OF_PROFILE, names=names), *findings)
    return replace(answer, findings=findings, refused_node_types=refused)
