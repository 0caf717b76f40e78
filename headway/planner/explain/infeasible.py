"""If no setting meets the targets: why, the physical floor, and the nearest setting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np

from headway.assumptions.planning import CLOSE_TO_FLOOR_RATIO, NODE_COUNTS_TRIED
from headway.digits import format_money
from headway.domain import FrontierPoint, Target
from headway.domain.target import targets_text
from headway.models.job.setting import stages_on
from headway.planner.bill import bill_per_hour, excess_of_limits, files_per_hour, within_limits
from headway.planner.candidates import Candidates, all_candidates
from headway.planner.explain.reasons import broken_promise, saturation_text
from headway.planner.fewest_nodes import fewest_nodes, first_to_meet
from headway.planner.noise_free import lowest_latency, noise_free_latency_s
from headway.planner.promised_latency import PromisedLatency
from headway.planner.question import NO_LIMIT_S, Question
from headway.planner.setting_choice import chosen_setting
from headway.planner.tasks import short_of_tasks, why_no_room
from headway.units import counted, format_duration, format_rate, spark_trigger_text
from headway.words.predictions import duration_against


def lowest_latency_in_reach(question: Question) -> tuple[float, Candidates]:
    """The lowest latency of any setting at the requested rate, and that setting: (P6).

    Other targets do not count. Of the settings close to it, one with the fewest nodes. If there are
    many node counts, only some are tried, including the largest.
    """
    # A trigger longer than the limit allows may still be the closest.
    all_settings = all_candidates(
        question.with_limit(0, NO_LIMIT_S), examined_node_counts(question)
    )
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
    promised = PromisedLatency(profile=question.profile, target=question.target)
    batch_s = _empty_batch_s(question)
    waited_s = promised.wait_weight * max(question.space.trigger_s or 0.0, batch_s)
    return promised.shift_s + waited_s + batch_s - promised.after_commit_s


def _empty_batch_s(question: Question) -> float:
    """Driver and one task of each level, without rows, where tasks wait least (T10)."""
    profile, space = question.profile, question.space
    stages = stages_on(profile, space.num_slots(space.min_nodes))
    levels = groupby(stages, key=lambda stage: stage.level)
    return profile.driver_s + sum(max(stage.task_fixed_s for stage in pool) for _, pool in levels)


def why_infeasible(
    question: Question, floor_s: float, nearest: Candidates, best: FrontierPoint
) -> Iterator[str]:
    """The reason: the lowest latency within reach, the floor below it, and the rate."""
    target, nodes = question.target, question.space.max_nodes
    targets, rate = targets_text(question.promises), format_rate(question.rate_per_s)
    physical_s = physical_floor_s(question)
    slots, partitions = question.space.num_slots(nodes), question.space.shuffle_partitions or 1
    no_room = why_no_room(question.profile, slots, partitions)
    if no_room is not None:
        yield f"on {counted(nodes, 'node')}, {no_room}"
    elif math.isinf(floor_s):
        verb = "is" if nodes == 1 else "are"
        yield f"{counted(nodes, 'node')} {verb} {saturation_text(nearest, question.rate_per_s)}"
    elif (beyond := _beyond_limits_text(nearest)) is not None:
        # At a higher price or with more files the targets are met: nothing else is a reason.
        yield beyond
        return
    elif floor_s <= target.limit_s:
        together = ("", "both ", "all of ")[min(len(question.also), 2)]
        yield f"no configuration of up to {counted(nodes, 'node')} meets {together}{targets}"
        broken = broken_promise(nearest)
        if broken is not None:
            yield f"the nearest plan: {broken[0]}"
    else:
        floor = duration_against(floor_s, target.limit_s)
        lowest = f"a planned {target.statistic} of {floor} at {rate}"
        yield f"no configuration of {_looked_at(question)} goes below {lowest}"
    if physical_s > target.limit_s:
        yield (
            f"no number of nodes suffices: {_delays(question)}{_empty_batch_text(question)} "
            f"already take {duration_against(physical_s, target.limit_s)}"
        )
    num_tasks = max(source_tasks_below_slots(question), default=None)
    if num_tasks is not None:
        yield (
            f"the source is read by {counted(num_tasks, 'task')}, one per partition or split: more "
            f"than {num_tasks} {'slots' if num_tasks > 1 else 'slot'} do not read it faster"
        )
    yield (
        f"{targets} {'are' if question.also else 'is'} met up to "
        f"{format_rate(best.sustainable_rate_per_s)} with up to {counted(best.nodes, 'node')}"
        if best.sustainable_rate_per_s > 0
        else f"no rate meets {targets} with up to {counted(nodes, 'node')}"
    )


def nearest_beyond_limits(questions: Iterable[Question]) -> Candidates | None:
    """Of the settings of some questions that meet every target, the one closest to its limits.

    They exceed the budget or the limit of files: those that exceed only one of them come first.
    None if no setting meets the targets, or if there are no such limits.
    """
    nearest = [setting for setting in map(_nearest_to_limits, questions) if setting is not None]
    return min(nearest, key=_miss_of_limits, default=None)


def _nearest_to_limits(question: Question) -> Candidates | None:
    if math.isinf(min(question.most_bill_per_hour, question.most_files_per_hour)):
        return None
    settings = all_candidates(question, examined_node_counts(question))
    settings = settings.take(settings.could_meet(question.rate_per_s))
    if not len(settings):
        return None
    excess = excess_of_limits(settings)
    order = np.lexsort((excess.max(axis=0), np.count_nonzero(excess > 0.0, axis=0))).tolist()
    first_met = first_to_meet(settings, order, question.rate_per_s)
    return None if first_met is None else settings.alone(first_met)


def _miss_of_limits(setting: Candidates) -> tuple[int, float]:
    """How many limits one setting exceeds, and by how much the worst."""
    excess = excess_of_limits(setting)
    return int(np.count_nonzero(excess > 0.0)), float(excess.max())


def _beyond_limits_text(nearest: Candidates) -> str | None:
    """Why the budget or the limit of files prevents a plan; None if something else does."""
    question = nearest.question
    most_bill, most_files = question.most_bill_per_hour, question.most_files_per_hour
    if within_limits(nearest)[0] or not nearest.meets(question.rate_per_s)[0]:
        return None
    (bill,), (num_files,) = bill_per_hour(nearest), files_per_hour(nearest)
    currency = "" if question.store_price is None else question.store_price.currency
    budget_text = f"the budget of {format_money(most_bill, currency=currency)}"
    bill_text = (
        f"{format_money(bill, currency=currency)} per hour for "
        f"{counted(int(nearest.nodes[0]), 'node')} and write requests"
    )
    files_text = (
        f"{num_files:,.0f} files per hour at least, with "
        f"{counted(int(nearest.partitions[0]), 'shuffle partition')} and a trigger of "
        f"{spark_trigger_text(float(nearest.trigger_s[0]))}"
    )
    limit_text = f"the limit of {most_files:,.0f}"
    targets = targets_text(question.promises)
    if num_files <= most_files:
        also = "" if math.isinf(most_files) else f" with no more files than {limit_text}"
        range_text = cheaper_text = ""
        if (cheaper := _cheaper_beyond(question, bill)) is not None:
            lower_bill = format_money(float(bill_per_hour(cheaper)[0]), currency=currency)
            range_text = f" of up to {counted(question.space.max_nodes, 'node')}"
            cheaper_text = f"; that of {counted(int(cheaper.nodes[0]), 'node')} is {lower_bill}"
        return (
            f"the lowest bill{range_text} that meets {targets}{also} is {bill_text}, more than "
            f"{budget_text}{cheaper_text}"
        )
    if bill <= most_bill:
        also = "" if math.isinf(most_bill) else f" within {budget_text}"
        verb = "take" if question.also else "takes"
        return f"{targets}{also} {verb} {files_text}, more than {limit_text}"
    return (
        f"no configuration that meets {targets} is within {budget_text} or within {limit_text} "
        f"files per hour: the nearest one takes {bill_text}, and {num_files:,.0f} files per hour"
    )


def _cheaper_beyond(question: Question, bill: float) -> Candidates | None:
    """A setting on more nodes than may be bought that has a lower bill: they save requests."""
    space = question.space
    max_nodes = math.floor(bill / (space.cost_per_hour(1) or math.inf))
    if max_nodes <= space.max_nodes:
        return None
    beyond = replace(
        question,
        objective="cost",
        most_bill_per_hour=bill,
        space=replace(space, min_nodes=space.max_nodes + 1, max_nodes=max_nodes),
    )
    fewest = fewest_nodes(beyond).nodes
    if fewest is None:
        return None
    setting = chosen_setting(all_candidates(beyond, (fewest,)))
    return setting if bill_per_hour(setting)[0] < bill else None


def _empty_batch_text(question: Question) -> str:
    """What no number of nodes shortens, with the wait for a fixed trigger if it is the longer."""
    trigger_s = question.space.trigger_s or 0.0
    is_waited_for = PromisedLatency(profile=question.profile, target=question.target).wait_weight
    if is_waited_for and trigger_s > _empty_batch_s(question):
        wait = f"waiting for a trigger of {format_duration(trigger_s)}"
        return f"{wait}, driver and one task per stage"
    return "driver plus one task per stage"


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
    otherwise, or without other targets, the setting with the lowest latency. What prevents a plan
    is not the budget or the limit of files, for which there is `nearest_beyond_limits`.
    """
    if floor_s > question.target.limit_s:
        return fastest
    targets = replace(
        question, also=tuple(promise for promise in question.also if isinstance(promise, Target))
    )
    candidates = all_candidates(question, examined_node_counts(question))
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
    counts = examined_node_counts(question)
    if len(counts) > question.space.max_nodes - question.space.min_nodes:
        return f"up to {node_limit}"
    return f"the {len(counts)} node counts tried, up to {node_limit},"


def examined_node_counts(question: Question) -> tuple[int, ...]:
    """All numbers of nodes, or of many a subset in which each is slightly larger than the last."""
    min_nodes, max_nodes = question.space.min_nodes, question.space.max_nodes
    if max_nodes - min_nodes < NODE_COUNTS_TRIED.value:
        return tuple(range(min_nodes, max_nodes + 1))
    spread = np.geomspace(min_nodes, max_nodes, NODE_COUNTS_TRIED.value)
    return tuple(sorted(set(np.round(spread).astype(int).tolist())))
