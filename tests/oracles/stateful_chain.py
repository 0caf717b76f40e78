"""Rows through several stateful operators under Spark's rules, batch by batch: oracle of (T8)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

NEVER_MS = -1
"""A watermark that removes nothing; event times are after the epoch."""


class Rows(NamedTuple):
    """Rows of one event time and key, or a row that counts rows. [ms]"""

    at_ms: int
    number: int
    key: int = 0


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


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """Counts the rows of each key's sessions, which end a gap after their last row."""

    gap_ms: int


Operator: TypeAlias = Aggregation | SelfJoin | Deduplication | Sessions


class _Session(NamedTuple):
    start_ms: int
    end_ms: int
    number: int


class Emission(NamedTuple):
    """A window or session, the batch that emits it, and its rows."""

    batch: int
    end_ms: int
    number: int


class _Running:
    """One operator, with its state and the watermarks of its last batch."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.late_ms = NEVER_MS
        self.counts: Counter[int] = Counter()
        self.sessions: dict[int, list[_Session]] = defaultdict(list)

    def batch(self, rows: Iterable[Rows], watermark_ms: int) -> tuple[list[Rows], int]:
        """What it emits, and the watermark that it passes on."""
        operator, late_ms, self.late_ms = self.operator, self.late_ms, watermark_ms
        passed_ms = watermark_ms
        if isinstance(operator, Aggregation):
            out = self._windows(operator, rows, late_ms, watermark_ms)
        elif isinstance(operator, Sessions):
            out = self._sessions(operator, rows, late_ms, watermark_ms)
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

    def _sessions(
        self, operator: Sessions, rows: Iterable[Rows], late_ms: int, watermark_ms: int
    ) -> list[Rows]:
        for row in rows:
            if row.at_ms + operator.gap_ms > late_ms:
                merged = _Session(row.at_ms, row.at_ms + operator.gap_ms, row.number)
                separate = []
                for session in self.sessions[row.key]:
                    # Also those that only touch: Spark compares a start with an end by <=.
                    if session.start_ms <= merged.end_ms and merged.start_ms <= session.end_ms:
                        merged = _Session(
                            min(session.start_ms, merged.start_ms),
                            max(session.end_ms, merged.end_ms),
                            session.number + merged.number,
                        )
                    else:
                        separate.append(session)
                self.sessions[row.key] = [*separate, merged]
        closed = []
        for key, sessions in list(self.sessions.items()):
            closed += [
                Rows(session.end_ms - 1, session.number, key)
                for session in sessions
                if session.end_ms <= watermark_ms
            ]
            sessions[:] = [session for session in sessions if session.end_ms > watermark_ms]
            if not sessions:
                del self.sessions[key]
        return sorted(closed)


def emissions(
    chain: Sequence[Operator],
    batches: Sequence[Sequence[int]],
    delay_ms: int,
    keys: Sequence[Sequence[int]] | None = None,
) -> list[Emission]:
    """The windows of the last operator of a chain, and the batches that emit them.

    Parameters
    ----------
    chain : sequence of operators
        From the source on; the last one counts windows or sessions.
    batches : sequence of sequences of int
        Event times of the rows of each batch; empty for a batch without data. [ms]
    delay_ms : int, >= 0
        Delay of the watermark. [ms]
    keys : sequences of int, optional
        The key of each row, for sessions; all the same by default.

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
    join, the one by which it removes rows, which is behind by its range of event time. Sessions of
    a key that overlap or touch are one; it ends a gap after its last row.

    Examples
    --------
    >>> tens = Aggregation(size_ms=10_000, slide_ms=10_000)
    >>> emissions([tens, tens], [[1_000, 9_000], [13_000], []], 2_000)
    [Emission(batch=2, end_ms=10000, number=2)]
    >>> emissions([Sessions(gap_ms=3_000)], [[1_000, 4_000], [13_000], []], 2_000)
    [Emission(batch=2, end_ms=7000, number=2)]
    """
    running = [_Running(operator) for operator in chain]
    watermark_ms, found = 0, list[Emission]()
    newest_ms = -math.inf
    for number, event_times in enumerate(batches):
        of_batch = [0] * len(event_times) if keys is None else keys[number]
        rows = [Rows(at_ms, 1, key) for at_ms, key in zip(event_times, of_batch, strict=True)]
        passed_ms = watermark_ms
        for operator in running:
            rows, passed_ms = operator.batch(rows, passed_ms)
        found += [Emission(number, row.at_ms + 1, row.number) for row in rows]
        newest_ms = max([newest_ms, *event_times])
        if newest_ms > -math.inf:
            watermark_ms = max(watermark_ms, int(newest_ms) - delay_ms)
    return found
