"""Bounds for all settings from models without noise, and the lowest latency found by them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.planning import BOUND_MARGIN_RATIO, MANY_NODES_MARGIN_RATIO
from headway.domain import StageProfile, Target
from headway.models.arrays import Array
from headway.models.estimation.batch_noise import noise_ratio_at
from headway.models.job.calibration import fewest_rows
from headway.models.job.duration import DurationModel, LevelSpan
from headway.models.job.setting import (
    settled_batch_rows,
    stages_on,
    step_between,
)
from headway.models.laws.normal import ndtri
from headway.models.stages.makespan import makespan_lower_bound
from headway.planner.candidates import Candidates, Indices
from headway.planner.question import NO_LIMIT_S, Question

_FIRST_LOOKS = 8
_LEAST_LIMIT_S = 1e-9


def noise_free_rate_per_s(candidates: Candidates) -> Array:
    """Upper bound of the rate of each setting under its latency targets [records/s].

    **(P5)** Bounds. Noise increases mean latencies and high quantiles, and lowers a quantile of `D`
    at most by the factor `g = e^(ς^2/2+ς max(0, -Φ^-1(q)))`, `ς^2 = ln(1+c^2+φ b^2 n/D^2)`. Hence
    no setting sustains more than without noise at `f/g`, which is `n/max(B, D)` for the longest
    allowed batch: `D = L` for a target on batches; else, with `A = L + after_commit_s` and `w = q`
    (mean: ½), `D = A - wB` if that is at most `B`, else `max(A/(1+w), B)`. The state in `D` is that
    of the same rate (E36). One percent is added.
    Node counts are tried from one upwards, each with every setting whose bound reaches the
    requested rate, so the fewest nodes equal those of exhaustive enumeration. For each node count,
    the frontier solves the three settings with the highest bounds, and any other that sustains a
    thousandth more, to a part in ten thousand. More nodes sustain at least the rate of fewer, since
    the rest may idle.
    """
    targets = candidates.question.latency_targets
    return np.asarray(
        np.minimum.reduce([_rate_bound_per_s(candidates, target) for target in targets])
    )


def _rate_bound_per_s(candidates: Candidates, target: Target) -> Array:
    promised, trigger_s = candidates.promised(target), candidates.trigger_s
    model, least_factor = candidates.durations, _least_factor(candidates)
    factor, weight = least_factor, promised.wait_weight
    for _ in range(2):
        allowed_s = target.limit_s - promised.shift_s + factor * promised.after_commit_s
        on_grid_s = allowed_s - weight * trigger_s
        free_running_s = allowed_s / (1.0 + weight)
        longest_s = np.where(
            on_grid_s <= trigger_s, on_grid_s, np.maximum(free_running_s, trigger_s)
        )
        interval_s = np.maximum(np.maximum(trigger_s, longest_s), 1e-9)
        rows = _rows_of_duration(model.over_interval(interval_s), longest_s / factor)
        # With the rows known, the noise from their number is known, too.
        at_rate = model.at_rate(rows / interval_s)
        factor = least_factor / _noise_gain(candidates, target, at_rate, rows)
    return np.where(longest_s > 0, rows / interval_s, 0.0) * BOUND_MARGIN_RATIO.value


def noise_free_latency_s(candidates: Candidates, rate_per_s: float) -> Array:
    """Lower bound of the latency of each setting at a rate [s]: theory.md (P5)."""
    model, trigger_s = candidates.durations.at_rate(rate_per_s), candidates.trigger_s
    promised, factor = candidates.promised(), _least_factor(candidates)
    rows = settled_batch_rows(model, rate_per_s, trigger_s, factor)
    factor = factor / _noise_gain(candidates, candidates.question.target, model, rows)
    rows = settled_batch_rows(model, rate_per_s, trigger_s, factor)
    duration_s = factor * model.mean_s(rows)
    waited_s = promised.wait_weight * np.maximum(trigger_s, duration_s)
    latency_s = waited_s + duration_s - factor * promised.after_commit_s
    return promised.shift_s + latency_s / BOUND_MARGIN_RATIO.value


def lowest_latency(candidates: Candidates) -> tuple[int, float]:
    """Index of the setting with the lowest value of the first target, and that value by (T4) [s].

    Settings that miss another target of the question have none; ``inf`` if there is none at all.
    Those whose bound, or whose moments, are above the best value so far are skipped: theory.md
    (P5), (P24).
    """
    question, rate_per_s = candidates.question, candidates.question.rate_per_s
    unlimited = replace(candidates, question=question.with_limit(0, NO_LIMIT_S))

    def latency_s(setting_index: int) -> float:
        setting = unlimited.alone(setting_index)
        if question.also and setting.certified_excess(rate_per_s) > 0.0:
            return math.inf
        return float(setting.latency_s(rate_per_s)[0])

    bound_s = noise_free_latency_s(candidates, rate_per_s)
    first = np.argsort(bound_s, kind="stable")[:_FIRST_LOOKS]
    best = int(first[np.argmin(candidates.take(first).latency_s(rate_per_s))])
    best_s = latency_s(best)
    setting_indices = np.delete(np.arange(len(candidates)), best)
    while True:
        limit_s = float(np.clip(best_s, _LEAST_LIMIT_S, NO_LIMIT_S))
        limited = replace(candidates, question=question.with_limit(0, limit_s))
        setting_indices = setting_indices[bound_s[setting_indices] < best_s]
        setting_indices = likeliest(limited, setting_indices, rate_per_s)
        for index, setting_index in enumerate(setting_indices.tolist()):
            value_s = latency_s(setting_index)
            if value_s < best_s:
                best, best_s = setting_index, value_s
                setting_indices = setting_indices[index + 1 :]
                break
        else:
            return best, best_s


def likeliest(candidates: Candidates, setting_indices: Indices, rate_per_s: float) -> Indices:
    """Those of some settings that may meet every target at a rate, most likely first."""
    if len(setting_indices):
        may_meet = candidates.take(setting_indices).could_meet(rate_per_s)
        setting_indices = setting_indices[may_meet]
    if not len(setting_indices):
        return setting_indices
    excess = candidates.take(setting_indices).excess(rate_per_s)
    return setting_indices[np.argsort(excess, kind="stable")]


def most_rates_per_s(question: Question) -> list[tuple[int, int, float]]:
    """Nodes, partitions, and an upper bound of the rate [records/s] of each size of the space.

    **(P9)** Many nodes. For each number of nodes and partitions, an upper bound of the rate is (P5)
    with the makespan (M6), `max(1, T/C)`, and without a trigger, which only makes rows wait; a
    tenth is added. Numbers whose bound is below the requested rate are excluded. If at most 64
    remain, they are tried in increasing order, so the plan is proven to be the minimum. If more
    remain, doubling steps find a feasible number, bisection finds the edge, and the dozen below the
    edge are tried; the plan then states the minimum that the bound allows, and its gap.

    A fixed trigger is kept.
    """
    space, profile = question.space, question.profile
    sizes = [
        (nodes, partitions)
        for nodes in range(space.min_nodes, space.max_nodes + 1)
        for partitions in space.partition_choices(profile, nodes)
    ]
    nodes, partitions = np.array(sizes).T
    bounded = Candidates(
        question=question,
        nodes=nodes,
        partitions=partitions,
        trigger_s=np.full(len(sizes), space.trigger_s or 0.0),
        durations=_least_durations(question, nodes * space.num_slots(1), partitions),
    )
    most_per_s = noise_free_rate_per_s(bounded) * MANY_NODES_MARGIN_RATIO.value
    return list(zip(nodes.tolist(), partitions.tolist(), most_per_s.tolist(), strict=True))


def fastest_levels(question: Question) -> Iterator[list[StageProfile]]:
    """The stages of each level, with task times that are too long on no number of nodes.

    On the fewest nodes, tasks wait least for each other (T10). A task of a stage with more slots
    than others (`StageResources`) takes less of the time of a slot.
    """
    space = question.space
    stages = stages_on(question.profile, space.num_slots(space.min_nodes))
    for _, pool in groupby(stages, key=lambda stage: stage.level):
        level = list(pool)
        more_slots_ratio = max(min(stage.slots_ratio for stage in level), 1.0)
        yield [stage.with_task_times(1.0 / more_slots_ratio) for stage in level]


def _least_durations(
    question: Question, slots: NDArray[np.int_], partitions: NDArray[np.int_]
) -> DurationModel:
    """Durations as if the work of a level were distributed evenly: theory.md (M6)."""
    levels = []
    for pool in fastest_levels(question):
        num_tasks = [
            partitions
            if stage.num_source_tasks is None
            # Those whose tasks follow rows or cores have at least one.
            else np.full_like(partitions, 1 if stage.tasks_vary else stage.num_source_tasks)
            for stage in pool
        ]
        total = np.sum(num_tasks, axis=0)
        per_task = makespan_lower_bound(total.astype(np.float64), slots.astype(np.float64)) / total
        if any(stage.tasks_vary for stage in pool):
            per_task = 1.0 / slots.astype(np.float64)
        fixed_s = per_task * sum(
            count * (stage.task_fixed_s + stage.task_per_partition_s * partitions)
            for count, stage in zip(num_tasks, pool, strict=True)
        )
        terms = tuple(
            (per_task * stage.task_per_row_s, stage.rows.scale, stage.rows.exponent)
            for stage in pool
        )
        levels.append(LevelSpan("+".join(stage.name for stage in pool), fixed_s, terms))
    return DurationModel(question.profile.driver_s, tuple(levels))


def _least_factor(candidates: Candidates) -> Array:
    """Upper over mean duration for a number of rows within the profiled range. [-]"""
    rows = np.full(len(candidates), fewest_rows(candidates.question.profile))
    return candidates.upper_end().factor(rows)


def _noise_gain(candidates: Candidates, target: Target, model: DurationModel, rows: Array) -> Array:
    """By how much noise can lower a quantile: means are preserved, and medians are below them."""
    if target.quantile is None:
        return np.ones_like(rows)
    profile = candidates.question.profile
    from_counts = model.slope_s(rows) / model.mean_s(rows)
    from_counts = from_counts**2 * profile.arrivals.dispersion_ratio * rows
    of_batches = np.square(noise_ratio_at(profile.noise, model.mean_s(rows)))
    log_variance = np.log1p(of_batches + from_counts)
    low_score = max(-float(ndtri(target.quantile)), 0.0)
    return np.exp(0.5 * log_variance + low_score * np.sqrt(log_variance))


def _rows_of_duration(model: DurationModel, duration_s: Array) -> Array:
    """Rows of a batch with a given mean duration: 0 if even an empty batch takes longer, 1 if a
    full row does.
    """
    rows = np.ones_like(duration_s)
    low, high = rows, np.full_like(rows, np.inf)
    for _ in range(60):
        gap_s = duration_s - model.mean_s(rows)
        slope_s = np.maximum(model.tangent_s(rows), 1e-15)
        # Where the duration is concave in the rows, a step from below never overshoots.
        new_rows = np.clip(rows + gap_s / slope_s, 1.0, 1e15)
        if model.is_bent:
            new_rows, low, high = step_between(rows, new_rows, gap_s < 0.0, low, high)
        settled = bool(np.all(np.abs(new_rows - rows) <= 1e-9 * rows))
        rows = new_rows
        if settled:
            break
    return np.where(
        model.mean_s(np.ones_like(rows)) < duration_s,
        rows,
        np.where(model.mean_s(np.zeros_like(rows)) < duration_s, 1.0, 0.0),
    )
