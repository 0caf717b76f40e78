"""What a tuner does at each step: learns, holds, proposes, settles, verifies."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.assumptions.advice import IGNORED_LIMIT_RATIO
from headway.assumptions.live import BIN_S
from headway.assumptions.tuning import LEARNING_BATCHES, SILENT_RATIO
from headway.domain import Configuration
from headway.domain.live import ChangeKind, Expectation, Proposal, Reason
from headway.domain.tuner import Phase, TunerChange
from headway.errors import InputError
from headway.formats.tuner_files import RESTORE_WORD, switch_word
from headway.profiler.streaming.trigger import contradiction
from headway.runtime.tuning.actuators import kind_of
from headway.runtime.tuning.clean_stop import left_no_gap
from headway.runtime.tuning.session import takes_each_batch_once, warning_of_sink
from headway.tuner.changes import TunerChanges
from headway.tuner.live_query import Observed
from headway.tuner.rule.memory import with_pause
from headway.tuner.rule.rule import applied
from headway.units import counted, format_duration

_SAVE_EVERY_S = 60.0
_ASK_EVERY_S = 1.0


@dataclass(eq=False, kw_only=True)
class TunerMachine(TunerChanges):
    """The states of a tuner and their transitions; called by one thread at a time.

    Changes of some kinds are made only if ``allow`` names them, and none at an instant at which it
    ``is_quiet``. ``cautions`` are warnings from the start; the rest is as of :class:`TunerChanges`.
    """

    allow: Collection[ChangeKind] = ()
    is_quiet: Callable[[float], bool] = lambda _at_s: False
    cautions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._said: tuple[str, ...] = ()
        self._ticked_s = self._saved_s = self._asked_s = self.now()
        self._cost_before, self._silent_s, self._idle_s = 1.0, 0.0, -math.inf
        self._asked_about: Configuration | None = None
        self._awaited: tuple[ChangeKind, Configuration, Expectation] | None = None

    def step(self) -> None:
        """Look at the query once, and act on it."""
        end_reason = self.actuators.ended_with()
        if end_reason is not None:
            self._ended(end_reason)
            return
        switch = switch_word(self.path)
        if switch is not None:
            original = self.state.original
            if switch == RESTORE_WORD and self.running != original:
                kind = kind_of(self.running, original, is_stateful=self._is_stateful())
                if self._why_not_yet(kind) is None:
                    self.change_to(original, Reason.HOLD, Phase.RESTORING, why="asked to")
            if self.state.phase is not Phase.OFF:
                self._to(Phase.OFF, "switched off")
            self._read()
            return
        if self.state.phase is Phase.OFF:
            self._since_start = 0
            self._to(Phase.LEARN, "switched on")
        self._read()
        match self.state.phase:
            case Phase.APPLYING:
                self._await_executors()
            case Phase.LEARN:
                if self._since_start >= LEARNING_BATCHES.value:
                    self._learned()
            case Phase.SETTLING:
                self._settle()
            case Phase.HOLD | Phase.BLIND:
                self._hold()

    def _read(self) -> None:
        num_pending, now_s, self._silent_s = self._num_pending(), self.now(), self._silence_s()
        if abs(now_s - self._saved_s) >= _SAVE_EVERY_S:
            # What is learned between two phases outlives a crash, too.
            self._saved_s = now_s
            self._to(self.state.phase, self.state.why)
        if self._see(num_pending):
            self._ticked_s = now_s
        elif self._live.last is not None and (
            now_s - self._ticked_s >= BIN_S.value or self._ends_bin(now_s)
        ):
            self._ticked_s = now_s
            self.rule.tick(self.running, silent_s=self._silent_s, num_pending=num_pending)

    def _ends_bin(self, now_s: float) -> bool:
        """Whether a batch was planned after the open bin of arrivals and has not ended yet.

        A batch that is long because the rate has jumped would show that only when it ends.
        """
        bin_ends_s = self.rule.memory.forecast.bin_s + BIN_S.value
        if not now_s >= max(bin_ends_s, self._asked_s + _ASK_EVERY_S):
            return False
        self._asked_s = now_s
        planned = self._live.planned()
        return planned is not None and planned[0] >= bin_ends_s

    def _silence_s(self) -> float:
        """How long the current batch has been running without a report; 0 between batches."""
        last = self._live.last
        if last is None or not self.actuators.is_in_batch:
            self._idle_s = self.now()
            return 0.0
        # A query that had no rows for long has not run a batch for so long.
        return max(self.now() - max(last.ended_s, self._idle_s), 0.0)

    def _learned(self) -> None:
        """The query has shown whether it runs as requested."""
        actual_setting = _require_followed(self.running, self._live.recent())
        if actual_setting != self.running:
            self.running = actual_setting
            self.state = replace(self.state, last_good=actual_setting)
        sink = None if self._live.last is None else self._live.last.sink
        warning = warning_of_sink(sink)
        if takes_each_batch_once(sink):
            self.actuators.may_cut = True
        if warning is not None and self.acts:
            self.cautions = tuple(dict.fromkeys((*self.cautions, warning)))
            self.audit("warning", why=warning)
        self._to(Phase.HOLD, "learned")

    def _hold(self) -> None:
        longest_s = max(self._live.target.limit_s, self.running.trigger_s)
        is_blind = self._silent_s > SILENT_RATIO.value * longest_s
        if is_blind is not (self.state.phase is Phase.BLIND):
            self._to(*((Phase.BLIND, "a batch is overdue") if is_blind else (Phase.HOLD, "heard")))
        if self.rule.proposal is not None:
            self._propose(self.rule.proposal)
        elif self.rule.decision is not None and self.rule.decision.reason is Reason.AT_MAXIMUM:
            self._other_partitions()

    def _settle(self) -> None:
        proposal, change = self.rule.proposal, self.state.change
        assert change is not None
        if proposal is not None and proposal.is_up and proposal.reason is Reason.JUMP:
            self._propose(proposal)
            return
        cost_batches = [
            observed
            for observed in self._live.recent(within_s=math.inf)
            if observed.seen.tells_costs and observed.batch.started_s >= self._live.settled_from_s
        ]
        if self.now() >= self._live.settled_from_s and len(cost_batches) >= LEARNING_BATCHES.value:
            self._to(Phase.VERIFYING, "settled")
            self._verify(change, cost_batches)

    def _verify(self, change: TunerChange, cost_batches: Sequence[Observed]) -> None:
        """Compare the new setting with its expectation."""
        _require_followed(change.then, cost_batches)
        rows = sum(observed.seen.batch_rows for observed in cost_batches)
        duration_s = sum(observed.seen.duration_s for observed in cost_batches) / len(cost_batches)
        late_ratio = sum(observed.seen.late_rows for observed in cost_batches) / max(rows, 1.0)
        outcome = {"duration_s": duration_s, "late_ratio": late_ratio, "pause_s": change.pause_s}
        self._learn_pause(change, duration_s)
        is_kept = change.expected is None or change.expected.is_kept(duration_s)
        is_missed = late_ratio > 1.0 - (self._live.target.quantile or 0.0)
        rate_per_s = self._live.rate_per_s(cost_batches) or 0.0
        table = self.rule.table(self.running)
        setting_before = (change.now.executors, change.now.trigger_s)
        would_do = setting_before in table.place_of and (
            table.sustained(*setting_before, self._cost_before) >= rate_per_s
        )
        if not is_kept and is_missed and would_do:
            self.audit("missed", change=change, **outcome)
            self._restore(change, "it missed the target that the setting before would meet")
            return
        self.audit("verified", change=change, kept=is_kept, **outcome)
        why = "as expected" if is_kept else "slower than expected, target met"
        self._to(Phase.HOLD, why, last_good=self.running, change=None)

    def _learn_pause(self, change: TunerChange, duration_s: float) -> None:
        """For a restart: learn its pause and the excess of its first batch, as in the prior.

        Changes of executors cause no pause.
        """
        if change.kind in (ChangeKind.ADD, ChangeKind.REMOVE) or change.pause_s is None:
            return
        first = next(iter(self._live.recent(within_s=math.inf)), None)
        excess_s = 0.0 if first is None else max(first.batch.duration_s - duration_s, 0.0)
        self.state = with_pause(self.state, change.kind, change.pause_s + excess_s)
        self.rule.pauses_s = dict(self.state.pauses_s)

    def _propose(self, proposal: Proposal) -> None:
        then = self.rule.then(self.running, proposal)
        refused = self._why_not(proposal.kind, then) or self._why_not_yet(proposal.kind)
        proposal_key = (str(proposal.kind), str(proposal.reason), repr(then), refused or "")
        if proposal_key != self._said:
            self._said = proposal_key
            self.audit(
                "proposed",
                now=self.running,
                then=then,
                proposal=proposal,
                expected=self.rule.expectation(self.running, proposal),
                refused=refused,
            )
        if refused is None:
            self._cost_before = proposal.estimate.cost_ratio
            self._make(proposal, then)

    def _other_partitions(self) -> None:
        """Nothing within bounds is enough: other shuffle partitions may be, if allowed."""
        if self._asked_about != self.running:
            self._asked_about, self._awaited = self.running, self._found_partitions()
        if self._awaited is None:
            return
        kind, then, expected = self._awaited
        if self._why_not(kind, then) is None and self._why_not_yet(kind) is None:
            self._awaited = None
            why = "other shuffle partitions sustain more"
            self.change_to(then, Reason.AT_MAXIMUM, Phase.APPLYING, why=why, expected=expected)

    def _found_partitions(self) -> tuple[ChangeKind, Configuration, Expectation] | None:
        """The change of shuffle partitions that is to be made in the next gap; None if none is."""
        now = self.running
        then = self.rule.other_partitions(now)
        if then is None:
            return None
        kind = kind_of(now, then, is_stateful=self._is_stateful())
        expected = self.rule.expectation_at(self.running, then, kind)
        refused = self._why_not(kind, then)
        self.audit("proposed", now=now, then=then, kind=kind, expected=expected, refused=refused)
        return (kind, then, expected) if refused is None else None

    def _why_not(self, kind: ChangeKind, then: Configuration) -> str | None:
        """Why a change is only recommended; None if it is made."""
        at_s = self.now()
        if not self.acts:
            return "mode is recommend"
        if self.is_quiet(at_s):
            return "a quiet period"
        if self.state.is_blocked(self.running, then, at_s):
            return "it was tried and taken back"
        is_of_executors = kind in (ChangeKind.ADD, ChangeKind.REMOVE)
        if is_of_executors and (why := self.actuators.why_no_live_executors()) is not None:
            return why
        if kind is ChangeKind.REPARTITION and kind not in self.allow:
            return "allow has no 'repartition'"
        return None

    def _why_not_yet(self, kind: ChangeKind) -> str | None:
        """Why a change is left for a later step; nothing else waits meanwhile.

        If a batch may be interrupted, and the last one left no gap, a restart does not wait.
        """
        trigger_s, last = self.running.trigger_s, self._live.last
        if kind is ChangeKind.ADD or self.actuators.is_in_gap(trigger_s):
            return None
        is_late = last is not None and left_no_gap(trigger_s, last.started_s, last.ended_s)
        if is_late and self.actuators.may_cut and kind is not ChangeKind.REMOVE:
            return None
        return "waits for a gap between batches"

    def has_left_gap(self) -> bool:
        """Whether the last batch left a gap, or none has ended for two triggers (an idle query)."""
        trigger_s, last = self.running.trigger_s, self._live.last
        if last is None or self.now() - last.ended_s > 2.0 * trigger_s:
            return True
        return not left_no_gap(trigger_s, last.started_s, last.ended_s)

    def _make(self, proposal: Proposal, then: Configuration) -> None:
        expected = self.rule.expectation(self.running, proposal)
        memory_before = self.rule.memory
        self.rule.memory = applied(memory_before, proposal)
        self.rule.proposal = None
        why = str(proposal.reason)
        self.change_to(then, proposal.reason, Phase.APPLYING, why=why, expected=expected)
        if self.state.change is None:
            # What was not made is no change: neither one of the most in an hour nor a cost.
            memory = self.rule.memory
            self.rule.memory = replace(
                memory,
                changes_s=memory_before.changes_s,
                episode=memory_before.episode,
                pending_since_s=memory_before.pending_since_s,
            )

    def _await_executors(self) -> None:
        change = self.state.change
        assert change is not None
        if self._num_pending() == 0:
            # How long they took is learned now, not when the next batch ends.
            self.rule.tick(self.running, silent_s=self._silent_s)
            self.audit("applied", change=change)
            self._live.settle(self.now())
            self._to(Phase.SETTLING, "executors are there")
        elif self.now() > change.deadline_s:
            self._restore(change, "executors did not come in time")


def _require_followed(
    requested_setting: Configuration, observed_batches: Sequence[Observed]
) -> Configuration:
    """The setting as it runs: the requested one, with the partitions of its checkpoint.

    A part that the function that started the query ignores is named, and ends the tuner.
    """
    batches = [observed.batch for observed in observed_batches]
    if not batches:
        return requested_setting
    limit = requested_setting.max_offsets_per_trigger
    most_rows = max(batch.num_rows for batch in batches)
    if limit is not None and most_rows > (1.0 + IGNORED_LIMIT_RATIO.value) * limit:
        raise _ignored(
            f"at most {counted(limit, 'row')} per batch",
            f"{most_rows:,}; give the reader .options(**setting.reader_options)",
        )
    starts = np.array([batch.started_s for batch in batches])
    durations = np.array([batch.duration_s for batch in batches])
    contradiction_text = contradiction(requested_setting.trigger_s, starts, durations)
    if contradiction_text is not None:
        raise _ignored(
            f"a trigger of {format_duration(requested_setting.trigger_s)}",
            f"another one ({contradiction_text}); start it with .trigger(**setting.trigger)",
        )
    # Those of state are in the checkpoint, whatever the session says.
    for batch in reversed(batches):
        if batch.shuffle_partitions is not None:
            return replace(requested_setting, shuffle_partitions=batch.shuffle_partitions)
    return requested_setting


def _ignored(requested: str, observed: str) -> InputError:
    return InputError(
        f"the query ignores its setting: asked for {requested}, it ran with {observed}. It is left "
        "alone"
    )
