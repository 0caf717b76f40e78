"""Hostile changes of good files: of their values, of their lines, of their bytes."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import sys
from collections.abc import Iterator
from typing import Any

_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, -0.5, 1e-300, 1e300, -1e300, float("nan"), float("inf")),
    *(float("-inf"), 2**31, 2**63, 2**70, -(2**63) - 1, 10**18, 10**400, 100_000, 1_000_000),
    *("", " ", "x", "1", "nan", "-1", "1e999", "p99 <= 1s", "10m", "50k/s", "../x", "/etc/passwd"),
    *("\ud800", "\u202e", "a\nb", "\x1b[2J", "\0", "::error::x", "é" * 300, "a" * 100_000),
    *([], {}, [None], [[]], [0] * 1000, {"a": 1}, {"": 0}, {"__class__": 1}),
)
_KEYS = ("", " ", "unknown", "__class__", "schema", "0", "\u202e", "a.b", "x" * 300)
_BYTES = (
    *(
        b"\xff",
        b"\0",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n",
        b"\t",
        b'"',
        b"{",
        b"}",
        b"[",
    ),
    *(b"NaN", b"1e999", b"9" * 400, b"&a", b"*a", b"!!python/object:os.system", b"---\n", b"<<: "),
    *(b"[" * 2_000, b'{"a":' * 2_000, b"\x1f\x8b\x08", b"PK\x03\x04", b"(\xb5/\xfd"),
)
#: Each level ten times as large as the one below it, if a reader follows names.
BOMB = "a0: &a0 x\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)


_DEEPEST = 20_000


def changed_data(rng: random.Random, data: Any) -> Any:
    """Data with one to three of its parts replaced, removed, doubled or renamed."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(data))
        if not places:
            return rng.choice(_VALUES)
        holder, key = rng.choice(places)
        match rng.randrange(8):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[rng.choice(_KEYS)] = holder.pop(key)
            case 2 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case 3:
                holder[key] = copy.deepcopy(rng.choice(places)[0])
            case 4:
                holder[key] = _nested(rng.choice((20, 60, 400)))
            case _:
                holder[key] = copy.deepcopy(rng.choice(_VALUES))
    return data


def as_json(data: Any) -> bytes:
    """Data as JSON, with everything in it that only Python writes."""
    text = json.dumps(data, ensure_ascii=False, indent=1, default=str)
    return text.encode("utf-8", "surrogatepass")


@contextlib.contextmanager
def deeper() -> Iterator[None]:
    """Room to copy and write deep lists within deep lists; commands have the usual limit."""
    usual_depth = sys.getrecursionlimit()
    sys.setrecursionlimit(_DEEPEST)
    try:
        yield
    finally:
        sys.setrecursionlimit(usual_depth)


def changed_bytes(rng: random.Random, data: bytes) -> bytes:
    """Bytes with one to three of their parts changed."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(data) + 1)
        until = min(at + rng.choice((1, 1, 2, 8, 64, 1000)), len(data))
        match rng.randrange(7):
            case 0:
                data = data[:at] + data[until:]
            case 1:
                data = data[:at] + data[at:until] * 2 + data[until:]
            case 2:
                data = data[:at]
            case 3:
                data = data[:at] + rng.randbytes(until - at) + data[until:]
            case 4:
                data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
            case _:
                data = data[:at] + rng.choice(_BYTES) + data[at:]
    return data


def changed_lines(rng: random.Random, text: bytes) -> bytes:
    """Lines of JSON, such as those of an event log, with some of them changed."""
    lines = text.split(b"\n")
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                del lines[at]
                lines = lines or [b""]
            case 1:
                lines.insert(at, rng.choice(lines))
            case 2:
                lines[at] = changed_bytes(rng, lines[at])
            case _ if lines[at].startswith(b"{"):
                try:
                    data = changed_data(rng, json.loads(lines[at]))
                except (ValueError, RecursionError):
                    continue
                lines[at] = as_json(data).replace(b"\n", b"")
            case _:
                pass
    return b"\n".join(lines)


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list) and value:
            keys = list(value) if isinstance(value, dict) else range(len(value))
            for key in keys:
                yield value, key
                waiting.append(value[key])


def _nested(depth: int) -> Any:
    data: Any = 1
    for level in range(depth):
        data = [data] if level % 2 else {"a": data}
    return data


def hostile_value(rng: random.Random) -> Any:
    """A value that is good for nothing, or at its limits."""
    return rng.choice(_VALUES)
