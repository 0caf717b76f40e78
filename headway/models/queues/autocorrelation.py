"""The wait of clocked jobs whose service times are autocorrelated."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from headway.models.arrays import Array
from headway.models.laws.distributions import gauss_legendre
from headway.models.queues.queueing import WaitMoments
from headway.models.queues.random_walk import positive_parts, spitzer_terms

_NUM_EXACT_SUMS = 500
_TAIL_NODES, _TAIL_WEIGHTS = gauss_legendre(96)
_LAST_SCORE = 8.5
_MOST_SUMS = 1e8
_FORGOTTEN = 1e-5
_LARGEST_AUTOCORRELATION = 0.98


def autocorrelated_service_wait(
    period_s: float, service_s: float, service_cv: float, autocorrelation: float
) -> WaitMoments:
    r"""Wait of jobs that arrive by a clock and have autocorrelated lognormal service times.

    ``ValueError`` is raised if the utilisation is so close to 1 that the wait depends on more than
    1e8 earlier jobs.

    Parameters
    ----------
    period_s : float, > 0, time between jobs [s]
    service_s : float, > 0
    service_cv : float, 0 to 2, its coefficient of variation
    autocorrelation : float, 0 to 0.98
        Correlation of the logarithms of successive services; services `k` jobs apart have its
        `k`-th power. [-]

    **(V3)** Correlated batch durations, whose logarithms are autoregressive with coefficient `φ`:
    Spitzer's sums (Q10) with the cumulants of `n` successive services,
    `κ_2(n) = Σ_(d < n)(n-d) c_2(d)` and likewise `κ_3`. Here `c_j(d)` are the joint cumulants of
    `j` services that span `d`, computed from `e^(s^2 φ^(|i-j|))`. This would be exact for
    exchangeable increments, which autoregressive ones are not.

    Exact without correlation if services are gamma distributed; theory.md (V3) gives the errors
    otherwise.

    >>> wait = autocorrelated_service_wait(1.0, 0.9, 0.2, 0.6)
    >>> round(float(wait.mean_s), 3)
    0.315
    """
    if not (0.0 < period_s < np.inf and 0.0 < service_s < np.inf):
        raise ValueError(f"period_s and service_s must be positive: {period_s}, {service_s}")
    if not 0.0 <= service_cv <= 2.0:
        raise ValueError(f"service_cv must lie in 0..2, got {service_cv}")
    if not 0.0 <= autocorrelation <= _LARGEST_AUTOCORRELATION:
        raise ValueError(f"autocorrelation must lie in 0..0.98, got {autocorrelation}")
    if service_s >= period_s:
        return WaitMoments(np.array(np.inf), np.array(np.inf), np.array(1.0))
    if service_cv == 0.0:
        return WaitMoments(np.array(0.0), np.array(0.0), np.array(0.0))
    slack = (period_s - service_s) / service_s
    mean, variance, exponent = _spitzer_sums(slack, float(service_cv), float(autocorrelation))
    return WaitMoments(
        np.array(mean * service_s),
        np.array(variance * service_s**2),
        np.array(-np.expm1(-exponent)),
    )


@lru_cache(maxsize=1024)
def _spitzer_sums(slack: float, cv: float, phi: float) -> tuple[float, float, float]:
    """Cumulants of the wait in units of a mean service, and the sum that gives its probability."""
    last = _last_sum(slack, cv, phi)
    # Numbers of jobs and weights 1/n: one by one, then by quadrature in the logarithm.
    num_terms = int(min(_NUM_EXACT_SUMS, np.ceil(last)))
    count, weight = spitzer_terms(num_terms, last, _TAIL_NODES, _TAIL_WEIGHTS)
    variance, third = _cumulants_of_sums(count, cv, phi)
    positive, first, second = positive_parts(slack * count, np.sqrt(variance), third)
    return float(weight @ first), float(weight @ second), float(weight @ positive)


def _last_sum(slack: float, cv: float, phi: float) -> float:
    """Number of jobs from which a sum of increments is practically never positive."""
    count = np.geomspace(1.0, _MOST_SUMS, 400)
    variance, third = _cumulants_of_sums(count, cv, phi)
    score = slack * count / np.sqrt(variance)
    # At the same probability, a skewed sum is further out: leading term of Cornish and Fisher.
    reach = _LAST_SCORE + third / variance**1.5 * (_LAST_SCORE**2 - 1.0) / 6.0
    above = np.flatnonzero(score >= reach)
    if len(above) == 0:
        raise ValueError("the queue is too full: more than 1e8 jobs decide about the wait")
    return float(count[above[0]])


def _cumulants_of_sums(count: Array, cv: float, phi: float) -> tuple[Array, Array]:
    """Variance and third cumulant of sums of successive services of mean 1."""
    pairs, triples = _span_cumulants(cv, phi)
    return _summed(pairs, count), _summed(triples, count)


@lru_cache(maxsize=256)
def _span_cumulants(cv: float, phi: float) -> tuple[Array, Array]:
    """Joint cumulants of two and of three services, summed over those that span d jobs."""
    log_variance = float(np.log1p(cv * cv))
    if phi == 0.0:
        return np.array([cv**2]), np.array([3.0 * cv**4 + cv**6])
    longest = int(np.ceil(np.log(_FORGOTTEN) / np.log(phi))) + 1
    pair = np.expm1(log_variance * phi ** np.arange(longest + 1.0))
    triple = np.empty(longest + 1)
    triple[0] = _joint(pair[0], pair[0], pair[0])
    for span in range(1, longest + 1):
        three_jobs = _joint(pair[1:span], pair[span - 1 : 0 : -1], pair[span])
        # Three orders each for a first or a last job counted twice, six for three jobs.
        two_jobs = _joint(pair[0], pair[span], pair[span])
        triple[span] = 6.0 * float(np.sum(two_jobs)) + 6.0 * float(np.sum(three_jobs))
    return np.concatenate([pair[:1], 2.0 * pair[1:]]), triple


def _joint(first: Array, second: Array, third: Array) -> Array:
    """Third joint cumulant of lognormals of mean 1 from their covariances."""
    product: Array = first * second + first * third + second * third + first * second * third
    return product


def _summed(by_span: Array, count: Array) -> Array:
    """Sum over all sets of jobs among ``count`` successive ones, by the jobs they span."""
    span = np.arange(len(by_span), dtype=np.float64)
    position = np.minimum(count, len(by_span)).astype(np.int64) - 1
    sums, moments = np.cumsum(by_span), np.cumsum(by_span * span)
    # Where the quadrature falls between whole numbers of jobs, these correlations have (nearly)
    # decayed.
    total: Array = count * sums[position] - moments[position]
    return total
