"""Values with units, as files write them: durations, rates, sizes, shares, prices, targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

from headway.assumptions.predictions import DECLARED_RANGE_RATIO
from headway.domain import Deadline, parse_promise
from headway.domain.writes import FilesLimit
from headway.errors import InputError
from headway.formats.yaml_document import Plain, Route
from headway.limits import (
    LARGEST_NUMBER,
    MOST_CORES,
    MOST_LONG,
    MOST_NODES,
    MOST_PARTITIONS,
    SHORTEST_TRIGGER_S,
)
from headway.spec.forms.entries import FAULTY, JsonSchema, Reader, ValueKind
from headway.spec.forms.kinds import FilePath, ListOf, Number, Parsed, Text, whole
from headway.units import parse_duration_s, parse_rate_per_s, parse_rows, parse_size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number in base units; ``low`` to ``high`` contains it with a probability of 90%.

    >>> Quantity(low=40.0, mid=50.0, high=70.0).scaled(2.0)
    Quantity(low=80.0, mid=100.0, high=140.0)
    """

    low: float
    mid: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.mid <= self.high:
            raise ValueError(
                f"low {self.low:g}, mid {self.mid:g}, high {self.high:g}; "
                "expected low <= mid <= high"
            )

    @classmethod
    def exactly(cls, value: float) -> Quantity:
        return cls(low=value, mid=value, high=value)

    def scaled(self, ratio: float) -> Quantity:
        """Each end times a ratio, 0 or more."""
        return Quantity(low=self.low * ratio, mid=self.mid * ratio, high=self.high * ratio)


def _size_per_s(text: str) -> float:
    size, slash, per = text.strip().rpartition("/")
    if not slash or per.strip() != "s":
        raise InputError(f"{text!r} is no size per second")
    return float(parse_size_bytes(size))


def _share(text: str) -> float:
    number = _number(text.strip().removesuffix("%"))
    return number / 100.0 if "%" in text else number


def _ratio(text: str) -> float:
    return _number(text.strip().removesuffix("x"))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{text!r} is no number") from None


def is_countable(number: float) -> bool:
    """Whether it can be a rate, or a number of rows."""
    return 0 < number <= LARGEST_NUMBER


def _is_size(size_bytes: float) -> bool:
    return 0 < size_bytes <= MOST_LONG


def _is_in_calendar(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


_ENDS = ("low", "mid", "high")
_UNITS_S = "us|ms|s|sec|seconds?|m|min|minutes?|h|hours?|d"
_DURATION_PATTERN = rf"^\s*([0-9.]+\s*({_UNITS_S})\s*)+$"

DURATION = Parsed(
    words="a duration, e.g. 500ms, 2s, 1.5min, 1h30m",
    parse=parse_duration_s,
    is_valid=lambda duration_s: duration_s > 0,
    examples=("500ms", "2s", "1h30m"),
    pattern=_DURATION_PATTERN,
    usual_unit="s",
    slips=(
        (r"([0-9.]+)\s*[Mm]s?ec", r"did you mean '\1ms'?"),
        (r"([0-9.]+)\s*µs", r"did you mean '\1us'?"),
        (r"P[0-9T].*", "ISO 8601 periods are not read"),
    ),
)
DURATION_OR_ZERO = replace(DURATION, is_valid=None, words=f"{DURATION.words}, or 0s")
TRIGGER = replace(
    DURATION,
    is_valid=lambda trigger_s: trigger_s >= SHORTEST_TRIGGER_S,
    words=f"{DURATION.words}, of at least 1ms",
)
TRIGGER_OR_ZERO = replace(
    TRIGGER,
    is_valid=lambda trigger_s: trigger_s == 0 or trigger_s >= SHORTEST_TRIGGER_S,
    words=f"{TRIGGER.words}, or 0s",
)
DURATION_PER_ROW = replace(
    DURATION, words="a duration, e.g. 20us or 1.5ms", examples=("20us", "1.5ms"), usual_unit="us"
)
RATE = Parsed(
    words="a rate of records above 0, e.g. 50k/s, 1.2M/min, or a number of records per second",
    parse=parse_rate_per_s,
    is_valid=is_countable,
    takes_numbers=True,
    examples=("50k/s", "800/s", "1.2M/min"),
    pattern=r"^\s*[0-9.]+([eE][-+]?[0-9]+)?\s*[kKmMgG]?\s*((rows|records)?\s*/\s*[a-zA-Z]+)?\s*$",
    slips=(
        (r"([0-9.]+)\s*([KkMmGg])i[Bb]?(?:/s)?", r"did you mean '\1\2/s'? Ki, Mi and Gi are bytes"),
        (r"([0-9.]+)\s*([KkMmGg])?[Bb](?:/s)?", r"records are counted, not bytes: '\1\2/s'?"),
        (r"([0-9.]+)\s*([kKmM]?)\s*(?:per|p)\s*(?:s|sec|second)", r"did you mean '\1\2/s'?"),
        (r"([0-9.]+)\s*([kKmM]?)ps", r"did you mean '\1\2/s'?"),
        (r"([0-9]+),([0-9]{3})(/s)?", r"did you mean '\1\2/s'?"),
    ),
)
RATE_OR_ZERO = replace(
    RATE,
    parse=partial(parse_rate_per_s, may_be_zero=True),
    is_valid=lambda rate_per_s: rate_per_s == 0 or is_countable(rate_per_s),
    words=RATE.words.replace(" above 0", "") + ", or 0",
)
ROWS = Parsed(
    words="a number of rows, e.g. 800000 or 40M",
    parse=parse_rows,
    is_valid=is_countable,
    takes_numbers=True,
    examples=("40M", "800000"),
    pattern=r"^\s*[0-9.]+([eE][-+]?[0-9]+)?\s*[kKmMgG]?\s*(rows|records)?\s*$",
)
SIZE = Parsed(
    words="a size, e.g. 512m, 8g or 8Gi",
    parse=parse_size_bytes,
    is_valid=_is_size,
    examples=("512m", "8Gi", "8g"),
    usual_unit="m",
    pattern=r"^\s*[0-9.]+\s*([kKmMgGtT]([iI]?[bB]?)|[bB])\s*$",
    slips=(
        (r"([0-9.]+)\s*([KkMmGg])/s", r"that is a rate, did you mean '\1\2'?"),
        (r"([0-9.]+)\s*[Gg]bit.*", "bits are not read"),
    ),
)
SIZE_OR_ZERO = replace(
    SIZE, is_valid=lambda size_bytes: 0 <= size_bytes <= MOST_LONG, words=f"{SIZE.words}, or 0m"
)
SIZE_PER_S = Parsed(
    words="a size per second, e.g. 100m/s or 1g/s",
    parse=_size_per_s,
    is_valid=_is_size,
    examples=("100m/s", "1g/s"),
    usual_unit="m/s",
    pattern=r"^\s*[0-9.]+\s*([kKmMgGtT]([iI]?[bB]?)|[bB])\s*/\s*s\s*$",
    slips=(
        (r"([0-9.]+)\s*([KkMmGgTt])[iI]?[bB]?", r"did you mean '\1\2/s'?"),
        (r"([0-9.]+)\s*[KkMmGg]?bit.*", "bits are not read: eight of them are a byte"),
    ),
)
SHARE = Parsed(
    words="a share, e.g. 20% or 0.2",
    parse=_share,
    is_valid=lambda share: 0 <= share <= 1,
    takes_numbers=True,
    examples=("20%",),
    pattern=r"^\s*[0-9.]+\s*%?\s*$",
    slips=((r"([0-9.]+) ?(?:percent|pct)", r"did you mean '\1%'?"),),
)
RATIO = Parsed(
    words="a ratio, e.g. 1.5 or 1.5x",
    parse=_ratio,
    is_valid=lambda ratio: 0 < ratio < 1e6,
    takes_numbers=True,
    examples=("1.5x",),
    pattern=r"^\s*[0-9.]+\s*x?\s*$",
    slips=((r"([0-9.]+) ?%", "a ratio is no percentage: 150% is 1.5x"),),
)
TARGET = Parsed(
    words="a target, e.g. 'p99 <= 3s', 'mean < 1s', 'batch p99 <= 2s'",
    parse=parse_promise,
    is_valid=lambda promise: not isinstance(promise, Deadline),
    examples=("p99 <= 3s", "mean < 1s", "window p95 <= 5s", "catch_up <= 15m after 30m"),
    pattern=r"^\s*((tuple|batch|window)\s+)?(mean|p[0-9.]+|catch_up)\s*<=?\s*.+$",
    slips=(
        (r"deadline.*", "a deadline is the target of a BatchJob"),
        (r"(.+?)\s*(?:=<|≤)\s*(.+)", r"did you mean '\1 <= \2'?"),
        (r"(p[0-9.]+|mean)\s*:?\s+([0-9.]+[a-z]+)", r"did you mean '\1 <= \2'?"),
        (r"(.+?)\s*>=?\s*(.+)", r"a target is an upper limit, did you mean '\1 <= \2'?"),
    ),
)
FILES_LIMIT = Parsed(
    words="a limit, e.g. 'files <= 500/h'",
    parse=FilesLimit.parse,
    examples=("files <= 500/h", "files <= 12k/d"),
    pattern=r"^\s*files\s*<=?\s*[0-9.]+[kKMG]?\s*/\s*(h|d)\s*$",
)
PRICE = Number(words="a price per node and hour, 0 or more", high=1e6)
MONEY = Number(words="an amount of money, above 0", above=True, high=1e12)
CORES = whole(low=1, high=MOST_CORES)
CORES_OR_ZERO = whole(low=0, high=MOST_CORES)
NODES = whole(low=1, high=MOST_NODES)
PARTITIONS = whole(low=1, high=MOST_PARTITIONS)
NAME = Text(
    words="a name of letters, digits, '-', '_' and '.', at most 63 long",
    pattern=r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
)
DATE = Text(
    words="a date of the calendar, e.g. 2026-11-21",
    pattern=r"\d{4}-\d{2}-\d{2}",
    is_valid=_is_in_calendar,
)
NAMES = ListOf(item=NAME, or_one=True)
SPARK_VERSION = Text(words="a Spark version in quotes, e.g. '4.0.1'", pattern=r"\d+\.\d+(\..+)?")
MASTER = Text(words="a Spark master, e.g. local[4]")
CODE_FILE = FilePath("a Python file with a function build(spark, setting)")
PROFILE_FILE = FilePath("a job profile as 'headway profile' writes it")


@dataclass(frozen=True, slots=True)
class Uncertain:
    """A quantity: a plain value, or ``{low, mid, high}`` of it.

    A plain value means a range from it divided by ``plain_ratio`` to it times that ratio.

    >>> Uncertain(DURATION, plain_ratio=1.5).about(3.0)
    Quantity(low=2.0, mid=3.0, high=4.5)
    """

    kind: ValueKind
    plain_ratio: float = 1.0

    @property
    def words(self) -> str:
        return f"{self.kind.words}; or {{low, mid, high}} of such"

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        if isinstance(value, list):
            return reader.refuse(route, value, self.words)
        if not isinstance(value, dict):
            number = self.kind.read(reader, route, value)
            return FAULTY if number is FAULTY else self.about(float(number))
        figures: list[Any] = [
            reader.fault((*route, key), "unknown key; expected low, mid, high", at_key=True)
            for key in value
            if key not in _ENDS
        ]
        for key in _ENDS:
            key_route = (*route, key)
            figures.append(
                self.kind.read(reader, key_route, value[key])
                if key in value
                else reader.fault(key_route, f"missing; expected {self.kind.words}")
            )
        if FAULTY in figures:
            return FAULTY
        low, mid, high = (float(end) for end in figures)
        if not low <= mid <= high:
            fault = "low, mid and high are out of order; expected low <= mid <= high"
            return reader.fault(route, fault)
        return Quantity(low=low, mid=mid, high=high)

    def about(self, value: float) -> Quantity:
        """The range of a plain value."""
        return Quantity(low=value / self.plain_ratio, mid=value, high=value * self.plain_ratio)

    def json_schema(self) -> JsonSchema:
        plain = self.kind.json_schema()
        figure_schemas = dict.fromkeys(_ENDS, plain)
        range_schema = {
            "type": "object",
            "properties": figure_schemas,
            "required": list(figure_schemas),
            "additionalProperties": False,
        }
        return {"anyOf": [plain, range_schema]}


COST = Uncertain(DURATION, DECLARED_RANGE_RATIO.value)
COST_PER_ROW = Uncertain(DURATION_PER_ROW, DECLARED_RANGE_RATIO.value)
COST_OR_ZERO = Uncertain(DURATION_OR_ZERO, DECLARED_RANGE_RATIO.value)
