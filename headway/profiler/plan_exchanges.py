"""Exchanges of a physical plan with their keys, and which of them could be one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from headway.lazy_classes import dataclass
from headway.models.sharing.fusion import Component, OperatorGraph, fewest_rows, rows_between
from headway.profiler.plan_nodes import readers

_EXCHANGE = re.compile(r"^(?P<indent>[ :+-]*)(?:\*\(\d+\) )?(?P<name>Exchange)\b(?P<rest>.*)$")
_HASH = re.compile(r"hashpartitioning\((?P<keys>.*?), (?P<number>\d+)\)")
_NUMBERED = re.compile(r"#\d+L?(?:-T\d+ms)?")
_SECTION = re.compile(
    r"^\((?P<number>\d+)\) Exchange\b.*?^Arguments: (?P<rest>[^\n]*)", re.M | re.S
)
_ROWS = re.compile(r"rowCount=(?P<rows>[\d.]+(?:E[+-]?\d+)?)|records: (?P<records>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanExchange:
    """One shuffle: keys, tasks behind it, and the next one towards the sink.

    ``rows`` is 1 if the plan contains no rows, so that exchanges are counted.
    """

    keys: tuple[str, ...]
    shuffle_partitions: int
    rows: float = 1.0
    feeds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionAdvice:
    """Exchanges that one coarser exchange could replace, and the columns to partition by."""

    exchanges: tuple[PlanExchange, ...]
    by: tuple[str, ...]
    spared: float


def plan_exchanges(plan: str) -> tuple[PlanExchange, ...]:
    """Exchanges by key of a physical plan, from the sink down to the sources.

    ``plan`` is the output of ``df.explain()``, in its simple or formatted form, or the text in the
    event log.

    >>> plan = '''== Physical Plan ==
    ... HashAggregate(keys=[area#1], functions=[sum(n#2L)])
    ... +- Exchange hashpartitioning(area#1, 8), ENSURE_REQUIREMENTS, [plan_id=1]
    ...    +- HashAggregate(keys=[area#1, user#3], functions=[count(1)])
    ...       +- Exchange hashpartitioning(area#1, user#3, 8), ENSURE_REQUIREMENTS, [plan_id=2]
    ...          +- Scan parquet [area#1,user#3]
    ... '''
    >>> [(exchange.keys, exchange.feeds) for exchange in plan_exchanges(plan)]
    [(('area',), None), (('area', 'user'), 0)]
    """
    sections = {section["number"]: section["rest"] for section in _SECTION.finditer(plan)}
    exchanges, depths = list[PlanExchange](), list[int]()
    for line in plan.splitlines():
        exchange = _EXCHANGE.match(line)
        if exchange is None:
            continue
        arguments = exchange["rest"]
        numbered = re.search(r"\((\d+)\)\s*$", arguments)
        hashed = _HASH.search(sections.get(numbered[1], arguments) if numbered else arguments)
        if hashed is None:
            continue
        depths.append(len(exchange["indent"]))
        rows = _ROWS.search(arguments)
        exchanges.append(
            PlanExchange(
                keys=tuple(_NUMBERED.sub("", key).strip() for key in _split(hashed["keys"])),
                shuffle_partitions=int(hashed["number"]),
                rows=float(rows["rows"] or rows["records"]) if rows else 1.0,
            )
        )
    return tuple(
        replace(exchange, feeds=feeds)
        for exchange, feeds in zip(exchanges, readers(depths), strict=True)
    )


def fusion_advice(exchanges: tuple[PlanExchange, ...]) -> tuple[FusionAdvice, ...]:
    """Groups of exchanges that one by common columns could replace, largest saving first.

    Rows are those that an exchange shuffles to the next one. A window's start and end are not
    columns to partition by.

    >>> by_user = PlanExchange(keys=("area", "user"), shuffle_partitions=8, feeds=0)
    >>> by_area = PlanExchange(keys=("area",), shuffle_partitions=8)
    >>> [(advice.by, advice.spared) for advice in fusion_advice((by_area, by_user))]
    [(('area',), 1.0)]
    """
    graph = OperatorGraph(
        attributes=tuple(
            frozenset(key for key in exchange.keys if not key.startswith("window"))
            for exchange in exchanges
        ),
        edges=tuple(
            (position, exchange.feeds, exchanges[exchange.feeds].rows)
            for position, exchange in enumerate(exchanges)
            if exchange.feeds is not None
        ),
    )
    components = fewest_rows(graph)
    total = sum(rows for _, _, rows in graph.edges)
    advice = [
        FusionAdvice(
            exchanges=tuple(exchanges[position] for position in sorted(operators)),
            by=tuple(key for key in exchanges[min(operators)].keys if key in attributes),
            spared=total - rows_between(graph, _split_up(components, operators)),
        )
        for operators, attributes in components
        if len(operators) > 1
    ]
    return tuple(sorted(advice, key=lambda group: -group.spared))


def _split_up(
    components: tuple[Component, ...], fused_operators: frozenset[int]
) -> Iterator[Component]:
    """All components except one, split again."""
    for operators, attributes in components:
        if operators == fused_operators:
            yield operators, attributes
        else:
            yield from ((frozenset({operator}), attributes) for operator in operators)


def _split(keys: str) -> list[str]:
    """Keys of a list, whose expressions may contain commas."""
    parts, depth, start = list[str](), 0, 0
    for position, character in enumerate(keys):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(keys[start:position])
            start = position + 1
    return [*parts, keys[start:]]
