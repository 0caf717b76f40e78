"""The driver of an application: how busy its queries keep it, and what it should get."""

from __future__ import annotations

from headway.domain.checks import require_not_negative
from headway.lazy_classes import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDriver:
    """The driver of one or several queries of an application: theory.md (U2)-(U4).

    Its queries keep ``busy_cores`` busy of ``cores``, the cores that are given or planned, and
    ``needed_cores`` leave the room that it needs. As many queries of the same kinds as
    ``knee_queries`` saturate it, from ``knee_low_queries`` to ``knee_high_queries`` with 90%
    probability: beyond, batches no longer keep their triggers. ``heap_bytes`` is the heap to set.
    ``is_shared_with_tasks`` if driver and executor are one JVM, whose cores the tasks need, too.

    >>> driver = PlannedDriver(
    ...     num_queries=4, busy_cores=0.5, cores=1, needed_cores=1, knee_queries=8.0,
    ...     knee_low_queries=6.8, knee_high_queries=9.4, heap_bytes=2**30,
    ... )
    >>> driver.utilization_ratio, driver.is_saturated
    (0.5, False)
    """

    num_queries: int
    busy_cores: float
    cores: int
    needed_cores: int
    knee_queries: float
    knee_low_queries: float
    knee_high_queries: float
    heap_bytes: int
    is_shared_with_tasks: bool = False

    def __post_init__(self) -> None:
        require_not_negative("driver", busy_cores=self.busy_cores)
        if min(self.num_queries, self.cores, self.needed_cores) < 1:
            raise ValueError(
                f"driver: {self.num_queries} queries on {self.cores} cores, {self.needed_cores} "
                "needed; expected at least 1 of each"
            )
        if not 0 < self.knee_low_queries <= self.knee_queries <= self.knee_high_queries:
            raise ValueError(
                f"driver: saturated by {self.knee_queries:g} queries, from "
                f"{self.knee_low_queries:g} to {self.knee_high_queries:g}; expected positive "
                "numbers in order"
            )

    @property
    def utilization_ratio(self) -> float:
        """Share of time that its cores are busy; 1 or more if it is saturated."""
        return self.busy_cores / self.cores

    @property
    def is_saturated(self) -> bool:
        """Whether batches are not expected to keep their triggers."""
        return self.utilization_ratio >= 1.0
