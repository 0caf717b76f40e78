"""The one search over sizes: the fewest nodes of each offer, then the best, or the nearest."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import get_args

import pytest

from headway.domain import Objective
from headway.planner.enumeration import (
    Fewest,
    best_count,
    enumerated,
    fewest_of,
    spread_counts,
)


@dataclass(frozen=True, kw_only=True)
class Size:
    """So many nodes of an offer."""

    nodes: int
    price: float
    times_s: tuple[float, ...]

    @property
    def cost(self) -> float:
        return self.nodes * self.price

    @property
    def planned_s(self) -> float:
        return self.times_s[self.nodes - 1]


@dataclass(frozen=True, kw_only=True)
class Offer:
    """Times of 1, 2, ... nodes; a time up to the limit keeps the promise."""

    times_s: tuple[float, ...]
    limit_s: float = 1.0
    price: float = 1.0
    most_room: float = 1.0

    def fewest(self) -> Fewest:
        most = len(self.times_s)
        return fewest_of(range(1, most + 1), self.keeps, max_nodes=most, tries_every=True)

    def keeps(self, nodes: int) -> bool:
        return self.of(nodes).planned_s <= self.limit_s

    def of(self, nodes: int) -> Size:
        return Size(nodes=nodes, price=self.price, times_s=self.times_s)

    def size(self, fewest: int, objective: Objective) -> Size:
        if objective == "latency":
            return self.nearest()
        return self.of(fewest)

    def nearest(self) -> Size:
        return min(map(self.of, range(1, len(self.times_s) + 1)), key=lambda one: one.planned_s)


@pytest.mark.parametrize("objective", get_args(Objective))
def test_the_size_is_that_of_a_scan_over_all_offers_and_nodes(objective: Objective) -> None:
    drawn = random.Random(5)
    for _ in range(300):
        offers = [
            Offer(
                times_s=tuple(drawn.uniform(0.5, 2.5) for _ in range(drawn.randint(1, 6))),
                price=drawn.choice([0.5, 1.0, 3.0]),
                most_room=drawn.randint(1, 9),
            )
            for _ in range(drawn.randint(1, 4))
        ]
        every = [(place, one.of(nodes)) for place, one in enumerate(offers)
                 for nodes in range(1, len(one.times_s) + 1)]  # fmt: skip
        kept = [(place, one) for place, one in every if one.planned_s <= 1.0]
        index, size, fewest = enumerated(offers, objective)
        assert (fewest.nodes is not None) == bool(kept)
        if not kept:
            assert size.planned_s == min(one.planned_s for _, one in every)
        elif objective == "latency":
            assert size.planned_s == min(one.planned_s for _, one in kept)
        elif objective == "cost":
            assert size.cost == min(one.cost for _, one in kept)
        else:
            assert size.nodes == min(one.nodes for _, one in kept)
        assert size.times_s == offers[index].times_s


def test_of_offers_that_are_all_over_capacity_the_one_with_most_room_is_the_nearest() -> None:
    over = (float("inf"),)
    offers = [Offer(times_s=over, most_room=room) for room in (4, 16, 8)]
    assert enumerated(offers, "nodes")[0] == 1


@pytest.mark.parametrize("objective", get_args(Objective))
def test_of_offers_with_as_much_room_the_cheapest_is_the_nearest(objective: Objective) -> None:
    offers = [Offer(times_s=(float("inf"),), price=price) for price in (3.0, 1.0, 2.0)]
    assert enumerated(offers, objective)[0] == 1
    assert enumerated(offers[::-1], objective)[0] == 1


def test_what_is_tried_one_by_one_is_proved_and_what_is_halved_is_not() -> None:
    counts = range(1, 501)

    def keeps(nodes: int) -> bool:
        return nodes >= 300

    every = fewest_of(counts, keeps, max_nodes=500, tries_every=True)
    some = fewest_of(counts, keeps, max_nodes=500, tries_every=False)
    assert every.nodes == some.nodes == 300
    assert every.optimality.proved
    assert not some.optimality.proved
    none = fewest_of([], keeps, max_nodes=500, tries_every=False)
    assert (none.nodes, none.optimality.least_nodes, none.optimality.proved) == (None, 501, True)


def test_many_counts_are_spread_and_hold_both_ends() -> None:
    for most in (2, 12, 64):
        for max_nodes in (1, most, most + 1, 10_000):
            counts = spread_counts(max_nodes, most)
            assert counts == sorted(set(counts))
            assert (counts[0], counts[-1]) == (1, max_nodes)
            assert len(counts) <= most


@pytest.mark.parametrize("most", [1, 2, 12, 13, 100, 1000])
@pytest.mark.parametrize("best", [1, 2, 7, 60, 333, 999])
def test_the_best_of_many_numbers_is_found_around_the_best_of_those_tried(
    most: int, best: int
) -> None:
    tried: list[int] = []

    def value(nodes: int) -> float:
        tried.append(nodes)
        return abs(nodes - best)

    assert best_count(spread_counts(most, 12), value) == min(best, most)
    assert len(tried) == len(set(tried)) <= 60
