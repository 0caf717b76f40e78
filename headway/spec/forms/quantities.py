"""Values with units, as files write them: durations, rates, sizes, shares, prices, targets."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from headway.assumptions.predictions import DECLARED_RANGE_RATIO
from headway.domain import parse_promise
from headway.errors import InputError
from headway.formats.yaml_document import Plain, Route, shown
from headway.limits import LARGEST_NUMBER, MOST_LONG
from headway.spec.forms.kinds import JsonSchema, Kind, Number, Parsed, Text
from headway.spec.forms.reader import FAULTY, Reader
from headway.units import parse_duration_s, parse_rate_per_s, parse_rows, parse_size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number in base units; ``low`` to ``high`` contains it with a probability of 90%.

    Examples
    --------
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
        """A number without uncertainty."""
        return cls(low=value, mid=value, high=value)

    def scaled(self, ratio: float) -> Quantity:
        """Each end times a ratio, 0 or more."""
        return Quantity(low=self.low * ratio, mid=self.mid * ratio, high=self.high * ratio)


def _positive_duration_s(text: str) -> float:
    seconds = parse_duration_s(text)
    if not 0 < seconds < math.inf:
        raise InputError(f"{text!r} is no positive duration")
    return seconds


def _duration_or_zero_s(text: str) -> float:
    seconds = parse_duration_s(text)
    if math.isinf(seconds):
        raise InputError(f"{text!r} is no finite duration")
    return seconds


def _positive_number(number: float) -> float:
    if not 0 < number <= LARGEST_NUMBER:
        raise InputError("not positive, or beyond what anybody counts")
    return number


def _size_or_zero_bytes(text: str) -> int:
    size = parse_size_bytes(text)
    if not 0 <= size <= MOST_LONG:
        raise InputError(f"{text!r} is out of range")
    return size


def _size_bytes(text: str) -> int:
    size = _size_or_zero_bytes(text)
    if size == 0:
        raise InputError(f"{text!r} is out of range")
    return size


def _size_per_s(text: str) -> float:
    size, slash, per = text.strip().rpartition("/")
    if not slash or per.strip() != "s":
        raise InputError(f"{text!r} is no size per second")
    return float(_size_bytes(size))


def _share(text: str) -> float:
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        raise InputError(f"{text!r} is no share") from None
    return _share_of_number(number / 100.0 if "%" in text else number)


def _share_of_number(number: float) -> float:
    if not 0 <= number <= 1:
        raise InputError(f"{number} is no share")
    return number


def _ratio(text: str) -> float:
    try:
        return _ratio_of_number(float(text.strip().removesuffix("x").strip()))
    except ValueError:
        raise InputError(f"{text!r} is no ratio") from None


def _ratio_of_number(number: float) -> float:
    if not 0 < number < 1e6:
        raise InputError(f"{number} is no ratio")
    return number


def _promise(text: str) -> object:
    promise = parse_promise(text)
    if type(promise).__name__ == "Deadline":
        raise InputError("a deadline is a target for batch jobs")
    return promise


_UNITS_S = "us|ms|s|sec|seconds?|m|min|minutes?|h|hours?|d"
_DURATION_PATTERN = rf"^\s*([0-9.]+\s*({_UNITS_S})\s*)+$"

DURATION = Parsed(
    words="a duration, e.g. 500ms, 2s, 1.5min, 1h30m",
    parse=_positive_duration_s,
    examples=("500ms", "2s", "1h30m"),
    pattern=_DURATION_PATTERN,
    slips=(
        (r"([0-9.]+)\s*[Mm]s?ec", r"did you mean '\1ms'?"),
        (r"([0-9.]+)\s*µs", r"did you mean '\1us'?"),
        (r"P[0-9T].*", "ISO 8601 periods are not read"),
    ),
)
DURATION_OR_ZERO = replace(DURATION, parse=_duration_or_zero_s, words=f"{DURATION.words}, or 0s")
RATE = Parsed(
    words="a rate of records, e.g. 50k/s, 1.2M/min, or a number of records per second",
    parse=parse_rate_per_s,
    number=_positive_number,
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
ROWS = Parsed(
    words="a number of rows, e.g. 800000 or 40M",
    parse=parse_rows,
    number=_positive_number,
    examples=("40M", "800000"),
    pattern=r"^\s*[0-9.]+([eE][-+]?[0-9]+)?\s*[kKmMgG]?\s*(rows|records)?\s*$",
)
SIZE = Parsed(
    words="a size, e.g. 512m, 8g or 8Gi",
    parse=_size_bytes,
    examples=("512m", "8Gi", "8g"),
    pattern=r"^\s*[0-9.]+\s*([kKmMgGtT]([iI]?[bB]?)|[bB])\s*$",
    slips=(
        (r"([0-9.]+)\s*([KkMmGg])/s", r"that is a rate, did you mean '\1\2'?"),
        (r"([0-9.]+)\s*[Gg]bit.*", "bits are not read"),
    ),
)
SIZE_OR_ZERO = replace(SIZE, parse=_size_or_zero_bytes, words=f"{SIZE.words}, or 0m")
SIZE_PER_S = Parsed(
    words="a size per second, e.g. 100m/s or 1g/s",
    parse=_size_per_s,
    examples=("100m/s", "1g/s"),
    pattern=r"^\s*[0-9.]+\s*([kKmMgGtT]([iI]?[bB]?)|[bB])\s*/\s*s\s*$",
    slips=(
        (r"([0-9.]+)\s*([KkMmGgTt])[iI]?[bB]?", r"did you mean '\1\2/s'?"),
        (r"([0-9.]+)\s*[KkMmGg]?bit.*", "bits are not read: eight of them are a byte"),
    ),
)
SHARE = Parsed(
    words="a share, e.g. 20% or 0.2",
    parse=_share,
    number=_share_of_number,
    examples=("20%",),
    pattern=r"^\s*[0-9.]+\s*%?\s*$",
    slips=((r"([0-9.]+) ?(?:percent|pct)", r"did you mean '\1%'?"),),
)
RATIO = Parsed(
    words="a ratio, e.g. 1.5 or 1.5x",
    parse=_ratio,
    number=_ratio_of_number,
    examples=("1.5x",),
    pattern=r"^\s*[0-9.]+\s*x?\s*$",
    slips=((r"([0-9.]+) ?%", "a ratio is no percentage: 150% is 1.5x"),),
)
TARGET = Parsed(
    words="a target, e.g. 'p99 <= 3s', 'mean < 1s', 'batch p99 <= 2s'",
    parse=_promise,
    examples=("p99 <= 3s", "mean < 1s", "window p95 <= 5s", "catch_up <= 15m after 30m"),
    pattern=r"^\s*((tuple|batch|window)\s+)?(mean|p[0-9.]+|catch_up)\s*<=?\s*.+$",
    slips=(
        (r"deadline.*", "a deadline is the target of a BatchJob"),
        (r"(.+?)\s*(?:=<|≤)\s*(.+)", r"did you mean '\1 <= \2'?"),
        (r"(p[0-9.]+|mean)\s*:?\s+([0-9.]+[a-z]+)", r"did you mean '\1 <= \2'?"),
        (r"(.+?)\s*>=?\s*(.+)", r"a target is an upper limit, did you mean '\1 <= \2'?"),
    ),
)
PRICE = Number(words="a price per node and hour, 0 or more", high=1e6)
MONEY = Number(words="an amount of money, above 0", above=True, high=1e12)
NAME = Text(
    words="a name of letters, digits, '-', '_' and '.', at most 63 long",
    pattern=r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
)


@dataclass(frozen=True, slots=True)
class Uncertain:
    """A quantity: a plain value, or ``{low, mid, high}`` of it.

    A plain value means a range from it divided by ``plain_ratio`` to it times that ratio.

    Examples
    --------
    >>> Uncertain(DURATION, plain_ratio=1.5).about(3.0)
    Quantity(low=2.0, mid=3.0, high=4.5)
    """

    kind: Kind
    plain_ratio: float = 1.0

    @property
    def words(self) -> str:
        return f"{self.kind.words}; or {{low, mid, high}} of such"

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        if not isinstance(value, dict):
            if isinstance(value, list):
                reader.fault(route, f"got {shown(value)}; expected {self.words}")
                return FAULTY
            number = self.kind.read(reader, route, value)
            return FAULTY if number is FAULTY else self.about(float(number))
        figures = []
        for key in value:
            if key not in ("low", "mid", "high"):
                message = "unknown key; expected low, mid, high"
                reader.fault((*route, key), message, at_key=True)
                figures.append(FAULTY)
        for key in ("low", "mid", "high"):
            if key not in value:
                reader.fault((*route, key), f"missing; expected {self.kind.words}")
                figures.append(FAULTY)
            else:
                figures.append(self.kind.read(reader, (*route, key), value[key]))
        if FAULTY in figures:
            return FAULTY
        low, mid, high = (float(end) for end in figures)  # type: ignore[arg-type]  # none is faulty
        if not low <= mid <= high:
            reader.fault(route, "low, mid and high are out of order; expected low <= mid <= high")
            return FAULTY
        return Quantity(low=low, mid=mid, high=high)

    def about(self, value: float) -> Quantity:
        """The range of a plain value."""
        return Quantity(low=value / self.plain_ratio, mid=value, high=value * self.plain_ratio)

    def json_schema(self) -> JsonSchema:
        plain = self.kind.json_schema()
        figure_schemas = dict.fromkeys(("low", "mid", "high"), plain)
        range_schema = {
            "type": "object",
            "properties": figure_schemas,
            "required": list(figure_schemas),
            "additionalProperties": False,
        }
        return {"anyOf": [plain, range_schema]}


COST = Uncertain(DURATION, DECLARED_RANGE_RATIO.value)
COST_OR_ZERO = Uncertain(DURATION_OR_ZERO, DECLARED_RANGE_RATIO.value)
