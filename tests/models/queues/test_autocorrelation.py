"""Autocorrelated services, positive parts, and the parts of latencies on a lattice."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.queues.autocorrelation import autocorrelated_service_wait
from headway.models.queues.queueing import WaitMoments
from headway.models.queues.random_walk import (
    lognormal_third_central_s3,
    positive_parts,
    queue_increment,
    shifted_gamma_wait,
)
from headway.models.queues.times import (
    LatticeLaw,
    on_step,
    smooth_quantile_s,
    uniform_law,
    zero_or_gamma_law,
)
from tests.oracles.queue import correlated_lognormal_s, simulate_queue
from tests.seeds import examples


@pytest.mark.parametrize(
    ("rho", "cv"), [(0.9, 0.2), (0.9, 0.05), (0.7, 1.0), (0.95, 0.1), (0.999, 0.3), (0.5, 0.3)]
)
def test_without_correlation_it_is_the_shifted_gamma(rho: float, cv: float) -> None:
    third = lognormal_third_central_s3(rho, cv)
    expected = shifted_gamma_wait(queue_increment(1.0, 0.0, 0.0, rho, (rho * cv) ** 2, third))
    wait = autocorrelated_service_wait(1.0, rho, cv, 0.0)
    assert [float(value) for value in wait] == pytest.approx(
        [float(value) for value in expected], rel=1e-3
    )


@pytest.mark.parametrize("phi", [0.3, 0.6, 0.8])
def test_correlated_services_wait_as_simulated(phi: float) -> None:
    services = correlated_lognormal_s(0.9, 0.2, phi, num_values=1_000_000, seed=3)
    trace = simulate_queue(np.array(1.0), services, num_warmup=1000)
    wait = autocorrelated_service_wait(1.0, 0.9, 0.2, phi)
    independent = autocorrelated_service_wait(1.0, 0.9, 0.2, 0.0)
    assert float(wait.mean_s) == pytest.approx(trace.mean_s, rel=0.08)
    assert float(wait.variance_s2) == pytest.approx(trace.variance_s2, rel=0.20)
    assert float(independent.mean_s) < 0.95 * trace.mean_s


@examples(12, 60)
@given(st.floats(0.2, 0.99), st.floats(0.02, 1.5), st.floats(0.0, 0.9))
def test_waits_grow_with_autocorrelation(rho: float, cv: float, phi: float) -> None:
    wait = autocorrelated_service_wait(1.0, rho, cv, phi)
    more = autocorrelated_service_wait(1.0, rho, cv, phi + 0.05)
    assert 0.0 <= float(wait.mean_s) <= float(more.mean_s) * (1.0 + 1e-6) + 1e-15
    assert float(wait.variance_s2) >= 0.0
    assert 0.0 <= float(wait.wait_prob) <= 1.0
    longer = autocorrelated_service_wait(10.0, 10.0 * rho, cv, phi)
    assert float(longer.mean_s) == pytest.approx(10.0 * float(wait.mean_s), rel=1e-6)


def test_ends_of_the_range() -> None:
    assert [float(value) for value in autocorrelated_service_wait(1.0, 1.0, 0.3, 0.2)] == [
        np.inf, np.inf, 1.0,
    ]  # fmt: skip
    assert [float(value) for value in autocorrelated_service_wait(1.0, 0.9, 0.0, 0.2)] == [0.0] * 3
    for arguments in ((0.0, 1.0, 0.1, 0.1), (1.0, 0.5, 3.0, 0.1), (1.0, 0.5, 0.1, 0.99)):
        with pytest.raises(ValueError, match=r"positive|0\.\.2|0\.\.0\.98"):
            autocorrelated_service_wait(*arguments)
    with pytest.raises(ValueError, match="too full"):
        autocorrelated_service_wait(1.0, 1.0 - 1e-7, 0.3, 0.0)


@pytest.mark.parametrize("third", [-1.5, -0.1, 0.0, 0.01, 0.5, 3.0])
@pytest.mark.parametrize("drift", [-0.5, 0.0, 0.8, 2.0])
def test_positive_parts_by_quadrature(drift: float, third: float) -> None:
    parts = positive_parts(np.array([drift]), np.ones(1), np.array([third]))
    sign = -1 if third < 0.0 else 1
    with mpmath.workdps(15):
        if third == 0.0:

            def density(x: mpmath.mpf) -> mpmath.mpf:
                return mpmath.npdf(x + drift)

            low, high = 0, 20
        else:
            shape, scale = mpmath.mpf(4) / third**2, mpmath.mpf(abs(third)) / 2

            def density(x: mpmath.mpf) -> mpmath.mpf:
                above = sign * (x + drift) / scale + shape
                if above <= 0:
                    return mpmath.mpf(0)
                log = (shape - 1) * mpmath.log(above) - above - mpmath.loggamma(shape)
                return mpmath.exp(log) / scale

            end = -drift - sign * shape * scale
            low, high = (max(0, end), 60) if sign > 0 else (0, max(0, min(end, 20)))
        nodes = mpmath.linspace(low, high, 12) if high > low else [0, 0]
        expected = [
            float(mpmath.quad(lambda x, power=power: x**power * density(x), nodes))
            for power in (0, 1, 2)
        ]
    assert [float(value[0]) for value in parts] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_parts_on_a_lattice() -> None:
    uniform = uniform_law(2.0, 0.01)
    assert uniform.mean_s == pytest.approx(1.0)
    assert uniform.variance_s2 == pytest.approx(4.0 / 12.0, rel=1e-3)
    assert uniform_law(0.0, 0.1).mean_s == 0.0
    moments = WaitMoments(np.array(1.0), np.array(4.0), np.array(0.4))
    law = zero_or_gamma_law(moments, 0.01)
    assert (law.mean_s, law.variance_s2) == pytest.approx((1.0, 4.0), rel=5e-3)
    nothing = WaitMoments(np.array(0.0), np.array(0.0), np.array(0.0))
    assert zero_or_gamma_law(nothing, 0.1).mean_s == 0.0
    coarse = on_step(law, 0.037)
    assert coarse.mean_s == pytest.approx(law.mean_s, rel=1e-9)
    assert coarse.variance_s2 == pytest.approx(law.variance_s2, abs=0.037**2 / 4.0)
    assert on_step(law, 0.01) is law
    levels = np.array([0.1, 0.5, 0.99])
    assert smooth_quantile_s(uniform, levels) == pytest.approx(2.0 * levels, abs=0.006)


def test_lattice_parts_refuse() -> None:
    law = LatticeLaw(step_s=1.0, lowest_index=0, probability=np.ones(1))
    with pytest.raises(ValueError, match="width_s"):
        uniform_law(-1.0, 0.1)
    with pytest.raises(ValueError, match="finite"):
        zero_or_gamma_law(WaitMoments(np.array(np.inf), np.array(1.0), np.array(1.0)), 0.1)
    with pytest.raises(ValueError, match="step_s"):
        on_step(law, 0.0)
    with pytest.raises(ValueError, match="strictly"):
        smooth_quantile_s(law, 1.0)
    with pytest.raises(ValueError, match="sd must"):
        positive_parts(np.zeros(1), np.zeros(1), np.zeros(1))


@pytest.mark.statistical
@pytest.mark.parametrize("cv", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("rho", [0.7, 0.8, 0.9])
@pytest.mark.parametrize("phi", [0.3, 0.6, 0.8])
def test_waits_against_simulation_over_a_grid(cv: float, rho: float, phi: float) -> None:
    wait = autocorrelated_service_wait(1.0, rho, cv, phi)
    if float(wait.mean_s) < 1e-3:
        pytest.skip("too rare to be simulated")
    services = correlated_lognormal_s(rho, cv, phi, num_values=8_000_000, seed=4)
    trace = simulate_queue(np.array(1.0), services, num_warmup=10_000)
    stretches = trace.wait_s[: len(trace.wait_s) // 40 * 40].reshape(40, -1).mean(axis=1)
    noise = 4.0 * stretches.std() / np.sqrt(40.0) / trace.mean_s
    assert float(wait.mean_s) == pytest.approx(trace.mean_s, rel=0.12 + noise)
