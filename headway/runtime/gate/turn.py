"""Turns within ``foreachBatch``, for queries whose trigger clock cannot be replaced."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headway.errors import InputError
from headway.redaction import redact
from headway.units import s_to_ms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_FOREACH_BATCH = "ForeachBatch"
_LOOK_EVERY_S = 0.1


class Turn:
    """A function for ``foreachBatch`` that waits for its turn before it calls the given function.

    The rows of a batch are chosen before it waits, and its wait counts as part of it. So the
    trigger clock is the better place; this one is for Spark versions in which it cannot be
    replaced. Before the query is added to a gate, and whenever the gate is open, nothing waits. A
    query that is stopped while it waits ends without the batch, which is repeated at its next
    start.

    The function is called with a batch and its number. Raises InputError if it is not callable.
    """

    def __init__(self, batch_function: Callable[[DataFrame, int], None]) -> None:
        if not callable(batch_function):
            raise InputError(
                f"in_turn: got {batch_function!r}; expected a function of a batch and its number, "
                "as foreachBatch takes it"
            )
        self._each = batch_function
        self._granted = threading.Event()
        self._hub: Any = None
        self._query: StreamingQuery | None = None
        self._number = 0

    @property
    def is_taken(self) -> bool:
        """Whether it is used by a query under a gate."""
        return self._hub is not None

    def join(self, hub: Any, number: int, query: StreamingQuery) -> None:
        """Wait from the next batch on."""
        self._query, self._number = query, number
        self._hub = hub

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        hub, number = self._hub, self._number
        if hub is None:
            self._each(batch, batch_id)
            return
        self._wait(hub, number)
        try:
            self._each(batch, batch_id)
        finally:
            with contextlib.suppress(Exception):
                # An internal fault must not fail a batch.
                hub.over(number)

    def grant(self) -> None:
        """Let the waiting batch continue."""
        self._granted.set()

    def release(self) -> None:
        """From now on, batches do not wait."""
        self._hub = None
        self._granted.set()

    def _wait(self, hub: Any, number: int) -> None:
        self._granted.clear()
        with contextlib.suppress(Exception):
            # If the JVM is gone, nothing receives this and nothing answers, so it must not wait
            # forever.
            hub.post(number, round(s_to_ms(time.time())))
        while not self._granted.wait(_LOOK_EVERY_S):
            if self._hub is None or hub.isOpen():
                return
            if self._query is None or not self._query.isActive:
                hub.awaitInterrupt()
                return


def require_turn_of(query: StreamingQuery, turn: object) -> None:
    """Require an unused turn, of a query that writes by ``foreachBatch``.

    Raises InputError if it is something else.
    """
    if not isinstance(turn, Turn):
        raise InputError(
            f"in_turn: got {turn!r}; expected what gate.in_turn(FUNCTION) gives, with which the "
            "query was started: foreachBatch(turn)"
        )
    if turn.is_taken:
        raise InputError(
            "in_turn: another query under a gate has this turn; expected one for each query: "
            "gate.in_turn(FUNCTION)"
        )
    progress = query.lastProgress
    sink = _FOREACH_BATCH if progress is None else redact(progress["sink"]["description"])
    if _FOREACH_BATCH not in sink:
        raise InputError(
            f"in_turn: query {redact(query.name or str(query.id))} writes to {sink}; expected one "
            "that was started with foreachBatch(turn). It goes on ungated"
        )
