"""How often each key occurs, from a file that a user's own count wrote.

The file is CSV with a column ``key`` and a column ``count`` (or ``share``), or JSON lines with
these names, as ``df.write.json`` writes them. Other columns are ignored, and so are empty lines.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TypeAlias, get_args

from headway.domain.ordered import KeyCounts
from headway.domain.question import KeyType
from headway.errors import InputError, argument
from headway.formats.own_files import parse_json, read_text
from headway.formats.yaml_document import shown
from headway.limits import LARGEST_NUMBER, MOST_INT, MOST_LONG
from headway.units import parse_size_bytes

WORDS = 'a CSV file with the columns key and count, or JSON lines such as {"key": "a", "count": 7}'
_LARGEST_BYTES = parse_size_bytes("256m")
_MOST_KEYS = 2_000_000
_COUNTS = ("count", "share")
#: A line of the file: its position, the key, the column of its count or share, and that value.
_Row: TypeAlias = tuple[str, object, str, object]


def read_key_counts(
    path: str | Path, *, kind: str | None = None, total_rows: float | None = None
) -> KeyCounts:
    """Read how often each key occurs.

    ``kind`` is Spark's type of the key column, ``string``, ``int`` or ``long``; by default long for
    numbers in JSON, else string. ``total_rows`` are those of all keys, if the file has only the
    most frequent ones; in the unit of the counts. Raises InputError if the file is not such a
    count, as ``file:line: what, expected``.

    >>> read_key_counts("no/such.csv")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: no/such.csv: no such file; expected a count of keys: a CSV file...
    """
    kinds = get_args(KeyType)
    if kind is not None and kind not in kinds:
        raise InputError(f"key type is {kind!r}; expected one of {', '.join(kinds)}")
    counts: dict[str | int, float] = {}
    for where, key, column, count in _rows(path):
        if key is None or key == "":
            raise InputError(
                f"{where}: no key; rows without one all go to one partition: leave them out of "
                "the count (where key is not null)"
            )
        if kind is None:
            kind = "long" if isinstance(key, int) else "string"
        typed = _typed(key, kind, where)
        _require_new(typed, counts, where)
        counts[typed] = _number(column, count, where)
    counted_rows = sum(counts.values())
    if not counted_rows > 0:
        raise InputError(f"{path}: no key with a count above 0; expected {WORDS}")
    if total_rows is not None and total_rows < counted_rows * (1 - 1e-9):
        raise InputError(
            f"{path}: {counted_rows:,.6g} rows are counted, more than the "
            f"{total_rows:,.6g} of all keys"
        )
    heaviest = sorted(
        ((key, n) for key, n in counts.items() if n > 0), key=lambda key_count: -key_count[1]
    )
    return KeyCounts(
        keys=tuple(key for key, _ in heaviest),
        num_rows=tuple(n for _, n in heaviest),
        kind=kind or "string",
        other_rows=0.0 if total_rows is None else max(total_rows - counted_rows, 0.0),
    )


def any_key_counts(
    keys: object, *, kind: str | None = None, total_rows: float | None = None
) -> KeyCounts:
    """How often each key occurs, as given, or read as of `read_key_counts`."""
    if isinstance(keys, str | Path):
        return read_key_counts(keys, kind=kind, total_rows=total_rows)
    if not isinstance(keys, KeyCounts):
        raise InputError(f"{argument('keys')} is {keys!r}; expected the path of a file of keys")
    return keys


def read_shares(path: str | Path) -> dict[str, float]:
    """Share of all rows that each key has, its value as text.

    Shares may add up to less than 1: keys that are not in the file have the rest. Counts are taken
    to be those of all keys. The file is as for `read_key_counts`. Raises InputError if the file
    cannot be read, a share is invalid, or they add up to more than 1.
    """
    shares: dict[str, float] = {}
    columns: set[str] = set()
    for where, key, column, value in _rows(path):
        columns.add(column)
        if len(columns) > 1:
            raise InputError(
                f"{where}: {column} is given, but a {' or '.join(columns - {column})} on the lines "
                "before; expected the same for all keys"
            )
        if key is None:
            raise InputError(f"{where}: no key; leave rows without one out of the file")
        text = key if isinstance(key, str) else shown_key(key)
        _require_new(text, shares, where)
        shares[text] = _number(column, value, where)
        if column != _COUNTS[0] and not 0.0 < shares[text] <= 1.0:
            raise InputError(f"{where}: share is {value!r}; expected more than 0, up to 1")
    total = sum(shares.values())
    if _COUNTS[0] in columns:
        shares = {key: num_rows / total for key, num_rows in shares.items() if num_rows > 0}
    if not shares or sum(shares.values()) > 1.0 + 1e-6:
        raise InputError(
            f"{path}: {len(shares)} keys whose shares add up to {total:g}; expected at least one "
            "key, and shares of all rows, which add up to at most 1"
        )
    return shares


def _rows(path: str | Path) -> Iterator[_Row]:
    text = read_text(Path(path), expected=f"a count of keys: {WORDS}", largest_bytes=_LARGEST_BYTES)
    return (_json_rows if text.lstrip().startswith("{") else _csv_rows)(text, path)


def _json_rows(text: str, path: str | Path) -> Iterator[_Row]:
    for line, row in enumerate(text.split("\n"), 1):
        if not row.strip():
            continue
        try:
            record = parse_json(row, name=str(path), expected=WORDS)
        except InputError:
            record = None
        if not isinstance(record, dict):
            raise InputError(f"{path}:{line}: not a JSON object on one line; expected {WORDS}")
        name = next((column for column in _COUNTS if column in record), None)
        if name is None or "key" not in record:
            raise InputError(f"{path}:{line}: no {'key' if name else 'count'}; expected {WORDS}")
        yield f"{path}:{line}", record["key"], name, record[name]


def _csv_rows(text: str, path: str | Path) -> Iterator[_Row]:
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        heading = [cell.strip().lower() for cell in next(rows, [])]
        name = next((column for column in _COUNTS if column in heading), None)
        if name is None or "key" not in heading:
            missing = "key" if name else "count"
            raise InputError(f"{path}:1: no column {missing!r}; expected {WORDS}")
        key_at, count_at = heading.index("key"), heading.index(name)
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) <= max(key_at, count_at):
                raise InputError(
                    f"{path}:{rows.line_num}: {len(row)} values; expected {len(heading)}"
                )
            yield f"{path}:{rows.line_num}", row[key_at], name, row[count_at]
    except csv.Error as error:
        raise InputError(f"{path}:{rows.line_num}: {error}; expected {WORDS}") from None


def _require_new(key: str | int, earlier_keys: Collection[str | int], where: str) -> None:
    if key in earlier_keys:
        raise InputError(f"{where}: key {shown(key)} is there twice; expected one line for each")
    if len(earlier_keys) == _MOST_KEYS:
        raise InputError(f"{where}: more than {_MOST_KEYS:,} keys; the most frequent are enough")


def _typed(key: object, kind: str, where: str) -> str | int:
    """The key in Spark's type."""
    if kind == "string":
        if not isinstance(key, str):
            raise InputError(
                f"{where}: key {shown_key(key)} is no text; say which type the column has with "
                f"{argument('key_type')}"
            )
        return key
    max_int = MOST_INT if kind == "int" else MOST_LONG
    try:
        number = int(key) if isinstance(key, str | int) and not isinstance(key, bool) else None
    except ValueError:
        number = None
    if number is None or not -max_int - 1 <= number <= max_int:
        raise InputError(f"{where}: key {shown_key(key)} is no {kind}; expected a whole number")
    return number


def shown_key(key: object) -> str:
    """A key in a message."""
    return shown(key if isinstance(key, str | int | float | bool) else str(key))


def _number(column: str, value: object, where: str) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except ValueError:
        number = math.nan
    if isinstance(value, bool) or not 0 <= number <= LARGEST_NUMBER:
        raise InputError(f"{where}: {column} is {shown_key(value)}; expected a number, 0 or more")
    return number
