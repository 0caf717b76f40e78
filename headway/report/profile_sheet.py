"""A profile in words: costs of a batch, predictions for other settings, and its runs."""

from __future__ import annotations

from collections.abc import Sequence

from headway.digits import format_rate_down
from headway.domain import ApplicationProfile, JobProfile
from headway.domain.sheet import Kind, Section, Sheet
from headway.formats.codec import plain_data
from headway.models.job.predict import predict
from headway.report.charts import Axes, LineChart, place_percent
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
    stable_up_to = f"stable up to {format_rate_down(prediction.sustainable_rate_per_s)}"
    keys = [
        ("input rate", format_rate(profile.arrivals.rate_per_s), "of the last profiled run"),
        ("utilisation", percent(prediction.utilization_ratio), stable_up_to),
    ]
    if latency is not None and prediction.is_quotable:
        keys.append(("p99 tuple latency", format_duration(latency.p99_s), "predicted"))
    keys.append(
        ("runs", f"{len(profile.settings):,}", f"{counted(num_batches, 'batch', 'batches')} used")
    )
    return Sheet(
        about="Headway profile",
        headline=profile_headline(profile),
        facts=(
            ("configuration", setting_text(prediction.configuration)),
            ("sources", ", ".join(profile.shape.sources) or "unknown"),
        ),
        key_figures=tuple(keys),
        sections=(
            Section(lead="note", texts=(*profile.notes, *prediction_notes(prediction))),
            Section(
                texts=tuple(as_sentence(words_of(growth.finding)) for growth in profile.slow_growth)
            ),
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
            Section(
                title="stages, the longest first",
                head=("stage", "tasks", "mean task", "longest task", "task time"),
                rows=tuple(
                    (
                        stage.called,
                        f"{stage.num_tasks:,}",
                        format_duration(stage.task_mean_s),
                        format_duration(stage.task_max_s),
                        format_duration(stage.task_mean_s * stage.num_tasks),
                    )
                    for stage in reversed(longest)
                ),
                right=(1, 2, 3, 4),
            ),
        ),
    )


def _settings(profile: JobProfile) -> Section:
    """Predicted and measured: batch durations of the runs that the profile was fitted to."""
    return Section(
        title="batch durations, measured and by the model",
        head=("run", "rate", "trigger", "used", "left out", "measured", "model", "error"),
        rows=tuple(
            (
                setting.query_name or setting.query_id[:8],
                format_rate(setting.rate_per_s),
                trigger_text(setting.configuration.trigger_s),
                f"{setting.num_batches:,}",
                f"{setting.num_batches_cut:,}",
                format_duration(setting.batch_duration_mean_s),
                format_duration(setting.modelled_duration_mean_s),
                f"{setting.modelled_duration_mean_s / setting.batch_duration_mean_s - 1:+.1%}"
                if setting.batch_duration_mean_s > 0
                else "-",
            )
            for setting in profile.settings
        ),
        right=(1, 2, 3, 4, 5, 6, 7),
    )


def _costs(profile: JobProfile) -> tuple[Section, Section]:
    return (
        Section(
            title="what a batch costs",
            head=("stage", "per task", "per row", "noise of tasks"),
            rows=tuple(
                (
                    stage.called,
                    format_duration(stage.task_fixed_s),
                    format_duration(stage.task_per_row_s),
                    percent(stage.task_noise_ratio),
                )
                for stage in profile.stages
            ),
            right=(1, 2, 3),
        ),
        Section(
            head=("driver phase", "mean", "standard deviation"),
            rows=tuple(
                (phase.name, format_duration(phase.mean_s), format_duration(phase.sd_s))
                for phase in profile.driver_phases
            ),
            right=(1, 2),
        ),
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
    axes = Axes.of(starts_s, shown_s, format_duration, format_duration)
    marks = tuple(
        (
            place_percent(start_s, axes.right),
            place_percent(duration_s, axes.top),
            used,
            (
                f"{format_duration(duration_s)}, {counted(rows, 'row')}, "
                f"{'used' if used else 'left out'}"
            ),
        )
        for start_s, duration_s, rows, used in zip(
            starts_s, shown_s, num_rows[::step], is_used[::step], strict=True
        )
    )
    chart = LineChart(
        title="batch duration", x_title="time since the first batch", axes=axes, marks=marks
    )
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
