"""Information in the text of a physical plan: operators, windows, watermark, joins, state.

Reads the ``physicalPlanDescription`` of Spark's event log in both its forms: a tree whose operators
are described in numbered sections below it (since 3.0), and a tree with everything on the
operator's own line (2.x, and the extended explain). Spark guarantees neither form, so nothing here
raises an error; what a text does not contain stays empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from headway.domain import EventTimeWindow, WindowKind
from headway.profiler.plan_nodes import is_join


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanShape:
    """The parts of a physical plan; what its text does not contain is None or empty."""

    operators: tuple[str, ...] = ()
    """Operators from the sink down to the sources, without codegen stars and numbers."""
    output_mode: str | None = None
    """``append``, ``update`` or ``complete``."""
    windows: tuple[EventTimeWindow, ...] = ()
    """Distinct windows, those nearer to the sources first."""
    watermark_delay_s: float | None = None
    """The largest one if there are several."""
    joins: tuple[str, ...] = ()
    """Operator and kind, e.g. ``BroadcastHashJoin LeftOuter``."""
    python_operators: tuple[str, ...] = ()
    """Operators that pass rows to a Python process."""
    state_partitions: int | None = None
    is_adaptive: bool = False
    """Whether adaptive execution may change it while it runs."""
    deals_out_buckets: bool = False
    """Whether `headway.ordered` assigns rows to buckets."""
    packs_rows: bool = False
    """Whether it packs them before its exchange, so that the exchange does not move single rows."""


class _Operator(NamedTuple):
    name: str
    detail: str
    """Rest of its line in the tree, then its numbered section."""

    @property
    def arguments(self) -> str:
        _, marker, after = self.detail.partition("\nArguments: ")
        return (after.split("\n", 1)[0] if marker else self.detail).strip()


_HEADING = "== Physical Plan =="
_SECTION = re.compile(r"^\((\d{1,9})\) (?=\S)", re.MULTILINE)
_BRANCH = re.compile(r"[ :]*(?:[+:]- )")
_NODE = re.compile(r"[ :]*(?:[+:]- )?(?:\*(?:\(\d{1,9}\))? ?)?!?([A-Za-z]\w{0,99})(.*)", re.ASCII)
_NUMBER = re.compile(r"\((\d{1,9})\)$")
_SINK_MODE = re.compile(
    r"^WriteToMicroBatchDataSource(?:V1)? .*, (Append|Update|Complete), \d+$", re.MULTILINE
)
_MODE = re.compile(r"(?<=, )(?:Append|Update|Complete)(?=,|$)")
_JOIN_KIND = re.compile(
    r"\b(?:Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|LeftSingle|ExistenceJoin)\b"
)
_STATE_PARTITIONS = re.compile(r", numPartitions = (\d{1,9})\]")
_STATEFUL_EXCHANGE = re.compile(r", (\d{1,9})\), REQUIRED_BY_STATEFUL_OPERATOR")
_BUCKETS = "hashpartitioning(_headway_bucket#"
_PACKED = re.compile(r"\[_headway_bucket#\d+, _headway_rows#\d+\]")
_PYTHON = re.compile(r"Python|Pandas|PySpark|InArrow")


def read_plan(text: str) -> PlanShape:
    """The parts of a query in a ``physicalPlanDescription``; for other text mostly none.

    Notes
    -----
    Until Spark 3.5, the description is planned separately from the batch: its state operators have
    ``checkpoint = <unknown>`` and print ``Append`` for any output mode of the query. Such a mode is
    left out. So is a window of which the query uses only the start or the end, since the text then
    lacks its size, and a session window whose gap differs by row.

    >>> shape = read_plan('''== Physical Plan ==
    ... *(2) HashAggregate(keys=[k#1L], functions=[count(1)])
    ... +- Exchange hashpartitioning(k#1L, 8), true, [id=#4]
    ...    +- *(1) Project [k#1L]
    ...       +- MicroBatchScan[k#1L] class RateStreamTable
    ... ''')
    >>> shape.operators
    ('HashAggregate', 'Exchange', 'Project', 'MicroBatchScan')
    """
    operators = _operators(text)
    names = tuple(operator.name for operator in operators)
    return PlanShape(
        operators=names,
        output_mode=_output_mode(text, operators),
        windows=_windows(operators),
        watermark_delay_s=_watermark_delay_s(operators),
        joins=tuple(_join(operator) for operator in operators if is_join(operator.name)),
        python_operators=tuple(name for name in names if _PYTHON.search(name)),
        state_partitions=_state_partitions(operators),
        is_adaptive="AdaptiveSparkPlan" in names,
        deals_out_buckets=any(
            one.name == "Exchange" and _BUCKETS in one.detail for one in operators
        ),
        packs_rows=any(
            one.name.endswith("MapInArrow") and _PACKED.search(one.detail) for one in operators
        ),
    )


def _operators(text: str) -> list[_Operator]:
    _, heading, plan = text.rpartition(_HEADING + "\n")
    if not heading:
        return []
    tree, _, rest = plan.lstrip("\n").partition("\n\n")
    sections = _sections(rest)
    found = []
    for name, line in _nodes(tree):
        number = _NUMBER.search(line)
        section = sections.get(number[1]) if number else None
        found.append(_Operator(name, line if section is None else f"\n{line}\n{section}"))
    return found


def _sections(text: str) -> dict[str, str]:
    numbers_and_bodies = _SECTION.split(text)[1:]
    bodies = zip(numbers_and_bodies[::2], numbers_and_bodies[1::2], strict=True)
    return dict(reversed(list(bodies)))


def _nodes(tree: str) -> Iterator[tuple[str, str]]:
    """Name of each operator of a tree, and the rest of its line."""
    name, parts = "", list[str]()
    expects_root, skipped_depth = True, None
    for line in tree.split("\n"):
        if line.startswith("== "):
            break
        branch = _BRANCH.match(line)
        depth = branch.end() if branch else len(line) - len(line.lstrip(" :"))
        if skipped_depth is not None and depth >= skipped_depth:
            continue
        skipped_depth = None
        if line.endswith("== Initial Plan =="):
            # Below it is the initial plan, which was replaced by the final one above it.
            skipped_depth = depth
        elif line.endswith((" == Final Plan ==", " == Current Plan ==")):
            expects_root = True
        elif (branch or expects_root) and (node := _NODE.match(line)):
            if name:
                yield name, " ".join(parts).rstrip()
            name, parts, expects_root = node[1], [node[2]], False
        else:
            parts.append(line)  # a literal of the query contains a line break
    if name:
        yield name, " ".join(parts).rstrip()


def _is_shuffle(name: str) -> bool:
    return name.endswith("Exchange") and not name.startswith(("Broadcast", "Reused"))


def _join(operator: _Operator) -> str:
    # The kind is after the name, among the arguments or on a separate line.
    kind = _JOIN_KIND.search(_outside_brackets(operator.detail))
    return f"{operator.name} {kind[0]}" if kind else operator.name


def _outside_brackets(text: str) -> str:
    """The text without parts in brackets, which may contain names from the query."""
    kept, open_brackets, kept_until = list[str](), list[str](), 0
    num_open = dict.fromkeys("([", 0)
    for match in re.finditer(r"[\[\]()]", text):
        bracket = match[0]
        if bracket in "([":
            if not open_brackets:
                kept.append(text[kept_until : match.start()])
            open_brackets.append(bracket)
            num_open[bracket] += 1
            continue
        partner = "(" if bracket == ")" else "["
        # An open bracket, as in the name of a Java array, ends with the enclosing one.
        while num_open[partner]:
            last = open_brackets.pop()
            num_open[last] -= 1
            if last == partner:
                break
        if not open_brackets:
            kept_until = match.end()
    if not open_brackets:
        kept.append(text[kept_until:])
    return "".join(kept)


def _output_mode(text: str, operators: list[_Operator]) -> str | None:
    modes = [
        *(_mode(operator) for operator in operators if _keeps_mode_of_query(operator)),
        *_SINK_MODE.findall(text),
    ]
    return next((mode.lower() for mode in modes if mode), None)


def _keeps_mode_of_query(operator: _Operator) -> bool:
    if re.fullmatch(r"FlatMapGroups\w*WithState", operator.name):
        return True  # the user's own argument, which Spark checks against the query
    has_state = operator.name.endswith(("StateStoreSave", "StreamingSymmetricHashJoin"))
    known = re.search(r"state info \[ checkpoint = (?!<unknown>)", operator.arguments)
    return has_state and known is not None


def _mode(operator: _Operator) -> str | None:
    modes = _MODE.findall(_outside_brackets(operator.arguments))
    return modes[-1] if modes else None


def _state_partitions(operators: list[_Operator]) -> int | None:
    stateful = [int(found) for each in operators if (found := _partitions_of_state(each))]
    shuffles = [
        int(match[1])
        for each in operators
        if _is_shuffle(each.name) and (match := _STATEFUL_EXCHANGE.search(each.detail))
    ]
    return max(stateful or shuffles, default=None)


def _partitions_of_state(operator: _Operator) -> str | None:
    found = _STATE_PARTITIONS.findall(operator.arguments)
    if not found:
        return None
    # Without keys, all rows are in one partition, regardless of the printed setting.
    without_keys = operator.name.startswith("StateStore") and operator.arguments.startswith(
        ("state info [", "[], state info [")
    )
    return "1" if without_keys else str(found[-1])


def _watermark_delay_s(operators: list[_Operator]) -> float | None:
    delays = [
        _interval_s(operator.arguments.rsplit(", ", 1)[-1])
        for operator in operators
        if operator.name == "EventTimeWatermark"
    ]
    return max((float(delay) for delay in delays if delay is not None), default=None)


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


def _interval_s(text: str) -> Fraction | None:
    """Seconds of an interval as Spark prints it, e.g. ``1 hours 30 minutes``."""
    rest, total_s = text.strip().removeprefix("interval "), Fraction(0)
    if not 0 < len(rest) <= _LONGEST_INTERVAL:
        return None
    while rest:
        part = _INTERVAL_PART.match(rest)
        if part is None:
            return None
        total_s += Fraction(part[1]) * _INTERVAL_UNIT_S[part[2]]
        rest = rest[part.end() :]
    return total_s if total_s >= 0 else None


# Windows: Spark replaces them by arithmetic on the time column, a struct of start and end.

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


def _windows(operators: list[_Operator]) -> tuple[EventTimeWindow, ...]:
    found = (
        window
        for operator in reversed(operators)
        for start, end in _start_end_structs(operator.detail)
        if (window := _window(start, end)) is not None
    )
    return tuple(dict.fromkeys(found))


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
    gap_s = None if gap == end or re.search("month|year", gap) else _interval_s(gap)
    if not gap_s:
        return None
    return EventTimeWindow(kind=WindowKind.SESSION, size_s=float(gap_s))


def _tumbling_or_sliding(start: str, end: str) -> EventTimeWindow | None:
    slide = next((m for form in _SLIDE_IN_START if (m := form.search(start[-200:]))), None)
    size_us = _size_us(start, end)
    if slide is None or size_us is None or not 0 < int(slide[1]) <= size_us:
        return None
    return EventTimeWindow(
        kind=WindowKind.TUMBLING if int(slide[1]) == size_us else WindowKind.SLIDING,
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
