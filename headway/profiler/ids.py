"""Observed ids, stored as ranges: Spark's ids are consecutive, so millions take little memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

Ranges: TypeAlias = Sequence[tuple[int, int]]
"""First and last id of each unbroken range of ids, in order, with no two ranges adjacent."""


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
        again = {one for one, before in zip(in_order[1:], in_order, strict=False) if one == before}
        return cls(_ranges(distinct), _ranges(sorted(again)))

    def with_others(self, others: Ids) -> Ids:
        """All ids of both; those in both are repeated.

        >>> Ids.of([1, 2, 3]).with_others(Ids.of([3, 4]))
        Ids(seen=((1, 4),), repeated=((3, 3),))
        """
        if not self.seen or not others.seen:
            return others if others.seen else self
        repeated = united(united(self.repeated, others.repeated), _common(self.seen, others.seen))
        return Ids(united(self.seen, others.seen), repeated)


def united(some: Ranges, others: Ranges) -> Ranges:
    """The ids of both.

    >>> united([(1, 2), (8, 9)], [(3, 4)])
    ((1, 4), (8, 9))
    """
    if not some or not others:
        return some or others
    found: list[tuple[int, int]] = []
    for first, last in sorted((*some, *others)):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


def _common(some: Ranges, others: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    at, other = 0, 0
    while at < len(some) and other < len(others):
        first = max(some[at][0], others[other][0])
        last = min(some[at][1], others[other][1])
        if first <= last:
            found.append((first, last))
        if some[at][1] < others[other][1]:
            at += 1
        else:
            other += 1
    return tuple(found)


def _ranges(distinct: Sequence[int]) -> Ranges:
    """Ranges of distinct ids in order."""
    if not distinct:
        return ()
    if distinct[-1] - distinct[0] + 1 == len(distinct):
        return ((distinct[0], distinct[-1]),)
    found: list[tuple[int, int]] = []
    first = last = distinct[0]
    for one in distinct[1:]:
        if one != last + 1:
            found.append((first, last))
            first = one
        last = one
    return (*found, (first, last))


def holds(ranges: Ranges, one: int) -> bool:
    """Whether it contains an id.

    >>> holds([(1, 3), (7, 7)], 3), holds([(1, 3), (7, 7)], 4)
    (True, False)
    """
    from bisect import bisect_right

    at = bisect_right(ranges, one, key=lambda ends: ends[0]) - 1
    return at >= 0 and one <= ranges[at][1]
