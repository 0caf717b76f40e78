"""A convex relaxation of the plan: fractional nodes, rows and partitions, and no noise.

Imports cvxpy when it is called, which takes longer than a plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headway.domain import StageProfile, Target
from headway.errors import HeadwayError, require_packages
from headway.models.estimation.batch_noise import noise_ratio_at
from headway.models.laws.normal import ndtri
from headway.planner.noise_free import fastest_levels
from headway.planner.promised_latency import PromisedLatency
from headway.planner.question import Question

if TYPE_CHECKING:
    from cvxpy import Variable

_LEAST = 1e-9
_SOLVED = ("optimal", "optimal_inaccurate")
_INFEASIBLE = ("infeasible", "infeasible_inaccurate")
_ACCURACY_RATIO = 0.999  # possible distance of an interior point from the optimum


def relaxed_nodes(question: Question) -> float:
    """A lower bound of the number of nodes of any plan for the question, not whole.

    It is ``inf`` if no number of nodes is sufficient. Raises HeadwayError if the solver fails; with
    its status.

    **(P15)** Convex relaxation: minimise slots `C` over rows `n`, partitions `P`, interval `T` and
    level times `M_ℓ` subject to `λ T ≤ n`, `fd + Σ M_ℓ ≤ D ≤ T`, `wT + D ≤ A` of (P5),
    `fΣ_i T_i t_i/C ≤ M_ℓ` and, for a stage alone on its level, `ft ≤ M_ℓ`, with `t` of (T2). All
    terms are sums of powers: a geometric program (Boyd et al. 2007, doi:10.1007/s11081-007-9001-7),
    solved by cvxpy. Every plan is one of its points, so `C` over the slots of a node is a lower
    bound of the nodes.
    """
    require_packages("capacity", "the convex relaxation", "cvxpy")
    import cvxpy

    slots, rows, partitions, interval_s, duration_s = (cvxpy.Variable(pos=True) for _ in range(5))
    profile, space, rate_per_s = question.profile, question.space, question.rate_per_s
    levels = list(fastest_levels(question))
    spans_s = [cvxpy.Variable(pos=True) for _ in levels]
    # A phase that takes no time has no logarithm.
    driver_s = max(profile.driver_s, _LEAST)
    factor = _least_factor(question, driver_s)
    constraints = [
        rate_per_s * interval_s <= rows,
        factor * driver_s + sum(spans_s) <= duration_s,
        duration_s <= interval_s,
        partitions >= 1,
    ]
    if space.shuffle_partitions is not None:
        constraints.append(partitions == space.shuffle_partitions)
    if space.trigger_s:
        constraints.append(interval_s >= space.trigger_s)
    for span_s, pool in zip(spans_s, levels, strict=True):
        constraints += [
            factor * bound <= span_s for bound in _level_bounds(pool, slots, rows, partitions)
        ]
    for target in question.latency_targets:
        limit = _limit(question, target, factor, interval_s, duration_s)
        if limit is None:
            return math.inf
        constraints.append(limit)
    problem = cvxpy.Problem(cvxpy.Minimize(slots), constraints)
    try:
        problem.solve(gp=True)  # type: ignore[no-untyped-call]
    except cvxpy.error.SolverError as error:
        raise HeadwayError(f"the relaxation could not be solved: {error}") from None
    if problem.status in _INFEASIBLE:
        return math.inf
    if problem.status not in _SOLVED:
        raise HeadwayError(f"the relaxation could not be solved: cvxpy says {problem.status}")
    return _ACCURACY_RATIO * float(problem.value) / space.num_slots(1)


def _limit(
    question: Question, target: Target, factor: float, interval_s: Variable, duration_s: Variable
) -> Any | None:
    """The target as a constraint; None if the fixed costs alone exceed it."""
    promised = PromisedLatency(profile=question.profile, target=target)
    allowed_s = target.limit_s - promised.shift_s + factor * promised.after_commit_s
    if allowed_s <= 0:
        return None
    weight = promised.wait_weight
    waited_s = duration_s + weight * interval_s if weight > 0 else duration_s
    return waited_s <= allowed_s


def _level_bounds(
    pool: list[StageProfile], slots: Variable, rows: Variable, partitions: Variable
) -> Iterator[Any]:
    """Lower bounds of a level: its work distributed evenly, and one task of a lone stage."""
    work = []
    for stage in pool:
        # Those whose tasks follow rows or cores have at least one.
        fixed_tasks = 1 if stage.tasks_vary else stage.num_source_tasks
        num_tasks = partitions if fixed_tasks is None else fixed_tasks
        parts = list(_task_parts(stage, rows, partitions, num_tasks))
        work += [num_tasks * cost_s / slots for cost_s in parts]
    if work:
        yield sum(work)
    # Of a lone stage, the parts are those of its tasks.
    if len(pool) == 1 and parts and not pool[0].tasks_vary:
        yield sum(parts)


def _task_parts(
    stage: StageProfile, rows: Variable, partitions: Variable, num_tasks: Any
) -> Iterator[Any]:
    """The positive parts of the time of one task."""
    if stage.task_fixed_s > 0:
        yield stage.task_fixed_s
    if stage.task_per_partition_s > 0:
        yield stage.task_per_partition_s * partitions
    if stage.task_per_row_s * stage.rows.scale > 0:
        per_row_s = stage.task_per_row_s * stage.rows.scale
        yield per_row_s * rows**stage.rows.exponent / num_tasks
    if stage.task_per_row_s * stage.rows.static_rows > 0:
        yield stage.task_per_row_s * stage.rows.static_rows / num_tasks


def _least_factor(question: Question, driver_s: float) -> float:
    """Lowest planned factor on durations, over the most by which noise can lower a quantile."""
    profile = question.profile
    margin = math.exp(float(ndtri(question.confidence)) * profile.noise.run_to_run_ratio)
    quantiles = [
        target.quantile for target in question.latency_targets if target.quantile is not None
    ]
    if not quantiles:
        return margin
    # The noise from rows is at most their dispersion over their number, which the driver bounds.
    fewest_rows = max(question.rate_per_s * driver_s, 1.0)
    of_batches = float(noise_ratio_at(profile.noise, max(driver_s, 1e-6)))
    scatter = of_batches**2 + profile.arrivals.dispersion_ratio / fewest_rows
    log_variance = math.log1p(scatter)
    low_score = max(-float(ndtri(min(quantiles))), 0.0)
    return margin / math.exp(0.5 * log_variance + low_score * math.sqrt(log_variance))
