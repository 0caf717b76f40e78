"""Parts of a capacity plan: offers, supplies, quotas, the fleet, and the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.domain.result import Result
from headway.units import counted

Array: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOffer:
    """A kind of node and its prices per hour, in the currency of the plan.

    ``committed_price`` is paid around the clock; None if not available.
    """

    name: str
    cores: int
    price: float
    spot_price: float | None = None
    committed_price: float | None = None

    def __post_init__(self) -> None:
        if self.cores < 1 or not 0 <= self.price < np.inf:
            raise ValueError(f"{self.name}: expected cores, and a price of 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """Nodes of one kind in one pool and zone, to which jobs are assigned.

    ``offer`` is the index of their kind in the fleet's offers. If they are ``shared``, the
    executors of all jobs share nodes; else each job has its own, and a unit is a node. ``failures``
    is how many may fail at once; for dedicated supplies, they are part of each job's units.
    """

    pool: str
    zone: str
    offer: int
    shared: bool
    units_per_node: int = 1
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A limit on nodes, at any hour: ``sum(weights * nodes) <= limit``.

    ``kind`` is the kind of the limit: a quota, or a pool.
    """

    name: str
    unit: str
    weights: Array
    limit: float
    kind: str = "quota"

    @property
    def label(self) -> str:
        """Name in a sentence."""
        return f"{self.kind} {self.name}"

    def text(self, amount: float) -> str:
        """An amount of what it limits.

        >>> quota = Quota(name="q", unit="nodes", weights=np.ones(1), limit=3.0)
        >>> quota.text(1.0), quota.text(2.0)
        ('1 node', '2 nodes')
        """
        return counted(round(amount), self.unit.removesuffix("s"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fleet:
    """Jobs, their needs on each supply, and the limits.

    ``weights``, (J,), count if not all jobs can be served. ``units``, (J, S, L), are the executors
    (for dedicated supplies: nodes) that a job needs in each load case; ``allowed``, (J, S), is
    whether it can run there. ``period_of``, (L,), is the period of a load case: nodes are constant
    within a period, and ``hours``, (P,), are those of a day. Nodes may be paid for as spot up to
    the share ``spot_ratio``, and with ``commitments``. The budget is for nodes and for fees, which
    each job pays beside nodes, for requests to a store; without any, these are empty. All money is
    in the ``currency``, if that is known.
    """

    jobs: tuple[str, ...]
    weights: Array
    offers: tuple[FleetOffer, ...]
    supplies: tuple[Supply, ...]
    units: Whole
    allowed: Mask
    period_of: Whole
    hours: Array
    quotas: tuple[Quota, ...] = ()
    spot_ratio: float = 0.0
    commitments: bool = False
    budget_per_day: float | None = None
    fees_per_day: tuple[float, ...] = ()
    currency: str = ""

    def __post_init__(self) -> None:
        num_jobs, num_supplies, num_cases = self.units.shape
        fits = (
            num_jobs == len(self.jobs) == len(self.weights)
            and num_supplies == len(self.supplies)
            and self.allowed.shape == (num_jobs, num_supplies)
            and num_cases == len(self.period_of)
            and all(len(quota.weights) == num_supplies for quota in self.quotas)
            and len(self.fees_per_day) in (0, num_jobs)
        )
        if not fits:
            raise ValueError("the parts of a fleet do not fit together")
        if np.any(self.units < 0) or not np.any(self.hours > 0):
            raise ValueError("units are negative, or no period has hours")

    @property
    def num_periods(self) -> int:
        return len(self.hours)

    @property
    def offer_of(self) -> Whole:
        """Index of the offer of each supply."""
        return np.array([supply.offer for supply in self.supplies], dtype=np.int64)

    @property
    def hourly_prices(self) -> Array:
        """Price of a node of each supply for an hour."""
        return np.array([self.offers[supply.offer].price for supply in self.supplies])

    @property
    def fees(self) -> Array:
        return np.array(self.fees_per_day or [0.0] * len(self.jobs))

    @property
    def all_fees_per_day(self) -> float:
        """What all jobs pay beside nodes."""
        return sum(self.fees_per_day)

    @property
    def units_per_node(self) -> Array:
        return np.array([supply.units_per_node for supply in self.supplies], dtype=float)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bill:
    """Nodes of each offer in each period, and the cost of a day.

    ``nodes = on_demand + spot + committed in use``; committed nodes are paid whether used or not.
    """

    nodes: Whole
    spot: Whole
    committed: Whole
    cost_per_day: float
    cost_by_offer: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowPrice:
    """Minimum saving per day from a slightly higher limit."""

    name: str
    saves_per_day: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FleetPlan:
    """Place of each job, and the purchase.

    ``supply_of`` is -1 for a job that is not served. ``nodes`` are by supply and period.
    ``bound_per_day`` is a lower bound of the cost, so ``gap_ratio`` is how far the plan can be from
    the minimum. ``most_weight`` is an upper bound of the weight of served jobs in any plan within
    the limits; None if all are served. ``fees_by_job`` is what served jobs pay beside nodes.
    """

    supply_of: Whole
    nodes: Whole
    bill: Bill
    bound_per_day: float
    cost_by_job: Array
    fees_by_job: Array
    most_weight: float | None = None
    #: Whether there is a purchase; ``supply_of`` shows whether it serves every job.
    feasible: ClassVar[Literal[True]] = True

    @property
    def cost_per_day(self) -> float:
        """Cost of a day: nodes and fees."""
        return self.bill.cost_per_day + float(self.fees_by_job.sum())

    @property
    def gap_ratio(self) -> float:
        """Maximum excess over the minimum cost, as a share of the plan's cost."""
        cost = self.bill.cost_per_day
        return 0.0 if cost <= 0 else max(0.0, (cost - self.bound_per_day) / cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasible:
    """Why no plan serves every job, and the smallest relaxations, each sufficient on its own.

    ``unserved`` are the jobs that are left out if as many as possible, by weight, are served;
    ``fewest_unserved`` is whether this is proven to be the minimum. For jobs that can run nowhere
    (``impossible``), all relaxations are needed.
    """

    impossible: tuple[str, ...]
    unserved: tuple[str, ...]
    relaxations: tuple[str, ...]
    fewest_unserved: bool = True
    feasible: ClassVar[Literal[False]] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPrice:
    """Minimum cost of a job's target, compared with one that is looser by a quarter."""

    job: str
    promise: str
    looser: str
    saves_per_day: float
    is_all: bool = field(metadata={"key": None})


GrowthPoint: TypeAlias = tuple[str, float, FleetPlan | Infeasible]
"""A month, the growth of rates until then since the date of the catalogue, and the plan for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWrites:
    """Files of a job and its write requests in a day, as in plans: theory.md (F4).

    ``cost_per_day`` is None if the catalogue has no price of the store in its currency.
    """

    store: str
    files_per_day: float
    requests_per_day: float | None
    cost_per_day: float | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Capacity(Result):
    """The answer for a fleet, and its inputs.

    ``fleet`` has the planned needs; for several scenarios, the largest in each hour. ``scenarios``
    states how ranges were used. ``target_probabilities`` are those that the most expensive
    streaming jobs meet their targets in their busiest hour, each with a verdict (P23). ``writes``
    is what jobs write to a store that is known. ``notes`` are on what the file leaves open.
    """

    result_kind = "capacity"
    name: str
    currency: str
    prices_of: str
    fleet: Fleet
    plan: FleetPlan | Infeasible
    why_impossible: Mapping[str, str]
    scenarios: str
    gap_asked_ratio: float
    target_prices: tuple[TargetPrice, ...] = ()
    shadow_prices: tuple[ShadowPrice, ...] = ()
    growth: tuple[GrowthPoint, ...] = ()
    target_probabilities: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    writes: Mapping[str, JobWrites] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def feasible(self) -> bool:
        """Whether every job is served within the limits."""
        return self.plan.feasible and bool((self.plan.supply_of >= 0).all())
