"""The fleet of a capacity plan's file, planned: what its jobs need, and the cheapest nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from headway.api.fleet_batch import batch_needs
from headway.api.fleet_needs import FleetJob, KnownNeeds
from headway.api.fleet_queries import queries_needs
from headway.api.fleet_streaming import search_together, streaming_needs
from headway.errors import InputError
from headway.fleet.infeasible import reasoned
from headway.fleet.nouns import Capacity, Fleet, FleetPlan, Infeasible, JobWrites
from headway.fleet.plan_fleet import plan_fleet, serve_most
from headway.fleet.prices import MOST_PAIRS, is_planned_again
from headway.fleet.problem import load_solver
from headway.fleet.scenarios import drawn_ratios, plan_for_chance, plan_of_least_regret
from headway.spec.fleet_form import FleetForm, JobNeeds, fleet_members, nodes_on_offer
from headway.spec.kinds.capacity import CapacityPlan, FleetEntry, PoolEntry
from headway.spec.kinds.jobs import BatchJob, StreamingJob
from headway.spec.kinds.schedule import QuerySchedule
from headway.spec.parts import catalog_at
from headway.units import counted

_NEEDS_OF: dict[type, Callable[[Any, Any, int | None, KnownNeeds], FleetJob]] = {
    StreamingJob: streaming_needs,
    BatchJob: batch_needs,
    QuerySchedule: queries_needs,
}
# Rules for ranges by which a plan is made for one fleet.
ONE_FLEET = ("high", "mid")


class FleetMaker:
    """Makes fleets of one file for several growths and draws; what jobs need is searched once.

    At speeds of cores that are not searched yet, needs are lower bounds. With these a fleet is
    cheaper than it is, so what no plan of it can cost, no plan of the fleet itself can cost either.
    """

    def __init__(self, name: str, spec: CapacityPlan, known_needs: KnownNeeds) -> None:
        self.name, self.spec, self.known_needs = name, spec, known_needs
        self.catalog = catalog_at(spec.catalog)
        members = tuple(fleet_members(spec))
        self.nodes = nodes_on_offer(spec, self.catalog)
        self.speeds = sorted({node.core_speed_ratio for node in self.nodes})
        self.jobs = [_job_of(entry, job, spec, known_needs) for entry, job in members]
        self.form = FleetForm(spec, self.nodes, [job.needs({}) for job in self.jobs])
        self._unsearched, self._drawn_jobs = set(self.speeds), list[FleetJob]()

    def search_ahead(self, growths: Sequence[float]) -> None:
        """Search at once what the jobs need at some growths, in every draw."""
        self._drawn_jobs = [
            job
            for growth in growths
            for ratios in self._draws
            for job in self.drawn_jobs(growth, ratios)
        ]
        speeds = [self.form.speed_of_cheapest_core] if self._is_large else self.speeds
        self._search(speeds, first=load_solver)

    def _search(
        self, speeds: Collection[float], *, first: Callable[[], object] | None = None
    ) -> None:
        """Search some speeds at once, and what bounds the others; do something else ``first``."""
        self._unsearched -= set(speeds)
        search_together(
            (
                (job, speed, speed not in self._unsearched)
                for speed in (*speeds, *self._unsearched)
                for job in self._drawn_jobs
            ),
            self.known_needs,
            first=first,
        )

    @property
    def _is_large(self) -> bool:
        """Whether to search only the speeds that a plan may use."""
        # Small fleets are planned again with other limits, and a rule for ranges compares plans of
        # several fleets: both may use any speed.
        rule, num_pairs = self.spec.scenarios.rule, len(self.jobs) * len(self.form.speeds)
        return rule in ONE_FLEET and self.spec.objective == "cost" and num_pairs > MOST_PAIRS

    def planned(self, growth: float) -> Capacity:
        """The plan by the file's rule for ranges, and the rule in words."""
        rule, draws = self.spec.scenarios.rule, self._draws
        if rule in ONE_FLEET:
            text = f"every range at its {'upper end' if rule == 'high' else 'middle'}"
            jobs = self.drawn_jobs(growth, draws[0])
            plan, fleet = self._planned_for_one(jobs)
            return self._reasoned(plan, fleet, text, jobs)
        plan, fleet, text = self._planned_for(
            [self._fleet(self.drawn_jobs(growth, ratios)) for ratios in draws]
        )
        # What is impossible in any scenario is so with the most that is drawn.
        max_ratios = [max(filter(None, column)) for column in zip(*draws, strict=True)]
        return self._reasoned(plan, fleet, text, self.drawn_jobs(growth, max_ratios))

    def _planned_for_one(self, jobs: Sequence[FleetJob]) -> tuple[FleetPlan | Infeasible, Fleet]:
        """The plan for a fleet, of which only those speeds are searched that it may use."""
        while True:
            fleet = self._fleet(jobs)
            plan, unsearched = self._solve(fleet), set(self._unsearched)
            # Reasons, and prices of a small fleet's limits, are about all speeds.
            if plan.feasible and not is_planned_again(fleet):
                unsearched &= set(self.form.speeds[plan.supply_of].tolist())
                if unsearched:
                    of_searched = self._plan_of_searched(fleet, plan.bound_per_day)
                    if of_searched is not None:
                        return of_searched, fleet
            if not unsearched:
                return plan, fleet
            self._search(unsearched)

    def _plan_of_searched(self, fleet: Fleet, bound_per_day: float) -> FleetPlan | None:
        """A plan that uses searched speeds only, if it is within the gap of a bound of all."""
        is_searched = np.isin(self.form.speeds, list(self._unsearched), invert=True)
        allowed = fleet.allowed & is_searched
        if not allowed.any(axis=1).all():
            return None
        plan = self._solve(replace(fleet, allowed=allowed))
        if not plan.feasible:
            return None
        plan = replace(plan, bound_per_day=min(bound_per_day, plan.bill.cost_per_day))
        return plan if plan.gap_ratio <= self.spec.gap_ratio else None

    @cached_property
    def _draws(self) -> list[list[float | None]]:
        """Each job's draws on the middle of its range; for one fleet, a single one without them."""
        rule = self.spec.scenarios
        if rule.rule in ONE_FLEET:
            return [[None] * len(self.jobs)]
        ranges = [job.range_ratios for job in self.jobs]
        return [list(map(float, row)) for row in drawn_ratios(ranges, rule.count, rule.seed)]

    def drawn_jobs(
        self, growth: float, ratios: Sequence[float | None] | None = None
    ) -> list[FleetJob]:
        """The jobs at a growth; ``ratios`` are each one's draw on the middle of its range."""
        spec = self.spec
        jobs: list[FleetJob] = []
        for job, ratio in zip(self.jobs, ratios or [None] * len(self.jobs), strict=True):
            scale = growth * spec.growth_ratio * job.entry.growth_ratio * (1 + spec.headroom_ratio)
            if ratio is not None:
                jobs.append(replace(job, scale=scale * ratio, end="mid"))
            else:
                end = "mid" if spec.scenarios.rule == "mid" else "high"
                jobs.append(replace(job, scale=scale, end=end))
        return jobs

    def _fleet(self, jobs: Sequence[FleetJob]) -> Fleet:
        """The fleet of some drawn jobs, with what they pay for requests as far as known."""
        writes = map(self.most_writes, jobs)
        fees = (0.0 if written is None else written.cost_per_day or 0.0 for written in writes)
        return replace(
            self.form.fleet(list(map(self._needs, jobs))),
            fees_per_day=tuple(fees),
            currency=self.catalog.currency,
        )

    def _planned_for(self, fleets: Sequence[Fleet]) -> tuple[FleetPlan | Infeasible, Fleet, str]:
        rule = self.spec.scenarios
        text = f"{counted(rule.count, 'scenario')} drawn with random seed {rule.seed}"
        if rule.rule == "chance":
            answer = plan_for_chance(fleets, rule.confidence, self._solve)
            if answer.plan.feasible:
                text = f"covers {answer.num_carried} of {text}"
            else:
                text = f"{text}, {rule.confidence:.0%} of them to be covered"
        else:
            answer = plan_of_least_regret(fleets, rule.shortage_ratio, self._solve)
            text = f"least regret over {text}"
            if answer.plan.feasible:
                text += (
                    f": at worst {answer.worst_per_day:.2f} {self.catalog.currency} per day too "
                    "much; short of nodes in "
                    f"{answer.num_short}, a missing node counting {rule.shortage_ratio:g} times "
                    "its price"
                )
        return answer.plan, answer.fleet, text

    def _reasoned(
        self, plan: FleetPlan | Infeasible, fleet: Fleet, scenarios: str, jobs: Sequence[FleetJob]
    ) -> Capacity:
        """The plan, with the reasons why jobs can run nowhere, and what would suffice for each."""
        refusals = {
            job.entry.name: self.form.why_nowhere(self._needs(job))
            for job, allowed in zip(jobs, fleet.allowed, strict=True)
            if not allowed.any()
        }
        if not plan.feasible and plan.impossible:
            relaxations = tuple(f"{name}: {refusals[name][1]}" for name in plan.impossible)
            plan = reasoned(replace(plan, relaxations=relaxations))
        return Capacity(
            name=self.name,
            currency=self.catalog.currency,
            prices_of=self.catalog.date,
            fleet=fleet,
            plan=plan,
            why_impossible={name: why for name, (why, _) in refusals.items()},
            scenarios=scenarios,
            gap_asked_ratio=self.spec.gap_ratio,
            notes=tuple(_notes(self.spec.pools)),
        )

    def with_executors(
        self, fleet: Fleet, index: int, executors: Mapping[float, tuple[int, ...] | None]
    ) -> Fleet:
        """The fleet with other executors of the job at an index, by the speed of their cores."""
        units, allowed = fleet.units.copy(), fleet.allowed.copy()
        units[index], allowed[index] = self.form.row(self.jobs[index].needs(executors))
        return replace(fleet, units=units, allowed=allowed)

    def most_writes(self, job: FleetJob) -> JobWrites | None:
        """What a job writes on the nodes on which that is most; None if that is unknown."""
        speeds = (speed for speed in self.speeds if speed not in self._unsearched)
        writes = (job.writes(speed, self.catalog) for speed in speeds)
        return max(
            (job_writes for job_writes in writes if job_writes is not None),
            key=lambda job_writes: job_writes.files_per_day,
            default=None,
        )

    def _needs(self, job: FleetJob) -> JobNeeds:
        bounded: Collection[float] = self._unsearched if job.takes_search else ()
        return job.needs(
            {
                speed: job.least_executors(speed) if speed in bounded else job.executors(speed)
                for speed in self.speeds
            }
        )

    def _solve(self, fleet: Fleet) -> FleetPlan | Infeasible:
        if self.spec.objective == "served":
            return serve_most(fleet, gap_ratio=self.spec.gap_ratio)
        return plan_fleet(fleet, gap_ratio=self.spec.gap_ratio)


def _notes(pools: Sequence[PoolEntry]) -> Iterator[str]:
    """That no core is reserved on the nodes of some pools, as platforms would."""
    names = [pool.name for pool in pools if pool.reserved_cores == 0]
    if names:
        pools_text = f"pool{'s' if len(names) > 1 else ''} {', '.join(names)}"
        yield (
            f"no core of a node is reserved for the system in {pools_text}, whereas headway plan "
            "reserves what the platform takes: see reserved_cores and reserved_memory of a pool"
        )


def _job_of(
    entry: FleetEntry,
    job: StreamingJob | BatchJob | QuerySchedule,
    spec: CapacityPlan,
    known_needs: KnownNeeds,
) -> FleetJob:
    """A job of a fleet, with executors of the one size that its pools have."""
    pools = [pool for pool in spec.pools if not entry.pools or pool.name in entry.pools]
    sizes = {pool.cores_per_executor for pool in pools if pool.cores_per_executor is not None}
    if len(sizes) > 1:
        raise InputError(
            f"job {entry.name!r}: its pools have executors of {sorted(sizes)} cores; "
            "expected one size, name one pool"
        )
    return _NEEDS_OF[type(job)](entry, job, next(iter(sizes), None), known_needs)
