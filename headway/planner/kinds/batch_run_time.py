"""Run time of a batch job on other slots: its stage graph, scaled to the recorded run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headway.assumptions.advice import FAR_OFF_RATIO, LONGEST_TASK_RATIO
from headway.assumptions.predictions import CALIBRATED_DOUBLINGS, USUAL_RUN_TO_RUN_RATIO
from headway.domain import ApplicationProfile, Finding, FindingCode, RecordedStage
from headway.errors import InputError
from headway.models.job.calibration import (
    doublings_outside,
    is_within_reach,
    of_runs_and_fit,
    widened,
)
from headway.models.job.declared import work_at
from headway.models.laws.normal import ndtr, ndtri
from headway.models.stages.dag import StageDag, run_time
from headway.models.stages.pooling import JobStage

_SAME_MOMENT_S = 0.001
_FARTHEST_SCORE, _SCORE_TOLERANCE = 3.0, 1e-6
# The recorded run and the future run each deviate by the usual spread: theory.md (P16).
_OWN_SPREAD = of_runs_and_fit(USUAL_RUN_TO_RUN_RATIO.value, num_settings=1, num_learned=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRunTime:
    """The stage graph, what it does not contain, and the ratio of the recorded run to it."""

    profile: ApplicationProfile
    dag: StageDag
    seen_slots: int
    modelled_ratio: float

    @classmethod
    def of(cls, profile: ApplicationProfile, seen_slots: int) -> BatchRunTime:
        dag = StageDag(stages=tuple(job_stages(profile.stages)))
        unscaled = cls(profile=profile, dag=dag, seen_slots=seen_slots, modelled_ratio=1.0)
        if profile.provenance == "declared":
            return unscaled
        ratio = profile.duration_s / unscaled.mean_s(seen_slots, 1.0)
        return cls(profile=profile, dag=dag, seen_slots=seen_slots, modelled_ratio=ratio)

    def mean_s(self, slots: int, core_speed_ratio: float) -> float:
        """Mean run time, as the sum of its parts."""
        return sum(self.parts_s(slots, core_speed_ratio).values())

    def parts_s(self, slots: int, core_speed_ratio: float) -> dict[str, float]:
        """Mean run time: driver alone, the graph, and light stages as evenly distributed work."""
        stages_s = run_time(self.dag, slots).mean_s / core_speed_ratio
        others_s = self.profile.other_stages.task_time_s / slots / core_speed_ratio
        parts_s = {
            "driver": self.profile.driver_only_s,
            "stages": stages_s,
            "light stages": others_s,
        }
        return {name: self.modelled_ratio * part_s for name, part_s in parts_s.items()}

    def doublings_beyond(self, slots: int) -> float:
        """Doublings between this number of slots and that of the recorded run."""
        return float(doublings_outside(slots, self.seen_slots, self.seen_slots))

    def planned_s(self, slots: int, core_speed_ratio: float, confidence: float) -> float:
        """The run time that is exceeded with at most the remaining probability."""
        return self.mean_s(slots, core_speed_ratio) * self.planned_ratio(
            slots, core_speed_ratio, confidence
        )

    def planned_ratio(self, slots: int, core_speed_ratio: float, confidence: float) -> float:
        """The planned run time over its mean."""
        if self.profile.declared is not None:
            return self._ratio_at(float(ndtri(confidence)), slots, core_speed_ratio)
        return math.exp(float(ndtri(confidence)) * self.spread_ratio(slots, core_speed_ratio))

    def spread_ratio(self, slots: int, core_speed_ratio: float) -> float:
        """Standard deviation of the logarithm of the true over the expected run time (P16).

        0 for declared figures, which have ranges instead (P19).
        """
        if self.profile.declared is not None:
            return 0.0
        doublings = self.doublings_beyond(slots), math.log2(core_speed_ratio)
        return float(widened(_OWN_SPREAD, *doublings))

    def kept_probability(self, slots: int, core_speed_ratio: float, limit_s: float) -> float:
        """Probability that the run ends in time. [-]

        ``core_speed_ratio`` is the speed of its cores over that of the profiled ones. [-]

        Notes
        -----
        **(P26)** A batch job meets its deadline `L` with the probability `Φ(ln(L/T)/s)`, with `T`
        its expected run time and `s` that of (P16). With declared figures it is `Φ(z)`, with `z`
        the score from -3 to 3 at which the run lasts `L` by (P19). The verdict is as in (P23).
        """
        ratio = limit_s / self.mean_s(slots, core_speed_ratio)
        if self.profile.declared is None:
            return float(ndtr(math.log(ratio) / self.spread_ratio(slots, core_speed_ratio)))
        low, high = -_FARTHEST_SCORE, _FARTHEST_SCORE
        if self._ratio_at(high, slots, core_speed_ratio) <= ratio:
            return float(ndtr(high))
        while high - low > _SCORE_TOLERANCE:
            middle = 0.5 * (low + high)
            is_kept = self._ratio_at(middle, slots, core_speed_ratio) <= ratio
            low, high = (middle, high) if is_kept else (low, middle)
        return float(ndtr(low))

    def _ratio_at(self, score: float, slots: int, core_speed_ratio: float) -> float:
        """Run time with declared figures at a score, over the expected run time."""
        profile_at_score = work_at(self.profile, score)
        if profile_at_score == self.profile:
            return 1.0
        longer_s = BatchRunTime.of(profile_at_score, self.seen_slots).mean_s(
            slots, core_speed_ratio
        )
        return longer_s / self.mean_s(slots, core_speed_ratio)

    def least_s(self, slots: int, core_speed_ratio: float, confidence: float) -> float:
        """Lower bound of the planned run time: all work distributed evenly (J1)."""
        work_s = (
            (self.dag.work_s + self.profile.other_stages.task_time_s) / slots / core_speed_ratio
        )
        least_s = self.modelled_ratio * (self.profile.driver_only_s + work_s)
        # The middle of declared figures is below any end that is used for planning.
        declared = self.profile.declared is not None
        ratio = 1.0 if declared else self.planned_ratio(slots, core_speed_ratio, confidence)
        return least_s * ratio * (1.0 - 1e-9)

    def floor_s(self, core_speed_ratio: float) -> float:
        """The mean run time with a slot for every task: the driver, and the longest chain."""
        return self.mean_s(sum(stage.num_tasks for stage in self.dag.stages), core_speed_ratio)

    def is_calibrated(self, slots: int) -> bool:
        """Whether this number of slots is within the profiled range."""
        return self.profile.provenance == "measured" and self._is_within_reach(slots)

    def findings(self, slots: int) -> Iterator[Finding]:
        """Findings that weaken a plan with this number of slots."""
        if self.profile.provenance == "declared":
            yield Finding(code=FindingCode.DECLARED)
            return
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
        if self.profile.num_jobs_failed:
            numbers: dict[str, float] = {"num_jobs": self.profile.num_jobs_failed}
            yield Finding(code=FindingCode.JOBS_FAILED, numbers=numbers)
        largest = max(self.profile.stages, key=lambda stage: stage.task_time_s)
        mean_s, longest_s = largest.task_time.mean_s, largest.task_time.max_s
        if longest_s > LONGEST_TASK_RATIO.value * mean_s:
            numbers = {"stage_id": largest.id, "longest_s": longest_s, "mean_s": mean_s}
            names = {"stage": largest.called}
            yield Finding(code=FindingCode.SKEWED_STAGE, numbers=numbers, names=names)

    def _is_within_reach(self, slots: int) -> bool:
        return bool(is_within_reach(self.doublings_beyond(slots)))


def expected_run_time_s(
    profile: ApplicationProfile, slots: int, core_speed_ratio: float = 1.0
) -> float:
    """Mean run time of a batch job on a number of slots, by its profile [s].

    Raises InputError if its cores are not recorded.
    """
    return BatchRunTime.of(profile, seen_slots_of(profile)).mean_s(slots, core_speed_ratio)


def seen_slots_of(profile: ApplicationProfile) -> int:
    if profile.cluster.num_slots is None:
        raise InputError(
            "the number of cores per executor is unknown; "
            "profile a log that contains SparkListenerExecutorAdded events"
        )
    return profile.cluster.num_slots


def job_stages(stages: Sequence[RecordedStage]) -> Iterator[JobStage]:
    """The stages with their parents; one without recorded parents waits for the last ended one."""
    completed_s = [stage.wall_clock.completed_s for stage in stages]
    for index, stage in enumerate(stages):
        parents = stage.parents
        if not parents:
            begun_s = stage.wall_clock.submitted_s + _SAME_MOMENT_S
            completed = [earlier for earlier in range(index) if completed_s[earlier] <= begun_s]
            last = max(completed, key=completed_s.__getitem__, default=None)
            parents = () if last is None else (last,)
        mean_s = max(stage.task_time.mean_s, 1e-9)
        yield JobStage(
            num_tasks=stage.tasks.num_tasks,
            mean_s=mean_s,
            cv=min((stage.task_time.sd_s or 0.0) / mean_s, 10.0),
            parents=parents,
        )
