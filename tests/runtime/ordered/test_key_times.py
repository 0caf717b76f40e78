"""Timers and the time to live of keys: random cases beside a serial program, and refusals."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from headway.errors import InputError
from headway.runtime.ordered import bucket, kept_state
from headway.runtime.ordered.bucket import BucketState, OrderedStep, run_bucket
from headway.runtime.ordered.kept_state import KeyTimes
from tests.runtime.ordered.ordered_cases import (
    COLUMNS,
    EPOCH,
    Batch,
    Case,
    Disk,
    Output,
    Row,
    a_case,
    batches_of,
    found_on,
    in_order,
    micros,
    run_batches,
)
from tests.runtime.ordered.test_bucket import NUM_CASES, a_table

# Those of `make ordered-equality` are more.
NUM_TIMED = NUM_CASES // 8

STATE = pa.schema([("n", pa.int64()), ("until", pa.timestamp("us", tz="UTC"))])
OUTPUT = pa.schema([("k", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def step(row: Any, state: Any) -> tuple[Any, list[Output]]:
    """Counts the rows of a key; sets a timer, keeps it, removes it, or forgets the key."""
    n, until = state or (0, None)
    at = row.at or EPOCH
    until = {
        0: at + timedelta(milliseconds=40 * (n + 1)), 7: None, -3: at + timedelta(seconds=4),
    }.get(row.number, until)  # fmt: skip
    said = [(row.k, n + 1, None)]
    return (None if row.text == "€" and n % 2 else (n + 1, until)), said


def on_timer(key: Any, state: Any) -> tuple[Any, list[Output]]:
    """Comes again, forgets the key, or has no timer any more."""
    said = [(key.k, 100 + state.n, state.until)]
    if state.n % 3 == 0:
        return None, said
    again = state.until + timedelta(milliseconds=700) if state.n % 3 == 1 else None
    return (state.n + 1, again), said


@dataclass(frozen=True)
class TimedCase:
    """A case with a clock; rows wait for the watermark if the case has a delay."""

    case: Case
    batches: list[Batch]
    times: KeyTimes

    def ordered(self, *, logged: bool) -> OrderedStep:
        return OrderedStep(
            key=("k",), by=self.case.by, step=step, state=STATE, output=OUTPUT,
            held=self.times.by_row, logged=logged, times=self.times,
        )  # fmt: skip


def a_timed_case(seeded: random.Random) -> TimedCase:
    case = a_case(seeded)
    idle_us = seeded.choice([None, 30_000, 900_000, 6_000_000])
    timed = idle_us is None or seeded.random() < 0.7
    times = KeyTimes(
        timer="until" if timed else None, on_timer=on_timer if timed else None, idle_us=idle_us
    )
    if case.delay_ms is not None:
        return TimedCase(case, batches_of(case), replace(times, row_time="at", by_row=True))
    case = replace(case, by=("offset",))
    if seeded.random() < 0.5:
        # Rows do not wait, but the watermark is the clock.
        batches = batches_of(replace(case, delay_ms=seeded.choice([0, 50, 3000])))
        return TimedCase(case, batches, replace(times, row_time="at"))
    now_us, batches = micros(EPOCH), []
    for rows in case.batches:
        now_us += seeded.choice([1, 20_000, 700_000, 5_000_000])
        batches += [(now_us, rows)] + [(now_us + 10_000, ())] * seeded.randrange(2)
    return TimedCase(case, batches, times)


def serial(timed: TimedCase) -> dict[Any, list[Output]]:
    """One worker with all keys, for which the time passes in every batch."""
    times, by_row = timed.times, timed.times.by_row
    states: dict[Any, tuple[int, datetime | None]] = {}
    last_us: dict[Any, int] = {}
    output: dict[Any, list[Output]] = defaultdict(list)
    held: list[Row] = []

    def let_pass(key: Any, until_us: int) -> None:
        while key in states:
            n, until = states[key]
            happens = []
            if times.timer is not None and until is not None:
                happens.append((micros(until), 0))
            if times.idle_us is not None:
                happens.append((last_us[key] + times.idle_us, 1))
            if not happens or min(happens)[0] >= until_us:
                return
            if min(happens)[1] == 1:
                del states[key]
                return
            output[key].append((key, 100 + n, until))
            del states[key]
            if n % 3:
                again = until + timedelta(milliseconds=700) if n % 3 == 1 and until else None
                states[key] = (n + 1, again)

    for now_us, rows in timed.batches:
        assert now_us is not None
        due = list(rows)
        if by_row:
            held += [row for row in rows if row[1] is not None and micros(row[1]) >= now_us]
            due = [row for row in held if row[1] is not None and micros(row[1]) < now_us]
            held = [row for row in held if row not in due]
        for row in in_order(due, timed.case.by):
            key, at, _, number, text = row
            row_us = now_us if at is None or times.row_time is None else micros(at)
            let_pass(key, row_us if by_row else now_us)
            last_us[key] = max(row_us, last_us[key]) if key in states else row_us
            n, until = states.pop(key, (0, None))
            if number in (0, 7, -3):
                waits = timedelta(milliseconds=4000 if number else 40 * (n + 1))
                until = None if number == 7 else (at or EPOCH) + waits
            output[key].append((key, n + 1, None))
            if text != "€" or n % 2 == 0:
                states[key] = (n + 1, until)
        for key in list(states):
            let_pass(key, now_us)
    return {key: rows for key, rows in output.items() if rows}


def through_buckets(timed: TimedCase, seed: int) -> dict[Any, list[Output]]:
    disk, seeded = Disk(), random.Random(seed)
    ordered = timed.ordered(logged=seed % 2 == 1)
    run_batches(ordered, timed.batches, disk, seeded, a_table(seeded))
    return found_on(disk)


def test_timers_and_ends_are_those_of_the_serial_program() -> None:
    num_timers = num_batches_without_rows = 0
    for seed in range(NUM_TIMED):
        timed = a_timed_case(random.Random(seed))
        expected = serial(timed)
        assert through_buckets(timed, seed) == expected, seed
        num_timers += sum(row[2] is not None for rows in expected.values() for row in rows)
        num_batches_without_rows += sum(not rows for _, rows in timed.batches)
    assert num_timers > NUM_TIMED
    assert num_batches_without_rows > NUM_TIMED / 3


@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [
        (KeyTimes, "end_us", lambda times, last_row_us: kept_state.NEVER_US),
        (KeyTimes, "timer_us", lambda times, state: kept_state.NEVER_US),
        (kept_state.KeptStates, "due", lambda states, now_us, touched: []),
        (kept_state.KeptStates, "first_us", lambda states, changed: kept_state.NEVER_US),
        (kept_state.KeptStates, "last_rows_us", lambda states, keys: {}),
        (bucket, "_row_times_us", lambda times, table, now_us: [now_us] * len(table)),
    ],
)
def test_the_cases_find_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, wrong: Any
) -> None:
    cases = [a_timed_case(random.Random(seed)) for seed in range(24)]
    expected = [serial(timed) for timed in cases]
    monkeypatch.setattr(where, name, wrong)
    assert [through_buckets(timed, seed) for seed, timed in enumerate(cases)] != expected


def test_batches_do_not_matter_for_rows_that_wait() -> None:
    """Cut anywhere, with a watermark that leaves out no row, timers come to the same rows."""
    for seed in range(NUM_TIMED // 3):
        seeded = random.Random(seed)
        rows = sorted(
            (row for batch in a_case(seeded).batches for row in batch if row[1] is not None),
            key=lambda row: row[1] or EPOCH,
        )
        if len(rows) < 2:
            continue
        times = KeyTimes(timer="until", on_timer=on_timer, idle_us=900_000, row_time="at",
                         by_row=True)  # fmt: skip
        outputs = []
        for num_cuts in (0, min(5, len(rows) - 1)):
            cuts = sorted(seeded.sample(range(1, len(rows)), num_cuts))
            parts = [tuple(rows[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
            case = Case(tuple(parts), ("at",), 0)
            end_us = micros(rows[-1][1] or EPOCH) + 10_000_000
            timed = TimedCase(case, [*batches_of(case), (end_us, ())], times)
            outputs.append(through_buckets(timed, seed))
        assert outputs[0] == outputs[1], seed


def test_a_table_has_the_time_of_its_rows() -> None:
    at = EPOCH
    rows = [("a", at, 0, 0, ""), ("a", at + timedelta(milliseconds=41), 1, 7, "")]
    table = pa.Table.from_pylist(
        [dict(zip(COLUMNS.names, row, strict=True)) for row in rows], COLUMNS
    )
    times = KeyTimes(timer="until", on_timer=on_timer, row_time="at", by_row=True)
    ordered = OrderedStep(key=("k",), by=("at",), step=step, state=STATE, output=OUTPUT,
                          times=times)  # fmt: skip
    output = run_bucket(ordered, [table], BucketState()).output
    fired = at + timedelta(milliseconds=40)
    assert [tuple(row.values()) for row in output.to_pylist()] == [
        ("a", 1, None), ("a", 101, fired), ("a", 3, None)
    ]  # fmt: skip


def test_what_on_timer_returns_is_checked() -> None:
    def run(returned: Any) -> None:
        times = KeyTimes(timer="until", on_timer=lambda key, state: returned)
        ordered = OrderedStep(key=("k",), by=("offset",), step=step, state=STATE, output=OUTPUT,
                              times=times)  # fmt: skip
        row = ("a", EPOCH, 0, 0, "")
        table = pa.Table.from_pylist([dict(zip(COLUMNS.names, row, strict=True))], COLUMNS)
        run_bucket(ordered, [table], BucketState(), micros(EPOCH) + 10**6)

    run((None, []))
    run(((1, None), [("a", 1, None)]))
    for returned, message in {
        None: "on_timer returned None; expected the state and a list of rows",
        ((1, EPOCH), ()): "whose until has passed; expected a later time, null for no timer",
        ((1,), ()): "on_timer returned the state .1,.; expected a tuple of n, until",
        ((1.5, None), ()): "on_timer returned 1.5 for the state n",
        ((1, None), ((1,),)): "step, or on_timer, returned the row .1,.; expected a tuple of k",
    }.items():
        with pytest.raises(InputError, match=message):
            run(returned)


def test_times_without_a_zone_are_in_utc() -> None:
    state = pa.schema([("until", pa.timestamp("us"))])
    make = kept_state.StateForm(state).of
    at = datetime(2026, 5, 1, 12)
    times = KeyTimes(timer="until")
    assert times.timer_us(make([at])) == micros(at.replace(tzinfo=UTC))
    assert times.timer_us(make([None])) == kept_state.NEVER_US
