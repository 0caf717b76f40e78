"""Event time in the text of a plan: windows, intervals, and watermarks of stateful operators.

Spark replaces a window by arithmetic on the time column, a struct of start and end. Since Spark 3.5
(SPARK-42376), a query may have several stateful operators: the watermark is passed from one to the
next, and the plan of a batch shows what each of them removes state by.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from headway.domain import EventTimeWindow, StatefulOperator
from headway.profiler.plan_nodes import PrintedOperator, readers
from headway.units import US_PER_MS, ms_to_s

_INTERVAL_PART = re.compile(
    r"(-?\d{1,15}(?:\.\d{1,9})?) "
    r"(year|month|week|day|hour|minute|second|millisecond|microsecond)s?(?: |$)"
)
_LONGEST_INTERVAL = 200
_DAY_S = 86400
_INTERVAL_UNIT_S = {
    # A watermark counts 31 days to the month, as Spark does; windows have no months.
    "year": Fraction(12 * 31 * _DAY_S),
    "month": Fraction(31 * _DAY_S),
    "week": Fraction(7 * _DAY_S),
    "day": Fraction(_DAY_S),
    "hour": Fraction(3600),
    "minute": Fraction(60),
    "second": Fraction(1),
    "millisecond": Fraction(1, 10**3),
    "microsecond": Fraction(1, 10**6),
}


def interval_s(text: str) -> Fraction | None:
    """Seconds of an interval as Spark prints it, e.g. ``1 hours 30 minutes``."""
    parts_text = text.strip().removeprefix("interval ")
    if not 0 < len(parts_text) <= _LONGEST_INTERVAL or _INTERVAL_PART.sub("", parts_text):
        return None
    parts = _INTERVAL_PART.findall(parts_text)
    parts_s = (Fraction(number) * _INTERVAL_UNIT_S[unit] for number, unit in parts)
    total_s = sum(parts_s, Fraction(0))
    return total_s if total_s >= 0 else None


_STRUCT = "named_struct(start, "
_STRUCT_PARTS = re.compile(r"named_struct\(start, |[()]|, end, ")
_TYPES = re.compile(r", (?:Long|Timestamp(?:NTZ)?)Type, (?:Long|Timestamp(?:NTZ)?)Type\)$")
_MOST_CONVERSIONS = 4
_MICROS_PER_S = 10**6
# The slide is the unit of the expression for the last start at or before a row:
_SLIDE_IN_START = (
    re.compile(r" % (\d{1,18})\) END\) - \d{1,18}\)$"),  # since 3.3.1
    re.compile(r"\+ (?P<again>\d{1,18})\) % ((?P=again))\)\) - \d{1,18}\)$"),  # 3.3.0
    re.compile(r" END \+ \d{1,18}\) - \d{1,18}\) \* (\d{1,18})\) \+ -?\d{1,18}\)$"),  # to 3.2
)
_OFFSET = re.compile(r"(-?\d{1,18})\)$")


def windows_of(operators: Iterable[PrintedOperator]) -> tuple[EventTimeWindow, ...]:
    """Distinct windows that operators make, in their order."""
    windows = (
        window
        for operator in operators
        for start, end in _start_end_structs(operator.detail)
        if (window := _window(start, end)) is not None
    )
    return tuple(dict.fromkeys(windows))


def _start_end_structs(text: str) -> Iterator[tuple[str, str]]:
    """The two expressions of every outermost ``named_struct(start, ..., end, ...)``."""
    begin, depth, middle = -1, 0, -1
    first = text.find(_STRUCT)
    if first < 0:
        return
    for match in _STRUCT_PARTS.finditer(text, first):
        token = match[0]
        if begin < 0:
            if token == _STRUCT:
                begin, depth, middle = match.end(), 1, -1
        elif token == ")":
            depth -= 1
            if depth == 0:
                if middle >= 0:
                    yield text[begin:middle], text[middle + len(", end, ") : match.start()]
                begin = -1
        elif token != ", end, ":
            depth += 1
        elif depth == 1 and middle < 0:
            middle = match.start()


def _window(start: str, end: str) -> EventTimeWindow | None:
    num_conversions, start = _without_conversions(start)
    _, end = _without_conversions(end)
    kinds = {1: _tumbling_or_sliding, 2: _session}
    return kinds[num_conversions](start, end) if num_conversions in kinds else None


def _without_conversions(expression: str) -> tuple[int, str]:
    """An expression without the surrounding conversions of time, and their number."""
    opening, num_conversions = "precisetimestampconversion(", 0
    for _ in range(_MOST_CONVERSIONS):
        if expression.startswith("knownnullable(") and expression.endswith(")"):
            expression = expression[len("knownnullable(") : -1]
        types = _TYPES.search(expression[-60:])
        if types is None or not expression.startswith(opening):
            break
        expression = expression[len(opening) : -len(types[0])]
        num_conversions += 1
    return num_conversions, expression


def _session(start: str, end: str) -> EventTimeWindow | None:
    gap = end.removeprefix(start + " + ")
    gap_s = None if gap == end or re.search("month|year", gap) else interval_s(gap)
    return EventTimeWindow(kind="session", size_s=float(gap_s)) if gap_s else None


def _tumbling_or_sliding(start: str, end: str) -> EventTimeWindow | None:
    slide = next((m for form in _SLIDE_IN_START if (m := form.search(start[-200:]))), None)
    size_us = _size_us(start, end)
    if slide is None or size_us is None or not 0 < int(slide[1]) <= size_us:
        return None
    return EventTimeWindow(
        kind="tumbling" if int(slide[1]) == size_us else "sliding",
        size_s=size_us / _MICROS_PER_S,
        slide_s=int(slide[1]) / _MICROS_PER_S,
    )


def _size_us(start: str, end: str) -> int | None:
    """Microseconds from start to end, if the text of both determines them."""
    tail = end.removeprefix(f"({start} + ")
    if tail != end and (added := re.fullmatch(r"(\d{1,18})\)", tail)):
        return int(added[1])
    # Up to 3.2 the optimizer folds size and start offset into one constant.
    from_start, from_end = _OFFSET.search(start[-30:]), _OFFSET.search(end[-30:])
    if from_start is None or from_end is None:
        return None
    same_base = start[: -len(from_start[0])] == end[: -len(from_end[0])]
    return int(from_end[1]) - int(from_start[1]) if same_base else None


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
