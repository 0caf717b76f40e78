"""Which runs would teach most of what a profile cannot tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from headway.assumptions.advice import (
    ADVISED_ACCURACY_RATIO,
    ADVISED_PARTITIONS_RATIO,
    ADVISED_ROWS_RATIO,
    ADVISED_TRIGGERS_S,
    FEWEST_ADVISED_BATCHES,
    LEAST_ADVISED_NOISE_RATIO,
    MANY_PARTITIONS,
    MOST_ADVISED_BATCHES,
)
from headway.domain import AdvisedRun, Configuration, JobProfile, Separation, TasksRule
from headway.models.estimation.identifiability import next_run
from headway.models.job.duration import DurationModel
from headway.models.job.setting import duration_model, settled_batch_rows
from headway.units import counted


def advised_runs(profile: JobProfile) -> tuple[AdvisedRun, ...]:
    """What to run next, the most informative run first; empty if nothing is open.

    Parameters
    ----------
    profile : JobProfile
        The job, from whatever runs there were.

    Returns
    -------
    tuple of AdvisedRun
        Each differs from the setting seen last in as little as its lesson needs.

    Notes
    -----
    theory.md (E15)-(E17). Fixed time and time per row are separated by batches of different size,
    and the smallest are those of a query that runs as fast as possible; the cost of a partition
    by two numbers of them, of a slot likewise; how far runs of one setting lie apart by two such
    runs. A planned batch of three times the largest is to be known within 5%, which gives the
    number of batches.
    """
    return tuple(
        run
        for lesson in (_fewer_rows, _more_rows, _other_partitions, _other_slots, _once_more)
        for run in lesson(profile)
    )


def _fewer_rows(profile: JobProfile) -> Iterator[AdvisedRun]:
    low, _ = profile.rows_per_batch_range
    fewest = float(settled_batch_rows(_model(profile), profile.settings[-1].rate_per_s, 0.0))
    if low <= ADVISED_ROWS_RATIO.value * fewest:
        return
    yield _run(
        profile,
        learns="the cost of small batches, which low latency needs",
        why=f"no batch had fewer than {low:,.0f} rows; as fast as possible they have about "
        f"{fewest:,.0f}",
        configuration=replace(profile.baseline, trigger_s=0.0, max_offsets_per_trigger=None),
        num_batches=_batches_needed(profile, fewest),
    )


def _more_rows(profile: JobProfile) -> Iterator[AdvisedRun]:
    low, high = profile.rows_per_batch_range
    is_separated = all(
        stage.separation is Separation.BATCHES or stage.task_per_row_s == 0
        for stage in profile.stages
    )
    if is_separated and high >= ADVISED_ROWS_RATIO.value * max(low, 1.0):
        return
    seen = profile.baseline
    trigger_s = _trigger_beyond(ADVISED_ROWS_RATIO.value * _interval_s(profile))
    rows = profile.settings[-1].rate_per_s * trigger_s
    yield _run(
        profile,
        learns="the fixed cost of a batch and the cost per row",
        why=f"all batches had {low:,.0f} to {high:,.0f} rows",
        configuration=replace(seen, trigger_s=trigger_s, max_offsets_per_trigger=None),
        num_batches=_batches_needed(profile, rows),
    )


def _other_partitions(profile: JobProfile) -> Iterator[AdvisedRun]:
    counts = {setting.configuration.shuffle_partitions for setting in profile.settings}
    shuffled = any(stage.tasks_rule is TasksRule.SHUFFLE for stage in profile.stages)
    if len(counts) > 1 or not shuffled:
        return
    (count,) = counts
    other = (
        count * ADVISED_PARTITIONS_RATIO.value
        if count < MANY_PARTITIONS.value
        else max(count // ADVISED_PARTITIONS_RATIO.value, 1)
    )
    # Another trigger as well: rows and partitions may differ together once rows are known.
    trigger_s = _trigger_beyond(1.5 * _interval_s(profile))
    yield _run(
        profile,
        learns="the cost of a shuffle partition",
        why=f"all runs had {counted(count, 'shuffle partition')}",
        configuration=replace(
            profile.baseline,
            shuffle_partitions=other,
            trigger_s=trigger_s,
            max_offsets_per_trigger=None,
        ),
        num_batches=FEWEST_ADVISED_BATCHES.value,
    )


def _other_slots(profile: JobProfile) -> Iterator[AdvisedRun]:
    counts = {setting.configuration.num_slots for setting in profile.settings}
    if len(counts) > 1:
        return
    (count,) = counts
    yield _run(
        profile,
        learns="the gain from more slots, and their contention",
        why=f"all runs had {counted(count, 'slot')}",
        configuration=replace(profile.baseline, executors=2 * profile.baseline.executors),
        num_batches=FEWEST_ADVISED_BATCHES.value,
    )


def _once_more(profile: JobProfile) -> Iterator[AdvisedRun]:
    seen: list[tuple[Configuration, float]] = []
    for setting in profile.settings:
        if any(
            setting.configuration == configuration
            and 1 / 1.1 <= setting.rate_per_s / rate_per_s <= 1.1
            for configuration, rate_per_s in seen
        ):
            return
        seen.append((setting.configuration, setting.rate_per_s))
    yield _run(
        profile,
        learns="the spread between repeats, which widens every interval",
        why="no configuration was run twice",
        configuration=profile.baseline,
        num_batches=FEWEST_ADVISED_BATCHES.value,
    )


def _run(
    profile: JobProfile, *, learns: str, why: str, configuration: Configuration, num_batches: int
) -> AdvisedRun:
    pinned = profile.pins.state_partitions
    return AdvisedRun(
        learns=learns,
        why=why,
        configuration=configuration,
        rate_per_s=profile.settings[-1].rate_per_s,
        num_batches=num_batches,
        new_checkpoint=pinned is not None and configuration.shuffle_partitions != pinned,
    )


def _interval_s(profile: JobProfile) -> float:
    """Time in which the rows of a batch arrive, at the setting seen last."""
    last = profile.settings[-1]
    return max(last.configuration.trigger_s, last.batch_duration_mean_s)


def _trigger_beyond(least_s: float) -> float:
    """The shortest interval a person would choose that is not below."""
    return next(
        (choice for choice in ADVISED_TRIGGERS_S.value if choice >= least_s * 0.999), least_s
    )


def _batches_needed(profile: JobProfile, planned_rows: float) -> int:
    last = profile.settings[-1]
    model = _model(profile)
    rows = float(settled_batch_rows(model, last.rate_per_s, last.configuration.trigger_s))
    per_row_s = float(model.slope_s(rows))
    known = np.concatenate(
        [
            np.linspace(one.rows_per_batch_low, one.rows_per_batch_high, one.num_batches)
            for one in profile.settings
        ]
    )
    found = next_run(
        known,
        max(float(model.mean_s(rows)) - per_row_s * rows, 1e-6),
        per_row_s,
        max(profile.noise.batch_ratio, LEAST_ADVISED_NOISE_RATIO.value),
        planned_rows=planned_rows,
        possible_rows=np.array([planned_rows]),
        accuracy_ratio=ADVISED_ACCURACY_RATIO.value,
    )
    needed = MOST_ADVISED_BATCHES.value if found is None else found.num_batches
    return min(max(needed, FEWEST_ADVISED_BATCHES.value), MOST_ADVISED_BATCHES.value)


def _model(profile: JobProfile) -> DurationModel:
    seen = profile.baseline
    return duration_model(profile, seen.num_slots, seen.shuffle_partitions)
