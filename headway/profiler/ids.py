"""Observed ids, stored as ranges: Spark's ids are consecutive, so millions take little memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

Ranges: TypeAlias = Sequence[tuple[int, int]]
"""First and last id of each unbroken range of ids, in order, with no two ranges adjacent."""


_Value = TypeVar("_Value")


class Ids(NamedTuple):
    """Observed ids, and those of them that occurred more than once.

    Sets of ids that were gathered separately can be merged in any order (:meth:`with_others`).
    """

    seen: Ranges = ()
    repeated: Ranges = ()

    @property
    def num_distinct(self) -> int:
        return sum(last - first + 1 for first, last in self.seen)

    @classmethod
    def of(cls, ids: Iterable[int]) -> Ids:
        """From ids in any order.

        >>> Ids.of([3, 1, 2, 7, 2])
        Ids(seen=((1, 3), (7, 7)), repeated=((2, 2),))
        """
        in_order = sorted(ids)
        distinct = sorted(set(in_order))
        if len(distinct) == len(in_order):
            return cls(_ranges(distinct))
        repeated_ids = {
            observed_id
            for observed_id, previous_id in zip(in_order[1:], in_order, strict=False)
            if observed_id == previous_id
        }
        return cls(_ranges(distinct), _ranges(sorted(repeated_ids)))

    def with_others(self, others: Ids) -> Ids:
        """All ids of both; those in both are repeated.

        >>> Ids.of([1, 2, 3]).with_others(Ids.of([3, 4]))
        Ids(seen=((1, 4),), repeated=((3, 3),))
        """
        if not self.seen or not others.seen:
            return others if others.seen else self
        repeated = united(united(self.repeated, others.repeated), _common(self.seen, others.seen))
        return Ids(united(self.seen, others.seen), repeated)


def united(ranges: Ranges, other_ranges: Ranges) -> Ranges:
    """The ids of both.

    >>> united([(1, 2), (8, 9)], [(3, 4)])
    ((1, 4), (8, 9))
    """
    if not ranges or not other_ranges:
        return ranges or other_ranges
    merged_ranges: list[tuple[int, int]] = []
    for first, last in sorted((*ranges, *other_ranges)):
        if merged_ranges and first <= merged_ranges[-1][1] + 1:
            merged_ranges[-1] = merged_ranges[-1][0], max(merged_ranges[-1][1], last)
        else:
            merged_ranges.append((first, last))
    return tuple(merged_ranges)


def _common(ranges: Ranges, other_ranges: Ranges) -> Ranges:
    common_ranges: list[tuple[int, int]] = []
    index, other_index = 0, 0
    while index < len(ranges) and other_index < len(other_ranges):
        first = max(ranges[index][0], other_ranges[other_index][0])
        last = min(ranges[index][1], other_ranges[other_index][1])
        if first <= last:
            common_ranges.append((first, last))
        if ranges[index][1] < other_ranges[other_index][1]:
            index += 1
        else:
            other_index += 1
    return tuple(common_ranges)


def _ranges(distinct: Sequence[int]) -> Ranges:
    """Ranges of distinct ids in order."""
    if not distinct:
        return ()
    if distinct[-1] - distinct[0] + 1 == len(distinct):
        return ((distinct[0], distinct[-1]),)
    ranges: list[tuple[int, int]] = []
    first = last = distinct[0]
    for next_id in distinct[1:]:
        if next_id != last + 1:
            ranges.append((first, last))
            first = next_id
        last = next_id
    return (*ranges, (first, last))


def latest(table: dict[int, _Value], most: int) -> dict[int, _Value]:
    """The entries of a table with the latest ids, which increase.

    >>> latest({7: "c", 1: "a", 3: "b"}, 2)
    {3: 'b', 7: 'c'}
    """
    return dict(sorted(table.items())[-most:]) if len(table) > most else table


def holds(ranges: Ranges, candidate_id: int) -> bool:
    """Whether it contains an id.

    >>> holds([(1, 3), (7, 7)], 3), holds([(1, 3), (7, 7)], 4)
    (True, False)
    """

    at = bisect_right(ranges, candidate_id, key=lambda id_range: id_range[0]) - 1
    return at >= 0 and candidate_id <= ranges[at][1]
