"""The stateful operators of a query, in order, and how far each one's watermark is behind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headway.domain import EventTimeWindow, StatefulOperator
from headway.profiler.plan_tree import PrintedOperator, readers
from headway.profiler.plan_windows import windows_of
from headway.units import US_PER_MS, ms_to_s

_JOIN = "StreamingSymmetricHashJoin"
# Before 3.5 a single watermark, for late rows and for state alike.
_JOIN_WATERMARKS = re.compile(r", (?:(-?\d{1,19}), )?(-?\d{1,19}), state cleanup \[")
_OLDEST_VALUE_US = re.compile(r"value predicate: \([^<>]{0,300}<= (-?\d{1,19})\)")
_LONGEST_CLEANUP = 2000
_SIDES = 2
_AGGREGATION_WATERMARK = re.compile(r", (?:Append|Update|Complete), -?\d{1,19}, (-?\d{1,19}), \d+$")
# What is left of a window of which only the start or the end is used: its slide, in microseconds.
_CONVERSION, _SLIDE = "precisetimestampconversion(", re.compile(r" % \d{7,18}\)")


@dataclass
class _Below:
    """What an operator reads: positions in the chain, windows made since, and the watermark."""

    reads: list[int] = field(default_factory=list)
    windows: list[EventTimeWindow] = field(default_factory=list)
    has_part_of_window: bool = False
    behind_s: float | None = 0.0

    def add(self, other: _Below) -> None:
        """Data from another input; the watermark that is farther behind counts."""
        self.reads += [position for position in other.reads if position not in self.reads]
        self.windows += [window for window in other.windows if window not in self.windows]
        self.has_part_of_window |= other.has_part_of_window
        if self.behind_s is not None:
            self.behind_s = None if other.behind_s is None else max(self.behind_s, other.behind_s)


def stateful_chain(operators: Sequence[PrintedOperator]) -> tuple[StatefulOperator, ...]:
    """The operators that keep state, each after those that it reads; given are all, sink first.

    A join of two streams holds the watermark back by what it may still emit: the next operator gets
    the minimum of its own watermark and of those by which it removes rows of either side
    (``StreamingSymmetricHashJoinExec.produceOutputWatermark``). All other operators pass it on.
    """
    chain = list[StatefulOperator]()
    newest_ms = max(filter(None, map(_removed_by_ms, operators)), default=None)
    below = [_Below() for _ in operators]
    above = readers([operator.indentation for operator in operators])
    for position, reader in reversed(list(enumerate(above))):
        operator, inputs = operators[position], below[position]
        _add_windows(inputs, operator)
        keeps_state = "state info [" in operator.detail
        if keeps_state and not operator.name.endswith("StateStoreRestore"):
            removed_by_ms = _removed_by_ms(operator)
            if newest_ms and removed_by_ms:
                inputs.behind_s = ms_to_s(newest_ms - removed_by_ms)
            chain.append(_stateful(operator, inputs, chain))
            inputs = _Below(reads=[len(chain) - 1], behind_s=_behind_after_s(operator, inputs))
        if reader is not None:
            below[reader].add(inputs)
    return tuple(chain)


def _add_windows(inputs: _Below, operator: PrintedOperator) -> None:
    windows = windows_of([operator])
    inputs.windows += [window for window in windows if window not in inputs.windows]
    if not windows and operator.name in ("Project", "Expand"):
        has_slide = _SLIDE.search(operator.detail) is not None
        inputs.has_part_of_window |= has_slide and _CONVERSION in operator.detail


def _stateful(
    operator: PrintedOperator, inputs: _Below, chain: Sequence[StatefulOperator]
) -> StatefulOperator:
    windows: Iterable[EventTimeWindow] = inputs.windows
    is_aggregation = operator.name.endswith("StateStoreSave")
    if is_aggregation and not windows and not inputs.has_part_of_window:
        windows = dict.fromkeys(window for at in inputs.reads for window in chain[at].windows)
    return StatefulOperator(
        name=operator.name,
        reads=tuple(inputs.reads),
        windows=tuple(windows),
        watermark_behind_s=inputs.behind_s,
        holds_back_s=_holds_back_s(operator),
    )


def _behind_after_s(operator: PrintedOperator, inputs: _Below) -> float | None:
    """How far the watermark that an operator passes on is behind the query's."""
    if operator.name != _JOIN or inputs.behind_s is None:
        return inputs.behind_s
    watermarks = _watermarks_of_join(operator)
    if watermarks is None:
        return None
    held_s = 0.0 if watermarks[1] is None else _held_s(operator, watermarks)
    return inputs.behind_s + held_s


def _holds_back_s(operator: PrintedOperator) -> float | None:
    """The longer reach of the range of a join; None if it does not clean up both of its sides."""
    watermarks = _watermarks_of_join(operator)
    if watermarks is None or _cleanup(operator, watermarks).count("predicate: ") < _SIDES:
        return None
    return _held_s(operator, watermarks)


def _held_s(operator: PrintedOperator, watermarks: re.Match[str]) -> float:
    """From the oldest event time that a join keeps to the watermark by which it removes rows."""
    removed_by_ms = int(watermarks[2])
    values_us = _OLDEST_VALUE_US.findall(_cleanup(operator, watermarks))
    oldest_ms = [int(value_us) // US_PER_MS for value_us in values_us]
    return ms_to_s(removed_by_ms - min([*oldest_ms, removed_by_ms]))


def _cleanup(operator: PrintedOperator, watermarks: re.Match[str]) -> str:
    return operator.arguments[watermarks.end() : watermarks.end() + _LONGEST_CLEANUP]


def _removed_by_ms(operator: PrintedOperator) -> int | None:
    """The watermark by which an operator removes its state; None if there is none yet."""
    printed = _watermarks_of_join(operator)
    if operator.name.endswith("StateStoreSave"):
        printed = _AGGREGATION_WATERMARK.search(operator.arguments)
    return max(int(printed.groups()[-1]), 0) or None if printed else None


def _watermarks_of_join(operator: PrintedOperator) -> re.Match[str] | None:
    return _JOIN_WATERMARKS.search(operator.arguments) if operator.name == _JOIN else None
