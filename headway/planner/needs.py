"""What each promise alone would take, where all together cannot be kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headway.domain import Promise, PromiseNeed
from headway.planner.candidates import all_candidates
from headway.planner.choice import chosen_setting
from headway.planner.nearest import Bought, Nearest, with_more_nodes
from headway.planner.question import Question


def needs_of(nearest: Nearest) -> Iterator[PromiseNeed]:
    """Every promise by itself: the least to buy for it, and what it gets there.

    Nodes beyond those that may be bought are looked at, too, and told as such.
    """
    for promise in nearest.question.promises:
        yield _need(nearest, promise)


def _need(nearest: Nearest, promise: Promise) -> PromiseNeed:
    def alone(question: Question) -> Question:
        return question.of_alone(promise)

    offers = nearest.offers
    bought, within = nearest.fewest(alone), True
    proved = True
    if bought is None:
        offers, within = tuple(map(with_more_nodes, offers)), False
        bought, proved = replace(nearest, offers=offers).searched(alone)
    most = max(offer.question.space.max_nodes for offer in offers)
    if bought is None:
        return PromiseNeed(promise=str(promise), within=False, most_nodes=most, proved=proved)
    node_type = bought.offer.node_type
    return PromiseNeed(
        promise=str(promise),
        within=within,
        most_nodes=most,
        nodes=bought.nodes,
        node_type=None if node_type is None else node_type.name,
        cost_per_hour=bought.offer.cost_per_hour(bought.nodes),
        reached_s=_reached_s(bought, promise),
    )


def _reached_s(bought: Bought, promise: Promise) -> float:
    """What the promise comes to at the setting that a plan for it alone would run [s]."""
    question = bought.offer.question.of_alone(promise)
    setting = chosen_setting(all_candidates(question, (bought.nodes,)))
    return float(setting.told_s(promise, question.rate_per_s)[0])
