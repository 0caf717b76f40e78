"""Why a plan needs more nodes, or costs more, than an earlier one: step by step.

The change of the number of nodes is split in a fixed order: first the costs of the job are set to
their new values, then its target, then its rate. In each step, the rest is still as before, so the
steps add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headway.digits import format_money
from headway.domain import AnyAnswer, AnyPromise
from headway.domain.target import targets_text
from headway.units import HOURS_PER_MONTH, S_PER_HOUR, counted, format_rate, listed

#: Figures that are this close are equal, since files have six digits.
UNCHANGED_RATIO = 1e-4


Why: TypeAlias = Literal[
    "costs of the job", "target", "rate", "price of a node", "checkpoint store"
]
"""Possible causes of a larger or more expensive plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Effect of one cause, or of several that cannot be separated, on nodes and cost.

    ``changes`` are the values of each before and after, empty for one without.

    >>> Cause(whys=("rate",), before="24k/s", after="48k/s", nodes=(2, 3)).in_words
    'rate 24k/s -> 48k/s: 3 nodes instead of 2'
    >>> Cause(
    ...     whys=("costs of the job", "rate"), nodes=(2, 2), changes=(("", ""), ("24k/s", "48k/s"))
    ... ).in_words
    'together, the costs of the job and the rate (24k/s -> 48k/s) need the same number of nodes'
    """

    whys: tuple[Why, ...]
    before: str = ""
    after: str = ""
    nodes: tuple[int, int] | None = None
    currency: str = ""
    cost_per_month: float | None = field(default=None, metadata={"then": {"text": "in_words"}})
    cost_per_run: float | None = None
    changes: tuple[tuple[str, str], ...] = field(default=(), metadata={"key": None})

    @property
    def in_words(self) -> str:
        """The cause and its effect, as text."""
        effects = []
        if self.nodes is not None:
            then, now = self.nodes
            same = "the same number of nodes"
            effects.append(f"{counted(now, 'node')} instead of {then}" if then != now else same)
        if self.cost_per_month:
            added = format_money(self.cost_per_month, currency=self.currency, sign=True)
            effects.append(f"{added} per month")
        if self.cost_per_run:
            added = format_money(self.cost_per_run, currency=self.currency, sign=True)
            effects.append(f"{added} per run")
        return f"{self._subject} {', '.join(effects)}"

    @property
    def _subject(self) -> str:
        """What has the effect, as the beginning of a text about it."""
        if len(self.whys) == 1:
            values = f" {self.before} -> {self.after}" if self.before or self.after else ""
            return f"{self.whys[0]}{values}:"
        names = [
            f"the {why} ({before} -> {after})" if before or after else f"the {why}"
            for why, (before, after) in zip(self.whys, self.changes, strict=True)
        ]
        return f"together, {listed(names)} need"


def cost_per_hour_of_run(cost_per_run: float | None, run_time_s: float) -> float | None:
    """Cost of the nodes of a job that ends, while it runs.

    >>> cost_per_hour_of_run(0.5, 1800.0)
    1.0
    """
    return None if cost_per_run is None else cost_per_run / (run_time_s / S_PER_HOUR)


#: Nodes that the new job needs at a rate for some targets; None if unknown.
Needs = Callable[[float | None, tuple[AnyPromise, ...]], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A question and the resulting size; costs are per hour, of all nodes and of the store.

    ``run_time_s`` is the mean run time of a job that ends, None for a stream. ``currency`` is empty
    if unknown.
    """

    rate_per_s: float | None
    promises: tuple[AnyPromise, ...]
    nodes: int
    cost_per_hour: float | None = None
    store_cost_per_hour: float | None = None
    run_time_s: float | None = None
    currency: str = ""

    @property
    def node_price(self) -> float | None:
        """Price of one node per hour."""
        return None if self.cost_per_hour is None else self.cost_per_hour / self.nodes


def causes(before: Sized, after: Sized, needs: Needs) -> tuple[Cause, ...]:
    """Why the number of nodes or the cost of a plan differs from before.

    The costs of the steps add up to the change of the cost; for a job that ends, only that of the
    price is known.

    >>> then = Sized(rate_per_s=1e4, promises=(), nodes=2, cost_per_hour=0.2)
    >>> now = Sized(rate_per_s=2e4, promises=(), nodes=5, cost_per_hour=1.0)
    >>> for cause in causes(then, now, lambda rate_per_s, promises: 3):
    ...     print(cause.in_words)
    price of a node 0.1 -> 0.2 per hour: +144 per month
    costs of the job: 3 nodes instead of 2, +144 per month
    rate 10k/s -> 20k/s: 5 nodes instead of 3, +288 per month
    """
    return (*_of_prices(before, after), *_of_size(before, after, needs))


def _of_prices(before: Sized, after: Sized) -> Iterator[Cause]:
    """What is paid for a node, and for the write requests and space of the checkpoint store."""
    prices: list[tuple[Why, float, float, int]] = []
    if before.node_price is not None and after.node_price is not None:
        prices.append(("price of a node", before.node_price, after.node_price, before.nodes))
    then_paid, now_paid = before.store_cost_per_hour, after.store_cost_per_hour
    # A store without a price costs nothing in a known cost; else its cost is unknown, too.
    if prices or None not in (then_paid, now_paid):
        prices.append(("checkpoint store", then_paid or 0.0, now_paid or 0.0, 1))
    for why, then, now, count in prices:
        if not math.isclose(then, now, rel_tol=UNCHANGED_RATIO):
            per_hour, run_time_s = (now - then) * count, before.run_time_s
            yield Cause(
                whys=(why,),
                before=format_money(then),
                after=f"{format_money(now, currency=after.currency)} per hour",
                currency=after.currency,
                cost_per_month=per_hour * HOURS_PER_MONTH if run_time_s is None else None,
                cost_per_run=None if run_time_s is None else per_hour * run_time_s / S_PER_HOUR,
            )


def _of_size(before: Sized, after: Sized, needs: Needs) -> Iterator[Cause]:
    nodes_before = before.nodes
    # A run on more nodes is also a shorter one.
    price = after.node_price if after.run_time_s is None else None
    steps: list[tuple[Why, str, str]] = []  # those whose single effects are unknown
    for why, then, now, nodes in _steps(before, after, needs):
        steps.append((why, then, now))
        if nodes is None:
            continue
        whys = tuple(step_why for step_why, _, _ in steps)
        if nodes != nodes_before or whys != ("costs of the job",):
            yield Cause(
                whys=whys,
                before=", ".join(text for _, text, _ in steps if text),
                after=", ".join(text for _, _, text in steps if text),
                changes=tuple((text_then, text_now) for _, text_then, text_now in steps),
                nodes=(nodes_before, nodes),
                currency=after.currency,
                cost_per_month=None
                if price is None
                else (nodes - nodes_before) * price * HOURS_PER_MONTH,
            )
        nodes_before, steps = nodes, []


def _steps(before: Sized, after: Sized, needs: Needs) -> Iterator[tuple[Why, str, str, int | None]]:
    """Each possible change, in order, and the number of nodes after it."""
    same_promises = before.promises == after.promises
    same_rate = before.rate_per_s == after.rate_per_s
    if same_promises and same_rate:
        yield "costs of the job", "", "", after.nodes
        return
    yield "costs of the job", "", "", needs(before.rate_per_s, before.promises)
    if not same_promises:
        nodes = after.nodes if same_rate else needs(before.rate_per_s, after.promises)
        yield "target", targets_text(before.promises), targets_text(after.promises), nodes
    if not same_rate:
        assert before.rate_per_s is not None
        assert after.rate_per_s is not None
        yield "rate", format_rate(before.rate_per_s), format_rate(after.rate_per_s), after.nodes


def frontier_needs(plan: AnyAnswer) -> Needs:
    """Nodes by a plan's own frontier for another rate, or another deadline.

    None for other latency targets, for which the frontier was not computed, and None if the
    frontier lacks the number of nodes just below the first sufficient one.
    """

    def needs(rate_per_s: float | None, promises: tuple[AnyPromise, ...]) -> int | None:
        if not plan.feasible:
            return None
        if plan.ends:
            limit_s = promises[0].limit_s
            return _fewest({point.nodes: point.planned_s <= limit_s for point in plan.frontier})
        if promises != plan.promises or rate_per_s is None:
            return None
        enough = {
            point.nodes: point.sustainable_rate_per_s >= rate_per_s for point in plan.frontier
        }
        nodes = _fewest(enough)
        more_is_asked = rate_per_s > plan.rate_per_s
        if nodes is None or (nodes < plan.nodes if more_is_asked else nodes > plan.nodes):
            return None
        return nodes

    return needs


def _fewest(enough: Mapping[int, bool]) -> int | None:
    """The fewest sufficient nodes, if one less is known to be insufficient."""
    nodes = min((count for count, is_enough in enough.items() if is_enough), default=None)
    return nodes if nodes == 1 or (nodes is not None and nodes - 1 in enough) else None
