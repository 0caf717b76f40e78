"""Delays of DStreams batches against their job queue, simulated job by job."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.models.arrays import Array
from headway.models.batches.dstreams import DStreamJobs, dstreams_latency, erlang_c, repeated_time
from headway.models.queues.times import QueueTime, constant_time, gamma_time, lognormal_time
from tests.oracles.dstreams import DStreamsTrace, simulate_dstreams
from tests.oracles.queue import correlated_lognormal_s, observed_time

LEVELS = np.array([0.5, 0.95, 0.99])


def lognormal_jobs(mean_s: float, cv: float, shape: tuple[int, int], seed: int) -> Array:
    log_variance = float(np.log1p(cv * cv))
    normal = np.random.default_rng(seed).standard_normal(shape)
    times: Array = mean_s * np.exp(np.sqrt(log_variance) * normal - log_variance / 2.0)
    return times


def noise_ratio(trace: DStreamsTrace) -> float:
    """Four standard errors of the mean total delay, from 30 stretches of it."""
    delay = trace.total_delay_s
    means = delay[: len(delay) // 30 * 30].reshape(30, -1).mean(axis=1)
    return float(4.0 * means.std() / np.sqrt(30.0) / delay.mean())


@pytest.mark.parametrize(("cv", "rho"), [(0.1, 0.9), (0.3, 0.8), (1.0, 0.6)])
def test_one_job_at_a_time(cv: float, rho: float) -> None:
    trace = simulate_dstreams(
        2.0, lognormal_jobs(2.0 * rho, cv, (60_000, 1), seed=5), num_warmup=500
    )
    latency = dstreams_latency(2.0, DStreamJobs(job=lognormal_time(2.0 * rho, cv)))
    noise = noise_ratio(trace)
    assert latency.tuple_mean_s == pytest.approx(trace.tuple_mean_s, rel=noise)
    assert latency.tuple_quantile_s(LEVELS) == pytest.approx(
        trace.tuple_quantile_s(LEVELS), rel=0.01 + 3.0 * noise
    )


def test_several_jobs_one_after_the_other() -> None:
    trace = simulate_dstreams(1.0, lognormal_jobs(0.26, 0.8, (50_000, 3), seed=6), num_warmup=500)
    latency = dstreams_latency(1.0, DStreamJobs(job=lognormal_time(0.26, 0.8), num_jobs=3))
    assert latency.tuple_mean_s == pytest.approx(trace.tuple_mean_s, rel=noise_ratio(trace))
    assert latency.wait.mean_s == pytest.approx(
        trace.scheduling_delay_s.mean(), rel=4.0 * noise_ratio(trace)
    )
    assert latency.tuple_quantile_s(0.99) == pytest.approx(trace.tuple_quantile_s(0.99), rel=0.04)


@pytest.mark.parametrize("cv", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(
    ("num_jobs", "num_concurrent"), [(1, 2), (1, 4), (2, 2), (4, 2), (3, 2), (2, 4)]
)
def test_concurrent_jobs(num_jobs: int, num_concurrent: int, cv: float) -> None:
    job_s = 0.8 * num_concurrent / num_jobs
    jobs = DStreamJobs(
        job=lognormal_time(job_s, cv), num_jobs=num_jobs, num_concurrent=num_concurrent
    )
    latency = dstreams_latency(1.0, jobs)
    times = lognormal_jobs(job_s, cv, (30_000, num_jobs), seed=7)
    trace = simulate_dstreams(1.0, times, num_concurrent=num_concurrent, num_warmup=500)
    assert latency.utilization_ratio == pytest.approx(0.8)
    assert latency.tuple_mean_s == pytest.approx(trace.tuple_mean_s, rel=0.07 + noise_ratio(trace))
    assert latency.tuple_quantile_s(0.99) == pytest.approx(
        trace.tuple_quantile_s(0.99), rel=0.1 + 3.0 * noise_ratio(trace)
    )


@pytest.mark.parametrize("num_servers", [1, 2, 5, 30])
def test_erlang_by_its_sum(num_servers: int) -> None:
    load = 0.7 * num_servers
    terms = [load**count / math.factorial(count) for count in range(num_servers + 1)]
    last = terms[-1] / 0.3
    assert erlang_c(num_servers, 0.7) == pytest.approx(last / (sum(terms[:-1]) + last))
    assert erlang_c(num_servers, 1.0) == pytest.approx(1.0)
    assert erlang_c(num_servers, 0.0) == 0.0


@pytest.mark.parametrize("phi", [0.3, 0.6])
def test_autocorrelated_batches(phi: float) -> None:
    times = correlated_lognormal_s(0.85, 0.3, phi, num_values=200_000, seed=8)
    trace = simulate_dstreams(1.0, times[:, np.newaxis], num_warmup=1000)
    jobs = DStreamJobs(job=lognormal_time(0.85, 0.3), autocorrelation=phi)
    latency = dstreams_latency(1.0, jobs)
    assert latency.wait.mean_s == pytest.approx(trace.scheduling_delay_s.mean(), rel=0.08)
    assert latency.tuple_mean_s == pytest.approx(trace.tuple_mean_s, rel=0.02)
    without = dstreams_latency(1.0, DStreamJobs(job=lognormal_time(0.85, 0.3)))
    assert without.wait.mean_s < 0.8 * trace.scheduling_delay_s.mean()


def test_two_point_services_by_enumeration() -> None:
    """Services of 0 or 3 periods: the chain of waits in whole periods, solved as equations."""
    jobs = DStreamJobs(job=observed_time(np.array([1e-9] * 3 + [3.0])))
    wait = dstreams_latency(1.0, jobs).wait
    size = 400
    chain = np.zeros((size, size))
    for state in range(size):
        chain[state, max(state - 1, 0)] += 0.75
        chain[state, min(state + 2, size - 1)] += 0.25
    share = np.full(size, 1.0 / size)
    for _ in range(4000):
        share = share @ chain
    assert wait.mean_s == pytest.approx(float(share @ np.arange(size)), rel=5e-3)


def test_constant_jobs_within_the_interval() -> None:
    latency = dstreams_latency(2.0, DStreamJobs(job=constant_time(0.5), num_jobs=2))
    assert latency.wait.mean_s == 0.0
    assert latency.tuple_mean_s == pytest.approx(2.0)
    assert latency.tuple_quantile_s(LEVELS) == pytest.approx(1.0 + 2.0 * LEVELS, abs=0.01)


def test_a_receiver_delays_all_rows() -> None:
    jobs = DStreamJobs(job=lognormal_time(0.5, 0.2))
    plain, received = (dstreams_latency(1.0, jobs, receive_delay_s=late) for late in (0.0, 0.2))
    assert received.tuple_mean_s == pytest.approx(plain.tuple_mean_s + 0.2)
    assert received.tuple_quantile_s(0.9) == pytest.approx(
        plain.tuple_quantile_s(0.9) + 0.2, abs=2e-3
    )
    assert received.wait.mean_s == plain.wait.mean_s


@pytest.mark.parametrize(("num_jobs", "num_concurrent", "job_s"), [(1, 1, 1.0), (2, 4, 2.5)])
def test_beyond_capacity_latencies_are_infinite(
    num_jobs: int, num_concurrent: int, job_s: float
) -> None:
    jobs = DStreamJobs(
        job=lognormal_time(job_s, 0.3), num_jobs=num_jobs, num_concurrent=num_concurrent
    )
    latency = dstreams_latency(1.0, jobs)
    assert latency.tuple_law is None
    assert latency.tuple_mean_s == latency.wait.mean_s == np.inf
    assert np.all(np.isinf(latency.tuple_quantile_s(LEVELS)))


@settings(max_examples=6)
@given(
    st.floats(0.05, 0.97),
    st.floats(0.01, 1.5),
    st.sampled_from([(1, 1), (2, 1), (3, 3), (1, 2), (3, 2)]),
    st.floats(1e-3, 1e3),
)
def test_quantiles_increase_and_the_mean_is_that_of_the_law(
    rho: float, cv: float, numbers: tuple[int, int], interval_s: float
) -> None:
    num_jobs, num_concurrent = numbers
    job_s = rho * interval_s * num_concurrent / num_jobs
    jobs = DStreamJobs(
        job=lognormal_time(job_s, cv), num_jobs=num_jobs, num_concurrent=num_concurrent
    )
    latency = dstreams_latency(interval_s, jobs)
    quantiles = latency.tuple_quantile_s(np.array([0.01, 0.5, 0.9, 0.99, 0.999]))
    assert np.all(np.diff(quantiles) > 0.0)
    assert latency.tuple_mean_s >= 0.5 * interval_s + job_s * (1.0 - 1e-6)
    assert latency.tuple_law is not None
    assert latency.tuple_law.mean_s == pytest.approx(latency.tuple_mean_s, rel=0.01)
    assert latency.utilization_ratio == pytest.approx(rho)
    slower = DStreamJobs(
        job=lognormal_time(1.02 * job_s, cv), num_jobs=num_jobs, num_concurrent=num_concurrent
    )
    assert dstreams_latency(interval_s, slower).tuple_mean_s > latency.tuple_mean_s


def test_repeated_gammas_are_a_gamma() -> None:
    thrice, whole = repeated_time(gamma_time(1.0, 0.6), 3), gamma_time(3.0, 0.6 / np.sqrt(3.0))
    assert thrice.scv == pytest.approx(whole.scv)
    assert thrice.third_central_s3 == pytest.approx(whole.third_central_s3)
    assert thrice.on_lattice is not None
    assert whole.on_lattice is not None
    folded, direct = thrice.on_lattice(0.01), whole.on_lattice(0.01)
    assert folded.quantile_s(LEVELS) == pytest.approx(direct.quantile_s(LEVELS), abs=0.0101)


def test_refusals() -> None:
    job = lognormal_time(0.1, 0.3)
    for message, arguments in (
        ("1 at a time", {"num_jobs": 3, "num_concurrent": 0}),
        ("at least 1 job", {"num_jobs": 0}),
        ("0.98", {"autocorrelation": 0.99}),
        ("one job", {"autocorrelation": 0.5, "num_jobs": 2}),
    ):
        with pytest.raises(ValueError, match=message):
            DStreamJobs(job=job, **arguments)
    with pytest.raises(ValueError, match="interval_s"):
        dstreams_latency(0.0, DStreamJobs(job=job))
    with pytest.raises(ValueError, match="receive_delay_s"):
        dstreams_latency(1.0, DStreamJobs(job=job), receive_delay_s=-1.0)
    with pytest.raises(ValueError, match="law of a job"):
        dstreams_latency(1.0, DStreamJobs(job=QueueTime(mean_s=0.1, scv=0.1)))
    with pytest.raises(ValueError, match="at least 1"):
        repeated_time(job, 0)
    with pytest.raises(ValueError, match="num_servers"):
        erlang_c(0, 0.5)
    with pytest.raises(ValueError, match="strictly"):
        dstreams_latency(1.0, DStreamJobs(job=lognormal_time(2.0, 0.1))).tuple_quantile_s(1.0)


@pytest.mark.statistical
@pytest.mark.parametrize("cv", [0.05, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("rho", [0.3, 0.5, 0.7, 0.8, 0.9, 0.95])
def test_grid_of_one_job_at_a_time(cv: float, rho: float) -> None:
    trace = simulate_dstreams(
        1.0, lognormal_jobs(rho, cv, (1_000_000, 1), seed=9), num_warmup=10_000
    )
    latency = dstreams_latency(1.0, DStreamJobs(job=lognormal_time(rho, cv)))
    noise = noise_ratio(trace)
    assert latency.tuple_mean_s == pytest.approx(trace.tuple_mean_s, rel=2e-3 + noise)
    assert latency.tuple_quantile_s(LEVELS) == pytest.approx(
        trace.tuple_quantile_s(LEVELS), rel=5e-3 + 2.0 * noise
    )


@pytest.mark.statistical
@pytest.mark.parametrize("cv", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("rho", [0.7, 0.8, 0.9])
@pytest.mark.parametrize("phi", [0.3, 0.6, 0.8])
def test_grid_of_autocorrelated_batches(cv: float, rho: float, phi: float) -> None:
    times = correlated_lognormal_s(rho, cv, phi, num_values=4_000_000, seed=10)
    trace = simulate_dstreams(1.0, times[:1_000_000, np.newaxis], num_warmup=10_000)
    latency = dstreams_latency(1.0, DStreamJobs(job=lognormal_time(rho, cv), autocorrelation=phi))
    noise = noise_ratio(trace)
    assert latency.tuple_mean_s == pytest.approx(trace.tuple_mean_s, rel=0.06 + noise)
    assert latency.tuple_quantile_s(0.99) == pytest.approx(
        trace.tuple_quantile_s(0.99), rel=0.1 + 3.0 * noise
    )
