"""What the planned latency would be with one thing changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headway.domain import Configuration, JobProfile, Sensitivity
from headway.planner.candidates import candidates_at
from headway.planner.question import Question
from headway.planner.reasons import neighbours
from headway.units import counted

_MORE = 1.1


def sensitivities(question: Question, chosen: Configuration, nodes: int) -> tuple[Sensitivity, ...]:
    """The plan with each knob at its next choices, and with each input a tenth higher."""
    return (*_by_knob(question, chosen, nodes), *_by_input(question, chosen, nodes))


def _by_knob(question: Question, chosen: Configuration, nodes: int) -> Iterator[Sensitivity]:
    partitions, trigger_s = chosen.shuffle_partitions, chosen.trigger_s
    named = [
        (counted(count, "node"), count, partitions, trigger_s)
        for count in dict.fromkeys((nodes - 1, nodes + 1, 2 * nodes))
        if count >= 1
    ]
    named += [
        (name, nodes, other_partitions, other_trigger_s)
        for name, other_partitions, other_trigger_s in neighbours(question, chosen, nodes)
    ]
    settings = candidates_at(question, [(one[1], one[2], one[3]) for one in named])
    latencies_s = settings.latency_s(question.rate_per_s)
    kept = settings.keep_promises(latencies_s, question.rate_per_s).tolist()
    for (name, *_), latency_s, keeps in zip(named, latencies_s.tolist(), kept, strict=True):
        yield Sensitivity(kind="knob", change=name, latency_s=latency_s, keeps_target=keeps)


def _by_input(question: Question, chosen: Configuration, nodes: int) -> Iterator[Sensitivity]:
    setting = (nodes, chosen.shuffle_partitions, chosen.trigger_s)
    asked = [("rate +10 %", question.at_rate(_MORE * question.rate_per_s))]
    asked += [
        (name, replace(question, profile=profile)) for name, profile in _dearer(question.profile)
    ]
    asked.append(("no margin (50 % confidence)", replace(question, confidence=0.5)))
    for name, changed in asked:
        alone = candidates_at(changed, [setting])
        latency_s = alone.latency_s(changed.rate_per_s)
        yield Sensitivity(
            kind="input",
            change=name,
            latency_s=float(latency_s[0]),
            keeps_target=bool(alone.keep_promises(latency_s, changed.rate_per_s)[0]),
        )


def _dearer(profile: JobProfile) -> Iterator[tuple[str, JobProfile]]:
    """The job with one of its measured costs a tenth higher."""
    yield (
        "time on the driver +10 %",
        replace(
            profile,
            driver_phases=tuple(
                replace(phase, mean_s=_MORE * phase.mean_s) for phase in profile.driver_phases
            ),
        ),
    )
    yield (
        "fixed time of a task +10 %",
        replace(
            profile,
            stages=tuple(
                replace(stage, task_fixed_s=_MORE * stage.task_fixed_s) for stage in profile.stages
            ),
        ),
    )
    yield (
        "time per row +10 %",
        replace(
            profile,
            stages=tuple(
                replace(stage, task_per_row_s=_MORE * stage.task_per_row_s)
                for stage in profile.stages
            ),
        ),
    )
    noise = profile.noise
    yield (
        "noise of batches +10 %",
        replace(profile, noise=replace(noise, batch_ratio=_MORE * noise.batch_ratio)),
    )
