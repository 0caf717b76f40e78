"""Jobs planned anew and held against their lock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headway.gate.lock import load_lock, locked_of
from headway.gate.nouns import Finding, Held, Level, Limits, Lock, Locked, Report, Rule
from headway.units import format_duration, format_rate, spark_trigger_text

if TYPE_CHECKING:
    from headway.api.specs import PlannedJob
    from headway.domain import JobProfile

_DEFAULT_LIMITS = Limits()


def check(
    specs: Sequence[str | Path],
    *,
    baseline: str | Path | Lock | None = None,
    limits: Limits = _DEFAULT_LIMITS,
) -> Report:
    """Plan jobs and tell whether targets are met, and what is worse than it was.

    Parameters
    ----------
    specs : sequence of paths
        Files of the kind StreamingJob.
    baseline : path or Lock, optional
        What was locked; without it only the targets are checked.
    limits : Limits
        How much worse than locked is a regression.

    Raises
    ------
    InputError
        If a file or the lock is not what it should be.
    """
    from headway.api.specs import plan_spec

    locked = load_lock(baseline) if isinstance(baseline, str | Path) else baseline
    jobs = tuple(_held(plan_spec(path), locked, limits) for path in specs)
    names = {job.name for job in jobs}
    gone = tuple(
        Finding(
            rule=Rule.GONE,
            level=Level.NOTE,
            job=each.name,
            message=f"{each.name} is locked but was not checked",
            file=str(baseline) if isinstance(baseline, str | Path) else each.file,
        )
        for each in (locked.jobs if locked is not None else ())
        if each.name not in names
    )
    name = str(baseline) if isinstance(baseline, str | Path) else None
    return Report(baseline=name, jobs=jobs, others=gone)


def _held(planned: PlannedJob, lock: Lock | None, limits: Limits) -> Held:
    now = locked_of(planned)
    then = None if lock is None else lock.of(planned.name)
    place = planned.file.place("target")
    return Held(
        name=planned.name,
        file=place.name,
        line=place.mark.line,
        now=now,
        then=then,
        feasible=planned.plan.feasible,
        calibrated=planned.plan.prediction.calibrated,
        findings=tuple(_findings(planned, now, then, limits, has_lock=lock is not None)),
    )


def _findings(
    planned: PlannedJob, now: Locked, then: Locked | None, limits: Limits, *, has_lock: bool
) -> Iterator[Finding]:
    plan = planned.plan
    if not plan.feasible:
        promise = " and ".join(now.targets)
        yield _finding(
            planned, Rule.TARGET, Level.ERROR, "target",
            f"{promise} cannot be kept at {format_rate(now.rate_per_s)}: {'; '.join(plan.binding)}",
        )  # fmt: skip
    if not plan.prediction.calibrated:
        # The prediction's own warnings say what it is that the profile did not see.
        told = (*plan.prediction.warnings, *plan.warnings)
        why = next(iter(told), "the profile did not see such a setting")
        level = Level.ERROR if limits.strict else Level.WARNING
        yield _finding(planned, Rule.CALIBRATION, level, "rate", f"outside the profile: {why}")
    if then is None:
        if has_lock:
            text = f"{now.name} is not in the lock; add it with 'headway lock'"
            yield _finding(planned, Rule.UNLOCKED, Level.WARNING, "target", text)
        return
    if plan.feasible:
        yield from _dearer(planned, now, then, limits)
        yield from _slower(planned, now, then, limits)
        yield from _other_settings(planned, now, then)
    yield from _drifted(planned, then, limits)


def _dearer(planned: PlannedJob, now: Locked, then: Locked, limits: Limits) -> Iterator[Finding]:
    priced = now.cost_per_hour is not None and then.cost_per_hour is not None
    after, before = (now.cost_per_hour, then.cost_per_hour) if priced else (now.nodes, then.nodes)
    assert after is not None
    assert before is not None
    change = after / before - 1 if before else 0.0
    if change == 0:
        return
    figures = (
        f"{after:.4g} an hour, was {before:.4g}"
        if priced
        else f"{_nodes(int(after))}, was {int(before)}"
    )
    level = Level.ERROR if change > limits.cost_ratio else Level.NOTE
    word = "dearer" if change > 0 else "cheaper"
    yield _finding(planned, Rule.COST, level, "target", f"{figures} ({change:+.0%}): {word}")


def _slower(planned: PlannedJob, now: Locked, then: Locked, limits: Limits) -> Iterator[Finding]:
    if now.planned_latency_s is None or not then.planned_latency_s:
        return
    if now.targets != then.targets:
        text = f"the promise is {' and '.join(now.targets)}, was {' and '.join(then.targets)}"
        yield _finding(planned, Rule.LATENCY, Level.NOTE, "target", text)
        return
    change = now.planned_latency_s / then.planned_latency_s - 1
    # Locks hold six digits.
    if abs(change) < 1e-4:
        return
    level = Level.ERROR if change > limits.latency_ratio else Level.NOTE
    word = "slower" if change > 0 else "faster"
    text = (
        f"{planned.plan.target.statistic} up to {format_duration(now.planned_latency_s)}, was "
        f"{format_duration(then.planned_latency_s)} ({change:+.0%}): {word}"
    )
    yield _finding(planned, Rule.LATENCY, level, "target", text)


def _other_settings(planned: PlannedJob, now: Locked, then: Locked) -> Iterator[Finding]:
    """Each setting that changes, and what it takes for the change to reach the query."""
    from headway.sparkconf import KNOBS, applies_when

    profile = planned.profile
    for name, knob in KNOBS.items():
        before, after = getattr(then, name, None), getattr(now, name, None)
        if name == "executor_memory":
            before, after = then.spark_conf.get(knob.key), now.spark_conf.get(knob.key)
        if before == after:
            continue
        applies = applies_when(
            knob,
            stateful=bool(profile.shape.stateful_operators),
            spark_version=_spark_version(profile),
        )
        text = f"{knob.label} {_shown(name, before)} -> {_shown(name, after)}: {applies}"
        yield _finding(planned, Rule.SETTINGS, Level.NOTE, "target", text)


def _drifted(planned: PlannedJob, then: Locked, limits: Limits) -> Iterator[Finding]:
    """Whether the profile of today says something else of the setting that was locked."""
    from headway.api.settings import predict

    if not then.batch_duration_s:
        return
    prediction = predict(
        planned.profile,
        rate=then.rate_per_s,
        trigger=then.trigger_s,
        executors=then.executors,
        cores=then.cores_per_executor,
        partitions=then.shuffle_partitions,
        max_offsets=then.max_offsets_per_trigger,
    )
    if prediction.batch_duration is None:
        text = (
            f"the locked setting is over capacity at {format_rate(then.rate_per_s)} "
            "by the profile of today"
        )
        yield _finding(planned, Rule.DRIFT, Level.ERROR, "profile", text)
        return
    now_s = prediction.batch_duration.mean_s
    change = now_s / then.batch_duration_s - 1
    if abs(change) > limits.drift_ratio:
        text = (
            f"batches of the locked setting take {format_duration(now_s)} by the profile of today, "
            f"{format_duration(then.batch_duration_s)} by the one that was locked ({change:+.0%})"
        )
        yield _finding(planned, Rule.DRIFT, Level.ERROR, "profile", text)


def _finding(planned: PlannedJob, rule: Rule, level: Level, key: str, message: str) -> Finding:
    place = planned.file.place(key)
    return Finding(
        rule=rule,
        level=level,
        job=planned.name,
        message=message,
        file=place.name,
        line=place.mark.line,
        column=place.mark.column,
    )


def _spark_version(profile: JobProfile) -> str:
    version = profile.applications[-1].spark_version
    # A version that is not known pins as the oldest does.
    return version if version[:1].isdigit() else "2.0"


def _shown(name: str, value: object) -> str:
    if value is None:
        return "none"
    return spark_trigger_text(float(str(value))) if name == "trigger_s" else str(value)


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"
