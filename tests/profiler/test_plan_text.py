"""Plans as Spark prints them: texts of our own queries, shortened, and live ones.

The arithmetic that stands for a window is long and repeats itself, so the functions ``start_*``
put it together as each version prints it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain import EventTimeWindow, StatefulOperator
from headway.profiler.plan_text import PlanShape, read_plan
from headway.runtime.ordered.bucket import BUCKET, ROWS
from tests.interpreted import COMPILED, with_settings
from tests.seeds import examples
from tests.shared_data import KAFKA_LOG, RECORDED, lines_of_recorded, needs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MEBI = 1 << 20


def tumbling(size_s: float) -> EventTimeWindow:
    return EventTimeWindow(kind="tumbling", size_s=size_s, slide_s=size_s)


def sliding(size_s: float, slide_s: float) -> EventTimeWindow:
    return EventTimeWindow(kind="sliding", size_s=size_s, slide_s=slide_s)


def session(gap_s: float) -> EventTimeWindow:
    return EventTimeWindow(kind="session", size_s=gap_s)


# Windows, version by version

ROW_US = "precisetimestampconversion(ts#3-T600000ms, TimestampType, LongType)"


def as_time(micros: str) -> str:
    return f"precisetimestampconversion({micros}, LongType, TimestampType)"


def window_since_3_3_1(size_us: int, slide_us: int, offset_us: int = 0, back_us: int = 0) -> str:
    rest = f"(({ROW_US} - {offset_us}) % {slide_us})"
    start = (
        f"(({ROW_US} - CASE WHEN ({rest} < 0) THEN ({rest} + {slide_us}) ELSE {rest} END)"
        f" - {back_us})"
    )
    end = f"({start} + {size_us})"
    return (
        f"named_struct(start, knownnullable({as_time(start)}), end, knownnullable({as_time(end)}))"
    )


def window_3_3_0(size_us: int, slide_us: int, offset_us: int = 0, back_us: int = 0) -> str:
    rest = f"((({ROW_US} - {offset_us}) + {slide_us}) % {slide_us})"
    start = f"(({ROW_US} - {rest}) - {back_us})"
    return f"named_struct(start, {as_time(start)}, end, {as_time(f'({start} + {size_us})')})"


def window_to_3_2(size_us: int, slide_us: int, offset_us: int = 0, back_us: int = 0) -> str:
    quotient = f"(cast(({ROW_US} - {offset_us}) as double) / {float(slide_us):.1E})"
    ceiling = f"CEIL({quotient})"
    number = (
        f"CASE WHEN (cast({ceiling} as double) = {quotient}) THEN ({ceiling} + 1) "
        f"ELSE {ceiling} END"
    )
    base = f"((({number} + {back_us // slide_us}) - 4) * {slide_us})"
    start, end = f"({base} + {offset_us})", f"({base} + {offset_us + size_us})"
    return f"named_struct(start, {as_time(start)}, end, {as_time(end)})"


WINDOWS = [window_since_3_3_1, window_3_3_0, window_to_3_2]
WindowText = Callable[..., str]


def simple_plan(operator: str) -> str:
    return f"== Physical Plan ==\n{operator}\n+- LocalTableScan <empty>, [ts#3]\n"


@pytest.mark.parametrize("text", WINDOWS)
@pytest.mark.parametrize(
    ("size_us", "slide_us", "offset_us", "expected"),
    [
        (10_000_000, 10_000_000, 0, tumbling(10.0)),
        (600_000_000, 600_000_000, 180_000_000, tumbling(600.0)),
        (600_000_000, 600_000_000, -180_000_000, tumbling(600.0)),
        (604_800_000_000, 604_800_000_000, 0, tumbling(604800.0)),
        (1_500_000, 1_500_000, 0, tumbling(1.5)),
        (1, 1, 0, tumbling(1e-6)),
        (600_000_000, 300_000_000, 0, sliding(600.0, 300.0)),
        (10_000_000, 3_000_000, 1_000_000, sliding(10.0, 3.0)),
        (10_000_000, 4_000_000, -1_000_000, sliding(10.0, 4.0)),
    ],
)
def test_a_window_is_read_to_the_microsecond(
    text: WindowText, size_us: int, slide_us: int, offset_us: int, expected: EventTimeWindow
) -> None:
    first = text(size_us, slide_us, offset_us)
    assert read_plan(simple_plan(f"*(1) Project [{first} AS w#9, k#2L]")).windows == (expected,)
    second = text(size_us, slide_us, offset_us, back_us=slide_us)
    expand = f"*(1) Expand [[{first}, k#2L], [{second}, k#2L]], [w#9, k#2L]"
    assert read_plan(simple_plan(expand)).windows == (expected,)
    lists = f"*(1) Expand [List({first}, k#2L), List({second}, k#2L)], [w#9, k#2L]"
    assert read_plan(simple_plan(lists)).windows == (expected,)


@pytest.mark.parametrize("text", WINDOWS)
def test_a_window_that_is_not_all_there_is_left_out(text: WindowText) -> None:
    whole = text(600_000_000, 300_000_000)
    for length in range(len(whole) - 1):
        cut = f"*(1) Project [{whole[:length]}... 3 more fields]"
        assert read_plan(simple_plan(cut)).windows == ()


def test_a_window_that_does_not_fit_together_is_left_out() -> None:
    whole = window_since_3_3_1(600_000_000, 300_000_000)
    for other in (
        whole.replace("600000000", "200000000"),  # slides farther than it is long
        whole.replace("+ 600000000)", "+ 0)"),
        whole.replace("+ 600000000)", "+ x#1)"),
        whole.replace("% 300000000", "% 0"),
        whole.replace("% 300000000) END", "% s#1) END"),
        whole.replace("end, ", "stop, "),
        whole.replace("precisetimestampconversion", "cast"),
    ):
        assert other != whole
        assert read_plan(simple_plan(f"*(1) Project [{other}]")).windows == ()


def test_a_struct_of_the_query_itself_is_no_window() -> None:
    for struct in (
        "named_struct(start, ts#3, end, ts#3 + 5 minutes)",
        "named_struct(start, (a#1 % 10), end, ((a#1 % 10) + 10))",
        "named_struct(start, 1, end, 2, more, 3)",
    ):
        assert read_plan(simple_plan(f"Project [{struct} AS w#1]")).windows == ()


def session_text(gap: str) -> str:
    times = [
        as_time(f"precisetimestampconversion({time}, TimestampType, LongType)")
        for time in ("ts#3-T600000ms", f"ts#3-T600000ms + {gap}")
    ]
    return f"named_struct(start, {times[0]}, end, knownnullable({times[1]})) AS session_window#9"


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        ("5 minutes", (session(300.0),)),
        ("1 hours 10 minutes", (session(4200.0),)),
        ("1 days 2 hours 3 minutes 4.5 seconds", (session(93784.5),)),
        ("CASE WHEN (k#1L = 1) THEN 5 seconds ELSE 10 seconds END", ()),
        ("1 months", ()),
        ("gap#7", ()),
        ("0 seconds", ()),
        ("-5 seconds", ()),
        ("5 minutes " * 100, ()),
    ],
)
def test_the_gap_of_a_session(gap: str, expected: tuple[EventTimeWindow, ...]) -> None:
    assert read_plan(simple_plan(f"Project [{session_text(gap)}]")).windows == expected


# Whole plans

TREE_4_3 = f"""== Physical Plan ==
WriteToDataSourceV2 (10)
+- * HashAggregate (9)
   +- StateStoreSave (8)
      +- * HashAggregate (7)
         +- StateStoreRestore (6)
            +- Exchange (5)
               +- * HashAggregate (4)
                  +- * Project (3)
                     +- EventTimeWatermark (2)
                        +- MicroBatchScan (1)


(1) MicroBatchScan
Output [2]: [timestamp#0, value#1L]
class org.apache.spark.sql.execution.streaming.sources.RateStreamTable$$anon$1

(2) EventTimeWatermark
Input [2]: [ts#3, k#2L]
Arguments: f2a6b32d-31a3-4fd1-83a1-0354bd2845f0, ts#3: timestamp, 1 hours 30 minutes

(3) Project [codegen id : 2]
Output [2]: [{window_since_3_3_1(10_000_000, 10_000_000)} AS window#9-T600000ms, k#2L]
Input [2]: [ts#3-T600000ms, k#2L]

(4) HashAggregate [codegen id : 2]
Keys [2]: [window#9-T600000ms, k#2L]

(5) Exchange
Input [3]: [window#9-T600000ms, k#2L, count#14L]
Arguments: hashpartitioning(window#9-T600000ms, k#2L, 3), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=7]

(6) StateStoreRestore
Arguments: [window#9-T600000ms, k#2L], state info [ checkpoint = file:/c/state, \
runId = 8bbe1d23-c059-43aa-9332-1e646f9aa7c5, opId = 0, ver = 0, numPartitions = 3] \
stateStoreCkptIds = None, 2

(7) HashAggregate [codegen id : 4]
Keys [2]: [window#9-T600000ms, k#2L]

(8) StateStoreSave
Arguments: [window#9-T600000ms, k#2L], state info [ checkpoint = file:/c/state, \
runId = 8bbe1d23-c059-43aa-9332-1e646f9aa7c5, opId = 0, ver = 0, numPartitions = 3] \
stateStoreCkptIds = None, Update, 0, 0, 2

(9) HashAggregate [codegen id : 5]
Keys [2]: [window#9-T600000ms, k#2L]

(10) WriteToDataSourceV2
Input [3]: [window#9-T600000ms, k#2L, count#4L]
Arguments: MicroBatchWrite[epoch: 0, writer: NoopStreamingWrite]


"""

EXTENDED_3_3 = f"""== Parsed Logical Plan ==
WriteToMicroBatchDataSource org.apache.spark.sql.execution.datasources.noop.NoopTable$@edddaa4, \
5ee176dc-43f7-44b4-aaac-2ddf52a4e74b, [queryName=x, checkpointLocation=/ck/x], Complete, 1
+- Join LeftOuter, (value#435L = value#448L)
   :- StreamingDataSourceV2Relation [timestamp#434, value#435L]
   +- Range (0, 100, step=1, splits=Some(2))

== Optimized Logical Plan ==
WriteToDataSourceV2 org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite@2ad43694

== Physical Plan ==
WriteToDataSourceV2 org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite@2ad43694
+- *(3) HashAggregate(keys=[w#18], functions=[count(1)])
   +- StateStoreSave [w#18], state info [ checkpoint = <unknown>, runId = 4e84e006, opId = 0, \
ver = 2, numPartitions = 5], Append, 0, 2
      +- Exchange hashpartitioning(w#18, 5), ENSURE_REQUIREMENTS, [id=#657]
         +- *(2) Project [{window_3_3_0(20_000_000, 5_000_000)} AS w#18, Inner#4]
            +- *(2) BroadcastHashJoin [Inner#4], [value#448L], LeftOuter, BuildRight, false
               :- *(2) Project [timestamp#434 AS ts#442, value#435L]
               :  +- BatchEvalPython [<lambda>(value#435L)#1], [pythonUDF0#2]
               :     +- EventTimeWatermark ts#442: timestamp, interval 10 minutes
               :        +- MicroBatchScan[timestamp#434, value#435L] class RateStreamTable$$anon$1
               +- BroadcastExchange HashedRelationBroadcastMode(List(input[0, bigint, false]))
                  +- *(1) Project [id#446L AS value#448L]
                     +- *(1) Range (0, 100, step=1, splits=2)
"""


def test_a_formatted_plan() -> None:
    assert read_plan(TREE_4_3) == PlanShape(
        operators=(
            "WriteToDataSourceV2",
            "HashAggregate",
            "StateStoreSave",
            "HashAggregate",
            "StateStoreRestore",
            "Exchange",
            "HashAggregate",
            "Project",
            "EventTimeWatermark",
            "MicroBatchScan",
        ),
        output_mode="update",
        windows=(tumbling(10.0),),
        chain=(StatefulOperator(name="StateStoreSave", windows=(tumbling(10.0),)),),
        watermark_delay_s=5400.0,
        state_partitions=3,
    )


def test_an_extended_plan_of_one_line_operators() -> None:
    shape = read_plan(EXTENDED_3_3)
    assert shape.operators[:3] == ("WriteToDataSourceV2", "HashAggregate", "StateStoreSave")
    assert len(shape.operators) == 13
    assert shape.output_mode == "complete"  # the sink's; that of StateStoreSave is a placeholder
    assert shape.windows == (sliding(20.0, 5.0),)
    assert shape.watermark_delay_s == 600.0
    assert shape.joins == ("BroadcastHashJoin LeftOuter",)
    assert shape.python_operators == ("BatchEvalPython",)
    assert shape.state_partitions == 5


def test_the_output_mode_of_a_plan_without_its_checkpoint_is_no_mode() -> None:
    placeholder = TREE_4_3.replace("file:/c/state", "<unknown>").replace("Update", "Append")
    assert read_plan(placeholder).output_mode is None
    assert read_plan(placeholder).state_partitions == 3


def test_columns_and_paths_do_not_pass_for_output_modes() -> None:
    named = TREE_4_3.replace("k#2L]", "k#2L, Append, Complete]").replace(
        "file:/c", "file:/a, Append"
    )
    assert read_plan(named).output_mode == "update"


def test_an_array_of_state_ids_does_not_hide_the_mode() -> None:
    ids = TREE_4_3.replace("stateStoreCkptIds = None", "stateStoreCkptIds = Some([[Ljava.Str;@1f)")
    assert read_plan(ids).output_mode == "update"


def test_state_without_keys_has_one_partition() -> None:
    keyless = TREE_4_3.replace("Arguments: [window#9-T600000ms, k#2L], state", "Arguments: state")
    assert "Arguments: state info [" in keyless
    assert read_plan(keyless).state_partitions == 1


def test_state_partitions_from_the_shuffle_if_the_state_is_not_shown() -> None:
    assert read_plan(TREE_4_3.replace("numPartitions = 3]", "")).state_partitions == 3


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("BroadcastHashJoin LeftOuter BuildRight (6)", "BroadcastHashJoin LeftOuter"),
        ("SortMergeJoin(skew=true) [a#1], [b#2], Inner", "SortMergeJoin Inner"),
        ("*(5) SortMergeJoin [Inner#1L], [b#2], FullOuter", "SortMergeJoin FullOuter"),
        ("BroadcastNestedLoopJoin BuildRight, Cross", "BroadcastNestedLoopJoin Cross"),
        ("ShuffledHashJoin [a#1], [b#2], LeftAnti, BuildRight", "ShuffledHashJoin LeftAnti"),
        ("SortMergeJoin [a#1], [b#2], ExistenceJoin(exists#4)", "SortMergeJoin ExistenceJoin"),
        (
            "StreamingSymmetricHashJoin [a#1], [b#2], LeftOuter, condition = [ both = null ]",
            "StreamingSymmetricHashJoin LeftOuter",
        ),
        ("CartesianProduct (a#1 < b#2)", "CartesianProduct"),
    ],
)
def test_the_kind_of_a_join(line: str, expected: str) -> None:
    assert read_plan(simple_plan(line)).joins == (expected,)


def test_the_kind_of_a_join_in_its_section() -> None:
    text = simple_plan("* SortMergeJoin (2)") + "\n\n(2) SortMergeJoin\nJoin type: RightOuter\n"
    assert read_plan(text).joins == ("SortMergeJoin RightOuter",)


@pytest.mark.parametrize(
    ("delay", "expected_s"),
    [
        ("0 seconds", 0.0),
        ("interval 10 minutes", 600.0),
        ("1.5 seconds", 1.5),
        ("2 days", 172800.0),
        ("1 weeks 1 milliseconds", 604800.001),
        ("1 months 2 days", 33 * 86400.0),  # Spark's own count: -T2851200000ms
        ("ten minutes", None),
        ("", None),
    ],
)
def test_the_delay_of_a_watermark(delay: str, expected_s: float | None) -> None:
    shape = read_plan(simple_plan(f"EventTimeWatermark ts#3: timestamp, {delay}"))
    assert shape.watermark_delay_s == expected_s


def test_the_largest_of_several_delays() -> None:
    text = """== Physical Plan ==
Union
:- EventTimeWatermark ts#1: timestamp, 40 seconds
:  +- LocalTableScan <empty>, [ts#1]
+- EventTimeWatermark ts#2: timestamp, 10 seconds
   +- LocalTableScan <empty>, [ts#2]
"""
    assert read_plan(text).watermark_delay_s == 40.0


def test_the_final_plan_hides_the_initial_one() -> None:
    text = """== Physical Plan ==
Union
:- AdaptiveSparkPlan isFinalPlan=true
:  +- == Final Plan ==
:     *(2) HashAggregate(keys=[k#1L], functions=[count(1)])
:     +- AQEShuffleRead coalesced
:        +- ShuffleQueryStage 0
:           +- Exchange hashpartitioning(k#1L, 200), ENSURE_REQUIREMENTS, [plan_id=6]
:              +- *(1) Range (0, 100, step=1, splits=2)
:  +- == Initial Plan ==
:     HashAggregate(keys=[k#1L], functions=[count(1)])
:     +- Exchange hashpartitioning(k#1L, 200), ENSURE_REQUIREMENTS, [plan_id=3]
:        +- Range (0, 100, step=1, splits=2)
+- ReusedExchange [k#1L], Exchange hashpartitioning(k#1L, 200)
"""
    shape = read_plan(text)
    assert shape.operators == (
        "Union",
        "AdaptiveSparkPlan",
        "HashAggregate",
        "AQEShuffleRead",
        "ShuffleQueryStage",
        "Exchange",
        "Range",
        "ReusedExchange",
    )


def test_a_line_break_in_a_literal_makes_no_operator() -> None:
    text = "== Physical Plan ==\nFilter (a#1 = x\ny Exchange)\n+- LocalTableScan [a#1]\n"
    assert read_plan(text).operators == ("Filter", "LocalTableScan")


# Any text

FRAGMENTS = [
    TREE_4_3,
    EXTENDED_3_3,
    "== Physical Plan ==\n",
    "== Initial Plan ==\n",
    "\n+- ",
    "\n   :- *(3) ",
    "Exchange (5)",
    "(5) Exchange\nArguments: ",
    "named_struct(start, ",
    ", end, ",
    "precisetimestampconversion(",
    ", LongType, TimestampType)",
    "EventTimeWatermark a, ",
    "9" * 30 + " days",
    "numPartitions = 7]",
    "... 25 more fields]",
    "((([[[",
    ")))]]]",
    "\u202e\u2028\x00\ud800",
]


@examples(50, 300)
@given(
    st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=30), max_size=12).map("".join),
    st.integers(0, 5000),
    st.integers(0, 5000),
)
def test_any_text_gives_a_shape(text: str, cut_from: int, cut_to: int) -> None:
    for part in (text, text[cut_from:], text[:cut_to], text[:cut_from] + text[cut_to:]):
        shape = read_plan(part)
        assert set(shape.python_operators) <= set(shape.operators)


@pytest.mark.parametrize(
    "text", ["", "\n", "hello world", "== Physical Plan ==", "{}", "a (1)\n+- b"]
)
def test_a_text_without_a_plan_gives_an_empty_shape(text: str) -> None:
    assert read_plan(text) == PlanShape()


@pytest.mark.parametrize(
    "bait",
    [
        "named_struct(start, ",
        "named_struct(start, precisetimestampconversion(a, LongType, TimestampType), end, ",
        "knownnullable(",
        "precisetimestampconversion(",
        "(",
        ")",
        "[)",
        "([",
        "\n+- a",
        "\n :",
        "\n+- == Initial Plan ==",
        "\n\n(1) a",
        "(1",
        " ",
        ", Append, 1",
        "FlatMapGroups",
        "WriteToMicroBatchDataSource ",
        "state info [ checkpoint = ",
        ", numPartitions = 1",
        ", 1), REQUIRED_BY_STATEFUL",
        "Inner",
        "1 days ",
        "% 1) END) - 1)",
    ],
)
@pytest.mark.parametrize(
    "before", ["", "StateStoreSave ", "SortMergeJoin ", "Project [", "EventTimeWatermark a, "]
)
def test_a_description_of_bait_is_read(bait: str, before: str) -> None:
    text = "== Physical Plan ==\n" + before + bait * (MEBI // 16 // len(bait))
    assert isinstance(read_plan(text), PlanShape)


def shapes_in(lines: Iterable[str]) -> set[PlanShape]:
    events = map(json.loads, lines)
    return {read_plan(each["physicalPlanDescription"]) for each in events if "details" in each}


def test_the_plans_of_a_recorded_log() -> None:
    (log,) = RECORDED.glob("eventlog_v2_*/events_1_*")
    shapes = shapes_in(lines_of_recorded(log))
    assert {shape.state_partitions for shape in shapes} == {2, 4}
    for shape in shapes:
        assert shape.operators[0] == "WriteToDataSourceV2"
        assert shape.operators[-1] == "MicroBatchScan"
        assert "StateStoreSave" in shape.operators
        assert shape.output_mode == "update"


@needs(KAFKA_LOG, stand_in="tests/profiler/test_plan_text.py::test_the_plans_of_a_recorded_log")
def test_the_plans_of_a_published_log() -> None:
    shapes = shapes_in(KAFKA_LOG.read_text().splitlines())
    (shape,) = (shape for shape in shapes if shape.operators[-1:] == ("MicroBatchScan",))
    assert shape.operators[0] == "WriteToDataSourceV2"
    assert shape.operators[-1] == "MicroBatchScan"
    assert shape.state_partitions == 2
    assert shape.output_mode is None


# The Spark that is installed


def plan_of(frame: DataFrame, mode: str) -> PlanShape:
    execution = frame._jdf.queryExecution()
    jvm: Any = frame.sparkSession._jvm
    explain_mode = jvm.org.apache.spark.sql.execution.ExplainMode.fromString(mode)
    return read_plan(execution.explainString(explain_mode))


@pytest.fixture(scope="module")
def rate(spark: SparkSession) -> Iterator[DataFrame]:
    """A stream whose plans are those of users, with marks of the parts that are compiled."""
    stream = spark.readStream.format("rate").load()
    with with_settings(spark, COMPILED):
        yield stream.withWatermark("timestamp", "1 hour 30 minutes")


@pytest.mark.parametrize("mode", ["formatted", "simple", "extended"])
def test_windows_of_a_live_plan(rate: DataFrame, mode: str) -> None:
    from pyspark.sql.functions import session_window, window

    cases = [
        (window("timestamp", "10 seconds"), tumbling(10.0)),
        (window("timestamp", "1 hour", "1 hour", "-15 minutes"), tumbling(3600.0)),
        (window("timestamp", "1 day", "2 hours"), sliding(86400.0, 7200.0)),
        (window("timestamp", "10 seconds", "3 seconds", "1 second"), sliding(10.0, 3.0)),
        (session_window("timestamp", "5 minutes 250 milliseconds"), session(300.25)),
    ]
    for grouping, expected in cases:
        shape = plan_of(rate.groupBy(grouping, "value").count(), mode)
        assert shape.windows == (expected,)
        assert shape.watermark_delay_s == 5400.0
        assert shape.state_partitions == 2
        assert shape.output_mode is None


@pytest.mark.parametrize("mode", ["formatted", "simple"])
def test_other_parts_of_a_live_plan(spark: SparkSession, rate: DataFrame, mode: str) -> None:
    from pyspark.sql.functions import udf

    static = spark.range(100).withColumnRenamed("id", "value")
    joined = plan_of(rate.join(static, "value", "left"), mode)
    assert joined.joins == ("BroadcastHashJoin LeftOuter",)
    assert joined.state_partitions is None

    other = rate.withColumnRenamed("timestamp", "later")
    both = plan_of(rate.join(other, "value"), mode)
    assert both.joins == ("StreamingSymmetricHashJoin Inner",)
    assert both.state_partitions == 2

    increment = udf(lambda value: value + 1, "long", useArrow=False)
    assert plan_of(rate.select(increment("value")), mode).python_operators == ("BatchEvalPython",)

    alone = plan_of(rate.groupBy().count(), mode)
    assert alone.state_partitions == 1


@pytest.mark.parametrize("output_mode", ["append", "update", "complete"])
def test_the_output_mode_of_a_running_query(
    rate: DataFrame, tmp_path: Path, output_mode: str
) -> None:
    from pyspark.sql.functions import window

    counts = rate.groupBy(window("timestamp", "10 seconds")).count()
    query = (
        counts.writeStream.outputMode(output_mode)
        .format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination(60)
        shape = read_plan(query._jsq.explainInternal(False))
    finally:
        query.stop()
    assert shape.output_mode == output_mode
    assert shape.windows == (tumbling(10.0),)


def test_buckets_that_are_dealt_out_are_known_by_their_column() -> None:
    """Of rows that are packed before such an exchange, what it moves is not rows."""
    assert not read_plan(TREE_4_3).deals_out_buckets
    plan = (
        "== Physical Plan ==\n"
        "*(2) FlatMapGroupsInPandasWithState[{bucket}#12]\n"
        "+- Exchange hashpartitioning({bucket}#12, 8), REQUIRED_BY_STATEFUL_OPERATOR, [id=#4]\n"
        "   +- {before}\n"
        "      +- MicroBatchScan[k#1L] class RateStreamTable\n"
    )
    packed = f"MapInArrow packed(k#1L), [{BUCKET}#12, {ROWS}#13], false"
    plain = f"*(1) Project [k#1L AS _headway_0#13L, 0 AS _headway_nulls#14L, {BUCKET}#12]"
    for before, packs_rows in ((packed, True), (plain, False)):
        shape = read_plan(plan.format(bucket=BUCKET, before=before))
        assert (shape.deals_out_buckets, shape.packs_rows) == (True, packs_rows)
    assert not read_plan(plan.format(bucket="bucket", before=plain)).deals_out_buckets


@pytest.mark.parametrize(
    ("detail", "pushed"),
    [
        ("PushedFilters: []", (False,)),
        ("PushedFilters: [IsNotNull(k), GreaterThan(k,5)]", (True,)),
        ("ReadSchema: struct<k:bigint>", ()),
    ],
)
def test_filters_that_are_pushed_into_a_scan_are_seen(detail: str, pushed: tuple[bool]) -> None:
    formatted = (
        "== Physical Plan ==\n* Filter (2)\n+- Scan json  (1)\n\n\n(1) Scan json \n"
        f"Output [1]: [k#1L]\nBatched: false\n{detail}\nReadSchema: struct<k:bigint>\n\n"
        "(2) Filter\nInput [1]: [k#1L]\n"
    )
    plain = (
        "== Physical Plan ==\n*(1) Filter (k#1L > 5)\n"
        f"+- FileScan json [k#1L] Batched: false, Format: JSON, {detail}, ReadSchema: struct<>\n"
    )
    assert read_plan(formatted).filters_in_scans == pushed
    assert read_plan(plain).filters_in_scans == pushed
