"""Behaviour of a query during a burst, and the time to process the backlog of one or an outage."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.planning import MOST_BATCHES_TO_RECOVER, USUAL_BATCH_RATIO
from headway.domain import Burst, Configuration, JobProfile
from headway.lazy_classes import dataclass
from headway.limits import MOST_LONG
from headway.models.arrays import Array, Numeric
from headway.models.job.duration import DurationModel
from headway.models.job.restart import StartAgain, start_again
from headway.models.job.setting import duration_model, settled_batch_rows

Size: TypeAlias = "tuple[Numeric | NDArray[np.int_], Numeric | NDArray[np.int_]]"
"""Task slots and shuffle partitions of a setting, or of several."""

_SETTLED_RATIO = 1e-4
# Start of the burst in an interval, as shares of it; the worst one counts.
_BEGINNINGS = np.arange(8.0) / 8.0

NO_START = StartAgain()
"""The application went on, or no start in a fresh JVM is on record."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast a setting, or several, process a stream.

    ``model`` has their mean durations by rows, ``factor`` multiplies every duration; the others
    broadcast. The state is that of ``state_rate_per_s``, which the rate may exceed (P4).
    """

    model: DurationModel
    rate_per_s: Numeric
    trigger_s: Numeric
    factor: Numeric = 1.0
    state_rate_per_s: Numeric | None = None

    @classmethod
    def of(cls, profile: JobProfile, configuration: Configuration, factor: float = 1.0) -> Pace:
        """That of a job at one setting, at the rate of its arrivals."""
        return cls(
            model=duration_model(profile, *configuration.size),
            rate_per_s=profile.arrivals.rate_per_s,
            trigger_s=configuration.trigger_s,
            factor=factor,
        )

    def duration_s(self, rows: Numeric) -> Array:
        return np.multiply(self.factor, self.model.mean_s(rows))

    def interval_s(self, rows: Numeric, longer_s: Numeric = 0.0) -> Array:
        """Time from the start of a batch, which takes longer than its rows do, to the next [s]."""
        return np.maximum(self.trigger_s, self.duration_s(rows) + longer_s)

    @cached_property
    def usual_rows(self) -> Array:
        """Rows of a settled batch."""
        return settled_batch_rows(self.model, self.rate_per_s, self.trigger_s, self.factor)

    def take(self, selection: NDArray[np.intp]) -> Pace:
        """That of some settings, of those in parallel arrays."""
        columns = self.rate_per_s, self.trigger_s, self.factor, self.state_per_s
        rate_per_s, trigger_s, factor, state_per_s = (
            values[selection] for values in np.broadcast_arrays(*columns)
        )
        return Pace(
            model=self.model.take(selection),
            rate_per_s=rate_per_s,
            trigger_s=trigger_s,
            factor=factor,
            state_rate_per_s=state_per_s,
        )

    @property
    def state_per_s(self) -> Numeric:
        """The rate whose state it has [records/s]."""
        return self.rate_per_s if self.state_rate_per_s is None else self.state_rate_per_s

    def with_axis(self) -> Pace:
        """The same for rows with one more axis, the last."""
        rate_per_s, trigger_s, factor = (
            values[..., np.newaxis]
            for values in np.broadcast_arrays(self.rate_per_s, self.trigger_s, self.factor)
        )
        model = self.model.over_axes(2)
        return Pace(model=model, rate_per_s=rate_per_s, trigger_s=trigger_s, factor=factor)


def start_after_outage(profile: JobProfile, size: Size, pace: Pace) -> StartAgain:
    """The start of the application after an outage, with the state of usual batches (Z2)."""
    num_slots, partitions = (np.asarray(count, dtype=np.float64) for count in size)
    start = start_again(
        profile,
        (num_slots, partitions),
        interval_s=pace.interval_s(pace.usual_rows),
        batch_rows=pace.usual_rows,
        rate_per_s=pace.state_per_s,
    )
    return NO_START if start is None else start.slowed(pace.factor)


def recovery_s(pace: Pace, outage_s: float, start: StartAgain = NO_START) -> Array:
    """Time from the end of an outage until batches are back to their usual size [s]: (Z2).

    Nothing was read for ``outage_s``, and there is no rate limit afterwards. The time is ``inf`` if
    the backlog is never processed.

    **(P8)** Recovery after an outage of length `τ`: the chain `n_0 = λ τ`,
    `n_(k+1) = λ max(B, fD(n_k))` until `n_k` is within a tenth of the settled rows; `catch_up`
    limits the sum of the intervals. If a start in a fresh JVM is on record, the application is
    taken to start again after the outage: `n_0 = λ (τ + a_J + a_S)`, the first batch is longer by
    `f (x + L)`, and `a_J + a_S` is added to the sum (Z2). With a rate limit `N`, full batches come
    first, `⌈(n_0-N)/(N-λ I)⌉` of them with `I = max(B, fD(N))`, until the rest fits into one batch.

    >>> pace = Pace(model=DurationModel(2.0, ()), rate_per_s=100.0, trigger_s=5.0)
    >>> float(recovery_s(pace, 60.0))
    5.0
    """
    rows = np.multiply(pace.rate_per_s, outage_s + start.before_s)
    return start.before_s + worked_off_s(pace, rows, start.longer_s)


def worked_off_s(pace: Pace, backlog_rows: Numeric, longer_s: Numeric = 0.0) -> Array:
    """Time from the start of a batch of a backlog until batches are back to their usual size [s].

    The first one takes ``longer_s`` more than its rows do: theory.md (P8).

    >>> pace = Pace(model=DurationModel(2.0, ()), rate_per_s=100.0, trigger_s=5.0)
    >>> float(worked_off_s(pace, 6000.0))
    5.0
    """
    rows, usual, longer = np.broadcast_arrays(backlog_rows, pace.usual_rows, longer_s)
    total_s = np.zeros(rows.shape)
    for _ in range(MOST_BATCHES_TO_RECOVER.value):
        behind = (rows > USUAL_BATCH_RATIO.value * usual) | (longer > 0.0)
        if not np.any(behind):
            break
        interval_s = pace.interval_s(rows, longer)
        total_s = np.where(behind, total_s + interval_s, total_s)
        # Over capacity it grows without end, but no further than can be counted.
        rows = np.where(behind, np.minimum(pace.rate_per_s * interval_s, MOST_LONG), rows)
        longer = np.zeros(rows.shape)
    return np.where(rows > USUAL_BATCH_RATIO.value * usual, np.inf, total_s)


def limited_recovery_s(
    pace: Pace, outage_s: float, limit_rows: float, start: StartAgain = NO_START
) -> float:
    """The same as :func:`recovery_s` of one setting if no batch takes more than ``limit_rows``.

    theory.md (P8): full batches until the rest fits into one, then the chain. ``inf`` if full
    batches take no more rows than arrive in the meantime. The rows that arrive while the first one
    takes longer are a part of the backlog.

    >>> pace = Pace(model=DurationModel(2.0, ()), rate_per_s=100.0, trigger_s=5.0)
    >>> limited_recovery_s(pace, 60.0, 1000.0)
    55.0
    """
    rate_per_s, full_s = float(pace.rate_per_s), float(pace.interval_s(limit_rows))
    less_rows = limit_rows - rate_per_s * full_s
    if less_rows <= 0:
        return float("inf")
    before_s, longer_s = float(start.before_s), float(start.longer_s)
    backlog_rows = rate_per_s * (outage_s + before_s)
    if backlog_rows > limit_rows:
        # A wait for the next trigger absorbs some of it.
        more_s = float(pace.interval_s(limit_rows, longer_s)) - full_s
        before_s, longer_s = before_s + more_s, 0.0
        backlog_rows += rate_per_s * more_s
    num_full = math.ceil(max(backlog_rows - limit_rows, 0.0) / less_rows)
    remaining_rows = backlog_rows - num_full * less_rows
    return before_s + num_full * full_s + float(worked_off_s(pace, remaining_rows, longer_s))


def burst_effect(pace: Pace, burst: Burst) -> tuple[Array, Array]:
    """The largest batch [rows] in a burst, and the recovery time after its end [s].

    Several settings have one more axis, the last (`Pace.with_axis`). The recovery is ``inf`` if the
    backlog is never processed.

    **(P17)** A burst with the rate `λ_b` for a time `τ`: the chain `n_(k+1) =` arrivals in
    `max(B, fD(n_k))`, starting at the settled batch of `λ`, with the start of the burst at each
    eighth of an interval. A burst longer than 200 batches is taken as lasting, and batches never
    exceed the settled one of `λ_b`. The largest batch `n^*` is the settled batch of a lasting rate
    `n^*/max(B, fD(n^*))`, and latency targets are compared with (T6) at that rate and `f`; `s` of
    (P2) is that of the largest batch without margin. Recovery is measured from the end of the burst
    to the first batch of usual size, by (P8); with repeated bursts, it must end before the next
    one. A rate limit must not be below `n^*`.

    >>> burst = Burst(rate_per_s=300.0, length_s=7.0)
    >>> pace = Pace(model=DurationModel(2.0, ()), rate_per_s=100.0, trigger_s=5.0)
    >>> most_rows, recovery_s = burst_effect(pace, burst)
    >>> float(most_rows), float(recovery_s)
    (1500.0, 9.25)
    """
    usual, interval_s = pace.usual_rows, pace.interval_s
    more_per_s = np.maximum(burst.rate_per_s - pace.rate_per_s, 0.0)

    def arrived(begin_s: Array, end_s: Array) -> Array:
        lasted_s = np.clip(end_s, 0.0, burst.length_s) - np.clip(begin_s, 0.0, burst.length_s)
        return pace.rate_per_s * (end_s - begin_s) + more_per_s * lasted_s

    first_s = interval_s(usual)
    start_s = first_s * (1.0 - _BEGINNINGS)
    rows = arrived(start_s - first_s, start_s)
    most_rows = np.maximum(rows, usual)
    for _ in range(MOST_BATCHES_TO_RECOVER.value):
        lasting = start_s < burst.length_s
        next_s = np.where(lasting, start_s + interval_s(rows), start_s)
        new_rows = np.where(lasting, arrived(start_s, next_s), rows)
        settled = bool(np.all(np.abs(new_rows - rows) <= _SETTLED_RATIO * rows))
        start_s, rows = next_s, new_rows
        most_rows = np.maximum(most_rows, rows)
        if settled:
            break
    lasting = start_s < burst.length_s
    if np.any(lasting):
        # Batches grow towards the settled one of the burst, and never exceed it.
        peak_rows = replace(pace, rate_per_s=burst.rate_per_s).usual_rows
        rows = np.where(lasting, np.maximum(rows, peak_rows), rows)
        start_s = np.where(lasting, burst.length_s + interval_s(rows), start_s)
        most_rows = np.maximum(most_rows, rows)
    after_s = start_s - burst.length_s + worked_off_s(pace, rows)
    return most_rows.max(axis=-1), after_s.max(axis=-1)
