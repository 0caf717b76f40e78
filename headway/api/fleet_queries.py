"""An application of several queries in a fleet: the fewest executors that meet all targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.api.fleet_needs import FleetJob, KnownNeeds, executor_size
from headway.api.fleet_streaming import looser_promise
from headway.api.schedule import scheduled_query
from headway.assumptions.advice import LOOSER_RATIOS
from headway.assumptions.resources import FLEET_STREAM_EXECUTORS
from headway.domain import JobProfile, Policy
from headway.domain.plan_parts import PlannedDriver
from headway.models.simulation.gate import QueryWork
from headway.planner.purchase import at_core_speed
from headway.spec.kinds.capacity import FleetEntry
from headway.spec.kinds.schedule import QuerySchedule
from headway.turns.query_work import query_work, shared_driver
from headway.turns.scheduling import ASKED, fewest_nodes
from headway.units import HOURS_PER_DAY, counted

_POLICIES: dict[str, tuple[Policy, ...]] = {"none": (), "stagger": (Policy.STAGGER,), "any": ASKED}
_WORDS = {
    "none": "with Spark by itself",
    "stagger": "with triggers shifted apart",
    "any": "under any policy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriesNeeds(FleetJob):
    """Queries of one application: the same executors in each hour, with or without turns."""

    job: QuerySchedule
    profiles: tuple[JobProfile, ...]

    @property
    def promise(self) -> str:
        """The targets of all queries, each once."""
        targets = (str(target) for query in self.job.queries for target in query.targets)
        return " and ".join(dict.fromkeys(targets))

    @property
    def range_ratios(self) -> tuple[float, float]:
        """Range of the rates of all queries together."""
        rates = [query.rate for query in self.job.queries]
        mid = sum(rate.mid for rate in rates)
        return sum(rate.low for rate in rates) / mid, sum(rate.high for rate in rates) / mid

    def looser(self, ratio: float) -> QueriesNeeds:
        """The application with targets that are looser by a ratio."""
        queries = tuple(
            replace(query, targets=tuple(looser_promise(target, ratio) for target in query.targets))
            for query in self.job.queries
        )
        return replace(self, job=replace(self.job, queries=queries))

    def executors(self, speed: float) -> tuple[int, ...] | None:
        """Executors in each hour; the rates of a QuerySchedule apply to every hour."""
        entry = self.entry
        key = ("queries", entry.file, self.promise, entry.turns, self.cores, self.scale, self.end)
        num_executors = self.known_needs.once((*key, speed), lambda: self._fewest(speed))
        return None if num_executors is None else (num_executors,) * HOURS_PER_DAY

    def _fewest(self, speed: float) -> int | None:
        """The fewest executors; None if the driver is saturated, or no number is enough."""
        if self._driver(speed).is_saturated:
            return None
        return fewest_nodes(
            lambda cores: self._works(cores, speed),
            _POLICIES[self.entry.turns],
            self.cores,
            most_nodes=FLEET_STREAM_EXECUTORS.value,
        )

    def why_none(self, speed: float) -> tuple[str, str]:
        """The number of queries, and what would be feasible instead."""
        queries = counted(len(self.profiles), "query", "queries")
        driver = self._driver(speed)
        if driver.is_saturated:
            why = (
                f"{queries} saturate a driver of {counted(driver.cores, 'core')} on any "
                f"number of executors: they take {driver.busy_cores:.3g} cores of it"
            )
            return why, f"driver_cores: {driver.needed_cores}"
        why = f"no number of executors meets the targets of {queries} ({self.promise}) "
        return why + _WORDS[self.entry.turns], self._instead(speed)

    def _instead(self, speed: float) -> str:
        if self.entry.turns != "any":
            turns = replace(self, entry=replace(self.entry, turns="any"))
            if turns.executors(speed) is not None:
                return "turns: any"
        for ratio in LOOSER_RATIOS.value:
            looser = self.looser(ratio)
            if looser.executors(speed) is not None:
                return looser.promise
        return "looser targets, or lower rates"

    def _driver(self, speed: float) -> PlannedDriver:
        """The driver of the application; without driver_cores it has as many as it needs."""
        works = self._works(self.cores, speed)
        return shared_driver(
            self.profiles, works, self.cores, self.job.driver_cores, is_cluster=True
        )

    def _works(self, cores: int, speed: float) -> Sequence[QueryWork]:
        return [
            query_work(
                at_core_speed(profile, speed),
                scheduled_query(query, profile),
                getattr(query.rate, self.end) * self.scale,
                cores,
            )
            for query, profile in zip(self.job.queries, self.profiles, strict=True)
        ]


def queries_needs(
    entry: FleetEntry, job: QuerySchedule, pool_cores: int | None, known_needs: KnownNeeds
) -> QueriesNeeds:
    """The queries of an application as a fleet needs them; executors are as profiled."""
    profiles = tuple(known_needs.profile_of(query.name, query) for query in job.queries)
    cores, memory_bytes = executor_size(None, pool_cores, profiles[0].application)
    return QueriesNeeds(
        entry=entry,
        job=job,
        profiles=profiles,
        cores=cores or job.cores_per_node or profiles[0].baseline.cores_per_executor,
        memory_bytes=memory_bytes,
        known_needs=known_needs,
    )
