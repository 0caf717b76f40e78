"""Core time of batches, learned while queries run, as input of the simulation for `auto`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.assumptions.turns import LEARNED_NOISE_RATIO
from headway.models.scheduling.stagger import num_at_once, stagger_offsets_s
from headway.models.simulation.gate import QueryWork
from headway.units import ms_to_s

if TYPE_CHECKING:
    from headway.runtime.gate.member import Member

_LEAST_OBSERVED_S = 1.0


class TaskTime:
    """Cores of a session, and time of tasks over that of their batches, from the driver's store.

    Progress contains the duration of a batch, but not how many cores it kept busy. ``cores`` are
    those of all executors, ``driver_cores`` those of them that a driver takes while it works: one
    in local mode. [-]
    """

    def __init__(self, context: Any) -> None:
        self.cores = float(context.defaultParallelism)
        self.driver_cores = 1.0 if context._jsc.isLocal() else 0.0
        self._store = context._jsc.sc().statusStore()
        self._work_s = 0.0
        self._tasks_then_s = self._total_s()

    def observe(self, work_s: float) -> None:
        """Add a finished batch with the duration of its executors' part."""
        self._work_s += work_s

    @property
    def busy_cores(self) -> float | None:
        """Cores that a batch keeps busy while executors work for it; None if not yet known."""
        if self._work_s < _LEAST_OBSERVED_S:
            return None
        return (self._total_s() - self._tasks_then_s) / self._work_s

    def works_of(self, members: Sequence[Member]) -> list[QueryWork]:
        """Costs of the batches of each query."""
        busy_cores = self.busy_cores
        return [
            learned_work(member, self.cores, busy_cores, self.driver_cores) for member in members
        ]

    def _total_s(self) -> float:
        executors = self._store.executorList(False)
        return ms_to_s(sum(executors.apply(at).totalDuration() for at in range(executors.size())))


def learned_work(
    member: Member, cores: float, busy_cores: float | None, driver_cores: float = 0.0
) -> QueryWork:
    """Costs of the batches of a query.

    ``cores`` and ``driver_cores`` are those of :class:`TaskTime`. Batches kept ``busy_cores`` busy
    on average while executors worked for them; None assumes all cores that a batch had. [-]
    """
    before_s, work_s, after_s = member.mean_parts_s
    # While others ran at the same time, a batch had its share of the cores.
    share_cores = cores / member.mean_at_once
    core_s = work_s * min(busy_cores or share_cores, share_cores)
    fixed_s, per_row_s = member.durations.line
    # On the same cores, others slow down the driver too.
    driver_ratio = min(share_cores / driver_cores, 1.0) if driver_cores > 0.0 else 1.0
    rows = max((before_s + work_s + after_s - fixed_s) / per_row_s, 0.0) if per_row_s > 0 else 0.0
    per_row_core_s = min(per_row_s * share_cores, core_s / rows if rows > 0 else 0.0)
    return QueryWork(
        query=member.declared,
        rate_per_s=max(member.rate_per_s, 1e-9),
        # Time in which executors were not busy is the driver's.
        before_s=driver_ratio * (before_s + max(work_s - core_s / share_cores, 0.0)),
        after_s=driver_ratio * after_s,
        fixed_core_s=max(core_s - per_row_core_s * rows, 1e-3),
        per_row_core_s=per_row_core_s,
        noise_ratio=LEARNED_NOISE_RATIO.value,
        closing_delay_s=max(member.closing_delay_s, 0.0),
        closing_lags=member.closing_lags,
        driver_cores=driver_cores,
    )


def usual_at_once(members: Sequence[Member], driver_ratio: float) -> int:
    """Number of concurrent batches that keeps the cores busy while drivers plan and commit."""
    parts = [member.mean_parts_s for member in members]
    work_s = max(statistics.fmean(work for _, work, _ in parts), 1e-3)
    total_s = max(statistics.fmean(map(sum, parts)), 1e-3)
    return num_at_once(total_s, work_s, len(members), driver_ratio=driver_ratio)


def best_offsets_s(members: Sequence[Member]) -> tuple[float, ...]:
    """Separate ticks for all queries, just after their windows close if they have windows [s]."""
    windows_and_delays = [(member.declared.windows, member.closing_delay_s) for member in members]
    return stagger_offsets_s(
        [member.declared.trigger_s for member in members],
        [sum(member.mean_parts_s) for member in members],
        [
            0.0 if windows is None else windows.offset_s + windows.watermark_delay_s + delay_s
            for windows, delay_s in windows_and_delays
        ],
    )
