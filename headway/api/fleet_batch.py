"""A batch job of a fleet: the fewest executors that meet its deadline, in the hours it may run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from headway.api.arguments import require_room_for_tasks
from headway.api.fleet_needs import FleetJob, KnownNeeds, executor_node, executor_size
from headway.api.plan import plan
from headway.assumptions.resources import FLEET_BATCH_EXECUTORS, FLEET_EXECUTOR_CORES
from headway.domain import Deadline, EndingJob
from headway.errors import InputError
from headway.planner.kinds.batch_run_time import run_time_of
from headway.planner.kinds.deadline import fewest_in_time, with_room_for_state
from headway.planner.question import SearchSpace
from headway.spec.declared_batch import declared_application
from headway.spec.kinds.capacity import FleetEntry
from headway.spec.kinds.jobs import BatchJob
from headway.spec.parts import cluster_of
from headway.units import HOURS_PER_DAY, S_PER_HOUR, counted, format_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNeeds(FleetJob):
    """A batch job: executors by its deadline, in the hours that it may run."""

    job: BatchJob

    @property
    def promise(self) -> str:
        """The deadline."""
        return str(self._deadline)

    @property
    def _deadline(self) -> Deadline:
        return Deadline(limit_s=self.job.deadline_s)

    @property
    def range_ratios(self) -> tuple[float, float]:
        """Range of the declared work."""
        if self.job.declared is None:
            return 1.0, 1.0
        work = self.job.declared.work_s
        return work.low / work.mid, work.high / work.mid

    def looser(self, ratio: float) -> BatchNeeds:
        """The job with a later deadline."""
        return replace(self, job=replace(self.job, deadline_s=self.job.deadline_s * ratio))

    def executors(self, speed: float) -> tuple[int, ...] | None:
        """Executors in each hour from its start to its deadline, none in other hours.

        With a deadline of more than a day the run of the day before may still be going on.
        """
        num_executors = self._needed(speed)
        if num_executors is None:
            return None
        executors_by_hour = [0] * HOURS_PER_DAY
        for hour in range(math.ceil(self.job.deadline_s / S_PER_HOUR)):
            executors_by_hour[(self.job.start_hour + hour) % HOURS_PER_DAY] += num_executors
        return tuple(executors_by_hour)

    def _needed(self, speed: float) -> int | None:
        """Executors of a run; None if no number meets the deadline."""
        job = self.job
        key = (
            *("batch job", job.profile, job.declared, job.rows, job.deadline_s, job.confidence),
            *(self.cores, speed, self.scale, self.end),
        )
        return self.known_needs.once(key, lambda: self._fewest(speed))

    def kept(self, speed: float) -> float | None:
        """Probability that its executors meet the deadline; over the whole ranges if declared."""
        num_executors = self._needed(speed)
        if num_executors is None:
            return None
        profile, planned_speed = self._profile_and_speed(speed, end=None)
        slots = self._space(profile, planned_speed).num_slots(num_executors)
        run_time = run_time_of(profile, planned_speed)
        probability = run_time.kept_probability(slots, self.job.deadline_s)
        if self.job.declared is None:
            probability = max(probability, self.job.confidence)
        return probability

    def why_none(self, speed: float) -> tuple[str, str]:
        """How long the shortest run takes."""
        profile, planned_speed = self._profile_and_speed(speed, self.end)
        answer = plan(
            profile,
            target=self._deadline,
            max_nodes=FLEET_BATCH_EXECUTORS.value,
            node_types=[executor_node(self.cores, planned_speed)],
            cores=self.cores,
            confidence=self.job.confidence,
        )
        why = (
            f"no number of executors meets {self.promise}: the shortest run takes up to "
            f"{format_duration(answer.run.planned_s)}, with {counted(answer.nodes, 'executor')}"
        )
        return why, f"deadline <= {self._enough_min(answer.run.planned_s, speed)} min"

    def _enough_min(self, shortest_s: float, speed: float) -> int:
        """A deadline in whole minutes that some executors meet: the run time, and little more. A
        declared job is planned again for each, since its profile depends on its deadline."""
        minutes = math.ceil(shortest_s / 60.0)
        while True:
            job = replace(self.job, deadline_s=60.0 * minutes)
            if replace(self, job=job).executors(speed) is not None:
                return minutes
            minutes = math.ceil(1.05 * minutes) + 1

    def _fewest(self, speed: float) -> int | None:
        profile, speed = self._profile_and_speed(speed, self.end)
        require_room_for_tasks(self.cores, profile.slots.task_cpus)
        space = self._space(profile, speed)
        return fewest_in_time(profile, self._deadline, space, self.job.confidence)

    def _space(self, profile: EndingJob, speed: float) -> SearchSpace:
        """Nodes of one executor each, of cores of a speed."""
        space = SearchSpace(
            max_nodes=FLEET_BATCH_EXECUTORS.value,
            executors_per_node=1,
            cores_per_executor=self.cores,
            task_cpus=profile.slots.task_cpus,
            tasks_per_executor=profile.slots.tasks_per_executor,
            node_type=executor_node(self.cores, speed),
            executor_memory_bytes=self.memory_bytes,
        )
        with_room = with_room_for_state(space, profile)
        if isinstance(with_room, str):
            raise InputError(with_room)
        return with_room

    def _profile_and_speed(self, speed: float, end: str | None) -> tuple[EndingJob, float]:
        """What is to be done, and how fast; without an ``end``, all that is declared."""
        name, job, declared, scale = self.entry.name, self.job, self.job.declared, self.scale
        if declared is None:
            profile = self.known_needs.ending_job_of(name, job)
            if profile.backlog is not None:
                backlog_rows = scale * profile.backlog.backlog_rows
                return replace(profile.backlog, backlog_rows=backlog_rows), speed
            # More to do than was seen is as uncertain as slower cores.
            return profile, speed / scale
        application = self.known_needs.once(
            ("declared", name, declared, job.deadline_s, scale, end),
            lambda: declared_application(name, declared, job.deadline_s, end=end, work_ratio=scale),
        )
        return application, speed


def batch_needs(
    entry: FleetEntry, job: BatchJob, pool_cores: int | None, known_needs: KnownNeeds
) -> BatchNeeds:
    """A batch job as a fleet needs it; executors are as profiled unless stated otherwise."""
    cluster = cluster_of(job)
    profile = known_needs.ending_job_of(entry.name, job)
    cores, memory_bytes = executor_size(cluster, pool_cores, profile.application)
    return BatchNeeds(
        entry=entry,
        job=job,
        cores=cores or profile.slots.cores_per_executor or FLEET_EXECUTOR_CORES.value,
        memory_bytes=memory_bytes,
        known_needs=known_needs,
    )
