"""The upper end of durations, which plans use."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headway.domain import JobProfile
from headway.lazy_classes import Identity, dataclass
from headway.models.arrays import Array, Numeric
from headway.models.job.calibration import fewest_rows, spread_ratio
from headway.models.job.duration import DurationModel
from headway.models.job.setting import MOST_BATCH_ROWS, allowed_offered_load, settled_batch_rows

# Batch sizes below the profiled range at which a setting is also evaluated, largest first.
_SMALLER_BATCHES = 2.0 ** (-0.5 * np.arange(25.0))
_STEPS_TO_SETTLE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperEnd:
    """Durations that settings, in parallel arrays, exceed with a small probability only (P4).

    **(P4)** A plan compares a target with (T6) at `f = e^(z s)`, with `s` from (P2) and `z` the
    normal quantile of the confidence. Configurations for which (P3) quotes no latency are
    infeasible. A configuration that meets a target at a rate meets it at every lower one. But `s`
    grows as batches become smaller than any profiled one, so a configuration may be evaluated at a
    higher rate instead: of the rates at which batches settle at `2^(-k/2)`, `k = 0..24`, of the
    fewest rows of (P2), the one with the shortest batches; between two of these sizes, the latency
    may fall by 2% as the rate rises. The state is that of the rate in question, not of the higher
    one (E36): with the rate it only grows, which makes batches longer, so the rates at which a
    configuration meets its targets are still all up to the highest. Where expected durations are
    too long for the rate, `s` at `z < 0` is that of the rows that settle at
    `f`: batches that grow without bound have no size.
    """

    profile: JobProfile
    durations: DurationModel
    num_slots: Array
    partitions: Array
    trigger_s: Array
    score: float  # normal quantile of the confidence
    age_factor: float = 1.0  # of every duration, for the age of the JVM

    def rate_and_factor(self, rate_per_s: Numeric) -> tuple[Array, Array]:
        """The asked rate, or a higher one closer to the profiled range, and its factor (P4)."""
        rate = self._of_settings(rate_per_s)
        if rate.size == 1:
            setting = (self.num_slots, self.partitions, self.trigger_s, rate)
            values = (array.item() for array in setting)
            of_job = Identity(self.profile, self.durations)
            return _rate_and_factor_of_one(of_job, self.score, self.age_factor, *values)
        return self._with_state_of(rate)._rate_and_factor(rate)

    def _with_state_of(self, rate_per_s: Array) -> UpperEnd:
        """The same with the state of each setting at its rate: theory.md (E36)."""
        if not self.durations.follows_rate:
            return self
        return replace(self, durations=self.durations.at_rate(rate_per_s))

    def _rate_and_factor(self, rate: Array) -> tuple[Array, Array]:
        rows, factor = self._settled(rate)
        small = np.flatnonzero(rows < fewest_rows(self.profile))
        if len(small):
            rate, factor = rate.copy(), factor.copy()
            rate[small], factor[small] = self._least_loaded(small, rate[small], rows[small])
        return rate, factor

    def settled_factor(self, rate_per_s: Numeric) -> Array:
        """The factor at the asked rate. [-]"""
        rate = self._of_settings(rate_per_s)
        return self._with_state_of(rate)._settled(rate)[1]

    def _of_settings(self, rate_per_s: Numeric) -> Array:
        """The rate of each setting."""
        rate, shape = np.asarray(rate_per_s, dtype=np.float64), self.trigger_s.shape
        return rate if rate.shape == shape else np.broadcast_to(rate, shape)

    def _settled(self, rate_per_s: Array) -> tuple[Array, Array]:
        """Rows of batches at a rate, and the factor on their durations: theory.md (P4), (P28)."""
        expected = settled_batch_rows(self.durations, rate_per_s, self.trigger_s, self.age_factor)
        return self._settled_from(expected, rate_per_s)

    def _settled_from(self, rows: Array, rate_per_s: Array) -> tuple[Array, Array]:
        """The same from the rows at the expected durations."""
        model, settings = self.durations, (rate_per_s, self.trigger_s)
        is_over = np.zeros(rows.shape, dtype=bool)
        if self.score < 0.0 and self.profile.declared is None:
            load = rate_per_s * self.age_factor * model.slope_s(rows)
            is_over = load > allowed_offered_load(self.profile.noise.batch_ratio)
            rows = np.where(is_over, np.minimum(rows, self.profile.rows_per_batch_range[1]), rows)
        is_followed = is_over | bool(self.profile.row_cost_half_range_ratio)
        factor = self.factor(rows)
        for _ in range(_STEPS_TO_SETTLE if is_followed.any() else 0):
            rows = np.where(is_followed, settled_batch_rows(model, *settings, factor), rows)
            # Shorter batches are surer and so less shortened: only half of each step is taken.
            at_rows = np.where(is_over, np.sqrt(factor * self.factor(rows)), self.factor(rows))
            # Without bound already: larger rows would only make the factor absurd.
            factor = np.where(is_followed & (rows < MOST_BATCH_ROWS), at_rows, factor)
        return rows, factor

    def factor(self, rows: Array) -> Array:
        """Factor on the mean durations of batches with ``rows`` rows. [-]"""
        size, model = (self.num_slots, self.partitions), self.durations
        spread = spread_ratio(self.profile, *size, rows, model=model, score=self.score)
        return np.asarray(self.age_factor * np.exp(self.score * spread))

    def _least_loaded(
        self, small: NDArray[np.intp], rate_per_s: Array, rows: Array
    ) -> tuple[Array, Array]:
        """Among a rate and higher ones with batches up to the fewest rows: the shortest batches."""
        # A setting at many rates has the same larger batches at each, unless its state differs.
        columns = [self.num_slots[small], self.partitions[small], self.trigger_s[small]]
        if self.durations.follows_rate:
            columns.append(rate_per_s)
        settings = list(map(tuple, np.column_stack(columns).tolist()))
        first_of = {setting: len(small) - 1 - at for at, setting in enumerate(reversed(settings))}
        firsts = np.array(sorted(first_of.values()))
        inverse = np.searchsorted(firsts, [first_of[setting] for setting in settings])
        num_small, num_larger = len(small), len(_SMALLER_BATCHES)
        indices = np.append(small, np.repeat(small[firsts], num_larger))
        larger = np.tile(fewest_rows(self.profile) * _SMALLER_BATCHES, len(firsts))
        rows = np.append(rows, larger)
        model = self.durations.take(indices)
        trigger_s = self.trigger_s[indices]
        rates = rows / np.maximum(trigger_s, self.age_factor * model.mean_s(rows))
        rates[:num_small] = rate_per_s
        at_indices = replace(
            self,
            durations=model,
            num_slots=self.num_slots[indices],
            partitions=self.partitions[indices],
            trigger_s=trigger_s,
        )
        _, factors = at_indices._settled_from(rows, rates)
        lengthened = settled_batch_rows(model, rates, trigger_s, factors)
        offered_load = rates * factors * model.slope_s(lengthened)
        highest = allowed_offered_load(self.profile.noise.batch_ratio)
        duration_s = np.where(offered_load <= highest, factors * model.mean_s(lengthened), np.inf)
        of_larger = num_small + num_larger * np.reshape(inverse, (-1, 1)) + np.arange(num_larger)
        # The asked rate comes first, so that it is chosen if others gain nothing.
        choices = np.column_stack([np.arange(num_small), of_larger])
        is_higher = rates[choices] >= rate_per_s[:, np.newaxis]
        best = np.argmin(np.where(is_higher, duration_s[choices], np.inf), axis=1)
        shortest = choices[np.arange(num_small), best]
        return rates[shortest], factors[shortest]


@lru_cache(maxsize=256)  # a plan evaluates the setting that it prints many times
def _rate_and_factor_of_one(
    of_job: Identity, score: float, age_factor: float, *setting: float
) -> tuple[Array, Array]:
    profile, durations = of_job.nouns
    num_slots, partitions, trigger_s, rate_per_s = (np.array([value]) for value in setting)
    end = UpperEnd(
        profile=profile,
        durations=durations,
        num_slots=num_slots,
        partitions=partitions,
        trigger_s=trigger_s,
        score=score,
        age_factor=age_factor,
    )
    rate_and_factor = end._with_state_of(rate_per_s)._rate_and_factor(rate_per_s)
    for array in rate_and_factor:
        array.flags.writeable = False
    return rate_and_factor
