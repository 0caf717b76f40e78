"""What the tuner asks of a session: new batches once each, and executors that leave."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from headway.domain.live import LiveBatch
from headway.errors import ActuatorError
from headway.profiler.recording.live import QueryFeed
from headway.runtime.tuning import session
from headway.runtime.tuning.session import remove_executors
from headway.runtime.word_count import clock_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_a_change_without_a_restart_reads_no_batch_again(spark: SparkSession) -> None:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "5").load()
    query = rows.writeStream.format("noop").trigger(processingTime="200 milliseconds").start()
    try:
        feed = QueryFeed(query)
        ids: list[int] = []
        while len(ids) < 4:
            ids += [one.batch_id for one in feed.new_batches()]
            feed.follow(query)  # as after each change of executors
        assert ids == sorted(set(ids))
    finally:
        query.stop()


@dataclass
class Cluster:
    """A session whose executors leave some looks after Spark was asked to remove them."""

    alive: dict[str, int]
    leaving: dict[str, int] = field(default_factory=dict)
    kept: tuple[str, ...] = ()

    def removed(self, name: str) -> bool:
        if name in self.leaving or name in self.kept:
            return False
        self.leaving[name] = 2
        return True

    def looked(self) -> dict[str, int]:
        self.leaving = {name: left - 1 for name, left in self.leaving.items()}
        self.alive = {
            name: cores for name, cores in self.alive.items() if self.leaving.get(name, 1) > 0
        }
        return self.alive


def with_cluster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Any:
    class Context:
        _jsc = cast("Any", type("Jsc", (), {"sc": lambda _self: Context}))()

        @staticmethod
        def killExecutor(name: str) -> bool:  # noqa: N802  # Spark's name
            return cluster.removed(name)

    monkeypatch.setattr(session, "alive_executors", lambda _spark: cluster.looked())
    monkeypatch.setattr(session, "ask_for_executors", lambda _spark, _total: None)
    return type("Session", (), {"sparkContext": Context})()


def three() -> dict[str, int]:
    return {str(number): 1 for number in range(3)}


def test_executors_that_are_leaving_already_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(three(), leaving={"2": 4})
    remove_executors(with_cluster(cluster, monkeypatch), 1)
    assert [*cluster.looked()] == ["0"]


def test_an_executor_that_stays_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LEAVES_LOOK_S", 0.0)
    monkeypatch.setattr(session, "LEAVES_WITHIN_S", type("Now", (), {"value": 0.05})())
    cluster = Cluster(three(), kept=("2",))
    with pytest.raises(ActuatorError, match="refused to remove executor 2"):
        remove_executors(with_cluster(cluster, monkeypatch), 1)


@pytest.mark.skipif(
    tuple(map(int, version("pyspark").split(".")[:2])) < (4, 1),
    reason="earlier versions do not say how far the batch that runs has come",
)
def test_the_batch_that_runs_says_what_had_arrived_when_it_was_planned(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Its offsets count rows. From the fourth batch on, batches take longer than a trigger.
    def slow(batch: DataFrame, batch_id: int) -> None:
        batch.count()  # what reads no row has no progress
        time.sleep(1.5 if batch_id > 3 else 0.0)

    lines = clock_lines(spark, rate_per_s=2000, num_source_partitions=2)
    query = (
        lines.writeStream.foreachBatch(slow)
        .option("checkpointLocation", str(tmp_path))
        .trigger(processingTime="500 milliseconds")
        .start()
    )
    try:
        feed = QueryFeed(query)
        assert feed.running_batch() is None, "unknown before offsets are known to count rows"
        ended: list[LiveBatch] = []
        running: list[tuple[float, int, int]] = []
        ends_s = time.monotonic() + 60.0
        while len(ended) < 8 and time.monotonic() < ends_s:
            ended += feed.new_batches()
            if (batch := feed.running_batch()) is not None:
                running.append((*batch, len(ended)))
            time.sleep(0.05)
    finally:
        query.stop()
    reported = {one.started_s: one.available_rows for one in ended}
    known_before = [known for known in running if known[0] in reported]
    assert len({started_s for started_s, _, _ in known_before}) >= 3
    for started_s, available_rows, _ in known_before:
        assert available_rows == reported[started_s]
    # It was known while the batch ran, before its report.
    started_s, _, number = known_before[-1]
    assert started_s not in [one.started_s for one in ended[:number]]


@pytest.mark.parametrize(
    ("is_active", "failure", "ended"),
    [(True, None, None), (False, None, "stopped"), (False, ValueError("no"), "failed")],
)
def test_a_feed_says_how_its_query_ended_and_whether_it_is_idle(
    is_active: bool, failure: Exception | None, ended: str | None
) -> None:
    status = {"isTriggerActive": True}
    query: Any = SimpleNamespace(isActive=is_active, exception=lambda: failure, status=status)
    feed = QueryFeed(query)
    assert feed.ended == ended
    assert feed.idle_s == 0.0
    status["isTriggerActive"] = False
    assert feed.idle_s == pytest.approx(time.time(), abs=60.0)
