"""A queue simulated job by job: the oracle of `headway.models.queues.wait`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.queues.queueing import lindley_waits_s
from headway.models.queues.times import QueueTime, lattice_sample


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueueTrace:
    """Waits of the jobs that were simulated, in the order of arrival.

    Parameters
    ----------
    wait_s : (n,) array, >= 0
        Time from the arrival of each job to its start. [s]
    service_s : (n,) array, > 0
        Time from its start to its end. [s]

    Examples
    --------
    >>> trace = QueueTrace(wait_s=np.array([0.0, 3.0, 1.0, 0.0]), service_s=np.ones(4))
    >>> trace.mean_s, trace.wait_prob, trace.quantile_s(0.75).tolist()
    (1.0, 0.5, 1.0)
    """

    wait_s: Array
    service_s: Array

    @property
    def mean_s(self) -> float:
        """Mean wait. [s]"""
        return float(self.wait_s.mean())

    @property
    def variance_s2(self) -> float:
        """Variance of the wait. [s^2]"""
        return float(self.wait_s.var())

    @property
    def wait_prob(self) -> float:
        """Share of jobs that waited. [-]"""
        return float(np.mean(self.wait_s > 0.0))

    def quantile_s(self, q: Numeric) -> Array:
        """Smallest observed wait that a share ``q`` of the jobs does not exceed, 0..1. [s]"""
        return np.asarray(np.quantile(self.wait_s, q, method="inverted_cdf"))


def correlated_lognormal_s(
    mean_s: float, cv: float, autocorrelation: float, *, num_values: int, seed: int
) -> Array:
    r"""Lognormal times whose logarithms are autoregressive of first order, and stationary.

    Parameters
    ----------
    mean_s : float, > 0
        Mean. [s]
    cv : float, >= 0
        Coefficient of variation. [-]
    autocorrelation : float, -1 < phi < 1
        Correlation of the logarithms of successive times; 0 makes them independent. [-]
    num_values : int, >= 1
        How many. [-]
    seed : int
        Seed of the generator.

    Returns
    -------
    (num_values,) array
        Times in their order. [s]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (Q18).

    Examples
    --------
    >>> correlated_lognormal_s(2.0, 0.0, 0.5, num_values=3, seed=1)
    array([2., 2., 2.])
    """
    if not (mean_s > 0.0 and cv >= 0.0 and abs(autocorrelation) < 1.0 and num_values >= 1):
        raise ValueError("need mean_s > 0, cv >= 0, |autocorrelation| < 1 and a value")
    log_variance = float(np.log1p(cv * cv))
    normal = _autoregressive_normals(autocorrelation, num_values, np.random.default_rng(seed))
    times: Array = mean_s * np.exp(np.sqrt(log_variance) * normal - log_variance / 2.0)
    return times


def simulate_queue(
    interarrival_s: Array, service_s: Array, *, bulk_size: int = 1, num_warmup: int = 0
) -> QueueTrace:
    r"""Simulate a queue with given times; arrivals come in bulks of one size.

    Parameters
    ----------
    interarrival_s : (b,) or 0-d array, >= 0
        Time from each bulk to the next, or the one period of a clock. [s]
    service_s : (n,) array, >= 0, n a multiple of ``bulk_size``
        Service time of each job. [s]
    bulk_size : int, >= 1
        Jobs that arrive together. [-]
    num_warmup : int, >= 0
        Jobs at the start that are simulated but not reported. [-]

    Returns
    -------
    QueueTrace
        Of all jobs but the first ``num_warmup``.

    Raises
    ------
    ValueError
        If an argument is outside its range or numbers do not match.

    Notes
    -----
    theory.md (Q18).

    Examples
    --------
    >>> simulate_queue(np.array(10.0), np.full(4, 3.0), bulk_size=2).wait_s
    array([0., 3., 0., 3.])
    """
    service = np.asarray(service_s, dtype=np.float64)
    if bulk_size < 1 or service.ndim != 1 or len(service) == 0 or len(service) % bulk_size:
        raise ValueError("service_s must hold whole bulks of at least one job")
    if not 0 <= num_warmup < len(service):
        raise ValueError("num_warmup must leave at least one job")
    between = np.zeros(service.shape)
    between[bulk_size - 1 :: bulk_size] = interarrival_s
    wait = lindley_waits_s(between, service)
    return QueueTrace(wait_s=wait[num_warmup:], service_s=service[num_warmup:])


def _autoregressive_normals(
    autocorrelation: float, num_values: int, generator: np.random.Generator
) -> Array:
    if autocorrelation == 0.0:
        return generator.standard_normal(num_values)
    # Shocks older than this weigh less than rounding does.
    memory = int(np.ceil(np.log(1e-17) / np.log(abs(autocorrelation)))) + 1
    shock = generator.standard_normal(num_values + memory - 1)
    weight = autocorrelation ** np.arange(memory, dtype=float)
    weight *= np.sqrt(1.0 - autocorrelation**2)
    num_cells = 1 << (len(shock) - 1).bit_length()
    transform = np.fft.rfft(shock, num_cells) * np.fft.rfft(weight, num_cells)
    return np.fft.irfft(transform, num_cells)[memory - 1 : len(shock)]


def observed_time(values_s: Array) -> QueueTime:
    """The law of observed times > 0 [s], each as likely as the others; best some hundred (Q7).

    >>> observed_time(np.array([1.0, 3.0])).scv
    0.25
    """
    values = np.array(values_s, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not np.all(values > 0.0):
        raise ValueError("values_s must hold at least one time, and positive ones only")
    mean = float(values.mean())
    return QueueTime(
        mean_s=mean,
        scv=float(np.mean((values / mean - 1.0) ** 2)),
        third_central_s3=float(np.mean((values - mean) ** 3)),
        on_lattice=lambda step_s: lattice_sample(values, step_s),
    )
