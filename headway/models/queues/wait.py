"""The wait in a queue, by the best method for what is known, and its whole law on a lattice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, Numeric
from headway.models.queues import random_walk
from headway.models.queues.queueing import WaitMoments, gamma_wait_quantile_s, qna_wait
from headway.models.queues.times import LatticeLaw, LatticeTooLongError, QueueTime

_FEWEST_CELLS = 1 << 12
_MOST_CELLS = 1 << 20
# Beyond this many decay lengths, e^-40 of the wait is left.
_DECAY_LENGTHS = 40.0
_MOST_BISECTIONS = 100
_STEPS_PER_SD = 50.0
_STEPS_PER_SERVICE = 10.0
_NEGLIGIBLE = 1e-10


def lattice_wait(increment: LatticeLaw) -> tuple[LatticeLaw, float]:
    r"""Law of the wait of a queue, and probability of a wait, from the law of its increment.

    The increment is service minus inter-arrival time, ``service.plus(interarrival.negative())``,
    with a negative mean; the wait is on its lattice. If it needs more than a million steps, a
    `LatticeTooLongError` is raised: use longer steps, or `shifted_gamma_wait`.

    **(Q16)** The whole law, on a lattice whose step is a fiftieth of the standard deviation of `U`.
    With `f` the transform of the increment, tilted by `e^(θ u)` with the `θ` at which the mass is
    least, `-ln(1-f)` is the transform of `Σ_n 1/n P(S_n = · )`. From its positive lags `ν`, tilted
    back, the transform of `W` is `exp(ν̂-ν̂(0))`. The tilt removes the pole at frequency 0. `P(W =
    0)` counts half of the mass at zero lag.

    Spitzer (1956, doi:10.1090/S0002-9947-1956-0079851-X). Compared with simulations of a clocked
    queue, with steps of a fiftieth of a standard deviation: mean within 0.5% and variance within
    1.5% if the mean wait exceeds 0.001 periods; 3% for rarer waits. The probability of a wait
    counts half of the mass at zero, which suits a law without atoms.

    >>> coin = LatticeLaw(step_s=1.0, lowest_index=-1, probability=np.array([0.75, 0.0, 0.25]))
    >>> law, _ = lattice_wait(coin)
    >>> law.probability[:3]
    array([0.666667, 0.222222, 0.074074])
    """
    if not increment.mean_s < 0.0:
        raise ValueError(f"the mean increment must be negative, got {increment.mean_s} s")
    first, last = increment.lowest_index, increment.lowest_index + len(increment.probability) - 1
    if last <= 0:
        no_wait = LatticeLaw(step_s=increment.step_s, lowest_index=0, probability=np.ones(1))
        return no_wait, 0.0

    num_cells = _num_cells(increment)
    index = np.arange(first, last + 1, dtype=float)
    tilt = _saddle_point(index, increment.probability)
    # Tilted increments have mean zero and a mass below 1, so log(1 - f) has no pole. Times without
    # probability are left out, since their exponential may overflow.
    tilting = np.exp(np.where(increment.probability > 0.0, tilt * index, 0.0))
    tilted = np.zeros(num_cells)
    tilted[np.arange(first, last + 1) % num_cells] = increment.probability * tilting
    sums = np.fft.irfft(-_log1p(-np.fft.rfft(tilted)), num_cells)
    num_positive = num_cells // 2
    # Mass that all partial sums together, weighted by 1/n, have at each positive time.
    density = np.zeros(num_cells)
    density[1:num_positive] = np.maximum(sums[1:num_positive], 0.0) * np.exp(
        -tilt * np.arange(1.0, num_positive)
    )
    at_zero = max(float(sums[0]), 0.0)
    total = float(density.sum())
    law = np.fft.irfft(np.exp(np.fft.rfft(density) - total), num_cells)[:num_positive]
    law = np.maximum(law, 0.0)
    return (
        LatticeLaw(step_s=increment.step_s, lowest_index=0, probability=law / law.sum()),
        float(-np.expm1(-(total + 0.5 * at_zero))),
    )


def _num_cells(increment: LatticeLaw) -> int:
    cumulants = (increment.mean_s, increment.variance_s2, increment.third_central_s3)
    decay_per_s = float(random_walk.wait_decay_per_s(*cumulants))
    reach = _DECAY_LENGTHS / (decay_per_s * increment.step_s)
    # Half of the cells are positive times; partial sums and waits must not wrap around.
    needed_cells = 2.0 * (len(increment.probability) + reach)
    if not needed_cells <= _MOST_CELLS:
        raise LatticeTooLongError(
            f"the wait needs {needed_cells:.2g} steps of {increment.step_s} s; take longer ones"
        )
    return max(_FEWEST_CELLS, 1 << int(np.ceil(np.log2(needed_cells))))


def _saddle_point(index: Array, probability: Array) -> float:
    """The exponent under which the tilted increment has mean zero."""
    likely = probability > 0.0
    position, mass = index[likely], probability[likely]

    def tilted_mean_is_positive(exponent: float) -> bool:
        power = exponent * position
        return float(position @ (mass * np.exp(power - power.max()))) > 0.0

    low, high = 0.0, 1.0 / float(position.max())
    while not tilted_mean_is_positive(high):
        low, high = high, 2.0 * high
    for _ in range(_MOST_BISECTIONS):
        middle = 0.5 * (low + high)
        if tilted_mean_is_positive(middle):
            high = middle
        else:
            low = middle
        # Any exponent near the saddle point will do, since the mass is stationary there.
        if high - low <= 1e-6 * high:
            break
    return 0.5 * (low + high)


def _log1p(z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Complex log(1 + z), precise for small z and for z near -1."""
    small = np.abs(z) < 0.5
    logarithm: NDArray[np.complex128] = np.log(np.where(small, 1.0, 1.0 + z))
    part = z[small]
    logarithm[small] = 0.5 * np.log1p(2.0 * part.real + part.real**2 + part.imag**2)
    logarithm[small] += 1j * np.arctan2(part.imag, 1.0 + part.real)
    return logarithm


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wait:
    """A wait: its moments, and its whole law if the method yields it."""

    moments: WaitMoments  # Arrays without dimensions.
    law: LatticeLaw | None = None

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

    A utilisation that is below 1 by less than the rounding error raises ``ValueError``. If jobs
    arrive in bulks, both times are those of bulks.

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

    >>> from headway.models.queues.times import constant_time, lognormal_time
    >>> wait = queue_wait(constant_time(10.0), lognormal_time(9.0, 0.1))
    >>> wait.mean_s, float(wait.quantile_s(0.99))
    (0.1035, 1.64)
    >>> queue_wait(QueueTime(mean_s=1.0, scv=1.0), QueueTime(mean_s=0.8, scv=1.0)).mean_s
    3.2
    """
    if service.mean_s >= interarrival.mean_s:
        unbounded = np.array(np.inf)
        return Wait(moments=WaitMoments(unbounded, unbounded, np.array(1.0)))
    if interarrival.on_lattice is not None and service.on_lattice is not None:
        return _lattice_wait(interarrival, service)
    third_moments_s3 = (interarrival.third_central_s3, service.third_central_s3)
    if None not in third_moments_s3 or not 0.8 <= interarrival.scv <= 1.5:
        return Wait(moments=random_walk.shifted_gamma_wait(_increment(interarrival, service)))
    third_s3 = _third(service, random_walk.lognormal_third_central_s3)
    ratio = third_s3 / service.mean_s**3 + 3.0 * service.scv + 1.0
    return Wait(
        moments=qna_wait(interarrival.mean_s, interarrival.scv, service.mean_s, service.scv, ratio)
    )


def _lattice_wait(interarrival: QueueTime, service: QueueTime) -> Wait:
    """The wait with its law, or without if that does not fit on a lattice."""
    assert interarrival.on_lattice is not None
    assert service.on_lattice is not None
    increment = _, variance_s2, _ = _increment(interarrival, service)
    sd_s = float(np.sqrt(variance_s2))
    # Without variation no lattice is needed, since cumulants are exact.
    if sd_s <= _NEGLIGIBLE * interarrival.mean_s:
        return Wait(moments=random_walk.shifted_gamma_wait(increment))
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
        return Wait(moments=random_walk.shifted_gamma_wait(increment))
    return Wait(
        moments=WaitMoments(np.array(law.mean_s), np.array(law.variance_s2), np.array(wait_prob)),
        law=law,
    )


def _increment(interarrival: QueueTime, service: QueueTime) -> random_walk.Increment:
    return random_walk.queue_increment(
        interarrival.mean_s,
        interarrival.variance_s2,
        _third(interarrival, random_walk.gamma_third_central_s3),
        service.mean_s,
        service.variance_s2,
        _third(service, random_walk.lognormal_third_central_s3),
    )


def _third(time: QueueTime, assumed_third_s3: Callable[[Numeric, Numeric], Array]) -> float:
    if time.third_central_s3 is not None:
        return time.third_central_s3
    return float(assumed_third_s3(time.mean_s, float(np.sqrt(time.scv))))
