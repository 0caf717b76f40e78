"""What formats ask of a plan, be it of a streaming query or of a batch job."""

from __future__ import annotations

from collections.abc import Mapping

from headway.domain import DeadlinePlan, Plan

AnyPlan = Plan | DeadlinePlan


def is_batch(plan: AnyPlan) -> bool:
    """Whether what is planned ends by itself."""
    return isinstance(plan, DeadlinePlan)


def promise_of(plan: AnyPlan) -> str:
    """What it promises, in words."""
    return str(plan.deadline if isinstance(plan, DeadlinePlan) else plan.target)


def executors_of(plan: AnyPlan) -> int:
    """Its executors."""
    return plan.executors if isinstance(plan, DeadlinePlan) else plan.configuration.executors


def executor_cores_of(plan: AnyPlan) -> int:
    """Cores of each of its executors."""
    if isinstance(plan, DeadlinePlan):
        return plan.cores_per_executor
    return plan.configuration.cores_per_executor


def reader_options_of(plan: AnyPlan) -> Mapping[str, str]:
    """The rate limit of a streaming query, in the words of its source; empty where it has none."""
    return {key: value for key, value in query_options_of(plan).items() if key != "trigger"}


def query_options_of(plan: AnyPlan) -> Mapping[str, str]:
    """What a streaming query is given beside its configuration; a batch job has nothing such."""
    return {} if isinstance(plan, DeadlinePlan) else plan.query_options
