"""What the batches of a DStreams application take at a setting, and the latency of their rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from headway.domain import (
    ApplicationKind,
    ApplicationProfile,
    LatencyDistribution,
    RecordedStage,
)
from headway.domain.dstreams import DStreamsPrediction, DStreamsSetting
from headway.domain.prediction import QUOTED_PROBABILITIES, Interval
from headway.errors import InputError
from headway.models.batches.dstreams import DStreamsLatency, dstreams_latency
from headway.models.batches.job_pool import DStreamJobs, busy_mean_s
from headway.models.estimation.regression import USUAL_RUN_TO_RUN_RATIO
from headway.models.job.calibration import (
    doublings_outside,
    far_off_text,
    is_within_reach,
    of_runs_and_fit,
    widened,
)
from headway.models.laws.distributions import lognormal_cdf, lognormal_quantile
from headway.models.queues.wait import lognormal_time
from headway.models.stages.dag import StageDag, run_time
from headway.planner.batch_run_time import job_stages
from headway.sparkconf import STREAMING, streaming_number
from headway.units import counted, format_duration, format_rate, parse_duration_s

_END_OF_90 = 1.645
# From here on an error of the durations comes out more than ten times as large: theory.md (P3).
_BUSIEST_RATIO = 0.9
_LARGEST_CV = 10.0
_LEAST_S = 1e-6
_USUAL_BLOCK_S = 0.2  # Spark's own spark.streaming.blockInterval
# One run tells neither what a task costs without rows nor with them: theory.md (V7).
_OWN_SPREAD = of_runs_and_fit(USUAL_RUN_TO_RUN_RATIO, num_settings=1)


@dataclass(frozen=True, kw_only=True)
class DStreamsBatches:
    """The batches of a profiled DStreams application, at any setting: theory.md (V7)."""

    profile: ApplicationProfile
    seen: DStreamsSetting

    @classmethod
    def of(cls, profile: ApplicationProfile) -> DStreamsBatches:
        """From a profile.

        Raises
        ------
        InputError
            If the profile is no DStreams application, or does not hold what a prediction needs.
        """
        found, cluster = profile.dstreams, profile.cluster
        if profile.kind is not ApplicationKind.DSTREAMS or found is None:
            raise InputError(
                "the profile is that of a batch job; expected a DStreams application. Batch jobs "
                "have a deadline: headway plan PROFILE --target 'deadline <= 10m'"
            )
        if cluster.cores_per_executor is None:
            raise InputError(
                "the cores of the executors are not on record; "
                "profile a log that holds its SparkListenerExecutorAdded events"
            )
        if found.batch_interval_s is None:
            raise InputError(
                "the log holds a single batch, which tells no batch interval; "
                "profile a log of some minutes"
            )
        seen = DStreamsSetting(
            executors=cluster.executors,
            cores_per_executor=cluster.cores_per_executor,
            batch_interval_s=found.batch_interval_s,
            concurrent_jobs=streaming_number(profile.application.properties, STREAMING.jobs) or 1,
            task_cpus=cluster.task_cpus,
            num_receivers=found.num_receivers,
        )
        if not seen.num_slots:
            raise InputError(
                f"{counted(found.num_receivers, 'receiver')} held every slot of the profiled run; "
                "profile one with more cores than receivers"
            )
        return cls(profile=profile, seen=seen)

    @property
    def seen_rate_per_s(self) -> float | None:
        """Rows that arrived; None where Spark counted none."""
        assert self.profile.dstreams is not None
        rows = self.profile.dstreams.rows_per_batch
        return None if rows is None else rows / self.seen.batch_interval_s

    def jobs(
        self, setting: DStreamsSetting, load: float, speed: float, factor: float = 1.0
    ) -> DStreamJobs:
        """What each batch asks for, with so many times the profiled rate."""
        work_s = factor * (self._driver_s / speed + self._modelled_s(setting, load, speed))
        if setting.concurrent_jobs == 1:
            return DStreamJobs(job=lognormal_time(work_s, self._cv))
        return DStreamJobs(
            job=lognormal_time(work_s / self._num_jobs, self._job_cv),
            num_jobs=self._num_jobs,
            num_concurrent=setting.concurrent_jobs,
        )

    def latency(self, setting: DStreamsSetting, jobs: DStreamJobs) -> DStreamsLatency:
        """Delays of the batches, and latency of their rows."""
        return dstreams_latency(
            setting.batch_interval_s, jobs, receive_delay_s=self._start_s + self._block_s
        )

    def spread(self, setting: DStreamsSetting, load: float, speed: float) -> float:
        """Standard deviation of the logarithm of true over predicted durations: (P2)."""
        return float(widened(_OWN_SPREAD, *self._doublings(setting, load), math.log2(speed)))

    def rate_at(self, load: float) -> float | None:
        """The rate that is so many times the profiled one."""
        seen = self.seen_rate_per_s
        return None if seen is None else load * seen

    def load_of(self, rate_per_s: float | None) -> float:
        """A rate over the profiled one.

        Raises
        ------
        InputError
            If a rate is asked for and the log counts no rows.
        """
        if rate_per_s is None:
            return 1.0
        if self.seen_rate_per_s is None:
            raise InputError(
                "the log counts no rows of these batches (Spark counts none of receivers and of "
                "queues of RDDs), so what another rate costs is unknown; leave out --rate for the "
                "profiled one"
            )
        return rate_per_s / self.seen_rate_per_s

    def highest_load(
        self, setting: DStreamsSetting, speed: float, factor: float = 1.0, busiest: float = 1.0
    ) -> float:
        """The largest load that keeps so much of the time busy, by halving; 0 if there is none."""

        def fits(load: float) -> bool:
            jobs = self.jobs(setting, load, speed, factor)
            return jobs.work_s <= busiest * setting.concurrent_jobs * setting.batch_interval_s

        low, high = 0.0, 1.0
        while fits(high) and high < 1e6:
            low, high = high, 2.0 * high
        while high - low > 1e-3 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def predicted(
        self, setting: DStreamsSetting, load: float, speed: float = 1.0
    ) -> DStreamsPrediction:
        """What is expected of a setting, with 90 % intervals."""
        middle, (low, high) = (
            self.jobs(setting, load, speed),
            (
                self.jobs(setting, load, speed, math.exp(end * self.spread(setting, load, speed)))
                for end in (-_END_OF_90, _END_OF_90)
            ),
        )
        threads = setting.concurrent_jobs
        busy = middle.work_s / (threads * setting.batch_interval_s)
        quotable = busy <= _BUSIEST_RATIO
        found = self.latency(setting, middle) if quotable else None
        most = self.rate_at(self.highest_load(setting, speed, busiest=_BUSIEST_RATIO))
        reasons = tuple(self._reasons(setting, load))
        return DStreamsPrediction(
            setting=setting,
            rate_per_s=self.rate_at(load),
            stable=busy < 1.0,
            utilization_ratio=busy,
            overrun_probability=self._overrun(setting, middle),
            calibrated=quotable and not reasons,
            warnings=(*reasons, *self._notes(setting, busy)),
            processing_time=None if found is None else self._processing(middle, low, high),
            scheduling_delay=None if found is None else self._delay(found),
            tuple_latency=None
            if found is None
            else _latency(found, self.latency(setting, low), self.latency(setting, high)),
            phases_s={} if found is None else self._phases_s(setting, middle, found),
            sustainable_rate_per_s=most,
        )

    def _modelled_s(self, setting: DStreamsSetting, load: float, speed: float) -> float:
        """Mean time of the jobs of a batch one after the other, each with its share of the slots.

        Jobs that run at the same time are taken to share the slots evenly.
        """
        slots = max(setting.num_slots // setting.concurrent_jobs, 1)
        rows = load * setting.batch_interval_s / self.seen.batch_interval_s
        stages = tuple(self._at(one, setting, load, rows, speed) for one in self.profile.stages)
        return run_time(StageDag(stages=tuple(job_stages(stages))), slots).mean_s

    def _at(
        self, stage: RecordedStage, setting: DStreamsSetting, load: float, rows: float, speed: float
    ) -> RecordedStage:
        """A stage with other rows: what its tasks run grows with them, what starts them does not.

        Receivers cut what comes into blocks of a time, and each block is a task: a longer batch
        has more of them, a higher rate has larger ones.
        """
        counts, growth = stage.tasks, rows
        if setting.num_receivers and not stage.parents:
            more = setting.batch_interval_s / self.seen.batch_interval_s
            counts = replace(counts, num_tasks=max(round(counts.num_tasks * more), 1))
            growth = load
        times = stage.task_time
        fixed_s = min(times.fixed_s, times.mean_s)
        mean_s = (fixed_s + growth * (times.mean_s - fixed_s)) / speed
        longer = mean_s / times.mean_s if times.mean_s > 0 else 1.0
        sd_s = None if times.sd_s is None else times.sd_s * longer
        return replace(stage, tasks=counts, task_time=replace(times, mean_s=mean_s, sd_s=sd_s))

    @cached_property
    def _num_jobs(self) -> int:
        return max(len({stage.job for stage in self.profile.stages}), 1)

    @cached_property
    def _cv(self) -> float:
        """Variation of the processing time from batch to batch."""
        assert self.profile.dstreams is not None
        times = self.profile.dstreams.processing_time
        return min(times.sd_s / max(times.mean_s, _LEAST_S), _LARGEST_CV)

    @cached_property
    def _job_cv(self) -> float:
        """That of one of its jobs, if they are independent."""
        return min(self._cv * math.sqrt(self._num_jobs), _LARGEST_CV)

    @cached_property
    def _driver_s(self) -> float:
        """What the profiled batches took beyond their stages; 0 where they took less."""
        assert self.profile.dstreams is not None
        modelled = DStreamJobs(
            job=lognormal_time(
                max(self._modelled_s(self.seen, 1.0, 1.0), _LEAST_S) / self._num_jobs, self._job_cv
            ),
            num_jobs=self._num_jobs,
            num_concurrent=self.seen.concurrent_jobs,
        )
        return max(self.profile.dstreams.processing_time.mean_s - busy_mean_s(modelled), 0.0)

    @cached_property
    def _start_s(self) -> float:
        """From the time of a batch to its first stage where none is ahead of it: the median
        delay on record, if most batches found the queue empty."""
        assert self.profile.dstreams is not None
        jobs = self.jobs(self.seen, 1.0, 1.0)
        if jobs.work_s > _BUSIEST_RATIO * self.seen.concurrent_jobs * self.seen.batch_interval_s:
            return 0.0
        queued_s = float(dstreams_latency(self.seen.batch_interval_s, jobs).wait.quantile_s(0.5))
        return max(self.profile.dstreams.scheduling_delay.p50_s - queued_s, 0.0)

    @cached_property
    def _block_s(self) -> float:
        """Until a receiver's block is complete, at most: the next batch has it then."""
        if not self.seen.num_receivers:
            return 0.0
        text = self.profile.application.properties.get(STREAMING.block)
        try:
            return _USUAL_BLOCK_S if text is None else parse_duration_s(text)
        except InputError:
            return _USUAL_BLOCK_S

    def _doublings(self, setting: DStreamsSetting, load: float) -> tuple[float, float]:
        slots, rows = setting.num_slots, load * setting.batch_interval_s
        return (
            float(doublings_outside(slots, self.seen.num_slots, self.seen.num_slots)),
            float(doublings_outside(rows, self.seen.batch_interval_s, self.seen.batch_interval_s)),
        )

    def _reasons(self, setting: DStreamsSetting, load: float) -> Iterator[str]:
        """Why the profile does not speak for a setting."""
        of_slots, of_rows = self._doublings(setting, load)
        if not is_within_reach(of_slots):
            far = far_off_text(self.seen.num_slots, self.seen.num_slots)
            yield f"{counted(setting.num_slots, 'slot')}, {far}"
        if not is_within_reach(of_rows):
            rows = load * setting.batch_interval_s / self.seen.batch_interval_s
            yield f"batches of {rows:.3g} times the profiled rows, {far_off_text(1, 1)}"
        if setting.concurrent_jobs != self.seen.concurrent_jobs:
            yield (
                f"{counted(setting.concurrent_jobs, 'job')} at a time, profiled with "
                f"{self.seen.concurrent_jobs}: how jobs share the slots is estimated"
            )

    def _notes(self, setting: DStreamsSetting, busy: float) -> Iterator[str]:
        if _BUSIEST_RATIO < busy < 1.0:
            yield "too close to saturation to tell latencies"
        if setting.concurrent_jobs > 1:
            yield (
                "several jobs run at a time (spark.streaming.concurrentJobs): batches may end in "
                "another order than they came"
            )
        properties = self.profile.application.properties
        if properties.get(STREAMING.backpressure) == "true":
            yield (
                "backpressure was on: rows that it held back waited at the source, which the "
                "latencies here do not hold"
            )

    def _overrun(self, setting: DStreamsSetting, jobs: DStreamJobs) -> float:
        busy_s = busy_mean_s(jobs)
        return 1.0 - float(lognormal_cdf(setting.batch_interval_s, busy_s, self._cv))

    def _processing(
        self, middle: DStreamJobs, low: DStreamJobs, high: DStreamJobs
    ) -> LatencyDistribution:
        def law(jobs: DStreamJobs) -> LatencyDistribution:
            mean_s = busy_mean_s(jobs)
            quantiles = lognormal_quantile(np.array(QUOTED_PROBABILITIES), mean_s, self._cv)
            return LatencyDistribution.of(mean_s, quantiles)

        return _with_ends(law(middle), law(low), law(high))

    def _delay(self, found: DStreamsLatency) -> LatencyDistribution:
        quantiles = found.wait.quantile_s(np.array(QUOTED_PROBABILITIES)) + self._start_s
        return LatencyDistribution.of(found.wait.mean_s + self._start_s, quantiles)

    def _phases_s(
        self, setting: DStreamsSetting, jobs: DStreamJobs, found: DStreamsLatency
    ) -> dict[str, float]:
        return {
            "wait for the batch": 0.5 * setting.batch_interval_s + self._block_s,
            "start of the batch": self._start_s,
            "wait for earlier batches": found.wait.mean_s,
            "processing": busy_mean_s(jobs),
        }


def quantile_or_mean_s(found: DStreamsLatency, quantile: float | None) -> float:
    """The statistic of the latency of rows that a target is about; the mean without a quantile."""
    if quantile is None:
        return found.tuple_mean_s
    return float(found.tuple_quantile_s(quantile))


def rate_words(rate_per_s: float | None) -> str:
    """A rate as text; of a log without counted rows, that it is the profiled one."""
    return "the profiled rate" if rate_per_s is None else format_rate(rate_per_s)


def interval_words(setting: DStreamsSetting) -> str:
    """The batch interval as text."""
    return format_duration(setting.batch_interval_s)


def _latency(
    middle: DStreamsLatency, low: DStreamsLatency, high: DStreamsLatency
) -> LatencyDistribution:
    def law(found: DStreamsLatency) -> LatencyDistribution:
        quantiles = found.tuple_quantile_s(np.array(QUOTED_PROBABILITIES))
        return LatencyDistribution.of(found.tuple_mean_s, quantiles)

    return _with_ends(law(middle), law(low), law(high))


def _with_ends(
    middle: LatencyDistribution, low: LatencyDistribution, high: LatencyDistribution
) -> LatencyDistribution:
    return replace(
        middle,
        interval90_mean_s=Interval(low=low.mean_s, high=high.mean_s),
        interval90_p99_s=Interval(low=low.p99_s, high=high.p99_s),
    )
