"""Changes of a query by a tuner: written to a file first, then made, or undone if they fail."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from headway.assumptions import tuning
from headway.domain import Configuration
from headway.domain.live import ChangeKind, Expectation, Reason
from headway.domain.tuner import BlockedChange, Phase, TunerChange, TunerState
from headway.errors import ActuatorError, HeadwayError, InputError, QueryEndedError
from headway.formats.tuner_files import append_audit, audit_file, save_tuner, switch_word
from headway.profiler.recording.live import QueryFeed
from headway.runtime.tuning.actuators import Actuators, At, kind_of, nothing
from headway.runtime.tuning.clean_stop import NoGapError
from headway.runtime.tuning.supervised import SupervisedQuery
from headway.tuner.live_query import LiveQuery
from headway.tuner.live_rule import LiveRule
from headway.tuner.rule.memory import with_memory

ChangesQueries: TypeAlias = Actuators | SupervisedQuery
"""What starts, changes and stops the query of a tuner: in its session, or as an application."""
_RESTARTS = (ChangeKind.RESTART, ChangeKind.APPLICATION)


@dataclass(eq=False)
class TunerChanges:
    """A query that is started, changed and restored, with its state in a file.

    ``actuators`` make its changes, and ``rule`` knows its batches. ``state`` is as it was left, or
    new; each state is written to the file at ``path`` before it has an effect. Changes are only
    recommended unless it ``acts``. ``now`` is the clock, in seconds since 1970, and tests interrupt
    it at the points that ``at`` is called with.
    """

    actuators: ChangesQueries
    rule: LiveRule
    state: TunerState
    path: Path
    _: KW_ONLY
    acts: bool
    now: Callable[[], float] = time.time
    at: At = nothing

    def __post_init__(self) -> None:
        self.running = self.state.last_good
        self._live: LiveQuery = self.rule.live
        self._since_start = 0
        self.is_ending = False

    def end(self, *, restore: bool) -> None:
        """Make no more changes; with ``restore`` return to the setting before the first change."""
        original = self.state.original
        if restore and self.running != original:
            self.change_to(original, Reason.HOLD, Phase.RESTORING, why="asked to restore")
        phase = self.state.phase
        if phase not in (Phase.FROZEN, Phase.LOST) and not phase.is_changing:
            self._to(Phase.OFF, "stopped")

    def watch_meanwhile(self) -> bool:
        """Read the batches that end while a change waits; returns whether it is to be dropped."""
        with contextlib.suppress(InputError):
            self._see()
        is_off = switch_word(self.path) is not None and self.state.phase is Phase.APPLYING
        return self.is_ending or is_off

    def end_query(self) -> None:
        """Stop the query, between two batches if there is a gap; else a NoGapError says so."""
        if not self.actuators.is_active:
            return
        try:
            self.actuators.stop(self.running.trigger_s)
        except ActuatorError as error:
            self.actuators.stop_at_once()
            if not isinstance(error, NoGapError):
                raise
            raise NoGapError(
                "the query had no gap between batches and was stopped within one, which runs again "
                "at its next start"
            ) from None

    def _see(self, num_pending: int = 0) -> int:
        """Pass the ended batches to the rule; returns their number."""
        new_batches = self._live.read()
        if new_batches:
            self._require_same_query(new_batches[-1].batch.query_id)
        for observed in new_batches:
            if observed.batch.num_cores is not None:
                self._count_executors(observed.batch.num_cores)
            self.rule.see(observed, self.running, num_pending=num_pending)
        self._since_start += len(new_batches)
        return len(new_batches)

    def _count_executors(self, num_cores: int) -> None:
        """Take the executors that there are, where others determine them."""
        are_given = self.actuators.executors_are_given
        if self.acts and not are_given:
            return
        number = max(num_cores // self.running.cores_per_executor, 1)
        self.running = replace(self.running, executors=number)
        if are_given:
            # There is no other size to change to, or to return to.
            bounds, state = self.rule.bounds, self.state
            self.rule.bounds = replace(bounds, min_executors=number, max_executors=number)
            original = replace(state.original, executors=number)
            last_good = replace(state.last_good, executors=number)
            self.state = replace(state, original=original, last_good=last_good)

    def _require_same_query(self, query_id: str) -> None:
        """Refuse a query that a separate application started with another checkpoint."""
        previous_id = self.state.query_id
        if previous_id not in (None, query_id):
            raise InputError(
                f"the query runs from another checkpoint (its id is {query_id[:8]}, was "
                f"{(previous_id or '')[:8]}); give it the same checkpointLocation each time, or "
                "this tuner another state file"
            )
        self.state = replace(self.state, query_id=query_id)

    def _num_pending(self) -> int:
        change = self.state.change
        if self.state.phase is not Phase.APPLYING or change is None:
            return 0
        return max(change.then.executors - self.actuators.num_executors(), 0)

    def change_to(
        self,
        then: Configuration,
        reason: Reason,
        phase: Phase,
        *,
        why: str,
        expected: Expectation | None = None,
    ) -> None:
        """Write a change to the state file, make it, and report it; undo it if it fails."""
        kind = kind_of(self.running, then, is_stateful=self._is_stateful())
        pause_s = 0.0 if expected is None else expected.pause_s
        predicted_s = pause_s + self.rule.memory.costs.lead_s()
        at_s = self.now()
        limit_s = min(tuning.OVERDUE_RATIO.value * predicted_s, tuning.EXECUTORS_WITHIN_S.value)
        change = TunerChange(
            number=self.state.num_changes + 1,
            kind=kind,
            reason=reason,
            now=self.running,
            then=then,
            began_s=at_s,
            deadline_s=at_s + max(limit_s, tuning.SHORTEST_CHANGE_S.value),
            expected=expected,
        )
        self._to(phase, why, change=change, num_changes=change.number)
        self.at("state written")
        try:
            pause_s = self.actuators.apply(kind, self.running, then)
        except QueryEndedError as error:
            self.audit("failed", change=change, why=str(error))
            self._to(Phase.LOST, str(error), change=None)
            raise
        except HeadwayError as error:
            self._failed(change, error)
            return
        self._see(self._num_pending())
        self.running = then
        self.state = replace(self.state, change=replace(change, pause_s=pause_s))
        self._after_change(phase)

    def _after_change(self, phase: Phase) -> None:
        self._follow()
        if phase is Phase.RESTORING:
            self.audit("restored", setting=self.running)
            self._to(Phase.HOLD, "restored", change=None, last_good=self.running)
        elif self._num_pending() == 0:
            self.audit("applied", change=self.state.change)
            self._to(Phase.SETTLING, "applied")

    def _follow(self) -> None:
        """Read the batches of the running query from now on, and let it settle first."""
        feed, query = self._live.feed, self.actuators.query
        if isinstance(feed, QueryFeed) and query is not None:
            feed.follow(query)
        self._live.trigger_s = self.running.trigger_s
        self._live.max_offsets = self.running.max_offsets_per_trigger
        self._live.settle(self.now())
        self._since_start = 0

    def _failed(self, change: TunerChange, error: HeadwayError) -> None:
        """Handle a change that failed: the query runs on as it was, or is restored."""
        self.audit("failed", change=change, why=str(error))
        is_asked = change.reason is Reason.HOLD and isinstance(error, NoGapError)
        if self.state.phase is Phase.RESTORING and not is_asked:
            self._freeze(f"a change could not be taken back: {error}")
        if isinstance(error, ActuatorError) and self.actuators.is_active:
            # A gap that was missed comes again: only what was refused is not asked again.
            if not isinstance(error, NoGapError):
                self._block(change, tuning.RETRY_AFTER_S.value)
            self._to(Phase.HOLD, str(error), change=None)
            return
        self._restore(change, str(error))

    def _ended(self, why: str) -> None:
        """Take back a restart after which the query failed, once; else an ended query is lost."""
        change = self.state.change
        is_settling = self.state.phase is Phase.SETTLING and self.actuators.has_failed
        if change is not None and change.kind in _RESTARTS and is_settling:
            self._failed(change, QueryEndedError(f"the query failed at its new setting: {why}"))
            return
        self._to(Phase.LOST, why)
        raise HeadwayError(f"the query has ended, not by this tuner: {why}")

    def _block(self, change: TunerChange, for_s: float) -> None:
        """Block a change for a while; what was blocked until now no longer counts."""
        at_s = self.now()
        still_blocked = (blocked for blocked in self.state.blocked if blocked.until_s > at_s)
        new_block = BlockedChange(now=change.now, then=change.then, until_s=at_s + for_s)
        self.state = replace(self.state, blocked=(*still_blocked, new_block))

    def _restore(self, change: TunerChange, why: str) -> None:
        """Return to the previous setting, once; a tuner that dies meanwhile does not retry it."""
        self._block(change, tuning.BLOCKED_S.value)
        if self.actuators.is_active:
            self.running = change.then
            self.change_to(change.now, change.reason, Phase.RESTORING, why=why)
            return
        reverse_change = replace(change, now=change.then, then=change.now)
        self._to(Phase.RESTORING, why, change=reverse_change)
        try:
            self.actuators.start(reverse_change.then)
        except HeadwayError as error:
            self._freeze(f"the query does not start at its last good setting: {error}")
        self.running = reverse_change.then
        self._after_change(Phase.RESTORING)

    def _freeze(self, why: str) -> None:
        self._to(Phase.FROZEN, why)
        raise HeadwayError(f"{why}; the tuner makes no more changes, and leaves the query alone")

    def begin(self) -> None:
        """Start the query as the state says, whatever a crash has left unfinished."""
        state, change = self.state, self.state.change
        start_at = state.last_good
        if state.phase.is_changing and change is not None:
            num_tries = change.num_tries + 1
            self.state = state = replace(state, change=replace(change, num_tries=num_tries))
            save_tuner(state, self.path)
            start_at = change.then
            if num_tries > tuning.MOST_STARTS.value:
                start_at = state.last_good
                self._block(change, tuning.BLOCKED_S.value)
        self.at("before first start")
        if self._is_stateful():
            start_at = self.actuators.with_partitions_of_checkpoint(start_at)
        try:
            self.actuators.start(start_at)
        except HeadwayError as error:
            if isinstance(error, InputError) or start_at == state.last_good:
                raise
            self.actuators.start(state.last_good)
            start_at = state.last_good
        self.running = start_at
        if self.acts:
            self.actuators.ask_for_executors(start_at.executors)
        self._follow()
        self.audit("started", setting=start_at, after=state.phase, change=change)
        self._to(
            Phase.LEARN,
            "started",
            query_id=self.actuators.query_id or self.state.query_id,
            root=self.actuators.root,
            last_good=start_at,
            change=None,
        )

    def _is_stateful(self) -> bool:
        return bool(self._live.profile.shape.stateful_operators)

    def _to(self, phase: Phase, why: str, **changes: Any) -> None:
        """Change the phase and the state: it is written to its file before it has an effect."""
        is_new_phase = phase is not self.state.phase
        state = replace(self.state, phase=phase, why=why, **changes)
        self.state = with_memory(state, self.rule.memory)
        save_tuner(self.state, self.path)
        if is_new_phase:
            self.audit("phase", phase=phase, why=why)

    def audit(self, event: str, **fields: object) -> None:
        append_audit(audit_file(self.path), {"event": event, **fields})
