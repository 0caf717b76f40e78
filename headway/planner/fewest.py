"""The fewest nodes of which a setting keeps every promise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from headway.assumptions.planning import (
    NODE_COUNTS_TRIED,
    NODE_COUNTS_TRIED_BELOW,
    SELDOM_RATIO,
)
from headway.domain import Optimality
from headway.planner.bounds import most_rates_per_s
from headway.planner.candidates import Candidates, candidates_at
from headway.planner.noise_free import noise_free_rate_per_s
from headway.planner.question import Question

_SETTINGS_CERTIFIED = 6


class Fewest(NamedTuple):
    """The fewest nodes, None if none will do, and how far from the best that can be."""

    nodes: int | None
    optimality: Optimality


def fewest_nodes(question: Question) -> Fewest:
    """The first node count of which a setting meets the question.

    Parameters
    ----------
    question : Question
        The promises and the space.

    Notes
    -----
    theory.md (P5), (P9). Counts whose bound lies below the asked rate are out. Up to 64 others are
    tried one by one, from the fewest. Of more, steps that double find one that will do, halving
    finds the edge before it, and a dozen below the edge are tried: more nodes are no safe bet for
    a target that fewer miss, since beyond the profiled slots a plan allows for more uncertainty.
    """
    space = question.space
    sizes, most_per_s = most_rates_per_s(question, range(space.min_nodes, space.max_nodes + 1))
    promising: dict[int, list[int]] = {}
    for (nodes, partitions), rate_per_s in zip(sizes, most_per_s.tolist(), strict=True):
        if rate_per_s >= question.rate_per_s:
            promising.setdefault(nodes, []).append(partitions)
    counts = sorted(promising)
    if not counts:
        return Fewest(None, Optimality(least_nodes=space.max_nodes + 1, proved=True))
    tried: dict[int, bool] = {}

    def will_do(place: int) -> bool:
        if place not in tried:
            nodes = counts[place]
            tried[place] = is_enough(question, nodes, promising[nodes])
        return tried[place]

    place = first_place(len(counts), will_do)
    before = range(len(counts) if place is None else place)
    return Fewest(
        None if place is None else counts[place],
        Optimality(least_nodes=counts[0], proved=all(number in tried for number in before)),
    )


def first_place(num_counts: int, will_do: Callable[[int], bool]) -> int | None:
    """The place of the first count that will do, or of one that nothing close below it does.

    Up to 64 are tried one by one. Of more, steps that double, or where none of them will do as
    many places as that spread over all, find one, halving the edge before it, and those close
    below are tried.
    """
    if num_counts <= NODE_COUNTS_TRIED.value:
        return next((place for place in range(num_counts) if will_do(place)), None)
    doubled = [2**power - 1 for power in range(num_counts.bit_length())]
    spread = np.unique(
        np.round(np.geomspace(1, num_counts, NODE_COUNTS_TRIED.value)).astype(int) - 1
    )
    missed: set[int] = set()
    for place in (*doubled, num_counts - 1, *spread.tolist()):
        if will_do(int(place)):
            high = int(place)
            break
        missed.add(int(place))
    else:
        return None
    low = max((place for place in missed if place < high), default=-1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if will_do(middle) else (middle, high)
    while True:
        below = range(max(high - NODE_COUNTS_TRIED_BELOW.value, 0), high)
        lower = next((place for place in below if will_do(place)), None)
        if lower is None:
            return high
        high = lower


def is_enough(question: Question, nodes: int, partitions: Sequence[int]) -> bool:
    """Whether a setting of a number of nodes meets the question, and (T4) bears it out."""
    triggers_s = question.space.trigger_choices_s(question.profile, question.target.limit_s)
    candidates = candidates_at(
        question,
        [(nodes, count, trigger_s) for count in partitions for trigger_s in triggers_s],
    )
    return first_certain(candidates) is not None


def first_certain(candidates: Candidates) -> Candidates | None:
    """A setting that meets the question by its moments and by (T4), if there is one.

    Moments are sure of settings whose batches seldom overrun; of others those with most room are
    asked first, and a few are enough to tell.
    """
    rate_per_s = candidates.question.rate_per_s
    possible = noise_free_rate_per_s(candidates) >= rate_per_s
    if not np.any(possible):
        return None
    candidates = candidates.take(possible)
    excess = candidates.excess(rate_per_s)
    order = np.argsort(excess)
    meeting = order[excess[order] <= 0.0]
    overruns = candidates.take(meeting).overrun_probability(rate_per_s)
    seldom_first = meeting[np.argsort(overruns > SELDOM_RATIO.value, kind="stable")]
    each = (candidates.take(np.array([place])) for place in seldom_first[:_SETTINGS_CERTIFIED])
    return next((one for one in each if one.is_certain(rate_per_s)), None)
