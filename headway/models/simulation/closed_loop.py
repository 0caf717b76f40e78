"""A micro-batch query whose executors are changed by a policy during a rate trace."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from headway.assumptions import live, predictions
from headway.domain.live import ExecutorStep
from headway.models.arrays import Array
from headway.models.simulation.rate_trace import BatchNoise, CumulativeRows

_HAIR = 1e-9
_DRAWN_AT_ONCE = 8192
_LEAST_LIMITED_S = 1.0

#: Mean time as a function of rows: a constant, and terms of time per row and exponent.
Costs = tuple[float, tuple[tuple[float, float], ...]]
_NO_ROW = 1e-9


class Sight(NamedTuple):
    """What a policy can observe at a time; sums count from the start of the trace."""

    at_s: float
    executors: int  # Requested executors.
    num_pending: int  # Requested executors that are not yet available.
    asked_s: float  # When the source was last queried for its offsets. [s]
    asked_rows: float  # Rows that had arrived at that time. [rows]
    arrived_rows: float  # By now; known only to a source with metrics of its own. [rows]
    processed_rows: float  # Those of a running batch in proportion to its time. [rows]
    backlog_rows: float  # Rows that the last started batch has left. [rows]
    busy_s: float  # Time during which a batch ran. [s]
    cpu_s: float  # Core seconds that tasks used. [s]
    core_s: float  # Core seconds that executors had. [s]
    silent_s: float  # How long the current batch has been running; 0 between batches. [s]
    batch: tuple[float, float, float] | None  # That has just ended: its rows, time [s], late rows.


class Policy(Protocol):
    """A policy that changes the executors, and the trigger interval, if it has a ``trigger_s``."""

    @property
    def period_s(self) -> float:
        """Interval at which a clock calls the policy; 0 means after batches only. [s]"""

    @property
    def sees_batches(self) -> bool:
        """Whether it is also called after each batch."""

    def wanted(self, sight: Sight) -> int:
        """Requested executors from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopJob:
    """The query and its cluster."""

    duration: Mapping[int, Costs]  # Batch duration by number of executors. [s]
    cpu: Costs  # Core seconds of the tasks of a batch. [s]
    cores_per_executor: int
    trigger_s: float
    limit_s: float
    noise: BatchNoise
    after_commit_s: float = 0.0
    max_rows_per_trigger: float = math.inf
    dispersion: float = 1.0
    provisioning_s: tuple[float, float] = (20.0, 60.0)
    removal_pause_s: float = live.REMOVAL_PAUSE_S.value
    restart_pause_s: float = live.RESTART_PAUSE_S.value


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTrace:
    """The input: rates between edges, cost of batches relative to the profile, outages."""

    edges_s: Array
    rates_per_s: Array
    cost_ratio: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    """Start time [s], and factor on every duration from then on. [-]"""
    outages_s: tuple[tuple[float, float], ...] = ()


def simulate_closed_loop(
    job: LoopJob, trace: LoopTrace, policy: Policy, *, executors: int, seed: int
) -> LoopRun:
    r"""One run of a query under a trace, until that ends, with executors set by a policy.

    A requested number of executors for which the job has no duration raises ``ValueError``.

    Parameters
    ----------
    policy : Policy, called after batches, by a clock, or both
    executors : int, >= 1, executors at the start
    seed : int, runs with the same seed have the same rows, noise and provisioning times

    **(A11)** Closed loop: (S6) with a changing number of executors. Additional executors are billed
    from the request on and available after a uniformly distributed time; the first 2 batches with
    them take twice as long. Removed executors are gone from the next batch on, which takes 5.9 s
    longer. A new trigger interval restarts the query: the next batch takes 2.2 s longer, and the
    rate limit changes with the interval. A policy observes what the last batch reported, i.e. the
    rows that had arrived when it started. A row is late if it arrived more than `L` before the
    commit of its batch; at the end, so are rows that no batch has committed.

    >>> class Still:
    ...     period_s, sees_batches = 0.0, False
    ...     def wanted(self, sight):
    ...         return sight.executors
    >>> job = LoopJob(duration={1: (0.5, ())}, cpu=(0.1, ()), cores_per_executor=1, trigger_s=1.0,
    ...     limit_s=2.0, noise=BatchNoise(batch_ratio=0.0), dispersion=0.0)
    >>> even = LoopTrace(edges_s=np.array([0.0, 100.0]), rates_per_s=np.array([10.0]))
    >>> run = simulate_closed_loop(job, even, Still(), executors=1, seed=1)
    >>> run.executor_s, run.late_ratio, run.num_changes
    (100.0, 0.0, 0)
    """
    return _Loop(job, trace, policy, executors, seed).run()


class _Loop:
    """One run: events of batches and of the clock in order."""

    def __init__(
        self, job: LoopJob, trace: LoopTrace, policy: Policy, executors: int, seed: int
    ) -> None:
        random = np.random.default_rng(seed)
        self.job, self.trace, self.policy = job, trace, policy
        self.arrivals = CumulativeRows.drawn(
            trace.edges_s, trace.rates_per_s, job.trigger_s, job.dispersion, 1, random
        )
        self.rows: list[float] = self.arrivals.rows[:, 0].tolist()
        self.first_s, self.end_s = float(trace.edges_s[0]), float(trace.edges_s[-1])
        self.noise = _noise(job.noise, np.random.default_rng([seed, 1]))
        self.delays = np.random.default_rng([seed, 2])
        self.alive, self.asked, self.young_batches = executors, executors, 0
        self.pending: list[float] = []
        self.pause_s = 0.0
        self.trigger_s, self.most_rows = job.trigger_s, job.max_rows_per_trigger
        self.steps = [self._step(self.first_s)]
        self.billed_s, self.billed_until_s = 0.0, self.first_s
        self.taken = self.busy_s = self.cpu_s = self.core_s = 0.0
        self.core_until_s = self.first_s
        self.asked_s, self.asked_rows, self.backlog = self.first_s, 0.0, 0.0
        self.tick_s = self.first_s + policy.period_s if policy.period_s > 0.0 else math.inf

    def run(self) -> LoopRun:
        job, batches = self.job, []
        start = self._grid_after(self.first_s) if self.trigger_s > 0.0 else self.first_s
        costs = iter((*self.trace.cost_ratio[1:], (math.inf, 1.0)))
        cost, (cost_until_s, next_cost) = self.trace.cost_ratio[0][1], next(costs)
        while (start := self._after_outages(start)) < self.end_s:
            self._tick_until(start, None)
            while start >= cost_until_s:
                cost, (cost_until_s, next_cost) = next_cost, next(costs)
            self._executors_come(start)
            waiting = max(self._arrived(start) - self.taken, 0.0)
            rows = min(waiting, self.most_rows)
            self.asked_s, self.asked_rows = start, self.taken + waiting
            self.backlog = waiting - rows
            if rows <= 0.0:
                polled_s = start + predictions.POLLING_DELAY_S.value
                start = polled_s if self.trigger_s == 0.0 else self._grid_after(start)
                continue
            duration = cost * self._slowed(_mean_s(job.duration[self.alive], rows))
            duration = duration * next(self.noise) + self.pause_s
            self.pause_s = 0.0
            end = start + duration
            commit = max(end - job.after_commit_s, start)
            late = min(max(self._arrived(commit - job.limit_s) - self.taken, 0.0), rows)
            work = cost * _mean_s(job.cpu, rows)
            self._tick_until(min(end, self.end_s), (start, duration, rows, work))
            self.taken, self.busy_s = self.taken + rows, self.busy_s + duration
            self.cpu_s += work
            batches.append((start, duration, rows, late))
            if self.policy.sees_batches and end < self.end_s:
                self._apply(self._sight(end, None, (rows, duration, late)))
            later = self._grid_after(start)
            start = end if self.trigger_s == 0.0 else max(end, later)
        return self._done(batches)

    def _done(self, batches: Sequence[tuple[float, float, float, float]]) -> LoopRun:
        self._bill(self.end_s)
        columns = np.array(batches, dtype=np.float64).reshape(-1, 4).T
        # Rows that were not committed when the trace ended and are already late.
        unread = max(self._arrived(self.end_s - self.job.limit_s) - self.taken, 0.0)
        return LoopRun(
            start_s=columns[0],
            duration_s=columns[1],
            num_rows=columns[2],
            late_rows=columns[3],
            unread_late_rows=unread,
            arrived_rows=max(self.rows[-1], 1.0),
            steps=tuple(self.steps),
            executor_s=self.billed_s,
            arrivals=self.arrivals,
        )

    def _tick_until(self, moment: float, running: tuple[float, float, float, float] | None) -> None:
        """The clock of the policy, up to a given time; ``running`` is the batch at that time."""
        while self.tick_s <= moment:
            tick = self.tick_s
            self.tick_s += self.policy.period_s
            self._apply(self._sight(tick, running, None))

    def _sight(
        self,
        at_s: float,
        running: tuple[float, float, float, float] | None,
        batch: tuple[float, float, float] | None,
    ) -> Sight:
        done_rows = done_cpu_s = silent_s = 0.0
        if running is not None:
            start, duration, rows, work = running
            part = min((at_s - start) / duration, 1.0)
            done_rows, done_cpu_s, silent_s = part * rows, part * work, at_s - start
        self._executors_come(at_s)
        return Sight(
            at_s=at_s,
            executors=self.asked,
            num_pending=len(self.pending),
            asked_s=self.asked_s,
            asked_rows=self.asked_rows,
            arrived_rows=self._arrived(at_s),
            processed_rows=self.taken + done_rows,
            backlog_rows=self.backlog,
            busy_s=self.busy_s + silent_s,
            cpu_s=self.cpu_s + done_cpu_s,
            core_s=self.core_s,
            silent_s=silent_s,
            batch=batch,
        )

    def _apply(self, sight: Sight) -> None:
        """Call the policy, and apply its request."""
        executors = self.policy.wanted(sight)
        trigger_s = getattr(self.policy, "trigger_s", self.trigger_s)
        if trigger_s != self.trigger_s:
            self._restart(sight.at_s, trigger_s)
        if executors == self.asked:
            return
        if executors not in self.job.duration:
            raise ValueError(f"{executors} executors: the job has no duration there")
        self._bill(sight.at_s)
        for _ in range(self.asked, executors):
            self.pending.append(sight.at_s + float(self.delays.uniform(*self.job.provisioning_s)))
        num_removed = self.asked - executors
        # Executors that are not yet available are cancelled first.
        for _ in range(min(max(num_removed, 0), len(self.pending))):
            self.pending.pop()
            num_removed -= 1
        if num_removed > 0:
            self._count_cores(sight.at_s)
            self.alive -= num_removed
            self.pause_s = max(self.pause_s, self.job.removal_pause_s)
        self.asked = executors
        self.steps.append(self._step(sight.at_s))

    def _restart(self, at_s: float, trigger_s: float) -> None:
        """Set another trigger interval, and its rate limit, from the next batch on."""
        self.most_rows *= max(trigger_s, _LEAST_LIMITED_S) / max(self.trigger_s, _LEAST_LIMITED_S)
        self.trigger_s = trigger_s
        self.pause_s = max(self.pause_s, self.job.restart_pause_s)
        self.steps.append(self._step(at_s))

    def _step(self, at_s: float) -> ExecutorStep:
        return ExecutorStep(at_s=at_s, executors=self.asked, trigger_s=self.trigger_s)

    def _executors_come(self, moment: float) -> None:
        self._count_cores(moment)
        still_pending = [available_s for available_s in self.pending if available_s > moment]
        if len(still_pending) < len(self.pending):
            self.alive += len(self.pending) - len(still_pending)
            self.young_batches = live.FIRST_BATCHES.value
            self.pending = still_pending

    def _count_cores(self, moment: float) -> None:
        if moment > self.core_until_s:
            width_s = moment - self.core_until_s
            self.core_s += width_s * self.alive * self.job.cores_per_executor
            self.core_until_s = moment

    def _slowed(self, mean_s: float) -> float:
        if self.young_batches == 0:
            return mean_s
        self.young_batches -= 1
        return live.FIRST_BATCHES_RATIO.value * mean_s

    def _bill(self, moment: float) -> None:
        self.billed_s += self.asked * (moment - self.billed_until_s)
        self.billed_until_s = moment

    def _arrived(self, moment: float) -> float:
        position = (moment - self.first_s) / self.arrivals.cell_s
        if position <= 0.0:
            return 0.0
        cell = int(position)
        if cell >= len(self.rows) - 1:
            return self.rows[-1]
        low = self.rows[cell]
        return low + (position - cell) * (self.rows[cell + 1] - low)

    def _after_outages(self, start: float) -> float:
        return next((end for begin, end in self.trace.outages_s if begin <= start < end), start)

    def _grid_after(self, moment: float) -> float:
        trigger_s = self.trigger_s
        return trigger_s * (math.floor(moment / trigger_s + _HAIR) + 1.0) if trigger_s else 0.0


def _mean_s(costs: Costs, rows: float) -> float:
    total_s, terms = costs
    for per_row_s, exponent in terms:
        total_s += per_row_s * (rows if exponent == 1.0 else rows**exponent)
    return total_s


def _noise(noise: BatchNoise, random: np.random.Generator) -> Iterator[float]:
    """Factors on the durations of successive batches, as in (S6)."""
    fresh_sd = math.sqrt(math.log1p((1.0 - noise.autocorrelation) * noise.batch_ratio**2))
    slow_sd = math.sqrt(noise.autocorrelation) * noise.batch_ratio
    run_factor = math.exp(noise.run_to_run_ratio * float(random.standard_normal()))
    half_variance = 0.5 * (fresh_sd**2 + slow_sd**2)
    keeps = predictions.USUAL_PERSISTENCE_RATIO.value
    renews, slow = math.sqrt(1.0 - keeps**2), float(random.standard_normal())
    while True:
        for fresh, new in random.standard_normal((_DRAWN_AT_ONCE, 2)).tolist():
            slow = keeps * slow + renews * new
            yield run_factor * math.exp(fresh_sd * fresh + slow_sd * slow - half_variance)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRun:
    """Results of one run; arrays have one entry per batch."""

    start_s: Array
    duration_s: Array
    num_rows: Array
    late_rows: Array
    """Rows of the batch, the oldest ones, that were committed after the limit. [rows]"""
    unread_late_rows: float
    """Rows older than the limit that no batch had committed when the trace ended. [rows]"""
    arrived_rows: float
    steps: tuple[ExecutorStep, ...]
    """The first is the start; every other one is a change."""
    executor_s: float
    """Requested executors, integrated over time. [s]"""
    arrivals: CumulativeRows

    @property
    def num_changes(self) -> int:
        """How often the executors or the trigger interval were changed."""
        return len(self.steps) - 1

    @property
    def late_ratio(self) -> float:
        """Share of rows that were late. [-]"""
        return float((self.late_rows.sum() + self.unread_late_rows) / self.arrived_rows)

    def late_by(self, edges_s: Array) -> tuple[Array, Array]:
        """Rows that arrived between edges, and how many of them were late. [rows]"""
        arrived = self.arrivals.of_run_until(edges_s, 0)
        read_rows = np.concatenate([[0.0], np.cumsum(self.num_rows)])
        # The late rows of a batch are its oldest ones: the count rises up to one row, then is
        # constant.
        knots = np.stack([read_rows[:-1], read_rows[:-1] + self.late_rows], axis=1).ravel()
        before = np.concatenate([[0.0], np.cumsum(self.late_rows)])
        counts = np.stack([before[:-1], before[1:]], axis=1).ravel()
        end_knots = [read_rows[-1], read_rows[-1] + self.unread_late_rows]
        knots = np.concatenate([knots, end_knots])
        counts = np.concatenate([counts, [before[-1], before[-1] + self.unread_late_rows]])
        return np.diff(arrived), np.diff(np.interp(arrived, knots, counts))

    def kept_share(self, most_late_ratio: float, window_s: float = 300.0) -> float:
        """Share of windows of the trace that have no more late rows than allowed. [-]"""
        first_s = self.arrivals.first_s
        end_s = first_s + self.arrivals.cell_s * (len(self.arrivals.rows) - 1)
        num_windows = max(round((end_s - first_s) / window_s), 1)
        rows, late = self.late_by(np.linspace(first_s, end_s, num_windows + 1))
        return float(np.mean(late <= most_late_ratio * rows + _NO_ROW * self.arrived_rows))

    def num_reversals(self, within_s: float) -> int:
        """Changes of executors that reverse the previous one within a given time."""
        count, steps = 0, [self.steps[0]]
        steps += [step for last, step in pairwise(self.steps) if step.executors != last.executors]
        for before, middle, after in zip(steps, steps[1:], steps[2:], strict=False):
            turns = (middle.executors - before.executors) * (after.executors - middle.executors) < 0
            count += turns and after.at_s - middle.at_s < within_s
        return count
