"""What a query goes through when more arrives for a while."""

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
# Where in an interval the burst may begin, as shares of it: wherever that is worst.
_BEGINNINGS = np.arange(8.0) / 8.0


class Passage(NamedTuple):
    """A burst passed: the largest batch [rows], and how long after its end all is as usual [s]."""

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
        Mean duration by rows, of arrays with one axis more than those below, the last.
    rate_per_s, trigger_s, factor : float or (n,) array
        Arrivals otherwise [rows/s], trigger interval [s], multiplier of every duration [-].
    burst : Burst
        What comes.
    usual_rows : float or (n,) array
        Rows of a settled batch otherwise. [rows]

    Returns
    -------
    Passage
        Inputs broadcast; a recovery of ``inf`` where the backlog is not worked off.

    Notes
    -----
    **(P17)** A burst of rate `λ_b` for `τ`: the chain `n_(k+1) =`what arrives in `max(B, fD(n_k))`,
    from the settled batch of `λ` on, with the burst beginning at each eighth of an interval; one
    that lasts longer than 200 batches is taken as lasting, and batches never outgrow the settled
    one of `λ_b`. The largest batch `n^*` is what a lasting rate `n^*/max(B, fD(n^*))` settles at,
    and what is promised of latencies is held against (T6) at that rate and `f`; `s` of (P2) is that
    of the largest batch met without margin. Recovery is counted from the burst's end to the first
    batch of usual size, by (P8); bursts that repeat must have recovered before the next. A rate
    limit must let `n^*` pass.

    Each batch takes what came during the one before, wherever in an interval the burst begins. One
    that lasts longer than 200 batches is taken as lasting.

    Examples
    --------
    >>> burst = Burst(rate_per_s=300.0, length_s=7.0)
    >>> found = passage(DurationModel(2.0, ()), 100.0, 5.0, 1.0, burst, 500.0)
    >>> float(found.most_rows), float(found.recovery_s)
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
        # Batches grow towards the settled one of the burst, and never beyond.
        peak_rows = settled_batch_rows(model, burst.rate_per_s, trigger, factors)
        rows = np.where(lasting, np.maximum(rows, peak_rows), rows)
        start_s = np.where(lasting, burst.length_s + interval_s(rows), start_s)
        most_rows = np.maximum(most_rows, rows)
    after_s = start_s - burst.length_s + worked_off_s(model, rate, trigger, factors, rows, usual)
    return Passage(most_rows.max(axis=-1), after_s.max(axis=-1))
