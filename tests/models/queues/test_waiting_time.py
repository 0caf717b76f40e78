"""The law of the wait on a lattice, and the choice of a method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.models.queues.queueing import pollaczek_khinchine_wait
from headway.models.queues.times import (
    LatticeLaw,
    LatticeTooLongError,
    QueueTime,
    constant_time,
    gamma_time,
    lattice_law,
    lattice_sample,
    lognormal_time,
)
from headway.models.queues.wait import lattice_wait, queue_wait
from tests.oracles.queue import QueueTrace, correlated_lognormal_s, observed_time, simulate_queue
from tests.oracles.wait_range import WaitMethod, method_of, out_of_range
from tests.seeds import examples

# The design study: clocked arrivals of period 1, lognormal service; mean of the lattice there,
# simulated mean, probability of no wait and p99.
CLOCKED = {
    (0.1, 0.8): (4.06e-4, 4.07e-4, 0.989, 0.005),
    (0.1, 0.9): (0.01035, 0.01033, 0.832, 0.164),
    (0.1, 0.95): (0.04951, 0.04935, 0.556, 0.394),
    (0.3, 0.7): (0.01810, 0.01814, 0.894, 0.398),
    (0.3, 0.9): (0.2583, 0.2586, 0.452, 1.84),
    (0.3, 0.95): (0.6911, 0.6885, 0.250, 3.90),
    (1.0, 0.5): (0.1492, 0.1487, 0.824, 2.66),
    (1.0, 0.9): (3.805, 3.822, 0.220, 23.2),
}
# Mean inter-arrival time 1; simulated means for the cv of gamma arrivals, of lognormal service.
GENERAL = {
    (0.5, 0.3, 0.7): 0.192,
    (0.5, 1.0, 0.7): 0.879,
    (0.5, 1.0, 0.9): 4.88,
    (1.0, 0.3, 0.9): 4.42,
    (2.0, 0.3, 0.7): 3.96,
    (2.0, 1.0, 0.9): 21.4,
}


def moments_only(time: QueueTime, *, third: bool = True) -> QueueTime:
    return QueueTime(
        mean_s=time.mean_s, scv=time.scv, third_central_s3=time.third_central_s3 if third else None
    )


def noise_ratio(trace: QueueTrace) -> tuple[float, float]:
    """Four standard errors of the mean and the variance of a trace, from 40 stretches of it."""
    stretch = trace.wait_s[: len(trace.wait_s) // 40 * 40].reshape(40, -1)
    means = stretch.mean(axis=1)
    squares = ((stretch - trace.mean_s) ** 2).mean(axis=1)
    factor = 4.0 / np.sqrt(40.0)
    return (
        factor * float(means.std()) / trace.mean_s,
        factor * float(squares.std()) / trace.variance_s2,
    )


@pytest.mark.parametrize(("cv", "rho"), CLOCKED)
def test_table_of_clocked_queues(cv: float, rho: float) -> None:
    lattice_mean, simulated_mean, no_wait, _ = CLOCKED[cv, rho]
    wait = queue_wait(constant_time(1.0), lognormal_time(rho, cv))
    assert wait.law is not None
    assert wait.mean_s == pytest.approx(lattice_mean, rel=2e-3)
    assert wait.mean_s == pytest.approx(simulated_mean, rel=6e-3)
    assert 1.0 - wait.wait_prob == pytest.approx(no_wait, abs=1.5e-3)


@pytest.mark.parametrize(("cv", "rho"), [item for item in CLOCKED if item != (0.1, 0.8)])
def test_p99_of_clocked_queues(cv: float, rho: float) -> None:
    wait = queue_wait(constant_time(1.0), lognormal_time(rho, cv))
    assert float(wait.quantile_s(0.99)) == pytest.approx(CLOCKED[cv, rho][3], rel=1e-2)


@pytest.mark.parametrize(("interarrival_cv", "service_cv", "rho"), GENERAL)
def test_table_of_general_queues(interarrival_cv: float, service_cv: float, rho: float) -> None:
    interarrival, service = gamma_time(1.0, interarrival_cv), lognormal_time(rho, service_cv)
    expected = GENERAL[interarrival_cv, service_cv, rho]
    assert queue_wait(interarrival, service).mean_s == pytest.approx(expected, rel=1.5e-2)
    by_moments = queue_wait(moments_only(interarrival), moments_only(service))
    assert by_moments.law is None
    assert by_moments.mean_s == pytest.approx(expected, rel=0.12)


@pytest.mark.parametrize(("cv", "rho"), [(0.1, 0.9), (0.3, 0.7), (0.3, 0.9), (1.0, 0.5)])
def test_clocked_queues_against_simulation(cv: float, rho: float) -> None:
    service = correlated_lognormal_s(rho, cv, 0.0, num_values=1_000_000, seed=7)
    trace = simulate_queue(np.array(1.0), service, num_warmup=1000)
    wait = queue_wait(constant_time(1.0), lognormal_time(rho, cv))
    of_mean, of_variance = noise_ratio(trace)
    assert wait.mean_s == pytest.approx(trace.mean_s, rel=2e-3 + of_mean)
    assert wait.sd_s**2 == pytest.approx(trace.variance_s2, rel=5e-3 + of_variance)
    assert 1.0 - wait.wait_prob == pytest.approx(1.0 - trace.wait_prob, abs=5e-3)
    step_s = 0.04 * rho * cv  # a quantile of the lattice is a multiple of its step
    for level, noise in ((0.95, 0.03), (0.99, 0.03), (0.999, 0.08)):
        measured = float(trace.quantile_s(level))
        assert float(wait.quantile_s(level)) == pytest.approx(
            measured, abs=step_s + noise * measured
        )


@pytest.mark.statistical
@pytest.mark.parametrize("cv", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("rho", [0.5, 0.7, 0.8, 0.9, 0.95, 0.99])
def test_grid_of_clocked_queues(cv: float, rho: float) -> None:
    interarrival, service = constant_time(1.0), lognormal_time(rho, cv)
    wait = queue_wait(interarrival, service)
    if wait.mean_s < 1e-5:
        pytest.skip("too rare to be simulated")
    times = correlated_lognormal_s(rho, cv, 0.0, num_values=8_000_000, seed=11)
    trace = simulate_queue(np.array(1.0), times, num_warmup=100_000)
    of_mean, of_variance = noise_ratio(trace)
    assert wait.mean_s == pytest.approx(trace.mean_s, rel=5e-3 + of_mean)
    assert wait.sd_s**2 == pytest.approx(trace.variance_s2, rel=5e-3 + of_variance)
    moments = moments_only(interarrival), moments_only(service)
    by_moments = queue_wait(*moments)
    if not out_of_range(*moments, by_moments):
        assert by_moments.mean_s == pytest.approx(trace.mean_s, rel=0.054 + of_mean)
        assert by_moments.sd_s**2 == pytest.approx(trace.variance_s2, rel=0.06 + of_variance)


@pytest.mark.statistical
@pytest.mark.parametrize("interarrival_cv", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("service_cv", [0.3, 1.0])
@pytest.mark.parametrize("rho", [0.7, 0.9])
def test_grid_of_general_queues(interarrival_cv: float, service_cv: float, rho: float) -> None:
    shape, num_jobs = interarrival_cv**-2, 8_000_000
    arrivals = np.random.default_rng(12).gamma(shape, 1.0 / shape, num_jobs)
    times = correlated_lognormal_s(rho, service_cv, 0.0, num_values=num_jobs, seed=13)
    trace = simulate_queue(arrivals, times, num_warmup=100_000)
    of_mean, of_variance = noise_ratio(trace)
    interarrival, service = gamma_time(1.0, interarrival_cv), lognormal_time(rho, service_cv)
    wait = queue_wait(interarrival, service)
    assert wait.mean_s == pytest.approx(trace.mean_s, rel=5e-3 + of_mean)
    assert wait.sd_s**2 == pytest.approx(trace.variance_s2, rel=1e-2 + of_variance)
    by_moments = queue_wait(moments_only(interarrival), moments_only(service))
    assert by_moments.mean_s == pytest.approx(trace.mean_s, rel=0.12 + of_mean)
    assert by_moments.sd_s**2 == pytest.approx(trace.variance_s2, rel=0.07 + of_variance)


@pytest.mark.parametrize("rho", [0.3, 0.8, 0.95])
@pytest.mark.parametrize("cv", [0.3, 1.0, 2.0])
def test_poisson_arrivals_meet_pollaczek_khinchine(rho: float, cv: float) -> None:
    service = lognormal_time(rho, cv)
    exact = pollaczek_khinchine_wait(1.0, rho, rho**2 * (1 + cv**2), rho**3 * (1 + cv**2) ** 3)
    wait = queue_wait(gamma_time(1.0, 1.0), service)
    assert wait.mean_s == pytest.approx(float(exact.mean_s), rel=2e-3)
    assert wait.sd_s**2 == pytest.approx(float(exact.variance_s2), rel=5e-3)
    assert wait.wait_prob == pytest.approx(rho, abs=2e-3)
    # QNA takes the third moment that it is given.
    times = moments_only(gamma_time(1.0, 1.0), third=False), moments_only(service)
    by_qna = queue_wait(*times)
    assert method_of(*times, by_qna) is WaitMethod.QNA
    assert by_qna.mean_s == pytest.approx(float(exact.mean_s))
    assert by_qna.sd_s**2 == pytest.approx(float(exact.variance_s2))


def test_markovian_quantiles() -> None:
    wait = queue_wait(gamma_time(1.0, 1.0), gamma_time(0.8, 1.0))
    level = np.array([0.5, 0.9, 0.99, 0.9999])
    exact = np.log(0.8 / (1.0 - level)) * 4.0
    assert wait.quantile_s(level) == pytest.approx(exact, rel=2e-3, abs=0.03)


@pytest.mark.parametrize("up", [0.05, 0.25, 0.45, 0.499])
def test_a_walk_of_two_steps_is_geometric(up: float) -> None:
    walk = LatticeLaw(step_s=0.5, lowest_index=-1, probability=np.array([1.0 - up, 0.0, up]))
    law, _ = lattice_wait(walk)
    ratio = up / (1.0 - up)
    geometric = (1.0 - ratio) * ratio ** np.arange(30)
    assert law.probability[:30] == pytest.approx(geometric, abs=1e-12)
    assert law.mean_s == pytest.approx(0.5 * ratio / (1.0 - ratio))


def test_the_law_solves_the_recursion() -> None:
    generator = np.random.default_rng(5)
    walk = LatticeLaw(step_s=1.0, lowest_index=-9, probability=generator.dirichlet(np.ones(14)))
    law, _ = lattice_wait(walk)
    after = law.plus(walk)
    folded = np.concatenate([[after.probability[:10].sum()], after.probability[10:]])
    assert folded[:200] == pytest.approx(law.probability[:200], abs=1e-12)


def test_nothing_waits_if_no_service_exceeds_a_gap() -> None:
    gap = LatticeLaw(step_s=1.0, lowest_index=-3, probability=np.array([0.5, 0.25, 0.25]))
    law, wait_prob = lattice_wait(gap)
    assert (law.mean_s, wait_prob) == (0.0, 0.0)
    assert queue_wait(constant_time(1.0), constant_time(0.9)).mean_s == 0.0
    assert float(queue_wait(constant_time(1.0), constant_time(0.9)).quantile_s(0.99)) == 0.0
    uneven = observed_time(np.array([0.3, 0.9]))
    assert queue_wait(constant_time(1.0), uneven).wait_prob == 0.0


def test_observed_services() -> None:
    values = correlated_lognormal_s(0.9, 0.3, 0.0, num_values=20_000, seed=3)
    values *= 0.9 / values.mean()
    law = queue_wait(constant_time(1.0), lognormal_time(0.9, float(values.std()) / 0.9))
    wait = queue_wait(constant_time(1.0), observed_time(values))
    assert wait.law is not None
    assert wait.mean_s == pytest.approx(law.mean_s, rel=0.03)


def test_heavy_traffic_hands_over_to_moments() -> None:
    times = constant_time(1.0), lognormal_time(0.99999, 0.3)
    wait = queue_wait(*times)
    assert wait.law is None
    assert not out_of_range(*times, wait)
    near = queue_wait(constant_time(1.0), lognormal_time(0.999, 0.3))
    by_moments = queue_wait(constant_time(1.0), moments_only(lognormal_time(0.999, 0.3)))
    assert near.law is not None
    assert near.mean_s == pytest.approx(by_moments.mean_s, rel=1e-3)


def test_the_method_follows_from_what_is_known() -> None:
    def judged(interarrival: QueueTime, service: QueueTime) -> tuple[WaitMethod, bool]:
        wait = queue_wait(interarrival, service)
        method = method_of(interarrival, service, wait)
        return method, not out_of_range(interarrival, service, wait)

    clock, service = constant_time(1.0), lognormal_time(0.9, 0.3)
    three, two = moments_only(service), moments_only(service, third=False)
    assert judged(clock, three) == (WaitMethod.SHIFTED_GAMMA, True)
    assert judged(clock, two) == (WaitMethod.SHIFTED_GAMMA, False)
    assert queue_wait(clock, two).mean_s == pytest.approx(queue_wait(clock, three).mean_s)
    poisson = QueueTime(mean_s=1.0, scv=1.0)
    assert judged(poisson, two) == (WaitMethod.QNA, False)
    assert judged(poisson, three) == (WaitMethod.QNA, True)
    light = lognormal_time(0.7, 0.1)
    assert judged(clock, moments_only(light)) == (WaitMethod.SHIFTED_GAMMA, False)
    assert judged(clock, light) == (WaitMethod.LATTICE, False)


@examples(12, 60)
@given(st.floats(0.05, 1.5), st.floats(0.0, 3.0), st.floats(0.0, 3.0), st.integers(0, 3))
@example(0.99999, 1.0, 0.0, 3)
def test_never_nan_and_unbounded_from_full_utilization(
    rho: float, interarrival_cv: float, service_cv: float, known: int
) -> None:
    interarrival, service = gamma_time(1.0, interarrival_cv), lognormal_time(rho, service_cv)
    if known < 3:
        interarrival = moments_only(interarrival, third=known > 0)
        service = moments_only(service, third=known > 1)
    wait = queue_wait(interarrival, service)
    for value in (wait.mean_s, wait.sd_s, float(wait.quantile_s(0.99))):
        assert value >= 0.0
        assert np.isinf(value) == (rho >= 1.0)
    assert 0.0 <= wait.wait_prob <= 1.0


@examples(10, 25)
@given(st.floats(0.3, 0.9), st.floats(1.01, 1.1), st.floats(0.05, 1.5))
def test_grows_with_load(rho: float, factor: float, cv: float) -> None:
    light = queue_wait(constant_time(1.0), lognormal_time(rho, cv))
    heavy = queue_wait(constant_time(1.0), lognormal_time(rho * factor, cv))
    assert light.mean_s <= heavy.mean_s
    step_s = 0.04 * rho * cv
    assert float(light.quantile_s(0.99)) <= float(heavy.quantile_s(0.99)) + step_s


def test_moments_of_laws_on_a_lattice() -> None:
    law = lattice_law(lambda x: np.clip(x, 0.0, 1.0), 0.01, 0.0, 1.0)
    assert law.mean_s == pytest.approx(0.5)
    assert law.variance_s2 == pytest.approx(1.0 / 12.0, rel=1e-3)
    assert law.third_central_s3 == pytest.approx(0.0, abs=1e-12)
    gap = law.plus(law.negative())
    assert gap.mean_s == pytest.approx(0.0, abs=1e-12)
    assert gap.variance_s2 == pytest.approx(2.0 * law.variance_s2)
    sample = lattice_sample(np.array([0.303, 1.7, 5.2]), 0.1)
    assert sample.mean_s == pytest.approx((0.303 + 1.7 + 5.2) / 3.0)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: LatticeLaw(step_s=0.0, lowest_index=0, probability=np.ones(1)),
        lambda: LatticeLaw(step_s=1.0, lowest_index=0, probability=np.array([-0.5, 1.5])),
        lambda: LatticeLaw(step_s=1.0, lowest_index=0, probability=np.array([0.5])),
        lambda: lattice_sample(np.ones(2), 1.0).plus(lattice_sample(np.ones(2), 2.0)),
        lambda: lattice_sample(np.ones(2), 1.0).quantile_s(1.0),
        lambda: lattice_sample(np.ones(0), 1.0),
        lambda: lattice_sample(np.ones(1), 0.0),
        lambda: lattice_law(lambda x: np.clip(x, 0.0, 1.0), 0.1, 0.5, 1.0),
        lambda: lattice_law(lambda x: np.clip(x, 0.0, 1.0), 0.1, 1.0, 0.0),
        lambda: lattice_wait(lattice_sample(np.ones(2), 1.0)),
        lambda: QueueTime(mean_s=0.0, scv=1.0),
        lambda: QueueTime(mean_s=1.0, scv=float("inf")),
        lambda: QueueTime(mean_s=1.0, scv=1.0, third_central_s3=float("nan")),
        lambda: QueueTime(mean_s=1.0, scv=0.0, on_lattice=constant_time(1.0).on_lattice),
        lambda: observed_time(np.array([0.0, 1.0])),
        lambda: gamma_time(1.0, -1.0),
    ],
)
def test_refusals(refused: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"must|need|steps differ|hold only"):
        refused()


def test_too_long_a_lattice_is_distinguished() -> None:
    with pytest.raises(LatticeTooLongError):
        lattice_sample(np.array([1.0, 1e9]), 1.0)
