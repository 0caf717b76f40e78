from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import InputError
from headway.sparkconf import parse_properties, render_properties

_SPARK_CUTS = "".join(map(chr, range(33))).replace("\r", "").replace("\n", "")

keys = st.text(min_size=1)
values = st.text().map(lambda text: text.strip(_SPARK_CUTS))


@given(st.dictionaries(keys, values), st.lists(st.text()), st.text())
def test_what_is_written_is_read_back(conf: dict[str, str], header: list[str], why: str) -> None:
    text = render_properties(conf, header=header, comments=dict.fromkeys(conf, why))
    assert parse_properties(text) == conf


@pytest.mark.parametrize(
    ("text", "conf"),
    [
        ("a 1", {"a": "1"}),
        ("a=1", {"a": "1"}),
        ("a : 1", {"a": "1"}),
        ("  a\t=\t1 \t", {"a": "1"}),
        ("a == 1", {"a": "= 1"}),
        ("a", {"a": ""}),
        ("a x # not a comment", {"a": "x # not a comment"}),
        ("# comment\n! comment\n\n   # comment\na 1", {"a": "1"}),
        ("# comment \\\na 1", {"a": "1"}),
        ("a one,\\\n   two", {"a": "one,two"}),
        ("a one\\\\\nb 2", {"a": "one\\", "b": "2"}),
        ("a C:\\temp", {"a": "C:\temp"}),
        ("a C:\\\\temp", {"a": "C:\\temp"}),
        ("a\\ b c", {"a b": "c"}),
        ("a \\u00e9\\u20AC", {"a": "é€"}),
        ("a \\ud83d\\ude00", {"a": "😀"}),
        ("a 1\na 2", {"a": "2"}),
        ("a 1\r\nb 2\rc 3", {"a": "1", "b": "2", "c": "3"}),
        ("a 1\\", {"a": "1"}),
        ("", {}),
    ],
)
def test_a_text_is_read_as_java_reads_properties(text: str, conf: dict[str, str]) -> None:
    assert parse_properties(text) == conf


def test_a_broken_escape_is_named_with_its_line() -> None:
    with pytest.raises(InputError, match=r"line 2.*four hexadecimal"):
        parse_properties("a 1\nb \\u12x4")


@pytest.mark.parametrize("conf", [{"": "1"}, {"a": " 1"}, {"a": "1\t"}, {"a": " "}])
def test_what_spark_would_change_is_not_written(conf: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"cut|empty"):
        render_properties(conf)


def test_a_comment_cannot_become_a_setting() -> None:
    text = render_properties({"a": "1"}, header=["x\nb 2\r\nc 3"], comments={"a": "y\nd 4"})
    assert parse_properties(text) == {"a": "1"}
