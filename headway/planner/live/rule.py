"""Headway's own rule: from what was seen to a change, or to none, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from headway.assumptions.live import (
    BETWEEN_THRESHOLDS_SPREADS,
    BIN_S,
    CATCH_UP_RATIO,
    LEAST_BEHIND_RATIO,
    LONGEST_OUTLOOK_S,
    MOST_LATE_LEARNED_S,
    MOST_STEP_DOWN_RATIO,
    SETTLING_S,
    SILENT_LIMITS,
)
from headway.domain.live import Alternative, Bounds, ChangeKind, Estimate, Proposal, Reason, Signal
from headway.models.job.change_cost import (
    is_worth_leaving,
    late_price,
    learned_late_s,
    prior_pause_s,
    purse_node_s,
)
from headway.planner.live.memory import Episode, Memory, estimated, seen
from headway.planner.live.table import CapacityTable
from headway.units import S_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What came of one look: the memory of after, what is made of it, a change or the reason."""

    memory: Memory
    reason: Reason
    estimate: Estimate | None = None
    proposal: Proposal | None = None


def decide(
    memory: Memory, signal: Signal, table: CapacityTable, bounds: Bounds, trigger_s: float
) -> Decision:
    """One look at a running query; changes nothing but the memory that it returns.

    Parameters
    ----------
    memory : Memory
        Of before; ``Memory()`` at the start, with what was learned before where that was kept.
    signal : Signal
        What was seen.
    table : CapacityTable
        Of the job, at its fixed partitions.
    bounds : Bounds
        What is allowed.
    trigger_s : float
        The trigger interval that runs [s].

    Returns
    -------
    Decision
        A proposal at most once a bin of 15 s; `applied` says that it was acted upon.

    Notes
    -----
    **(A9)** Sizes: `C(z)` is the fewest executors that sustain (A3) at the score `z` and the
    planned confidence, of those that carry at least 6 % more than the next smaller one. Up: to
    `C(z)` where `C(z-0.7)` exceeds what runs, in two bins in a row or after a jump; with a backlog
    of `n` rows beyond the usual at least to where `n/(0.85/(b f)-λ)` is within the time to catch
    up, `1/(bf)` the rows per second of large batches. Down: to the smallest size that has been
    enough for so long that (A8) is exceeded, by half at most, never with a backlog or executors on
    their way.
    """
    now = seen(memory, signal, table, trigger_s)
    if not now.forecast.is_known:
        return Decision(memory=now, reason=Reason.LEARNING)
    if signal.silent_s > SILENT_LIMITS.value * max(table.limit_s, trigger_s):
        return _while_silent(now, signal, table, bounds, trigger_s)
    if now.forecast.num_bins == now.decided_bins:
        return Decision(memory=now, reason=Reason.HOLD)
    now = replace(now, decided_bins=now.forecast.num_bins)
    look = _Look.of(now, signal, table, bounds, trigger_s)
    now = look.remembered(now)
    proposal, reason = look.up(now)
    if proposal is None and reason is Reason.HOLD:
        proposal, reason = look.down(now)
    if proposal is None and reason is Reason.HOLD:
        proposal, reason = look.other_trigger(now)
    if proposal is None and reason is Reason.HOLD and now.is_at_end:
        reason = Reason.AT_MAXIMUM
    refused = None if proposal is None else look.refused(proposal, now)
    return Decision(
        memory=now,
        reason=refused or reason,
        estimate=look.estimate,
        proposal=None if refused else proposal,
    )


def applied(memory: Memory, proposal: Proposal) -> Memory:
    """The memory after a proposal was acted upon: what it makes late from now on is its cost."""
    hour_ago_s = proposal.at_s - S_PER_HOUR
    before_s = memory.calm_late_s if proposal.is_up else memory.late_s
    episode = memory.episode
    if episode is None or episode.kind is not ChangeKind.ADD or not proposal.is_up:
        episode = Episode(kind=proposal.kind, started_s=proposal.at_s, late_before_s=before_s)
    return replace(
        memory,
        episode=episode,
        num_short=0,
        changes_s=(*(one for one in memory.changes_s if one > hour_ago_s), proposal.at_s),
    )


def _while_silent(
    memory: Memory, signal: Signal, table: CapacityTable, bounds: Bounds, trigger_s: float
) -> Decision:
    """A query that has not reported for three long batches gets one step up, once."""
    estimate = estimated(memory, signal.at_s, table.quantile)
    larger = [one for one in table.sizes[trigger_s] if one > signal.executors]
    after = bounds.clipped(larger[0]) if larger else signal.executors
    if memory.stepped_up_silent or signal.num_pending or after <= signal.executors:
        return Decision(memory=memory, reason=Reason.SILENT, estimate=estimate)
    look = _Look(
        signal=signal, table=table, bounds=bounds, trigger_s=trigger_s, estimate=estimate,
        lower=estimate, waiting_rows=estimate.rate_per_s * signal.silent_s,
    )  # fmt: skip
    return Decision(
        memory=replace(memory, stepped_up_silent=True),
        reason=Reason.SILENT,
        estimate=estimate,
        proposal=look.proposed(Reason.SILENT, after, gain_node_s=math.inf, cost_node_s=0.0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """One look at a query: what is estimated, and what each kind of change would bring."""

    signal: Signal
    table: CapacityTable
    bounds: Bounds
    trigger_s: float
    estimate: Estimate
    lower: Estimate
    waiting_rows: float

    @classmethod
    def of(
        cls,
        memory: Memory,
        signal: Signal,
        table: CapacityTable,
        bounds: Bounds,
        trigger_s: float,
    ) -> _Look:
        estimate = estimated(memory, signal.at_s, table.quantile)
        asked_s = signal.at_s if signal.arrived_at_s is None else signal.arrived_at_s
        since_s = max(signal.at_s - asked_s, signal.silent_s)
        waiting = (signal.backlog_rows or 0.0) + estimate.rate_per_s * (since_s - trigger_s)
        return cls(
            signal=signal,
            table=table,
            bounds=bounds,
            trigger_s=trigger_s,
            estimate=estimate,
            lower=estimated(memory, signal.at_s, table.quantile, BETWEEN_THRESHOLDS_SPREADS.value),
            waiting_rows=max(waiting, 0.0),
        )

    @property
    def executors(self) -> int:
        return self.signal.executors

    @property
    def is_behind(self) -> bool:
        usual = max(self.estimate.rate_per_s * self.trigger_s, 1.0)
        return self.waiting_rows > LEAST_BEHIND_RATIO.value * usual

    @property
    def needed(self) -> int:
        return self._need(self.estimate.planned_per_s)

    @property
    def needed_at_least(self) -> int:
        return self._need(self.lower.planned_per_s)

    @property
    def is_at_end(self) -> bool:
        """Whether the most executors run, and sustain less than even the lower margin asks for."""
        if self.executors < self.bounds.clipped(self.table.most(self.trigger_s)):
            return False
        costs = self.estimate.cost_ratio
        carried = self.table.sustained(self.executors, self.trigger_s, costs)
        return carried < self.lower.planned_per_s

    def _need(self, rate_per_s: float) -> int:
        found = self.table.need(rate_per_s, self.trigger_s, self.estimate.cost_ratio)
        most = self.table.most(self.trigger_s)
        return self.bounds.clipped(most if found is None else found)

    def _to_catch_up(self) -> int:
        """The fewest executors that work the backlog off in time."""
        for executors in self.table.sizes[self.trigger_s]:
            drained = self.table.drained_per_s(executors, self.trigger_s, self.estimate.cost_ratio)
            left_per_s = CATCH_UP_RATIO.value * drained - self.estimate.rate_per_s
            if left_per_s > 0.0 and self.waiting_rows / left_per_s <= self.bounds.catch_up_s:
                return self.bounds.clipped(executors)
        return self.bounds.clipped(self.table.most(self.trigger_s))

    def remembered(self, memory: Memory) -> Memory:
        """What this look adds to the memory: how long each size has been enough, what was calm."""
        at_s, needed = self.signal.at_s, self.needed
        above_s = {
            size: at_s if needed > size or size not in memory.above_s else memory.above_s[size]
            for size in self.table.sizes[self.trigger_s]
        }
        is_short = self.needed_at_least > self.executors
        found = replace(
            memory,
            above_s=above_s,
            num_short=memory.num_short + 1 if is_short else 0,
            num_at_end=memory.num_at_end + 1 if self.is_at_end else 0,
        )
        if is_short or self.is_behind or self.signal.num_pending:
            return found
        return _learned(replace(found, calm_late_s=found.late_s), at_s)

    def up(self, memory: Memory) -> tuple[Proposal | None, Reason]:
        """To what the forecast needs, or the backlog."""
        after, reason = self.executors, Reason.HOLD
        is_confirmed = memory.num_short >= 2 or (memory.num_short > 0 and self.estimate.is_jump)
        if is_confirmed:
            after = max(self.needed, after)
            reason = Reason.JUMP if self.estimate.is_jump else Reason.FORECAST
        if self.is_behind and (catching_up := self._to_catch_up()) > after:
            after, reason = catching_up, Reason.BACKLOG
        if after <= self.executors:
            waits = memory.num_short and not is_confirmed and self.needed > self.executors
            return None, Reason.CONFIRMING if waits else Reason.HOLD
        return self.proposed(reason, after, gain_node_s=math.inf, cost_node_s=0.0), reason

    def down(self, memory: Memory) -> tuple[Proposal | None, Reason]:
        """To the smallest size that has idled for what leaving it and coming back costs."""
        if self.is_behind or self.signal.num_pending or self.signal.backlog_rows is None:
            return None, Reason.HOLD
        least = max(
            self.bounds.min_executors,
            math.ceil(self.executors * (1.0 - MOST_STEP_DOWN_RATIO.value)),
        )
        weighed, found = [], None
        for size in self.table.sizes[self.trigger_s]:
            if not least <= size < self.executors or size < self.needed:
                continue
            idle_s = self.signal.at_s - memory.above_s[size]
            purse = self.purse_node_s(memory, size)
            num_idle = self.executors - size
            weighed.append(
                Alternative(
                    executors=size,
                    trigger_s=self.trigger_s,
                    sustained_per_s=self.table.sustained(
                        size, self.trigger_s, self.estimate.cost_ratio
                    ),
                    gain_node_s=num_idle * idle_s,
                    cost_node_s=purse,
                )
            )
            if found is None and is_worth_leaving(num_idle, idle_s, purse):
                found = weighed[-1]
        if found is None:
            return None, Reason.HOLD
        proposal = self.proposed(
            Reason.IDLE,
            found.executors,
            gain_node_s=found.gain_node_s,
            cost_node_s=found.cost_node_s,
            alternatives=tuple(weighed),
        )
        return proposal, Reason.IDLE

    def purse_node_s(self, memory: Memory, size: int) -> float:
        """What leaving for a size and coming back costs: theory.md (A8)."""
        down_late_s = learned_late_s(
            self._late_s(ChangeKind.REMOVE, size, self.trigger_s),
            memory.costs.late_s.get(ChangeKind.REMOVE, ()),
        )
        return purse_node_s(down_late_s, memory.costs.up_late_s, self.table.quantile)

    def other_trigger(self, memory: Memory) -> tuple[Proposal | None, Reason]:
        """To the trigger interval whose rows in time outweigh those that the restart makes late.

        Notes
        -----
        **(A10)** Another trigger: `t (g - g')` late seconds are saved over an outlook of `t`, as
        long as the rate has lasted since its last jump and at most six hours, `g` and `g'` the
        shares of late rows by (T6) at the planned confidence; the change is worth it where they
        exceed those that its pause makes late (A7). None where `g <= 1-q`, the share that a target
        on the quantile `q` allows: it is met as it is.
        """
        if len(self.table.triggers_s) < 2 or self.signal.num_pending:
            return None, Reason.HOLD
        rate, costs = self.estimate.planned_per_s, self.estimate.cost_ratio
        outlook_s = min(len(memory.forecast.rates_per_s) * BIN_S.value, LONGEST_OUTLOOK_S.value)
        price = late_price(self.table.quantile)
        now_late = self.table.late_share(self.executors, self.trigger_s, rate, costs)
        if now_late <= 1.0 - self.table.quantile:
            return None, Reason.HOLD
        weighed = []
        for trigger_s in self.table.triggers_s:
            if trigger_s == self.trigger_s:
                continue
            late = self.table.late_share(self.executors, trigger_s, rate, costs)
            pause_late_s = learned_late_s(
                self._late_s(ChangeKind.RESTART, self.executors, trigger_s),
                memory.costs.late_s.get(ChangeKind.RESTART, ()),
            )
            weighed.append(
                Alternative(
                    executors=self.executors,
                    trigger_s=trigger_s,
                    sustained_per_s=self.table.sustained(self.executors, trigger_s, costs),
                    gain_node_s=price * outlook_s * (now_late - late),
                    cost_node_s=price * pause_late_s,
                )
            )
        best = max(weighed, key=lambda one: one.gain_node_s - one.cost_node_s)
        if best.gain_node_s <= best.cost_node_s:
            return None, Reason.HOLD
        proposal = self.proposed(
            Reason.TRIGGER,
            self.executors,
            trigger_s=best.trigger_s,
            gain_node_s=best.gain_node_s,
            cost_node_s=best.cost_node_s,
            alternatives=tuple(weighed),
        )
        return proposal, Reason.TRIGGER

    def _late_s(self, kind: ChangeKind, executors: int, trigger_s: float) -> float:
        """Seconds of arrivals that a change is expected to make late where none was seen."""
        rate, costs = self.estimate.rate_per_s, self.estimate.cost_ratio
        usual_s = self.table.duration_s(executors, trigger_s, rate * trigger_s) * costs
        pause_s = prior_pause_s(kind, usual_s)
        return self.table.late_of_pause_s(pause_s, executors, trigger_s, rate, costs)

    def refused(self, proposal: Proposal, memory: Memory) -> Reason | None:
        """Why a proposal may not be acted upon now."""
        if self.bounds.is_quiet(self.signal.at_s):
            return Reason.HOLD
        in_need = proposal.reason in (Reason.BACKLOG, Reason.JUMP) and proposal.is_up
        hour_ago_s = self.signal.at_s - S_PER_HOUR
        recent = [one for one in memory.changes_s if one > hour_ago_s]
        if len(recent) >= self.bounds.changes_per_hour and not in_need:
            return Reason.TOO_MANY
        spent_s = sum(one.executor_s for one in memory.spent)
        if proposal.is_up and spent_s >= self.bounds.budget_executor_s:
            return Reason.BUDGET
        return None

    def proposed(
        self,
        reason: Reason,
        executors: int,
        *,
        gain_node_s: float,
        cost_node_s: float,
        trigger_s: float | None = None,
        alternatives: tuple[Alternative, ...] = (),
    ) -> Proposal:
        kind = ChangeKind.ADD if executors > self.executors else ChangeKind.REMOVE
        return Proposal(
            kind=ChangeKind.RESTART if trigger_s is not None else kind,
            reason=reason,
            at_s=self.signal.at_s,
            before_executors=self.executors,
            after_executors=executors,
            before_trigger_s=self.trigger_s,
            after_trigger_s=self.trigger_s if trigger_s is None else trigger_s,
            gain_node_s=gain_node_s,
            cost_node_s=cost_node_s,
            estimate=self.estimate,
            alternatives=alternatives,
        )


def _learned(memory: Memory, at_s: float) -> Memory:
    """What the last change really made late, once it has settled and the query is calm."""
    episode = memory.episode
    if episode is None or at_s - episode.started_s < SETTLING_S.value:
        return memory
    late_s = min(memory.late_s - episode.late_before_s, MOST_LATE_LEARNED_S.value)
    costs = memory.costs.with_change(episode.kind, late_s)
    if episode.kind is ChangeKind.ADD:
        costs = costs.with_step_up(late_s)
    return replace(memory, costs=costs, episode=None)
