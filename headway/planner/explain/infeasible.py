"""If no setting meets the targets: why, the physical floor, and the nearest setting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np

from headway.assumptions.planning import CLOSE_TO_FLOOR_RATIO, NODE_COUNTS_TRIED
from headway.digits import format_money
from headway.domain import FrontierPoint, Target
from headway.domain.target import targets_text
from headway.models.arrays import Array
from headway.planner.bill import bill_per_hour, files_per_hour
from headway.planner.candidates import Candidates, all_candidates
from headway.planner.explain.reasons import broken_promise, saturation_text
from headway.planner.fewest import first_to_meet
from headway.planner.noise_free import lowest_latency, noise_free_latency_s
from headway.planner.promised import PromisedLatency
from headway.planner.question import NO_LIMIT_S, Question
from headway.planner.tasks import short_of_tasks, why_no_room
from headway.units import counted, format_duration, format_rate, spark_trigger_text
from headway.words.predictions import duration_against


def lowest_latency_in_reach(question: Question) -> tuple[float, Candidates]:
    """The lowest latency of any setting at the requested rate, and that setting: (P6).

    Other targets do not count. Of the settings close to it, one with the fewest nodes. If there are
    many node counts, only some are tried, including the largest.
    """
    # A trigger longer than the limit allows may still be the closest.
    all_settings = all_candidates(question.with_limit(0, NO_LIMIT_S), counts_to_look_at(question))
    candidates = replace(all_settings, question=replace(question, also=()))
    setting_index, lowest_s = lowest_latency(candidates)
    if math.isinf(lowest_s):
        # None has a latency: the one that is closest to having one.
        setting_index = int(np.argmin(candidates.excess(question.rate_per_s)))
    fastest = candidates.alone(setting_index)
    if lowest_s > 0 and math.isfinite(lowest_s):
        close_s = lowest_s / CLOSE_TO_FLOOR_RATIO.value
        fastest = _fewest_below(candidates, close_s, fastest)
    return lowest_s, replace(fastest, question=question)


def _fewest_below(candidates: Candidates, limit_s: float, fastest: Candidates) -> Candidates:
    """The fastest setting of the fewest nodes with which a latency is below a limit."""
    question = candidates.question
    possible = noise_free_latency_s(candidates, question.rate_per_s) <= limit_s
    possible &= candidates.nodes < fastest.nodes[0]
    near = replace(candidates, question=question.with_limit(0, limit_s)).take(possible)
    if not len(near):
        return fastest
    near = near.take(near.could_meet(question.rate_per_s))
    for nodes in sorted(set(near.nodes.tolist())):
        settings = replace(near.take(near.nodes == nodes), question=question)
        setting_index, latency_s = lowest_latency(settings)
        if latency_s <= limit_s:
            return settings.alone(setting_index)
    return fastest


def physical_floor_s(question: Question) -> float:
    """The floor for any number of nodes: the driver, and one task of each level, without rows.

    It is a mean, without noise and margin: theory.md (P13).
    """
    profile, space = question.profile, question.space
    promised = PromisedLatency(profile=profile, target=question.target)
    levels = groupby(profile.stages, key=lambda stage: stage.level)
    tasks_s = sum(max(stage.task_fixed_s for stage in pool) for _, pool in levels)
    batch_s = profile.driver_s + tasks_s
    waited_s = promised.wait_weight * max(space.trigger_s or 0.0, batch_s)
    return promised.shift_s + waited_s + batch_s - promised.after_commit_s


def why_infeasible(
    question: Question, floor_s: float, nearest: Candidates, best: FrontierPoint
) -> Iterator[str]:
    """The reason: the lowest latency within reach, the floor below it, and the rate."""
    target, nodes = question.target, question.space.max_nodes
    rate = format_rate(question.rate_per_s)
    physical_s = physical_floor_s(question)
    slots, partitions = question.space.num_slots(nodes), question.space.shuffle_partitions or 1
    no_room = why_no_room(question.profile, slots, partitions)
    if no_room is not None:
        yield f"on {counted(nodes, 'node')}, {no_room}"
    elif math.isinf(floor_s):
        verb = "is" if nodes == 1 else "are"
        yield f"{counted(nodes, 'node')} {verb} {saturation_text(nearest, question.rate_per_s)}"
    elif (over_budget := _over_budget(question) or _too_many_files(question)) is not None:
        # At a higher price or with more files the targets are met: nothing else is a reason.
        yield over_budget
        return
    elif floor_s <= target.limit_s:
        yield (
            f"no configuration of up to {counted(nodes, 'node')} meets both {target} and "
            f"{targets_text(question.also)}"
        )
        broken = broken_promise(nearest)
        if broken is not None:
            yield f"the nearest plan: {broken[0]}"
    else:
        floor = duration_against(floor_s, target.limit_s)
        lowest = f"a {target.statistic} of {floor} at {rate}"
        yield f"no configuration of {_looked_at(question)} goes below {lowest}"
    if physical_s > target.limit_s:
        fixed_s = question.space.trigger_s
        wait = f"with the fixed trigger of {format_duration(fixed_s)}, " if fixed_s else ""
        yield (
            f"no number of nodes suffices: {wait}{_delays(question)}driver plus one task per stage "
            f"already take {duration_against(physical_s, target.limit_s)}"
        )
    num_tasks = max(source_tasks_below_slots(question), default=None)
    if num_tasks is not None:
        yield (
            f"the source is read by {counted(num_tasks, 'task')}, one per partition or split: more "
            f"than {num_tasks} {'slots' if num_tasks > 1 else 'slot'} do not read it faster"
        )
    yield (
        f"{targets_text(question.promises)} is met up to "
        f"{format_rate(best.sustainable_rate_per_s)} with up to {counted(best.nodes, 'node')}"
        if best.sustainable_rate_per_s > 0
        else f"no rate meets {targets_text(question.promises)} with up to {counted(nodes, 'node')}"
    )


def _over_budget(question: Question) -> str | None:
    """Why the bill prevents a plan; None if the targets are not met for more money either."""
    if question.store_price is None or math.isinf(question.most_bill_per_hour):
        return None
    lax = replace(question, most_bill_per_hour=math.inf)
    cheapest = _least_to_meet(lax, bill_per_hour)
    if cheapest is None:
        return None
    setting, bill = cheapest
    currency, nodes = question.store_price.currency, int(setting.nodes[0])
    return (
        f"the lowest bill that meets {targets_text(question.promises)} is "
        f"{format_money(bill, currency=currency)} per hour for {counted(nodes, 'node')} and write "
        "requests, more than the budget of "
        f"{format_money(question.most_bill_per_hour, currency=currency)}"
    )


def _too_many_files(question: Question) -> str | None:
    """Why the limit of files prevents a plan; None if the targets are not met with more either."""
    if math.isinf(question.most_files_per_hour):
        return None
    fewest = _least_to_meet(replace(question, most_files_per_hour=math.inf), files_per_hour)
    if fewest is None:
        return None
    setting, num_files = fewest
    return (
        f"{targets_text(question.promises)} takes {num_files:,.0f} files per hour at least, with "
        f"{counted(setting.configuration(0).shuffle_partitions, 'shuffle partition')} and a "
        f"trigger of "
        f"{spark_trigger_text(float(setting.trigger_s[0]))}, more than the limit of "
        f"{question.most_files_per_hour:,.0f}"
    )


def _least_to_meet(
    question: Question, measure: Callable[[Candidates], Array]
) -> tuple[Candidates, float] | None:
    """The setting with the least of a measure that meets a question, and that measure, if any."""
    settings = all_candidates(question, counts_to_look_at(question))
    values = measure(settings)
    order = np.argsort(values, kind="stable").tolist()
    index = first_to_meet(settings, order, question.rate_per_s)
    return None if index is None else (settings.alone(index), float(values[index]))


def _delays(question: Question) -> str:
    """The part of a window's latency that no setting changes, to be continued; empty without."""
    promised = PromisedLatency(profile=question.profile, target=question.target)
    watermark_s, held_back_s = promised.watermark_s, promised.held_back_s
    delays = (
        (watermark_s, "watermark delay"),
        (held_back_s, "range of the join"),
        (promised.shift_s - watermark_s - held_back_s, "event-time lag"),
    )
    return "".join(
        f"the {name} of {format_duration(delay_s)} plus " for delay_s, name in delays if delay_s > 0
    )


def source_tasks_below_slots(question: Question) -> list[int]:
    """Tasks of the stages that read the source, where they are fewer than the slots."""
    slots = question.space.num_slots(question.space.max_nodes)
    return [num_tasks for _, num_tasks in short_of_tasks(question.profile, slots)]


def nearest_setting(question: Question, floor_s: float, fastest: Candidates) -> Candidates:
    """The setting that is closest to all targets: (P6).

    If the first target can be met, the setting that meets it and misses the other targets by least;
    otherwise, or without other targets, the setting with the lowest latency.
    """
    if floor_s > question.target.limit_s:
        return fastest
    targets = replace(
        question, also=tuple(promise for promise in question.also if isinstance(promise, Target))
    )
    candidates = all_candidates(question, counts_to_look_at(question))
    may_meet = replace(candidates, question=targets).could_meet(question.rate_per_s)
    candidates = candidates.take(may_meet)
    if not len(candidates):
        return fastest
    order = np.argsort(candidates.excess(question.rate_per_s), kind="stable").tolist()
    for_targets = replace(candidates, question=targets)
    first_met = first_to_meet(for_targets, order, question.rate_per_s)
    return fastest if first_met is None else candidates.alone(first_met)


def _looked_at(question: Question) -> str:
    """The numbers of nodes for which all settings were tried."""
    node_limit = counted(question.space.max_nodes, "node")
    counts = counts_to_look_at(question)
    if len(counts) > question.space.max_nodes - question.space.min_nodes:
        return f"up to {node_limit}"
    return f"the {len(counts)} node counts tried, up to {node_limit},"


def counts_to_look_at(question: Question) -> tuple[int, ...]:
    """All numbers of nodes, or of many a subset in which each is slightly larger than the last."""
    min_nodes, max_nodes = question.space.min_nodes, question.space.max_nodes
    if max_nodes - min_nodes < NODE_COUNTS_TRIED.value:
        return tuple(range(min_nodes, max_nodes + 1))
    spread = np.geomspace(min_nodes, max_nodes, NODE_COUNTS_TRIED.value)
    return tuple(sorted(set(np.round(spread).astype(int).tolist())))
