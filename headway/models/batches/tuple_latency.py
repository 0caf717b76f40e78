"""Latency of a row in a micro-batch query, from its arrival to the commit of its batch."""

from __future__ import annotations

import numpy as np

from headway.models.arrays import Array, Numeric, open_probability
from headway.models.batches.latency_law import LatencyLaw
from headway.models.batches.microbatch import SteadyState
from headway.models.laws.uniform_mixture import uniform_mixture_quantile


def tuple_latency_mean(state: SteadyState) -> Array:
    r"""Mean latency of a row; ``inf`` where unstable. [s]

    Parameters
    ----------
    state : SteadyState

    Notes
    -----
    **(B5)** Mean latency. A row arrives in an interval with a probability in proportion to the
    interval's length: `E[L] = E[T^2]/(2 E[T]) + E[D'T]/E[T] = (1/2+r) E[T^2]/E[T] + a + b φ -
    after_commit_s`.

    Examples
    --------
    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(2.0, 3e-4, 0.1), 1500.0, 8.0, dispersion=0.0)
    >>> float(tuple_latency_mean(state))
    9.6000
    """
    stable = state.is_stable
    mean = np.where(stable, state.mean_interval_s, 1.0)
    collected = np.where(stable, state.mean_square_interval_s2, 1.0) / mean
    to_batch_end = collected * (0.5 + state.offered_load_ratio) + state.fixed_s + state.burst_s
    return np.where(stable, to_batch_end - state.after_commit_s, np.inf)


def tuple_latency_cdf(state: SteadyState, x_s: Numeric) -> Array:
    r"""Probability that a row's latency is at most ``x_s``; 0 where unstable. [-]

    Parameters
    ----------
    state : SteadyState
    x_s : float or array
        Broadcasts against the settings.

    Notes
    -----
    **(B6)** Distribution of the latency: `P(L ≤ x) = E[G_T(x)-G_T(x-T)]/E[T]`, where `G_T` is (D3)
    for the duration of the batch that an interval `T` collects. The expectation consists of an atom
    at `T = B`, and 24 Gauss-Legendre nodes in the normal score of `D` beyond `B`, up to 5.5 (p99
    within 0.5% of that with 200 nodes, 0.01% in the mean over settings). `after_commit_s` shifts
    the distribution. A quantile is found by Newton's rule on `ln P(L > x)`, whose slope is computed
    with its value.

    Examples
    --------
    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(2.0, 3e-4, 0.1), 1500.0, 8.0, dispersion=0.0)
    >>> float(tuple_latency_cdf(state, 14.0167))
    0.990
    """
    return LatencyLaw(state).cdf(np.asarray(x_s, dtype=np.float64))


def tuple_latency_quantile(state: SteadyState, q: Numeric) -> Array:
    r"""Quantile of a row's latency; ``inf`` where unstable. [s]

    Parameters
    ----------
    state : SteadyState
    q : float or array, 0 < q < 1
        Broadcasts against the settings.

    Notes
    -----
    theory.md (B6), inverted by Newton's rule. If only a limit has to be met, compare
    `tuple_latency_cdf` at the limit with ``q``: one evaluation instead of about five.

    Examples
    --------
    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(2.0, 3e-4, 0.1), 1500.0, 8.0, dispersion=0.0)
    >>> tuple_latency_quantile(state, np.array([0.95, 0.99]))
    array([13.2986, 14.0167])
    """
    return LatencyLaw(state).quantile(open_probability(q))


def empirical_latency_quantile(q: Numeric, intervals_s: Array, durations_s: Array) -> Array:
    r"""Quantile of row latency, from the batches of a running query. [s]

    Parameters
    ----------
    q : float or (n,) array, 0 to 1
    intervals_s : (k,) array, >= 0
        For each batch, the time over which its rows arrived. [s]
    durations_s : (k,) array, >= 0
        For each batch, the time from its start to its commit. [s]

    Notes
    -----
    **(B7)** Latency from the batches of a running query:
    `P(L ≤ x) = Σ_k clip(x-D'_k, 0, T_k)/Σ_k T_k`, a mixture (D5) on `[D'_k, D'_k+T_k]` with weights
    `T_k`. Exact for rows that arrive evenly within an interval.

    Examples
    --------
    >>> float(empirical_latency_quantile(0.8, np.array([10.0]), np.array([4.0])))
    12.0
    """
    intervals, durations = _checked_trace(intervals_s, durations_s)
    return uniform_mixture_quantile(q, durations, durations + intervals, intervals)


def empirical_latency_mean(intervals_s: Array, durations_s: Array) -> float:
    r"""Mean latency over rows, not over batches, from the batches of a running query (B7). [s]

    Parameters
    ----------
    intervals_s, durations_s : (k,) arrays, >= 0
        As in `empirical_latency_quantile`.

    Examples
    --------
    >>> empirical_latency_mean(np.array([10.0, 30.0]), np.array([4.0, 8.0]))
    19.5
    """
    intervals, durations = _checked_trace(intervals_s, durations_s)
    return float(intervals @ (0.5 * intervals + durations) / intervals.sum())


def _checked_trace(intervals_s: Array, durations_s: Array) -> tuple[Array, Array]:
    intervals = np.asarray(intervals_s, dtype=np.float64)
    durations = np.asarray(durations_s, dtype=np.float64)
    if not (intervals.ndim == 1 and intervals.size and intervals.shape == durations.shape):
        raise ValueError("intervals_s and durations_s must be 1-D, of one length, and not empty")
    if not (np.all(intervals >= 0.0) and intervals.sum() > 0.0 and np.all(durations >= 0.0)):
        raise ValueError("intervals_s and durations_s must not be negative, nor all intervals 0")
    return intervals, durations
