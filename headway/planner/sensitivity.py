"""The planned latency with one thing changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from headway.assumptions.planning import SENSITIVITY_RATIO
from headway.domain import Configuration, JobProfile, Sensitivity
from headway.planner.candidates import candidates_at
from headway.planner.question import Question
from headway.planner.reasons import Neighbour


def sensitivities(
    question: Question, chosen: Configuration, nodes: int, beside: Sequence[Neighbour]
) -> tuple[Sensitivity, ...]:
    """The plan with each setting at its next choices, and with each input a tenth higher."""
    by_knob = (
        Sensitivity(
            kind="knob", change=one.name, latency_s=one.latency_s, keeps_target=one.keeps_promises
        )
        for one in beside
    )
    return (*by_knob, *_by_input(question, chosen, nodes))


def _by_input(question: Question, chosen: Configuration, nodes: int) -> Iterator[Sensitivity]:
    setting = (nodes, chosen.shuffle_partitions, chosen.trigger_s)
    asked = [("rate +10%", question.at_rate(SENSITIVITY_RATIO.value * question.rate_per_s))]
    asked += [
        (name, replace(question, profile=profile)) for name, profile in _costlier(question.profile)
    ]
    asked.append(("no safety margin (50% confidence)", question.at_confidence(0.5)))
    for name, changed in asked:
        alone = candidates_at(changed, [setting])
        latency_s = alone.latency_s(changed.rate_per_s)
        yield Sensitivity(
            kind="input",
            change=name,
            latency_s=float(latency_s[0]),
            keeps_target=bool(alone.meets(changed.rate_per_s)[0]),
        )


def _costlier(profile: JobProfile) -> Iterator[tuple[str, JobProfile]]:
    """The job with one of its measured costs a tenth higher."""
    yield (
        "driver time +10%",
        replace(
            profile,
            driver_phases=tuple(
                replace(phase, mean_s=SENSITIVITY_RATIO.value * phase.mean_s)
                for phase in profile.driver_phases
            ),
        ),
    )
    for name, cost in (("fixed time per task", "task_fixed_s"), ("time per row", "task_per_row_s")):
        costlier = tuple(
            replace(stage, **{cost: SENSITIVITY_RATIO.value * getattr(stage, cost)})
            for stage in profile.stages
        )
        yield f"{name} +10%", replace(profile, stages=costlier)
    noise = profile.noise
    yield (
        "batch noise +10%",
        replace(
            profile, noise=replace(noise, batch_ratio=SENSITIVITY_RATIO.value * noise.batch_ratio)
        ),
    )
