"""Shuffle partitions for a stage of ordered work, and placement of its heavy keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from headway.assumptions.planning import (
    MOST_PLACED_KEYS,
    MOST_PLACED_PER_SLOT,
    SAME_P99_RATIO,
    SKEWED_BATCHES,
    TRIED_PER_SLOT,
)
from headway.assumptions.resources import SPARK_PARTITIONS
from headway.domain import Configuration, JobProfile, StageProfile
from headway.domain.ordered import KeyCounts, KeyPlacement, OrderedPlan, RealTimeSlots
from headway.domain.plan_parts import PartitionChoice, PlannedSkew
from headway.errors import InputError, argument
from headway.limits import MOST_PARTITIONS
from headway.models.arrays import Array
from headway.models.job.setting import duration_model, settled_batch_rows
from headway.models.ordered.chain import water_filled_slots
from headway.models.ordered.placement import (
    KeyedStage,
    first_bucket_ids,
    placed_keys,
    skewed_stage_s,
)
from headway.models.stages.skew import KeyShares, combined_rows, random_partition_loads
from headway.models.stages.spark_hash import KeyKind, spark_hash, spark_xxhash64
from headway.units import counted

_KEYS_PER_CLASS = 32
_MOST_STEPS, _FEWEST_BATCHES = 400_000_000, 100  # for large clusters, fewer batches are drawn
_COMBINES = "stateStoreSave"  # Spark's operator of an aggregation with state
_SEED = 2018  # for the drawn batches
_ENDLESS_ROWS = 1e12  # of a batch, at which its duration grows as fast as its rows
_MOST_SHARE = 1.0 - 1e-9  # of one key: all rows except a remainder


def plan_ordered(
    job: JobProfile,
    configuration: Configuration,
    rate_per_s: float,
    counts: KeyCounts,
    *,
    stage_name: str | None = None,
) -> OrderedPlan:
    """Partition count, placement and limits of the stage that processes keys in order.

    ``configuration`` has the slots, the trigger interval and the current shuffle partitions; the
    stage is by default the one behind an exchange with the most work per batch. Raises InputError
    if the profile has no such stage, or batches grow without bound.
    """
    batch_rows = _settled_rows(job, configuration, rate_per_s)
    if batch_rows > _ENDLESS_ROWS:
        raise InputError(
            f"at {rate_per_s:g} rows/s batches grow without bound on "
            f"{counted(configuration.num_slots, 'slot')}; give more "
            f"{argument('executors')} or a lower {argument('rate')}"
        )
    stage = _stage(job, batch_rows, stage_name)
    map_tasks = _map_tasks(job, stage, counts)
    if map_tasks:
        counts = _combined(counts, batch_rows, map_tasks)
    num_slots, rows = configuration.num_slots, stage.rows.rows(batch_rows)
    keyed, choice_of = _with_keys(job, stage, counts), partial(_choice, stage, num_slots, rows)
    partition_counts = _tried_numbers(configuration)
    choices = {
        partitions: choice_of(
            np.tile(keyed.shares_at(partitions), (_num_batches(partitions, num_slots), 1))
        )
        for partitions in partition_counts
    }
    all_rows = sum(counts.num_rows) + counts.other_rows
    shares = np.asarray(counts.num_rows, dtype=np.float64) / all_rows
    placed = min(
        (
            _placed(counts.keys, shares, partitions, num_slots, choice_of)
            for partitions in partition_counts
            if partitions <= MOST_PLACED_PER_SLOT.value * num_slots
        ),
        key=lambda placement: (placement.choice.p99_s, placement.choice.shuffle_partitions),
    )
    hottest = counts.num_rows[0] / all_rows
    return OrderedPlan(
        stage=stage.name,
        stage_work=job.stage_work,
        rate_per_s=rate_per_s,
        trigger_s=configuration.trigger_s,
        batch_rows=rows,
        num_slots=num_slots,
        num_keys=len(counts.keys),
        num_map_tasks=map_tasks,
        known_share=1.0 - counts.other_rows / all_rows,
        task_fixed_s=stage.task_fixed_s,
        task_per_row_s=stage.task_per_row_s,
        hottest_key=counts.keys[0],
        hottest_share=hottest,
        serial_s=_serial_s(stage, rows, hottest),
        today=choices[configuration.shuffle_partitions],
        choices=tuple(choices.values()),
        best=_fewest_with_the_shortest(choices.values()),
        placed=placed,
        real_time=_real_time(job, num_slots, batch_rows),
    )


def _settled_rows(job: JobProfile, configuration: Configuration, rate_per_s: float) -> float:
    model = duration_model(job, *configuration.size).at_rate(rate_per_s)
    return float(settled_batch_rows(model, rate_per_s, configuration.trigger_s))


def with_known_keys(job: JobProfile, counts: KeyCounts) -> JobProfile:
    """The profile with its keys, from which the rows of tasks follow at any partitions (K11).

    If map tasks combine the rows of a key before the stage, no key is heavy there. Raises
    InputError if the profile has no stage behind an exchange.
    """
    stage = _stage(job, _largest_batch_rows(job), None)
    if _map_tasks(job, stage, counts):
        return job
    all_rows = sum(counts.num_rows) + counts.other_rows
    share = min(counts.num_rows[0] / all_rows, _MOST_SHARE)
    hot = _with_keys(job, replace(stage, hot_share_ratio=max(stage.hot_share_ratio, share)), counts)
    return replace(job, stages=tuple(hot if old is stage else old for old in job.stages))


def _largest_batch_rows(job: JobProfile) -> float:
    return max((setting.rows_per_batch_high for setting in job.settings), default=1.0)


def _with_keys(job: JobProfile, stage: StageProfile, counts: KeyCounts) -> KeyedStage:
    """By Spark's hash of the keys themselves: exact except for keys that are not listed.

    `headway.ordered` assigns buckets by a different hash from that of Spark's exchanges.
    """
    num_rows = np.asarray(counts.num_rows, dtype=np.float64)
    keys, kind = cast("list[str]", list(counts.keys)), cast(KeyKind, counts.kind)
    dealt = job.shape.deals_out_buckets
    hashes = spark_xxhash64(keys, kind) if dealt else spark_hash(keys, kind)
    other_share = counts.other_rows / (float(num_rows.sum()) + counts.other_rows)
    return KeyedStage.of(stage, hashes, num_rows, min(other_share, _MOST_SHARE))


def plan_skew(
    job: JobProfile, configuration: Configuration, rate_per_s: float, counts: KeyCounts | None
) -> PlannedSkew | None:
    """Effect of the heaviest key on its stage at a planned setting.

    Without counts, the share of the largest recorded task is taken as that of one key: it is on a
    partition drawn at random, and the other rows are distributed evenly. It is None if no key is
    known to be heavy, or if batches grow without bound.
    """
    batch_rows = _settled_rows(job, configuration, rate_per_s)
    if batch_rows > _ENDLESS_ROWS:
        return None
    if counts is not None:
        ordered_plan = plan_ordered(job, configuration, rate_per_s, counts)
        return PlannedSkew(
            stage=ordered_plan.stage,
            work=ordered_plan.stage_work.get(ordered_plan.stage),
            batch_rows=ordered_plan.batch_rows,
            num_slots=ordered_plan.num_slots,
            planned=ordered_plan.today,
            best=ordered_plan.best,
            placed=ordered_plan.placed.choice,
            num_placed=len(ordered_plan.placed.keys),
            hottest_key=str(ordered_plan.hottest_key),
            hottest_share=ordered_plan.hottest_share,
            serial_s=ordered_plan.serial_s,
            keeps_up=ordered_plan.keeps_up,
        )
    stage = max(job.stages, key=lambda stage: stage.hot_share_ratio)
    share, rows = stage.hot_share_ratio, stage.rows.rows(batch_rows)
    if share == 0.0:
        return None
    num_slots = configuration.num_slots
    choices = {
        partitions: _choice(stage, num_slots, rows, _recorded_loads(share, partitions, num_slots))
        for partitions in _tried_numbers(configuration)
    }
    serial_s = _serial_s(stage, rows, share)
    return PlannedSkew(
        stage=stage.name,
        work=stage.work,
        batch_rows=rows,
        num_slots=num_slots,
        planned=choices[configuration.shuffle_partitions],
        best=_fewest_with_the_shortest(choices.values()),
        hottest_share=share,
        serial_s=serial_s,
        keeps_up=configuration.trigger_s == 0.0 or serial_s < configuration.trigger_s,
    )


def _serial_s(stage: StageProfile, rows: float, share: float) -> float:
    """Time of a task with the rows of one key only."""
    return stage.task_fixed_s + stage.task_per_row_s * rows * share


def _tried_numbers(configuration: Configuration) -> list[int]:
    """The configured shuffle partitions, Spark's default, and multiples of the slots."""
    multiples = (math.ceil(ratio * configuration.num_slots) for ratio in TRIED_PER_SLOT.value)
    per_slot = (partitions for partitions in multiples if partitions <= MOST_PARTITIONS)
    return sorted({configuration.shuffle_partitions, SPARK_PARTITIONS.value, *per_slot})


def _fewest_with_the_shortest(choices: Collection[PartitionChoice]) -> PartitionChoice:
    """The first of those with about the shortest p99, which has the fewest partitions."""
    most_s = SAME_P99_RATIO.value * min(choice.p99_s for choice in choices)
    return next(choice for choice in choices if choice.p99_s <= most_s)


def _num_batches(partitions: int, num_slots: int) -> int:
    """How many to draw."""
    affordable = _MOST_STEPS // (partitions * num_slots)
    return min(SKEWED_BATCHES.value, max(affordable, _FEWEST_BATCHES))


def _recorded_loads(share: float, partitions: int, num_slots: int) -> Array:
    """For each batch: the share on a partition drawn at random, the rest distributed evenly."""
    num_batches = _num_batches(partitions, num_slots)
    loads = np.full((num_batches, partitions), (1.0 - share) / partitions)
    hot = np.random.default_rng(_SEED).integers(partitions, size=num_batches)
    loads[np.arange(num_batches), hot] += share
    return loads


def _choice(stage: StageProfile, num_slots: int, rows: float, loads: Array) -> PartitionChoice:
    """Times of a stage from the loads of its partitions in drawn batches (K10)."""
    time_s = skewed_stage_s(stage, loads, num_slots, batch_rows=rows, seed=_SEED)
    return PartitionChoice(
        shuffle_partitions=loads.shape[1],
        largest_share=float(loads.max(axis=1).mean()),
        mean_s=float(time_s.mean()),
        p99_s=float(np.quantile(time_s, 0.99)),
    )


def _placed(
    keys: tuple[str | int, ...],
    shares: Array,
    partitions: int,
    num_slots: int,
    choice_of: Callable[[Array], PartitionChoice],
) -> KeyPlacement:
    """Loads with the heaviest keys placed and the others drawn at random, by another hash."""
    max_placed = MOST_PLACED_KEYS.value
    heavy, light = shares[:max_placed], shares[max_placed:]
    partition_of_keys, placed_loads = placed_keys(heavy, partitions)
    loads = np.tile(placed_loads, (_num_batches(partitions, num_slots), 1))
    if light.size:
        drawn = random_partition_loads(
            _classes(light), partitions, num_replications=len(loads), seed=_SEED
        )
        loads += float(light.sum()) * (drawn - 1.0 / partitions)
    ids = first_bucket_ids(partitions)
    return KeyPlacement(
        keys=keys[:max_placed],
        key_share=tuple(heavy.tolist()),
        buckets=tuple(ids[partition_of_keys].tolist()),
        spread_ids=tuple(ids.tolist()),
        choice=choice_of(np.maximum(loads, 0.0)),
    )


def _map_tasks(job: JobProfile, stage: StageProfile, counts: KeyCounts) -> int:
    """Tasks that combine rows of a key before the stage; 0 if none do.

    Aggregations combine. Sessions, joins and arbitrary state do not, nor does an aggregation whose
    rows are already partitioned by key: then more rows enter the stage than there are combinations
    of tasks and keys.
    """
    if _COMBINES not in job.shape.stateful_operators:
        return 0
    map_tasks = sum(
        upstream.num_source_tasks or 0 for upstream in job.stages if upstream.level < stage.level
    )
    is_all = not counts.other_rows and not job.shape.windows
    combinations = map_tasks * len(counts.keys)
    return 0 if is_all and stage.rows.rows(_largest_batch_rows(job)) > combinations else map_tasks


def _combined(counts: KeyCounts, batch_rows: float, map_tasks: int) -> KeyCounts:
    """Rows of each key per batch that are shuffled after map tasks have combined them."""
    all_rows = sum(counts.num_rows) + counts.other_rows
    shares = np.asarray(counts.num_rows, dtype=np.float64) / all_rows
    return replace(
        counts,
        num_rows=tuple(combined_rows(shares, batch_rows, map_tasks).tolist()),
        other_rows=counts.other_rows / all_rows * batch_rows,
    )


def _classes(light: Array) -> KeyShares:
    """Classes of keys with about the same weight, heaviest first."""
    parts = np.array_split(light / light.sum(), max(len(light) // _KEYS_PER_CLASS, 1))
    return KeyShares(
        np.array([part.mean() for part in parts]), np.array([float(len(part)) for part in parts])
    )


def _stage(job: JobProfile, batch_rows: float, name: str | None) -> StageProfile:
    shuffled = [stage for stage in job.stages if stage.tasks_rule == "shuffle"]
    stage_names = ", ".join(stage.name for stage in shuffled)
    if not shuffled:
        raise InputError(
            "the profile has no stage behind an exchange, so no key of it decides where rows go; "
            "profile a run of the query that groups by key"
        )
    if name is not None:
        stage = next((stage for stage in shuffled if stage.name == name), None)
        if stage is None:
            raise InputError(
                f"{argument('stage')} {name!r}: not behind an exchange; expected one of "
                f"{stage_names}"
            )
        return stage
    return max(shuffled, key=lambda stage: stage.task_per_row_s * stage.rows.rows(batch_rows))


def _real_time(job: JobProfile, num_slots: int, batch_rows: float) -> RealTimeSlots | None:
    """Tasks of the stages in Real-Time Mode, in which all run at the same time: theory.md (O9)."""
    rows = max(batch_rows, 1.0)
    work = {
        stage: stage.task_per_row_s * stage.rows.rows(rows) / rows
        for stage in job.stages
        if stage.task_per_row_s > 0
    }
    if len(work) < len(job.stages):
        return None
    fixed = [stage for stage in job.stages if stage.num_source_tasks is not None]
    free = [stage for stage in job.stages if stage.num_source_tasks is None]
    free_slots = num_slots - sum(stage.num_tasks(1) for stage in fixed)
    if not free or free_slots < len(free):
        return None
    source_per_s = min((stage.num_tasks(1) / work[stage] for stage in fixed), default=math.inf)
    filled = water_filled_slots([work[stage] for stage in free], free_slots)
    alike = water_filled_slots([work[stage] for stage in free], free_slots, tied=[0] * len(free))
    tasks = dict(zip((stage.name for stage in free), filled.num_tasks, strict=True))
    return RealTimeSlots(
        stages=tuple(stage.name for stage in job.stages),
        num_tasks=tuple(tasks.get(stage.name) or stage.num_tasks(1) for stage in job.stages),
        rate_per_s=min(source_per_s, filled.throughput_per_s),
        one_number_rate_per_s=min(source_per_s, alike.throughput_per_s),
        bound_per_s=min(source_per_s, filled.bound_per_s),
    )
