"""Run time of jobs that end, on other slots: batch jobs, and streams that read a backlog."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from headway.assumptions.advice import FAR_OFF_RATIO, LONGEST_TASK_RATIO
from headway.assumptions.predictions import CALIBRATED_DOUBLINGS, USUAL_RUN_TO_RUN_RATIO
from headway.domain import ApplicationProfile, EndingJob, Finding, FindingCode, StreamBacklog
from headway.errors import InputError
from headway.limits import MOST_CORES, MOST_EXECUTORS
from headway.models.job.calibration import (
    doublings_beyond,
    doublings_outside,
    is_calibrated,
    is_within_reach,
    of_runs_and_fit,
    reasons_outside,
    widened,
)
from headway.models.job.declared import work_at
from headway.models.job.setting import duration_model
from headway.models.laws.normal import ndtr, ndtri
from headway.models.stages.dag import StageDag, run_time
from headway.planner.kinds.recorded_job import (
    batch_graph,
    incomplete_log,
    is_complete,
    longest_chain_s,
    require_tasks,
)

_FARTHEST_SCORE, _SCORE_TOLERANCE = 3.0, 1e-6
# A profile may say that nothing takes time, and that nothing varies.
_LEAST = 1e-9
_DYNAMIC_ALLOCATION = "spark.dynamicAllocation.enabled"
_PART_OF_EXECUTOR = 0.05  # less is not shown
# The recorded run and the future run each deviate by the usual spread: theory.md (P16).
_OWN_SPREAD = of_runs_and_fit(USUAL_RUN_TO_RUN_RATIO.value, num_settings=1, num_learned=1)


def run_time_of(job: EndingJob, core_speed_ratio: float = 1.0) -> JobTime:
    """The run time of a job on cores of a speed, by its profile.

    Raises InputError if the cores of a batch job are not recorded.
    """
    if job.backlog is not None:
        return BacklogRunTime(backlog=job.backlog, core_speed_ratio=core_speed_ratio)
    return BatchRunTime.of(job, seen_slots_of(job), core_speed_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRunTime:
    """The stage graph, what it does not contain, and the ratio of the recorded run to it.

    ``stages_ratio`` is that of the stages alone if the run was shorter than its model, since the
    driver's time was measured. ``chain_s`` is the longest chain of longest recorded tasks, and
    ``light_chain_s`` what light stages add to it.
    ``core_speed_ratio`` is the speed of the cores over that of the profiled ones. [-]
    ``work_ratio`` is below 1 if the tasks overlapped on record: Spark counts a task until the
    driver has its result, when the next one has begun on its slot.
    """

    profile: ApplicationProfile
    dag: StageDag
    seen_slots: int
    chain_s: float
    light_chain_s: float = 0.0
    modelled_ratio: float = 1.0
    stages_ratio: float = 1.0
    core_speed_ratio: float = 1.0
    work_ratio: float = 1.0

    @classmethod
    def of(
        cls, profile: ApplicationProfile, seen_slots: int, core_speed_ratio: float = 1.0
    ) -> BatchRunTime:
        """Raises InputError if the log contained too few of the tasks."""
        require_tasks(profile)
        dag = batch_graph(profile)
        chain_s = longest_chain_s(profile, dag)
        as_seen = cls(
            profile=profile,
            dag=dag,
            seen_slots=seen_slots,
            chain_s=chain_s,
            light_chain_s=max((profile.other_stages.chain_s or 0.0) - chain_s, 0.0),
        )
        ratio = stages_ratio = work_ratio = 1.0
        # Declared figures ran nowhere, and how long all of an incomplete log ran is unknown.
        if profile.provenance == "measured" and is_complete(profile):
            driver_s, modelled_s = profile.driver_only_s, as_seen.mean_s(seen_slots)
            ratio = stages_ratio = profile.duration_s / modelled_s
            if ratio < 1.0:
                recorded_s = profile.duration_s - driver_s
                stages_ratio = min(recorded_s / max(modelled_s - driver_s, _LEAST), 1.0)
                even_s = as_seen.work_s / seen_slots
                work_ratio = min(recorded_s / max(even_s, _LEAST), 1.0)
        return replace(
            as_seen,
            modelled_ratio=ratio,
            stages_ratio=stages_ratio,
            core_speed_ratio=core_speed_ratio,
            work_ratio=work_ratio,
        )

    @property
    def work_s(self) -> float:
        """Time of all tasks, those of light stages among them."""
        return self.dag.work_s + self.profile.other_stages.task_time_s

    def mean_s(self, slots: int) -> float:
        """Mean run time, as the sum of its parts."""
        return sum(self.parts_s(slots).values())

    def parts_s(self, slots: int) -> dict[str, float]:
        """Mean run time: driver alone, the graph, and light stages.

        These are evenly distributed work, but take no less than their longest tasks in a chain.
        """
        stages_s = max(run_time(self.dag, slots).mean_s, self.chain_s) / self.core_speed_ratio
        light_s = max(self.profile.other_stages.task_time_s / slots, self.light_chain_s)
        light_s /= self.core_speed_ratio
        parts_s = {
            "driver": max(self.modelled_ratio, 1.0) * self.profile.driver_only_s,
            "stages": self.stages_ratio * stages_s,
            "light stages": self.stages_ratio * light_s,
        }
        parts_s["stages"] += max(self._shortest_s(slots) - sum(parts_s.values()), 0.0)
        return parts_s

    def _shortest_s(self, slots: int) -> float:
        """What no scheduling goes below: all work distributed evenly, and the longest chain."""
        even_s = self.work_ratio * self.work_s / slots
        stages_s = max(even_s, self._longest_chain_s) / self.core_speed_ratio
        return self.profile.driver_only_s + stages_s

    @property
    def _longest_chain_s(self) -> float:
        return self.chain_s + self.light_chain_s

    def doublings_beyond(self, slots: int) -> float:
        """Doublings between this number of slots and that of the recorded run."""
        return float(doublings_outside(slots, self.seen_slots, self.seen_slots))

    def planned_s(self, slots: int, confidence: float) -> float:
        """The run time that is exceeded with at most the remaining probability."""
        return self.mean_s(slots) * self.planned_ratio(slots, confidence)

    def planned_ratio(self, slots: int, confidence: float) -> float:
        """The planned run time over its mean."""
        score = float(ndtri(confidence))
        if self.profile.declared is not None:
            return self._ratio_at(score, slots)
        return math.exp(score * self.spread_ratio(slots))

    def spread_ratio(self, slots: int) -> float:
        """Standard deviation of the logarithm of the true over the expected run time (P16).

        0 for declared figures, which have ranges instead (P19).
        """
        if self.profile.declared is not None:
            return 0.0
        doublings = self.doublings_beyond(slots), math.log2(self.core_speed_ratio)
        return float(widened(_OWN_SPREAD, *doublings))

    def kept_probability(self, slots: int, limit_s: float) -> float:
        """Probability that the run ends in time. [-]

        **(P26)** A batch job meets its deadline `L` with the probability `Φ(ln(L/T)/s)`, with `T`
        its expected run time and `s` that of (P16). With declared figures it is `Φ(z)`, with `z`
        the score from -3 to 3 at which the run lasts `L` by (P19). The verdict is as in (P23).
        """
        ratio = limit_s / self.mean_s(slots)
        if self.profile.declared is None:
            return float(ndtr(math.log(ratio) / self.spread_ratio(slots)))
        low, high = -_FARTHEST_SCORE, _FARTHEST_SCORE
        if self._ratio_at(high, slots) <= ratio:
            return float(ndtr(high))
        while high - low > _SCORE_TOLERANCE:
            middle = 0.5 * (low + high)
            is_kept = self._ratio_at(middle, slots) <= ratio
            low, high = (middle, high) if is_kept else (low, middle)
        return float(ndtr(low))

    def _ratio_at(self, score: float, slots: int) -> float:
        """Run time with declared figures at a score, over the expected run time."""
        profile_at_score = work_at(self.profile, score)
        if profile_at_score == self.profile:
            return 1.0
        at_score = BatchRunTime.of(profile_at_score, self.seen_slots, self.core_speed_ratio)
        return at_score.mean_s(slots) / self.mean_s(slots)

    def least_s(self, slots: int, confidence: float) -> float:
        """Lower bound of the planned run time: all work distributed evenly (J1)."""
        # The middle of declared figures is below any end that is used for planning.
        declared = self.profile.declared is not None
        ratio = 1.0 if declared else self.planned_ratio(slots, confidence)
        return max(self.modelled_ratio, 1.0) * self._shortest_s(slots) * ratio * (1.0 - 1e-9)

    def floor_s(self) -> float:
        """What no number of slots goes below: the driver, and the longest tasks of a chain.

        Declared tasks have no longest one: it is their mean run time with a slot for every task.
        """
        if self.profile.declared is not None:
            return self.mean_s(sum(stage.num_tasks for stage in self.dag.stages))
        return self.profile.driver_only_s + self._longest_chain_s / self.core_speed_ratio

    def is_calibrated(self, slots: int) -> bool:
        """Whether this number of slots is within the profiled range of a whole run."""
        is_measured = self.profile.provenance == "measured" and is_complete(self.profile)
        return is_measured and self._is_within_reach(slots)

    def findings(self, slots: int) -> Iterator[Finding]:
        """Findings that weaken a plan with this number of slots."""
        if self.profile.provenance == "declared":
            yield Finding(code=FindingCode.DECLARED)
            return
        if not is_complete(self.profile):
            yield incomplete_log(self.profile)
        if (varied := _executors_varied(self.profile)) is not None:
            yield varied
        if not self._is_within_reach(slots):
            yield Finding(
                code=FindingCode.SLOTS_FAR_OFF,
                numbers={
                    "slots": slots,
                    "least": self.seen_slots,
                    "most": self.seen_slots,
                    "reach_doublings": CALIBRATED_DOUBLINGS.value,
                },
            )
        ratio = self.modelled_ratio
        if not 1.0 / FAR_OFF_RATIO.value <= ratio <= FAR_OFF_RATIO.value:
            yield Finding(code=FindingCode.MODEL_FAR_OFF, numbers={"modelled_ratio": ratio})
        # That the last one failed is part of what makes a log incomplete.
        if self.profile.num_jobs_failed > (self.profile.last_job_failed is not None):
            numbers: dict[str, float] = {"num_jobs": self.profile.num_jobs_failed}
            yield Finding(code=FindingCode.JOBS_FAILED, numbers=numbers)
        largest = max(self.profile.stages, key=lambda stage: stage.task_time_s)
        mean_s, longest_s = largest.task_mean_s, largest.task_max_s
        if longest_s > LONGEST_TASK_RATIO.value * mean_s:
            numbers = {"stage_id": largest.id, "longest_s": longest_s, "mean_s": mean_s}
            if largest.largest_task_ratio is not None:
                numbers["rows_ratio"] = largest.largest_task_ratio
            names = {"stage": largest.called}
            yield Finding(code=FindingCode.SKEWED_STAGE, numbers=numbers, names=names)

    def _is_within_reach(self, slots: int) -> bool:
        return bool(is_within_reach(self.doublings_beyond(slots)))


def _executors_varied(profile: ApplicationProfile) -> Finding | None:
    """That executors came and went as the profiled run needed them, if so."""
    cluster = profile.cluster
    is_dynamic = profile.application.properties.get(_DYNAMIC_ALLOCATION) == "true"
    if not is_dynamic or cluster.executors_mean > cluster.executors - _PART_OF_EXECUTOR:
        return None
    numbers = {"executors": float(cluster.executors), "executors_mean": cluster.executors_mean}
    return Finding(code=FindingCode.EXECUTORS_VARIED, numbers=numbers)


@dataclass(frozen=True, kw_only=True)
class BacklogRunTime:
    """Batch after batch, and what the first ones take longer: a `JobTime`.

    ``core_speed_ratio`` is the speed of the cores over that of the profiled ones. [-]

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
    core_speed_ratio: float = 1.0

    @property
    def seen_slots(self) -> int:
        return self.backlog.slots.num_slots

    @property
    def modelled_ratio(self) -> float:
        """The profiled run over its modelled batches."""
        return self.backlog.drain.duration_s / self._seen_batches_s

    def mean_s(self, slots: int) -> float:
        return sum(self.parts_s(slots).values())

    def parts_s(self, slots: int) -> dict[str, float]:
        """Mean run time: driver and stages of all batches, and what the first take longer."""
        planned, ratio = self.backlog.planned, min(self.modelled_ratio, 1.0)
        driver_s, stages_s = self._batches_s(slots, self.core_speed_ratio, planned.backlog_rows)
        usual_s = sum(self._batch_s(slots, self.core_speed_ratio, planned.batch_rows))
        return {
            "driver": ratio * driver_s,
            "stages": ratio * stages_s,
            "first batches": self._more_batches * usual_s,
        }

    def planned_s(self, slots: int, confidence: float) -> float:
        return self.mean_s(slots) * math.exp(float(ndtri(confidence)) * self.spread_ratio(slots))

    def spread_ratio(self, slots: int) -> float:
        """Standard deviation of the logarithm of the true over the expected run time (P29)."""
        profile, planned = self.backlog.profile, self.backlog.planned
        run_spread = of_runs_and_fit(profile.noise.run_to_run_ratio, num_settings=1, num_learned=1)
        batch_spread = profile.noise.batch_ratio / math.sqrt(planned.num_batches)
        doublings = doublings_beyond(profile, *self._setting(slots))
        spread = widened(
            math.hypot(run_spread, batch_spread), *doublings, math.log2(self.core_speed_ratio)
        )
        return max(float(spread), _LEAST)

    def kept_probability(self, slots: int, limit_s: float) -> float:
        return float(ndtr(math.log(limit_s / self.mean_s(slots)) / self.spread_ratio(slots)))

    def least_s(self, slots: int, confidence: float) -> float:  # noqa: ARG002
        """The driver's part of the batches, which no number of slots shortens."""
        driver_s = self.backlog.profile.driver_s
        return min(self.modelled_ratio, 1.0) * self.backlog.planned.num_batches * driver_s

    def floor_s(self) -> float:
        """The shortest mean run time; some stages have the more tasks, the more slots there are."""
        most_doublings = math.ceil(math.log2(MOST_EXECUTORS * MOST_CORES))
        return min(self.mean_s(2**doublings) for doublings in range(most_doublings))

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


def expected_run_time_s(profile: ApplicationProfile, slots: int) -> float:
    """Mean run time of a batch job on a number of slots, by its profile [s].

    Raises InputError if its cores are not recorded.
    """
    return BatchRunTime.of(profile, seen_slots_of(profile)).mean_s(slots)


def seen_slots_of(profile: ApplicationProfile) -> int:
    if profile.cluster.num_slots is None:
        raise InputError(
            "the number of cores per executor is unknown; "
            "profile a log that contains SparkListenerExecutorAdded events"
        )
    return profile.cluster.num_slots
