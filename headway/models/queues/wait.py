"""The wait in a queue, by the best method for what is known about its times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from headway.assumptions.predictions import MOST_LOST_TAIL_RATIO
from headway.models.arrays import Array, Numeric
from headway.models.queues.lattice import LatticeLaw, LatticeTooLongError
from headway.models.queues.queue_increments import (
    Increment,
    gamma_third_central_s3,
    lognormal_third_central_s3,
    queue_increment,
)
from headway.models.queues.queueing import WaitMoments, gamma_wait_quantile_s, qna_wait
from headway.models.queues.random_walk import shifted_gamma_wait
from headway.models.queues.times import QueueTime
from headway.models.queues.waiting_time import lattice_wait

_STEPS_PER_SD = 50.0
_STEPS_PER_SERVICE = 10.0
_NEGLIGIBLE = 1e-10
_RAREST_WAIT_RATIO = 1e-3

# Ranges in which (Q10) and (Q5) were found accurate, docs/model-accuracy.md.
_LEAST_BUSY_CLOCKED = 0.7
_LEAST_BUSY = 0.8
_LEAST_BUSY_QNA = 0.9
_STEADY_SCV = 0.09
_LARGEST_SERVICE_SCV = 1.0
_LARGEST_ARRIVAL_SCV = 4.0
_MOST_SKEWED_RATIO = 5.0 / 3.0


class WaitMethod(StrEnum):
    """How a wait was computed."""

    LATTICE = "lattice"
    SHIFTED_GAMMA = "shifted gamma"
    QNA = "QNA"
    STABILITY = "stability"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wait:
    """A wait, how it was computed, and whether it is within the method's checked range."""

    moments: WaitMoments
    """Arrays without dimensions."""
    method: WaitMethod
    in_range: bool
    """Whether the queue is in the range in which the method's stated errors were measured."""
    remark: str = ""
    """What was assumed, or what is out of range; empty if neither applies."""
    law: LatticeLaw | None = None
    """The whole law, if the method yields it."""

    @property
    def mean_s(self) -> float:
        """Mean wait; ``inf`` if unstable. [s]"""
        return float(self.moments.mean_s)

    @property
    def sd_s(self) -> float:
        """Standard deviation of the wait; ``inf`` if unstable. [s]"""
        return float(np.sqrt(self.moments.variance_s2))

    @property
    def wait_prob(self) -> float:
        """Probability of a wait; 1 if unstable. [-]"""
        return float(self.moments.wait_prob)

    def quantile_s(self, q: Numeric) -> Array:
        """Quantiles of the wait, 0 < q < 1: from the law if it is known, else by (Q15). [s]"""
        if self.law is not None:
            return self.law.quantile_s(q)
        return gamma_wait_quantile_s(q, self.moments)


def queue_wait(interarrival: QueueTime, service: QueueTime) -> Wait:
    r"""Wait in a queue with one server, first come first served, independent times.

    It is ``inf`` if the utilisation is 1 or more. A utilisation that is below 1 by less than the
    rounding error raises ``ValueError``.

    Parameters
    ----------
    interarrival : QueueTime
        Time from one arrival to the next, or from one bulk to the next if jobs arrive in bulks.
    service : QueueTime
        Service time, in that case of the whole bulk.

    Notes
    -----
    **(Q17)** Choice of the method: (Q16) if both laws are known and fit into a million steps, each
    at most `sd[S-A]/50` and `E[S]/10`; (Q10) if three moments are known. With only two known
    moments, it is (Q5) if `0.8 ≤ c_A^2 ≤ 1.5`, else (Q10) with the third moments of a lognormal
    service and gamma arrivals. A queue is *in range* if simulations with every family of times with
    these moments confirm the mean and the standard deviation. For (Q10), within 10%: `c_S ≤ 1` and
    `c_A ≤ 2`; `ρ ≥ 0.7` for arrivals by a clock, or 0.8 if `c_S < 0.3` or if arrivals vary; the
    third central moment of `A` at most 5/3 of that of a gamma, which excludes lognormal arrivals
    with a cv above 0.5; `E[W] > 10^-3 E[A]`; no times that take only a few values, since their
    third moment says little. For (Q5), within 15%: `ρ ≥ 0.9`, `c_S ≤ 1`, and the third moment of
    `S` is known. If the third moment of `S`, or of both, is assumed, nothing is in range. For
    (Q16), within 1% and 2.5%: `E[W] > 10^-3 E[A]`, and the lattice loses at most 5% of the third
    moments, which holds for lognormal times up to a cv of about 3 and for any gamma times.

    Examples
    --------
    >>> from headway.models.queues.times import constant_time, lognormal_time
    >>> wait = queue_wait(constant_time(10.0), lognormal_time(9.0, 0.1))
    >>> wait.method.value, wait.in_range, wait.mean_s, float(wait.quantile_s(0.99))
    ('lattice', True, 0.1035, 1.64)
    >>> queue_wait(QueueTime(mean_s=1.0, scv=1.0), QueueTime(mean_s=0.8, scv=1.0)).mean_s
    3.2
    """
    if service.mean_s >= interarrival.mean_s:
        unbounded = np.array(np.inf)
        return Wait(
            moments=WaitMoments(unbounded, unbounded, np.array(1.0)),
            method=WaitMethod.STABILITY,
            in_range=True,
            remark="at utilization 1 and above the wait grows without bound",
        )
    if interarrival.on_lattice is not None and service.on_lattice is not None:
        return _lattice_wait(interarrival, service)
    if interarrival.third_central_s3 is not None and service.third_central_s3 is not None:
        return _three_moment_wait(interarrival, service, "")
    if 0.8 <= interarrival.scv <= 1.5:
        return _qna_wait(interarrival, service)
    return _three_moment_wait(
        interarrival, service, "third moments assumed: lognormal service, gamma inter-arrival times"
    )


def _lattice_wait(interarrival: QueueTime, service: QueueTime) -> Wait:
    assert interarrival.on_lattice is not None
    assert service.on_lattice is not None
    increment = _increment(interarrival, service)
    sd_s = float(np.sqrt(increment.variance_s2))
    # Without variation no lattice is needed, since cumulants are exact.
    if sd_s <= _NEGLIGIBLE * interarrival.mean_s:
        return _three_moment_wait(interarrival, service, "")
    # At a low load the service is far shorter than arrivals vary, and it alone makes others wait.
    step_s = min(sd_s / _STEPS_PER_SD, service.mean_s / _STEPS_PER_SERVICE)
    if interarrival.scv == 0.0 and step_s < interarrival.mean_s:
        # A clock is exact on the lattice if its period is a whole number of steps.
        step_s = interarrival.mean_s / np.ceil(interarrival.mean_s / step_s)
    try:
        arrivals, services = interarrival.on_lattice(step_s), service.on_lattice(step_s)
        difference = services.plus(arrivals.negative())
        if not difference.mean_s < 0.0:
            # This close to capacity, the result depends on the rounding of times to steps.
            raise LatticeTooLongError("the lattice is too coarse for a queue this full")
        law, wait_prob = lattice_wait(difference)
    except LatticeTooLongError:
        return _three_moment_wait(interarrival, service, "the law does not fit on a lattice")
    remark = ""
    if not law.mean_s > _RAREST_WAIT_RATIO * interarrival.mean_s:
        remark = "a wait this rare is accurate to 3% only"
    elif not (_keeps_its_tail(services, service) and _keeps_its_tail(arrivals, interarrival)):
        remark = "times vary so much that the lattice cuts off a tail that matters"
    return Wait(
        moments=WaitMoments(np.array(law.mean_s), np.array(law.variance_s2), np.array(wait_prob)),
        method=WaitMethod.LATTICE,
        in_range=not remark,
        remark=remark,
        law=law,
    )


def _keeps_its_tail(on_lattice: LatticeLaw, time: QueueTime) -> bool:
    """Whether a law on the lattice has the third moment of the time, which causes long waits."""
    exact_s3, mean_s = time.third_central_s3, time.mean_s
    assert exact_s3 is not None
    scale_s3 = exact_s3 + 3.0 * time.variance_s2 * mean_s + mean_s**3
    lost_s3 = abs(on_lattice.third_central_s3 - exact_s3)
    return lost_s3 <= MOST_LOST_TAIL_RATIO.value * scale_s3


def _three_moment_wait(interarrival: QueueTime, service: QueueTime, remark: str) -> Wait:
    moments = shifted_gamma_wait(_increment(interarrival, service))
    exact = service.scv == 0.0 and interarrival.scv == 0.0
    in_range = exact
    if not remark.startswith("third moments"):
        reason = "" if exact else _outside_of_three_moments(interarrival, service, moments)
        in_range, remark = not reason, remark or reason
    return Wait(moments=moments, method=WaitMethod.SHIFTED_GAMMA, in_range=in_range, remark=remark)


def _outside_of_three_moments(
    interarrival: QueueTime, service: QueueTime, wait: WaitMoments
) -> str:
    """Why mean and standard deviation may be off by more than 10%; empty if in range (Q17)."""
    clocked = interarrival.scv == 0.0
    lowest = _LEAST_BUSY_CLOCKED if clocked and service.scv >= _STEADY_SCV else _LEAST_BUSY
    gamma_s3 = float(gamma_third_central_s3(interarrival.mean_s, np.sqrt(interarrival.scv)))
    if service.mean_s / interarrival.mean_s < lowest:
        return f"measured only for utilization {lowest:g} and above"
    if service.scv > _LARGEST_SERVICE_SCV or interarrival.scv > _LARGEST_ARRIVAL_SCV:
        return "measured only for a service cv up to 1 and arrivals of a cv up to 2"
    third_s3 = interarrival.third_central_s3
    if third_s3 is not None and third_s3 > _MOST_SKEWED_RATIO * gamma_s3 + _NEGLIGIBLE:
        return "arrivals are so skewed that three moments do not determine the wait"
    if not float(wait.mean_s) > _RAREST_WAIT_RATIO * interarrival.mean_s:
        return "three moments do not determine a wait this rare"
    return ""


def _qna_wait(interarrival: QueueTime, service: QueueTime) -> Wait:
    third = service.third_central_s3
    third_s3 = _third(service, lognormal_third_central_s3)
    ratio = third_s3 / service.mean_s**3 + 3.0 * service.scv + 1.0
    remark = ""
    if third is None:
        remark = "third moment assumed: lognormal service"
    elif service.mean_s / interarrival.mean_s < _LEAST_BUSY_QNA:
        remark = f"two moments of arrivals are enough from utilization {_LEAST_BUSY_QNA:g} on"
    elif service.scv > _LARGEST_SERVICE_SCV:
        remark = "measured only for a service cv up to 1"
    return Wait(
        moments=qna_wait(interarrival.mean_s, interarrival.scv, service.mean_s, service.scv, ratio),
        method=WaitMethod.QNA,
        in_range=not remark,
        remark=remark,
    )


def _increment(interarrival: QueueTime, service: QueueTime) -> Increment:
    return queue_increment(
        interarrival.mean_s,
        interarrival.variance_s2,
        _third(interarrival, gamma_third_central_s3),
        service.mean_s,
        service.variance_s2,
        _third(service, lognormal_third_central_s3),
    )


def _third(time: QueueTime, assumed_third_s3: Callable[[Numeric, Numeric], Array]) -> float:
    if time.third_central_s3 is not None:
        return time.third_central_s3
    return float(assumed_third_s3(time.mean_s, float(np.sqrt(time.scv))))
