"""A job of a fleet, whatever its kind, and what was found for similar jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, cast

from headway.domain import Application, EndingJob, JobProfile, NodeType
from headway.fleet.nouns import JobWrites
from headway.processes import AllCores
from headway.spec.fleet_form import JobNeeds
from headway.spec.kinds.capacity import FleetEntry
from headway.spec.kinds.catalog import Cluster, NodeCatalog
from headway.spec.kinds.jobs import BatchJob, StreamingJob
from headway.spec.kinds.schedule import ScheduledJob
from headway.spec.parts import ending_job_of, profile_of
from headway.units import HOURS_PER_DAY, counted, spark_memory_bytes

Need = TypeVar("Need")


class KnownNeeds:
    """What was found for one job, for all jobs that differ from it in name and rates only."""

    def __init__(self, cores: AllCores) -> None:
        self._cores = cores
        self._by_key: dict[Hashable, Any] = {}
        self._kinds: dict[Hashable, int] = {}

    def once(self, key: Hashable, compute: Callable[[], Need]) -> Need:
        """What is computed for a key, which is done for the first of similar jobs only."""
        if key not in self._by_key:
            self._by_key[key] = compute()
        return cast(Need, self._by_key[key])

    def compute_ahead(
        self,
        computations: Mapping[Hashable, Callable[[], Any]],
        *,
        first: Callable[[], object] | None = None,
    ) -> None:
        """Compute on all cores what will be asked for by its key; do something else ``first``."""
        keys = [key for key in computations if key not in self._by_key]
        needs = self._cores.compute([computations[key] for key in keys], first=first)
        self._by_key.update(zip(keys, needs, strict=True))

    def profile_of(self, name: str, job: StreamingJob | ScheduledJob) -> JobProfile:
        """The profile of a streaming job; a file is read once."""
        if job.profile is None:
            return profile_of(name, job)
        return self.once(("profile", job.profile), lambda: profile_of(name, job))

    def ending_job_of(self, name: str, job: BatchJob) -> EndingJob:
        """The profile of a batch job; a file is read once."""
        if job.profile is None:
            return ending_job_of(name, job)
        return self.once(("ending job", job.profile, job.rows), lambda: ending_job_of(name, job))

    def kind_of(self, profile: JobProfile) -> int:
        """A number shared by jobs whose plans differ by the rate only."""
        excluded_fields = ("applications", "arrivals")
        parts = [
            getattr(profile, field.name)
            for field in fields(profile)
            if field.name not in excluded_fields
        ]
        version = profile.application.spark_version
        key = (*parts, version, replace(profile.arrivals, rate_per_s=1.0))
        return self._kinds.setdefault(key, len(self._kinds))


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetJob(ABC):
    """A job of a fleet: its entry in the file, and the size of its executors.

    ``memory_bytes`` is their heap, if known. Its work is ``scale`` times that at the ``end`` of its
    range that is used: ``mid`` or ``high``.
    """

    entry: FleetEntry
    job: Any
    cores: int
    memory_bytes: int | None
    known_needs: KnownNeeds
    scale: float = 1.0
    end: str = "mid"

    def needs(self, executors: Mapping[float, tuple[int, ...] | None]) -> JobNeeds:
        """What it needs, with executors in each hour by the speed of cores."""
        return JobNeeds(
            entry=self.entry,
            cores_per_executor=self.cores,
            executor_memory_bytes=self.memory_bytes,
            executors=executors,
            why_none=self.why_none,
        )

    @property
    def takes_search(self) -> bool:
        """Whether executors take long to compute, compared with a bound of them."""
        return False

    @property
    @abstractmethod
    def promise(self) -> str:
        """Its targets, in words."""

    @property
    @abstractmethod
    def range_ratios(self) -> tuple[float, float]:
        """Low and high end of its range, relative to the middle."""

    @abstractmethod
    def looser(self, ratio: float) -> FleetJob:
        """The job with targets that are looser by a ratio."""

    @abstractmethod
    def executors(self, speed: float) -> tuple[int, ...] | None:
        """Executors in each hour, on cores of a speed; None if no number meets the targets."""

    def least_executors(self, speed: float) -> tuple[int, ...] | None:
        """A lower bound of these that takes no search; None if surely no number is enough."""
        del speed
        return (0,) * HOURS_PER_DAY

    def kept(self, speed: float) -> float | None:
        """Probability that the busiest hour's executors meet the targets; None if not computed."""
        computation = self.kept_computation(speed)
        return None if computation is None else self.known_needs.once(*computation)

    def kept_computation(self, speed: float) -> tuple[Hashable, Callable[[], float]] | None:
        """How this probability is computed, by its key, if that takes long."""
        del speed
        return None

    def writes(self, speed: float, catalog: NodeCatalog) -> JobWrites | None:
        """What it writes in a day to a store that is known; None for other jobs."""
        del speed, catalog
        return None

    @abstractmethod
    def why_none(self, speed: float) -> tuple[str, str]:
        """Why no number of executors meets the targets, and which targets some would meet."""


def executor_node(cores: int, speed: float) -> NodeType:
    """A node that is one executor: how many of them fit on a bought node is decided later."""
    # Texts about nodes become texts about executors, "3 nodes of 2 cores" among them.
    return NodeType(
        name=counted(cores, "core"), cores=cores, core_speed_ratio=speed, executors_per_node=1
    )


def executor_size(
    cluster: Cluster | None, pool_cores: int | None, profiled: Application
) -> tuple[int | None, int | None]:
    """Cores and heap of an executor: from the job's pools, or from its cluster.

    A heap that the cluster does not state is that of the profiled run.
    """
    cores, heap_bytes = pool_cores, None
    if cluster is not None:
        cores, heap_bytes = pool_cores or cluster.cores_per_executor, cluster.executor_memory_bytes
    if heap_bytes is None and profiled.executor_memory is not None:
        heap_bytes = spark_memory_bytes(profiled.executor_memory)
    return cores, heap_bytes
