"""The highest rate within the targets for each number of nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from headway.assumptions.planning import SAME_FIGURE_RATIO
from headway.digits import rounded_down
from headway.domain import Configuration, FrontierPoint, JobProfile
from headway.models.arrays import Array
from headway.models.job.calibration import is_calibrated
from headway.models.job.capacity import sustainable_rate_per_s
from headway.models.job.setting import duration_model, settled_batch_rows
from headway.planner.bill import within_limits
from headway.planner.candidates import Candidates, Indices, all_candidates
from headway.planner.certified_rate import (
    below_bursts_per_s,
    certified_rate_per_s,
    highest_from_per_s,
    next_rate_per_s,
)
from headway.planner.fewest_nodes import first_to_meet
from headway.planner.noise_free import likeliest, noise_free_rate_per_s
from headway.planner.question import Question

_FIRST_LOOKS = 3
_RATE_TOLERANCE_RATIO = 1e-4
_LOWEST_SHARE = 1e-4
_LEAST_RATE_PER_S = 1e-12
_HIGHEST_RATE_PER_S = 1e12
_MOST_FRONTIER_ROWS = 12
_LOOKED_AT_TOGETHER = 240
_MOST_PARTS = 16


def frontier_node_counts(around: int, min_nodes: int, max_nodes: int) -> tuple[int, ...]:
    """All counts up to slightly beyond the plan; far below it, only some.

    >>> frontier_node_counts(2, 1, 50)
    (1, 2, 3, 4)
    """
    last = min(around + 2, max_nodes)
    if last - min_nodes < _MOST_FRONTIER_ROWS:
        return tuple(range(min_nodes, last + 1))
    near = range(max(around - 3, min_nodes), last + 1)
    num_far = _MOST_FRONTIER_ROWS - len(near)
    far = np.geomspace(min_nodes, max(near[0] - 1, min_nodes), num_far).astype(int)
    return tuple(sorted({*far.tolist(), *near}))


def frontier_of(
    candidates: Candidates, node_counts: Sequence[int], fewest_nodes: int
) -> Iterator[FrontierPoint]:
    """The best setting of up to each number of nodes: nodes that do not help can be left idle.

    The candidates may have more numbers of nodes than are shown. Below ``fewest_nodes``, no row
    shows the requested rate, which no setting there was found to sustain.
    """
    candidates = candidates.take(within_limits(candidates, most_often=True))
    by_moments = best_of_each_node_count(candidates) if len(candidates) else {}
    requested_per_s = candidates.question.rate_per_s
    best: tuple[int, float] | None = None
    for shown_before, shown in pairwise((0, *node_counts)):
        setting_indices = np.flatnonzero(
            (candidates.nodes > shown_before) & (candidates.nodes <= shown)
        )
        firsts = [by_moments[nodes] for nodes in by_moments if shown_before < nodes <= shown]
        best = _best_certified(
            candidates,
            setting_indices,
            max(firsts, key=lambda first: first[1], default=None),
            best,
            below_per_s=requested_per_s if shown < fewest_nodes else math.inf,
        )
        configuration = None if best is None else candidates.configuration(best[0])
        rate_per_s = 0.0 if best is None else best[1]
        yield _point(candidates.question, shown, configuration, rate_per_s)


def _best_certified(
    candidates: Candidates,
    setting_indices: Indices,
    by_moments: tuple[int, float] | None,
    best: tuple[int, float] | None,
    *,
    below_per_s: float,
) -> tuple[int, float] | None:
    """The highest max rate of some settings and of the best one so far: theory.md (P24).

    Both are the index of a setting with its max rate [records/s]; ``by_moments`` is the one of the
    settings that is best by its moments, with its rate.
    """
    if by_moments is None:
        return best
    first, first_per_s = by_moments
    least_per_s = 0.0 if best is None else best[1]
    if first_per_s * candidates.beyond_moments_ratio > least_per_s:
        rate_per_s = certified_rate_per_s(
            candidates.alone(first), first_per_s, below_per_s=below_per_s
        )
        if rate_per_s > least_per_s:
            best = first, rate_per_s
    setting_indices = setting_indices[setting_indices != first]
    if not len(setting_indices):
        return best
    below_per_s = below_bursts_per_s(candidates, below_per_s)
    bound_per_s = noise_free_rate_per_s(candidates.take(setting_indices))
    lowest_per_s = _LOWEST_SHARE * float(bound_per_s.max())
    setting_indices = setting_indices[bound_per_s > 0]
    while len(setting_indices):
        least_per_s = lowest_per_s if best is None else best[1]
        next_per_s = next_rate_per_s(least_per_s, candidates.question.rate_per_s)
        if next_per_s >= below_per_s:
            break
        setting_indices = likeliest(candidates, setting_indices, next_per_s)
        likely = candidates.take(setting_indices)
        first_met = first_to_meet(likely, range(len(likely)), next_per_s)
        if first_met is None:
            break
        setting = likely.alone(first_met)
        rate_per_s = highest_from_per_s(setting, next_per_s, below_per_s=below_per_s)
        best = int(setting_indices[first_met]), rate_per_s
        # Those before it miss the targets at this rate, and so at all higher ones.
        setting_indices = setting_indices[first_met + 1 :]
    return best


def frontier_around(
    question: Question, around: int, fewest_nodes: int, looked_at: Sequence[int] = ()
) -> Iterator[FrontierPoint]:
    """The frontier around a number of nodes; more may be tried than are shown."""
    space = question.space
    counts = frontier_node_counts(around, space.min_nodes, space.max_nodes)
    candidates = all_candidates(question, sorted({*counts, *looked_at}))
    return frontier_of(candidates, counts, fewest_nodes)


def with_point_of_plan(
    points: Iterator[FrontierPoint], plan_point: FrontierPoint
) -> Iterator[FrontierPoint]:
    """A frontier in which rows with the plan's nodes, or more, have at least the plan's rate.

    The plan's setting is one of their settings.
    """
    assert plan_point.configuration is not None
    unlimited = replace(plan_point.configuration, max_offsets_per_trigger=None)
    for point in points:
        if (
            point.nodes < plan_point.nodes
            or point.sustainable_rate_per_s >= plan_point.sustainable_rate_per_s
        ):
            yield point
            continue
        yield replace(
            plan_point,
            nodes=point.nodes,
            configuration=unlimited,
            cost_per_hour=point.cost_per_hour,
        )


def point_of_setting(setting: Candidates, configuration: Configuration) -> FrontierPoint:
    """One setting with the highest rate that it sustains, including its rate limit."""
    through_per_s = sustainable_rate_per_s(setting.question.profile, configuration)
    rate_per_s = certified_rate_per_s(setting, float(sustainable_rates_per_s(setting)[0]))
    rate_per_s = min(rate_per_s, rounded_down(through_per_s))
    return _point(setting.question, int(setting.nodes[0]), configuration, rate_per_s)


def _point(
    question: Question, nodes: int, configuration: Configuration | None, rate_per_s: float
) -> FrontierPoint:
    return FrontierPoint(
        nodes=nodes,
        sustainable_rate_per_s=rate_per_s,
        configuration=configuration,
        calibrated=configuration is not None
        and rate_per_s > 0
        and _is_calibrated(question.profile, configuration, rate_per_s),
        cost_per_hour=question.space.cost_per_hour(nodes),
    )


def best_of_each_node_count(candidates: Candidates) -> dict[int, tuple[int, float]]:
    """Index of the setting with the highest rate, and that rate [records/s]: theory.md (P5).

    The settings with the highest bounds are solved to a part in ten thousand;
    another takes their place if it sustains a thousandth more than the best of them.
    """
    bound_per_s = noise_free_rate_per_s(candidates)
    groups = [
        np.flatnonzero(candidates.nodes == nodes)
        for nodes in dict.fromkeys(candidates.nodes.tolist())
    ]
    first = np.concatenate(
        [group[np.argsort(-bound_per_s[group], kind="stable")[:_FIRST_LOOKS]] for group in groups]
    )
    rate_per_s = np.zeros(len(candidates))
    rate_per_s[first] = _solved_rates_per_s(candidates.take(first), bound_per_s[first])
    goal_per_s = np.zeros(len(candidates))
    for group in groups:
        goal_per_s[group] = rate_per_s[group].max() * SAME_FIGURE_RATIO.value
    promising = bound_per_s > np.maximum(goal_per_s, _LEAST_RATE_PER_S)
    promising[first] = False
    others = np.flatnonzero(promising)
    if len(others):
        goals_per_s = np.maximum(goal_per_s[others], bound_per_s[others] * _LOWEST_SHARE)
        others = others[candidates.take(others).meets_by_moments(goals_per_s)]
    if len(others):
        rate_per_s[others] = _solved_rates_per_s(candidates.take(others), bound_per_s[others])
    best = [int(group[np.argmax(rate_per_s[group])]) for group in groups]
    return {
        int(candidates.nodes[setting_index]): (setting_index, float(rate_per_s[setting_index]))
        for setting_index in best
    }


def sustainable_rates_per_s(
    candidates: Candidates, tolerance_ratio: float = _RATE_TOLERANCE_RATIO
) -> Array:
    """Highest rate of each setting within the targets by moments; 0 if they are met at no rate."""
    return _solved_rates_per_s(candidates, noise_free_rate_per_s(candidates), tolerance_ratio)


def _solved_rates_per_s(
    candidates: Candidates, bound_per_s: Array, tolerance_ratio: float = _RATE_TOLERANCE_RATIO
) -> Array:
    """Highest rates, all at once: each bracket is divided into many parts, which costs little more
    than two, and the search continues in the last part whose lower end is met.
    """
    highest = np.clip(bound_per_s, _LEAST_RATE_PER_S, _HIGHEST_RATE_PER_S)
    num_parts = int(np.clip(_LOOKED_AT_TOGETHER // max(len(candidates), 1), 3, _MOST_PARTS))
    low, high = np.zeros(len(candidates)), np.where(bound_per_s > 0, 1.0, 0.0)
    while True:
        # A share this low counts as zero.
        open_ = np.flatnonzero((high - low > tolerance_ratio * high) & (high > _LOWEST_SHARE))
        if not len(open_):
            break
        width = (high - low)[open_, np.newaxis] / num_parts
        # The last of the first shares tests whether the bound itself is met.
        shares = low[open_, np.newaxis] + width * np.arange(1.0, num_parts + 1.0)
        rates_per_s = np.maximum(shares, _LOWEST_SHARE) * highest[open_, np.newaxis]
        repeated_candidates = candidates.take(np.repeat(open_, num_parts))
        holds = repeated_candidates.meets_by_moments(rates_per_s.ravel()).reshape(shares.shape)
        last_met = num_parts - np.argmax(holds[:, ::-1], axis=1)
        last_met = np.where(holds.any(axis=1), last_met, 0)
        low[open_] += width[:, 0] * last_met
        # If the bound is met (it is one only up to rounding), the search continues beyond it.
        beyond = np.where(low * highest < _HIGHEST_RATE_PER_S, 2.0 * low, low)[open_]
        high[open_] = np.where(last_met == num_parts, beyond, low[open_] + width[:, 0])
    return np.where(low > _LOWEST_SHARE, np.minimum(low * highest, _HIGHEST_RATE_PER_S), 0.0)


def _is_calibrated(profile: JobProfile, configuration: Configuration, rate_per_s: float) -> bool:
    slots, partitions = configuration.size
    model = duration_model(profile, slots, partitions).at_rate(rate_per_s)
    rows = settled_batch_rows(model, rate_per_s, configuration.trigger_s)
    return bool(is_calibrated(profile, slots, partitions, rows))
