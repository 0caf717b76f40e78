"""The wait in a queue: each closed form, and the method that `queue_wait` chooses."""

from __future__ import annotations

from itertools import product

import numpy as np

from formulas.cells import Cell, Family, judged
from headway.models.arrays import Array
from headway.models.queues.queueing import qna_wait
from headway.models.queues.times import QueueTime, constant_time, gamma_time, lognormal_time
from headway.models.queues.wait import queue_wait
from tests.oracles.queue import simulate_queue
from tests.oracles.queue_times import TimeFamily, drawn_s, moments_of
from tests.oracles.wait_range import out_of_range

_NUM_JOBS = 2_000_000
_NUM_REPLICATIONS = 4
_ARRIVALS = {"clock": 0.0, "Erlang-4": 0.5, "Poisson": 1.0, "bursty": 2.0}


def _interarrivals_s(cv: float, random: np.random.Generator) -> Array:
    if cv == 0.0:
        return np.array(1.0)
    return random.gamma(cv**-2, cv**2, _NUM_JOBS)


def _services_s(mean_s: float, cv: float, random: np.random.Generator) -> Array:
    log_variance = np.log1p(cv * cv)
    normal = random.standard_normal(_NUM_JOBS)
    times: Array = mean_s * np.exp(np.sqrt(log_variance) * normal - log_variance / 2.0)
    return times


def _moments_only(time: QueueTime) -> QueueTime:
    return QueueTime(mean_s=time.mean_s, scv=time.scv, third_central_s3=time.third_central_s3)


def simulated(arrivals: str, service_cv: float, rho: float) -> Cell:
    """One queue: gamma times between arrivals, lognormal services, one arrival per second."""
    cv = _ARRIVALS[arrivals]
    traces = []
    for seed in range(_NUM_REPLICATIONS):
        random = np.random.default_rng(seed)
        traces.append(
            simulate_queue(
                _interarrivals_s(cv, random),
                _services_s(rho, service_cv, random),
                num_warmup=_NUM_JOBS // 20,
            )
        )
    mean_s = [trace.mean_s for trace in traces]
    if min(mean_s) < 1e-3:
        return {}
    between = constant_time(1.0) if cv == 0.0 else gamma_time(1.0, cv)
    service = lognormal_time(rho, service_cv)
    whole = queue_wait(between, service)
    three = queue_wait(_moments_only(between), _moments_only(service))
    scvs = cv * cv, service_cv * service_cv
    third_ratio = (1.0 + scvs[1]) ** 3
    closed = {
        "three moments": three.mean_s,
        "QNA": float(qna_wait(1.0, scvs[0], rho, scvs[1], third_ratio).mean_s),
    }
    cell = {
        "mean, laws known": judged(whole.mean_s, mean_s),
        "standard deviation, laws known": judged(
            whole.sd_s, [trace.variance_s2**0.5 for trace in traces]
        ),
    }
    p99_s = [float(trace.quantile_s(0.99)) for trace in traces]
    if min(p99_s) > 0.0:
        cell["p99, laws known"] = judged(float(whole.quantile_s(0.99)), p99_s)
        cell["p99, three moments"] = judged(float(three.quantile_s(0.99)), p99_s)
    return cell | {f"mean, {name}": judged(value, mean_s) for name, value in closed.items()}


QUEUES = Family(
    title="The wait in a queue",
    equations="theory.md (Q2)-(Q17)",
    over=(
        "arrivals periodic (clock), Erlang-4, Poisson and bursty (cv 2); lognormal services with "
        "cv 0.1-1; utilization 0.5-0.95; without cells whose mean wait is below a thousandth of "
        "the time between arrivals"
    ),
    judge=f"{_NUM_REPLICATIONS} runs of {_NUM_JOBS:,} jobs each (Q18)",
    cells={
        f"{arrivals}, cv {cv:g}, utilization {rho:g}": (arrivals, cv, rho)
        for arrivals, cv, rho in product(
            _ARRIVALS, (0.1, 0.3, 0.6, 1.0), (0.5, 0.7, 0.8, 0.9, 0.95)
        )
    },
    simulate=simulated,
)

_NUM_FAMILY_JOBS = 1_000_000
_ARRIVAL_TIMES = (
    (TimeFamily.GAMMA, 0.0),
    (TimeFamily.WEIBULL, 0.5),
    (TimeFamily.GAMMA, 0.5),
    (TimeFamily.LOGNORMAL, 0.5),
    (TimeFamily.GAMMA, 1.0),
    (TimeFamily.GAMMA, 1.2),
    (TimeFamily.TWO_EXPONENTIALS, 1.2),
    (TimeFamily.LOGNORMAL, 1.2),
    (TimeFamily.GAMMA, 2.0),
    (TimeFamily.TWO_EXPONENTIALS, 2.0),
    (TimeFamily.LOGNORMAL, 2.0),
)
_SERVICE_TIMES = (
    (TimeFamily.GAMMA, 0.3),
    (TimeFamily.WEIBULL, 0.3),
    (TimeFamily.LOGNORMAL, 1.0),
)


def of_families(
    arrivals: tuple[TimeFamily, float], services: tuple[TimeFamily, float], rho: float
) -> Cell:
    """One queue known by moments, in range or out of range: one arrival per second."""
    traces = []
    for seed in range(_NUM_REPLICATIONS):
        random = np.random.default_rng(seed)
        between_s = drawn_s(arrivals[0], 1.0, arrivals[1], _NUM_FAMILY_JOBS, random)
        services_s = drawn_s(services[0], rho, services[1], _NUM_FAMILY_JOBS, random)
        traces.append(simulate_queue(between_s, services_s, num_warmup=_NUM_FAMILY_JOBS // 20))
    mean_s = [trace.mean_s for trace in traces]
    if min(mean_s) < 1e-3:
        return {}
    service = moments_of(services[0], rho, services[1])
    cell = {}
    for name, third in (("three moments", True), ("two moments of arrivals", False)):
        between = moments_of(arrivals[0], 1.0, arrivals[1], third=third)
        wait = queue_wait(between, service)
        reason = out_of_range(between, service, wait)
        if reason.startswith("third moments"):
            continue
        where = f"{name}, {'out of' if reason else 'in'} range"
        cell[f"mean, {where}"] = judged(wait.mean_s, mean_s)
        cell[f"standard deviation, {where}"] = judged(
            wait.sd_s, [trace.variance_s2**0.5 for trace in traces]
        )
    return cell


def _named(time: tuple[TimeFamily, float]) -> str:
    return f"{time[0].value} {time[1]:g}" if time[1] else "clock"


WAIT_RANGE = Family(
    title="Where a wait counts as in range",
    equations="theory.md (Q5), (Q10), (Q17)",
    over=(
        "times known by their moments only; arrivals periodic (clock), gamma, Weibull, lognormal "
        "and of two exponentials, cv 0.5-2; services gamma and Weibull with cv 0.3, lognormal with "
        "cv 1; utilization 0.7-0.9. A wait is in range by theory.md (Q17); the name of a cell "
        "contains arrivals and services with their cv"
    ),
    judge=f"{_NUM_REPLICATIONS} runs of {_NUM_FAMILY_JOBS:,} jobs each (Q18)",
    cells={
        f"{_named(arrivals)}, {_named(services)}, utilization {rho:g}": (arrivals, services, rho)
        for arrivals, services, rho in product(_ARRIVAL_TIMES, _SERVICE_TIMES, (0.7, 0.8, 0.9))
    },
    simulate=of_families,
)
