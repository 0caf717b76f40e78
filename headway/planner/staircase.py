"""The fewest nodes at many rates: results at one rate are used for the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from headway.domain import Metric
from headway.models.arrays import Array
from headway.planner.candidates import all_candidates, candidates_at
from headway.planner.fewest import sufficient_setting
from headway.planner.frontier import best_of_each_node_count
from headway.planner.noise_free import most_rates_per_s, noise_free_rate_per_s
from headway.planner.question import Question

_LEAST_RATE_PER_S = 1e-9
# Tolerance of the search for the highest rate: a thousandth, with room for rounding.
_LEFT_OUT_RATIO = 1.002
_LEFT_OUT_SHARE = 2e-4


class Staircase:
    """The fewest nodes for one question at any number of rates.

    For every node count, one rate is known at which it meets the targets, and one at which it
    misses them. A rate in between is tried and narrows the two. So each answer is the first
    sufficient count, as if all smaller counts had been tried at exactly that rate. For targets on
    windows, one rate implies nothing for another, so each is tried on its own.

    Parameters
    ----------
    question : Question
        The promises and the space; its own rate does not matter.

    Notes
    -----
    theory.md (P4), (P5), (P7), (P9): a setting that meets the targets at a rate meets them at all
    lower ones.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._sizes: dict[int, list[tuple[int, float]]] = {}
        for nodes, partitions, rate_per_s in most_rates_per_s(question):
            self._sizes.setdefault(nodes, []).append((partitions, rate_per_s))
        self._nodes = np.array(sorted(self._sizes))
        self._bounds_per_s: Array = np.array(
            [max(rate for _, rate in self._sizes[nodes]) for nodes in self._nodes.tolist()]
        )
        self._one_rate_tells_of_others = all(
            target.metric is not Metric.WINDOW for target in question.latency_targets
        )
        self._forget()

    def fewest_nodes(self, rates_per_s: Sequence[float]) -> tuple[int, ...] | None:
        """The fewest nodes that meet the targets at each rate; None if none do at the highest."""
        rates = np.maximum(np.asarray(rates_per_s, dtype=np.float64), _LEAST_RATE_PER_S).tolist()
        distinct_rates_per_s = sorted(set(rates))
        if not self._one_rate_tells_of_others:
            self._forget()
        most_nodes = self._first(distinct_rates_per_s[-1])
        if most_nodes is None:
            return None
        if self._one_rate_tells_of_others:
            self._narrow(
                self._first(distinct_rates_per_s[0]) or most_nodes, most_nodes, distinct_rates_per_s
            )
        nodes_at_rate: dict[float, int] = {}
        for rate_per_s in _far_apart_first(distinct_rates_per_s):
            nodes = self._first_borne_out(rate_per_s)
            if nodes is None:
                return None
            nodes_at_rate[rate_per_s] = nodes
        return tuple(nodes_at_rate[rate] for rate in rates)

    def _first_borne_out(self, rate_per_s: float) -> int | None:
        """The first count that sustains a rate by moments and by (T4), as a plan requires both."""
        if not self._one_rate_tells_of_others:
            self._forget()
        while (nodes := self._first(rate_per_s)) is not None:
            index = int(np.searchsorted(self._nodes, nodes))
            if self._certain_per_s[index] >= rate_per_s:
                return nodes
            if self._is_borne_out(nodes, rate_per_s):
                self._certain_per_s[index] = rate_per_s
                return nodes
            self._missed_per_s[index] = rate_per_s
        return None

    def _is_borne_out(self, nodes: int, rate_per_s: float) -> bool:
        """Whether a count sustains a rate by (T4), first with what it sustained a lower one by."""
        question = self._question.at_rate(rate_per_s)
        if nodes in self._settings:
            setting = candidates_at(question, [self._settings[nodes]])
            if setting.certified_excess(rate_per_s) <= 0.0:
                return True
        partitions = [count for count, most_per_s in self._sizes[nodes]]
        sufficient = sufficient_setting(question, nodes, partitions)
        if sufficient is None:
            return False
        (self._settings[nodes],) = sufficient.settings()
        return True

    def _first(self, rate_per_s: float) -> int | None:
        """The first count that sustains a rate; more are tried at once the longer none is found."""
        open_indices = np.flatnonzero(self._missed_per_s > rate_per_s)
        begin, step = 0, 1
        while begin < len(open_indices):
            if self._kept_per_s[open_indices[begin]] >= rate_per_s:
                return int(self._nodes[open_indices[begin]])
            tried_indices = open_indices[begin : begin + step]
            self._try(
                tried_indices[self._kept_per_s[tried_indices] < rate_per_s].tolist(), rate_per_s
            )
            sufficient = np.flatnonzero(self._kept_per_s[tried_indices] >= rate_per_s)
            if len(sufficient):
                return int(self._nodes[tried_indices[sufficient[0]]])
            begin, step = begin + len(tried_indices), 2 * step
        return None

    def _try(self, indices: Sequence[int], rate_per_s: float) -> None:
        """Compare every setting of some counts with the targets at a rate."""
        question = self._question.at_rate(rate_per_s)
        triggers_s = question.space.trigger_choices_s(question.profile, question.target.limit_s)
        settings = [
            (int(self._nodes[index]), partitions, trigger_s)
            for index in indices
            for partitions, most_per_s in self._sizes[int(self._nodes[index])]
            if most_per_s >= rate_per_s
            for trigger_s in triggers_s
        ]
        keeping: set[int] = set()
        if settings:
            candidates = candidates_at(question, settings)
            possible = candidates.take(noise_free_rate_per_s(candidates) >= rate_per_s)
            if len(possible):
                keeping = set(possible.nodes[possible.could_meet(rate_per_s)].tolist())
        for index in indices:
            bounds_per_s = self._kept_per_s if self._nodes[index] in keeping else self._missed_per_s
            bounds_per_s[index] = rate_per_s

    def _narrow(self, least_nodes: int, most_nodes: int, rates_per_s: Sequence[float]) -> None:
        """If there are more rates than counts, find the highest rate of every count at once, with
        the precision of a frontier.
        """
        is_settled = (self._missed_per_s <= rates_per_s[0]) | (self._kept_per_s >= rates_per_s[-1])
        is_close = self._missed_per_s <= self._kept_per_s * _LEFT_OUT_RATIO
        between = (
            (self._nodes >= least_nodes) & (self._nodes < most_nodes) & ~is_settled & ~is_close
        )
        indices = np.flatnonzero(between).tolist()
        if not 0 < len(indices) < len(rates_per_s):
            return
        node_counts = [int(self._nodes[index]) for index in indices]
        candidates = all_candidates(self._question, node_counts)
        best, beyond_ratio = best_of_each_node_count(candidates), candidates.beyond_moments_ratio
        for index, nodes in zip(indices, node_counts, strict=True):
            # What could be kept; whether it is, each answer asks by (T4).
            kept_per_s = best[nodes][1] * beyond_ratio
            missed_per_s = max(
                kept_per_s * _LEFT_OUT_RATIO, self._bounds_per_s[index] * _LEFT_OUT_SHARE
            )
            self._kept_per_s[index] = max(self._kept_per_s[index], kept_per_s)
            self._missed_per_s[index] = min(self._missed_per_s[index], missed_per_s)

    def _forget(self) -> None:
        self._kept_per_s = np.zeros(len(self._nodes))
        self._missed_per_s = self._bounds_per_s * (1.0 + 1e-9)
        self._certain_per_s = np.zeros(len(self._nodes))
        self._settings: dict[int, tuple[int, int, float]] = {}


def _far_apart_first(rates_per_s: Sequence[float]) -> Iterator[float]:
    """All rates, in bisection order."""
    step = 1 << len(rates_per_s).bit_length()
    while step >= 1:
        yield from rates_per_s[step // 2 :: step] if step > 1 else rates_per_s
        step //= 2
