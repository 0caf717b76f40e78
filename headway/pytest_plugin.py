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
    from headway.domain import DeadlinePlan, LatencyDistribution, Plan, Prediction, Target


class Planner(Protocol):
    """What the fixture ``headway_plan`` is: a spec file, or a profile with a rate and a target."""

    def __call__(self, source: str | Path, **options: Any) -> Plan | DeadlinePlan: ...


@pytest.fixture
def headway_plan() -> Planner:
    """Plans a job: ``headway_plan("orders.yaml")``, or ``headway_plan("job.profile.yaml",
    rate="50k/s", target="p99 <= 3s")`` with any option of ``headway.plan``, of a batch job
    ``headway_plan("nightly.profile.yaml", target="deadline <= 10m")``.
    """

    def planned(source: str | Path, **options: Any) -> Plan | DeadlinePlan:
        if options:
            from headway import plan, plan_deadline

            if str(options.get("target", "")).lstrip().startswith("deadline"):
                return plan_deadline(source, **options)
            return plan(source, **options)
        from headway.api.specs import plan_spec

        return plan_spec(source).plan

    return planned


def assert_meets(plan: Plan | DeadlinePlan, *targets: str) -> None:
    """Fail the test unless a plan keeps its own promise, and each of ``targets`` beside it.

    Parameters
    ----------
    plan : Plan or DeadlinePlan
        What to hold against them.
    targets : str
        Promises such as ``p99 <= 2s`` or ``batch mean <= 500ms``; held against the upper end of
        the 90% interval where the prediction has one. Mean, p50, p95 and p99 can be held. Of a
        batch job ``deadline <= 10m``.

    Raises
    ------
    AssertionError
        With the figures, if one is not kept.
    InputError
        If a target is none, or of something that the plan does not tell.
    """
    from headway.domain import Deadline, DeadlinePlan, Target, parse_promise
    from headway.errors import InputError

    __tracebackhide__ = True
    if not plan.feasible:
        promised = plan.deadline if isinstance(plan, DeadlinePlan) else plan.target
        raise AssertionError(f"not feasible: {promised}: {'; '.join(plan.binding)}")
    for text in targets:
        target = parse_promise(text)
        if isinstance(plan, DeadlinePlan):
            if not isinstance(target, Deadline):
                raise InputError(f"target '{target}': a batch job has a deadline only")
            found_s = plan.run.planned_s
        elif isinstance(target, Target):
            found_s = _upper_s(plan, target)
        else:
            raise InputError(f"target '{target}': expected a latency, e.g. 'p99 <= 2s'")
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
