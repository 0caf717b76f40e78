"""When the row arrives that closes a window: the sweeping watermark, on Spark and in Klink."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import trapezoid

from headway.models.arrays import Array, Numeric
from headway.models.laws.normal import ndtr

_GRID_CELLS = 2000
_NEGLIGIBLE_EXPONENT = 40.0


def closing_delay_exceedance(delay_s: Numeric, rate_per_s: float, row_delays_s: Array) -> Array:
    r"""Probability that no row late enough to close a window has come yet.

    Parameters
    ----------
    delay_s : float or (n,) array, >= 0
        Time since the window's end plus the watermark delay. [s]
    rate_per_s : float, > 0
        Rows per second. [rows/s]
    row_delays_s : (m,) array, >= 0
        Delays of rows from event time to arrival, equally likely. [s]

    Returns
    -------
    float or (n,) array
        Probability. [-]

    Notes
    -----
    theory.md (G4). On Spark no watermark travels: a window that ends at e closes with the first row
    of an event time of at least e + W, where W is the watermark delay. Rows of rate r and delay law
    F make that a Poisson process: `P(δ > x) = exp(-r ∫_0^x F(u) du)`. The fastest row
    counts, where Klink (SIGMOD 2021) takes the mean delay.

    Examples
    --------
    Delays uniform on (0, 1): `exp(-r x^2/2)`.

    >>> uniform = (np.arange(1000) + 0.5) / 1000
    >>> round(float(closing_delay_exceedance(0.1, 100.0, uniform)), 4)
    0.6065
    """
    delays = np.sort(np.asarray(row_delays_s, dtype=np.float64))
    if not (rate_per_s > 0.0 and len(delays) and delays[0] >= 0.0):
        raise ValueError("need rate_per_s > 0 and delays of at least 0")
    sums = np.concatenate(([0.0], np.cumsum(delays)))
    x = np.asarray(delay_s, dtype=np.float64)
    num_below = np.searchsorted(delays, x, side="right")
    # The integral of the distribution function is the mean of (x - delay)+.
    expected_rows = rate_per_s * (num_below * x - sums[num_below]) / len(delays)
    return np.exp(-expected_rows)


def closing_delay_mean_s(rate_per_s: float, row_delays_s: Array, *, waited_s: float = 0.0) -> float:
    r"""Mean further wait for the row that closes a window.

    Parameters
    ----------
    rate_per_s : float, > 0
        Rows per second. [rows/s]
    row_delays_s : (m,) array, >= 0
        Delays of rows, equally likely. [s]
    waited_s : float, >= 0
        Time that has passed without it, since the window's end plus the watermark delay. [s]

    Returns
    -------
    float
        Mean further wait. [s]

    Notes
    -----
    **(G4)** The row that closes a window that ends at `e` is the first with an event time of
    `e + W` or later: `w = e + W + δ`, `P(δ > x) = exp(-r∫_0^x F)` for `r` rows/s of delay law `F`.
    The fastest row counts, not the mean delay. Uniform delays on `(0, 1)`: `e^(-rx^2/2)`, mean
    `sqrt(π/2r)`. Several inputs: `1 - Π_j(1-P_j)`. Exact for Poisson rows.

    The integral of `closing_delay_exceedance` from ``waited_s`` on, over its value there. Klink
    (SIGMOD 2021) has a normal law in its place.

    Examples
    --------
    >>> uniform = (np.arange(4000) + 0.5) / 4000
    >>> round(closing_delay_mean_s(100.0, uniform), 4)
    0.1253
    >>> round(closing_delay_mean_s(100.0, uniform, waited_s=0.3), 4)
    0.0305
    """
    return _residual_s([(rate_per_s, row_delays_s)], waited_s)


def join_closing_delay_mean_s(inputs: list[tuple[float, Array]], *, waited_s: float = 0.0) -> float:
    r"""Mean further wait of a join for the last of its inputs to close a window.

    Parameters
    ----------
    inputs : list of (rate_per_s, row_delays_s)
        Each input's rows per second and delays of rows. [rows/s, s]
    waited_s : float, >= 0
        Time that has passed since the window's end plus the watermark delay. [s]

    Returns
    -------
    float
        Mean further wait. [s]

    Notes
    -----
    theory.md (G4): `P(max > x) = 1 - Π(1-P_j(x))`. Spark's watermark of several inputs is the
    least of them; Klink (SIGMOD 2021, 3.3) takes the least slack, which is too early.

    Examples
    --------
    >>> uniform = (np.arange(4000) + 0.5) / 4000
    >>> round(join_closing_delay_mean_s([(100.0, uniform), (10.0, uniform)]), 3)
    0.402
    """
    return _residual_s(inputs, waited_s)


def _residual_s(inputs: list[tuple[float, Array]], waited_s: float) -> float:
    longest_s = max(
        # Beyond the largest delay rows come at their rate.
        float(np.max(delays)) + _NEGLIGIBLE_EXPONENT / rate
        for rate, delays in inputs
    )
    # Small steps first, where the law is steep.
    x = waited_s + longest_s * np.linspace(0.0, 1.0, _GRID_CELLS + 1) ** 2
    not_closed = np.ones(len(x))
    for rate, delays in inputs:
        not_closed *= 1.0 - closing_delay_exceedance(x, rate, delays)
    exceedance = 1.0 - not_closed
    if exceedance[0] <= 0.0:
        return 0.0
    return float(trapezoid(exceedance, x) / exceedance[0])


def klink_slack_s(now_s: Numeric, mean_s: Numeric, sd_s: Numeric, cost_s: Numeric) -> Array:
    r"""Expected slack of a query whose next watermark comes at a normal time.

    Parameters
    ----------
    now_s : float or array
        The time of the decision. [s]
    mean_s : float or array
        Mean time at which the watermark comes. [s]
    sd_s : float or array, > 0
        Its standard deviation. [s]
    cost_s : float or array, >= 0
        Time to bring the query's queue to its sink. [s]

    Returns
    -------
    float or array
        Slack, given that it has not come yet; more than ``-cost_s``. [s]

    Notes
    -----
    **(G5)** Klink (SIGMOD 2021): a watermark at a normal time, not come yet at `t`, `α = (t-μ)/s`:
    slack `μ - t + s φ(α)/(1-Φ(α)) - c`, miss probability `(Φ(α+c/s)-Φ(α))/Φ(-α)`. Exact. As
    printed, a sum of step `r` over `μ±2s`, it loses 4.6% of the mass, is biased by `r/2`, and
    gives 0 beyond `μ + 2s`. The law of the next watermark has the predictive variance
    `s_d^2(1+1/(hm))`. Bounded Zipf delays: suffix sums; what is left grows with the age.

    Closed form of Klink's Algorithm 1 (SIGMOD 2021): with `α = (t-μ)/s`,
    `μ - t + s φ(α)/(1-Φ(α)) - c`.

    Examples
    --------
    >>> klink_slack_s(np.array([0.0, 900.0, 950.0, 1000.0]), 1000.0, 50.0, 200.0).round(2).tolist()
    [800.0, -97.24, -135.62, -160.11]
    """
    score = (np.asarray(now_s, dtype=np.float64) - mean_s) / sd_s
    return np.asarray(sd_s * _mills_excess(score) - cost_s)


def klink_slack_as_published_s(
    now_s: float, mean_s: float, sd_s: float, cost_s: float, step_s: float
) -> float:
    r"""Slack by the sum that Klink prints, with its lost mass and its right end points.

    Parameters
    ----------
    now_s : float
        The time of the decision. [s]
    mean_s : float
        Mean time at which the watermark comes. [s]
    sd_s : float, > 0
        Its standard deviation. [s]
    cost_s : float, >= 0
        Time to bring the query's queue to its sink. [s]
    step_s : float, > 0
        Time between two decisions. [s]

    Returns
    -------
    float
        Slack; 0 where the time is past the range of the sum. [s]

    Notes
    -----
    theory.md (G5); Klink (SIGMOD 2021), Algorithm 1, with the inverted condition of equation 9 put
    right.

    Examples
    --------
    >>> [round(klink_slack_as_published_s(t, 1000.0, 50.0, 200.0, 10.0), 1) for t in (0.0, 900.0)]
    [776.4, -92.7]
    """
    slack_s = 0.0
    x = max(now_s, mean_s - 2.0 * sd_s)
    left = 1.0 - float(ndtr(np.asarray((now_s - mean_s) / sd_s)))
    while x <= mean_s + 2.0 * sd_s and left > 0.0:
        to = (x + step_s - mean_s) / sd_s
        inside = float(ndtr(np.asarray(to)) - ndtr(np.asarray((x - mean_s) / sd_s)))
        slack_s += inside / left * (x + step_s - now_s - cost_s)
        x += step_s
    return slack_s


def miss_probability(now_s: Numeric, mean_s: Numeric, sd_s: Numeric, cost_s: Numeric) -> Array:
    r"""Probability that the watermark comes before the queue is worked off.

    Parameters
    ----------
    now_s : float or array
        The time of the decision. [s]
    mean_s : float or array
        Mean time at which the watermark comes. [s]
    sd_s : float or array, > 0
        Its standard deviation. [s]
    cost_s : float or array, >= 0
        Time to bring the query's queue to its sink. [s]

    Returns
    -------
    float or array
        Probability, given that it has not come yet. [-]

    Notes
    -----
    theory.md (G5): `(Φ(α+c/s)-Φ(α))/Φ(-α)`; Klink (SIGMOD 2021).

    Examples
    --------
    >>> round(float(miss_probability(900.0, 1000.0, 50.0, 100.0)), 4)
    0.4884
    """
    score = (np.asarray(now_s, dtype=np.float64) - mean_s) / sd_s
    left = np.maximum(ndtr(-score), 1e-300)
    return np.asarray(1.0 - np.minimum(ndtr(-score - cost_s / np.asarray(sd_s)) / left, 1.0))


def watermark_law(
    generated_s: float, period_s: float, delays_s: Array, events_per_epoch: int
) -> tuple[float, float]:
    r"""Mean and standard deviation of the time at which the next watermark comes.

    Parameters
    ----------
    generated_s : float
        When the last one was generated. [s]
    period_s : float, > 0
        Time between two generations. [s]
    delays_s : (h,) array
        Mean delay of the events of each of the last epochs. [s]
    events_per_epoch : int, >= 1
        Events of which each mean is made. [-]

    Returns
    -------
    float, float
        Mean and standard deviation. [s]

    Notes
    -----
    theory.md (G5); Klink (SIGMOD 2021), equations 2 to 6, with a time origin, the number of terms
    in the denominator, and the variance of the next delay, ``s^2 (1 + 1 / (h m))``, in place of
    that of their mean.

    Examples
    --------
    >>> mean_s, sd_s = watermark_law(10.0, 3.0, np.array([0.1, 0.2, 0.3, 0.2]), 1)
    >>> round(mean_s, 3), round(sd_s, 3)
    (13.2, 0.091)
    """
    delays = np.asarray(delays_s, dtype=np.float64)
    # A mean of m events varies m times less than an event.
    variance = delays.var(ddof=1) * events_per_epoch if len(delays) > 1 else 0.0
    predictive = variance * (1.0 + 1.0 / (len(delays) * events_per_epoch))
    return generated_s + period_s + float(delays.mean()), math.sqrt(predictive)


def zipf_residuals_s(num_values: int, exponent: float, unit_s: float = 1.0) -> Array:
    r"""Mean further delay of an event by its age, for delays of a bounded Zipf law.

    Parameters
    ----------
    num_values : int, >= 1
        Delays are 1 to so many units. [-]
    exponent : float, >= 0
        Exponent of their frequencies; 0.99 in the paper. [-]
    unit_s : float, > 0
        The unit. [s]

    Returns
    -------
    (num_values,) array
        ``E[d - y | d >= y]`` for ages y of 1 unit, 2 units, ... [s]

    Notes
    -----
    theory.md (G5): suffix sums; the delay law of Klink's experiments (SIGMOD 2021). It grows with
    the age at first, so that no slack may be counted down by the clock.

    Examples
    --------
    >>> residuals = zipf_residuals_s(1000, 0.99)
    >>> residuals[[49, 199, 499]].round(0).tolist()
    [268.0, 298.0, 222.0]
    """
    values = np.arange(1, num_values + 1, dtype=np.float64)
    weights = values**-exponent
    tail = np.cumsum(weights[::-1])[::-1]
    sums = np.cumsum((weights * values)[::-1])[::-1]
    return np.asarray(unit_s * (sums / tail - values))


def _mills_excess(score: Array) -> Array:
    """Inverse Mills ratio less its argument: far out by its expansion, where both are close."""
    from scipy.special import erfcx

    far = np.where(score > 30.0, score, 31.0)
    far_out = (1.0 - 2.0 / far**2 + 10.0 / far**4) / far
    near = np.clip(score, -38.0, 30.0)
    ratio = math.sqrt(2.0 / math.pi) / erfcx(near / math.sqrt(2.0))
    return np.where(score > 30.0, far_out, np.where(score < -38.0, -score, ratio - near))
