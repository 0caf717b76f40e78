"""Processing the rows of a batch in a bucket: many keys, each in order, one after the other.

Every value reaches ``step`` unchanged. If pandas would change one, rows are packed, i.e. passed as
Arrow streams inside binary columns.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.runtime.ordered.kept_state import (
    KeptStates,
    KeyTimes,
    PassingTime,
    StateForm,
    maker_of,
    returned,
)
from headway.runtime.ordered.kept_values import output_table
from headway.runtime.ordered.pieces import (
    Pieces,
    as_bytes,
    as_table,
    fields_of,
    joined,
    may_grow,
    rows_of,
    times_us,
    values_of,
)
from headway.runtime.sharing.aggregates import PREFIX
from headway.units import US_PER_MS

Step: TypeAlias = Callable[[Any, Any], tuple[Any, Iterable[tuple[Any, ...]]]]
"""From a row and the state of its key (None for a new key) to the new state and output rows."""

BUCKET, ROWS = f"{PREFIX}bucket", f"{PREFIX}rows"
TIE = f"{PREFIX}tie_"
"""Prefix of columns that only break ties: text forms of nested columns."""
# Objects created before a run of Python's garbage collector; a batch has as many and more.
_YOUNG_OBJECTS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedStep:
    """Definition of the processing: the keys, the order, the step, and its columns in Arrow.

    ``held`` is whether rows wait until the watermark has passed the first column of the order,
    ``logged`` whether a bucket stores what a batch changes in pieces, instead of all of its state.
    """

    key: tuple[str, ...]
    by: tuple[str, ...]
    step: Step
    state: Any
    output: Any
    held: bool = False
    logged: bool = False
    times: KeyTimes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketState:
    """A bucket between batches: states of its keys, and rows that wait for the watermark.

    The watermark ``passed_us`` has let through all earlier ones among these rows.
    """

    states: Pieces = ()
    rows: Pieces = ()
    passed_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketBatch:
    """Result of a batch for a bucket, to be called again once the time has passed ``wakes_ms``.

    ``output`` is an Arrow table, or None.

    ``num_tied`` rows had all columns of the order equal to those of an earlier row of the same key
    and batch. ``num_late`` and ``num_untimed`` rows were left out: behind the watermark of their
    batch, or without a time.
    """

    output: Any
    after: BucketState
    wakes_ms: int | None = None
    num_tied: int = 0
    num_late: int = 0
    num_untimed: int = 0


def run_bucket(
    ordered: OrderedStep, arrived: Sequence[Any], before: BucketState, now_us: int | None = None
) -> BucketBatch:
    """Run the step over the rows that are due, each key in order; a repeat gives the same result.

    ``now_us`` is the watermark, or the start of the batch; None for a table. Rows that are held are
    due once it is past their time, and one that arrives after that is left out.
    """
    new = pa.concat_tables(arrived) if arrived else None
    due, num_late, num_untimed = new, 0, 0
    waiting: Pieces = ()
    first_us: int | None = None
    if ordered.held and now_us is not None:
        due, waiting, first_us = parted(ordered, new, before, now_us)
        if new is not None:
            new_us = times_us(new.column(ordered.by[0]))
            num_late, num_untimed = pc.sum(pc.less(new_us, now_us)).as_py() or 0, new_us.null_count
    output, states, next_us = _stepped(ordered, due, before.states, now_us)
    wakes_us = [at for at in (first_us, next_us) if at is not None]
    return BucketBatch(
        output=output,
        after=BucketState(states=states, rows=waiting, passed_us=now_us if ordered.held else None),
        # Spark calls a bucket in a batch with a later time than this; 0 means never.
        wakes_ms=max(min(wakes_us) // US_PER_MS, 1) if wakes_us else None,
        num_tied=0 if due is None else _num_tied(due, [*ordered.key, *ordered.by]),
        num_late=num_late,
        num_untimed=num_untimed,
    )


def parted(
    ordered: OrderedStep, arrived: Any, before: BucketState, watermark_us: int
) -> tuple[Any, Pieces, int | None]:
    """Rows that are due by a watermark, those that keep waiting, and the time of their first.

    If changes are logged, arrived rows are added to the stored ones. Those that the watermark of
    the state let through are then still among these.
    """
    time, stored_pieces, passed_us = ordered.by[0], before.rows, before.passed_us
    stored = joined(stored_pieces)
    held = stored
    if ordered.logged and stored is not None and passed_us is not None:
        held = stored.filter(pc.greater_equal(times_us(stored.column(time)), passed_us))
    due, accepted, still_held = None, None, []
    if held is not None:
        passed = pc.less(times_us(held.column(time)), watermark_us)
        due = held.filter(passed)
        still_held.append(held.filter(pc.invert(passed)))
    if arrived is not None:
        # Rows that are late, or without a time, are left out.
        in_time = pc.greater_equal(times_us(arrived.column(time)), watermark_us)
        accepted = arrived.filter(in_time)
        still_held.append(accepted)
    rows = pa.concat_tables(still_held) if still_held else None
    if rows is None or not len(rows):
        return due, (), None
    num_accepted = 0 if accepted is None else len(accepted)
    num_stored = num_accepted + (0 if stored is None else len(stored))
    if not ordered.logged or not may_grow(stored_pieces, num_stored, len(rows)):
        pieces: Pieces = (as_bytes(rows),)
    else:
        pieces = (*stored_pieces, as_bytes(accepted)) if num_accepted else stored_pieces
    return due, pieces, int(pc.min(times_us(rows.column(time))).as_py())


def _num_tied(due: Any, columns: Sequence[str]) -> int:
    """Number of rows, beyond the first each, with the same key and position in the order."""
    columns = list(dict.fromkeys(columns))
    return len(due) - len(due.select(columns).group_by(columns).aggregate([]))


def packed(batches: Iterable[Any], key: str, bucket_of: Mapping[Any, int]) -> Iterator[Any]:
    """Turn record batches with a bucket per row into one row per bucket that contains its rows.

    Keys in ``bucket_of`` go to the bucket given there.
    """
    for batch in batches:
        if not batch.num_rows:
            continue
        buckets = batch.column(BUCKET).to_numpy()
        rows = as_kept(pa.Table.from_batches([batch]).drop_columns([BUCKET]))
        if bucket_of:
            buckets = _placed(buckets, rows.column(key), bucket_of)
        order = np.argsort(buckets, kind="stable")
        rows, buckets = rows.take(pa.array(order)), buckets[order]
        begins = np.flatnonzero(np.diff(buckets, prepend=buckets[0] - 1))
        sizes = np.diff(begins, append=len(buckets))
        parts = zip(begins.tolist(), sizes.tolist(), strict=True)
        rows_of_buckets = [as_bytes(rows.slice(begin, size)) for begin, size in parts]
        columns = [pa.array(buckets[begins], pa.int32()), pa.array(rows_of_buckets, pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, names=[BUCKET, ROWS])


def unpacked(batches: Iterable[Any]) -> Iterator[Any]:
    """Output rows from one value per bucket."""
    for batch in batches:
        for arrow_bytes in batch.column(0).to_pylist():
            if arrow_bytes is not None:
                yield from as_table(arrow_bytes).to_batches()


def _placed(buckets: Any, keys: Any, bucket_of: Mapping[Any, int]) -> Any:
    placed_keys = pa.array([*bucket_of], keys.type)
    indices = pc.index_in(keys, value_set=placed_keys).fill_null(-1).to_numpy()
    # The last one is for keys that are not placed.
    ids = np.array([*bucket_of.values(), 0], dtype=np.int32)
    return np.where(indices < 0, buckets, ids[indices])


def as_kept(table: Any) -> Any:
    """The same rows in types that do not depend on session settings, with timestamps in UTC."""
    return table.cast(pa.schema([pa.field(f.name, _kept_type(f.type)) for f in table.schema]))


def _kept_type(kind: Any) -> Any:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp("us", tz="UTC")
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind


def _stepped(
    ordered: OrderedStep, due: Any, pieces: Pieces, now_us: int | None
) -> tuple[Any, Pieces, int | None]:
    """Output of the rows that are due, the states, and the time at which something happens next."""
    table = None if due is None or not len(due) else _in_order(due, ordered.by)
    if table is None and (ordered.times is None or not pieces):
        return None, pieces, None
    if table is not None:
        keys = rows_of(table, ordered.key)
        key_fields = [table.schema.field(name) for name in ordered.key]
    else:
        keys, key_fields = [], fields_of(pieces, len(ordered.key))
    form = StateForm(ordered.state)
    key_states = KeptStates(key_fields, form, pieces, logged=ordered.logged, times=ordered.times)
    states = key_states.of(keys)
    output_rows: list[tuple[Any, ...]] = []
    changes: dict[Any, Any] = {}
    step = ordered.step
    time = None
    if ordered.times is not None:
        time = PassingTime(ordered.times, ordered.key, key_states, keys, now_us, output_rows)
    next_us = None
    with _fewer_collections():
        if table is not None:
            row_times_us = _row_times_us(ordered.times, table, now_us)
            for key, row, row_us in zip(keys, named_rows(table), row_times_us, strict=False):
                state = states.get(key)
                if time is not None:
                    state = time.before_row(key, state, row_us)
                state, rows = returned(step(row, state), "step")
                output_rows.extend(rows)
                if state is None:
                    states.pop(key, None)
                    changes[key] = None
                else:
                    states[key] = changes[key] = form.kept(state)
        if time is not None:
            next_us = time.at_end(changes)
        function = "step" if time is None else "step, or on_timer,"
        output = output_table(output_rows, ordered.output, function) if output_rows else None
        after = key_states.after(changes, None if time is None else time.last_rows_us)
        return output, after, next_us


def _row_times_us(times: KeyTimes | None, table: Any, now_us: int | None) -> Iterable[int | None]:
    """Time of each row, as the clock of the keys has it."""
    if times is None or times.row_time is None:
        return repeat(now_us)
    numbers: list[int | None] = times_us(table.column(times.row_time)).to_pylist()
    return numbers


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Reduce garbage collections, which would repeatedly scan all new rows and find them in use."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _YOUNG_OBJECTS) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _in_order(table: Any, by: Sequence[str]) -> Any:
    """Rows by the columns of the order, then by all others, so that the order is deterministic."""
    columns = table.schema
    ties = [
        name for name in columns.names
        if name not in by and not pa.types.is_nested(columns.field(name).type)
    ]  # fmt: skip
    keys = [(name, "ascending") for name in (*by, *ties)]
    return table.take(pc.sort_indices(table, sort_keys=keys))


def named_rows(table: Any) -> Iterator[Any]:
    """Rows as named tuples of their columns, without those of Headway."""
    names = [name for name in table.schema.names if not name.startswith(PREFIX)]
    values = (values_of(table.column(name)) for name in names)
    return map(maker_of("Row", names), zip(*values, strict=True))
