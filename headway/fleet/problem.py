"""The mixed-integer problem over some columns (a job on a supply), for cvxpy and HiGHS.

Notation: ``y[c]`` is whether column ``c`` is used, ``n[s, p]`` are nodes of supply s in period p.
For every load case l of period p, the units of the used columns must fit:
``sum(units[c, l] * y[c]) <= units_per_node[s] * (n[s, p] - failures[s] * open[s, p])``, where
``open[s, p] >= y[c]`` for every column of s with work in p. Periods in which the same columns have
work share one ``open``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from headway.errors import SolverError
from headway.fleet.nouns import Array, Fleet, Mask, Whole

Columns: TypeAlias = tuple[Whole, Whole]
"""The job and the supply of each pair that is considered."""


def columns_where(column_mask: Mask) -> Columns:
    """The pairs in a (J, S) mask."""
    job, supply = np.nonzero(column_mask)
    return job.astype(np.int64), supply.astype(np.int64)


def _groups(fleet: Fleet, columns: Columns) -> tuple[list[Whole], Whole]:
    """The columns that open a supply's reserve together, and the group of each supply and period.

    The latter is -1 if nothing can need a reserve then: (S, P).
    """
    job_of, supply_of_column = columns
    group_of = np.full((len(fleet.supplies), fleet.num_periods), -1, dtype=np.int64)
    groups: list[Whole] = []
    for supply_index, supply in enumerate(fleet.supplies):
        if not (supply.shared and supply.failures):
            continue
        members = np.flatnonzero(supply_of_column == supply_index)
        busy = busy_periods(fleet, job_of[members], supply_index)
        patterns, pattern_of_period = np.unique(busy, axis=1, return_inverse=True)
        for number, pattern in enumerate(patterns.T):
            if pattern.any():
                group_of[supply_index, np.ravel(pattern_of_period) == number] = len(groups)
                groups.append(members[pattern])
    return groups, group_of


def busy_periods(fleet: Fleet, jobs: Whole, supply: int) -> Mask:
    """The periods in which each of some jobs has work on a supply: (jobs, P)."""
    is_busy = np.zeros((len(jobs), fleet.num_periods), dtype=bool)
    busy = fleet.units[jobs, supply, :] > 0
    for case, period in enumerate(fleet.period_of.tolist()):
        is_busy[:, period] |= busy[:, case]
    return is_busy


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The objective, and which limits are dropped.

    ``penalty`` is paid for each job that is not served, times its weight; None serves all.
    ``counts_cost`` is whether nodes cost anything. ``elastic`` is the label of the quota that may
    be exceeded, whose excess is then the objective. ``within_budget`` is whether the budget
    applies; it is for nodes and the fees of all jobs, or with ``fees_of_served`` of those served.
    """

    penalty: float | None = None
    counts_cost: bool = True
    elastic: str | None = None
    within_budget: bool = True
    fees_of_served: bool = False
    least_served: float | None = None


_no_numbers: Callable[[], Any] = partial(np.zeros, 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """Result of the solver.

    ``bound`` is a proven lower bound of the minimum. What follows ``excess`` is the relaxation's:
    ``group_duals`` is what columns that open a reserve together pay for it, ``group_of`` their
    group by supply and period, -1 without a reserve; ``quota_duals`` are by quota and period.
    ``cost_weight`` is the weight of a unit of money in the objective and in the budget.
    """

    value: float
    bound: float
    use: Array
    served: Array
    excess: float
    load_duals: Array = field(default_factory=_no_numbers)
    group_of: Whole = field(default_factory=_no_numbers)
    group_duals: Array = field(default_factory=_no_numbers)
    nodes: Array = field(default_factory=_no_numbers)
    node_duals: Array = field(default_factory=_no_numbers)
    serve_duals: Array = field(default_factory=_no_numbers)
    quota_duals: Array = field(default_factory=_no_numbers)
    cost_weight: float = 1.0


def solve(
    fleet: Fleet,
    columns: Columns,
    goal: Goal,
    *,
    integer: bool,
    gap_ratio: float = 0.0,
    time_limit_s: float | None = None,
) -> Solved | None:
    """Solve the problem over the columns; None if nothing is within its limits."""
    cp = _cvxpy()
    built = _Built(fleet, columns, goal, integer)
    problem = cp.Problem(cp.Minimize(built.objective), built.constraints)
    options: dict[str, Any] = {"threads": 1, "random_seed": 1}
    if integer:
        options |= {"mip_rel_gap": gap_ratio, "mip_abs_gap": 1e-9}
        if time_limit_s is not None:
            options["time_limit"] = time_limit_s
    try:
        with warnings.catch_warnings():
            # cvxpy warns about a time limit; the remaining gap is stated with the plan.
            warnings.simplefilter("ignore", UserWarning)
            problem.solve(solver=cp.HIGHS, **options)
    except (cp.error.SolverError, ValueError) as error:
        raise SolverError(f"HiGHS gave up: {error}") from None
    if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE, "infeasible_or_unbounded"):
        return None
    ended = (cp.OPTIMAL, cp.OPTIMAL_INACCURATE, *((cp.USER_LIMIT,) if integer else ()))
    if problem.status not in ended or not built.is_answered:
        raise SolverError(
            f"HiGHS ended with '{problem.status}' and no answer; expected an optimum: "
            "allow a larger gap, or make the fleet smaller"
        )
    return built.solved(problem)


def supply_of(fleet: Fleet, columns: Columns, use: Array) -> Whole:
    """Index of each job's supply, by the largest of its columns; -1 if none is used."""
    supply_of_job = np.full(len(fleet.jobs), -1, dtype=np.int64)
    order = np.argsort(use, kind="stable")
    used = order[use[order] > 0.5]
    job_of, supply_of_column = columns
    supply_of_job[job_of[used]] = supply_of_column[used]
    return supply_of_job


class _Built:
    """Variables and constraints of one problem."""

    def __init__(self, fleet: Fleet, columns: Columns, goal: Goal, integer: bool) -> None:
        cp = _cvxpy()
        self.fleet, self.goal, self.integer = fleet, goal, integer
        self.job_of, self.supply_of_column = columns
        num_supplies, num_periods = len(fleet.supplies), fleet.num_periods
        self.use = cp.Variable(len(self.job_of), boolean=integer)
        self.constraints: list[Any] = [] if integer else [self.use >= 0]
        self.nodes = cp.Variable((num_supplies, num_periods), integer=integer)
        self.not_negative = self.nodes >= 0
        self.constraints.append(self.not_negative)
        self.groups, self.group_of = _groups(fleet, columns)
        self.opened: Any = None
        self._serve()
        self._hold()
        cost = self._cost()
        self.excess: Any = 0.0
        self.quotas: list[Any] = []
        self._keep_quotas()
        self.budget: Any = None
        if fleet.budget_per_day is not None and goal.within_budget:
            fees = fleet.fees @ self.served if goal.fees_of_served else fleet.all_fees_per_day
            self.budget = cost + fees <= fleet.budget_per_day
            self.constraints.append(self.budget)
        self.objective = self._objective(cost)

    def _serve(self) -> None:
        """Each job is assigned to one supply or, at a price, to none."""
        cp, sp = _cvxpy(), _sparse()
        fleet, num_columns = self.fleet, len(self.job_of)
        job_incidence = sp.csr_matrix(
            (np.ones(num_columns), (self.job_of, np.arange(num_columns))),
            shape=(len(fleet.jobs), num_columns),
        )
        self.served = job_incidence @ self.use
        if self.goal.penalty is None and self.goal.least_served is None:
            self.all_served = self.served == 1
        else:
            self.missed = cp.Variable(len(fleet.jobs), nonneg=True)
            self.all_served = self.served + self.missed == 1
        self.constraints.append(self.all_served)
        if self.goal.least_served is not None:
            self.constraints.append(fleet.weights @ self.served >= self.goal.least_served - 1e-6)

    def _hold(self) -> None:
        """The nodes of a supply can run the units of its jobs in every load case."""
        cp, sp = _cvxpy(), _sparse()
        fleet = self.fleet
        num_supplies, num_cases = len(fleet.supplies), len(fleet.period_of)
        units = fleet.units[self.job_of, self.supply_of_column, :]
        column_index, case = np.nonzero(units)
        rows = self.supply_of_column[column_index] * num_cases + case
        shape = (num_supplies * num_cases, len(self.job_of))
        load = sp.csr_matrix(
            (units[column_index, case].astype(float), (rows, column_index)), shape=shape
        )
        per_node = fleet.units_per_node
        # Row (s, l) uses the nodes of (s, period of l); variables are stacked by period first.
        supply_of_row = np.repeat(np.arange(num_supplies), num_cases)
        period_of_row = np.tile(fleet.period_of, num_supplies)
        node_index = period_of_row * num_supplies + supply_of_row
        room = sp.csr_matrix(
            (per_node[supply_of_row], (np.arange(len(node_index)), node_index)),
            shape=(len(node_index), num_supplies * fleet.num_periods),
        )
        free = room @ cp.vec(self.nodes, order="F")
        if self.groups:
            is_open = cp.Variable(len(self.groups), boolean=self.integer)
            self.constraints += [is_open >= 0, is_open <= 1]
            self.group_of_link = np.repeat(np.arange(len(self.groups)), [*map(len, self.groups)])
            self.opened = is_open[self.group_of_link] >= self.use[np.concatenate(self.groups)]
            self.constraints.append(self.opened)
            group = self.group_of[supply_of_row, period_of_row]
            rows_with_reserve = np.flatnonzero(group >= 0)
            failures = np.array([supply.failures for supply in fleet.supplies], dtype=float)
            weights = (per_node * failures)[supply_of_row[rows_with_reserve]]
            reserve = sp.csr_matrix(
                (weights, (rows_with_reserve, group[rows_with_reserve])),
                shape=(len(node_index), len(self.groups)),
            )
            free = free - reserve @ is_open
        self.hold = free >= load @ self.use
        self.constraints.append(self.hold)

    def _cost(self) -> Any:
        """The cost of a day, depending on how nodes are paid for."""
        cp, sp = _cvxpy(), _sparse()
        fleet = self.fleet
        offers, hours = fleet.offers, fleet.hours
        supply_indices = np.arange(len(fleet.supplies))
        shape = (len(offers), len(fleet.supplies))
        to_offer = sp.csr_matrix(
            (np.ones(len(supply_indices)), (fleet.offer_of, supply_indices)), shape=shape
        )
        nodes = to_offer @ self.nodes
        price = np.array([offer.price for offer in offers])
        cost = price @ nodes @ hours
        spot_saves = np.array(
            [max(offer.price - (_or_price(offer.spot_price, offer.price)), 0.0) for offer in offers]
        )
        paid_otherwise: Any = 0.0
        if fleet.spot_ratio > 0 and spot_saves.any():
            spot = cp.Variable((len(offers), fleet.num_periods), integer=self.integer)
            self.constraints += [spot >= 0, spot <= fleet.spot_ratio * nodes]
            cost = cost - spot_saves @ spot @ hours
            paid_otherwise = spot
        committed_price = np.array(
            [_or_price(offer.committed_price, offer.price) for offer in offers]
        )
        if fleet.commitments and np.any(committed_price < price):
            committed = cp.Variable(len(offers), integer=self.integer)
            used = cp.Variable((len(offers), fleet.num_periods), integer=self.integer)
            self.constraints += [
                committed >= 0,
                used >= 0,
                used
                <= cp.reshape(committed, (len(offers), 1), order="F") @ np.ones((1, len(hours))),
                used + paid_otherwise <= nodes,
            ]
            cost = cost - price @ used @ hours + float(hours.sum()) * (committed_price @ committed)
        return cost

    def _keep_quotas(self) -> None:
        cp = _cvxpy()
        for quota in self.fleet.quotas:
            limit: Any = quota.limit
            if quota.label == self.goal.elastic:
                self.excess = cp.Variable(nonneg=True)
                limit = quota.limit + self.excess
            self.quotas.append(quota.weights @ self.nodes <= limit)
        self.constraints += self.quotas

    def _objective(self, cost: Any) -> Any:
        if self.goal.elastic is not None:
            return self.excess
        total: Any = cost if self.goal.counts_cost else 0.0
        if self.goal.penalty is not None:
            total = total + self.goal.penalty * (self.fleet.weights @ self.missed)
        return total

    @property
    def is_answered(self) -> bool:
        """Whether there is a solution, since a time limit may have ended the search before."""
        use = self.use.value
        if use is None or not np.all(np.isfinite(use)):
            return False
        may_miss = self.goal.penalty is not None or self.goal.least_served is not None
        return may_miss or bool(np.all(np.asarray(self.served.value) > 0.5))

    def _group_duals(self) -> Array:
        if self.opened is None:
            return np.zeros(0)
        duals = np.maximum(np.asarray(self.opened.dual_value, dtype=float), 0.0)
        paid = np.bincount(self.group_of_link, weights=duals, minlength=len(self.groups))
        return paid.astype(float)

    def solved(self, problem: Any) -> Solved:
        value = float(problem.value)
        excess = 0.0 if isinstance(self.excess, float) else float(self.excess.value)
        served = np.asarray(self.served.value, dtype=float)
        use = np.asarray(self.use.value, dtype=float)
        if self.integer:
            bound = min(float(problem.solver_stats.extra_stats.mip_dual_bound), value)
            return Solved(value=value, bound=bound, use=use, served=served, excess=excess)
        shape = (len(self.fleet.supplies), len(self.fleet.period_of))
        return Solved(
            value=value,
            bound=value,
            use=use,
            served=served,
            excess=excess,
            load_duals=np.asarray(self.hold.dual_value, dtype=float).reshape(shape),
            group_of=self.group_of,
            group_duals=self._group_duals(),
            nodes=np.asarray(self.nodes.value, dtype=float),
            node_duals=np.asarray(self.not_negative.dual_value, dtype=float),
            serve_duals=-np.asarray(self.all_served.dual_value, dtype=float),
            quota_duals=np.array(
                [np.ravel(constraint.dual_value) for constraint in self.quotas], dtype=float
            ).reshape(len(self.quotas), self.fleet.num_periods),
            cost_weight=float(self.goal.counts_cost)
            + (0.0 if self.budget is None else float(np.sum(self.budget.dual_value))),
        )


def load_solver() -> None:
    """Import what builds and solves problems, which takes seconds: when it is needed, or before."""
    _cvxpy()
    _sparse()


def _or_price(price: float | None, otherwise: float) -> float:
    return otherwise if price is None else price


def _cvxpy() -> Any:
    """Imported when a problem is built, and not typed, since its operators return many types."""
    import cvxpy

    return cvxpy


def _sparse() -> Any:
    import scipy.sparse

    return scipy.sparse
