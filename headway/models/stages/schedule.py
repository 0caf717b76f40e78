"""Stages that wait for each other and share cores: mean progress from event to event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from headway.models.arrays import Array
from headway.models.laws.normal import ndtr
from headway.models.stages.makespan import makespan_moments, mean_first_idle

_NO_CORE = 1e-9  # of a core: less is a rounding error
_TAIL_PARTS = 4  # of a stage's tail, in which its remaining cores are averaged
_SCORES = np.arange(-8.0, 8.01, 0.04)
_SMALLEST_SKEWNESS = 1e-3  # below, a shifted lognormal is practically normal
_NO_NOISE = 1e-12
# Computed from spreads of up to 10, which may be off by a rounding.
_MOST_CV = 10.0 * (1.0 + 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStage:
    """A stage of a batch job, with one task or more that are similar.

    >>> JobStage(num_tasks=8, mean_s=0.5, cv=0.3).work_s
    4.0
    """

    num_tasks: int
    mean_s: float  # time of a task, above 0
    cv: float  # coefficient of variation of that, 0 to 10, taken as lognormal
    parents: tuple[int, ...] = ()  # numbers, below its own, of stages that must have ended before

    def __post_init__(self) -> None:
        if self.num_tasks < 1 or not 0.0 < self.mean_s < np.inf or not 0.0 <= self.cv <= _MOST_CV:
            raise ValueError(
                f"need a task, mean_s > 0 and cv in 0..10, got "
                f"{self.num_tasks}, {self.mean_s} and {self.cv}"
            )

    @property
    def work_s(self) -> float:
        """Mean work of all tasks together. [s]"""
        return self.num_tasks * self.mean_s


@dataclass(frozen=True, slots=True)
class Moment:
    """A random point in time: its mean, and how far each source of noise moves it per unit."""

    mean_s: float
    noise_s: Array  # standard deviation that each independent source contributes

    @property
    def sd_s(self) -> float:
        """Standard deviation. [s]"""
        return float(np.sqrt(self.noise_s @ self.noise_s))


class StageSchedule:
    r"""The stages of one job, each progressing at the mean rate that its cores allow.

    Parents come first; the lower its number, the earlier a stage gets free cores. All cores are
    free at the start. An instance is run once.

    **(J4)** Estimate: the mean progress of the stages is followed from event to event. A stage on
    `c` cores progresses at the rate `1/M(T, c)`, (M1)-(M5). It occupies all its cores until a
    further task would start (M3), then fewer and fewer, as `(1-x)^k` with the mean that its
    remaining work requires. The next stage gets the other cores. When an older stage becomes ready,
    a younger one keeps its cores for a mean residual task, or to its end if all its remaining tasks
    are running. Noise is propagated: each point in time is a mean plus coefficients of the
    independent noise of each stage, so that what two branches have in common cancels in their
    difference. A chain gives the exact sum of makespans.

    >>> stages = tuple(JobStage(num_tasks=count, mean_s=1.0, cv=0.0) for count in (8, 2))
    >>> [end.mean_s for end in StageSchedule(stages, 4).stage_ends()]
    [2.0, 3.0]
    """

    def __init__(self, stages: tuple[JobStage, ...], num_cores: int) -> None:
        self.stages, self.num_cores = stages, num_cores
        self.skewness = np.zeros(len(stages))
        self.now = Moment(0.0, np.zeros(len(stages)))
        self.ready: dict[int, Moment] = {}
        self.active: dict[int, _Active] = {}
        self.end: dict[int, Moment] = {}

    def stage_ends(self) -> list[Moment]:
        """When each stage ends."""
        self._release()
        while len(self.end) < len(self.stages):
            self._share_cores()
            number, moment = self._next_event()
            self._advance(moment)
            if number in self.ready:
                del self.ready[number]
                self._keep_cores_of_younger(number)
                self.active[number] = _Active(np.zeros(len(self.stages)))
            elif self.active[number].kept_until_s <= moment.mean_s:
                self.active[number].kept_until_s = np.inf
            elif self.active[number].part < _TAIL_PARTS:
                self.active[number].part += 1
            else:
                self.skewness[number] = self.active[number].span.skewness
                self.end[number] = moment
                del self.active[number]
                self._release()
        return [self.end[number] for number in range(len(self.stages))]

    def _release(self) -> None:
        """Stages whose parents have all ended are ready."""
        for number, stage in enumerate(self.stages):
            if number in self.end or number in self.active or number in self.ready:
                continue
            if all(parent in self.end for parent in stage.parents):
                parent_ends = [self.end[parent] for parent in stage.parents]
                self.ready[number] = latest(parent_ends, self.skewness) if parent_ends else self.now

    def _keep_cores_of_younger(self, number: int) -> None:
        """A task is never taken off its core: an older stage waits for running tasks."""
        for younger, state in self.active.items():
            if younger < number or state.part or state.cores <= 0.0:
                continue
            stage = self.stages[younger]
            if stage.num_tasks * (1.0 - state.done) <= state.cores + 1.0:
                state.keeps_cores = True
                continue
            residual_s = 0.5 * (1.0 + stage.cv**2) * stage.mean_s
            state.kept_until_s = min(state.kept_until_s, self.now.mean_s + residual_s)

    def _share_cores(self) -> None:
        """Running tasks keep their cores; the others go to the oldest stage that has more tasks."""
        free_cores = float(self.num_cores)
        waiting = []
        for number, state in sorted(self.active.items()):
            if state.part:
                free_cores -= state.span.held_cores(state.part)
            elif state.keeps_cores or state.kept_until_s < np.inf:
                free_cores -= state.cores
            else:
                waiting.append(number)
        for number in waiting:
            state = self.active[number]
            state.cores = free_cores if free_cores > _NO_CORE * self.num_cores else 0.0
            if state.cores > 0.0:
                state.span = _span(self.stages[number], state.cores)
                if state.done >= state.span.launched_at:
                    state.part = 1
                free_cores -= state.span.held_cores(state.part) if state.part else state.cores

    def _next_event(self) -> tuple[int, Moment]:
        events = [(moment.mean_s, number, moment) for number, moment in self.ready.items()]
        for number, state in self.active.items():
            if state.cores <= 0.0:
                continue
            goal = state.span.goal(state.part)
            rest_s = max(goal - state.done, 0.0) * state.span.mean_s
            noise = self.now.noise_s - state.noise * state.span.mean_s
            noise[number] += goal * state.span.sd_s
            events.append((self.now.mean_s + rest_s, number, Moment(0.0, noise)))
            if not state.part and state.kept_until_s < np.inf:
                events.append((state.kept_until_s, number, self.now))
        mean_s, number, moment = min(events, key=lambda event: event[:2])
        return number, Moment(max(mean_s, self.now.mean_s), moment.noise_s)

    def _advance(self, moment: Moment) -> None:
        for state in self.active.values():
            if state.cores > 0.0:
                share = 1.0 / state.span.mean_s
                state.done += share * (moment.mean_s - self.now.mean_s)
                state.noise = state.noise + share * (moment.noise_s - self.now.noise_s)
        self.now = moment


@dataclass(frozen=True, slots=True)
class _Span:
    """Course of a stage on a number of cores: its time, the launch of its tasks, its tail."""

    mean_s: float
    sd_s: float
    launched_at: float  # as a part of the span; from then on cores become free
    full_cores: float  # held at that time
    tail_cores: float  # held on average from then on

    def goal(self, part: int) -> float:
        """Share of the span that is done at the end of a part of it."""
        return self.launched_at + (1.0 - self.launched_at) * part / _TAIL_PARTS

    def held_cores(self, part: int) -> float:
        """Cores held on average in a part of the tail, as they fall off from all to none."""
        if self.tail_cores <= _NO_CORE:
            return 0.0
        power = self.full_cores / self.tail_cores
        begin, end = (1.0 - (part - 1.0) / _TAIL_PARTS, 1.0 - part / _TAIL_PARTS)
        return float(self.tail_cores * _TAIL_PARTS * (begin**power - end**power))

    @property
    def skewness(self) -> float:
        """Of a lognormal with this mean and standard deviation."""
        cv = self.sd_s / self.mean_s
        return 3.0 * cv + cv**3


_NO_SPAN = _Span(1.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(slots=True)
class _Active:
    """A running stage: the part of it that is done, and how that part depends on the noise."""

    noise: Array
    done: float = 0.0
    part: int = 0  # of its span: 0 until its last task has started, then parts of what follows
    cores: float = 0.0
    keeps_cores: bool = False
    kept_until_s: float = np.inf
    span: _Span = _NO_SPAN


def _span(stage: JobStage, num_cores: float) -> _Span:
    """The stage on any number of cores, integer or not."""
    whole_cores = max(int(num_cores), 1)
    spans = [_span_on(stage, whole_cores)]
    if num_cores < 1.0:
        slow, launched_at = 1.0 / num_cores, spans[0].launched_at
        times_s = slow * spans[0].mean_s, slow * spans[0].sd_s
        return _Span(*times_s, launched_at, full_cores=num_cores, tail_cores=num_cores)
    share = num_cores - whole_cores
    if share <= _NO_CORE * num_cores or whole_cores >= stage.num_tasks:
        return spans[0]
    spans.append(_span_on(stage, whole_cores + 1))
    # Work per second, not the time, is interpolated linearly between numbers of cores.
    weights = np.array([1.0 - share, share])
    return _Span(
        float(1.0 / (weights @ [1.0 / span.mean_s for span in spans])),
        *(
            float(weights @ [getattr(span, name) for span in spans])
            for name in ("sd_s", "launched_at", "full_cores", "tail_cores")
        ),
    )


def _span_on(stage: JobStage, num_cores: int) -> _Span:
    mean, sd = makespan_moments(stage.num_tasks, num_cores, stage.cv)
    first_idle = mean_first_idle(stage.num_tasks, num_cores, stage.cv)
    tail_time = mean - first_idle
    tail = 0.0  # if all end at once
    if stage.num_tasks < num_cores:
        tail = stage.num_tasks / mean
    elif tail_time > _NO_CORE * mean:
        # Until the first is idle no core was, so this is the remaining work.
        tail = (stage.num_tasks - num_cores * first_idle) / tail_time
    full = float(min(stage.num_tasks, num_cores))
    return _Span(
        mean * stage.mean_s, sd * stage.mean_s, first_idle / mean, full, min(max(tail, 0.0), full)
    )


def latest(moments: Sequence[Moment], skewness: Array) -> Moment:
    r"""The latest of several random points in time.

    Parameters
    ----------
    moments : sequence of Moment, at least one, all with the same n sources of noise
    skewness : (n,) array, of each source

    **(J5)** The later of two random points in time. The noise that they share is set aside. The
    rest is taken as independent shifted lognormals with two moments and the skewness that result
    from the stages. Mean and variance of the later one are computed by quadrature of `F_1 F_2`, and
    its noise coefficients are weighted in proportion to `P(first is later)`. More than two are
    combined one after the other.

    Exact for two points in time whose unshared parts are shifted lognormals.

    >>> pair = Moment(0.0, np.array([1.0, 0.0])), Moment(0.0, np.array([0.0, 1.0]))
    >>> latest(pair, np.zeros(2)).mean_s, latest(pair, np.zeros(2)).sd_s
    (0.5642, 0.826)
    """
    if not moments:
        raise ValueError("need at least one moment")
    return reduce(partial(_later, skewness=skewness), moments)


def _later(first: Moment, second: Moment, skewness: Array) -> Moment:
    same_sign = np.sign(first.noise_s) == np.sign(second.noise_s)
    shared = np.where(same_sign, np.minimum(np.abs(first.noise_s), np.abs(second.noise_s)), 0.0)
    shared = shared * np.sign(first.noise_s)
    unshared = [Moment(moment.mean_s, moment.noise_s - shared) for moment in (first, second)]
    largest = max(abs(first.mean_s), abs(second.mean_s), _NO_NOISE)
    if all(moment.sd_s <= _NO_NOISE * largest for moment in unshared):
        return first if first.mean_s >= second.mean_s else second
    mean, variance, share = _larger_of_independent(unshared[0], unshared[1], skewness)
    noise = share * unshared[0].noise_s + (1.0 - share) * unshared[1].noise_s
    carried = float(noise @ noise)
    scale = float(np.sqrt(variance / carried)) if carried > 0.0 else 1.0
    return Moment(mean, shared + scale * noise)


def _larger_of_independent(
    first: Moment, second: Moment, skewness: Array
) -> tuple[float, float, float]:
    """Mean and variance of the larger, and the probability that it is the first."""
    laws = [_shifted_lognormal(moment, skewness) for moment in (first, second)]
    point = np.unique(np.concatenate([quantiles_s for quantiles_s, _ in laws]))
    below = [cdf(point) for _, cdf in laws]
    joint = below[0] * below[1]
    width = np.diff(point)
    middle_joint = 0.5 * (joint[1:] + joint[:-1])
    mean = float(point[-1] - width @ middle_joint)
    middle = 0.5 * (point[1:] + point[:-1])
    second_moment = float((point[-1] - mean) ** 2 - 2.0 * (width * (middle - mean)) @ middle_joint)
    share = float(np.diff(below[0]) @ (0.5 * (below[1][1:] + below[1][:-1])))
    return mean, max(second_moment, 0.0), min(max(share, 0.0), 1.0)


def _shifted_lognormal(moment: Moment, skewness: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Quantiles and distribution function of a shifted lognormal; of a normal without skewness."""
    # A constant is a narrow normal: one formula serves both.
    sd_s = max(moment.sd_s, _NO_NOISE * max(abs(moment.mean_s), 1.0))
    third = max(float(skewness @ moment.noise_s**3) / sd_s**3, 0.0)
    if third < _SMALLEST_SKEWNESS:
        return (
            moment.mean_s + sd_s * _SCORES,
            lambda point_s: ndtr((point_s - moment.mean_s) / sd_s),
        )
    # exp(s^2) of the lognormal with this skewness: the real root of a cubic.
    root = np.cbrt(1.0 + 0.5 * third * third + third * np.sqrt(1.0 + 0.25 * third * third))
    excess = float((root - 1.0) ** 2 / root)
    log_sd, scale_s = float(np.sqrt(np.log1p(excess))), sd_s / float(np.sqrt(excess))
    median_s, lowest_s = scale_s * float(np.exp(-0.5 * log_sd**2)), moment.mean_s - scale_s

    def cdf(point_s: Array) -> Array:
        ratio = np.maximum(point_s - lowest_s, 0.0) / median_s
        with np.errstate(divide="ignore"):
            return ndtr(np.log(ratio) / log_sd)

    return lowest_s + median_s * np.exp(log_sd * _SCORES), cdf
