"""Nodes, their prices, what a platform reserves on them, and the cluster on which jobs run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from headway.assumptions.planning import MOST_NODES_OF_PLAN
from headway.domain import PLATFORMS
from headway.domain.writes import STORES
from headway.limits import MOST_CORES
from headway.spec.forms import entry, require_different_names
from headway.spec.forms.kinds import Choice, Flag, ListOf, NameOr, Nested, Number, Text, whole
from headway.spec.forms.quantities import (
    CORES,
    CORES_OR_ZERO,
    DATE,
    NAME,
    NODES,
    PRICE,
    RATIO,
    SHARE,
    SIZE,
    SIZE_OR_ZERO,
    SPARK_VERSION,
)
from headway.units import parse_size_bytes

_MIB = parse_size_bytes("1m")
_REQUESTS = whole(low=1, high=100)
_LISTS = whole(low=0, high=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTier:
    """A share of the cores of a node, up to a number of them."""

    up_to: float | None = entry(
        Number(words="a number of cores, above 0", above=True, high=MOST_CORES),
        "Number of cores at which the tier ends; default: it has all remaining cores.",
        default=None,
    )
    share_ratio: float = entry(SHARE, "Share that is reserved.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTier:
    """A share of the memory of a node, up to a size."""

    up_to_bytes: int | None = entry(
        SIZE, "Size at which the tier ends; default: it has all remaining memory.", default=None
    )
    share_ratio: float = entry(SHARE, "Share that is reserved.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveEntry:
    """What one or more platforms reserve on each node; the tiers follow each other.

    >>> half = (CoreTier(up_to=2.0, share_ratio=0.5),)
    >>> reserve = ReserveEntry(
    ...     platforms=("yarn",), cores=half, other_cores=0.5, date="2026-11-22", source="an example"
    ... )
    >>> reserve.cores_left(8), reserve.cores_left(1)
    (6, 0)
    """

    platforms: tuple[str, ...] = entry(
        ListOf(item=Choice(PLATFORMS), least=1, or_one=True), "The platforms.", key="platform"
    )
    cores: tuple[CoreTier, ...] = entry(
        ListOf(item=Nested(CoreTier)), "Shares of the cores.", default=()
    )
    other_cores: float = entry(
        Number(words="a number of cores, 0 or more", high=MOST_CORES),
        "Further reserved cores, e.g. for daemons on each node. Default 0.",
        default=0.0,
    )
    memory: tuple[MemoryTier, ...] = entry(
        ListOf(item=Nested(MemoryTier)), "Shares of the memory.", default=()
    )
    other_memory_bytes: int = entry(
        SIZE_OR_ZERO, "Further reserved memory. Default none.", default=0
    )
    date: str = entry(DATE, "When the figures were looked up.")
    source: str = entry(Text(), "Where the figures are from.")

    def cores_left(self, cores: int) -> int:
        """Whole cores of a node that executors can request."""
        reserved = _kept(float(cores), [(tier.up_to, tier.share_ratio) for tier in self.cores])
        return max(math.floor(cores - reserved - self.other_cores + 1e-9), 0)

    def memory_left_bytes(self, memory_bytes: int) -> int:
        """Memory of a node that executors' containers can request, in whole MiB [bytes]."""
        tiers = [(tier.up_to_bytes, tier.share_ratio) for tier in self.memory]
        available_bytes = memory_bytes - _kept(float(memory_bytes), tiers) - self.other_memory_bytes
        return max(math.floor(available_bytes / _MIB) * _MIB, 0)


def _kept(total: float, tiers: Iterable[tuple[float | None, float]]) -> float:
    """What tiers reserve: each one a share of the part between the previous end and its own."""
    reserved, begin = 0.0, 0.0
    for up_to, share in tiers:
        end = total if up_to is None else min(up_to, total)
        reserved += share * max(end - begin, 0.0)
        begin = max(begin, end)
    return reserved


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEntry:
    """One kind of node."""

    name: str = entry(NAME, "What it is called, e.g. `m6i.xlarge`.")
    provider: str = entry(
        NAME, "Who offers it, e.g. `aws`. Default `on-premises`.", default="on-premises"
    )
    region: str | None = entry(Text(), "Region of the price, e.g. `us-east-1`.", default=None)
    cores: int = entry(CORES, "Cores (vCPUs) of the node.")
    memory_bytes: int = entry(SIZE, "Memory, e.g. `16Gi`.")
    price_per_hour: float = entry(PRICE, "Price of an hour on demand, in the catalogue's currency.")
    spot_price_per_hour: float | None = entry(
        PRICE, "Price of an hour on the spot market, as last seen.", default=None
    )
    committed_price_per_hour: float | None = entry(
        PRICE, "Price of an hour when it is paid for around the clock for a year.", default=None
    )
    core_speed_ratio: float = entry(
        RATIO,
        "Core speed relative to the profiled cores: 1.2x needs 1/1.2 of the time. Default 1.",
        key="speed",
        default=1.0,
    )
    source: str | None = entry(Text(), "Where the figures are from.", default=None)

    def __post_init__(self) -> None:
        for name in ("spot_price_per_hour", "committed_price_per_hour"):
            price = getattr(self, name)
            if price is not None and price > self.price_per_hour:
                raise ValueError(
                    f"{self.name}: {name} is {price:g}, above the price on demand, "
                    f"{self.price_per_hour:g}; expected at most that"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreEntry:
    """What requests to one store of checkpoints cost, and space in it."""

    name: str = entry(Choice(STORES), "The store.")
    price_per_million_writes: float = entry(
        Number(words="a price per million write requests, 0 or more", high=1e6),
        "Price of a million write requests, in the catalogue's currency.",
    )
    requests_in_place: int = entry(
        _REQUESTS, "Write requests that a file takes. Default 1.", default=1
    )
    requests_renamed: int = entry(
        _REQUESTS,
        "Write requests that a file takes which is renamed when it is complete, as most files of a "
        "checkpoint are. Default 1.",
        default=1,
    )
    lists_in_place: int = entry(
        _LISTS, "Requests that list, at the price of a write, for each file. Default 0.", default=0
    )
    lists_renamed: int = entry(
        _LISTS, "The same for a file that is renamed when it is complete. Default 0.", default=0
    )
    lists_by_file_system: int | None = entry(
        _LISTS,
        "The same with `FileSystemBasedCheckpointFileManager`. Default: `lists_renamed`.",
        default=None,
    )
    price_per_gb_month: float = entry(
        Number(words="a price per GB and month, 0 or more", high=1e6),
        "Price of 1e9 bytes kept for a month of 30 days, in the catalogue's currency. Default 0.",
        default=0.0,
    )
    source: str | None = entry(Text(), "Where the price is from.", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCatalog:
    """Kinds of nodes with their prices, and of stores, at a date."""

    date: str = entry(DATE, "Date of the prices.")
    currency: str = entry(
        Text(pattern="[A-Z]{3}", words="a currency of three letters, e.g. USD"),
        "The currency of all prices.",
    )
    source: str | None = entry(Text(), "Where the prices are from.", default=None)
    nodes: tuple[NodeEntry, ...] = entry(
        ListOf(item=Nested(NodeEntry), least=1), "The kinds of nodes."
    )
    reserves: tuple[ReserveEntry, ...] = entry(
        ListOf(item=Nested(ReserveEntry)),
        "What platforms reserve on each node. Default: as in the catalogue that comes with "
        "Headway.",
        default=(),
    )
    stores: tuple[StoreEntry, ...] = entry(
        ListOf(item=Nested(StoreEntry)),
        "What writes to stores of checkpoints cost. Default: as in the catalogue that comes with "
        "Headway.",
        default=(),
    )

    def reserve_of(self, platform: str) -> ReserveEntry | None:
        """What a platform reserves on a node, if it is stated here."""
        return next((reserve for reserve in self.reserves if platform in reserve.platforms), None)

    def __post_init__(self) -> None:
        fault = "the node {!r} occurs twice; expected each name once"
        require_different_names(self.nodes, fault)
        require_different_names(self.stores, fault.replace("node", "store"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The nodes that jobs get, and how executors fill them."""

    platform: str = entry(
        Choice(PLATFORMS), "Platform that runs Spark. Default `standalone`.", default="standalone"
    )
    spark_version: str | None = entry(
        SPARK_VERSION,
        "Spark version, which determines property names. Default: as profiled.",
        default=None,
    )
    node: str | NodeEntry = entry(
        NameOr(NAME, NodeEntry), "A node of the catalogue by its name, or its figures written out."
    )
    max_nodes: int = entry(
        NODES,
        f"Maximum number of nodes. Default {MOST_NODES_OF_PLAN.value}.",
        default=MOST_NODES_OF_PLAN.value,
    )
    cores_per_executor: int | None = entry(
        CORES, "Cores of an executor. Default: as profiled.", default=None
    )
    executor_memory_bytes: int | None = entry(
        SIZE, "Heap of an executor. Default: as profiled.", default=None
    )
    lower_memory: bool = entry(
        Flag(),
        "Whether executors may have less heap than the profiled ones, down to what was measured. "
        "Default false.",
        default=False,
    )
    reserved_cores: int | None = entry(
        CORES_OR_ZERO,
        "Cores of each node that are reserved for the system. Default: by platform, as in the "
        "catalogue that comes with Headway.",
        default=None,
    )
    reserved_memory_bytes: int | None = entry(
        SIZE_OR_ZERO,
        "Memory of each node that is reserved for the system. Default: by platform.",
        default=None,
    )
