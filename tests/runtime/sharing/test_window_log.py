"""A log of a real stream gives what Spark's direct query gives, late rows and restarts too."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.domain.window_set import WindowSpec
from headway.errors import HeadwayError, InputError
from tests.runtime.sharing.log_cases import Case, Result, Row, direct, on_time, panes
from tests.runtime.sharing.stream_cases import (
    SCHEMA,
    by_spark,
    into,
    kept_in,
    run_log,
    stream,
    with_rows,
    write_batch,
)
from tests.runtime.sharing.test_log_state import EMITS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Five batches, two windows, a delay, and rows that are late for one of them: as in most other cases
# of twice as many batches.
FIRST_RUN = int(os.environ.get("HEADWAY_WINDOW_FIRST_RUN", "507"))
NUM_RUNS = int(os.environ.get("HEADWAY_WINDOW_RUNS", "1"))


def write_batches(folder: Path, case: Case, first: int = 0) -> None:
    for number, rows in enumerate(case.batches[first:], first):
        write_batch(folder, number, rows)


@pytest.mark.parametrize("seed", range(FIRST_RUN, FIRST_RUN + NUM_RUNS))
def test_a_real_run_is_the_direct_query(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    case = with_rows(random.Random(seed))
    emit = EMITS[seed % len(EMITS)]
    half = len(case.batches) // 2
    write_batches(tmp_path / "in", Case(case.windows, case.delay_ms, case.batches[:half]))
    found = Result()
    run_log(stream(spark, tmp_path / "in"), case, emit, tmp_path, kept_in(found))
    # Begun again on what the log and the checkpoint kept.
    write_batches(tmp_path / "in", case, half)
    run_log(stream(spark, tmp_path / "in"), case, emit, tmp_path, kept_in(found))
    assert found == direct(case, emit)
    # With no-data batches, Spark numbers batches anew: "early" is compared by the rules alone.
    if emit != "early":
        mode = "update" if emit == "update" else "append"
        every = stream(spark, tmp_path / "in")
        assert by_spark(every, case, "direct", mode, tmp_path / "direct") == found
        if emit == "exact":
            assert by_spark(every, case, "panes", mode, tmp_path / "panes") == panes(case)
            timely = on_time(case)
            write_batches(tmp_path / "timely", timely)
            rows = stream(spark, tmp_path / "timely")
            assert by_spark(rows, timely, "panes", mode, tmp_path / "on-time") == direct(timely)


def test_panes_of_the_store_hold_whatever_is_asked_of_it_later(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Windows of 10 ms on a store with panes of 5: one of 15 that is added still finds its own."""

    def asked(texts: list[str]) -> Any:
        return headway.window_log(
            stream(spark, tmp_path / "in"), time="ts", key=["k"], windows=texts,
            aggregates={"n": "count(*)"}, store=str(tmp_path / "store"), delay="0s", emit="early",
        )  # fmt: skip

    def run(log: Any, found: Result) -> None:
        query = log.start(
            sink=into(kept_in(found)),
            checkpoint=str(tmp_path / "checkpoint"),
            trigger={"availableNow": True},
        )
        assert query.awaitTermination(300)

    rows: list[tuple[Row, ...]] = [((20 * at + part, "a"),) for at in range(5) for part in (1, 8)]
    for number, batch in enumerate(rows[:2]):
        write_batch(tmp_path / "in", number, batch)
    run(asked(["10ms", "15ms"]), Result())
    for number, batch in enumerate(rows[2:], 2):
        write_batch(tmp_path / "in", number, batch)
    log, fifteens = asked(["10ms"]), Result()
    log.add(windows=["15ms"], sink=into(kept_in(fifteens)))
    run(log, Result())
    expected = direct(Case((WindowSpec(size_ms=15, slide_ms=15),), 0, tuple(rows)), "early")
    given = {(size, end): n for (_, size, end, _), n in fifteens.items()}
    assert given == {(size, end): n for (_, size, end, _), n in expected.items() if end > 15}
    assert len(given) > 2


def test_a_union_of_two_watermarks_loses_no_row(spark: SparkSession, tmp_path: Path) -> None:
    """By default, Spark's watermark is the minimum of both; the slow one's rows are not late."""
    step = 60_000
    for number in range(5):
        end = 10**7 + number if number > 3 else 0
        write_batch(tmp_path / "fast", number, ((end or step * number, "fast"),))
        write_batch(tmp_path / "slow", number, ((end or 1000 * number, "slow"),))
    write_batch(tmp_path / "fast", 5, ())
    write_batch(tmp_path / "slow", 5, ())

    def both() -> Any:
        fast, slow = (
            stream(spark, tmp_path / name).withWatermark("ts", delay)
            for name, delay in (("fast", "1 second"), ("slow", "2 seconds"))
        )
        return fast.union(slow)

    asked: dict[str, Any] = {
        "time": "ts", "key": ["k"], "windows": ["2s"], "aggregates": {"n": "count(*)"},
    }  # fmt: skip
    store = str(tmp_path / "store")
    with pytest.raises(InputError, match="the stream has 2 watermarks"):
        headway.window_log(both(), store=store, emit="early", **asked)
    with pytest.raises(InputError, match="already has a watermark 1000 ms behind ts"):
        headway.window_log(both(), store=store, delay="9s", **asked)
    found = Result()
    query = headway.window_log(both(), store=store, **asked).start(
        sink=into(kept_in(found)),
        checkpoint=str(tmp_path / "checkpoint"),
        trigger={"availableNow": True},
    )
    assert query.awaitTermination(300)
    case = Case((WindowSpec(size_ms=2000, slide_ms=2000),), 0, ())
    expected = by_spark(both(), case, "direct", "append", tmp_path / "direct", is_marked=True)
    assert found == expected
    assert sum(n for (*_, key), n in found.items() if key == "slow") == 4


def test_a_store_of_another_checkpoint_and_other_questions_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {
        "time": "ts",
        "key": ["k"],
        "windows": ["10s"],
        "aggregates": {"n": "count(*)"},
        "store": str(tmp_path / "store"),
    }
    (tmp_path / "in").mkdir()
    df = stream(spark, tmp_path / "in")
    with pytest.raises(InputError, match="delay: none given"):
        headway.window_log(df, **asked)
    with pytest.raises(InputError, match="expected one of exact, early, update"):
        headway.window_log(df, **asked, emit="soon", delay="1s")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="needs a stream"):
        headway.window_log(spark.createDataFrame([], SCHEMA), **asked, delay="1s")
    log = headway.window_log(df.withWatermark("ts", "3 seconds"), **asked)
    with pytest.raises(InputError, match="panes of 10000 ms"):
        log.add(windows=["15s"], sink=print)
    (tmp_path / "store" / "log").mkdir(parents=True)
    state = log._log.state
    text = state.to_json().replace('"batch": -1', '"batch": 3')
    (tmp_path / "store" / "log" / "000000000003.json").write_text(text)
    filled = headway.window_log(df, **asked, delay="1s")
    with pytest.raises(HeadwayError, match="filled up to batch 3 with another checkpoint"):
        filled.start(sink=print, checkpoint=str(tmp_path / "new"))
    with pytest.raises(InputError, match=r"aggregates of the store: n = count\(\*\)"):
        headway.window_log(df, **{**asked, "aggregates": {"n": "count(k)"}}, delay="1s")
    shutil.rmtree(tmp_path / "store")
