"""The fewest nodes at many rates: each as if that rate alone had been asked."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from headway.domain import Target
from headway.models.batches import batch_chain
from headway.planner.candidates import all_candidates
from headway.planner.fewest_nodes import fewest_nodes
from headway.planner.nodes_by_rate import NodesByRate
from headway.planner.question import Question, SearchSpace
from tests.factories import a_profile
from tests.planner.enumeration import random_profile
from tests.planner.jobs import windowed
from tests.seeds import seeds

SPACE = SearchSpace(max_nodes=60, cores_per_executor=4)


def a_question(seed: int) -> Question:
    random = np.random.default_rng(seed)
    profile = random_profile(random)
    wide = replace(profile.stages[0], num_source_tasks=int(random.integers(16, 65)))
    return Question(
        profile=replace(profile, stages=(wide, *profile.stages[1:])),
        target=Target.parse(f"p99 <= {random.uniform(1.5, 8.0):.2f}s"),
        space=replace(SPACE, cores_per_executor=int(random.integers(1, 5))),
        confidence=0.95,
    )


@pytest.mark.parametrize("seed", seeds(2, 40))
def test_every_rate_gets_what_it_gets_alone(seed: int) -> None:
    """Against every count at every rate, few rates and so many that counts are narrowed first."""
    question = a_question(seed)
    rates = np.geomspace(500.0, 1e6, 24).tolist()
    alone = [fewest_nodes(question.at_rate(rate)).nodes for rate in rates]
    kept = next((place for place, nodes in enumerate(alone) if nodes is None), len(rates))
    if not kept:
        assert NodesByRate(question).fewest_nodes(rates) is None
        return
    for step in (1, 7):
        asked = rates[:kept][::step]
        found = NodesByRate(question).fewest_nodes(asked[::-1])
        assert found == tuple(alone[:kept][::step][::-1])
    again = NodesByRate(question)
    one_by_one = [again.fewest_nodes([rate]) for rate in rates]
    assert one_by_one == [None if nodes is None else (nodes,) for nodes in alone]


def test_some_questions_climb_many_steps() -> None:
    """The test above would say little if all jobs needed one node or two."""
    heights = []
    for seed in range(4):
        nodes_by_rate = NodesByRate(a_question(seed))
        for peak in (1e6, 3e5, 1e5, 3e4):
            found = nodes_by_rate.fewest_nodes(np.linspace(500.0, peak, 24).tolist())
            if found is not None:
                heights.append(len(set(found)))
                break
    assert max(heights) >= 5
    assert np.mean(heights) >= 3


def test_rates_close_to_an_edge_fall_on_their_side_of_it() -> None:
    """As near as rounding allows, where the highest rate of a count is known by a thousandth."""
    question = a_question(3)
    nodes_by_rate = NodesByRate(question)
    found = nodes_by_rate.fewest_nodes(np.linspace(500.0, 6e4, 200).tolist())
    assert found is not None
    assert len(set(found)) > 2
    for nodes in sorted(set(found))[:-1]:
        settings = all_candidates(question, (nodes,))
        low, high = 500.0, 1e6
        for _ in range(50):
            middle = np.sqrt(low * high)
            low, high = (middle, high) if settings.meets_by_moments(middle).any() else (low, middle)
        below, above = low * (1 - 1e-9), high * (1 + 1e-9)
        first = [nodes_by_rate.fewest_nodes([rate]) for rate in (below, above)]
        alone = [fewest_nodes(question.at_rate(rate)).nodes for rate in (below, above)]
        assert first == [(count,) for count in alone]


def test_no_rate_at_all_still_takes_a_node() -> None:
    question = Question(
        profile=a_profile(), target=Target.parse("p99 <= 5s"), space=SPACE, confidence=0.95
    )
    assert NodesByRate(question).fewest_nodes([0.0, 100.0]) == (1, 1)


def test_of_windows_each_rate_is_asked_by_itself() -> None:
    """Their latency may fall as the rate rises, so that one rate tells nothing of another."""
    question = Question(
        profile=windowed(),
        target=Target.parse("window p95 <= 18s"),
        space=replace(SPACE, max_nodes=12),
        confidence=0.9,
    )
    rates = np.geomspace(200.0, 2e5, 15).tolist()
    alone = [fewest_nodes(question.at_rate(rate)).nodes for rate in rates]
    kept = [rate for rate, nodes in zip(rates, alone, strict=True) if nodes is not None]
    assert kept
    assert NodesByRate(question).fewest_nodes(kept) == tuple(n for n in alone if n is not None)


@pytest.mark.parametrize("seed", seeds(2, 40))
def test_rates_that_are_foreseen_change_nothing(seed: int) -> None:
    """Of many rates close to each other, each gets what enumeration of every setting finds."""
    question = a_question(seed + 40)
    for peak_per_s in (3e5, 1e5, 3e4, 1e4, 3e3):
        rates = np.geomspace(peak_per_s, 0.1 * peak_per_s, 120).tolist()
        nodes_by_rate = NodesByRate(question, rates)
        answered = nodes_by_rate.fewest_nodes(rates) or ()
        if len(set(answered)) > 1:
            break
    if not answered:
        assert NodesByRate(question).fewest_nodes(rates) is None
        return
    at_steps = [place for place in range(1, 120) if answered[place] != answered[place - 1]] or [1]
    for place in {at_steps[0] - 1, at_steps[0], at_steps[-1] - 1, at_steps[-1]}:
        settings = all_candidates(question.at_rate(rates[place]), range(1, answered[place] + 1))
        meeting = settings.take(settings.meets(rates[place]))
        assert meeting.nodes.min() == answered[place]
    assert nodes_by_rate.fewest_nodes(rates[3:90:7]) == answered[3:90:7]


@pytest.mark.parametrize("seed", seeds(2, 40))
def test_sizes_that_are_left_out_miss_the_targets(seed: int) -> None:
    """Against every setting, where the last rates are more than any count sustains."""
    question = a_question(seed + 80)
    nodes_by_rate = NodesByRate(question)
    rates = np.geomspace(1e4, 1e6, 12)
    answered = [nodes_by_rate.fewest_nodes([rate]) for rate in rates.tolist()]
    for rate, nodes in zip(rates[::3].tolist(), answered[::3], strict=True):
        most = question.space.max_nodes if nodes is None else nodes[0]
        counts = range(max(1, most - 3), most + 1)
        settings = all_candidates(question.at_rate(rate), counts)
        meeting = settings.nodes[settings.meets(rate)]
        assert set(meeting.tolist()) == (set() if nodes is None else {most})


def test_rates_of_many_jobs_take_few_chains() -> None:
    """About twenty for each count where noise leaves many settings open, not one for each rate."""
    question = a_question(3)
    batch_chain._chain_of.cache_clear()
    answered = NodesByRate(question).fewest_nodes(np.linspace(500.0, 6e4, 900).tolist())
    assert answered is not None
    assert batch_chain._chain_of.cache_info().misses <= 30 * len(set(answered))


def test_with_a_limit_of_files_each_rate_is_asked_by_itself() -> None:
    """At low rates batches are short, and write more files in an hour than at high ones."""
    limited = replace(a_question(1), most_files_per_hour=20_000.0)
    rates = np.geomspace(500.0, 2e4, 5).tolist()
    alone = [fewest_nodes(limited.at_rate(rate)).nodes for rate in rates]
    feasible = [rate for rate, nodes in zip(rates, alone, strict=True) if nodes is not None]
    assert feasible
    assert NodesByRate(limited).fewest_nodes(feasible) == tuple(n for n in alone if n is not None)


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_what_is_known_without_a_search_is_never_more(seed: int) -> None:
    """And a nodes_by_rate that was searched elsewhere knows what it found, without its settings."""
    question = a_question(seed + 80)
    for peak_per_s in (3e5, 1e5, 3e4, 1e4, 3e3):
        rates = np.geomspace(0.1 * peak_per_s, peak_per_s, 12).tolist()
        nodes_by_rate = NodesByRate(question)
        least, fewest = nodes_by_rate.least_nodes(rates), nodes_by_rate.fewest_nodes(rates)
        if fewest is not None:
            break
    assert least is not None
    assert fewest is not None
    assert all(fewer <= count for fewer, count in zip(least, fewest, strict=True))
    brought = pickle.loads(pickle.dumps(nodes_by_rate))
    assert brought.least_nodes(rates) == fewest
    assert len(pickle.dumps(brought)) < 100_000
