"""Why a plan is as it is: the neighbours it beats, and what binds it."""

from __future__ import annotations

import math

import numpy as np

from headway.domain import Configuration, Rejection, Target
from headway.planner.candidates import Candidates, all_candidates, candidates_at
from headway.planner.question import Question
from headway.units import counted, format_duration, format_rate, spark_trigger_text

_FEWER = "one node fewer"


def rejected_neighbours(
    question: Question, chosen: Configuration, nodes: int
) -> tuple[Rejection, ...]:
    """The settings beside the plan that miss it, and the number that rules each out."""
    found: list[Rejection] = []
    if nodes > question.space.min_nodes:
        found.append(_best_of(all_candidates(question, (nodes - 1,)), _FEWER))
    beside = [
        (name, (nodes, partitions, trigger_s))
        for name, partitions, trigger_s in neighbours(question, chosen, nodes)
    ]
    if beside:
        settings = candidates_at(question, [setting for _, setting in beside])
        met = settings.meets(question.rate_per_s)
        found += [
            _best_of(settings.take(np.array([place])), name)
            for place, (name, _) in enumerate(beside)
            if not met[place]
        ]
    return tuple(found)


def neighbours(
    question: Question, chosen: Configuration, nodes: int
) -> list[tuple[str, int, float]]:
    """The next choices of trigger and partitions, either way, and the most partitions."""
    triggers_s = question.space.trigger_choices_s(question.profile, question.target.limit_s)
    choices = question.space.partition_choices(question.profile, nodes)
    partitions, trigger_s = chosen.shuffle_partitions, chosen.trigger_s
    longer = [one for one in triggers_s if one > trigger_s][:1]
    shorter = [one for one in triggers_s if one < trigger_s][-1:]
    more = [one for one in choices if one > partitions]
    fewer = [one for one in choices if one < partitions][-1:]
    found = [
        (f"trigger of {spark_trigger_text(one)}", partitions, one) for one in (*longer, *shorter)
    ]
    beside = dict.fromkeys((*more[-1:], *more[:1], *fewer))
    return found + [(counted(one, "shuffle partition"), one, trigger_s) for one in beside]


def binding_constraints(
    question: Question, latency_s: float, rejected: tuple[Rejection, ...]
) -> tuple[str, ...]:
    """What a plan rests on, in words: the promise, and what is wrong with one node fewer."""
    target = question.target
    found = [
        (
            f"{target}: {target.statistic} is up to {format_duration(latency_s)} "
            f"with {question.confidence:.0%} confidence"
        )
    ]
    fewer = next((one for one in rejected if one.change == _FEWER), None)
    if fewer is not None:
        found.append(f"{_FEWER}: {fewer.reason}")
    elif question.space.min_nodes > 1:
        least = counted(question.space.min_nodes, "node")
        found.append(f"{least}: fewer have too little memory for the executors")
    else:
        found.append("one node is the least there is")
    return tuple(found)


def latency_text(target: Target, latency_s: float, rate_per_s: float) -> str:
    """What a setting would do, for people.

    Examples
    --------
    >>> latency_text(Target.parse("p99 <= 3s"), 4.1, 5000.0)
    'p99 up to 4.10 s'
    >>> latency_text(Target.parse("p99 <= 3s"), float("inf"), 5000.0)
    'over capacity at 5k/s'
    """
    if math.isinf(latency_s):
        return f"over capacity at {format_rate(rate_per_s)}"
    return f"{target.statistic} up to {format_duration(latency_s)}"


def _best_of(candidates: Candidates, change: str) -> Rejection:
    """The best that a changed plan could do, as a rejection."""
    question = candidates.question
    place, best_s = candidates.lowest_latency(question.rate_per_s)
    reason = latency_text(question.target, best_s, question.rate_per_s)
    if best_s <= question.target.limit_s:
        reason += ", but not " + " and ".join(str(one) for one in question.also)
    return Rejection(
        change=change,
        configuration=candidates.configuration(place),
        reason=reason,
        latency_s=None if math.isinf(best_s) else best_s,
    )
