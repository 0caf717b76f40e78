"""A planned job against its lock: findings, with their positions in its file, on what changed, and
whether the locked setting would still meet its targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headway.ci.nouns import Finding, Level, LockedToday, Rule
from headway.digits import format_rate_down, signed_percent
from headway.domain import FindingCode, parse_promise
from headway.domain.configuration import Configuration, task_slots
from headway.domain.kept_promise import KeptPromise, is_about
from headway.formats.lock_file import AnyLocked, Locked, LockedBatch
from headway.planner.after_start import for_fresh_jvm
from headway.planner.explain.causes import UNCHANGED_RATIO
from headway.planner.purchase import at_core_speed
from headway.planner.question import SearchSpace
from headway.planner.search import question_of
from headway.planner.switches import with_switches_of
from headway.planner.verdict import judged_setting
from headway.sparkconf import KNOBS, applies_when, task_cpus_of
from headway.units import counted, format_duration, format_rate, spark_trigger_text
from headway.words import certainty_text
from headway.words.sentences import filled, stable_up_to

if TYPE_CHECKING:
    from headway.domain import AnyPromise, Prediction
    from headway.domain.fleet_questions import Limits
    from headway.formats.yaml_document import Mark
    from headway.planner.verdict import JudgedSetting
    from headway.sparkconf import Knob
    from headway.spec.spec_file import Planned, PlannedBatch, PlannedJob

#: What a caution takes from a target that is met.
_RESTRICTIONS = {
    FindingCode.STATE_BREAKS_PROMISE: "meets its target only for {missed_after_s:duration}",
    FindingCode.GROWTH_ENDS_PROMISE: "meets its target only until {until}",
    FindingCode.SLOW_GROWTH_ENDS_PROMISE: "meets its target only until {until}",
    FindingCode.RETENTION_LOSES_ROWS: "loses rows in an outage of {planned_outage_s:duration}",
}


def finding(
    planned: Planned, rule: Rule, level: Level, key: str, message: str, location: Mark | None = None
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


def restrictions(planned: Planned) -> tuple[str, ...]:
    """In what the targets of a plan are met only in part, in short; empty if it meets none."""
    if not planned.plan.feasible:
        return ()
    return tuple(
        filled(_RESTRICTIONS[caution.code], caution)
        for caution in planned.plan.findings
        if caution.code in _RESTRICTIONS
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


def largest_rise_text(then: AnyLocked, predicted: Prediction | None) -> str:
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
        state_then = f"{state} at {format_rate(then.rate_per_s)}"
        text = f"the locked configuration is {state_then} with the current profile"
        yield finding(planned, Rule.DRIFT, Level.ERROR, "profile", text)
        return
    now_s, subject = predicted.batch_duration.mean_s, "batches in the locked configuration take"
    yield from _drift(planned, then.batch_duration_s, now_s, limits.drift_ratio, subject)


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
    now_s = run_time_of(job, then.core_speed_ratio).mean_s(locked_slots(planned, then))
    subject = "a run of the locked size takes"
    yield from _drift(planned, then.run_time_s, now_s, limits.drift_ratio, subject)


def _drift(
    planned: Planned, then_s: float, now_s: float, limit_ratio: float, subject: str
) -> Iterator[Finding]:
    """Whether the current profile predicts a different time for the locked setting.

    A shorter time is no regression, but changes what the lock is based on.
    """
    change = now_s / then_s - 1
    if abs(change) <= max(limit_ratio, UNCHANGED_RATIO):
        return
    after, before = map(format_duration, (now_s, then_s))
    text = f"{subject} {after} with the current profile, {before} with the locked one"
    level = Level.ERROR if change > 0 else Level.NOTE
    yield finding(planned, Rule.DRIFT, level, "profile", f"{text} ({signed_percent(change)})")


def judged_today(
    planned: Planned, now: AnyLocked, then: AnyLocked | None
) -> tuple[LockedToday | None, Finding | None]:
    """The locked setting under the current question, and the finding if it misses a target.

    Nothing for a job that is not locked, or that is locked as another kind of job.
    """
    if then is None or then.ends != now.ends:
        return None, None
    today, shortfall = _judged_batch(planned, then) if then.ends else _judged_stream(planned, then)
    if today.met:
        return today, None
    key = "profile" if same_promises(now, then) else planned.promise_key
    if not (now.ends or then.ends or is_same_rate(now, then)):
        key = "rate"
    text = f"the locked setting ({_setting_text(then)}) {shortfall}"
    return today, finding(planned, Rule.LOCKED, Level.ERROR, key, text)


def _judged_stream(planned: PlannedJob, then: Locked) -> tuple[LockedToday, str]:
    """The setting today, and what it misses."""
    setting = _judged_now(planned, then)
    planned_s = setting.planned_s[0] if math.isfinite(setting.planned_s[0]) else None
    today = LockedToday(met=setting.met, probability=setting.probability, planned_s=planned_s)
    return today, "" if setting.met else _shortfall(setting, then)


def _judged_now(planned: PlannedJob, then: Locked) -> JudgedSetting:
    """The locked setting at the current rate, targets and confidence, on the locked cores."""
    plan, profile = planned.plan, planned.profile
    if planned.file.spec.from_start:
        profile = for_fresh_jvm(profile)
    profile = with_switches_of(profile, {**then.spark_conf, **then.query_options})
    question = question_of(
        replace(profile, arrivals=plan.arrivals),
        plan.target,
        SearchSpace(max_nodes=then.executors),
        plan.confidence,
        plan.also,
    )
    at_speed = at_core_speed(question.profile, then.core_speed_ratio or 1.0)
    setting = Configuration(
        executors=then.executors,
        cores_per_executor=then.cores_per_executor,
        shuffle_partitions=then.shuffle_partitions,
        trigger_s=then.trigger_s,
        max_offsets_per_trigger=then.max_offsets_per_trigger,
        task_cpus=task_cpus_of(then.spark_conf),
        tasks_per_executor=profile.baseline.tasks_per_executor,
    )
    return judged_setting(replace(question, profile=at_speed), setting)


def _setting_text(then: AnyLocked) -> str:
    size = f"{counted(then.executors, 'executor')} of {counted(then.cores_per_executor, 'core')}"
    if then.ends:
        return size
    trigger = f"trigger {format_duration(then.trigger_s)}" if then.trigger_s else "no trigger"
    return f"{size}, {counted(then.shuffle_partitions, 'shuffle partition')}, {trigger}"


def _shortfall(setting: JudgedSetting, then: Locked) -> str:
    """What the locked setting misses, how certain that is, and what it carries."""
    question, rate = setting.question, format_rate(setting.question.rate_per_s)
    if setting.is_over:
        return f"is over capacity at {rate}: {stable_up_to(setting.stable_up_to_per_s)}"
    if setting.limited_to_per_s < question.rate_per_s:
        limit = f"its rate limit of {counted(then.max_offsets_per_trigger or 0, 'row')} per batch"
        lets_through = format_rate_down(setting.limited_to_per_s)
        return f"falls behind at {rate}: {limit} lets through {lets_through}"
    text = f"would miss {_missed(question.promises, setting.planned_s)} at {rate}"
    text += f"; {certainty_text(setting.probability, question.confidence)}"
    if setting.max_rate_per_s > 0:
        text += f"; max rate within target {format_rate_down(setting.max_rate_per_s)}"
    return text


def _missed(targets: Sequence[AnyPromise], planned_s: Sequence[float]) -> str:
    """Each missed target with its value; all of them if none of the values is beyond its limit."""
    values = list(zip(targets, planned_s, strict=True))
    missed = [(target, value_s) for target, value_s in values if value_s > target.limit_s]
    return " and ".join(
        f"{target} (up to {format_duration(value_s)})"
        if math.isfinite(value_s)
        else f"{target} (too close to saturation for a latency)"
        for target, value_s in missed or values
    )


def _judged_batch(planned: PlannedBatch, then: LockedBatch) -> tuple[LockedToday, str]:
    from headway.planner.kinds.batch_run_time import run_time_of

    plan, slots = planned.plan, locked_slots(planned, then)
    job = run_time_of(planned.profile, then.core_speed_ratio)
    planned_s = job.planned_s(slots, plan.confidence)
    met = planned_s <= plan.deadline.limit_s
    probability = job.kept_probability(slots, plan.deadline.limit_s)
    probability = max(probability, plan.confidence) if met else probability
    missed = _missed((plan.deadline,), (planned_s,))
    shortfall = f"would miss {missed}; {certainty_text(probability, plan.confidence)}"
    return LockedToday(met=met, probability=probability, planned_s=planned_s), shortfall
