"""The nearest promises that can be kept, against enumeration; what each promise alone takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.api.results import as_text
from headway.digits import rounded_down, rounded_up
from headway.domain import (
    Arrivals,
    InfeasiblePlan,
    NearestTarget,
    NodeType,
    Promise,
    StreamAnswer,
    Target,
    parse_promise,
)
from headway.planner.candidates import all_candidates
from headway.planner.enumeration import first_sufficient
from headway.planner.explain import nearest
from headway.planner.explain.infeasible import lowest_latency_in_reach
from headway.planner.question import Question, SearchSpace
from headway.planner.tasks import with_source_partitions
from tests.factories import a_profile
from tests.planner.enumeration import random_case, search_by_moments
from tests.planner.plans import plan
from tests.seeds import seeds

ONE_NODE = SearchSpace(max_nodes=3, cores_per_executor=2)


def keeps(question: Question, nodes: int | None = None) -> bool:
    """Whether any setting of some nodes, or of any number of them, keeps all promises."""
    space = question.space
    counts = range(space.min_nodes, space.max_nodes + 1) if nodes is None else (nodes,)
    return any(
        bool(np.any(all_candidates(question, (count,)).meets(question.rate_per_s)))
        for count in counts
    )


def asked(seed: int, *also: str) -> Question:
    return replace(random_case(seed).question, also=tuple(a_promise(one) for one in also))


def a_promise(text: str) -> Promise:
    promise = parse_promise(text)
    assert isinstance(promise, Promise)
    return promise


def answered(question: Question) -> StreamAnswer:
    return plan(
        question.profile,
        question.profile.arrivals,
        question.target,
        question.space,
        further_targets=question.also,
        confidence=question.confidence,
    )


@pytest.fixture(autouse=True)
def _by_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    search_by_moments(monkeypatch)
    monkeypatch.setattr("headway.planner.candidates.MOST_CERTIFIED", 0)


@lru_cache(maxsize=64)
def infeasible_plan(seed: int, *also: str) -> InfeasiblePlan | None:
    answer = answered(asked(seed, *also))
    return None if answer.feasible else answer


def given_way(question: Question, one: NearestTarget) -> tuple[Question, Iterator[Question]]:
    """The question with the side that gives way, and the same with a little less of it."""
    numbers = one.numbers
    if one.gives_way == "limit":
        places = range(len(question.promises))
        (place,) = (
            place
            for place in places
            if one.text.startswith(
                str(question.with_limit(place, numbers["limit_s"]).promises[place])
            )
        )

        def limited(limit_s: float) -> Question:
            return question.with_limit(place, limit_s)

        return limited(numbers["limit_s"]), iter([limited(0.985 * numbers["limit_s"])])
    if one.gives_way == "rate":
        rate_per_s = numbers["rate_per_s"]
        return question.at_rate(rate_per_s), iter([question.at_rate(1.02 * rate_per_s)])
    if one.gives_way == "nodes":
        most = int(numbers["nodes"])
        space = replace(question.space, max_nodes=most)
        fewer = replace(question.space, max_nodes=most - 1)
        return replace(question, space=space), iter([replace(question, space=fewer)])
    if one.gives_way == "source":
        today = min(
            stage.num_source_tasks
            for stage in question.profile.stages
            if stage.num_source_tasks is not None
        )
        wider: Callable[[int], Question] = lambda count: replace(  # noqa: E731
            question, profile=with_source_partitions(question.profile, count)
        )
        count = int(numbers["source_partitions"])
        return wider(count), (wider(less) for less in range(today + 1, count))
    if one.gives_way == "trigger":
        assert question.space.trigger_s is not None
        return question.at_trigger(numbers["trigger_s"]), iter(())
    if one.gives_way == "confidence":
        surer = min(numbers["confidence"] + 0.01, question.confidence)
        bold = question.at_confidence(numbers["confidence"])
        return bold, iter([question.at_confidence(surer)])
    assert one.gives_way == "statistic"
    target = replace(question.target, quantile=numbers["quantile"])
    between = (
        replace(question, target=replace(question.target, quantile=quantile))
        for quantile in (0.95, 0.9, 0.75, 0.5)
        if numbers["quantile"] < quantile < (question.target.quantile or 0.0)
    )
    return replace(question, target=target), between


def check_nearest(question: Question, answer: InfeasiblePlan) -> None:
    for one in answer.nearest:
        if one.gives_way in ("outage", "burst", "promise"):
            continue
        there, nearer = given_way(question, one)
        nodes = int(one.numbers["nodes"])
        assert keeps(there, nodes), f"{one.text}: is not kept"
        for less in nearer:
            assert not keeps(less), f"{one.text}: {less.target} {less.rate_per_s} is nearer"
        fewer = range(there.space.min_nodes, nodes)
        assert not any(keeps(there, count) for count in fewer), f"{one.text}: with fewer nodes"


def check_the_nearest_of(asked_seeds: range, *also: str) -> None:
    infeasible = [
        (seed, one) for seed in asked_seeds if (one := infeasible_plan(seed, *also)) is not None
    ]
    assert len(infeasible) >= len(asked_seeds) / 5
    for seed, answer in infeasible:
        check_nearest(asked(seed, *also), answer)


@pytest.mark.parametrize("ten", seeds(1, 30))
def test_the_nearest_promises_are_those_of_enumeration(ten: int) -> None:
    check_the_nearest_of(range(10 * ten, 10 * ten + 10))


def test_with_a_recovery_promised_too_the_nearest_are_those_of_enumeration() -> None:
    check_the_nearest_of(range(6), "catch_up <= 10s after 30m")


def test_the_random_questions_give_way_on_every_side() -> None:
    expected, found = {"limit", "rate", "confidence", "statistic"}, set[str]()
    for seed in range(40):
        answer = infeasible_plan(seed)
        found |= {nearest.gives_way for nearest in answer.nearest} if answer is not None else set()
        if expected <= found:
            break
    assert expected <= found


def test_the_nearest_number_of_nodes_is_that_of_enumeration() -> None:
    wide = source_bound()
    profile = with_source_partitions(wide.profile, 64)
    question = replace(wide, profile=profile, space=SearchSpace(max_nodes=1))
    answer = answered(question)
    assert not answer.feasible
    assert "nodes" in {one.gives_way for one in answer.nearest}
    check_nearest(question, answer)


@pytest.mark.parametrize("seed", range(20))
def test_the_lowest_latency_in_reach_is_that_of_every_setting(seed: int) -> None:
    question = asked(seed)
    lowest_s, _ = lowest_latency_in_reach(question)
    space = question.space
    every = all_candidates(question, range(space.min_nodes, space.max_nodes + 1))
    assert lowest_s <= float(every.latency_s(question.rate_per_s).min()) * (1 + 1e-9)


def source_bound() -> Question:
    """Two source partitions hold up what one small node could carry."""
    profile = with_source_partitions(a_profile(), 1)
    stages = (
        replace(profile.stages[0], task_per_row_s=6e-5, task_fixed_s=0.01),
        *profile.stages[1:],
    )
    return Question(
        profile=replace(
            profile,
            stages=stages,
            arrivals=replace(profile.arrivals, rate_per_s=20_000.0),
        ),
        target=Target.parse("p99 <= 3s"),
        space=SearchSpace(max_nodes=4),
        confidence=0.95,
    )


def test_of_source_partitions_and_node_types_the_least_is_reported() -> None:
    """Named were 16 partitions and two large nodes where 4 and one small one suffice."""
    question = source_bound()
    small = NodeType(name="small", cores=4, memory_bytes=None, price_per_hour=0.2)
    large = NodeType(name="large", cores=8, memory_bytes=None, price_per_hour=0.4)
    answer = plan(
        question.profile,
        question.profile.arrivals,
        question.target,
        question.space,
        node_types=(large, small),
        objective="cost",
    )
    assert not answer.feasible
    (source,) = [one for one in answer.nearest if one.gives_way == "source"]
    fewest = next(
        count
        for count in range(2, 33)
        if any(
            keeps(
                replace(
                    question,
                    profile=with_source_partitions(question.profile, count),
                    space=replace(question.space, cores_per_executor=cores),
                )
            )
            for cores in (4, 8)
        )
    )
    assert source.numbers["source_partitions"] == fewest
    assert source.numbers["nodes"] == 1
    assert "1 node of small" in source.text


def needs(question: Question) -> dict[str, tuple[bool, int | None]]:
    answer = answered(question)
    assert not answer.feasible
    return {need.promise: (need.within, need.nodes) for need in answer.needs}


def test_the_promise_that_fails_is_named_with_what_each_alone_takes() -> None:
    """'No searched setting keeps p99 <= 2 s' was said where one node does."""
    profile = a_profile()
    question = Question(
        profile=profile,
        target=Target.parse("p99 <= 2s"),
        also=(a_promise("catch_up <= 2s after 3h"),),
        space=ONE_NODE,
        confidence=0.95,
    )
    found = needs(question)
    assert found["p99 <= 2.00 s"] == (True, 1)
    within, nodes = found["catch_up <= 2.00 s after 3 h"]
    assert not within
    assert nodes is None or nodes > ONE_NODE.max_nodes


def test_reasons_name_several_targets_in_one_sentence() -> None:
    further = [a_promise("p50 <= 20ms"), a_promise("mean <= 2s")]
    arrivals, target = a_profile().arrivals, Target.parse("p99 <= 2s")
    answer = plan(a_profile(), arrivals, target, ONE_NODE, further_targets=further)
    all_targets = "p99 <= 2.00 s, p50 <= 20 ms and mean <= 2.00 s"
    assert f"meets all of {all_targets}" in answer.binding[0]
    faster = Arrivals(rate_per_s=1e8)
    answer = plan(a_profile(), faster, target, ONE_NODE, further_targets=further[1:])
    assert "p99 <= 2.00 s and mean <= 2.00 s are met up to" in answer.binding[-1]


@pytest.mark.parametrize(
    "also",
    [
        ("p50 <= 20ms",),
        ("catch_up <= 2s after 3h",),
        ("p99 <= 2s during 400k/s for 2m",),
        ("catch_up <= 1s after 400k/s for 2m", "p95 <= 2s"),
    ],
)
def test_what_every_kind_of_promise_takes_alone_is_that_of_enumeration(
    also: tuple[str, ...],
) -> None:
    question = Question(
        profile=a_profile(),
        target=Target.parse("p99 <= 2s"),
        also=tuple(map(a_promise, also)),
        space=ONE_NODE,
        confidence=0.95,
    )
    answer = answered(question)
    assert not answer.feasible
    assert len(answer.needs) == 1 + len(also)
    for need, promise in zip(answer.needs, question.promises, strict=True):
        alone = question.of_alone(promise)
        counts = range(1, need.most_nodes + 1)
        alone = replace(alone, space=replace(alone.space, max_nodes=need.most_nodes))
        fewest = next((count for count in counts if keeps(alone, count)), None)
        assert need.nodes == fewest
        assert need.within == (fewest is not None and fewest <= ONE_NODE.max_nodes)
        if need.nodes is not None:
            assert need.reached_s is not None


def test_a_budget_that_is_too_small_is_named_with_what_it_buys() -> None:
    question = source_bound()
    wide = replace(question, profile=with_source_partitions(question.profile, 64))
    small = NodeType(name="small", cores=1, memory_bytes=None, price_per_hour=0.2, currency="EUR")
    answer = plan(
        wide.profile,
        wide.profile.arrivals,
        wide.target,
        SearchSpace(max_nodes=50),
        node_types=(small,),
        budget_per_hour=0.3,
    )
    assert not answer.feasible
    assert answer.budget_per_hour == 0.3
    (need,) = answer.needs
    assert not need.within
    assert need.nodes is not None
    assert need.cost_per_hour == pytest.approx(0.2 * need.nodes)
    (by_budget,) = [one for one in answer.nearest if one.gives_way == "budget"]
    assert by_budget.numbers["nodes"] == need.nodes
    assert by_budget.text.endswith(" EUR per hour")
    assert "budget of 0.3 EUR per hour" in as_text(answer)


@given(value=st.floats(1e-6, 1e9))
def test_rounding_has_three_digits_and_a_side(value: float) -> None:
    assert rounded_down(value) <= value * (1 + 1e-9)
    assert rounded_up(value) >= value * (1 - 1e-9)
    assert rounded_up(value) <= rounded_down(value) * 1.0101 * (1 + 1e-9)


@given(is_sufficient=st.sets(st.integers(0, 199)))
def test_a_place_that_will_do_is_found_and_nothing_close_below_it(is_sufficient: set[int]) -> None:
    place = first_sufficient(200, is_sufficient.__contains__)
    if place is None:
        assert len(is_sufficient) < 200
    else:
        assert place in is_sufficient
        assert not any(below in is_sufficient for below in range(max(place - 12, 0), place))


@pytest.mark.parametrize("below_ratio", [0.999, 0.99, 0.97, 0.94])
def test_a_limit_that_only_the_moments_hold_possible_still_has_a_nearest_one(
    below_ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moments may be below (T4): the limit shown is then the next that (T4) finds feasible."""

    def limits() -> list[tuple[float, int]]:
        found = plan(a_profile(), a_profile().arrivals, Target.parse("p99 <= 300ms"), ONE_NODE)
        assert isinstance(found, InfeasiblePlan)
        of_limit = [one.numbers for one in found.nearest if one.gives_way == "limit"]
        return [(numbers["limit_s"], round(numbers["nodes"])) for numbers in of_limit]

    usual = limits()
    assert len(usual) == 1
    lowest_s = nearest._lowest_s
    monkeypatch.setattr(
        nearest, "_lowest_s", lambda question, place: below_ratio * lowest_s(question, place)
    )
    assert limits() == usual


def test_a_fixed_trigger_is_named_as_what_takes_the_time_and_gives_way() -> None:
    profile = a_profile()
    question = Question(
        profile=replace(profile, arrivals=replace(profile.arrivals, rate_per_s=2000.0)),
        target=Target.parse("p99 <= 1s"),
        space=SearchSpace(max_nodes=2, trigger_s=5.0),
        confidence=0.95,
    )
    answer = answered(question)
    assert not answer.feasible
    (floor,) = [text for text in answer.binding if text.startswith("no number of nodes")]
    words = "no number of nodes suffices: waiting for a trigger of 5.00 s, driver and one task"
    assert floor.startswith(words)
    (trigger,) = [target for target in answer.nearest if target.gives_way == "trigger"]
    assert 0 < trigger.numbers["trigger_s"] < 1
    check_nearest(question, answer)
    free = answered(question.at_trigger(None))
    assert free.feasible
    assert free.configuration.trigger_s == trigger.numbers["trigger_s"]
    short = answered(replace(question.at_trigger(0.1), target=Target.parse("p99 <= 60ms")))
    assert not any("waiting for a trigger" in text for text in short.binding)
