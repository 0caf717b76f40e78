"""Calls for jobs that end: the nodes that a deadline needs."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from headway.api.nodes_to_buy import spaces_of
from headway.domain import BatchAnswer, Deadline, EndingJob
from headway.domain.question import PlanQuestion
from headway.planner.kinds.deadline import plan_for_deadline, with_room_for_state


def plan_ending(job: EndingJob, question: PlanQuestion) -> BatchAnswer:
    """The fewest nodes, or the lowest cost of a run, with which a job meets its deadline."""
    (deadline,) = question.targets
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
    return replace(answer, refused_node_types=refused)
