"""All settings of some node counts at once, compared with the targets at some rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.assumptions import planning
from headway.domain import Burst, CatchUp, Configuration, DuringBurst, Promise, Target
from headway.lazy_classes import changed, dataclass
from headway.models.arrays import Array, Numeric
from headway.models.estimation.batch_noise import noise_ratio_at
from headway.models.job.certified import certified
from headway.models.job.duration import DurationModel, stacked
from headway.models.job.setting import SettingLaw, duration_model, load_ratio, setting_law
from headway.models.job.upper_end import UpperEnd
from headway.models.laws.normal import ndtri
from headway.planner.promised_latency import PromisedLatency
from headway.planner.question import Question, burst_of
from headway.planner.recovery import Pace, burst_effect, recovery_s, start_after_outage
from headway.planner.tasks import launch_ratio

BoolArray = NDArray[np.bool_]
Indices = NDArray[np.intp]
_Beyond: TypeAlias = "Callable[[Candidates, SettingLaw], Array]"
"""How far latencies of settings are beyond their limits, by their law."""

MOST_CERTIFIED = 1
_LEAST_TAIL = 1e-16
_LEAST_EXCESS = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Settings as parallel arrays; each entry is one (nodes, partitions, trigger)."""

    question: Question
    nodes: NDArray[np.int_]
    partitions: NDArray[np.int_]
    trigger_s: Array
    durations: DurationModel

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def num_slots(self) -> NDArray[np.int_]:
        """Task slots of each setting."""
        return self.nodes * self.question.space.num_slots(1)

    def take(self, selection: Indices | BoolArray) -> Candidates:
        return changed(
            self,
            nodes=self.nodes[selection],
            partitions=self.partitions[selection],
            trigger_s=self.trigger_s[selection],
            durations=self.durations.take(selection),
        )

    def alone(self, index: int) -> Candidates:
        return self.take(np.array([index]))

    def configuration(self, index: int, max_offsets: int | None = None) -> Configuration:
        space = self.question.space
        return Configuration(
            executors=int(self.nodes[index]) * space.executors_per_node,
            cores_per_executor=space.cores_per_executor,
            shuffle_partitions=int(self.partitions[index]),
            trigger_s=float(self.trigger_s[index]),
            max_offsets_per_trigger=max_offsets,
            task_cpus=space.task_cpus,
            tasks_per_executor=space.tasks_per_executor,
        )

    def meets(self, rate_per_s: float) -> BoolArray:
        """Which settings meet every target at the planned confidence and rate, by (T4): (P24)."""
        met = self.could_meet(rate_per_s)
        indices = np.flatnonzero(met).tolist()
        excess_of = self.certified_excess_of(rate_per_s)
        met[indices] = [excess_of(index) <= 0.0 for index in indices]
        return met

    def could_meet(self, rate_per_s: Numeric) -> BoolArray:
        """Which settings may meet every target: no other one meets them by (T4), theory.md (P24).

        Targets on windows are not monotone in the rate, so the rate itself is tried for them, too.
        """
        slack = planning.BEYOND_MOMENTS_LATENCY_RATIO.value * self.most_noise_ratio
        may_meet = np.asarray(self.excess(rate_per_s / self.beyond_moments_ratio) <= slack)
        if self.question.has_windows:
            may_meet |= self.meets_by_moments(rate_per_s)
        return may_meet

    @property
    def beyond_moments_ratio(self) -> float:
        """Maximum of a setting's max rate by (T4) over that by its moments: theory.md (P24)."""
        per_noise = planning.BEYOND_MOMENTS_RATIO.value
        return planning.SOLVED_WITHIN_RATIO.value + per_noise * self.most_noise_ratio

    @property
    def most_noise_ratio(self) -> float:
        """Noise of batches of one row, at any rate: the shortest ones, without much state."""
        durations_s = self.durations.at_rate(0.0).mean_s(np.ones(len(self)))
        return float(np.max(noise_ratio_at(self.question.profile.noise, durations_s), initial=0.0))

    def meets_by_moments(self, rate_per_s: Numeric) -> BoolArray:
        """Which settings meet every target by their moments, which is fast but not the law."""
        return np.asarray(self.excess(rate_per_s) <= 0.0)

    def certified_excess(self, rate_per_s: float, *, with_gain: bool = True) -> float:
        """Distance of one setting from its worst target by (T4): continuous in the rate.

        Without the gain of errors, which needs a second chain, it is that of the latencies alone.
        """
        return self.excess_at_end(self.upper_end(), rate_per_s, with_gain=with_gain)

    def excess_at_end(self, end: UpperEnd, rate_per_s: float, *, with_gain: bool = True) -> float:
        """The same with durations at any upper end."""
        beyond = partial(Candidates._certified_beyond, with_gain=with_gain)
        pace = self._pace(rate_per_s, *end.rate_and_factor(rate_per_s))
        return float(self._excess_at(pace, beyond)[0])

    def certified_excess_of(self, rate_per_s: Numeric) -> Callable[..., float]:
        """The same by the index of a setting, each at its rate; all is shared but the chains."""
        if self.question.of_change:
            rates = np.broadcast_to(rate_per_s, self.trigger_s.shape).tolist()
            return lambda index, **gain: self.alone(index).certified_excess(rates[index], **gain)
        pace = self.planned_pace(rate_per_s)
        but_latency, laws = np.maximum(*self._excess_of_load(pace)), self._law(pace)

        def excess(index: int, *, with_gain: bool = True) -> float:
            if but_latency[index] > 0.0:
                return float(but_latency[index])
            beyond = self._certified_beyond(laws.take(np.array([index])), with_gain=with_gain)
            return float(beyond[0])

        return excess

    def excess(self, rate_per_s: Numeric) -> Array:
        """Distance of each setting from its worst target by moments; 0 at the limit.

        It increases with the rate: the logarithm of a latency over its limit, of the share beyond
        the limit over the allowed share, or of the load over the highest one that is quoted.
        """
        return self._excess_at(self.planned_pace(rate_per_s))

    def _excess_at(self, pace: Pace, beyond: _Beyond | None = None) -> Array:
        load, launches = self._excess_of_load(pace)
        excess, loaded = np.maximum(load, launches), np.flatnonzero(load < 0.0)
        if len(loaded):
            is_all = len(loaded) == len(self)
            settings = self if is_all else self.take(loaded)
            law = settings._law(pace if is_all else pace.take(loaded))
            if beyond is None:
                of_law = np.maximum(load[loaded], settings._beyond(law))
            else:
                of_law = beyond(settings, law)
            excess[loaded] = np.maximum(launches[loaded], of_law)
        for promise in self.question.of_change:
            met = np.flatnonzero(excess <= 0.0)
            if len(met):
                settings = self.take(met)
                excess[met] = settings._excess_of_change(promise, pace.take(met), beyond)
        return excess

    def _excess_of_load(self, pace: Pace) -> tuple[Array, Array]:
        """Distances from the highest load that is quoted, and from the most launches if beyond."""
        load = load_ratio(
            self.question.profile,
            pace.model,
            rate_per_s=pace.rate_per_s,
            trigger_s=self.trigger_s,
            factor=pace.factor,
            rows=pace.usual_rows,
        )
        launches = self.launch_ratio(pace)
        return _log(load), np.where(launches > 1.0, _log(launches), -np.inf)

    def _beyond(self, law: SettingLaw) -> Array:
        """How far latencies exceed their limits; slightly, if none is quoted."""
        latency_excess = self._latency_excess(law)
        return np.where(law.is_quotable, latency_excess, np.maximum(latency_excess, _LEAST_EXCESS))

    def _certified_beyond(self, law: SettingLaw, *, with_gain: bool = True) -> Array:
        """How far latencies by (T4) exceed their limits, or are from being quoted."""
        chained = certified(law, with_moments=self.question.has_windows)
        latency_excess = self._latency_excess(chained)
        if not with_gain or np.all(latency_excess > 0.0):
            return latency_excess
        return np.maximum(latency_excess, chained.saturation_excess)

    def most_burst_rows(self, rate_per_s: Numeric) -> Array:
        """The largest batch during any burst of the targets; 0 without one. [rows]"""
        pace = self.planned_pace(rate_per_s)
        bursts = filter(None, map(burst_of, self.question.of_change))
        largest_rows = [self._burst_effect(burst, pace)[0] for burst in bursts]
        return np.asarray(np.maximum.reduce([np.zeros(len(self)), *largest_rows]))

    def promised_latency_s(self, promise: Promise, rate_per_s: Numeric) -> Array:
        """Value of each setting for a target, at the planned confidence [s]; ``inf`` if unstable.

        A latency, or the time until the backlog of an outage or burst is processed.
        """
        if isinstance(promise, Target):
            return self._asked_only(promise).latency_s(rate_per_s)
        pace = self.planned_pace(rate_per_s)
        if isinstance(promise, CatchUp):
            return self._catch_up_s(promise, pace)
        worst = self._worst_of_burst(promise.burst, pace)
        return self._asked_only(promise.target)._latency_at(worst)

    def latency_s(self, rate_per_s: Numeric) -> Array:
        """The latency the target is about, at the planned confidence; ``inf`` beyond capacity.

        By moments if many settings are compared; by (T4) for one that is printed.
        """
        return self._latency_at(self.planned_pace(rate_per_s))

    def _latency_at(self, pace: Pace) -> Array:
        law = self._law(pace)
        if len(self) <= MOST_CERTIFIED:
            law = certified(law)
        quotable = law.is_quotable & (self.launch_ratio(pace) <= 1.0)
        return np.where(quotable, self.promised().statistic_s(law), np.inf)

    def launch_ratio(self, pace: Pace) -> Array:
        """Tasks to launch, by the driver in a second or at once, over those that can be. [-]

        If no batch is short enough to exceed it, the value of the shortest batch.
        """
        setting = self.question.profile, self.num_slots, self.partitions
        if not any(stage.follows_rows for stage in self.question.profile.stages):
            no_rows = np.zeros_like(self.trigger_s)
            highest = launch_ratio(*setting, no_rows, pace.interval_s(no_rows))
            if np.all(highest <= 1.0):
                return highest
        return launch_ratio(*setting, pace.usual_rows, pace.interval_s(pace.usual_rows))

    def planned_ratio(self, rate_per_s: Numeric) -> Array:
        """Factor on durations for the confidence. [-]"""
        return self.upper_end().rate_and_factor(rate_per_s)[1]

    def promised(self, target: Target | None = None) -> PromisedLatency:
        """A latency target on the job; by default, the one that is planned for."""
        return PromisedLatency(profile=self.question.profile, target=target or self.question.target)

    def _latency_excess(self, law: SettingLaw) -> Array:
        promises = map(self.promised, self.question.latency_targets)
        excesses = [promised.log_excess(law, _LEAST_TAIL) for promised in promises]
        return np.asarray(np.maximum.reduce(excesses))

    def _excess_of_change(
        self, promise: DuringBurst | CatchUp, pace: Pace, beyond: _Beyond | None
    ) -> Array:
        """Distance of each setting from a target about an outage or a burst."""
        burst, excesses = burst_of(promise), [np.full(len(self), -math.inf)]
        if isinstance(promise, CatchUp):
            excesses.append(_log(self._catch_up_s(promise, pace) / promise.limit_s))
        if burst is not None and burst.every_s is not None:
            between_s = burst.every_s - burst.length_s
            _, recovered_s, _ = self._burst_effect(burst, pace)
            excesses.append(_log(recovered_s / between_s))
        if isinstance(promise, DuringBurst):
            worst = self._worst_of_burst(promise.burst, pace)
            excesses.append(self._asked_only(promise.target)._excess_at(worst, beyond))
        return np.asarray(np.maximum.reduce(excesses))

    def _catch_up_s(self, promise: CatchUp, pace: Pace) -> Array:
        if isinstance(promise.after, Burst):
            return self._burst_effect(promise.after, pace)[1]
        size = self.num_slots, self.partitions
        start = start_after_outage(self.question.profile, size, pace)
        return recovery_s(pace, promise.after, start)

    def _worst_of_burst(self, burst: Burst, pace: Pace) -> Pace:
        """The lasting rate that is equivalent to the worst time of a burst: theory.md (P17)."""
        most_rows, _, slowed = self._burst_effect(burst, pace)
        rate_per_s = np.maximum(most_rows / slowed.interval_s(most_rows), pace.rate_per_s)
        return replace(slowed, rate_per_s=rate_per_s)

    def _asked_only(self, target: Target) -> Candidates:
        return replace(self, question=replace(self.question, target=target, also=()))

    def _burst_effect(self, burst: Burst, pace: Pace) -> tuple[Array, Array, Pace]:
        """Largest batch and recovery time of settings in a burst, and the upper end for both."""
        # Larger batches may be less certain by the profile; which ones occur is decided as in (P4).
        expected, _ = burst_effect(replace(pace, factor=np.ones(len(self))).with_axis(), burst)
        factor = np.maximum(pace.factor, self.upper_end().factor(expected))
        slowed = replace(pace, factor=factor)
        return *burst_effect(slowed.with_axis(), burst), slowed

    def planned_law(self, rate_per_s: Numeric) -> SettingLaw:
        """The law with all durations at the upper end for the confidence."""
        return self._law(self.planned_pace(rate_per_s))

    def expected_law(self, rate_per_s: Numeric) -> SettingLaw:
        """The law with expected durations; declared figures are in the middle of their ranges."""
        if self.question.profile.declared is not None:
            middle = self.question.at_confidence(0.5)
            return candidates_at(middle, self.settings()).planned_law(rate_per_s)
        return self._law(self._pace(rate_per_s, rate_per_s, np.ones(len(self))))

    def settings(self) -> list[tuple[int, int, float]]:
        columns = (self.nodes.tolist(), self.partitions.tolist(), self.trigger_s.tolist())
        return list(zip(*columns, strict=True))

    def _law(self, pace: Pace) -> SettingLaw:
        return setting_law(
            self.question.profile,
            pace.model,
            rate_per_s=pace.rate_per_s,
            trigger_s=self.trigger_s,
            factor=pace.factor,
            rows=pace.usual_rows,
        )

    def planned_pace(self, rate_per_s: Numeric) -> Pace:
        """At the rate, or a higher one with less uncertainty, and the upper end there: (P4)."""
        return self._pace(rate_per_s, *self.upper_end().rate_and_factor(rate_per_s))

    def _pace(self, state_rate_per_s: Numeric, rate_per_s: Numeric, factor: Array) -> Pace:
        """At a rate, with the state of the same or of a lower one: theory.md (E36)."""
        return Pace(
            model=self.durations.at_rate(state_rate_per_s),
            rate_per_s=rate_per_s,
            trigger_s=self.trigger_s,
            factor=factor,
            state_rate_per_s=state_rate_per_s,
        )

    def upper_end(self) -> UpperEnd:
        return UpperEnd(
            profile=self.question.profile,
            durations=self.durations,
            num_slots=self.num_slots.astype(np.float64),
            partitions=self.partitions.astype(np.float64),
            trigger_s=self.trigger_s,
            score=float(ndtri(self.question.confidence)),
        )


def all_candidates(question: Question, node_counts: Sequence[int]) -> Candidates:
    """Every setting of the space at some node counts."""
    triggers_s = question.space.trigger_choices_s(question.profile, question.target.limit_s)
    return candidates_at(
        question,
        [
            (nodes, partitions, trigger_s)
            for nodes in node_counts
            for partitions in question.space.partition_choices(question.profile, nodes)
            for trigger_s in triggers_s
        ],
    )


def candidates_at(question: Question, settings: Sequence[tuple[int, int, float]]) -> Candidates:
    """Chosen settings: nodes, partitions, trigger interval [s]."""
    nodes, partitions, triggers_s = zip(*settings, strict=True)
    sizes = list(dict.fromkeys(zip(nodes, partitions, strict=True)))
    index_of_size = {size: index for index, size in enumerate(sizes)}
    profile, slots_of = question.profile, question.space.num_slots
    models = [duration_model(profile, slots_of(count), shuffled) for count, shuffled in sizes]
    size_indices = [index_of_size[size] for size in zip(nodes, partitions, strict=True)]
    return Candidates(
        question=question,
        nodes=np.array(nodes),
        partitions=np.array(partitions),
        trigger_s=np.array(triggers_s, dtype=np.float64),
        durations=stacked(models).take(np.array(size_indices, dtype=np.intp)),
    )


def _log(ratio: Array) -> Array:
    return np.asarray(np.log(np.maximum(ratio, _LEAST_TAIL)))
