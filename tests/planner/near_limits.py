"""Random questions near saturation, and everything that an answer promises, asked again.

python -m tests.planner.near_limits 0 1000
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from headway.digits import format_max_rate, format_rate_down, number_at, rank_of
from headway.domain import (
    Configuration,
    FindingCode,
    InfeasiblePlan,
    Metric,
    Plan,
    Prediction,
    StreamAnswer,
    Target,
    Verdict,
)
from headway.models.job.predict import predict
from headway.planner.candidates import all_candidates, candidates_at
from headway.planner.fewest_nodes import fewest_nodes
from headway.planner.frontier import frontier_of
from headway.planner.noise_free import noise_free_rate_per_s
from headway.planner.question import Question, SearchSpace
from headway.units import parse_rate_per_s
from tests.planner.enumeration import random_profile
from tests.planner.plans import plan
from tests.planner.test_nearest import given_way

MOST_NOISE_RATIO = 0.6
_SETTINGS_BY_ROOM, _SETTINGS_BY_CHANCE = 6, 6
_SAME_LATENCY_RATIO = 1e-3
# The gain of errors (P3) compares two chains on different grids: edges are not sharper than this.
_MORE_RATIO = 1.005


@lru_cache(maxsize=64)
def random_question(seed: int) -> Question | None:
    """A question at 0.9 to 1.1 of the max rate of its space; None if no rate meets its target."""
    random = np.random.default_rng(seed)
    profile = random_profile(random)
    noise = replace(profile.noise, batch_ratio=float(random.uniform(0.01, MOST_NOISE_RATIO)))
    max_nodes = int(random.integers(1, 5))
    question = Question(
        profile=replace(profile, noise=noise),
        target=Target(
            metric=Metric.BATCH if random.random() < 0.3 else Metric.TUPLE,
            quantile=[None, 0.5, 0.95, 0.99][int(random.integers(4))],
            limit_s=float(f"{np.exp(random.uniform(np.log(0.5), np.log(60.0))):.3g}"),
        ),
        space=SearchSpace(max_nodes=max_nodes, cores_per_executor=int(random.integers(1, 4))),
        confidence=float(random.choice([0.5, 0.8, 0.95, 0.95])),
    )
    every = all_candidates(question, range(1, max_nodes + 1))
    (highest,) = frontier_of(every, (max_nodes,), 1)
    if not highest.sustainable_rate_per_s > 0:
        return None
    rate_per_s = float(f"{highest.sustainable_rate_per_s * random.uniform(0.9, 1.1):.4g}")
    return question.at_rate(rate_per_s)


def answer_to(question: Question) -> StreamAnswer:
    """The plan for a question."""
    profile, arrivals = question.profile, question.profile.arrivals
    return plan(profile, arrivals, question.target, question.space, confidence=question.confidence)


def contradictions(question: Question, answer: StreamAnswer) -> Iterator[str]:
    """What an answer says and does not hold when it is asked for."""
    yield from _of_verdict(question, answer)
    yield from _of_frontier(question, answer)
    yield from _of_stability(question, answer)
    if isinstance(answer, Plan):
        yield from _of_plan(question, answer)
    elif isinstance(answer, InfeasiblePlan):
        yield from _of_nearest(question, answer)


def printed_rate_per_s(rate_per_s: float) -> float:
    """A max rate as the text has it."""
    return parse_rate_per_s(format_max_rate(rate_per_s))


def _clearly_above(rate_per_s: float) -> float:
    """The first rate of three digits that is above by more than the edges are sharp."""
    return number_at(rank_of(_MORE_RATIO * rate_per_s) + 1)


def within(question: Question, nodes: int) -> Question:
    """The question with at most some nodes."""
    return replace(question, space=replace(question.space, max_nodes=nodes))


def is_feasible(question: Question) -> bool:
    """Whether a plan for the question is feasible."""
    return fewest_nodes(question).nodes is not None


def _of_verdict(question: Question, answer: StreamAnswer) -> Iterator[str]:
    probability = answer.kept_probability
    assert probability is not None
    if answer.feasible != (probability >= question.confidence):
        yield f"verdict: feasible is {answer.feasible}, probability {probability}"
    if answer.feasible != (answer.verdict is Verdict.KEPT):
        yield f"verdict: feasible is {answer.feasible}, verdict {answer.verdict}"


def _of_frontier(question: Question, answer: StreamAnswer) -> Iterator[str]:
    rates_per_s = [point.sustainable_rate_per_s for point in answer.frontier]
    if rates_per_s != sorted(rates_per_s):
        yield f"frontier: {rates_per_s}"
    for point in answer.frontier:
        rate_per_s = point.sustainable_rate_per_s
        if rate_per_s > 0:
            there = within(question.at_rate(printed_rate_per_s(rate_per_s)), point.nodes)
            if not is_feasible(there):
                yield f"frontier: {rate_per_s} refused with {point.nodes} nodes"
        yield from _of_other_settings(question, point.nodes, rate_per_s)
    if answer.feasible and answer.chosen is not None:
        own_per_s = printed_rate_per_s(answer.chosen.sustainable_rate_per_s)
        if not _holds(question, answer.configuration, own_per_s):
            yield f"max rate: {own_per_s} missed by the plan's own setting"
        if max(rates_per_s) < answer.chosen.sustainable_rate_per_s:
            yield f"max rate: {own_per_s} above the frontier"


def _of_other_settings(question: Question, nodes: int, rate_per_s: float) -> Iterator[str]:
    """Settings that sustain more than a row shows, among those with most room and some others.

    They are not ruled out by their moments, as in the search.
    """
    every = all_candidates(question, range(1, nodes + 1))
    next_per_s = _clearly_above(rate_per_s) if rate_per_s > 0 else 1e-3
    possible = every.take(noise_free_rate_per_s(every) >= next_per_s)
    if not len(possible):
        return
    order = np.argsort(possible.excess(next_per_s), kind="stable")
    random = np.random.default_rng(len(possible))
    num_chosen = min(_SETTINGS_BY_CHANCE, len(possible))
    chosen = {*order[:_SETTINGS_BY_ROOM].tolist()}
    chosen |= {*random.choice(len(possible), num_chosen, replace=False).tolist()}
    for place in sorted(chosen):
        setting = possible.alone(place)
        if setting.certified_excess(next_per_s) <= 0.0:
            yield f"frontier: {setting.settings()} sustains {next_per_s}, not {rate_per_s}"


def _of_stability(question: Question, answer: StreamAnswer) -> Iterator[str]:
    """Stable means up to the printed rate, and a latency is predicted up to the printed one."""
    configuration = answer.configuration
    prediction = _predicted(question, configuration, question.rate_per_s)
    most_per_s = prediction.sustainable_rate_per_s
    if not 0.0 < most_per_s < 1e11:
        return
    if prediction.stable != (question.rate_per_s <= most_per_s):
        yield f"stable: {prediction.stable} at {question.rate_per_s} of {most_per_s}"
    printed_per_s = parse_rate_per_s(format_rate_down(most_per_s))
    if not _predicted(question, configuration, printed_per_s).stable:
        yield f"stable: not at {printed_per_s}"
    above = _predicted(question, configuration, number_at(rank_of(most_per_s) + 1))
    if above.stable:
        yield f"stable: above {most_per_s}"
    for finding in (*prediction.findings, *above.findings):
        if finding.code is FindingCode.TOO_CLOSE_TO_SATURATION:
            predicted_per_s = finding.numbers["told_up_to_per_s"]
            if (
                predicted_per_s > 0
                and not _predicted(question, configuration, predicted_per_s).is_quotable
            ):
                yield f"predicted up to: not at {predicted_per_s}"
            more_per_s = _clearly_above(predicted_per_s) if predicted_per_s > 0 else 0.0
            if predicted_per_s > 0 and _predicted(question, configuration, more_per_s).is_quotable:
                yield f"predicted up to: {predicted_per_s}, and at {more_per_s}"


def _of_plan(question: Question, answer: Plan) -> Iterator[str]:
    if not _holds(question, answer.configuration, question.rate_per_s):
        yield "plan: its setting misses the target"
    fewer = answer.nodes - 1
    if fewer >= question.space.min_nodes and is_feasible(within(question, fewer)):
        yield f"plan: {fewer} nodes suffice"
    for rejection in answer.rejected:
        if _holds(question, rejection.configuration, question.rate_per_s):
            yield f"rejected: {rejection.change} meets the target"


def _of_nearest(question: Question, answer: InfeasiblePlan) -> Iterator[str]:
    if is_feasible(question):
        yield "infeasible: feasible when asked again"
    if math.isfinite(answer.floor_s):
        # The printed floor is rounded to the next number; what is below both is not reached.
        lower_s = number_at(rank_of(answer.floor_s) - 1)
        if is_feasible(question.with_limit(0, lower_s)):
            yield f"lowest: {lower_s} is below {answer.floor_s}"
    rates_per_s = [point.sustainable_rate_per_s for point in answer.frontier]
    for nearest in answer.nearest:
        there, _ = given_way(question, nearest)
        there = within(there, max(int(nearest.numbers["nodes"]), there.space.min_nodes))
        if fewest_nodes(there).nodes != nearest.numbers["nodes"]:
            yield f"nearest: {nearest.text}"
        if nearest.gives_way == "rate" and nearest.numbers["rate_per_s"] != rates_per_s[-1]:
            yield f"nearest: {nearest.text} beside {rates_per_s[-1]}"
        if nearest.gives_way == "limit":
            less_s = number_at(rank_of(nearest.numbers["limit_s"]) - 1)
            if is_feasible(question.with_limit(0, less_s)):
                yield f"nearest: {less_s} suffices, not {nearest.text}"


def _holds(question: Question, configuration: Configuration, rate_per_s: float) -> bool:
    """Whether one setting meets the target, by a prediction where its interval is the plan's."""
    nodes = configuration.executors // question.space.executors_per_node
    setting = (nodes, configuration.shuffle_partitions, configuration.trigger_s)
    there = question.at_rate(rate_per_s)
    holds = candidates_at(there, [setting]).certified_excess(rate_per_s) <= 0.0
    target = question.target
    if question.confidence == 0.95 and target.quantile in (None, 0.99):
        distribution = _predicted(question, configuration, rate_per_s).latency(target.metric)
        if distribution is None:
            return False
        interval = (
            distribution.interval90_mean_s
            if target.quantile is None
            else distribution.interval90_p99_s
        )
        assert interval is not None
        if abs(interval.high / target.limit_s - 1.0) > _SAME_LATENCY_RATIO:
            assert holds == (interval.high <= target.limit_s)
    return holds


def _predicted(question: Question, configuration: Configuration, rate_per_s: float) -> Prediction:
    unlimited = replace(configuration, max_offsets_per_trigger=None)
    arrivals = replace(question.profile.arrivals, rate_per_s=rate_per_s)
    return predict(question.profile, unlimited, arrivals)


def survey(first: int, last: int) -> Counter[str]:
    """How many questions there are, and how many answers contradict themselves, by what."""
    counts: Counter[str] = Counter()
    for seed in range(first, last):
        question = random_question(seed)
        if question is None:
            counts["no rate"] += 1
            continue
        answer = answer_to(question)
        counts["feasible" if answer.feasible else "infeasible"] += 1
        for text in contradictions(question, answer):
            counts[text.partition(":")[0]] += 1
            print(f"{seed}: {text}", flush=True)
        if seed % 10 == 9:
            print(f"{seed + 1}: {dict(counts)}", flush=True)
    return counts


if __name__ == "__main__":
    print(survey(int(sys.argv[1]), int(sys.argv[2])))
