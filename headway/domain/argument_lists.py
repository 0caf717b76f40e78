"""What lists, ranges, texts and files given as arguments must be; plan and predict have none.

They are apart from `headway.domain.argument_values` since each class takes time when it is loaded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headway.domain.argument_values import Count, ReadBy, is_list_of, not_expected
from headway.errors import InputError, argument
from headway.lazy_classes import dataclass
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


@dataclass(frozen=True, slots=True)
class Each:
    """A list of values, each of which is read by itself.

    >>> Each(Count(maximum=9), expected="a list of counts").read([1, 2.0], "counts")
    (1, 2)
    """

    member_value: Any
    expected: str

    def read(self, value: Any, name: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise not_expected(name, value, self.expected)
        return tuple(self.member_value.read(member, name) for member in value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names in a list, or in one text with commas between them; each counts once.

    >>> Names(expected="e.g. hpa,static").read("hpa, static,hpa", "policies")
    ('hpa', 'static')
    """

    expected: str

    def read(self, value: Any, name: str) -> tuple[str, ...]:
        texts = value.split(",") if isinstance(value, str) else value
        if not is_list_of(texts, str):
            raise not_expected(name, value, self.expected)
        names = tuple(dict.fromkeys(filter(None, (text.strip() for text in texts))))
        if not names:
            raise InputError(f"{argument(name)} names none; expected {self.expected}")
        return names


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is not empty."""

    expected: str = "a text"

    def read(self, value: Any, name: str) -> str:
        if not isinstance(value, str) or not value.strip():
            raise not_expected(name, value, self.expected)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The path of a file, or an object of the class that is read from it."""

    expected: str
    noun: type = Path
    is_path: bool = True

    def read(self, value: Any, name: str) -> Any:
        if not isinstance(value, str | Path | self.noun):
            raise not_expected(name, value, self.expected)
        return value


EXECUTOR_RANGE = ReadBy(_executor_range)
