"""The fewest nodes with which some setting of a streaming query meets the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headway.assumptions.planning import SELDOM_RATIO
from headway.planner.bounds import most_rates_per_s
from headway.planner.candidates import Candidates, candidates_at
from headway.planner.enumeration import Fewest, fewest_of
from headway.planner.noise_free import noise_free_rate_per_s
from headway.planner.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hopeful:
    """The numbers of nodes whose bound reaches the requested rate, each with its partitions."""

    question: Question
    partitions: Mapping[int, Sequence[int]]

    @classmethod
    def of(cls, question: Question) -> _Hopeful:
        space = question.space
        sizes, most_per_s = most_rates_per_s(question, range(space.min_nodes, space.max_nodes + 1))
        hopeful: dict[int, list[int]] = {}
        for (nodes, partitions), rate_per_s in zip(sizes, most_per_s.tolist(), strict=True):
            if rate_per_s >= question.rate_per_s:
                hopeful.setdefault(nodes, []).append(partitions)
        return cls(question=question, partitions=hopeful)

    def keeps(self, nodes: int) -> bool:
        """Whether this number of nodes meets every target."""
        return is_enough(self.question, nodes, self.partitions[nodes])


def fewest_nodes(question: Question) -> Fewest:
    """The first node count with a setting that meets the question.

    Parameters
    ----------
    question : Question
        The promises and the space.

    Notes
    -----
    theory.md (P5), (P9). Counts whose bound is below the requested rate are excluded. Up to 64
    others are tried one by one, from the fewest. Of more, doubling steps find a sufficient one,
    bisection finds the edge before it, and a dozen below the edge are tried. More nodes do not
    necessarily meet a target that fewer miss, since a plan allows for more uncertainty beyond the
    profiled slots.
    """
    hopeful = _Hopeful.of(question)
    return fewest_of(
        sorted(hopeful.partitions),
        hopeful.keeps,
        max_nodes=question.space.max_nodes,
        tries_every=False,
    )


def is_enough(question: Question, nodes: int, partitions: Sequence[int]) -> bool:
    """Whether a setting of a number of nodes meets the question."""
    triggers_s = question.space.trigger_choices_s(question.profile, question.target.limit_s)
    candidates = candidates_at(
        question,
        [(nodes, count, trigger_s) for count in partitions for trigger_s in triggers_s],
    )
    return first_meeting(candidates) is not None


def first_meeting(candidates: Candidates) -> Candidates | None:
    """A setting that meets the question, if there is one.

    Moments, which order the settings, are most reliable for those whose batches seldom overrun.

    Notes
    -----
    theory.md (P24).
    """
    rate_per_s = candidates.question.rate_per_s
    candidates = candidates.take(noise_free_rate_per_s(candidates) >= rate_per_s)
    if len(candidates):
        candidates = candidates.take(candidates.could_meet(rate_per_s))
    if not len(candidates):
        return None
    excess = candidates.excess(rate_per_s)
    is_reliable = candidates.overrun_probability(rate_per_s) <= SELDOM_RATIO.value
    order = np.lexsort((excess, ~(is_reliable & (excess <= 0.0))))
    setting_indices = order.tolist()
    indexed_excesses = zip(
        setting_indices, candidates.each_certified_excess(rate_per_s, setting_indices), strict=True
    )
    return next(
        (
            candidates.alone(setting_index)
            for setting_index, excess in indexed_excesses
            if excess <= 0.0
        ),
        None,
    )
