"""Growth that a plan looks ahead to: state, joins that are not full yet, phases of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from headway.assumptions.fits import FULL_JOIN_RATIO
from headway.assumptions.planning import LONGEST_GROWTH_S
from headway.domain import Finding, FindingCode, JobProfile, SlowGrowth
from headway.planner.candidates import Candidates, candidates_at
from headway.units import S_PER_DAY

_SHORTEST_S = 1.0
_TOLERANCE_RATIO = 1e-3
_JOIN = "StreamingSymmetricHashJoin"


def state_findings(setting: Candidates) -> Iterator[Finding]:
    """When state growth makes the plan's setting miss a target, within a year.

    **(P21)** Growing state: its rows grow as in the last profiled run, in proportion to the rate,
    `S(t) = S_0 + g t λ/λ_0`, and a task with `S/T` of them takes `s S/T` longer (T2). The plan's
    setting is compared with its targets at `S(t)`. The first `t` within a year at which one is
    missed is in the headline; it is found by doubling and bisection, since a larger state only
    makes batches longer.
    """
    profile = setting.question.profile
    state, growth_per_s = profile.state, profile.state_growth_per_s
    costs = any(stage.task_per_state_row_s > 0 for stage in profile.stages)
    if state is None or growth_per_s <= 0 or not costs:
        return

    def with_state_after(elapsed_s: float) -> JobProfile:
        rows = state.rows + round(growth_per_s * elapsed_s)
        return replace(profile, state=replace(state, rows=rows))

    missed_s = _missed_within_a_year_s(setting, with_state_after)
    if missed_s is not None:
        yield Finding(
            code=FindingCode.STATE_BREAKS_PROMISE,
            numbers={
                "missed_after_s": missed_s,
                "growth_per_s": growth_per_s,
                "state_rows": float(state.rows),
                "state_rows_then": state.rows + growth_per_s * missed_s,
            },
        )


def full_join_rows(profile: JobProfile) -> float | None:
    """Rows that a join keeps at the profiled rate once it is full; None if that is not known.

    **(Z3)** A join of two streams keeps each row of both sides until the watermark has passed it by
    its range of event time: `S = v λ (w + H)`, with the delay `w` of the watermark, the longer
    reach `H` of the range (T8), and the state rows `v` that are written per row. After a batch, the
    `u` rows that it wrote are there, too. It is what a log of a query that has just begun cannot
    show. If its state still grows and is below nine tenths of that, the plan is made for the full
    state, which is proportional to the rate, and no longer grows. Nothing is known if there are
    other stateful operators, or if one side is never cleaned up.

    >>> from headway.formats.profile_file import load_profile
    >>> full_join_rows(load_profile("examples/word-count.profile.yaml")) is None
    True
    """
    shape, state = profile.shape, profile.state
    if state is None or not profile.settings or len(shape.chain) != 1:
        return None
    (operator,) = shape.chain
    if operator.name != _JOIN or operator.holds_back_s is None or shape.watermark_delay_s is None:
        return None
    last = profile.settings[-1]
    batch_rows = last.rows_per_batch_middle
    written_ratio = 1.0 if state.updated_rows is None else state.updated_rows / batch_rows
    return written_ratio * last.rate_per_s * (shape.watermark_delay_s + operator.holds_back_s)


def with_full_join(profile: JobProfile) -> JobProfile:
    """The job with the state of its join as it will be, if it was still growing: theory.md (Z3)."""
    state, rows = profile.state, full_join_rows(profile)
    if state is None or rows is None or not state.rows or not state.growth_per_s > 0:
        return profile
    rows += state.updated_rows or 0.0
    if state.rows >= FULL_JOIN_RATIO.value * rows:
        return profile
    full = replace(
        state,
        rows=round(rows),
        memory_bytes=round(state.memory_bytes * rows / state.rows),
        growth_per_s=0.0,
        rate_exponent=1.0,
    )
    return replace(profile, state=full)


def join_findings(profile: JobProfile) -> Iterator[Finding]:
    """That a plan is made for a fuller join than the log shows: theory.md (Z3)."""
    state, seen_rows = profile.state, profile.shape.state_rows
    if state is None or state.rate_exponent != 1.0 or full_join_rows(profile) is None:
        return
    if 0 < seen_rows < FULL_JOIN_RATIO.value * state.rows:
        yield Finding(
            code=FindingCode.JOIN_NOT_FULL,
            numbers={"state_rows": float(seen_rows), "full_state_rows": profile.num_state_rows},
        )


def slow_growth_findings(setting: Candidates) -> Iterator[Finding]:
    """What grows slowly, by how much in a day, and the day on which the target is missed by it.

    **(P37)** Slow growth until a day: the phases that grow by (E52) last `d + g s t` a time `t`
    after the profiled run, with `g` the upper end of the 90% interval of the slope, and `s ≥ 1` the
    batches per second at the plan's setting over the profiled ones, or for the listing of files the
    rates. Compaction of a log is in one of `c` batches, usually ten: quantiles above `1 - 1/c` get
    it whole, means and lower quantiles the share `1/c` of it. The setting is compared with its
    targets with all of these phases longer; the first `t` within a year at which one is missed is
    found by doubling and bisection, and the end of the run plus `t` is the day. State that grows is
    (P21), growth of batches by a fifth and more (P31).
    """
    profile = setting.question.profile
    growths = [growth for growth in profile.slow_growth if growth.is_certain]
    yield from (growth.finding for growth in growths)
    longer = [growth for growth in growths if growth.measure in ("phase", "compaction")]
    if not longer or profile.growth is not None:
        return
    duration_s = float(setting.durations.mean_s(0.0)[0])
    faster = more_batches_ratio(profile, max(float(setting.trigger_s[0]), duration_s))
    held_s = _missed_within_a_year_s(
        setting, lambda elapsed_s: _with_longer_phases(setting, longer, faster, elapsed_s)
    )
    if held_s is not None:
        until = datetime.fromisoformat(longer[0].ended).astimezone(UTC) + timedelta(seconds=held_s)
        yield Finding(
            code=FindingCode.SLOW_GROWTH_ENDS_PROMISE,
            numbers={"held_s": held_s},
            names={"until": f"{until:%Y-%m-%d}"},
        )


def _with_longer_phases(
    setting: Candidates, growths: Sequence[SlowGrowth], faster: float, elapsed_s: float
) -> JobProfile:
    """The job with its growing phases as long as they are some time after the profiled run."""
    profile = setting.question.profile
    phases = {phase.name: phase for phase in profile.driver_phases}
    for growth in growths:
        is_listing = growth.cause == "listing" and growth.measure == "phase"
        ratio = higher_rate_ratio(profile) if is_listing else faster
        extra_s = growth.rise_high_per_day * ratio * elapsed_s / S_PER_DAY
        phase = phases[growth.part]
        share = _share_of_batches(growth, setting)
        phases[growth.part] = replace(phase, mean_s=phase.mean_s + share * extra_s)
    return replace(profile, driver_phases=tuple(phases.values()))


def _share_of_batches(growth: SlowGrowth, setting: Candidates) -> float:
    """The share of a growth that counts for the target: all of it if a quantile is of such batches.

    Of what one of ten batches takes longer, a mean gets a tenth.
    """
    quantile = setting.question.target.quantile
    share = 1.0 / growth.every_batches
    return 1.0 if quantile is not None and quantile > 1.0 - share else share


def higher_rate_ratio(profile: JobProfile) -> float:
    """The rate that is planned for over the last profiled one; at least 1."""
    return max(profile.arrivals.rate_per_s / profile.settings[-1].rate_per_s, 1.0)


def more_batches_ratio(profile: JobProfile, interval_s: float) -> float:
    """Batches per second, one in each interval, over those of the last profiled run; at least 1."""
    profiled = profile.settings[-1]
    profiled_s = max(profiled.configuration.trigger_s, profiled.batch_duration_mean_s)
    return max(profiled_s / interval_s, 1.0)


def _missed_within_a_year_s(
    setting: Candidates, job_after: Callable[[float], JobProfile]
) -> float | None:
    """The first time at which a setting of a growing job misses a target [s]; None if not soon."""

    def keeps_after(elapsed_s: float) -> bool:
        question = replace(setting.question, profile=job_after(elapsed_s))
        return bool(candidates_at(question, setting.settings()).meets(question.rate_per_s)[0])

    return None if keeps_after(LONGEST_GROWTH_S.value) else first_missed_s(keeps_after)


def first_missed_s(keeps_after: Callable[[float], bool]) -> float:
    """The first time at which a target is missed, by doubling and bisection [s].

    >>> round(first_missed_s(lambda elapsed_s: elapsed_s < 500.0))
    500
    """
    kept_s, missed_s = 0.0, _SHORTEST_S
    while keeps_after(missed_s):
        kept_s, missed_s = missed_s, 2.0 * missed_s
    while missed_s - kept_s > max(_TOLERANCE_RATIO * missed_s, _SHORTEST_S / 2):
        middle_s = 0.5 * (kept_s + missed_s)
        is_kept = keeps_after(middle_s)
        kept_s, missed_s = (middle_s, missed_s) if is_kept else (kept_s, middle_s)
    return missed_s
