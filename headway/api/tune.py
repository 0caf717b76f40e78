"""A running query kept within its target: changes are recommended, or made within bounds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

from headway.api.arguments import job_from, promises_from
from headway.api.watch import bounds_of
from headway.assumptions.live import CATCH_UP_S
from headway.assumptions.tuning import TRIGGER_RATIOS
from headway.domain import Configuration, JobProfile, Target
from headway.domain.argument_values import (
    FLAG,
    TRIGGER_ABOVE_ZERO,
    Choice,
    Duration,
    ListOf,
    Positive,
    path_of,
)
from headway.domain.live import Bounds, ChangeKind
from headway.domain.tuner import Phase, TunerState
from headway.errors import InfeasibleError, InputError
from headway.formats.tuner_files import TunerLock, load_tuner, profile_hash
from headway.limits import SHORTEST_TRIGGER_S
from headway.profiler.recording.live import QueryFeed
from headway.runtime.exploring import Build
from headway.runtime.tuning.actuators import Actuators, At, nothing
from headway.runtime.tuning.session import (
    require_classic,
    require_no_dynamic_allocation,
    running_slots,
    warning_of_allocation,
    why_no_live_executors,
)
from headway.tuner.live_query import LiveQuery
from headway.tuner.live_rule import LiveRule
from headway.tuner.machine import TunerMachine
from headway.tuner.rule.memory import remembered
from headway.tuner.tuner import Tuner
from headway.units import S_PER_HOUR, format_rate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ALLOWED = {"repartition": ChangeKind.REPARTITION}
_LISTED = ListOf(members=str, expected="a text, or a list of texts", or_one=True)
_INTERVALS = ListOf(
    members=Real, expected="a trigger interval, e.g. '2s', or a list of such", or_one=True
)
_STATE = path_of("a file, e.g. 'orders.tuner.json'")
_HOURS = 24


def tune(
    spark: SparkSession,
    build: Build,
    *,
    profile: JobProfile | str | Path,
    target: Target | str,
    state: str | Path,
    mode: str = "recommend",
    executors: tuple[int, int] | None = None,
    triggers: Sequence[float | str] | None = None,
    rate_limit: bool = True,
    allow: Collection[str] = (),
    half_done: str = "wait",
    catch_up: float | str = CATCH_UP_S.value,
    budget: float | None = None,
    quiet: Sequence[str] = (),
    at: At | None = None,
) -> Tuner:
    """Keep a streaming query within its target while it runs; by default only recommend changes.

    The function is called to start the query, and in mode ``act`` again for each change of the
    trigger interval or the rate limit, after a clean stop, on the same checkpoint. Executors are
    added and removed while the query runs. Each step is first written to ``state`` and to a log
    beside it, so that a tuner that was killed continues where it stopped.

    Parameters
    ----------
    spark : SparkSession
        A classic session; its shuffle partitions are set to those of the setting.
    build : callable
        ``build(spark, setting)`` starts the query at a :class:`headway.QuerySetting`, on the same
        checkpoint each time, and returns it.
    profile : JobProfile or path
        Profile of the query.
    target : Target or str
        A quantile of rows or batches, e.g. ``"p99 <= 3s"``.
    state : path
        The state file; one tuner at a time. Beside it are the log (``.jsonl``), the lock
        (``.lock``), and the switch: as long as there is a file ``.off``, nothing is changed.
    mode : str
        ``"recommend"`` or ``"act"``.
    executors : (int, int), optional
        Minimum and maximum; by default the current number.
    triggers : sequence of float or str, optional
        Trigger intervals to choose from, seconds or e.g. ``"2s"``; half and twice the profiled one
        by default.
    rate_limit : bool
        Whether the setting has a rate limit: 1.5 times the rows that the largest size is expected
        to process in a trigger interval.
    allow : collection of str
        ``"repartition"`` allows the partitions of the state to be changed, offline.
    half_done : str
        If the query has no gap between batches, ``"wait"`` waits for one; ``"allow"`` stops it
        within a batch, which needs an idempotent sink such as the file sink.
    catch_up : float or str
        Time within which a backlog must be processed.
    budget : float, optional
        Maximum executor-hours per day.
    quiet : sequence of str
        Times of the day at which nothing is changed, e.g. ``"22:00-06:00"``, of the local clock.
    at : callable, optional
        Called with the name of each step of a change, for tests that interrupt it there.

    Returns
    -------
    Tuner
        A running tuner; leaving ``with`` ends it, and the query continues.

    Raises
    ------
    InputError
        If a value is invalid; the session is one of Spark Connect; in mode ``act`` dynamic
        allocation may change the executors; or the query starts from another checkpoint than
        before.
    TunerLockedError
        If another tuner holds the state file.
    InfeasibleError
        If no setting within bounds meets the target at the profiled rate.
    HeadwayError
        If the query does not start.
    """
    acts = Choice(("recommend", "act")).read(mode, "mode") == "act"
    may_cut = Choice(("wait", "allow")).read(half_done, "half_done") == "allow"
    first, others = promises_from(target)
    if others or first.quantile is None:
        raise InputError(f"target is {target!r}; expected one quantile, e.g. 'p99 <= 3s'")
    if not callable(build):
        raise InputError(f"build is {build!r}; expected a function build(spark, setting)")
    if at is not None and not callable(at):
        raise InputError(f"at is {at!r}; expected a function of a text")
    FLAG.read(rate_limit, "rate_limit")
    path = _STATE.read(state, "state")
    kinds = _LISTED.read(sorted(allow, key=str) if isinstance(allow, Set) else allow, "allow")
    changes = [_ALLOWED[Choice(tuple(_ALLOWED)).read(name, "allow")] for name in kinds]
    is_quiet = quiet_times(quiet)
    job = job_from(profile, first)
    require_classic(spark)
    num_executors, cores = running_slots(spark)
    bounds = bounds_for(executors or (num_executors, num_executors), catch_up, budget)
    if acts:
        require_no_dynamic_allocation(spark, bounds.max_executors)
    allocation = warning_of_allocation(spark, bounds.min_executors, bounds.max_executors)
    baseline = replace(
        job.baseline,
        executors=num_executors,
        cores_per_executor=max(cores, math.ceil(job.baseline.task_cpus)),
        max_offsets_per_trigger=None,
    )
    lock = TunerLock(path)
    try:
        live = LiveQuery(feed=QueryFeed(), profile=job, target=first, trigger_s=baseline.trigger_s)
        rule, initial_state = rule_and_state(
            live, baseline, path, bounds=bounds, triggers=triggers, rate_limit=rate_limit
        )
        if not acts or why_no_live_executors(spark) is not None:
            initial_state = _on_the_slots_of(initial_state, baseline)
        actuators = Actuators(
            spark=spark,
            build=build,
            may_cut=may_cut,
            at=at or nothing,
            query_id=initial_state.query_id,
            root=initial_state.root,
        )
        machine = TunerMachine(
            actuators,
            rule,
            initial_state,
            path,
            acts=acts,
            allow=changes,
            is_quiet=is_quiet,
            at=at or nothing,
            cautions=() if allocation is None else (allocation,),
        )
    except BaseException:
        lock.release()
        raise
    return Tuner(machine, path, lock).begin()


def rule_and_state(
    live: LiveQuery,
    baseline: Configuration,
    path: Path,
    *,
    bounds: Bounds,
    triggers: Sequence[float | str] | None,
    rate_limit: bool,
) -> tuple[LiveRule, TunerState]:
    """The rule with what was learned before, and the initial state."""
    state = _fresh(load_tuner(path), live.profile, live.target, baseline)
    rule = LiveRule(live=live, bounds=bounds, triggers_s=_triggers(triggers, baseline, live.target))
    rule.memory, rule.pauses_s = remembered(state), dict(state.pauses_s)
    _require_feasible(rule, baseline)
    if rate_limit and state.last_good.max_offsets_per_trigger is None:
        limited = rule.with_limit(state.last_good)
        state = replace(state, last_good=limited, original=limited)
    return rule, state


def quiet_times(texts: Sequence[str]) -> Callable[[float], bool]:
    """Whether an instant is within one of some times of the day, by the local clock.

    >>> quiet_times(["22-6"])
    Traceback (most recent call last):
    ...
    headway.errors.InputError: quiet '22-6': expected two times of the day, e.g. '22:00-06:00'
    """
    periods = [_period_min(text) for text in _LISTED.read(texts, "quiet")]

    def is_quiet(at_s: float) -> bool:
        clock = time.localtime(at_s)
        minute = 60 * clock.tm_hour + clock.tm_min
        return any(
            low <= minute < high if low <= high else minute >= low or minute < high
            for low, high in periods
        )

    return is_quiet


def _period_min(text: str) -> tuple[int, int]:
    times_min = []
    for part in text.split("-"):
        hour, _, minute = part.strip().partition(":")
        if hour.isdecimal() and minute.isdecimal() and int(hour) < _HOURS and int(minute) < 60:
            times_min.append(60 * int(hour) + int(minute))
    if len(times_min) != 2:
        raise InputError(f"quiet {text!r}: expected two times of the day, e.g. '22:00-06:00'")
    return times_min[0], times_min[1]


def bounds_for(executors: tuple[int, int], catch_up: float | str, budget: float | None) -> Bounds:
    bounds = replace(bounds_of(executors), catch_up_s=Duration().read(catch_up, "catch_up"))
    if budget is None:
        return bounds
    budget_hours = Positive(words="executor-hours a day, above 0").read(budget, "budget")
    return replace(bounds, budget_executor_s=budget_hours * S_PER_HOUR)


def _triggers(
    triggers: Sequence[float | str] | None, baseline: Configuration, target: Target
) -> tuple[float, ...]:
    if triggers is not None:
        intervals = _INTERVALS.read(triggers, "triggers")
        return tuple(TRIGGER_ABOVE_ZERO.read(interval, "triggers") for interval in intervals)
    candidates_s = (ratio * baseline.trigger_s for ratio in TRIGGER_RATIOS.value)
    return tuple(
        trigger_s for trigger_s in candidates_s if SHORTEST_TRIGGER_S <= trigger_s < target.limit_s
    )


def _fresh(
    saved_state: TunerState | None, job: JobProfile, target: Target, baseline: Configuration
) -> TunerState:
    """The initial state: as it was left, unless the profile or the target has changed."""
    of_profile = profile_hash(job)
    if saved_state is None:
        return TunerState(
            profile_hash=of_profile,
            target=str(target),
            phase=Phase.LEARN,
            original=baseline,
            last_good=baseline,
        )
    if (saved_state.profile_hash, saved_state.target) == (of_profile, str(target)):
        return saved_state
    # Costs of changes are learned of the query, whatever it is to meet.
    return replace(saved_state, profile_hash=of_profile, target=str(target), late=(), blocked=())


def _on_the_slots_of(state: TunerState, baseline: Configuration) -> TunerState:
    """The state with the current executors, if the tuner does not change them."""
    slots = {"executors": baseline.executors, "cores_per_executor": baseline.cores_per_executor}
    change = state.change
    if change is not None:
        change = replace(
            change, now=replace(change.now, **slots), then=replace(change.then, **slots)
        )
    return replace(
        state,
        original=replace(state.original, **slots),
        last_good=replace(state.last_good, **slots),
        change=change,
    )


def _require_feasible(rule: LiveRule, baseline: Configuration) -> None:
    table = rule.table(baseline)
    highest = max(
        table.sustained(table.most(trigger_s), trigger_s) for trigger_s in table.triggers_s
    )
    rate_per_s = rule.live.profile.arrivals.rate_per_s
    if highest < rate_per_s:
        raise InfeasibleError(
            f"target '{rule.live.target}': no setting within bounds meets it at the profiled "
            f"{format_rate(rate_per_s)}, at most at {format_rate(highest)}; nothing was started. "
            "Give more executors, another trigger, or a looser target"
        )
