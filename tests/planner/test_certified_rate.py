"""What any output names as feasible is feasible when it is asked for, by the chain too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.digits import number_at, rank_of, rounded_down, rounded_up
from headway.domain import Configuration, DurationNoise, StreamAnswer, Target
from headway.models.batches import batch_chain
from headway.models.job.predict import predict
from headway.models.laws.normal import ndtr
from headway.planner.candidates import Candidates, all_candidates, candidates_at
from headway.planner.certified_rate import certified_rate_per_s
from headway.planner.frontier import sustainable_rates_per_s
from headway.planner.noise_free import noise_free_rate_per_s
from headway.planner.question import Question, SearchSpace
from headway.planner.verdict import excess_at_score, kept_probability
from tests.factories import a_profile
from tests.planner.enumeration import answer_of, fewest_of
from tests.planner.plans import plan
from tests.planner.test_nearest import asked, given_way
from tests.seeds import first_of, seeds

MOST_CHAINS = 30  # where the gain of errors decides, another search with two chains a look follows


def alone(question: Question, configuration: Configuration) -> Question:
    """The question with nothing left to choose but one setting."""
    nodes = configuration.executors // question.space.executors_per_node
    space = replace(
        question.space,
        min_nodes=nodes,
        max_nodes=nodes,
        shuffle_partitions=configuration.shuffle_partitions,
        trigger_s=configuration.trigger_s,
    )
    return replace(question, space=space)


def settings_named(
    question: Question, answer: StreamAnswer
) -> list[tuple[str, float, Question, Configuration]]:
    """Every max rate of an answer with the question that asks for it."""
    named = [
        (f"frontier, {point.nodes}", point.sustainable_rate_per_s, point.configuration)
        for point in answer.frontier
    ]
    if answer.chosen is not None:
        named.append(("own", answer.chosen.sustainable_rate_per_s, answer.chosen.configuration))
    if answer.feasible:
        named += [(one.rule, one.sustainable_rate_per_s, one.configuration) for one in answer.rules]
    return [
        (name, rate_per_s, alone(question.at_rate(rate_per_s), configuration), configuration)
        for name, rate_per_s, configuration in named
        if configuration is not None and rate_per_s > 0
    ]


@pytest.mark.parametrize("first", first_of(range(0, 60, 20), 1))
def test_the_nearest_promises_are_planned_when_they_are_asked_for(first: int) -> None:
    num_asked = 0
    for seed in range(first, first + 20):
        answer = answer_of(seed)
        for one in () if answer.feasible else answer.nearest:
            there, _ = given_way(asked(seed), one)
            most = max(int(one.numbers["nodes"]), there.space.min_nodes)
            within = replace(there, space=replace(there.space, max_nodes=most))
            assert fewest_of(within) is not None, f"{seed}: {one.text}"
            num_asked += 1
    assert num_asked >= 8


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_every_max_rate_is_planned_when_it_is_asked_for(seed: int) -> None:
    question = asked(seed)
    answer = answer_of(seed)
    for name, rate_per_s, there, configuration in settings_named(question, answer):
        assert rate_per_s in (rounded_down(rate_per_s), question.rate_per_s), name
        asked_for = (configuration.shuffle_partitions, configuration.trigger_s)
        again = candidates_at(there, [(there.space.min_nodes, *asked_for)])
        assert again.meets(rate_per_s)[0], name


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_an_answer_has_one_max_rate(seed: int) -> None:
    """An infeasible plan said "max rate 88.5k/s" beside "feasible at 87.2k/s"."""
    question = asked(seed)
    answer = answer_of(seed)
    rates_per_s = [point.sustainable_rate_per_s for point in answer.frontier]
    assert rates_per_s == sorted(rates_per_s)
    if answer.feasible:
        assert answer.chosen is not None
        assert answer.chosen.sustainable_rate_per_s >= question.rate_per_s
        of_nodes = [one for one in answer.frontier if one.nodes >= answer.nodes]
        assert all(
            one.sustainable_rate_per_s >= answer.chosen.sustainable_rate_per_s for one in of_nodes
        )
        fewer = [one for one in answer.frontier if one.nodes < answer.nodes]
        assert all(one.sustainable_rate_per_s < question.rate_per_s for one in fewer)
        return
    assert all(rate_per_s < question.rate_per_s for rate_per_s in rates_per_s)
    for one in answer.nearest:
        if one.gives_way == "rate":
            assert one.numbers["rate_per_s"] == rates_per_s[-1]


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_a_max_rate_takes_few_chains(seed: int) -> None:
    question = asked(seed)
    candidates = all_candidates(question, (question.space.max_nodes,))
    rates_per_s = sustainable_rates_per_s(candidates)
    place = int(np.argmax(rates_per_s))
    batch_chain._chain_of.cache_clear()
    found_per_s = certified_rate_per_s(
        candidates.take(np.array([place])), float(rates_per_s[place])
    )
    assert 0.0 <= found_per_s <= 1.002 * rates_per_s[place]
    assert batch_chain._chain_of.cache_info().misses <= MOST_CHAINS


def test_where_nothing_is_borne_out_the_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []

    def never(_setting: Candidates, rate_per_s: float, **_asked: bool) -> float:
        looked_at.append(rate_per_s)
        return 1.0

    monkeypatch.setattr(Candidates, "certified_excess", never)
    setting = all_candidates(asked(0), (1,)).take(np.array([0]))
    assert certified_rate_per_s(setting, 88_500.0) == 0.0
    assert len(looked_at) <= 8
    assert certified_rate_per_s(setting, 0.0) == 0.0


@pytest.mark.parametrize("seed", seeds(2, 10))
def test_the_probability_is_that_of_trying_every_step(seed: int) -> None:
    """Regula falsi finds the step that halving finds; a tighter limit is never likelier kept."""
    question = asked(seed)
    limits_s = question.target.limit_s * np.array([0.5, 0.8, 1.0, 1.1, 1.5])
    settings = [
        candidates_at(question.with_limit(0, limit_s), [(question.space.max_nodes, 4, 1.0)])
        for limit_s in limits_s.tolist()
    ]
    found = [kept_probability(setting) for setting in settings]
    scores = (np.arange(128) + 0.5) * 6.0 / 128 - 3.0
    # Limit by limit at each score: they share its chain.
    tried = [
        [excess_at_score(setting, score - 3.0 / 128) <= 0.0 for setting in settings]
        for score in scores
    ]
    for probability, kept in zip(found, zip(*tried, strict=True), strict=True):
        if list(kept) == sorted(kept, reverse=True) and kept[0]:
            assert probability == pytest.approx(float(ndtr(scores[sum(kept) - 1])))
    assert found == sorted(found)


@pytest.mark.parametrize("seed", seeds(2, 12))
def test_feasible_and_probable_are_one_computation(seed: int) -> None:
    """Within half a per cent of a limit, plans were infeasible with the verdict "kept"."""
    question = asked(seed)
    candidates = all_candidates(question, (question.space.max_nodes,))
    place = int(np.argmin(candidates.excess(question.rate_per_s)))
    setting = candidates.alone(place)
    latency_s = float(setting.latency_s(question.rate_per_s)[0])
    limit_s = latency_s if np.isfinite(latency_s) else question.target.limit_s
    for ratio in (0.98, 0.995, 0.999, 0.9999, 1.0001, 1.001, 1.005, 1.02):
        there = replace(setting, question=question.with_limit(0, ratio * limit_s))
        is_met = bool(there.meets(question.rate_per_s)[0])
        assert is_met == (kept_probability(there) >= question.confidence), ratio
        if np.isfinite(latency_s):
            assert is_met == (ratio > 1.0), ratio


def test_a_target_is_ever_less_probable_beyond_capacity() -> None:
    """Where batches grow without bound, their size made any duration look possible."""
    question = asked(0)
    setting = candidates_at(question, [(question.space.max_nodes, 4, 1.0)])
    stable_up_to_per_s = float(noise_free_rate_per_s(setting)[0])
    probabilities = [
        kept_probability(candidates_at(question.at_rate(rate_per_s), setting.settings()))
        for rate_per_s in stable_up_to_per_s * np.array([0.7, 1.0, 1.2, 2.0, 10.0])
    ]
    assert probabilities == sorted(probabilities, reverse=True)
    assert probabilities[-1] < 0.01


def test_what_a_prediction_has_a_latency_for_is_refused_at_its_upper_end() -> None:
    """A plan called "over capacity" what a prediction showed stable, with the target met."""
    noise = DurationNoise(batch_ratio=0.3, autocorrelation=0.0, run_to_run_ratio=0.4)
    profile = replace(a_profile(), noise=noise)
    space = SearchSpace(max_nodes=1, cores_per_executor=4)
    target = Target.parse("p99 <= 30s")
    most_per_s = predict(
        profile, profile.baseline, replace(profile.arrivals, rate_per_s=1.0)
    ).sustainable_rate_per_s
    answers = [
        plan(profile, replace(profile.arrivals, rate_per_s=ratio * most_per_s), target, space)
        for ratio in (0.35, 0.4, 0.45, 0.5, 0.55, 0.6)
    ]
    refused = [one for one in answers if not one.feasible and one.prediction.is_quotable]
    assert refused
    for answer in refused:
        if np.isinf(answer.floor_s):
            assert "longer than expected, the upper end for 95% confidence" in answer.binding[0]
            assert "over capacity" not in answer.binding[0]


@given(st.floats(1e-9, 1e12))
def test_three_digits_are_the_next_below_and_above(value: float) -> None:
    low, high = rounded_down(value), rounded_up(value)
    assert low <= value * (1.0 + 1e-10)
    assert high >= value * (1.0 - 1e-10)
    assert number_at(rank_of(low)) == low
    assert high in (low, number_at(rank_of(low) + 1))
