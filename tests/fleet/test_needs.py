"""What jobs of a fleet need by the hour: the fewest executors at that hour's rate, no more."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import headway
from headway.api import fleet_streaming
from headway.api.capacity import capacity
from headway.api.results import as_text
from headway.assumptions.planning import CONFIDENCE
from headway.assumptions.resources import FLEET_STREAM_EXECUTORS
from headway.domain import JobProfile, NodeType, StateOperatorProfile, StateProfile, Target
from headway.fleet.nouns import Capacity, FleetPlan, Infeasible
from headway.formats.profile_file import dump_profile
from headway.planner.fewest_nodes import fewest_nodes
from headway.planner.nodes_by_rate import NodesByRate
from headway.planner.purchase import offers_of
from headway.planner.question import Question, SearchSpace
from headway.planner.search import question_of
from headway.spec.fleet_form import fleet_members
from headway.spec.kinds.capacity import CapacityPlan
from headway.spec.kinds.jobs import StreamingJob
from headway.spec.parts import profile_of
from headway.spec.spec_file import load_spec, spec_of
from tests.factories import a_configuration, a_profile

HEAD = """\
apiVersion: headway/v1
kind: CapacityPlan
metadata: {name: f}
spec:
  catalog:
    date: 2026-11-01
    currency: EUR
    nodes:
    - {name: one, cores: 4, memory: 16Gi, price_per_hour: 1, speed: 1.0}
  pools: [{name: main, cores_per_executor: 4}]
  schedule: hourly
  gap: 0%
"""
DAY_PER_S = [
    float(round(rate)) for rate in 2.4e4 * (1.0 + 0.95 * np.sin(np.arange(24) / 24 * 2 * np.pi))
]


#: The same day in steps of four hours: six rates are searched, not 24.
STEPS_PER_S = [DAY_PER_S[hour // 4 * 4] for hour in range(24)]


def a_wide_profile() -> JobProfile:
    """A query of 240 source partitions whose rows are dear: it needs dozens of executors."""
    base = a_profile()
    stages = (
        replace(base.stages[0], num_source_tasks=240, task_per_row_s=8e-4, task_fixed_s=0.002),
        base.stages[1],
    )
    size = a_configuration(executors=12, shuffle_partitions=48)
    seen = replace(
        base.settings[0], configuration=size, rows_per_batch_low=1e3, rows_per_batch_high=2e5
    )
    return replace(base, stages=stages, settings=(seen,))


def a_fleet_file(tmp_path: Path, jobs: str) -> Path:
    (tmp_path / "wide.yaml").write_text(dump_profile(a_wide_profile()))
    path = tmp_path / "fleet.yaml"
    path.write_text(f"{HEAD}  jobs:\n{jobs}")
    return path


def a_job(name: str, rates_per_s: list[float], target: str = "p99 <= 8s") -> str:
    daily = ", ".join(f"{rate}/s" for rate in rates_per_s)
    return (
        f"  - name: {name}\n    streaming:\n      profile: wide.yaml\n"
        f"      rate: {{daily: [{daily}]}}\n      target: {target}\n"
    )


NODE = NodeType(name="e", cores=4, executors_per_node=1)


@cache
def fewest(rate_per_s: float, target: str = "p99 <= 8s") -> int | None:
    """What a plan takes, without what it says beside."""
    profile = a_wide_profile()
    question = question_of(
        replace(profile, arrivals=replace(profile.arrivals, rate_per_s=rate_per_s)),
        Target.parse(target),
        SearchSpace(max_nodes=64),
        CONFIDENCE.value,
    )
    ((offer,), _) = offers_of(question, [NODE], cores_per_executor=4, budget_per_hour=None)
    return fewest_nodes(offer.question).nodes


def fewest_by_plan(rate_per_s: float) -> int:
    found = headway.plan(
        a_wide_profile(),
        rate=rate_per_s,
        target="p99 <= 8s",
        max_nodes=64,
        node_types=[NODE],
        cores=4,
    )
    assert found.feasible
    return found.nodes


def executors(answer: Capacity) -> list[list[int]]:
    assert isinstance(answer.plan, FleetPlan)
    return [[int(each) for each in job] for job in answer.fleet.units[:, 0, :]]


def test_every_hour_buys_what_a_plan_for_its_rate_needs(tmp_path: Path) -> None:
    """A frontier of twelve rows has gaps: hours between two of them once bought the next."""
    peak = max(DAY_PER_S)
    found = capacity(a_fleet_file(tmp_path, a_job("wide", DAY_PER_S)))
    (needs,) = executors(found)
    assert needs == [fewest(rate) for rate in DAY_PER_S]
    assert needs[::6] == [fewest_by_plan(rate) for rate in DAY_PER_S[::6]]
    assert needs[DAY_PER_S.index(peak)] > 10
    assert len(set(needs)) > 8
    assert isinstance(found.plan, FleetPlan)
    # One executor a node: what is bought is what is needed, by the hour.
    assert found.plan.bill.cost_per_day == pytest.approx(sum(needs))


@pytest.mark.parametrize("end", ["high", "mid"])
def test_declared_figures_are_planned_as_a_plan_plans_them(tmp_path: Path, end: str) -> None:
    rates = ", ".join(f"{{low: {rate}/s, mid: {2 * rate}/s, high: {3 * rate}/s}}"
                      for rate in DAY_PER_S)  # fmt: skip
    job = f"""\
  - name: wide
    streaming:
      declared:
        {{source_partitions: 96, task_per_row: {{low: 20us, mid: 40us, high: 60us}},
         shuffle_task_per_row: 10us, cores_per_executor: 4}}
      rate: {{daily: [{rates}]}}
      target: p99 <= 6s
"""
    path = a_fleet_file(tmp_path, job)
    path.write_text(f"{path.read_text()}  scenarios: {{rule: {end}}}\n")
    (needs,) = executors(capacity(path))
    ((_, job_spec),) = fleet_members(spec_of(load_spec(path), CapacityPlan))
    assert isinstance(job_spec, StreamingJob)
    alone = [
        headway.plan(
            profile_of("wide", job_spec),
            rate=(3 if end == "high" else 2) * rate,
            target="p99 <= 6s",
            max_nodes=64,
            node_types=[NODE],
            cores=4,
        )
        for rate in DAY_PER_S[::5]
    ]
    assert needs[::5] == [plan.nodes for plan in alone]
    assert all(plan.feasible for plan in alone)
    assert len(set(needs)) > 2


def test_jobs_that_are_alike_are_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []

    class Counted(NodesByRate):
        def __init__(self, *args: object) -> None:
            made.append(args)
            super().__init__(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("headway.api.fleet_streaming.NodesByRate", Counted)
    jobs = [a_job(f"j{at}", [rate * (1 + at / 9) for rate in STEPS_PER_S]) for at in range(3)]
    strict = a_job("strict", STEPS_PER_S, "p99 <= 7s")
    found = capacity(a_fleet_file(tmp_path, "".join([*jobs, strict])))
    needs = executors(found)
    assert needs[3][::6] == [fewest(rate, "p99 <= 7s") for rate in STEPS_PER_S[::6]]
    for at in (0, 2):
        assert needs[at][::12] == [fewest(rate * (1 + at / 9)) for rate in STEPS_PER_S[::12]]
    # Two promises, and the two that are a quarter looser.
    assert len(made) == 4


def test_a_job_whose_state_store_reports_metrics_has_a_place_in_a_fleet(tmp_path: Path) -> None:
    """They are a mapping in the profile of a query with state; the command ended in an error."""
    operator = StateOperatorProfile(
        name="stateStoreSave",
        rows=1000,
        memory_bytes=2**20,
        num_stores=8,
        commit_s=0.01,
        store_metrics={"loadedMapCacheHitCount": 8.0},
    )
    state = StateProfile(
        rows=1000,
        memory_bytes=2**20,
        commit_per_partition_s=0.0,
        growth_per_s=0.0,
        updated_rows=0.0,
        updated_row_s=0.0,
        operators=(operator,),
    )
    fleet = a_fleet_file(tmp_path, a_job("one", DAY_PER_S) + a_job("two", DAY_PER_S[::-1]))
    (tmp_path / "wide.yaml").write_text(dump_profile(replace(a_wide_profile(), state=state)))
    assert isinstance(capacity(fleet), Capacity)


def test_bounds_of_a_staircase_are_close_below_its_needs() -> None:
    profile = a_wide_profile()
    question = question_of(profile, Target.parse("p99 <= 8s"), SearchSpace(max_nodes=64), 0.9)
    rates_per_s = sorted({rate for rate in DAY_PER_S if rate > 0.0})
    needs = np.array(NodesByRate.searched(question, [rates_per_s]).fewest_nodes(rates_per_s))
    by_moments = NodesByRate.bounded(question, [rates_per_s]).least_nodes(rates_per_s)
    noise_free = NodesByRate(question).least_nodes(rates_per_s)
    assert by_moments is not None
    assert noise_free is not None
    assert (np.array(by_moments) <= needs).all()
    assert (np.array(by_moments) >= noise_free).all()
    assert np.mean(by_moments / needs) > max(0.9, 1.03 * float(np.mean(noise_free / needs)))


SPEEDS = """\
    - {name: fast, cores: 4, memory: 16Gi, price_per_hour: 1.5, speed: 1.25}
    - {name: slow, cores: 4, memory: 16Gi, price_per_hour: %s, speed: 0.8}
"""


@pytest.mark.parametrize(
    ("slow_price", "gap", "searched_speeds"),
    # Slow cores that no plan would use, that are cheapest, and that are nearly as cheap as others.
    [
        (1.4, "1%", {1.0}),
        (0.5, "0%", {0.8}),
        (0.795, "20%", {0.8}),
        (0.795, "0%", {0.8, 1.0}),
    ],
)
def test_a_large_fleet_is_searched_at_the_speeds_that_it_may_use(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    slow_price: float,
    gap: str,
    searched_speeds: set[float],
) -> None:
    jobs = a_job("wide", STEPS_PER_S) + a_job("strict", STEPS_PER_S, "p99 <= 7s")
    path = a_fleet_file(tmp_path, jobs)
    file_text = path.read_text().replace("  pools:", SPEEDS % slow_price + "  pools:")
    path.write_text(file_text.replace("gap: 0%", f"gap: {gap}"))
    of_all = capacity(path)
    searched: set[float] = set()
    search, per_row_s = NodesByRate.searched, a_wide_profile().stages[0].task_per_row_s

    def counted(question: Question, rates_per_s: list[list[float]]) -> NodesByRate:
        # Targets that are a quarter looser are priced, each at speeds of its own.
        if question.target.limit_s in (7.0, 8.0):
            searched.add(round(per_row_s / question.profile.stages[0].task_per_row_s, 3))
        return search(question, rates_per_s)

    monkeypatch.setattr(NodesByRate, "searched", counted)
    monkeypatch.setattr("headway.api.fleet_maker.MOST_PAIRS", 0)
    monkeypatch.setattr("headway.fleet.prices.MOST_PAIRS", 0)
    of_few = capacity(path)
    assert isinstance(of_all.plan, FleetPlan)
    assert isinstance(of_few.plan, FleetPlan)
    assert searched == searched_speeds
    gap_ratio = float(gap.removesuffix("%")) / 100
    assert of_few.plan.gap_ratio <= gap_ratio
    assert of_few.plan.bound_per_day <= of_all.plan.cost_per_day * (1 + 1e-9)
    assert of_few.plan.cost_per_day <= of_all.plan.bound_per_day / (1 - gap_ratio) * (1 + 1e-9)
    for index, supply in enumerate(of_few.plan.supply_of.tolist()):
        assert (of_few.fleet.units[index, supply] == of_all.fleet.units[index, supply]).all()


def test_a_job_beyond_all_executors_says_what_is_binding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        fleet_streaming, "FLEET_STREAM_EXECUTORS", replace(FLEET_STREAM_EXECUTORS, value=8)
    )
    found = capacity(a_fleet_file(tmp_path, a_job("wide", DAY_PER_S)))
    assert not found.feasible
    assert "8 executors" in found.why_impossible["wide"]
    assert isinstance(found.plan, Infeasible)
    (instead,) = found.plan.relaxations
    assert instead.startswith("wide: p99 <= 8.00 s at ")


def test_a_run_of_more_than_a_day_meets_the_next_one(tmp_path: Path) -> None:
    job = (
        "  - name: long\n    batch: {declared: {work: 400h, tasks: 4000, executor_memory: 4g}, "
        "deadline: 30h, start_hour: 1}\n"
    )
    (needs,) = executors(capacity(a_fleet_file(tmp_path, job)))
    assert needs[1:7] == [2 * needs[0]] * 6
    assert needs[7:] == [needs[0]] * 17


def test_a_looser_deadline_is_named_as_it_was_priced(tmp_path: Path) -> None:
    job = (
        "  - name: totals\n    batch: {declared: {work: 10min, tasks: 400, executor_memory: 4g}, "
        "deadline: 90s, start_hour: 1}\n"
    )
    (price,) = capacity(a_fleet_file(tmp_path, job)).target_prices
    assert (price.promise, price.looser) == ("deadline <= 90.0 s", "deadline <= 112.5 s")


PRICED = HEAD.replace(
    "    currency: EUR\n",
    "    currency: EUR\n"
    "    stores: [{name: s3, price_per_million_writes: 10, requests_renamed: 2}]\n",
)


def test_write_requests_are_part_of_the_bill_of_a_fleet(tmp_path: Path) -> None:
    rates_per_s = [1e3] * 12 + [2e3] * 12
    stored = "      checkpoint_store: s3\n      pinned: {trigger: 5s, shuffle_partitions: 48}\n"
    jobs = [a_job("wide", rates_per_s) + stored, a_job("unknown", rates_per_s)]
    path = a_fleet_file(tmp_path, "".join(jobs))
    # In a catalogue in euros there is no price, and Headway's own are in dollars.
    unpriced = capacity(path)
    path.write_text(path.read_text().replace(HEAD, PRICED))
    answer = capacity(path)
    assert isinstance(answer.plan, FleetPlan)
    assert isinstance(unpriced.plan, FleetPlan)
    # A batch every five seconds: offsets, commits, and of each of 48 stores a file of changes and,
    # in one batch of twelve, a snapshot; each is a PUT and a COPY.
    files = 24 * 720 * (2 + 48 * (1 + 1 / 12))
    assert list(answer.writes) == ["wide"]
    assert answer.writes["wide"].files_per_day == pytest.approx(files)
    assert answer.writes["wide"].cost_per_day == pytest.approx(2 * files * 10e-6)
    assert answer.plan.fees_by_job.tolist() == pytest.approx([2 * files * 10e-6, 0.0])
    assert answer.plan.cost_per_day == pytest.approx(
        unpriced.plan.bill.cost_per_day + 2 * files * 10e-6
    )
    assert unpriced.writes["wide"].files_per_day == pytest.approx(files)
    assert unpriced.writes["wide"].cost_per_day is None
    assert unpriced.plan.cost_per_day == unpriced.plan.bill.cost_per_day
    text = " ".join(as_text(answer).split())
    assert f"per month: nodes {30 * unpriced.plan.cost_per_day:,.2f} EUR, write requests" in text
    data = answer.to_dict()
    assert data["bill_per_day"] == pytest.approx(answer.plan.cost_per_day, rel=1e-5)
    assert data["cost_per_day"] == pytest.approx(unpriced.plan.cost_per_day, rel=1e-5)


def test_a_limit_of_files_counts_in_a_fleet(tmp_path: Path) -> None:
    free = a_job("wide", [1e3] * 24, "p99 <= 40s") + "      checkpoint_store: s3\n"
    files_per_day = capacity(a_fleet_file(tmp_path, free)).writes["wide"].files_per_day
    limited = capacity(a_fleet_file(tmp_path, f"{free}      limit: files <= 4k/h\n"))
    assert limited.feasible
    assert limited.writes["wide"].files_per_day <= 24 * 4000 * (1 + 1e-9) < files_per_day
    impossible = capacity(a_fleet_file(tmp_path, f"{free}      limit: files <= 10/h\n"))
    assert not impossible.feasible
    assert "files" in impossible.why_impossible["wide"]
