"""Plain facts of a run, from the progress that Spark reports: phases, state and empty batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from campaign.truth import window_commits_s

from headway.runtime.measure import begun_epoch_s
from headway.units import ms_to_s

_SUMMED = (
    *("commitTimeMs", "allUpdatesTimeMs", "allRemovalsTimeMs", "numRowsTotal"),
    *("numRowsUpdated", "numRowsRemoved", "memoryUsedBytes", "numStateStoreInstances"),
)

Event = Mapping[str, Any]


def facts_of(events: Sequence[Event], after_s: float) -> dict[str, Any]:
    """Means over the batches that began after an instant, with rows and without."""
    steady = [event for event in events if begun_epoch_s(event) >= after_s]
    with_rows = [event for event in steady if event["numInputRows"]]
    empty = [event for event in steady if not event["numInputRows"] and _has_run(event)]
    return {
        "num_batches": len(with_rows),
        "num_empty_batches": len(empty),
        "interval_s": _interval_s(with_rows),
        "phases_s": _phases_s(with_rows),
        "empty_phases_s": _phases_s(empty),
        "state": _state(with_rows),
        "empty_state": _state(empty),
    }


def mean_window_delay_s(events: Sequence[Event], from_s: float, to_s: float) -> float | None:
    """Mean time from the end of windows, of those that end in an interval, to their commit [s].

    None if none was emitted.
    """
    delays_s = [
        committed_s - end_s
        for end_s, committed_s in window_commits_s(events).items()
        if from_s < end_s <= to_s
    ]
    return float(np.mean(delays_s)) if delays_s else None


def _has_run(event: Event) -> bool:
    """Whether a batch ran; Spark also reports triggers at which there was nothing to do."""
    return "addBatch" in event["durationMs"]


def _interval_s(events: Sequence[Event]) -> float | None:
    begun_s = [begun_epoch_s(event) for event in events]
    return (begun_s[-1] - begun_s[0]) / (len(begun_s) - 1) if len(begun_s) > 1 else None


def _phases_s(events: Sequence[Event]) -> dict[str, float]:
    names = sorted({name for event in events for name in event["durationMs"]})
    return {
        name: float(np.mean([ms_to_s(event["durationMs"].get(name, 0)) for event in events]))
        for name in names
    }


def _state(events: Sequence[Event]) -> dict[str, float]:
    """Means per batch of what the state operators report, summed over operators and stores."""
    sums: dict[str, float] = defaultdict(float)
    for event in events:
        for operator in event["stateOperators"]:
            for name in _SUMMED:
                sums[name] += operator.get(name) or 0
            for name, amount in (operator.get("customMetrics") or {}).items():
                # Some are of single stores, with a dot in their name.
                if isinstance(amount, int | float) and "." not in name:
                    sums[name] += amount
    return {name: amount / len(events) for name, amount in sorted(sums.items())}
