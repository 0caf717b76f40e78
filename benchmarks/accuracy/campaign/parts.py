"""What the batches of a run spent their time on, predicted and measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from headway.domain import Arrivals, Configuration, JobProfile, StageProfile
from headway.models.batches.windows import window_law
from headway.models.job.certified import certified
from headway.models.job.duration import DurationModel
from headway.models.job.setting import SettingLaw, duration_model, setting_law
from headway.profiler.streaming.samples import BatchSample, QueryRun

Row = dict[str, Any]

CHECKPOINT_PHASES = ("wal_commit", "commit_offsets", "commit_batch")
_LEAST_FACTOR, _MOST_FACTOR, _BISECTIONS = 0.2, 4.0, 40


def parts_of(profile: JobProfile, run: QueryRun, from_s: float, factor: float) -> Row | None:
    """Mean times of a batch [s], each as predicted and as measured; None without batches.

    ``factor`` multiplies every prediction, for the age of the JVM. Predictions are those for the
    rows that the batches really had: what the durations are off by, not the rows.
    """
    batches = [batch for batch in run.batches if batch.started_s >= from_s]
    if not batches:
        return None
    setting = run.configuration
    model = duration_model(profile, *setting.size)
    rows = _mean(batches, lambda batch: batch.num_rows)
    phases_s = {phase.name: factor * phase.mean_s for phase in profile.driver_phases}
    checkpoint_s = sum(phases_s.get(name, 0.0) for name in CHECKPOINT_PHASES)
    seen_checkpoint_s = _mean(batches, _checkpoint_s)
    seen_driver_s = _mean(batches, lambda batch: batch.duration_s - batch.stages_s)
    return {
        "rows": rows,
        "duration": [
            factor * float(model.mean_s(rows)),
            _mean(batches, lambda batch: batch.duration_s),
        ],
        "checkpoint": [checkpoint_s, seen_checkpoint_s],
        "driver": [sum(phases_s.values()) - checkpoint_s, seen_driver_s - seen_checkpoint_s],
        "state_commit": _mean(
            batches, lambda batch: batch.state_commit_s / batch.stages[-1].num_tasks
        ),
        "levels": _levels(profile, model, batches, factor),
    }


def _levels(
    profile: JobProfile, model: DurationModel, batches: Sequence[BatchSample], factor: float
) -> list[Row]:
    """Stage after stage: tasks and how long all of them took together."""
    predicted, place = [], 0
    for level, (_, grouped) in zip(
        model.levels, groupby(profile.stages, key=lambda stage: stage.level), strict=True
    ):
        stages = list(grouped)
        places = range(place, place + len(stages))
        place += len(stages)
        span_s = factor * float(level.at(_mean(batches, lambda batch: batch.num_rows)))
        predicted.append(
            {
                "shuffled": batches[0].stages[places[0]].has_parents,
                "tasks": [
                    factor * _task_s(stages, places, batches, profile.num_held_rows),
                    _seen_task_s(places, batches),
                ],
                "span": [span_s, _mean(batches, partial(_span_s, places=places))],
                "launch": _mean(batches, partial(_of_tasks, places=places, what="outside_run_s")),
            }
        )
    return predicted


def _task_s(
    stages: Sequence[StageProfile],
    places: range,
    batches: Sequence[BatchSample],
    num_state_rows: float,
) -> float:
    """Mean time of the tasks of a level, as predicted for the rows they read."""
    total_s, num_tasks = 0.0, 0
    for stage, place in zip(stages, places, strict=True):
        for batch in batches:
            seen = batch.stages[place].num_tasks
            work_s = stage.task_per_row_s * stage.rows.rows(batch.num_rows)
            work_s += stage.task_per_state_row_s * num_state_rows
            fixed_s = stage.task_fixed_s + stage.task_per_partition_s * batch.stages[-1].num_tasks
            total_s += work_s + seen * fixed_s
            num_tasks += seen
    return total_s / num_tasks


def _seen_task_s(places: range, batches: Sequence[BatchSample]) -> float:
    return _mean(batches, lambda batch: _of_tasks(batch, places, "task_mean_s"))


def _of_tasks(batch: BatchSample, places: range, what: str) -> float:
    """Mean over the tasks of a level."""
    stages = [batch.stages[place] for place in places]
    total = sum(stage.num_tasks * float(getattr(stage, what)) for stage in stages)
    return total / sum(stage.num_tasks for stage in stages)


def _span_s(batch: BatchSample, places: range) -> float:
    """Time in which tasks of the level ran: what the others leave of all stages' time."""
    others_s = sum(stage.span_s for place, stage in enumerate(batch.stages) if place not in places)
    return batch.stages[places[0]].span_s if len(places) == 1 else batch.stages_s - others_s


def _checkpoint_s(batch: BatchSample) -> float:
    return sum(batch.phases_s.get(name, 0.0) for name in CHECKPOINT_PHASES)


def _mean(batches: Sequence[BatchSample], value: Callable[[BatchSample], float]) -> float:
    return float(np.mean([value(batch) for batch in batches]))


def latency_given_duration(
    profile: JobProfile, run: QueryRun, arrivals: Arrivals, duration_s: float
) -> Row | None:
    """Mean and p99 of the latency, had the mean duration been foretold exactly [s].

    What is left of the error is that of the latency law and of the noise. None where no factor on
    all durations brings that mean about.
    """
    asked = replace(profile, arrivals=arrivals)

    def law(factor: float) -> SettingLaw:
        return _law(asked, run.configuration, factor)

    def mean_s(factor: float) -> float:
        predicted = law(factor)
        return float(predicted.batch_duration_mean_s()[0]) if predicted.is_stable[0] else math.inf

    low, high = _LEAST_FACTOR, _MOST_FACTOR
    if not mean_s(low) <= duration_s <= mean_s(high):
        return None
    for _ in range(_BISECTIONS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if mean_s(middle) <= duration_s else (low, middle)
    predicted = law(low)
    return {
        "mean": float(predicted.tuple_latency_mean_s()[0]),
        "p99": float(predicted.tuple_latency_quantile_s(np.array([0.99]))[0]),
        "factor": low,
    }


def longest_window_s(
    profile: JobProfile, configuration: Configuration, num_windows: int, factor: float
) -> float:
    """Median of the longest latency of so many windows, taken as independent [s]."""
    windows = window_law(profile, _law(profile, configuration, factor))
    assert windows is not None
    return float(windows.quantile_s(np.array([0.5 ** (1 / num_windows)]))[0])


def _law(profile: JobProfile, configuration: Configuration, factor: float) -> SettingLaw:
    return setting_law(
        profile,
        duration_model(profile, *configuration.size),
        rate_per_s=profile.arrivals.rate_per_s,
        trigger_s=configuration.trigger_s,
        factor=np.array([factor]),
    )


def at_factor(profile: JobProfile, configuration: Configuration, factor: float) -> Row | None:
    """Mean and p99 of the latency and the mean duration, all durations so many times as long [s].

    None where the setting has no law then.
    """
    predicted = certified(_law(profile, configuration, factor))
    if not predicted.is_quotable[0]:
        return None
    return {
        "mean": float(predicted.tuple_latency_mean_s()[0]),
        "p99": float(predicted.tuple_latency_quantile_s(np.array([0.99]))[0]),
        "duration": float(predicted.batch_duration_mean_s()[0]),
    }
