"""`headway capacity`: a fleet's file to what to buy, in text and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headway.api.page import page as page_of
from headway.cli.main import run

ROOT = Path(__file__).parents[2]
FLEET = """\
apiVersion: headway/v1
kind: CapacityPlan
metadata: {name: f}
spec:
  catalog:
    date: 2026-11-01
    currency: EUR
    nodes:
    - {name: small, cores: 4, memory: 16Gi, price_per_hour: 0.2, committed_price_per_hour: 0.12}
    - {name: large, cores: 16, memory: 64Gi, price_per_hour: 0.7, spot_price_per_hour: 0.3}
  jobs:
  - name: report
    batch: {declared: {work: 20h, tasks: 400, executor_memory: 4g}, deadline: 2h, start_hour: 1}
  - name: index
    batch:
      declared: {work: {low: 5h, mid: 10h, high: 20h}, tasks: 400, executor_memory: 4g}
      deadline: 3h
      start_hour: 22
  pools: [{name: main, cores_per_executor: 4}]
  schedule: hourly
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    return path


def answer(path: Path, capsys: pytest.CaptureFixture[str], *options: str, code: int = 0) -> dict:  # type: ignore[type-arg]
    assert run(["capacity", str(path), "--json", *options]) == code
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_each_job_runs_in_its_hours(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = answer(fleet, capsys)
    assert data["schema"] == "headway.capacity/v1"
    by_name = {job["job"]: job["executors"] for job in data["jobs"]}
    assert [hour for hour, count in enumerate(by_name["report"]) if count] == [1, 2]
    # It runs over midnight.
    assert [hour for hour, count in enumerate(by_name["index"]) if count] == [0, 22, 23]
    assert sum(job["cost_per_day"] for job in data["jobs"]) == pytest.approx(data["cost_per_day"])
    assert data["gap"] <= 0.001


def test_the_text_leads_with_the_answer(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["capacity", str(fleet)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("f: 2 jobs on ")
    assert "EUR per day" in out.splitlines()[0]
    assert max(map(len, out.splitlines())) <= 100


def test_growth_costs_more_month_by_month(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = answer(fleet, capsys, "--growth", "3x", "--by", "2027-05")
    costs = [point["cost_per_day"] for point in data["growth"]]
    assert [point["month"] for point in data["growth"]][::6] == ["2026-11", "2027-05"]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1] == data["cost_per_day"]


@pytest.mark.parametrize("rule", ["mid", "least-regret", "chance"])
def test_rules_for_ranges_are_seeded(
    fleet: Path, capsys: pytest.CaptureFixture[str], rule: str
) -> None:
    high = answer(fleet, capsys)
    fleet.write_text(f"{FLEET}  scenarios: {{rule: {rule}, count: 5, seed: 3}}\n")
    first, second = answer(fleet, capsys), answer(fleet, capsys)
    assert first == second
    assert first["scenarios"] != high["scenarios"]
    if rule == "mid":
        assert first["cost_per_day"] < high["cost_per_day"]


def test_a_budget_that_is_too_small_says_what_would_do(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cost = answer(fleet, capsys)["cost_per_day"]
    fleet.write_text(f"{FLEET}  budget: {{per_day: {cost / 2:.2f}}}\n")
    data = answer(fleet, capsys, code=3)
    assert data["unserved"]
    assert data["relaxations"][0].startswith("budget: ")
    fleet.write_text(f"{FLEET}  budget: {{per_day: {cost / 2:.2f}}}\n  objective: served\n")
    served = answer(fleet, capsys, code=3)
    assert sum(job["served"] for job in served["jobs"]) == 1
    assert served["cost_per_day"] <= cost / 2


def test_a_job_that_fits_nowhere_says_why(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.write_text(FLEET.replace("work: 20h", "work: 2000h"))
    assert run(["capacity", str(fleet)]) == 3
    assert (
        "report cannot run anywhere: no number of executors meets deadline"
        in capsys.readouterr().out
    )


def test_where_no_job_can_run_as_many_as_can_be_are_none(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = FLEET.replace("work: 20h", "work: 2000h").replace("high: 20h", "high: 3000h")
    fleet.write_text(f"{nowhere}  objective: served\n")
    data = answer(fleet, capsys, code=3)
    assert [job["served"] for job in data["jobs"]] == [False, False]
    assert all("no number of executors meets deadline" in job["why"] for job in data["jobs"])
    assert data["cost_per_day"] == 0
    assert run(["capacity", str(fleet)]) == 3
    out = capsys.readouterr().out
    assert out.startswith("f: 0 of 2 jobs on at most 0 nodes, 0.00 EUR per day")
    assert "report: cannot run anywhere" in out


def test_what_is_not_served_says_why(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cost = answer(fleet, capsys)["cost_per_day"]
    fleet.write_text(f"{FLEET}  budget: {{per_day: {cost / 2:.2f}}}\n  objective: served\n")
    assert run(["capacity", str(fleet)]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "1 of 2 jobs" in out
    assert "no plan within the limits serves more, by weight; no plan that serves as much" in out
    assert "the limits leave no room for it besides the served jobs" in out


def test_what_would_do_instead_does(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.write_text(FLEET.replace("work: 20h", "work: 2000h"))
    (instead,) = answer(fleet, capsys, code=3)["relaxations"]
    name, deadline = instead.split(": deadline <= ")
    assert name == "report"
    minutes = int(deadline.removesuffix(" min"))
    fleet.write_text(FLEET.replace("work: 20h", "work: 2000h").replace("2h", f"{minutes}min"))
    answer(fleet, capsys)


@pytest.mark.parametrize(
    ("change", "why", "instead"),
    [
        ("pool: main\n    zone: z", "no zone z in pool main", "no zone"),
        ("", "no node of pool main has room for an executor of 4 cores and a heap of", "smaller"),
    ],
)
def test_a_job_that_is_let_in_nowhere_says_what_would_do(
    fleet: Path, capsys: pytest.CaptureFixture[str], change: str, why: str, instead: str
) -> None:
    text = FLEET.replace("- name: report", f"- name: report\n    {change}")
    text = text.replace("executor: 4}]", "executor: 4}, {name: far, zones: [z]}]")
    fleet.write_text(text if change else FLEET.replace("memory: 4g", "memory: 100g"))
    data = answer(fleet, capsys, code=3)
    assert data["impossible"][0]["why"].startswith(why)
    assert data["relaxations"][0].startswith(f"report: {instead}")


@pytest.mark.parametrize("sharing", ["shared", "dedicated"])
def test_nodes_in_reserve_are_held_while_there_is_something_to_do(
    fleet: Path, capsys: pytest.CaptureFixture[str], sharing: str
) -> None:
    """One rule, in pools of both kinds."""
    text = FLEET.replace("cores_per_executor: 4}", f"sharing: {sharing}, failures: 2}}")
    fleet.write_text(text.replace("  schedule", "  node_types: [small]\n  schedule"))
    (bought,) = answer(fleet, capsys)["purchases"]
    needs = [hour for hour, nodes in enumerate(bought["nodes"]) if nodes]
    assert needs == [0, 1, 2, 22, 23]


@pytest.mark.parametrize("rule", ["chance", "least-regret"])
def test_what_jobs_need_is_what_was_planned_for(
    fleet: Path, capsys: pytest.CaptureFixture[str], rule: str
) -> None:
    """Not the upper end of every range: the nodes hold the executors that are printed."""
    fleet.write_text(
        f"{FLEET}  scenarios: {{rule: {rule}, count: 9, seed: 2}}\n  node_types: [small]\n"
    )
    data = answer(fleet, capsys)
    assert not data["promise_prices"]
    needs = [sum(job["executors"][hour] for job in data["jobs"]) for hour in range(24)]
    (bought,) = data["purchases"]
    assert bought["nodes"] == needs


@pytest.mark.parametrize(
    ("old", "new", "options", "expected"),
    [
        ("schedule: hourly", "node_types: [huge]", [], "no node 'huge' in the catalogue"),
        ("", "", ["--by", "2027-01"], "--by needs --growth"),
        ("", "", ["--growth", "lots"], "expected a ratio"),
        ("", "", ["--growth", "2x", "--by", "soon"], "expected a month"),
        (
            "",
            "",
            ["--growth", "2x", "--by", "2020-01"],
            "expected a month after that of the prices, 2026-11",
        ),
        ("kind: CapacityPlan", "kind: Cluster", [], "unknown key"),
    ],
)
def test_bad_input_is_reported(
    fleet: Path,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    options: list[str],
    expected: str,
) -> None:
    fleet.write_text(FLEET.replace(old, new))
    assert run(["capacity", str(fleet), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert expected in err


def test_batch_jobs_have_a_probability_along_their_ranges(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    high = {job["job"]: job for job in answer(fleet, capsys)["jobs"]}
    assert high["index"]["kept_probability"] >= 0.94
    assert high["report"]["verdict"] == "kept"
    # Enough for the middle of a range is too little for a third to a half of it.
    fleet.write_text(f"{FLEET}  scenarios: {{rule: mid}}\n")
    mid = {job["job"]: job for job in answer(fleet, capsys)["jobs"]}
    assert 0.4 < mid["index"]["kept_probability"] < 0.95
    assert mid["index"]["verdict"] == "too close to tell"


def test_the_page_has_what_the_text_has(
    fleet: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fleet.write_text(f"{FLEET}  budget: {{per_day: 500}}\n")
    options = ("--growth", "3x", "--by", "2027-05")
    assert run(["capacity", str(fleet), *options]) == 0
    text = " ".join(capsys.readouterr().out.split())
    data = tmp_path / "plan.json"
    assert run(["capacity", str(fleet), *options, "--json"]) == 0
    data.write_text(capsys.readouterr().out, encoding="utf-8")
    page = page_of(data)
    found = json.loads(data.read_text(encoding="utf-8"))
    assert found["budget_per_day"] == 500.0
    assert found["proof"] in text
    assert found["proof"] in page
    assert "budget 15,000.00 EUR per month" in text
    assert "budget 15,000.00 EUR per month" in page
    assert "per day" not in text.partition("jobs")[2].replace("EUR per day (", "")
    for job in found["jobs"]:
        for shown in (f"{job['kept_probability']:.1%}", f"{job['cost_per_day'] * 30:,.2f}"):
            assert shown in text
            assert shown in page
    for point in found["growth"]:
        for shown in (point["month"], f"{point['ratio']:.2f}x", str(point["max_nodes"])):
            assert shown in text
            assert shown in page
        assert f"{point['cost_per_day'] * 30:,.2f}" in text
        assert f"{point['cost_per_day'] * 30:,.2f}" in page


def test_the_cost_of_the_nodes_is_that_of_a_month(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = answer(fleet, capsys)
    assert run(["capacity", str(fleet)]) == 0
    _, _, bought = capsys.readouterr().out.partition("nodes to buy")
    for purchase in data["purchases"]:
        assert f"{purchase['cost_per_day'] * 30:,.2f} EUR" in bought
    head = bought.splitlines()[1].split()
    assert ("spot" in head) == any(max(purchase["spot"]) for purchase in data["purchases"])
    assert ("committed" in head) == any(purchase["committed"] for purchase in data["purchases"])


def test_pools_without_reserved_cores_are_noted(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = "no core of a node is reserved for the system in pool main"
    assert answer(fleet, capsys)["notes"][0].startswith(note)
    assert run(["capacity", str(fleet)]) == 0
    assert f"\nnote: {note}" in capsys.readouterr().out
    fleet.write_text(FLEET.replace("name: main", "name: main, reserved_cores: 0"))
    assert note in answer(fleet, capsys)["notes"][0]
    fleet.write_text(FLEET.replace("executor: 4}", "executor: 2, reserved_cores: 1}"))
    assert answer(fleet, capsys)["notes"] == []


def test_money_has_its_currency(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.write_text(FLEET + "  budget: {per_day: 0.10}\n")
    (relaxation,) = answer(fleet, capsys, code=3)["relaxations"]
    assert re.fullmatch(r"budget: [0-9.]+ EUR a day instead of 0\.10", relaxation)
    fleet.write_text(FLEET + "  scenarios: {rule: least-regret, count: 3}\n")
    assert re.search(r"at worst [0-9.]+ EUR per day too much", answer(fleet, capsys)["scenarios"])
