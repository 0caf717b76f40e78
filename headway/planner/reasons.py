"""Why a plan is as it is: the neighbours it beats, what binds it, and what it changes."""

from __future__ import annotations

import math

from headway.domain import (
    Arrivals,
    Change,
    Configuration,
    JobProfile,
    Rejection,
    Target,
)
from headway.planner.candidates import Candidates, all_candidates
from headway.planner.space import SearchSpace
from headway.sparkconf import KNOBS, applies_when
from headway.units import format_duration, format_rate, spark_trigger_text


def rejected_neighbours(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    confidence: float,
    chosen: Configuration,
    nodes: int,
) -> tuple[Rejection, ...]:
    """The settings beside the plan, and the number that rules each out."""
    found: list[Rejection] = []
    if nodes > 1:
        fewer = all_candidates(profile, space, target, confidence, (nodes - 1,))
        found.append(_best_of(fewer, arrivals, target, "one node fewer"))
    triggers_s = [*space.trigger_choices_s(profile, target.limit_s)]
    longer = [choice for choice in triggers_s if choice > chosen.trigger_s]
    partitions = [*space.partition_choices(profile, nodes)]
    more = [choice for choice in partitions if choice > chosen.shuffle_partitions]
    beside = [
        (f"trigger of {spark_trigger_text(choice)}", chosen.shuffle_partitions, choice)
        for choice in longer[:1]
    ] + [(f"{choice} shuffle partitions", choice, chosen.trigger_s) for choice in more[-1:]]
    at_nodes = all_candidates(profile, space, target, confidence, (nodes,))
    for change, num_partitions, trigger_s in beside:
        alone = at_nodes.take(
            (at_nodes.partitions == num_partitions) & (at_nodes.trigger_s == trigger_s)
        )
        if not alone.meets(arrivals.rate_per_s)[0]:
            found.append(_best_of(alone, arrivals, target, change))
    return tuple(found)


def _best_of(candidates: Candidates, arrivals: Arrivals, target: Target, change: str) -> Rejection:
    """The best that a changed plan could do, as a rejection."""
    place, best_s = candidates.lowest_latency(arrivals.rate_per_s)
    if math.isinf(best_s):
        reason = f"over capacity at {format_rate(arrivals.rate_per_s)}"
    else:
        reason = f"{target.statistic} up to {format_duration(best_s)}"
    return Rejection(
        change=change,
        configuration=candidates.configuration(place),
        reason=reason,
        latency_s=None if math.isinf(best_s) else best_s,
    )


def binding_constraints(
    target: Target, latency_s: float, confidence: float, rejected: tuple[Rejection, ...]
) -> tuple[str, ...]:
    """What a plan rests on, in words: the promise, and what is wrong with one node fewer."""
    found = [
        (
            f"{target}: {target.statistic} is up to {format_duration(latency_s)} "
            f"with {confidence:.0%} confidence"
        )
    ]
    fewer = next((one for one in rejected if one.change == "one node fewer"), None)
    if fewer is None:
        found.append("one node is the least there is")
    else:
        found.append(f"one node fewer: {fewer.reason}")
    return tuple(found)


def changes_from_today(profile: JobProfile, planned: Configuration) -> tuple[Change, ...]:
    """The settings that differ from the profiled ones, and what each change takes."""
    today = profile.baseline
    version = profile.applications[-1].spark_version
    found = []
    for name, knob in KNOBS.items():
        before, after = getattr(today, name, None), getattr(planned, name, None)
        if before != after:
            found.append(
                Change(
                    setting=knob.label,
                    before=_in_words(name, before),
                    after=_in_words(name, after),
                    applies=applies_when(
                        knob,
                        stateful=bool(profile.shape.stateful_operators),
                        # A version that is not known pins as the oldest does.
                        spark_version=version if version[:1].isdigit() else "2.0",
                    ),
                )
            )
    return tuple(found)


def _in_words(name: str, value: float | None) -> str:
    if value is None:
        return "none"
    return spark_trigger_text(value) if name == "trigger_s" else str(value)
