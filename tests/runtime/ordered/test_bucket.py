"""Buckets give what one worker gives: any buckets, any pieces, late rows, killed anywhere."""

from __future__ import annotations

import os
import random
import signal
import zlib
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headway.errors import InputError
from headway.runtime.ordered import bucket
from headway.runtime.ordered.bucket import (
    BUCKET,
    ROWS,
    BucketState,
    OrderedStep,
    packed,
    parted,
    run_bucket,
    unpacked,
)
from headway.runtime.ordered.kept_state import KeptStates, StateForm
from headway.runtime.ordered.kept_values import keeping
from headway.runtime.ordered.pieces import MOST_PIECES, added, as_table
from tests.runtime.ordered.ordered_cases import (
    COLUMNS,
    OUTPUT,
    Case,
    Disk,
    KilledError,
    a_case,
    found_on,
    in_pieces,
    micros,
    serial,
    through_buckets,
    watermarks_us,
)
from tests.seeds import seeds

# In five parts, of which every run has the first: test_the_cases_find_what_is_wrong says what sixty
# of its cases find.
NUM_CASES = int(os.environ.get("HEADWAY_ORDERED_CASES", "500"))
NUM_OF_PART = NUM_CASES // 5


def a_table(seeded: random.Random) -> Any:
    """Keys to buckets, at random: all to one, or each to its own, or between."""
    buckets = [seeded.randrange(10_000) for _ in range(seeded.choice([1, 2, 5, 40]))]
    placed = {key: seeded.choice(buckets) for key in seeded.sample(["a", "b", "", "6"], 2)}
    return lambda key: placed.get(key, buckets[zlib.crc32(repr(key).encode()) % len(buckets)])


def cases_of(part: int) -> range:
    """Seeds of a part of the cases."""
    return range(part * NUM_OF_PART, (part + 1) * NUM_OF_PART)


@pytest.mark.parametrize("part", seeds(1, 5))
def test_buckets_are_the_serial_program_for_every_table_and_cut(part: int) -> None:
    num_rows = num_late = num_waiting = 0
    for seed in cases_of(part):
        case = a_case(random.Random(seed))
        expected = serial(case)
        for table in range(2):
            disk = Disk()
            seeded = random.Random(7 * seed + table)
            through_buckets(case, disk, seeded, a_table(seeded), logged=table == 1)
            assert found_on(disk) == expected, seed
        num_rows += sum(map(len, expected.values()))
        in_time = Case(case.batches, case.by, 10**9) if case.delay_ms is not None else case
        num_waiting += case.delay_ms is not None
        num_late += serial(in_time) != expected
    # The cases are worth something.
    assert num_rows > 5 * NUM_OF_PART
    assert num_late > NUM_OF_PART / 10
    assert num_waiting > NUM_OF_PART / 3


@pytest.mark.parametrize("part", seeds(1, 5))
def test_batches_do_not_matter_where_their_rows_are_in_order(part: int) -> None:
    """Cut anywhere, rows by their offset give the same: state comes back as it was given."""
    num_different_cuts = 0
    for seed in cases_of(part):
        seeded = random.Random(seed)
        rows = [row for batch in a_case(seeded).batches for row in batch]
        rows = [(*row[:2], at, *row[3:]) for at, row in enumerate(rows)]
        whole = serial(Case((tuple(rows),), ("offset",), None))
        cuts = sorted(seeded.sample(range(len(rows) + 1), min(3, len(rows))))
        parts = [tuple(rows[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
        disk = Disk()
        through_buckets(Case(tuple(parts), ("offset",), None), disk, seeded, a_table(seeded))
        assert found_on(disk) == whole, seed
        num_different_cuts += len([part for part in parts if part]) > 1
    assert num_different_cuts > NUM_OF_PART / 3


def test_killed_before_any_write_and_started_again() -> None:
    num_killed = 0
    for seed in range(NUM_CASES // 20):
        case = a_case(random.Random(1000 + seed))
        expected, disk, dies_after = serial(case), Disk(), 0
        table = a_table(random.Random(seed))
        while True:
            left = [dies_after % 5]

            def die(left: list[int] = left) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise KilledError

            disk.before_write = die if dies_after < 40 else lambda: None
            try:
                through_buckets(case, disk, random.Random(dies_after), table, logged=seed % 2 == 1)
                break
            except KilledError:
                num_killed += 1
                dies_after += 1
        assert found_on(disk) == expected, seed
    assert num_killed > NUM_CASES / 20


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_nothing_is_kept_in_the_process(tmp_path: Path) -> None:
    """The same with processes that end by SIGKILL, their disk in a file."""
    import pickle

    case = next(c for c in map(a_case, map(random.Random, range(99))) if len(serial(c)) > 2)
    place = tmp_path / "disk"
    place.write_bytes(pickle.dumps({}))
    num_killed = 0
    while True:
        child = os.fork()
        if child == 0:
            disk = Disk(files=pickle.loads(place.read_bytes()))
            left = [num_killed % 9]

            def save(disk: Disk = disk, left: list[int] = left) -> None:
                draft = place.with_suffix(".draft")
                draft.write_bytes(pickle.dumps(disk.files))
                draft.rename(place)
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1

            disk.before_write = save
            through_buckets(case, disk, random.Random(num_killed), lambda key: len(key or "") % 3)
            disk.before_write()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
        num_killed += 1
        assert num_killed < 300
    assert found_on(Disk(files=pickle.loads(place.read_bytes()))) == serial(case)
    assert num_killed > 5


@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [
        (bucket, "_in_order", lambda table, by: table),
        (bucket, "times_us", lambda column: column.cast(pa.int64()).fill_null(0)),
        (
            bucket,
            "parted",
            lambda step, new, before, us: parted(step, new, replace(before, passed_us=None), us),
        ),
        (StateForm, "kept", lambda form, state: form.of(state)),
        (KeptStates, "after", lambda states, changes, last_rows_us: ()),
        (KeptStates, "_is_unchanged", lambda states, _: np.ones(len(states._table), dtype=bool)),
    ],
)
def test_the_cases_find_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, wrong: Any
) -> None:
    monkeypatch.setattr(where, name, wrong)
    different = 0
    for seed in range(60):
        disk, seeded = Disk(), random.Random(seed)
        case = a_case(random.Random(seed))
        try:
            through_buckets(case, disk, seeded, a_table(seeded), logged=seed % 2 == 1)
        except (InputError, TypeError):
            different += 1
            continue
        different += found_on(disk) != serial(case)
    assert different


def test_rows_are_packed_by_bucket_and_come_back() -> None:
    batch = pa.RecordBatch.from_pylist(
        [{"k": f"{n % 5}", "v": None if n % 3 else 2**62 + n, BUCKET: n % 4} for n in range(40)],
        pa.schema([("k", pa.string()), ("v", pa.int64()), (BUCKET, pa.int32())]),
    )
    (made,) = packed([batch, batch.slice(0, 0)], "k", {"1": 9, "none": 8})
    found = dict(zip(made.column(0).to_pylist(), made.column(1).to_pylist(), strict=True))
    assert sorted(found) == [0, 1, 2, 3, 9]
    assert set(as_table(found[9]).column("k").to_pylist()) == {"1"}
    rows = [row for part in unpacked([made.select([ROWS])]) for row in part.to_pylist()]
    given = [{"k": row["k"], "v": row["v"]} for row in batch.to_pylist()]
    assert sorted(map(repr, rows)) == sorted(map(repr, given))


def test_rows_come_to_step_as_they_are_and_ties_by_all_columns() -> None:
    seen = []

    def look(row: Any, state: Any) -> Any:
        seen.append(row)
        return None, ()

    schema = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us", tz="Asia/Tokyo")),
                        ("my column", pa.int64()), ("_headway_tie_3", pa.string())])  # fmt: skip
    at = datetime(2026, 5, 1, tzinfo=UTC)
    rows = [(2, at, None, "z"), (2, at, 2**62 + 1, "b"), (2, at, 2**62 + 1, "a"), (1, at, 5, "c")]
    table = pa.Table.from_pylist([dict(zip(schema.names, r, strict=True)) for r in rows], schema)
    batch = pa.RecordBatch.from_arrays(
        [*(c.combine_chunks() for c in table.columns), pa.array([7] * 4, pa.int32())],
        names=[*schema.names, BUCKET],
    )
    (made,) = packed([batch], "k", {})
    ordered = OrderedStep(key=("k",), by=("at",), step=look, state=pa.schema([]), output=OUTPUT)
    arrived = [as_table(one) for one in made.column(1).to_pylist()]
    assert run_bucket(ordered, arrived, BucketState()).output is None
    assert [tuple(row) for row in seen] == [
        (1, at, 5), (2, at, 2**62 + 1), (2, at, 2**62 + 1), (2, at, None)
    ]  # fmt: skip
    assert seen[0]._fields == ("k", "at", "my column")
    assert seen[0].at.utcoffset().total_seconds() == 0


def test_states_that_are_not_touched_stay_and_are_forgotten_one_by_one() -> None:
    form = StateForm(pa.schema([("k", pa.int64())]))
    keys = [pa.field("k", pa.string())]
    written = KeptStates(keys, form, ()).after({(name,): (at,) for at, name in enumerate("abc")})
    states = KeptStates(keys, form, written)
    assert states.of([("b",), ("x",), ("b",)]) == {("b",): (1,)}
    assert states.after({}) is written
    states = KeptStates(keys, form, states.after({("a",): None, ("b",): (5,), ("x",): None}))
    assert states.of([("a",), ("b",), ("c",)]) == {("b",): (5,), ("c",): (2,)}
    assert states.after({("b",): None, ("c",): None}) == ()


def test_a_batch_writes_the_keys_that_it_changes() -> None:
    """With 1% of the keys in a batch, a tenth of the bytes of all states, and the same states."""
    form = StateForm(pa.schema([("last", pa.float64()), ("n", pa.int64())]))
    fields, seeded = [pa.field("k", pa.int64())], random.Random(44)
    states = {(key,): (0.5 * key, 1) for key in range(2000)}
    pieces = KeptStates(fields, form, (), logged=True).after(states)
    num_written_bytes = num_whole_bytes = num_joined = 0
    for number in range(2 * MOST_PIECES + 5):
        changes: dict[Any, Any] = {
            (key,): None if seeded.random() < 0.1 else (seeded.random(), number)
            for key in seeded.sample(range(2000), 20)
        }
        after = KeptStates(fields, form, pieces, logged=True).after(changes)
        new = added(pieces, after)
        num_written_bytes += sum(map(len, after if new is None else new))
        num_joined += new is None
        num_whole_bytes += len(pieces[0])
        pieces, states = after, states | changes
        assert len(pieces) <= MOST_PIECES
    states = {key: state for key, state in states.items() if state is not None}
    stored = KeptStates(fields, form, pieces, logged=True)
    assert stored.of([(key,) for key in range(2000)]) == states
    assert num_joined >= 2
    assert num_written_bytes < 0.1 * num_whole_bytes


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (pa.int32(), 2**31 - 1, [2**31, 1.0, "1"]),
        (pa.int64(), -(2**63), [2**63, -(2**63) - 1]),
        (pa.float64(), 1.5, ["1.5", 10**400]),
        (pa.string(), "ü", [b"u", 1]),
        (pa.binary(), b"\0", ["a"]),
        (pa.bool_(), True, [1]),
        (pa.date32(), datetime(2026, 1, 2, tzinfo=UTC).date(), [datetime(2026, 1, 2, tzinfo=UTC)]),
        (pa.timestamp("us", tz="UTC"), datetime(2026, 1, 2, tzinfo=UTC), [datetime(2026, 1, 2), 1]),
        (pa.timestamp("us"), datetime(2026, 1, 2), [datetime(2026, 1, 2, tzinfo=UTC)]),
        (pa.decimal128(9, 2), Decimal("1.25"), [Decimal("1.255"), 1.25]),
        (pa.list_(pa.int64()), [1, None], ["ab", 3]),
    ],
)
def test_a_state_comes_back_as_it_was_or_is_refused(kind: Any, good: Any, bad: list[Any]) -> None:
    schema = pa.schema([("s", kind)])
    form, keys = StateForm(schema), [pa.field("k", pa.int64())]
    kept = KeptStates(keys, form, ()).after({(1,): form.kept((good,)), (2,): form.kept([None])})
    back = KeptStates(keys, form, kept).of([(1,), (2,)])
    assert back == {(1,): (good,), (2,): (None,)}
    assert type(back[1,].s) is type(good)
    for value in bad:
        with pytest.raises(InputError, match="for the state s; expected a value of type"):
            form.kept((value,))


def test_what_step_returns_is_checked() -> None:
    def run(returned: Any) -> None:
        ordered = OrderedStep(
            key=("k",), by=("offset",), step=lambda row, state: returned,
            state=pa.schema([("n", pa.int64())]), output=pa.schema([("x", pa.int64())]),
        )  # fmt: skip
        rows = [{"k": "a", "offset": 1}]
        run_bucket(ordered, [pa.Table.from_pylist(rows, COLUMNS)], BucketState())

    run(((1,), [(1,), (None,)]))
    run((None, ()))
    for returned, said in {
        None: "expected the state and a list of rows",
        ((1,), None): "expected the state and a list of rows",
        ((1, 2), ()): "expected a tuple of n, or None to forget the key",
        (1, ()): "expected a tuple of n",
        ((1,), ((1, 2),)): "expected a tuple of x",
        ((1,), (("a",),)): "step returned .a. for the output x; expected a value of type",
    }.items():
        with pytest.raises(InputError, match=said):
            run(returned)
    with pytest.raises(InputError, match="does not give back as it was"):
        keeping(pa.float32(), "f")


def test_ties_and_rows_that_are_left_out_are_counted() -> None:
    num_tied = num_late = num_untimed = 0
    for seed in range(NUM_CASES // 5):
        case = a_case(random.Random(seed))
        ordered = OrderedStep(
            key=("k",), by=case.by, step=lambda _row, state: (state, ()), state=OUTPUT,
            output=OUTPUT, held=case.delay_ms is not None,
        )  # fmt: skip
        places = [COLUMNS.names.index(name) for name in ("k", *case.by)]
        marks = None if case.delay_ms is None else watermarks_us(case)
        state, held = BucketState(), list[Any]()
        for at, rows in enumerate(case.batches):
            mark_us = None if marks is None else marks[at]
            arrived = [as_table(one) for one in in_pieces(list(rows), random.Random(at))]
            done = run_bucket(ordered, arrived, state, mark_us)
            state, due = done.after, list(rows)
            if mark_us is not None:
                times = [None if row[1] is None else micros(row[1]) for row in rows]
                assert done.num_untimed == times.count(None)
                assert done.num_late == sum(one is not None and one < mark_us for one in times)
                due = [row for row in held if micros(row[1]) < mark_us]
                held = [row for row in held if micros(row[1]) >= mark_us] + [
                    row for row, one in zip(rows, times, strict=True)
                    if one is not None and one >= mark_us
                ]  # fmt: skip
            same = Counter(tuple(row[place] for place in places) for row in due)
            assert done.num_tied == sum(same.values()) - len(same)
            num_tied += done.num_tied
            num_late += done.num_late
            num_untimed += done.num_untimed
    assert min(num_tied, num_late, num_untimed) > 0
