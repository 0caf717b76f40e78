"""What values of arguments must be, as Python has them or as texts; all else is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from headway.domain.argument import Value
from headway.domain.configuration import LEAST_TASK_CORES, whole_or_fraction
from headway.domain.switches import Switch
from headway.domain.target import AnyPromise, Burst, parse_promise
from headway.domain.writes import FilesLimit
from headway.errors import InputError, argument
from headway.lazy_classes import dataclass
from headway.limits import (
    LARGEST_NUMBER,
    LONGEST_S,
    MOST_CORES,
    MOST_EXECUTORS,
    MOST_LONG,
    SHORTEST_TRIGGER_S,
)
from headway.units import format_duration, parse_duration_s, parse_rate_per_s, parse_rows

Member = TypeVar("Member", bound=str)
Parse: TypeAlias = Callable[[str], float]


def is_number(value: object) -> bool:
    """Whether it is a number, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def not_expected(name: str, value: object, expected: str) -> InputError:
    return InputError(f"{argument(name)} is {value!r}; expected {expected}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A whole number from 1, or another minimum, to a maximum.

    >>> Count(maximum=50).read(8.0, "max_nodes")
    8
    """

    maximum: int
    minimum: int = 1

    def read(self, value: Any, name: str) -> int:
        is_in_range = is_number(value) and self.minimum <= value <= self.maximum
        if not is_in_range or value != value // 1:
            expected = f"a whole number from {self.minimum} to {self.maximum:,}"
            raise not_expected(name, value, expected)
        return int(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class InRange:
    """A number from a minimum to a maximum, as it is converted.

    >>> TASK_CORES.read(2.0, "task_cpus"), TASK_CORES.read(0.5, "task_cpus")
    (2, 0.5)
    """

    minimum: float
    maximum: float
    expected: str
    convert: Callable[[Any], Any]

    def read(self, value: Any, name: str) -> Any:
        if not is_number(value) or not self.minimum <= value <= self.maximum:
            raise not_expected(name, value, self.expected)
        return self.convert(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Positive:
    """A number above 0, or 0 if it ``may_be_zero``, or a text that is parsed.

    >>> Positive(words="records per second", parse=parse_rate_per_s).read("50k/s", "rate")
    50000.0
    """

    words: str
    parse: Parse | None = None
    maximum: float = LARGEST_NUMBER
    may_be_zero: bool = False

    def read(self, value: Any, name: str) -> float:
        number = value
        if self.parse is not None and isinstance(value, str):
            number = _parsed(self.parse, value, name)
        is_in_range = is_number(number) and 0 <= number <= self.maximum
        if not is_in_range or (number == 0 and not self.may_be_zero):
            raise not_expected(name, value, self.words)
        return float(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """Seconds, or a text such as ``5s``, of ten years at most.

    ``minimum_s`` is the shortest one that is not 0.

    >>> TRIGGER.read("0", "trigger"), Duration().read("2min", "length")
    (0.0, 120.0)
    """

    may_be_zero: bool = False
    is_signed: bool = False
    minimum_s: float = 0.0

    def read(self, value: Any, name: str) -> float:
        value_s = _parsed(parse_seconds, value, name) if isinstance(value, str) else value
        least_s = -LONGEST_S if self.is_signed else 0
        if not is_number(value_s) or not least_s <= value_s <= LONGEST_S:
            expected = "seconds" if self.is_signed else "0 or more seconds"
            raise not_expected(name, value, f"{expected}, at most ten years")
        if value_s == 0 and not (self.may_be_zero or self.is_signed):
            raise not_expected(name, value, "more than 0 seconds")
        if 0 < value_s < self.minimum_s:
            zero = "0, or " if self.may_be_zero else ""
            shortest, duration = map(format_duration, (self.minimum_s, value_s))
            raise InputError(f"{argument(name)} is {duration}; expected {zero}at least {shortest}")
        return float(value_s)


@dataclass(frozen=True)
class Choice(Generic[Member]):
    """One of some words, or a member of an enumeration or its text."""

    members: Iterable[Member]

    def read(self, value: Any, name: str) -> Member:
        for member in self.members:
            if member == value:
                return member
        raise not_expected(name, value, f"one of {', '.join(self.members)}")


@dataclass(frozen=True, slots=True)
class ReadBy:
    """What a function reads, from the value and the name of its argument.

    ``parse`` reads the texts of the command line, which may be paths. ``member_value`` is what it
    reads members by, if it is a list.
    """

    read: Callable[[Any, str], Any]
    parse: Callable[[str], Any] | None = None
    is_path: bool = False
    member_value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """Objects of a class, or texts that stand for them; with ``or_one`` a single one, too.

    >>> PROMISES.read("p99 <= 3s", "target")[0].limit_s
    3.0
    """

    members: Any
    expected: str
    parse: Callable[[str], Any] | None = None
    or_one: bool = False
    min_members: int = 0

    def read(self, value: Any, name: str) -> tuple[Any, ...]:
        is_one = self.or_one and isinstance(value, str | self.members)
        several = [value] if is_one else value
        if not is_list_of(several, self.members) or len(several) < self.min_members:
            raise not_expected(name, value, self.expected)
        return tuple(
            self.parse(member) if self.parse and isinstance(member, str) else member
            for member in several
        )


def parse_seconds(text: str) -> float:
    """Seconds of a text such as ``5s``; zero needs no unit. An InputError if it is no duration."""
    return 0.0 if text.strip() == "0" else parse_duration_s(text)


def parse_share(text: str) -> float:
    """A share, in percent or as a number; an InputError if it is none.

    >>> parse_share("5%"), parse_share("0.15"), parse_share("0%")
    (0.05, 0.15, 0.0)
    """
    try:
        ratio = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        ratio = -1.0
    if 1.0 < ratio < float("inf") and not text.endswith("%"):
        raise InputError(f"{text!r} would be {ratio:.0%}; write {text}% or {ratio / 100:g}")
    if not 0.0 <= ratio < float("inf"):
        raise InputError(f"{text!r} is not a share; expected e.g. 15% or 0.15")
    return ratio


def _parsed(parse: Parse, text: str, name: str) -> float:
    """What a text says; an error names the argument, too."""
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{argument(name)}: {error}") from None


def is_list_of(values: object, members: Any) -> bool:
    """Whether it is a list, or the like, of such objects or of texts."""
    return (
        isinstance(values, Sequence)
        and not isinstance(values, str)
        and all(isinstance(value, str | members) for value in values)
    )


def _executor_range(value: Any, name: str) -> tuple[int, int]:
    """The fewest and the most, as a pair, or as a text such as ``2..12`` or ``2:12``.

    >>> _executor_range("2..12", "executors"), _executor_range("4", "executors")
    ((2, 12), (4, 4))
    """
    ends = value
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d{1,9})\s*(?:(?:\.\.|:)\s*(\d{1,9})\s*)?", value)
        ends = match and (int(match[1]), int(match[2] or match[1]))
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise not_expected(name, value, "fewest and most, e.g. 2..12")
    low, high = (Count(maximum=MOST_EXECUTORS).read(end, name) for end in ends)
    if low > high:
        raise not_expected(name, value, "the fewest first, e.g. 2..12")
    return low, high


def each_of(member_value: Value, expected: str) -> ReadBy:
    """A list of values, each of which is read by itself.

    >>> each_of(Count(maximum=9), expected="a list of counts").read([1, 2.0], "counts")
    (1, 2)
    """

    def read(value: Any, name: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise not_expected(name, value, expected)
        return tuple(member_value.read(member, name) for member in value)

    return ReadBy(read, member_value=member_value)


def names_of(expected: str) -> ReadBy:
    """Names in a list, or in one text with commas between them; each counts once.

    >>> names_of("e.g. hpa,static").read("hpa, static,hpa", "policies")
    ('hpa', 'static')
    """

    def read(value: Any, name: str) -> tuple[str, ...]:
        texts = value.split(",") if isinstance(value, str) else value
        if not is_list_of(texts, str):
            raise not_expected(name, value, expected)
        names = tuple(dict.fromkeys(filter(None, (text.strip() for text in texts))))
        if not names:
            raise InputError(f"{argument(name)} names none; expected {expected}")
        return names

    return ReadBy(read)


def of_class(noun: Any, expected: str, *, is_path: bool = False) -> ReadBy:
    """An object of a class, but no blank text unless it is a path.

    >>> of_class(str, "a text").read("3.5", "spark")
    '3.5'
    """

    def read(value: Any, name: str) -> Any:
        is_blank = isinstance(value, str) and not is_path and not value.strip()
        if is_blank or not isinstance(value, noun):
            raise not_expected(name, value, expected)
        return value

    return ReadBy(read, is_path=is_path)


def path_of(expected: str) -> ReadBy:
    """A path as a text or as a Path, but no empty text, and none that no system can have.

    >>> path_of("a file, e.g. 'gate.jsonl'").read("gate.jsonl", "decisions").name
    'gate.jsonl'
    """

    def read(value: Any, name: str) -> Path:
        if not isinstance(value, str | Path) or not str(value).strip() or "\0" in str(value):
            raise not_expected(name, value, expected)
        return Path(value)

    return ReadBy(read, is_path=True)


def require_running(spark: Any) -> None:
    """Require a session of Spark that runs, of any kind.

    One of Spark Connect has no context that it could be asked about.
    """
    if not hasattr(spark, "readStream"):
        raise InputError(
            f"spark: got {spark!r}; expected a SparkSession, e.g. SparkSession.getActiveSession()"
        )
    if is_stopped(spark):
        raise InputError("spark: the session is stopped; expected one that runs")


def is_stopped(spark: Any) -> bool:
    """Whether the context of a session has ended; one of Spark Connect has none."""
    context = getattr(spark, "_sc", None)
    return context is not None and (context._jsc is None or bool(context._jsc.sc().isStopped()))


def paths_of(expected: str) -> ReadBy:
    """One path or several, as a list; an InputError if there is none, or one is no path.

    >>> paths_of("a spec file, or a list of them").read("orders.yaml", "specs")
    ['orders.yaml']
    """

    def read(value: Any, name: str) -> list[str | Path]:
        is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
        paths = list(value) if is_list else [value]
        if not paths:
            raise InputError(f"{argument(name)} is empty; expected {expected}")
        for path in paths:
            if not isinstance(path, str | Path):
                kind = f"of the type {type(path).__name__}"
                verb = "has a member" if is_list else "is"
                raise InputError(f"{argument(name)} {verb} {kind}; expected {expected}")
        return paths

    return ReadBy(read, is_path=True)


FLAG = of_class(bool, "True or False")
READ_LATER = ReadBy(lambda value, _name: value)
PATH_READ_LATER = ReadBy(READ_LATER.read, is_path=True)
TASK_CORES = InRange(
    minimum=LEAST_TASK_CORES,
    maximum=MOST_CORES,
    expected=f"a number of cores from {LEAST_TASK_CORES:g} to {MOST_CORES:,}",
    convert=whole_or_fraction,
)
CONFIDENCE_LEVEL = InRange(
    minimum=0.5,
    maximum=math.nextafter(1.0, 0.0),
    expected="a number of 0.5 or more, and below 1",
    convert=float,
)
RATE = Positive(words="a positive number of records per second", parse=parse_rate_per_s)
ROWS = Positive(words="a positive number of rows", parse=parse_rows)
TOTAL_ROWS = Positive(words="a number above 0", maximum=MOST_LONG)
TRIGGER = Duration(may_be_zero=True, minimum_s=SHORTEST_TRIGGER_S)
TRIGGER_ABOVE_ZERO = Duration(minimum_s=SHORTEST_TRIGGER_S)
QUERIES = ListOf(members=str, expected="a list of names or ids")
BURSTS = ListOf(
    members=Burst, expected="a list of texts such as '150k/s:2m'", parse=Burst.parse_short
)
PROMISES = ListOf(
    members=AnyPromise,
    expected="a text such as 'p99 <= 3s'",
    parse=parse_promise,
    or_one=True,
    min_members=1,
)
FILES_LIMITS = ListOf(
    members=FilesLimit,
    expected="a text such as 'files <= 500/h'",
    parse=FilesLimit.parse,
    or_one=True,
)
SWITCHES = ListOf(
    members=Switch, expected=f"one or more of {', '.join(Switch)}", parse=Switch.parse, or_one=True
)
EXECUTOR_RANGE = ReadBy(_executor_range)
