"""Reasons for a plan: its neighbours, what it depends on, and binding constraints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from headway.assumptions.planning import SENSITIVITY_RATIO
from headway.domain import CatchUp, DuringBurst, JobProfile, Promise, Rejection, Sensitivity, Target
from headway.models.job.certified import certified
from headway.models.job.predict import predict
from headway.planner.candidates import Candidates, all_candidates, candidates_at
from headway.planner.enumeration import IS_SLOWER
from headway.planner.explained_setting import ExplainedSetting, each_latency_s
from headway.planner.noise_free import lowest_latency
from headway.planner.question import Question
from headway.planner.tasks import most_launches_per_s, why_no_room
from headway.units import counted, format_rate, spark_trigger_text
from headway.words.predictions import duration_against

Neighbour: TypeAlias = tuple[Sensitivity, Candidates]
"""A neighbouring setting of a plan, and what the plan would be with it."""

_FEWER = "one node fewer"


def resized(setting: ExplainedSetting) -> list[Neighbour]:
    """The plan with one node fewer or more, and with twice its nodes."""
    nodes, partitions, trigger_s = setting.size
    counts = dict.fromkeys((nodes - 1, nodes + 1, 2 * nodes))
    sizes = [
        (counted(num_nodes, "node"), (num_nodes, partitions, trigger_s))
        for num_nodes in counts
        if num_nodes >= 1
    ]
    return _neighbours(setting.question, sizes)


def retuned(setting: ExplainedSetting) -> list[Neighbour]:
    """The plan with its trigger or its partitions at their next choices in both directions.

    The maximum number of partitions is one of them.
    """
    question, (nodes, partitions, trigger_s) = setting.question, setting.size
    triggers_s = question.space.trigger_choices_s(question.profile, question.target.limit_s)
    choices = question.space.partition_choices(question.profile, nodes)
    longer = [choice_s for choice_s in triggers_s if choice_s > trigger_s][:1]
    shorter = [choice_s for choice_s in triggers_s if choice_s < trigger_s][-1:]
    larger = [choice for choice in choices if choice > partitions]
    smaller = [choice for choice in choices if choice < partitions][-1:]
    sizes = [
        (f"trigger of {spark_trigger_text(choice_s)}", (nodes, partitions, choice_s))
        for choice_s in (*longer, *shorter)
    ]
    sizes += [
        (counted(choice, "shuffle partition"), (nodes, choice, trigger_s))
        for choice in dict.fromkeys((*larger[-1:], *larger[:1], *smaller))
    ]
    return _neighbours(question, sizes)


def _neighbours(
    question: Question, sizes: Sequence[tuple[str, tuple[int, int, float]]]
) -> list[Neighbour]:
    if not sizes:
        return []
    settings = candidates_at(question, [size for _, size in sizes])
    latencies_s = each_latency_s(settings, question.rate_per_s)
    met = settings.meets(question.rate_per_s)
    return [
        (
            Sensitivity(
                kind="knob",
                change=name,
                latency_s=latencies_s[index],
                keeps_target=bool(met[index]),
            ),
            settings.alone(index),
        )
        for index, (name, _) in enumerate(sizes)
    ]


def sensitivities(
    setting: ExplainedSetting, neighbours: Sequence[Neighbour]
) -> tuple[Sensitivity, ...]:
    """The plan with each setting at its next choices, and with each input a tenth higher."""
    return (*(sensitivity for sensitivity, _ in neighbours), *_by_input(setting))


def _by_input(setting: ExplainedSetting) -> Iterator[Sensitivity]:
    question = setting.question
    faster = question.at_rate(SENSITIVITY_RATIO.value * question.rate_per_s)
    costlier = _costlier(question.profile)
    changed_questions = [
        ("rate +10%", faster),
        *((name, replace(question, profile=profile)) for name, profile in costlier),
        ("no safety margin (50% confidence)", question.at_confidence(0.5)),
    ]
    for name, changed in changed_questions:
        candidate = setting.under(changed)
        yield Sensitivity(
            kind="input",
            change=name,
            latency_s=float(candidate.latency_s(changed.rate_per_s)[0]),
            keeps_target=bool(candidate.meets(changed.rate_per_s)[0]),
        )


def _costlier(profile: JobProfile) -> Iterator[tuple[str, JobProfile]]:
    """The job with one of its measured costs a tenth higher."""
    ratio, noise = SENSITIVITY_RATIO.value, profile.noise
    phases = tuple(replace(phase, mean_s=ratio * phase.mean_s) for phase in profile.driver_phases)
    yield "driver time +10%", replace(profile, driver_phases=phases)
    for name, cost in (("fixed time per task", "task_fixed_s"), ("time per row", "task_per_row_s")):
        costlier = tuple(
            replace(stage, **{cost: ratio * getattr(stage, cost)}) for stage in profile.stages
        )
        yield f"{name} +10%", replace(profile, stages=costlier)
    noisier = replace(
        noise, batch_ratio=ratio * noise.batch_ratio, added_sd_s=ratio * noise.added_sd_s
    )
    yield "batch noise +10%", replace(profile, noise=noisier)


def one_node_fewer(setting: ExplainedSetting) -> Rejection | None:
    """The best setting of one node fewer, and the value that rules it out; None at the minimum."""
    question = setting.question
    if setting.nodes <= question.space.min_nodes:
        return None
    # By the first target; the reason names another one if that is what is missed.
    fewer = all_candidates(question, (setting.nodes - 1,))
    for_first_target = replace(fewer, question=replace(question, also=()))
    best_index, best_s = lowest_latency(for_first_target)
    rejection = _rejection(_FEWER, fewer.alone(best_index), best_s)
    if question.objective == "latency" and fewer.alone(best_index).meets(question.rate_per_s)[0]:
        return replace(rejection, reason=f"{rejection.reason}{IS_SLOWER}")
    return rejection


def rejected_neighbours(
    fewer: Rejection | None, neighbours: Sequence[Neighbour]
) -> tuple[Rejection, ...]:
    """One node ``fewer``, and the retuned plans that miss the targets, with the value of each."""
    retuned_rejections = (
        _rejection(sensitivity.change, neighbour, sensitivity.latency_s)
        for sensitivity, neighbour in neighbours
        if not sensitivity.keeps_target
    )
    return (*([] if fewer is None else [fewer]), *retuned_rejections)


def binding_constraints(setting: Candidates, fewer: Rejection | None) -> tuple[str, ...]:
    """Binding constraints of a plan, as text: its targets, and why one node ``fewer`` fails."""
    question = setting.question
    constraints = [
        f"{promise}: {_kept_text(promise, setting)} with {question.confidence:.0%} confidence"
        for promise in question.promises
    ]
    if fewer is not None:
        constraints.append(f"{_FEWER}: {fewer.reason}")
    elif question.space.min_nodes > 1:
        min_nodes = counted(question.space.min_nodes, "node")
        constraints.append(f"{min_nodes}: fewer have too little memory for the executors")
    else:
        constraints.append("one node is the minimum")
    return tuple(constraints)


def _stability_is_open(setting: Candidates, rate_per_s: float) -> bool:
    profile = setting.question.profile
    if not profile.row_cost_half_range_ratio:
        return False
    arrivals = replace(profile.arrivals, rate_per_s=rate_per_s)
    return predict(profile, setting.configuration(0), arrivals).is_stability_open


def saturation_text(setting: Candidates, rate_per_s: float) -> str:
    """Why one setting has no latency at the planned confidence, as text.

    What has one at the expected durations, which `headway predict` shows, has none at their upper
    end.
    """
    rate, question = format_rate(rate_per_s), setting.question
    if not certified(setting.expected_law(rate_per_s)).is_quotable[0]:
        if _stability_is_open(setting, rate_per_s):
            return (
                f"not known to keep up at {rate}: the profile has batches of one size, which do "
                "not show what a row costs"
            )
        return f"over capacity at {rate}, or too close to saturation"
    end = f"the upper end for {question.confidence:.0%} confidence"
    if question.profile.declared is not None:
        return f"too close to saturation at {rate} with costs at {end}"
    longer = float(setting.planned_ratio(rate_per_s)[0]) - 1.0
    return (
        f"too close to saturation at {rate} with batches {longer:.0%} longer than expected, {end}"
    )


def _kept_text(promise: Promise, setting: Candidates) -> str:
    value_s = float(setting.promised_latency_s(promise, setting.question.rate_per_s)[0])
    text = duration_against(value_s, promise.limit_s)
    if isinstance(promise, CatchUp):
        return f"caught up after {text}"
    target = promise.target if isinstance(promise, DuringBurst) else promise
    return f"{target.statistic} is up to {text}"


def _reason_text(promise: Promise, setting: Candidates, value_s: float) -> str:
    """Value of a setting for a target, as text."""
    rate_per_s = setting.question.rate_per_s
    if isinstance(promise, Target):
        return _value_text(promise, setting, value_s, rate_per_s)
    if isinstance(promise, DuringBurst):
        text = _value_text(promise.target, setting, value_s, promise.burst.rate_per_s)
        return text if math.isinf(value_s) else f"{text} during {promise.burst}"
    after = promise.burst or "the outage"
    if math.isinf(value_s):
        return f"never catches up after {after}"
    return f"caught up {duration_against(value_s, promise.limit_s)} after {after}"


def _value_text(target: Target, setting: Candidates, value_s: float, rate_per_s: float) -> str:
    if math.isinf(value_s):
        return saturation_text(setting, rate_per_s)
    return f"{target.statistic} up to {duration_against(value_s, target.limit_s)}"


def broken_promise(setting: Candidates) -> tuple[str, float] | None:
    """The further target that is missed, if any: as text, with the value instead [s]."""
    question = setting.question
    for promise in question.also:
        for_promise = replace(setting, question=replace(question, also=(promise,)))
        if not for_promise.meets(question.rate_per_s)[0]:
            value_s = float(setting.promised_latency_s(promise, question.rate_per_s)[0])
            return _reason_text(promise, setting, value_s), value_s
    return None


def _rejection(change: str, setting: Candidates, latency_s: float) -> Rejection:
    reason, value_s = _why(setting, latency_s)
    return Rejection(
        change=change,
        configuration=setting.configuration(0),
        reason=reason,
        latency_s=None if math.isinf(value_s) else value_s,
    )


def _why(setting: Candidates, latency_s: float) -> tuple[str, float]:
    """The value that rules a setting out, as text, and as a time [s]."""
    question, slots = setting.question, int(setting.num_slots[0])
    no_room = why_no_room(question.profile, slots, int(setting.partitions[0]))
    if no_room is not None:
        return no_room, math.inf
    launches = float(setting.launch_ratio(setting.planned_pace(question.rate_per_s))[0])
    if launches > 1.0:
        max_launches_per_s = most_launches_per_s(question.profile)
        text = (
            f"{launches * max_launches_per_s:,.0f} task launches/s, above the driver's maximum of "
            f"{max_launches_per_s:,.0f}"
        )
        return text, math.inf
    broken = broken_promise(setting) if latency_s <= question.target.limit_s else None
    text = _value_text(question.target, setting, latency_s, question.rate_per_s)
    return broken or (text, latency_s)
