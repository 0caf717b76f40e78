"""A pytest plugin: plans as a fixture, and promises as assertions.

    from headway.pytest_plugin import assert_meets

    def test_orders_keep_their_promise(headway_plan):
        assert_meets(headway_plan("orders.yaml"), "p99 <= 2s")

pytest loads this module in every run of an environment that has Headway: it imports pytest only,
and everything else when a test asks for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from headway.domain import LatencyDistribution, Plan, Prediction, Target


class Planner(Protocol):
    """What the fixture ``headway_plan`` is: a spec file, or a profile with a rate and a target."""

    def __call__(self, source: str | Path, **options: Any) -> Plan: ...


@pytest.fixture
def headway_plan() -> Planner:
    """Plans a job: ``headway_plan("orders.yaml")``, or ``headway_plan("job.profile.yaml",
    rate="50k/s", target="p99 <= 3s")`` with any option of ``headway.plan``.
    """

    def planned(source: str | Path, **options: Any) -> Plan:
        if options:
            from headway.api import plan

            return plan(source, **options)
        from headway.api.specs import plan_spec

        return plan_spec(source).plan

    return planned


def assert_meets(plan: Plan, *targets: str) -> None:
    """Fail the test unless a plan keeps its own promise, and each of ``targets`` beside it.

    Parameters
    ----------
    plan : Plan
        What to hold against them.
    targets : str
        Promises such as ``p99 <= 2s`` or ``batch mean <= 500ms``; held against the upper end of
        the 90 % interval where the prediction has one. Mean, p50, p95 and p99 can be held.

    Raises
    ------
    AssertionError
        With the figures, if one is not kept.
    InputError
        If a target is none, or of a quantile that the prediction does not tell.
    """
    from headway.domain import Target

    __tracebackhide__ = True
    if not plan.feasible:
        raise AssertionError(f"not feasible: {plan.target}: {'; '.join(plan.binding)}")
    for text in targets:
        target = Target.parse(text)
        found_s = _upper_s(plan, target)
        if found_s > target.limit_s:
            raise AssertionError(f"{target} is not kept: up to {found_s:.3g} s")


def _upper_s(plan: Plan, target: Target) -> float:
    """What a statistic may be, at its upper end [s]; the plan's own is at its own confidence."""
    from headway.errors import InputError

    planned = plan.target
    if (planned.metric, planned.quantile) == (target.metric, target.quantile):
        return plan.planned_latency_s
    distribution = _distribution(plan.prediction, target)
    if distribution is None:
        raise InputError(f"target '{target}': the plan predicts no such latency")
    plain = {
        "mean": distribution.mean_s,
        "p50": distribution.p50_s,
        "p95": distribution.p95_s,
        "p99": distribution.p99_s,
    }
    if target.statistic not in plain:
        raise InputError(f"target '{target}': expected one of mean, p50, p95, p99")
    interval = {
        "mean": distribution.interval90_mean_s,
        "p99": distribution.interval90_p99_s,
    }.get(target.statistic)
    return plain[target.statistic] if interval is None else interval.high


def _distribution(prediction: Prediction, target: Target) -> LatencyDistribution | None:
    return {
        "tuple": prediction.tuple_latency,
        "batch": prediction.batch_duration,
        "window": prediction.window_latency,
    }[str(target.metric)]
