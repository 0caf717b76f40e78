"""Where nothing keeps the promise: why, what no money buys, and what is near."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np

from headway.domain import FrontierPoint, NearestTarget, Target
from headway.models.job.setting import after_commit_s
from headway.planner.candidates import Candidates, all_candidates, candidates_at
from headway.planner.fewest import fewest_nodes
from headway.planner.noise_free import lowest_latency, noise_free_latency_s
from headway.planner.promised import PromisedLatency
from headway.planner.question import Question, burst_of
from headway.planner.reasons import broken_promise
from headway.planner.sources import short_of_tasks, with_source_partitions
from headway.units import counted, format_duration, format_rate

_CLOSE_RATIO = 0.98
_MOST_COUNTS_LOOKED_AT = 24
_LONGEST_LIMIT_S = 3600.0
_TIMES_THE_NODES = 8
_MOST_NODES_BEYOND = 1024
_CONFIDENCES = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5)
_QUANTILES = (0.99, 0.95, 0.9, 0.75, 0.5)


def lowest_latency_in_reach(question: Question) -> tuple[float, Candidates]:
    """The lowest latency that any setting reaches at the asked rate, and that setting: (P6).

    Of those that come close to it, one with the fewest nodes. Of many node counts only some are
    looked at, the largest among them.
    """
    counts = _counts_to_look_at(question)
    candidates = all_candidates(question, counts)
    place, lowest_s = lowest_latency(candidates, question.rate_per_s)
    if lowest_s > question.target.limit_s:
        # A longer trigger than the limit allows may still come closest to it.
        nearer = replace(question, target=replace(question.target, limit_s=_finite(lowest_s)))
        candidates = replace(all_candidates(nearer, counts), question=question)
        place, lowest_s = lowest_latency(candidates, question.rate_per_s)
    if math.isinf(lowest_s):
        return lowest_s, candidates.take(np.array([place]))
    close_s = lowest_s / _CLOSE_RATIO if lowest_s > 0 else lowest_s
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
    """What no number of nodes comes below: the driver, and one task of each level, without rows.

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
    question: Question, floor_s: float, fastest: Candidates, best: FrontierPoint
) -> tuple[str, ...]:
    """What stands in the way: the latency that is in reach, the floor below it, and the rate."""
    target, nodes = question.target, question.space.max_nodes
    rate = format_rate(question.rate_per_s)
    physical_s = physical_floor_s(question)
    if math.isinf(floor_s):
        found = [
            f"{counted(nodes, 'node')} {'is' if nodes == 1 else 'are'} over capacity at {rate}"
        ]
    elif floor_s <= target.limit_s:
        others = " and ".join(str(one) for one in question.also)
        found = [
            f"no setting of up to {counted(nodes, 'node')} that keeps {target} also keeps {others}"
        ]
        broken = broken_promise(fastest)
        if broken is not None:
            found.append(f"the nearest plan: {broken[0]}")
    else:
        floor = format_duration(floor_s)
        lowest = f"a {target.statistic} of {floor} at {rate}"
        found = [f"no setting of up to {counted(nodes, 'node')} comes below {lowest}"]
    if physical_s > target.limit_s:
        fixed_s = question.space.trigger_s
        parts = "the driver and one task of each stage" + (
            f", behind the fixed trigger of {format_duration(fixed_s)}," if fixed_s else ""
        )
        found.append(
            f"no number of nodes would do: {parts} alone make {format_duration(physical_s)}"
        )
    found.append(
        f"{target} holds up to {format_rate(best.sustainable_rate_per_s)} "
        f"with up to {counted(best.nodes, 'node')}"
        if best.sustainable_rate_per_s > 0
        else f"no rate keeps {' and '.join(map(str, (target, *question.also)))} "
        f"with up to {counted(nodes, 'node')}"
    )
    return tuple(found)


def nearest_targets(
    question: Question, floor_s: float, fastest: Candidates, best: FrontierPoint
) -> Iterator[NearestTarget]:
    """The nearest promises that can be kept, one for each side that may give way."""
    target, rate = question.target, format_rate(question.rate_per_s)
    if math.isfinite(floor_s) and floor_s > target.limit_s:
        nodes = counted(int(fastest.nodes[0]), "node")
        text = f"{target.statistic} <= {format_duration(floor_s)} at {rate} with {nodes}"
        yield NearestTarget(gives_way="limit", text=text)
    if best.configuration is not None:
        nodes = counted(best.configuration.executors // question.space.executors_per_node, "node")
        text = f"{target} at {format_rate(best.sustainable_rate_per_s)} with {nodes}"
        yield NearestTarget(gives_way="rate", text=text)
    most = min(_TIMES_THE_NODES * question.space.max_nodes, _MOST_NODES_BEYOND)
    if physical_floor_s(question) < target.limit_s and most > question.space.max_nodes:
        wider = replace(question.space, min_nodes=question.space.max_nodes, max_nodes=most)
        enough = fewest_nodes(replace(question, space=wider)).nodes
        if enough is not None:
            text = f"{target} at {rate} with {counted(enough, 'node')}"
            yield NearestTarget(gives_way="nodes", text=text)
    yield from _by_others(question)
    yield from _by_source(question)
    yield from _by_confidence(question, fastest)
    yield from _by_statistic(question, fastest)


def _by_others(question: Question) -> Iterator[NearestTarget]:
    """The promise alone, without what is promised of outages and bursts."""
    if not question.of_change:
        return
    targets = tuple(one for one in question.also if isinstance(one, Target))
    enough = fewest_nodes(replace(question, also=targets)).nodes
    if enough is not None:
        left_out = " and ".join(map(str, question.of_change))
        text = (
            f"{question.target} at {format_rate(question.rate_per_s)} with "
            f"{counted(enough, 'node')}, without {left_out}"
        )
        has_burst = any(burst_of(one) is not None for one in question.of_change)
        yield NearestTarget(gives_way="burst" if has_burst else "outage", text=text)


def _by_source(question: Question) -> Iterator[NearestTarget]:
    """The promise with a source that has a partition for every slot."""
    slots = question.space.num_slots(question.space.max_nodes)
    if not list(short_of_tasks(question.profile, slots)):
        return
    wider = replace(question, profile=with_source_partitions(question.profile, slots))
    enough = fewest_nodes(wider).nodes
    if enough is None:
        return
    partitions = question.space.num_slots(enough)
    wider = replace(question, profile=with_source_partitions(question.profile, partitions))
    alone = replace(question.space, min_nodes=enough, max_nodes=enough)
    if fewest_nodes(replace(wider, space=alone)).nodes == enough:
        text = (
            f"{question.target} at {format_rate(question.rate_per_s)} with "
            f"{counted(partitions, 'source partition')} and {counted(enough, 'node')}"
        )
        yield NearestTarget(gives_way="source", text=text)


def _by_confidence(question: Question, fastest: Candidates) -> Iterator[NearestTarget]:
    setting = (int(fastest.nodes[0]), int(fastest.partitions[0]), float(fastest.trigger_s[0]))
    for confidence in _CONFIDENCES:
        if confidence >= question.confidence:
            continue
        bolder = question.at_confidence(confidence)
        if candidates_at(bolder, [setting]).meets(question.rate_per_s)[0]:
            nodes = counted(setting[0], "node")
            text = f"{question.target} with {confidence:.0%} confidence, {nodes}"
            yield NearestTarget(gives_way="confidence", text=text)
            return


def _by_statistic(question: Question, fastest: Candidates) -> Iterator[NearestTarget]:
    target = question.target
    for quantile in _QUANTILES:
        if target.quantile is None or quantile >= target.quantile:
            continue
        laxer = replace(question, target=replace(target, quantile=quantile))
        if replace(fastest, question=laxer).meets(question.rate_per_s)[0]:
            text = f"{laxer.target} with {counted(int(fastest.nodes[0]), 'node')}"
            yield NearestTarget(gives_way="statistic", text=text)
            return


def _finite(latency_s: float) -> float:
    return latency_s if math.isfinite(latency_s) else _LONGEST_LIMIT_S


def _counts_to_look_at(question: Question) -> tuple[int, ...]:
    least, most = question.space.min_nodes, question.space.max_nodes
    if most - least < _MOST_COUNTS_LOOKED_AT:
        return tuple(range(least, most + 1))
    spread = np.geomspace(least, most, _MOST_COUNTS_LOOKED_AT)
    return tuple(sorted(set(np.round(spread).astype(int).tolist())))
