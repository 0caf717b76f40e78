"""Two profiles of a job side by side: cost of a batch or run by each, in one configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from headway.assumptions.advice import SHOWN_CHANGE_RATIO
from headway.domain import ApplicationProfile, JobProfile, Prediction, StageProfile
from headway.models.job.predict import predict
from headway.planner.explain.difference import (
    Difference,
    Figure,
    Unit,
    changed_texts,
    parts_by_work,
)
from headway.planner.kinds.batch_run_time import expected_run_time_s
from headway.sparkconf import KNOBS
from headway.units import format_rate, spark_trigger_text
from headway.words.sentences import stable_up_to


def profile_difference(
    before: JobProfile, after: JobProfile, *, names: tuple[str, str]
) -> Difference:
    """Differences between two profiles of a query.

    Both predict the last profiled configuration and rate of ``after``, so the remaining difference
    is in the costs of the job.
    """
    setting, arrivals = after.baseline, after.arrivals
    then, now = predict(before, setting, arrivals), predict(after, setting, arrivals)
    compared_at = (
        f"both at {format_rate(arrivals.rate_per_s)} in the last profiled configuration of B"
    )
    quantities: list[tuple[str, Unit, float | None, float | None]] = [
        ("rate", "rows/s", arrivals.rate_per_s, arrivals.rate_per_s),
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
        parts=parts_by_work(then.phases_s, now.phases_s, then.stage_work, now.stage_work),
        parts_of=f"mean tuple latency, {compared_at}",
        compared_at=compared_at,
        no_time=" and ".join(_why_no_time({"A": then, "B": now})),
    )


def _why_no_time(predictions: Mapping[str, Prediction]) -> Iterator[str]:
    """Why predictions have no times to quote, by their names."""
    for name, prediction in predictions.items():
        if prediction.batch_duration is None:
            is_close = prediction.is_close_to_saturation
            where = "too close to saturation" if is_close else "over capacity"
            yield f"{name} is {where} ({stable_up_to(prediction.sustainable_rate_per_s)})"


def _batch_s(prediction: Prediction) -> float | None:
    return None if prediction.batch_duration is None else prediction.batch_duration.mean_s


def _p99_s(prediction: Prediction) -> float | None:
    return None if prediction.tuple_latency is None else prediction.tuple_latency.p99_s


def _stage_figures(
    before: tuple[StageProfile, ...], after: tuple[StageProfile, ...]
) -> Iterator[Figure]:
    """Cost of a task of each stage, if it differs between both."""
    for then, now in _stage_pairs(before, after):
        stage = now or then
        assert stage is not None
        name = stage.called if stage.work or then is None else then.called
        for basis, field in (("per task", "task_fixed_s"), ("per row", "task_per_row_s")):
            figure = Figure(
                name=f"{name}, {basis}",
                unit="s",
                before=None if then is None else getattr(then, field),
                after=None if now is None else getattr(now, field),
            )
            ratio = figure.change_ratio
            if figure.before != figure.after and (
                ratio is None or abs(ratio) >= SHOWN_CHANGE_RATIO.value
            ):
                yield figure


def _stage_pairs(
    before: tuple[StageProfile, ...], after: tuple[StageProfile, ...]
) -> Iterator[tuple[StageProfile | None, StageProfile | None]]:
    """The stages of both in their order; those that compute something else have no counterpart."""
    for then, now in zip_longest(before, after):
        if then and now and then.work and now.work and then.work != now.work:
            yield then, None
            yield None, now
        else:
            yield then, now


def _facts(profile: JobProfile) -> dict[str, str]:
    """Other facts of a profile about its job, as text."""
    setting = profile.baseline
    limit = setting.max_offsets_per_trigger
    facts = {
        "profiled runs": f"{len(profile.settings):,}",
        "rate of the profile": format_rate(profile.arrivals.rate_per_s),
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
    # Numbered in the order of submission, as in other runs.
    then, now = (
        {f"stage {stage.id}": stage.task_time_s for stage in profile.stages}
        for profile in (before, after)
    )
    works = tuple(
        {f"stage {stage.id}": stage.work for stage in profile.stages if stage.work is not None}
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
        parts=parts_by_work(then, now, *works),
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
