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
    usual_duration_s,
)
from campaign.schedule import Group
from campaign.workloads import Stream
from kafka_broker.broker import Lane, running_lane
from kafka_broker.jars import connector_jars

from headway.errors import HeadwayError
from headway.units import format_rate
from ordinary.jobs import (
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

PROBE_S, LONG_PROBE_S = 8.0, 40.0
PROBED_RATE_PER_S = 20_000.0
"""Rows of a backlog arrived at this rate: windows hold as many as in a run."""
TOPIC_PARTITIONS = 4
_FILLING_S = 8.0
_FILES_OF_PROBE = 40
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
            self._probe_s(job, job.probe_rows[0], "warm-up")

    def capacity(self, job: OrdinaryJob) -> dict[str, Any]:
        """Rows per second at which one more row costs as much time as it takes to arrive."""
        few, many = job.probe_rows
        # The larger first: it compiles more.
        large_s, small_s = (self._probe_s(job, rows, "probe") for rows in (many, few))
        carried_per_s = (many - few) / max(large_s - small_s, 1e-3)
        print(f"{job.name}: carries {format_rate(carried_per_s)}", file=sys.stderr)
        return {
            "workload": job.name,
            "carried_per_s": carried_per_s,
            "rows": [few, many],
            "duration_s": [small_s, large_s],
        }

    def _probe_s(self, job: OrdinaryJob, num_rows: int, why: str) -> float:
        stream = backlog_stream(num_rows, PROBED_RATE_PER_S)
        if job.source == FILES:
            # The limit of a batch is in files.
            stream = backlog_stream(max(num_rows // job.probe_rows[0], 1))
        self._compiled.add(job.name)
        query = self.query(job, f"{why}/{job.name}/{num_rows}", stream, 0.0, _PROBED_PARTITIONS)
        try:
            with self._backlog(query):
                return self._usual_duration_s(query)
        finally:
            shutil.rmtree(query.place.output.parent, ignore_errors=True)

    def _usual_duration_s(self, query: OrdinaryQuery) -> float:
        """Of the batches of a short run, or of a longer one if none ended in it."""
        try:
            return usual_duration_s(self.spark, query, run_s=PROBE_S, folder=self.folder)
        except HeadwayError:
            return usual_duration_s(self.spark, query, run_s=LONG_PROBE_S, folder=self.folder)

    @contextmanager
    def _backlog(self, query: OrdinaryQuery) -> Iterator[None]:
        """What a probe reads is there before it starts."""
        if query.job.source == FILES:
            fill(query.place.landing, _FILES_OF_PROBE, query.job.probe_rows[0])
        elif query.job.source == KAFKA:
            with self._flow(query, query.job.probe_rows[1] / 2.0):
                time.sleep(_FILLING_S)
        yield

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
