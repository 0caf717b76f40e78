"""Engines that read pieces of logs: processes of this machine, or Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headway.profiler.pieces import Order, Result


class Engine(Protocol):
    """Reads pieces of logs in some place."""

    def results(self, orders: Sequence[Order]) -> Iterator[Result]:
        """Results of the pieces, in their order; sums of one log may be combined."""
        ...
