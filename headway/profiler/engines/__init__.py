"""What reads pieces of logs: processes of this machine, or Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headway.profiler.pieces import Order, Result


class Engine(Protocol):
    """Has pieces of logs read, somewhere."""

    def results(self, orders: Sequence[Order]) -> Iterator[Result]:
        """What was made of the pieces, in their order; sums of one log may come as one."""
        ...
