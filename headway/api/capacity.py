"""Calls about fleets: what to buy for many jobs, by a capacity plan's file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headway.errors import InputError

if TYPE_CHECKING:
    from headway.api.fleet_jobs import FleetJob
    from headway.fleet.answer import Capacity, GrowthPoint, TargetPrice
    from headway.fleet.nouns import Fleet, FleetPlan, Infeasible
    from headway.spec.fleet_of import JobNeeds
    from headway.spec.fleet_parts import FleetMember
    from headway.spec.kinds import CapacityPlan, NodeCatalog, NodeEntry

_LOOSER = 1.25
_TARGETS_PRICED = 8


def capacity(
    path: str | Path,
    *,
    growth: float | None = None,
    by: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Capacity:
    """What to buy for a fleet.

    Parameters
    ----------
    path : str or Path
        A file of the kind CapacityPlan.
    growth : float, optional
        Plan for rates this many times as high, on top of the file's own growth.
    by : str, optional
        The month, ``2027-06``, by which they will have grown: the months between are planned too.
    tell : callable, optional
        Told what is being done.

    Raises
    ------
    InputError
        If the file, or one that it names, is not what it should be. A fleet that cannot be served
        is no error: the plan then is an ``Infeasible``, with reasons.
    SolverError
        If the solver ends without an answer.
    """
    from headway.fleet.answer import Capacity
    from headway.spec.fleet_parts import catalog_of, fleet_members
    from headway.spec.kinds import CapacityPlan
    from headway.spec.spec_file import load_spec, spec_of

    file = load_spec(path)
    spec = spec_of(file, CapacityPlan)
    catalog = catalog_of(spec)
    maker = _Maker(spec, catalog, tuple(fleet_members(spec)), tell)
    fleet = maker.fleet(growth or 1.0)
    tell("solving")
    plan, scenarios = maker.planned(growth or 1.0)
    points = tuple(maker.growth_path(growth, by, catalog.date)) if growth and by else ()
    return Capacity(
        name=file.metadata.name,
        currency=catalog.currency,
        prices_of=catalog.date,
        fleet=fleet,
        plan=plan,
        why_impossible=maker.why_impossible(fleet, growth or 1.0),
        scenarios=scenarios,
        target_prices=tuple(maker.target_prices(plan, fleet, growth or 1.0)),
        growth=points,
    )


class _Maker:
    """Makes fleets of one file at several growths and draws; each job's frontier is made once."""

    def __init__(
        self,
        spec: CapacityPlan,
        catalog: NodeCatalog,
        members: tuple[FleetMember, ...],
        tell: Callable[[str], None],
    ) -> None:
        from headway.api.fleet_jobs import KnownNeeds, job_of
        from headway.spec.fleet_of import FleetForm, nodes_on_offer

        self.spec, self.members, self._tell = spec, members, tell
        self.nodes: tuple[NodeEntry, ...] = nodes_on_offer(spec, catalog)
        self.speeds = sorted({node.speed_ratio for node in self.nodes})
        known = KnownNeeds()
        self.jobs = [job_of(member, spec, known) for member in members]
        self.form = FleetForm(spec, self.nodes, [self._sized(job) for job in self.jobs])

    def fleet(self, growth: float, ratios: Sequence[float] | None = None) -> Fleet:
        """The fleet at a growth; ``ratios`` are each job's draw on the middle of its range."""
        needs = [
            self._needs(job, growth, None if ratios is None else ratios[at])
            for at, job in enumerate(self.jobs)
        ]
        return self.form.fleet(needs)

    def why_impossible(self, fleet: Fleet, growth: float) -> dict[str, str]:
        """For each job that can run nowhere, why."""
        return {
            job.entry.name: self.form.why_nowhere(self._needs(job, growth, None))
            for job, allowed in zip(self.jobs, fleet.allowed, strict=True)
            if not allowed.any()
        }

    def planned(self, growth: float) -> tuple[FleetPlan | Infeasible, str]:
        """The plan by the file's rule for ranges, and the rule in words."""
        from headway.fleet.scenarios import Carried, Regret, plan_for_chance, plan_of_least_regret

        rule = self.spec.scenarios
        if rule.rule in ("high", "mid"):
            plan = self._solve(self.fleet(growth))
            return plan, f"every range at its {'upper end' if rule.rule == 'high' else 'middle'}"
        fleets = [self.fleet(growth, ratios) for ratios in self._draws()]
        drawn = f"{rule.count} scenarios drawn with seed {rule.seed}"
        if rule.rule == "chance":
            found = plan_for_chance(fleets, rule.confidence, self._solve)
            if isinstance(found, Carried):
                return found.plan, f"carries {found.num_carried} of {drawn}"
            return found, f"{drawn}, {rule.confidence:.0%} of them to be carried"
        regret = plan_of_least_regret(fleets, rule.shortage_ratio, self._solve)
        if isinstance(regret, Regret):
            return regret.plan, (
                f"least regret over {drawn}: at worst {regret.worst_per_day:.2f} a day too much; "
                f"short of nodes in {regret.num_short}, a missing node counting "
                f"{rule.shortage_ratio:g} times its price"
            )
        return regret, f"least regret over {drawn}"

    def growth_path(self, growth: float, by: str, since: str) -> Iterator[GrowthPoint]:
        """Plans for up to six months between the catalogue's date and ``by``."""
        from headway.fleet.answer import GrowthPoint

        start, end = _month(since[:7]), _month(by)
        if end <= start:
            raise InputError(f"--by {by}: expected a month after {since[:7]}, of the prices")
        num_points = min(end - start, 6)
        for at in range(num_points + 1):
            month = start + round((end - start) * at / num_points)
            ratio = growth ** ((month - start) / (end - start))
            self._tell(f"planning {_month_text(month)}")
            yield GrowthPoint(month=_month_text(month), ratio=ratio, plan=self.planned(ratio)[0])

    def target_prices(
        self, plan: FleetPlan | Infeasible, fleet: Fleet, growth: float
    ) -> Iterator[TargetPrice]:
        """What the promises of the dearest jobs cost: their bill against that of looser ones."""
        from headway.fleet.answer import TargetPrice
        from headway.fleet.nouns import FleetPlan

        if not isinstance(plan, FleetPlan):
            return
        dearest = sorted(range(len(self.jobs)), key=lambda at: -plan.cost_by_job[at])
        found = []
        for at in dearest[:_TARGETS_PRICED]:
            if plan.supply_of[at] < 0:
                continue
            self._tell(f"pricing the promise of {self.jobs[at].entry.name}")
            looser = self.jobs[at].looser(_LOOSER)
            saves = self._saves(plan, fleet, at, self._needs(looser, growth, None))
            found.append(
                TargetPrice(
                    job=looser.entry.name,
                    promise=self.jobs[at].promise,
                    looser=looser.promise,
                    saves_per_day=saves,
                )
            )
        yield from sorted(found, key=lambda price: -price.saves_per_day)

    def _saves(self, plan: FleetPlan, fleet: Fleet, at: int, needs: JobNeeds) -> float:
        """What the plan would save if one job alone needed less, on the best supply for it."""
        import numpy as np

        from headway.fleet.billing import bill_of, limits_broken, nodes_needed

        units, allowed = fleet.units.copy(), fleet.allowed.copy()
        units[at], allowed[at] = self.form.row(needs)
        looser = replace(fleet, units=units, allowed=allowed)
        best = plan.bill.cost_per_day
        for place in np.flatnonzero(allowed[at]).tolist():
            chosen = plan.supply_of.copy()
            chosen[at] = place
            nodes = nodes_needed(looser, chosen)
            cost = bill_of(looser, nodes).cost_per_day
            if cost < best and not limits_broken(looser, nodes, cost):
                best = cost
        return plan.bill.cost_per_day - best

    def _sized(self, job: FleetJob) -> JobNeeds:
        """The job with the size of its executors alone."""
        from headway.spec.fleet_of import JobNeeds

        return JobNeeds(
            entry=job.entry,
            cores_per_executor=job.cores,
            executor_memory_bytes=job.memory_bytes,
            executors={},
        )

    def _needs(self, job: FleetJob, growth: float, ratio: float | None) -> JobNeeds:
        scale = (
            growth
            * self.spec.growth_ratio
            * job.entry.growth_ratio
            * (1 + self.spec.headroom_ratio)
            * (ratio or 1.0)
        )
        end = "mid" if self.spec.scenarios.rule == "mid" or ratio is not None else "high"
        return replace(
            self._sized(job),
            executors={speed: job.executors(speed, scale, end) for speed in self.speeds},
            why_none=lambda speed: job.why_none(speed, scale, end),
        )

    def _draws(self) -> list[list[float]]:
        from headway.fleet.scenarios import drawn_ratios

        rule = self.spec.scenarios
        ratios = drawn_ratios([job.range_ratios for job in self.jobs], rule.count, rule.seed)
        return [list(map(float, row)) for row in ratios]

    def _solve(self, fleet: Fleet) -> FleetPlan | Infeasible:
        from headway.fleet.plan_fleet import plan_fleet, serve_most

        if self.spec.objective == "served":
            return serve_most(fleet, gap_ratio=self.spec.gap_ratio)
        return plan_fleet(fleet, gap_ratio=self.spec.gap_ratio)


def _month(text: str) -> int:
    """Months since year 0."""
    year, dash, month = text.partition("-")
    if not (dash and year.isdecimal() and len(year) == 4 and month.isdecimal()):
        raise InputError(f"--by {text}: expected a month, e.g. 2027-06")
    if not 1 <= int(month) <= 12:
        raise InputError(f"--by {text}: expected a month, e.g. 2027-06")
    return int(year) * 12 + int(month) - 1


def _month_text(month: int) -> str:
    return f"{month // 12:04d}-{month % 12 + 1:02d}"
