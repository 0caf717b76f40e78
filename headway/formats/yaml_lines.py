"""YAML as text with comments, every text in double quotes, so that all readers agree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

Tree: TypeAlias = "str | int | bool | Mapping[str, Tree] | Sequence[Tree]"


def yaml_document(
    tree: Mapping[str, Tree], *, header: Sequence[str] = (), comments: Mapping[str, str]
) -> str:
    """A document: comment lines, then the tree; ``comments`` are above the keys they name.

    >>> print(yaml_document({"a": {"b": "8g"}, "c": ["x"]}, comments={"b": "as profiled"}), end="")
    a:
      # as profiled
      b: "8g"
    c:
    - "x"
    """
    lines = [f"# {line}".rstrip() for line in header]
    lines += _mapping_lines(tree, "", comments)
    return "".join(f"{line}\n" for line in lines)


def yaml_scalar(value: str | int | bool) -> str:
    """A scalar on one line.

    >>> yaml_scalar("8g"), yaml_scalar(8), yaml_scalar(False), yaml_scalar("a\\u2028b")
    ('"8g"', '8', 'false', '"a\\\\u2028b"')
    """
    if not isinstance(value, str):
        return json.dumps(value)
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else _escape(char) for char in quoted)


def yaml_key(key: str) -> str:
    """A key: unquoted if that is safe, else in quotes."""
    bare = key[:1].isalpha() and all(char.isalnum() or char in "._-/" for char in key)
    is_word = key.lower() in ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
    return key if bare and key.isascii() and not is_word else yaml_scalar(key)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _mapping_lines(
    tree: Mapping[str, Tree], indent: str, comments: Mapping[str, str]
) -> Iterator[str]:
    for key, value in tree.items():
        if key in comments:
            yield f"{indent}# {comments[key]}"
        match value:
            case Mapping() if value:
                yield f"{indent}{yaml_key(key)}:"
                yield from _mapping_lines(value, f"{indent}  ", comments)
            case str() | int():
                yield f"{indent}{yaml_key(key)}: {yaml_scalar(value)}"
            case Mapping():
                yield f"{indent}{yaml_key(key)}: {{}}"
            case _:
                yield f"{indent}{yaml_key(key)}:"
                yield from _list_lines(value, indent, comments)


def _list_lines(items: Sequence[Tree], indent: str, comments: Mapping[str, str]) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping):
            lines = list(_mapping_lines(item, f"{indent}  ", comments))
            first = next(at for at, line in enumerate(lines) if not line.lstrip().startswith("#"))
            lines[first] = f"{indent}- {lines[first][len(indent) + 2 :]}"
            yield from lines
        else:
            assert isinstance(item, str | int | bool)
            yield f"{indent}- {yaml_scalar(item)}"
