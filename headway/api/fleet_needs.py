"""The interface of all jobs of a fleet, and what is known of similar jobs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from headway.domain import NodeType
from headway.spec.parts import cluster_of, ending_job_of, profile_of
from headway.units import counted

if TYPE_CHECKING:
    from headway.domain import EndingJob, JobProfile
    from headway.fleet.nouns import Kept, Refusal
    from headway.planner.staircase import Staircase
    from headway.spec.kinds import BatchJob, StreamingJob
    from headway.spec.kinds.capacity import FleetEntry
    from headway.spec.kinds.schedule import ScheduledJob


class FleetJob(Protocol):
    """The interface of a job of a fleet, of any kind."""

    @property
    def entry(self) -> FleetEntry:
        """Its entry in the file."""

    @property
    def cores(self) -> int:
        """Cores of an executor."""

    @property
    def memory_bytes(self) -> int | None:
        """Heap of an executor, if known."""

    @property
    def promise(self) -> str:
        """Its targets, in words."""

    @property
    def range_ratios(self) -> tuple[float, float]:
        """Low and high end of its range, relative to the middle."""

    def looser(self, ratio: float) -> FleetJob:
        """The job with targets that are looser by a ratio."""

    def executors(self, speed: float, scale: float, end: str) -> tuple[int, ...] | None:
        """Executors in each hour, at a core speed and a scale of the work.

        ``end`` is the end of its range that is used: ``mid`` or ``high``. None if no number of
        executors meets the targets.
        """

    def kept(self, speed: float, scale: float, end: str) -> Kept | None:
        """Probability that the busiest hour's executors meet the targets; None if not computed."""

    def why_none(self, speed: float, scale: float, end: str) -> Refusal:
        """Why no number of executors meets the targets, and which targets some would meet."""


class KnownNeeds:
    """What was found for one job, for all jobs that differ from it in name and rates only."""

    def __init__(self) -> None:
        self._profiles: dict[Path, JobProfile] = {}
        self._ending_jobs: dict[tuple[Path, float | None], EndingJob] = {}
        self._places: dict[Hashable, int] = {}
        self.staircases: dict[Hashable, Staircase] = {}
        self.in_time: dict[Hashable, int | None] = {}

    def profile_of(self, name: str, job: StreamingJob | ScheduledJob) -> JobProfile:
        """The profile of a streaming job; a file is read once."""

        if job.profile is None:
            return profile_of(name, job)
        if job.profile not in self._profiles:
            self._profiles[job.profile] = profile_of(name, job)
        return self._profiles[job.profile]

    def ending_job_of(self, name: str, job: BatchJob) -> EndingJob:
        """The profile of a batch job; a file is read once."""

        if job.profile is None:
            return ending_job_of(name, job)
        key = job.profile, job.rows
        if key not in self._ending_jobs:
            self._ending_jobs[key] = ending_job_of(name, job)
        return self._ending_jobs[key]

    def kind_of(self, profile: JobProfile) -> int:
        """A number shared by jobs whose plans differ by the rate only."""
        excluded_fields = ("applications", "arrivals")
        parts = [
            getattr(profile, field.name)
            for field in fields(profile)
            if field.name not in excluded_fields
        ]
        version = profile.applications[-1].spark_version
        key = (*parts, version, replace(profile.arrivals, rate_per_s=1.0))
        return self._places.setdefault(key, len(self._places))


def executor_node(cores: int, speed: float) -> NodeType:
    """A node that is one executor: how many of them fit on a bought node is decided later."""

    # Texts about nodes become texts about executors, "3 nodes of 2 cores" among them.
    return NodeType(
        name=counted(cores, "core"), cores=cores, core_speed_ratio=speed, executors_per_node=1
    )


def executor_size(
    job: StreamingJob | BatchJob, pool_cores: int | None
) -> tuple[int | None, int | None]:
    """Cores and heap of an executor: from the job's pools, or from its own cluster."""

    cluster = cluster_of(job)
    if cluster is None:
        return pool_cores, None
    return pool_cores or cluster.cores_per_executor, cluster.executor_memory_bytes
