"""Rate limits: whether a query keeps up, what waits behind the cap, the way back from an outage."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.batches.microbatch import BoolArray
from headway.models.batches.trigger_planning import smallest_useful_trigger_s
from headway.models.queues.queue_increments import Increment
from headway.models.queues.random_walk import shifted_gamma_wait


class Backlog(NamedTuple):
    """Rows that a full batch leaves behind, in steady state; inf where the query falls behind."""

    mean_rows: Array
    sd_rows: Array
    probability: Array
    """That anything is left behind. [-]"""
    mean_delay_s: Array
    """Mean additional latency of a row. [s]"""


class Recovery(NamedTuple):
    """The way back to the trigger grid after an outage; both inf if there is none."""

    num_batches: float
    time_s: float


def rate_limited_is_stable(
    rate_per_s: Numeric,
    max_rows_per_trigger: Numeric,
    trigger_s: Numeric,
    fixed_s: Numeric,
    per_row_s: Numeric,
) -> BoolArray:
    r"""Whether a query with a cap on rows per batch keeps up with its input.

    Parameters
    ----------
    rate_per_s : float or (n,) array, >= 0
        Input rate. [rows/s]
    max_rows_per_trigger : float or (n,) array, > 0
        Cap on rows per batch. [-]
    trigger_s : float or (n,) array, >= 0
        Trigger interval. [s]
    fixed_s : float or (n,) array, > 0
        Duration of a batch without rows. [s]
    per_row_s : float or (n,) array, >= 0
        Additional time per row. [s/row]

    Returns
    -------
    bool array
        Inputs broadcast.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (B12).

    Examples
    --------
    >>> bool(rate_limited_is_stable(1000.0, 9999.0, 10.0, 1.0, 1e-4))
    False
    """
    rate = np.asarray(rate_per_s, dtype=np.float64)
    cap = np.asarray(max_rows_per_trigger, dtype=np.float64)
    full_interval = _full_batch_interval_s(cap, trigger_s, fixed_s, per_row_s)
    if not np.all(rate >= 0.0):
        raise ValueError("rate_per_s must not be negative")
    return np.asarray(rate * full_interval < cap)


def recovery_uncapped(
    fixed_s: float, inflation_ratio: float, trigger_s: float, outage_s: float
) -> Recovery:
    r"""Batches and time until a query without a cap on rows is back on its trigger grid.

    Parameters
    ----------
    fixed_s : float, > 0
        Duration of a batch without rows. [s]
    inflation_ratio : float, >= 0
        Seconds of work that one second of input brings. [-]
    trigger_s : float, >= 0
        Trigger interval. [s]
    outage_s : float, >= 0
        For how long input has piled up when the first batch starts. [s]

    Returns
    -------
    Recovery
        ``inf`` in both if undisturbed batches do not fit into the trigger interval.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (B13), without noise. The first batch holds the whole outage: look at memory.

    Examples
    --------
    >>> recovery_uncapped(2.0, 0.6, 10.0, 300.0)
    Recovery(num_batches=8.0, time_s=475.068)
    """
    settled = float(smallest_useful_trigger_s(fixed_s, inflation_ratio))
    if not (trigger_s >= 0.0 and outage_s >= 0.0):
        raise ValueError("trigger_s and outage_s must not be negative")
    if settled >= trigger_s:
        return Recovery(float("inf"), float("inf"))
    if outage_s <= trigger_s:
        return Recovery(0.0, 0.0)
    if inflation_ratio == 0.0:
        return Recovery(1.0, settled)
    remaining = (trigger_s - settled) / (outage_s - settled)
    num_batches = float(np.ceil(np.log(remaining) / np.log(inflation_ratio)))
    decay = inflation_ratio * (1.0 - inflation_ratio**num_batches) / (1.0 - inflation_ratio)
    return Recovery(num_batches, num_batches * settled + (outage_s - settled) * decay)


def recovery_capped_s(
    rate_per_s: Numeric,
    max_rows_per_trigger: Numeric,
    trigger_s: Numeric,
    fixed_s: Numeric,
    per_row_s: Numeric,
    outage_s: Numeric,
) -> Array:
    r"""Time until a query with a cap on rows per batch has worked off an outage.

    Parameters
    ----------
    rate_per_s : float or (n,) array, >= 0
        Input rate. [rows/s]
    max_rows_per_trigger : float or (n,) array, > 0
        Cap on rows per batch. [-]
    trigger_s : float or (n,) array, >= 0
        Trigger interval. [s]
    fixed_s : float or (n,) array, > 0
        Duration of a batch without rows. [s]
    per_row_s : float or (n,) array, >= 0
        Additional time per row. [s/row]
    outage_s : float or (n,) array, >= 0
        For how long input has piled up. [s]

    Returns
    -------
    array
        Inputs broadcast [s]; ``inf`` where the query cannot keep up.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (B14). Counts the last, partly filled batch as full: some percent too long.

    Examples
    --------
    >>> float(recovery_capped_s(1000.0, 15000.0, 10.0, 2.0, 6e-4, 300.0))
    825.0
    """
    rate = np.asarray(rate_per_s, dtype=np.float64)
    cap = np.asarray(max_rows_per_trigger, dtype=np.float64)
    outage = np.asarray(outage_s, dtype=np.float64)
    if not np.all(outage >= 0.0):
        raise ValueError("outage_s must not be negative")
    stable = rate_limited_is_stable(rate, cap, trigger_s, fixed_s, per_row_s)
    spare = cap / _full_batch_interval_s(cap, trigger_s, fixed_s, per_row_s) - rate
    return np.where(stable, rate * outage / np.where(stable, spare, 1.0), np.inf)


def rate_limited_backlog(
    rate_per_s: Numeric,
    max_rows_per_trigger: Numeric,
    trigger_s: Numeric,
    dispersion: Numeric = 1.0,
) -> Backlog:
    r"""Rows that wait behind a cap on rows per batch, for batches that end in time.

    Parameters
    ----------
    rate_per_s : float or (n,) array, > 0
        Input rate. [rows/s]
    max_rows_per_trigger : float or (n,) array, > 0
        Cap on rows per batch. [-]
    trigger_s : float or (n,) array, > 0
        Trigger interval, which batches of that many rows keep. [s]
    dispersion : float or (n,) array, > 0
        Variance over mean of the number of rows in an interval; 1 is Poisson. [-]

    Returns
    -------
    Backlog
        Inputs broadcast; ``inf`` where an interval brings as many rows as a batch may take.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (B16). The backlog after a batch is the wait in a queue whose increment is the rows
    of an interval less the cap. Against simulation: mean and
    standard deviation within 1 %, probability up to 7 % high.

    Examples
    --------
    >>> backlog = rate_limited_backlog(950.0, 10_000.0, 10.0, 50.0)
    >>> float(backlog.mean_rows), float(backlog.mean_delay_s)
    (188.4, 0.1983)
    """
    rate, cap, trigger, scatter = np.broadcast_arrays(
        *(
            np.asarray(value, dtype=np.float64)
            for value in (rate_per_s, max_rows_per_trigger, trigger_s, dispersion)
        )
    )
    if not all(np.all(values > 0.0) for values in (rate, cap, trigger, scatter)):
        raise ValueError("need rate_per_s, max_rows_per_trigger, trigger_s and dispersion > 0")
    arrived = rate * trigger
    # Multiples of a Poisson count: the third central moment is the dispersion squared, times it.
    backlog = shifted_gamma_wait(Increment(arrived - cap, scatter * arrived, scatter**2 * arrived))
    return Backlog(
        backlog.mean_s,
        np.sqrt(backlog.variance_s2),
        backlog.wait_prob,
        backlog.mean_s / rate,
    )


def _full_batch_interval_s(
    cap: Array, trigger_s: Numeric, fixed_s: Numeric, per_row_s: Numeric
) -> Array:
    trigger = np.asarray(trigger_s, dtype=np.float64)
    fixed = np.asarray(fixed_s, dtype=np.float64)
    per_row = np.asarray(per_row_s, dtype=np.float64)
    if not (np.all(cap > 0.0) and np.all(trigger >= 0.0)):
        raise ValueError("need max_rows_per_trigger > 0 and trigger_s >= 0")
    if not (np.all(fixed > 0.0) and np.all(per_row >= 0.0)):
        raise ValueError("need fixed_s > 0 and per_row_s >= 0")
    return np.maximum(trigger, fixed + per_row * cap)
