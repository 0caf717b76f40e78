"""Processing the rows of a batch in a bucket: many keys, each in order, one after the other.

Every value reaches ``step`` unchanged. If pandas would change one, rows are packed, i.e. passed as
Arrow streams inside binary columns.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.errors import InputError
from headway.runtime.ordered.kept_state import (
    KeptStates,
    StateForm,
    as_bytes,
    as_table,
    maker_of,
    rows_of,
    values_of,
)
from headway.runtime.ordered.output_rows import output_table
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

    ``held`` is whether rows wait until the watermark has passed the first column of the order.
    """

    key: tuple[str, ...]
    by: tuple[str, ...]
    step: Step
    state: Any
    output: Any
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketState:
    """A bucket between batches: states of its keys, and rows that wait for the watermark."""

    states: bytes | None = None
    rows: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketBatch:
    """Result of a batch for a bucket; ``wakes_ms`` is the time of the first waiting row.

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
    ordered: OrderedStep,
    arrived: Sequence[Any],
    before: BucketState,
    watermark_us: int | None = None,
) -> BucketBatch:
    """Run the step over the rows that are due, each key in order; a repeat gives the same result.

    Without a watermark, all arrived rows are due. With one, rows wait until it is past their time,
    and a row that arrives after that is left out.
    """
    new = pa.concat_tables(arrived) if arrived else None
    due, waiting = new, None
    num_late = num_untimed = 0
    if watermark_us is not None:
        due, waiting = _parted(ordered, new, before.rows, watermark_us)
        if new is not None:
            times_us = _times_us(new, ordered.by[0])
            num_late = pc.sum(pc.less(times_us, watermark_us)).as_py() or 0
            num_untimed = times_us.null_count
    output, states = _stepped(ordered, due, before.states)
    return BucketBatch(
        output=output,
        after=BucketState(states=states, rows=None if waiting is None else as_bytes(waiting)),
        wakes_ms=None if waiting is None else _first_ms(waiting, ordered.by[0]),
        num_tied=0 if due is None else _num_tied(due, [*ordered.key, *ordered.by]),
        num_late=num_late,
        num_untimed=num_untimed,
    )


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
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(buckets[begins], pa.int32()),
                pa.array(
                    [
                        as_bytes(rows.slice(begin, size))
                        for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True)
                    ],
                    pa.binary(),
                ),
            ],
            names=[BUCKET, ROWS],
        )


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


def _parted(
    ordered: OrderedStep, new: Any, held: bytes | None, watermark_us: int
) -> tuple[Any, Any]:
    """Held rows that the watermark has passed, and those that keep waiting."""
    waiting = []
    due = None
    if held is not None:
        old = as_table(held)
        passed = pc.less(_times_us(old, ordered.by[0]), watermark_us)
        due = old.filter(passed)
        waiting.append(old.filter(pc.invert(passed)))
    if new is not None:
        # Rows that are late, or without a time, are left out.
        waiting.append(new.filter(pc.greater_equal(_times_us(new, ordered.by[0]), watermark_us)))
    remaining_rows = pa.concat_tables(waiting) if waiting else None
    return due, remaining_rows if remaining_rows is not None and len(remaining_rows) else None


def _times_us(table: Any, time: str) -> Any:
    return table.column(time).cast(pa.int64())


def _first_ms(waiting: Any, time: str) -> int:
    """Time after which Spark wakes a bucket by the watermark; in Spark, 0 means never."""
    return max(int(pc.min(_times_us(waiting, time)).as_py()) // US_PER_MS, 1)


def _stepped(ordered: OrderedStep, due: Any, state_bytes: bytes | None) -> tuple[Any, bytes | None]:
    """Output of the rows that are due, and the resulting states."""
    if due is None or not len(due):
        return None, state_bytes
    table = _in_order(due, ordered.by)
    keys = rows_of(table, ordered.key)
    form = StateForm(ordered.state)
    key_states = KeptStates([table.schema.field(name) for name in ordered.key], form, state_bytes)
    states = key_states.of(keys)
    output_rows: list[tuple[Any, ...]] = []
    changes: dict[Any, Any] = {}
    step = ordered.step
    with _fewer_collections():
        for key, row in zip(keys, named_rows(table), strict=True):
            returned = step(row, states.get(key))
            if type(returned) is not tuple or len(returned) != 2 or returned[1] is None:
                raise InputError(
                    f"step returned {returned!r}; expected the state and a list of rows"
                )
            state, rows = returned
            output_rows.extend(rows)
            if state is None:
                states.pop(key, None)
                changes[key] = None
            else:
                states[key] = changes[key] = form.kept(state)
        output = output_table(output_rows, ordered.output, "step") if output_rows else None
        return output, key_states.after(changes)


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
