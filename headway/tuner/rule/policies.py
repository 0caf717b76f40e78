"""Policies that change the executors of a running query: Headway's rule, and others.

The others are as defined by their projects. Here, all of them change executors without a restart of
the query, which favours those that would restart it. Headway's may also change the trigger
interval.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.assumptions.live import BIN_S, SETTLING_BATCHES, SETTLING_S
from headway.domain.live import Bounds, Proposal, SeenBatch, Signal
from headway.models.simulation.closed_loop import Sight
from headway.tuner.rule.memory import Memory
from headway.tuner.rule.rule import applied, decide
from headway.tuner.rule.table import CapacityTable

_HPA_SYNC_S, _HPA_TOLERANCE, _HPA_STABLE_S, _HPA_PODS = 15.0, 0.1, 300.0, 4
_FLINK_CHECK_S, _FLINK_WINDOW_S, _FLINK_STABLE_S = 60.0, 300.0, 60.0
_FLINK_BOUNDARY, _FLINK_RESTART_S, _FLINK_CATCH_UP_S, _FLINK_MOST_DOWN = 0.2, 120.0, 300.0, 0.6
_DS2_INTERVAL_S, _DS2_WARM_UP_S = 60.0, 30.0


@dataclass(slots=True, kw_only=True)
class HeadwayPolicy:
    """`tuner.rule.rule` on reports of the last batch; ``trigger_s`` is its current request."""

    table: CapacityTable
    bounds: Bounds
    trigger_s: float
    memory: Memory = field(default_factory=Memory)
    period_s: float = BIN_S.value
    sees_batches: bool = True
    _setting: tuple[int, float] = (-1, 0.0)
    _young_since_s: float = -math.inf
    _num_since: int = 0
    proposals: list[Proposal] = field(default_factory=list)

    def wanted(self, sight: Sight) -> int:
        """The proposal, which is applied at once."""
        num_running = sight.executors - sight.num_pending
        if (num_running, self.trigger_s) != self._setting:
            self._setting = num_running, self.trigger_s
            self._young_since_s, self._num_since = sight.at_s, 0
        batch = None
        if sight.batch is not None:
            rows, duration_s, late_rows = sight.batch
            self._num_since += 1
            is_settled = sight.at_s - self._young_since_s >= SETTLING_S.value
            batch = SeenBatch(
                batch_rows=rows,
                duration_s=duration_s,
                late_rows=late_rows,
                tells_costs=is_settled
                and sight.num_pending == 0
                and self._num_since >= SETTLING_BATCHES.value,
            )
        signal = Signal(
            at_s=sight.at_s,
            arrived_rows=sight.asked_rows,
            arrived_at_s=sight.asked_s,
            backlog_rows=sight.backlog_rows,
            executors=sight.executors,
            num_pending=sight.num_pending,
            batch=batch,
            silent_s=sight.silent_s,
        )
        decision = decide(self.memory, signal, self.table, self.bounds, self.trigger_s)
        self.memory = decision.memory
        if decision.proposal is None:
            return sight.executors
        self.memory = applied(self.memory, decision.proposal)
        self.proposals.append(decision.proposal)
        self.trigger_s = decision.proposal.after_trigger_s
        return decision.proposal.after_executors


@dataclass(slots=True, kw_only=True)
class PathPolicy:
    """Given numbers of executors, each from a given time on; one of them is a constant number."""

    steps: Sequence[tuple[float, int]]
    period_s: float = 5.0
    sees_batches: bool = False
    _place: int = 0

    def wanted(self, sight: Sight) -> int:
        """The number at the current time."""
        while self._place + 1 < len(self.steps) and self.steps[self._place + 1][0] <= sight.at_s:
            self._place += 1
        return self.steps[self._place][1]


@dataclass(slots=True, kw_only=True)
class HpaPolicy:
    """Kubernetes' horizontal pod autoscaler on CPU, with its defaults.

    Every 15 s `ceil(pods * use / target)`, nothing within 10% of the target; at most double or 4
    more pods in 15 s; down to the highest value of the last 5 minutes. Pods that are not yet ready
    count as idle for a step up (kubernetes.io, Horizontal Pod Autoscaling, 2025).
    """

    target_ratio: float
    bounds: Bounds
    period_s: float = _HPA_SYNC_S
    sees_batches: bool = False
    _cpu_s: float = 0.0
    _core_s: float = 0.0
    _recommended: deque[tuple[float, int]] = field(default_factory=deque)

    def wanted(self, sight: Sight) -> int:
        """The recommendation, stabilised by the defaults."""
        cpu_s, core_s = sight.cpu_s - self._cpu_s, sight.core_s - self._core_s
        self._cpu_s, self._core_s = sight.cpu_s, sight.core_s
        pods = sight.executors
        ratio = cpu_s / core_s / self.target_ratio if core_s > 0.0 else 1.0
        if ratio > 1.0 and sight.num_pending:
            ratio = max(ratio * (pods - sight.num_pending) / pods, 1.0)
        wanted = pods
        if abs(ratio - 1.0) > _HPA_TOLERANCE:
            counted = pods if ratio > 1.0 else pods - sight.num_pending
            wanted = math.ceil(counted * ratio - 1e-9)
        self._recommended.append((sight.at_s, wanted))
        while self._recommended[0][0] < sight.at_s - _HPA_STABLE_S:
            self._recommended.popleft()
        if wanted < pods:
            wanted = min(max(recommended for _, recommended in self._recommended), pods)
        return self.bounds.clipped(min(wanted, max(2 * pods, pods + _HPA_PODS)))


@dataclass(slots=True, kw_only=True)
class FlinkPolicy:
    """The autoscaler of Flink's Kubernetes operator, with the settings of its example.

    Once a minute, over a window of 5 minutes, at the earliest 1 minute after a change. Capacity is
    rows over busy time. The requested capacity is `input / target` plus what processes the lag, and
    the backlog of a restart of 2 minutes, within 5 minutes. No change while utilisation is within
    0.2 of the target; at most 60% less at a time (FLIP-271; flink-kubernetes-operator 1.10,
    Autoscaler).
    """

    target_ratio: float
    bounds: Bounds
    period_s: float = _FLINK_CHECK_S
    sees_batches: bool = False
    _seen: deque[Sight] = field(default_factory=deque)
    _changed_s: float = -math.inf

    def wanted(self, sight: Sight) -> int:
        """The parallelism from the job's true rate."""
        if sight.num_pending or sight.at_s < self._changed_s + _FLINK_STABLE_S:
            self._seen.clear()
            return sight.executors
        self._seen.append(sight)
        if sight.at_s - self._seen[0].at_s < _FLINK_WINDOW_S:
            return sight.executors
        first = self._seen.popleft()
        width_s = sight.at_s - first.at_s
        busy_s = max(sight.busy_s - first.busy_s, 1e-9)
        capacity = (sight.processed_rows - first.processed_rows) / busy_s
        if capacity <= 0.0:
            return sight.executors
        rate = (sight.arrived_rows - first.arrived_rows) / width_s
        lag = max(sight.arrived_rows - sight.processed_rows, 0.0)
        catch_up = (lag + rate * _FLINK_RESTART_S) / _FLINK_CATCH_UP_S
        highest = rate / min(self.target_ratio + _FLINK_BOUNDARY, 1.0) + lag / _FLINK_CATCH_UP_S
        lowest = rate / max(self.target_ratio - _FLINK_BOUNDARY, 0.05) + catch_up
        if highest <= capacity <= lowest:
            return sight.executors
        wanted = math.ceil(
            sight.executors * (rate / self.target_ratio + catch_up) / capacity - 1e-9
        )
        least = math.ceil(sight.executors * (1.0 - _FLINK_MOST_DOWN))
        wanted = self.bounds.clipped(max(wanted, least))
        if wanted != sight.executors:
            self._changed_s = sight.at_s
            self._seen.clear()
        return wanted


@dataclass(slots=True, kw_only=True)
class Ds2Policy:
    """DS2: the parallelism from the true processing rate of the last minute.

    Every 60 s `ceil(workers * input / true rate * factor)`, with the true rate per useful time; the
    first 30 s after a change do not count (Kalavri et al., OSDI 2018). ``factor`` is its target
    ratio.
    """

    factor: float
    bounds: Bounds
    period_s: float = _DS2_INTERVAL_S
    sees_batches: bool = False
    _last: Sight | None = None

    def wanted(self, sight: Sight) -> int:
        """The optimal parallelism, as if only rows, not batches, took time."""
        last, self._last = self._last, sight
        if last is None or last.num_pending or sight.num_pending:
            return sight.executors
        width_s, busy_s = sight.at_s - last.at_s, sight.busy_s - last.busy_s
        rows = sight.processed_rows - last.processed_rows
        if rows <= 0.0 or width_s < _DS2_WARM_UP_S or busy_s <= 0.0:
            return sight.executors
        rate = (sight.arrived_rows - last.arrived_rows) / width_s
        wanted = math.ceil(sight.executors * rate / (rows / busy_s) * self.factor - 1e-9)
        wanted = self.bounds.clipped(wanted)
        if wanted != sight.executors:
            self._last = None
        return wanted
