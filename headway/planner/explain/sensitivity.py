"""The planned latency with one thing changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from headway.assumptions.planning import SENSITIVITY_RATIO
from headway.domain import Configuration, JobProfile, Sensitivity
from headway.planner.candidates import candidates_at
from headway.planner.explain.reasons import Neighbour
from headway.planner.question import Question


def sensitivities(
    question: Question, configuration: Configuration, nodes: int, neighbours: Sequence[Neighbour]
) -> tuple[Sensitivity, ...]:
    """The plan with each setting at its next choices, and with each input a tenth higher."""
    by_knob = (
        Sensitivity(
            kind="knob",
            change=neighbour.name,
            latency_s=neighbour.latency_s,
            keeps_target=neighbour.keeps_promises,
        )
        for neighbour in neighbours
    )
    return (*by_knob, *_by_input(question, configuration, nodes))


def _by_input(
    question: Question, configuration: Configuration, nodes: int
) -> Iterator[Sensitivity]:
    setting = (nodes, configuration.shuffle_partitions, configuration.trigger_s)
    changed_questions = [
        ("rate +10%", question.at_rate(SENSITIVITY_RATIO.value * question.rate_per_s))
    ]
    changed_questions += [
        (name, replace(question, profile=profile)) for name, profile in _costlier(question.profile)
    ]
    changed_questions.append(("no safety margin (50% confidence)", question.at_confidence(0.5)))
    for name, changed in changed_questions:
        candidate = candidates_at(changed, [setting])
        latency_s = candidate.latency_s(changed.rate_per_s)
        yield Sensitivity(
            kind="input",
            change=name,
            latency_s=float(latency_s[0]),
            keeps_target=bool(candidate.meets(changed.rate_per_s)[0]),
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
