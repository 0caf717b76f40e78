"""The locked setting under the current question: whether it would still meet its targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headway.ci.changes import finding, is_same_rate, locked_slots, same_promises
from headway.ci.nouns import Finding, Level, LockedToday, Rule
from headway.domain.configuration import Configuration
from headway.formats.lock_file import AnyLocked, Locked, LockedBatch
from headway.planner.after_start import for_fresh_jvm
from headway.planner.purchase import at_core_speed
from headway.planner.search import question_of
from headway.planner.space import SearchSpace
from headway.planner.switches import with_switches_of
from headway.planner.verdict import judged_setting
from headway.sparkconf import task_cpus_of
from headway.units import counted, format_duration, format_rate
from headway.words import certainty_text

if TYPE_CHECKING:
    from headway.domain import AnyPromise
    from headway.planner.verdict import JudgedSetting
    from headway.spec.spec_file import Planned, PlannedBatch, PlannedJob


def judged_today(
    planned: Planned, now: AnyLocked, then: AnyLocked | None
) -> tuple[LockedToday | None, Finding | None]:
    """The locked setting under the current question, and the finding if it misses a target.

    Nothing for a job that is not locked, or that is locked as another kind of job.
    """
    if then is None:
        return None, None
    if then.ends:
        return _batch(planned, now, then) if now.ends else (None, None)
    return (None, None) if now.ends else _stream(planned, now, then)


def _stream(
    planned: PlannedJob, now: Locked, then: Locked
) -> tuple[LockedToday | None, Finding | None]:
    setting = _judged(planned, then)
    planned_s = setting.planned_s[0]
    today = LockedToday(
        met=setting.met,
        probability=setting.probability,
        planned_s=planned_s if math.isfinite(planned_s) else None,
    )
    if setting.met:
        return today, None
    key = "profile" if same_promises(now, then) else planned.promise_key
    if not is_same_rate(now, then):
        key = "rate"
    text = f"the locked setting ({_setting_text(then)}) {_shortfall(setting, then)}"
    return today, finding(planned, Rule.LOCKED, Level.ERROR, key, text)


def _judged(planned: PlannedJob, then: Locked) -> JudgedSetting:
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


def _setting_text(then: Locked) -> str:
    trigger = f"trigger {format_duration(then.trigger_s)}" if then.trigger_s else "no trigger"
    return (
        f"{counted(then.executors, 'executor')} of {counted(then.cores_per_executor, 'core')}, "
        f"{counted(then.shuffle_partitions, 'shuffle partition')}, {trigger}"
    )


def _shortfall(setting: JudgedSetting, then: Locked) -> str:
    """What the locked setting misses, how certain that is, and what it carries."""
    question, rate = setting.question, format_rate(setting.question.rate_per_s)
    if setting.is_over:
        return f"is over capacity at {rate}: stable up to {format_rate(setting.stable_up_to_per_s)}"
    if setting.limited_to_per_s < question.rate_per_s:
        rows = counted(then.max_offsets_per_trigger or 0, "row")
        return (
            f"falls behind at {rate}: its rate limit of {rows} per batch lets through "
            f"{format_rate(setting.limited_to_per_s)}"
        )
    text = f"would miss {_missed(question.promises, setting.planned_s)} at {rate}"
    text += f"; {certainty_text(setting.probability, question.confidence)}"
    if setting.max_rate_per_s > 0:
        text += f"; max rate within target {format_rate(setting.max_rate_per_s)}"
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


def _batch(
    planned: PlannedBatch, now: LockedBatch, then: LockedBatch
) -> tuple[LockedToday | None, Finding | None]:
    from headway.planner.kinds.batch_run_time import run_time_of

    plan, speed = planned.plan, then.core_speed_ratio
    slots = locked_slots(planned, then)
    job = run_time_of(planned.profile)
    planned_s = job.planned_s(slots, speed, plan.confidence)
    met = planned_s <= plan.deadline.limit_s
    probability = job.kept_probability(slots, speed, plan.deadline.limit_s)
    probability = max(probability, plan.confidence) if met else probability
    today = LockedToday(met=met, probability=probability, planned_s=planned_s)
    if met:
        return today, None
    size = f"{counted(then.executors, 'executor')} of {counted(then.cores_per_executor, 'core')}"
    text = (
        f"the locked setting ({size}) would miss {_missed((plan.deadline,), (planned_s,))}"
        f"; {certainty_text(probability, plan.confidence)}"
    )
    key = "profile" if same_promises(now, then) else planned.promise_key
    return today, finding(planned, Rule.LOCKED, Level.ERROR, key, text)
