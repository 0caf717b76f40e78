"""The demonstration's outcome as text."""

from __future__ import annotations

from headway.demo.run import PREDICTED, PROFILED, DemoOutcome
from headway.domain import StreamAnswer
from headway.report.comparison import comparison_sections
from headway.report.sheet_text import sheet_text, text_of_sections
from headway.report.stream import answer_sheet
from headway.units import format_duration, format_rate

_COMPARED = ("mean", "p99")  # comparison.txt has all


def story(outcome: DemoOutcome) -> str:
    """What was run, predicted, planned and measured; the verdict last."""
    reasons = [_why_less(requested_plan) for requested_plan in outcome.plans[:-1]]
    lines = [
        *_profiled(outcome),
        *_predicted(outcome),
        *("Planned:", *reasons, sheet_text(answer_sheet(outcome.plan)), ""),
        "Predicted and measured tuple latency:",
        text_of_sections(comparison_sections(outcome.comparisons, statistics=_COMPARED)),
        "",
        _verdict_text(outcome),
        f"All files: {outcome.folder}",
        "(open report.html; plan.txt is the whole plan, comparison.txt has all figures,",
        "spark-defaults.conf and query_settings.py apply the plan)",
    ]
    return "\n".join(lines)


def _profiled(outcome: DemoOutcome) -> list[str]:
    lines = ["Profiled from the event log of a running Spark:"]
    settings_by_name = {setting.query_name: setting for setting in outcome.profile.settings}
    for name, setting in PROFILED.items():
        figures = "not profiled"  # the notes say why
        if profiled_setting := settings_by_name.get(name):
            mean = format_duration(profiled_setting.batch_duration_mean_s)
            figures = f"{profiled_setting.num_batches} batches of {mean}"
        lines.append(f"  {name}: {setting}: {figures}")
    lines += [
        f"  {stage.called}: a task takes {format_duration(stage.task_fixed_s)} and "
        f"{format_duration(stage.task_per_row_s)} per row"
        for stage in outcome.profile.stages
    ]
    notes = outcome.profile.notes if len(settings_by_name) != len(PROFILED) else ()
    return [*lines, *(f"  note: {note}" for note in notes), ""]


def _predicted(outcome: DemoOutcome) -> list[str]:
    lines = ["Predicted, for configurations that have not run:"]
    for name, setting in PREDICTED.items():
        figures = "not stable"
        if latency := outcome.predictions[name].tuple_latency:
            mean, p99 = format_duration(latency.mean_s), format_duration(latency.p99_s)
            figures = f"mean {mean}, p99 {p99}"
        lines.append(f"  {setting}: {figures}")
    return [*lines, ""]


def _why_less(requested_plan: StreamAnswer) -> str:
    """Why the requested plan is not the one that is run."""
    rate = format_rate(requested_plan.arrivals.rate_per_s)
    target_and_rate = f"{requested_plan.target} at {rate}"
    if requested_plan.feasible and requested_plan.nodes == 1:
        return (
            f"{target_and_rate} is close to the limit of a busy machine: the demo plans with more "
            "room."
        )
    number = requested_plan.nodes if requested_plan.feasible else "an unknown number of"
    return (
        f"{target_and_rate} would need {number} such machines: the demo plans for what this one "
        "sustains."
    )


def _verdict_text(outcome: DemoOutcome) -> str:
    """The outcome and, if the target was missed, the figure that missed it."""
    target, measured = outcome.plan.target, outcome.measured
    target_and_rate = f"{target} at {format_rate(outcome.plan.arrivals.rate_per_s)}"
    p99 = format_duration(measured.tuple_latency.p99_s)
    if outcome.promise_kept:
        return f"Target MET: {target_and_rate}, measured p99 {p99}."
    if not measured.kept_up:
        why = f"the backlog grew, the p99 was {p99} by the end"
    else:
        excess_ratio = measured.tuple_latency.p99_s / target.limit_s - 1
        why = f"measured p99 {p99}, {excess_ratio:.0%} above the limit"
    busy_text = "; this machine was busy, see the note above" if outcome.was_busy else ""
    return f"Target MISSED: {target_and_rate}: {why}{busy_text}."
