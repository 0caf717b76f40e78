"""Changes of a planned job against its lock: findings with their positions in its file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from headway.ci.nouns import Finding, Level, Rule
from headway.domain import parse_promise
from headway.domain.configuration import task_slots
from headway.domain.kept_promise import KeptPromise, is_about
from headway.formats.lock_file import AnyLocked, Locked, LockedBatch
from headway.planner.explain.causes import UNCHANGED_RATIO
from headway.sparkconf import KNOBS, applies_when, task_cpus_of
from headway.units import format_duration, format_rate, spark_trigger_text

if TYPE_CHECKING:
    from headway.domain import Prediction
    from headway.domain.fleet_questions import Limits
    from headway.formats.yaml_document import Mark
    from headway.sparkconf import Knob
    from headway.spec.spec_file import Planned, PlannedBatch, PlannedJob


def finding(
    planned: Planned,
    rule: Rule,
    level: Level,
    key: str,
    message: str,
    location: Mark | None = None,
) -> Finding:
    """A finding about a planned job, at a key of its file's ``spec``, or at another position."""
    location = location or planned.file.place(key)
    return Finding(
        rule=rule,
        level=level,
        job=planned.name,
        message=message,
        file=location.name,
        line=location.line,
        column=location.column,
    )


def is_same_rate(now: Locked, then: Locked) -> bool:
    """Whether both are for the same rate, to the precision of files."""
    return math.isclose(now.rate_per_s, then.rate_per_s, rel_tol=UNCHANGED_RATIO)


def same_promises(now: AnyLocked, then: AnyLocked) -> bool:
    """Whether both have the same target; locks of earlier versions have it in three digits."""
    promises_now = [kept_promise.promise() for kept_promise in now.promises]
    if then.promises:
        return promises_now == [kept_promise.promise() for kept_promise in then.promises]
    promises_then = [KeptPromise.of(parse_promise(text)) for text in then.targets]
    return len(promises_now) == len(promises_then) and all(
        is_about(promise_now, promise_then)
        for promise_now, promise_then in zip(now.promises, promises_then, strict=True)
    )


def locked_slots(planned: PlannedBatch, then: LockedBatch) -> int:
    """Tasks that the locked setting of a job that ends can run at the same time."""
    return task_slots(
        then.executors,
        then.cores_per_executor,
        task_cpus_of(then.spark_conf),
        planned.profile.slots.tasks_per_executor,
    )


def what_grew(then: AnyLocked, predicted: Prediction | None) -> str:
    """The part of the latency that grew most in the locked configuration; empty if none did.

    Locks of earlier versions do not contain the parts.
    """
    from headway.planner.explain.difference import parts

    if then.ends or predicted is None or not then.phases_s:
        return ""
    for part in parts(then.phases_s, predicted.phases_s):
        if part.change_s > 0:
            before, after = map(format_duration, (part.before_s or 0.0, part.after_s or 0.0))
            name = predicted.phase_called(part.name)
            return f" (most of it in {name}: {after}, was {before})"
    return ""


def stream_changes(
    planned: PlannedJob, now: Locked, then: Locked, predicted: Prediction | None, limits: Limits
) -> Iterator[Finding]:
    """Differences from the lock, except for cost and latency.

    ``predicted`` is the prediction of the current profile for the locked setting.
    """
    if planned.plan.feasible:
        yield from _other_settings(planned, now, then)
    if predicted is None or not then.batch_duration_s:
        return
    if predicted.batch_duration is None:
        state = "too close to saturation" if predicted.is_close_to_saturation else "over capacity"
        text = (
            f"the locked configuration is {state} at {format_rate(then.rate_per_s)} "
            "with the current profile"
        )
        yield finding(planned, Rule.DRIFT, Level.ERROR, "profile", text)
        return
    yield from _drift(
        planned, then.batch_duration_s, predicted.batch_duration.mean_s, limits.drift_ratio,
        "batches in the locked configuration take",
    )  # fmt: skip


def _other_settings(planned: PlannedJob, now: Locked, then: Locked) -> Iterator[Finding]:
    """Each setting that changes, and what it takes for the change to reach the query."""
    # A version that is not known fixes the same as the oldest does.
    version = planned.profile.application.spark_version
    version = version if version[:1].isdigit() else "2.0"
    for name, knob in KNOBS.items():
        before, after = _locked_value(then, knob), _locked_value(now, knob)
        if before == after:
            continue
        applies = applies_when(
            knob, stateful=bool(planned.profile.shape.stateful_operators), spark_version=version
        )
        text = f"{knob.label} {_shown(name, before)} -> {_shown(name, after)}: {applies}"
        yield finding(planned, Rule.SETTINGS, Level.NOTE, planned.promise_key, text)


def _locked_value(locked: Locked, knob: Knob) -> object:
    """A setting of a lock: a field of its own, or what the Spark configuration says."""
    return getattr(locked, knob.setting, locked.spark_conf.get(knob.key))


def _shown(name: str, value: object) -> str:
    if value is None:
        return "none"
    return spark_trigger_text(float(str(value))) if name == "trigger_s" else str(value)


def batch_changes(
    planned: PlannedBatch, now: AnyLocked, then: LockedBatch, limits: Limits
) -> Iterator[Finding]:
    """Differences from the lock, except for cost and run time."""
    from headway.planner.kinds.batch_run_time import run_time_of

    job, backlog = planned.profile, planned.profile.backlog
    if backlog is not None and then.backlog_rows is not None:
        if not math.isclose(backlog.backlog_rows, then.backlog_rows, rel_tol=UNCHANGED_RATIO):
            text = f"the backlog is {backlog.backlog_rows:,.0f} rows, was {then.backlog_rows:,.0f}"
            yield finding(planned, Rule.RATE, Level.NOTE, "rows", text)
        job = replace(backlog, backlog_rows=then.backlog_rows)
    if planned.plan.feasible:
        for knob in KNOBS.values():
            before, after = then.spark_conf.get(knob.key), now.spark_conf.get(knob.key)
            if before != after:
                text = f"{knob.label} {before or 'none'} -> {after or 'none'}: {knob.applies}"
                yield finding(planned, Rule.SETTINGS, Level.NOTE, planned.promise_key, text)
    now_s = run_time_of(job).mean_s(locked_slots(planned, then), then.core_speed_ratio)
    subject = "a run of the locked size takes"
    yield from _drift(planned, then.run_time_s, now_s, limits.drift_ratio, subject)


def _drift(
    planned: Planned, then_s: float, now_s: float, limit_ratio: float, subject: str
) -> Iterator[Finding]:
    """Whether the current profile predicts a different time for the locked setting.

    A shorter time is no regression, but changes what the lock is based on.
    """
    change = now_s / then_s - 1
    if abs(change) <= limit_ratio:
        return
    text = (
        f"{subject} {format_duration(now_s)} with the current profile, "
        f"{format_duration(then_s)} with the locked one ({change:+.0%})"
    )
    level = Level.ERROR if change > 0 else Level.NOTE
    yield finding(planned, Rule.DRIFT, level, "profile", text)
