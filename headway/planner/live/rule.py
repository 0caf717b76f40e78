"""Headway's own rule: from what was seen to a change, or to none, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from headway.assumptions.live import SILENT_LIMITS
from headway.domain.live import Bounds, ChangeKind, Estimate, Proposal, Reason, Signal
from headway.planner.live.look import Look
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
    **(A9)** Sizes: `C(z)` is the fewest executors that sustain (A3) at the score `z`, at the upper
    end of what batches cost (A15), of those that carry at least 6% more than the next smaller one.
    Up: to `C(z)` where what runs does not sustain (A3) at `z-0.7`, in two bins in a row or after a
    jump, and once the spread is known; with a backlog of `n` rows beyond the usual at least to
    where `n/(0.85/(b f)-λ)` is within the time to catch up, `1/(bf)` the rows per second of large
    batches: `n` is what will wait when the executors are there, with what arrives until then beyond
    what those of now process, and while the first batches on them take longer (A7). Down: to the
    smallest size that has been enough for so long that (A8) is exceeded, by half at most, never
    with a backlog or executors on their way.
    """
    now = seen(memory, signal, table, trigger_s)
    if not now.forecast.is_known:
        return Decision(memory=now, reason=Reason.LEARNING)
    if signal.silent_s > SILENT_LIMITS.value * max(table.limit_s, trigger_s):
        return _while_silent(now, signal, table, bounds, trigger_s)
    if now.forecast.num_bins == now.decided_bins:
        return Decision(memory=now, reason=Reason.HOLD)
    now = replace(now, decided_bins=now.forecast.num_bins)
    look = Look.of(now, signal, table, bounds, trigger_s)
    now = look.remembered(now)
    proposal, reason = look.up(now)
    if proposal is None and reason is Reason.HOLD:
        proposal, reason = look.down(now)
    if proposal is None and reason is Reason.HOLD:
        proposal, reason = look.other_trigger(now)
    if proposal is None and reason is Reason.HOLD and now.is_short:
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
    look = Look.of(memory, signal, table, bounds, trigger_s)
    return Decision(
        memory=replace(memory, stepped_up_silent=True),
        reason=Reason.SILENT,
        estimate=estimate,
        proposal=look.proposed(Reason.SILENT, after, gain_node_s=math.inf, cost_node_s=0.0),
    )
