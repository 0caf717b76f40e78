"""The mixed-integer plan against trying everything, and the laws that it keeps."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from headway.errors import SolverError
from headway.fleet import prices, relaxation
from headway.fleet.billing import bill_of, limits_broken, nodes_needed
from headway.fleet.infeasible import diagnose, reasoned
from headway.fleet.moves import with_fewer_open
from headway.fleet.nouns import Fleet, FleetOffer, FleetPlan, Infeasible, Quota, Supply
from headway.fleet.plan_fleet import plan_fleet, plan_of, serve_most
from headway.fleet.prices import costs_of_moves, saving_of_job, saving_text, shadow_prices
from tests.fleet.fleets import (
    a_nightly_fleet,
    a_random_fleet,
    cheapest,
    cheapest_by_trying,
    most_served_by_trying,
)
from tests.seeds import seeds


@pytest.mark.parametrize("seed", seeds(6, 200))
def test_the_plan_is_the_cheapest_that_trying_everything_finds(seed: int) -> None:
    fleet = a_random_fleet(seed)
    best, plan = cheapest(a_random_fleet, seed), plan_fleet(fleet, gap_ratio=0.0)
    if best is None:
        assert isinstance(plan, Infeasible)
        return
    assert isinstance(plan, FleetPlan)
    assert plan.bill.cost_per_day == pytest.approx(best, rel=1e-6)
    assert plan.bound_per_day <= best * (1 + 1e-6)
    assert plan.gap_ratio < 1e-5
    assert plan.cost_by_job.sum() == pytest.approx(plan.bill.cost_per_day)


@pytest.mark.parametrize("gap_ratio", [0.0, 1e-3])
@pytest.mark.parametrize("seed", seeds(6, 200))
def test_nightly_fleets_with_nodes_in_reserve_are_feasible_just_where_a_plan_exists(
    seed: int, gap_ratio: float
) -> None:
    """The price of a job left out once forgot the reserve: one in ten was called infeasible."""
    fleet = a_nightly_fleet(seed)
    best, plan = cheapest(a_nightly_fleet, seed), plan_fleet(fleet, gap_ratio=gap_ratio)
    if best is None:
        assert isinstance(plan, Infeasible)
        assert plan.unserved
        assert plan.relaxations
        return
    assert isinstance(plan, FleetPlan)
    assert plan.bill.cost_per_day <= best * (1 + gap_ratio + 1e-6)
    assert plan.bound_per_day <= best * (1 + 1e-6)


def test_an_infeasible_answer_without_a_reason_is_an_error() -> None:
    relaxation = "quota q: 3 nodes instead of 2"
    for unserved, relaxations in (((), (relaxation,)), (("j1",), ()), ((), ())):
        with pytest.raises(SolverError, match="neither was a job to leave out nor a limit"):
            reasoned(Infeasible(impossible=(), unserved=unserved, relaxations=relaxations))
    named = Infeasible(impossible=(), unserved=("j1",), relaxations=(relaxation,))
    assert reasoned(named) is named
    # Nothing stands in the way of this fleet.
    with pytest.raises(SolverError, match="please report it"):
        diagnose(a_fleet())


def test_no_price_of_a_job_left_out_is_guessed() -> None:
    """Jobs whose nodes cost next to nothing beside what is held in reserve for them."""
    offers = (FleetOffer(name="n", cores=16, price=1000.0),)
    supplies = (replace(a_fleet().supplies[0], units_per_node=1000, failures=50),)
    fleet = a_fleet(offers=offers, supplies=supplies, units=np.full((3, 1, 24), 1))
    assert planned(fleet).nodes.tolist() == [[51] * 24]


@pytest.mark.parametrize("num_jobs", [0, 1])
def test_as_many_as_can_be_served_may_be_none(num_jobs: int) -> None:
    allowed = np.zeros((3, 1), dtype=bool)
    allowed[:num_jobs] = True
    plan = serve_most(a_fleet(allowed=allowed))
    assert plan.supply_of.tolist() == [0] * num_jobs + [-1] * (3 - num_jobs)
    assert plan.bill.cost_per_day == 24.0 * num_jobs
    assert plan.gap_ratio == pytest.approx(0.0)


@pytest.mark.parametrize("seed", range(12))
def test_as_much_is_served_as_trying_everything_finds(seed: int) -> None:
    fleet = replace(a_random_fleet(seed, num_jobs=3), budget_per_day=250.0)
    weight, cost = most_served_by_trying(fleet)
    plan = serve_most(fleet, gap_ratio=0.0)
    assert fleet.weights[plan.supply_of >= 0].sum() == pytest.approx(weight)
    assert plan.bill.cost_per_day == pytest.approx(cost, rel=1e-6)


@cache
def random_plan(seed: int) -> FleetPlan | Infeasible:
    return plan_fleet(a_random_fleet(seed))


def test_some_random_fleets_break_a_quota_and_some_their_budget() -> None:
    """The test below would say nothing if all had a plan."""
    plans = [random_plan(seed) for seed in range(40)]
    infeasible = [plan for plan in plans if isinstance(plan, Infeasible)]
    named = {text.split(":")[0] for plan in infeasible for text in plan.relaxations}
    assert {"quota q", "budget"} <= named


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_the_relaxations_named_are_enough_and_the_smallest(first: int) -> None:
    plans = [(a_random_fleet(seed), random_plan(seed)) for seed in range(first, first + 20)]
    infeasible = [(fleet, plan) for fleet, plan in plans if isinstance(plan, Infeasible)]
    assert len(infeasible) >= 2
    for fleet, plan in infeasible:
        check_relaxations(fleet, plan)


def check_relaxations(fleet: Fleet, plan: Infeasible) -> None:
    assert plan.unserved
    left = [at for at, name in enumerate(fleet.jobs) if name not in plan.unserved]
    if left:
        assert isinstance(plan_fleet(_only(fleet, left)), FleetPlan)
    for text in plan.relaxations:
        limit_name, _, needed_text = text.partition(": ")
        if limit_name == "quota q":
            limit = float(needed_text.split()[0])
            assert cheapest_by_trying(_with_limit(fleet, limit)) is not None
            assert cheapest_by_trying(_with_limit(fleet, limit - 1)) is None
        elif limit_name == "budget":
            budget = float(needed_text.split()[0])
            assert cheapest_by_trying(replace(fleet, budget_per_day=budget)) is not None
            assert cheapest_by_trying(replace(fleet, budget_per_day=budget - 0.02)) is None


def _only(fleet: Fleet, jobs: list[int]) -> Fleet:
    return replace(
        fleet,
        jobs=tuple(fleet.jobs[at] for at in jobs),
        weights=fleet.weights[jobs],
        units=fleet.units[jobs],
        allowed=fleet.allowed[jobs],
    )


def _with_limit(fleet: Fleet, limit: float) -> Fleet:
    return replace(fleet, quotas=tuple(replace(quota, limit=limit) for quota in fleet.quotas))


def a_fleet(num_jobs: int = 3, **changes: object) -> Fleet:
    """Shared nodes of four executors at 1 an hour, for jobs of three executors each."""
    fleet = Fleet(
        jobs=tuple(f"j{at}" for at in range(num_jobs)),
        weights=np.ones(num_jobs),
        offers=(FleetOffer(name="n", cores=16, price=1.0, spot_price=0.4, committed_price=0.6),),
        supplies=(Supply(pool="p", zone="-", offer=0, shared=True, units_per_node=4),),
        units=np.full((num_jobs, 1, 24), 3),
        allowed=np.ones((num_jobs, 1), dtype=bool),
        period_of=np.arange(24),
        hours=np.ones(24),
    )
    return replace(fleet, **changes)  # type: ignore[arg-type]  # fields by name


def planned(fleet: Fleet) -> FleetPlan:
    plan = plan_fleet(fleet, gap_ratio=0.0)
    assert isinstance(plan, FleetPlan)
    return plan


def test_jobs_share_nodes() -> None:
    assert planned(a_fleet()).nodes.tolist() == [[3] * 24]
    assert planned(a_fleet()).bill.cost_per_day == 72.0


def test_a_node_may_fail() -> None:
    supplies = tuple(replace(supply, failures=1) for supply in a_fleet().supplies)
    assert planned(a_fleet(supplies=supplies)).nodes.tolist() == [[4] * 24]


def test_nodes_in_reserve_are_held_in_the_hours_with_something_to_do() -> None:
    """In a shared pool as for a job with nodes of its own, whose units count them."""
    units = np.zeros((2, 1, 24), dtype=np.int64)
    units[0, :, 2:5], units[1, :, 4:8] = 3, 5
    supplies = tuple(replace(supply, failures=2) for supply in a_fleet().supplies)
    by_hour = planned(a_fleet(2, units=units, supplies=supplies))
    assert by_hour.nodes.tolist() == [[0, 0, 3, 3, 4, 4, 4, 4, *[0] * 16]]
    fixed = planned(
        a_fleet(
            2,
            units=units,
            supplies=supplies,
            period_of=np.zeros(24, dtype=np.int64),
            hours=np.array([24.0]),
        )
    )
    assert fixed.nodes.tolist() == [[4]]


def test_nodes_come_and_go_by_the_hour_or_stay() -> None:
    units = a_fleet().units.copy()
    units[:, :, 12:] = 0
    by_hour = planned(a_fleet(units=units))
    assert by_hour.bill.cost_per_day == 36.0
    fixed = planned(
        a_fleet(units=units, period_of=np.zeros(24, dtype=np.int64), hours=np.array([24.0]))
    )
    assert fixed.bill.cost_per_day == 72.0


def test_spot_and_commitments_are_used_where_they_save() -> None:
    spot = planned(a_fleet(spot_ratio=0.5))
    # Half of three nodes is one whole node.
    assert spot.bill.cost_per_day == pytest.approx(24 * (2 * 1.0 + 0.4))
    both = planned(a_fleet(spot_ratio=0.5, commitments=True))
    assert both.bill.cost_per_day == pytest.approx(24 * (2 * 0.6 + 0.4))
    units = a_fleet().units.copy()
    units[:, :, 4:] = 0
    seldom = planned(a_fleet(units=units, commitments=True))
    assert seldom.bill.committed.tolist() == [0]


def test_more_of_anything_never_costs_less() -> None:
    costs = [planned(a_fleet(num_jobs)).bill.cost_per_day for num_jobs in range(1, 7)]
    assert costs == sorted(costs)


def test_a_job_that_nothing_can_take_is_named() -> None:
    allowed = a_fleet().allowed.copy()
    allowed[1] = False
    plan = plan_fleet(a_fleet(allowed=allowed))
    assert isinstance(plan, Infeasible)
    assert plan.impossible == ("j1",)


def test_a_budget_that_is_too_small_names_the_least() -> None:
    plan = plan_fleet(a_fleet(budget_per_day=50.0))
    assert isinstance(plan, Infeasible)
    assert len(plan.unserved) == 1
    assert plan.relaxations == ("budget: 72.00 a day instead of 50.00",)


def test_two_limits_that_bind_are_named_together() -> None:
    quota = Quota(name="q", unit="nodes", weights=np.ones(1), limit=2.0)
    plan = plan_fleet(a_fleet(budget_per_day=50.0, quotas=(quota,)))
    assert isinstance(plan, Infeasible)
    (together,) = plan.relaxations
    assert together.startswith("together: ")
    assert "q: 3 nodes instead of 2; budget: 72.00 a day instead of 50.00" in together


def test_a_limit_of_one_is_in_the_singular() -> None:
    quota = Quota(name="q", unit="nodes", weights=np.ones(1), limit=0.0)
    plan = plan_fleet(a_fleet(1, quotas=(quota,), currency="EUR"))
    assert isinstance(plan, Infeasible)
    assert plan.relaxations == ("quota q: 1 node instead of 0",)


def test_a_quota_that_is_binding_has_a_price() -> None:
    dear = FleetOffer(name="dear", cores=16, price=3.0)
    fleet = a_fleet(
        offers=(*a_fleet().offers, dear),
        supplies=(
            *a_fleet().supplies,
            Supply(pool="p", zone="-", offer=1, shared=True, units_per_node=4),
        ),
        units=np.full((3, 2, 24), 4),
        allowed=np.ones((3, 2), dtype=bool),
        quotas=(Quota(name="q", unit="nodes", weights=np.array([1.0, 0.0]), limit=2.0),),
    )
    (price,) = shadow_prices(fleet, planned(fleet), gap_ratio=0.0)
    assert price.saves_per_day == pytest.approx(24 * 2.0)
    assert price.text == "one node more in quota q would save 1,440.00 per month"


@pytest.mark.parametrize("dozen", seeds(2, 10))
def test_a_limit_saves_what_a_little_more_of_it_saves(dozen: int) -> None:
    """Against trying everything with more, of each limit."""
    fleets = [a_random_fleet(seed) for seed in range(12 * dozen, 12 * dozen + 12)]
    plans = [(one, plan_fleet(one, gap_ratio=0.0)) for one in fleets if one.quotas]
    solved = [(fleet, plan) for fleet, plan in plans if isinstance(plan, FleetPlan)]
    assert len(solved) >= 2
    for fleet, plan in solved:
        check_saving(fleet, plan)


def check_saving(fleet: Fleet, plan: FleetPlan) -> None:
    found = {price.name: price for price in shadow_prices(fleet, plan, gap_ratio=0.0)}
    (quota,) = fleet.quotas
    more = cheapest_by_trying(_with_limit(fleet, quota.limit + 1))
    assert more is not None
    saves = plan.bill.cost_per_day - more
    if "q" in found:
        assert found["q"].saves_per_day == pytest.approx(saves, abs=1e-3)
        assert found["q"].text == f"one node more in quota q would save {30 * saves:,.2f} per month"
    else:
        assert saves == pytest.approx(0.0, abs=0.01)


def test_a_limit_on_cores_is_priced_by_a_node() -> None:
    """One core more buys nothing where a node has sixteen."""
    dear = FleetOffer(name="dear", cores=16, price=3.0)
    fleet = a_fleet(
        offers=(*a_fleet().offers, dear),
        supplies=(*a_fleet().supplies, replace(a_fleet().supplies[0], offer=1)),
        units=np.full((3, 2, 24), 4),
        allowed=np.ones((3, 2), dtype=bool),
        quotas=(Quota(name="q", unit="cores", weights=np.array([16.0, 0.0]), limit=32.0),),
    )
    (price,) = shadow_prices(fleet, planned(fleet), gap_ratio=0.0)
    assert price.text == "16 cores more in quota q would save 1,440.00 per month"


def test_a_price_says_no_more_than_the_gaps_prove() -> None:
    fleet = a_fleet(quotas=(Quota(name="q", unit="nodes", weights=np.ones(1), limit=3.0),))
    plan = planned(fleet)
    loose = replace(plan, bound_per_day=plan.bound_per_day - 5.0)
    cheaper = replace(fleet, offers=(replace(fleet.offers[0], price=0.5),))
    saved = saving_of_job(fleet, plan, cheaper, 0, gap_ratio=0.0)
    assert saving_text(*saved) == "1,080.00 per month"
    saved = saving_of_job(fleet, loose, cheaper, 0, gap_ratio=0.0)
    assert saving_text(*saved) == "at least 930.00 per month"


def test_of_a_large_fleet_a_job_is_moved_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "MOST_PAIRS", 0)
    fleet = a_fleet(quotas=(Quota(name="q", unit="nodes", weights=np.ones(1), limit=3.0),))
    plan, units = planned(fleet), fleet.units.copy()
    units[0] = 1
    assert shadow_prices(fleet, plan, gap_ratio=0.0) == ()
    saving = saving_of_job(fleet, plan, replace(fleet, units=units), 0, gap_ratio=0.0)
    assert saving_text(*saving) == "at least 720.00 per month"
    # Two nodes where the job fits beside the others, three where it does not.
    (cost_per_day,) = costs_of_moves(plan, replace(fleet, units=units), 0)
    assert cost_per_day == pytest.approx(24 * 2.0)
    (cost_per_day,) = costs_of_moves(plan, fleet, 0)
    assert cost_per_day == pytest.approx(24 * 3.0)
    (cost_per_day,) = costs_of_moves(plan, replace(fleet, units=4 * fleet.units), 0)
    assert cost_per_day == np.inf
    # Nothing is certain where the gap is as wide as what the job costs.
    alone_per_day = plan.bill.cost_per_day - float(plan.cost_by_job[0])
    loose = replace(plan, bound_per_day=0.5 * alone_per_day)
    assert saving_of_job(fleet, loose, replace(fleet, units=units), 0, gap_ratio=0.0)[0] == 0.0


@pytest.mark.parametrize("ten", seeds(2, 4))
def test_columns_are_left_out_without_loss(monkeypatch: pytest.MonkeyPatch, ten: int) -> None:
    """As a large fleet is solved: few columns at first, others as prices ask for them."""
    monkeypatch.setattr(relaxation, "_SMALL_FLEET", 0)
    monkeypatch.setattr(relaxation, "_FIRST_COLUMNS", 1)
    monkeypatch.setattr(relaxation, "_NEW_COLUMNS", 1)
    for seed in range(10 * ten, 10 * ten + 10):
        fleet = a_random_fleet(seed)
        best, plan = cheapest(a_random_fleet, seed), plan_fleet(fleet, gap_ratio=0.0)
        assert isinstance(plan, FleetPlan) == (best is not None)
        if isinstance(plan, FleetPlan):
            assert plan.bill.cost_per_day == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("gap_ratio", [0.01, 0.1])
@pytest.mark.parametrize("seed", seeds(4, 80))
def test_a_bound_holds_for_plans_with_columns_that_were_left_out(
    monkeypatch: pytest.MonkeyPatch, seed: int, gap_ratio: float
) -> None:
    monkeypatch.setattr(relaxation, "_SMALL_FLEET", 0)
    monkeypatch.setattr(relaxation, "_FIRST_COLUMNS", 1)
    monkeypatch.setattr(relaxation, "_NEW_COLUMNS", 1)
    for a_small_fleet in (a_random_fleet, a_nightly_fleet):
        best = cheapest(a_small_fleet, seed)
        plan = plan_fleet(a_small_fleet(seed), gap_ratio=gap_ratio)
        assert isinstance(plan, FleetPlan) == (best is not None)
        if isinstance(plan, FleetPlan):
            assert best is not None
            assert plan.bound_per_day <= best * (1 + 1e-6)
            assert plan.bill.cost_per_day <= best * (1 + 1e-6) / (1 - gap_ratio)


@pytest.mark.parametrize("ten", seeds(2, 6))
def test_the_quick_ways_keep_their_promise(monkeypatch: pytest.MonkeyPatch, ten: int) -> None:
    """As a large fleet is solved when a gap is left: rounded, and its reserve not in the bound."""
    monkeypatch.setattr(relaxation, "_SMALL_FLEET", 0)
    for seed in range(10 * ten, 10 * ten + 10):
        fleet = a_random_fleet(seed)
        best, plan = cheapest(a_random_fleet, seed), plan_fleet(fleet, gap_ratio=0.3)
        assert isinstance(plan, FleetPlan) == (best is not None)
        if isinstance(plan, FleetPlan):
            assert best is not None
            assert plan.bill.cost_per_day <= best * 1.3 * (1 + 1e-6)
            assert plan.bound_per_day <= best * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_closing_supplies_never_makes_a_plan_more_expensive(seed: int) -> None:
    fleet = a_random_fleet(seed)
    rng = np.random.default_rng(seed)
    chosen = np.array([rng.choice(np.flatnonzero(row)) for row in fleet.allowed])
    closed = with_fewer_open(fleet, chosen)
    before, after = (nodes_needed(fleet, each) for each in (chosen, closed))
    if not np.array_equal(chosen, closed):
        cost = bill_of(fleet, after).cost_per_day
        assert not limits_broken(fleet, after, cost)
        broken = limits_broken(fleet, before, bill_of(fleet, before).cost_per_day)
        assert broken or cost < bill_of(fleet, before).cost_per_day
    assert fleet.allowed[np.arange(len(closed)), closed].all()


def test_a_plan_that_breaks_a_limit_is_an_error_never_a_plan() -> None:
    with pytest.raises(SolverError, match=r"budget: 72\.00 of 50\.00"):
        plan_of(a_fleet(budget_per_day=50.0), np.zeros(3, dtype=np.int64), 0.0)


def test_a_solver_that_gives_up_is_an_error_with_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    import cvxpy as cp

    def fail(*_: object, **__: object) -> None:
        raise cp.error.SolverError("out of ideas")

    monkeypatch.setattr(cp.Problem, "solve", fail)
    with pytest.raises(SolverError, match="HiGHS gave up: out of ideas"):
        plan_fleet(a_fleet())


@pytest.mark.parametrize("seed", range(20))
def test_the_bill_is_the_cheapest_way_to_pay(seed: int) -> None:
    """Against every number of committed nodes."""
    fleet = a_random_fleet(seed)
    rng = np.random.default_rng(seed)
    nodes = rng.integers(0, 5, size=(len(fleet.supplies), fleet.num_periods))
    bill = bill_of(fleet, nodes)
    for at, offer in enumerate(fleet.offers):
        costs = []
        for committed in range(int(bill.nodes[at].max()) + 1):
            if committed and (not fleet.commitments or offer.committed_price is None):
                break
            left = np.maximum(bill.nodes[at] - committed, 0)
            spot = np.minimum(np.floor(fleet.spot_ratio * bill.nodes[at] + 1e-9), left)
            if offer.spot_price is None or offer.spot_price >= offer.price:
                spot = np.zeros_like(spot)
            hourly = (left - spot) * offer.price + spot * (offer.spot_price or 0.0)
            paid = committed * (offer.committed_price or 0.0) * fleet.hours.sum()
            costs.append(float(hourly @ fleet.hours) + paid)
        assert bill.cost_by_offer[at] == pytest.approx(min(costs))
    assert nodes_needed(fleet, np.full(len(fleet.jobs), -1)).sum() == 0
    assert limits_broken(replace(fleet, quotas=(), budget_per_day=None), nodes, 1e9) == []


def test_fees_count_in_the_budget_with_the_nodes() -> None:
    fleet = replace(a_fleet(2), fees_per_day=(10.0, 5.0))
    plan = planned(fleet)
    assert plan.cost_per_day == plan.bill.cost_per_day + 15.0
    assert plan.fees_by_job.tolist() == [10.0, 5.0]
    enough = replace(fleet, budget_per_day=plan.cost_per_day)
    assert planned(enough).cost_per_day == plan.cost_per_day
    too_low = plan_fleet(replace(fleet, budget_per_day=plan.cost_per_day - 1.0))
    assert isinstance(too_low, Infeasible)
    (relaxation,) = too_low.relaxations
    assert relaxation.startswith(f"budget: {plan.cost_per_day:.2f} a day instead of")


def test_only_jobs_that_are_served_pay_fees() -> None:
    fleet = replace(a_fleet(2), fees_per_day=(1000.0, 5.0), budget_per_day=100.0)
    plan = serve_most(fleet)
    assert (plan.supply_of >= 0).tolist() == [False, True]
    assert plan.fees_by_job.tolist() == [0.0, 5.0]
    assert plan.cost_per_day <= 100.0
