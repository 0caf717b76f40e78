"""Two plans, profiles or logs side by side: `headway diff` and `headway.diff`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import headway
from headway.api.results import as_text
from headway.cli.main import run
from headway.domain import StreamAnswer
from headway.errors import InputError
from headway.formats.as_json import json_text, plan_json
from headway.formats.profile_file import save_profile
from headway.planner.explain.difference import Difference, parts_by_work
from tests.ci.conftest import SPEC, slower
from tests.factories import a_profile
from tests.planner.test_deadline import a_long_job
from tests.profiler.event_log import AppLog, Query, write_plain

NODE = "big:cores=4,memory=32g,price=0.4"
BATCH = "apiVersion: headway/v1\nkind: BatchJob\nmetadata: {name: nightly}\nspec:\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save_profile(a_profile(), "orders.profile.yaml")
    save_profile(slower(a_profile(), 1.5), "slower.profile.yaml")
    save_profile(a_long_job(), "nightly.profile.yaml")
    return tmp_path


def a_plan(name: str, *, profile: str = "orders.profile.yaml", rate: str = "5k/s",
           target: str = "p99 <= 5s", node: str = NODE) -> str:  # fmt: skip
    plan = headway.plan(profile, rate=rate, target=target, node_types=[node])
    Path(name).write_text(json_text(plan_json(plan)))
    return name


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert run(["diff", *words]) == code
    return capsys.readouterr().out


def test_a_plan_does_not_differ_from_itself(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = a_plan("a.json")
    assert printed(capsys, plan, plan).splitlines()[0] == "no difference"
    assert json.loads(printed(capsys, plan, plan, "--json"))["same"] is True


def test_a_higher_rate_is_named_with_what_it_costs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, a_plan("a.json"), a_plan("b.json", rate="375k/s"))
    first, *_ = text.splitlines()
    assert first.startswith("+")
    assert "per month (+" in first
    assert "instead of 1" in first
    assert "rate 5k/s -> 375k/s: " in text
    assert "executors  " in text
    data = json.loads(printed(capsys, "a.json", "b.json", "--json"))
    assert data["schema"] == "headway.diff/v1"
    (cause,) = data["causes"]
    assert cause["whys"] == ["rate"]
    cost = next(one for one in data["figures"] if one["name"] == "cost")
    assert cause["cost_per_month"] == pytest.approx(cost["after"] - cost["before"], rel=1e-4)
    assert cost["unit"] == "per month"


def all_changed() -> Difference:
    a_plan("a.json")
    save_profile(slower(a_profile(), 1.2), "slow.profile.yaml")
    node = "{name: big, cores: 4, memory: 64Gi, price_per_hour: 0.5}"
    spec = SPEC.replace("orders.profile", "slow.profile").replace("5k/s", "150k/s")
    cheap = "{name: n4, cores: 4, memory: 32Gi, price_per_hour: 0.2}"
    Path("b.yaml").write_text(spec.replace("5s", "1.2s").replace(cheap, node))
    return headway.diff("a.json", "b.yaml")


def test_the_money_of_all_causes_adds_up(folder: Path) -> None:
    found = all_changed()
    cost = found.figure("cost")
    assert cost is not None
    assert cost.before is not None
    assert cost.after is not None
    added = sum(one.cost_per_month or 0.0 for one in found.causes)
    assert added == pytest.approx(cost.after - cost.before, rel=1e-3)
    named = [why for one in found.causes for why in one.whys]
    assert named[0] == "price of a node"
    assert {"target", "rate"} <= set(named)


def test_without_a_profile_target_and_costs_are_one_cause(folder: Path) -> None:
    first = a_plan("a.json", rate="140k/s")
    second = a_plan("b.json", rate="140k/s", target="p99 <= 2s", profile="slower.profile.yaml")
    (cause,) = headway.diff(first, second).causes
    assert cause.whys == ("costs of the job", "target")
    changes = "the costs of the job and the target (p99 <= 5.00 s -> p99 <= 2.00 s)"
    assert cause.in_words.startswith(f"together, {changes} need ")


def test_a_plan_that_is_infeasible_exits_with_3(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = a_plan("a.json"), a_plan("b.json", target="p99 <= 1ms")
    assert printed(capsys, good, bad, code=3).startswith("B is infeasible, A is feasible")
    assert printed(capsys, bad, good).startswith("B is feasible, A is infeasible")
    assert not headway.diff(good, bad).causes


def test_profiles_name_the_stage_that_became_slower(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = a_profile()
    *others, last = profile.stages
    changed = replace(last, task_per_row_s=20.0 * last.task_per_row_s)
    save_profile(replace(profile, stages=(*others, changed)), "b.profile.yaml")
    text = printed(capsys, "orders.profile.yaml", "b.profile.yaml")
    assert text.startswith("a batch takes ")
    assert f"{last.name}, per row" in text
    assert "per task" not in text
    found = headway.diff("orders.profile.yaml", "b.profile.yaml")
    assert found.parts[0].name == last.name
    ratio = found.figure(f"{last.name}, per row")
    assert ratio is not None
    assert ratio.change_ratio == pytest.approx(19.0)


def test_profiles_are_compared_at_one_rate_which_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = a_profile()
    busier = replace(profile, arrivals=replace(profile.arrivals, rate_per_s=7000.0))
    save_profile(busier, "busier.profile.yaml")
    text = printed(capsys, "orders.profile.yaml", "busier.profile.yaml")
    assert "both at 7k/s in the last profiled configuration of B" in text
    assert "rate as profiled" not in text
    own = f"{profile.arrivals.rate_per_s / 1000:g}k/s"
    assert f"rate of the profile  {own} -> 7k/s" in text
    data = json.loads(printed(capsys, "orders.profile.yaml", "busier.profile.yaml", "--json"))
    (rate,) = (figure for figure in data["figures"] if figure["name"] == "rate")
    assert rate["before"] == rate["after"] == 7000.0


def test_the_profile_without_a_time_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = a_profile()
    busy = slower(replace(profile, arrivals=replace(profile.arrivals, rate_per_s=50_000.0)), 0.1)
    save_profile(busy, "busy.profile.yaml")
    save_profile(slower(busy, 1e3), "hopeless.profile.yaml")
    first = printed(capsys, "busy.profile.yaml", "hopeless.profile.yaml").splitlines()[0]
    assert first.startswith("a batch has no time to quote: B is over capacity (stable up to ")
    first = printed(capsys, "hopeless.profile.yaml", "busy.profile.yaml").splitlines()[0]
    assert first.startswith("a batch has no time to quote: A is over capacity (stable up to ")


def test_rates_up_to_which_a_plan_holds_are_rounded_down(folder: Path) -> None:
    first, second = (
        headway.plan("orders.profile.yaml", rate=rate, target="p99 <= 5s", node_types=[NODE])
        for rate in ("5k/s", "6k/s")
    )
    stable = replace(first, prediction=replace(first.prediction, sustainable_rate_per_s=139_960.0))
    text = as_text(headway.diff(stable, second))
    assert "139k/s" in text
    assert "140k/s" not in text


def test_stages_that_compute_something_else_are_not_compared(folder: Path) -> None:
    first, second = (
        headway.plan("orders.profile.yaml", rate=rate, target="p99 <= 5s", node_types=[NODE])
        for rate in ("5k/s", "60k/s")
    )
    stage = a_profile().stages[0].name

    def computing(work: str) -> StreamAnswer:
        plan = first if work == "join" else second
        return replace(plan, prediction=replace(plan.prediction, stage_work={stage: work}))

    parts = {part.name: part for part in headway.diff(computing("join"), computing("read")).parts}
    assert parts[f"{stage} (join)"].after_s is None
    assert parts[f"{stage} (read)"].before_s is None
    assert stage not in parts
    # If one of them does not say what a stage computes, it is the same stage.
    joins, nothing = {stage: "join"}, dict[str, str]()
    for works in ((joins, nothing), (nothing, joins)):
        (part,) = parts_by_work({stage: 0.2}, {stage: 0.9}, *works)
        assert (part.name, part.before_s, part.after_s) == (f"{stage} (join)", 0.2, 0.9)


def test_stages_of_profiles_that_compute_something_else_have_rows_of_their_own(
    folder: Path,
) -> None:
    profile = a_profile()
    joining, reading = (
        replace(profile, stages=(replace(profile.stages[0], work=work), *profile.stages[1:]))
        for work in ("join", "read")
    )
    name = profile.stages[0].name
    difference = headway.diff(joining, slower(reading, 2.0))
    costs = {figure.name: figure for figure in difference.figures}
    assert costs[f"{name} (join), per task"].after is None
    assert costs[f"{name} (read), per task"].before is None


def test_logs_are_profiled_first(folder: Path) -> None:
    write_plain(AppLog().add(Query(num_batches=40)).lines, folder / "log")
    assert headway.diff("log", folder / "log").is_none
    against = headway.diff("orders.profile.yaml", "log")
    assert against.kind == "profile"
    assert not against.is_none


def test_two_batch_jobs_are_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, deadline in (("a", "300s"), ("b", "100s")):
        spec = f"{BATCH}  profile: nightly.profile.yaml\n  deadline: {deadline}\n"
        Path(f"{name}.yaml").write_text(spec)
    text = printed(capsys, "a.yaml", "b.yaml")
    assert "target deadline <= 5 min -> deadline <= 100 s: " in text
    assert "planned run time" in text
    recorded = a_long_job()
    shorter = replace(recorded, driver_only_s=recorded.driver_only_s / 2)
    save_profile(shorter, "b.profile.yaml")
    assert printed(capsys, "nightly.profile.yaml", "b.profile.yaml").startswith("a run takes ")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("a.json", "orders.profile.yaml", "a.json is the plan of a streaming query, orders"),
        ("orders.profile.yaml", "nightly.profile.yaml", "the profile of a batch application"),
        ("a.json", "headway.lock", "headway check SPEC --baseline headway.lock"),
        ("a.json", "none.json", "none.json"),
    ],
)
def test_what_cannot_be_compared_is_said(folder: Path, first: str, second: str, said: str) -> None:
    a_plan("a.json")
    Path("headway.lock").write_text("schema: headway.lock/v1\nheadway_version: x\n")
    with pytest.raises((InputError, headway.HeadwayError), match=said):
        headway.diff(first, second)
    assert run(["diff", first, second]) == 2


def test_noun_and_file_mean_the_same(folder: Path) -> None:
    found = headway.diff(a_profile(), slower(a_profile(), 1.5))
    assert found.names == ("A", "B")
    of_files = headway.diff("orders.profile.yaml", "slower.profile.yaml")
    for ours, theirs in zip(found.figures, of_files.figures, strict=True):
        assert (ours.name, ours.unit) == (theirs.name, theirs.unit)
        assert ours.after == pytest.approx(theirs.after, rel=1e-5)
