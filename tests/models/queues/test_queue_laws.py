"""What holds for the wait in every queue, tried on each way to compute it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.models.arrays import Array, Numeric
from headway.models.queues.queueing import gamma_wait_quantile_s, pollaczek_khinchine_wait, qna_wait
from headway.models.queues.random_walk import shifted_gamma_wait
from headway.models.queues.times import QueueTime, gamma_time, lognormal_time
from headway.models.queues.wait import Wait, queue_wait
from tests.oracles.wait_range import out_of_range
from tests.seeds import first_of

utilizations = st.floats(0.05, 0.98)
scvs = st.floats(0.0, 9.0)
cvs = st.floats(0.05, 2.0)
factors = st.floats(1.0, 4.0)


def by_law(interarrival_cv: float, service_cv: float, rho: float, unit_s: float = 1.0) -> Wait:
    return queue_wait(gamma_time(unit_s, interarrival_cv), lognormal_time(rho * unit_s, service_cv))


def by_moments(interarrival_cv: float, service_cv: float, rho: float, unit_s: float = 1.0) -> Wait:
    times = gamma_time(unit_s, interarrival_cv), lognormal_time(rho * unit_s, service_cv)
    return queue_wait(
        *(
            QueueTime(mean_s=time.mean_s, scv=time.scv, third_central_s3=time.third_central_s3)
            for time in times
        )
    )


def qna_mean_s(
    interarrival_s: Numeric, interarrival_scv: Numeric, service_s: Numeric, service_scv: Numeric
) -> Array:
    third_ratio = (1.0 + np.asarray(service_scv)) ** 3
    return qna_wait(interarrival_s, interarrival_scv, service_s, service_scv, third_ratio).mean_s


each_method = pytest.mark.parametrize("method", [by_law, by_moments])


@given(utilizations, scvs, scvs, factors)
def test_variation_never_helps(rho: float, first: float, second: float, factor: float) -> None:
    wait = float(qna_mean_s(1.0, first, rho, second))
    assert wait <= float(qna_mean_s(1.0, factor * first, rho, second)) * (1.0 + 1e-9)
    assert wait <= float(qna_mean_s(1.0, first, rho, factor * second)) * (1.0 + 1e-9)


@given(utilizations, scvs, scvs, st.floats(1e-6, 1e6))
def test_units_do_not_matter(rho: float, first: float, second: float, unit_s: float) -> None:
    wait_s = float(qna_mean_s(unit_s, first, rho * unit_s, second))
    assert wait_s == pytest.approx(unit_s * float(qna_mean_s(1.0, first, rho, second)), rel=1e-9)


def test_waits_vanish_with_the_load_and_with_all_variation() -> None:
    lighter = qna_mean_s(1.0, 1.0, np.array([1e-2, 1e-4, 1e-6]), 1.0)
    assert np.all(lighter <= 2.0 * np.array([1e-4, 1e-8, 1e-12]))
    steadier = qna_mean_s(1.0, np.array([1e-3, 1e-6, 0.0]), 0.9, np.array([1e-3, 1e-6, 0.0]))
    assert np.all(np.diff(steadier) <= 0.0)
    assert float(steadier[-1]) == 0.0


@each_method
@settings(max_examples=8)
@given(cvs, cvs, utilizations)
def test_no_wait_exceeds_kingman(
    method: Callable[..., Wait], interarrival_cv: float, service_cv: float, rho: float
) -> None:
    bound = (interarrival_cv**2 + (rho * service_cv) ** 2) / (2.0 * (1.0 - rho))
    # The lattice rounds times to steps of a fiftieth of a standard deviation.
    assert method(interarrival_cv, service_cv, rho).mean_s <= bound * 1.01


@each_method
@settings(max_examples=8)
@given(cvs, cvs, utilizations, st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_quantiles_are_ordered(
    method: Callable[..., Wait],
    interarrival_cv: float,
    service_cv: float,
    rho: float,
    one: float,
    other: float,
) -> None:
    wait = method(interarrival_cv, service_cv, rho)
    low, high = wait.quantile_s(np.sort(np.array([one, other])))
    assert 0.0 <= low <= high < np.inf


@each_method
@settings(max_examples=8)
@given(cvs, cvs, utilizations, st.floats(1e-3, 1e3))
def test_methods_know_no_units(
    method: Callable[..., Wait],
    interarrival_cv: float,
    service_cv: float,
    rho: float,
    unit_s: float,
) -> None:
    one, scaled = (method(interarrival_cv, service_cv, rho, unit) for unit in (1.0, unit_s))
    assert (one.law is None) == (scaled.law is None)
    assert scaled.mean_s == pytest.approx(unit_s * one.mean_s, rel=1e-3, abs=1e-9 * unit_s)
    assert scaled.wait_prob == pytest.approx(one.wait_prob, abs=1e-3)


@each_method
@pytest.mark.parametrize("rho", [0.7, 0.9, 0.97])
def test_scv_1_is_the_markovian_queue(method: Callable[..., Wait], rho: float) -> None:
    services = gamma_time(rho, 1.0)
    arrivals = gamma_time(1.0, 1.0)
    wait = queue_wait(arrivals, services)
    if method is by_moments:
        three = [
            QueueTime(mean_s=time.mean_s, scv=1.0, third_central_s3=time.third_central_s3)
            for time in (arrivals, services)
        ]
        wait = queue_wait(*three)
    # A difference of exponentials is no shifted gamma: (Q10) is a few percent high for it.
    tolerance = 0.05 if method is by_moments else 2e-3
    assert wait.mean_s == pytest.approx(rho**2 / (1.0 - rho), rel=tolerance)


@pytest.mark.parametrize("cv", [1e-2, 1e-3, 1e-5])
@each_method
def test_vanishing_noise_leaves_no_wait(method: Callable[..., Wait], cv: float) -> None:
    wait = method(cv, cv, 0.9)
    assert wait.mean_s <= cv**2
    assert wait.wait_prob <= 1e-6


@given(utilizations, st.floats(0.0, 3.0), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_gamma_quantiles_are_ordered(rho: float, cv: float, one: float, other: float) -> None:
    second, third = rho**2 * (1.0 + cv**2), rho**3 * (1.0 + cv**2) ** 3
    wait = pollaczek_khinchine_wait(1.0, rho, second, third)
    low, high = gamma_wait_quantile_s(np.sort(np.array([one, other])), wait)
    assert 0.0 <= low <= high < np.inf


@given(utilizations, st.floats(1.0, 1.02), scvs, scvs)
def test_qna_grows_with_load(rho: float, factor: float, first: float, second: float) -> None:
    third_ratio = (1.0 + second) ** 3
    light, heavy = (qna_wait(1.0, first, load, second, third_ratio) for load in (rho, rho * factor))
    assert float(light.mean_s) <= float(heavy.mean_s) * (1.0 + 1e-12)


def test_skewness_of_services_only_lengthens_the_tail() -> None:
    skewness = np.array([-0.5, 0.0, 0.5, 2.0])
    wait = shifted_gamma_wait((np.array(-0.5), np.ones(()), skewness))
    assert np.all(np.diff(wait.mean_s) > 0.0)
    assert np.all(np.diff(wait.variance_s2) > 0.0)


@pytest.mark.parametrize("rho", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("cv", first_of([0.5, 2.0, 4.0, 10.0, 1.0, 2.5, 3.0, 5.0, 7.0], 4))
@pytest.mark.parametrize("law", [lognormal_time, gamma_time])
def test_a_wait_in_range_has_the_mean_and_the_deviation_of_the_exact_one(
    law: Callable[[float, float], QueueTime], cv: float, rho: float
) -> None:
    service = law(rho, cv)
    arrivals = gamma_time(1.0, 1.0)
    wait = queue_wait(arrivals, service)
    # Takacs: behind Poisson arrivals both follow from three moments of the service.
    assert service.third_central_s3 is not None
    square_s2 = service.variance_s2 + rho**2
    cube_s3 = service.third_central_s3 + 3.0 * service.variance_s2 * rho + rho**3
    mean_s = square_s2 / (2.0 * (1.0 - rho))
    sd_s = np.sqrt(mean_s**2 + cube_s3 / (3.0 * (1.0 - rho)))
    is_in_range = not out_of_range(arrivals, service, wait)
    if is_in_range:
        assert wait.mean_s == pytest.approx(mean_s, rel=0.01)
        assert wait.sd_s == pytest.approx(sd_s, rel=0.025)
    assert is_in_range == (law is gamma_time or cv <= 3.0)
