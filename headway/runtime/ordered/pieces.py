"""Arrow tables as bytes, and state that is stored in pieces, each with what a batch added.

A piece is stored once. From time to time all pieces become one, so that their number and size stay
within limits, and bytes written per batch follow what changed, not what there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

Pieces: TypeAlias = tuple[bytes, ...]
# Each is read in every batch of its bucket, at tens of microseconds.
MOST_PIECES = 64


def as_bytes(table: Any) -> bytes:
    """An Arrow table with its schema, as Arrow writes streams."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def as_table(arrow_bytes: bytes) -> Any:
    """The table written by :func:`as_bytes`."""
    return pa.ipc.open_stream(pa.py_buffer(arrow_bytes)).read_all()


def joined(pieces: Iterable[bytes]) -> Any:
    """The rows of all pieces in their order; None without pieces."""
    tables = [as_table(piece) for piece in pieces]
    return pa.concat_tables(tables) if tables else None


def fields_of(pieces: Pieces, number: int) -> list[Any]:
    """The first fields of the pieces."""
    schema = pa.ipc.open_stream(pa.py_buffer(pieces[0])).schema
    return [schema.field(at) for at in range(number)]


def may_grow(pieces: Pieces, num_stored_rows: int, num_needed_rows: int) -> bool:
    """Whether another piece may be added: few pieces, and at least half of all rows are needed.

    >>> may_grow((b"first",), 150, 100), may_grow((b"first",), 201, 100), may_grow((), 1, 1)
    (True, False, False)
    """
    return 0 < len(pieces) < MOST_PIECES and num_stored_rows <= 2 * num_needed_rows


def added(before: Pieces, after: Pieces) -> Pieces | None:
    """The pieces to be added to those stored before; None if they are all replaced.

    >>> added((b"a",), (b"a", b"b")), added((b"a", b"b"), (b"ab",)), added((b"a",), (b"a",))
    ((b'b',), None, ())
    """
    return after[len(before) :] if after[: len(before)] == before else None


def values_of(column: Any) -> list[Any]:
    """A column as plain Python values; whole numbers stay whole if others are null."""
    kind = column.type
    as_numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if (as_numbers and not column.null_count) or pa.types.is_string(kind):
        values: list[Any] = column.to_numpy().tolist()
        return values
    listed: list[Any] = column.to_pylist()
    return listed


def times_us(column: Any) -> Any:
    """Timestamps as whole numbers of microseconds."""
    return column.cast(pa.int64())


def rows_of(table: Any, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows of some columns as tuples."""
    return list(zip(*(values_of(table.column(name)) for name in columns), strict=True))
