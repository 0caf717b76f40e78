"""The common search over sizes: the fewest nodes of each offer, and the best of all offers.

Streaming queries, batch jobs and DStreams applications are passed here as `Offered`: their own
modules know what they do on a number of nodes, and this one decides which size is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from headway.assumptions.planning import NODE_COUNTS_TRIED, NODE_COUNTS_TRIED_BELOW
from headway.domain import NodeType, Objective, Optimality
from headway.errors import InputError, argument
from headway.units import counted

#: Said of a neighbour that only the objective of the lowest latency rules out.
IS_SLOWER = ", which meets the target, too, and is slower"


class Size(Protocol):
    """Criteria by which sizes are compared."""

    @property
    def nodes(self) -> int:
        """Nodes to buy."""

    @property
    def cost(self) -> float | None:
        """Their cost; None without prices."""

    @property
    def planned_s(self) -> float:
        """Value for the first target, at the planned confidence [s]."""


AnyOffer = TypeVar("AnyOffer")
Sized = TypeVar("Sized", bound=Size)
SizedOut = TypeVar("SizedOut", bound=Size, covariant=True)


class Fewest(NamedTuple):
    """The fewest nodes, None if no number is enough, and how far they can be from the optimum."""

    nodes: int | None
    optimality: Optimality


class Offered(Protocol[SizedOut]):
    """A job of any kind on the nodes of one offer."""

    @property
    def most_room(self) -> float:
        """Slots of the maximum number of nodes, in those of the profiled speed."""

    def fewest(self) -> Fewest:
        """The fewest nodes that meet every target."""

    def size(self, fewest: int, objective: Objective) -> SizedOut:
        """The best size for the objective, given the fewest nodes."""

    def nearest(self) -> SizedOut:
        """The nearest size if no number of nodes meets the targets."""


def enumerated(offers: Sequence[Offered[Sized]], objective: Objective) -> tuple[int, Sized, Fewest]:
    """The best size of one or more offers for the objective; if none is feasible, the nearest one.

    Before it the index of its offer, behind it what was found for fewer nodes. Each offer has its
    own fewest nodes; the objective decides between them: theory.md (P11).
    """
    all_fewest = [offer.fewest() for offer in offers]
    feasible = _best_feasible(offers, all_fewest, objective)
    if feasible is not None:
        return feasible
    missed = [
        (index, offer.nearest(), fewest)
        for index, (offer, fewest) in enumerate(zip(offers, all_fewest, strict=True))
    ]

    def rank(choice: tuple[int, Sized, Fewest]) -> tuple[float, ...]:
        index, size, _ = choice
        # Of those over capacity, the one with the most room, and of these the cheapest.
        return size.planned_s, -offers[index].most_room, *_rank(size, objective)

    return min(missed, key=rank)


def enumerated_if_feasible(
    offers: Sequence[Offered[Sized]], objective: Objective
) -> tuple[int, Sized, Fewest] | None:
    """The same, or None if none is feasible, which is quicker than finding the nearest one."""
    return _best_feasible(offers, [offer.fewest() for offer in offers], objective)


def _best_feasible(
    offers: Sequence[Offered[Sized]], all_fewest: Sequence[Fewest], objective: Objective
) -> tuple[int, Sized, Fewest] | None:
    feasible = [
        (index, offer.size(fewest.nodes, objective), fewest)
        for index, (offer, fewest) in enumerate(zip(offers, all_fewest, strict=True))
        if fewest.nodes is not None
    ]
    return min(feasible, key=lambda choice: _rank(choice[1], objective), default=None)


def best_of(sizes: Sequence[Sized], objective: Objective) -> Sized:
    """The best one for the objective, of one or more that meet every target.

    Ties go to the lower cost, then to fewer nodes, then to the one named first.
    """
    return min(sizes, key=lambda size: _rank(size, objective))


def _rank(size: Size, objective: Objective) -> tuple[float, ...]:
    cost = math.inf if size.cost is None else size.cost
    if objective == "cost":
        return cost, size.nodes
    if objective == "latency":
        return size.planned_s, cost, size.nodes
    return size.nodes, cost


def require_prices(
    objective: Objective, node_types: Sequence[NodeType], budget_per_hour: float | None
) -> None:
    """Refuse an objective or a budget for which a node type lacks its price."""
    if objective != "cost" and budget_per_hour is None:
        return
    unpriced = [node_type.name for node_type in node_types if node_type.price_per_hour is None]
    if unpriced or not node_types:
        needs = f"{argument('objective')} cost" if objective == "cost" else argument("budget")
        without_price = ", ".join(unpriced) or f"a node type ({argument('node_types')})"
        raise InputError(f"{needs} needs the price of {without_price}; give it, e.g. price=0.192")


def affordable_nodes(
    max_nodes: int, node_type: NodeType | None, budget_per_hour: float | None
) -> int:
    """Maximum number of nodes of a type, by number and by budget; 0 if one is too expensive.

    >>> from headway.domain import NodeType
    >>> affordable_nodes(50, NodeType.parse("a:cores=4,memory=8g,price=0.2"), 1.0)
    5
    """
    price = None if node_type is None else node_type.price_per_hour
    if budget_per_hour is None or price is None:
        return max_nodes
    return min(max_nodes, math.floor(budget_per_hour / price + 1e-9))


def too_expensive_text(node_type: NodeType, budget_per_hour: float | None) -> str:
    """Why no node of a type can be bought."""
    return (
        f"one node costs {node_type.price_per_hour:g} per hour, more than the budget of "
        f"{budget_per_hour:g}"
    )


def too_few_cores_text(node_type: NodeType, cores: float) -> str:
    """Why an executor of a number of cores does not fit on a node of a type."""
    reserve = "" if node_type.reserve_text is None else f": {node_type.reserve_text}"
    return f"{counted(node_type.cores, 'core')} are too few for an executor of {cores:g}{reserve}"


def suitable(
    node_types: Sequence[NodeType], offer_of: Callable[[NodeType], AnyOffer | str]
) -> tuple[list[AnyOffer], tuple[str, ...]]:
    """The offers of the node types that can run a job, and why the others cannot.

    ``offer_of`` says what a node type offers, or why it is unsuitable. Raises InputError if none of
    them can run it.
    """
    outcomes = [(node_type.name, offer_of(node_type)) for node_type in node_types]
    refused = tuple(f"{name}: {why}" for name, why in outcomes if isinstance(why, str))
    offers = [offer for _, offer in outcomes if not isinstance(offer, str)]
    if not offers:
        raise InputError(f"no node type can run the job: {'; '.join(refused)}")
    return offers, refused


def fewest_of(
    counts: Sequence[int], keeps: Callable[[int], bool], *, max_nodes: int, tries_every: bool
) -> Fewest:
    """The first of some numbers of nodes that meets the targets, and what is proven for fewer.

    ``counts`` are the numbers that no bound rules out, fewest first. All of them are tried if that
    is quick: ``tries_every``.
    """
    if not counts:
        return Fewest(None, Optimality(least_nodes=max_nodes + 1, proved=True))
    tried: dict[int, bool] = {}

    def is_sufficient(index: int) -> bool:
        if index not in tried:
            tried[index] = keeps(counts[index])
        return tried[index]

    if tries_every:
        index = next((index for index in range(len(counts)) if is_sufficient(index)), None)
    else:
        index = first_sufficient(len(counts), is_sufficient)
    before = range(len(counts) if index is None else index)
    return Fewest(
        None if index is None else counts[index],
        Optimality(least_nodes=counts[0], proved=all(number in tried for number in before)),
    )


def first_sufficient(num_counts: int, is_sufficient: Callable[[int], bool]) -> int | None:
    """Index of the first sufficient count, or of one with no sufficient count close below it.

    Up to 64 are tried one by one. Of more, doubling steps find one (or, if none of these is
    sufficient, as many counts spread over all), bisection finds the edge before it, and those close
    below are tried.
    """
    if num_counts <= NODE_COUNTS_TRIED.value:
        return next((index for index in range(num_counts) if is_sufficient(index)), None)
    doubled = [2**power - 1 for power in range(num_counts.bit_length())]
    spread = np.unique(
        np.round(np.geomspace(1, num_counts, NODE_COUNTS_TRIED.value)).astype(int) - 1
    )
    missed: set[int] = set()
    for index in (*doubled, num_counts - 1, *spread.tolist()):
        if is_sufficient(int(index)):
            high = int(index)
            break
        missed.add(int(index))
    else:
        return None
    low = max((index for index in missed if index < high), default=-1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_sufficient(middle) else (middle, high)
    while True:
        below = range(max(high - NODE_COUNTS_TRIED_BELOW.value, 0), high)
        lower = next((index for index in below if is_sufficient(index)), None)
        if lower is None:
            return high
        high = lower


def best_count(counts: Sequence[int], value: Callable[[int], float]) -> int:
    """The number of nodes with the lowest value: of some counts, then of those around the best one.

    Between the counts beside it as many are tried again, until its neighbours are among them; of
    equal values, the fewest nodes count.

    >>> best_count([1, 10, 100, 1000], lambda nodes: abs(nodes - 333.0))
    333
    """
    values = {nodes: value(nodes) for nodes in counts}
    while True:
        best = min(values, key=lambda nodes: (values[nodes], nodes))
        low = max((nodes for nodes in values if nodes < best), default=best)
        high = min((nodes for nodes in values if nodes > best), default=best)
        near = np.linspace(low, high, len(counts) + 2).round().astype(int).tolist()
        untried = [nodes for nodes in {*near, best - 1, best + 1} if low < nodes < high]
        if not set(untried) - values.keys():
            return best
        values |= {nodes: value(nodes) for nodes in untried if nodes not in values}


def spread_counts(max_nodes: int, num_counts: int) -> list[int]:
    """All numbers of nodes, or of many a subset in which each is slightly larger than the last.

    >>> spread_counts(3, 4), spread_counts(1000, 4)
    ([1, 2, 3], [1, 10, 100, 1000])
    """
    if max_nodes <= num_counts:
        return list(range(1, max_nodes + 1))
    ratio = max_nodes ** (1.0 / (num_counts - 1))
    return sorted({min(round(ratio**power), max_nodes) for power in range(num_counts)})
