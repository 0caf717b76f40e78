"""A plan without a rate: what the profiled setting does today, and what other rates need."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.cli.main import run
from headway.domain import InfeasiblePlan, JobProfile, Plan
from headway.formats.from_json import parse_plan
from headway.formats.profile_file import load_profile, save_profile
from headway.units import format_duration

PROFILE = Path(__file__).parents[2] / "examples" / "word-count.profile.yaml"
NODE = "a.large:cores=4,memory=14g,price=0.192"


@pytest.fixture(scope="module")
def profile() -> JobProfile:
    return load_profile(PROFILE)


def planned(profile: JobProfile, **question: Any) -> Plan | InfeasiblePlan:
    plan: Plan | InfeasiblePlan = headway.plan(profile, **question)
    return plan


def in_short(plan: Plan) -> tuple[object, ...]:
    """What the table says of a plan."""
    return (
        plan.nodes,
        plan.cost_per_hour,
        plan.configuration,
        plan.prediction.latency(plan.target.metric),
        plan.planned_latency_s,
    )


@pytest.mark.parametrize(
    ("target", "node_types"), [("p99 <= 2s", [NODE]), ("mean <= 1s", []), ("batch p95 <= 1s", [])]
)
def test_each_row_is_the_plan_for_its_rate(
    target: str, node_types: list[str], profile: JobProfile
) -> None:
    plan = planned(profile, target=target, node_types=node_types)
    profiled_per_s = profile.arrivals.rate_per_s
    ratios = [row.rate_per_s / profiled_per_s for row in plan.rates]
    # Two digits are at most a twentieth off.
    assert ratios == pytest.approx([0.5, 1.0, 1.5, 2.0, 3.0], rel=0.05)
    assert plan.rates[1].rate_per_s == profiled_per_s
    for row in plan.rates:
        asked = planned(profile, rate=row.rate_per_s, target=target, node_types=node_types)
        assert asked.feasible
        assert asked.rates == ()
        assert in_short(asked) == (
            row.nodes, row.cost_per_hour, row.configuration, row.predicted, row.planned_latency_s
        )  # fmt: skip


def test_the_table_has_the_whole_bill_and_says_why_a_trigger_is_longer(
    profile: JobProfile, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(profile, target="p99 <= 2s", node_types=[NODE], checkpoint_store="s3")
    assert plan.writes is not None
    assert plan.writes.cost_per_hour is not None
    profiled = plan.rates[1]
    assert profiled.cost_per_hour == plan.cost_per_hour == pytest.approx(0.192)
    assert profiled.bill_per_hour == profiled.cost == plan.cost
    assert profiled.cost == pytest.approx(0.192 + plan.writes.cost_per_hour)
    unpriced = planned(profile, target="p99 <= 2s").rates[1]
    assert (unpriced.bill_per_hour, unpriced.cost) == (None, None)

    why = "At lower rates a longer trigger meets the target too"
    for options in ([], ["--target", "p99 <= 2s"]):
        assert run(["plan", str(PROFILE), *options]) == 0
        data = planned(profile, **({"target": "p99 <= 2s"} if options else {}))
        lower, own, *_ = data.rates
        assert lower.configuration is not None
        assert own.configuration is not None
        is_longer = lower.configuration.trigger_s > own.configuration.trigger_s
        assert (why in capsys.readouterr().out) is is_longer


def test_rates_that_no_setting_meets_have_no_nodes(
    profile: JobProfile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--target", "p99 <= 2s", "--max-nodes", "1")
    most = planned(profile, target="p99 <= 2s", max_nodes=1).frontier[0].sustainable_rate_per_s
    busy = replace(profile, arrivals=replace(profile.arrivals, rate_per_s=0.6 * most))
    save_profile(busy, tmp_path / "busy.yaml")
    plan = planned(busy, target="p99 <= 2s", max_nodes=1)
    assert [row.nodes for row in plan.rates] == [1, 1, 1, None, None]
    assert run(["plan", str(tmp_path / "busy.yaml"), *options]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert sum(row[1:2] == ["none"] for row in rows) == 2
    # Where even the profiled rate is too high, lower ones are still planned.
    over = replace(profile, arrivals=replace(profile.arrivals, rate_per_s=1.6 * most))
    infeasible = planned(over, target="p99 <= 2s", max_nodes=1)
    assert not infeasible.feasible
    assert [row.nodes for row in infeasible.rates] == [1, None, None, None, None]


def test_a_burst_is_above_every_rate(profile: JobProfile) -> None:
    burst_per_s = 2.5 * profile.arrivals.rate_per_s
    plan = planned(profile, target="p99 <= 5s", bursts=[f"{burst_per_s}/s:1m"])
    assert len(plan.rates) == 4
    assert all(row.rate_per_s < burst_per_s for row in plan.rates)


def test_files_have_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(PROFILE), "--target", "p99 <= 2s", "--json"]) == 0
    text = capsys.readouterr().out
    data = json.loads(text)
    assert [row["nodes"] for row in data["rates"]] == [1] * 5
    assert set(data["rates"][0]["predicted_s"]) == {"mean", "p50", "p95", "p99", "interval90"}
    read_back = parse_plan(text, name="plan.json")
    assert [row.rate_per_s for row in read_back.rates] == [
        row["rate_per_s"] for row in data["rates"]
    ]
    del data["rates"]
    assert parse_plan(json.dumps(data), name="plan.json").rates == ()


@pytest.mark.usefixtures("small_pages")
def test_the_page_has_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "plan.html"
    assert run(["plan", str(PROFILE), "--target", "p99 <= 2s", "-q", "-o", str(page)]) == 0
    capsys.readouterr()
    assert "Nodes for other rates within p99 &lt;= 2.00 s" in page.read_text()


@pytest.mark.parametrize("nodes", [[], ["--node-type", NODE]])
@pytest.mark.parametrize("target", [[], ["--target", "p99 <= 2s"]])
def test_the_answer_with_the_table_fits_one_screen(
    target: list[str], nodes: list[str], profile: JobProfile, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", str(PROFILE), *target, *nodes]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 25, "\n".join(lines)
    (head,) = (number for number, line in enumerate(lines) if "tuple latency at" in line)
    marked = [line.startswith(">") for line in lines[head + 1 : head + 6]]
    assert marked == [False, True, False, False, False]
    assert "(profiled)" in lines[head + 2]
    assert not any("no other" in line for line in lines)
    if not target:
        today = headway.predict(profile).tuple_latency
        assert today is not None
        assert "profiled setting" in lines[1]
        assert f"p99 {format_duration(today.p99_s)} predicted" in lines[1]
