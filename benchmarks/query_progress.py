"""Batches of a query, from the progress that Spark reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any


def batches_of(progress: Sequence[Mapping[str, Any]]) -> list[tuple[float, float, int]]:
    """Begin since 1970 [s], duration [s] and rows of each batch that ended, in order, once each."""
    found = {
        one["batchId"]: (
            datetime.fromisoformat(one["timestamp"]).timestamp(),
            one["durationMs"]["triggerExecution"] / 1000.0,
            int(one["numInputRows"]),
        )
        for one in progress
        if one["numInputRows"]
    }
    return [found[batch] for batch in sorted(found)]
