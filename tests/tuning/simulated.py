"""A query that is changed as Spark would change it, on a clock of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headway.domain import Configuration, JobProfile, Target
from headway.domain.live import Bounds, ChangeKind, LiveBatch
from headway.domain.tuner import Phase, TunerState
from headway.errors import HeadwayError
from headway.formats.tuner_files import load_tuner, profile_hash
from headway.models.job.setting import duration_model
from headway.runtime.tuning.clean_stop import NoGapError
from headway.tuner.live_query import LiveQuery
from headway.tuner.live_rule import LiveRule
from headway.tuner.machine import TunerMachine
from tests.factories import a_configuration, a_profile

if TYPE_CHECKING:
    from headway.runtime.tuning.actuators import Actuators

BEGIN_S = 1_800_000_000.0
QUERY_ID = "3f1c7e0a-0d51-4a0e-9d1d-1f2e3d4c5b6a"


class Killed(BaseException):
    """What a signal does to a process, as far as code can tell."""


@dataclass
class SimulatedQuery:
    """Batches on the grid of triggers; everything that a feed and actuators are asked for."""

    profile: JobProfile = field(default_factory=a_profile)
    rate_per_s: Callable[[float], float] = lambda _since_s: 5000.0
    factor: Callable[[Configuration], float] = lambda _configuration: 1.0
    now_s: float = BEGIN_S
    configuration: Configuration | None = None
    executors: int = 2
    comes_after_s: float = 0.0
    has_gap: bool = True
    may_cut: bool = False
    sink: str = "FileSink[/out]"
    live_executors: bool = True
    executors_are_given: bool = False
    starts: list[Configuration] = field(default_factory=list)
    fails_at: tuple[Callable[[Configuration], bool], ...] = ()
    at: Callable[[str], None] = lambda _point: None
    query: object = None
    query_id: str | None = None
    root: str | None = None
    is_active: bool = False
    is_in_batch: bool = False
    executor_cores: tuple[int, ...] = ()
    shuffle_partitions: int | None = None
    shows_running: bool = False
    failed_because: str | None = None
    ended: None = None
    idle_s: float = 0.0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(1)
        self.position, self.arrived, self.batch_id, self.run = 0.0, 0.0, 0, 0
        self.free_s = self.begun_s = self.now_s
        self.waiting: list[LiveBatch] = []
        self.come_s: list[float] = []

    # What a machine asks of actuators.

    def start(self, configuration: Configuration) -> object:
        self.at("before start")
        if any(fails(configuration) for fails in self.fails_at):
            raise HeadwayError("build(spark, setting) failed (ValueError: no)")
        assert not self.is_active, "two queries on one checkpoint"
        self.configuration, self.is_active = configuration, True
        self.query_id, self.root, self.run = QUERY_ID, "/checkpoint", self.run + 1
        self.starts.append(configuration)
        self.free_s = self.begun_s = self.now_s
        self.at("started")
        return self

    def stop(self, _trigger_s: float) -> None:
        self.at("before stop")
        if not self.has_gap and not self.may_cut:
            raise NoGapError("no gap; nothing was changed")
        self.is_active = False
        self.at("stopped")

    def is_in_gap(self, _trigger_s: float) -> bool:
        return self.has_gap and self.free_s <= self.now_s

    def stop_at_once(self) -> None:
        self.is_active = False

    def apply(self, kind: ChangeKind, now: Configuration, then: Configuration) -> float:
        if kind in (ChangeKind.ADD, ChangeKind.REMOVE):
            self.at("before executors")
            self.ask_for_executors(then.executors)
            assert self.configuration is not None
            self.configuration = replace(self.configuration, executors=then.executors)
            self.at("executors asked for")
            return 0.0
        self.stop(now.trigger_s)
        self.start(then)
        return 1.0

    def ask_for_executors(self, total: int) -> None:
        if self.executors_are_given:
            return
        self.executors = min(self.num_executors(), total)
        waiting = [one for one in self.come_s if one > self.now_s]
        more = total - self.executors - len(waiting)
        at_s = self.now_s + self.comes_after_s
        self.come_s = waiting[: max(total - self.executors, 0)] + [at_s] * max(more, 0)

    def num_executors(self) -> int:
        return self.executors + sum(1 for one in self.come_s if one <= self.now_s)

    def why_no_live_executors(self) -> str | None:
        return None if self.live_executors else "local[2] has no executors of its own"

    def with_partitions_of_checkpoint(self, configuration: Configuration) -> Configuration:
        return configuration

    def ended_with(self) -> str | None:
        return None if self.is_active else self.failed_because or "it was stopped"

    @property
    def has_failed(self) -> bool:
        return not self.is_active and self.failed_because is not None

    # What a live query asks of a feed.

    def new_batches(self) -> Sequence[LiveBatch]:
        found = [one for one in self.waiting if one.ended_s <= self.now_s]
        self.waiting = self.waiting[len(found) :]
        return found

    def running_batch(self) -> tuple[float, int] | None:
        running = next(
            (one for one in self.waiting if one.started_s <= self.now_s < one.ended_s), None
        )
        if running is None or running.available_rows is None or not self.shows_running:
            return None
        return running.started_s, running.available_rows

    # Time.

    def pass_s(self, seconds: float) -> None:
        """Let so much time pass."""
        until_s = self.now_s + seconds
        while self.is_active and self.configuration is not None:
            trigger_s = self.configuration.trigger_s
            grid_s = trigger_s * (math.floor(self.begun_s / trigger_s) + 1)
            start_s = max(self.free_s, grid_s, self.now_s)
            if start_s >= until_s:
                break
            self._arrive(start_s)
            self._batch(start_s)
        self._arrive(until_s)

    def _arrive(self, until_s: float) -> None:
        self.arrived += self.rate_per_s(self.now_s - BEGIN_S) * (until_s - self.now_s)
        self.now_s = until_s

    def _batch(self, start_s: float) -> None:
        configuration = self.configuration
        assert configuration is not None
        limit = configuration.max_offsets_per_trigger or math.inf
        before, self.position = (
            self.position,
            self.position + min(self.arrived - self.position, limit),
        )
        slots = self.num_executors() * configuration.cores_per_executor
        model = duration_model(self.profile, slots, configuration.shuffle_partitions)
        mean_s = self.factor(configuration) * float(model.mean_s(max(self.position - before, 1.0)))
        duration_s = mean_s * float(np.exp(0.08 * self.random.standard_normal()))
        self.begun_s, self.free_s = start_s, start_s + duration_s
        self.batch_id += 1
        self.waiting.append(
            LiveBatch(
                query_id=QUERY_ID,
                run_id=str(self.run),
                query_name="orders",
                batch_id=self.batch_id,
                started_s=start_s,
                committed_s=start_s + duration_s,
                ended_s=start_s + duration_s,
                num_rows=int(self.position) - int(before),
                position_rows=int(self.position),
                available_rows=int(self.arrived),
                shuffle_partitions=configuration.shuffle_partitions,
                sink=self.sink,
                num_cores=slots,
            )
        )


def a_state(profile: JobProfile, target: Target, configuration: Configuration) -> TunerState:
    """What a tuner begins with."""
    return TunerState(
        profile_hash=profile_hash(profile),
        target=str(target),
        phase=Phase.LEARN,
        original=configuration,
        last_good=configuration,
    )


def a_machine(
    query: SimulatedQuery,
    path: Path,
    *,
    acts: bool = True,
    executors: tuple[int, int] = (1, 8),
    triggers_s: tuple[float, ...] = (),
    at: Callable[[str], None] = lambda _point: None,
    is_quiet: Callable[[float], bool] = lambda _at_s: False,
    first: Configuration | None = None,
) -> TunerMachine:
    """A machine over a simulated query, with the state in a file if there is one."""
    target = Target.parse("p99 <= 3s")
    query.at = at
    now = lambda: query.now_s  # noqa: E731
    live = LiveQuery(feed=query, profile=query.profile, target=target, trigger_s=1.0)
    bounds = Bounds(min_executors=executors[0], max_executors=executors[1])
    rule = LiveRule(live=live, bounds=bounds, triggers_s=triggers_s, now=now)
    state = load_tuner(path) or a_state(query.profile, target, first or a_configuration())
    rule.pauses_s = dict(state.pauses_s)
    return TunerMachine(
        cast("Actuators", query),
        rule,
        state,
        path,
        acts=acts,
        is_quiet=is_quiet,
        now=now,
        at=at,
    )


def begun(query: SimulatedQuery, path: Path, seconds: float, **how: Any) -> TunerMachine:
    """A machine that has begun and has looked at the query for so long."""
    machine = a_machine(query, path, **how)
    machine.begin()
    run_for(machine, query, seconds)
    return machine


def run_for(
    machine: TunerMachine, query: SimulatedQuery, seconds: float, step_s: float = 1.0
) -> None:
    """Look at the query each second for so long."""
    ends_s = query.now_s + seconds
    while query.now_s < ends_s:
        query.pass_s(step_s)
        machine.step()


def phase_of(machine: TunerMachine) -> Phase:
    """What it is doing."""
    return machine.state.phase
