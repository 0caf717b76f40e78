"""State of the rule between two evaluations of a query, how one updates it, and what files keep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import quantiles

from headway.assumptions.live import (
    BIN_S,
    BUDGET_BIN_S,
    BUDGET_RAMP_S,
    BUDGET_S,
    COST_LEVEL_RATIO,
    COSTS_REMEMBERED,
    FACTOR_WEIGHT_RATIO,
    MOST_LATE_LEARNED_S,
    PROVISIONING_S,
    SETTLING_S,
    UP_LATE_S,
)
from headway.domain.live import ChangeKind, Estimate, SeenBatch, Signal
from headway.domain.tuner import LateBin, TunerState
from headway.models.estimation.cost_drift import cost_factor, level_error_ratio
from headway.models.estimation.daily_rates import DailyRates, with_rows
from headway.models.estimation.forecast import RateForecast, with_arrivals
from headway.models.job.change_cost import margin_score, planned_rate_per_s
from headway.tuner.rule.table import CapacityTable
from headway.units import HOURS_PER_DAY, S_PER_HOUR

_SHORT_BINS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedCosts:
    """Observed costs of changes, kept across restarts of the tuner.

    ``late_s`` are the seconds of arrivals that each change of a kind made late, oldest first;
    ``up_late_s`` is the same for a step up, counted from the load that required it;
    ``returns_late_s`` are those of the steps up from each number of executors that the rate
    required, oldest first. ``provisioning_s`` is how long executors took to become available [s].
    """

    late_s: dict[ChangeKind, tuple[float, ...]] = field(default_factory=dict)
    up_late_s: float = UP_LATE_S.value
    returns_late_s: dict[int, tuple[float, ...]] = field(default_factory=dict)
    provisioning_s: tuple[float, ...] = ()

    def lead_s(self) -> float:
        """Lead time of the forecast: 90% of provisioning times, plus a bin: (A3) [s]."""
        provisioning_s = self.provisioning_s
        if len(provisioning_s) < 2:
            return (provisioning_s[0] if provisioning_s else PROVISIONING_S.value) + BIN_S.value
        level = round(100 * COST_LEVEL_RATIO.value) - 1
        return quantiles(provisioning_s, n=100, method="inclusive")[level] + BIN_S.value

    def with_change(self, kind: ChangeKind, late_s: float) -> LearnedCosts:
        """Costs after one more change of a kind."""
        remembered_s = (*self.late_s.get(kind, ()), late_s)[-COSTS_REMEMBERED.value :]
        return replace(self, late_s={**self.late_s, kind: remembered_s})

    def with_step_up(self, late_s: float, returned_to: int | None = None) -> LearnedCosts:
        """Costs after one more step up, from a size to which a load has returned: (A7), (A8)."""
        returns_late_s = self.returns_late_s
        if returned_to is not None:
            earlier_s = returns_late_s.get(returned_to, ())
            latest_s = (*earlier_s, late_s)[-COSTS_REMEMBERED.value :]
            returns_late_s = {**returns_late_s, returned_to: latest_s}
        up_late_s = 0.5 * (self.up_late_s + late_s)
        return replace(self, up_late_s=up_late_s, returns_late_s=returns_late_s)

    def with_provisioning(self, took_s: float) -> LearnedCosts:
        """Costs after executors became available."""
        remembered_s = (*self.provisioning_s, took_s)[-COSTS_REMEMBERED.value :]
        return replace(self, provisioning_s=remembered_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A change whose cost is being measured, with late seconds of arrivals before it.

    ``returned_to`` is the size that a load was too high for; None if it was not the load.
    """

    kind: ChangeKind
    started_s: float
    late_before_s: float
    returned_to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """State of the rule for a query.

    ``daily``, ``budget``, ``calms_s`` and ``costs`` survive a restart. ``above_s`` is, by number of
    executors, when more than that were last needed, and ``calms_s`` how long they were enough
    before, the last times, oldest first. ``short_late_s`` are the seconds of late arrivals to
    expect since the current size has been too small, ``calm_late_s`` those that there were until
    the query was last neither behind nor too small.
    ``num_learned`` batches have contributed to costs, the last ``num_learned_here`` of them at
    ``learned_at`` (executors and trigger interval), with ``learned_rows`` as their (weighted,
    geometric) mean.
    """

    forecast: RateForecast = field(default_factory=RateForecast)
    daily: DailyRates = field(default_factory=DailyRates)
    log_factor: float = 0.0
    num_learned: int = 0
    num_learned_here: int = 0
    learned_at: tuple[int, float] = (0, 0.0)
    learned_rows: float = 1.0
    budget: tuple[LateBin, ...] = ()
    costs: LearnedCosts = field(default_factory=LearnedCosts)
    first_s: float = math.nan
    decided_bins: int = 0
    num_short: int = 0
    spent_executor_s: Mapping[float, float] = field(default_factory=dict)
    seen_s: float = math.nan
    above_s: dict[int, float] = field(default_factory=dict)
    calms_s: dict[int, tuple[float, ...]] = field(default_factory=dict)
    short_late_s: float = 0.0
    changes_s: tuple[float, ...] = ()
    late_s: float = 0.0
    calm_late_s: float = 0.0
    episode: Episode | None = None
    pending_since_s: float = math.nan
    stepped_up_silent: bool = False

    @property
    def cost_ratio(self) -> float:
        """Factor of durations over the predicted ones: theory.md (A4). [-]"""
        return math.exp(self.log_factor)

    @property
    def is_short(self) -> bool:
        """Whether the current size was too small in two consecutive bins."""
        return self.num_short >= _SHORT_BINS

    @property
    def peak_per_s(self) -> float:
        """The highest rate over the budget's period. [rows/s]"""
        return max((budget_bin.peak_per_s for budget_bin in self.budget), default=0.0)

    def cost_error_ratio(self, table: CapacityTable, executors: int, trigger_s: float) -> float:
        """Uncertainty of the cost factor of a setting: theory.md (A15). [-]"""
        noise = table.question.profile.noise
        spread = table.spread_ratio[table.place_of[executors, trigger_s]]
        if (executors, trigger_s) == self.learned_at:
            learned_spread = table.spread_at(executors, trigger_s, self.learned_rows)
            return level_error_ratio(
                noise, spread, self.num_learned, self.num_learned_here, learned_spread
            )
        return level_error_ratio(noise, spread, self.num_learned, 0)

    def planned_cost_ratio(self, table: CapacityTable, executors: int, trigger_s: float) -> float:
        """Upper end of a setting's durations over the predicted ones: theory.md (A4), (A15)."""
        error_ratio = self.cost_error_ratio(table, executors, trigger_s)
        return self.cost_ratio * math.exp(table.score * error_ratio)


def seen(memory: Memory, signal: Signal, table: CapacityTable, trigger_s: float) -> Memory:
    """The memory after a signal, before any decision: theory.md (A1), (A4), (A17)."""
    updated = memory
    if math.isnan(memory.first_s):
        updated = replace(updated, first_s=signal.at_s)
    if signal.arrived_rows is not None:
        arrived_at_s = signal.at_s if signal.arrived_at_s is None else signal.arrived_at_s
        before = memory.forecast
        forecast = with_arrivals(before, arrived_at_s, signal.arrived_rows)
        if forecast is not before:
            rows = forecast.seen_rows - before.seen_rows
            daily = with_rows(memory.daily, before.seen_s, forecast.seen_s, rows)
            updated = replace(updated, forecast=forecast, daily=daily)
    if signal.batch is not None:
        updated = _with_batch(updated, signal, signal.batch, table, trigger_s)
    return _with_pending(_with_executors(updated, signal), signal)


def _with_batch(
    memory: Memory, signal: Signal, batch: SeenBatch, table: CapacityTable, trigger_s: float
) -> Memory:
    if batch.tells_costs and batch.batch_rows > 0.0:
        expected_s = table.duration_s(signal.executors, trigger_s, batch.batch_rows)
        setting = signal.executors, trigger_s
        is_same = setting == memory.learned_at
        before_rows = memory.learned_rows if is_same else batch.batch_rows
        memory = replace(
            memory,
            log_factor=cost_factor(memory.log_factor, batch.duration_s, expected_s),
            num_learned=memory.num_learned + 1,
            num_learned_here=memory.num_learned_here + 1 if is_same else 1,
            learned_at=setting,
            learned_rows=before_rows
            * (batch.batch_rows / before_rows) ** FACTOR_WEIGHT_RATIO.value,
        )
    late_s, rate_per_s = memory.late_s, 0.0
    if memory.forecast.is_known:
        rate_per_s = memory.forecast.rates_per_s[-1]
        if batch.late_rows > 0.0:
            late_s += batch.late_rows / max(memory.forecast.level_per_s(), 1e-9)
    return replace(
        memory,
        late_s=late_s,
        budget=_with_rows(memory.budget, signal.at_s, batch, rate_per_s),
        stepped_up_silent=False,
    )


def _with_rows(
    budget: tuple[LateBin, ...], at_s: float, batch: SeenBatch, rate_per_s: float
) -> tuple[LateBin, ...]:
    began_s = at_s - at_s % BUDGET_BIN_S.value
    if budget and budget[-1].began_s >= began_s:
        *earlier, last = budget
    else:
        earlier = [
            budget_bin for budget_bin in budget if budget_bin.began_s > at_s - BUDGET_S.value
        ]
        last = LateBin(began_s=began_s, batch_rows=0.0, late_rows=0.0)
    last = replace(
        last,
        batch_rows=last.batch_rows + batch.batch_rows,
        late_rows=last.late_rows + batch.late_rows,
        peak_per_s=max(last.peak_per_s, rate_per_s),
    )
    return (*earlier, last)


def _with_executors(memory: Memory, signal: Signal) -> Memory:
    """Executor-seconds of each of the last 24 hours."""
    used_s = signal.executors * max(signal.at_s - memory.seen_s, 0.0)
    if math.isnan(used_s):
        return replace(memory, seen_s=signal.at_s)
    hours = dict(memory.spent_executor_s)
    began_s = max((signal.at_s - signal.at_s % S_PER_HOUR, *hours))
    hours[began_s] = hours.get(began_s, 0.0) + used_s
    last_hours = list(hours.items())[-HOURS_PER_DAY:]
    return replace(memory, seen_s=signal.at_s, spent_executor_s=dict(last_hours))


def _with_pending(memory: Memory, signal: Signal) -> Memory:
    """Provisioning time is updated when the last requested executor is available."""
    waits = not math.isnan(memory.pending_since_s)
    if signal.num_pending and not waits:
        return replace(memory, pending_since_s=signal.at_s)
    if not signal.num_pending and waits:
        took_s = signal.at_s - memory.pending_since_s
        return replace(
            memory, costs=memory.costs.with_provisioning(took_s), pending_since_s=math.nan
        )
    return memory


def learned(memory: Memory, at_s: float) -> Memory:
    """Rows that the last change made late, once it has settled and the query is calm."""
    episode = memory.episode
    if episode is None or at_s - episode.started_s < SETTLING_S.value:
        return memory
    late_s = min(memory.late_s - episode.late_before_s, MOST_LATE_LEARNED_S.value)
    costs = memory.costs.with_change(episode.kind, late_s)
    if episode.kind is ChangeKind.ADD:
        costs = costs.with_step_up(late_s, episode.returned_to)
    return replace(memory, costs=costs, episode=None)


def late_ratio(budget: Sequence[LateBin]) -> float:
    """Share of late rows over the budget's period. [-]"""
    rows = sum(budget_bin.batch_rows for budget_bin in budget)
    return sum(budget_bin.late_rows for budget_bin in budget) / rows if rows > 0.0 else 0.0


def estimated(memory: Memory, at_s: float, quantile: float) -> Estimate:
    """Estimate from a memory with arrivals at a given time: theory.md (A1), (A3), (A6), (A17)."""
    forecast, lead_s = memory.forecast, memory.costs.lead_s()
    level_per_s, trend_per_bin = forecast.line()
    by_pattern_per_s = level_per_s * memory.daily.factor(at_s, lead_s)
    by_trend_per_s = max(level_per_s + trend_per_bin * lead_s / BIN_S.value, 0.0)
    # A pattern prepares for a rise; that the rate falls, it has to show.
    is_rise = by_pattern_per_s > max(by_trend_per_s, level_per_s)
    later_per_s = by_pattern_per_s if is_rise else by_trend_per_s
    late = late_ratio(memory.budget)
    ramp = min((at_s - memory.first_s) / BUDGET_RAMP_S.value, 1.0)
    used = ramp * late / (1.0 - quantile)
    spread, score = forecast.spread_ratio, margin_score(used)
    # A falling rate has not been reached yet.
    least_per_s = max(later_per_s, level_per_s)
    return Estimate(
        rate_per_s=level_per_s,
        forecast_per_s=later_per_s,
        planned_per_s=planned_rate_per_s(least_per_s, score, spread),
        lead_s=lead_s,
        error_ratio=spread,
        cost_ratio=memory.cost_ratio,
        late_ratio=late,
        budget_used_ratio=used,
        is_jump=forecast.is_jump,
    )


def with_memory(state: TunerState, memory: Memory) -> TunerState:
    """The state with what the rule has learned so far."""
    costs = memory.costs
    return replace(
        state,
        changes_late_s=costs.late_s,
        up_late_s=costs.up_late_s,
        returns_late_s=costs.returns_late_s,
        provisioning_s=costs.provisioning_s,
        changed_at_s=memory.changes_s,
        spent_executor_s=memory.spent_executor_s,
        late=memory.budget,
        daily_per_s={slot: float(f"{rate:.4g}") for slot, rate in memory.daily.rates_per_s.items()},
        calms_s=memory.calms_s,
    )


def with_pause(state: TunerState, kind: ChangeKind, pause_s: float) -> TunerState:
    """The state after one more change of a kind paused the query for so long [s]."""
    pauses_s = (*state.pauses_s.get(kind, ()), pause_s)[-COSTS_REMEMBERED.value :]
    return replace(state, pauses_s={**state.pauses_s, kind: pauses_s})


def remembered(state: TunerState) -> Memory:
    """Initial memory of a rule: what was learned before; it learns level and batch costs again.

    It learns first after every start, since earlier rates say little.
    """
    costs = LearnedCosts(
        late_s=dict(state.changes_late_s),
        returns_late_s=dict(state.returns_late_s),
        provisioning_s=state.provisioning_s,
    )
    if state.up_late_s is not None:
        costs = replace(costs, up_late_s=state.up_late_s)
    return Memory(
        costs=costs,
        changes_s=state.changed_at_s,
        spent_executor_s=state.spent_executor_s,
        budget=state.late,
        daily=DailyRates.of(state.daily_per_s),
        calms_s=dict(state.calms_s),
    )
