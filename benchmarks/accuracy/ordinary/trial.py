"""A short trial of each job on a real Spark: that it runs, and what a profile of it says."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from campaign.schedule import Group
from campaign.workloads import Stream
from read_logs import read_logs_of_runs

from headway.errors import HeadwayError
from headway.report.profiles import profile_summary
from headway.runtime.measure import progress_events, wait_while_running
from ordinary.jobs import JOBS, OrdinaryJob
from ordinary.running import JobSession, job_session

RATE_PER_S, TRIGGER_S, PARTITIONS = 1_000.0, 3.0, 4
NUM_BATCHES, MOST_S = 12, 150.0
_LOOK_EVERY_S = 1.0


def trials(names: Sequence[str], folder: Path, rate_per_s: float) -> Iterator[str]:
    """Run the jobs, those of a session in one JVM; a line for each."""
    for session in dict.fromkeys(JOBS[name].session for name in names):
        group = Group(name=f"trial-{session}", master="local[2]", workloads=(), num_slots=2)
        with job_session(group, session, folder / session) as jobs:
            for name in names:
                if JOBS[name].session == session:
                    yield _trial(jobs, JOBS[name], rate_per_s)


def summaries(names: Sequence[str], folder: Path) -> Iterator[str]:
    """What a profile of each trial says, from its event log."""
    for session in dict.fromkeys(JOBS[name].session for name in names):
        log = read_logs_of_runs(folder / session / "log")
        started = sorted({str(batch["query_name"]) for batch in log.collected.batches})
        for name in names:
            if JOBS[name].session != session:
                continue
            yield f"\n{name}: {JOBS[name].does}"
            try:
                queries = [
                    query
                    for query in started
                    if query.startswith(f"trial/{name}@") and query.count("/") == 1
                ]
                yield profile_summary(log.profile(queries[-1:]))
            except HeadwayError as error:
                yield f"no profile: {error}"


def _trial(jobs: JobSession, job: OrdinaryJob, rate_per_s: float) -> str:
    stream = Stream(rate_per_s=rate_per_s)
    query = jobs.query(job, f"trial/{job.name}", stream, TRIGGER_S, PARTITIONS)
    began_s, batches = time.monotonic(), 0
    try:
        with jobs.surroundings(query):
            running = query.start(jobs.spark, jobs.folder)
            try:
                while batches < NUM_BATCHES and time.monotonic() - began_s < MOST_S:
                    wait_while_running(running, _LOOK_EVERY_S)
                    events = progress_events(running)
                    batches = sum(event["numInputRows"] > 0 for event in events)
            finally:
                running.stop()
    except HeadwayError as error:
        return f"{job.name}: failed: {error}"
    finally:
        shutil.rmtree(query.place.output.parent, ignore_errors=True)
    return f"{job.name}: {batches} batches in {time.monotonic() - began_s:.0f} s"
