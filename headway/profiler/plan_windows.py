"""Windows of event time, and intervals, in the text of a plan: arithmetic on a struct."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction

from headway.domain import EventTimeWindow
from headway.profiler.plan_tree import PrintedOperator

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
    for match in re.finditer(r"named_struct\(start, |[()]|, end, ", text):
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
