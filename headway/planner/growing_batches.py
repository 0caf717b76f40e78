"""Plans of queries whose batches take longer and longer: until when they hold, if one does."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

from headway.assumptions.planning import MOST_GROWTH_SPANS
from headway.domain import (
    DurationGrowth,
    Finding,
    FindingCode,
    InfeasiblePlan,
    JobProfile,
    Plan,
    StreamAnswer,
)
from headway.domain.later import stored_values, with_changes
from headway.planner.explain.infeasible import physical_floor_s
from headway.planner.explained_setting import ExplainedSetting
from headway.planner.question import Question
from headway.planner.state_growth import first_missed_s, higher_rate_ratio, more_batches_ratio
from headway.units import format_duration

#: Causes that grow by the batch; the others grow by the rows that arrive.
_BY_BATCH = frozenset(("sink_log", "checkpoint"))


def with_growth_ahead(profile: JobProfile) -> JobProfile:
    """The job with batches as long as they will be after the time of the profiled growth again.

    Its growth can be foreseen, at the rate in question.

    **(P31)** Growth until a date: growth by (E45) is extrapolated if the load was constant, its
    cause is known and lasts (rows of the state, files to list, the log of a file sink, files of the
    checkpoint), 80% of it are in one driver phase or stage, at most two thirds of the rise are in
    the later half of the run, and the 90% interval of its slope reaches no further than a quarter
    of it. That part, of `d` at the end of a run of `T`, is taken to last `d + g s t` a time `t`
    after it, with `g` the upper end of the slope and `s ≥ 1` the rate over the profiled one, or, if
    files are written in each batch, the batches per second over the profiled ones. A plan is made
    for `t = T`. Its setting then meets the targets up to the first `t` at which they are missed, or
    `4T`; the end of the run plus `t` is the date. The spread of batches is that around their line.
    If no setting meets them at `t = T`, or growth cannot be extrapolated, (P27) applies.
    """
    growth = profile.growth
    assert growth is not None
    assert growth.batch_ratio is not None
    assert growth.autocorrelation is not None
    noise = replace(
        profile.noise,
        batch_ratio=growth.batch_ratio,
        added_sd_s=0.0,
        autocorrelation=growth.autocorrelation,
        slow_batch_share=0.0,
        slow_batch_ratio=1.0,
    )
    usual_s = 0.5 * (growth.part_first_s + growth.part_last_s)
    ratio = growth.part_after_s(_planned_ahead_s(profile, growth)) / usual_s
    return _with_longer_part(replace(profile, noise=noise), growth.part, ratio)


def until_a_date(plan: Plan, question: Question) -> Plan | None:
    """The plan with the date until which it meets the targets; None if it is in the past.

    Its ``question`` is that of the job `with_growth_ahead`: theory.md (P31).
    """
    explained = ExplainedSetting(
        question=question,
        configuration=plan.configuration,
        nodes=plan.nodes,
        latency_s=plan.planned_latency_s,
    )
    profile, growth = question.profile, question.profile.growth
    assert growth is not None
    assert growth.ended is not None
    # Growth at the setting over the profiled one, at least 1.
    if set(growth.causes) & _BY_BATCH:
        interval_s = max(plan.configuration.trigger_s, explained.duration_s)
        faster = more_batches_ratio(profile, interval_s)
    else:
        faster = higher_rate_ratio(profile)
    planned_s = growth.part_after_s(_planned_ahead_s(profile, growth))

    def keeps_after(elapsed_s: float) -> bool:
        ratio = growth.part_after_s(faster * elapsed_s) / planned_s
        then = replace(question, profile=_with_longer_part(profile, growth.part, ratio))
        return bool(explained.under(then).meets(question.rate_per_s)[0])

    if not keeps_after(0.0):
        return None
    longest_s = MOST_GROWTH_SPANS.value * growth.span_s
    is_missed = not keeps_after(longest_s)
    held_s = min(first_missed_s(keeps_after), longest_s) if is_missed else longest_s
    until = datetime.fromisoformat(growth.ended).astimezone(UTC) + timedelta(seconds=held_s)
    promise = Finding(
        code=FindingCode.GROWTH_ENDS_PROMISE,
        numbers={
            "span_s": growth.span_s,
            "part_rise_ratio": faster * (growth.part_rise_ratio or 0.0),
            "held_s": held_s,
            "is_missed": float(is_missed),
        },
        names={"part": growth.part, "until": f"{until:%Y-%m-%d %H:%M} UTC"},
    )
    _, cause = growth.findings
    return with_changes(plan, findings=(promise, cause, *plan.findings))


def _planned_ahead_s(profile: JobProfile, growth: DurationGrowth) -> float:
    """How far ahead a plan is made, in time of growth at the profiled rate."""
    return growth.span_s * higher_rate_ratio(profile)


def _with_longer_part(profile: JobProfile, part: str, ratio: float) -> JobProfile:
    """The job whose growing part, a phase or a stage, takes ``ratio`` times as long."""
    return replace(
        profile,
        driver_phases=tuple(
            replace(phase, mean_s=ratio * phase.mean_s) if phase.name == part else phase
            for phase in profile.driver_phases
        ),
        stages=tuple(
            stage.with_task_times(ratio) if stage.called == part else stage
            for stage in profile.stages
        ),
    )


def while_growing(plan: StreamAnswer, growth: DurationGrowth, question: Question) -> InfeasiblePlan:
    """The plan without a promise, since batches will take longer than those of the profile.

    It meets the targets of its question, or comes nearest, with batches as long as the profile's.
    Its nodes and its configuration stay; its targets are not met.

    **(P27)** Growing batches: if the batches of the last profiled run grow by (E45), every plan is
    infeasible, and no probability of meeting its targets is quoted, unless (P31) applies. How the
    growth goes on, and how it depends on rate and setting, is unknown, so there is no time until
    which a target is met. The setting shown is that of (P4)-(P14) for the mean batch of the
    profile. A state that grows, and whose cost per row is known, is no such growth: (P21).
    """
    grown = (
        f"batches of the profiled run grew from {format_duration(growth.first_s)} to "
        f"{format_duration(growth.last_s)} in {format_duration(growth.span_s)}, so no "
        "configuration meets a target for long"
    )
    if plan.feasible:
        # Nothing but the growth is in the way.
        names = {field.name for field in fields(InfeasiblePlan)}
        shared = {name: value for name, value in stored_values(plan).items() if name in names}
        plan = InfeasiblePlan(
            **{**shared, "binding": ()},
            floor_s=plan.planned_latency_s,
            physical_floor_s=physical_floor_s(question),
        )
    return with_changes(
        plan,
        findings=(*growth.findings, *plan.findings),
        binding=(grown, *plan.binding),
        nearest=(),
        kept_probability=None,
    )
