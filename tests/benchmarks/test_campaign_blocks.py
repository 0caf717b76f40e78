"""The campaign in blocks, its promises, and what the page says of them."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import run_campaign
from campaign.blocks import BLOCKS, MAIN, SPEED, Block, Window, repeats
from campaign.plan_tables import plan_tables
from campaign.plots import reliability_diagram
from campaign.reliability import Outcome, outcomes_of, regime_table, reliability_table
from campaign.running import PROBE_S, WARM_UP_S
from campaign.schedule import FURTHER_REPEAT, GROUPS, JUDGE, NUM_REPEATS, Run, runs_of
from planned_runs import asked_of, left_s

from headway.domain import Arrivals, Configuration
from headway.models.job.predict import predict
from tests.factories import a_profile

Row = dict[str, Any]
HOUR_S = 3600.0


def test_every_run_is_in_one_block(tmp_path: Path) -> None:
    of_blocks = Counter(
        (leg.group.name, run.name)
        for block in BLOCKS
        for leg in block.legs(repeats(further=False))
        for run in leg.left(tmp_path)
    )
    every = {
        (group.name, run.name)
        for group in GROUPS.values()
        for run in runs_of(group)
        if run.repeat <= NUM_REPEATS
    }
    assert set(of_blocks) == every
    assert set(of_blocks.values()) == {1}


def test_a_block_is_whole_and_takes_less_than_an_hour(tmp_path: Path) -> None:
    for block in BLOCKS:
        assert run_campaign.left_s(block, repeats(further=False), tmp_path) < HOUR_S
        by_setting = Counter(
            (run.group, run.workload, run.setting)
            for leg in block.legs(repeats(further=False))
            for run in leg.left(tmp_path)
            if run.role == JUDGE
        )
        assert set(by_setting.values()) <= {1, NUM_REPEATS}
    assert sorted(one for block in BLOCKS if block.has_plans for one in block.workloads) == sorted(
        MAIN.workloads
    )


def test_the_further_repeat_is_of_judged_settings_alone(tmp_path: Path) -> None:
    further = [
        run
        for block in BLOCKS
        for leg in block.legs(repeats(further=True))
        for run in leg.left(tmp_path)
    ]
    assert further
    assert {(run.role, run.repeat) for run in further} == {(JUDGE, FURTHER_REPEAT)}


def keep_truth(folder: Path, runs: list[Run], group: str, *, cut: bool = False) -> None:
    path = folder / group / "truth.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps({"name": run.name}) + "\n" for run in runs)
    path.write_text(text[:-3] if cut else text)


def test_what_is_on_record_is_not_run_again(tmp_path: Path) -> None:
    block = BLOCKS[0]
    leg = next(block.legs(repeats(further=False)))
    runs = leg.left(tmp_path)
    whole_s = leg.left_s(tmp_path)
    keep_truth(tmp_path, runs[:3], leg.group.name)
    assert leg.left(tmp_path) == runs[3:]
    assert leg.left_s(tmp_path) == pytest.approx(
        whole_s - sum(run.lasts_s + 0.2 for run in runs[:3])
    )
    # A line that was cut is a run that is not on record.
    keep_truth(tmp_path, runs[:3], leg.group.name, cut=True)
    assert leg.left(tmp_path) == runs[2:]
    keep_truth(tmp_path, runs, leg.group.name)
    assert leg.left_s(tmp_path) == 0.0


class Carried:
    """Stands for the JVMs: what was begun, in its order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs: list[Run] = []
        self.plans: list[tuple[str, ...]] = []
        monkeypatch.setattr(run_campaign, "run_group", self.run_group)
        monkeypatch.setattr(run_campaign, "run_plans", self.run_plans)
        monkeypatch.setattr(run_campaign, "write_speed", lambda path: path.write_text(""))

    def run_group(self, group: Any, folder: Path, runs: list[Run], _has_room: Any) -> None:
        self.runs += runs
        done = [run for run in self.runs if run.group == group.name]
        keep_truth(folder.parent, done, group.name)

    def run_plans(self, _folder: Path, workloads: tuple[str, ...], _has_room: Any) -> None:
        self.plans.append(workloads)


def given(folder: Path, **changes: Any) -> Namespace:
    asked = dict.fromkeys(("block", "workload", "minutes")) | dict.fromkeys(
        ("cut", "further", "count"), False
    )
    nothing_kept = {"results": folder / "none"}
    return Namespace(folder=folder, **asked | nothing_kept | changes)


def test_repeats_follow_each_other_in_a_block_and_plans_come_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried = Carried(monkeypatch)
    run_campaign.run(given(tmp_path, block=["main-1"]))
    order = [run.repeat for run in carried.runs]
    assert order == sorted(order)
    assert set(order) == set(repeats(further=False))
    assert carried.plans == [BLOCKS[0].workloads]


def test_only_blocks_that_end_in_the_window_are_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried = Carried(monkeypatch)
    run_campaign.run(given(tmp_path, minutes=1.0))
    assert not carried.runs
    assert not (tmp_path / run_campaign.SPEED_FILE).exists()
    small = next(block for block in BLOCKS if block.name == "small-1")
    needed_min = run_campaign.left_s(small, repeats(further=False), tmp_path) / 60.0
    blocks = ["main-1", "small-1"]
    run_campaign.run(given(tmp_path, minutes=needed_min + 1.0, block=blocks))
    assert {run.group for run in carried.runs} == {group.name for group in small.groups}


def test_the_count_names_every_block_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    carried = Carried(monkeypatch)
    run_campaign.run(given(tmp_path, count=True))
    out = capsys.readouterr().out
    assert not carried.runs
    assert [line.split()[0] for line in out.splitlines()] == [
        *(block.name for block in BLOCKS),
        "left",
    ]


def test_a_window_without_an_end_has_room_for_everything() -> None:
    assert Window(None).has_room_for(1e9)
    assert Window(1.0).has_room_for(50.0)
    assert not Window(1.0).has_room_for(70.0)


def test_sixty_promises_and_more_on_all_workloads() -> None:
    every = [one for name in MAIN.workloads for one in asked_of(name, 1e5)]
    assert len(every) >= 60
    assert {one.workload for one in every} == set(MAIN.workloads)
    assert len({one.name for one in every}) == len(every)
    assert every == [one for name in MAIN.workloads for one in asked_of(name, 1e5)]


def test_plans_that_are_on_record_take_no_time(tmp_path: Path) -> None:
    workloads = MAIN.workloads[:2]
    assert left_s(tmp_path, workloads) > 2 * 15.0
    (tmp_path / "planned").mkdir()
    lines = [
        json.dumps({"name": one.name}) + "\n" for name in workloads for one in asked_of(name, 1e5)
    ]
    (tmp_path / "planned" / "truth.jsonl").write_text("".join(lines))
    assert left_s(tmp_path, workloads) == 0.0


def test_the_speed_is_measured_once(tmp_path: Path) -> None:
    speed = next(block for block in BLOCKS if block.name == SPEED)
    assert run_campaign.left_s(speed, repeats(further=False), tmp_path) > 60.0
    (tmp_path / run_campaign.SPEED_FILE).write_text("")
    assert run_campaign.left_s(speed, repeats(further=False), tmp_path) == 0.0
    assert not list(speed.legs((1,)))
    assert isinstance(speed, Block)
    assert PROBE_S < WARM_UP_S


def a_plan(verdict: str, probability: float, of_limit: float) -> Row:
    return {
        "name": f"plan/{verdict}/{of_limit}",
        "target": "p99 <= 1s",
        "rate_per_s": 1000.0,
        "statistic": "p99",
        "limit_s": 1.0,
        "feasible": verdict == "kept",
        "planned_latency_s": 0.9,
        "kept_probability": probability,
        "verdict": verdict,
        "setting": {"trigger_s": 1.0, "partitions": 2, "max_rows": None},
        "cores_of_others": 0.0,
        "truth": {"latency": {"p99": of_limit}},
    }


def said_of(plans: list[Row]) -> dict[str, str]:
    lines = [line for line in plan_tables(plans, {}) if line.startswith("* ")]
    return dict(zip(("kept", "refused", "open"), lines, strict=True))


def test_promises_are_held_to_what_they_must_hold() -> None:
    kept = [a_plan("kept", 0.97, 0.8 + 0.01 * number) for number in range(9)]
    near = [a_plan("too close to tell", 0.5, ratio) for ratio in (0.7, 0.9, 1.1, 1.3)]
    far = [a_plan("not kept", 0.01, ratio) for ratio in (2.0, 2.1, 0.99)]
    said = said_of([*kept, *near, *far])
    assert "0 of 9 are, met" in said["kept"]
    assert "1 of 12 are, met" in said["refused"]
    assert "4 targets were called" in said["open"]
    assert "with a mean probability of 50%: 50% were met" in said["open"]
    assert said["open"].endswith("met.")
    said = said_of([*kept, a_plan("kept", 0.96, 1.06), *far])
    assert "1 of 10 are, **missed**" in said["kept"]
    assert "No target was called" in said["open"]
    refused = [a_plan("not kept", 0.01, 0.9 + 0.01 * number) for number in range(6)]
    assert "6 of 15 are, **missed**" in said_of([*kept, *refused])["refused"]
    wrong = [a_plan("too close to tell", 0.9, 1.5 + 0.1 * number) for number in range(8)]
    assert said_of([*kept, *wrong])["open"].endswith("**missed**.")


def test_stated_probabilities_stand_beside_what_came_of_them() -> None:
    outcomes = [Outcome(0.7, kept) for kept in (True, True, True, False)]
    lines = list(reliability_table([*outcomes, Outcome(0.99, True)]))
    assert "| 60 to 80% | 4 | 70% | 75% | 23% |" in lines
    assert "| too close to tell | 4 | 70% | 75% | 23% |" in lines
    assert "| keeps it | 1 | 99% | 100% | 10% |" in lines
    assert "| does not keep it | 0 | - | - | - |" in lines


def test_the_reliability_diagram_is_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra 'benchmarks'")
    outcomes = [Outcome(0.7, kept) for kept in (True, True, True, False)]
    for name in ("a.svg", "b.svg"):
        reliability_diagram({"all": [*outcomes, Outcome(0.99, True)] * 60}, tmp_path / name)
    first = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert first == (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert "300 promises" in first


def test_promises_about_a_run_are_drawn_once_and_judged_by_what_was_measured() -> None:
    profile = a_profile()
    setting = Configuration(executors=1, cores_per_executor=4, shuffle_partitions=8, trigger_s=2.0)
    arrivals = Arrivals(rate_per_s=profile.arrivals.rate_per_s / 2, dispersion_ratio=1.0)
    latency = predict(profile, setting, arrivals).tuple_latency
    assert latency is not None
    never = dict.fromkeys(("mean", "p95", "p99"), 1e9)
    at_once = dict.fromkeys(("mean", "p95", "p99"), 1e-9)
    drawn = [
        outcomes_of(profile, setting, arrivals, latency, measured_s, name)
        for name in ("a", "a", "b")
        for measured_s in (never, at_once)
    ]
    assert [one.kept for one in drawn[0]] == [False] * 3
    assert [one.kept for one in drawn[1]] == [True] * 3
    probabilities = [[one.probability for one in found] for found in drawn]
    assert probabilities[0] == probabilities[1] == probabilities[2] != probabilities[4]
    assert all(0.0 <= one <= 1.0 for found in probabilities for one in found)


def test_each_plan_stands_with_its_probability() -> None:
    *_, header, rule, row, end = plan_tables([a_plan("kept", 0.97, 0.8)], {})
    assert header.count("|") == rule.count("|") == row.count("|")
    assert "| 97% |" in row
    assert not end


def test_promises_of_a_regime_have_a_score_and_a_largest_gap() -> None:
    right = [Outcome(0.95, True)] * 19 + [Outcome(0.95, False)]
    wrong = [Outcome(0.55, False)] * 10
    few = [Outcome(0.05, True)] * 9
    lines = list(regime_table({"right": right, "wrong": wrong + few}))
    # Of exact probabilities, the scores are 0.95 x 0.05, and mostly 18 to 20 of the 20 are kept.
    assert lines[2] == "| right | 20 | 0.048 | 0.048 | 0% | 5% | 0 of 1 |"
    score = (10 * 0.55**2 + 9 * 0.95**2) / 19
    exact_score = (10 * 0.55 * 0.45 + 9 * 0.05 * 0.95) / 19
    assert lines[3] == f"| wrong | 19 | {score:.3f} | {exact_score:.3f} | 55% | 15% | 1 of 1 |"
