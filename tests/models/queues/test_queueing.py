"""Closed forms of the wait: golden values, the limits in which they are exact, and laws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.queues.queueing import (
    WaitMoments,
    gamma_wait_quantile_s,
    pollaczek_khinchine_wait,
    qna_wait,
)
from headway.models.queues.random_walk import (
    gamma_third_central_s3,
    lognormal_third_central_s3,
    queue_increment,
    wait_decay_per_s,
)

utilizations = st.floats(0.01, 0.999)
scvs = st.floats(0.0, 25.0)


def test_golden_qna_and_pollaczek_khinchine() -> None:
    qna = [float(value) for value in qna_wait(1.0, 0.25, 0.8, 0.25, 1.953125)]
    assert qna == pytest.approx([0.66322, 0.85846, 0.6550], rel=1e-4)
    exact = pollaczek_khinchine_wait(1.0, 0.8, 0.8, 1.0)
    assert float(exact.mean_s) == pytest.approx(2.0)
    assert float(exact.second_moment_s2) == pytest.approx(9.66667, rel=1e-6)
    assert float(exact.variance_s2) == pytest.approx(5.66667, rel=1e-6)


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9, 0.999])
def test_markovian_queue(rho: float) -> None:
    mean_s = rho * rho / (1.0 - rho)
    wait = pollaczek_khinchine_wait(1.0, rho, 2.0 * rho**2, 6.0 * rho**3)
    assert float(wait.mean_s) == pytest.approx(mean_s)
    assert float(wait.variance_s2) == pytest.approx(rho**3 * (2.0 - rho) / (1.0 - rho) ** 2)
    assert float(wait.wait_prob) == pytest.approx(rho)


@given(utilizations, scvs, st.floats(1e-3, 1e4))
def test_poisson_arrivals_meet_pollaczek_khinchine(rho: float, scv: float, unit_s: float) -> None:
    service_s, third_ratio = rho * unit_s, (1.0 + scv) ** 3
    exact = pollaczek_khinchine_wait(
        unit_s, service_s, (1.0 + scv) * service_s**2, third_ratio * service_s**3
    )
    qna = qna_wait(unit_s, 1.0, service_s, scv, third_ratio)
    assert [float(value) for value in qna] == pytest.approx([float(value) for value in exact])


@given(utilizations, st.floats(1.0001, 1.5), scvs, scvs)
def test_means_grow_with_load_up_to_infinity(
    rho: float, factor: float, interarrival_scv: float, service_scv: float
) -> None:
    loads = rho * np.array([1.0, factor])
    wait = qna_wait(1.0, interarrival_scv, loads, service_scv, (1.0 + service_scv) ** 3).mean_s
    assert not np.any(np.isnan(wait))
    assert np.all(wait >= 0.0)
    assert wait[1] >= wait[0]
    assert np.isinf(wait[1]) == (rho * factor >= 1.0)


@given(st.floats(0.01, 3.0), scvs, scvs)
def test_qna_is_never_nan(rho: float, interarrival_scv: float, service_scv: float) -> None:
    wait = qna_wait(1.0, interarrival_scv, rho, service_scv, (1.0 + service_scv) ** 3)
    assert not any(np.isnan(value) for value in wait)
    assert np.isinf(wait.mean_s) == np.isinf(wait.variance_s2) == (rho >= 1.0)
    assert 0.0 < float(wait.wait_prob) <= 1.0


def test_two_clocks_do_not_wait() -> None:
    assert [float(value) for value in qna_wait(1.0, 0.0, 0.9, 0.0, 1.0)[:2]] == [0.0, 0.0]


def test_slack_keeps_its_digits() -> None:
    service = np.nextafter(1.0, 0.0)
    expected = 1.0 / (1.0 - service)
    assert float(qna_wait(1.0, 1.0, service, 1.0, 8.0).mean_s) == pytest.approx(expected)


def test_formulas_broadcast() -> None:
    wait = qna_wait(1.0, np.ones((3, 1)), np.array([0.5, 0.9, 1.0, 1.2]), 0.25, 1.953125)
    assert [value.shape for value in wait] == [(3, 4)] * 3
    assert np.array_equal(np.isinf(wait.mean_s[0]), [False, False, True, True])
    assert pollaczek_khinchine_wait(np.ones((2, 1)), 0.5, 0.5, np.ones(3)).wait_prob.shape == (2, 3)


def test_decay_solves_its_cubic() -> None:
    variance, third = np.array([0.09, 0.5, 1.0]), np.array([0.0, 0.4, -0.5])
    decay = wait_decay_per_s(-0.1, variance, third)
    cubic = -0.1 + variance * decay / 2.0 + third * decay**2 / 6.0
    assert cubic == pytest.approx(np.zeros(3), abs=1e-12)


def test_gamma_quantile() -> None:
    wait = pollaczek_khinchine_wait(1.0, 0.9, 2.0 * 0.81, 6.0 * 0.729)
    exact = np.log(0.9 / 0.01) * 0.9 / 0.1
    assert float(gamma_wait_quantile_s(0.99, wait)) == pytest.approx(exact)
    assert float(gamma_wait_quantile_s(0.05, wait)) == 0.0
    golden = WaitMoments(np.array(0.10341), np.array(0.10577), np.array(1.0 - 0.83162))
    assert float(gamma_wait_quantile_s(0.99, golden)) == pytest.approx(1.634, abs=1e-3)


@given(st.floats(0.0, 0.9999), st.floats(0.01, 1.5), st.floats(0.0, 3.0))
def test_quantiles_are_never_nan(q: float, rho: float, cv: float) -> None:
    wait = pollaczek_khinchine_wait(1.0, rho, rho**2 * (1 + cv**2), rho**3 * (1 + cv**2) ** 3)
    quantile = gamma_wait_quantile_s(q, wait)
    assert float(quantile) >= 0.0
    assert np.isinf(quantile) == (rho >= 1.0)


def test_third_moments_are_those_of_the_reference() -> None:
    assert float(lognormal_third_central_s3(9.0, 0.1)) == pytest.approx(0.219429, rel=1e-5)
    assert float(gamma_third_central_s3(2.0, 1.0)) == pytest.approx(16.0)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: qna_wait(0.0, 1.0, 0.5, 1.0, 8.0),
        lambda: qna_wait(1.0, -0.1, 0.5, 1.0, 8.0),
        lambda: qna_wait(1.0, 1.0, np.array([0.5, 0.0]), 1.0, 8.0),
        lambda: qna_wait(1.0, 1.0, float("nan"), 1.0, 8.0),
        lambda: qna_wait(1.0, 1.0, 0.5, 1.0, 3.9),
        lambda: pollaczek_khinchine_wait(1.0, 0.5, 0.24, 1.0),
        lambda: pollaczek_khinchine_wait(1.0, 0.5, 0.25, 0.0),
        lambda: queue_increment(1.0, -1.0, 0.0, 0.5, 0.0, 0.0),
        lambda: queue_increment(0.0, 1.0, 0.0, 0.5, 0.0, 0.0),
        lambda: lognormal_third_central_s3(-1.0, 0.5),
        lambda: gamma_wait_quantile_s(1.0, qna_wait(1.0, 1.0, 0.5, 0.0, 1.0)),
        lambda: gamma_wait_quantile_s(0.5, WaitMoments(np.array(-1.0), np.ones(()), np.ones(()))),
        lambda: gamma_wait_quantile_s(0.5, WaitMoments(np.ones(()), np.ones(()), np.array(2.0))),
        lambda: wait_decay_per_s(*queue_increment(1.0, 0.0, 0.0, 0.5, 0.0, 0.0)),
    ],
)
def test_refusals(refused: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"must|need|not those"):
        refused()
