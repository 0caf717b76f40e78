"""Fleets: many jobs, the nodes they may use, and the limits of the cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import headway.spec.forms.quantities as values
from headway.spec.forms import entry
from headway.spec.forms.kinds import Choice, FilePath, ListOf, NameOr, Nested, Number, Text, whole
from headway.spec.kinds.catalog import NodeCatalog
from headway.spec.kinds.jobs import BatchJob, StreamingJob

_PATTERNS = ListOf(item=Text(words="a node's name, or a pattern such as m6i.*"), or_one=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetEntry:
    """One job of a fleet."""

    name: str = entry(values.NAME, "Name in the plan.")
    file: Path | None = entry(
        FilePath("a file of the kind StreamingJob, BatchJob or QuerySchedule"),
        "The job's own file; that of a QuerySchedule is one application with several queries. One "
        "of `file`, `streaming`, `batch`.",
        default=None,
    )
    streaming: StreamingJob | None = entry(
        Nested(StreamingJob), "A streaming job written out.", default=None
    )
    batch: BatchJob | None = entry(Nested(BatchJob), "A batch job written out.", default=None)
    pools: tuple[str, ...] = entry(
        values.NAMES, "Pools it may run in. Default: all.", key="pool", default=()
    )
    zones: tuple[str, ...] = entry(
        values.NAMES, "Zones it may run in. Default: all.", key="zone", default=()
    )
    weight: float = entry(
        Number(words="a weight above 0", above=True, high=1e6),
        "Weight of the job if not all jobs can be served. Default 1.",
        default=1.0,
    )
    turns: str = entry(
        Choice(("none", "stagger", "any")),
        "How the queries of a QuerySchedule take turns: `none`, not at all; `stagger`, by triggers "
        "that are shifted apart; `any`, also by the other policies of `headway.schedule`. Default "
        "`none`.",
        default="none",
    )
    growth_ratio: float = entry(
        values.RATIO, "Its own growth, on top of the fleet's. Default 1.", default=1.0
    )

    def __post_init__(self) -> None:
        num_sources = sum(source is not None for source in (self.file, self.streaming, self.batch))
        if num_sources != 1:
            raise ValueError(
                f"{num_sources} of file, streaming and batch are given; expected one of the three"
            )
        if self.turns != "none" and self.file is None:
            raise ValueError(
                f"turns: got {self.turns!r} for a single job; expected a file of the kind "
                "QuerySchedule, whose queries share one application"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolEntry:
    """Nodes that jobs share, or that each job has for itself."""

    name: str = entry(values.NAME, "Name.")
    sharing: str = entry(
        Choice(("shared", "dedicated")),
        "`shared`: executors of all its jobs fill the same nodes; `dedicated`: each job has nodes "
        "of its own. Default `shared`.",
        default="shared",
    )
    node_types: tuple[str, ...] = entry(
        _PATTERNS, "Nodes it may be made of. Default: all of the plan.", default=()
    )
    zones: tuple[str, ...] = entry(
        values.NAMES,
        "Zones that are kept apart: a job runs in one of them, and the nodes of a zone serve no "
        "other zone. Default: one zone.",
        default=(),
    )
    failures: int = entry(
        whole(low=0, high=100),
        "Number of nodes that may fail at once while all targets are still met: per pool, node "
        "type and zone, in dedicated pools also per job. Default 0.",
        default=0,
    )
    max_nodes: int | None = entry(
        whole(low=0, high=1_000_000), "Maximum nodes of the pool in any hour.", default=None
    )
    reserved_cores: int = entry(
        values.CORES_OR_ZERO, "Cores of each node for the system. Default 0.", default=0
    )
    reserved_memory_bytes: int = entry(
        values.SIZE_OR_ZERO, "Memory of each node for the system.", default=0
    )
    cores_per_executor: int | None = entry(
        values.CORES,
        "Cores of every executor in the pool. Default: the jobs' own, which must then be equal.",
        default=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEntry:
    """A limit on nodes, at any hour."""

    name: str = entry(values.NAME, "Name.")
    node_types: tuple[str, ...] = entry(_PATTERNS, "Nodes that count. Default: all.", default=())
    zones: tuple[str, ...] = entry(values.NAMES, "Zones that count. Default: all.", default=())
    max_nodes: int | None = entry(
        whole(low=0, high=10_000_000),
        "Maximum nodes. One of `max_nodes`, `max_cores`.",
        default=None,
    )
    max_cores: int | None = entry(whole(low=0, high=100_000_000), "Maximum cores.", default=None)

    def __post_init__(self) -> None:
        if (self.max_nodes is None) == (self.max_cores is None):
            raise ValueError("expected one of max_nodes and max_cores")


@dataclass(frozen=True, slots=True, kw_only=True)
class PurchasingEntry:
    """How nodes are paid for."""

    spot_ratio: float = entry(
        values.SHARE,
        "Maximum share of the nodes of a type that may be spot nodes at any hour. Default 0%.",
        key="max_spot_share",
        default=0.0,
    )
    commitments: str = entry(
        Choice(("none", "free")),
        "`free`: nodes may be paid around the clock at the committed price. Default `none`.",
        default="none",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetEntry:
    """What may be spent."""

    per_day: float | None = entry(values.MONEY, "Maximum cost per day.", default=None)
    per_month: float | None = entry(
        values.MONEY, "Maximum cost per month of 30 days.", default=None
    )

    def __post_init__(self) -> None:
        if (self.per_day is None) == (self.per_month is None):
            raise ValueError("expected one of per_day and per_month")

    @property
    def limit_per_day(self) -> float:
        """Maximum cost per day."""
        return self.per_day if self.per_day is not None else (self.per_month or 0.0) / 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioEntry:
    """Which values of rates and costs that are given as ranges are used."""

    rule: str = entry(
        Choice(("high", "mid", "least-regret", "chance")),
        "`high`: every range at its upper end; `mid`: at its middle; `least-regret`: of the plans "
        "for one scenario each, the one with the lowest worst regret over all scenarios; `chance`: "
        "enough for all but a few scenarios. Default `high`.",
        default="high",
    )
    count: int = entry(
        whole(low=1, high=1000), "Number of scenarios to draw. Default 20.", default=20
    )
    seed: int = entry(whole(low=0), "Random seed. Default 1.", default=1)
    confidence: float = entry(
        Number(words="a probability, 0.5 or more and below 1", low=0.5, high=0.9999),
        "Share of the scenarios that `chance` must cover. Default 0.9.",
        default=0.9,
    )
    shortage_ratio: float = entry(
        values.RATIO,
        "Cost of a missing node relative to a bought one, for `least-regret`. Default 5.",
        key="shortage_cost",
        default=5.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityPlan:
    """A fleet of jobs and what may be bought for it."""

    catalog: NodeCatalog | Path | None = entry(
        NameOr(FilePath("a file of the kind NodeCatalog"), NodeCatalog),
        "Nodes and prices. Default: the catalogue that comes with Headway.",
        default=None,
    )
    node_types: tuple[str, ...] = entry(
        _PATTERNS, "Nodes that may be bought, names or patterns. Default: all.", default=()
    )
    jobs: tuple[FleetEntry, ...] = entry(
        ListOf(item=Nested(FleetEntry), least=1, most=100_000), "The jobs."
    )
    pools: tuple[PoolEntry, ...] = entry(
        ListOf(item=Nested(PoolEntry)),
        "The pools. Default: one, `dedicated`.",
        default=(PoolEntry(name="dedicated", sharing="dedicated"),),
    )
    quotas: tuple[QuotaEntry, ...] = entry(
        ListOf(item=Nested(QuotaEntry)), "Quotas on nodes.", default=()
    )
    headroom_ratio: float = entry(
        values.SHARE, "Share added to all rates. Default 0%.", default=0.0
    )
    growth_ratio: float = entry(values.RATIO, "Factor on all rates. Default 1.", default=1.0)
    schedule: str = entry(
        Choice(("hourly", "fixed")),
        "`hourly`: nodes come and go by the hour; `fixed`: one size for the day. Default `fixed`.",
        default="fixed",
    )
    purchasing: PurchasingEntry = entry(
        Nested(PurchasingEntry), "Spot nodes and commitments.", default=PurchasingEntry()
    )
    budget: BudgetEntry | None = entry(Nested(BudgetEntry), "Maximum cost.", default=None)
    objective: str = entry(
        Choice(("cost", "served")),
        "`cost`: serve every job as cheaply as possible; `served`: as many jobs, by weight, as "
        "budget and quotas allow. Default `cost`.",
        default="cost",
    )
    scenarios: ScenarioEntry = entry(
        Nested(ScenarioEntry), "How ranges are used.", default=ScenarioEntry()
    )
    gap_ratio: float = entry(
        values.SHARE, "Maximum gap between the cost and its proven lower bound. Default 0.1%.",
        default=0.001,
    )  # fmt: skip

    def __post_init__(self) -> None:
        if not self.pools:
            raise ValueError("pools is empty; expected at least one")
