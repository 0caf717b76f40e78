"""Several node counts at once: their settings, and the last of some rates that each sustains.

Moments of all counts are computed together, which takes hardly longer than those of one count. So
the search of each count is a generator: it asks for moments, and is sent them with those of others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from headway.assumptions.planning import BEYOND_MOMENTS_LATENCY_RATIO, SELDOM_RATIO
from headway.assumptions.predictions import LEAST_CERTIFIED_OVERRUN_RATIO
from headway.models.arrays import Array
from headway.models.job.setting import SettingLaw
from headway.planner.candidates import BoolArray, Candidates, Indices
from headway.planner.fewest_nodes import candidates_of_sizes
from headway.planner.noise_free import noise_free_rate_per_s
from headway.planner.question import Question

LEAST_RATE_PER_S = 1e-9
# Parts of the highest bound of a count, and of the rate that they suggest for a setting that may be
# the best one, at which moments are computed to guess the last rate of the count.
_PARTS, _NEAR_PARTS = np.linspace(0.7, 1.0, 6), np.array([0.98, 1.0, 1.02])
_NEARLY_BEST = 0.98
# About how steeply the logarithms of a tail and of the gain of errors grow with that of the rate.
_TAIL_BY_RATE, _GAIN_BY_RATE = 95.0, 7.0
# Beyond so large an excess it is less steep; after so many evaluations intervals are halved.
_MOST_EXCESS, _MOST_INTERPOLATED = 3.0, 6
# A setting so far beyond its latency is so whatever the cells of its chain are.
_SURE_EXCESS = 0.2
# Of each of three points, the other two.
_OTHERS = np.array([[1, 2], [0, 2], [0, 1]])
# A trigger interval that so many batches overrun changes nothing that a count depends on.
_NEARLY_ALL, _NUM_DIGITS = 0.9999, 6
_ROUNDED = 1.0 - 1e-9


class _Request(NamedTuple):
    """What is to be computed of some settings, by their indices, each at its rate."""

    compute: Callable[[Candidates, Array], Any]
    settings: Indices
    rates_per_s: Array


_Excess: TypeAlias = Callable[..., float]
"""The certified excess of a setting at a rate, with the gain of errors or without."""
_NumMet: TypeAlias = Generator[_Request, Any, int]
"""Searches how many of some increasing rates are sustained."""


class NodeCounts:
    """The settings of several node counts, their bounds (P5), and their excess by moments.

    The rate of the question does not matter; ``sizes`` are nodes, increasing, with shuffle
    partitions of settings that may meet the targets.
    """

    def __init__(self, question: Question, sizes: Sequence[tuple[int, int]]) -> None:
        settings = candidates_of_sizes(question, sizes)
        # Those of a count with the longest trigger interval come first.
        self._settings = settings.take(np.lexsort((-settings.trigger_s, settings.nodes)))
        nodes = self._settings.nodes
        self._begins = np.append(np.unique(nodes, return_index=True)[1], len(nodes))
        self._bound_per_s = noise_free_rate_per_s(self._settings)
        of_counts = np.split(np.arange(len(nodes)), self._begins[1:-1])
        settings_of_counts = [self._settings.take(indices) for indices in of_counts]
        self._beyond_ratio = [settings.beyond_moments_ratio for settings in settings_of_counts]
        self._noise_ratio = [settings.most_noise_ratio for settings in settings_of_counts]
        bound_of_count_per_s = np.maximum(self._most_of_counts(self._bound_per_s), LEAST_RATE_PER_S)
        self._rates_per_s = bound_of_count_per_s[:, np.newaxis] * _PARTS
        # The excess is unknown, and -inf, of settings whose bound is below the rates.
        self._excess = np.full((len(nodes), len(_PARTS)), -np.inf)
        edges_per_s = self._edges_per_s()
        self._best = [
            begin + int(np.argmax(edges_per_s[begin:end]))
            for begin, end in zip(
                self._begins[:-1].tolist(), self._begins[1:].tolist(), strict=True
            )
        ]
        self.best_per_s = edges_per_s[self._best]
        """About the rate that the best setting of each count sustains by its moments."""

    def _most_of_counts(self, values: Array) -> Array:
        """The maximum over the settings of each count."""
        return np.asarray(np.maximum.reduceat(values, self._begins[:-1]))

    def _edges_per_s(self) -> Array:
        """About the rate that each setting sustains by its moments; 0 of those that are not best.

        Their excess is kept.
        """
        num_settings, edges_per_s = np.diff(self._begins), np.zeros(len(self._settings))
        rates_per_s = np.repeat(self._rates_per_s, num_settings, axis=0)
        high = np.flatnonzero(self._bound_per_s >= rates_per_s[:, 0])
        if not len(high):
            return edges_per_s
        self._excess[high] = self._excess_at(high, rates_per_s[high])
        edges_per_s[high] = _crossed_at(rates_per_s[high], self._excess[high])
        best_per_s = np.repeat(self._most_of_counts(edges_per_s), num_settings)
        best = np.flatnonzero((edges_per_s >= _NEARLY_BEST * best_per_s) & (edges_per_s > 0.0))
        if len(best):
            near_per_s = edges_per_s[best][:, np.newaxis] * _NEAR_PARTS
            near_edges_per_s = _crossed_at(near_per_s, self._excess_at(best, near_per_s))
            edges_per_s[best] = np.maximum(near_edges_per_s, near_per_s[:, 0])
        return edges_per_s

    def _excess_at(self, settings: Indices, rates_per_s: Array) -> Array:
        """Excess by moments of settings at several rates each, in rows."""
        at_rates = self._settings.take(np.repeat(settings, rates_per_s.shape[1]))
        return at_rates.excess(rates_per_s.ravel()).reshape(rates_per_s.shape)

    def nums_met(
        self, rates_per_s: Sequence[Array], guesses_per_s: Sequence[float]
    ) -> list[int | None]:
        """How many of some increasing rates are sustained by each count.

        By moments and by (T4): (P24). None if moments rule the first rate out. Each search begins
        at a guess of the last rate.
        """
        searches = [
            self._num_met(count, *rates_and_guess)
            for count, rates_and_guess in enumerate(zip(rates_per_s, guesses_per_s, strict=True))
        ]
        nums_met: list[int | None] = [None] * len(searches)
        answers: dict[int, Any] = dict.fromkeys(range(len(searches)))
        while answers:
            requests: dict[int, _Request] = {}
            for index, answer in answers.items():
                try:
                    requests[index] = searches[index].send(answer)
                except StopIteration as end:
                    nums_met[index] = end.value
            answers = self._answers(requests)
        return nums_met

    def _answers(self, requests: Mapping[int, _Request]) -> dict[int, Any]:
        """Answers to all requests: the same of several settings is computed together."""
        answers: dict[int, Any] = {}
        for compute in dict.fromkeys(request.compute for request in requests.values()):
            of_kind = {key: ask for key, ask in requests.items() if ask.compute is compute}
            settings = np.concatenate([request.settings for request in of_kind.values()])
            rates_per_s = np.concatenate([request.rates_per_s for request in of_kind.values()])
            values, begin = compute(self._settings.take(settings), rates_per_s), 0
            for index, request in of_kind.items():
                end = begin + len(request.settings)
                is_law = isinstance(values, SettingLaw)
                answers[index] = values.take(np.arange(begin, end)) if is_law else values[begin:end]
                begin = end
        return answers

    def _num_met(
        self, count: int, rates_per_s: Array, guess_per_s: float
    ) -> Generator[_Request, Any, int | None]:
        num_met, tried = 0, np.empty(0, dtype=np.intp)
        if rates_per_s[0] <= guess_per_s:
            num_met = yield from _num_met_by(self._best[count], rates_per_s, 0, guess_per_s)
            tried = np.append(tried, self._best[count])
        while num_met < len(rates_per_s):
            rate_per_s = float(rates_per_s[num_met])
            untried = yield from self._untried(count, tried, rate_per_s)
            if untried is None:
                return num_met if len(tried) else None
            order, law = untried
            first_met = yield from self._first_to_meet(order, law, rate_per_s)
            if first_met is None:
                return num_met
            tried = np.append(tried, order[: first_met + 1])
            setting = int(order[first_met])
            num_met = yield from _num_met_by(setting, rates_per_s, num_met + 1, rate_per_s)
        return num_met

    def _untried(
        self, count: int, tried: Indices, rate_per_s: float
    ) -> Generator[_Request, Any, tuple[Indices, SettingLaw] | None]:
        """Settings that may meet the targets at a rate and are like none that was tried, if any.

        The last one that was tried comes first, which misses a target; then the likeliest: those
        whose moments are reliable, and with the least excess.
        """
        possible, excess = yield from self._not_ruled_out(count, tried, rate_per_s)
        if not len(possible):
            return None
        compared = np.append(tried, possible)
        law = yield from _computed(Candidates.planned_law, compared, rate_per_s)
        settings, num_tried = self._settings.take(compared), len(tried)
        firsts = distinct(settings, law)
        firsts = firsts[firsts >= num_tried]
        is_unreliable = law.overrun_probability[firsts] > SELDOM_RATIO.value
        order = firsts[np.lexsort((excess[firsts - num_tried], is_unreliable))]
        order = order[shortest_trigger_first(settings.take(order), law.take(order))]
        if num_tried:
            order = np.append(num_tried - 1, order)
        return compared[order], law.take(order)

    def _not_ruled_out(
        self, count: int, tried: Indices, rate_per_s: float
    ) -> Generator[_Request, Any, tuple[Indices, Array]]:
        """Untried ones that may meet the targets at a rate, with their excess by moments (P24)."""
        of_count = slice(*self._begins[count : count + 2])
        lower_per_s = rate_per_s / self._beyond_ratio[count]
        most_excess = BEYOND_MOMENTS_LATENCY_RATIO.value * self._noise_ratio[count]
        may_meet = self._bound_per_s[of_count] >= rate_per_s
        may_meet[tried - of_count.start] = False
        # Most are ruled out by what is known at a rate below.
        index = int(np.searchsorted(self._rates_per_s[count], lower_per_s, side="right")) - 1
        if index >= 0:
            may_meet &= self._excess[of_count, index] <= most_excess
        settings = of_count.start + np.flatnonzero(may_meet)
        excess = yield from _computed(Candidates.excess, settings, lower_per_s)
        return settings[excess <= most_excess], excess[excess <= most_excess]

    def _first_to_meet(
        self, order: Indices, law: SettingLaw, rate_per_s: float
    ) -> Generator[_Request, Any, int | None]:
        """Index of the first of some settings that meets every target at a rate by (T4), if any.

        One that is slower than another one that clearly misses its latency is not tried.
        """
        excess_of = yield from _computed(_certified, order, rate_per_s)
        settings, is_open = self._settings.take(order), np.ones(len(order), dtype=np.bool_)
        for index in range(len(order)):
            if not is_open[index]:
                continue
            latency_excess = excess_of[index](with_gain=False)
            if latency_excess <= 0.0 and excess_of[index]() <= 0.0:
                return index
            if latency_excess > _SURE_EXCESS:
                is_ruled_out = is_open & is_slower(settings, law, index)
                if is_ruled_out[index + 1 :].any() and _is_launched(settings, index, rate_per_s):
                    is_open[is_ruled_out] = False
        return None


def _computed(
    compute: Callable[[Candidates, Array], Any], settings: Indices, rate_per_s: float
) -> Generator[_Request, Any, Any]:
    """What is computed of some settings at one rate."""
    if not len(settings):
        return np.empty(0)
    answer = yield _Request(compute, settings, np.full(len(settings), rate_per_s))
    return answer


def _certified(settings: Candidates, rates_per_s: Array) -> list[_Excess]:
    """The certified excess of each setting, whose chain is solved when that is needed."""
    excess_of = settings.certified_excess_of(rates_per_s)
    return [partial(excess_of, index) for index in range(len(settings))]


def _is_launched(settings: Candidates, index: int, rate_per_s: float) -> bool:
    """Whether the tasks of a setting can be launched: what it misses otherwise is no latency."""
    setting = settings.alone(index)
    return bool(setting.launch_ratio(setting.planned_pace(rate_per_s))[0] <= 1.0)


def _num_met_by(setting: int, rates_per_s: Array, low: int, guess_per_s: float) -> _NumMet:
    """How many of some increasing rates one setting sustains; the first ``low`` are known to be.

    The search begins at a guess.
    """
    if low == len(rates_per_s):
        return low
    search = _OneSetting(setting, rates_per_s)
    edge = math.log(guess_per_s)
    last_met = yield from search.last_met(
        low - 1, len(rates_per_s), edge, _TAIL_BY_RATE, with_gain=False
    )
    # The gain of errors needs further chains, so it is computed only if everything else is met.
    edge = float(search.log_rates[max(last_met, 0)])
    last_met = yield from search.last_met(low - 1, last_met + 1, edge, _GAIN_BY_RATE)
    return last_met + 1


class _OneSetting:
    """One setting at some increasing rates."""

    def __init__(self, setting: int, rates_per_s: Array) -> None:
        self._setting, self._rates_per_s = setting, rates_per_s
        self.log_rates = np.log(rates_per_s)
        self._excess_of: dict[int, _Excess] = {}

    def last_met(
        self, low: int, high: int, edge: float, slope: float, *, with_gain: bool = True
    ) -> _NumMet:
        """Index of the last rate, from ``low`` to below ``high``, whose excess is not above zero.

        It is at most zero at the lower one. It grows evenly with the logarithm of the rate, and is
        zero near an edge.
        """
        values: dict[int, float] = {}
        while high - low > 1:
            index = int(np.searchsorted(self.log_rates, edge, side="right")) - 1
            index = min(max(index, low + 1), high - 1)
            if index not in self._excess_of:
                yield from self._compute(max(index - 1, low + 1), min(index + 2, high))
            values[index] = self._excess_of[index](with_gain=with_gain)
            low, high = (index, high) if values[index] <= 0.0 else (low, index)
            if low in values and high in values:
                width = self.log_rates[high] - self.log_rates[low]
                rise = values[high] - values[low]
                is_halved = len(values) > _MOST_INTERPOLATED or not math.isfinite(rise)
                edge = self.log_rates[low] + width * (0.5 if is_halved else -values[low] / rise)
            else:
                excess = min(max(values[index], -_MOST_EXCESS), _MOST_EXCESS)
                edge, slope = self.log_rates[index] - excess / slope, slope / 2.0
        return low

    def _compute(self, begin: int, end: int) -> Generator[_Request, Any, None]:
        """The excess at a rate, and at those beside it: they share a law by moments."""
        near = np.arange(begin, end)
        settings = np.full(len(near), self._setting)
        excesses = yield _Request(_certified, settings, self._rates_per_s[near])
        self._excess_of.update(zip(near.tolist(), excesses, strict=True))


def _crossed_at(rates_per_s: Array, excess: Array) -> Array:
    """About the rates from which on excesses are above zero, one in a row; 0 if throughout.

    By a parabola through the three values that are nearest.
    """
    num_rates, rows = rates_per_s.shape[1], np.arange(len(rates_per_s))
    num_met = (excess <= 0.0).sum(axis=1)
    beyond = np.clip(num_met, 1, num_rates - 1)
    nearest = np.clip(beyond - 2, 0, num_rates - 3)[:, np.newaxis] + np.arange(3)
    values = np.take_along_axis(excess, nearest, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = values[:, _OTHERS] - values[:, :, np.newaxis]
        weights = (values[:, _OTHERS] / apart).prod(axis=2)
        crossed_per_s = (weights * np.take_along_axis(rates_per_s, nearest, axis=1)).sum(axis=1)
    low_per_s, high_per_s = rates_per_s[rows, beyond - 1], rates_per_s[rows, beyond]
    is_between = (crossed_per_s > low_per_s) & (crossed_per_s < high_per_s)
    crossed_per_s = np.where(is_between, crossed_per_s, low_per_s)
    return np.select([num_met == 0, num_met == num_rates], [0.0, high_per_s], crossed_per_s)


def distinct(settings: Candidates, law: SettingLaw) -> Indices:
    """The first of those settings that differ by a trigger only that batches overrun at a rate.

    ``law`` is that of the settings at the rate.
    """
    is_back_to_back = law.is_stable & (law.overrun_probability > _NEARLY_ALL)
    trigger_s = np.where(is_back_to_back, 0.0, settings.trigger_s)
    columns = np.column_stack([_all_but_trigger(settings, law), trigger_s])
    _, firsts = np.unique(columns, axis=0, return_index=True)
    return np.sort(firsts)


def shortest_trigger_first(settings: Candidates, law: SettingLaw) -> Indices:
    """An order in which of those that differ by their trigger only the shortest one comes first."""
    columns = _all_but_trigger(settings, law)
    _, firsts, inverse = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    return np.lexsort((settings.trigger_s, firsts[inverse.reshape(-1)]))


def is_slower(settings: Candidates, law: SettingLaw, index: int) -> BoolArray:
    """Which settings surely have no lower latency by (T4) at a rate than the one at an index.

    ``law`` is that of the settings at the rate.

    Batches with more time for rows, a longer trigger interval, and more time after an interval of
    that length make intervals and the batches that follow them longer, whatever the noise is:
    `a+r max(B, D)` of (T4) increases in the duration before, and no interval is shorter than `B`.
    So does the latency of a row, unless more of its last batch passes after the commit. That says
    nothing of latencies by moments, of outages and bursts, and of what settings miss besides.
    """
    is_chained = law.overrun_probability > LEAST_CERTIFIED_OVERRUN_RATIO.value
    if settings.question.of_change or not is_chained[index]:
        return np.zeros(len(settings), dtype=np.bool_)
    trigger_s, load = settings.trigger_s, law.offered_load_ratio
    until_end_s = law.fixed_s + load * trigger_s
    until_end_of_index_s = law.fixed_s[index] + load[index] * trigger_s
    until_commit_s = until_end_s - law.after_commit_s
    until_commit_of_index_s = until_end_of_index_s - law.after_commit_s[index]
    not_below = [
        values >= _ROUNDED * of_index
        for values, of_index in (
            (trigger_s, trigger_s[index]),
            (load, load[index]),
            (until_end_s, until_end_of_index_s),
            (until_commit_s, until_commit_of_index_s),
        )
    ]
    return np.asarray(np.logical_and.reduce([is_chained, *not_below]))


def _all_but_trigger(settings: Candidates, law: SettingLaw) -> Array:
    """What settings that differ by their trigger only have in common, in rows."""
    # A trigger may also decide at which rate and upper end a setting is planned: (P4).
    planned = np.round([law.offered_load_ratio, law.fixed_s], _NUM_DIGITS)
    return np.column_stack([settings.nodes, settings.partitions, *planned])
