"""The YAML that Headway itself writes, read without PyYAML, which takes longer to load than to use.

Only the form of such files is read: mappings and lists in blocks, lists and mappings of scalars on
one line, and scalars that are plain or in quotes. Whatever else a file contains, even a comment
between its lines, is left to :mod:`headway.formats.yaml_document`, and so is everything wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import dropwhile
from typing import Any

_DEEPEST_NESTING = 20
_LONGEST_KEY = 100
_IN_KEYS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$-")
# Some of these would be harmless.
_IN_NO_PLAIN = frozenset("'\"`\\")
_ON_NO_LINE_OF_SEVERAL = frozenset("[]{}#:")
_FIRST_OF_PLAIN = frozenset("_/$(+")
_CLOSED_BY = {"[": "]", "{": "}"}
_NOTHING = ""


class _OtherFormError(Exception):
    """The text is not of the form that is read here."""


def written_data(text: str, plain_scalar: Callable[[str], Any]) -> Any:
    """The data of a text in the form in which Headway writes; None if its form is another one.

    ``plain_scalar`` is what an unquoted scalar means.

    >>> written_data("job:\\n- {name: 'a: b', rows: 8}\\n- [x, y z]\\nrate: 5/s\\n", str)
    {'job': [{'name': 'a: b', 'rows': '8'}, ['x', 'y z']], 'rate': '5/s'}
    >>> written_data("job: &anchor 5\\n", str)
    """
    if not text.replace("\n", "").isprintable():
        return None
    try:
        return _Lines(text, plain_scalar).all_data()
    except _OtherFormError:
        return None


class _Lines:
    """Lines by their indentation, read from the first to the last."""

    def __init__(self, text: str, plain_scalar: Callable[[str], Any]) -> None:
        self._plain_scalar = plain_scalar
        lines = text.removesuffix("\n").split("\n")
        lines = list(dropwhile(lambda line: line.startswith("#"), lines))
        self._contents = [line.lstrip(" ") for line in lines]
        self._indents = [len(line) - len(line.lstrip(" ")) for line in lines]
        self._at = 0

    def all_data(self) -> Any:
        data = self._block(0, 0)
        if self._at < len(self._contents):
            raise _OtherFormError
        return data

    def _is_at(self, indent: int) -> bool:
        return self._at < len(self._contents) and self._indents[self._at] == indent

    def _begins_item(self) -> bool:
        return self._contents[self._at].startswith("- ")

    def _block(self, indent: int, depth: int) -> Any:
        if depth > _DEEPEST_NESTING or not self._is_at(indent):
            raise _OtherFormError
        return self._list(indent, depth) if self._begins_item() else self._mapping(indent, depth)

    def _list(self, indent: int, depth: int) -> list[Any]:
        items = []
        while self._is_at(indent) and self._begins_item():
            item = self._contents[self._at][2:]
            if _key_of(item) is None:
                self._at += 1
                items.append(self._value(item))
            else:
                # The mapping begins on this line, behind the dash.
                self._contents[self._at], self._indents[self._at] = item, indent + 2
                items.append(self._mapping(indent + 2, depth + 1))
        return items

    def _mapping(self, indent: int, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while self._is_at(indent) and not self._begins_item():
            content = self._contents[self._at]
            key = _key_of(content)
            if key is None or key in mapping:
                raise _OtherFormError
            self._at += 1
            value = content[len(key) + 2 :]
            if value:
                mapping[key] = self._value(value)
            elif self._is_at(indent) and self._begins_item():
                mapping[key] = self._list(indent, depth + 1)
            elif self._at < len(self._contents) and self._indents[self._at] > indent:
                mapping[key] = self._block(self._indents[self._at], depth + 1)
            else:
                mapping[key] = self._plain_scalar(_NOTHING)
        return mapping

    def _value(self, text: str) -> Any:
        if text[:1] in _CLOSED_BY:
            value, end = self._on_one_line(text)
        elif text.startswith("'"):
            text = self._with_further_lines(text)
            value, end = _quoted(text, 0)
        else:
            if ": " in text or " #" in text or text.endswith(":"):
                raise _OtherFormError
            value, end = self._plain(text), len(text)
        if end < len(text):
            raise _OtherFormError
        return value

    def _with_further_lines(self, text: str) -> str:
        """A text in quotes to the line in which it ends; a line end is a blank."""
        while _end_of_quoted(text, 0) < 0 and self._at < len(self._contents):
            if not self._indents[self._at] or text.endswith(" "):
                raise _OtherFormError
            text = f"{text} {self._contents[self._at]}"
            self._at += 1
        return text

    def _on_one_line(self, text: str) -> tuple[Any, int]:
        """A list or mapping of scalars at the beginning of a text, and where it ends."""
        closed_by, mapping, items = _CLOSED_BY[text[0]], dict[str, Any](), list[Any]()
        is_list = closed_by == "]"
        at = 1
        while not text.startswith(closed_by, at):
            if at > 1:
                if not text.startswith(", ", at):
                    raise _OtherFormError
                at += 2
            key = _NOTHING
            if not is_list:
                key = _key_of(text[at : at + _LONGEST_KEY + 2]) or _NOTHING
                at += len(key) + 2
                if not key or key in mapping:
                    raise _OtherFormError
            if text.startswith("'", at):
                value, at = _quoted(text, at)
            else:
                ends = (text.find(",", at), text.find(closed_by, at))
                end = min((end for end in ends if end >= 0), default=len(text))
                if not _ON_NO_LINE_OF_SEVERAL.isdisjoint(text[at:end]):
                    raise _OtherFormError
                value, at = self._plain(text[at:end]), end
            if is_list:
                items.append(value)
            else:
                mapping[key] = value
        return (items if is_list else mapping), at + 1

    def _plain(self, text: str) -> Any:
        first, is_number = text[:1], text[:1] in "-." and text[1:2].isdigit()
        if not (first.isalnum() or is_number or (first and first in _FIRST_OF_PLAIN)):
            raise _OtherFormError
        if text.endswith(" ") or not _IN_NO_PLAIN.isdisjoint(text):
            raise _OtherFormError
        return self._plain_scalar(text)


def _key_of(text: str) -> str | None:
    """The key with which a text begins; None if it does not."""
    key, colon, value = text.partition(":")
    is_key = key[:1].isalpha() and len(key) <= _LONGEST_KEY and _IN_KEYS.issuperset(key)
    return key if is_key and colon and value[:1] in (_NOTHING, " ") and value != " " else None


def _end_of_quoted(text: str, begin: int) -> int:
    """Where a scalar in single quotes ends; -1 if it does not."""
    end = text.find("'", begin + 1)
    while end >= 0 and text.startswith("''", end):
        end = text.find("'", end + 2)
    return end


def _quoted(text: str, begin: int) -> tuple[str, int]:
    """A scalar in single quotes, and what comes behind it."""
    end = _end_of_quoted(text, begin)
    if end < 0:
        raise _OtherFormError
    return text[begin + 1 : end].replace("''", "'"), end + 1
