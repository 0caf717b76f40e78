"""Times in the batches of some runs, as columns: as recorded, or as at one age of the JVM.

A fit compares batches at many drifts; of what was measured, only times depend on the age.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from headway.domain import Drift
from headway.domain.profile import CHECKPOINT_PHASES
from headway.lazy_classes import Identity, dataclass
from headway.models.arrays import Array
from headway.profiler.streaming.samples import BatchSample, QueryRun, batches_of

_WITH_STAGES = "add_batch"
_OF_SAMPLES = ("task_mean_s", "task_sd_s", "outside_run_s", "rows_time_covariance_s", "span_s")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageTimes:
    """Times of one stage in the batches of some runs [s].

    ``task_sd_s`` is nan where a batch has a single task. ``state_commit_s`` are those of the whole
    batch. ``empty_task_s`` are means of the tasks in the batches without rows, nan in those of
    other stages.
    """

    task_mean_s: Array
    task_sd_s: Array
    outside_run_s: Array
    rows_time_covariance_s: Array
    span_s: Array
    state_commit_s: Array
    empty_task_s: Array

    @classmethod
    def of(cls, runs: Sequence[QueryRun], stage_index: int) -> StageTimes:
        batches, empty_batches = batches_of(runs), _without_rows(runs)
        samples = [batch.stages[stage_index] for batch in batches]
        empty_task_s = [
            batch.stages[stage_index].task_mean_s if stage_index < len(batch.stages) else None
            for batch in empty_batches
        ]
        return cls(
            **{
                name: np.array([getattr(sample, name) for sample in samples], dtype=np.float64)
                for name in _OF_SAMPLES
            },
            state_commit_s=np.array([batch.state_commit_s for batch in batches]),
            empty_task_s=np.array(empty_task_s, dtype=np.float64),
        )

    def over(self, factors: Array, empty_factors: Array) -> StageTimes:
        """All times over a factor for each batch, and for each batch without rows."""
        return StageTimes(
            **{name: getattr(self, name) / factors for name in (*_OF_SAMPLES, "state_commit_s")},
            empty_task_s=self.empty_task_s / empty_factors,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunTimes:
    """Times in the batches of some runs, one run after another [s].

    ``phases_s`` are those of the driver by name, 0 in a batch that does not report one;
    ``stages_s`` is the time in which tasks of any stage ran. ``age_s`` is the age of the JVM at the
    start of each batch, ``empty_age_s`` that of each batch without rows.
    """

    age_s: Array
    duration_s: Array
    stages_s: Array
    phases_s: Mapping[str, Array]
    stages: tuple[StageTimes, ...]
    empty_age_s: Array

    @classmethod
    def of(cls, runs: Sequence[QueryRun]) -> RunTimes:
        """The times as recorded, of runs whose batches have the same stages."""
        batches = batches_of(runs)
        names = dict.fromkeys(name for batch in batches for name in batch.phases_s)
        num_stages = len(batches[0].stages)
        return cls(
            age_s=np.array([batch.jvm_age_s for batch in batches]),
            duration_s=np.array([batch.duration_s for batch in batches]),
            stages_s=np.array([batch.stages_s for batch in batches]),
            phases_s={
                name: np.array([batch.phases_s.get(name, 0.0) for batch in batches])
                for name in names
            },
            stages=tuple(StageTimes.of(runs, stage_index) for stage_index in range(num_stages)),
            empty_age_s=np.array([batch.jvm_age_s for batch in _without_rows(runs)]),
        )

    def driver_s(self, factors: Array | float = 1.0) -> Array:
        """Driver time, except for the files of the checkpoint, with times over a factor."""
        files_s = sum(self.phases_s.get(name, 0.0) / factors for name in CHECKPOINT_PHASES)
        busy_s = self.duration_s / factors - self.stages_s / factors - files_s
        return np.maximum(busy_s, 0.0)

    def won_s(self, drift: Drift, factors: Array | float = 1.0) -> Array:
        """How much shorter a batch is with the driver as at the reference age."""
        return self.driver_s(factors) * (1.0 - 1.0 / self._driver_factors(drift))

    def factors(self, drift: Drift) -> Array:
        """Duration at the age of each batch over that at the reference age, but for the driver."""
        return _factors_at(replace(drift, driver_exponent=0.0), Identity(self.age_s))

    def at_reference_age(self, drift: Drift) -> RunTimes:
        factors, driver_factors = self.factors(drift), self._driver_factors(drift)
        empty_factors = _factors_at(drift, Identity(self.empty_age_s))
        stages_s = self.stages_s / factors
        whole_s = {name: times_s / factors for name, times_s in self.phases_s.items()}
        phases_s = {
            name: times_s if name in CHECKPOINT_PHASES else times_s / driver_factors
            for name, times_s in whole_s.items()
        }
        if _WITH_STAGES in whole_s:
            in_stages_s = np.minimum(stages_s, whole_s[_WITH_STAGES])
            on_driver_s = whole_s[_WITH_STAGES] - in_stages_s
            phases_s[_WITH_STAGES] = in_stages_s + on_driver_s / driver_factors
        return RunTimes(
            age_s=self.age_s,
            duration_s=self.duration_s / factors - self.won_s(drift, factors),
            stages_s=stages_s,
            phases_s=phases_s,
            stages=tuple(stage.over(factors, empty_factors) for stage in self.stages),
            empty_age_s=self.empty_age_s,
        )

    def _driver_factors(self, drift: Drift) -> Array:
        """Time of the driver at the age of each batch, beyond `factors`."""
        return _driver_factors_at(drift, Identity(self.age_s))


def driver_factor(drift: Drift, age_s: float) -> float:
    """Time of the driver over that at the reference age, for ages within those of the runs."""
    return drift.driver_factor(age_s, oldest_s=age_s)


def by_run(values: Array, runs: Sequence[QueryRun]) -> list[Array]:
    """A column of the batches of some runs, parted by run."""
    return np.split(values, np.cumsum([len(run.batches) for run in runs])[:-1])


# A round of the fit asks several times for those of one drift.
@lru_cache(maxsize=4)
def _factors_at(drift: Drift, ages_s: Identity) -> Array:
    return np.array([drift.factor(age_s) for age_s in ages_s.nouns[0].tolist()])


@lru_cache(maxsize=2)
def _driver_factors_at(drift: Drift, ages_s: Identity) -> Array:
    return np.array([driver_factor(drift, age_s) for age_s in ages_s.nouns[0].tolist()])


def _without_rows(runs: Sequence[QueryRun]) -> list[BatchSample]:
    return [batch for run in runs for batch in run.without_rows]
