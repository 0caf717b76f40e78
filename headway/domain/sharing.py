"""Predicted effect of sharing the windows of a query, for each way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from headway.domain.result import Result
from headway.domain.window_set import WindowSet
from headway.lazy_classes import dataclass

#: Ways to count windows; the first is Spark's own.
WindowsHow: TypeAlias = Literal["direct", "panes", "fused", "log"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingWay:
    """One way at one trigger; window latency is None if the profile does not contain it.

    ``state_rows`` are rows of Spark's state, ``log_rows`` rows of partial windows in a store;
    ``rollups`` are windows that the log makes only for larger ones. ``saved_s`` is the mean batch
    time of the direct query at the same trigger minus that of this way, for the same rows, from
    ``saved_low_s`` to ``saved_high_s`` depending on costs that the profile does not contain. If
    batches of the direct query take longer than the trigger interval, these are rows of batches of
    this way.
    """

    how: WindowsHow = field(metadata={"then": {"pays": "pays"}})
    is_stable: bool = field(metadata={"key": "stable"})
    trigger_s: float
    batch_mean_s: float
    batch_p99_s: float
    saved_low_s: float = field(metadata={"key": "saved_s.low"})
    saved_s: float = field(metadata={"key": "saved_s.mid"})
    saved_high_s: float = field(metadata={"key": "saved_s.high"})
    utilization_ratio: float
    window_p99_s: float | None
    state_rows: float
    log_rows: float
    rollups: tuple[str, ...] = ()

    @property
    def pays(self) -> bool:
        """Whether batches are predicted to take less time than those of the direct query."""
        return self.how != "direct" and self.is_stable and self.saved_s > 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWindows:
    """One of several queries over the same rows, which counts its windows directly on its own."""

    name: str
    windows: WindowSet
    batch_mean_s: float
    utilization_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharingGain(Result):
    """Effect of sharing for a profiled query: every way at its trigger, and the best setting.

    From ``break_even_rows`` or ``break_even_keys`` of a batch on panes pay off. ``work_by_mode_s``
    is the processor time per longest window in the paper's modes, of which the split one takes less
    than counting directly from ``break_even_windows_ratio`` windows per row on; ``pause_by_mode_s``
    is how long rows wait while the keys of a partition are moved. ``merges_ratio`` is the minimum
    number of merges, with ``rollups``, over that from panes alone, ``busiest_ratio`` the load of
    the busiest slot over an even share, ``moved_ratio`` with partitions moved at best. ``queries``
    currently count the windows, if several; ``ways`` then count them in one. ``is_update``: windows
    are emitted again and again.
    """

    result_kind = "windows"
    windows: WindowSet = field(metadata={"key": None})
    rate_per_s: float
    batch_rows: float
    batch_keys: float = field(metadata={"then": {"pays": "paying"}})
    ways: tuple[SharingWay, ...]
    best: SharingWay
    break_even_rows: float
    break_even_keys: float
    rollups: tuple[str, ...]
    merges_ratio: float
    work_by_mode_s: Mapping[str, float] = field(metadata={"key": "modes.work_s"})
    break_even_windows_ratio: float = field(metadata={"key": "modes.break_even_windows_per_row"})
    pause_by_mode_s: Mapping[str, float] = field(metadata={"key": "modes.pause_s"})
    busiest_ratio: float = field(metadata={"key": "busiest_slot_ratio"})
    moved_ratio: float = field(metadata={"key": "busiest_slot_moved_ratio"})
    assumed: tuple[str, ...]
    is_update: bool = field(default=False, metadata={"key": None})
    queries: tuple[QueryWindows, ...] = field(default=(), metadata={"key": None})

    @property
    def apart_ratio(self) -> float:
        """Total utilisation of all queries, if each runs separately."""
        return sum(query.utilization_ratio for query in self.queries)

    @property
    def paying(self) -> bool:
        """Whether any way pays off, or another way at another trigger does."""
        if self.queries:
            # Update mode takes one aggregation a query.
            is_one = self.best.how != "direct" or not self.is_update
            less = self.best.utilization_ratio < self.apart_ratio
            return is_one and self.best.is_stable and less
        return self.best.how != "direct" or any(way.pays for way in self.ways)
