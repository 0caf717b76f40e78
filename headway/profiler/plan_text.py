"""Information in the text of a physical plan: operators, windows, watermark, joins, state.

Reads the ``physicalPlanDescription`` of Spark's event log in both its forms: a tree whose operators
are described in numbered sections below it (since 3.0), and a tree with everything on the
operator's own line (2.x, and the extended explain). Spark guarantees neither form, so nothing here
raises an error; what a text does not contain stays empty.
"""

from __future__ import annotations

import re

from headway.domain import EventTimeWindow, StatefulOperator
from headway.domain.writes import STORE_OF_SCHEME, CheckpointStore
from headway.lazy_classes import dataclass
from headway.profiler.plan_event_time import interval_s, stateful_chain, windows_of
from headway.profiler.plan_nodes import PrintedOperator, is_join, printed_operators


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanShape:
    """The parts of a physical plan; what its text does not contain is None or empty."""

    # From the sink down to the sources, without codegen stars and numbers.
    operators: tuple[str, ...] = ()
    output_mode: str | None = None  # ``append``, ``update`` or ``complete``
    windows: tuple[EventTimeWindow, ...] = ()  # distinct ones, nearer to the sources first
    chain: tuple[StatefulOperator, ...] = ()  # that keep state, nearer to the sources first
    watermark_delay_s: float | None = None  # the largest one if there are several
    joins: tuple[str, ...] = ()  # operator and kind, e.g. ``BroadcastHashJoin LeftOuter``
    python_operators: tuple[str, ...] = ()  # that pass rows to a Python process
    state_partitions: int | None = None
    is_adaptive: bool = False  # adaptive execution may change it while it runs
    deals_out_buckets: bool = False  # `headway.ordered` assigns rows to buckets
    # Of each scan of files, whether filters of the query are pushed into it, so that it does not
    # count the rows that they drop.
    filters_in_scans: tuple[bool, ...] = ()
    packs_rows: bool = False  # before its exchange, which then does not move single rows
    checkpoint_store: CheckpointStore | None = None  # by the scheme of the address of the state


_SINK_MODE = re.compile(
    r"^WriteToMicroBatchDataSource(?:V1)? .*, (Append|Update|Complete), \d+$", re.MULTILINE
)
_MODE = re.compile(r"(?<=, )(?:Append|Update|Complete)(?=,|$)")
_JOIN_KIND = re.compile(
    r"\b(?:Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|LeftSingle|ExistenceJoin)\b"
)
_STATE_PARTITIONS = re.compile(r", numPartitions = (\d{1,9})\]")
_STATEFUL_EXCHANGE = re.compile(r", (\d{1,9})\), REQUIRED_BY_STATEFUL_OPERATOR")
_CHECKPOINT = re.compile(r"state info \[ checkpoint = (\w{1,10})://")
_BUCKETS = "hashpartitioning(_headway_bucket#"
_PACKED = re.compile(r"\[_headway_bucket#\d+, _headway_rows#\d+\]")
_PUSHED = re.compile(r"\bPushedFilters: \[(.)")
_PYTHON = re.compile(r"Python|Pandas|PySpark|InArrow")


def read_plan(text: str) -> PlanShape:
    """The parts of a query in a ``physicalPlanDescription``; for other text mostly none.

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
    operators = printed_operators(text)
    names = tuple(operator.name for operator in operators)
    return PlanShape(
        operators=names,
        output_mode=_output_mode(text, operators),
        windows=windows_of(reversed(operators)),
        chain=stateful_chain(operators),
        watermark_delay_s=_watermark_delay_s(operators),
        joins=tuple(_join(operator) for operator in operators if is_join(operator.name)),
        python_operators=tuple(name for name in names if _PYTHON.search(name)),
        state_partitions=_state_partitions(operators),
        is_adaptive="AdaptiveSparkPlan" in names,
        deals_out_buckets=any(
            operator.name == "Exchange" and _BUCKETS in operator.detail for operator in operators
        ),
        filters_in_scans=tuple(
            pushed[1] != "]"
            for operator in operators
            if operator.name.endswith("Scan") and (pushed := _PUSHED.search(operator.detail))
        ),
        packs_rows=any(
            operator.name.endswith("MapInArrow") and _PACKED.search(operator.detail)
            for operator in operators
        ),
        checkpoint_store=next(
            (
                STORE_OF_SCHEME.get(address[1])
                for operator in operators
                if (address := _CHECKPOINT.search(operator.arguments))
            ),
            None,
        ),
    )


def _join(operator: PrintedOperator) -> str:
    # The kind is after the name, among the arguments or on a separate line.
    kind = _JOIN_KIND.search(_outside_brackets(operator.detail))
    return f"{operator.name} {kind[0]}" if kind else operator.name


def _outside_brackets(text: str) -> str:
    """The text without parts in brackets, which may contain names from the query."""
    unbracketed, open_brackets, kept_until = list[str](), list[str](), 0
    num_open = dict.fromkeys("([", 0)
    for match in re.finditer(r"[\[\]()]", text):
        bracket = match[0]
        if bracket in "([":
            if not open_brackets:
                unbracketed.append(text[kept_until : match.start()])
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
        unbracketed.append(text[kept_until:])
    return "".join(unbracketed)


def _output_mode(text: str, operators: list[PrintedOperator]) -> str | None:
    modes = [_mode(operator) for operator in operators if _keeps_mode_of_query(operator)]
    modes += _SINK_MODE.findall(text)
    return next((mode.lower() for mode in modes if mode), None)


def _keeps_mode_of_query(operator: PrintedOperator) -> bool:
    if re.fullmatch(r"FlatMapGroups\w*WithState", operator.name):
        return True  # the user's own argument, which Spark checks against the query
    has_state = operator.name.endswith(("StateStoreSave", "StreamingSymmetricHashJoin"))
    known_checkpoint = re.search(r"state info \[ checkpoint = (?!<unknown>)", operator.arguments)
    return has_state and known_checkpoint is not None


def _mode(operator: PrintedOperator) -> str | None:
    modes = _MODE.findall(_outside_brackets(operator.arguments))
    return modes[-1] if modes else None


def _state_partitions(operators: list[PrintedOperator]) -> int | None:
    stateful = [number for number in map(_partitions_of_state, operators) if number is not None]
    shuffles = [
        int(match[1])
        for operator in operators
        if operator.name.endswith("Exchange")
        and not operator.name.startswith(("Broadcast", "Reused"))
        and (match := _STATEFUL_EXCHANGE.search(operator.detail))
    ]
    return max(stateful or shuffles, default=None)


def _partitions_of_state(operator: PrintedOperator) -> int | None:
    partition_counts = _STATE_PARTITIONS.findall(operator.arguments)
    if not partition_counts:
        return None
    # Without keys, all rows are in one partition, regardless of the printed setting.
    without_keys = operator.name.startswith("StateStore") and operator.arguments.startswith(
        ("state info [", "[], state info [")
    )
    return 1 if without_keys else int(partition_counts[-1])


def _watermark_delay_s(operators: list[PrintedOperator]) -> float | None:
    marks = [operator for operator in operators if operator.name == "EventTimeWatermark"]
    delays_s = [interval_s(operator.arguments.rsplit(", ", 1)[-1]) for operator in marks]
    return max((float(delay_s) for delay_s in delays_s if delay_s is not None), default=None)
