"""Carries out runs of ordinary jobs in one JVM, each with what flows to it and runs beside it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.running import (
    backlog_stream,
    campaign_session,
    measured_run,
)
from campaign.schedule import Group
from campaign.workloads import Stream
from kafka_broker.broker import Lane, running_lane
from kafka_broker.jars import connector_jars

from headway.errors import HeadwayError
from headway.units import format_rate
from ordinary.capacity import capacity_of, steady_duration_s
from ordinary.jobs import (
    CLOCK,
    COMPANION_RATE_PER_S,
    COMPANION_TRIGGER_S,
    DELTA,
    FILES,
    JOBS,
    KAFKA,
    OrdinaryJob,
    OrdinaryQuery,
)
from ordinary.landing import fill, landing_files
from ordinary.places import Place, write_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROBE_S, WARM_UP_S = 50.0, 8.0
"""About how long it takes to measure a capacity, and to compile a job [s]."""
PROBED_RATE_PER_S = 20_000.0
"""The first rows of a backlog arrived at this rate."""
MOST_ROWS = {CLOCK: 20_000_000, FILES: 200_000, KAFKA: 200_000}
"""Of a batch of a backlog that is there before the query starts, by source."""
TOPIC_PARTITIONS = 4
_FILLING_S = 8.0
_BATCHES_OF_BACKLOG = 12
_ROWS_PER_FILE = 5_000
_PROBED_PARTITIONS = 8
DELTA_CONF = {
    "spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@contextmanager
def job_session(group: Group, session: str, folder: Path) -> Iterator[JobSession]:
    """A JVM for jobs of a kind of session, with a broker where they need one."""
    with ExitStack() as stack:
        lane = stack.enter_context(running_lane(folder / "broker")) if session == KAFKA else None
        spark = stack.enter_context(
            campaign_session(
                group,
                folder,
                jars=connector_jars() if session == KAFKA else (),
                extra_conf=DELTA_CONF if session == DELTA else None,
            )
        )
        write_tables(spark, folder / "tables")
        yield JobSession(spark, folder, lane)


class JobSession:
    """A JVM that runs jobs, one after the other; data of a run is deleted after it."""

    def __init__(self, spark: SparkSession, folder: Path, lane: Lane | None) -> None:
        self.spark, self.folder, self._lane = spark, folder, lane
        self._compiled: set[str] = set()
        self._num_probes = 0

    def query(
        self, job: OrdinaryJob, name: str, stream: Stream, trigger_s: float, partitions: int
    ) -> OrdinaryQuery:
        """A run of a job, with a place of its own for its data."""
        data = self.folder / "data" / f"{os.getpid()}-{name.replace('/', '-')}"
        data.mkdir(parents=True, exist_ok=True)
        place = Place(
            tables=self.folder / "tables",
            output=data / "output",
            landing=data / "landing",
            servers=self._lane.servers if self._lane else "",
            topic=f"{os.getpid()}-{name}".replace("/", "-").replace("%", ""),
        )
        return OrdinaryQuery(
            name=f"{name}@{os.getpid()}",
            job=job,
            stream=stream,
            trigger_s=trigger_s,
            partitions=partitions,
            place=place,
        )

    def measured(self, query: OrdinaryQuery, *, warm_s: float, measured_s: float) -> dict[str, Any]:
        """One run: what was measured of it, as a line of results says it."""
        try:
            with self.surroundings(query):
                return measured_run(
                    self.spark, query, warm_s=warm_s, measured_s=measured_s, folder=self.folder
                ).as_json()
        except HeadwayError as error:
            print(error, file=sys.stderr)
            return {"truth": None, "failed": str(error)}
        finally:
            shutil.rmtree(query.place.output.parent, ignore_errors=True)

    def warm_up_once(self, job: OrdinaryJob) -> None:
        """Compile what a job needs by a backlog of small batches, unless it has run here."""
        if job.name not in self._compiled:
            self._steady_s(job, job.probe_rows, PROBED_RATE_PER_S)

    def capacity(self, job: OrdinaryJob, first_rows: int | None = None) -> dict[str, Any]:
        """Rows per second that a job carries, as a line of results says it.

        ``first_rows`` of a batch are those that were enough on other cores.
        """
        capacity = capacity_of(
            lambda num_rows, arriving_per_s: self._steady_s(job, num_rows, arriving_per_s),
            first_rows or job.probe_rows,
            MOST_ROWS[job.source],
            PROBED_RATE_PER_S,
        )
        print(f"{job.name}: carries {format_rate(capacity.carried_per_s)}", file=sys.stderr)
        return {
            "workload": job.name,
            "carried_per_s": capacity.carried_per_s,
            "rows": capacity.num_rows,
            "duration_s": capacity.duration_s,
        }

    def _steady_s(self, job: OrdinaryJob, num_rows: int, arriving_per_s: float) -> float:
        stream = backlog_stream(num_rows, arriving_per_s)
        if job.source == FILES:
            # The limit of a batch is in files.
            stream = backlog_stream(max(num_rows // _ROWS_PER_FILE, 1))
        self._compiled.add(job.name)
        self._num_probes += 1
        name = f"probe/{job.name}/{num_rows}/{self._num_probes}"
        query = self.query(job, name, stream, 0.0, _PROBED_PARTITIONS)
        try:
            self._lay_backlog(query, num_rows)
            running = query.start(self.spark, self.folder)
            try:
                return steady_duration_s(running)
            finally:
                running.stop()
        finally:
            shutil.rmtree(query.place.output.parent, ignore_errors=True)

    def _lay_backlog(self, query: OrdinaryQuery, num_rows: int) -> None:
        """What a probe reads is there before it starts."""
        all_rows = _BATCHES_OF_BACKLOG * num_rows
        if query.job.source == FILES:
            fill(query.place.landing, all_rows // _ROWS_PER_FILE, _ROWS_PER_FILE)
        elif query.job.source == KAFKA:
            with self._flow(query, all_rows / _FILLING_S):
                time.sleep(_FILLING_S)

    @contextmanager
    def surroundings(self, query: OrdinaryQuery) -> Iterator[None]:
        """What flows to a query, and what runs beside it, while it runs."""
        with ExitStack() as stack:
            if query.job.source == FILES:
                stack.enter_context(landing_files(query.place.landing, query.stream.rate_per_s))
            elif query.job.source == KAFKA:
                stack.enter_context(self._flow(query, query.stream.rate_per_s))
            for companion in query.job.companions:
                self._start_beside(query, JOBS[companion], stack)
            yield

    def _start_beside(self, query: OrdinaryQuery, job: OrdinaryJob, stack: ExitStack) -> None:
        beside = self.query(
            job,
            f"{query.name}/beside/{job.name}",
            Stream(rate_per_s=COMPANION_RATE_PER_S),
            COMPANION_TRIGGER_S,
            query.partitions,
        )
        stack.callback(shutil.rmtree, beside.place.output.parent, ignore_errors=True)
        stack.callback(beside.start(self.spark, self.folder).stop)

    @contextmanager
    def _flow(self, query: OrdinaryQuery, rate_per_s: float) -> Iterator[None]:
        if self._lane is None:
            raise HeadwayError(f"{query.name}: no broker in this session")
        topic = query.place.topic
        self._lane.make_topic(topic, TOPIC_PARTITIONS)
        self._lane.make_topic(f"{topic}-out", TOPIC_PARTITIONS, stamped_by_broker=True)
        self._lane.start_flow(topic, TOPIC_PARTITIONS, rate_per_s)
        try:
            yield
        finally:
            self._lane.stop_flow(topic)
