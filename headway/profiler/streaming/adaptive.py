"""Adaptive execution: which stages run as many tasks as it makes of their shuffle partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from headway.assumptions.logs import COALESCED_TASKS_RATIO
from headway.domain import Coalescing, StageProfile
from headway.models.stages.coalescing import coalesced_tasks
from headway.profiler.streaming.adaptive_settings import setting_size_text
from headway.profiler.streaming.samples import BatchSample, QueryRun, batches_of
from headway.units import counted


def is_replanned(batches: Sequence[BatchSample]) -> bool:
    """Whether adaptive execution changed the plan of any stage."""
    return any(
        operator.is_replanned
        for batch in batches
        for stage in batch.stages
        for operator in stage.operators
    )


def coalescing_of(runs: Sequence[QueryRun], stage_index: int) -> Coalescing | None:
    """How the shuffle partitions of a stage were coalesced; None if they were not.

    They were if the plan is adaptive, the stage holds no state, and its tasks in the batches are
    those of Spark's rule at the recorded settings, which a session may have changed.
    """
    batches = batches_of(runs)
    kind = batches[0].kinds[stage_index]
    last_rule = runs[-1].adaptive
    if last_rule is None or any(run.adaptive is None for run in runs):
        return None
    if not kind.has_parents or kind.holds_state:
        return None
    read_bytes = np.array([batch.stages[stage_index].shuffle_read_bytes for batch in batches])
    rows = np.array([batch.stages[stage_index].rows_read for batch in batches])
    if not np.all(read_bytes > 0) or not np.all(rows > 0):
        return None
    counts = [
        (batch.stages[stage_index].num_tasks, _expected(run, batch, stage_index))
        for run in runs
        for batch in run.batches
    ]
    # Without coalescing, stateful stages and others alike have a task per shuffle partition.
    tells = any(
        count != run.configuration.shuffle_partitions for run in runs for count, _ in counts
    )
    if batches[0].state.num_stores and not tells:
        return None
    off = sum(abs(count - expected) for count, expected in counts)
    if off > COALESCED_TASKS_RATIO.value * sum(expected for _, expected in counts):
        return None
    return replace(last_rule, exchange_bytes_per_row=float(read_bytes.sum() / rows.sum()))


def _expected(run: QueryRun, batch: BatchSample, stage_index: int) -> int:
    """Tasks by Spark's rule for the bytes that the stage read."""
    assert run.adaptive is not None  # checked by coalescing_of
    size_bytes = batch.stages[stage_index].shuffle_read_bytes
    return coalesced_tasks(run.adaptive, size_bytes, *run.configuration.size)


def coalescing_notes(stages: Sequence[StageProfile]) -> Iterator[str]:
    """What the profile says of stages whose partitions are coalesced."""
    for stage in stages:
        rule = stage.coalescing
        if rule is None:
            continue
        aim = "as many as there are cores"
        if rule.parallelism is not None:
            aim = counted(rule.parallelism, "task")
        yield (
            f"{stage.called}: adaptive execution merges its shuffle partitions, into "
            f"{counted(stage.num_source_tasks or 1, 'task')} in a usual batch; a prediction counts "
            "tasks by Spark's rule for the bytes of the batch "
            f"({rule.exchange_bytes_per_row:.3g} per row): {aim}, unless a task would have less "
            f"than {setting_size_text(rule.smallest_bytes)} or more than "
            f"{setting_size_text(rule.advisory_bytes)}"
        )
