"""The log equals the direct query, batch by batch, whatever is late, restarted or killed."""

from __future__ import annotations

import json
import math
import os
import random
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import pytest

from headway.domain.window_set import WindowSpec
from headway.errors import HeadwayError, InputError
from headway.runtime.sharing.log_batches import Emit, WindowLog
from headway.runtime.sharing.log_state import LogState
from tests.runtime.sharing.log_cases import (
    COUNTS,
    Case,
    CountingStore,
    MemoryFiles,
    PlainFiles,
    Result,
    a_case,
    direct,
    on_time,
    panes,
    through_log,
)

if TYPE_CHECKING:
    from headway.runtime.sharing.log_store import SparkStore

NUM_CASES = int(os.environ.get("HEADWAY_WINDOW_CASES", "300"))
NUM_KILLED_CASES = int(os.environ.get("HEADWAY_WINDOW_KILLS", "0"))
EMITS: tuple[Emit, ...] = get_args(Emit)


def test_the_log_is_the_direct_query_for_every_row() -> None:
    num_windows = num_late = 0
    for seed in range(NUM_CASES):
        seeded = random.Random(seed)
        case = a_case(seeded)
        for emit in EMITS:
            found = Result()
            through_log(case, emit, MemoryFiles(), "", found, restarts=sometimes(seed))
            assert found == direct(case, emit), (seed, emit)
            num_windows += len(found)
        num_late += panes(case) != direct(case)
    # The cases are worth something: they emit, and rows come late in many.
    assert num_windows > NUM_CASES
    assert num_late > NUM_CASES / 20


def sometimes(seed: int) -> Callable[[], bool]:
    seeded = random.Random(seed)
    return lambda: seeded.random() < 0.3


def test_panes_are_the_direct_query_for_rows_on_time() -> None:
    num_windows = 0
    for seed in range(2 * NUM_CASES):
        case = on_time(a_case(random.Random(seed)))
        assert panes(case) == direct(case), seed
        num_windows += len(panes(case))
    assert num_windows > NUM_CASES


def test_a_late_row_counts_in_windows_that_are_open() -> None:
    """Watermark 11, row at 2, window 20 every 5: the direct query takes it, panes do not."""
    late = Case(
        (WindowSpec(size_ms=20, slide_ms=5),), 0, (((11, "a"),), (), ((2, "a"),), ((40, "a"),), ())
    )
    ends = {end: n for (_, _, end, _), n in direct(late).items()}
    assert {end: ends[end] for end in (15, 20)} == {15: 2, 20: 2}
    assert {end: n for (_, _, end, _), n in panes(late).items()}[20] == 1
    found = Result()
    through_log(late, "exact", MemoryFiles(), "", found)
    assert found == direct(late)


def test_early_is_one_batch_sooner() -> None:
    case = Case((WindowSpec(size_ms=10, slide_ms=10),), 0, (((1, "a"),), ((12, "a"),), ()))
    assert direct(case, "early") == {(1, 10, 10, "a"): 1}
    assert direct(case, "exact") == {(2, 10, 10, "a"): 1}


class Dying:
    """Ends the process at once before a write, after some that it allows."""

    def __init__(self, allowed: float) -> None:
        self.left = allowed
        self.num_written = 0

    def __call__(self) -> None:
        if self.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        self.num_written += 1


class SinkFiles(Result):
    """A sink outside of the process: a file for each result, written over."""

    def __init__(self, folder: Path, before_write: Callable[[], None]) -> None:
        self.folder, self.before_write = folder, before_write

    def __setitem__(self, key: tuple[int, int, int, str], value: int) -> None:
        self.before_write()
        name = "-".join(map(str, key))
        (self.folder / name).write_text(json.dumps([key, value]))


def read_results(folder: Path) -> Result:
    found = (json.loads(each.read_text()) for each in folder.iterdir())
    return {(batch, size, end, key): number for (batch, size, end, key), number in found}


def ran(case: Case, emit: Emit, folder: Path, allowed: float) -> int:
    """Writes of the log and its sink up to the end, or to the death of the process."""
    sink = folder / "results"
    sink.mkdir(parents=True, exist_ok=True)
    dying = Dying(allowed)
    store = str(folder / "store")
    through_log(case, emit, PlainFiles(dying), store, SinkFiles(sink, dying))
    return dying.num_written


def is_killed(case: Case, emit: Emit, folder: Path, allowed: int) -> bool:
    """Whether a process of its own was killed before it ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ran(case, emit, folder, allowed)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL
    return status != 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_kill_9_before_any_write_changes_nothing(tmp_path: Path) -> None:
    # Before every single write where it is asked for, before every fifth of one case else.
    num_cases, step = (NUM_KILLED_CASES, 1) if NUM_KILLED_CASES else (1, 5)
    num_killed = 0
    for seed in range(num_cases):
        case = a_case(random.Random(1000 + seed))
        emit = EMITS[seed % len(EMITS)]
        for allowed in range(0, ran(case, emit, tmp_path / f"{seed}", math.inf), step):
            folder = tmp_path / f"{seed}-{allowed}"
            assert is_killed(case, emit, folder, allowed)
            ran(case, emit, folder, math.inf)
            assert read_results(folder / "results") == direct(case, emit), (seed, allowed)
            num_killed += 1
    assert num_killed > 20 * num_cases


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_kill_9_again_and_again_changes_nothing(tmp_path: Path) -> None:
    # How often it may get as far before it gets further.
    times = 7 if NUM_KILLED_CASES else 2
    total_killed = 0
    for seed in range(len(EMITS)):
        case = a_case(random.Random(1000 + seed))
        emit = EMITS[seed]
        folder = tmp_path / str(seed)
        num_killed = 0
        # More writes are allowed each time round, or the longest batch would never end.
        while is_killed(case, emit, folder, num_killed % times + num_killed // times):
            num_killed += 1
        assert read_results(folder / "results") == direct(case, emit), seed
        total_killed += num_killed
    assert total_killed > 10


def run(log: WindowLog, files: MemoryFiles, first: int, batches: Mapping[int, int]) -> Result:
    """One row a batch, at its time; the watermark has no delay."""
    results = Result()
    for batch, at in batches.items():
        store = CountingStore(files, "", 5, first + batch, [(at, "a")], results)
        before = [batches[b] for b in batches if b < batch]
        log.run_batch(first + batch, cast("SparkStore", store), watermark_ms=max(before, default=0))
    return results


def test_windows_added_later_are_given_from_then_on() -> None:
    files = MemoryFiles()
    ten, twenty = WindowSpec(size_ms=10, slide_ms=5), WindowSpec(size_ms=20, slide_ms=20)
    case = Case((ten,), 0, ())
    log = WindowLog(files, "", case.window_set, contents=COUNTS, delay_ms=0, emit="early")
    log.add("tens", [ten])
    run(log, files, 0, {batch: 3 * batch for batch in range(10)})
    closed = log.state.closed_ms
    log.add("twenties", [twenty])
    later = run(log, files, 10, {batch: 30 + 3 * batch for batch in range(20)})
    starts = [end - size for (_, size, end, _) in later if size == 20]
    assert starts and min(starts) >= closed
    # Every row of those windows is there: one each 3 ms.
    for (_, size, end, _), number in later.items():
        if size == 20:
            assert number == len([at for at in range(0, 90, 3) if end - 20 <= at < end])
    with pytest.raises(InputError, match="panes of 5 ms"):
        log.add("odd", [WindowSpec(size_ms=12, slide_ms=12)])
    with pytest.raises(InputError, match="of that size with another slide"):
        log.add("other", [WindowSpec(size_ms=20, slide_ms=5)])


def test_windows_that_a_reader_had_go_on_beside_new_ones() -> None:
    """At a restart with a second size, the open windows of the first are still given."""
    files = MemoryFiles()
    ten, thirty = WindowSpec(size_ms=10, slide_ms=10), WindowSpec(size_ms=30, slide_ms=10)
    given = Result()
    for first, specs in ((0, [thirty]), (4, [ten, thirty])):
        windows = Case(tuple(sorted(specs)), 0, ()).window_set
        log = WindowLog(files, "", windows, contents=COUNTS, delay_ms=0, emit="early")
        log.add("all", specs)
        for batch in range(first, first + 4):
            store = CountingStore(files, "", 10, batch, [(10 * batch + 5, "a")], given)
            log.run_batch(batch, cast("SparkStore", store), watermark_ms=max(10 * batch - 5, 0))
    ends = {size: [e for (_, s, e, _), n in given.items() if s == size] for size in (10, 30)}
    assert ends == {30: [10, 20, 30, 40, 50, 60, 70], 10: [50, 60, 70]}
    assert [n for (_, size, _, _), n in given.items() if size == 30][2:] == [3] * 5


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"time": "arrived"}, "the time column of the store: ts; this log has: arrived"),
        ({"key": (("k", "int"),)}, "the key of the store: k string; this log has: k int"),
        ({"key": ()}, "this log has: none"),
        ({"aggregates": (("n", "sum(v)"),)}, r"n = count\(\*\); this log has: n = sum\(v\)"),
        ({"columns": (("_headway_0", "int"),)}, "partial results of the store: none"),
    ],
)
def test_another_key_or_aggregate_is_refused_at_a_restart(change: dict[str, Any], why: str) -> None:
    files, windows = MemoryFiles(), Case((WindowSpec(size_ms=10, slide_ms=5),), 0, ()).window_set
    log = WindowLog(files, "", windows, contents=COUNTS, delay_ms=0, emit="exact")
    log.add("all", windows.windows)
    run(log, files, 0, {0: 1})
    WindowLog(files, "", windows, contents=COUNTS, delay_ms=9, emit="early")
    with pytest.raises(InputError, match=why):
        WindowLog(files, "", windows, contents=replace(COUNTS, **change), delay_ms=0, emit="exact")


def test_a_committed_batch_is_only_read_again() -> None:
    """Spark moves its watermark by the rows that it reads, of a repeated batch, too."""

    class Reading(CountingStore):
        num_reads = 0

        def read_again(self) -> None:
            Reading.num_reads += 1

    files, windows = MemoryFiles(), Case((WindowSpec(size_ms=10, slide_ms=5),), 0, ()).window_set
    log = WindowLog(files, "", windows, contents=COUNTS, delay_ms=0, emit="exact")
    log.add("all", windows.windows)
    for _ in range(2):
        store = cast("SparkStore", Reading(files, "", 5, 0, [(1, "a")], Result()))
        log.run_batch(0, store, watermark_ms=0)
    assert Reading.num_reads == 1


def test_what_no_window_needs_is_deleted() -> None:
    files = MemoryFiles()
    case = Case((WindowSpec(size_ms=60, slide_ms=5), WindowSpec(size_ms=20, slide_ms=20)), 0, ())
    log = WindowLog(files, "", case.window_set, contents=COUNTS, delay_ms=0, emit="exact")
    log.add("all", case.windows)
    run(log, files, 0, {batch: batch for batch in range(400)})
    assert len(files.names("/log")) <= 3
    # A pane is one part once it is closed: 60 ms of panes of 5 ms, and the open ones by batch.
    assert sum(len(parts) for parts in log.state.panes.values()) <= 12 + 2 * 5 + 2
    assert len(files.names("/panes")) <= len(log.state.folders)


def test_a_log_of_another_format_is_refused() -> None:
    state = LogState(pane_ms=5, contents=replace(COUNTS, columns=(("_headway_0", "bigint"),)))
    assert LogState.from_json(state.to_json()) == state
    with pytest.raises(HeadwayError, match="of format 'v9'"):
        LogState.from_json(json.dumps({"format": "v9"}))
    files = MemoryFiles()
    files.write_new("/log/000000000000.json", LogState(pane_ms=7, contents=COUNTS).to_json())
    with pytest.raises(InputError, match="panes of 7 ms"):
        WindowLog(files, "", Case((WindowSpec(size_ms=10, slide_ms=5),), 0, ()).window_set,
                  contents=COUNTS, delay_ms=0, emit="exact")  # fmt: skip
