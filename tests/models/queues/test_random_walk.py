"""The wait as the maximum of a random walk, against exact results and known series."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.arrays import Numeric
from headway.models.queues.queueing import WaitMoments, pollaczek_khinchine_wait
from headway.models.queues.random_walk import (
    Increment,
    gamma_third_central_s3,
    lognormal_third_central_s3,
    queue_increment,
    shifted_gamma_wait,
)

# The simulated means of the design study: clocked arrivals of period 1, lognormal service.
SIMULATED_MEANS = {
    (0.1, 0.8): 4.07e-4,
    (0.1, 0.9): 0.01033,
    (0.1, 0.95): 0.04935,
    (0.3, 0.7): 0.01814,
    (0.3, 0.9): 0.2586,
    (0.3, 0.95): 0.6885,
    (1.0, 0.9): 3.822,
}


def clocked_gamma(rho: float, cv: float) -> Increment:
    third_s3 = float(gamma_third_central_s3(rho, cv))
    return queue_increment(1.0, 0.0, 0.0, rho, (rho * cv) ** 2, third_s3)


def clocked_lognormal(rho: float, cv: float) -> Increment:
    third_s3 = float(lognormal_third_central_s3(rho, cv))
    return queue_increment(1.0, 0.0, 0.0, rho, (rho * cv) ** 2, third_s3)


def gaussian_wait(mean: Numeric, sd: Numeric) -> WaitMoments:
    """Of normal increments: no skewness."""
    sd_s = np.asarray(sd, dtype=np.float64)
    return shifted_gamma_wait((np.asarray(mean), sd_s * sd_s, np.zeros(sd_s.shape)))


def as_floats(wait: WaitMoments) -> list[float]:
    return [float(value) for value in wait]


def test_waits_are_those_of_the_reference() -> None:
    wait = shifted_gamma_wait((np.array(-1.0), np.array(0.81), np.array(0.2194)))
    assert as_floats(wait) == pytest.approx([0.10341, 0.10577, 1.0 - 0.83162], rel=1e-4)
    wait = gaussian_wait(-0.5, 1.0)
    assert as_floats(wait) == pytest.approx([0.53206, 0.82294, 1.0 - 0.52933], rel=1e-4)


def test_worked_general_example() -> None:
    # Gamma inter-arrival times of scv 0.25, lognormal service of mean 0.8 and scv 0.25.
    increment = queue_increment(
        1.0, 0.25, gamma_third_central_s3(1.0, 0.5), 0.8, 0.16, lognormal_third_central_s3(0.8, 0.5)
    )
    wait = shifted_gamma_wait(increment)
    assert as_floats(wait) == pytest.approx([0.692, 0.939, 1.0 - 0.366], rel=2e-3)


@pytest.mark.parametrize(("cv", "rho"), SIMULATED_MEANS)
def test_table_of_simulated_means(cv: float, rho: float) -> None:
    wait = shifted_gamma_wait(clocked_lognormal(rho, cv))
    assert float(wait.mean_s) == pytest.approx(SIMULATED_MEANS[cv, rho], rel=0.03)


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.9, 0.99, 0.9999])
def test_exponential_service_and_a_clock(rho: float) -> None:
    # P(W > x) = s exp(-(1 - s) x / rho), s = exp(-(1 - s) / rho).
    decay = float(mpmath.findroot(lambda s: s - mpmath.exp(-(1 - s) / rho), 1.0 - 2.0 * (1 - rho)))
    if abs(decay - 1.0) < 1e-9:
        decay = float(mpmath.findroot(lambda s: s - mpmath.exp(-(1 - s) / rho), 0.1))
    unit = rho / (1.0 - decay)
    expected = [decay * unit, decay * (2.0 - decay) * unit**2, decay]
    assert as_floats(shifted_gamma_wait(clocked_gamma(rho, 1.0))) == pytest.approx(
        expected, rel=1e-6
    )


@pytest.mark.parametrize("rho", [0.2, 0.6, 0.95, 0.999])
def test_constant_service_and_poisson_arrivals(rho: float) -> None:
    # A reflected gamma increment: exact, as exponential times are gamma.
    wait = shifted_gamma_wait(queue_increment(1.0, 1.0, 2.0, rho, 0.0, 0.0))
    exact = pollaczek_khinchine_wait(1.0, rho, rho**2, rho**3)
    assert as_floats(wait) == pytest.approx(as_floats(exact), rel=1e-6)


@pytest.mark.parametrize("beta", [1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0])
def test_normal_increments_against_the_full_series(beta: float) -> None:
    # Janssen and van Leeuwaarden (2007), theorems 1 and 2, which converge up to 2 sqrt(pi).
    root = float(mpmath.sqrt(2 * mpmath.pi))

    def zeta_sum(start: float, weight: Callable[[int], float]) -> float:
        return sum(
            float(mpmath.zeta(start - order)) / weight(order) * (-beta * beta / 2.0) ** order
            for order in range(40)
        )

    mean = 1.0 / (2.0 * beta) + float(mpmath.zeta(0.5)) / root + beta / 4.0
    mean += (
        beta**2 / root * zeta_sum(-0.5, lambda r: factorial(r) * (2.0 * r + 1.0) * (2.0 * r + 2.0))
    )
    no_wait = np.sqrt(2.0) * beta
    no_wait *= np.exp(beta / root * zeta_sum(0.5, lambda r: factorial(r) * (2.0 * r + 1.0)))
    wait = gaussian_wait(-beta, 1.0)
    assert float(wait.mean_s) == pytest.approx(mean, rel=2e-6, abs=2e-6)
    assert float(1.0 - wait.wait_prob) == pytest.approx(no_wait, rel=2e-6, abs=1e-12)


def test_almost_full_utilization() -> None:
    # The Poisson queue of constant service, 450 000 service times less a fraction of one.
    slack = 1e-7
    increment = np.array(-slack), np.array(0.09), np.array(0.0)
    wait = shifted_gamma_wait(increment)
    assert float(wait.mean_s) == pytest.approx(450_000.0 - 0.3 * 0.582597, rel=1e-8)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("beta", [0.001, 0.1, 1.0])
def test_vanishing_skewness_meets_the_normal_law(sign: float, beta: float) -> None:
    normal = as_floats(gaussian_wait(-beta, 1.0))
    third = sign * np.array([1e-3, 1e-5, 1e-7])
    waits = shifted_gamma_wait((np.array(-beta), np.ones(()), third))
    for number, (mean, _, prob) in enumerate(zip(*waits, strict=True)):
        assert float(mean) == pytest.approx(normal[0], rel=1e-3 * 0.1**number * 3.0 + 1e-8)
        assert float(prob) == pytest.approx(normal[2], rel=1e-3 * 0.1**number * 3.0 + 1e-8)


@given(st.floats(0.05, 1.3), st.floats(1.001, 1.3), st.floats(0.01, 20.0))
def test_grows_with_load_up_to_infinity(rho: float, factor: float, cv: float) -> None:
    light = shifted_gamma_wait(clocked_gamma(rho, cv))
    heavy = shifted_gamma_wait(clocked_gamma(rho * factor, cv))
    for low, high in zip(as_floats(light), as_floats(heavy), strict=True):
        assert low >= 0.0
        assert low * (1.0 - 1e-5) <= high
    assert np.isinf(light.mean_s) == np.isinf(light.variance_s2) == (rho >= 1.0)


@given(st.floats(-50.0, -1e-6), st.floats(1e-3, 1e3), st.floats(-100.0, 100.0))
def test_never_nan_nor_negative(mean_s: float, sd_s: float, skewness: float) -> None:
    # Clear of the refused strip just below a mean of zero.
    wait = shifted_gamma_wait((np.array(mean_s), np.array(sd_s**2), np.array(skewness * sd_s**3)))
    for value in as_floats(wait):
        assert 0.0 <= value < np.inf
    assert float(wait.wait_prob) <= 1.0


def test_broadcasts_and_is_unbounded_from_zero_on() -> None:
    wait = shifted_gamma_wait(
        (np.array([[-0.5], [0.0], [1.0]]), np.array([1.0, 4.0]), np.zeros(()))
    )
    assert wait.mean_s.shape == wait.variance_s2.shape == wait.wait_prob.shape == (3, 2)
    assert np.all(np.isfinite(wait.mean_s[0]))
    assert np.all(np.isinf(wait.mean_s[1:]))
    assert np.all(wait.wait_prob[1:] == 1.0)


def test_nothing_waits_without_variation() -> None:
    still = np.array(-1.0), np.zeros(()), np.zeros(())
    assert as_floats(shifted_gamma_wait(still)) == [0.0, 0.0, 0.0]
    # A reflected gamma that ends below zero: constant service, and a gap of at least its length.
    bounded = np.array(-1.0), np.ones(()), np.array(-2.5)
    assert as_floats(shifted_gamma_wait(bounded)) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "refused",
    [
        lambda: shifted_gamma_wait((np.array(np.nan), np.ones(()), np.zeros(()))),
        lambda: shifted_gamma_wait((np.array(-1.0), np.array(-1.0), np.zeros(()))),
        lambda: shifted_gamma_wait((np.array(-1e-12), np.ones(()), np.zeros(()))),
    ],
)
def test_refusals(refused: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"must|need|standard deviations"):
        refused()
