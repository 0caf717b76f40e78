"""Nodes and their prices."""

from __future__ import annotations

from dataclasses import dataclass

from headway.domain.writes import STORES
from headway.spec.forms import entry, require_different_names
from headway.spec.forms.kinds import Choice, ListOf, Nested, Number, Text, whole
from headway.spec.forms.quantities import CORES, DATE, NAME, PRICE, RATIO, SIZE
from headway.spec.kinds.reserves import ReserveEntry

_REQUESTS = whole(low=1, high=100)
_LISTS = whole(low=0, high=100)


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
        _LISTS,
        "Requests that list, at the price of a write, for each file. Default 0.",
        default=0,
    )
    lists_renamed: int = entry(
        _LISTS,
        "The same for a file that is renamed when it is complete. Default 0.",
        default=0,
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
