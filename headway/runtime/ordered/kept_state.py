"""State of keys between batches: a value is returned exactly as ``step`` returned it."""

from __future__ import annotations

import operator
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from headway.errors import InputError
from headway.runtime.ordered.kept_values import MISFITS, bounds_of, fits, keeping, kept_as_is

Key: TypeAlias = tuple[Any, ...]
Values: TypeAlias = tuple[Any, ...]
_KEY = "_headway_key_"


def as_bytes(table: Any) -> bytes:
    """An Arrow table with its schema, as Arrow writes streams."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def as_table(arrow_bytes: bytes) -> Any:
    """The table written by :func:`as_bytes`."""
    return pa.ipc.open_stream(pa.py_buffer(arrow_bytes)).read_all()


def values_of(column: Any) -> list[Any]:
    """A column as plain Python values; whole numbers stay whole if others are null."""
    kind = column.type
    as_numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if (as_numbers and not column.null_count) or pa.types.is_string(kind):
        values: list[Any] = column.to_numpy().tolist()
        return values
    listed: list[Any] = column.to_pylist()
    return listed


def rows_of(table: Any, columns: Iterable[str]) -> list[Values]:
    """Rows of some columns as tuples."""
    return list(zip(*(values_of(table.column(name)) for name in columns), strict=True))


def table_of(rows: Iterable[Values], schema: Any, label: str) -> Any:
    """Tuples as an Arrow table; ``label`` begins the message about a value that does not fit."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = []
    for field, values in zip(schema, columns, strict=True):
        try:
            arrays.append(pa.array(values, type=field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{label} column {field.name}: {error}") from None
    return pa.table(arrays, schema=schema)


class StateForm:
    """Columns of a state, and the conversion of each value into its stored form.

    Every state is converted at each step. Otherwise, a row would see a different value after a
    batch boundary than within a batch, and results would depend on the trigger.
    """

    def __init__(self, schema: Any) -> None:
        if len(set(schema.names)) < len(schema):
            raise InputError(f"state: {', '.join(schema.names)}; expected different names")
        self.schema = schema
        self._keep = [keeping(field.type, field.name) for field in schema]
        self._as_is = tuple(kept_as_is(field.type) for field in schema)
        self._bounds = [
            (at, *bounds_of(field.type.bit_width))
            for at, field in enumerate(schema)
            if pa.types.is_integer(field.type)
        ]
        self.of = maker_of("State", schema.names)

    def kept(self, state: Any) -> Any:
        """A state in its stored form; a value that does not fit its column is refused."""
        if not isinstance(state, tuple | list) or len(state) != len(self._keep):
            raise InputError(
                f"step returned the state {state!r}; expected a tuple of "
                f"{', '.join(self.schema.names)}, or None to forget the key"
            )
        # Most states are plain values, and this runs once per row.
        if tuple(map(type, state)) == self._as_is:
            for at, lower, upper in self._bounds:
                if not lower <= state[at] <= upper:
                    break
            else:
                return self.of(state)
        try:
            return self.of(
                None if value is None else keep(value)
                for keep, value in zip(self._keep, state, strict=True)
            )
        except MISFITS:
            for keep, value, field in zip(self._keep, state, self.schema, strict=True):
                if not fits(keep, value):
                    raise InputError(
                        f"step returned {value!r} for the state {field.name}; expected "
                        f"a value of type {field.type}"
                    ) from None
            raise


def maker_of(name: str, columns: Sequence[str]) -> Callable[[Iterable[Any]], Any]:
    """Factory of named tuples from one value per column; it does not check their number.

    >>> maker_of("State", ["last", "n"])((2.5, 1))
    State(last=2.5, n=1)
    >>> maker_of("Row", ["_id", "class"])((7, "a"))._id
    7
    """
    plain = cast(Any, namedtuple(name, columns, rename=True))
    return partial(tuple.__new__, plain if plain._fields == (*columns,) else _named(plain, columns))


def _named(plain: Any, columns: Sequence[str]) -> Any:
    """A named tuple whose columns have names that Python gives to no field, such as ``_id``."""

    def replace(row: Any, /, **values: Any) -> Any:
        new_values = [values.pop(name, value) for name, value in zip(columns, row, strict=True)]
        if values:
            raise TypeError(f"no column {', '.join(values)}; there are {', '.join(columns)}")
        return tuple.__new__(type(row), new_values)

    def text(row: Any) -> str:
        parts = (f"{name}={value!r}" for name, value in zip(columns, row, strict=True))
        return f"{type(row).__name__}({', '.join(parts)})"

    properties = {
        name: property(operator.itemgetter(at))
        for at, name in enumerate(columns)
        if name != plain._fields[at] and not name.startswith("__")
    }
    methods = {"_fields": (*columns,), "_replace": replace, "__repr__": text, "__slots__": ()}
    return type(plain.__name__, (plain,), methods | properties)


class KeptStates:
    """States of the keys of a bucket; only those that a batch touches are read."""

    def __init__(self, keys: Any, form: StateForm, state_bytes: bytes | None) -> None:
        # Distinct names, since a state may have a column with the same name as a key.
        named = [field.with_name(f"{_KEY}{at}") for at, field in enumerate(keys)]
        self._schema = pa.schema([*named, *form.schema])
        self._form = form
        self._written = state_bytes
        self._table = self._schema.empty_table() if state_bytes is None else as_table(state_bytes)
        names = [field.name for field in named]
        self._at = {key: at for at, key in enumerate(rows_of(self._table, names))}

    def of(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """States of the given keys that have one."""
        stored_keys = [key for key in dict.fromkeys(keys) if key in self._at]
        if not stored_keys:
            return {}
        read = self._table.take(pa.array([self._at[key] for key in stored_keys], pa.int64()))
        rows = rows_of(read, self._form.schema.names)
        return dict(zip(stored_keys, map(self._form.of, rows), strict=True))

    def after(self, changes: Mapping[Key, Any]) -> bytes | None:
        """All states to be stored; a key that changed to None is removed."""
        if not changes:
            return self._written
        untouched = np.ones(len(self._table), dtype=bool)
        untouched[[self._at[key] for key in changes if key in self._at]] = False
        new = [(*key, *state) for key, state in changes.items() if state is not None]
        table = pa.concat_tables(
            [self._table.filter(pa.array(untouched)), table_of(new, self._schema, "state")]
        )
        return as_bytes(table) if len(table) else None
