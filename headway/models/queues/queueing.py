"""The wait in a queue with one server, first come first served: closed forms, and job by job."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.laws.gamma import gammaincinv

_SMALLEST_WAIT_PROB = 1e-12
_NO_VARIATION = 1e-300
_BLOCK = 1 << 20
# Below this squared variation, a positive wait is constant to the accuracy of any quantile, and the
# inverse of the incomplete gamma function would lose digits.
_SMALLEST_SCV = 1e-10


class WaitMoments(NamedTuple):
    """Mean [s], variance [s^2] and probability [-] of a wait, of which service is no part.

    Moments are ``inf``, and the probability is 1, if the utilisation is 1 or more.
    """

    mean_s: Array
    variance_s2: Array
    wait_prob: Array

    @property
    def second_moment_s2(self) -> Array:
        """Second moment about zero. [s^2]"""
        return self.variance_s2 + self.mean_s * self.mean_s


def qna_wait(
    interarrival_s: Numeric,
    interarrival_scv: Numeric,
    service_s: Numeric,
    service_scv: Numeric,
    service_third_ratio: Numeric,
) -> WaitMoments:
    r"""Mean, variance and probability of a wait as in Whitt's Queueing Network Analyzer.

    Parameters
    ----------
    interarrival_s : float or (n,) array, > 0, mean time between arrivals [s]
    interarrival_scv : float or (n,) array, >= 0, its squared variation; meant for 0.8 to 1.5
    service_s : float or (n,) array, > 0, mean service time [s]
    service_scv : float or (n,) array, >= 0, its squared coefficient of variation
    service_third_ratio : float or (n,) array, third moment over cubed mean, >= (1+service_scv)^2

    **(Q5)** QNA, Whitt (1983, doi:10.1002/j.1538-7305.1983.tb03204.x): the mean is `V` of (Q2),
    multiplied if `c_A ≤ 1` by the factor `exp(-(2(1-ρ)(1-c_A^2)^2)/(3 ρ(c_A^2+c_S^2)) )` of Kraemer
    and Langenbach-Belz (1976). `P(W > 0) = σ = ρ + (c_A^2-1) ρ(1-ρ) h` with
    `h = (1+c_A^2+ρ c_S^2)/(1+ρ(c_S^2-1)+ρ^2(4c_A^2+c_S^2))` if `c_A ≤ 1`, else
    `(4 ρ)/(c_A^2+ρ^2(4c_A^2+c_S^2))`. `Var W = E[W]^2(c_D^2+1-σ)/σ` with
    `c_D^2 = 2 ρ - 1 + 4(1-ρ)/(3(c_S^2+1)^2) · E[S^3]/(E[S]^3)`. Intended for `0.8 ≤ c_A^2 ≤ 1.5`:
    for a clock with `c_S = 0.3` and `ρ = 0.7` it yields a sixth of the wait.

    Exact for Poisson arrivals. The variance is 58% low for clocked arrivals at utilization 0.9 and
    service cv 0.3.

    >>> [round(float(value), 5) for value in qna_wait(1.0, 0.25, 0.8, 0.25, 1.953125)]
    [0.66322, 0.85846, 0.65500]
    """
    interarrival, ca2, service, cs2, third = (
        np.asarray(value, dtype=np.float64)
        for value in (interarrival_s, interarrival_scv, service_s, service_scv, service_third_ratio)
    )
    if not all(np.all(np.isfinite(value)) for value in (interarrival, ca2, service, cs2)):
        raise ValueError("times and their variability must be finite")
    if not (np.all(interarrival > 0.0) and np.all(service > 0.0)):
        raise ValueError("interarrival_s and service_s must be positive")
    if not (np.all(ca2 >= 0.0) and np.all(cs2 >= 0.0)):
        raise ValueError("interarrival_scv and service_scv must be non-negative")
    # E[S] E[S^3] >= E[S^2]^2. The tolerance accepts rounded moments of a constant.
    if not np.all(third >= (1.0 + cs2) ** 2 * (1.0 - 1e-9)):
        raise ValueError("service_third_ratio must be at least (1 + service_scv)^2")
    stable = service < interarrival
    # Subtracted once, since 1 - rho loses digits; if unstable, a placeholder to divide by.
    slack = np.where(stable, interarrival - service, interarrival)
    rho, idle = service / interarrival, slack / interarrival
    mean = _heavy_traffic_s(service, slack, ca2 + cs2) * _correction(ca2, ca2 + cs2, rho, idle)

    spread = 4.0 * ca2 + cs2
    regular = (1.0 + ca2 + rho * cs2) / (idle + rho * cs2 + rho * rho * spread)
    bursty = 4.0 * rho / (ca2 + rho * rho * spread + (ca2 <= 1.0))
    delay_prob = rho + (ca2 - 1.0) * rho * idle * np.where(ca2 <= 1.0, regular, bursty)
    # For two clocks the formula gives 0, and the probability is a divisor below.
    delay_prob = np.clip(delay_prob, _SMALLEST_WAIT_PROB, 1.0)
    delayed_scv = 2.0 * rho - 1.0 + 4.0 * idle * third / (3.0 * (cs2 + 1.0) ** 2)
    variance = mean * mean * (delayed_scv + 1.0 - delay_prob) / delay_prob
    return WaitMoments(
        np.where(stable, mean, np.inf),
        np.where(stable, variance, np.inf),
        np.where(stable, delay_prob, 1.0),
    )


def pollaczek_khinchine_wait(
    interarrival_s: Numeric,
    service_s: Numeric,
    service_second_moment_s2: Numeric,
    service_third_moment_s3: Numeric,
) -> WaitMoments:
    r"""Exact wait for Poisson arrivals and any service law.

    Parameters
    ----------
    interarrival_s : float or (n,) array, > 0, mean time between arrivals [s]
    service_s : float or (n,) array, > 0
    service_second_moment_s2, service_third_moment_s3 : float or (n,) array, > 0
        Moments of the service time about zero; the second is at least ``service_s**2``.

    **(Q6)** Pollaczek-Khinchine, Poisson arrivals: `E[W] = E[S^2]/2(E[A]-E[S])`,
    `Var W = E[W]^2 + E[S^3]/3(E[A]-E[S])`, `P(W > 0) = ρ`. Exact.

    Pollaczek (1930), Khinchine (1932). The variance is a sum of positive terms, so nothing cancels
    in light traffic.

    >>> wait = pollaczek_khinchine_wait(1.0, 0.8, 0.8, 1.0)
    >>> float(wait.mean_s), float(wait.second_moment_s2), float(wait.variance_s2)
    (2.00000, 9.66667, 5.66667)
    """
    interarrival, service, second, third = (
        np.asarray(value, dtype=np.float64)
        for value in (interarrival_s, service_s, service_second_moment_s2, service_third_moment_s3)
    )
    if not (np.all(interarrival > 0.0) and np.all(service > 0.0) and np.all(third > 0.0)):
        raise ValueError("interarrival_s, service_s and the third moment must be positive")
    if not np.all(second >= service * service * (1.0 - 1e-12)):
        raise ValueError("service_second_moment_s2 must be at least service_s^2")
    shape = np.broadcast_shapes(interarrival.shape, service.shape, second.shape, third.shape)
    stable = np.broadcast_to(service < interarrival, shape)
    slack = np.where(stable, interarrival - service, 1.0)
    mean = second / (2.0 * slack)
    variance = mean * mean + third / (3.0 * slack)
    return WaitMoments(
        np.where(stable, mean, np.inf),
        np.where(stable, variance, np.inf),
        np.where(stable, service / interarrival, 1.0),
    )


def _heavy_traffic_s(service_s: Array, slack_s: Array, total_scv: Array) -> Array:
    """Mean wait in heavy traffic.

    **(Q2)** Heavy traffic, exact for Poisson arrivals: `V = ρ/(1-ρ) · (c_A^2+c_S^2)/2 · E[S]`.
    """
    return service_s / slack_s * service_s * (total_scv / 2.0)


def _correction(ca2: Array, total_scv: Array, rho: Array, idle: Array) -> Array:
    """Factor on the heavy-traffic wait; 1 for arrivals burstier than Poisson."""
    # Two clocks: nothing varies and nothing waits, with any factor.
    safe_total = np.where(total_scv > _NO_VARIATION, total_scv, 1.0)
    with np.errstate(over="ignore"):  # an infinite exponent has the same effect as a huge one
        regular = np.exp(-2.0 * idle * (1.0 - ca2) ** 2 / (3.0 * rho * safe_total))
    return np.where(ca2 <= 1.0, regular, 1.0)


def gamma_wait_quantile_s(q: Numeric, wait: WaitMoments) -> Array:
    r"""Quantile of a wait that is zero or gamma distributed.

    ``q`` is 0 or more and below 1; the result is ``inf`` if the queue is unstable.

    **(Q15)** The wait is zero with probability `1 - p`, else gamma distributed with mean `μ =
    E[W]/p` and squared variation `Var W/(p μ^2) - (1-p)`.

    P99 of a clocked queue with lognormal service of cv 0.3 and 1: within 3% at utilization 0.7 and
    0.9; p99.9 within 12%.

    >>> wait = WaitMoments(np.array(0.10341), np.array(0.10577), np.array(0.16838))
    >>> float(gamma_wait_quantile_s(0.99, wait))
    1.634
    """
    probability = np.asarray(q, dtype=np.float64)
    if not (np.all(probability >= 0.0) and np.all(probability < 1.0)):
        raise ValueError("q must lie in 0..1, without 1")
    mean, variance, wait_prob = (np.asarray(value, dtype=np.float64) for value in wait)
    if not (np.all(mean >= 0.0) and np.all(variance >= 0.0)):
        raise ValueError("mean and variance of the wait must be non-negative")
    if not (np.all(wait_prob >= 0.0) and np.all(wait_prob <= 1.0)):
        raise ValueError("wait_prob must lie in 0..1")
    stable = np.isfinite(mean) & np.isfinite(variance)
    waits = stable & (mean > 0.0) & (wait_prob > 0.0)
    share = np.where(waits, wait_prob, 1.0)
    centre = np.where(waits, mean, 1.0) / share
    # (Var + E^2)/p - mu^2 in units of mu^2, with E = p mu.
    scv = np.where(waits, variance, 1.0) / (share * centre * centre) - (1.0 - share)
    scv = np.maximum(scv, _SMALLEST_SCV)
    level = np.clip((probability - (1.0 - share)) / share, 0.0, 1.0)
    positive = gammaincinv(1.0 / scv, level) * scv * centre
    return np.where(stable, np.where(waits, positive, 0.0), np.inf)


def lindley_waits_s(interarrival_s: Array, service_s: Array) -> Array:
    r"""Waits of given jobs, at least one, in front of one server that is idle at first.

    Parameters
    ----------
    interarrival_s : (n,) array, >= 0, from a job's arrival to the next one; 0 within a bulk [s]
    service_s : (n,) array, >= 0

    **(Q18)** Simulation: `W_(k+1) = (W_k+S_k-A_k)^+` (Lindley 1952, doi:10.1017/S0305004100027638),
    computed as the distance of a running sum from its running minimum. `A_k = 0` within a bulk.
    Correlated services have autoregressive normal logarithms.

    >>> lindley_waits_s(np.array([2.0, 0.0, 2.0, 9.0]), np.array([3.0, 1.0, 1.0, 1.0]))
    array([0., 1., 2., 1.])
    """
    arrival = np.asarray(interarrival_s, dtype=np.float64)
    service = np.asarray(service_s, dtype=np.float64)
    if arrival.ndim != 1 or arrival.shape != service.shape or len(arrival) == 0:
        raise ValueError("interarrival_s and service_s must be of one length, at least 1")
    if not (np.all(arrival >= 0.0) and np.all(service >= 0.0)):
        raise ValueError("times must be non-negative")
    wait = np.empty(len(arrival))
    carried = 0.0
    # In blocks, so that the running sum does not lose digits in long traces.
    for start in range(0, len(arrival), _BLOCK):
        block = slice(start, start + _BLOCK)
        walk = np.cumsum(service[block] - arrival[block])
        # The wait is the height of the walk above its lowest point so far, or above -carried if the
        # server has not been idle yet.
        lowest = np.minimum(np.minimum.accumulate(walk), -carried)
        wait[start] = carried
        after = walk - lowest
        wait[start + 1 : start + _BLOCK] = after[:-1]
        carried = float(after[-1])
    return wait
