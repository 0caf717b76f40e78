"""Growth over days: on which day a plan's setting misses its target by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from headway.assumptions.planning import LONGEST_GROWTH_S
from headway.domain import Finding, FindingCode, GrowthCause, JobProfile, SlowGrowth
from headway.planner.candidates import Candidates, candidates_at
from headway.planner.state_growth import first_missed_s
from headway.units import S_PER_DAY


def slow_growth_findings(setting: Candidates) -> Iterator[Finding]:
    """What grows slowly, by how much in a day, and the day on which the target is missed by it.

    Notes
    -----
    **(P37)** Slow growth until a day: the phases that grow by (E52) last `d + g s t` a time `t`
    after the profiled run, with `g` the upper end of the 90% interval of the slope, and `s ≥ 1` the
    batches per second at the plan's setting over the profiled ones, or for the listing of files the
    rates. Compaction of a log is in one of `c` batches, usually ten: quantiles above `1 - 1/c` get
    it whole, means and lower quantiles the share `1/c` of it. The setting is compared with its
    targets with all of these phases longer; the first `t` within a year at which one is missed is
    found by doubling and bisection, and the end of the run plus `t` is the day. State that grows is
    (P21), growth of batches by a fifth and more (P31).
    """
    question, profile = setting.question, setting.question.profile
    growths = [growth for growth in profile.slow_growth if growth.is_certain]
    yield from (growth.finding for growth in growths)
    longer = [growth for growth in growths if growth.is_of_time]
    if not longer or profile.growth is not None:
        return
    faster = _faster_ratio(setting)

    def keeps_after(elapsed_s: float) -> bool:
        """Whether the targets are met with the phases that there are after some time."""
        then = replace(question, profile=_after(profile, longer, setting, faster, elapsed_s))
        return bool(candidates_at(then, setting.settings()).meets(question.rate_per_s)[0])

    if keeps_after(LONGEST_GROWTH_S.value):
        return
    held_s = first_missed_s(keeps_after)
    until = datetime.fromisoformat(longer[0].ended).astimezone(UTC) + timedelta(seconds=held_s)
    yield Finding(
        code=FindingCode.SLOW_GROWTH_ENDS_PROMISE,
        numbers={"held_s": held_s},
        names={"until": f"{until:%Y-%m-%d}"},
    )


def _after(
    profile: JobProfile,
    growths: list[SlowGrowth],
    setting: Candidates,
    faster: float,
    elapsed_s: float,
) -> JobProfile:
    """The job with its growing phases as long as they are some time after the profiled run."""
    phases = {phase.name: phase for phase in profile.driver_phases}
    rate_ratio = max(profile.arrivals.rate_per_s / profile.settings[-1].rate_per_s, 1.0)
    for growth in growths:
        is_listing = growth.cause is GrowthCause.LISTING
        ratio = rate_ratio if is_listing and growth.measure == "phase" else faster
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


def _faster_ratio(setting: Candidates) -> float:
    """Batches per second at a setting over those of the profiled run; at least 1."""
    profiled = setting.question.profile.settings[-1]
    profiled_s = max(profiled.configuration.trigger_s, profiled.batch_duration_mean_s)
    duration_s = float(setting.durations.mean_s(0.0)[0])
    return max(profiled_s / max(float(setting.trigger_s[0]), duration_s), 1.0)
