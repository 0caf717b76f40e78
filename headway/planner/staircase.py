"""The fewest nodes at many rates: results at one rate are used for the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from headway.assumptions.planning import BEYOND_MOMENTS_LATENCY_RATIO, SELDOM_RATIO
from headway.domain import Metric
from headway.models.arrays import Array
from headway.models.job.setting import SettingLaw
from headway.models.laws.inverse import last_kept_near
from headway.planner.candidates import BoolArray, Candidates, Indices, all_candidates
from headway.planner.fewest import first_to_meet, hopeful, likeliest_to_meet
from headway.planner.noise_free import most_rates_per_s, noise_free_rate_per_s
from headway.planner.question import Question

_LEAST_RATE_PER_S = 1e-9
# Rates at which the moments of a setting are computed together, which costs little more than one.
_RATES_TOGETHER = 48
_FIRST_CHAIN_OVER_MOMENTS = 0.98
# Parts of the highest bound of a count at which moments are computed to guess its last rate.
_PARTS = np.linspace(0.7, 1.0, 16)
# About how steeply the logarithms of a tail and of the gain of errors grow with that of the rate.
_TAIL_BY_RATE, _GAIN_BY_RATE, _LEAST_SLOPE = 95.0, 7.0, 1e-3
# Beyond so large an excess it is less steep; after so many evaluations intervals are halved.
_MOST_EXCESS, _MOST_INTERPOLATED = 3.0, 6
# A trigger interval that so many batches overrun changes nothing that a count depends on.
_NEARLY_ALL, _NUM_DIGITS = 0.9999, 6
# Of each of three points, the other two.
_OTHERS = np.array([[1, 2], [0, 2], [0, 1]])


class Staircase:
    """The fewest nodes for one question at any number of rates.

    For every node count, one rate is known at which it meets the targets, and one at which it
    misses them. The rates in between are searched for the last one that it sustains. So each
    answer is the first sufficient count, as if all smaller counts had been tried at exactly that
    rate. For targets on windows and limits of files, one rate implies nothing for another, so each
    is tried on its own.

    Parameters
    ----------
    question : Question
        The promises and the space; its own rate does not matter.
    foreseen_per_s : iterable of float
        Rates that will be asked for: to search them together is quicker. [records/s]

    Notes
    -----
    theory.md (P4), (P5), (P7), (P9): a setting that meets the targets at a rate meets them at all
    lower ones. The last rate that a count sustains is thus the maximum over its settings. It is
    searched with the setting that is best by moments, from the rate that these and the counts
    before suggest; every other one that may meet the targets is tried at the next rate only (P24),
    and takes its place if it does. Settings whose batches run back to back at the same upper end
    are alike, whatever their trigger interval, and one of them is tried.
    """

    def __init__(self, question: Question, foreseen_per_s: Iterable[float] = ()) -> None:
        self._question = question
        self._foreseen_per_s = list(foreseen_per_s)
        most_per_s: dict[int, float] = {}
        for nodes, _, rate_per_s in most_rates_per_s(question):
            most_per_s[nodes] = max(rate_per_s, most_per_s.get(nodes, 0.0))
        self._nodes = np.array(sorted(most_per_s))
        self._most_per_s = np.array([most_per_s[nodes] for nodes in self._nodes.tolist()])
        # Beyond the last count there is nothing to try.
        self._met_per_s = np.append(np.zeros(len(self._nodes)), np.inf)
        self._missed_per_s = np.append(self._most_per_s * (1.0 + 1e-9), np.inf)
        self._rungs: dict[int, _Rung] = {}
        self._alone: dict[float, int | None] = {}
        self._chain_over_moments = _FIRST_CHAIN_OVER_MOMENTS
        self._num_ruled_out = 0
        self._one_rate_tells_of_others = (
            all(target.metric is not Metric.WINDOW for target in question.latency_targets)
            and math.isinf(question.most_files_per_hour)
            and question.charges is None
        )

    def __getstate__(self) -> dict[str, object]:
        """Without its rungs, which take space and can be made again."""
        return {**self.__dict__, "_rungs": {}}

    def fewest_nodes(self, rates_per_s: Sequence[float]) -> tuple[int, ...] | None:
        """The fewest nodes that meet the targets at each rate; None if none do at some rate."""
        rates = np.maximum(np.asarray(rates_per_s, dtype=np.float64), _LEAST_RATE_PER_S)
        if not self._one_rate_tells_of_others:
            return self._each_alone(rates)
        together = np.maximum([*rates.tolist(), *self._foreseen_per_s], _LEAST_RATE_PER_S)
        self._search(np.unique(together))
        self._foreseen_per_s = []
        return self.least_nodes(rates_per_s)

    def least_nodes(self, rates_per_s: Sequence[float]) -> tuple[int, ...] | None:
        """What is known without a search: fewer nodes miss the targets; None if all do."""
        rates = np.maximum(np.asarray(rates_per_s, dtype=np.float64), _LEAST_RATE_PER_S)
        indices = self._first_open(rates)
        if indices.max() == len(self._nodes):
            return None
        return tuple(self._nodes[indices].tolist())

    def _search(self, rates_per_s: Array) -> None:
        """Search counts, the fewest first, until the first that may meet each rate does meet it."""
        while True:
            first_open = self._first_open(rates_per_s)
            is_undecided = self._met_per_s[first_open] < rates_per_s
            if not is_undecided.any():
                return
            index = int(first_open[is_undecided].min())
            undecided_per_s = rates_per_s[is_undecided & (first_open == index)]
            num_met = self._num_met(index, undecided_per_s)
            if num_met > 0:
                self._met_per_s[index] = undecided_per_s[num_met - 1]
            if num_met < len(undecided_per_s):
                self._missed_per_s[index] = undecided_per_s[num_met]

    def _first_open(self, rates_per_s: Array) -> Indices:
        """Index of the first count that is not known to miss the targets at each rate."""
        most_missed_per_s = np.maximum.accumulate(self._missed_per_s)
        return np.searchsorted(most_missed_per_s, rates_per_s, side="right")

    def _num_met(self, index: int, rates_per_s: Array) -> int:
        """How many of some increasing rates a count sustains by moments and by (T4): (P24)."""
        if index not in self._rungs:
            self._rungs[index] = _Rung.of(self._question, int(self._nodes[index]))
        rung, num_met = self._rungs[index], 0
        tried: set[tuple[int, int, float]] = set()
        guess_per_s = self._chain_over_moments * rung.best_per_s
        if rates_per_s[0] <= guess_per_s:
            num_met = _num_met_by(rung.best, rates_per_s, 0, guess_per_s)
            tried.update(rung.best.settings())
            if 0 < num_met < len(rates_per_s):
                edge_per_s = math.sqrt(rates_per_s[num_met - 1] * rates_per_s[num_met])
                self._chain_over_moments = edge_per_s / rung.best_per_s
        while num_met < len(rates_per_s):
            rate_per_s = float(rates_per_s[num_met])
            settings = rung.untried(tried, rate_per_s)
            if not len(settings) and not tried:
                self._rule_out_after(index, rate_per_s)
                return 0
            first_met = first_to_meet(settings, range(len(settings)), rate_per_s)
            if first_met is None:
                break
            tried.update(settings.settings()[: first_met + 1])
            setting = settings.alone(first_met)
            num_met = _num_met_by(setting, rates_per_s, num_met + 1, rate_per_s)
        self._num_ruled_out = 0
        return num_met

    def _rule_out_after(self, index: int, rate_per_s: float) -> None:
        """Rule out counts after one that moments rule out: as many at once as were before it."""
        later = np.flatnonzero(self._missed_per_s[index + 1 : -1] > rate_per_s) + index + 1
        later = later[: self._num_ruled_out]
        self._num_ruled_out += 1
        if len(later):
            settings = all_candidates(self._question, self._nodes[later].tolist())
            settings = hopeful(settings, rate_per_s)
            ruled_out = later[~np.isin(self._nodes[later], settings.nodes)]
            self._missed_per_s[ruled_out] = rate_per_s
            self._num_ruled_out += len(ruled_out)

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
            settings = hopeful(settings, rate_per_s)
            # Only counts with settings that may meet the targets are left.
            for nodes in np.unique(settings.nodes).tolist():
                of_count = settings.take(settings.nodes == nodes)
                if likeliest_to_meet(of_count, rate_per_s) is not None:
                    return int(nodes)
            begin, step = begin + step, 2 * step
        return None


class _Rung(NamedTuple):
    """The settings of a node count, their bounds (P5), and their excess by moments at some rates.

    ``best`` is the one that sustains most by its moments, about ``best_per_s``. The excess is
    unknown, and ``-inf``, of settings whose bound is below these rates.
    """

    settings: Candidates
    bound_per_s: Array
    rates_per_s: Array
    excess: Array
    best: Candidates
    best_per_s: float

    @classmethod
    def of(cls, question: Question, nodes: int) -> _Rung:
        """Every setting of a count, those with the longest trigger interval first."""
        settings = all_candidates(question, (nodes,))
        settings = settings.take(np.argsort(-settings.trigger_s, kind="stable"))
        bound_per_s = noise_free_rate_per_s(settings)
        rates_per_s = max(float(bound_per_s.max()), _LEAST_RATE_PER_S) * _PARTS
        excess = np.full((len(settings), len(_PARTS)), -np.inf)
        high = np.flatnonzero(bound_per_s >= rates_per_s[0])
        if not len(high):
            return cls(settings, bound_per_s, rates_per_s, excess, settings.alone(0), 0.0)
        at_rates = settings.take(np.repeat(high, len(_PARTS)))
        excess[high] = at_rates.excess(np.tile(rates_per_s, len(high))).reshape(-1, len(_PARTS))
        edges_per_s = _crossed_at(rates_per_s, excess[high])
        best = int(np.argmax(edges_per_s))
        best_setting = settings.alone(int(high[best]))
        best_per_s = float(edges_per_s[best])
        return cls(settings, bound_per_s, rates_per_s, excess, best_setting, best_per_s)

    def untried(self, tried: Container[tuple[int, int, float]], rate_per_s: float) -> Candidates:
        """Those that may meet the targets at a rate and are like none that was tried.

        The likeliest come first: those whose moments are reliable, and with the least excess.
        """
        is_tried = np.array([setting in tried for setting in self.settings.settings()])
        hopeful_indices, excess = self._hopeful(rate_per_s, ~is_tried)
        if not len(hopeful_indices):
            return self.settings.take(hopeful_indices)
        num_tried = int(is_tried.sum())
        compared = self.settings.take(np.append(np.flatnonzero(is_tried), hopeful_indices))
        law = compared.planned_law(rate_per_s)
        distinct = _distinct(compared, law)
        distinct = distinct[distinct >= num_tried]
        is_unreliable = law.overrun_probability[distinct] > SELDOM_RATIO.value
        order = np.lexsort((excess[distinct - num_tried], is_unreliable))
        return compared.take(distinct[order])

    def _hopeful(self, rate_per_s: float, among: BoolArray) -> tuple[Indices, Array]:
        """Those of some that may meet the targets at a rate, with their excess by moments (P24)."""
        lower_per_s = rate_per_s / self.settings.beyond_moments_ratio
        most_excess = BEYOND_MOMENTS_LATENCY_RATIO.value * self.settings.most_noise_ratio
        may_meet = among & (self.bound_per_s >= rate_per_s)
        # Most are ruled out by what is known at a rate below.
        index = int(np.searchsorted(self.rates_per_s, lower_per_s, side="right")) - 1
        if index >= 0:
            may_meet &= self.excess[:, index] <= most_excess
        indices = np.flatnonzero(may_meet)
        if not len(indices):
            return indices, np.empty(0)
        excess = self.settings.take(indices).excess(lower_per_s)
        return indices[excess <= most_excess], excess[excess <= most_excess]


def _crossed_at(rates_per_s: Array, excess: Array) -> Array:
    """About the rates from which on excesses are above zero, one in a row; 0 if throughout.

    By a parabola through the three values that are nearest.
    """
    num_met = (excess <= 0.0).sum(axis=1)
    beyond = np.clip(num_met, 1, len(rates_per_s) - 1)
    nearest = np.clip(beyond - 2, 0, len(rates_per_s) - 3)[:, np.newaxis] + np.arange(3)
    values = np.take_along_axis(excess, nearest, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = values[:, _OTHERS] - values[:, :, np.newaxis]
        weights = (values[:, _OTHERS] / apart).prod(axis=2)
        crossed_per_s = (weights * rates_per_s[nearest]).sum(axis=1)
    low_per_s, high_per_s = rates_per_s[beyond - 1], rates_per_s[beyond]
    is_between = (crossed_per_s > low_per_s) & (crossed_per_s < high_per_s)
    crossed_per_s = np.where(is_between, crossed_per_s, low_per_s)
    return np.select([num_met == 0, num_met == len(rates_per_s)], [0.0, high_per_s], crossed_per_s)


def _distinct(settings: Candidates, law: SettingLaw) -> Indices:
    """The first of those settings that differ by a trigger only that batches overrun at a rate."""
    is_back_to_back = law.is_stable & (law.overrun_probability > _NEARLY_ALL)
    trigger_s = np.where(is_back_to_back, 0.0, settings.trigger_s)
    # A trigger may also decide at which rate and upper end a setting is planned: (P4).
    planned = np.round([law.offered_load_ratio, law.state.fixed_s], _NUM_DIGITS)
    columns = np.column_stack([settings.nodes, settings.partitions, trigger_s, *planned])
    _, firsts = np.unique(columns, axis=0, return_index=True)
    return np.sort(firsts)


def _num_met_by(setting: Candidates, rates_per_s: Array, low: int, guess_per_s: float) -> int:
    """How many of some increasing rates one setting sustains; the first ``low`` are known to be.

    The search begins with the rates around a guess.
    """
    high = len(rates_per_s)
    while low < high:
        around = int(np.searchsorted(rates_per_s, guess_per_s)) - _RATES_TOGETHER // 2
        begin = min(max(around, low), max(high - _RATES_TOGETHER, low))
        near_per_s = rates_per_s[begin : min(begin + _RATES_TOGETHER, high)]
        num_met = _num_met_near(setting, near_per_s, guess_per_s)
        if num_met < len(near_per_s):
            high, guess_per_s = begin + num_met, float(rates_per_s[begin])
        if num_met > 0:
            low, guess_per_s = begin + num_met, float(near_per_s[num_met - 1])
    return low


def _num_met_near(setting: Candidates, rates_per_s: Array, guess_per_s: float) -> int:
    """The same for a few rates, whose laws by moments are computed at once."""
    at_each = setting.take(np.zeros(len(rates_per_s), dtype=np.intp))
    excess_of, log_rates = at_each.certified_excess_of(rates_per_s), np.log(rates_per_s)
    latency_excess_of = partial(excess_of, with_gain=False)
    last_met = _last_met(latency_excess_of, log_rates, math.log(max(guess_per_s, rates_per_s[0])))
    # The gain of errors needs further chains, so it is computed only if everything else is met.
    gain_slope = _GAIN_BY_RATE * (log_rates[-1] - log_rates[0]) / len(log_rates) + _LEAST_SLOPE
    return 1 + last_kept_near(excess_of, -1, last_met + 1, guess=last_met, slope=gain_slope)


def _last_met(excess_of: Callable[[int], float], log_rates: Array, edge: float) -> int:
    """Index of the last rate at which an excess is not above zero; -1 if there is none.

    It grows evenly with the logarithm of the rate, and is zero near an edge.
    """
    low, high, slope = -1, len(log_rates), _TAIL_BY_RATE
    values: dict[int, float] = {}
    while high - low > 1:
        index = min(max(int(np.searchsorted(log_rates, edge)) - 1, low + 1), high - 1)
        values[index] = excess_of(index)
        low, high = (index, high) if values[index] <= 0.0 else (low, index)
        if low in values and high in values:
            rise, width = values[high] - values[low], log_rates[high] - log_rates[low]
            is_halved = len(values) > _MOST_INTERPOLATED or not math.isfinite(rise)
            edge = log_rates[low] + width * (0.5 if is_halved else -values[low] / rise)
        else:
            edge = log_rates[index] - min(max(values[index], -_MOST_EXCESS), _MOST_EXCESS) / slope
            slope /= 2.0
    return low
