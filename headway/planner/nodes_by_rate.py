"""The fewest nodes at many rates: results at one rate are used for the others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Self

import numpy as np

from headway.models.arrays import Array
from headway.planner.candidates import Indices, all_candidates
from headway.planner.fewest_nodes import candidates_of_sizes, likeliest_to_meet, not_ruled_out
from headway.planner.node_counts import LEAST_RATE_PER_S, NodeCounts
from headway.planner.noise_free import most_rates_per_s, noise_free_rate_per_s
from headway.planner.question import Question

# The last rate of a count by (T4) over that by moments, and over its highest bound, at first.
_FIRST_CHAIN_OVER_MOMENTS, _FIRST_LAST_OVER_BOUND = 0.98, 0.7
# Counts that are searched first, whose ratios serve the others, and as many at once afterwards.
_COUNTS_BEFORE_OTHERS, _COUNTS_TOGETHER = 2, 24
_ROUNDED_UP = 1.0 + 1e-9
# Where moments alone look for the rates that a count misses, to a hundredth of its bound.
_LEAST_OVER_BOUND, _HALVINGS = 0.6, 5


class NodesByRate:
    """The fewest nodes for one question at any number of rates.

    For every node count, one rate is known at which it meets the targets, and one at which it
    misses them. The rates in between are searched for the last one that it sustains. So each
    answer is the first sufficient count, as if all smaller counts had been tried at exactly that
    rate. For targets on windows and limits of files, one rate implies nothing for another, so each
    is tried on its own. The rate of the question itself does not matter. To search rates together
    is quicker, so those that will be asked for may be given before: ``foreseen_per_s``.

    theory.md (P4), (P5), (P7), (P9): a setting that meets the targets at a rate meets them at all
    lower ones. The last rate that a count sustains is thus the maximum over its settings. It is
    searched with the setting that is best by moments, from the rate that these and the counts
    before suggest; every other one that may meet the targets is tried at the next rate only (P24),
    and takes its place if it does. Settings whose batches run back to back at the same upper end
    are alike, whatever their trigger interval, and one of them is tried; a setting that is slower
    in everything than one that misses its latency is not. Counts that probably suffice together
    for all rates are searched together, without the shuffle partitions whose bound (P9) is below
    these rates.
    """

    @classmethod
    def searched(cls, question: Question, rates_per_s_of_jobs: Sequence[Sequence[float]]) -> Self:
        """One that knows the fewest nodes at the rates of each of some jobs."""
        nodes_by_rate = cls(question, chain.from_iterable(rates_per_s_of_jobs))
        for rates_per_s in rates_per_s_of_jobs:
            nodes_by_rate.fewest_nodes(rates_per_s)
        return nodes_by_rate

    @classmethod
    def bounded(cls, question: Question, rates_per_s_of_jobs: Sequence[Sequence[float]]) -> Self:
        """One whose `least_nodes` are by moments, at rates up to the highest of some jobs."""
        nodes_by_rate = cls(question)
        nodes_by_rate._rule_out_up_to(max(map(max, rates_per_s_of_jobs)))
        return nodes_by_rate

    def __init__(self, question: Question, foreseen_per_s: Iterable[float] = ()) -> None:
        self._question = question
        self._foreseen_per_s = list(foreseen_per_s)
        bounds = most_rates_per_s(question)
        self._sizes = np.array([(nodes, partitions) for nodes, partitions, _ in bounds])
        self._most_of_size_per_s = np.array([rate_per_s for _, _, rate_per_s in bounds])
        self._nodes, begins = np.unique(self._sizes[:, 0], return_index=True)
        self._most_per_s = np.maximum.reduceat(self._most_of_size_per_s, begins)
        # Beyond the last count there is nothing to try.
        self._met_per_s = np.append(np.zeros(len(self._nodes)), np.inf)
        self._missed_per_s = np.append(self._most_per_s * _ROUNDED_UP, np.inf)
        self._alone: dict[float, int | None] = {}
        self._chain_over_moments = _FIRST_CHAIN_OVER_MOMENTS
        self._last_over_bound = _FIRST_LAST_OVER_BOUND
        self._num_searched = self._num_ruled_out = 0
        self._one_rate_tells_of_others = (
            not question.has_windows
            and math.isinf(question.most_files_per_hour)
            and question.store_price is None
        )

    def fewest_nodes(self, rates_per_s: Sequence[float]) -> tuple[int, ...] | None:
        """The fewest nodes that meet the targets at each rate; None if none do at some rate."""
        rates = np.maximum(np.asarray(rates_per_s, dtype=np.float64), LEAST_RATE_PER_S)
        if not self._one_rate_tells_of_others:
            return self._each_alone(rates)
        together = np.maximum([*rates.tolist(), *self._foreseen_per_s], LEAST_RATE_PER_S)
        self._search(np.unique(together))
        self._foreseen_per_s = []
        return self.least_nodes(rates_per_s)

    def least_nodes(self, rates_per_s: Sequence[float]) -> tuple[int, ...] | None:
        """What is known without a search: fewer nodes miss the targets; None if all do."""
        rates = np.maximum(np.asarray(rates_per_s, dtype=np.float64), LEAST_RATE_PER_S)
        indices = self._first_open(rates)
        if indices.max() == len(self._nodes):
            return None
        return tuple(self._nodes[indices].tolist())

    def _search(self, rates_per_s: Array) -> None:
        """Search counts, the fewest first, until the first that may meet each rate does meet it."""
        while True:
            first_open = self._first_open(rates_per_s)
            is_undecided = self._met_per_s[first_open] < rates_per_s
            undecided_per_s = rates_per_s[is_undecided]
            if not len(undecided_per_s):
                return
            indices = np.arange(first_open[is_undecided][0], len(self._nodes))
            indices = indices[self._missed_per_s[indices] > undecided_per_s[0]]
            if self._num_ruled_out:
                self._rule_out(indices[: self._num_ruled_out], float(undecided_per_s[0]))
            else:
                self._search_together(self._likely(indices, undecided_per_s[-1]), undecided_per_s)

    def _first_open(self, rates_per_s: Array) -> Indices:
        """Index of the first count that is not known to miss the targets at each rate."""
        most_missed_per_s = np.maximum.accumulate(self._missed_per_s)
        return np.searchsorted(most_missed_per_s, rates_per_s, side="right")

    def _likely(self, indices: Indices, most_per_s: float) -> Indices:
        """The first of some counts, up to the one that probably sustains the highest rate."""
        if not self._num_searched:
            return indices[:_COUNTS_BEFORE_OTHERS]
        likely_per_s = self._last_over_bound * self._most_per_s[indices]
        is_enough = likely_per_s >= min(most_per_s, likely_per_s.max())
        return indices[: min(int(is_enough.argmax()) + 1, _COUNTS_TOGETHER)]

    def _search_together(self, indices: Indices, rates_per_s: Array) -> None:
        """Search the last of some increasing rates that each of some counts sustains."""
        open_per_s = {
            index: rates_per_s[
                (rates_per_s > self._met_per_s[index]) & (rates_per_s < self._missed_per_s[index])
            ]
            for index in indices.tolist()
        }
        open_per_s = {index: rates for index, rates in open_per_s.items() if len(rates)}
        counts_together = NodeCounts(
            self._question, self._possible_sizes(list(open_per_s), rates_per_s[0])
        )
        chain_over_moments = self._chain_over_moments
        guesses_per_s = (chain_over_moments * counts_together.best_per_s).tolist()
        nums_met = counts_together.nums_met(list(open_per_s.values()), guesses_per_s)
        for (index, rates), num_met, guess_per_s in zip(
            open_per_s.items(), nums_met, guesses_per_s, strict=True
        ):
            if num_met:
                self._met_per_s[index] = rates[num_met - 1]
            if num_met != len(rates):
                self._missed_per_s[index] = rates[num_met or 0]
            if num_met and num_met < len(rates) and rates[0] <= guess_per_s:
                last_per_s = math.sqrt(rates[num_met - 1] * rates[num_met])
                self._chain_over_moments = chain_over_moments * last_per_s / guess_per_s
                self._last_over_bound = last_per_s / self._most_per_s[index]
        self._num_searched += len(indices)
        if nums_met.count(None) == len(indices):
            self._num_ruled_out = _COUNTS_TOGETHER

    def _possible_sizes(
        self, indices: Indices | list[int], rate_per_s: float
    ) -> list[tuple[int, int]]:
        """Nodes and partitions of some counts whose bound does not rule a rate out."""
        is_possible = np.isin(self._sizes[:, 0], self._nodes[indices])
        is_possible &= self._most_of_size_per_s * _ROUNDED_UP > rate_per_s
        return [(nodes, partitions) for nodes, partitions in self._sizes[is_possible].tolist()]

    def _rule_out(self, indices: Indices, rate_per_s: float) -> None:
        """Rule out counts after some that moments ruled out: as many at once as were before."""
        sizes = self._possible_sizes(indices, rate_per_s)
        settings = not_ruled_out(candidates_of_sizes(self._question, sizes), rate_per_s)
        is_ruled_out = ~np.isin(self._nodes[indices], settings.nodes)
        self._missed_per_s[indices[is_ruled_out]] = rate_per_s
        self._num_ruled_out += len(indices) if is_ruled_out.all() else -self._num_ruled_out

    def _rule_out_up_to(self, rate_per_s: float) -> None:
        """Find out by moments which rates counts miss (P24), up to one that may sustain a rate."""
        if not self._one_rate_tells_of_others:
            return
        is_enough = _LEAST_OVER_BOUND * self._most_per_s >= rate_per_s
        num_counts = int(is_enough.argmax()) + 1 if is_enough.any() else len(self._nodes)
        for begin in range(0, num_counts, _COUNTS_TOGETHER):
            indices = np.arange(begin, min(begin + _COUNTS_TOGETHER, num_counts))
            self._halve_missed(indices)
            if self._missed_per_s[indices].max() > rate_per_s:
                return

    def _halve_missed(self, indices: Indices) -> None:
        """Halve the range between rates that some counts may sustain and rates that they miss."""
        settings = candidates_of_sizes(self._question, self._possible_sizes(indices, 0.0))
        bound_per_s = noise_free_rate_per_s(settings)
        count_of_setting = np.searchsorted(self._nodes[indices], settings.nodes)
        missed_per_s = self._missed_per_s[indices]
        possible_per_s = _LEAST_OVER_BOUND * missed_per_s
        for _ in range(_HALVINGS):
            middle_per_s = 0.5 * (possible_per_s + missed_per_s)
            rates_per_s = middle_per_s[count_of_setting]
            may_meet = bound_per_s >= rates_per_s
            may_meet[may_meet] = settings.take(may_meet).could_meet(rates_per_s[may_meet])
            is_possible = np.bincount(count_of_setting[may_meet], minlength=len(indices)) > 0
            possible_per_s = np.where(is_possible, middle_per_s, possible_per_s)
            missed_per_s = np.where(is_possible, missed_per_s, middle_per_s)
        self._missed_per_s[indices] = missed_per_s

    def _each_alone(self, rates_per_s: Array) -> tuple[int, ...] | None:
        """The fewest nodes at each rate without those at the others, the highest one first."""
        nodes_at_rate: dict[float, int] = {}
        for rate_per_s in np.unique(rates_per_s)[::-1].tolist():
            if rate_per_s not in self._alone:
                self._alone[rate_per_s] = self._fewest_alone(rate_per_s)
            nodes = self._alone[rate_per_s]
            if nodes is None:
                return None
            nodes_at_rate[rate_per_s] = nodes
        return tuple(nodes_at_rate[rate_per_s] for rate_per_s in rates_per_s.tolist())

    def _fewest_alone(self, rate_per_s: float) -> int | None:
        """The first count that meets the targets; more are compared at once if none is found."""
        question = self._question.at_rate(rate_per_s)
        node_counts = self._nodes[self._most_per_s >= rate_per_s].tolist()
        begin, step = 0, 1
        while begin < len(node_counts):
            settings = all_candidates(question, node_counts[begin : begin + step])
            settings = not_ruled_out(settings, rate_per_s)
            # Only counts with settings that may meet the targets are left.
            for nodes in np.unique(settings.nodes).tolist():
                of_count = settings.take(settings.nodes == nodes)
                if likeliest_to_meet(of_count, rate_per_s) is not None:
                    return int(nodes)
            begin, step = begin + step, 2 * step
        return None
