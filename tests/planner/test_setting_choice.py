"""Among settings that keep the promises on the same nodes, the one that lasts is taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import headway
from headway.domain import Arrivals, Target
from headway.formats.profile_file import load_profile
from headway.planner import search
from headway.planner.candidates import Candidates, all_candidates
from headway.planner.explained_setting import ExplainedSetting
from headway.planner.question import SearchSpace
from headway.planner.setting_choice import as_fast_as_possible
from tests.factories import a_configuration, a_profile
from tests.planner.plans import plan
from tests.planner.survey import (
    calibrated,
    chosen_of,
    fewest_of,
    fills_slots,
    is_calm,
    random_question,
    survey,
)
from tests.seeds import first_of, seeds

SEEDS = range(60)


def merits(settings: Candidates) -> list[tuple[bool, ...]]:
    """Of each setting, most important first: what the profile speaks for, slots, calm, room."""
    rate_per_s = settings.question.rate_per_s
    columns = calibrated(settings), fills_slots(settings), is_calm(settings)
    roomy = settings.meets_by_moments(1.25 * rate_per_s)
    return list(zip(*(column.tolist() for column in (*columns, roomy)), strict=True))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_the_order_of_preference_holds_against_enumeration(first: int) -> None:
    planned = [seed for seed in range(first, first + 20) if fewest_of(seed) is not None]
    assert len(planned) >= 5
    for seed in planned:
        check_preference(seed)


def check_preference(seed: int) -> None:
    question, chosen = random_question(seed), chosen_of(seed)
    every = all_candidates(question, (int(chosen.nodes[0]),))
    met = every.take(every.meets_by_moments(question.rate_per_s))
    assert chosen.meets(question.rate_per_s)[0]
    (own,), others = merits(chosen), merits(met)
    assert own == max(others)
    if own[-1]:
        today = question.profile.baseline.shuffle_partitions
        alike = met.take(np.array([one == own for one in others]))
        if today in alike.partitions and own[2]:
            assert chosen.partitions[0] == today
        same = alike.take(alike.partitions == chosen.partitions[0])
        if own[2]:
            assert chosen.trigger_s[0] == same.trigger_s.max()


@pytest.mark.parametrize("seed", seeds(4, 12))
def test_the_preference_takes_no_node_more(seed: int) -> None:
    question, needed = random_question(seed), fewest_of(seed)
    answer = plan(
        question.profile,
        question.profile.arrivals,
        question.target,
        question.space,
        confidence=question.confidence,
    )
    assert answer.feasible == (needed is not None)
    if needed is not None:
        assert answer.nodes == needed


def test_no_plan_is_what_nobody_would_choose() -> None:
    counts = survey(SEEDS)
    assert counts["plans"] >= 20
    assert counts["infeasible"] >= 10
    assert counts["as fast as possible"] >= 2
    for avoidable in (
        "not calibrated, another is",
        "fewer partitions than slots, another has enough",
        "as fast as possible, a calm trigger does too",
    ):
        assert counts[avoidable] == 0, avoidable


def test_fewer_partitions_than_slots_are_taken_only_where_nothing_else_will_do() -> None:
    seen = a_profile().settings[0]
    today = replace(seen, configuration=a_configuration(shuffle_partitions=2))
    profile = replace(a_profile(), settings=(today,))
    space = SearchSpace(max_nodes=1, executors_per_node=2, cores_per_executor=4)
    target = Target.parse("p99 <= 5s")
    answer = plan(profile, Arrivals(rate_per_s=5000.0), target, space)
    assert answer.configuration.shuffle_partitions >= 8
    assert any(change.setting == "shuffle partitions" for change in answer.changes)
    pinned = replace(space, shuffle_partitions=2)
    assert plan(profile, Arrivals(rate_per_s=5000.0), target, pinned).feasible


def test_what_the_fastest_would_gain_is_reported_with_its_price() -> None:
    space = SearchSpace(max_nodes=1, executors_per_node=2, cores_per_executor=4)
    answer = plan(a_profile(), Arrivals(rate_per_s=5000.0), Target.parse("p99 <= 5s"), space)
    assert answer.configuration.trigger_s >= 0.5
    (faster,) = [one for one in answer.advice if one.text.startswith("running as fast as possible")]
    assert faster.latency_s is not None
    assert faster.latency_s < answer.planned_latency_s
    assert "busy cores instead of" in faster.text
    assert "a checkpoint every" in faster.text


def test_nothing_is_reported_of_a_trigger_that_is_fixed() -> None:
    space = SearchSpace(max_nodes=1, executors_per_node=2, cores_per_executor=4, trigger_s=2.0)
    answer = plan(a_profile(), Arrivals(rate_per_s=5000.0), Target.parse("p99 <= 5s"), space)
    assert not any(one.text.startswith("running as fast as possible") for one in answer.advice)


def test_what_cannot_be_kept_is_no_gain() -> None:
    question = replace(random_question(0), target=Target.parse("p99 <= 1ms"))
    chosen = a_configuration(executors=1, cores_per_executor=question.space.cores_per_executor)
    setting = ExplainedSetting(question=question, configuration=chosen, nodes=1, latency_s=5.0)
    assert list(as_fast_as_possible(setting)) == []


@pytest.mark.parametrize("seed", first_of([1, 4, 13], 1))
def test_what_some_nodes_sustain_does_not_depend_on_the_objective(seed: int) -> None:
    """Also rows with fewer nodes than a plan takes for its latency: they meet the target, too."""
    question = random_question(seed)
    fewest, fastest = (
        {point.nodes: point.sustainable_rate_per_s for point in search.plan(asked).frontier}
        for asked in (question, replace(question, objective="latency"))
    )
    shared = fewest.keys() & fastest.keys()
    assert [fastest[nodes] for nodes in shared] == [fewest[nodes] for nodes in shared]
    assert max(fastest) > max(fewest)


@pytest.mark.parametrize(("checkpoint", "expected_partitions"), [(None, 1), ("new", 2)])
def test_a_checkpoint_that_carries_more_is_kept_although_slots_stay_idle(
    checkpoint: str | None, expected_partitions: int
) -> None:
    profile = load_profile("examples/word-count.profile.yaml")
    runs = tuple(
        replace(run, configuration=replace(run.configuration, shuffle_partitions=1))
        for run in profile.settings
    )
    profile = replace(profile, state_partitions=1, settings=runs)

    def planned(partitions: int | None = None) -> tuple[int, float]:
        answer = headway.plan(
            profile,
            rate="5k/s",
            target="p99 <= 3s",
            checkpoint=checkpoint if partitions is None else None,
            partitions=partitions,
        )
        assert answer.chosen is not None
        return answer.configuration.shuffle_partitions, answer.chosen.sustainable_rate_per_s

    assert planned(1)[1] > planned(2)[1]
    assert planned()[0] == expected_partitions
