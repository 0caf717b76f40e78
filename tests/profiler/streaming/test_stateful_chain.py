"""Several stateful operators: read from the plan, predicted, simulated, and run on Spark."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import headway
from headway.api.schedule import scheduled_query
from headway.domain import (
    EventTimeWindow,
    FindingCode,
    JobProfile,
    StatefulOperator,
    Target,
)
from headway.errors import InputError
from headway.formats.profile_file import dump_profile, load_profile
from headway.models.job.setting import after_commit_s
from headway.profiler.plan_text import read_plan
from headway.report.profiles import profile_summary
from headway.spec.forms.quantities import Quantity
from headway.spec.kinds.schedule import ScheduledJob
from headway.words import all_words
from tests.interpreted import with_settings
from tests.models.job.test_window_law import at, windowed
from tests.oracles.stateful_chain import (
    Aggregation,
    Deduplication,
    Emission,
    Operator,
    SelfJoin,
    Sessions,
    emissions,
)
from tests.profiler.event_log import write_plain
from tests.profiler.streaming.test_summarize import PLAIN, log
from tests.profiler.test_plan_text import (
    session,
    session_text,
    tumbling,
    window_since_3_3_1,
)
from tests.runtime.sharing.stream_cases import into, stream, write_batch
from tests.seeds import first_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

STATE = "state info [ checkpoint = file:/c/state, runId = r, opId = 0, ver = 3, numPartitions = 2]"
TEN_S = window_since_3_3_1(10_000_000, 10_000_000)
FIVE_S = window_since_3_3_1(5_000_000, 5_000_000)
NEWEST_MS = 1_795_791_362_434


def aggregation(removed_by_ms: int = 0) -> str:
    return f"StateStoreSave [window#9], {STATE}, Append, 0, {removed_by_ms}, 2"


def join(removed_by_ms: str = "0", left_us: int = -6_001_000, before: str = "0, ") -> str:
    values = f"left value predicate: (a#1-T3000ms <= {left_us}), right value predicate: "
    return (
        f"StreamingSymmetricHashJoin [k#1], [k#2], Inner, condition = [ full = (a#1 <= b#2) ], "
        f"{STATE}, {before}{removed_by_ms}, state cleanup [ {values}"
        f"(b#2-T3000ms <= {left_us + 4_000_000}) ], 2, Append"
    )


def plan(*lines: str) -> str:
    """One operator below the other; a line that begins with ``:`` is the left side of a join."""
    tree = "\n".join(
        line.replace(":-", "   " * depth + ":-", 1)
        if line.startswith(":-")
        else "   " * depth + ("+- " if depth else "") + line
        for depth, line in enumerate(lines)
    )
    return f"== Physical Plan ==\n{tree}\n"


def chain_of(*lines: str) -> tuple[StatefulOperator, ...]:
    return read_plan(plan(*lines)).chain


def test_an_aggregation_behind_an_aggregation_reads_its_rows_at_the_same_watermark() -> None:
    first, second = chain_of(
        aggregation(NEWEST_MS),
        f"Project [{TEN_S} AS window#9, k#2L]",
        aggregation(NEWEST_MS),
        f"StateStoreRestore [window#9], {STATE}, 2",
        f"Project [{FIVE_S} AS window#8, k#2L]",
        "MicroBatchScan[k#2L]",
    )
    assert (first.windows, second.windows) == ((tumbling(5.0),), (tumbling(10.0),))
    assert (first.reads, second.reads) == ((), (0,))
    assert (first.watermark_behind_s, second.watermark_behind_s) == (0.0, 0.0)


def test_windows_of_the_first_aggregation_are_those_of_one_that_groups_by_them() -> None:
    lines = (aggregation(), "Project [window#9, n#2L]", aggregation(), f"Project [{TEN_S} AS w#1]")
    assert [part.windows for part in chain_of(*lines)] == [(tumbling(10.0),)] * 2
    # Of another window, only a part is used: its size is not in the text.
    start = FIVE_S.partition("named_struct(start, ")[2].partition(", end, ")[0]
    partly = (lines[0], f"Project [{start} AS start#7]", *lines[2:])
    assert [part.windows for part in chain_of(*partly)] == [(tumbling(10.0),), ()]


def test_sessions_are_an_operator_with_a_state_of_their_own() -> None:
    sessions, windows = chain_of(
        aggregation(NEWEST_MS),
        f"Project [{TEN_S} AS window#9, n#2L]",
        f"SessionWindowStateStoreSave [k#1], session_window#9, {STATE}, Append, 0, {NEWEST_MS}, 1",
        f"SessionWindowStateStoreRestore [k#1], session_window#9, {STATE}, 0, {NEWEST_MS}, 1",
        f"Project [{session_text('4 seconds')}, k#1]",
        "MicroBatchScan[k#1]",
    )
    assert sessions.name == "SessionWindowStateStoreSave"
    assert sessions.is_aggregation
    assert (sessions.windows, windows.windows) == ((session(4.0),), (tumbling(10.0),))
    assert (sessions.reads, windows.reads) == ((), (0,))
    assert (sessions.watermark_behind_s, windows.watermark_behind_s) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("line", "behind_s"),
    [
        (join(), 6.001),
        (join(f"{NEWEST_MS}", left_us=(NEWEST_MS - 6_001) * 1000), 6.001),
        (join("0", left_us=500_000), 0.0),  # its rows are after those that it joins
        (join(before=""), 0.0),  # before Spark 3.5
        (join("unknown"), None),
        (join().replace("value predicate", "key predicate"), 0.0),
        (join().partition("left value")[0] + "left = null, right = null ], 2, Append", 0.0),
    ],
)
def test_a_join_holds_the_watermark_back_by_its_range(line: str, behind_s: float | None) -> None:
    of_join, windowed_after = chain_of(
        aggregation(), f"Project [{TEN_S} AS window#9]", line, ":- MicroBatchScan[k#1]"
    )
    assert of_join.watermark_behind_s == 0.0
    assert windowed_after.watermark_behind_s == behind_s


def test_watermarks_that_the_plan_prints_count_before_the_rule() -> None:
    unread = join("unknown")
    (_, known) = chain_of(aggregation(NEWEST_MS), unread)
    assert known.watermark_behind_s == 0.0  # of the only operator whose watermark is printed
    first, _, last = chain_of(aggregation(NEWEST_MS - 2_500), unread, aggregation(NEWEST_MS))
    assert (first.watermark_behind_s, last.watermark_behind_s) == (0.0, 2.5)


def of_chain(*chain: StatefulOperator, **shape: Any) -> JobProfile:
    windows = tuple(dict.fromkeys(window for part in chain for window in part.windows))
    return windowed(chain=chain, windows=windows, **shape)


JOIN = StatefulOperator(name="StreamingSymmetricHashJoin")
TENS = StatefulOperator(
    name="StateStoreSave", reads=(0,), windows=(tumbling(10.0),), watermark_behind_s=6.001
)


def test_a_scheduled_query_waits_for_the_range_of_its_join(tmp_path: Path) -> None:
    job = ScheduledJob(
        name="joined",
        profile=tmp_path / "joined.profile.yaml",
        rate=Quantity.exactly(500.0),
        targets=(Target.parse("window p99 <= 30s"),),
    )
    alone = of_chain(replace(TENS, reads=(), watermark_behind_s=0.0))
    grids = [scheduled_query(job, profile).windows for profile in (alone, of_chain(JOIN, TENS))]
    delays_s = [grid.watermark_delay_s for grid in grids if grid is not None]
    assert delays_s == pytest.approx([delays_s[0], delays_s[0] + 6.001])


def test_the_latency_contains_the_range_of_the_join_and_says_so() -> None:
    behind = at(of_chain(JOIN, TENS), 10.0)
    alone = at(of_chain(replace(TENS, reads=(), watermark_behind_s=0.0)), 10.0)
    longer = at(of_chain(TENS, watermark_delay_s=16.001), 10.0)
    assert behind.window_latency is not None
    assert alone.window_latency is not None
    # 10 s of delay, 0.5 s of lag and 6.001 s before the next trigger: one interval later.
    assert behind.window_latency.mean_s == pytest.approx(alone.window_latency.mean_s, rel=1e-6)
    assert longer.window_latency is not None
    assert longer.window_latency.mean_s == pytest.approx(behind.window_latency.mean_s + 10.0)
    assert FindingCode.WATERMARK_BEHIND not in {found.code for found in alone.findings}
    (text,) = [text for text in all_words(behind.findings) if "holds their watermark back" in text]
    assert text.startswith("window latency contains 6.00 s in addition to the watermark delay")


def test_windows_are_those_of_the_last_aggregation() -> None:
    last = StatefulOperator(name="StateStoreSave", reads=(0,), windows=(tumbling(4.0),))
    minutes = StatefulOperator(name="StateStoreSave", windows=(tumbling(60.0),))
    sliding, alone = at(of_chain(minutes, last), 10.0), at(of_chain(last), 10.0)
    assert sliding.window_latency == alone.window_latency
    assert at(of_chain(minutes), 10.0).window_latency != alone.window_latency


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (replace(TENS, watermark_behind_s=None), "does not show by how much the join"),
        (replace(TENS, windows=()), "does not show the windows of the last aggregation"),
    ],
)
def test_what_is_not_recorded_is_said(last: StatefulOperator, said: str) -> None:
    first = StatefulOperator(name="StateStoreSave", windows=(tumbling(5.0),))
    found = at(of_chain(first, JOIN, last), 10.0)
    assert found.window_latency is None
    assert any(said in text for text in all_words(found.findings))
    with pytest.raises(InputError, match=said):
        headway.plan(of_chain(first, JOIN, last), rate="5k/s", target="window p95 <= 90s")


CHAINS: dict[str, tuple[tuple[Operator, ...], StatefulOperator]] = {
    "two aggregations": (
        (Aggregation(size_ms=5_000, slide_ms=5_000), Aggregation(size_ms=10_000, slide_ms=10_000)),
        replace(TENS, watermark_behind_s=0.0),
    ),
    "join": (
        (
            SelfJoin(before_ms=2_000, after_ms=6_000),
            Aggregation(size_ms=10_000, slide_ms=10_000),
        ),
        TENS,
    ),
    "sliding behind a deduplication": (
        (Deduplication(), Aggregation(size_ms=6_000, slide_ms=1_500)),
        StatefulOperator(
            name="StateStoreSave",
            windows=(EventTimeWindow(kind="sliding", size_s=6.0, slide_s=1.5),),
        ),
    ),
    "sessions": (
        (Sessions(gap_ms=4_000),),
        StatefulOperator(name="SessionWindowStateStoreSave", windows=(session(4.0),)),
    ),
    "sessions before windows": (
        (Sessions(gap_ms=4_000), Aggregation(size_ms=10_000, slide_ms=10_000)),
        replace(TENS, watermark_behind_s=0.0),
    ),
}


def test_sessions_of_a_key_merge_if_they_touch_and_close_a_gap_after_their_last_row() -> None:
    sessions = [Sessions(gap_ms=3_000)]
    batches = [[1_000, 4_000, 4_001, 20_000], [2_000, 2_001, 40_000], []]
    keys = [[1, 1, 2, 3], [2, 1, 3], []]
    found = emissions(sessions, batches, 16_000, keys)
    # The watermark of the second batch is 4 s: 2,000 and 2,001 are not late, and extend a session
    # and join another. The third has 24 s, and the session of 20 s, to 23 s, ends as well.
    assert found == [
        Emission(2, 7_000, 3),
        Emission(2, 7_001, 2),
        Emission(2, 23_000, 1),
    ]
    late = emissions(sessions, [[1_000], [9_000], [], [1_500, 30_000], []], 2_000)
    # The session of 1,500 would have ended before the watermark of 7 s.
    assert late == [Emission(2, 4_000, 1), Emission(4, 12_000, 1)]


@pytest.mark.parametrize("name", CHAINS)
def test_against_the_simulation_of_each_row(name: str) -> None:
    chain, last = CHAINS[name]
    # A delay that brings no end of a window to a trigger, to the gap between two rows.
    profile, trigger_s, delay_ms, lag_s = (
        of_chain(JOIN, last, watermark_delay_s=10.2),
        2.0,
        10_200,
        0.5,
    )
    found = at(profile, trigger_s)
    assert found.window_latency is not None
    assert found.batch_duration is not None
    begin_s, num_batches = 100_000.0, 900
    rows_s = np.arange(begin_s, begin_s + trigger_s * num_batches, 0.05) - lag_s
    number = np.ceil((rows_s + lag_s - begin_s) / trigger_s).astype(int)
    batches = [
        [round(1000 * at_s) for at_s in rows_s[number == batch]] for batch in range(num_batches)
    ]
    shown_s = found.batch_duration.mean_s - after_commit_s(profile)
    # Three rows in a row have one key, for sessions.
    indices = np.arange(len(rows_s)) // 3
    keys = [indices[number == batch].tolist() for batch in range(num_batches)]
    latency_s = np.array(
        [
            begin_s + emission.batch * trigger_s + shown_s - emission.end_ms / 1000
            for emission in emissions(chain, batches, delay_ms, keys)
        ]
    )
    assert len(latency_s) > 150
    assert found.window_latency.mean_s == pytest.approx(latency_s.mean(), rel=0.02)
    assert found.window_latency.p99_s == pytest.approx(np.quantile(latency_s, 0.99), rel=0.02)


def test_a_profile_of_a_log_has_the_chain_and_names_it(tmp_path: Path) -> None:
    text = plan(
        aggregation(NEWEST_MS - 6_001),
        f"Project [{TEN_S} AS window#9]",
        join(f"{NEWEST_MS}", left_us=(NEWEST_MS - 6_001) * 1000),
        ":- MicroBatchScan[k#1]",
    )
    event = {
        "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
        "executionId": 900,
        "description": f"orders\nid = {PLAIN.query_id}\nrunId = {PLAIN.run}\nbatch = 32",
        "physicalPlanDescription": text,
    }
    lines = [*log(PLAIN).lines, json.dumps(event)]
    profile = headway.profile(write_plain(lines, tmp_path / "log"))
    assert isinstance(profile, JobProfile)
    assert [part.watermark_behind_s for part in profile.shape.chain] == [0.0, 6.001]
    (tmp_path / "a.yaml").write_text(dump_profile(profile), encoding="utf-8")
    assert load_profile(tmp_path / "a.yaml").shape == profile.shape
    assert (
        "stateful operators, in order: stream-stream join, then aggregation (windows of 10.0 s, "
        "watermark 6.00 s behind)"
    ) in profile_summary(profile)


def test_states_are_listed_in_the_order_in_which_rows_pass_them(tmp_path: Path) -> None:
    query = replace(PLAIN, operators=("stateStoreSave", "symmetricHashJoin"))
    text = profile_summary(headway.profile(write_plain(log(query).lines, tmp_path / "log")))
    assert text.index("state of symmetricHashJoin") < text.index("state of stateStoreSave")


# On Spark: one file is one batch, so which batch emits a window does not depend on time.

DELAY_MS = 3_000


def by_windows(rows: DataFrame, time: str, seconds: int, number: str = "count(*)") -> DataFrame:
    from pyspark.sql.functions import expr

    return rows.groupBy(expr(f"window({time}, '{seconds} seconds')")).agg(expr(f"{number} AS n"))


def two_aggregations(rows: DataFrame) -> DataFrame:
    return by_windows(by_windows(rows, "ts", 5), "window_time(window)", 10, "sum(n)")


def a_join(rows: DataFrame) -> DataFrame:
    from pyspark.sql.functions import expr

    left, right = rows.selectExpr("ts", "k"), rows.selectExpr("ts AS ts2", "k AS k2")
    close = "k = k2 AND ts2 >= ts - INTERVAL 2 SECONDS AND ts2 <= ts + INTERVAL 6 SECONDS"
    return by_windows(left.join(right, expr(close)), "ts", 10)


def a_deduplication(rows: DataFrame) -> DataFrame:
    return by_windows(rows.dropDuplicates(["k", "ts"]), "ts", 10)


TENS_OF_S = Aggregation(size_ms=10_000, slide_ms=10_000)
ON_SPARK: dict[Callable[[DataFrame], DataFrame], tuple[Operator, ...]] = {
    two_aggregations: (Aggregation(size_ms=5_000, slide_ms=5_000), TENS_OF_S),
    a_join: (SelfJoin(before_ms=2_000, after_ms=6_000), TENS_OF_S),
    a_deduplication: (Deduplication(), TENS_OF_S),
}


@pytest.mark.parametrize("query", first_of(ON_SPARK, 2), ids=lambda query: query.__name__)
def test_spark_emits_each_window_in_the_batch_of_the_simulation(
    query: Any, spark: SparkSession, tmp_path: Path
) -> None:
    seeded = random.Random(query.__name__)
    begin_ms, batches = 1_790_000_000_000, list[list[int]]()
    for number in range(12):
        at_ms = begin_ms + 3_100 * number
        batches.append([at_ms + seeded.randrange(-2_500, 3_100) for _ in range(8)])
        rows = tuple((event_ms, f"{number}-{place}") for place, event_ms in enumerate(batches[-1]))
        write_batch(tmp_path / "rows", number, rows)
    found = list[tuple[int, int, int]]()
    rows_read = stream(spark, tmp_path / "rows").withWatermark("ts", f"{DELAY_MS} milliseconds")
    with with_settings(spark, {"spark.sql.shuffle.partitions": "1"}):
        running = (
            query(rows_read)
            .selectExpr("window", "'' AS k", "n")
            .writeStream.foreachBatch(
                into(lambda batch, size, end, key, number: found.append((batch, end, number)))
            )
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert running.awaitTermination(300)
    # The last batch has no data, and is there to emit what the one before it has closed.
    assert found == [
        tuple(emission) for emission in emissions(ON_SPARK[query], [*batches, []], DELAY_MS)
    ]
    assert len(found) >= 2
    chain = read_plan(running._jsq.explainInternal(False)).chain
    assert [part.watermark_behind_s for part in chain] == [0.0, 6.001 if query is a_join else 0.0]
    assert chain[-1].windows == (tumbling(10.0),)


def test_a_join_shows_how_long_it_keeps_rows_if_it_cleans_up_both_sides() -> None:
    (ranged,) = chain_of(join(), ":- EventTimeWatermark a#1", "+- EventTimeWatermark b#2")
    # Before the first watermark: rows of the left side are kept for 6.001 s, of the right for less.
    assert ranged.holds_back_s == pytest.approx(6.001)
    one_sided = join().replace("right value predicate: (b#2-T3000ms <= -2001000)", "right = null")
    (kept,) = chain_of(one_sided, ":- EventTimeWatermark a#1", "+- EventTimeWatermark b#2")
    assert kept.holds_back_s is None
    (counting,) = chain_of(aggregation(NEWEST_MS), "MicroBatchScan[k#2L]")
    assert counting.holds_back_s is None
