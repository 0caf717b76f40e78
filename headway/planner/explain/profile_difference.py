"""Two profiles of a job side by side: cost of a batch or run by each, in one configuration."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from headway.assumptions.advice import SHOWN_CHANGE_RATIO
from headway.domain import ApplicationProfile, JobProfile, Prediction, StageProfile
from headway.models.job.predict import predict
from headway.planner.explain.difference import (
    Difference,
    Figure,
    Unit,
    changed_texts,
    parts,
    phase_parts,
)
from headway.planner.kinds.batch_run_time import expected_run_time_s
from headway.sparkconf import KNOBS
from headway.units import spark_trigger_text


def profile_difference(
    before: JobProfile, after: JobProfile, *, names: tuple[str, str]
) -> Difference:
    """Differences between two profiles of a query.

    Both predict the last profiled configuration and rate of ``after``, so the remaining difference
    is in the costs of the job.
    """
    setting, arrivals = after.baseline, after.arrivals
    then, now = predict(before, setting, arrivals), predict(after, setting, arrivals)
    quantities: list[tuple[str, Unit, float | None, float | None]] = [
        ("rate as profiled", "rows/s", before.arrivals.rate_per_s, arrivals.rate_per_s),
        ("mean batch duration", "s", _batch_s(then), _batch_s(now)),
        ("p99 tuple latency", "s", _p99_s(then), _p99_s(now)),
        ("utilisation", "share", then.utilization_ratio, now.utilization_ratio),
        ("stable up to", "rows/s", then.sustainable_rate_per_s, now.sustainable_rate_per_s),
    ]
    figures = [
        Figure(name=name, unit=unit, before=first, after=second)
        for name, unit, first, second in quantities
    ]
    return Difference(
        kind="profile",
        names=names,
        figures=(*figures, *_stage_figures(before.stages, after.stages)),
        values=tuple(changed_texts(_facts(before), _facts(after))),
        parts=phase_parts(then, now),
        parts_of="mean tuple latency, both in the last profiled configuration of B",
    )


def _batch_s(prediction: Prediction) -> float | None:
    return None if prediction.batch_duration is None else prediction.batch_duration.mean_s


def _p99_s(prediction: Prediction) -> float | None:
    return None if prediction.tuple_latency is None else prediction.tuple_latency.p99_s


def _stage_figures(
    before: tuple[StageProfile, ...], after: tuple[StageProfile, ...]
) -> Iterator[Figure]:
    """Cost of a task of each stage, if it differs between both."""
    for then, now in zip_longest(before, after):
        stage = now or then
        assert stage is not None
        for basis, field in (("per task", "task_fixed_s"), ("per row", "task_per_row_s")):
            figure = Figure(
                name=f"{stage.called}, {basis}",
                unit="s",
                before=None if then is None else getattr(then, field),
                after=None if now is None else getattr(now, field),
            )
            ratio = figure.change_ratio
            if figure.before != figure.after and (
                ratio is None or abs(ratio) >= SHOWN_CHANGE_RATIO.value
            ):
                yield figure


def _facts(profile: JobProfile) -> dict[str, str]:
    """Other facts of a profile about its job, as text."""
    setting = profile.baseline
    limit = setting.max_offsets_per_trigger
    facts = {
        "profiled runs": f"{len(profile.settings):,}",
        "Spark version": profile.application.spark_version,
        "stages": f"{len(profile.stages):,}",
        KNOBS["executors"].label: f"{setting.executors:,}",
        KNOBS["cores_per_executor"].label: f"{setting.cores_per_executor:,}",
        KNOBS["shuffle_partitions"].label: f"{setting.shuffle_partitions:,}",
        KNOBS["trigger_s"].label: spark_trigger_text(setting.trigger_s),
        KNOBS["max_offsets_per_trigger"].label: "none" if limit is None else f"{limit:,}",
        "source partitions": f"{profile.source_partitions or '-'}",
        "state store": profile.state_store or "-",
    }
    return facts | dict(profile.application.properties)


def application_difference(
    before: ApplicationProfile, after: ApplicationProfile, *, names: tuple[str, str]
) -> Difference:
    """Differences between two profiles of a batch job, both on the slots of ``after``."""
    slots = after.cluster.num_slots or before.cluster.num_slots or 1
    stage_names = {stage.id: stage.called for stage in (*before.stages, *after.stages)}
    then, now = (
        # Numbered in the order of submission, as in other runs.
        {stage_names[stage.id]: stage.task_time_s for stage in profile.stages}
        for profile in (before, after)
    )
    pairs = {
        "run time as recorded": (before.duration_s, after.duration_s),
        "run time on the slots of B": (
            expected_run_time_s(before, slots),
            expected_run_time_s(after, slots),
        ),
        "time of all tasks": (sum(then.values()), sum(now.values())),
        "driver only": (before.driver_only_s, after.driver_only_s),
    }
    return Difference(
        kind="profile",
        names=names,
        figures=tuple(
            Figure(name=name, unit="s", before=first, after=second)
            for name, (first, second) in pairs.items()
        ),
        values=tuple(changed_texts(_batch_facts(before), _batch_facts(after))),
        parts=parts(then, now),
        parts_of="time of all tasks, by stage",
    )


def _batch_facts(profile: ApplicationProfile) -> dict[str, str]:
    cores = profile.cluster.cores_per_executor
    facts = {
        "Spark version": profile.application.spark_version,
        "jobs": f"{profile.num_jobs:,}",
        "stages": f"{len(profile.stages) + profile.other_stages.num_stages:,}",
        KNOBS["executors"].label: f"{profile.cluster.executors:,}",
        KNOBS["cores_per_executor"].label: "-" if cores is None else f"{cores:,}",
    }
    return facts | dict(profile.application.properties)
