"""The jobs of a fleet: how many executors each needs in every hour of a day."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from headway.errors import InputError

if TYPE_CHECKING:
    from headway.domain import JobProfile, Promise
    from headway.fleet.steps import Steps
    from headway.spec.fleet_parts import FleetMember
    from headway.spec.kinds import BatchJob, CapacityPlan, StreamingJob
    from headway.spec.kinds.capacity import FleetEntry

_MOST_EXECUTORS = 256
# Batch jobs are wider, and cheaper to plan.
_MOST_BATCH_EXECUTORS = 1024
_DEFAULT_CORES = 4


class FleetJob(Protocol):
    """What a fleet asks of a job, of whatever kind."""

    entry: FleetEntry
    cores: int
    memory_bytes: int | None
    why: str

    @property
    def promise(self) -> str:
        """What it promises, in words."""

    @property
    def range_ratios(self) -> tuple[float, float]:
        """Low and high end of its range over the middle."""

    def looser(self, ratio: float) -> FleetJob:
        """The job with a promise that is looser by a ratio."""

    def executors(self, speed: float, scale: float, end: str) -> tuple[int, ...] | None:
        """Executors in each hour, at a speed of cores and a scale of what is to do.

        ``end`` is the end of its range that is taken: ``mid`` or ``high``. None where no number
        of executors keeps the promise; ``why`` then says so.
        """


def job_of(member: FleetMember, spec: CapacityPlan) -> FleetJob:
    """A job of a fleet, with executors of the size that its pools have.

    Raises
    ------
    InputError
        If its pools have executors of different sizes.
    """
    from headway.spec.kinds import StreamingJob
    from headway.spec.parts import cluster_of

    entry, job = member.entry, member.job
    cluster = cluster_of(job)
    pools = [pool for pool in spec.pools if not entry.pools or pool.name in entry.pools]
    sizes = {pool.cores_per_executor for pool in pools if pool.cores_per_executor is not None}
    if len(sizes) > 1:
        raise InputError(
            f"job {entry.name!r}: its pools have executors of {sorted(sizes)} cores; "
            "expected one size, name one pool"
        )
    asked = next(iter(sizes), None)
    memory_bytes = None
    if cluster is not None:
        asked = asked or cluster.cores_per_executor
        memory_bytes = cluster.executor_memory_bytes
    if isinstance(job, StreamingJob):
        return _streaming(entry, job, asked, memory_bytes)
    return _batch(entry, job, asked, memory_bytes)


@dataclass(kw_only=True)
class StreamingNeeds:
    """A streaming job: executors by its frontier under the promise."""

    entry: FleetEntry
    job: StreamingJob
    profile: JobProfile
    cores: int
    memory_bytes: int | None
    why: str = ""
    known: dict[tuple[float, float], Steps] = field(default_factory=dict)

    @property
    def promise(self) -> str:
        """The targets."""
        return " and ".join(map(str, self.job.targets))

    @property
    def range_ratios(self) -> tuple[float, float]:
        """Of the rate of the busiest hour."""
        from headway.spec.kinds.rates import peak_rate

        rate = peak_rate(self.job.rate)
        return rate.low / rate.mid, rate.high / rate.mid

    def looser(self, ratio: float) -> StreamingNeeds:
        """The job with targets that are looser by a ratio."""
        targets = tuple(_looser(target, ratio) for target in self.job.targets)
        return replace(self, job=replace(self.job, targets=targets), known={})

    def executors(self, speed: float, scale: float, end: str) -> tuple[int, ...] | None:
        """Executors in each hour; a job that runs has one at least."""
        from headway.spec.kinds.rates import hourly_rates

        rates = [getattr(rate, end) * scale for rate in hourly_rates(self.job.rate)]
        steps = self._steps(speed, max(rates))
        found = [steps.executors_for(rate) for rate in rates]
        if any(each is None for each in found):
            return None
        return tuple(each for each in found if each is not None)

    def _steps(self, speed: float, peak_per_s: float) -> Steps:
        """The frontier up to a peak, or up to a higher one that was asked for before."""
        for (known_speed, known_peak_per_s), steps in self.known.items():
            if known_speed == speed and known_peak_per_s >= peak_per_s and steps.points:
                return steps
        if (speed, peak_per_s) not in self.known:
            self.known[speed, peak_per_s] = self._planned(speed, peak_per_s)
        return self.known[speed, peak_per_s]

    def _planned(self, speed: float, peak_per_s: float) -> Steps:
        from headway.api.settings import plan
        from headway.domain import NodeType
        from headway.fleet.steps import Steps

        # A node that is one executor: how many of them fit on what is bought comes later.
        executor = NodeType(
            name="executor", cores=self.cores, relative_core_speed=speed, executors_per_node=1
        )
        found = plan(
            self.profile,
            rate=peak_per_s,
            target=self.job.targets,
            max_nodes=_MOST_EXECUTORS,
            node_types=[executor],
            cores=self.cores,
            partitions=self.job.pinned.shuffle_partitions,
            trigger=self.job.pinned.trigger_s,
            confidence=self.job.confidence,
            checkpoint=self.job.checkpoint,
        )
        if not found.feasible:
            self.why = "; ".join(found.binding)
            return Steps(points=())
        points = {point.nodes: point.sustainable_rate_per_s for point in found.frontier}
        points[found.nodes] = max(points.get(found.nodes, 0.0), peak_per_s)
        return Steps(points=tuple(sorted(points.items())))


@dataclass(kw_only=True)
class BatchNeeds:
    """A batch job: executors by its deadline, in the hours that it may run."""

    entry: FleetEntry
    job: BatchJob
    cores: int
    memory_bytes: int | None
    why: str = ""

    @property
    def promise(self) -> str:
        """The deadline."""
        from headway.units import format_duration

        return f"deadline <= {format_duration(self.job.deadline_s)}"

    @property
    def range_ratios(self) -> tuple[float, float]:
        """Of the work that is declared."""
        if self.job.declared is None:
            return 1.0, 1.0
        work = self.job.declared.work_s
        return work.low / work.mid, work.high / work.mid

    def looser(self, ratio: float) -> BatchNeeds:
        """The job with a later deadline."""
        return replace(self, job=replace(self.job, deadline_s=self.job.deadline_s * ratio))

    def executors(self, speed: float, scale: float, end: str) -> tuple[int, ...] | None:
        """Executors in each hour from its start to its deadline, none in the others."""
        from headway.fleet.nouns import HOURS_PER_DAY

        deadline_s = self.job.deadline_s
        needed = self._needed(speed, scale, end)
        if needed is None:
            return None
        hours = min(math.ceil(deadline_s / 3600.0), HOURS_PER_DAY)
        busy = {(self.job.start_hour + hour) % HOURS_PER_DAY for hour in range(hours)}
        return tuple(needed if hour in busy else 0 for hour in range(HOURS_PER_DAY))

    def _needed(self, speed: float, scale: float, end: str) -> int | None:
        from headway.api.deadlines import plan_deadline
        from headway.domain import Deadline, NodeType
        from headway.spec.declared_batch import declared_application
        from headway.spec.parts import application_profile_of
        from headway.units import counted, format_duration

        name, job = self.entry.name, self.job
        if job.declared is None:
            # More to do than was seen is as uncertain as slower cores.
            profile, speed = application_profile_of(name, job), speed / scale
        else:
            profile = declared_application(
                name, job.declared, job.deadline_s, end=end, work_ratio=scale
            )
        executor = NodeType(
            name="executor", cores=self.cores, relative_core_speed=speed, executors_per_node=1
        )
        found = plan_deadline(
            profile,
            target=Deadline(limit_s=self.job.deadline_s),
            max_nodes=_MOST_BATCH_EXECUTORS,
            node_types=[executor],
            cores=self.cores,
            confidence=self.job.confidence,
        )
        if found.feasible:
            return found.nodes
        self.why = (
            f"no number of executors keeps {self.promise}: the shortest run takes up to "
            f"{format_duration(found.run.planned_s)}, with {counted(found.nodes, 'executor')}"
        )
        return None


def _looser(promise: Promise, ratio: float) -> Promise:
    from headway.domain import DuringBurst

    if isinstance(promise, DuringBurst):
        target = promise.target
        return replace(promise, target=replace(target, limit_s=target.limit_s * ratio))
    return replace(promise, limit_s=promise.limit_s * ratio)


def _streaming(
    entry: FleetEntry, job: StreamingJob, cores: int | None, memory_bytes: int | None
) -> StreamingNeeds:
    from headway.spec.parts import profile_of
    from headway.units import parse_size_bytes

    profile = profile_of(entry.name, job)
    memory = profile.applications[-1].executor_memory
    if memory_bytes is None and memory is not None:
        memory_bytes = parse_size_bytes(memory)
    return StreamingNeeds(
        entry=entry,
        job=job,
        profile=profile,
        cores=cores or profile.baseline.cores_per_executor,
        memory_bytes=memory_bytes,
    )


def _batch(
    entry: FleetEntry, job: BatchJob, cores: int | None, memory_bytes: int | None
) -> BatchNeeds:
    from headway.spec.parts import application_profile_of
    from headway.units import parse_size_bytes

    profile = application_profile_of(entry.name, job)
    memory = profile.application.executor_memory
    if memory_bytes is None and memory is not None:
        memory_bytes = parse_size_bytes(memory)
    return BatchNeeds(
        entry=entry,
        job=job,
        cores=cores or profile.cluster.cores_per_executor or _DEFAULT_CORES,
        memory_bytes=memory_bytes,
    )
