"""The rule applied to a running query: its input, its proposed changes, and their expectations."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from headway.assumptions.live import BIN_S, LEAST_CARRIED_RATIO
from headway.assumptions.planning import CONFIDENCE
from headway.assumptions.tuning import LOG_ENDED_S
from headway.domain import Configuration
from headway.domain.live import Bounds, ChangeKind, Expectation, Proposal, Signal, WatchedChange
from headway.errors import InputError
from headway.models.job import change_pause
from headway.planner.candidates import candidates_at
from headway.planner.frontier import sustainable_rates_per_s
from headway.planner.question import Question, SearchSpace
from headway.tuner.live_query import LiveQuery, Observed
from headway.tuner.rule.expectation import Transition, expectation_of
from headway.tuner.rule.memory import Memory
from headway.tuner.rule.rule import Decision, decide
from headway.tuner.rule.table import CapacityTable, capacity_table

_MOST_SIZES = 200


@dataclass(kw_only=True)
class LiveRule:
    """The rule with its memory and its table, applied to a query within bounds.

    ``triggers_s`` are the trigger intervals that may be chosen besides the current one [s], ``now``
    is the clock, in seconds since 1970, and ``pauses_s`` is how long the last changes of each kind
    paused the query, oldest first [s].
    """

    live: LiveQuery
    bounds: Bounds
    triggers_s: Sequence[float] = ()
    now: Callable[[], float] = time.time
    memory: Memory = field(default_factory=Memory)
    decision: Decision | None = None
    proposal: Proposal | None = None
    pauses_s: dict[ChangeKind, tuple[float, ...]] = field(default_factory=dict)
    _table: CapacityTable | None = None
    _made_for: Configuration | None = None

    def table(self, running: Configuration) -> CapacityTable:
        """Rates that settings within bounds sustain, computed again when fixed values change."""
        fixed = replace(running, executors=1, trigger_s=0.0, max_offsets_per_trigger=None)
        setting = running.executors, running.trigger_s
        if self._table is None or self._made_for != fixed or setting not in self._table.place_of:
            self._table, self._made_for = self._new_table(running), fixed
        return self._table

    def see(self, observed: Observed, running: Configuration, *, num_pending: int = 0) -> None:
        """Decide after a batch that has ended."""
        batch = observed.batch
        signal = Signal(
            at_s=batch.ended_s,
            arrived_rows=observed.arrived_rows,
            arrived_at_s=batch.started_s,
            backlog_rows=observed.backlog_rows,
            executors=running.executors,
            num_pending=num_pending,
            batch=observed.seen,
        )
        self._decide(signal, running)

    def tick(self, running: Configuration, *, silent_s: float, num_pending: int = 0) -> None:
        """Decide at a moment without a batch, after the first decision."""
        if self.decision is None:
            return
        last = self.live.observed[-1] if self.live.observed else None
        arrived_at_s, arrived_rows = self.live.planned() or (None, None)
        signal = Signal(
            at_s=self.now(),
            arrived_rows=arrived_rows,
            arrived_at_s=arrived_at_s,
            backlog_rows=None if last is None else last.backlog_rows,
            executors=running.executors,
            num_pending=num_pending,
            silent_s=silent_s,
        )
        self._decide(signal, running)

    def is_feasible(self, running: Configuration, *, arriving_per_s: float | None = None) -> bool:
        """Whether a setting within bounds meets the target at the current level of the rate.

        ``arriving_per_s`` is the newest rate, if it is known; a lower one than the level means that
        the level has not come down yet. [rows/s]
        """
        estimate = None if self.decision is None else self.decision.estimate
        if estimate is None:
            return True
        table = self.table(running)
        largest = [(table.most(trigger_s), trigger_s) for trigger_s in table.triggers_s]
        highest = max(
            table.expected(*setting, self.memory.planned_cost_ratio(table, *setting))
            for setting in largest
        )
        level_per_s = estimate.rate_per_s
        return highest >= min(level_per_s, arriving_per_s or level_per_s)

    def then(self, running: Configuration, proposal: Proposal) -> Configuration:
        """The setting of a proposal; the rate limit depends on the trigger interval."""
        return replace(
            running,
            executors=proposal.after_executors,
            trigger_s=proposal.after_trigger_s,
            max_offsets_per_trigger=self._limit(running, proposal.after_trigger_s),
        )

    def with_limit(self, running: Configuration) -> Configuration:
        """The setting with a rate limit that suffices for all settings within bounds."""
        rows = self.table(running).limit_rows(max(running.trigger_s, 1.0))
        return replace(running, max_offsets_per_trigger=max(math.ceil(rows), 1))

    def expectation(self, running: Configuration, proposal: Proposal) -> Expectation:
        """The expectation for the new setting: computed after rounding and bounds."""
        estimate, then = proposal.estimate, self.then(running, proposal)
        return self._expected(
            proposal.kind,
            running,
            then,
            estimate.rate_per_s,
            estimate.cost_ratio,
            backlog_rows=proposal.waiting_rows,
        )

    def other_partitions(self, running: Configuration) -> Configuration | None:
        """The shuffle partitions that sustain clearly more at the same size; None if none do."""
        table = self.table(running)
        space = replace(table.question.space, shuffle_partitions=None)
        question = replace(table.question, space=space)
        choices = question.space.partition_choices(question.profile, running.executors)
        choices = tuple(sorted({*choices, running.shuffle_partitions}))
        settings = [(running.executors, partitions, running.trigger_s) for partitions in choices]
        rates = sustainable_rates_per_s(candidates_at(question, settings)).tolist()
        sustained = dict(zip(choices, rates, strict=True))
        best = max(choices, key=lambda partitions: sustained[partitions])
        least_per_s = LEAST_CARRIED_RATIO.value * sustained[running.shuffle_partitions]
        if sustained[best] < least_per_s or best == running.shuffle_partitions:
            return None
        return replace(running, shuffle_partitions=best)

    def expectation_at(
        self, running: Configuration, then: Configuration, kind: ChangeKind
    ) -> Expectation:
        """The expectation for a setting with other partitions."""
        estimate = None if self.decision is None else self.decision.estimate
        rate_per_s = 0.0 if estimate is None else estimate.rate_per_s
        return self._expected(kind, running, then, rate_per_s, self.memory.cost_ratio)

    def as_change(self, running: Configuration, proposal: Proposal) -> WatchedChange:
        """A proposal for people: its change, its gain and its cost."""
        expected = self.expectation(running, proposal)
        then = self.then(running, proposal)
        unchanged = expectation_of(
            self.table(running),
            running.executors,
            running.trigger_s,
            max(proposal.estimate.rate_per_s, 1e-9),
            proposal.estimate.cost_ratio,
            Transition(),
        )
        return WatchedChange(
            now=running,
            then=then,
            why=proposal.reason.value,
            saved_node_s_per_hour=3600.0 * (running.executors - then.executors),
            latency_now_s=_finite(unchanged.latency_s.high),
            latency_then_s=_finite(expected.latency_s.high),
            pause_s=expected.pause_s,
            late_s=expected.late_s,
        )

    def _decide(self, signal: Signal, running: Configuration) -> None:
        if signal.at_s < self.memory.seen_s - LOG_ENDED_S.value:
            # The clock was set back: rates of before lie in the future, and would hide new ones.
            self.memory = Memory(log_factor=self.memory.log_factor, costs=self.memory.costs)
        decision = decide(self.memory, signal, self.table(running), self.bounds, running.trigger_s)
        self.memory = decision.memory
        if decision.estimate is not None:
            # Between two bins nothing is decided, and what was proposed still stands.
            self.decision, self.proposal = decision, decision.proposal

    def _new_table(self, running: Configuration) -> CapacityTable:
        low = min(self.bounds.min_executors, running.executors)
        high = max(self.bounds.max_executors, running.executors)
        if high - low >= _MOST_SIZES:
            raise InputError(
                f"executors {low} to {high} are more than {_MOST_SIZES} sizes; narrow the bounds"
            )
        space = SearchSpace(
            max_nodes=high,
            cores_per_executor=running.cores_per_executor,
            task_cpus=running.task_cpus,
            tasks_per_executor=running.tasks_per_executor,
            shuffle_partitions=running.shuffle_partitions,
        )
        question = Question(
            profile=self.live.profile,
            target=self.live.target,
            space=space,
            confidence=CONFIDENCE.value,
        ).at_confidence(CONFIDENCE.value)
        triggers_s = sorted({*self.triggers_s, running.trigger_s})
        return capacity_table(question, range(low, high + 1), triggers_s)

    def _limit(self, running: Configuration, trigger_s: float) -> int | None:
        limit = running.max_offsets_per_trigger
        if limit is None or trigger_s == running.trigger_s:
            return limit
        ratio = max(trigger_s, 1.0) / max(running.trigger_s, 1.0)
        return max(math.ceil(limit * ratio), 1)

    def _expected(
        self,
        kind: ChangeKind,
        running: Configuration,
        then: Configuration,
        rate_per_s: float,
        cost_ratio: float,
        *,
        backlog_rows: float = 0.0,
    ) -> Expectation:
        """The expectation for a change, which takes a while to take effect: (A7), (A18)."""
        rate_per_s = max(rate_per_s, 1e-9)
        before_s, after_s = (
            cost_ratio
            * self.table(configuration).duration_s(
                configuration.executors,
                configuration.trigger_s,
                rate_per_s * configuration.trigger_s,
            )
            for configuration in (running, then)
        )
        seen_s = self.pauses_s.get(kind, ())
        ratio = change_pause.computing_ratio(self.live.profile, before_s)
        pause_s = change_pause.expected_pause_s(kind, before_s, seen_s, ratio)
        prior_s = change_pause.prior_pause_s(kind, before_s)
        transition = Transition(
            pause_s=pause_s,
            delay_s=pause_s,
            longest_pause_s=change_pause.learned_late_s(prior_s, seen_s),
            backlog_rows=backlog_rows,
        )
        if kind is ChangeKind.ADD:
            costs, table = self.memory.costs, self.table(running)
            transition = replace(
                transition,
                wait_s=change_pause.expected_wait_s(costs.provisioning_s),
                longest_wait_s=costs.lead_s() - BIN_S.value,
                drained_per_s=table.drained_per_s(running.executors, running.trigger_s, cost_ratio),
            )
        elif kind is not ChangeKind.REMOVE:
            delay_s = change_pause.restart_delay_s(pause_s, before_s, then.trigger_s, after_s)
            transition = replace(transition, delay_s=delay_s)
        return expectation_of(
            self.table(then), then.executors, then.trigger_s, rate_per_s, cost_ratio, transition
        )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
