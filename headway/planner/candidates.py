"""All settings of some node counts at once, held against the promises at some rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headway.domain import Configuration, Target
from headway.models.arrays import Array, Numeric
from headway.models.job.calibration import fewest_rows, spread_ratio
from headway.models.job.duration import DurationModel, DurationStack, stacked
from headway.models.job.predict import HIGHEST_QUOTED_INFLATION
from headway.models.job.setting import (
    SettingLaw,
    after_commit_s,
    allowed_inflation,
    duration_model,
    load_ratio,
    setting_law,
    settled_batch_rows,
)
from headway.models.laws.normal import ndtri
from headway.planner.promised import PromisedLatency, log_excess
from headway.planner.question import Question
from headway.planner.recovery import recovery_s

BoolArray = NDArray[np.bool_]
Places = NDArray[np.intp]

_FIRST_LOOKS = 8
_BOUND_MARGIN = 1.01
_LEAST_TAIL = 1e-16
_LEAST_EXCESS = 1e-9
# Batch sizes below the profiled range that a plan is also held against, largest first.
_SMALLER_BATCHES = 2.0 ** (-0.5 * np.arange(25.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Settings as parallel arrays; one entry is one (nodes, partitions, trigger)."""

    question: Question
    nodes: NDArray[np.int_]
    partitions: NDArray[np.int_]
    trigger_s: Array
    durations: DurationStack

    def __len__(self) -> int:
        return len(self.nodes)

    def take(self, chosen: Places | BoolArray) -> Candidates:
        """Some of the settings."""
        return replace(
            self,
            nodes=self.nodes[chosen],
            partitions=self.partitions[chosen],
            trigger_s=self.trigger_s[chosen],
            durations=self.durations.take(chosen),
        )

    def configuration(self, place: int, max_offsets: int | None = None) -> Configuration:
        """One setting as a configuration."""
        space = self.question.space
        return Configuration(
            executors=int(self.nodes[place]) * space.executors_per_node,
            cores_per_executor=space.cores_per_executor,
            shuffle_partitions=int(self.partitions[place]),
            trigger_s=float(self.trigger_s[place]),
            max_offsets_per_trigger=max_offsets,
        )

    def meets(self, rate_per_s: Numeric) -> BoolArray:
        """Which settings keep every promise at the planned confidence and rate."""
        return np.asarray(self.excess(rate_per_s) <= 0.0)

    def keep_promises(self, latency_s: Array, rate_per_s: Numeric) -> BoolArray:
        """The same where the latency is known already."""
        if self.question.also:
            return self.meets(rate_per_s)
        return np.asarray(latency_s <= self.question.target.limit_s)

    def excess(self, rate_per_s: Numeric) -> Array:
        """How far each setting is from its worst promise: increases with the rate, 0 at the limit.

        The logarithm of a latency (or what lies beyond its limit) over what is allowed, or of the
        load over the highest load that is quoted.
        """
        rate, factor = self._planned_rate_and_factor(rate_per_s)
        load = load_ratio(
            self.question.profile,
            self.durations.model(num_axes=2),
            rate_per_s=rate,
            trigger_s=self.trigger_s,
            factor=factor,
            highest_inflation=HIGHEST_QUOTED_INFLATION,
        )
        excess = np.log(np.maximum(load, _LEAST_TAIL))
        loaded = np.flatnonzero(excess < 0.0)
        if len(loaded):
            settings = self.take(loaded)
            law = settings._law(rate[loaded], factor[loaded])
            over = np.maximum(excess[loaded], settings._latency_excess(law))
            if self.question.catch_ups:
                over = np.maximum(over, settings._recovery_excess(rate[loaded], factor[loaded]))
            excess[loaded] = np.where(_is_quotable(law), over, np.maximum(over, _LEAST_EXCESS))
        return excess

    def latency_s(self, rate_per_s: Numeric) -> Array:
        """The latency the target is about, at the planned confidence; ``inf`` beyond capacity."""
        law = self._planned_law(rate_per_s)
        return np.where(_is_quotable(law), self._promised().statistic_s(law), np.inf)

    def lowest_latency(self, rate_per_s: float) -> tuple[int, float]:
        """The setting with the lowest such latency, and its latency [s].

        Notes
        -----
        theory.md (P5): a setting whose bound is above the best seen is not looked at.
        """
        bound_s = self.noise_free_latency_s(rate_per_s)
        first = np.argsort(bound_s, kind="stable")[:_FIRST_LOOKS]
        latency_s = np.full(len(self), np.inf)
        latency_s[first] = self.take(first).latency_s(rate_per_s)
        best_s = float(latency_s.min())
        others = np.setdiff1d(np.flatnonzero(bound_s < best_s), first)
        if len(others):
            law = self.take(others)._planned_law(rate_per_s)
            quantile, promised = self.question.target.quantile, self._promised()
            lower = _is_quotable(law)
            if quantile is not None and np.isfinite(best_s):
                lower &= promised.cdf(law, best_s) > quantile
            if np.any(lower):
                latency_s[others[lower]] = promised.statistic_s(law.take(lower))
        place = int(np.argmin(latency_s))
        return place, float(latency_s[place])

    def overrun_probability(self, rate_per_s: Numeric) -> Array:
        """Probability that a batch outlasts its trigger interval, at the planned confidence."""
        return self._planned_law(rate_per_s).overrun_probability

    def planned_ratio(self, rate_per_s: Numeric) -> Array:
        """What durations are multiplied by for the confidence. [-]"""
        return self._planned_rate_and_factor(rate_per_s)[1]

    def noise_free_rate_per_s(self) -> Array:
        """A rate that no setting exceeds under its latency targets, for noise only costs.

        Notes
        -----
        theory.md (P5). The longest batch that a target allows, and the rows it has time for.
        """
        bounds = [self._rate_bound_per_s(target) for target in self.question.latency_targets]
        return np.asarray(np.minimum.reduce(bounds))

    def _rate_bound_per_s(self, target: Target) -> Array:
        promised = self._promised(target)
        factor, weight = self._least_factor(), promised.wait_weight
        for _ in range(2):
            allowed_s = target.limit_s - promised.shift_s + factor * self._after_commit_s(promised)
            on_grid_s = allowed_s - weight * self.trigger_s
            free_running_s = allowed_s / (1.0 + weight)
            longest_s = np.where(
                on_grid_s <= self.trigger_s,
                on_grid_s,
                np.maximum(free_running_s, self.trigger_s),
            )
            model = self.durations.model(num_axes=1)
            rows = _rows_of_duration(model, longest_s / factor)
            # Now that the rows are known, so is the noise that their number makes.
            factor = self._least_factor() / self._noise_gain(target, model, rows)
        interval_s = np.maximum(self.trigger_s, longest_s)
        return np.where(longest_s > 0, rows / np.maximum(interval_s, 1e-9), 0.0) * _BOUND_MARGIN

    def noise_free_latency_s(self, rate_per_s: float) -> Array:
        """A latency that no setting comes below at a rate, for noise only costs.

        Notes
        -----
        theory.md (P5).
        """
        model, factor = self.durations.model(num_axes=1), self._least_factor()
        promised = self._promised()
        rows = settled_batch_rows(model, rate_per_s, self.trigger_s, factor)
        factor = factor / self._noise_gain(self.question.target, model, rows)
        rows = settled_batch_rows(model, rate_per_s, self.trigger_s, factor)
        duration_s = factor * model.mean_s(rows)
        waited_s = promised.wait_weight * np.maximum(self.trigger_s, duration_s)
        latency_s = waited_s + duration_s - factor * self._after_commit_s(promised)
        return promised.shift_s + latency_s / _BOUND_MARGIN

    def _promised(self, target: Target | None = None) -> PromisedLatency:
        return PromisedLatency(profile=self.question.profile, target=target or self.question.target)

    def _after_commit_s(self, promised: PromisedLatency) -> float:
        return after_commit_s(self.question.profile) if promised.ends_at_commit else 0.0

    def _latency_excess(self, law: SettingLaw) -> Array:
        every = [
            log_excess(self._promised(target), law, _LEAST_TAIL)
            for target in self.question.latency_targets
        ]
        return np.asarray(np.maximum.reduce(every))

    def _recovery_excess(self, rate_per_s: Array, factor: Array) -> Array:
        model = self.durations.model(num_axes=1)
        usual = settled_batch_rows(model, rate_per_s, self.trigger_s, factor)
        every = [
            np.log(
                recovery_s(model, rate_per_s, self.trigger_s, factor, one.outage_s, usual)
                / one.limit_s
            )
            for one in self.question.catch_ups
        ]
        return np.asarray(np.maximum.reduce(every))

    def _noise_gain(self, target: Target, model: DurationModel, rows: Array) -> Array:
        """By how much noise can lower a quantile: means are kept, and medians lie below them."""
        if target.quantile is None:
            return np.ones_like(rows)
        profile = self.question.profile
        from_counts = model.slope_s(rows) / model.mean_s(rows)
        from_counts = from_counts**2 * profile.arrivals.dispersion_ratio * rows
        log_variance = np.log1p(profile.noise.batch_ratio**2 + from_counts)
        below = max(-float(ndtri(target.quantile)), 0.0)
        return np.exp(0.5 * log_variance + below * np.sqrt(log_variance))

    def _planned_law(self, rate_per_s: Numeric) -> SettingLaw:
        """The law with all durations at the upper end that the confidence asks for."""
        return self._law(*self._planned_rate_and_factor(rate_per_s))

    def _law(self, rate_per_s: Array, factor: Array) -> SettingLaw:
        return setting_law(
            self.question.profile,
            self.durations.model(num_axes=2),
            rate_per_s=rate_per_s,
            trigger_s=self.trigger_s,
            factor=factor,
        )

    def _planned_rate_and_factor(self, rate_per_s: Numeric) -> tuple[Array, Array]:
        """The rate asked, or a higher one that the profile knows more of, and the upper end there.

        Notes
        -----
        theory.md (P4). What a setting keeps at a rate it keeps at all lower ones; without this,
        batches smaller than any profiled would be planned as slower than those profiled.
        """
        rate = np.broadcast_to(np.asarray(rate_per_s, dtype=np.float64), self.trigger_s.shape)
        rows = settled_batch_rows(self.durations.model(num_axes=1), rate, self.trigger_s)
        factor = self._factor(rows[:, np.newaxis])[:, 0]
        small = np.flatnonzero(rows < fewest_rows(self.question.profile))
        if len(small):
            better = self.take(small)._least_loaded(rate[small], rows[small])
            rate, factor = rate.copy(), factor.copy()
            rate[small], factor[small] = better
        return rate, factor

    def _least_loaded(self, rate_per_s: Array, rows: Array) -> tuple[Array, Array]:
        """Of a rate and higher ones with batches up to the fewest rows, the shortest batches."""
        model, trigger_s = self.durations.model(num_axes=2), self.trigger_s[:, np.newaxis]
        larger = np.broadcast_to(
            fewest_rows(self.question.profile) * _SMALLER_BATCHES,
            (len(self), len(_SMALLER_BATCHES)),
        )
        # The rate asked comes first, so that it wins where nothing is gained.
        rates = np.column_stack([rate_per_s, larger / np.maximum(trigger_s, model.mean_s(larger))])
        factors = self._factor(np.column_stack([rows, larger]))
        lengthened = settled_batch_rows(model, rates, trigger_s, factors)
        inflation = rates * factors * model.slope_s(lengthened)
        highest = allowed_inflation(self.question.profile, HIGHEST_QUOTED_INFLATION)
        duration_s = np.where(inflation <= highest, factors * model.mean_s(lengthened), np.inf)
        best = np.argmin(np.where(rates >= rates[:, :1], duration_s, np.inf), axis=1)
        everyone = np.arange(len(self))
        return rates[everyone, best], factors[everyone, best]

    def _factor(self, rows: Array) -> Array:
        """Upper over mean duration, by settings and rows of the batch."""
        slots = self._slots().astype(np.float64)[:, np.newaxis]
        partitions = self.partitions.astype(np.float64)[:, np.newaxis]
        spread = spread_ratio(self.question.profile, slots, partitions, rows)
        return np.exp(ndtri(self.question.confidence) * spread)

    def _least_factor(self) -> Array:
        """The same where the number of rows is well known."""
        return self._factor(np.full((len(self), 1), fewest_rows(self.question.profile)))[:, 0]

    def _slots(self) -> NDArray[np.int_]:
        return self.nodes * self.question.space.num_slots(1)


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
    number = {size: place for place, size in enumerate(sizes)}
    durations = stacked(
        [
            duration_model(question.profile, question.space.num_slots(count), num_partitions)
            for count, num_partitions in sizes
        ]
    )
    each = np.array([number[size] for size in zip(nodes, partitions, strict=True)], dtype=np.intp)
    return Candidates(
        question=question,
        nodes=np.array(nodes),
        partitions=np.array(partitions),
        trigger_s=np.array(triggers_s, dtype=np.float64),
        durations=durations.take(each),
    )


def _is_quotable(law: SettingLaw) -> BoolArray:
    return np.asarray(law.is_stable & (law.inflation_ratio <= HIGHEST_QUOTED_INFLATION))


def _rows_of_duration(model: DurationModel, duration_s: Array) -> Array:
    """Rows of a batch that takes a given time on average: 0 where even an empty one takes longer,
    1 where a full row does."""
    rows = np.ones_like(duration_s)
    for _ in range(60):
        gap_s = duration_s - model.mean_s(rows)
        slope_s = np.maximum(model.slope_s(rows), 1e-15)
        # The duration is concave in the rows: a step from below never overshoots.
        new_rows = np.clip(rows + gap_s / slope_s, 1.0, 1e15)
        settled = bool(np.all(np.abs(new_rows - rows) <= 1e-9 * rows))
        rows = new_rows
        if settled:
            break
    return np.where(
        model.mean_s(np.ones_like(rows)) < duration_s,
        rows,
        np.where(model.mean_s(np.zeros_like(rows)) < duration_s, 1.0, 0.0),
    )
