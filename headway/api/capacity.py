"""Calls about fleets: what to buy for many jobs, by a capacity plan's file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from headway.api.fleet_maker import ONE_FLEET, FleetMaker
from headway.api.fleet_needs import FleetJob, KnownNeeds
from headway.api.fleet_streaming import search_together
from headway.assumptions.advice import JUDGED_JOBS, PRICED_TARGETS
from headway.assumptions.planning import LOOSER_TARGET_RATIO
from headway.domain import Verdict
from headway.domain.argument import read_question
from headway.domain.fleet_questions import CapacityQuestion, read_month
from headway.errors import InputError, argument, require_packages
from headway.fleet.nouns import Capacity, Fleet, FleetPlan, GrowthPoint, TargetPrice
from headway.fleet.prices import costs_of_moves, is_planned_again, saving_of_job, shadow_prices
from headway.processes import AllCores
from headway.spec.fleet_references import require_references
from headway.spec.kinds.capacity import CapacityPlan
from headway.spec.parts import catalog_at
from headway.spec.spec_file import load_spec, spec_of


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
    require_references(file, catalog_at(spec.catalog))
    require_packages("capacity", "planning capacity", "cvxpy", "highspy", "scipy")
    with AllCores() as cores:
        maker = FleetMaker(file.metadata.name, spec, KnownNeeds(cores))
        growth_of_month = _growth_by_month(maker.catalog.date[:7], growth_ratio, question.by_month)
        tell("searching what the jobs need")
        maker.search_ahead([growth_ratio, *growth_of_month.values()])
        tell("solving")
        planned = maker.planned(growth_ratio)
        if planned.plan.feasible and spec.scenarios.rule in ONE_FLEET:
            fleet, plan, jobs = planned.fleet, planned.plan, maker.drawn_jobs(growth_ratio)
            target_prices = tuple(_target_prices(maker, fleet, plan, jobs, tell))
            tell("computing the cost of limits")
            planned = replace(
                planned,
                target_prices=target_prices,
                shadow_prices=shadow_prices(fleet, plan, gap_ratio=spec.gap_ratio),
                target_probabilities=dict(_kept(maker, plan, jobs)),
                writes={
                    jobs[index].entry.name: job_writes
                    for index in np.flatnonzero(plan.supply_of >= 0).tolist()
                    if (job_writes := maker.most_writes(jobs[index])) is not None
                },
            )
        points: list[GrowthPoint] = []
        for month, ratio in growth_of_month.items():
            tell(f"planning {month}")
            points.append((month, ratio, maker.planned(ratio).plan))
        return replace(planned, growth=tuple(points))


def _growth_by_month(prices_month: str, growth: float, by_month: int | None) -> dict[str, float]:
    """Growths of up to six months from that of the prices to another one, if there is one."""
    if by_month is None:
        return {}
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


def _target_prices(
    maker: FleetMaker,
    fleet: Fleet,
    plan: FleetPlan,
    jobs: Sequence[FleetJob],
    tell: Callable[[str], None],
) -> list[TargetPrice]:
    """Cost of the targets of the most expensive jobs: this plan against looser ones."""
    if (plan.supply_of < 0).any():
        return []
    looser_jobs = {
        index: jobs[index].looser(LOOSER_TARGET_RATIO.value)
        for index in _dearest(plan)[: PRICED_TARGETS.value]
    }
    speeds_of = {
        index: _speeds_that_may_save(maker, fleet, plan, index, looser)
        for index, looser in looser_jobs.items()
    }
    search_together(
        (
            (looser, speed, True)
            for index, looser in looser_jobs.items()
            for speed in speeds_of[index]
        ),
        maker.known_needs,
    )
    prices = []
    for index, looser in looser_jobs.items():
        job, per_day, is_all = jobs[index], 0.0, False
        tell(f"computing the cost of the target of {job.entry.name}")
        if speeds_of[index]:
            executors = {speed: looser.executors(speed) for speed in speeds_of[index]}
            looser_fleet = maker.with_executors(fleet, index, executors)
            per_day, is_all = saving_of_job(
                fleet, plan, looser_fleet, index, gap_ratio=maker.spec.gap_ratio
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
    maker: FleetMaker, fleet: Fleet, plan: FleetPlan, index: int, looser: FleetJob
) -> list[float]:
    """Speeds of cores on which a looser target of a job may make a plan cheaper."""
    if is_planned_again(fleet):
        return maker.speeds
    executors = {speed: looser.least_executors(speed) for speed in maker.speeds}
    costs = costs_of_moves(plan, maker.with_executors(fleet, index, executors), index)
    is_cheaper = costs < plan.bound_per_day
    return [speed for speed in maker.speeds if is_cheaper[maker.form.speeds == speed].any()]


def _kept(
    maker: FleetMaker, plan: FleetPlan, jobs: Sequence[FleetJob]
) -> Iterator[tuple[str, tuple[float, str]]]:
    """Probability that the most expensive jobs meet their targets, and the verdict."""
    judged = [
        (jobs[index], float(maker.form.speeds[plan.supply_of[index]]))
        for index in _dearest(plan)[: JUDGED_JOBS.value]
        if plan.supply_of[index] >= 0
    ]
    computations = (job.kept_computation(speed) for job, speed in judged)
    maker.known_needs.compute_ahead(dict(filter(None, computations)))
    for job, speed in judged:
        probability = job.kept(speed)
        if probability is not None:
            verdict = str(Verdict.of(probability, job.job.confidence))
            yield job.entry.name, (probability, verdict)


def _dearest(plan: FleetPlan) -> list[int]:
    """The jobs by their cost, the most expensive one first."""
    return sorted(range(len(plan.cost_by_job)), key=lambda index: -plan.cost_by_job[index])


def _month_text(month: int) -> str:
    return f"{month // 12:04d}-{month % 12 + 1:02d}"
