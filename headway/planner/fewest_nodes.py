"""The fewest nodes with which some setting of a streaming query meets the targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from headway.assumptions.planning import SELDOM_RATIO
from headway.planner.bill import within_limits
from headway.planner.candidates import Candidates, candidates_at
from headway.planner.enumeration import Fewest, fewest_of
from headway.planner.noise_free import most_rates_per_s, noise_free_rate_per_s
from headway.planner.question import Question


def fewest_nodes(question: Question) -> Fewest:
    """The first node count with a setting that meets the question: theory.md (P5), (P9).

    Counts whose bound is below the requested rate are excluded. Up to 64
    others are tried one by one, from the fewest. Of more, doubling steps find a sufficient one,
    bisection finds the edge before it, and a dozen below the edge are tried. More nodes do not
    necessarily meet a target that fewer miss, since a plan allows for more uncertainty beyond the
    profiled slots.
    """
    partitions_of: dict[int, list[int]] = {}
    for nodes, partitions, rate_per_s in most_rates_per_s(question):
        if rate_per_s >= question.rate_per_s:
            partitions_of.setdefault(nodes, []).append(partitions)
    return fewest_of(
        sorted(partitions_of),
        lambda nodes: sufficient_setting(question, nodes, partitions_of[nodes]) is not None,
        max_nodes=question.space.max_nodes,
        tries_every=False,
    )


def sufficient_setting(
    question: Question, nodes: int, partitions: Sequence[int]
) -> Candidates | None:
    """A setting of a number of nodes that meets the question, if there is one."""
    candidates = candidates_of_sizes(question, [(nodes, count) for count in partitions])
    return first_meeting(candidates)


def candidates_of_sizes(question: Question, sizes: Iterable[tuple[int, int]]) -> Candidates:
    """Every setting of some numbers of nodes and partitions: each trigger interval of the space."""
    triggers_s = question.space.trigger_choices_s(question.profile, question.target.limit_s)
    return candidates_at(
        question, [(*size, trigger_s) for size in sizes for trigger_s in triggers_s]
    )


def first_meeting(candidates: Candidates) -> Candidates | None:
    """A setting that meets the question, if there is one: theory.md (P24)."""
    rate_per_s = candidates.question.rate_per_s
    return likeliest_to_meet(not_ruled_out(candidates, rate_per_s), rate_per_s)


def not_ruled_out(candidates: Candidates, rate_per_s: float) -> Candidates:
    """Those within their limits that may meet every target at a rate by moments (P24)."""
    is_possible = noise_free_rate_per_s(candidates) >= rate_per_s
    candidates = candidates.take(is_possible & within_limits(candidates))
    return candidates.take(candidates.could_meet(rate_per_s)) if len(candidates) else candidates


def likeliest_to_meet(candidates: Candidates, rate_per_s: float) -> Candidates | None:
    """The first setting that meets every target by (T4), of some that are not ruled out.

    The likeliest to do so is tried first.
    """
    if not len(candidates):
        return None
    candidates = most_likely_first(candidates, rate_per_s)
    first_met = first_to_meet(candidates, range(len(candidates)), rate_per_s)
    return None if first_met is None else candidates.alone(first_met)


def most_likely_first(candidates: Candidates, rate_per_s: float) -> Candidates:
    """Settings in the order in which they are likely to meet every target at a rate by (T4).

    Moments, which order them, are most reliable for those whose batches seldom overrun.
    """
    excess = candidates.excess(rate_per_s)
    overruns = candidates.planned_law(rate_per_s).overrun_probability
    is_reliable = overruns <= SELDOM_RATIO.value
    return candidates.take(np.lexsort((excess, ~(is_reliable & (excess <= 0.0)))))


def first_to_meet(candidates: Candidates, order: Sequence[int], rate_per_s: float) -> int | None:
    """The first of some settings, by their indices, that meets every target at a rate by (T4)."""
    if not order:
        return None
    excess_of = candidates.certified_excess_of(rate_per_s)
    return next((index for index in order if excess_of(index) <= 0.0), None)
