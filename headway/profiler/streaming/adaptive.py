"""Adaptive execution: its settings, and which stages run as many tasks as it makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from headway.assumptions.logs import COALESCED_TASKS_RATIO
from headway.assumptions.resources import ADVISORY_PARTITION_BYTES, LEAST_PARTITION_BYTES
from headway.domain import Coalescing, StageProfile
from headway.domain.configuration import TaskCores
from headway.domain.profile import spark_release
from headway.errors import InputError
from headway.limits import MOST_LONG, MOST_PARTITIONS
from headway.models.stages.task_counts import coalesced_tasks
from headway.profiler.streaming.samples import BatchSample, QueryRun, batches_of
from headway.units import counted, parse_size_bytes

_PREFIX = "spark.sql.adaptive."
# The least size of a task is one of its settings since then.
_SINCE_LEAST_SIZE = (3, 2)
_LEAST_BEFORE_BYTES = 16


def adaptive_settings(
    properties: Mapping[str, str], spark_version: str | None, task_cpus: TaskCores = 1
) -> Coalescing | None:
    """How an application coalesces the partitions of a stage, which has no bytes per row yet.

    None if its settings switch that off.

    >>> adaptive_settings({"spark.default.parallelism": "8"}, "4.1.0").parallelism
    8
    >>> adaptive_settings({"spark.sql.adaptive.coalescePartitions.enabled": "false"}, "4.1.0")
    """

    def stated(name: str) -> str | None:
        return properties.get(_PREFIX + name)

    def is_off(name: str) -> bool:
        return (stated(name) or "").lower() == "false"

    if is_off("enabled") or is_off("coalescePartitions.enabled"):
        return None
    parallelism = count_of(stated("coalescePartitions.minPartitionNum"))
    if parallelism is None:
        aims_high = not is_off("coalescePartitions.parallelismFirst")
        parallelism = count_of(properties.get("spark.default.parallelism")) if aims_high else 1
    release = spark_release(spark_version or "")
    least_bytes = LEAST_PARTITION_BYTES.value
    if release is not None and release < _SINCE_LEAST_SIZE:
        least_bytes = _LEAST_BEFORE_BYTES
    advisory_bytes = size_bytes_of(stated("advisoryPartitionSizeInBytes"))
    smallest_bytes = size_bytes_of(stated("coalescePartitions.minPartitionSize"))
    initial_partitions = count_of(stated("coalescePartitions.initialPartitionNum"))
    if initial_partitions is not None and initial_partitions > MOST_PARTITIONS:
        initial_partitions = None
    return Coalescing(
        exchange_bytes_per_row=0.0,
        advisory_bytes=advisory_bytes or ADVISORY_PARTITION_BYTES.value,
        smallest_bytes=smallest_bytes or least_bytes,
        parallelism=parallelism,
        task_cpus=task_cpus,
        initial_partitions=initial_partitions,
    )


def count_of(text: str | None) -> int | None:
    """A whole number above 0; None for anything else."""
    return int(text) if text and re.fullmatch(r"[1-9]\d{0,8}", text.strip(), re.ASCII) else None


def size_bytes_of(text: str | None) -> int | None:
    """A size as Spark reads it here: a bare number is bytes; None for anything else."""
    if text is None:
        return None
    try:
        size_bytes = int(text) if text.strip().isdecimal() else parse_size_bytes(text)
    except InputError:
        return None
    return size_bytes if 0 < size_bytes <= MOST_LONG else None


def setting_size_text(size_bytes: int) -> str:
    """In the unit in which Spark's settings are given: k or m."""
    return f"{size_bytes / 2**10:.4g}k" if size_bytes < 2**20 else f"{size_bytes / 2**20:.4g}m"


def is_replanned(batches: Sequence[BatchSample]) -> bool:
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
    kind, samples = batches[0].kinds[stage_index], [batch.stages[stage_index] for batch in batches]
    last_rule = runs[-1].adaptive
    if last_rule is None or any(run.adaptive is None for run in runs):
        return None
    if not kind.has_parents or kind.holds_state:
        return None
    if not all(sample.shuffle_read_bytes > 0 and sample.rows_read > 0 for sample in samples):
        return None
    counts = [
        (batch.stages[stage_index].num_tasks, _expected(run, batch, stage_index))
        for run in runs
        for batch in run.batches
    ]
    # Without coalescing, stateful stages and others alike have a task per shuffle partition.
    tells = any(num != run.configuration.shuffle_partitions for run in runs for num, _ in counts)
    if batches[0].state.num_stores and not tells:
        return None
    off = sum(abs(count - expected) for count, expected in counts)
    if off > COALESCED_TASKS_RATIO.value * sum(expected for _, expected in counts):
        return None
    read_bytes = np.array([sample.shuffle_read_bytes for sample in samples])
    rows = np.array([sample.rows_read for sample in samples])
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
