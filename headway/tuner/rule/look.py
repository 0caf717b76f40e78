"""One evaluation of a running query: possible changes, with gain and cost of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from headway.assumptions.live import (
    BIN_S,
    CATCH_UP_RATIO,
    COSTS_REMEMBERED,
    LEAST_BEHIND_RATIO,
    LEAST_IDLE_S,
    LEAST_KEPT_S,
    LONGEST_OUTLOOK_S,
    MOST_FORECAST_ERROR_RATIO,
    MOST_STEP_DOWN_RATIO,
    STEP_UP_RATIO,
)
from headway.domain.live import Alternative, Bounds, ChangeKind, Estimate, Proposal, Reason, Signal
from headway.models.job.change_cost import is_worth_leaving, late_price, purse_node_s, return_late_s
from headway.models.job.change_pause import learned_late_s, prior_pause_s
from headway.tuner.rule.memory import Memory, estimated, learned
from headway.tuner.rule.table import CapacityTable
from headway.units import S_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One evaluation of a query: the estimate, and the effect of each kind of change.

    ``needed`` is the minimum of executors for the forecast rate, as computed by `of`.
    """

    memory: Memory
    signal: Signal
    table: CapacityTable
    bounds: Bounds
    trigger_s: float
    estimate: Estimate
    waiting_rows: float
    needed: int = 0

    @classmethod
    def of(
        cls,
        memory: Memory,
        signal: Signal,
        table: CapacityTable,
        bounds: Bounds,
        trigger_s: float,
    ) -> Look:
        estimate = estimated(memory, signal.at_s, table.quantile)
        arrived_at_s = signal.at_s if signal.arrived_at_s is None else signal.arrived_at_s
        since_s = max(signal.at_s - arrived_at_s, signal.silent_s)
        waiting = (signal.backlog_rows or 0.0) + estimate.rate_per_s * (since_s - trigger_s)
        look = cls(
            memory=memory,
            signal=signal,
            table=table,
            bounds=bounds,
            trigger_s=trigger_s,
            estimate=estimate,
            waiting_rows=max(waiting, 0.0),
        )
        return replace(look, needed=look._cheapest())

    @property
    def executors(self) -> int:
        return self.signal.executors

    @property
    def is_behind(self) -> bool:
        return self._is_beyond_usual(self.waiting_rows)

    def _is_beyond_usual(self, waiting_rows: float) -> bool:
        usual = max(self.estimate.rate_per_s * self.trigger_s, 1.0)
        return waiting_rows > LEAST_BEHIND_RATIO.value * usual

    @property
    def has_backlog(self) -> bool:
        """Whether the last batch left more rows than the usual, so that the next ones take long."""
        return self._is_beyond_usual(self.signal.backlog_rows or 0.0)

    @property
    def is_too_small(self) -> bool:
        """Whether a larger size is needed, or would be beyond the bounds."""
        if not self.memory.forecast.tells_spread:
            return False
        return self._is_late or self.needed > self.executors

    @property
    def _is_late(self) -> bool:
        """Whether more rows are expected to be late than the target allows."""
        return self.late_share(self.executors) > 1.0 - self.table.quantile

    def late_share(self, executors: int) -> float:
        """Share of late rows to expect with some executors at the forecast rate: (A21)."""
        estimate, memory = self.estimate, self.memory
        return self.table.expected_late_share(
            executors,
            self.trigger_s,
            max(estimate.forecast_per_s, estimate.rate_per_s),
            estimate.cost_ratio,
            math.hypot(
                min(estimate.error_ratio, MOST_FORECAST_ERROR_RATIO.value),
                memory.cost_error_ratio(self.table, executors, self.trigger_s),
            ),
        )

    def _cheapest(self) -> int:
        """The size whose nodes and expected late rows cost least, within the target: (A9)."""
        price, most_late = late_price(self.table.quantile), 1.0 - self.table.quantile
        sizes = self.table.sizes[self.trigger_s]
        shares = {size: self.late_share(size) for size in sizes}
        in_time = [size for size in sizes if shares[size] <= most_late]
        cheapest = min(in_time, key=lambda size: size + price * shares[size], default=sizes[-1])
        return self.bounds.clipped(cheapest)

    def _waiting_later(self) -> float:
        """Rows that will wait beyond the usual when executors requested now are available."""
        rate, costs = self.estimate.rate_per_s, self.estimate.cost_ratio
        until_s = self.estimate.lead_s - BIN_S.value
        if self.signal.num_pending and not math.isnan(self.memory.pending_since_s):
            until_s -= self.signal.at_s - self.memory.pending_since_s
        working = self.executors - self.signal.num_pending
        processed = (
            self.table.drained_per_s(working, self.trigger_s, costs)
            if (working, self.trigger_s) in self.table.place_of
            else 0.0
        )
        return self.waiting_rows + max(rate - processed, 0.0) * max(until_s, 0.0)

    def _to_catch_up(self) -> int:
        """The fewest executors that process the backlog in time."""
        rate = self.estimate.rate_per_s
        usual_s = self.table.duration_s(self.executors, self.trigger_s, rate * self.trigger_s)
        pause_s = prior_pause_s(ChangeKind.ADD, usual_s * self.estimate.cost_ratio)
        waiting = self._waiting_later() + rate * pause_s
        for executors in self.table.sizes[self.trigger_s]:
            drained = self.table.drained_per_s(executors, self.trigger_s, self.estimate.cost_ratio)
            spare_per_s = CATCH_UP_RATIO.value * drained - rate
            if spare_per_s > 0.0 and waiting / spare_per_s <= self.bounds.catch_up_s:
                return self.bounds.clipped(executors)
        return self.bounds.clipped(self.table.most(self.trigger_s))

    def remembered(self, memory: Memory) -> Memory:
        """The updated memory: how long each size has been enough, and when the query was calm."""
        at_s, is_short = self.signal.at_s, self.is_too_small
        above_s: dict[int, float] = {}
        calms_s: dict[int, tuple[float, ...]] = {}
        for size in self.table.sizes[self.trigger_s]:
            since_s, ended_s = memory.above_s.get(size, at_s), memory.calms_s.get(size, ())
            if self.needed > size:
                if at_s - since_s >= LEAST_IDLE_S.value:
                    ended_s = (*ended_s, at_s - since_s)[-COSTS_REMEMBERED.value :]
                since_s = at_s
            above_s[size], calms_s[size] = since_s, ended_s
        late_s = self.late_share(self.executors) * BIN_S.value
        updated = replace(
            memory,
            above_s=above_s,
            calms_s=calms_s,
            num_short=memory.num_short + 1 if is_short else 0,
            short_late_s=memory.short_late_s + late_s if is_short else 0.0,
        )
        if is_short or self.is_behind or self.signal.num_pending:
            return updated
        return learned(replace(updated, calm_late_s=updated.late_s), at_s)

    def up(self, memory: Memory) -> Proposal | Reason:
        """Step up to what the forecast or the backlog needs, or why there is none."""
        after, reason = self.executors, Reason.HOLD
        if memory.forecast.num_outside > 0:
            # The next bin shows whether the rate has jumped, and how far: one step, not two.
            return Reason.CONFIRMING
        is_confirmed = self._is_confirmed(memory)
        if is_confirmed or self.is_behind:
            after = max(self.needed, after)
            reason = Reason.JUMP if self.estimate.is_jump else Reason.FORECAST
        if self.is_behind or (is_confirmed and self._is_beyond_usual(self._waiting_later())):
            catching_up = self._to_catch_up()
            if catching_up > after:
                reason = Reason.BACKLOG if self.is_behind else reason
                after = catching_up
        if after <= self.executors:
            waits = not is_confirmed and memory.num_short and self.needed > self.executors
            return Reason.CONFIRMING if waits else Reason.HOLD
        return self.proposed(reason, after)

    def _is_confirmed(self, memory: Memory) -> bool:
        """Whether the late rows to expect of the current size are worth a step up: (A9)."""
        if not memory.num_short:
            return False
        changes_late_s = self._down_late_s(memory, self.needed) + self._late_s(
            ChangeKind.ADD, self.needed, self.trigger_s
        )
        is_certain = self.estimate.is_jump and self._is_late
        return is_certain or memory.short_late_s >= STEP_UP_RATIO.value * changes_late_s

    def down(self, memory: Memory) -> Proposal | Reason:
        """Step down to the smallest size that has idled for the cost of leaving and coming back."""
        if self.is_behind or self.signal.num_pending or self.signal.backlog_rows is None:
            return Reason.HOLD
        least = max(
            self.bounds.min_executors,
            math.ceil(self.executors * (1.0 - MOST_STEP_DOWN_RATIO.value)),
        )
        changed_s = memory.changes_s[-1] if memory.changes_s else -math.inf
        is_kept_long_enough = self.signal.at_s - changed_s >= LEAST_KEPT_S.value
        weighed, best = [], None
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
            calms_s = memory.calms_s.get(size, ())
            is_worth = is_worth_leaving(num_idle, idle_s, purse, calms_s)
            if best is None and is_worth and is_kept_long_enough:
                best = weighed[-1]
        if best is None:
            return Reason.HOLD
        return self.proposed(Reason.IDLE, best.executors, best, weighed)

    def purse_node_s(self, memory: Memory, size: int) -> float:
        """Cost of going down to a size and coming back: theory.md (A8)."""
        returns_late_s = memory.costs.returns_late_s.get(size, ())
        return_late_s = self._return_late_s(memory, size)
        if returns_late_s:
            return_late_s = max(return_late_s, fmean(returns_late_s))
        up_late_s = min(memory.costs.up_late_s, return_late_s)
        return purse_node_s(self._down_late_s(memory, size), up_late_s, self.table.quantile)

    def _down_late_s(self, memory: Memory, size: int) -> float:
        return learned_late_s(
            self._late_s(ChangeKind.REMOVE, size, self.trigger_s),
            memory.costs.late_s.get(ChangeKind.REMOVE, ()),
        )

    def _return_late_s(self, memory: Memory, size: int) -> float:
        """Late rows if the highest rate of the last hours returned: (A16)."""
        table, costs, peak = self.table, self.estimate.cost_ratio, memory.peak_per_s
        return return_late_s(
            self._late_s(ChangeKind.ADD, size, self.trigger_s),
            table.late_share(size, self.trigger_s, peak, costs),
            # Two bins until it is certain; the lead contains one of them.
            self.estimate.lead_s + BIN_S.value,
            peak / table.drained_per_s(size, self.trigger_s, costs),
            peak / table.drained_per_s(self.executors, self.trigger_s, costs),
        )

    def other_trigger(self, memory: Memory) -> Proposal | Reason:
        """Change to a trigger interval that saves more late rows than its restart causes.

        Notes
        -----
        **(A10)** Another trigger interval saves `t (g - g')` late seconds over an outlook `t`,
        which is the time since the rate's last jump and at most six hours. `g` and `g'` are the
        shares of late rows by (T6) at the upper end of batch costs (A15). The change is made if it
        saves more late seconds than its pause causes (A7). There is none if `g <= 1-q`, the share
        that a target on the quantile `q` allows, since the target is already met.
        """
        if len(self.table.triggers_s) < 2 or self.signal.num_pending:
            return Reason.HOLD
        costs = self.estimate.cost_ratio
        outlook_s = min(len(memory.forecast.rates_per_s) * BIN_S.value, LONGEST_OUTLOOK_S.value)
        price = late_price(self.table.quantile)
        now_late = self._late_share(self.trigger_s)
        if now_late <= 1.0 - self.table.quantile:
            return Reason.HOLD
        weighed = []
        for trigger_s in self.table.triggers_s:
            if trigger_s == self.trigger_s:
                continue
            late = self._late_share(trigger_s)
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
        best = max(
            weighed, key=lambda alternative: alternative.gain_node_s - alternative.cost_node_s
        )
        if best.gain_node_s <= best.cost_node_s:
            return Reason.HOLD
        return self.proposed(Reason.TRIGGER, self.executors, best, weighed)

    def _late_share(self, trigger_s: float) -> float:
        """Share of late rows with another trigger at the rate that is prepared for: (T6)."""
        cost_ratio = self.memory.planned_cost_ratio(self.table, self.executors, trigger_s)
        rate_per_s = self.estimate.planned_per_s
        return self.table.late_share(self.executors, trigger_s, rate_per_s, cost_ratio)

    def _late_s(self, kind: ChangeKind, executors: int, trigger_s: float) -> float:
        """Seconds of arrivals that a change is expected to make late if none has been observed."""
        rate, costs = self.estimate.rate_per_s, self.estimate.cost_ratio
        usual_s = self.table.duration_s(executors, trigger_s, rate * trigger_s) * costs
        pause_s = prior_pause_s(kind, usual_s)
        return self.table.late_of_pause_s(pause_s, executors, trigger_s, rate, costs)

    def refused(self, proposal: Proposal, memory: Memory) -> Reason | None:
        """Why a proposal must not be applied now."""
        if self.bounds.is_quiet(self.signal.at_s):
            return Reason.HOLD
        in_need = proposal.reason in (Reason.BACKLOG, Reason.JUMP) and proposal.is_up
        hour_ago_s = self.signal.at_s - S_PER_HOUR
        recent = [change_s for change_s in memory.changes_s if change_s > hour_ago_s]
        if len(recent) >= self.bounds.changes_per_hour and not in_need:
            return Reason.TOO_MANY
        spent_s = sum(memory.spent_executor_s.values())
        if proposal.is_up and spent_s >= self.bounds.budget_executor_s:
            return Reason.BUDGET
        return None

    def proposed(
        self,
        reason: Reason,
        executors: int,
        best: Alternative | None = None,
        weighed: Sequence[Alternative] = (),
    ) -> Proposal:
        """A change to some executors, or to the best of the settings that were weighed."""
        trigger_s = self.trigger_s if best is None else best.trigger_s
        kind = ChangeKind.ADD if executors > self.executors else ChangeKind.REMOVE
        return Proposal(
            kind=kind if trigger_s == self.trigger_s else ChangeKind.RESTART,
            reason=reason,
            at_s=self.signal.at_s,
            before_executors=self.executors,
            after_executors=executors,
            before_trigger_s=self.trigger_s,
            after_trigger_s=trigger_s,
            gain_node_s=math.inf if best is None else best.gain_node_s,
            cost_node_s=0.0 if best is None else best.cost_node_s,
            estimate=self.estimate,
            waiting_rows=self.waiting_rows,
            alternatives=tuple(weighed),
        )
