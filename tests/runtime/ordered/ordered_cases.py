"""Random rows in batches, a serial program over them, and buckets run as Spark runs them."""

from __future__ import annotations

import pickle
import random
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from headway.runtime.ordered.bucket import BucketState, OrderedStep, run_bucket
from headway.runtime.ordered.pieces import as_bytes, as_table

Row: TypeAlias = tuple[str | None, datetime | None, int, int | None, str]
"""Key, event time, offset, a number, a text."""
Output: TypeAlias = tuple[Any, ...]
COLUMNS = pa.schema(
    {
        "k": pa.string(),
        "at": pa.timestamp("us", tz="UTC"),
        "offset": pa.int64(),
        "number": pa.int64(),
        "text": pa.string(),
    }
)
STATE = pa.schema(
    {
        "n": pa.int64(),
        "digest": pa.int64(),
        "mean": pa.float64(),
        "total": pa.decimal128(30, 2),
        "first": pa.timestamp("us", tz="UTC"),
        "k": pa.list_(pa.string()),
    }
)
OUTPUT = pa.schema(
    {
        "k": pa.string(),
        "n": pa.int64(),
        "digest": pa.int64(),
        "mean": pa.float64(),
        "total": pa.decimal128(30, 2),
        "first": pa.timestamp("us", tz="UTC"),
        "texts": pa.string(),
    }
)
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    batches: tuple[tuple[Row, ...], ...]
    by: tuple[str, ...]
    delay_ms: int | None
    """Of the watermark; None where rows do not wait for one."""


def step(row: Any, state: Any) -> tuple[Any, list[Output]]:
    """Depends on every row before, in order, and on its types; forgets keys, is silent, repeats."""
    n, digest, mean, total, first, texts = state or (0, 0, 0, Decimal(0), row.at, [])
    number = row.number or 0
    digest = zlib.crc32(repr((digest, row.text, row.number, row.offset)).encode())
    # Whole numbers where the state holds doubles: kept as they would be behind a batch.
    mean = number if n == 0 else mean + (number - mean) / (n + 1)
    total = total + Decimal(number) / 4
    texts = [*texts, row.text][-3:]
    after = (n + 1, digest, mean, total, first, texts)
    said = (row.k, n + 1, digest, float(mean), total, first, repr(texts))
    if digest % 11 == 0:
        return None, [said]
    return after, [said] * (digest % 3)


def a_case(seeded: random.Random) -> Case:
    """Few keys, rows in jumps, ties, nulls, late and early ones."""
    keys = [None, "", "a", "b", "ü", "key five", "6"][: seeded.randint(1, 7)]
    now, offset, batches = seeded.randrange(10_000), 0, []
    for _ in range(seeded.randint(1, 8)):
        now += seeded.choice([0, 0, 1, 40, 700, 5000])
        rows = list[Row]()
        for _ in range(seeded.choice([0, 1, 4, 12])):
            at_ms = max(now - seeded.choice([0, 0, 0, 1, 30, 600, 9000]), 0)
            at = EPOCH + timedelta(milliseconds=at_ms, microseconds=seeded.choice([0, 0, 1, 999]))
            offset += seeded.choice([0, 1, 1, 1])
            rows.append(
                (
                    seeded.choice(keys),
                    at if seeded.random() < 0.97 else None,
                    offset,
                    seeded.choice([None, 0, 7, -3, 2**62 + 1]),
                    seeded.choice(["", "x", "y", "€"]),
                )
            )
        batches.append(tuple(rows))
    waits = seeded.random() < 0.5
    by = ("at",) if waits else seeded.choice([("offset",), ("at", "offset"), ("at",)])
    return Case(tuple(batches), by, seeded.choice([0, 1, 50, 3000]) if waits else None)


def watermarks_us(case: Case) -> list[int]:
    """Spark's watermark of each batch, and of the ones after the last, in microseconds."""
    assert case.delay_ms is not None
    found = [0]
    for rows in case.batches:
        newest = max((micros(row[1]) for row in rows if row[1] is not None), default=0)
        found.append(max(found[-1], newest // 1000 * 1000 - 1000 * case.delay_ms))
    return found


def micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def in_order(rows: list[Row], by: tuple[str, ...]) -> list[Row]:
    """By the columns of the order, then all others; nulls are last."""
    names = [*by, *(name for name in COLUMNS.names if name not in by)]
    places = [COLUMNS.names.index(name) for name in names]
    return sorted(
        rows,
        key=lambda row: [(True, 0) if row[at] is None else (False, row[at]) for at in places],
    )


def serial(case: Case) -> dict[Any, list[Output]]:
    """One worker, every row in its order: what comes out for each key."""
    if case.delay_ms is None:
        rows = [row for batch in case.batches for row in in_order(list(batch), case.by)]
    else:
        marks = watermarks_us(case)
        accepted = [
            row
            for mark, batch in zip(marks, case.batches, strict=False)
            for row in batch
            if row[1] is not None and micros(row[1]) >= mark
        ]
        rows = [
            row
            for row in in_order(accepted, case.by)
            if row[1] is not None and micros(row[1]) < marks[-1]
        ]
    states: dict[Any, Any] = {}
    found: dict[Any, list[Output]] = defaultdict(list)
    for row in rows:
        state, made = step(OrderedRow(*row), states.get(row[0]))
        states[row[0]] = state and (*state[:2], float(state[2]), *state[3:])
        found[row[0]] += made
    return {key: made for key, made in found.items() if made}


@dataclass(frozen=True)
class OrderedRow:
    k: str | None
    at: datetime | None
    offset: int
    number: int | None
    text: str


class KilledError(Exception):
    """A process that ended before a write."""


@dataclass
class Disk:
    """What outlives a process: each write is whole or not there."""

    before_write: Callable[[], None] = lambda: None
    files: dict[tuple[Any, ...], bytes] = field(default_factory=dict)

    def write(self, name: tuple[Any, ...], what: object) -> None:
        self.before_write()
        self.files[name] = pickle.dumps(what)

    def read(self, name: tuple[Any, ...]) -> Any:
        return pickle.loads(self.files[name])


def through_buckets(
    case: Case, disk: Disk, seeded: random.Random, bucket_of: Any, *, logged: bool = False
) -> None:
    """A case as Spark runs it, its state stored as a whole or in pieces."""
    ordered = OrderedStep(
        key=("k",),
        by=case.by,
        step=step,
        state=STATE,
        output=OUTPUT,
        held=case.delay_ms is not None,
        logged=logged,
    )
    run_batches(ordered, batches_of(case), disk, seeded, bucket_of)


Batch: TypeAlias = tuple[int | None, tuple[Row, ...]]
"""Its watermark, or its start, and its rows."""


def batches_of(case: Case) -> list[Batch]:
    """Behind the last batch, and in between, there are batches without rows."""
    marks = None if case.delay_ms is None else watermarks_us(case)
    batches: list[Batch] = []
    for at, rows in enumerate(case.batches):
        batches.append((marks[at] if marks else None, rows))
        # By the batch alone: one that is cut is repeated as it was.
        if marks and (marks[at + 1] > marks[at] and random.Random(at).random() < 0.5):
            batches.append((marks[at + 1], ()))
    if marks:
        batches.append((marks[-1], ()))
    return batches


def run_batches(
    ordered: OrderedStep, batches: list[Batch], disk: Disk, seeded: random.Random, bucket_of: Any
) -> None:
    """Batches as Spark runs them, on what the disk has: states by version, a sink by batch.

    Rows reach a bucket in any order and any number of pieces. A bucket runs if it has rows or if
    the time wakes it.
    """
    for number, (now_us, rows) in enumerate(batches):
        if ("commit", number) in disk.files:
            continue
        before = disk.read(("state", number - 1)) if number else {}
        by_bucket = defaultdict[int, list[Row]](list)
        for row in rows:
            by_bucket[bucket_of(row[0])].append(row)
        woken = {
            bucket for bucket, (_, wakes_ms) in before.items()
            if now_us is not None and wakes_ms is not None and wakes_ms * 1000 < now_us
        }  # fmt: skip
        states = dict(before)
        for bucket in seeded.sample(sorted({*by_bucket, *woken}), len({*by_bucket, *woken})):
            state, _ = before.get(bucket, (BucketState(), None))
            pieces = list(in_pieces(by_bucket[bucket], seeded))
            done = run_bucket(ordered, [as_table(one) for one in pieces], state, now_us)
            states[bucket] = done.after, done.wakes_ms
            output = None if done.output is None else as_bytes(done.output)
            disk.write(("sink", number, bucket), output)
        disk.write(("state", number), states)
        disk.write(("commit", number), None)


def in_pieces(rows: list[Row], seeded: random.Random) -> Iterator[bytes]:
    left = seeded.sample(rows, len(rows))
    while left:
        size = seeded.randint(1, len(left))
        yield as_bytes(pa.Table.from_pylist(
            [dict(zip(COLUMNS.names, row, strict=True)) for row in left[:size]], COLUMNS
        ))  # fmt: skip
        left = left[size:]


def found_on(disk: Disk) -> dict[Any, list[Output]]:
    """Output of each key, batch after batch, as it lies in the sink."""
    found: dict[Any, list[Output]] = defaultdict(list)
    for name in sorted(name for name in disk.files if name[0] == "sink"):
        written = disk.read(name)
        if written is not None:
            for row in as_table(written).to_pylist():
                found[row["k"]].append(tuple(row.values()))
    return dict(found)
