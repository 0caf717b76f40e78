"""What lists, ranges, texts and files given as arguments must be; plan and predict have none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headway.domain.argument import Value
from headway.domain.argument_values import Count, ReadBy, is_list_of, not_expected
from headway.errors import InputError, argument
from headway.limits import MOST_EXECUTORS


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


def text_of(expected: str = "a text") -> ReadBy:
    """A text that is not empty."""

    def read(value: Any, name: str) -> str:
        if not isinstance(value, str) or not value.strip():
            raise not_expected(name, value, expected)
        return value

    return ReadBy(read)


def file_of(expected: str, noun: type = Path) -> ReadBy:
    """The path of a file, or an object of the class that is read from it."""

    def read(value: Any, name: str) -> Any:
        if not isinstance(value, str | Path | noun):
            raise not_expected(name, value, expected)
        return value

    return ReadBy(read, is_path=True)


EXECUTOR_RANGE = ReadBy(_executor_range)
