"""The range in which theory.md (Q17) states the error of a wait, and the method behind it."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from headway.models.queues.random_walk import gamma_third_central_s3
from headway.models.queues.times import LatticeLaw, QueueTime
from headway.models.queues.wait import Wait

MOST_LOST_TAIL_RATIO = 0.05
"""Share of a time's third moment that its lattice may lose: the deviation of exact waits for
Poisson arrivals is then within 2%, the mean within 1%."""
RAREST_WAIT_RATIO = 1e-3

# Ranges in which (Q10) and (Q5) were found accurate, docs/model-accuracy.md.
LEAST_BUSY_CLOCKED = 0.7
LEAST_BUSY = 0.8
LEAST_BUSY_QNA = 0.9
STEADY_SCV = 0.09
LARGEST_SERVICE_SCV = 1.0
LARGEST_ARRIVAL_SCV = 4.0
MOST_SKEWED_RATIO = 5.0 / 3.0
NEGLIGIBLE = 1e-10


class WaitMethod(StrEnum):
    """How a wait was computed."""

    LATTICE = "lattice"
    SHIFTED_GAMMA = "shifted gamma"
    QNA = "QNA"
    STABILITY = "stability"


def method_of(interarrival: QueueTime, service: QueueTime, wait: Wait) -> WaitMethod:
    """The method that (Q17) chooses for these times."""
    if service.mean_s >= interarrival.mean_s:
        return WaitMethod.STABILITY
    if wait.law is not None:
        return WaitMethod.LATTICE
    if _knows_skewness(interarrival, service) or not 0.8 <= interarrival.scv <= 1.5:
        return WaitMethod.SHIFTED_GAMMA
    return WaitMethod.QNA


def out_of_range(interarrival: QueueTime, service: QueueTime, wait: Wait) -> str:
    """Why the error of a wait may be larger than stated; empty if it is in range."""
    match method_of(interarrival, service, wait):
        case WaitMethod.LATTICE:
            return _out_of_lattice(interarrival, service, wait.law)
        case WaitMethod.QNA:
            return _out_of_qna(interarrival, service)
        case WaitMethod.SHIFTED_GAMMA if service.scv > 0.0 or interarrival.scv > 0.0:
            if not _knows_skewness(interarrival, service):
                return "third moments assumed: lognormal service, gamma inter-arrival times"
            return _out_of_three_moments(interarrival, service, wait)
    return ""


def _knows_skewness(interarrival: QueueTime, service: QueueTime) -> bool:
    return interarrival.third_central_s3 is not None and service.third_central_s3 is not None


def _out_of_lattice(interarrival: QueueTime, service: QueueTime, law: LatticeLaw | None) -> str:
    assert law is not None
    if not law.mean_s > RAREST_WAIT_RATIO * interarrival.mean_s:
        return "a wait this rare is accurate to 3% only"
    if not all(_keeps_its_tail(time, law.step_s) for time in (service, interarrival)):
        return "times vary so much that the lattice cuts off a tail that matters"
    return ""


def _keeps_its_tail(time: QueueTime, step_s: float) -> bool:
    """Whether a law on the lattice has the third moment of the time, which causes long waits."""
    exact_s3, mean_s = time.third_central_s3, time.mean_s
    assert exact_s3 is not None
    assert time.on_lattice is not None
    scale_s3 = exact_s3 + 3.0 * time.variance_s2 * mean_s + mean_s**3
    lost_s3 = abs(time.on_lattice(step_s).third_central_s3 - exact_s3)
    return lost_s3 <= MOST_LOST_TAIL_RATIO * scale_s3


def _out_of_three_moments(interarrival: QueueTime, service: QueueTime, wait: Wait) -> str:
    """Why mean and standard deviation may be off by more than 10%."""
    is_clocked = interarrival.scv == 0.0
    lowest = LEAST_BUSY_CLOCKED if is_clocked and service.scv >= STEADY_SCV else LEAST_BUSY
    gamma_s3 = float(gamma_third_central_s3(interarrival.mean_s, np.sqrt(interarrival.scv)))
    if service.mean_s / interarrival.mean_s < lowest:
        return f"measured only for utilization {lowest:g} and above"
    if service.scv > LARGEST_SERVICE_SCV or interarrival.scv > LARGEST_ARRIVAL_SCV:
        return "measured only for a service cv up to 1 and arrivals of a cv up to 2"
    third_s3 = interarrival.third_central_s3
    if third_s3 is not None and third_s3 > MOST_SKEWED_RATIO * gamma_s3 + NEGLIGIBLE:
        return "arrivals are so skewed that three moments do not determine the wait"
    if not wait.mean_s > RAREST_WAIT_RATIO * interarrival.mean_s:
        return "three moments do not determine a wait this rare"
    return ""


def _out_of_qna(interarrival: QueueTime, service: QueueTime) -> str:
    if service.third_central_s3 is None:
        return "third moment assumed: lognormal service"
    if service.mean_s / interarrival.mean_s < LEAST_BUSY_QNA:
        return f"two moments of arrivals are enough from utilization {LEAST_BUSY_QNA:g} on"
    if service.scv > LARGEST_SERVICE_SCV:
        return "measured only for a service cv up to 1"
    return ""
