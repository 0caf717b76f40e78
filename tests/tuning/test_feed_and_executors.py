"""What the tuner asks of a session: new batches once each, and executors that leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from headway.errors import ActuatorError
from headway.profiler.recording.live import QueryFeed
from headway.runtime.tuning import session
from headway.runtime.tuning.session import Executor, remove_executors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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

    alive: list[Executor]
    leaving: dict[str, int] = field(default_factory=dict)
    kept: tuple[str, ...] = ()

    def removed(self, name: str) -> bool:
        if name in self.leaving or name in self.kept:
            return False
        self.leaving[name] = 2
        return True

    def looked(self) -> list[Executor]:
        self.leaving = {name: left - 1 for name, left in self.leaving.items()}
        self.alive = [one for one in self.alive if self.leaving.get(one.name, 1) > 0]
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


def three() -> list[Executor]:
    return [Executor(str(number), float(number), 1) for number in range(3)]


def test_executors_that_are_leaving_already_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(three(), leaving={"2": 4})
    remove_executors(with_cluster(cluster, monkeypatch), 1)
    assert [one.name for one in cluster.looked()] == ["0"]


def test_an_executor_that_stays_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LEAVES_LOOK_S", 0.0)
    monkeypatch.setattr(session, "LEAVES_WITHIN_S", type("Now", (), {"value": 0.05})())
    cluster = Cluster(three(), kept=("2",))
    with pytest.raises(ActuatorError, match="refused to remove executor 2"):
        remove_executors(with_cluster(cluster, monkeypatch), 1)
