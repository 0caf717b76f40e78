"""Many runs of a micro-batch query at once, in step: the fast sibling of `simulate_microbatch`."""

from __future__ import annotations

import math

import numpy as np

from headway.models.arrays import Array
from headway.models.batches.microbatch import AffineDuration
from tests.oracles.microbatch import MicrobatchTrace

_ROUNDING = 1e-9  # a start that stands on the grid may fall a rounding error short of it


def simulate_microbatch_runs(
    duration: AffineDuration,
    rate_per_s: float,
    trigger_s: float,
    *,
    num_runs: int,
    num_batches: int,
    seed: int,
    num_warmup_batches: int = 50,
    dispersion: float = 1.0,
    autocorrelation: float = 0.0,
) -> MicrobatchTrace:
    r"""Simulate independent runs of a query whose batches read all that has arrived.

    Parameters
    ----------
    duration : AffineDuration
        Duration of a batch given its rows; all fields scalar.
    rate_per_s : float, > 0
        Input rate. [rows/s]
    trigger_s : float, >= 0
        Trigger interval; 0 starts the next batch at once. [s]
    num_runs : int, >= 1
        Runs, simulated in step: a batch of all of them costs little more than one of one. [-]
    num_batches : int, >= 1
        Batches to record of each run. [-]
    seed : int
        Seed of the generator.
    num_warmup_batches : int, >= 0
        Batches to simulate before, of each run. [-]
    dispersion : float, >= 0
        Variance over mean of row counts, as multiples of Poisson counts; 0 is an even flow. [-]
    autocorrelation : float, -1 < phi < 1
        Correlation of the normal scores of successive durations, of all of the noise. Without it
        the share of the noise that lasts is that of ``duration``. [-]

    Returns
    -------
    MicrobatchTrace
        Of all recorded batches, run after run; nothing is ever left over.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (S2). The rules are those of `simulate_microbatch`, but for a cap on rows, an
    initial backlog, and triggers that find no rows: here they run an empty batch.

    Examples
    --------
    >>> trace = simulate_microbatch_runs(
    ...     AffineDuration(2.0, 3e-4), 1500.0, 8.0,
    ...     num_runs=3, num_batches=10, seed=1, dispersion=0.0,
    ... )
    >>> len(trace.duration_s), trace.latency_mean_s()
    (30, 9.600)
    """
    if not (0.0 < rate_per_s < math.inf and trigger_s >= 0.0 and dispersion >= 0.0):
        raise ValueError("need rate_per_s > 0, trigger_s >= 0 and dispersion >= 0")
    if num_runs < 1 or num_batches < 1 or num_warmup_batches < 0:
        raise ValueError("need num_runs >= 1, num_batches >= 1 and num_warmup_batches >= 0")
    if not abs(autocorrelation) < 1.0:
        raise ValueError("autocorrelation must lie between -1 and 1")
    random = np.random.default_rng(seed)
    num_steps = num_warmup_batches + num_batches
    starts, durations, rows = (np.empty((num_steps + 1, num_runs)) for _ in range(3))
    starts[0] = -(trigger_s or float(duration.fixed_s))
    start, level = np.zeros(num_runs), random.standard_normal(num_runs)
    share, left = float(duration.lasting_share), float(duration.persistence_ratio)
    if autocorrelation:
        share, left = 1.0, autocorrelation
    renewal = math.sqrt(1.0 - left**2)
    for step in range(1, num_steps + 1):
        expected = rate_per_s * (start - starts[step - 1])
        rows[step] = dispersion * random.poisson(expected / dispersion) if dispersion else expected
        level = left * level + renewal * random.standard_normal(num_runs)
        fresh = random.standard_normal(num_runs)
        score = math.sqrt(share) * level + math.sqrt(1.0 - share) * fresh
        durations[step] = _durations_s(duration, rows[step], score)
        starts[step] = start
        start = _next_starts_s(start, durations[step], trigger_s)
    recorded = slice(num_warmup_batches + 1, None)
    interval = np.diff(starts, axis=0)[num_warmup_batches:]
    commit = starts[recorded] + durations[recorded] - float(duration.after_commit_s)

    def flat(values: Array) -> Array:
        return np.ascontiguousarray(values.T).ravel()

    return MicrobatchTrace(
        start_s=flat(starts[recorded]),
        interval_s=flat(interval),
        duration_s=flat(durations[recorded]),
        num_rows=flat(rows[recorded]),
        num_backlog_rows=np.zeros(num_runs * num_batches),
        latency_low_s=flat(commit - starts[recorded]),
        latency_high_s=flat(commit - starts[recorded] + interval),
        latency_num_rows=flat(rows[recorded]),
    )


def _durations_s(duration: AffineDuration, num_rows: Array, score: Array) -> Array:
    """Lognormal, with the mean and variance that the law gives for a row count."""
    mean = float(duration.fixed_s) + float(duration.per_row_s) * num_rows
    variance = (float(duration.relative_noise) * mean) ** 2 + float(duration.additive_sd_s) ** 2
    log_variance = np.log1p(variance / (mean * mean))
    return np.asarray(mean * np.exp(np.sqrt(log_variance) * score - 0.5 * log_variance))


def _next_starts_s(start: Array, duration_s: Array, trigger_s: float) -> Array:
    """Spark's rule: the grid point after the start, or at once if the batch ended later."""
    end = start + duration_s
    if trigger_s == 0.0:
        return np.asarray(end)
    grid = trigger_s * (np.floor(start / trigger_s + _ROUNDING) + 1.0)
    return np.maximum(end, grid)
