"""An application of several queries in a fleet: the fewest executors that meet all targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headway.api.fleet_streaming import looser_promise
from headway.api.schedule import scheduled_query
from headway.assumptions.advice import LOOSER_RATIOS
from headway.assumptions.resources import FLEET_STREAM_EXECUTORS
from headway.domain import Policy
from headway.fleet.nouns import Refusal
from headway.planner.purchase import at_core_speed
from headway.turns.query_work import query_work
from headway.turns.scheduling import ASKED, fewest_nodes
from headway.units import HOURS_PER_DAY, counted, spark_memory_bytes

if TYPE_CHECKING:
    from headway.api.fleet_needs import KnownNeeds
    from headway.domain import JobProfile
    from headway.models.simulation.batch_parts import QueryWork
    from headway.spec.kinds import QuerySchedule
    from headway.spec.kinds.capacity import FleetEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriesNeeds:
    """Queries of one application: the same executors in each hour, with or without turns."""

    entry: FleetEntry
    job: QuerySchedule
    profiles: tuple[JobProfile, ...]
    cores: int
    memory_bytes: int | None
    known: KnownNeeds

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

    def executors(self, speed: float, scale: float, end: str) -> tuple[int, ...] | None:
        """Executors in each hour; the rates of a QuerySchedule apply to every hour."""
        key = (self.entry.file, self.promise, self.entry.turns, self.cores, speed, scale, end)
        if key not in self.known.in_time:
            self.known.in_time[key] = self._fewest(speed, scale, end)
        num_executors = self.known.in_time[key]
        return None if num_executors is None else (num_executors,) * HOURS_PER_DAY

    def kept(self, speed: float, scale: float, end: str) -> None:
        """Not computed for queries of one application."""

    def why_none(self, speed: float, scale: float, end: str) -> Refusal:
        """The number of queries, and what would be feasible instead."""

        queries = counted(len(self.profiles), "query", "queries")
        return Refusal(
            why=f"no number of executors meets the targets of {queries} ({self.promise}) "
            f"{self._turns_words}",
            instead=self._instead(speed, scale, end),
        )

    @property
    def _turns_words(self) -> str:
        return {
            "none": "with Spark by itself",
            "stagger": "with triggers shifted apart",
            "any": "under any policy",
        }[self.entry.turns]

    def _instead(self, speed: float, scale: float, end: str) -> str:
        if self.entry.turns != "any":
            turns = replace(self, entry=replace(self.entry, turns="any"))
            if turns.executors(speed, scale, end) is not None:
                return "turns: any"
        for ratio in LOOSER_RATIOS.value:
            looser = self.looser(ratio)
            if looser.executors(speed, scale, end) is not None:
                return looser.promise
        return "looser targets, or lower rates"

    def _fewest(self, speed: float, scale: float, end: str) -> int | None:

        def works_on(cores: int) -> Sequence[QueryWork]:
            return self._works(cores, speed, scale, end)

        return fewest_nodes(
            works_on, self._policies(), self.cores, most_nodes=FLEET_STREAM_EXECUTORS.value
        )

    def _policies(self) -> tuple[Policy, ...]:

        return {"none": (), "stagger": (Policy.STAGGER,), "any": ASKED}[self.entry.turns]

    def _works(self, cores: int, speed: float, scale: float, end: str) -> list[QueryWork]:

        return [
            query_work(
                at_core_speed(profile, speed),
                scheduled_query(query, profile),
                getattr(query.rate, end) * scale,
                cores,
            )
            for query, profile in zip(self.job.queries, self.profiles, strict=True)
        ]


def queries_needs(
    entry: FleetEntry, job: QuerySchedule, pool_cores: int | None, known_needs: KnownNeeds
) -> QueriesNeeds:
    """The queries of an application as a fleet needs them; executors are as profiled."""

    profiles = tuple(known_needs.profile_of(query.name, query) for query in job.queries)
    memory = profiles[0].applications[-1].executor_memory
    return QueriesNeeds(
        entry=entry,
        job=job,
        profiles=profiles,
        cores=pool_cores or job.cores_per_node or profiles[0].baseline.cores_per_executor,
        memory_bytes=None if memory is None else spark_memory_bytes(memory),
        known=known_needs,
    )
