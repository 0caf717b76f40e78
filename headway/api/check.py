"""Jobs planned again and compared with their lock."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from headway.api.arguments import SPECS
from headway.api.lock import locked_of, refuse_twice
from headway.api.predict import predict
from headway.api.specs import plan_spec, replanned
from headway.ci.changes import (
    batch_changes,
    finding,
    is_same_rate,
    judged_today,
    largest_rise_text,
    restrictions,
    same_promises,
    stream_changes,
)
from headway.ci.nouns import Finding, Held, Level, Report, Rule
from headway.digits import format_money, signed_percent
from headway.domain import AnyPromise, FindingCode, Prediction, parse_promise
from headway.domain.argument_values import of_class
from headway.domain.finding import AGAINST_CALIBRATION, CAUTIONS, OUTSIDE_CALIBRATION
from headway.domain.fleet_questions import Limits
from headway.domain.plan_parts import Verdict
from headway.errors import InputError
from headway.formats.lock_file import AnyLocked, Lock, Locked, load_lock, lock_beside
from headway.formats.yaml_document import Mark
from headway.planner.after_start import for_fresh_jvm
from headway.planner.explain.causes import (
    UNCHANGED_RATIO,
    Cause,
    Sized,
    Why,
    causes,
    cost_per_hour_of_run,
)
from headway.planner.purchase import at_core_speed
from headway.planner.switches import with_switches_of
from headway.redaction import one_line
from headway.sparkconf import task_cpus_of
from headway.spec.spec_file import Planned, PlannedJob, load_spec
from headway.units import HOURS_PER_MONTH, counted, format_duration, format_rate
from headway.words import missed_text, words_of

_DEFAULT_LIMITS = Limits()
_LIMITS = of_class(Limits, "headway.Limits")
_BASELINE = of_class(str | Path | Lock | None, "a lock, or the path of one", is_path=True)


def check(
    specs: str | Path | Sequence[str | Path],
    *,
    baseline: str | Path | Lock | None = None,
    limits: Limits = _DEFAULT_LIMITS,
) -> Report:
    """Plan jobs and check whether targets are met, also by the locked setting, and what is worse.

    Parameters
    ----------
    specs : path or sequence of paths
        Files of the kinds StreamingJob and BatchJob.
    baseline : path or Lock, optional
        The lock to compare with. By default, for each file the ``headway.lock`` beside it, or else
        that of the working folder; if there is none, only the targets are checked.
    limits : Limits
        How much worse than the lock counts as a regression: ``headway.Limits(cost_ratio="2%")``.

    Raises
    ------
    InputError
        If a file or the lock is invalid, no file is given, or a job is given twice.
    """
    files: list[str | Path] = SPECS.read(specs, "specs")
    limits = _LIMITS.read(limits, "limits")
    baseline = _BASELINE.read(baseline, "baseline")
    lock_names = [_name_of_lock(path, baseline) for path in files]
    # A lock that several files share is read once.
    locks: dict[str | None, Lock | None] = {
        name: load_lock(name) for name in dict.fromkeys(lock_names) if name is not None
    }
    locks[None] = baseline if isinstance(baseline, Lock) else None
    jobs = _all_held(files, [locks[name] for name in lock_names], limits)
    checked_names = {job.name for job in jobs}
    gone_findings = tuple(
        Finding(
            rule=Rule.GONE,
            level=Level.NOTE,
            job=job.name,
            message=f"{one_line(job.name)} is locked but was not checked",
            file=lock_name or job.file,
        )
        for lock_name, lock in locks.items()
        for job in (lock.all_jobs if lock is not None else ())
        if job.name not in checked_names
    )
    baseline_names = [name for name in locks if name is not None]
    return Report(baseline=", ".join(baseline_names) or None, jobs=jobs, others=gone_findings)


def _all_held(
    specs: Sequence[str | Path], locks: Sequence[Lock | None], limits: Limits
) -> tuple[Held, ...]:
    """Each job against its lock, which has one plan for a name; without one, each file once."""
    jobs: list[Held] = []
    names: dict[int | Path, list[str]] = {}
    for path, lock in zip(specs, locks, strict=True):
        planned = plan_spec(str(path))
        names_beside = names.setdefault(Path(path).resolve() if lock is None else id(lock), [])
        refuse_twice(planned, path, names_beside)
        names_beside.append(planned.name)
        jobs.append(_held(planned, lock, limits))
    return tuple(jobs)


def invalid_report(error: InputError, specs: Sequence[str | Path]) -> Report:
    """Faults of files as findings, at their positions; those without one are about a spec file."""
    findings = []
    # Names of the given files may have colons.
    files = "|".join((*(re.escape(str(path)) for path in specs), "[^:]+"))
    at_position = re.compile(rf"(?P<file>{files}):(?P<line>\d+):(?P<column>\d+): (?P<message>.+)")
    for line in str(error).splitlines():
        match = at_position.match(line)
        named = next((str(path) for path in specs if line.startswith(f"{path}: ")), str(specs[0]))
        file, message = (match["file"], match["message"]) if match else (named, line)
        findings.append(
            Finding(
                rule=Rule.INVALID,
                level=Level.ERROR,
                job=file,
                message=message.removeprefix(f"{file}: "),
                file=file,
                line=int(match["line"]) if match else 1,
                column=int(match["column"]) if match else 1,
            )
        )
    return Report(baseline=None, jobs=(), others=tuple(findings))


def _name_of_lock(spec: str | Path, baseline: str | Path | Lock | None) -> str | None:
    """The file that a spec file is compared with; None if there is none, or a lock without one."""
    if isinstance(baseline, Lock):
        return None
    lock_path = lock_beside(spec) if baseline is None else baseline
    return None if lock_path is None else str(lock_path)


def _held(planned: Planned, lock: Lock | None, limits: Limits) -> Held:
    now = locked_of(planned)
    then = None if lock is None else lock.of(planned.name)
    location = planned.file.place(planned.promise_key)
    today, miss = judged_today(planned, now, then)
    findings = _findings(planned, now, then, limits, has_lock=lock is not None)
    return Held(
        name=planned.name,
        file=location.name,
        line=location.line,
        now=now,
        then=then,
        locked_today=today,
        feasible=planned.plan.feasible,
        calibrated=planned.plan.calibrated,
        cautions=restrictions(planned),
        is_new=lock is not None and then is None,
        findings=(*([] if miss is None else [miss]), *findings),
    )


def _findings(
    planned: Planned, now: AnyLocked, then: AnyLocked | None, limits: Limits, *, has_lock: bool
) -> Iterator[Finding]:
    """Findings about the current plan alone, then against the lock."""
    plan, key = planned.plan, planned.promise_key
    if not plan.feasible:
        # A run may settle what is too close to tell.
        advised = plan.advice[:1] if plan.verdict is Verdict.TOO_CLOSE else ()
        why = (*plan.binding, *(advice.text for advice in advised))
        text = f"{missed_text(plan)}: {'; '.join(why)}"
        yield finding(planned, Rule.TARGET, Level.ERROR, key, text)
    if plan.feasible and not plan.calibrated:
        level = Level.ERROR if limits.strict else Level.WARNING
        spec_key = key if now.ends else "rate"
        yield finding(planned, Rule.CALIBRATION, level, spec_key, _why_not_calibrated(planned))
    yield from _caution_findings(planned)
    unlocked_level = Level.ERROR if limits.require_locked else Level.WARNING
    if then is None or then.ends != now.ends:
        text = f"{now.name} is locked as another kind of job; run 'headway lock' again"
        if then is None:
            text = f"{now.name} is not in the lock file; add it with 'headway lock'"
        if has_lock:
            yield finding(planned, Rule.UNLOCKED, unlocked_level, key, text)
        return
    if not now.ends and not then.ends and not is_same_rate(now, then):
        text = f"the rate is {format_rate(now.rate_per_s)}, was {format_rate(then.rate_per_s)}"
        yield finding(planned, Rule.RATE, Level.NOTE, "rate", text)
    as_locked = None if then.ends else _predicted_as_locked(planned, then)
    if plan.feasible:
        yield from _more_expensive(planned, now, then, limits, as_locked)
        yield from _slower(planned, now, then, limits)
    if then.ends:
        yield from batch_changes(planned, now, then, limits)
    elif not now.ends:
        yield from stream_changes(planned, now, then, as_locked, limits)


def _caution_findings(planned: Planned) -> Iterator[Finding]:
    """A warning for each caution without which the plan's headline must not be shown.

    Growth was seen in the profile, and stands at its line.
    """
    for caution in planned.plan.findings:
        if caution.code in CAUTIONS:
            is_lost = caution.code is FindingCode.RETENTION_LOSES_ROWS
            key = "retention" if is_lost else "profile"
            text = words_of(caution).removeprefix("caution: ")
            yield finding(planned, Rule.CAUTION, Level.WARNING, key, text)


def _why_not_calibrated(planned: Planned) -> str:
    """What is outside the profiled range, or why no profile could cover it."""
    prediction = planned.plan.prediction
    cautions = planned.plan.findings if prediction is None else prediction.findings
    why = next(caution for caution in cautions if caution.code in AGAINST_CALIBRATION)
    is_extrapolated = why.code in OUTSIDE_CALIBRATION and why.code is not FindingCode.DECLARED
    return f"extrapolated: {words_of(why)}" if is_extrapolated else words_of(why)


def _predicted_as_locked(planned: PlannedJob, then: Locked) -> Prediction | None:
    """Prediction of the current profile for the locked setting, if the lock contains it."""
    if not then.batch_duration_s:
        return None
    profile = planned.profile
    if then.from_start and profile.warm_up is not None:
        profile = for_fresh_jvm(profile)
    profile = with_switches_of(profile, {**then.spark_conf, **then.query_options})
    return predict(
        at_core_speed(profile, then.core_speed_ratio or 1.0),
        rate=then.rate_per_s,
        trigger=then.trigger_s,
        executors=then.executors,
        cores=then.cores_per_executor,
        partitions=then.shuffle_partitions,
        max_offsets=then.max_offsets_per_trigger,
        task_cpus=task_cpus_of(then.spark_conf),
    )


def _more_expensive(
    planned: Planned, now: AnyLocked, then: AnyLocked, limits: Limits, as_locked: Prediction | None
) -> Iterator[Finding]:
    """The change of the cost, or of the nodes if they have no price, with its largest cause."""
    priced = now.cost is not None and then.cost is not None
    after, before = (now.cost, then.cost) if priced else (now.nodes, then.nodes)
    assert after is not None
    assert before is not None
    change = after / before - 1 if before else 0.0
    if abs(change) < UNCHANGED_RATIO:
        return
    currency = now.currency or ""
    figures = (
        f"{format_money(after, currency=currency)} {now.cost_of}, was {format_money(before)}"
        if priced
        else f"{counted(int(after), 'node')}, was {int(before)}"
    )
    level = Level.ERROR if change > limits.cost_ratio else Level.NOTE
    word = "more expensive" if change > 0 else "cheaper"
    text = f"{figures} ({signed_percent(change)}): {word}"
    if priced and not now.ends:
        per_month = (after - before) * HOURS_PER_MONTH
        added = format_money(per_month, currency=currency, sign=True)
        text = f"{added} per month: {text}"
    cost_causes = causes(_sized(then, now), _sized(now, now), replanned(planned))
    if cost_causes:
        text = f"{text}; {'; '.join(cause.in_words for cause in cost_causes)}"
    if any("costs of the job" in cause.whys for cause in cost_causes):
        text += largest_rise_text(then, as_locked)
    key, where = _key_and_place(cost_causes, planned)
    yield finding(planned, Rule.COST, level, key, text, where)


def _sized(locked: AnyLocked, now: AnyLocked) -> Sized:
    """The targets and what they took; targets that only read differently are the same."""
    source = now if same_promises(now, locked) else locked
    promises: tuple[AnyPromise, ...] = tuple(
        kept_promise.promise() for kept_promise in source.promises
    )
    return Sized(
        rate_per_s=None if locked.ends else locked.rate_per_s,
        promises=promises or tuple(map(parse_promise, source.targets)),
        nodes=locked.nodes,
        cost_per_hour=cost_per_hour_of_run(locked.cost_per_run, locked.run_time_s)
        if locked.ends
        else locked.cost_per_hour,
        run_time_s=locked.run_time_s if locked.ends else None,
        store_cost_per_hour=None if locked.ends else locked.requests_cost_per_hour,
        currency=now.currency or "",
    )


def _key_and_place(cost_causes: Sequence[Cause], planned: Planned) -> tuple[str, Mark | None]:
    """The key that is about what changed the cost most, or the nodes if they have no price.

    If the price of a node did, the line of ``node:`` too, also in the cluster's own file.
    """
    sizes = {
        cause: abs(
            cause.cost_per_month
            or cause.cost_per_run
            or (cause.nodes[1] - cause.nodes[0] if cause.nodes else 0)
        )
        for cause in cost_causes
    }
    main_why = max(sizes, key=lambda cause: sizes[cause]).whys[-1] if sizes else None
    if main_why == "price of a node":
        cluster = planned.file.spec.cluster
        if isinstance(cluster, Path):
            return "cluster", load_spec(cluster).place("node")
        return "cluster", planned.file.place("cluster", "node")
    keys: dict[Why | None, str] = {"rate": "rate", "costs of the job": "profile"}
    return keys.get(main_why, planned.promise_key), None


def _slower(planned: Planned, now: AnyLocked, then: AnyLocked, limits: Limits) -> Iterator[Finding]:
    after_s, before_s, key = now.planned_s, then.planned_s, planned.promise_key
    if after_s is None or not before_s:
        return
    if not same_promises(now, then):
        text = f"the target is {' and '.join(now.targets)}, was {' and '.join(then.targets)}"
        yield finding(planned, Rule.LATENCY, Level.NOTE, key, text)
        return
    change = after_s / before_s - 1
    after, before = format_duration(after_s), format_duration(before_s)
    if abs(change) < UNCHANGED_RATIO or after == before:
        return
    level = Level.ERROR if change > limits.latency_ratio else Level.NOTE
    word = "slower" if change > 0 else "faster"
    text = f"{planned.promised} up to {after}, was {before} ({signed_percent(change)}): {word}"
    yield finding(planned, Rule.LATENCY, level, key, text)
