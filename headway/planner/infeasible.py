"""If no setting meets the targets: why, the physical floor, and the nearest setting."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby

import numpy as np

from headway.assumptions.planning import (
    CLOSE_TO_FLOOR_RATIO,
    LONGEST_NEAREST_LIMIT_S,
    NODE_COUNTS_TRIED,
)
from headway.domain import FrontierPoint, Target
from headway.models.job.setting import after_commit_s
from headway.planner.candidates import Candidates, all_candidates
from headway.planner.noise_free import lowest_latency, noise_free_latency_s
from headway.planner.promised import PromisedLatency
from headway.planner.question import Question
from headway.planner.reasons import broken_promise
from headway.planner.tasks import short_of_tasks
from headway.units import counted, format_duration, format_rate
from headway.words.predictions import duration_against


def lowest_latency_in_reach(question: Question) -> tuple[float, Candidates]:
    """The lowest latency of any setting at the requested rate, and that setting: (P6).

    The setting is found by moments; its latency is that of (T4).
    """
    _, fastest = _fastest_by_moments(question)
    return float(fastest.latency_s(question.rate_per_s)[0]), fastest


def _fastest_by_moments(question: Question) -> tuple[float, Candidates]:
    """The same by the moments of all settings.

    Of the settings close to it, one with the fewest nodes. If there are many node counts, only some
    are tried, including the largest.
    """
    counts = counts_to_look_at(question)
    candidates = all_candidates(question, counts)
    place, lowest_s = lowest_latency(candidates, question.rate_per_s)
    if lowest_s > question.target.limit_s:
        # A trigger longer than the limit allows may still be the closest.
        nearer = replace(question, target=replace(question.target, limit_s=_finite(lowest_s)))
        candidates = replace(all_candidates(nearer, counts), question=question)
        place, lowest_s = lowest_latency(candidates, question.rate_per_s)
    if math.isinf(lowest_s):
        return lowest_s, candidates.take(np.array([place]))
    close_s = lowest_s / CLOSE_TO_FLOOR_RATIO.value if lowest_s > 0 else lowest_s
    possible = noise_free_latency_s(candidates, question.rate_per_s) <= close_s
    fewest = int(candidates.nodes[place])
    for nodes in sorted(set(candidates.nodes[possible].tolist())):
        if nodes == fewest:
            break
        beside = candidates.take(possible & (candidates.nodes == nodes))
        at, latency_s = lowest_latency(beside, question.rate_per_s)
        if latency_s <= close_s:
            return lowest_s, beside.take(np.array([at]))
    return lowest_s, candidates.take(np.array([place]))


def physical_floor_s(question: Question) -> float:
    """The floor for any number of nodes: the driver, and one task of each level, without rows.

    Notes
    -----
    theory.md (P13). In the mean, without noise and margin.
    """
    profile, space = question.profile, question.space
    promised = PromisedLatency(profile=profile, target=question.target)
    levels = groupby(profile.stages, key=lambda stage: stage.level)
    tasks_s = sum(max(stage.task_fixed_s for stage in pool) for _, pool in levels)
    batch_s = sum(phase.mean_s for phase in profile.driver_phases) + tasks_s
    waited_s = promised.wait_weight * max(space.trigger_s or 0.0, batch_s)
    unseen_s = after_commit_s(profile) if promised.ends_at_commit else 0.0
    return promised.shift_s + waited_s + batch_s - unseen_s


def why_infeasible(
    question: Question, floor_s: float, nearest: Candidates, best: FrontierPoint
) -> tuple[str, ...]:
    """The reason: the lowest latency within reach, the floor below it, and the rate."""
    target, nodes = question.target, question.space.max_nodes
    rate = format_rate(question.rate_per_s)
    physical_s = physical_floor_s(question)
    if math.isinf(floor_s):
        verb = "is" if nodes == 1 else "are"
        found = [
            f"{counted(nodes, 'node')} {verb} over capacity at {rate}, or too close to saturation"
        ]
    elif floor_s <= target.limit_s:
        others = " and ".join(str(one) for one in question.also)
        found = [
            f"no configuration of up to {counted(nodes, 'node')} meets both {target} and {others}"
        ]
        broken = broken_promise(nearest)
        if broken is not None:
            found.append(f"the nearest plan: {broken[0]}")
    else:
        floor = duration_against(floor_s, target.limit_s)
        lowest = f"a {target.statistic} of {floor} at {rate}"
        found = [f"no configuration of {_looked_at(question)} goes below {lowest}"]
    if physical_s > target.limit_s:
        fixed_s = question.space.trigger_s
        wait = f"with the fixed trigger of {format_duration(fixed_s)}, " if fixed_s else ""
        found.append(
            f"no number of nodes suffices: {wait}driver plus one task per stage already take "
            f"{duration_against(physical_s, target.limit_s)}"
        )
    found += _too_few_source_tasks(question)
    found.append(
        f"{_joined(question)} is met up to {format_rate(best.sustainable_rate_per_s)} "
        f"with up to {counted(best.nodes, 'node')}"
        if best.sustainable_rate_per_s > 0
        else f"no rate meets {_joined(question)} with up to {counted(nodes, 'node')}"
    )
    return tuple(found)


def _too_few_source_tasks(question: Question) -> list[str]:
    """If most of the available nodes have no task that reads the source."""
    slots = question.space.num_slots(question.space.max_nodes)
    short = [stage.num_source_tasks or 0 for stage in short_of_tasks(question.profile, slots)]
    if not short:
        return []
    tasks, those = counted(max(short), "task"), "slots" if max(short) > 1 else "slot"
    text = (
        f"the source is read by {tasks}, one per partition or split: more than {max(short)} "
        f"{those} do not read it faster"
    )
    return [text]


def nearest_setting(question: Question, floor_s: float, fastest: Candidates) -> Candidates:
    """The setting that is closest to all targets: (P6).

    If the first target can be met, the setting that meets it and misses the other targets by least;
    otherwise, or without other targets, the setting with the lowest latency.
    """
    if floor_s > question.target.limit_s:
        return fastest
    targets = replace(question, also=tuple(one for one in question.also if isinstance(one, Target)))
    candidates = all_candidates(question, counts_to_look_at(question))
    keeping = replace(candidates, question=targets).meets(question.rate_per_s)
    if not np.any(keeping):
        return fastest
    candidates = candidates.take(keeping)
    excess = candidates.excess(question.rate_per_s)
    return candidates.take(np.array([int(np.argmin(excess))]))


def _joined(question: Question) -> str:
    return " and ".join(map(str, question.promises))


def _looked_at(question: Question) -> str:
    """The numbers of nodes for which all settings were tried."""
    most = counted(question.space.max_nodes, "node")
    counts = counts_to_look_at(question)
    if len(counts) > question.space.max_nodes - question.space.min_nodes:
        return f"up to {most}"
    return f"the {len(counts)} node counts tried, up to {most},"


def _finite(latency_s: float) -> float:
    return latency_s if math.isfinite(latency_s) else LONGEST_NEAREST_LIMIT_S.value


def counts_to_look_at(question: Question) -> tuple[int, ...]:
    """All numbers of nodes, or of many a subset in which each is slightly larger than the last."""
    least, most = question.space.min_nodes, question.space.max_nodes
    if most - least < NODE_COUNTS_TRIED.value:
        return tuple(range(least, most + 1))
    spread = np.geomspace(least, most, NODE_COUNTS_TRIED.value)
    return tuple(sorted(set(np.round(spread).astype(int).tolist())))
