"""Time that a query needs to process the backlog of an outage."""

from __future__ import annotations

import math

import numpy as np

from headway.assumptions.planning import MOST_BATCHES_TO_RECOVER, USUAL_BATCH_RATIO
from headway.models.arrays import Array, Numeric
from headway.models.job.duration import DurationModel


def recovery_s(
    model: DurationModel,
    rate_per_s: Numeric,
    trigger_s: Numeric,
    factor: Numeric,
    outage_s: float,
    usual_rows: Numeric,
) -> Array:
    """Time from the end of an outage until batches are back to their usual size.

    Parameters
    ----------
    model : DurationModel
        Mean duration by rows.
    rate_per_s, trigger_s, factor : float or (n,) array
        Arrivals [rows/s], trigger interval [s], multiplier of every duration [-].
    outage_s : float, > 0
        How long nothing was read; there is no rate limit afterwards. [s]
    usual_rows : float or (n,) array
        Rows of a settled batch. [rows]

    Returns
    -------
    array
        Inputs broadcast; ``inf`` if the backlog is never processed. [s]

    Notes
    -----
    **(P8)** Recovery after an outage of length `τ`: the chain `n_0 = λ τ`,
    `n_(k+1) = λ max(B, fD(n_k))` until `n_k` is within a tenth of the settled rows; `catch_up`
    limits the sum of the intervals. With a rate limit `N`, full batches come first,
    `⌈(n_0-N)/(N-λ I)⌉` of them with `I = max(B, fD(N))`, until the rest fits into one batch.

    Examples
    --------
    >>> float(recovery_s(DurationModel(2.0, ()), 100.0, 5.0, 1.0, 60.0, 500.0))
    5.0
    """
    rows = np.asarray(rate_per_s, dtype=np.float64) * outage_s
    return worked_off_s(model, rate_per_s, trigger_s, factor, rows, usual_rows)


def worked_off_s(
    model: DurationModel,
    rate_per_s: Numeric,
    trigger_s: Numeric,
    factor: Numeric,
    backlog_rows: Numeric,
    usual_rows: Numeric,
) -> Array:
    """Time from the start of a batch of a backlog until batches are back to their usual size [s].

    Notes
    -----
    theory.md (P8).

    Examples
    --------
    >>> float(worked_off_s(DurationModel(2.0, ()), 100.0, 5.0, 1.0, 6000.0, 500.0))
    5.0
    """
    rate, trigger, factors, rows, usual = np.broadcast_arrays(
        *(
            np.asarray(value, dtype=np.float64)
            for value in (rate_per_s, trigger_s, factor, backlog_rows, usual_rows)
        )
    )
    total_s = np.zeros_like(rows)
    for _ in range(MOST_BATCHES_TO_RECOVER.value):
        behind = rows > USUAL_BATCH_RATIO.value * usual
        if not np.any(behind):
            break
        interval_s = np.maximum(trigger, factors * model.mean_s(rows))
        total_s = np.where(behind, total_s + interval_s, total_s)
        rows = np.where(behind, rate * interval_s, rows)
    return np.where(rows > USUAL_BATCH_RATIO.value * usual, np.inf, total_s)


def limited_recovery_s(
    model: DurationModel,
    rate_per_s: float,
    trigger_s: float,
    factor: float,
    outage_s: float,
    usual_rows: float,
    limit_rows: float,
) -> float:
    """The same as :func:`recovery_s` if no batch takes more than ``limit_rows``.

    Notes
    -----
    theory.md (P8): full batches until the rest fits into one, then the chain. ``inf`` if full
    batches take no more rows than arrive in the meantime.

    Examples
    --------
    >>> limited_recovery_s(DurationModel(2.0, ()), 100.0, 5.0, 1.0, 60.0, 500.0, 1000.0)
    55.0
    """
    full_s = max(trigger_s, factor * float(model.mean_s(limit_rows)))
    less_rows = limit_rows - rate_per_s * full_s
    if less_rows <= 0:
        return float("inf")
    backlog_rows = rate_per_s * outage_s
    num_full = math.ceil(max(backlog_rows - limit_rows, 0.0) / less_rows)
    remaining_rows = backlog_rows - num_full * less_rows
    return num_full * full_s + float(
        worked_off_s(model, rate_per_s, trigger_s, factor, remaining_rows, usual_rows)
    )
