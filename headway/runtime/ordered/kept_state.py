"""State of keys between batches, and what happens to it as time passes.

A value is returned exactly as ``step`` returned it. Timers of keys, and the end of keys that have
no more rows, happen as soon as the time has passed them: in event time before a row of the key with
a later time, in any case in the batch whose watermark, or whose start, is later.
"""

from __future__ import annotations

import operator
from collections import namedtuple
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import pyarrow as pa

from headway.errors import InputError
from headway.runtime.ordered import kept_values
from headway.runtime.ordered.pieces import Pieces, as_bytes, joined, may_grow, rows_of, times_us

Key: TypeAlias = tuple[Any, ...]
Values: TypeAlias = tuple[Any, ...]
Clock: TypeAlias = Literal["event", "processing"]
OnTimer: TypeAlias = Callable[[Any, Any], tuple[Any, Iterable[tuple[Any, ...]]]]
"""From a key and its state, whose timer has passed, to the new state and output rows."""
NEVER_US = (1 << 63) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_KEY = "_headway_key_"
_LAST_ROW, _GONE = "_headway_last_row_us", "_headway_gone"


class StateForm:
    """Columns of a state, and the conversion of each value into its stored form.

    Every state is converted at each step. Otherwise, a row would see a different value after a
    batch boundary than within a batch, and results would depend on the trigger.
    """

    def __init__(self, schema: Any) -> None:
        if len(set(schema.names)) < len(schema):
            raise InputError(f"state: {', '.join(schema.names)}; expected different names")
        self.schema = schema
        self._keep = [kept_values.keeping(field.type, field.name) for field in schema]
        self._as_is = tuple(kept_values.kept_as_is(field.type) for field in schema)
        self._bounds = [
            (at, *kept_values.bounds_of(field.type.bit_width))
            for at, field in enumerate(schema)
            if pa.types.is_integer(field.type)
        ]
        self.of = maker_of("State", schema.names)

    def kept(self, state: Any, function: str = "step") -> Any:
        """A state that a user's function returned in its stored form; misfits are refused."""
        if not isinstance(state, tuple | list) or len(state) != len(self._keep):
            raise InputError(
                f"{function} returned the state {state!r}; expected a tuple of "
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
            pairs = zip(self._keep, state, strict=True)
            return self.of(None if value is None else keep(value) for keep, value in pairs)
        except kept_values.MISFITS:
            for keep, value, field in zip(self._keep, state, self.schema, strict=True):
                if not kept_values.fits(keep, value):
                    raise InputError(
                        f"{function} returned {value!r} for the state {field.name}; expected "
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


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTimes:
    """What happens to a key as time passes.

    ``timer`` is the column of the state with the time for which ``on_timer`` is called. A key is
    forgotten ``idle_us`` after its last row, whose time is in the column ``row_time``, or that of
    its batch. With ``by_row``, rows are in the order of this time, and each one lets it pass.
    """

    timer: str | None = None
    on_timer: OnTimer | None = None
    idle_us: int | None = None
    row_time: str | None = None
    by_row: bool = False

    def timer_us(self, state: Any) -> int:
        """Time of the timer of a state."""
        at = None if self.timer is None else getattr(state, self.timer)
        if at is None:
            return NEVER_US
        in_utc: datetime = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return (in_utc - _EPOCH) // _US

    def end_us(self, last_row_us: int | None) -> int:
        """Time at which a key is forgotten unless another row arrives."""
        if self.idle_us is None or last_row_us is None:
            return NEVER_US
        return last_row_us + self.idle_us


class KeptStates:
    """States of the keys of a bucket; only those that a batch touches are read.

    A piece of ``pieces`` replaces the keys that it has in earlier ones. With ``logged``, a batch
    adds a piece of its changes; without, there is one piece, and each batch writes it anew.
    """

    def __init__(
        self,
        key_fields: Sequence[Any],
        form: StateForm,
        pieces: Pieces,
        *,
        logged: bool = False,
        times: KeyTimes | None = None,
    ) -> None:
        # Distinct names, since a state may have a column with the same name as a key.
        named = [field.with_name(f"{_KEY}{at}") for at, field in enumerate(key_fields)]
        self._num_key_columns = len(named)
        self._times = times
        self._logged = logged
        self._keeps_last_rows = times is not None and times.idle_us is not None
        further = [pa.field(_LAST_ROW, pa.int64())] if self._keeps_last_rows else []
        further += [pa.field(_GONE, pa.bool_())] if logged else []
        self._schema = pa.schema([*named, *form.schema, *further])
        self.form = form
        self._pieces = pieces
        stored = joined(pieces)
        self._table = self._schema.empty_table() if stored is None else stored
        keys = rows_of(self._table, [field.name for field in named])
        self._at = {key: at for at, key in enumerate(keys)}
        if logged:
            for at in np.flatnonzero(self._table.column(_GONE).to_numpy()).tolist():
                if self._at.get(keys[at]) == at:
                    del self._at[keys[at]]

    def of(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """States of the given keys that have one."""
        stored_keys, rows = self._read(keys, self.form.schema.names)
        return dict(zip(stored_keys, map(self.form.of, rows), strict=True))

    def last_rows_us(self, keys: Iterable[Key]) -> dict[Key, int | None]:
        """Time of the last row of the given keys that have a state."""
        if not self._keeps_last_rows:
            return {}
        stored_keys, rows = self._read(keys, [_LAST_ROW])
        return {key: last_us for key, (last_us,) in zip(stored_keys, rows, strict=True)}

    def _read(self, keys: Iterable[Key], columns: Sequence[str]) -> tuple[list[Key], list[Values]]:
        stored_keys = [key for key in dict.fromkeys(keys) if key in self._at]
        if not stored_keys:
            return [], []
        read = self._table.take(pa.array([self._at[key] for key in stored_keys], pa.int64()))
        # Without columns, zip would give no rows.
        return stored_keys, rows_of(read, columns) if columns else [()] * len(stored_keys)

    def due(self, now_us: int, touched: Collection[Key]) -> list[Key]:
        """Keys that are not touched, and for which something happens before a time."""
        is_due = self._when_us() < now_us
        if not is_due.any():
            return []
        of_rows = is_due.tolist()
        return [key for key, at in self._at.items() if of_rows[at] and key not in touched]

    def first_us(self, changed: Collection[Key]) -> int:
        """Time at which something happens to one of the unchanged keys."""
        when_us = self._when_us()[self._is_unchanged(changed)]
        return int(when_us.min()) if len(when_us) else NEVER_US

    def _when_us(self) -> Any:
        """Time at which something happens to the key of each stored row, now or once."""
        assert self._times is not None
        when_us = np.full(len(self._table), NEVER_US)
        if self._times.timer is not None:
            when_us = times_us(self._table.column(self._times.timer)).fill_null(NEVER_US).to_numpy()
        if self._times.idle_us is not None:
            last_us = self._table.column(_LAST_ROW)
            idle_us = last_us.fill_null(NEVER_US - self._times.idle_us).to_numpy()
            when_us = np.minimum(when_us, idle_us + self._times.idle_us)
        return when_us

    def _is_unchanged(self, changed: Collection[Key]) -> Any:
        """For each stored row, whether it is the state of a key that has not changed."""
        unchanged = np.zeros(len(self._table), dtype=bool)
        unchanged[np.fromiter(self._at.values(), np.int64, len(self._at))] = True
        unchanged[[self._at[key] for key in changed if key in self._at]] = False
        return unchanged

    def after(
        self, changes: Mapping[Key, Any], last_rows_us: Mapping[Key, int | None] | None = None
    ) -> Pieces:
        """All states to be stored; a key that changed to None is removed."""
        states = [(key, state) for key, state in changes.items() if state is not None]
        removed = [key for key, state in changes.items() if state is None and key in self._at]
        if not states and not removed:
            return self._pieces
        last_us = last_rows_us or {}
        lasts = [(last_us.get(key),) if self._keeps_last_rows else () for key, _ in states]
        gone = (False,) if self._logged else ()
        new = [
            (*key, *state, *last, *gone) for (key, state), last in zip(states, lasts, strict=True)
        ]
        num_states = len(self._at) + len(states) - sum(key in self._at for key, _ in states)
        num_stored = len(self._table) + len(new) + len(removed)
        if self._logged and may_grow(self._pieces, num_stored, num_states - len(removed)):
            nothing = (None,) * (len(self._schema) - self._num_key_columns - 1)
            new += [(*key, *nothing, True) for key in removed]
            return (*self._pieces, as_bytes(kept_values.table_of(new, self._schema, "state")))
        unchanged = self._table.filter(pa.array(self._is_unchanged(changes)))
        table = pa.concat_tables([unchanged, kept_values.table_of(new, self._schema, "state")])
        return (as_bytes(table),) if len(table) else ()


class PassingTime:
    """Time that passes for the keys of a bucket in a batch with some of them, up to ``now_us``.

    What ``on_timer`` returns is added to ``output_rows``.
    """

    def __init__(
        self,
        times: KeyTimes,
        key_columns: Sequence[str],
        key_states: KeptStates,
        keys: Iterable[Key],
        now_us: int | None,
        output_rows: list[Values],
    ) -> None:
        self._times, self._key_of = times, maker_of("Key", key_columns)
        self._key_states, self._form = key_states, key_states.form
        self._now_us, self._output_rows = now_us, output_rows
        self.last_rows_us = key_states.last_rows_us(keys)

    def before_row(self, key: Key, state: Any, row_us: int | None) -> Any:
        """State of a key just before one of its rows."""
        until_us = row_us if self._times.by_row else self._now_us
        if state is not None and until_us is not None:
            state = self._passed(key, state, until_us)
        if self._times.idle_us is not None:
            # A row without a time counts as one of now.
            last_us = self._now_us if row_us is None else row_us
            before_us = None if state is None else self.last_rows_us.get(key)
            rows_us = [at for at in (before_us, last_us) if at is not None]
            self.last_rows_us[key] = max(rows_us, default=None)
        return state

    def at_end(self, changes: dict[Key, Any]) -> int | None:
        """Let the time pass for all keys after the rows; returns when something happens next."""
        if self._now_us is None:
            return None
        due_keys = self._key_states.due(self._now_us, changes)
        self.last_rows_us |= self._key_states.last_rows_us(due_keys)
        for key, state in {**changes, **self._key_states.of(due_keys)}.items():
            if state is not None:
                changes[key] = self._passed(key, state, self._now_us)
        ahead_us = (
            self._when_us(key, state) for key, state in changes.items() if state is not None
        )
        first_us = min(self._key_states.first_us(changes), *ahead_us, NEVER_US)
        return None if first_us == NEVER_US else first_us

    def _when_us(self, key: Key, state: Any) -> int:
        return min(self._times.timer_us(state), self._times.end_us(self.last_rows_us.get(key)))

    def _passed(self, key: Key, state: Any, until_us: int) -> Any:
        """State of a key at a time; what is due at that very time has not happened yet."""
        on_timer = self._times.on_timer
        while state is not None and self._when_us(key, state) < until_us:
            timer_us = self._times.timer_us(state)
            if on_timer is None or self._times.end_us(self.last_rows_us.get(key)) < timer_us:
                return None
            after, rows = returned(on_timer(self._key_of(key), state), "on_timer")
            self._output_rows.extend(rows)
            state = None if after is None else self._form.kept(after, "on_timer")
            if state is not None and self._times.timer_us(state) <= timer_us:
                raise InputError(
                    f"on_timer returned the state {state!r}, whose {self._times.timer} has passed; "
                    "expected a later time, null for no timer, or None to forget the key"
                )
        return state


def returned(pair: Any, function: str) -> tuple[Any, Iterable[tuple[Any, ...]]]:
    """What a user's function returned, if it is a state and rows."""
    if type(pair) is not tuple or len(pair) != 2 or pair[1] is None:
        raise InputError(f"{function} returned {pair!r}; expected the state and a list of rows")
    return pair
