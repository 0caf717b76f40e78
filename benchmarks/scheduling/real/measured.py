"""Latencies of windows and rows, from the progress of queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from headway.domain import WindowGrid
from headway.models.simulation.gate import QueryOutcome
from real.cells import TARGET_S


def outcome(
    progress: Sequence[Mapping[str, Any]], grid: WindowGrid | None, from_s: float, until_s: float
) -> QueryOutcome:
    """What became of a query between two times.

    Windows count that were due then, from their end above the watermark delay; of those that are
    open at the end, and have been due for longer than the target, what it was by then.

    Parameters
    ----------
    progress : sequence of mapping
        All progress events of the query, first batch first.
    grid : WindowGrid or None
        Where its windows end.
    from_s, until_s : float
        The time that counts. [s since the epoch]
    """
    waits = np.array(list(_row_waits(progress, from_s))).reshape(-1, 3)
    latencies_s, num_open = [], 0
    if grid is not None:
        emitted_s = _first_event_s(progress, from_s)
        for one in progress:
            watermark_s = _watermark_s(one)
            end_s = grid.first_end_after_s(emitted_s)
            while end_s <= watermark_s:
                due_s = end_s + grid.watermark_delay_s
                if due_s >= from_s:
                    latencies_s.append(committed_s(one) - due_s)
                end_s += grid.slide_s
            emitted_s = max(emitted_s, watermark_s)
        due_s = grid.first_end_after_s(max(emitted_s, from_s)) + grid.watermark_delay_s
        while due_s + TARGET_S < until_s:
            latencies_s.append(until_s - due_s)
            num_open += 1
            due_s += grid.slide_s
    return QueryOutcome(
        window_latency_s=np.array(latencies_s),
        num_open=num_open,
        row_wait_s=waits,
        num_batches=len(waits),
    )


def num_rows(progress: Sequence[Mapping[str, Any]], from_s: float) -> int:
    """Rows of the batches that have started since."""
    return sum(one["numInputRows"] for one in progress if epoch_s(one["timestamp"]) >= from_s)


def is_starved(rows: int, offered_rows: float) -> bool:
    """Whether a query has read less than half of the rows that were offered."""
    return rows < 0.5 * offered_rows


def starves(line: Mapping[str, Any]) -> bool:
    """Whether some query was starved in a run."""
    return any(is_starved(query["rows"], query["offered_rows"]) for query in line["queries"])


def epoch_s(text: str) -> float:
    """A timestamp of a progress event [s since the epoch].

    >>> epoch_s("1970-01-01T00:00:02.500Z")
    2.5
    """
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _row_waits(
    progress: Sequence[Mapping[str, Any]], from_s: float
) -> Iterator[tuple[float, float, int]]:
    """Of each batch the latency of its newest and of its oldest row, and its rows."""
    before_s = None
    for one in progress:
        start_s = epoch_s(one["timestamp"])
        if before_s is not None and start_s >= from_s and one["numInputRows"]:
            yield committed_s(one) - start_s, committed_s(one) - before_s, one["numInputRows"]
        before_s = start_s


def committed_s(one: Mapping[str, Any]) -> float:
    """When the sink had what a batch emitted."""
    spent = one["durationMs"]
    spent_ms: float = spent["triggerExecution"] - spent.get("commitOffsets", 0)
    return epoch_s(one["timestamp"]) + spent_ms / 1000.0


def _watermark_s(one: Mapping[str, Any]) -> float:
    event = one.get("eventTime", {})
    return epoch_s(event["watermark"]) if "watermark" in event else 0.0


def _first_event_s(progress: Sequence[Mapping[str, Any]], otherwise_s: float) -> float:
    """Windows before it hold no row."""
    events = (one.get("eventTime", {}) for one in progress)
    return next((epoch_s(one["min"]) for one in events if "min" in one), otherwise_s)
