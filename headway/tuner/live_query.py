"""A running query, batch by batch: its setting, its rate, the latency of its rows."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from headway.assumptions import live, tuning
from headway.domain import (
    Z90,
    Configuration,
    DurationNoise,
    JobProfile,
    LatencyDistribution,
    Metric,
    Target,
)
from headway.domain.live import LiveBatch, SeenBatch, SeenDrift
from headway.domain.prediction import QUOTED_PROBABILITIES
from headway.errors import InputError
from headway.limits import MOST_SPREAD_RATIO
from headway.models.arrays import Array
from headway.models.estimation.cost_drift import batches_to_find, drift_found
from headway.models.estimation.live_latency import RowWaits, asked_in_vain_s, row_waits
from headway.models.estimation.run_level import noise_at_most
from headway.models.estimation.warm_up import slower_start_length
from headway.models.job.calibration import doublings_outside, spread_ratio, widened
from headway.models.job.setting import duration_model
from headway.models.laws.distributions import uniform_mixture_quantile
from headway.profiler.recorded_queries import query_label
from headway.profiler.recording.live import Feed
from headway.profiler.streaming.trigger import read_trigger
from headway.units import S_PER_HOUR

_MOST_BATCHES = 20_000
_MOST_DRIFT_BATCHES = 2000
_AGES_PER_DOUBLING = 8  # of a JVM: between two of them its driver is at most 1% quicker


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A batch with the latency of its rows, and what the source had when it was planned."""

    batch: LiveBatch
    waits: RowWaits
    seen: SeenBatch
    arrived_rows: float
    backlog_rows: float | None


@dataclass(kw_only=True)
class LiveQuery:
    """What is known of a running query, from its batches.

    The feed tells its batches, the profile predicts them. Without ``trigger_s``, the trigger
    interval is read off the starts of its batches; without ``max_offsets``, its rate limit is the
    profiled one. [rows] Raises InputError if the target is about windows, which progress does not
    measure.
    """

    feed: Feed
    profile: JobProfile
    target: Target
    trigger_s: float | None = None
    max_offsets: int | None = None
    observed: deque[Observed] = field(default_factory=lambda: deque(maxlen=_MOST_BATCHES))
    settled_from_s: float = -np.inf
    settle_batches: int = 0
    _looks: list[tuple[float, float, float, float]] = field(default_factory=list)
    _total_rows: float = 0.0
    _base_rows: float = 0.0
    _counts_positions: bool = False
    _before: LiveBatch | None = None
    _interval_s: float | None = None

    def __post_init__(self) -> None:
        if self.target.metric is Metric.WINDOW:
            raise InputError(
                f"target '{self.target}': the latency of windows is not measured while a query "
                "runs; watch rows, e.g. 'p99 <= 3s', or batches, e.g. 'batch p99 <= 2s'"
            )

    def read(self) -> list[Observed]:
        """The batches that ended since the last call; of another query, all is known anew."""
        new_batches: list[Observed] = []
        batches = self.feed.new_batches()
        if batches:
            self._interval_s = self._trigger_with(batches)
        for batch in batches:
            if self.last is not None and self.last.query_id != batch.query_id:
                self._forget()
                new_batches.clear()
            new_batches.append(self._observed(batch))
            self.observed.append(new_batches[-1])
        return new_batches

    def planned(self) -> tuple[float, float] | None:
        """When the batch that runs now was planned, and the rows that had arrived by then.

        None if no batch has been planned since the last one ended, or if that is unknown.
        """
        running = self.feed.running_batch() if self._counts_positions else None
        if running is None or running[0] <= self._looks[-1][0]:
            return None
        started_s, available_rows = running
        return started_s, max(available_rows - self._base_rows, self._looks[-1][1])

    def _forget(self) -> None:
        """What is known of a query that has ended says nothing about its successor's rows."""
        self.observed.clear()
        self._looks.clear()
        self._total_rows = self._base_rows = 0.0
        self._counts_positions, self._before = False, None

    def settle(self, from_s: float) -> None:
        """Batches soon after a change or a start are not used for costs: an instant since 1970."""
        self.settled_from_s = from_s + live.SETTLING_S.value
        self.settle_batches = live.SETTLING_BATCHES.value

    @property
    def label(self) -> str:
        """The name of the query in messages."""
        last = self.last
        return "query" if last is None else query_label(last.query_id, last.query_name)

    @property
    def last(self) -> LiveBatch | None:
        return self.observed[-1].batch if self.observed else None

    @property
    def jvm_age_s(self) -> float | None:
        """Age of the oldest executor when the newest batch began; None if unknown."""
        last = self.last
        if last is None or last.jvm_started_s is None:
            return None
        return max(last.started_s - last.jvm_started_s, 1.0)

    def configuration(self) -> Configuration:
        """The setting at which it runs; what is unknown is as profiled."""
        configuration = self.profile.baseline
        cores = [num_cores for num_cores in self.feed.executor_cores if num_cores > 0]
        if cores:
            mean_cores = max(round(sum(cores) / len(cores)), math.ceil(configuration.task_cpus))
            configuration = replace(
                configuration, executors=len(cores), cores_per_executor=mean_cores
            )
        reported_partitions = None if self.last is None else self.last.shuffle_partitions
        partitions = reported_partitions or self.feed.shuffle_partitions
        if partitions is not None:
            configuration = replace(configuration, shuffle_partitions=partitions)
        trigger_s = self._interval_s if self.trigger_s is None else self.trigger_s
        if trigger_s is not None:
            configuration = replace(configuration, trigger_s=trigger_s)
        limit = self.max_offsets or configuration.max_offsets_per_trigger
        return replace(configuration, max_offsets_per_trigger=limit)

    def recent(self, within_s: float = tuning.WATCHED_S.value) -> list[Observed]:
        """The batches of the last minutes, of this run alone."""
        last = self.last
        if last is None:
            return []
        return [
            observed
            for observed in self.observed
            if last.ended_s - within_s < observed.batch.ended_s <= last.ended_s
            and observed.batch.run_id == last.run_id
        ]

    def latency(self, recent: Sequence[Observed]) -> LatencyDistribution | None:
        """The latency of the rows of some batches: theory.md (A13)."""
        low, high, rows = (
            np.concatenate([getattr(observed.waits, name) for observed in recent] or [np.zeros(0)])
            for name in ("low_s", "high_s", "num_rows")
        )
        if not rows.sum() > 0.0:
            return None
        mean_s = float(np.average(0.5 * (low + high), weights=rows))
        quantiles_s = uniform_mixture_quantile(np.array(QUOTED_PROBABILITIES), low, high, rows)
        return LatencyDistribution.of(mean_s, quantiles_s)

    def durations(self, recent: Sequence[Observed]) -> LatencyDistribution | None:
        if not recent:
            return None
        durations_s = np.array([observed.batch.duration_s for observed in recent])
        quantiles_s = np.quantile(durations_s, QUOTED_PROBABILITIES)
        return LatencyDistribution.of(float(durations_s.mean()), quantiles_s)

    def utilization_ratio(self, recent: Sequence[Observed]) -> float | None:
        """Share of time in which a batch ran, from the start of the first to that of the last."""
        if len(recent) < 2:
            return None
        span_s = recent[-1].batch.started_s - recent[0].batch.started_s
        busy_s = sum(observed.batch.duration_s for observed in recent[:-1])
        return min(busy_s / span_s, 1.0) if span_s > 0 else None

    def rate_per_s(self, recent: Sequence[Observed]) -> float | None:
        """What arrived per second, by the offsets of the source if they count rows [rows/s]."""
        if len(recent) < 2:
            return None
        first, last = recent[0], recent[-1]
        span_s = last.batch.started_s - first.batch.started_s
        arrived = last.arrived_rows - first.arrived_rows
        return arrived / span_s if span_s > 0 and arrived > 0 else None

    def drift(self, configuration: Configuration) -> SeenDrift | None:
        """Ratio of durations to predicted ones, and whether it exceeds chance; None if unknown.

        theory.md (A4), (A5): of the last run, since its cores changed, without its warm-up (E1), at
        the age of its JVM (E6), (E35). Chance: how batches and runs usually differ, (P2).
        """
        cost_batches = self._telling()
        if len(cost_batches) < tuning.LEARNING_BATCHES.value:
            return None
        rows = np.array([float(observed.batch.num_rows) for observed in cost_batches])
        durations_s = np.array([max(observed.batch.duration_s, 1e-3) for observed in cost_batches])
        expected_s = self._expected_s(configuration, cost_batches, rows)
        num_warm_up = _warm_up_length(cost_batches, durations_s / expected_s, rows)
        cost_batches, rows = cost_batches[num_warm_up:], rows[num_warm_up:]
        ratios = (durations_s / expected_s)[num_warm_up:]
        usual_rows = float(np.median(rows))
        model = duration_model(self.profile, *configuration.size)
        per_row_s = float(model.slope_s(usual_rows))
        fixed_s = max(float(model.mean_s(usual_rows)) - per_row_s * usual_rows, 1e-6)
        noise = self._noise(configuration, usual_rows)
        span_s = cost_batches[-1].batch.started_s - cost_batches[0].batch.started_s
        interval_s = max(span_s / max(len(cost_batches) - 1, 1), 1e-2)
        (_, first_batch), _ = drift_found(
            rows,
            ratios * (fixed_s + per_row_s * rows),
            fixed_s=fixed_s,
            per_row_s=per_row_s,
            noise=noise,
            interval_s=interval_s,
        ) or ((None, None), None)
        num_to_find = batches_to_find(
            tuning.FOUND_DRIFT_RATIO.value,
            expected_s=fixed_s + per_row_s * usual_rows,
            noise=noise,
            interval_s=interval_s,
            num_before=len(cost_batches),
            num_after=_MOST_DRIFT_BATCHES,
        )
        return SeenDrift(
            duration_ratio=float(np.exp(np.log(ratios)[-60:].mean())),
            since_s=None if first_batch is None else cost_batches[first_batch].batch.started_s,
            num_batches_to_find=round(num_to_find) if np.isfinite(num_to_find) else None,
        )

    def _telling(self) -> list[Observed]:
        """The batches of the last run that can be used for costs, with the current cores."""
        cost_batches: list[Observed] = []
        for observed in reversed(self.observed):
            batch, last = observed.batch, self.observed[-1].batch
            is_same = batch.run_id == last.run_id and batch.num_cores == last.num_cores
            if not is_same or len(cost_batches) == _MOST_DRIFT_BATCHES:
                break
            if observed.seen.tells_costs:
                cost_batches.append(observed)
        return cost_batches[::-1]

    def _expected_s(
        self, configuration: Configuration, cost_batches: Sequence[Observed], rows: Array
    ) -> Array:
        """Predicted batch durations, at the age that the JVM had."""
        profile, model = self.profile, duration_model(self.profile, *configuration.size)
        expected_s = np.asarray(model.mean_s(rows), dtype=np.float64)
        start_s = cost_batches[-1].batch.jvm_started_s
        if start_s is None:
            return expected_s
        starts_s = np.array([observed.batch.started_s for observed in cost_batches])
        age_bins = np.round(np.log2(np.maximum(starts_s - start_s, 1.0)) * _AGES_PER_DOUBLING)
        for age_bin in np.unique(age_bins):
            age_s = float(2.0 ** (age_bin / _AGES_PER_DOUBLING))
            driver_s = profile.at_age(age_s).driver_s
            is_in_bin = age_bins == age_bin
            expected_s[is_in_bin] += driver_s - model.driver_s
            expected_s[is_in_bin] *= profile.age_factor(age_s)
        return expected_s

    def _noise(self, configuration: Configuration, usual_rows: float) -> DurationNoise:
        """Spread of batches and runs, including the fit and the distance to the profiled setting.

        With few profiled batches the noise may be larger than they show.
        """
        noise = self.profile.noise
        batch_ratio = max(noise.batch_ratio, live.LEAST_NOISE_RATIO.value)
        if self.profile.settings:
            num_free = max(sum(setting.num_batches - 1 for setting in self.profile.settings), 1)
            max_batch_ratio = noise_at_most(batch_ratio, num_free, live.FALSE_LEVEL_RATIO.value)
            batch_ratio = min(max_batch_ratio, MOST_SPREAD_RATIO)
        run_to_run_ratio = float(spread_ratio(self.profile, *configuration.size, usual_rows))
        return replace(noise, batch_ratio=batch_ratio, run_to_run_ratio=run_to_run_ratio)

    def _observed(self, batch: LiveBatch) -> Observed:
        self._total_rows += batch.num_rows
        position, available = self._counted(batch)
        started_s, read_before = batch.started_s, position
        if self._looks and started_s < self._looks[-1][0]:
            # The clock was set back: when the rows before came can no longer be compared.
            self._looks.clear()
        if self._looks:
            _, last_available, read_before, _ = self._looks[-1]
            position, available = max(position, read_before), max(available, last_available)
            if batch.free_s is not None and self._interval_s is not None:
                asked_s = asked_in_vain_s(started_s, batch.free_s, self._interval_s)
                if asked_s is not None:
                    self._looks.append((asked_s, *self._looks[-1][1:]))
        look = (started_s, max(available, position), position, batch.committed_s)
        # Looks are kept as long as a row that arrived between them is unread.
        while len(self._looks) > 1 and self._looks[1][1] <= read_before:
            del self._looks[0]
        self._looks.append(look)
        waits = row_waits(*np.array(self._looks, dtype=np.float64).T)
        is_of_batch = waits.batch == len(self._looks) - 1
        waits = RowWaits(*(column[is_of_batch] for column in waits))
        if self.target.metric is Metric.BATCH:
            late_rows = batch.num_rows if batch.duration_s > self.target.limit_s else 0.0
        else:
            late_rows = waits.late_rows(self.target.limit_s)
        is_known = batch.available_rows is not None and batch.position_rows is not None
        return Observed(
            batch=batch,
            waits=waits,
            seen=SeenBatch(
                batch_rows=float(batch.num_rows),
                duration_s=max(batch.duration_s, 1e-3),
                late_rows=min(late_rows, float(batch.num_rows)),
                tells_costs=self._tells_costs(batch),
            ),
            arrived_rows=look[1],
            backlog_rows=look[1] - look[2] if is_known else None,
        )

    def _counted(self, batch: LiveBatch) -> tuple[float, float]:
        """Its position and what was available; what it took if offsets count no rows."""
        if batch.position_rows is None or batch.available_rows is None:
            # The count goes on as if it had been counted all along.
            self._counts_positions = False
            return self._total_rows, self._total_rows
        if not self._counts_positions:
            self._base_rows = batch.position_rows - self._total_rows
            self._counts_positions = True
        position = batch.position_rows - self._base_rows
        self._total_rows = position
        return position, max(batch.available_rows - self._base_rows, position)

    def _tells_costs(self, batch: LiveBatch) -> bool:
        """Not the first batch of a run, nor those soon after a change, whoever made it."""
        previous, self._before = self._before, batch
        is_first = previous is None or previous.run_id != batch.run_id
        if previous is not None and not is_first and previous.num_cores != batch.num_cores:
            self.settle(batch.started_s)
        if self.settle_batches > 0:
            self.settle_batches -= 1
            return False
        return not is_first and batch.started_s >= self.settled_from_s

    def _trigger_with(self, new_batches: Sequence[LiveBatch]) -> float | None:
        """The trigger interval, read off the starts of the last hour if it is not given."""
        if self.trigger_s is not None:
            return self.trigger_s
        last = new_batches[-1]
        recent = [
            batch
            for batch in (*(observed.batch for observed in self.observed), *new_batches)
            if batch.run_id == last.run_id and batch.ended_s > last.ended_s - S_PER_HOUR
        ]
        starts_s = np.array([batch.started_s for batch in recent])
        durations_s = np.array([batch.duration_s for batch in recent])
        return read_trigger(starts_s, durations_s)[0]


def _warm_up_length(cost_batches: Sequence[Observed], ratios: Array, rows: Array) -> int:
    """Batches at the beginning that are a warm-up: of those soon after it, and only if slower.

    What the profile may be off at rows that later batches lack is no warm-up: theory.md (E1).
    """
    until_s = cost_batches[0].batch.started_s + live.SETTLING_S.value
    num_young = sum(observed.batch.started_s < until_s for observed in cost_batches)
    later_rows = rows[num_young // 2 :]
    outside = doublings_outside(rows[:num_young], float(later_rows.min()), float(later_rows.max()))
    return slower_start_length(np.log(ratios[:num_young]), Z90 * widened(0.0, outside))
