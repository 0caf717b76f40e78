"""Behaviour of a query during a burst."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.assumptions.planning import MOST_BATCHES_TO_RECOVER
from headway.domain import Burst
from headway.models.arrays import Array, Numeric
from headway.models.job.duration import DurationModel
from headway.models.job.setting import settled_batch_rows
from headway.planner.recovery import worked_off_s

_SETTLED_RATIO = 1e-4
# Start of the burst in an interval, as shares of it; the worst one counts.
_BEGINNINGS = np.arange(8.0) / 8.0


class Passage(NamedTuple):
    """Result of a burst: the largest batch [rows], and the recovery time after its end [s]."""

    most_rows: Array
    recovery_s: Array


def passage(
    model: DurationModel,
    rate_per_s: Numeric,
    trigger_s: Numeric,
    factor: Numeric,
    burst: Burst,
    usual_rows: Numeric,
) -> Passage:
    """The chain of batches through a burst and after it.

    Parameters
    ----------
    model : DurationModel
        Mean duration by rows, for arrays with one more axis, the last, than those below.
    rate_per_s, trigger_s, factor : float or (n,) array
        Usual arrivals [rows/s], trigger interval [s], multiplier of every duration [-].
    burst : Burst
        The burst.
    usual_rows : float or (n,) array
        Rows of a settled batch without the burst. [rows]

    Returns
    -------
    Passage
        Inputs broadcast; the recovery is ``inf`` if the backlog is never processed.

    Notes
    -----
    **(P17)** A burst with the rate `λ_b` for a time `τ`: the chain `n_(k+1) =` arrivals in
    `max(B, fD(n_k))`, starting at the settled batch of `λ`, with the start of the burst at each
    eighth of an interval. A burst longer than 200 batches is taken as lasting, and batches never
    exceed the settled one of `λ_b`. The largest batch `n^*` is the settled batch of a lasting rate
    `n^*/max(B, fD(n^*))`, and latency targets are compared with (T6) at that rate and `f`; `s` of
    (P2) is that of the largest batch without margin. Recovery is measured from the end of the burst
    to the first batch of usual size, by (P8); with repeated bursts, it must end before the next
    one. A rate limit must not be below `n^*`.

    Examples
    --------
    >>> burst = Burst(rate_per_s=300.0, length_s=7.0)
    >>> passed = passage(DurationModel(2.0, ()), 100.0, 5.0, 1.0, burst, 500.0)
    >>> float(passed.most_rows), float(passed.recovery_s)
    (1500.0, 9.25)
    """
    rate, trigger, factors, usual = (
        np.asarray(value, dtype=np.float64)[..., np.newaxis]
        for value in np.broadcast_arrays(rate_per_s, trigger_s, factor, usual_rows)
    )
    more_per_s = np.maximum(burst.rate_per_s - rate, 0.0)

    def interval_s(rows: Array) -> Array:
        return np.maximum(trigger, factors * model.mean_s(rows))

    def arrived(begin_s: Array, end_s: Array) -> Array:
        lasted_s = np.clip(end_s, 0.0, burst.length_s) - np.clip(begin_s, 0.0, burst.length_s)
        return rate * (end_s - begin_s) + more_per_s * lasted_s

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
        peak_rows = settled_batch_rows(model, burst.rate_per_s, trigger, factors)
        rows = np.where(lasting, np.maximum(rows, peak_rows), rows)
        start_s = np.where(lasting, burst.length_s + interval_s(rows), start_s)
        most_rows = np.maximum(most_rows, rows)
    after_s = start_s - burst.length_s + worked_off_s(model, rate, trigger, factors, rows, usual)
    return Passage(most_rows.max(axis=-1), after_s.max(axis=-1))
