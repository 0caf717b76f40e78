"""A profile in words: costs of a batch, predictions for other settings, and its runs."""

from __future__ import annotations

from collections.abc import Sequence

from headway.digits import format_rate_down, signed_percent
from headway.domain import ApplicationProfile, JobProfile
from headway.domain.sheet import Kind, Section, Sheet
from headway.formats.codec import plain_data
from headway.models.job.predict import predict
from headway.report.axes import Axes, durations, place_percent
from headway.report.charts import LineChart
from headway.report.stream import latency_section
from headway.report.stream_page import p99_section
from headway.report.wording import (
    caution_texts,
    percent,
    prediction_notes,
    setting_text,
    stability_text,
    trigger_text,
)
from headway.units import counted, format_duration, format_rate
from headway.words import as_sentence, words_of

_MOST_MARKS = 400


def profile_sheet(
    profile: JobProfile, evidence: Sequence[Section] = (), time_lines: Sequence[Section] = ()
) -> Sheet:
    """A streaming job's profile at the configuration that was profiled last, and its runs."""
    prediction = predict(profile, profile.baseline, profile.arrivals)
    latency = prediction.tuple_latency
    num_batches = sum(setting.num_batches for setting in profile.settings)
    batches = f"{counted(num_batches, 'batch', 'batches')} used"
    stable_up_to = f"stable up to {format_rate_down(prediction.sustainable_rate_per_s)}"
    growth = tuple(as_sentence(words_of(trend.finding)) for trend in profile.slow_growth)
    p99: tuple[tuple[str, str, str], ...] = ()
    if latency is not None and prediction.is_quotable:
        p99 = (("p99 tuple latency", format_duration(latency.p99_s), "predicted"),)
    return Sheet(
        about="Headway profile",
        headline=profile_headline(profile),
        facts=(
            ("configuration", setting_text(prediction.configuration)),
            ("sources", ", ".join(profile.shape.sources) or "unknown"),
        ),
        key_figures=(
            ("input rate", format_rate(profile.arrivals.rate_per_s), "of the last profiled run"),
            ("utilisation", percent(prediction.utilization_ratio), stable_up_to),
            *p99,
            ("runs", f"{len(profile.settings):,}", batches),
        ),
        sections=(
            Section(lead="note", texts=(*profile.notes, *prediction_notes(prediction))),
            Section(texts=growth),
            *evidence,
            Section(
                title="expected latency in the profiled configuration",
                texts=(stability_text(prediction), *caution_texts(prediction)),
            ),
            latency_section(prediction),
            p99_section(prediction),
            *time_lines,
            _settings(profile),
            *_costs(profile),
        ),
    )


def profile_headline(profile: JobProfile | ApplicationProfile) -> str:
    """The job, Spark's version, and the number of stages."""
    application, stages = profile.application, counted(len(profile.stages), "stage")
    return f"{application.name} on Spark {application.spark_version}, {stages}"


def application_sheet(profile: ApplicationProfile) -> Sheet:
    """A batch or DStreams application's profile: its stages and their times."""
    longest = sorted(profile.stages, key=lambda stage: stage.task_mean_s * stage.num_tasks)
    rows = []
    for stage in reversed(longest):
        times_s = (stage.task_mean_s, stage.task_max_s, stage.task_mean_s * stage.num_tasks)
        rows.append((stage.called, f"{stage.num_tasks:,}", *map(format_duration, times_s)))
    title = "stages, the longest first"
    head = ("stage", "tasks", "mean task", "longest task", "task time")
    return Sheet(
        about=f"Headway profile of a {profile.kind} application",
        headline=profile_headline(profile),
        key_figures=(
            ("run time", format_duration(profile.duration_s), profile.started),
            ("driver alone", format_duration(profile.driver_only_s), "no task ran"),
            ("jobs", f"{profile.num_jobs:,}", f"{profile.num_jobs_failed:,} failed"),
        ),
        sections=(
            Section(lead="note", texts=profile.notes),
            Section(title=title, head=head, rows=tuple(rows), right=(1, 2, 3, 4)),
        ),
    )


def _settings(profile: JobProfile) -> Section:
    """Predicted and measured: batch durations of the runs that the profile was fitted to."""
    rows = []
    for setting in profile.settings:
        measured_s, modelled_s = setting.batch_duration_mean_s, setting.modelled_duration_mean_s
        rows.append(
            (
                setting.query_name or setting.query_id[:8],
                format_rate(setting.rate_per_s),
                trigger_text(setting.configuration.trigger_s),
                f"{setting.num_batches:,}",
                f"{setting.num_batches_cut:,}",
                *map(format_duration, (measured_s, modelled_s)),
                signed_percent(modelled_s / measured_s - 1, 1) if measured_s > 0 else "-",
            )
        )
    head = ("run", "rate", "trigger", "used", "left out", "measured", "model", "error")
    title = "batch durations, measured and by the model"
    return Section(title=title, head=head, rows=tuple(rows), right=(1, 2, 3, 4, 5, 6, 7))


def _costs(profile: JobProfile) -> tuple[Section, Section]:
    stages = []
    for stage in profile.stages:
        costs = map(format_duration, (stage.task_fixed_s, stage.task_per_row_s))
        stages.append((stage.called, *costs, percent(stage.task_noise_ratio)))
    phases = tuple(
        (phase.name, *map(format_duration, (phase.mean_s, phase.sd_s)))
        for phase in profile.driver_phases
    )
    head = ("stage", "per task", "per row", "noise of tasks")
    phases_head = ("driver phase", "mean", "standard deviation")
    return (
        Section(title="what a batch costs", head=head, rows=tuple(stages), right=(1, 2, 3)),
        Section(head=phases_head, rows=phases, right=(1, 2)),
    )


def time_line(
    name: str,
    started_s: Sequence[float],
    durations_s: Sequence[float],
    num_rows: Sequence[int],
    is_used: Sequence[bool],
) -> Section:
    """The batches of a run: which of them the profile uses; starts count from the first."""
    step = -(-len(started_s) // _MOST_MARKS)
    starts_s, shown_s = started_s[::step], durations_s[::step]
    axes = Axes.of(starts_s, shown_s, durations, durations)
    marks = []
    for start_s, duration_s, rows, used in zip(
        starts_s, shown_s, num_rows[::step], is_used[::step], strict=True
    ):
        use = "used" if used else "left out"
        tooltip = f"{format_duration(duration_s)}, {counted(rows, 'row')}, {use}"
        x_percent = place_percent(start_s, axes.right)
        marks.append((x_percent, place_percent(duration_s, axes.top), used, tooltip))
    x_title = "time since the first batch"
    chart = LineChart(title="batch duration", x_title=x_title, axes=axes, marks=tuple(marks))
    return Section(title=f"time line of {name}", charts=(chart,))


KINDS = {
    kind: Kind(
        headline=profile_headline,
        sheet=sheet,
        data=plain_data,
        main="stages",
        is_read_back=True,
        endings=(".yaml", ".yml", ".html"),
    )
    for kind, sheet in (("profile", profile_sheet), ("application-profile", application_sheet))
}
