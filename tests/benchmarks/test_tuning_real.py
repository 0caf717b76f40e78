"""Real steps of load: the schedule, each figure of a run, and the page of them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import tuning_real
from query_progress import batches_of
from result_lines import keep, rule_tree
from tuning_figures import Figure, figures_of, floor_ratio_of, late_share, off_ratio_of
from tuning_steps import PARTS, Schedule, fixed_question, predicted_decision_s

from headway.formats.profile_file import load_profile

ROOT = Path(__file__).parents[2]


def test_rows_of_a_schedule_are_late_by_their_arrival() -> None:
    schedule = Schedule((100.0, 300.0, 100.0), (0.0, 10.0, 20.0), 30.0)
    assert [schedule.arrived(one) for one in (0.0, 5.0, 10.0, 12.0, 20.0, 30.0)] == [
        0.0, 500.0, 1000.0, 1600.0, 4000.0, 5000.0,
    ]  # fmt: skip
    # Done at 15 s, all that arrived before 12 s is late; rows 1500 to 1600 of this batch.
    assert schedule.late_rows(1500.0, 2000.0, 15.0, 3.0) == pytest.approx(100.0)
    assert schedule.late_rows(1700.0, 2000.0, 15.0, 3.0) == 0.0


def test_the_same_seed_makes_the_same_steps() -> None:
    one, again, other = (Schedule.of(1000.0, (60.0, 60.0, 30.0), seed) for seed in (1, 1, 2))
    assert one == again
    assert one.from_s != other.from_s
    assert one.rates_per_s == (200.0, 600.0, 200.0)
    assert 60.0 <= one.from_s[1] <= 66.0


def run_of(*, mode: str = "act", pause_s: float = 0.5) -> dict[str, Any]:
    """100 rows/s, 300 from 20 s on: restarted from 2 s to 1 s of trigger at 30 s."""
    batches = [[at, 0.5, 100 * 2] for at in range(2, 22, 2)]
    batches += [[at, 1.8, 300 * 2] for at in range(22, 30, 2)]
    # The pause: rows from 28 s on are read at 32 s, and done at 34 s.
    batches += [[32.0, 2.0, 1200], [34.0, 1.2, 600]]
    batches += [
        [at + 0.2, 1.0 if at > 36 else 0.7, 300 if at > 36 else 660] for at in range(36, 60)
    ]
    change = {
        "number": 1, "kind": "restart", "reason": "trigger", "began_s": 1030.0, "pause_s": pause_s,
        "expected": {"pause_s": 1.5, "late_s": 2.0, "back_within_s": 6.0},
    }  # fmt: skip
    return {
        "part": "trigger", "repeat": 1, "mode": mode, "target": "p99 <= 3s",
        "rates_per_s": [100.0, 300.0, 100.0], "from_s": [0.0, 20.0, 60.0], "ends_s": 61.0,
        "predicted_decision_s": 12.0, "started_s": 1000.0, "batches": batches,
        "audit": [{"event": "applied", "at_s": 1030.7, "change": change}] * (mode == "act"),
        "pauses_s": [1.5] * (mode == "act"),
    }  # fmt: skip


def test_each_figure_is_measured_as_it_was_predicted() -> None:
    decision, pause, late, kept = figures_of(run_of())
    assert (decision.predicted, decision.measured) == (12.0, 10.0)
    assert decision.is_met(0.3)
    # Half a second of standing still, and a second that the first batch is longer.
    assert pause.predicted == 1.5
    assert pause.measured == pytest.approx(1.5)
    # Of the rows since 30 s those until 31 s were late at 34 s, and those until 32.2 s at 35.2 s.
    assert late.measured == pytest.approx(1.0 + 0.2)
    assert not late.is_met(0.3)
    assert kept.is_bound
    assert kept.measured == pytest.approx(5.2)
    assert kept.is_met(0.3)


def test_no_change_is_as_predicted_only_where_none_was() -> None:
    (none,) = figures_of(run_of(mode="off"))
    assert not none.is_met(0.3)
    assert Figure("decision after the step", None, None).is_met(0.3)


def test_late_rows_count_where_they_arrived() -> None:
    assert late_share(run_of(), 0) == 0.0
    assert late_share(run_of(), 1) > 0.01


def page_of(results: Path, output: Path | None = None) -> str:
    given = argparse.Namespace(
        results=results, measure=False, list=False, part=None, mode=None, short=False, output=output
    )
    page = tuning_real.text(given)
    assert page is not None
    return page


def test_the_page_judges_what_was_run(tmp_path: Path) -> None:
    results = tmp_path / "runs.jsonl"
    for mode in ("off", "act"):
        keep(results, run_of(mode=mode))
    page = page_of(results)
    assert "| 1 | restart, trigger | pause | 1.50 s | 1.50 s | +0% |" in page
    assert "| late arrivals | 1 | 0 | 0 | 40% | - | missed |" in page
    assert "| act | 1 | 1 | 0.0% |" in page


def test_each_repeat_has_every_mode_and_what_was_run_is_not_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tuning_real.runs_of(PARTS["trigger"], 5)
    assert len(set(runs)) == 15
    results = tmp_path / "runs.jsonl"
    for rule in ("of another rule", rule_tree()[:8]):
        keep(results, run_of() | {"rule": rule})
    given = argparse.Namespace(
        results=results, measure=False, list=True, part="trigger", mode=None, short=False
    )
    assert tuning_real.text(given) is None
    assert "trigger: 14 runs" in capsys.readouterr().out
    assert "1 run with rules before this one; the first change came 10 to 10 s" in page_of(results)


def test_a_run_from_which_the_expectation_was_made_does_not_judge_it(tmp_path: Path) -> None:
    results = tmp_path / "runs.jsonl"
    before = run_of()
    del before["pauses_s"]
    for one in (before, run_of(mode="off")):
        keep(results, one)
    page = page_of(results)
    assert "| pause |" not in page
    assert "1 earlier run in act" in page
    assert "14 of 15 runs are not measured" in page


def test_a_batch_that_ran_again_counts_once() -> None:
    event = {"timestamp": "1970-01-01T00:00:02.500Z", "durationMs": {"triggerExecution": 500}}
    progress = [{"batchId": at, "numInputRows": 10 * at, **event} for at in (1, 0, 2, 1)]
    assert batches_of(progress) == [(2.5, 0.5, 10), (2.5, 0.5, 20)]


def test_the_rule_is_simulated_on_the_steps_before_a_run() -> None:
    profile = load_profile(ROOT / "examples" / "word-count.profile.yaml")
    part = PARTS["trigger"]
    capacity_per_s, target = fixed_question(part, profile)
    schedule = Schedule.of(capacity_per_s, (110.0, 170.0, 45.0), seed=1)
    decision_s = predicted_decision_s(part, profile, target, schedule)
    assert decision_s is not None
    assert 15.0 < decision_s < 75.0


def test_without_results_the_page_says_so_and_draws_nothing(tmp_path: Path) -> None:
    page = page_of(tmp_path / "none.jsonl", tmp_path / "page.md")
    assert "Not measured yet" in page
    assert ".svg" not in page
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_was_only_prepared_is_not_measured(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results = tmp_path / "runs.jsonl"
    keep(results, {"part": "executors", "capacity_per_s": 9.0, "target": "p99 <= 4s"})
    keep(results, run_of())
    page = page_of(results, tmp_path / "page.md")
    assert "## Part executors\n\nNot measured yet." in page
    assert "1 of 15 runs; the other 14 are not measured yet." in page
    assert "Part `executors`: 15 of 15 runs are not measured" in page
    picture = tmp_path / "img" / "tuning-real.svg"
    assert f"](img/{picture.name})" in page
    assert picture.stat().st_size > 0


def test_a_part_cut_before_its_first_run_in_act_judges_nothing(tmp_path: Path) -> None:
    results = tmp_path / "runs.jsonl"
    for mode in ("off", "recommend"):
        keep(results, run_of(mode=mode))
    page = page_of(results, tmp_path / "page.md")
    assert "No run in act is measured yet" in page
    assert "| recommend | 1 | 0 |" in page
    assert " met |" not in page
    assert ".svg" not in page


def test_error_and_floor_are_the_same_statistic() -> None:
    of = [Figure("pause", 2.0, measured) for measured in (1.0, 2.0, 3.0)]
    assert off_ratio_of(of) == pytest.approx(0.5)
    # Means of the others: 2.5, 2.0, 1.5.
    assert floor_ratio_of(of) == pytest.approx(0.6)
    assert floor_ratio_of(of[:2]) is None
    # What was not measured is left out of both.
    assert off_ratio_of([*of, Figure("pause", 2.0, None)]) == pytest.approx(0.5)
    assert off_ratio_of([Figure("kept again", 2.0, 1.0, True)]) is None
