"""Calls about fleets: what to buy for many jobs, by a capacity plan's file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from headway.api.fleet_batch import batch_needs
from headway.api.fleet_needs import FleetJob, KnownNeeds
from headway.api.fleet_queries import queries_needs
from headway.api.fleet_streaming import search_together, streaming_needs
from headway.assumptions.advice import JUDGED_JOBS, PRICED_TARGETS
from headway.assumptions.planning import LOOSER_TARGET_RATIO
from headway.domain.argument import read_question
from headway.domain.fleet_questions import CapacityQuestion, read_month
from headway.errors import InputError, argument, require_packages
from headway.fleet.infeasible import reasoned
from headway.fleet.nouns import (
    Capacity,
    Fleet,
    FleetPlan,
    GrowthPoint,
    Infeasible,
    JobWrites,
    Kept,
    TargetPrice,
)
from headway.fleet.plan_fleet import plan_fleet, serve_most
from headway.fleet.prices import costs_of_moves, is_planned_again, saving_of_job, shadow_prices
from headway.fleet.problem import load_solver
from headway.fleet.scenarios import drawn_ratios, plan_for_chance, plan_of_least_regret
from headway.processes import AllCores
from headway.spec.fleet_of import FleetForm, JobNeeds, catalog_of, fleet_members, nodes_on_offer
from headway.spec.kinds import BatchJob, CapacityPlan, QuerySchedule, StreamingJob
from headway.spec.kinds.capacity import FleetEntry
from headway.spec.spec_file import load_spec, spec_of

_NEEDS_OF: dict[type, Callable[[Any, Any, int | None, KnownNeeds], FleetJob]] = {
    StreamingJob: streaming_needs,
    BatchJob: batch_needs,
    QuerySchedule: queries_needs,
}
# Rules for ranges by which a plan is made for one fleet.
_ONE_FLEET = ("high", "mid")


def capacity(
    path: str | Path,
    *,
    growth: float | str | None = None,
    by: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Capacity:
    """The cheapest capacity for a fleet.

    Parameters
    ----------
    path : str or Path
        A file of the kind CapacityPlan.
    growth : float or str, optional
        Plan for rates this many times as high, e.g. ``"1.5x"``, on top of the file's own growth.
    by : str, optional
        The month, ``2027-06``, by which they will have grown: the months between are planned too.
    tell : callable, optional
        Called with what is being done.

    Raises
    ------
    InputError
        If the file, or one that it names, is invalid. A fleet that cannot be served is no error:
        the plan then is an ``Infeasible``, with reasons.
    SolverError
        If the solver ends without an answer.
    MissingPackagesError
        If the solver is not installed.
    """
    question = read_question(CapacityQuestion, {"growth": growth, "by": by})
    if question.by_month is not None and question.growth_ratio is None:
        raise InputError(f"{argument('by')} needs {argument('growth')}, e.g. 1.5x")
    growth_ratio = question.growth_ratio or 1.0
    file = load_spec(path)
    spec = spec_of(file, CapacityPlan)
    require_packages("capacity", "planning capacity", "cvxpy", "highspy", "scipy")
    with AllCores() as cores:
        maker = _Maker(file.metadata.name, spec, tell, KnownNeeds(cores))
        growth_of_month = maker.growth_by_month(growth_ratio, question.by_month)
        tell("searching what the jobs need")
        maker.search_ahead([growth_ratio, *growth_of_month.values()])
        tell("solving")
        planned = maker.planned(growth_ratio)
        if planned.plan.feasible and spec.scenarios.rule in _ONE_FLEET:
            planned = maker.with_prices_and_odds(planned, planned.plan, growth_ratio)
        return replace(planned, growth=tuple(maker.growth_points(growth_of_month)))


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


class _Maker:
    """Makes fleets of one file for several growths and draws; each job's frontier is made once."""

    def __init__(
        self, name: str, spec: CapacityPlan, tell: Callable[[str], None], known_needs: KnownNeeds
    ) -> None:
        self.name, self.spec, self._tell, self._known_needs = name, spec, tell, known_needs
        self.catalog = catalog_of(spec)
        members = tuple(fleet_members(spec))
        self.nodes = nodes_on_offer(spec, self.catalog)
        self.speeds = sorted({node.core_speed_ratio for node in self.nodes})
        self.jobs = [_job_of(entry, job, spec, known_needs) for entry, job in members]
        self.form = FleetForm(spec, self.nodes, [self._sized(job) for job in self.jobs])

    def search_ahead(self, growths: Sequence[float]) -> None:
        """Search at once what the jobs need at some growths, in every draw."""
        drawn_jobs = (
            (job, speed, *self._drawn(job, growth, ratio))
            for growth in growths
            for ratios in self._draws
            for job, ratio in zip(self.jobs, ratios, strict=True)
            for speed in self.speeds
        )
        search_together(drawn_jobs, self._known_needs, first=load_solver)

    def planned(self, growth: float) -> Capacity:
        """The plan by the file's rule for ranges, and the rule in words."""
        rule, draws = self.spec.scenarios.rule, self._draws
        fleets = [self._fleet(growth, ratios) for ratios in draws]
        if rule in _ONE_FLEET:
            text = f"every range at its {'upper end' if rule == 'high' else 'middle'}"
            return self._reasoned(self._solve(fleets[0]), fleets[0], text, growth, draws[0])
        plan, fleet, text = self._planned_for(fleets)
        # What is impossible in any scenario is so with the most that is drawn.
        max_ratios = [max(filter(None, column)) for column in zip(*draws, strict=True)]
        return self._reasoned(plan, fleet, text, growth, max_ratios)

    @cached_property
    def _draws(self) -> list[list[float | None]]:
        """Each job's draws on the middle of its range; for one fleet, a single one without them."""
        rule = self.spec.scenarios
        if rule.rule in _ONE_FLEET:
            return [[None] * len(self.jobs)]
        ranges = [job.range_ratios for job in self.jobs]
        return [list(map(float, row)) for row in drawn_ratios(ranges, rule.count, rule.seed)]

    def _fleet(self, growth: float, ratios: Sequence[float | None]) -> Fleet:
        """The fleet at a growth; ``ratios`` are each job's draw on the middle of its range."""
        drawn_jobs = tuple(zip(self.jobs, ratios, strict=True))
        fleet = self.form.fleet([self._needs(job, growth, ratio) for job, ratio in drawn_jobs])
        fees = tuple(self._fee(job, growth, ratio) for job, ratio in drawn_jobs)
        return replace(fleet, fees_per_day=fees)

    def _planned_for(self, fleets: Sequence[Fleet]) -> tuple[FleetPlan | Infeasible, Fleet, str]:
        rule = self.spec.scenarios
        text = f"{rule.count} scenarios drawn with random seed {rule.seed}"
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
                    f": at worst {answer.worst_per_day:.2f} per day too much; short of nodes in "
                    f"{answer.num_short}, a missing node counting {rule.shortage_ratio:g} times "
                    "its price"
                )
        return answer.plan, answer.fleet, text

    def _reasoned(
        self,
        plan: FleetPlan | Infeasible,
        fleet: Fleet,
        scenarios: str,
        growth: float,
        ratios: Sequence[float | None],
    ) -> Capacity:
        """The plan, with the reasons why jobs can run nowhere, and what would suffice for each."""
        refusals = {
            job.entry.name: self.form.why_nowhere(self._needs(job, growth, ratio))
            for index, (job, ratio) in enumerate(zip(self.jobs, ratios, strict=True))
            if not fleet.allowed[index].any()
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
        )

    def growth_by_month(self, growth: float, by_month: int | None) -> dict[str, float]:
        """Growths of up to six months from that of the prices to another one, if there is one."""
        if by_month is None:
            return {}
        prices_month = self.catalog.date[:7]
        start = read_month(prices_month, "date")
        num_months = by_month - start
        if num_months <= 0:
            raise InputError(
                f"{argument('by')} {_month_text(by_month)}: expected a month after that of the "
                f"prices, {prices_month}"
            )
        num_points = min(num_months, 6)
        months = (round(num_months * index / num_points) for index in range(num_points + 1))
        return {_month_text(start + month): growth ** (month / num_months) for month in months}

    def growth_points(self, growth_of_month: Mapping[str, float]) -> Iterator[GrowthPoint]:
        """Plans for the growths of some months."""
        for month, ratio in growth_of_month.items():
            self._tell(f"planning {month}")
            yield GrowthPoint(month=month, ratio=ratio, plan=self.planned(ratio).plan)

    def with_prices_and_odds(self, planned: Capacity, plan: FleetPlan, growth: float) -> Capacity:
        """The plan of one fleet with what its limits and targets cost, and what it promises."""
        fleet = planned.fleet
        target_prices = tuple(self._target_prices(fleet, plan, growth))
        self._tell("computing the cost of limits")
        return replace(
            planned,
            target_prices=target_prices,
            shadow_prices=shadow_prices(fleet, plan, gap_ratio=self.spec.gap_ratio),
            kept=dict(self._kept(plan, growth)),
            writes=dict(self._writes(plan, growth)),
        )

    def _target_prices(self, fleet: Fleet, plan: FleetPlan, growth: float) -> list[TargetPrice]:
        """Cost of the targets of the most expensive jobs: this plan against looser ones."""
        if (plan.supply_of < 0).any():
            return []
        looser_jobs = {
            index: self.jobs[index].looser(LOOSER_TARGET_RATIO.value)
            for index in self._dearest(plan)[: PRICED_TARGETS.value]
        }
        speeds_of = {
            index: self._speeds_that_may_save(fleet, plan, index, looser, growth)
            for index, looser in looser_jobs.items()
        }
        search_together(
            (
                (looser, speed, *self._drawn(looser, growth, None))
                for index, looser in looser_jobs.items()
                for speed in speeds_of[index]
            ),
            self._known_needs,
        )
        prices = []
        for index, looser in looser_jobs.items():
            job, per_day, is_all = self.jobs[index], 0.0, False
            self._tell(f"computing the cost of the target of {job.entry.name}")
            if speeds_of[index]:
                drawn = self._drawn(looser, growth, None)
                executors = {speed: looser.executors(speed, *drawn) for speed in speeds_of[index]}
                looser_fleet = self._with_executors(fleet, index, executors)
                per_day, is_all = saving_of_job(
                    fleet, plan, looser_fleet, index, gap_ratio=self.spec.gap_ratio
                )
            prices.append(
                TargetPrice(
                    job=job.entry.name,
                    promise=job.promise,
                    looser=looser.promise,
                    saves_per_day=per_day,
                    is_all=is_all,
                )
            )
        return sorted(prices, key=lambda price: -price.saves_per_day)

    def _speeds_that_may_save(
        self, fleet: Fleet, plan: FleetPlan, index: int, looser: FleetJob, growth: float
    ) -> list[float]:
        """Speeds of cores on which a looser target of a job may make a plan cheaper."""
        if is_planned_again(fleet):
            return self.speeds
        scale, end = self._drawn(looser, growth, None)
        executors = {speed: looser.least_executors(speed, scale, end) for speed in self.speeds}
        costs = costs_of_moves(plan, self._with_executors(fleet, index, executors), index)
        is_cheaper = costs < plan.bound_per_day
        return [speed for speed in self.speeds if is_cheaper[self.form.speeds == speed].any()]

    def _with_executors(
        self, fleet: Fleet, index: int, executors: Mapping[float, tuple[int, ...] | None]
    ) -> Fleet:
        """The fleet with other executors of the job at an index, by the speed of their cores."""
        needs = replace(self._sized(self.jobs[index]), executors=executors)
        units, allowed = fleet.units.copy(), fleet.allowed.copy()
        units[index], allowed[index] = self.form.row(needs)
        return replace(fleet, units=units, allowed=allowed)

    def _kept(self, plan: FleetPlan, growth: float) -> Iterator[tuple[str, Kept]]:
        """Probability that the most expensive jobs meet their targets."""
        judged = [
            (self.jobs[index], float(self.form.speeds[plan.supply_of[index]]))
            for index in self._dearest(plan)[: JUDGED_JOBS.value]
            if plan.supply_of[index] >= 0
        ]
        computations = (
            job.kept_computation(speed, *self._drawn(job, growth, None)) for job, speed in judged
        )
        self._known_needs.foresee(dict(filter(None, computations)))
        for job, speed in judged:
            target_odds = job.kept(speed, *self._drawn(job, growth, None))
            if target_odds is not None:
                yield job.entry.name, target_odds

    def _writes(self, plan: FleetPlan, growth: float) -> Iterator[tuple[str, JobWrites]]:
        """What the served jobs write to a store that is known."""
        for index in np.flatnonzero(plan.supply_of >= 0).tolist():
            job_writes = self._most_writes(self.jobs[index], growth, None)
            if job_writes is not None:
                yield self.jobs[index].entry.name, job_writes

    def _fee(self, job: FleetJob, growth: float, ratio: float | None) -> float:
        """What a job pays for requests in a day, as far as there are prices."""
        job_writes = self._most_writes(job, growth, ratio)
        return 0.0 if job_writes is None else job_writes.cost_per_day or 0.0

    def _most_writes(self, job: FleetJob, growth: float, ratio: float | None) -> JobWrites | None:
        """What a job writes on the nodes on which that is most; None if that is unknown."""
        scale, end = self._drawn(job, growth, ratio)
        writes = (job.writes(speed, scale, end, self.catalog) for speed in self.speeds)
        return max(
            (job_writes for job_writes in writes if job_writes is not None),
            key=lambda job_writes: job_writes.files_per_day,
            default=None,
        )

    def _dearest(self, plan: FleetPlan) -> list[int]:
        """The jobs by their cost, the most expensive one first."""
        return sorted(range(len(self.jobs)), key=lambda index: -plan.cost_by_job[index])

    def _sized(self, job: FleetJob) -> JobNeeds:
        """The job with the size of its executors alone."""
        return JobNeeds(
            entry=job.entry,
            cores_per_executor=job.cores,
            executor_memory_bytes=job.memory_bytes,
            executors={},
        )

    def _needs(self, job: FleetJob, growth: float, ratio: float | None) -> JobNeeds:
        scale, end = self._drawn(job, growth, ratio)
        return replace(
            self._sized(job),
            executors={speed: job.executors(speed, scale, end) for speed in self.speeds},
            why_none=lambda speed: job.why_none(speed, scale, end),
        )

    def _drawn(self, job: FleetJob, growth: float, ratio: float | None) -> tuple[float, str]:
        """The scale of a job's rates and the end of their range, or its draw on the middle."""
        growth_ratio = growth * self.spec.growth_ratio * job.entry.growth_ratio
        scale = growth_ratio * (1 + self.spec.headroom_ratio)
        if ratio is not None:
            return scale * ratio, "mid"
        return scale, "mid" if self.spec.scenarios.rule == "mid" else "high"

    def _solve(self, fleet: Fleet) -> FleetPlan | Infeasible:
        if self.spec.objective == "served":
            return serve_most(fleet, gap_ratio=self.spec.gap_ratio)
        return plan_fleet(fleet, gap_ratio=self.spec.gap_ratio)


def _month_text(month: int) -> str:
    return f"{month // 12:04d}-{month % 12 + 1:02d}"
