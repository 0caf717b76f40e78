"""Files that people or Headway wrote, read strictly: limits of size, depth, encoding and numbers.

Every file of Headway's own is read here, so that a damaged or hostile one is refused in a sentence
with its position, whatever it contains. Files of Spark are read by the profiler.
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from headway.errors import InputError, argument
from headway.limits import MOST_LONG
from headway.redaction import one_line
from headway.units import parse_size_bytes

_LARGEST_FILE_BYTES = parse_size_bytes("4m")
_DEEPEST_NESTING = 100
_CHUNK_BYTES = 1 << 20
#: How long a pipe may be silent: whoever would write to it may never come.
_SILENT_S = 10.0
_TOKEN = r'(?s)"(?:[^"\\]|\\.)*+"|[\[\]{}]'
_ESCAPED_SURROGATE = r"\\u[dD][89a-fA-F]"
_LONGEST_REASON = 200


def path_of(path: object, *, expected: str) -> Path:
    """The path of a file that a caller names; InputError if it is an object of another kind.

    >>> path_of(None, expected="a plan")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: path is of the type NoneType; expected the path of a plan
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"{argument('path')} is of the type {type(path).__name__}; "
            f"expected the path of {expected}"
        )
    return Path(path)


def read_text(path: Path, *, expected: str, largest_bytes: int = _LARGEST_FILE_BYTES) -> str:
    """The text of a file, without the byte order mark that some editors put before it.

    Parameters and errors are those of `read_whole_text`.
    """
    text = read_whole_text(path, expected=expected, largest_bytes=largest_bytes)
    return text.removeprefix("\ufeff")


def read_whole_text(path: Path, *, expected: str, largest_bytes: int = _LARGEST_FILE_BYTES) -> str:
    """The complete text of a file that people or Headway wrote.

    Raises InputError if there is no such file, it cannot be read, is empty, too large, or no UTF-8.
    """
    name = one_line(path)
    try:
        data = read_bytes(path, largest_bytes + 1)
    except FileNotFoundError:
        raise InputError(f"{name}: no such file; expected {expected}") from None
    except IsADirectoryError:
        raise InputError(f"{name}: a folder; expected {expected}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{name!r}: cannot be read: {reason}") from None
    if not data.strip():
        raise InputError(f"{name}: the file is empty; expected {expected}")
    if len(data) > largest_bytes:
        mebibytes = largest_bytes // parse_size_bytes("1m")
        raise InputError(f"{name}: the file is larger than {mebibytes} MiB; expected {expected}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InputError(f"{name}: not a text file in UTF-8; expected {expected}")
    return text


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """The beginning of a file; of a pipe what comes, until it is silent for ten seconds.

    Raises OSError if it cannot be read, or nothing comes; ValueError for an impossible name.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
        pieces, missing = [], most_bytes
        while missing > 0:
            if not stat.S_ISREG(mode):
                _wait_for_more(handle)
            piece = os.read(handle, min(missing, _CHUNK_BYTES))
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)
    finally:
        os.close(handle)


def head_of(path: Path, num_bytes: int) -> bytes:
    """The first bytes of a regular file, to see what it is; none of anything else."""
    try:
        return read_bytes(path, num_bytes) if stat.S_ISREG(path.stat().st_mode) else b""
    except (OSError, ValueError):
        return b""


def beginning_of(path: Path, num_bytes: int) -> str:
    """The beginning of a regular file as text; empty for anything else."""
    return head_of(path, num_bytes).decode("utf-8", errors="replace")


def _wait_for_more(handle: int) -> None:
    if not hasattr(select, "poll"):
        return
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    if not waiting.poll(1000 * _SILENT_S):
        raise OSError(None, f"it is no file, and nothing came from it in {_SILENT_S:g} s")


def read_json(
    path: Path,
    *,
    expected: str,
    largest_bytes: int = _LARGEST_FILE_BYTES,
    has_infinity: bool = False,
) -> Any:
    """The data of a JSON file; parameters and errors as of `read_text` and `parse_json`."""
    text = read_text(path, expected=expected, largest_bytes=largest_bytes)
    return parse_json(text, name=str(path), expected=expected, has_infinity=has_infinity)


def parse_json(text: str, *, name: str, expected: str, has_infinity: bool = False) -> Any:
    """The data of a JSON text.

    Messages call it ``name``, and say what was ``expected``. With ``has_infinity`` a number may be
    infinite, as Python writes it. Raises InputError if it is no JSON, nested too deeply, or has a
    number or a text that nobody can calculate with or print; with its position.

    >>> parse_json('{"rate": [NaN]}', name="a.json", expected="rates")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: a.json:1:11: NaN; expected a finite number, in rates
    """
    name = one_line(name)

    def refuse(position: int, problem: str) -> NoReturn:
        line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
        raise InputError(f"{name}:{line}:{column}: {problem}, in {expected}")

    def refuse_number(word: str) -> NoReturn:
        number_match = re.search(rf"(?<![\w.+-]){re.escape(word)}(?![\w.])", text)
        short = word if len(word) <= 40 else f"{word[:37]}..."
        refuse(number_match.start() if number_match else 0, f"{short}; expected a finite number")

    def constant(word: str) -> float:
        return float(word) if has_infinity and word != "NaN" else refuse_number(word)

    def whole(word: str) -> int:
        is_long = len(word) <= len(str(MOST_LONG)) + 1 and abs(int(word)) <= MOST_LONG
        return int(word) if is_long else refuse_number(word)

    def decimal(word: str) -> float:
        number = float(word)
        return number if math.isfinite(number) else refuse_number(word)

    try:
        data = json.loads(text, parse_constant=constant, parse_int=whole, parse_float=decimal)
    except RecursionError:
        refuse(_too_deep(text) or 0, _NESTED)
    except json.JSONDecodeError as error:
        location = f"{name}:{error.lineno}:{error.colno}"
        raise InputError(f"{location}: no JSON: {error.msg}; expected {expected}") from None
    if (deep := _too_deep(text)) is not None:
        refuse(deep, _NESTED)
    surrogate_match = re.search(_ESCAPED_SURROGATE, text)
    if surrogate_match is not None and any(re.search("[\ud800-\udfff]", t) for t in _texts(data)):
        refuse(surrogate_match.start(), "half a character; expected text")
    return data


_NESTED = f"no JSON: nested more than {_DEEPEST_NESTING} deep; expected less"


def why_of(error: Exception) -> str:
    """The reason of an error of a converter, short and on one line."""
    return one_line(str(error), longest=_LONGEST_REASON)


def _too_deep(text: str) -> int | None:
    """Where brackets are nested too deeply; None if they nowhere are."""
    if max(text.count("["), text.count("{")) <= _DEEPEST_NESTING // 2:
        return None
    depth = 0
    for token in re.finditer(_TOKEN, text):
        if token[0] in "[{":
            depth += 1
            if depth > _DEEPEST_NESTING:
                return token.start()
        elif token[0] in "]}":
            depth -= 1
    return None


def _texts(data: Any) -> Iterator[str]:
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
