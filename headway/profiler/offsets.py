"""Position of a source: the offsets in a streaming query's progress.

Every source writes its offsets as JSON in its own format. Kafka's count rows; others count files,
versions or seconds. Which it is can only be inferred from the rows that batches read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from headway.assumptions.logs import AGREEING_RATIO, LEAST_BATCHES_WITH_OFFSETS, MOST_EXCESS_RATIO

_WHOLE = "offset"
_DEEPEST = 8
_LARGEST_POSITION = 2**63 - 1  # a Java long
_KAFKA_LIKE = re.compile(r"[^/]+/[0-9]+")

Offset: TypeAlias = Mapping[str, int] | None  # by partition; None if unknown


@lru_cache(maxsize=16_384)  # the end of a batch is the start of the next, and both are read often
def read_offset(text: str | None) -> Offset:
    """Positions of a source by partition, named by JSON path; a single number is ``offset``.

    Values other than whole numbers from 0 to the maximum of a Java long are left out. None if
    nothing is left, or the text is not JSON.

    >>> read_offset('{"orders": {"0": 123, "1": 456}}')
    {'orders/0': 123, 'orders/1': 456}
    >>> read_offset("12")
    {'offset': 12}
    >>> read_offset("null") is None
    True
    """
    document = _parsed(text)
    if isinstance(document, str):
        document = _parsed(document)  # JSON as text within JSON
    positions: dict[str, int] = {}
    waiting: list[tuple[str, object, int]] = [("", document, 0)]
    while waiting:
        name, value, depth = waiting.pop()
        if isinstance(value, dict) and depth < _DEEPEST:
            below = [(f"{name}/{key}" if name else key, value[key], depth + 1) for key in value]
            waiting.extend(reversed(below))
        elif type(value) is int and 0 <= value <= _LARGEST_POSITION:
            positions[name or _WHOLE] = value
    return positions or None


def _parsed(text: str | None) -> object:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def rows_between(start: Offset, end: Offset) -> dict[str, int]:
    """By how much each partition advanced, if known.

    Unknown if its start is not recorded, or if it went backwards, e.g. since a topic was recreated.

    >>> rows_between({"t/0": 5, "t/1": 9}, {"t/0": 8, "t/1": 2, "t/2": 4})
    {'t/0': 3}
    """
    start_positions = start or {}
    return {
        partition: position - start_positions[partition]
        for partition, position in (end or {}).items()
        if partition in start_positions and position >= start_positions[partition]
    }


def counts_rows(
    pairs: Sequence[Sequence[tuple[Offset, Offset]]], num_rows: Sequence[float]
) -> bool:
    """Whether the offsets of a query's sources, start and end by batch, count the rows read.

    True only if at least three batches are conclusive, and if in nearly all of them, and in total,
    the offsets advance by the number of rows read or at most 2% more. A transactional topic has
    such gaps, since every commit uses an offset without a row. A batch is inconclusive if it is
    idle, lacks the start of a partition, or has a partition that went backwards.

    >>> sources = [[({"t/0": 0}, {"t/0": 70})], [({"t/0": 70}, {"t/0": 99})]] * 2
    >>> counts_rows(sources, [70, 29, 70, 29])
    True
    >>> counts_rows(sources, [7, 1, 7, 1])
    False
    """
    telling = [
        (advance, rows)
        for sources, rows in zip(pairs, num_rows, strict=True)
        if (advance := _advance(sources)) is not None and (advance > 0 or rows > 0)
    ]
    if len(telling) < LEAST_BATCHES_WITH_OFFSETS.value:
        return False
    agreeing = sum(advance_counts(advance, rows) for advance, rows in telling)
    over_all = sum(advance for advance, _ in telling), math.fsum(rows for _, rows in telling)
    return agreeing >= AGREEING_RATIO.value * len(telling) and advance_counts(*over_all)


def _advance(sources: Sequence[tuple[Offset, Offset]]) -> int | None:
    total = 0
    for start, end in sources:
        advanced = rows_between(start, end)
        if not end or len(advanced) < len(end):
            return None
        total += sum(advanced.values())
    return total if sources else None


def advance_counts(advance: int, rows: float) -> bool:
    """Whether offsets that advance by so many positions count so many rows."""
    return 0 <= advance - rows <= MOST_EXCESS_RATIO.value * advance


def num_source_partitions(offset: Offset) -> int | None:
    """Partitions of a source with offsets by topic and partition, like Kafka; else None.

    >>> num_source_partitions({"orders/0": 1, "orders/1": 2, "returns/0": 7})
    3
    >>> num_source_partitions({"logOffset": 4}) is None
    True
    """
    if not offset or not all(_KAFKA_LIKE.fullmatch(name) for name in offset):
        return None
    return len(offset)
