"""Run time of a streaming query that reads a backlog and ends, and of batch jobs of any kind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from headway.domain import EndingJob, Finding, StreamBacklog
from headway.limits import MOST_CORES, MOST_EXECUTORS
from headway.models.job.calibration import (
    doublings_beyond,
    is_calibrated,
    of_runs_and_fit,
    reasons_outside,
    widened,
)
from headway.models.job.setting import duration_model
from headway.models.laws.normal import ndtr, ndtri
from headway.planner.kinds.batch_run_time import BatchRunTime, seen_slots_of

# A profile may say that nothing takes time, and that nothing varies.
_LEAST = 1e-9


def run_time_of(job: EndingJob) -> JobTime:
    """The run time of a job, by its profile.

    Raises InputError if the cores of a batch job are not recorded.
    """
    if job.backlog is not None:
        return BacklogRunTime(backlog=job.backlog)
    return BatchRunTime.of(job, seen_slots_of(job))


@dataclass(frozen=True, kw_only=True)
class BacklogRunTime:
    """Batch after batch, and what the first ones take longer: a `JobTime`.

    Notes
    -----
    **(P29)** Backlog of a stream: a run that reads `N` rows in batches of `R`, one after the other,
    takes `T = k D(R) + D(N-kR) + w D(R)`, with `D` of (T1) at its slots, `k` the number of full
    batches, and no second term if `kR = N`. `R` is the median of the profiled run, since a limit on
    rows, bytes or files per batch stays. `w` is what that run took beyond its first terms, in
    batches: a young JVM compiles its code in every run, however many rows it reads. If that run was
    shorter than its first terms, `w = 0`, and these are scaled by the ratio. The logarithm of true
    over expected run times has the standard deviation of (P16), with `s_r` of the profile, and of
    `k` batches with the noise `c` that of their mean, `c/sqrt(k)`. A plan and its probability
    follow as in (P16) and (P26). The start of the application is not part of it.
    """

    backlog: StreamBacklog

    @property
    def seen_slots(self) -> int:
        return self.backlog.slots.num_slots

    @property
    def modelled_ratio(self) -> float:
        """The profiled run over its modelled batches."""
        return self.backlog.drain.duration_s / self._seen_batches_s

    def mean_s(self, slots: int, core_speed_ratio: float) -> float:
        return sum(self.parts_s(slots, core_speed_ratio).values())

    def parts_s(self, slots: int, core_speed_ratio: float) -> dict[str, float]:
        """Mean run time: driver and stages of all batches, and what the first take longer."""
        planned, ratio = self.backlog.planned, min(self.modelled_ratio, 1.0)
        driver_s, stages_s = self._batches_s(slots, core_speed_ratio, planned.backlog_rows)
        usual_s = sum(self._batch_s(slots, core_speed_ratio, planned.batch_rows))
        return {
            "driver": ratio * driver_s,
            "stages": ratio * stages_s,
            "first batches": self._more_batches * usual_s,
        }

    def planned_s(self, slots: int, core_speed_ratio: float, confidence: float) -> float:
        spread = self.spread_ratio(slots, core_speed_ratio)
        return self.mean_s(slots, core_speed_ratio) * math.exp(float(ndtri(confidence)) * spread)

    def spread_ratio(self, slots: int, core_speed_ratio: float) -> float:
        """Standard deviation of the logarithm of the true over the expected run time (P29)."""
        profile, planned = self.backlog.profile, self.backlog.planned
        run_spread = of_runs_and_fit(profile.noise.run_to_run_ratio, num_settings=1, num_learned=1)
        batch_spread = profile.noise.batch_ratio / math.sqrt(planned.num_batches)
        doublings = doublings_beyond(profile, *self._setting(slots))
        spread = widened(
            math.hypot(run_spread, batch_spread), *doublings, math.log2(core_speed_ratio)
        )
        return max(float(spread), _LEAST)

    def kept_probability(self, slots: int, core_speed_ratio: float, limit_s: float) -> float:
        ratio = limit_s / self.mean_s(slots, core_speed_ratio)
        return float(ndtr(math.log(ratio) / self.spread_ratio(slots, core_speed_ratio)))

    def least_s(self, slots: int, core_speed_ratio: float, confidence: float) -> float:  # noqa: ARG002
        """The driver's part of the batches, which no number of slots shortens."""
        driver_s = sum(phase.mean_s for phase in self.backlog.profile.driver_phases)
        return min(self.modelled_ratio, 1.0) * self.backlog.planned.num_batches * driver_s

    def floor_s(self, core_speed_ratio: float) -> float:
        """The shortest mean run time; some stages have the more tasks, the more slots there are."""
        most_doublings = math.ceil(math.log2(MOST_EXECUTORS * MOST_CORES))
        return min(
            self.mean_s(2**doublings, core_speed_ratio) for doublings in range(most_doublings)
        )

    def is_calibrated(self, slots: int) -> bool:
        return bool(is_calibrated(self.backlog.profile, *self._setting(slots)))

    def findings(self, slots: int) -> Iterator[Finding]:
        yield from reasons_outside(self.backlog.profile, *self._setting(slots))

    def _setting(self, slots: int) -> tuple[int, int, float]:
        planned = self.backlog.planned
        return slots, self.backlog.slots.shuffle_partitions, planned.batch_rows

    @cached_property
    def _seen_batches_s(self) -> float:
        return sum(self._batches_s(self.seen_slots, 1.0, self.backlog.drain.backlog_rows))

    @cached_property
    def _more_batches(self) -> float:
        """How much longer the profiled run was than its batches, in usual batches."""
        drain = self.backlog.drain
        usual_s = sum(self._batch_s(self.seen_slots, 1.0, drain.batch_rows))
        return max(drain.duration_s - self._seen_batches_s, 0.0) / usual_s

    def _batches_s(self, slots: int, core_speed_ratio: float, rows: float) -> tuple[float, float]:
        """Time of the driver, and of the stages, in the batches that read a backlog."""
        planned = replace(self.backlog, backlog_rows=rows).planned
        last_rows = planned.backlog_rows - (planned.num_batches - 1) * planned.batch_rows
        full = self._batch_s(slots, core_speed_ratio, planned.batch_rows)
        last = self._batch_s(slots, core_speed_ratio, last_rows)
        driver_s, stages_s = (
            (planned.num_batches - 1) * usual_s + last_s
            for usual_s, last_s in zip(full, last, strict=True)
        )
        return driver_s, stages_s

    def _batch_s(self, slots: int, core_speed_ratio: float, rows: float) -> tuple[float, float]:
        partitions = self.backlog.slots.shuffle_partitions
        model = duration_model(self.backlog.profile, slots, partitions, rows)
        stages_s = max(float(model.mean_s(rows)) - model.driver_s, _LEAST)
        return model.driver_s, stages_s / core_speed_ratio


#: The run time of a job that ends, on a number of slots: as expected, and as planned.
JobTime: TypeAlias = BatchRunTime | BacklogRunTime
