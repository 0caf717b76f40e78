"""Applying changes to a running query: restarts, executors, partitions."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headway.assumptions.tuning import DRAINED_WITHIN_S
from headway.domain import Configuration, QuerySetting
from headway.domain.live import ChangeKind
from headway.errors import ActuatorError, HeadwayError, InputError, first_line
from headway.runtime.given import require_built_query
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.tuning import clean_stop, session
from headway.runtime.tuning.clean_stop import NoGapError
from headway.units import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headway.runtime.exploring import Build

_PARTITIONS_KEY = "spark.sql.shuffle.partitions"
_OTHER_DRIVER = "CONCURRENT_STREAM_LOG_UPDATE"
At = Callable[[str], None]
"""Called at each named point of a change, so that tests can inject faults there."""


def nothing(_point: str) -> None:
    """Do nothing at a named point."""


@dataclass(slots=True, kw_only=True)
class Actuators:
    """A query that was started by a user's function, and the possible changes to it.

    ``root`` is its checkpoint and ``query_id`` the query's id from the checkpoint; a function that
    starts it from another checkpoint would begin a new query.
    """

    spark: SparkSession
    build: Build
    may_cut: bool = False
    at: At = nothing
    query: StreamingQuery | None = None
    query_id: str | None = None
    root: str | None = None
    executors_are_given: bool = False

    def start(self, configuration: Configuration) -> StreamingQuery:
        """Start the query at a setting; only if it does not run.

        What is no query, or one with another checkpoint, is refused.
        """
        session.let_stops_end(self.spark)
        self.spark.conf.set(_PARTITIONS_KEY, str(configuration.shuffle_partitions))
        self.at("before start")
        try:
            query = self.build(self.spark, QuerySetting(configuration=configuration))
        except HeadwayError:
            raise
        except Exception as error:
            raise HeadwayError(
                f"build(spark, setting) failed ({type(error).__name__}: {first_line(error)})"
            ) from error
        require_built_query(query)
        query_id = str(query.id)
        if self.query_id not in (None, query_id):
            with contextlib.suppress(Exception):
                query.stop()
            raise InputError(
                f"the query started with another checkpoint (its id is {query_id[:8]}, was "
                f"{(self.query_id or '')[:8]}) and was stopped again; give it the same "
                "checkpointLocation each time"
            )
        self.query, self.query_id = query, query_id
        self.root = str(query._jsq.streamingQuery().resolvedCheckpointRoot())
        self.at("started")
        return query

    def stop(self, trigger_s: float) -> float:
        """Stop the query between two batches; returns how long it waited for a gap [s]."""
        assert self.query is not None
        self.at("before stop")
        waited_s = clean_stop.stop_between_batches(self.query, trigger_s, may_cut=self.may_cut)
        self.at("stopped")
        return waited_s

    def stop_at_once(self) -> None:
        """Stop the query, within a batch if necessary."""
        if self.query is not None:
            self.query.stop()

    def apply(self, kind: ChangeKind, now: Configuration, then: Configuration) -> float:
        """Change the query from one setting to another; returns the pause [s].

        It refers to the target setting only, so it may be repeated. If it cannot be done, the
        message of the ActuatorError states what runs then.
        """
        if kind in (ChangeKind.ADD, ChangeKind.REMOVE):
            self.set_executors(then.executors, now.trigger_s)
            return 0.0
        began_s = time.monotonic()
        waited_s = self.stop(now.trigger_s)
        if kind is ChangeKind.REPARTITION:
            self.repartition(now, then.shuffle_partitions)
        self.start(then)
        pause_s = time.monotonic() - began_s - waited_s
        if then.executors != now.executors and session.why_no_live_executors(self.spark) is None:
            self.set_executors(then.executors, then.trigger_s)
        return pause_s

    def set_executors(self, total: int, trigger_s: float) -> None:
        """Request executors without waiting for them, or remove the newest between two batches."""
        self.at("before executors")
        if total < len(session.alive_executors(self.spark)):
            is_gap = self.query is None or clean_stop.wait_for_gap(self.query, trigger_s)
            if not is_gap and not self.may_cut:
                raise NoGapError(
                    "the query has no gap between batches in which executors could leave without "
                    "losing the work of a batch; nothing was changed"
                )
            session.remove_executors(self.spark, total)
        else:
            session.ask_for_executors(self.spark, total)
        self.at("executors asked for")

    def with_partitions_of_checkpoint(self, configuration: Configuration) -> Configuration:
        """The setting with the shuffle partitions of the checkpoint, if there is one."""
        if self.root is None:
            return configuration
        partitions = clean_stop.partitions_of_checkpoint(SparkFiles(self.spark), self.root)
        if partitions is None:
            return configuration
        return replace(configuration, shuffle_partitions=partitions)

    def repartition(self, now: Configuration, partitions: int) -> None:
        """Give the state of a stopped query another number of partitions.

        The rows that its source has by then are first processed in a batch with the old number,
        since only the state of complete batches can be repartitioned.
        """
        manager = getattr(self.spark, "_streamingCheckpointManager", None)
        if manager is None:
            raise ActuatorError(
                "this Spark cannot repartition a checkpoint; expected Spark 4.2 or later"
            )
        self.at("before repartition")
        self._drain(now)
        try:
            manager.repartition(self.root, partitions)
        except Exception as error:
            raise ActuatorError(
                f"the checkpoint cannot be repartitioned ({first_line(error)}); it is as it was"
            ) from None
        self.at("repartitioned")

    def _drain(self, now: Configuration) -> None:
        """Finish an interrupted batch, since its state cannot be repartitioned."""
        if not self.is_cut():
            return
        query = self.start(now)
        ends_s = time.monotonic() + DRAINED_WITHIN_S.value
        while self.is_cut() and query.isActive and time.monotonic() < ends_s:
            time.sleep(0.05)
        self.query = query
        clean_stop.stop_between_batches(query, now.trigger_s, may_cut=False)

    @property
    def is_active(self) -> bool:
        return self.query is not None and bool(self.query.isActive)

    @property
    def is_in_batch(self) -> bool:
        """Whether a batch runs now, as far as known."""
        return self.query is not None and bool(self.query.status["isTriggerActive"])

    def is_in_gap(self, trigger_s: float) -> bool:
        """Whether a stop now would be between two batches, as far as known."""
        return self.query is not None and clean_stop.is_in_gap(self.query, trigger_s)

    def num_executors(self) -> int:
        return len(session.alive_executors(self.spark))

    def why_no_live_executors(self) -> str | None:
        """Why executors cannot be changed while the query runs; None if they can."""
        return session.why_no_live_executors(self.spark)

    def ask_for_executors(self, total: int) -> None:
        """Request a total number of executors, if that is possible while the query runs."""
        if self.why_no_live_executors() is None:
            session.ask_for_executors(self.spark, total)

    def is_cut(self) -> bool:
        """Whether the checkpoint has a batch that was begun but not completed.

        It runs again, with the same rows.
        """
        if self.root is None:
            return False
        begun, completed = clean_stop.newest_batches(SparkFiles(self.spark), self.root)
        return begun > completed

    def ended_with(self) -> str | None:
        """Why the query ended on its own; None if it runs, or if nothing is known."""
        if self.query is None or self.query.isActive:
            return None
        error = self.query.exception()
        stopped = "it was stopped, or its trigger has no further batch"
        return stopped if error is None else first_line(error)

    @property
    def has_failed(self) -> bool:
        """Whether it ended with an error, not by a stop or by another driver on its checkpoint."""
        error = None if self.query is None else self.query.exception()
        return error is not None and _OTHER_DRIVER not in first_line(error)


def kind_of(now: Configuration, then: Configuration, *, is_stateful: bool) -> ChangeKind:
    """What it takes to change from one setting to another.

    Raises ActuatorError if it takes a new application, which only a supervisor can start.
    """
    if (now.cores_per_executor, now.task_cpus) != (then.cores_per_executor, then.task_cpus):
        raise ActuatorError(
            f"executors of {counted(then.cores_per_executor, 'core')} need a new application; "
            "change spark.executor.cores and start it anew"
        )
    if now.shuffle_partitions != then.shuffle_partitions:
        return ChangeKind.REPARTITION if is_stateful else ChangeKind.RESTART
    is_same_limit = now.max_offsets_per_trigger == then.max_offsets_per_trigger
    if now.trigger_s != then.trigger_s or not is_same_limit:
        return ChangeKind.RESTART
    return ChangeKind.ADD if then.executors > now.executors else ChangeKind.REMOVE
