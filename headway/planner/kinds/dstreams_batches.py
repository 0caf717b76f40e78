"""Batch durations of a DStreams application at a setting, and the latency of its rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from headway.assumptions.predictions import USUAL_RUN_TO_RUN_RATIO
from headway.assumptions.resources import BLOCK_INTERVAL_S
from headway.domain import ApplicationProfile, RecordedStage
from headway.domain.application_profile import DStreamsProfile
from headway.domain.dstreams import DStreamsSetting
from headway.errors import InputError, argument
from headway.models.batches.dstreams import (
    DStreamJobs,
    DStreamsLatency,
    busy_time,
    dstreams_latency,
)
from headway.models.job.calibration import doublings_outside, of_runs_and_fit, widened
from headway.models.queues.times import lognormal_time
from headway.models.stages.dag import StageDag, run_time
from headway.planner.kinds.recorded_job import job_stages
from headway.sparkconf.reader_limits import BLOCK_KEY, concurrent_jobs_of
from headway.units import counted, parse_duration_s

_LARGEST_CV = 10.0
_LEAST_S = 1e-6
# One run does not separate the fixed cost of a task from that of its rows: theory.md (V7).
_OWN_SPREAD = of_runs_and_fit(USUAL_RUN_TO_RUN_RATIO.value, num_settings=1)


@dataclass(frozen=True, kw_only=True)
class DStreamsBatches:
    """The batches of a profiled DStreams application, at any setting: theory.md (V7).

    One run at one rate does not show what a task costs without rows, so ``growth`` is the assumed
    factor on task run times for a given factor on rows. ``core_speed_ratio`` is the speed of the
    cores over that of the profiled ones. [-]

    **(V7)** From a profile to the job of (V1): the stages of a typical batch form the graph of
    (J1)-(J5), one job after the other, on the slots that receivers leave free, or on a `k`-th of
    these if `k` jobs run at a time. The excess of the recorded batches over this is the driver's
    time and stays the same; if they took less, the graph is scaled down. One run at one rate does
    not show what a task costs without rows, only the time that it spends outside its run, which
    stays the same. So with `x` times the rows, a task runs between `min(x, 1)` and `max(x, 1)`
    times as long. Predictions use `sqrt(x)`, the lower and upper end of 90% intervals the two
    bounds, and plans the upper one, each with the spread of (P2), `m = 1`; the upper one has that
    of the profiled rows if there are fewer. Receivers divide rows into blocks by time, so a longer
    interval has more tasks, and a higher rate larger ones. A batch starts later than its scheduled
    time by the shortest recorded delay, unless no batch found the queue empty. Latencies are
    predicted up to a utilisation of 0.9; beyond that, an error of the durations is amplified ten
    times or more.
    """

    profile: ApplicationProfile
    dstreams: DStreamsProfile
    profiled_setting: DStreamsSetting
    core_speed_ratio: float = 1.0
    growth: Callable[[float], float] = math.sqrt

    @classmethod
    def of(cls, profile: ApplicationProfile) -> DStreamsBatches:
        """From the profile of a DStreams application; an InputError if it lacks what is needed."""
        dstreams, cluster = profile.dstreams, profile.cluster
        assert dstreams is not None  # as of every profile of the kind
        if cluster.cores_per_executor is None:
            raise InputError(
                "the cores of the executors are not recorded; "
                "profile a log that contains SparkListenerExecutorAdded events"
            )
        if dstreams.batch_interval_s is None:
            raise InputError(
                "the log contains a single batch, so the batch interval is unknown; "
                "profile a log of some minutes"
            )
        baseline = DStreamsSetting(
            executors=cluster.executors,
            cores_per_executor=cluster.cores_per_executor,
            batch_interval_s=dstreams.batch_interval_s,
            concurrent_jobs=concurrent_jobs_of(profile.application.properties),
            task_cpus=cluster.task_cpus,
            num_receivers=dstreams.num_receivers,
        )
        if not baseline.num_slots:
            raise InputError(
                f"{counted(dstreams.num_receivers, 'receiver')} took every slot of the profiled "
                "run; profile one with more cores than receivers"
            )
        return cls(profile=profile, dstreams=dstreams, profiled_setting=baseline)

    @cached_property
    def cautious(self) -> DStreamsBatches:
        """The same, if more rows take longer in proportion and fewer save nothing: for plans."""
        return replace(self, growth=lambda rows: max(rows, 1.0))

    @cached_property
    def optimistic(self) -> DStreamsBatches:
        """The same, if more rows cost nothing and fewer save in proportion: the optimistic case."""
        return replace(self, growth=lambda rows: min(rows, 1.0))

    @property
    def num_tasks(self) -> int:
        """Tasks of all stages of a batch, which cannot use more slots than that."""
        return sum(stage.num_tasks for stage in self.profile.stages)

    @property
    def profiled_rate_per_s(self) -> float | None:
        """Arrival rate; None if Spark counted no rows."""
        rows = self.dstreams.rows_per_batch
        return None if rows is None else rows / self.profiled_setting.batch_interval_s

    def jobs(self, setting: DStreamsSetting, load: float, factor: float = 1.0) -> DStreamJobs:
        """Jobs of each batch at a multiple of the profiled rate."""
        stages_s = self._stages_ratio * self._modelled_s(setting, load, self.core_speed_ratio)
        work_s = factor * (self._driver_s + stages_s)
        if setting.concurrent_jobs == 1:
            return DStreamJobs(job=lognormal_time(work_s, self.cv))
        return DStreamJobs(
            job=lognormal_time(work_s / self._num_jobs, self._job_cv),
            num_jobs=self._num_jobs,
            num_concurrent=setting.concurrent_jobs,
        )

    def latency(self, setting: DStreamsSetting, jobs: DStreamJobs) -> DStreamsLatency:
        """Delays of the batches, and latency of their rows."""
        return dstreams_latency(
            setting.batch_interval_s, jobs, receive_delay_s=self.start_s + self.block_s
        )

    def spread(self, setting: DStreamsSetting, load: float) -> float:
        """Standard deviation of the logarithm of true over predicted durations: (P2)."""
        doublings = *self.doublings(setting, load), math.log2(self.core_speed_ratio)
        return float(widened(_OWN_SPREAD, *doublings))

    def upper_factor(self, setting: DStreamsSetting, load: float, score: float) -> float:
        """Factor at the upper end: fewer rows than profiled take no longer than those do (V7)."""
        profiled_load = self.profiled_setting.batch_interval_s / setting.batch_interval_s
        return math.exp(score * self.spread(setting, max(load, profiled_load)))

    def rate_at(self, load: float) -> float | None:
        """The rate at a multiple of the profiled one."""
        profiled_per_s = self.profiled_rate_per_s
        return None if profiled_per_s is None else load * profiled_per_s

    def load_of(self, rate_per_s: float | None) -> float:
        """A rate as a multiple of the profiled one; an InputError if the log counts no rows."""
        if rate_per_s is None:
            return 1.0
        if self.profiled_rate_per_s is None:
            raise InputError(
                "the log counts no rows of these batches (Spark counts none of receivers and of "
                "queues of RDDs), so the cost of another rate is unknown; leave out "
                f"{argument('rate')} to use the profiled one"
            )
        return rate_per_s / self.profiled_rate_per_s

    def highest_load(
        self, setting: DStreamsSetting, factor: float = 1.0, busiest: float = 1.0
    ) -> float:
        """The largest load with at most the given utilisation, by bisection; 0 if there is none."""

        def fits(load: float) -> bool:
            jobs = self.jobs(setting, load, factor)
            return jobs.work_s <= busiest * setting.concurrent_jobs * setting.batch_interval_s

        low, high = 0.0, 1.0
        while fits(high) and high < 1e6:
            low, high = high, 2.0 * high
        while high - low > 1e-3 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def _modelled_s(self, setting: DStreamsSetting, load: float, speed: float) -> float:
        """Mean time of the jobs of a batch one after the other, each with its share of the slots.

        Jobs that run at the same time are taken to share the slots evenly.
        """
        slots = max(setting.num_slots // setting.concurrent_jobs, 1)
        rows = load * setting.batch_interval_s / self.profiled_setting.batch_interval_s
        stages = tuple(self._at(stage, setting, load, rows, speed) for stage in self.profile.stages)
        return run_time(StageDag(stages=tuple(job_stages(stages))), slots).mean_s

    def _at(
        self, stage: RecordedStage, setting: DStreamsSetting, load: float, rows: float, speed: float
    ) -> RecordedStage:
        """A stage with other rows: the run time of its tasks may grow, the time to start them not.

        Receivers divide arrivals into blocks by time, and each block is a task: a longer batch has
        more of them, a higher rate has larger ones.
        """
        num_tasks, more_rows = stage.num_tasks, rows
        if setting.num_receivers and not stage.parents:
            interval_ratio = setting.batch_interval_s / self.profiled_setting.batch_interval_s
            num_tasks = max(round(num_tasks * interval_ratio), 1)
            more_rows = load
        fixed_s = min(stage.task_fixed_s, stage.task_mean_s)
        mean_s = (fixed_s + self.growth(more_rows) * (stage.task_mean_s - fixed_s)) / speed
        time_ratio = mean_s / stage.task_mean_s if stage.task_mean_s > 0 else 1.0
        sd_s = None if stage.task_sd_s is None else stage.task_sd_s * time_ratio
        return replace(stage, num_tasks=num_tasks, task_mean_s=mean_s, task_sd_s=sd_s)

    @cached_property
    def _num_jobs(self) -> int:
        return max(len({stage.job for stage in self.profile.stages}), 1)

    @cached_property
    def cv(self) -> float:
        """Coefficient of variation of the processing time between batches."""
        times = self.dstreams.processing_time
        return min(times.sd_s / max(times.mean_s, _LEAST_S), _LARGEST_CV)

    @cached_property
    def _job_cv(self) -> float:
        """Coefficient of variation of one of its jobs, if they are independent."""
        return min(self.cv * math.sqrt(self._num_jobs), _LARGEST_CV)

    @property
    def _driver_s(self) -> float:
        """Time of the profiled batches beyond their stages; 0 if they took less."""
        taken_s = self.dstreams.processing_time.mean_s
        return max(taken_s - self._seen_modelled_s, 0.0)

    @property
    def _stages_ratio(self) -> float:
        """Measured over modelled time of their stages, if the batches took less than that; 1 if
        they took more.
        """
        return min(self.dstreams.processing_time.mean_s / self._seen_modelled_s, 1.0)

    @cached_property
    def _seen_modelled_s(self) -> float:
        """Modelled time of the stages of the profiled batches."""
        modelled = DStreamJobs(
            job=lognormal_time(
                max(self._modelled_s(self.profiled_setting, 1.0, 1.0), _LEAST_S) / self._num_jobs,
                self._job_cv,
            ),
            num_jobs=self._num_jobs,
            num_concurrent=self.profiled_setting.concurrent_jobs,
        )
        return busy_time(modelled).mean_s

    @property
    def start_s(self) -> float:
        """From the scheduled time of a batch to its first stage if no batch is ahead of it: the
        shortest recorded delay, unless every batch waited for others.
        """
        return 0.0 if self.was_behind else self.shortest_delay_s

    @property
    def was_behind(self) -> bool:
        """Whether no recorded batch found the queue empty."""
        return self.shortest_delay_s > self.profiled_setting.batch_interval_s

    @property
    def shortest_delay_s(self) -> float:
        return self.dstreams.scheduling_delay.min_s or 0.0

    @cached_property
    def block_s(self) -> float:
        """Maximum time until a receiver's block is complete and part of the next batch."""
        if not self.profiled_setting.num_receivers:
            return 0.0
        text = self.profile.application.properties.get(BLOCK_KEY)
        try:
            return BLOCK_INTERVAL_S.value if text is None else parse_duration_s(text)
        except InputError:
            return BLOCK_INTERVAL_S.value

    def doublings(self, setting: DStreamsSetting, load: float) -> tuple[float, float]:
        rows = load * setting.batch_interval_s
        # Slots beyond the number of tasks have no effect.
        slots, seen_slots = (
            min(dstreams_setting.num_slots, dstreams_setting.concurrent_jobs * self.num_tasks)
            for dstreams_setting in (setting, self.profiled_setting)
        )
        return (
            float(doublings_outside(slots, seen_slots, seen_slots)),
            float(
                doublings_outside(
                    rows,
                    self.profiled_setting.batch_interval_s,
                    self.profiled_setting.batch_interval_s,
                )
            ),
        )
