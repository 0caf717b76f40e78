"""Headway's own rule: from observations to a change, or to none, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway.assumptions.live import SILENT_LIMITS
from headway.domain.live import Bounds, ChangeKind, Estimate, Proposal, Reason, Signal
from headway.tuner.rule.look import Look
from headway.tuner.rule.memory import Episode, Memory, seen
from headway.tuner.rule.table import CapacityTable
from headway.units import S_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Result of one evaluation: new memory, estimate, and a change or the reason for none."""

    memory: Memory
    reason: Reason
    estimate: Estimate | None = None
    proposal: Proposal | None = None


def decide(
    memory: Memory, signal: Signal, table: CapacityTable, bounds: Bounds, trigger_s: float
) -> Decision:
    """Evaluate a running query once; changes nothing except the memory that it returns.

    At the start, the memory is ``Memory()``, with earlier learned costs if these were kept. There
    is a proposal at most once per bin of 15 s; call `applied` after it was applied.

    Notes
    -----
    **(A9)** Sizes are numbers of executors that carry 6% more than the next smaller size, and gain
    in rate per executor at least half as much as the best of it and the larger ones. `C` is the one
    with the least `S + Λ g` (A21), executors and the worth of the expected late rows, among those
    with `g` at most `1-q`; the largest if there is none. Up: to `C`, if it is larger than the
    current size, once the late seconds `Σ g t` that the current size is expected to cause since
    then are half of those of the step up and of a step down, or after a jump, and once the spread
    is known; not while one bin alone is above the band (A2), since the next one shows whether the
    rate has jumped, and how far. With a backlog of `n` rows beyond the usual, to `C`, and at least
    to the size at which `n/(0.85/(b f)-λ)` is within the time to catch up, with `1/(bf)` the rows
    per second of large batches. Here `n` is the backlog when the executors become available,
    including arrivals until then beyond what the current executors process, and while the first
    batches on them take longer (A7). Down: to the smallest size that is at least `C` and that is
    worth leaving for by (A20), by at most two thirds, never with a backlog or while executors are
    pending. A batch that is silent for too long is answered by one step up, unless the batch before
    left a backlog, of which the next ones are long.
    """
    updated = seen(memory, signal, table, trigger_s)
    if not updated.forecast.is_known:
        return Decision(memory=updated, reason=Reason.LEARNING)
    if signal.silent_s > SILENT_LIMITS.value * max(table.limit_s, trigger_s):
        return _while_silent(updated, signal, table, bounds, trigger_s)
    if updated.forecast.num_bins == updated.decided_bins:
        return Decision(memory=updated, reason=Reason.HOLD)
    updated = replace(updated, decided_bins=updated.forecast.num_bins)
    look = Look.of(updated, signal, table, bounds, trigger_s)
    updated = look.remembered(updated)
    # A proposal, or why there is none.
    outcome = look.up(updated)
    if outcome is Reason.HOLD:
        outcome = look.down(updated)
    if outcome is Reason.HOLD:
        outcome = look.other_trigger(updated)
    if outcome is Reason.HOLD and updated.is_short:
        outcome = Reason.AT_MAXIMUM
    if isinstance(outcome, Reason):
        return Decision(memory=updated, reason=outcome, estimate=look.estimate)
    refused = look.refused(outcome, updated)
    return Decision(
        memory=updated,
        reason=refused or outcome.reason,
        estimate=look.estimate,
        proposal=None if refused else outcome,
    )


def applied(memory: Memory, proposal: Proposal) -> Memory:
    """The memory after a proposal was applied; rows that are late from now on are its cost."""
    hour_ago_s = proposal.at_s - S_PER_HOUR
    before_s = memory.calm_late_s if proposal.is_up else memory.late_s
    episode = memory.episode
    if episode is None or episode.kind is not ChangeKind.ADD or not proposal.is_up:
        is_return = proposal.is_up and proposal.reason in (Reason.JUMP, Reason.FORECAST)
        episode = Episode(
            kind=proposal.kind,
            started_s=proposal.at_s,
            late_before_s=before_s,
            returned_to=proposal.before_executors if is_return else None,
        )
    return replace(
        memory,
        episode=episode,
        num_short=0,
        pending_since_s=(
            proposal.at_s if proposal.kind is ChangeKind.ADD else memory.pending_since_s
        ),
        changes_s=(
            *(change_s for change_s in memory.changes_s if change_s > hour_ago_s),
            proposal.at_s,
        ),
    )


def _while_silent(
    memory: Memory, signal: Signal, table: CapacityTable, bounds: Bounds, trigger_s: float
) -> Decision:
    """A query without a report for three long batches gets a single step up."""
    larger = [size for size in table.sizes[trigger_s] if size > signal.executors]
    after = bounds.clipped(larger[0]) if larger else signal.executors
    look = Look.of(memory, signal, table, bounds, trigger_s)
    is_answered = memory.stepped_up_silent or signal.num_pending or look.has_backlog
    if is_answered or after <= signal.executors:
        return Decision(memory=memory, reason=Reason.SILENT, estimate=look.estimate)
    return Decision(
        memory=replace(memory, stepped_up_silent=True),
        reason=Reason.SILENT,
        estimate=look.estimate,
        proposal=look.proposed(Reason.SILENT, after),
    )
