"""The search space: its limits, and the choices it offers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.planner.question import SearchSpace
from tests.factories import a_configuration, a_profile


def test_slots_are_nodes_times_executors_times_cores() -> None:
    assert SearchSpace(max_nodes=9, executors_per_node=3, cores_per_executor=5).num_slots(2) == 30


@pytest.mark.parametrize("name", ["max_nodes", "executors_per_node", "cores_per_executor"])
def test_counts_start_at_one(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        SearchSpace(**{"max_nodes": 1, name: 0})  # type: ignore[arg-type]


def test_pinned_partitions_start_at_one() -> None:
    with pytest.raises(ValueError, match="shuffle_partitions"):
        SearchSpace(max_nodes=1, shuffle_partitions=0)


@pytest.mark.parametrize("trigger_s", [-1.0, float("nan"), float("inf")])
def test_a_pinned_trigger_is_a_number_of_seconds(trigger_s: float) -> None:
    with pytest.raises(ValueError, match="trigger_s"):
        SearchSpace(max_nodes=1, trigger_s=trigger_s)


def test_what_is_pinned_is_the_only_choice() -> None:
    space = SearchSpace(max_nodes=4, shuffle_partitions=7, trigger_s=13.0)
    assert space.partition_choices(a_profile(), 3) == (7,)
    assert space.trigger_choices_s(a_profile(), 1.0) == (13.0,)


def test_partitions_of_two_nodes_of_three_cores() -> None:
    space = SearchSpace(max_nodes=2, cores_per_executor=3)
    choices = space.partition_choices(a_profile(), 2)
    # Powers of two up to four waves, one to four whole waves, and the eight of today.
    assert choices == (1, 2, 4, 6, 8, 12, 16, 18, 24)


def test_a_query_without_exchange_has_no_partitions_to_choose() -> None:
    profile = replace(a_profile(), stages=a_profile().stages[:1])
    assert SearchSpace(max_nodes=9).partition_choices(profile, 9) == (8,)


def test_triggers_stay_below_twice_the_limit_and_start_at_zero() -> None:
    space = SearchSpace(max_nodes=1)
    assert space.trigger_choices_s(a_profile(), 0.3) == (0.0, 0.1, 0.2, 0.25, 0.5)
    seen = replace(a_profile().settings[0], configuration=a_configuration(trigger_s=0.42))
    unusual = replace(a_profile(), settings=(seen,))
    assert 0.42 in space.trigger_choices_s(unusual, 0.3)
    assert 0.42 not in space.trigger_choices_s(unusual, 0.2)


@given(
    nodes=st.integers(1, 400),
    executors=st.integers(1, 4),
    cores=st.integers(1, 32),
)
def test_partition_choices_are_sorted_and_hold_todays(
    nodes: int, executors: int, cores: int
) -> None:
    space = SearchSpace(max_nodes=400, executors_per_node=executors, cores_per_executor=cores)
    choices = space.partition_choices(a_profile(), nodes)
    assert list(choices) == sorted(set(choices))
    assert 8 in choices
    slots = nodes * executors * cores
    assert all(1 <= choice <= max(4 * slots, 8) for choice in choices)
    assert slots in choices or slots > 4096


@given(limits_s=st.lists(st.floats(0.01, 100.0), min_size=2, max_size=2))
def test_a_laxer_limit_offers_no_fewer_triggers(limits_s: list[float]) -> None:
    space = SearchSpace(max_nodes=1)
    strict, lax = (space.trigger_choices_s(a_profile(), limit_s) for limit_s in sorted(limits_s))
    assert set(strict) <= set(lax)
