"""State of a streaming query, as a whole and by operator, and the memory of its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOperatorProfile:
    """State of one operator at the end of the last run, and what its commits took.

    ``commit_s`` is the mean time per batch that the commits of its stores took together;
    ``store_metrics`` are means per batch of what its state store reports, with the names and units
    of Spark, summed over its stores.

    Examples
    --------
    >>> save = StateOperatorProfile(
    ...     name="stateStoreSave", rows=1000, memory_bytes=310_000, num_stores=5, commit_s=0.03
    ... )
    >>> save.store_metrics
    {}
    """

    name: str
    rows: int
    memory_bytes: int
    num_stores: int
    commit_s: float
    store_metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateProfile:
    """The state of the query at the end of the last run, and its cost per batch.

    ``commit_per_partition_s`` is the time of one state store's commit; ``growth_per_s`` is the
    number of rows by which the state grew per second of the last run. ``updated_rows`` is the mean
    number of state rows that a batch writes, ``updated_row_s`` the time that a task takes for one
    of them; None if not recorded. At another rate the rows of the state are multiplied by the ratio
    of the rates to the power ``rate_exponent``; 0 for a state that grows. ``operators`` are the
    parts of it, in the order in which Spark lists them: the one next to the sink first.
    """

    rows: int
    memory_bytes: int
    commit_per_partition_s: float
    growth_per_s: float
    updated_rows: float | None = None
    updated_row_s: float | None = None
    rate_exponent: float = 0.0
    operators: tuple[StateOperatorProfile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryProfile:
    """Measured peaks: of one task's execution memory, of one executor's heap, of spill."""

    peak_task_bytes: int
    peak_heap_bytes: int | None = None
    spilled_bytes: int = 0
