"""A setting that was decided earlier, compared with the targets of a question."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from headway.digits import number_at, rank_of, rounded_up
from headway.domain import Configuration, Promise, Target, Verdict
from headway.models.job.capacity import Capacity, sustainable_rate_per_s
from headway.planner.candidates import Candidates, candidates_at
from headway.planner.frontier import own_point
from headway.planner.question import NO_LIMIT_S, Question
from headway.planner.rate_limit import recovers_in_time
from headway.planner.verdict import kept_probability

# The limit that is rounded up is met; the next numbers are for durations that depend on the limit.
_MOST_PLACES_ABOVE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSetting:
    """A setting under a question.

    ``planned_s`` has the value of each target at the confidence of the question, infinite if no
    latency can be quoted; ``stable_up_to_per_s`` is without the rate limit, as is ``is_over``,
    whether the rate is surely too high; ``limited_to_per_s`` is what the rate limit lets through.
    """

    targets: tuple[Promise, ...]
    planned_s: tuple[float, ...]
    met: bool
    probability: float
    confidence: float
    rate_per_s: float
    stable_up_to_per_s: float
    is_over: bool
    limited_to_per_s: float
    max_rate_per_s: float

    @property
    def verdict(self) -> Verdict:
        """The verdict at the confidence of the question."""
        return Verdict.of(self.probability, self.confidence)


def judged_setting(question: Question, configuration: Configuration) -> JudgedSetting:
    """Whether a setting meets the targets of a question, and how much it carries.

    Of the space of the question only the rules of memory are used; the setting has its rate limit.

    Notes
    -----
    theory.md (P4), (P8), (P23). A plan of this setting is judged in the same way; a rate limit that
    lets through less than arrives misses every target.
    """
    setting = _as_candidate(question, configuration)
    rate_per_s, profile = question.rate_per_s, question.profile
    unlimited = replace(configuration, max_offsets_per_trigger=None)
    capacity = Capacity.of(profile, unlimited)
    limited_to_per_s = sustainable_rate_per_s(profile, configuration)
    limit_rows = configuration.max_offsets_per_trigger
    passes_limit = limit_rows is None or (
        limited_to_per_s >= rate_per_s and recovers_in_time(setting, limit_rows)
    )
    met = passes_limit and setting.certified_excess(rate_per_s) <= 0.0
    return JudgedSetting(
        targets=question.promises,
        planned_s=tuple(
            float(setting.promised_latency_s(promise, rate_per_s)[0])
            for promise in question.promises
        ),
        met=met,
        probability=kept_probability(setting) if passes_limit else 0.0,
        confidence=question.confidence,
        rate_per_s=rate_per_s,
        stable_up_to_per_s=capacity.stable_up_to_per_s,
        is_over=capacity.is_over,
        limited_to_per_s=limited_to_per_s,
        max_rate_per_s=own_point(setting, configuration).sustainable_rate_per_s,
    )


def lowest_target(question: Question, configuration: Configuration) -> Target | None:
    """The first target of a question with the lowest limit that a setting meets, of three digits.

    None if the setting does not keep up with the rate at the confidence of the question.
    """
    lax = question.with_limit(0, NO_LIMIT_S)
    setting = _as_candidate(lax, configuration)
    latency_s = float(setting.promised_latency_s(lax.target, lax.rate_per_s)[0])
    if math.isinf(latency_s):
        return None
    lowest = rank_of(rounded_up(latency_s))
    for rank in range(lowest, lowest + _MOST_PLACES_ABOVE):
        candidate = question.with_limit(0, number_at(rank))
        if judged_setting(candidate, configuration).met:
            return candidate.target
    return None


def _as_candidate(question: Question, configuration: Configuration) -> Candidates:
    """The setting, with an executor as what is counted."""
    space = replace(
        question.space,
        min_nodes=1,
        max_nodes=configuration.executors,
        executors_per_node=1,
        cores_per_executor=configuration.cores_per_executor,
        task_cpus=configuration.task_cpus,
        tasks_per_executor=configuration.tasks_per_executor,
    )
    setting = (configuration.executors, configuration.shuffle_partitions, configuration.trigger_s)
    return candidates_at(replace(question, space=space), [setting])
