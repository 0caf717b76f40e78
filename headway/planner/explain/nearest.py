"""The nearest feasible targets if the requested ones are infeasible: one side is relaxed."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from headway.assumptions.planning import (
    LEAST_CONFIDENCE_PERCENT,
    MOST_NODES_BEYOND,
    NEAREST_QUANTILES,
    TIMES_THE_NODES,
)
from headway.digits import format_money, number_at, rank_of, rounded_up
from headway.domain import (
    CatchUp,
    FrontierPoint,
    NearestTarget,
    Objective,
    Promise,
    PromiseNeed,
    Target,
)
from headway.domain.node_type import currency_of
from headway.domain.target import targets_text
from headway.planner.bill import within_limits
from headway.planner.candidates import all_candidates
from headway.planner.enumeration import Fewest, best_of, first_sufficient
from headway.planner.explain.infeasible import (
    examined_node_counts,
    physical_floor_s,
    source_tasks_below_slots,
)
from headway.planner.fewest_nodes import fewest_nodes
from headway.planner.noise_free import lowest_latency
from headway.planner.purchase import Offer
from headway.planner.question import NO_LIMIT_S, Question, burst_of, with_limit
from headway.planner.setting_choice import Buy, cheapest
from headway.planner.tasks import with_source_partitions
from headway.units import counted, format_rate, spark_trigger_text

Change = Callable[[Question], Question]

# In case the setting that is chosen at that limit or rate does not meet the targets by (T4).
_PLACES_AWAY = (0, 1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The search among some offers, cheapest or fewest nodes first.

    ``highest`` are the max rates of all settings of each offer, ``answered`` the questions whose
    fewest nodes are already known.

    **(P13)** Physical floor: driver phases and one task of each level, without rows, noise and
    margin, with the wait for a trigger no longer than that batch (or for the fixed trigger). No
    number of nodes has a lower latency. If the targets are infeasible, one side at a time is
    relaxed by as little as is sufficient, over all offers: each limit with all other targets met;
    the rate; the nodes; one target left out; the trigger, if it is fixed; the fewest source
    partitions (all counts up to 64 above today's are tried one by one); the highest whole per cent
    of confidence (by bisection, since latencies only increase with it); the statistic. Limits are
    rounded up and rates down to three digits, so that the values shown are feasible, and the number
    of nodes beside each is the minimum for exactly these targets. Each equals enumeration
    (`tests/planner/test_nearest.py`). In addition, the answer shows what each target needs alone,
    without the budget and the limit of files: the fewest nodes, or the lowest bill if there is a
    budget for it or it is minimised.
    """

    offers: Sequence[Offer]
    highest: Sequence[FrontierPoint]
    answered: list[tuple[Question, Fewest]]

    @property
    def question(self) -> Question:
        """The question, for any of the offers."""
        return self.offers[0].question

    def targets(self, failing: Collection[int] = ()) -> Iterator[NearestTarget]:
        """One for each side that may be relaxed; none for a side whose relaxation does not help.

        ``failing`` are indices of targets that are infeasible on their own, and remain so if
        another one is relaxed.
        """
        yield from self._by_limit(frozenset(failing))
        yield from self._by_rate()
        yield from self._by_nodes()
        yield from self._without(frozenset(failing))
        yield from self._by_trigger()
        yield from self._by_source()
        yield from self._by_confidence()
        if not set(failing) - {0}:
            yield from self._by_statistic()

    def fewest(self, change: Change) -> Buy | None:
        """What to buy for another question: the best offer of it, None if none is feasible."""
        return self.searched(change)[0]

    def searched(self, change: Change) -> tuple[Buy | None, bool]:
        """The same, and whether every number of nodes was tried."""
        changed = [replace(offer, question=change(offer.question)) for offer in self.offers]
        sizes = [(offer, self._fewest_of(offer.question)) for offer in changed]
        able = [
            Buy(offer=offer, nodes=fewest.nodes)
            for offer, fewest in sizes
            if fewest.nodes is not None
        ]
        by_cost = changed[0].question.objective == "cost"
        objective: Objective = "cost" if by_cost else "nodes"
        proved = all(fewest.optimality.proved for _, fewest in sizes)
        return best_of(able, objective) if able else None, proved

    def _fewest_of(self, question: Question) -> Fewest:
        """A question is not searched twice: a single target may be the whole question."""
        fewest = next((answer for earlier, answer in self.answered if earlier == question), None)
        if fewest is None:
            fewest = fewest_nodes(question)
            self.answered.append((question, fewest))
        return fewest

    def _by_limit(self, failing: frozenset[int]) -> Iterator[NearestTarget]:
        """Each target with the lowest limit at which all targets are met."""
        for index, promise in enumerate(self.question.promises):
            if failing - {index}:
                continue
            lowest_s = min(_lowest_s(offer.question, index) for offer in self.offers)
            if math.isinf(lowest_s):
                continue
            first = rank_of(rounded_up(max(lowest_s, promise.limit_s)))
            first += number_at(first) <= promise.limit_s
            limit_s, bought = self._lowest_limit(index, first)
            if bought is not None:
                relaxed = with_limit(promise, limit_s)
                text = f"{relaxed} at {self._rate} with {bought.in_words}{self._others(index)}"
                yield _nearest("limit", text, bought, limit_s=limit_s)

    def _lowest_limit(self, index: int, first: int) -> tuple[float, Buy | None]:
        """The lowest limit of a target, from the first number on, that (T4) finds feasible, too."""
        missed = first - 1
        for further in _PLACES_AWAY:
            number = first + further
            bought = self._at_limit(index, number_at(number))
            if bought is None:
                missed = number
                continue
            while number - missed > 1:
                middle = (missed + number) // 2
                purchase = self._at_limit(index, number_at(middle))
                missed, number = (middle, number) if purchase is None else (missed, middle)
                bought = bought if purchase is None else purchase
            return number_at(number), bought
        return math.inf, None

    def _at_limit(self, index: int, limit_s: float) -> Buy | None:
        return self.fewest(partial(Question.with_limit, promise_index=index, limit_s=limit_s))

    def _by_rate(self) -> Iterator[NearestTarget]:
        """The highest rate of all settings at which every target is met."""
        highest_per_s = max(point.sustainable_rate_per_s for point in self.highest)
        if not highest_per_s > 0:
            return
        for fewer in _PLACES_AWAY:
            rate_per_s = number_at(rank_of(highest_per_s) - fewer)
            bought = self.fewest(partial(Question.at_rate, rate_per_s=rate_per_s))
            if bought is not None:
                text = f"{self._asked} at {format_rate(rate_per_s)} with {bought.in_words}"
                yield _nearest("rate", text, bought, rate_per_s=rate_per_s)
                return

    def _by_nodes(self) -> Iterator[NearestTarget]:
        beyond = replace(self, offers=tuple(map(with_more_nodes, self.offers)))
        if physical_floor_s(self.question) >= self.question.target.limit_s:
            return
        bought = beyond.fewest(lambda question: question)
        if bought is None:
            return
        cost, currency = bought.cost, currency_of(bought.offer.node_type)
        price = "" if cost is None else f", {format_money(cost, currency=currency)} per hour"
        way = "nodes" if bought.offer.budget_per_hour is None else "budget"
        text = f"{self._asked} at {self._rate} with {bought.in_words}{price}"
        yield _nearest(way, text, bought)

    def _without(self, failing: frozenset[int]) -> Iterator[NearestTarget]:
        """Without one of the other targets, or the first target only."""
        others = self.question.also
        omissions: list[tuple[Promise, ...]] = [(promise,) for promise in others]
        if len(others) > 1:
            omissions.append(others)
        for left_out in omissions:
            if any(self.question.promises[index] not in left_out for index in failing):
                continue
            bought = self.fewest(partial(_leaving_out, left_out=left_out))
            if bought is None:
                continue
            remaining = [promise for promise in self.question.promises if promise not in left_out]
            text = (
                f"{targets_text(remaining)} at {self._rate} with {bought.in_words}, without "
                f"{targets_text(left_out)}"
            )
            yield _nearest(_kind_of(left_out), text, bought)
            if left_out is others:
                return

    def _by_trigger(self) -> Iterator[NearestTarget]:
        """The trigger interval that would be planned if none were fixed."""
        if self.question.space.trigger_s is None:
            return
        bought = self.fewest(partial(Question.at_trigger, trigger_s=None))
        if bought is None:
            return
        trigger_s = float(bought.setting.trigger_s[0])
        # Near saturation, the same setting may be looked at closer if the trigger is free.
        if trigger_s == self.question.space.trigger_s:
            return
        trigger = "without a trigger interval, with"
        if trigger_s:
            trigger = f"with a trigger of {spark_trigger_text(trigger_s)} and"
        text = f"{self._asked} at {self._rate} {trigger} {bought.in_words}"
        yield _nearest("trigger", text, bought, trigger_s=trigger_s)

    def _by_source(self) -> Iterator[NearestTarget]:
        """The fewest sufficient source partitions, and the smallest purchase for them."""
        today = min(source_tasks_below_slots(self.question), default=None)
        if today is None:
            return
        spaces = [offer.question.space for offer in self.offers]
        slots = max(space.num_slots(space.max_nodes) for space in spaces)

        @cache
        def bought_with(partitions: int) -> Buy | None:
            return self.fewest(lambda question: _wider(question, partitions))

        doubled = [today * 2**power for power in range(1, slots.bit_length())]
        if not any(map(bought_with, {slots, *(count for count in doubled if count < slots)})):
            return
        first = today + 1
        offset = first_sufficient(
            slots - today, lambda offset: bought_with(first + offset) is not None
        )
        bought = None if offset is None else bought_with(first + offset)
        if offset is not None and bought is not None:
            partitions = counted(first + offset, "source partition")
            text = f"{self._asked} at {self._rate} with {partitions} and {bought.in_words}"
            yield _nearest("source", text, bought, source_partitions=float(first + offset))

    def _by_confidence(self) -> Iterator[NearestTarget]:
        """The highest whole per cent of confidence at which the targets are met."""

        def bought_at(percent: int) -> Buy | None:
            return self.fewest(partial(Question.at_confidence, confidence=percent / 100.0))

        low = LEAST_CONFIDENCE_PERCENT.value
        high = math.ceil(round(100.0 * self.question.confidence, 6))
        bought = bought_at(low) if low < high else None
        if bought is None:
            return
        while high - low > 1:
            middle = (low + high) // 2
            purchase = bought_at(middle)
            low, high, bought = (
                (middle, high, purchase) if purchase is not None else (low, middle, bought)
            )
        text = f"{self._asked} at {self._rate} with {low}% confidence, {bought.in_words}"
        yield _nearest("confidence", text, bought, confidence=low / 100.0)

    def _by_statistic(self) -> Iterator[NearestTarget]:
        target = self.question.target
        for quantile in NEAREST_QUANTILES.value:
            if target.quantile is None or quantile >= target.quantile:
                continue
            laxer = replace(target, quantile=quantile)
            bought = self.fewest(partial(_with_target, target=laxer))
            if bought is not None:
                text = f"{laxer} at {self._rate} with {bought.in_words}{self._others(0)}"
                yield _nearest("statistic", text, bought, quantile=quantile)
                return

    @property
    def _rate(self) -> str:
        return format_rate(self.question.rate_per_s)

    @property
    def _asked(self) -> str:
        return targets_text(self.question.promises)

    def _others(self, index: int) -> str:
        """All targets except the one at an index."""
        promises = self.question.promises
        others = (*promises[:index], *promises[index + 1 :])
        return f", and {targets_text(others)}" if others else ""


def _nearest(gives_way: str, text: str, bought: Buy, **numbers: float) -> NearestTarget:
    return NearestTarget(
        gives_way=gives_way, text=text, numbers={"nodes": float(bought.nodes), **numbers}
    )


def with_more_nodes(offer: Offer) -> Offer:
    """The same offer, from the maximum nodes of its space to many more."""
    space = offer.question.space
    max_nodes = max(
        min(TIMES_THE_NODES.value * space.max_nodes, MOST_NODES_BEYOND.value), space.max_nodes
    )
    wider = replace(space, min_nodes=space.max_nodes, max_nodes=max_nodes)
    return replace(offer, question=replace(offer.question, space=wider))


def _leaving_out(question: Question, left_out: Sequence[Promise]) -> Question:
    return replace(
        question, also=tuple(promise for promise in question.also if promise not in left_out)
    )


def _with_target(question: Question, target: Target) -> Question:
    return replace(question, target=target)


def _kind_of(promises: Sequence[Promise]) -> str:
    if any(burst_of(promise) is not None for promise in promises):
        return "burst"
    return "outage" if any(isinstance(promise, CatchUp) for promise in promises) else "promise"


def _wider(question: Question, partitions: int) -> Question:
    return replace(question, profile=with_source_partitions(question.profile, partitions))


def _lowest_s(question: Question, index: int) -> float:
    """The lowest value of one target with all others met, within the budget and limits [s]."""
    lax, rate_per_s = question.with_limit(index, NO_LIMIT_S), question.rate_per_s
    candidates = all_candidates(lax, examined_node_counts(question))
    candidates = candidates.take(within_limits(candidates))
    relaxed = lax.promises[index]
    if not len(candidates):
        return math.inf
    if isinstance(relaxed, Target):
        also = (*lax.promises[:index], *lax.promises[index + 1 :])
        first = replace(lax, target=relaxed, also=also)
        return lowest_latency(replace(candidates, question=first))[1]
    candidates = candidates.take(candidates.could_meet(rate_per_s))
    if not len(candidates):
        return math.inf
    values_s = candidates.promised_latency_s(relaxed, rate_per_s)
    lowest_s = math.inf
    for setting_index in np.argsort(values_s, kind="stable").tolist():
        setting = candidates.alone(setting_index)
        if values_s[setting_index] < lowest_s and setting.certified_excess(rate_per_s) <= 0.0:
            lowest_s = min(lowest_s, float(setting.promised_latency_s(relaxed, rate_per_s)[0]))
    return lowest_s


def need_of(nearest: Nearest, promise: Promise) -> PromiseNeed:
    """A target on its own: the smallest purchase for it, its bill, and its value there.

    Nodes beyond the maximum are tried, too, and shown as such.
    """
    only_promise = partial(Question.of_alone, promise=promise)
    bought = nearest.fewest(only_promise)
    within, proved, offers = bought is not None, True, nearest.offers
    if bought is None:
        offers = tuple(map(with_more_nodes, offers))
        bought, proved = replace(nearest, offers=offers).searched(only_promise)
    max_nodes = max(offer.question.space.max_nodes for offer in offers)
    if bought is None:
        return PromiseNeed(promise=str(promise), within=False, most_nodes=max_nodes, proved=proved)
    node_type, question = bought.offer.node_type, bought.offer.question
    if question.minimises_bill:
        bought = cheapest(bought.offer, bought.nodes)
    return PromiseNeed(
        promise=str(promise),
        within=within,
        most_nodes=max_nodes,
        nodes=bought.nodes,
        node_type=None if node_type is None else node_type.name,
        cost_per_hour=bought.cost,
        reached_s=float(bought.setting.promised_latency_s(promise, question.rate_per_s)[0]),
    )
