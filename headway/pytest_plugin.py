"""A pytest plugin: plans as a fixture, and targets as assertions.

    from headway.pytest_plugin import assert_meets

    def test_orders_keep_their_promise(headway_plan):
        assert_meets(headway_plan("orders.yaml"), "p99 <= 2s")

pytest loads this module in every run of an environment that has Headway: it imports pytest only,
and everything else when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from headway.domain import Answer, AnyPromise

Planner: TypeAlias = "Callable[..., Answer]"
"""The fixture ``headway_plan``: takes a spec file, or a profile with a rate and a target."""


@pytest.fixture
def headway_plan() -> Planner:
    """Plans a job: ``headway_plan("orders.yaml")``, or ``headway_plan("job.profile.yaml",
    rate="50k/s", target="p99 <= 3s")`` with any option of ``headway.plan``, of a batch job
    ``headway_plan("nightly.profile.yaml", target="deadline <= 10m")``.
    """

    def planned(source: str | Path, **options: Any) -> Answer:
        __tracebackhide__ = True
        from headway.errors import HeadwayError

        try:
            if options:
                from headway import plan

                answer: Answer = plan(source, **options)
                return answer
            from headway.api.specs import plan_spec

            spec_answer: Answer = plan_spec(source).plan
            return spec_answer
        except HeadwayError as error:
            # The message says it all: the test's own line is where to look.
            raise error.with_traceback(None) from None

    return planned


def assert_meets(plan: Answer, *targets: str) -> None:
    """Fail the test unless a plan meets its own targets and each of ``targets``.

    Parameters
    ----------
    plan : Plan or DeadlinePlan, or one that is not feasible
        The plan to check.
    targets : str
        Targets such as ``p99 <= 2s`` or ``batch mean <= 500ms``; compared with the upper end of the
        90% interval if the prediction has one. Mean, p50, p95 and p99 can be checked. For a batch
        job ``deadline <= 10m``.

    Raises
    ------
    AssertionError
        With the figures, if one is missed.
    InputError
        If a text is not a target, or is about something that the plan does not predict.
    """
    __tracebackhide__ = True
    from headway.domain import parse_promise
    from headway.errors import HeadwayError
    from headway.units import format_duration

    if not plan.feasible:
        raise AssertionError(f"infeasible: {plan.promises[0]}: {'; '.join(plan.binding)}")
    for text in targets:
        try:
            promise = parse_promise(text)
            found_s = plan.most_s(promise)
        except HeadwayError as error:
            raise error.with_traceback(None) from None
        if found_s > promise.limit_s:
            words = "predicted" if _is_predicted(plan, promise, found_s) else "up to"
            raise AssertionError(f"{promise} is missed: {words} {format_duration(found_s)}")


def _is_predicted(plan: Answer, promise: AnyPromise, value_s: float) -> bool:
    """Whether a time is the prediction itself, which has no interval for p50 and p95."""
    from headway.domain import Target

    if plan.prediction is None or not isinstance(promise, Target):
        return False
    distribution = plan.prediction.latency(promise.metric)
    return distribution is not None and (
        distribution.statistics_s.get(promise.statistic) == value_s
    )
