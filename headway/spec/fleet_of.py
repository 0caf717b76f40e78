"""A capacity plan's file -> a fleet of numbers: offers, supplies, quotas, and the units of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from headway.errors import InputError
from headway.fleet.nouns import HOURS_PER_DAY, Fleet, Offer, Purchasing, Quota, Supply, Whole
from headway.spec.kinds.capacity import CapacityPlan, FleetEntry, PoolEntry, QuotaEntry
from headway.spec.kinds.catalog import NodeCatalog, NodeEntry
from headway.spec.parts import executors_that_fit

_ONE_ZONE = ("-",)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNeeds:
    """What one job needs: executors in each hour, by the speed of the node's cores.

    ``executors`` is None at a speed that keeps no promise; ``why`` then says so.
    """

    entry: FleetEntry
    cores_per_executor: int
    executor_memory_bytes: int | None
    executors: Mapping[float, tuple[int, ...] | None]
    why: str = ""


def nodes_on_offer(plan: CapacityPlan, catalog: NodeCatalog) -> tuple[NodeEntry, ...]:
    """The nodes that the plan may buy.

    Raises
    ------
    InputError
        If a name or pattern stands for none of the catalogue.
    """
    nodes = _matching(plan.node_types, catalog.nodes, "node_types")
    wanted = [pattern for pool in plan.pools for pattern in pool.node_types]
    for pattern in (*wanted, *(p for quota in plan.quotas for p in quota.node_types)):
        _matching((pattern,), catalog.nodes, "node_types")
    return nodes


def fleet_of(
    plan: CapacityPlan, nodes: Sequence[NodeEntry], needs: Sequence[JobNeeds]
) -> tuple[Fleet, dict[str, str]]:
    """The fleet that a plan describes, and for each job that can run nowhere, why.

    Raises
    ------
    InputError
        If jobs that share a pool have executors of different sizes.
    """
    supplies, nodes_of, pools_of = _supplies(plan, nodes, needs)
    fixed = plan.schedule == "fixed"
    period_of = np.zeros(HOURS_PER_DAY, int) if fixed else np.arange(HOURS_PER_DAY)
    hours = np.array([float(HOURS_PER_DAY)]) if fixed else np.ones(HOURS_PER_DAY)
    units = np.zeros((len(needs), len(supplies), HOURS_PER_DAY), dtype=np.int64)
    allowed = np.zeros((len(needs), len(supplies)), dtype=bool)
    why: dict[str, str] = {}
    for at, need in enumerate(needs):
        reasons: list[str] = []
        for place, supply in enumerate(supplies):
            found = _units(need, supply, nodes_of[place], pools_of[place], reasons)
            if found is not None:
                units[at, place] = _by_period(found, period_of) if not supply.shared else found
                allowed[at, place] = True
        if not allowed[at].any():
            why[need.entry.name] = need.why or "; ".join(dict.fromkeys(reasons)) or "no pool"
    offers = tuple(
        Offer(
            name=node.name,
            cores=node.cores,
            price=node.price_per_hour,
            spot_price=node.spot_price_per_hour,
            committed_price=node.committed_price_per_hour,
        )
        for node in nodes
    )
    fleet = Fleet(
        jobs=tuple(need.entry.name for need in needs),
        weights=np.array([need.entry.weight for need in needs]),
        offers=offers,
        supplies=tuple(supplies),
        units=units,
        allowed=allowed,
        period_of=period_of,
        hours=hours,
        quotas=(*_pool_limits(plan, supplies), *_quotas(plan, supplies, nodes_of)),
        purchasing=Purchasing(
            spot_ratio=plan.purchasing.spot_ratio,
            commitments=plan.purchasing.commitments == "free",
        ),
        budget_per_day=None if plan.budget is None else plan.budget.limit_per_day,
    )
    return fleet, why


def _supplies(
    plan: CapacityPlan, nodes: Sequence[NodeEntry], needs: Sequence[JobNeeds]
) -> tuple[list[Supply], list[NodeEntry], list[PoolEntry]]:
    supplies, nodes_of, pools_of = [], [], []
    for pool in plan.pools:
        members = [need for need in needs if not need.entry.pools or pool.name in need.entry.pools]
        cores, memory = _executor_of(pool, members)
        for at, node in enumerate(nodes):
            if pool.node_types and not _matches(node.name, pool.node_types):
                continue
            holds = 1
            if pool.sharing == "shared":
                holds = _holds(pool, node, cores, memory)
                if holds < 1:
                    continue
            for zone in pool.zones or _ONE_ZONE:
                supplies.append(
                    Supply(
                        pool=pool.name,
                        zone=zone,
                        offer=at,
                        shared=pool.sharing == "shared",
                        units_per_node=holds,
                        failures=pool.failures,
                    )
                )
                nodes_of.append(node)
                pools_of.append(pool)
    return supplies, nodes_of, pools_of


def _executor_of(pool: PoolEntry, members: Sequence[JobNeeds]) -> tuple[int, int | None]:
    """The size of every executor in a shared pool: so many cores, and the largest heap."""
    if pool.sharing != "shared" or not members:
        return 1, None
    sizes = {need.cores_per_executor for need in members}
    if len(sizes) > 1:
        listed = ", ".join(f"{need.entry.name} {need.cores_per_executor}" for need in members[:6])
        raise InputError(
            f"pool {pool.name!r}: executors of different sizes cannot share nodes ({listed} "
            "cores); give the pool cores_per_executor"
        )
    heaps = [need.executor_memory_bytes for need in members if need.executor_memory_bytes]
    return sizes.pop(), max(heaps, default=None)


def _holds(pool: PoolEntry, node: NodeEntry, cores: int, memory_bytes: int | None) -> int:
    return executors_that_fit(
        node,
        cores_per_executor=cores,
        executor_memory_bytes=memory_bytes,
        reserved_cores=pool.reserved_cores,
        reserved_memory_bytes=pool.reserved_memory_bytes,
    )


def _units(
    need: JobNeeds, supply: Supply, node: NodeEntry, pool: PoolEntry, reasons: list[str]
) -> Whole | None:
    """Executors of the job in each hour, or its own nodes; None where it cannot run there."""
    entry = need.entry
    if entry.pools and supply.pool not in entry.pools:
        return None
    if entry.zones and supply.zone not in entry.zones:
        reasons.append(f"no pool in zone {', '.join(entry.zones)}")
        return None
    executors = need.executors.get(node.speed_ratio)
    if executors is None:
        return None
    found = np.array(executors, dtype=np.int64)
    if supply.shared:
        return found
    holds = _holds(pool, node, need.cores_per_executor, need.executor_memory_bytes)
    if holds < 1:
        reasons.append(f"an executor does not fit on {node.name}")
        return None
    own = -(-found // holds)
    return np.where(own > 0, own + supply.failures, 0)


def _by_period(units: Whole, period_of: Whole) -> Whole:
    """Nodes of its own do not change within a period: its largest case counts in all of them."""
    most = np.zeros(int(period_of.max()) + 1, dtype=np.int64)
    np.maximum.at(most, period_of, units)
    return np.asarray(most[period_of])


def _pool_limits(plan: CapacityPlan, supplies: Sequence[Supply]) -> list[Quota]:
    return [
        Quota(
            name=f"pool {pool.name}",
            unit="nodes",
            weights=np.array([float(supply.pool == pool.name) for supply in supplies]),
            limit=float(pool.max_nodes),
        )
        for pool in plan.pools
        if pool.max_nodes is not None
    ]


def _quotas(
    plan: CapacityPlan, supplies: Sequence[Supply], nodes_of: Sequence[NodeEntry]
) -> list[Quota]:
    return [_quota(quota, supplies, nodes_of) for quota in plan.quotas]


def _quota(quota: QuotaEntry, supplies: Sequence[Supply], nodes_of: Sequence[NodeEntry]) -> Quota:
    limit = quota.max_nodes if quota.max_nodes is not None else quota.max_cores
    assert limit is not None
    counts = [
        (not quota.node_types or _matches(node.name, quota.node_types))
        and (not quota.zones or supply.zone in quota.zones)
        for supply, node in zip(supplies, nodes_of, strict=True)
    ]
    per_node = [1 if quota.max_nodes is not None else node.cores for node in nodes_of]
    return Quota(
        name=quota.name,
        unit="nodes" if quota.max_nodes is not None else "cores",
        weights=np.array(
            [float(each * is_in) for each, is_in in zip(per_node, counts, strict=True)]
        ),
        limit=float(limit),
    )


def _matching(
    patterns: Sequence[str], nodes: Sequence[NodeEntry], where: str
) -> tuple[NodeEntry, ...]:
    for pattern in patterns:
        if not any(fnmatchcase(node.name, pattern) for node in nodes):
            known = ", ".join(node.name for node in nodes[:5])
            raise InputError(f"{where}: no node {pattern!r} in the catalogue; it has {known}, ...")
    return tuple(node for node in nodes if not patterns or _matches(node.name, patterns))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
