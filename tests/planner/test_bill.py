"""The bill of a plan: nodes and write requests, which budget and objective count together."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway.api.results import as_text
from headway.cli.main import run
from headway.digits import format_money
from headway.domain import (
    DefaultParallelism,
    FindingCode,
    JobProfile,
    NodeType,
    SourceTasks,
    Target,
)
from headway.domain.writes import CheckpointStore
from headway.errors import InputError
from headway.formats.from_json import parse_plan
from headway.planner.bill import bill_per_hour
from headway.planner.candidates import Candidates, all_candidates
from headway.planner.question import Question, SearchSpace
from headway.profiler.plan_text import read_plan
from headway.report.sheet_text import sheet_text
from headway.report.stream import stream_sheet
from headway.spec.parts import store_price
from tests.factories import a_profile
from tests.models.job.test_kept_bytes import with_state
from tests.planner.jobs import windowed

NODE = "roomy:cores=4,memory=64g,price=0.2"
HOURS_PER_MONTH = 720
# One batch per second at eight partitions: offsets, commits, and of each of eight stores a file of
# changes, and once a minute a snapshot; at S3 each of them is a PUT, a COPY and ten LISTs.
FILES_PER_S = 2 + 8 * (1 + 1 / 60)
REQUESTS_PER_S = 12 * FILES_PER_S
COST_PER_HOUR = 3600 * REQUESTS_PER_S * 5e-6


def planned(profile: JobProfile | None = None, **options: Any) -> Any:
    question: dict[str, Any] = {
        "rate": 2000.0,
        "target": "p99 <= 3s",
        "node_types": [NODE],
        "cores": 4,
        "max_nodes": 8,
        "executor_memory_bytes": 2**30,
    }
    return headway.plan(profile or a_profile(), **(question | options))


def test_requests_follow_files_batches_and_the_price() -> None:
    plan = planned(trigger="1s", partitions=8, checkpoint_store="s3")
    assert plan.writes.batches_per_hour == pytest.approx(3600.0)
    assert plan.writes.requests_per_hour == pytest.approx(3600 * REQUESTS_PER_S)
    assert plan.writes.cost_per_hour == pytest.approx(COST_PER_HOUR)
    assert plan.cost == pytest.approx(plan.nodes * 0.2 + COST_PER_HOUR)
    text = as_text(plan)
    by_month = COST_PER_HOUR * HOURS_PER_MONTH
    assert f"write requests to s3 {by_month:,.0f}" in text
    assert len(text.splitlines()) <= 25
    assert plan.to_dict()["bill_per_hour"] == pytest.approx(plan.cost, rel=1e-5)
    assert plan.to_dict()["cost_per_hour"] == pytest.approx(plan.nodes * 0.2)


def test_requests_have_the_currency_of_their_price() -> None:
    plan = planned(node_types=(), trigger="1s", partitions=8, checkpoint_store="s3")
    by_month = f"{COST_PER_HOUR * HOURS_PER_MONTH:,.0f} USD per month"
    assert f"write requests to s3 {by_month}; nodes not priced" in as_text(plan)
    assert f"Write requests cost {by_month}, at prices of" in sheet_text(stream_sheet(plan))
    assert plan.to_dict()["writes"]["currency"] == "USD"


@pytest.mark.parametrize(
    ("store", "requests"), [("s3", 12), ("gcs", 2), ("adls", 4), ("hdfs", 1), ("disk", 1)]
)
def test_each_store_has_its_price_and_requests_per_file(
    store: CheckpointStore, requests: int
) -> None:
    price = store_price(store)
    assert price is not None
    assert price.requests_renamed + price.lists_renamed == requests
    writes = planned(trigger="1s", partitions=8, checkpoint_store=store).writes
    assert writes.requests_per_hour == pytest.approx(3600 * FILES_PER_S * requests)
    assert bool(writes.cost_per_hour) == (store not in ("hdfs", "disk"))


def test_without_a_store_files_are_counted_and_not_priced() -> None:
    plan = planned(trigger="1s", partitions=8)
    assert plan.writes.files_per_hour == pytest.approx(3600 * FILES_PER_S)
    assert (plan.writes.requests_per_hour, plan.writes.cost_per_hour) == (None, None)
    assert plan.cost == plan.cost_per_hour
    assert "bill" not in as_text(plan)
    assert "--checkpoint-store" in sheet_text(stream_sheet(plan))


def test_free_requests_change_no_plan() -> None:
    free, unknown = planned(checkpoint_store="disk"), planned()
    assert (free.configuration, free.nodes) == (unknown.configuration, unknown.nodes)
    assert free.cost == unknown.cost


def test_the_logged_store_is_priced_unless_another_is_given() -> None:
    profile = a_profile()
    logged = replace(profile, shape=replace(profile.shape, checkpoint_store="gcs"))
    assert planned(logged).writes.store == "gcs"
    assert planned(logged, checkpoint_store="adls").writes.store == "adls"


@pytest.mark.parametrize(
    ("address", "store"),
    [
        ("s3a://bucket/c/state", "s3"),
        ("abfss://c@account.dfs.core.windows.net/state", "adls"),
        ("hdfs://name:8020/c/state", "hdfs"),
        ("file:/c/state", None),
        ("<unknown>", None),
    ],
)
def test_a_log_shows_the_store_by_the_scheme(address: str, store: CheckpointStore | None) -> None:
    text = (
        "== Physical Plan ==\n"
        f"StateStoreSave [k#2L], state info [ checkpoint = {address}, runId = r, opId = 0, "
        "ver = 3, numPartitions = 2], Update, 0, 2\n"
        "+- LocalTableScan [k#2L]\n"
    )
    assert read_plan(text).checkpoint_store == store


def settings_that_meet(target: str, rate_per_s: float, confidence: float) -> Candidates:
    """Every setting on up to eight nodes that meets a target, with S3's prices."""
    space = SearchSpace(
        max_nodes=8,
        cores_per_executor=4,
        node_type=NodeType.parse(NODE),
        executor_memory_bytes=2**30,
    )
    profile = a_profile()
    question = Question(
        profile=replace(profile, arrivals=replace(profile.arrivals, rate_per_s=rate_per_s)),
        target=Target.parse(target),
        space=space,
        confidence=confidence,
        store_price=store_price("s3"),
        objective="cost",
    ).at_confidence(confidence)
    settings = all_candidates(question, range(1, 9))
    return settings.take(settings.meets(rate_per_s))


@pytest.mark.parametrize(
    ("target", "rate_per_s"),
    [("p99 <= 3s", 2000.0), ("mean <= 6s", 4000.0), ("p99 <= 800ms", 60_000.0)],
)
def test_cost_takes_the_lowest_bill_of_all_settings(target: str, rate_per_s: float) -> None:
    asked: dict[str, Any] = {"target": target, "rate": rate_per_s, "checkpoint_store": "s3"}
    plan = planned(**asked, objective="cost")
    meeting = settings_that_meet(target, rate_per_s, plan.confidence)
    assert plan.cost == pytest.approx(float(bill_per_hour(meeting).min()))
    assert plan.cost < planned(**asked).cost
    # Fewer files per batch, even with fewer shuffle partitions than slots.
    assert plan.configuration.shuffle_partitions < plan.configuration.num_slots
    fixed = [
        planned(**asked, objective="cost", partitions=partitions).cost
        for partitions in (1, 2, 4, 8)
    ]
    assert plan.cost == pytest.approx(min(fixed))


def test_of_equal_bills_the_setting_is_the_preferred_one() -> None:
    free = planned(objective="cost", checkpoint_store="disk")
    assert free.configuration == planned(objective="nodes").configuration


@pytest.mark.parametrize("objective", ["nodes", "cost"])
def test_a_new_checkpoint_says_what_the_existing_one_costs(objective: str) -> None:
    asked: dict[str, Any] = {"checkpoint_store": "s3", "objective": objective}
    profile = a_profile()
    run = profile.settings[-1]
    today = replace(run.configuration, shuffle_partitions=2)
    profile = replace(profile, settings=(replace(run, configuration=today),))
    plan = planned(profile, **asked)
    (finding,) = [
        finding for finding in plan.findings if finding.code is FindingCode.CHECKPOINT_WOULD_DO
    ]
    with_state = planned(profile, **asked, checkpoint="existing")
    added_per_hour = finding.numbers["added_cost_per_hour"]
    assert added_per_hour == pytest.approx(with_state.cost - plan.cost)
    # A partition for every slot costs more than today's two, and a single one less.
    assert (added_per_hour < 0) == (objective == "nodes")
    by_month = format_money(abs(added_per_hour) * HOURS_PER_MONTH)
    difference = f"for {by_month} per month {'less' if added_per_hour < 0 else 'more'}"
    assert difference in " ".join(as_text(plan).split())


def test_an_existing_checkpoint_beyond_the_limits_does_not_meet_the_target() -> None:
    asked: dict[str, Any] = {"checkpoint_store": "s3", "objective": "cost"}
    with_state = planned(**asked, checkpoint="existing")
    num_files = round(with_state.writes.files_per_hour)
    for limit in ({"budget": 0.99 * with_state.cost}, {"limit": f"files <= {num_files - 9}/h"}):
        plan = planned(**asked, **limit)
        assert plan.feasible
        assert not planned(**asked, **limit, checkpoint="existing").feasible
        codes = {finding.code for finding in plan.findings}
        assert FindingCode.CHECKPOINT_WOULD_DO not in codes


@pytest.mark.parametrize("objective", ["nodes", "cost"])
def test_beyond_the_budget_the_nearest_plan_has_the_lowest_bill(objective: str) -> None:
    asked: dict[str, Any] = {"partitions": 8, "checkpoint_store": "s3", "objective": objective}
    lowest = planned(**(asked | {"objective": "cost"}))
    plan = planned(**asked, budget=0.9 * lowest.cost)
    assert not plan.feasible
    assert (plan.configuration, plan.cost) == (lowest.configuration, lowest.cost)
    assert plan.planned_latency_s == lowest.planned_latency_s
    (need,) = plan.needs
    assert need.within
    assert need.cost_per_hour == pytest.approx(lowest.cost)
    assert need.reached_s == lowest.planned_latency_s
    (reason,) = plan.binding
    assert reason == (
        f"the lowest bill that meets p99 <= 3.00 s is {lowest.cost:.3g} USD per hour for 1 node "
        f"and write requests, more than the budget of {0.9 * lowest.cost:.3g} USD"
    )
    assert "within the given limits" in as_text(plan).splitlines()[0]


def test_more_nodes_than_a_budget_pays_for_may_have_a_lower_bill() -> None:
    per_core = SourceTasks(parallelism=DefaultParallelism())
    source, *others = a_profile().stages
    job = replace(a_profile(), stages=(replace(source, source_tasks=per_core), *others))
    asked: dict[str, Any] = {"rate": 2e5, "checkpoint_store": "s3"}
    lowest = planned(job, **asked, objective="cost")
    assert lowest.nodes == 2
    (reason,) = planned(job, **asked, budget=0.3).binding
    assert reason.startswith("the lowest bill of up to 1 node that meets p99 <= 3.00 s is")
    assert reason.endswith(f"; that of 2 nodes is {lowest.cost:.3g} USD")


def test_beyond_the_limit_of_files_the_nearest_plan_has_the_fewest() -> None:
    asked: dict[str, Any] = {"partitions": 8, "checkpoint_store": "s3"}
    fewest = planned(**asked, objective="cost")
    num_files = fewest.writes.files_per_hour
    too_few = f"files <= {0.9 * num_files:.0f}/h"
    plan = planned(**asked, limit=too_few)
    assert plan.configuration == fewest.configuration
    of_two = planned(**asked, limit=too_few, target=["p99 <= 3s", "p50 <= 3s"]).binding[0]
    assert of_two.startswith("p99 <= 3.00 s and p50 <= 3.00 s take ")
    assert plan.binding[0].startswith(f"p99 <= 3.00 s takes {num_files:,.0f} files per hour")
    # With a budget, too, each is exceeded alone, or both are.
    enough = f"files <= {1.1 * num_files:.0f}/h"
    over_budget = planned(**asked, limit=enough, budget=0.9 * fewest.cost)
    assert over_budget.binding[0].startswith(
        f"the lowest bill that meets p99 <= 3.00 s with no more files than the limit of "
        f"{1.1 * num_files:,.0f} is"
    )
    over_both = planned(**asked, limit=too_few, budget=0.9 * fewest.cost)
    assert over_both.configuration == fewest.configuration
    assert over_both.binding[0].startswith("no configuration that meets p99 <= 3.00 s is within")


def test_beyond_the_budget_the_nearest_limit_is_one_that_it_pays_for() -> None:
    asked: dict[str, Any] = {"partitions": 8, "checkpoint_store": "s3"}
    budget = 0.9 * planned(**asked, objective="cost").cost
    plan = planned(**asked, budget=budget)
    (nearest,) = [target for target in plan.nearest if target.gives_way == "limit"]
    limit_s = nearest.numbers["limit_s"]
    there = planned(**asked, budget=budget, target=f"p99 <= {limit_s}s")
    assert there.feasible
    assert there.nodes == nearest.numbers["nodes"]
    assert there.cost <= budget
    assert not planned(**asked, budget=budget, target=f"p99 <= {0.985 * limit_s}s").feasible


@pytest.mark.parametrize("first", [0, 1])
def test_of_node_types_the_one_that_exceeds_the_budget_by_least_is_the_nearest(first: int) -> None:
    large = "large:cores=8,memory=64g,price=0.4"
    types = [NODE, large] if first == 0 else [large, NODE]
    asked: dict[str, Any] = {"partitions": 8, "checkpoint_store": "s3"}
    bills = [planned(**asked, objective="cost", node_types=[kind]).cost for kind in types]
    plan = planned(**asked, node_types=types, budget=0.9 * min(bills))
    assert plan.node_type.name == "roomy"
    assert plan.cost == pytest.approx(min(bills))


def test_a_bill_falls_with_the_trigger_interval() -> None:
    bills = [
        planned(trigger=trigger, partitions=8, checkpoint_store="s3").writes.cost_per_hour
        for trigger in ("0s", "500ms", "1s", "2s")
    ]
    assert bills == sorted(bills, reverse=True)
    assert bills[1] == pytest.approx(2 * bills[2], rel=0.05)
    assert np.all(np.diff(bills) < 0)


def test_a_budget_is_for_nodes_and_requests_together() -> None:
    fixed: dict[str, Any] = {"trigger": "1s", "partitions": 8, "checkpoint_store": "s3"}
    bill = planned(**fixed).cost
    assert planned(**fixed, budget=bill * 1.001).feasible
    too_small = planned(**fixed, budget=bill * 0.999)
    assert not too_small.feasible
    assert too_small.binding[0].startswith("the lowest bill that meets p99 <= ")
    # The nodes alone are within it, and a longer trigger is, too.
    assert planned(**(fixed | {"checkpoint_store": None}), budget=bill * 0.999).feasible
    longer = planned(partitions=8, checkpoint_store="s3", budget=bill * 0.999)
    assert longer.feasible
    assert longer.cost <= bill * 0.999


def test_a_plan_is_read_back_with_its_writes() -> None:
    plan = planned(checkpoint_store="s3")
    read = parse_plan(json.dumps(plan.to_dict()), name="plan.json")
    assert read.writes is not None
    assert read.writes.cost_per_hour == pytest.approx(plan.writes.cost_per_hour, rel=1e-5)
    assert read.cost == pytest.approx(plan.cost, rel=1e-5)
    earlier = plan.to_dict()
    del earlier["writes"]
    assert parse_plan(json.dumps(earlier), name="plan.json").writes is None


@pytest.mark.parametrize(("node_types", "currency"), [((NODE,), ""), ((), "USD")])
def test_a_difference_shows_requests_and_files(node_types: tuple[str, ...], currency: str) -> None:
    """Where the nodes have no price, all money is that of the store."""
    before, after = (
        planned(trigger=trigger, partitions=8, checkpoint_store="s3", node_types=node_types)
        for trigger in ("1s", "2s")
    )
    difference = headway.diff(before, after)
    requests = difference.figure("checkpoint store")
    files = difference.figure("files")
    assert requests is not None
    assert files is not None
    assert requests.change_ratio == pytest.approx(-0.5, abs=0.01)
    assert files.before == pytest.approx(3600 * FILES_PER_S)
    assert difference.currency == currency
    assert "checkpoint store" in as_text(difference)


def test_what_has_no_price_is_not_said_to_be_free() -> None:
    priced = planned(trigger="1s", partitions=8, checkpoint_store="s3")
    unpriced = headway.plan(a_profile(), rate=5000.0, target="p99 <= 3s")
    assert unpriced.cost is None
    whys = [why for cause in headway.diff(priced, unpriced).causes for why in cause.whys]
    assert "checkpoint store" not in whys


CATALOGUE = """\
apiVersion: headway/v1
kind: NodeCatalog
metadata: {name: own}
spec:
  date: 2026-01-02
  currency: USD
  nodes: [{name: roomy, cores: 4, memory: 64Gi, price_per_hour: 0.2}]
  stores: [{name: s3, price_per_million_writes: 50, requests_renamed: 1}]
"""


def test_own_prices_replace_those_of_the_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(CATALOGUE)
    fixed: dict[str, Any] = {"trigger": "1s", "partitions": 8, "catalog": path}
    writes = planned(**fixed, checkpoint_store="s3").writes
    assert writes.cost_per_hour == pytest.approx(3600 * FILES_PER_S * 50e-6)
    assert writes.prices_of == "2026-01-02"
    # What it lacks is as in Headway's own, if that has the same currency.
    assert planned(**fixed, checkpoint_store="gcs").writes.cost_per_hour > 0
    path.write_text(CATALOGUE.replace("USD", "EUR"))
    assert planned(**fixed, checkpoint_store="gcs").writes.cost_per_hour is None


@pytest.mark.parametrize("kind", ["real-time"])
def test_kinds_whose_writes_are_not_modelled_refuse_the_store(kind: str) -> None:
    with pytest.raises(InputError, match=r"checkpoint_store.*not modelled"):
        planned(mode=kind, checkpoint_store="s3")


def test_an_unknown_store_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", "examples/word-count.profile.yaml", "--checkpoint-store", "floppy"]
    assert run(arguments) == 2
    assert "s3" in capsys.readouterr().err


def test_a_plan_says_what_it_saves_against_the_profiled_executors() -> None:
    plan = headway.plan(
        windowed(),
        rate="20k/s",
        target="window p95 <= 20s",
        node_types=["n:cores=4,memory=64g,price=0.2"],
        cores=4,
    )
    # The profiled run had two executors of four cores.
    assert plan.nodes == 1
    text = " ".join(as_text(plan).split())
    saved = "0.2 per hour, 144 per month, 144 less than 2 for the profiled executors"
    assert f"1 node of n, {saved} " in text


def test_every_row_of_a_frontier_keeps_the_limit_of_files() -> None:
    options: dict[str, Any] = {"target": "p99 <= 12s", "partitions": 8}
    free = planned(**options)
    limited = planned(**options, limit="files <= 9k/h")
    # Ten files and a snapshot of eight stores each minute: 9,000 in an hour are a batch in 3.9 s.
    intervals_s = [row.configuration.trigger_s for row in limited.frontier]
    assert min(intervals_s) >= 3.9 > min(row.configuration.trigger_s for row in free.frontier)
    pairs = zip(free.frontier, limited.frontier, strict=False)
    assert all(row.sustainable_rate_per_s <= other.sustainable_rate_per_s for other, row in pairs)


def test_a_limit_that_nothing_keeps_leaves_an_empty_frontier() -> None:
    plan = planned(trigger="1s", partitions=8, limit="files <= 900/h", max_nodes=2)
    assert not plan.feasible
    assert [row.sustainable_rate_per_s for row in plan.frontier] == [0.0, 0.0]
    assert "files" in as_text(plan)


def test_space_is_part_of_the_bill(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(CATALOGUE.replace("requests_renamed: 1", "price_per_gb_month: 720000"))
    fixed: dict[str, Any] = {"trigger": "1s", "partitions": 8, "catalog": path}
    plan = planned(with_state(), **fixed, checkpoint_store="s3")
    # 720,000 per GB and month are 1,000 per GB and hour.
    assert plan.writes.storage_cost_per_hour == pytest.approx(plan.writes.kept_bytes / 1e6)
    assert plan.writes.storage_cost_per_hour > 0
    assert plan.cost == pytest.approx(
        plan.nodes * 0.2 + plan.writes.cost_per_hour + plan.writes.kept_bytes / 1e6
    )
    assert ", space " in " ".join(as_text(plan).split())
    assert "of state for minBatchesToRetain batches" in " ".join(
        sheet_text(stream_sheet(plan)).split()
    )


def test_requests_that_list_cost_as_much_as_writes(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(CATALOGUE.replace("requests_renamed: 1", "lists_renamed: 3"))
    fixed: dict[str, Any] = {"trigger": "1s", "partitions": 8, "catalog": path}
    writes = planned(**fixed, checkpoint_store="s3").writes
    files_per_hour = 3600 * FILES_PER_S
    assert writes.lists_per_hour == pytest.approx(3 * files_per_hour)
    assert writes.requests_per_hour == pytest.approx(4 * files_per_hour)
    assert writes.cost_per_hour == pytest.approx(4 * files_per_hour * 50e-6)


def test_a_frontier_keeps_the_budget_at_any_rate() -> None:
    price = NodeType(name="a", cores=4, price_per_hour=1.0)
    priced: dict[str, Any] = {"node_types": [price], "checkpoint_store": "s3", "max_nodes": 4}
    low, high = (
        headway.plan(a_profile(), rate=rate, target="p99 <= 4s", budget=2.5, **priced)
        for rate in ("2k/s", "10k/s")
    )
    rates_per_s = {point.nodes: point.sustainable_rate_per_s for point in low.frontier}
    assert {point.nodes: point.sustainable_rate_per_s for point in high.frontier} == rates_per_s
    most_per_s = max(rates_per_s.values())
    at_most = headway.plan(a_profile(), rate=most_per_s, target="p99 <= 4s", budget=2.5, **priced)
    assert at_most.feasible
    free = headway.plan(a_profile(), rate="2k/s", target="p99 <= 4s", **priced)
    assert most_per_s < max(point.sustainable_rate_per_s for point in free.frontier)
