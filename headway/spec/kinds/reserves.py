"""What a platform reserves on a node: system, agents, daemons; Spark can use the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from headway.domain import PLATFORMS
from headway.limits import MOST_CORES
from headway.spec.forms import entry
from headway.spec.forms.kinds import Choice, ListOf, Nested, Number, Text
from headway.spec.forms.quantities import DATE, SHARE, SIZE, SIZE_OR_ZERO
from headway.units import parse_size_bytes

_MIB = parse_size_bytes("1m")


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
