"""What the metadata of a field and the form of a file mean, for writing and for reading."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from headway.domain import Finding, FindingCode, Interval
from headway.errors import InputError
from headway.formats.codec import EXACT, FOR_PEOPLE, RESULT, STATE, Form, data_of, noun_of
from tests.sources import modules

WORDS = {"key", "formerly", "exact", "pair", "items", "words", "then"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    size: int
    note: str = ""

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"size is {self.size}; expected 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    mean_s: float = field(metadata={"key": "time.mean", "then": {"time.half": "half_s"}})
    ends_s: Interval | None = field(default=None, metadata={"key": "time.ends", "pair": True})
    inner: Inner = field(metadata={"key": ""})
    asked_s: float = field(default=0.0, metadata={"exact": True})
    private: str = field(default="", metadata={"key": None})
    findings: tuple[Finding, ...] = field(default=(), metadata={"words": "said"})
    by_hour: Mapping[int, float] = field(default_factory=dict)
    by_code: Mapping[FindingCode, tuple[float, ...]] = field(
        default_factory=dict, metadata={"items": ("code", "times_s")}
    )
    unit: Literal["s", "rows"] = "s"

    @property
    def half_s(self) -> float:
        return self.mean_s / 2


OUTER = Outer(
    mean_s=1 / 3, ends_s=Interval(low=0.25, high=math.inf), inner=Inner(size=2), asked_s=1 / 3,
    findings=(Finding(code=FindingCode.DECLARED),), by_hour={7: 1.0},
    by_code={FindingCode.DECLARED: (1.0, 2.0)},
)  # fmt: skip


def test_metadata_say_where_and_how_a_field_is_written() -> None:
    data = data_of(OUTER)
    assert list(data) == [
        *("time", "size", "note", "asked_s", "said", "findings", "by_hour", "by_code", "unit"),
    ]
    assert data["time"] == {"mean": 0.333333, "half": 0.166667, "ends": [0.25, None]}
    assert (data["size"], data["note"], data["asked_s"]) == (2, "", 1 / 3)
    assert isinstance(data["said"][0], str)
    assert data["findings"] == [{"code": "declared", "numbers": {}, "names": {}}]
    assert data["by_hour"] == {"7": 1.0}
    assert data["by_code"] == [{"code": "declared", "times_s": [1.0, 2.0]}]


@pytest.mark.parametrize("form", [EXACT, STATE])
def test_what_is_written_with_all_digits_is_read_back(form: Form) -> None:
    assert noun_of(data_of(OUTER, form), Outer, form) == OUTER


def test_forms_differ_in_digits_infinity_and_defaults() -> None:
    ends = Interval(low=1 / 3, high=math.inf)
    assert data_of(ends, RESULT) == {"low": 0.333333, "high": None}
    assert data_of(ends, EXACT) == {"low": 1 / 3, "high": None}
    assert data_of(ends, STATE) == {"low": 1 / 3, "high": math.inf}
    with pytest.raises(ValueError, match=r"^high is inf; a file holds finite numbers only$"):
        data_of(ends, FOR_PEOPLE)
    assert data_of(Finding(code=FindingCode.DECLARED), FOR_PEOPLE) == {"code": "declared"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"time": 3}, "time: got 3; expected a mapping"),
        ({"time": {}}, "time.mean: missing; expected a number"),
        ({"time": {"mean": True}}, "time.mean: got true; expected a number"),
        ({"time": {"mean": 1.0, "ends": [1.0]}}, "time.ends: got a list; expected a mapping"),
        ({"time": {"mean": 1.0, "ends": [1, "2"]}}, "time.ends.high: got '2'; expected a number"),
        ({"size": -1}, "size is -1; expected 0 or more"),
        ({"size": 2.0}, "size: got 2.0; expected a whole number"),
        ({"by_hour": {"x": 1.0}}, "by_hour: got 'x'; expected a whole number"),
        ({"by_hour": {"9" * 5000: 1.0}}, "by_hour: got '9"),
        ({"by_hour": []}, "by_hour: got a list; expected a mapping"),
        ({"by_code": {}}, "by_code: got a mapping; expected a list, each item a mapping with"),
        ({"by_code": [{"code": "declared"}]}, r"by_code\[0\].times_s: missing; expected a list"),
        ({"by_code": [{"code": "x", "times_s": []}]}, r"by_code\[0\].code: got 'x'; expected one"),
        ({"unit": "kg"}, "unit: got 'kg'; expected one of s, rows"),
        ({"findings": [{"code": "hope"}]}, r"findings\[0\].code: got 'hope'; expected one of"),
    ],
)
def test_the_first_fault_is_said_with_its_place(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=f"^{said}"):
        noun_of(data_of(OUTER) | change, Outer)


def test_what_is_no_mapping_is_refused() -> None:
    with pytest.raises(InputError, match=r"^got a list; expected a mapping"):
        noun_of([], Interval)


def test_fields_that_are_given_are_not_read() -> None:
    data = data_of(OUTER) | {"asked_s": "soon"}
    assert noun_of(data, Outer, RESULT, asked_s=2.0).asked_s == 2.0


def test_metadata_of_nouns_are_words_of_the_codec() -> None:
    """A misspelt one would be ignored."""
    declared = {
        ast.literal_eval(key)
        for tree in modules().values()
        for call in ast.walk(tree)
        if isinstance(call, ast.keyword) and call.arg == "metadata"
        for key in (call.value.keys if isinstance(call.value, ast.Dict) else ())
        if key is not None
    }
    # Questions are no nouns of files: what they declare is read by headway.domain.argument.
    assert declared - {"argument"} == WORDS
