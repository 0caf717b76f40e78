"""Rows through several stateful operators under Spark's rules, batch by batch: oracle of (T8)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

NEVER_MS = -1
"""A watermark that removes nothing; event times are after the epoch."""


class Rows(NamedTuple):
    """Rows of one event time, or a row that counts rows. [ms]"""

    at_ms: int
    number: int


@dataclass(frozen=True, kw_only=True)
class Aggregation:
    """Counts the rows of windows; its rows have the last millisecond of their window."""

    size_ms: int
    slide_ms: int


@dataclass(frozen=True, kw_only=True)
class SelfJoin:
    """A stream with itself by a unique key, and a range of event time around the left row."""

    before_ms: int
    after_ms: int


@dataclass(frozen=True)
class Deduplication:
    """Rows without copies, which pass at once."""


Operator: TypeAlias = Aggregation | SelfJoin | Deduplication


class Emission(NamedTuple):
    """A window, the batch that emits it, and its rows."""

    batch: int
    end_ms: int
    number: int


class _Running:
    """One operator, with its state and the watermarks of its last batch."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.late_ms = NEVER_MS
        self.counts: Counter[int] = Counter()

    def batch(self, rows: Iterable[Rows], watermark_ms: int) -> tuple[list[Rows], int]:
        """What it emits, and the watermark that it passes on."""
        operator, late_ms, self.late_ms = self.operator, self.late_ms, watermark_ms
        passed_ms = watermark_ms
        if isinstance(operator, Aggregation):
            out = self._windows(operator, rows, late_ms, watermark_ms)
        else:
            out = [row for row in rows if row.at_ms > late_ms]
            if isinstance(operator, SelfJoin):
                # The millisecond is Spark's: its ranges exclude their ends.
                passed_ms -= max(operator.before_ms, operator.after_ms, -1) + 1
        return out, passed_ms

    def _windows(
        self, operator: Aggregation, rows: Iterable[Rows], late_ms: int, watermark_ms: int
    ) -> list[Rows]:
        for row in rows:
            end_ms = row.at_ms // operator.slide_ms * operator.slide_ms + operator.slide_ms
            for end in range(end_ms, row.at_ms + operator.size_ms + 1, operator.slide_ms):
                if end > late_ms:
                    self.counts[end] += row.number
        done = sorted(end for end in self.counts if end <= watermark_ms)
        return [Rows(end - 1, self.counts.pop(end)) for end in done]


def emissions(
    chain: Sequence[Operator], batches: Sequence[Sequence[int]], delay_ms: int
) -> list[Emission]:
    """The windows of the last operator of a chain, and the batches that emit them.

    Parameters
    ----------
    chain : sequence of operators
        From the source on; the last one counts windows.
    batches : sequence of sequences of int
        Event times of the rows of each batch; empty for a batch without data. [ms]
    delay_ms : int, >= 0
        Delay of the watermark. [ms]

    Returns
    -------
    list of Emission
        In the order in which they are emitted.

    Notes
    -----
    **(S13)** Stateful operators in a chain: a batch begins with the watermark of the query, which
    the batches before it have moved. Operators run one after the other in the same batch. Each
    drops rows that are late for its watermark in the batch before, adds the others to its state,
    emits what its watermark of this batch has passed, and passes a watermark on: its own, or, for a
    join, the one by which it removes rows, which is behind by its range of event time.

    Examples
    --------
    >>> tens = Aggregation(size_ms=10_000, slide_ms=10_000)
    >>> emissions([tens, tens], [[1_000, 9_000], [13_000], []], 2_000)
    [Emission(batch=2, end_ms=10000, number=2)]
    """
    running = [_Running(operator) for operator in chain]
    watermark_ms, found = 0, list[Emission]()
    newest_ms = -math.inf
    for number, event_times in enumerate(batches):
        rows, passed_ms = [Rows(at_ms, 1) for at_ms in event_times], watermark_ms
        for operator in running:
            rows, passed_ms = operator.batch(rows, passed_ms)
        found += [Emission(number, row.at_ms + 1, row.number) for row in rows]
        newest_ms = max([newest_ms, *event_times])
        if newest_ms > -math.inf:
            watermark_ms = max(watermark_ms, int(newest_ms) - delay_ms)
    return found
