r"""The format of ``spark-defaults.conf``: Java properties, as Spark reads them.

Java's rules: a key ends at the first blank, ``=`` or ``:``; a backslash escapes what follows it; an
unescaped one at a line's end joins the next line; ``#`` and ``!`` open a comment only at the start
of a line. Spark adds one: blanks around a value are removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from headway.errors import InputError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {char: f"\\{letter}" for letter, char in _ESCAPES.items()} | {"\\": "\\\\"}
# Java ends a line here and nowhere else; str.splitlines knows more ends than that.
_LINE_END = r"\r\n|\r|\n"


def render_properties(
    conf: Mapping[str, str],
    *,
    header: Sequence[str] = (),
    comments: Mapping[str, str] | None = None,
) -> str:
    r"""The text of a properties file that Spark reads as exactly ``conf``.

    Raises ValueError if a key is empty, or a value begins or ends with a blank: Spark would remove
    it.

    >>> print(
    ...     render_properties(
    ...         {"spark.executor.cores": "4", "spark.local.dir": "C:\\tmp"},
    ...         header=["sizes"],
    ...         comments={"spark.local.dir": "the fast disk"},
    ...     ),
    ...     end="",
    ... )
    # sizes
    spark.executor.cores  4
    # the fast disk
    spark.local.dir       C:\\tmp
    """
    lines = [line for text in header for line in _comment_lines(text)]
    escaped_keys = {key: _escape_key(key) for key in conf}
    width = max(map(len, escaped_keys.values()), default=0) + 2
    for key, value in conf.items():
        if comments is not None and key in comments:
            lines += _comment_lines(comments[key])
        lines.append(f"{escaped_keys[key]:<{width}}{_escape_value(key, value)}")
    return "".join(f"{line}\n" for line in lines)


def _comment_lines(text: str) -> list[str]:
    return [f"# {line}".rstrip() for line in re.split(_LINE_END, text)]


def parse_properties(text: str) -> dict[str, str]:
    r"""Keys and values of a properties file; of a repeated key the last one counts.

    Raises InputError if a ``\u`` is not followed by four hexadecimal digits; the message names the
    line.

    >>> parse_properties("# sizes\nspark.executor.cores = 4\nspark.app.name: night #1  \n")
    {'spark.executor.cores': '4', 'spark.app.name': 'night #1'}
    """
    conf = {}
    for number, line in _logical_lines(text):
        end = _end_of_key(line)
        value = line[end:].lstrip(_BLANKS)
        if value[:1] in ("=", ":"):
            value = value[1:].lstrip(_BLANKS)
        conf[_unescape(line[:end], number)] = _trim(_unescape(value, number))
    return conf


def property_lines(text: str) -> dict[str, int]:
    """The line of each key of a properties file; of a repeated key that of the last one.

    >>> property_lines("# sizes\\nspark.executor.cores = 4\\n")
    {'spark.executor.cores': 2}
    """
    return {
        _unescape(line[: _end_of_key(line)], number): number
        for number, line in _logical_lines(text)
    }


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with content, with the number of their first line, continuations joined."""
    joined, start = "", 0
    for number, line in enumerate(re.split(_LINE_END, text), start=1):
        piece = line.lstrip(_BLANKS)
        if not start:
            if not piece or piece[0] in "#!":
                continue
            start = number
        num_backslashes = len(piece) - len(piece.rstrip("\\"))
        if num_backslashes % 2:
            joined += piece[:-1]
            continue
        if joined or piece:
            yield start, joined + piece
        joined, start = "", 0
    if joined:
        yield start, joined


def _end_of_key(line: str) -> int:
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    return min(position, len(line))


def _unescape(text: str, line_number: int) -> str:
    def plain(match: re.Match[str]) -> str:
        if match["hex"] is not None:
            return chr(int(match["hex"], 16))
        if match["char"] == "u":
            raise InputError(
                rf"line {line_number}: \u in {text!r}; expected four hexadecimal digits after it"
            )
        return _ESCAPES.get(match["char"], match["char"])

    unescaped = re.sub(r"\\(?:u(?P<hex>[0-9a-fA-F]{4})|(?P<char>.))", plain, text, flags=re.DOTALL)
    # Java writes a character outside the basic plane as two escapes, which make one in Python.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _trim(value: str) -> str:
    """Remove what Spark removes: everything up to the space, except line ends."""
    cut = "".join(map(chr, range(33))).replace("\r", "").replace("\n", "")
    return value.strip(cut)


def _escape_key(key: str) -> str:
    if not key:
        raise ValueError("a configuration key is empty")
    escaped = "".join(f"\\{char}" if char in " =:" else _escape_char(char) for char in key)
    return f"\\{escaped}" if escaped[0] in "#!" else escaped


def _escape_value(key: str, value: str) -> str:
    if value != _trim(value):
        raise ValueError(f"{key}: Spark would cut the blanks around {value!r}")
    escaped = "".join(map(_escape_char, value))
    # Java would take a leading = or : for the separator.
    return f"\\{escaped}" if escaped[:1] in ("=", ":") else escaped


def _escape_char(char: str) -> str:
    if char in _ESCAPED:
        return _ESCAPED[char]
    # Control characters are invisible in a file, and lone surrogates cannot be encoded.
    if ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000:
        return f"\\u{ord(char):04x}"
    return char
