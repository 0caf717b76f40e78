"""The tuner on a real session: clean stops, restarts on one checkpoint, what is refused."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.domain import Configuration, JobProfile, QuerySetting
from headway.domain.live import ChangeKind
from headway.domain.tuner import Phase
from headway.errors import ActuatorError, HeadwayError, InputError, TunerLockedError
from headway.formats.tuner_files import (
    audit_file,
    load_tuner,
    lock_file,
    read_audit,
    save_tuner,
)
from headway.runtime.tuning.actuators import Actuators, kind_of
from headway.runtime.tuning.clean_stop import stop_between_batches
from headway.runtime.tuning.session import (
    alive_executors,
    require_no_dynamic_allocation,
    running_slots,
    warning_of_allocation,
    warning_of_sink,
    why_no_live_executors,
)
from tests.factories import a_configuration, a_profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WITHIN_S = 60.0


def setting_of(trigger_s: float = 1.0, rows: int = 500, partitions: int = 2) -> Configuration:
    return Configuration(
        executors=1,
        cores_per_executor=2,
        shuffle_partitions=partitions,
        trigger_s=trigger_s,
        max_offsets_per_trigger=rows,
    )


def a_small_profile(trigger_s: float = 1.0) -> JobProfile:
    profile = a_profile()
    last = replace(profile.settings[0], configuration=setting_of(trigger_s), rate_per_s=500.0)
    return replace(profile, settings=(last,), arrivals=replace(profile.arrivals, rate_per_s=500.0))


def build_into(folder: Path, name: str) -> Any:
    def build(spark: SparkSession, setting: QuerySetting) -> StreamingQuery:
        # This source makes as many rows as it may, and the tuner's rate limit is what two cores can
        # carry: batches would take seconds of them.
        rows = str(min(int(setting.reader_options.get("maxOffsetsPerTrigger", "500")), 1000))
        numbers = (
            spark.readStream.format("rate-micro-batch")
            .options(rowsPerBatch=rows, numPartitions="2")
            .load()
        )
        return (
            numbers.select("value")
            .writeStream.format("json")
            .queryName(name)
            .option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(**setting.trigger)
            .start()
        )

    return build


def rows_in(folder: Path) -> list[int]:
    """As Spark reads them: those that the sink's log names."""
    named: dict[str, None] = {}
    for log in sorted((folder / "_spark_metadata").glob("[0-9]*"), key=lambda one: one.name):
        for line in log.read_text().splitlines()[1:]:
            named[json.loads(line)["path"].rpartition("/")[2]] = None
    return [
        json.loads(line)["value"]
        for name in named
        for line in (folder / name).read_text().splitlines()
    ]


def wait_for(what: Any, within_s: float = WITHIN_S, every_s: float = 0.1) -> None:
    ends_s = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < ends_s, "it did not come in time"
        time.sleep(every_s)


def num_batches(query: StreamingQuery) -> int:
    last = query.lastProgress
    return -1 if last is None else int(last["batchId"])


@pytest.fixture
def stopping(spark: SparkSession) -> Iterator[None]:
    yield
    for query in spark.streams.active:
        query.stop()
    spark.conf.set("spark.sql.shuffle.partitions", "2")


@pytest.mark.usefixtures("stopping")
def test_stops_between_batches_cut_none_and_restarts_lose_no_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    actuators = Actuators(spark=spark, build=build_into(tmp_path, "rows"))
    running = setting_of()
    actuators.start(running)
    for then in (setting_of(trigger_s=2.0), setting_of(rows=900), setting_of(partitions=3)):
        before = actuators.query
        assert before is not None
        wait_for(lambda query=before: num_batches(query) >= 0 and query.recentProgress)
        kind = kind_of(running, then, is_stateful=False)
        assert kind is ChangeKind.RESTART
        assert actuators.apply(kind, running, then) < 30.0
        assert actuators.is_active
        running = then
    query = actuators.query
    assert query is not None
    wait_for(lambda: bool(query.recentProgress))
    stop_between_batches(query, running.trigger_s, may_cut=False)
    assert not actuators.is_cut()
    rows = rows_in(tmp_path / "out")
    assert sorted(rows) == list(range(len(rows)))
    assert len(rows) >= 4 * 500
    assert str(actuators.ended_with()).startswith("it was stopped, or ")


@pytest.mark.usefixtures("stopping")
def test_a_query_without_a_gap_is_only_cut_where_that_is_allowed(
    spark: SparkSession, tmp_path: Path
) -> None:
    actuators = Actuators(spark=spark, build=build_into(tmp_path, "endless"))
    running = setting_of(trigger_s=0.0, rows=100)
    query = actuators.start(running)
    wait_for(lambda: num_batches(query) >= 2)
    with pytest.raises(ActuatorError, match="no gap between batches"):
        actuators.apply(ChangeKind.RESTART, running, setting_of())
    assert query.isActive
    actuators.may_cut = True
    actuators.apply(ChangeKind.RESTART, running, setting_of())
    fresh = actuators.query
    assert fresh is not None and fresh.isActive and str(fresh.id) == str(query.id)
    wait_for(lambda: num_batches(fresh) > num_batches(query))
    actuators.stop(1.0)
    rows = rows_in(tmp_path / "out")
    assert sorted(rows) == list(range(len(rows)))


@pytest.mark.usefixtures("stopping")
def test_a_session_is_watched_and_a_query_is_recommended_to(
    spark: SparkSession, spark_event_log_dir: Path, tmp_path: Path
) -> None:
    state = tmp_path / "rows.tuner.json"
    build = build_into(tmp_path, "watched")
    how: dict[str, Any] = {"target": "p99 <= 10s", "state": state}
    # Batches of a busy machine must pause for their trigger, or it shows nowhere.
    how["profile"] = a_small_profile(trigger_s=3.0)
    with headway.tune(spark, build, **how) as tuner:
        watcher = headway.watch(spark, profile=how["profile"], target="p99 <= 10s", query="watched")
        wait_for(lambda: tuner.status.phase is Phase.HOLD)
        # Looked at all the time, it would have no core left to do its batches.
        wait_for(
            lambda: watcher.look().configuration.trigger_s == 3.0,
            within_s=3 * WITHIN_S,
            every_s=2.0,
        )
        look = watcher.look()
        assert look.num_batches >= 10
        assert look.standing != "learning"
        assert look.configuration.num_slots == 2
        # The same from the event log that grows beside it, rolling and packed.
        (log,) = spark_event_log_dir.iterdir()
        of_log = headway.watch(log, profile=how["profile"], target="p99 <= 10s", query="watched")
        assert of_log.look().num_batches >= 8
        # One tuner per state file.
        with pytest.raises(TunerLockedError, match="tunes with this state"):
            headway.tune(spark, build, **how)
        assert not tuner.await_termination(0.1)
        query = tuner.query
    assert query.isActive  # type: ignore[attr-defined]
    query.stop()  # type: ignore[attr-defined]
    known = load_tuner(state)
    assert known is not None and known.phase is Phase.OFF
    assert known.query_id == str(query.id)  # type: ignore[attr-defined]
    assert [one["event"] for one in read_audit(audit_file(state))][:2] == ["started", "phase"]
    # The same state with another checkpoint is refused, and nothing is left running.
    with pytest.raises(InputError, match="started with another checkpoint"):
        headway.tune(spark, build_into(tmp_path / "other", "watched"), **how)
    assert not spark.streams.active
    # Killed within a change, it goes on with it.
    save_tuner(replace(known, phase=Phase.HOLD, last_good=setting_of(trigger_s=2.0)), state)
    with headway.tune(spark, build, **how) as tuner:
        assert tuner.status.configuration.trigger_s == 2.0
        tuner.stop(restore=True)
        assert tuner.status.configuration.trigger_s == 3.0
    rows = rows_in(tmp_path / "out")
    assert sorted(rows) == list(range(len(rows)))


@pytest.mark.usefixtures("stopping")
def test_a_second_tuner_of_a_checkpoint_does_not_start_and_the_first_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    build, second = build_into(tmp_path, "twice"), tmp_path / "second.tuner.json"
    how: dict[str, Any] = {"profile": a_small_profile(), "target": "p99 <= 10s"}
    with headway.tune(spark, build, state=tmp_path / "first.tuner.json", **how) as first:
        # Another state file, so its lock does not say that there are two.
        with pytest.raises(HeadwayError, match=r"name twice .* is already active"):
            headway.tune(spark, build, state=second, **how)
        assert not lock_file(second).exists()
        query: Any = first.query
        wait_for(lambda: bool(query.recentProgress))
        assert not first.await_termination(0.1)
    query.stop()
    rows = rows_in(tmp_path / "out")
    assert sorted(rows) == list(range(len(rows)))


@pytest.mark.statistical
@pytest.mark.usefixtures("stopping")
def test_a_function_that_ignores_its_setting_ends_the_tuner_not_the_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    def deaf(session: SparkSession, setting: QuerySetting) -> StreamingQuery:
        # Long enough that batches of a busy machine still pause for it, and no multiple of the
        # second that was asked for, whose grid would explain its starts as well.
        slower = replace(setting.configuration, trigger_s=2.5)
        build = build_into(tmp_path, "deaf")
        query: StreamingQuery = build(session, replace(setting, configuration=slower))
        return query

    tuner = headway.tune(
        spark,
        deaf,
        profile=a_small_profile(),
        target="p99 <= 10s",
        state=tmp_path / "deaf.tuner.json",
    )
    try:
        with pytest.raises(InputError, match=r"asked for a trigger of 1\.00 s"):
            tuner.await_termination(2 * WITHIN_S)
        assert tuner.query.isActive  # type: ignore[attr-defined]
    finally:
        tuner.stop()


@pytest.mark.usefixtures("stopping")
def test_what_makes_no_sense_starts_nothing(spark: SparkSession, tmp_path: Path) -> None:
    started: list[QuerySetting] = []

    def build(_session: SparkSession, setting: QuerySetting) -> StreamingQuery:
        started.append(setting)
        raise AssertionError("it must not start")

    how: dict[str, Any] = {
        "profile": a_small_profile(),
        "target": "p99 <= 10s",
        "state": tmp_path / "x.tuner.json",
    }
    for given, message in (
        ({"mode": "often"}, "mode is 'often'; expected one of recommend, act"),
        ({"target": "mean <= 1s"}, "expected one quantile"),
        ({"target": "window p99 <= 9s"}, "windows is not measured"),
        ({"allow": ["everything"]}, "allow is 'everything'; expected one of repartition"),
        ({"allow": "everything"}, "allow is 'everything'"),
        ({"triggers": "often"}, "triggers: 'often' is not a duration"),
        ({"state": tmp_path / "x.jsonl"}, "kept beside the state"),
        ({"half_done": "maybe"}, "half_done is 'maybe'"),
        ({"quiet": ["at night"]}, "expected two times of the day"),
        ({"executors": (3, 1)}, "expected the fewest first"),
        ({"budget": -1.0}, "expected executor-hours"),
        ({"target": "p99 <= 10ms"}, "no setting within bounds meets it"),
    ):
        with pytest.raises(HeadwayError, match=message):
            headway.tune(spark, build, **{**how, **given})
    assert not started
    assert not list(tmp_path.iterdir())
    with pytest.raises(HeadwayError, match=r"build\(spark, setting\) failed \(AssertionError"):
        headway.tune(spark, build, **how)
    with pytest.raises(InputError, match="returned int; expected the streaming query"):
        headway.tune(spark, lambda _session, _setting: 7, **how)  # type: ignore[arg-type,return-value]
    kind = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    with pytest.raises(InputError, match="Spark Connect"):
        headway.tune(kind(), build, **how)


@pytest.mark.usefixtures("stopping")
@pytest.mark.parametrize(
    ("least", "most", "why"),
    [
        (None, None, "minExecutors, initialExecutors and maxExecutors of .* all 3, and it changes"),
        ("2", "8", r"Start the application with spark\.dynamicAllocation\.enabled=false"),
    ],
)
def test_acting_where_spark_changes_executors_is_refused_with_what_to_set(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    least: str | None, most: str | None, why: str,
) -> None:  # fmt: skip
    allocate(spark, monkeypatch, least, most)
    with pytest.raises(InputError, match=why):
        headway.tune(
            spark,
            build_into(tmp_path, "rows"),
            profile=a_small_profile(),
            target="p99 <= 10s",
            state=tmp_path / "x.json",
            mode="act",
            executors=(1, 3),
        )
    assert not spark.streams.active


def test_bounds_that_are_equal_hold_the_executors(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocate(spark, monkeypatch, "4", "4")
    require_no_dynamic_allocation(spark, 4)
    assert warning_of_allocation(spark, 4, 4) is None
    warning = warning_of_allocation(spark, 2, 12)
    assert warning is not None
    assert "minExecutors=2 and maxExecutors=12" in warning
    monkeypatch.setattr(spark.sparkContext, "master", "k8s://x")
    assert why_no_live_executors(spark) == "dynamic allocation holds them at 4"


def allocate(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, least: str | None, most: str | None
) -> None:
    """As if the application had been started with dynamic allocation."""
    asked = spark.conf.get
    name = "spark.dynamicAllocation"
    stated = {
        f"{name}.enabled": "true",
        f"{name}.minExecutors": least,
        f"{name}.maxExecutors": most,
    }
    monkeypatch.setattr(
        type(spark.conf),
        "get",
        lambda _self, key, *more: stated[key] if key in stated else asked(key, *more),
    )


def test_what_a_local_session_has(spark: SparkSession) -> None:
    assert running_slots(spark) == (1, 2)
    assert [*alive_executors(spark).values()] == [2]
    assert "no executors of its own" in str(why_no_live_executors(spark))


def test_a_change_of_the_cores_takes_a_new_application() -> None:
    now = a_configuration()
    with pytest.raises(ActuatorError, match="need a new application"):
        kind_of(now, replace(now, cores_per_executor=2), is_stateful=True)
    assert kind_of(now, replace(now, executors=1), is_stateful=True) is ChangeKind.REMOVE
    assert kind_of(now, replace(now, executors=3), is_stateful=True) is ChangeKind.ADD
    other = replace(now, shuffle_partitions=4)
    assert kind_of(now, other, is_stateful=True) is ChangeKind.REPARTITION


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        ("ForeachBatchSink", "foreachBatch runs again"),
        ("org.apache.spark.sql.kafka010.KafkaSourceProvider", "at least once"),
        ("FileSink[/out]", None),
        (None, None),
    ],
)
def test_where_spark_itself_doubles_is_said_before(sink: str | None, words: str | None) -> None:
    said = warning_of_sink(sink)
    assert said is None if words is None else words in str(said)


@pytest.mark.usefixtures("stopping")
def test_the_partitions_of_state_are_changed_offline_and_its_counts_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    if not hasattr(spark, "_streamingCheckpointManager"):
        pytest.skip("this Spark cannot repartition a checkpoint")
    key = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(key)
    spark.conf.set(key, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    out = tmp_path / "out"

    def build(session: SparkSession, setting: QuerySetting) -> StreamingQuery:
        rows = session.readStream.format("rate-micro-batch").options(rowsPerBatch=500).load()
        counts = rows.groupBy((rows.value % 10).alias("key")).count()
        query: StreamingQuery = (
            counts.writeStream.outputMode("update")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(**setting.trigger)
            .foreachBatch(
                lambda batch, number: batch.write.mode("overwrite").json(str(out / f"b={number}"))
            )
            .start()
        )
        return query

    try:
        actuators = Actuators(spark=spark, build=build)
        now, then = setting_of(trigger_s=3.0), setting_of(trigger_s=3.0, partitions=4)
        first = actuators.start(now)
        wait_for(lambda: num_batches(first) >= 1)
        kind = kind_of(now, then, is_stateful=True)
        assert kind is ChangeKind.REPARTITION
        actuators.apply(kind, now, then)
        fresh: Any = actuators.query
        wait_for(lambda: bool(fresh.recentProgress) and fresh.lastProgress["numInputRows"] > 0)
        assert fresh.lastProgress["stateOperators"][0]["numShufflePartitions"] == 4
        assert actuators.with_partitions_of_checkpoint(now) == then
        actuators.stop(3.0)
    finally:
        spark.conf.set(key, str(before))
    newest: dict[int, int] = {}
    for folder in sorted(out.iterdir(), key=lambda one: int(one.name[2:])):
        for file in folder.glob("part-*.json"):
            for line in file.read_text().splitlines():
                row = json.loads(line)
                newest[row["key"]] = row["count"]
    offsets = tmp_path / "checkpoint" / "offsets"
    last = max(int(one.name) for one in offsets.iterdir() if one.name.isdecimal())
    read = json.loads((offsets / str(last)).read_text().splitlines()[-1])["offset"]
    assert sum(newest.values()) == read
