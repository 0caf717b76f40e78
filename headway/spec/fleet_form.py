"""A capacity plan's file -> a fleet of numbers: offers, supplies, quotas, and the units of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from headway.errors import InputError
from headway.fleet.nouns import Fleet, FleetOffer, Mask, Quota, Supply, Whole
from headway.spec.kinds.capacity import CapacityPlan, FleetEntry, PoolEntry, QuotaEntry
from headway.spec.kinds.catalog import NodeCatalog, NodeEntry
from headway.spec.parts import executors_that_fit
from headway.spec.spec_file import load_spec
from headway.units import HOURS_PER_DAY, counted, spark_memory_text

if TYPE_CHECKING:
    from headway.spec.kinds.jobs import BatchJob, StreamingJob
    from headway.spec.kinds.schedule import QuerySchedule

#: A supply, and the node and the pool that it is of.
_Origin: TypeAlias = tuple[Supply, NodeEntry, PoolEntry]
_ONE_ZONE = ("-",)
_KINDS_OF_JOBS = ("StreamingJob", "BatchJob", "QuerySchedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNeeds:
    """What one job needs: executors in each hour, by the speed of the node's cores.

    ``executors`` is None at a speed that meets no target; ``why_none`` gives the reason at a speed,
    for jobs that are more than a size.
    """

    entry: FleetEntry
    cores_per_executor: int
    executor_memory_bytes: int | None
    executors: Mapping[float, tuple[int, ...] | None]
    why_none: Callable[[float], tuple[str, str]] | None = None


def fleet_members(
    plan: CapacityPlan,
) -> Iterator[tuple[FleetEntry, StreamingJob | BatchJob | QuerySchedule]]:
    """The entries of a fleet, each with its job, which is read from its file if it has one."""
    for entry in plan.jobs:
        if entry.file is None:
            job = entry.streaming or entry.batch
            assert job is not None
            yield entry, job
            continue
        file = load_spec(entry.file)
        if file.kind not in _KINDS_OF_JOBS:
            raise InputError(
                f"{file.place_of_kind}: kind: got {file.kind!r}; the fleet's job "
                f"{entry.name!r} needs a StreamingJob, a BatchJob or a QuerySchedule"
            )
        if entry.turns != "none" and file.kind != "QuerySchedule":
            raise InputError(
                f"{file.place_of_kind}: kind: got {file.kind!r}; the fleet's job "
                f"{entry.name!r} has 'turns: {entry.turns}', which needs a QuerySchedule"
            )
        yield entry, file.spec


def nodes_on_offer(plan: CapacityPlan, catalog: NodeCatalog) -> tuple[NodeEntry, ...]:
    """The nodes that the plan may buy."""
    return tuple(node for node in catalog.nodes if _matches(node.name, plan.node_types))


class FleetForm:
    """A plan's file and the sizes of its jobs' executors: a fleet without its needs.

    Raises InputError if jobs that share a pool have executors of different sizes.
    """

    def __init__(
        self, plan: CapacityPlan, nodes: Sequence[NodeEntry], needs: Sequence[JobNeeds]
    ) -> None:
        self._plan, self._nodes = plan, tuple(nodes)
        self._origins = tuple(_supplies(plan, nodes, needs))
        self._supplies = supplies = tuple(supply for supply, _, _ in self._origins)
        #: Speed of the cores of each supply.
        self.speeds = np.array([node.core_speed_ratio for _, node, _ in self._origins], dtype=float)
        self._speeds = sorted({node.core_speed_ratio for node in nodes})
        self._speed_of = np.searchsorted(self._speeds, self.speeds)
        cheapest = min(
            nodes, key=lambda node: node.price_per_hour / (node.cores * node.core_speed_ratio)
        )
        #: Speed of the cores on which the same work costs least.
        self.speed_of_cheapest_core = cheapest.core_speed_ratio
        self._shared = np.array([supply.shared for supply in supplies], dtype=bool)
        self._failures = np.array([supply.failures for supply in supplies], dtype=np.int64)
        self._own_holds: dict[tuple[int, int | None], Whole] = {}
        self._within_reach: dict[tuple[tuple[str, ...], tuple[str, ...]], Mask] = {}

    def fleet(self, needs: Sequence[JobNeeds]) -> Fleet:
        plan, supplies = self._plan, self._supplies
        fixed = plan.schedule == "fixed"
        rows = [self.row(need) for need in needs]
        shape = (len(needs), len(supplies))
        return Fleet(
            jobs=tuple(need.entry.name for need in needs),
            weights=np.array([need.entry.weight for need in needs]),
            offers=tuple(
                FleetOffer(
                    name=node.name,
                    cores=node.cores,
                    price=node.price_per_hour,
                    spot_price=node.spot_price_per_hour,
                    committed_price=node.committed_price_per_hour,
                )
                for node in self._nodes
            ),
            supplies=supplies,
            units=np.array([units for units, _ in rows]).reshape(*shape, HOURS_PER_DAY),
            allowed=np.array([allowed for _, allowed in rows]).reshape(shape),
            period_of=np.zeros(HOURS_PER_DAY, int) if fixed else np.arange(HOURS_PER_DAY),
            hours=np.array([float(HOURS_PER_DAY)]) if fixed else np.ones(HOURS_PER_DAY),
            quotas=(
                *_pool_limits(plan, supplies),
                *(_quota(quota, self._origins) for quota in plan.quotas),
            ),
            spot_ratio=plan.purchasing.spot_ratio,
            commitments=plan.purchasing.commitments == "free",
            budget_per_day=None if plan.budget is None else plan.budget.limit_per_day,
        )

    def row(self, need: JobNeeds) -> tuple[Whole, Mask]:
        """Executors of a job in each hour, or its own nodes, for every supply: (S, 24); and where
        it can run: (S,).

        Spare nodes for failures are kept in the hours in which the job has work. Its own nodes do
        not change within a period: its largest hour counts in all of them.
        """
        by_speed = [need.executors.get(speed) for speed in self._speeds]
        keeps = np.array([executors is not None for executors in by_speed])
        no_executors = (0,) * HOURS_PER_DAY
        executors = np.array([hourly or no_executors for hourly in by_speed], dtype=np.int64)[
            self._speed_of
        ]
        holds = self._holds_of_own(need)
        own_nodes = -(-executors // np.maximum(holds, 1)[:, np.newaxis])
        own_nodes = np.where(own_nodes > 0, own_nodes + self._failures[:, np.newaxis], 0)
        if self._plan.schedule == "fixed":
            own_nodes = np.broadcast_to(own_nodes.max(axis=1, keepdims=True), own_nodes.shape)
        units = np.where(self._shared[:, np.newaxis], executors, own_nodes)
        allowed = self._reach(need.entry) & keeps[self._speed_of] & (holds > 0)
        return np.where(allowed[:, np.newaxis], units, 0), allowed

    def why_nowhere(self, need: JobNeeds) -> tuple[str, str]:
        """Why a job that is allowed on no supply cannot run anywhere, and what would suffice."""
        entry = need.entry
        pools = [pool for pool in self._plan.pools if not entry.pools or pool.name in entry.pools]
        pools_text = (
            f"{'pools' if len(pools) > 1 else 'pool'} {', '.join(pool.name for pool in pools)}"
        )
        zones = sorted({zone for pool in pools for zone in pool.zones})
        if entry.zones and not set(zones) & set(entry.zones):
            why = f"no zone {' or '.join(entry.zones)} in {pools_text}"
            return why, f"zone {' or '.join(zones)}" if zones else "no zone"
        supplies_with_room = np.flatnonzero(self._reach(entry) & (self._holds_of_own(need) > 0))
        if len(supplies_with_room):
            assert need.why_none is not None
            return need.why_none(float(self.speeds[supplies_with_room].max()))
        size, memory = counted(need.cores_per_executor, "core"), need.executor_memory_bytes
        if memory is not None:
            size += f" and a heap of {spark_memory_text(memory)} with its overhead"
        return (
            f"no node of {pools_text} has room for an executor of {size}",
            f"smaller executors, or larger nodes in {pools_text}",
        )

    def _reach(self, entry: FleetEntry) -> Mask:
        """The supplies in a job's pools and zones."""
        key = (entry.pools, entry.zones)
        if key not in self._within_reach:
            self._within_reach[key] = np.array(
                [
                    (not entry.pools or supply.pool in entry.pools)
                    and (not entry.zones or supply.zone in entry.zones)
                    for supply in self._supplies
                ],
                dtype=bool,
            )
        return self._within_reach[key]

    def _holds_of_own(self, need: JobNeeds) -> Whole:
        """Executors of a job that fit on a node of each dedicated supply; 1 for shared ones."""
        key = (need.cores_per_executor, need.executor_memory_bytes)
        if key not in self._own_holds:
            self._own_holds[key] = np.array(
                [
                    1 if supply.shared else executors_that_fit(node, pool, *key)
                    for supply, node, pool in self._origins
                ],
                dtype=np.int64,
            )
        return self._own_holds[key]


def _supplies(
    plan: CapacityPlan, nodes: Sequence[NodeEntry], needs: Sequence[JobNeeds]
) -> Iterator[_Origin]:
    for pool in plan.pools:
        members = [need for need in needs if not need.entry.pools or pool.name in need.entry.pools]
        executor, shared = _executor_of(pool, members), pool.sharing == "shared"
        for offer_index, node in enumerate(nodes):
            holds = executors_that_fit(node, pool, *executor) if shared else 1
            if holds < 1 or not _matches(node.name, pool.node_types):
                continue
            for zone in pool.zones or _ONE_ZONE:
                supply = Supply(
                    pool=pool.name,
                    zone=zone,
                    offer=offer_index,
                    shared=shared,
                    units_per_node=holds,
                    failures=pool.failures,
                )
                yield supply, node, pool


def _executor_of(pool: PoolEntry, members: Sequence[JobNeeds]) -> tuple[int, int | None]:
    """The size of every executor in a shared pool: its cores, and the largest heap."""
    if pool.sharing != "shared" or not members:
        return 1, None
    sizes = {need.cores_per_executor for need in members}
    if len(sizes) > 1:
        sizes_text = ", ".join(
            f"{need.entry.name} {need.cores_per_executor}" for need in members[:6]
        )
        raise InputError(
            f"pool {pool.name!r}: executors of different sizes cannot share nodes ({sizes_text} "
            "cores); give the pool cores_per_executor"
        )
    heaps = [need.executor_memory_bytes for need in members if need.executor_memory_bytes]
    return sizes.pop(), max(heaps, default=None)


def _pool_limits(plan: CapacityPlan, supplies: Sequence[Supply]) -> list[Quota]:
    return [
        Quota(
            name=pool.name,
            kind="pool",
            unit="nodes",
            weights=np.array([float(supply.pool == pool.name) for supply in supplies]),
            limit=float(pool.max_nodes),
        )
        for pool in plan.pools
        if pool.max_nodes is not None
    ]


def _quota(quota: QuotaEntry, origins: Sequence[_Origin]) -> Quota:
    counts = [
        _matches(node.name, quota.node_types) and (not quota.zones or supply.zone in quota.zones)
        for supply, node, _ in origins
    ]
    if quota.max_nodes is not None:
        weights, unit, limit = np.array(counts, dtype=float), "nodes", quota.max_nodes
    else:
        cores = np.array([node.cores for _, node, _ in origins], dtype=float)
        weights, unit, limit = cores * counts, "cores", quota.max_cores or 0
    return Quota(name=quota.name, unit=unit, weights=weights, limit=float(limit))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name matches one of some patterns; if there are none, all names do."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
