"""A profile as a page: costs of a batch, predictions for other settings, and its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headway.digits import format_rate_down
from headway.domain import ApplicationProfile, JobProfile, Prediction
from headway.report.charts import latency_segments, place_percent
from headway.report.line_charts import Axes, LineChart, Mark
from headway.report.page import Origin, page_text, shortened
from headway.report.wording import (
    caution_text,
    latency_rows,
    percent,
    prediction_notes,
    setting_text,
    stability_text,
    trigger_words,
)
from headway.units import counted, format_duration, format_rate

if TYPE_CHECKING:
    from headway.report.evidence import Evidence

_MOST_MARKS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBatch:
    """One batch of a run: when it started, how long it took, and whether the profile uses it."""

    started_s: float
    duration_s: float
    num_rows: int
    is_used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRun:
    """The batches of one profiled run in the order of time; starts count from the first."""

    name: str
    batches: tuple[SeenBatch, ...]


def profile_page(
    profile: JobProfile,
    prediction: Prediction,
    *,
    evidence: Evidence,
    runs: Sequence[SeenRun] = (),
    origin: Origin | None = None,
) -> str:
    """The page of a streaming job's profile, at the configuration that was profiled last."""
    configuration, latency = prediction.configuration, prediction.tuple_latency
    num_batches = sum(setting.num_batches for setting in profile.settings)
    keys = [
        ("input rate", format_rate(profile.arrivals.rate_per_s), "of the last profiled run"),
        (
            "utilisation",
            percent(prediction.utilization_ratio),
            f"stable up to {format_rate_down(prediction.sustainable_rate_per_s)}",
        ),
    ]
    if latency is not None and prediction.is_quotable:
        keys.append(("p99 tuple latency", format_duration(latency.p99_s), "predicted"))
    keys.append(
        ("runs", f"{len(profile.settings):,}", f"{counted(num_batches, 'batch', 'batches')} used")
    )
    title = f"Profile of {shortened(profile.application.name)}"
    return page_text(
        "profile.html.jinja",
        origin=origin or Origin.of(profile=profile),
        kind="Headway profile",
        title=title,
        headline=title,
        facts=(
            ("configuration", setting_text(configuration)),
            ("sources", shortened(", ".join(profile.shape.sources) or "unknown")),
        ),
        key_figures=keys,
        notes=tuple(map(shortened, (*profile.notes, *prediction_notes(prediction)))),
        evidence=evidence,
        stability=stability_text(prediction),
        caution=caution_text(prediction),
        latency_rows=latency_rows(prediction),
        segments=latency_segments(prediction),
        setting_rows=_setting_rows(profile),
        stage_rows=_stage_rows(profile),
        phase_rows=_phase_rows(profile),
        time_lines=tuple(_time_line(run) for run in runs if run.batches),
        run_names=tuple(shortened(run.name) for run in runs if run.batches),
    )


def application_page(profile: ApplicationProfile, *, origin: Origin | None = None) -> str:
    """The page of a batch or DStreams application's profile: its stages and their times."""
    title = f"Profile of {shortened(profile.application.name)}"
    longest = sorted(
        profile.stages, key=lambda stage: stage.task_time.mean_s * stage.tasks.num_tasks
    )
    rows = [("stage", "tasks", "mean task", "longest task", "task time")]
    rows += [
        (
            shortened(stage.called),
            f"{stage.tasks.num_tasks:,}",
            format_duration(stage.task_time.mean_s),
            format_duration(stage.task_time.max_s),
            format_duration(stage.task_time.mean_s * stage.tasks.num_tasks),
        )
        for stage in reversed(longest)
    ]
    return page_text(
        "tables.html.jinja",
        origin=origin or Origin.of(profile=profile),
        kind=f"Headway profile of a {profile.kind.value} application",
        title=title,
        headline=title,
        key_figures=[
            ("run time", format_duration(profile.duration_s), profile.started),
            ("driver alone", format_duration(profile.driver_only_s), "no task ran"),
            ("jobs", f"{profile.num_jobs:,}", f"{profile.num_jobs_failed:,} failed"),
        ],
        notes=tuple(map(shortened, profile.notes)),
        tables=(("Stages, the longest first", rows, (1, 2, 3, 4)),),
        dot_charts=(),
        codes=(),
    )


def _setting_rows(profile: JobProfile) -> list[tuple[str, ...]]:
    """Predicted and measured: batch durations of the runs that the profile was fitted to."""
    head = ("run", "rate", "trigger", "used", "left out", "measured", "model", "error")
    return [
        head,
        *(
            (
                shortened(setting.query_name or setting.query_id[:8]),
                format_rate(setting.rate_per_s),
                trigger_words(setting.configuration.trigger_s).removeprefix("every "),
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
    ]


def _stage_rows(profile: JobProfile) -> list[tuple[str, ...]]:
    return [
        ("stage", "per task", "per row", "noise of tasks"),
        *(
            (
                shortened(stage.called),
                format_duration(stage.task_fixed_s),
                format_duration(stage.task_per_row_s),
                percent(stage.task_noise_ratio),
            )
            for stage in profile.stages
        ),
    ]


def _phase_rows(profile: JobProfile) -> list[tuple[str, ...]]:
    return [
        ("driver phase", "mean", "standard deviation"),
        *(
            (phase.name, format_duration(phase.mean_s), format_duration(phase.sd_s))
            for phase in profile.driver_phases
        ),
    ]


def _time_line(run: SeenRun) -> LineChart:
    step = -(-len(run.batches) // _MOST_MARKS)
    shown_batches = run.batches[::step]
    axes = Axes.of(
        [batch.started_s for batch in shown_batches],
        [batch.duration_s for batch in shown_batches],
        format_duration,
        format_duration,
    )
    return LineChart(
        name="",
        title="batch duration",
        x_title="time since the first batch",
        ticks=axes.ticks,
        x_ticks=axes.x_ticks,
        top=axes.top,
        right=axes.right,
        marks=tuple(
            Mark(
                x_percent=place_percent(batch.started_s, axes.right),
                y_percent=place_percent(batch.duration_s, axes.top),
                is_kept=batch.is_used,
                tooltip=(
                    f"{format_duration(batch.duration_s)}, {counted(batch.num_rows, 'row')}, "
                    f"{'used' if batch.is_used else 'left out'}"
                ),
            )
            for batch in shown_batches
        ),
    )
