"""Whether a setting meets its targets, how probably, and what would settle an open verdict."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from headway.digits import number_at, rank_of, rounded_up
from headway.domain import Advice, Configuration, Target, Verdict
from headway.lazy_classes import dataclass
from headway.models.job.calibration import of_runs_and_fit
from headway.models.job.capacity import Capacity, sustainable_rate_per_s
from headway.models.job.declared import figures_at
from headway.models.laws.inverse import last_nonpositive, last_nonpositive_near
from headway.models.laws.normal import ndtr, ndtri
from headway.planner.candidates import Candidates, candidates_at
from headway.planner.frontier import point_of_setting
from headway.planner.question import NO_LIMIT_S, Question
from headway.planner.rate_limit import recovers_in_time
from headway.units import format_rate

_FARTHEST_SCORE = 3.0
_NUM_STEPS = 128
# About how much the logarithm of a tail grows from a step to the next.
_EXCESS_PER_STEP = 0.3
_STEPS_PER_SCORE = _NUM_STEPS / (2.0 * _FARTHEST_SCORE)
# The limit that is rounded up is met; the next numbers are for durations that depend on the limit.
_MOST_PLACES_ABOVE = 8


def kept_probability(setting: Candidates) -> float:
    """Probability that one setting meets every target at the requested rate. [-]

    **(P23)** The targets are met with the probability `Φ(z)`, where `z` is the score at which the
    worst of them is just met with durations `e^(z s)` times as long as expected, `s` of (P2). The
    score is found among 128 steps from -3 to 3; for declared figures, along their ranges (P19). One
    more step is the score of the plan's confidence `q`, so that the probability is at least `q` if
    and only if the setting meets the targets of the plan. The verdict is *kept* if the probability
    is at least `q`, *not kept* if it is at most `1-q`, and *too close to tell* in between.
    """

    def excess(step: int, *, with_gain: bool = True) -> float:
        return excess_at_score(setting, _score_of(step), with_gain=with_gain)

    but_for_gain = partial(excess, with_gain=False)
    confidence, rate_per_s = setting.question.confidence, setting.question.rate_per_s
    planned_score = float(ndtri(confidence))
    planned_step = (planned_score + _FARTHEST_SCORE) * _STEPS_PER_SCORE
    at_planned = setting.certified_excess(rate_per_s)
    is_kept = at_planned <= 0.0
    if is_kept:
        lowest, high = min(math.floor(planned_step), _NUM_STEPS - 1), _NUM_STEPS
        at_lowest = setting.certified_excess(rate_per_s, with_gain=False)
        guess = lowest - at_lowest / _EXCESS_PER_STEP
    else:
        lowest, high = 0, min(math.ceil(planned_step), _NUM_STEPS)
        at_lowest, guess = math.nan, high - at_planned / _EXCESS_PER_STEP
    step = last_nonpositive_near(
        but_for_gain,
        lowest,
        high,
        guess=round(min(max(guess, lowest), high)),
        slope=_EXCESS_PER_STEP,
        at_low=at_lowest,
    )
    # The gain of errors needs a second chain, so it is computed only if everything else is met.
    if step > lowest and (at_step := excess(step)) > 0.0:
        step = last_nonpositive(excess, lowest, step, at_lowest, at_step)
    score = _score_of(step + 0.5)
    if is_kept:
        return max(float(ndtr(score)), confidence)
    return float(ndtr(min(score, 0.5 * (_score_of(step) + planned_score))))


def excess_at_score(setting: Candidates, score: float, *, with_gain: bool = True) -> float:
    """Distance of one setting from its worst target with durations at a normal score.

    Like `Candidates.certified_excess`, at the requested rate.
    """
    question = setting.question
    profile = figures_at(question.profile, score)
    if profile is not question.profile:
        setting = candidates_at(replace(question, profile=profile), setting.settings())
    end = replace(setting.upper_end(), score=score)
    return setting.excess_at_end(end, question.rate_per_s, with_gain=with_gain)


def _score_of(step: float) -> float:
    return step / _STEPS_PER_SCORE - _FARTHEST_SCORE


def settling_advice(setting: Candidates, probability: float) -> tuple[Advice, ...]:
    """Effect of a run of one setting on the verdict on its targets, if it is too close to tell.

    The targets are met with the given probability. With one more run at this setting, it would be
    within the profiled range, and the fit would be based on one more run: theory.md (P2).
    """
    question, profile = setting.question, setting.question.profile
    verdict = Verdict.of(probability, question.confidence)
    if verdict is not Verdict.TOO_CLOSE or profile.declared is not None:
        return ()
    now = _spread_ratio(setting, probability)
    then = of_runs_and_fit(profile.noise.run_to_run_ratio, len(profile.settings) + 1)
    if round(then, 2) >= round(now, 2):
        return ()
    text = (
        f"a run of this configuration, two minutes at {format_rate(question.rate_per_s)}, would "
        f"narrow the uncertainty of its batch durations from {now:.0%} to {then:.0%}"
    )
    return (Advice(text=text),)


def _spread_ratio(setting: Candidates, probability: float) -> float:
    """Standard deviation of the logarithm of durations that a probability was found with (P23)."""
    end = replace(setting.upper_end(), score=float(ndtri(probability)))
    return math.log(float(end.settled_factor(setting.question.rate_per_s)[0])) / end.score


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSetting:
    """A setting under a ``question``.

    ``planned_s`` has the value of each target at the confidence of the question, infinite if no
    latency can be quoted; ``stable_up_to_per_s`` is without the rate limit, as is ``is_over``,
    whether the rate is surely too high; ``limited_to_per_s`` is what the rate limit lets through.
    """

    question: Question
    planned_s: tuple[float, ...]
    met: bool
    probability: float
    stable_up_to_per_s: float
    is_over: bool
    limited_to_per_s: float
    max_rate_per_s: float


def judged_setting(question: Question, configuration: Configuration) -> JudgedSetting:
    """Whether a setting meets the targets of a question, and how much it carries.

    Of the space of the question only the rules of memory are used; the setting has its rate limit.
    A plan of this setting is judged in the same way; a rate limit that lets through less than
    arrives misses every target: theory.md (P4), (P8), (P23).
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
        question=question,
        planned_s=tuple(
            float(setting.promised_latency_s(promise, rate_per_s)[0])
            for promise in question.promises
        ),
        met=met,
        probability=kept_probability(setting) if passes_limit else 0.0,
        stable_up_to_per_s=capacity.stable_up_to_per_s,
        is_over=capacity.is_over,
        limited_to_per_s=limited_to_per_s,
        max_rate_per_s=point_of_setting(setting, configuration).sustainable_rate_per_s,
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
