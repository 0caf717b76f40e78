"""Capacity of a setting: the rates up to which it is stable, and findings beyond them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from headway.assumptions.planning import LEAST_CATCH_UP_RATIO
from headway.assumptions.predictions import CALIBRATED_DOUBLINGS, HIGHEST_QUOTED_OVERRUN_RATIO
from headway.digits import RANKS_PER_DECADE, number_at, rank_of
from headway.domain import Z90, Configuration, Finding, FindingCode, JobProfile
from headway.lazy_classes import dataclass
from headway.models.job.calibration import doublings_beyond, own_spread_ratio, widened
from headway.models.job.certified import certified
from headway.models.job.declared import figures_at
from headway.models.job.duration import DurationModel
from headway.models.job.setting import (
    MOST_BATCH_ROWS,
    SettingLaw,
    allowed_offered_load,
    duration_model,
    load_ratio,
    setting_law,
    settled_batch_rows,
)
from headway.models.job.state_at_rates import rate_of_rows
from headway.models.laws.inverse import last_nonpositive

_LOWEST_RATE_PER_S, _HIGHEST_RATE_PER_S = 1e-6, 1e12
_RATE_TOLERANCE_RATIO = 1e-4
_LOWEST_RATIO = 1e-12
_FEWEST_ROWS, _ROWS_AT_A_LOOK, _LOOKS_AT_ROWS = 1e-12, 128, 4
_STATE_STEP_ROWS = 1_000_000
_LONGER_TRIGGERS = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0)
_MORE_SLOTS = (2, 3, 4, 6, 8, 12, 16, 32, 64, 100)


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """A setting and the rates that it can process."""

    profile: JobProfile  # whose arrivals are the input
    configuration: Configuration
    model: DurationModel
    age_factor: float = 1.0  # of every duration, for the age of the JVM

    @classmethod
    def of(
        cls, profile: JobProfile, configuration: Configuration, age_factor: float = 1.0
    ) -> Capacity:
        """The capacity of a job's setting."""
        model = duration_model(profile, *configuration.size)
        return cls(profile=profile, configuration=configuration, model=model, age_factor=age_factor)

    def at_rate(self, rate_per_s: float) -> Capacity:
        """The same setting at another rate; what its rates can be is not computed again."""
        arrivals = replace(self.profile.arrivals, rate_per_s=rate_per_s)
        profile = replace(self.profile, arrivals=arrivals)
        at_rate = replace(self, profile=profile, model=self.model.at_rate(rate_per_s))
        at_rate.__dict__["stable_up_to_per_s"] = self.stable_up_to_per_s
        return at_rate

    @property
    def rate_per_s(self) -> float:
        """Input rate [records/s]."""
        return self.profile.arrivals.rate_per_s

    @cached_property
    def stable_up_to_per_s(self) -> float:
        """The highest rate with a bounded backlog, without a rate limit (P3). [records/s]"""
        return _highest_rate_per_s(self._limit_per_s())

    def _limit_per_s(self) -> float:
        """The rate at which the load is the highest allowed [records/s].

        theory.md (P3), (T3): settled rows determine the rate, `λ = n/max(B, fD(n))`, without a
        search for them, and since `D` is concave the load `λ fD'(n)` rises with them. Where it does
        not (T7), the largest batch with an allowed load counts. The state in `D` is that of `λ`
        (E36).
        """
        trigger_s, factor = self.configuration.trigger_s, self.age_factor
        allowed = float(allowed_offered_load(self.profile.noise.batch_ratio))
        low, high = _FEWEST_ROWS, MOST_BATCH_ROWS
        for _ in range(_LOOKS_AT_ROWS):
            rows = np.geomspace(low, high, _ROWS_AT_A_LOOK)
            rates_per_s = rate_of_rows(self.model, rows, trigger_s, factor)
            loads = rates_per_s * factor * self.model.slope_s(rows)
            # Loads may fall again where coalesced stages take more tasks: the last rise counts.
            allowed_indices = np.flatnonzero(loads <= allowed)
            first_above = int(allowed_indices[-1]) + 1 if len(allowed_indices) else 0
            if first_above in (0, len(loads)):
                # Rows do not determine the rate: of larger batches no longer, and never without a
                # fixed time, as the load does not depend on them then.
                slope_s = float(self.model.slope_s(high if first_above else low))
                return allowed / max(factor * slope_s, 1e-300)
            low, high = rows[first_above - 1], rows[first_above]
        bracket = slice(first_above - 1, first_above + 1)
        log_loads = np.log(np.maximum(loads[bracket], 1e-300))
        logarithm = np.interp(math.log(allowed), log_loads, np.log(rates_per_s[bracket]))
        return math.exp(float(logarithm))

    @property
    def is_stable(self) -> bool:
        """Whether the input rate is within what is stable, without a rate limit."""
        return self.rate_per_s <= self.stable_up_to_per_s

    @property
    def is_over(self) -> bool:
        """Whether the input rate is beyond what is stable even at the lowest cost of a row (P28).

        The rate is in inverse proportion to that cost.
        """
        lowest_ratio = max(1.0 - 2.0 * (self.profile.row_cost_half_range_ratio or 0.0), 0.0)
        return bool(self.rate_per_s * lowest_ratio > self.stable_up_to_per_s)

    @property
    def is_surely_over(self) -> bool:
        """Whether the backlog grows at the low end of durations, too (P32)."""
        return self.is_over and self.load_at_end(-Z90) > 1.0

    def load_at_end(self, score: float) -> float:
        """The load with durations at an end of their range, over the highest that is carried. [-]

        Above 1 the backlog grows. ``score`` is the normal quantile of the end: negative for short
        durations, positive for long ones.

        **(P32)** Verdicts of stability. A rate `λ` is carried while its load keeps `r^2(1+c^2) <
        1`. A setting is called stable if (P3) expects it to be, and that holds for durations
        `e^(1.645 s)` times as long as expected, too; it is called not stable if even the lowest
        cost of a row of (P28) lets (P3) expect so, and durations `e^(-1.645 s)` times as long are
        not carried either. In between, it is expected to be stable, or not to be. `s` is that of
        (P2), with the spread between runs and of the fit, for batches that settle if durations are
        `λ_s/λ` times as long, with `λ_s` of (P3), and with `d_n ≤ 2`: nearly all time of larger
        batches is for their rows, so that their size adds no further error. For the high end, the
        cost of a row left open by batches of one size is `1+h` of (P28). Four runs that differ by
        12% leave `s = 0.15`: rates from 0.78 to 1.27 of the capacity are not decided by them,
        however good the model is.

        >>> from headway.formats.profile_file import load_profile
        >>> profile = load_profile("examples/word-count.profile.yaml")
        >>> capacity = Capacity.of(profile, profile.settings[-1].configuration)
        >>> [round(capacity.load_at_end(score), 2) for score in (-1.645, 0.0, 1.645)]
        [0.06, 0.1, 0.18]
        """
        profile, (slots, partitions) = self.profile, self.configuration.size
        trigger_s, open_cost_ratio = self.configuration.trigger_s, profile.row_cost_half_range_ratio
        just_ratio = max(self.stable_up_to_per_s / self.rate_per_s, _LOWEST_RATIO)
        just_factor = self.age_factor * just_ratio
        rows = settled_batch_rows(self.model, self.rate_per_s, trigger_s, just_factor)
        several_sizes = replace(profile, row_cost_half_range_ratio=None)
        of_slots, of_partitions, of_rows = doublings_beyond(several_sizes, slots, partitions, rows)
        of_rows = np.minimum(of_rows, CALIBRATED_DOUBLINGS.value)
        own_ratio = own_spread_ratio(profile)
        spread = float(widened(own_ratio, of_slots, of_rows, partitions=of_partitions))
        at_end = figures_at(profile, score)
        row_cost_ratio = 1.0 + (open_cost_ratio or 0.0) if score > 0.0 else 1.0
        load = load_ratio(
            profile,
            self.model if at_end is profile else duration_model(at_end, slots, partitions),
            rate_per_s=self.rate_per_s,
            trigger_s=trigger_s,
            factor=self.age_factor * row_cost_ratio * math.exp(score * spread),
            highest_offered_load=1.0,
        )
        return float(load)

    @property
    def printed_up_to_per_s(self) -> float:
        """The sustainable rate, at most one with batches of known size (P28). [records/s]

        Also where no cost of a row was measured, so that nothing would bound the rate.
        """
        is_bounded = self.sustainable_rate_per_s < _HIGHEST_RATE_PER_S
        if is_bounded and not self.profile.row_cost_half_range_ratio:
            return self.sustainable_rate_per_s
        most_rows = self.profile.rows_per_batch_range[1] * 2.0**CALIBRATED_DOUBLINGS.value
        return min(self.sustainable_rate_per_s, self._rate_of_rows(most_rows))

    @property
    def sustainable_rate_per_s(self) -> float:
        """The highest stable rate, at most what a rate limit allows if there is one [records/s]."""
        limit, stable_per_s = self.configuration.max_offsets_per_trigger, self.stable_up_to_per_s
        if limit is None:
            return stable_per_s
        return min(stable_per_s, self._rate_of_rows(limit))

    def latency_up_to_per_s(self) -> float:
        """The highest rate of three digits with a predicted latency; 0 if none [records/s]."""
        most_per_s = self.printed_up_to_per_s
        if not most_per_s > 0:
            return 0.0
        high = rank_of(most_per_s) + 1
        low = high - RANKS_PER_DECADE
        at_low, at_high = self._saturation_excess(low), self._saturation_excess(high)
        if at_low > 0.0:
            return 0.0
        # Above the sustainable rate the backlog may grow, whatever the law says.
        return number_at(
            last_nonpositive(self._saturation_excess, low, high, at_low, max(at_high, 0.0))
        )

    def _saturation_excess(self, rank: int) -> float:
        """How far a rate, by its rank among those of three digits, is from being quoted."""
        law = self._law(self.model, number_at(rank), self.configuration.trigger_s)
        return float(certified(law).saturation_excess[0])

    def _law(self, model: DurationModel, rate_per_s: float, trigger_s: float) -> SettingLaw:
        rates_per_s, factor = np.array([rate_per_s]), self.age_factor
        return setting_law(
            self.profile,
            model.at_rate(rate_per_s),
            rate_per_s=rates_per_s,
            trigger_s=trigger_s,
            factor=factor,
        )

    def limit_findings(self) -> Iterator[Finding]:
        """Whether the rate limit is enough for the input rate.

        **(B12)** With at most `N` rows per batch a query keeps up if and only if
        `λ max(B, a+bN) < N`.
        """
        limit, trigger_s = self.configuration.max_offsets_per_trigger, self.configuration.trigger_s
        if limit is None:
            return
        interval_s = self._full_interval_s(limit)
        needed_rows = self.rate_per_s * interval_s
        if limit <= needed_rows:
            rates = {"passed_per_s": self._rate_of_rows(limit), "rate_per_s": self.rate_per_s}
            numbers = {"limit_rows": float(limit), **rates}
            at = (LEAST_CATCH_UP_RATIO.value * self.rate_per_s, trigger_s, self.age_factor)
            enough_rows = float(settled_batch_rows(self.model, *at))
            if enough_rows < MOST_BATCH_ROWS:
                numbers["enough_rows"] = float(math.ceil(enough_rows))
            yield Finding(code=FindingCode.RATE_LIMIT_TOO_LOW, numbers=numbers)
        elif limit < LEAST_CATCH_UP_RATIO.value * needed_rows:
            numbers = {"limit_rows": float(limit), "catch_up_ratio": LEAST_CATCH_UP_RATIO.value}
            yield Finding(code=FindingCode.RATE_LIMIT_LEAVES_LITTLE, numbers=numbers)

    def state_growth(self) -> Iterator[Finding]:
        """The size of a growing state that this applies to; nothing if its size costs nothing."""
        state = self.profile.state
        growth_per_s = self.profile.state_growth_per_s
        if state is None or growth_per_s <= 0:
            return
        larger = replace(state, rows=state.rows + _STATE_STEP_ROWS)
        grown = Capacity.of(replace(self.profile, state=larger), self.configuration).model
        longer_s = float(grown.mean_s(0.0) - self.model.mean_s(0.0))
        if longer_s > 0:
            rows = {"growth_per_s": growth_per_s, "state_rows": float(state.rows)}
            numbers = {**rows, "batch_s_per_million_rows": longer_s}
            yield Finding(code=FindingCode.STATE_GROWS, numbers=numbers)

    def _rate_of_rows(self, batch_rows: float) -> float:
        trigger_s = self.configuration.trigger_s
        return float(rate_of_rows(self.model, batch_rows, trigger_s, self.age_factor))

    def _full_interval_s(self, batch_rows: float) -> float:
        full_batch_s = self.age_factor * float(self.model.mean_s(batch_rows))
        return max(self.configuration.trigger_s, full_batch_s)

    def overrun_cures(self) -> dict[str, float]:
        """The trigger interval and the slots, of those tried, at which batches seldom overrun."""
        trigger_s = self.configuration.trigger_s
        slots, partitions = self.configuration.size

        def overruns(interval_s: float, num_slots: int) -> bool:
            model = duration_model(self.profile, num_slots, partitions)
            law = self._law(model, self.rate_per_s, interval_s)
            return float(law.overrun_probability[0]) > HIGHEST_QUOTED_OVERRUN_RATIO.value

        longer_s = (times * trigger_s for times in _LONGER_TRIGGERS)
        more_slots = (times * slots for times in _MORE_SLOTS)
        cures = {
            "enough_trigger_s": next((x_s for x_s in longer_s if not overruns(x_s, slots)), None),
            "enough_slots": next((n for n in more_slots if not overruns(trigger_s, n)), None),
        }
        return {name: float(value) for name, value in cures.items() if value is not None}


def findings_of(capacity: Capacity, law: SettingLaw) -> Iterator[Finding]:
    """Findings on a setting: on the rate and the load first, then on limits and state (P3).

    The law is at the rate of the capacity; its first distributions are the setting's own.

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> from headway.domain import Arrivals
    >>> busy = replace(profile, arrivals=Arrivals(rate_per_s=1e6))
    >>> capacity = Capacity.of(busy, profile.settings[-1].configuration)
    >>> law = setting_law(busy, capacity.model, rate_per_s=np.array([1e6]), trigger_s=2.0)
    >>> next(findings_of(capacity, law)).code.value
    'over_capacity'
    """
    rates = {"rate_per_s": capacity.rate_per_s, "stable_up_to_per_s": capacity.printed_up_to_per_s}
    # Close to saturation there may be no solution although the load is still allowed.
    if not (law.is_stable[0] or capacity.is_stable) and not capacity.is_over:
        _, largest = capacity.profile.rows_per_batch_range
        yield Finding(
            code=FindingCode.STABILITY_NOT_KNOWN, numbers=rates | {"largest_rows": largest}
        )
    elif not (law.is_stable[0] or capacity.is_stable):
        is_sure = float(capacity.is_surely_over)
        yield Finding(code=FindingCode.OVER_CAPACITY, numbers=rates | {"is_sure": is_sure})
    elif not (capacity.is_stable and law.take(np.array([0])).is_quotable[0]):
        load = {
            "utilization_ratio": float(law.utilization_ratio[0]),
            "offered_load_ratio": float(law.offered_load_ratio[0]),
            "told_up_to_per_s": capacity.latency_up_to_per_s(),
        }
        yield Finding(code=FindingCode.TOO_CLOSE_TO_SATURATION, numbers=rates | load)
    elif capacity.configuration.trigger_s > 0:
        overrun = float(law.overrun_probability[0])
        if overrun > HIGHEST_QUOTED_OVERRUN_RATIO.value:
            numbers = {"overrun_probability": overrun, **capacity.overrun_cures()}
            yield Finding(code=FindingCode.MOSTLY_OVERRUNS, numbers=numbers)
    yield from capacity.limit_findings()
    yield from capacity.state_growth()


def sustainable_rate_per_s(profile: JobProfile, configuration: Configuration) -> float:
    """Highest rate at which the backlog stays bounded with a tenth of the slots' time to spare.

    It is found within a part in ten thousand; 0 if there is none [records/s].

    **(P3)** Sustainable rate: the highest with `r ≤ 0.9` on average and `r^2(1+c^2) < 1`, the
    condition under which (B8) has a variance; with a rate limit `N`, at most `N/max(B, D(N))`. Slow
    periods pass, so the mean decides. A configuration is stable up to this rate, but its latency
    has a pole. Let `A` be the growth of the logarithm of the mean latency by (T4) over that of all
    durations. No latency is quoted (too close to saturation) above this rate, if `A` is above that
    of (B5) at `r = 0.9`, if a mean is above its p99, or if more than half of the mean latency is
    due to the last factor of e of the grid of (T4): it has no mean then, and `A`, which is that of
    the grid's end, falls again at higher rates. Intervals are open where their upper end is
    so, and a plan refuses such a configuration.

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> round(sustainable_rate_per_s(profile, profile.settings[-1].configuration))
    141808
    """
    return Capacity.of(profile, configuration).sustainable_rate_per_s


def _highest_rate_per_s(limit_per_s: float) -> float:
    """The highest rate up to a limit of those that are tried; 0 if all are above it."""
    rates, ratio = np.geomspace(_LOWEST_RATE_PER_S, _HIGHEST_RATE_PER_S, 64), math.inf
    while ratio > 1.0 + _RATE_TOLERANCE_RATIO:
        last = int(np.searchsorted(rates, limit_per_s, side="right")) - 1
        if last < 0:
            return 0.0
        low, high = rates[last], rates[min(last + 1, len(rates) - 1)]
        ratio = high / low
        rates = np.geomspace(low, high, 32)
    return float(low)
