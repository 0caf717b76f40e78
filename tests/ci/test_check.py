"""The gate: what was planned once, held against what would be planned now."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

import headway
from headway.api.check import check, invalid_report
from headway.api.lock import lock
from headway.ci.formats import FORMATS
from headway.ci.nouns import Finding, Level, Rule
from headway.cli.check import _FORMATS
from headway.cli.main import run
from headway.domain import JobProfile, StateProfile, WarmUp, WarmUpPoint
from headway.domain.fleet_questions import Limits
from headway.errors import InfeasibleError, InputError
from headway.formats.lock_file import LOCK_NAME, Lock, load_lock, save_lock
from headway.formats.profile_file import save_profile
from tests.ci.conftest import SPEC, slower
from tests.factories import a_profile

A_SLOW_START = WarmUp(
    start_age_s=4.0,
    first_batch_extra_s=1.0,
    steady_age_s=120.0,
    points=(
        WarmUpPoint(jvm_age_s=6.0, duration_ratio=2.0, num_batches=3),
        WarmUpPoint(jvm_age_s=60.0, duration_ratio=1.2, num_batches=9),
    ),
)
FASTER = SPEC.replace("cores: 4,", "cores: 4, speed: 1.6,")


def rules(folder: Path, **limits: float) -> dict[Rule, Level]:
    report = check(["orders.yaml"], baseline="headway.lock", limits=Limits(**limits))  # type: ignore[arg-type]  # by name
    return {finding.rule: finding.level for finding in report.findings}


@cache
def lock_of(*_texts: str) -> Lock:
    """The lock of the current folder, which several tests begin with, made once."""
    return lock(["orders.yaml"])


def locked(folder: Path) -> None:
    texts = (folder / name for name in ("orders.yaml", "orders.profile.yaml"))
    save_lock(lock_of(*(path.read_text() for path in texts)), "headway.lock")


def test_the_same_job_passes_its_own_lock(folder: Path) -> None:
    locked(folder)
    report = check(["orders.yaml"], baseline="headway.lock")
    assert report.exit_code == 0
    assert report.errors == ()
    assert "every target is met" in report.headline


def a_growing_job() -> JobProfile:
    """A job whose state costs a microsecond per row, and gets as many rows as arrive."""
    state = StateProfile(
        rows=1_000_000, memory_bytes=10**8, commit_per_partition_s=0.001, growth_per_s=5000.0
    )
    profile = a_profile(state=state)
    holding = replace(profile.stages[-1], task_per_state_row_s=1e-6)
    return replace(profile, stages=(*profile.stages[:-1], holding))


def test_a_target_that_is_met_only_for_a_time_is_not_reported_as_met(folder: Path) -> None:
    save_profile(a_growing_job(), folder / "orders.profile.yaml")
    locked(folder)
    report = check(["orders.yaml"], baseline="headway.lock")
    assert report.exit_code == 0
    (warning,) = report.findings
    assert (warning.rule, warning.level) == (Rule.CAUTION, Level.WARNING)
    assert (warning.file, warning.line) == ("orders.yaml", 5)
    assert warning.message.startswith("the state grows by ")
    assert re.fullmatch(
        r"1 job: every target is met today, but orders meets its target only for [\d.]+ (s|min|h), "
        "1 warning",
        report.outcome,
    )
    for render in FORMATS.values():
        text = render(report)
        assert "the state grows by " in text
    assert "| ✅ |" not in FORMATS["markdown"](report)
    assert not report.is_quiet(0.02)


def test_an_outage_that_loses_rows_is_a_warning_at_the_retention(folder: Path) -> None:
    text = SPEC.replace("target: p99 <= 5s", 'target: ["p99 <= 5s", "catch_up <= 1h after 50m"]')
    (folder / "orders.yaml").write_text(f"{text}  retention: 3001s\n")
    report = check(["orders.yaml"])
    (warning,) = report.findings
    assert (warning.rule, warning.line) == (Rule.CAUTION, 11)
    assert "but orders loses rows in an outage of 50 min, 1 warning" in report.outcome


def test_a_lock_is_read_back_as_it_was_written(folder: Path) -> None:
    first = lock(["orders.yaml"])
    save_lock(first, "headway.lock")
    again = load_lock("headway.lock")
    save_lock(again, "again.lock")
    assert Path("again.lock").read_text() == Path("headway.lock").read_text()
    assert again.jobs[0].spark_conf == first.jobs[0].spark_conf
    assert again.jobs[0].planned_latency_s == pytest.approx(
        first.jobs[0].planned_latency_s, rel=1e-5
    )


@pytest.mark.parametrize(
    ("key", "number", "said"),
    [
        ("executors", 1_000_000, "executors is 1000000; expected at least 1, up to 100,000"),
        ("cores_per_executor", 0, "cores_per_executor is 0; expected at least 1"),
        ("shuffle_partitions", 0, "shuffle_partitions is 0"),
        ("nodes", 0, "nodes is 0; expected at least 1"),
        ("rate_per_s", 0, "rate_per_s is 0.0; expected a positive number"),
        ("cost_per_hour", -2, "the plan: cost_per_hour is -2.0; expected 0 or more"),
    ],
)
def test_a_locked_setting_that_cannot_be_is_refused_at_its_place(
    folder: Path, key: str, number: int, said: str
) -> None:
    locked(folder)
    path = folder / "headway.lock"
    path.write_text(re.sub(rf"\b{key}: [\d.]+", f"{key}: {number}", path.read_text()))
    with pytest.raises(InputError, match=rf"headway.lock:\d+:\d+: jobs\[0\]: {said}"):
        check(["orders.yaml"], baseline="headway.lock")


def test_a_target_that_cannot_be_met_is_reported_at_its_place(folder: Path) -> None:
    locked(folder)
    (folder / "orders.yaml").write_text(SPEC.replace("5s", "50ms"))
    report = check(["orders.yaml"], baseline="headway.lock")
    locked_setting, error = report.errors
    assert locked_setting.rule is Rule.LOCKED
    assert (error.rule, error.file, error.line) == (Rule.TARGET, "orders.yaml", 7)
    assert report.exit_code == 3


def test_promises_are_compared_by_their_numbers_not_by_their_words(folder: Path) -> None:
    path = folder / "orders.yaml"
    path.write_text(SPEC.replace("5s", "5.0049s"))
    locked(folder)
    notes = [each.message for each in check(["orders.yaml"], baseline="headway.lock").findings]
    assert not any("the target is" in note for note in notes)
    path.write_text(SPEC.replace("5s", "5.0011s"))  # the same to three digits
    notes = [each.message for each in check(["orders.yaml"], baseline="headway.lock").findings]
    assert "the target is p99 <= 5.0011 s, was p99 <= 5.0049 s" in notes


def test_locks_of_earlier_versions_hold_their_promises_as_words(folder: Path) -> None:
    (folder / "orders.yaml").write_text(SPEC.replace("5s", "5.0049s"))
    found = lock(["orders.yaml"])
    (job,) = found.jobs
    old = replace(job, promises=(), targets=("p99 <= 5.00 s",))
    save_lock(replace(found, jobs=(old,)), "headway.lock")
    assert "promises" not in Path("headway.lock").read_text()
    notes = [each.message for each in check(["orders.yaml"], baseline="headway.lock").findings]
    assert not any("the target is" in note for note in notes)
    (folder / "orders.yaml").write_text(SPEC.replace("5s", "6s"))
    notes = [each.message for each in check(["orders.yaml"], baseline="headway.lock").findings]
    assert any("the target is p99 <= 6.00 s, was p99 <= 5.00 s" in note for note in notes)


def test_a_plan_that_costs_more_is_a_regression(folder: Path) -> None:
    locked(folder)
    then = load_lock("headway.lock")
    assert then.jobs[0].cost_per_hour is not None
    job = replace(then.jobs[0], cost_per_hour=then.jobs[0].cost_per_hour / 2)
    save_lock(replace(then, jobs=(job,)), "headway.lock")
    assert rules(folder)[Rule.COST] is Level.ERROR
    assert check(["orders.yaml"], baseline="headway.lock").exit_code == 4
    assert rules(folder, cost_ratio=100.0)[Rule.COST] is Level.NOTE


def cost_finding(**limits: float) -> Finding:
    found = check(["orders.yaml"], baseline="headway.lock", limits=Limits(**limits)).findings  # type: ignore[arg-type]  # by name
    (cost,) = [one for one in found if one.rule is Rule.COST]
    return cost


def test_the_rate_that_makes_a_plan_more_expensive_is_named_at_its_line(folder: Path) -> None:
    locked(folder)
    (folder / "orders.yaml").write_text(SPEC.replace("5k/s", "375k/s"))
    cost = cost_finding()
    assert cost.line == 6
    assert re.match(r"\+[\d,.]+ per month: ", cost.message)
    assert re.search(r"rate 5k/s -> 375k/s: 2 nodes instead of 1", cost.message)


def test_the_target_that_makes_a_plan_more_expensive_is_named_at_its_line(folder: Path) -> None:
    (folder / "orders.yaml").write_text(SPEC.replace("5k/s", "180k/s"))
    locked(folder)
    (folder / "orders.yaml").write_text(SPEC.replace("5k/s", "180k/s").replace("5s", "1s"))
    cost = cost_finding()
    assert cost.line == 7
    assert "target p99 <= 5.00 s -> p99 <= 1.00 s: " in cost.message


@pytest.mark.parametrize("in_own_file", [False, True])
def test_a_node_that_became_more_expensive_is_named_at_its_line(
    folder: Path, in_own_file: bool
) -> None:
    path, where = folder / "orders.yaml", ("orders.yaml", 9)
    if in_own_file:
        cluster = "node: {name: n4, cores: 4, memory: 32Gi, price_per_hour: 0.2}"
        head = "apiVersion: headway/v1\nkind: Cluster\nmetadata: {name: ours}\nspec:\n"
        (folder / "ours.yaml").write_text(f"{head}  cores_per_executor: 4\n  {cluster}\n")
        path.write_text(SPEC[: SPEC.index("  cluster:")] + "  cluster: ours.yaml\n")
        path, where = folder / "ours.yaml", ("ours.yaml", 6)
    locked(folder)
    path.write_text(path.read_text().replace("price_per_hour: 0.2", "price_per_hour: 0.3"))
    cost = cost_finding()
    assert (cost.file, cost.line) == where
    assert "price of a node 0.2 -> 0.3 per hour: +72 per month" in cost.message
    report = check(["orders.yaml"], baseline="headway.lock")
    assert report.headline.startswith("+72 per month; ")


def test_the_stage_that_makes_a_plan_more_expensive_is_named(folder: Path) -> None:
    (folder / "orders.yaml").write_text(SPEC.replace("5k/s", "155k/s"))
    locked(folder)
    save_profile(slower(a_profile(), 2.0), folder / "orders.profile.yaml")
    cost = cost_finding()
    assert cost.line == 5
    assert re.search(r"costs of the job: \d nodes instead of \d", cost.message)
    assert re.search(r"most of it in [\w ]+: ", cost.message)


def test_a_comment_is_written_only_for_a_change_that_is_large_enough(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    locked(folder)
    path = folder / "orders.yaml"
    path.write_text(SPEC.replace("price_per_hour: 0.2", "price_per_hour: 0.206"))
    words = ["check", "orders.yaml", "--baseline", "headway.lock", "--quiet-below"]
    assert run([*words, "5%"]) == 0
    assert capsys.readouterr().out == ""
    assert run([*words, "2%", "--format", "markdown"]) == 0
    headline = "**Headway: 148 per month (+4.32); 1 job: every target is met**"
    assert headline in capsys.readouterr().out
    path.write_text(SPEC.replace("price_per_hour: 0.2", "price_per_hour: 0.4"))
    assert run([*words, "900%"]) == 4
    assert "FAILED" in capsys.readouterr().out
    assert run([*words, "5%", "--format", "sarif"]) == 2


def test_a_slower_plan_is_a_regression_although_the_target_holds(folder: Path) -> None:
    locked(folder)
    then = load_lock("headway.lock")
    job = replace(then.jobs[0], planned_latency_s=(then.jobs[0].planned_latency_s or 0) / 2)
    save_lock(replace(then, jobs=(job,)), "headway.lock")
    assert rules(folder)[Rule.LATENCY] is Level.ERROR
    assert rules(folder, latency_ratio=2.0)[Rule.LATENCY] is Level.NOTE


def test_a_profile_that_drifted_is_reported_at_the_profile(folder: Path) -> None:
    locked(folder)
    save_profile(slower(a_profile(), 1.6), folder / "orders.profile.yaml")
    report = check(["orders.yaml"], baseline="headway.lock")
    (drift,) = [each for each in report.errors if each.rule is Rule.DRIFT]
    assert drift.line == 5
    assert report.exit_code == 4
    assert Rule.DRIFT not in rules(folder, drift_ratio=9.0)


@pytest.mark.parametrize("spec", [FASTER, SPEC + "  from_start: true\n"])
def test_a_job_planned_for_other_cores_or_a_fresh_jvm_passes_its_own_lock(
    folder: Path, spec: str
) -> None:
    """The locked batches are predicted as they were planned: nothing has drifted."""
    profile = replace(a_profile(), warm_up=A_SLOW_START)
    save_profile(profile, folder / "orders.profile.yaml")
    (folder / "orders.yaml").write_text(spec)
    locked(folder)
    assert check(["orders.yaml"], baseline="headway.lock").errors == ()
    assert Rule.DRIFT not in rules(folder)
    (folder / "orders.yaml").write_text(SPEC)
    assert Rule.DRIFT not in rules(folder, latency_ratio=9.0, cost_ratio=9.0)
    save_profile(slower(profile, 1.6), folder / "orders.profile.yaml")
    assert rules(folder)[Rule.DRIFT] is Level.ERROR


def test_changed_settings_say_what_the_change_takes(folder: Path) -> None:
    locked(folder)
    (folder / "orders.yaml").write_text(
        SPEC + "  pinned: {trigger: 200ms, shuffle_partitions: 16}\n"
    )
    report = check(["orders.yaml"], baseline="headway.lock", limits=Limits(latency_ratio=9.0))
    messages = [each.message for each in report.findings if each.rule is Rule.SETTINGS]
    assert any("-> 16: new checkpoint" in text for text in messages)
    assert any("-> 200 milliseconds: restart" in text for text in messages)
    assert report.exit_code == 0


def test_jobs_on_one_side_only_are_reported(folder: Path) -> None:
    locked(folder)
    (folder / "more.yaml").write_text(SPEC.replace("name: orders", "name: more"))
    report = check(["more.yaml"], baseline="headway.lock")
    found = {finding.rule: finding.level for finding in report.findings}
    assert found == found | {Rule.UNLOCKED: Level.WARNING, Rule.GONE: Level.NOTE}
    assert report.exit_code == 0


def test_outside_the_profile_fails_under_strict_only(folder: Path) -> None:
    (folder / "orders.yaml").write_text(SPEC.replace("5k/s", "300k/s"))
    assert check(["orders.yaml"]).exit_code == 0
    assert check(["orders.yaml"], limits=Limits(strict=True)).exit_code == 5


def test_what_is_infeasible_is_no_baseline(folder: Path) -> None:
    (folder / "orders.yaml").write_text(SPEC.replace("5s", "50ms"))
    with pytest.raises(InfeasibleError, match=r"orders\.yaml:7:11: orders: infeasible"):
        lock(["orders.yaml"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the file is empty"),
        ("schema: headway.lock/v9", "expected headway.lock/v1"),
        ("schema: headway.lock/v1\nheadway_version: 1\njobs: []", ":2:18: headway_version"),
        ("[]", "schema: got nothing"),
    ],
)
def test_a_damaged_lock_says_where(folder: Path, text: str, expected: str) -> None:
    (folder / "headway.lock").write_text(text)
    with pytest.raises(InputError) as caught:
        check(["orders.yaml"], baseline="headway.lock")
    assert expected in str(caught.value)


def test_lock_and_check_as_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ("text", "json", *FORMATS) == _FORMATS
    assert run(["lock", "orders.yaml"]) == 0
    assert capsys.readouterr().out.startswith("orders: ")
    assert run(["check", "orders.yaml", "--baseline", "headway.lock"]) == 0
    assert capsys.readouterr().out.startswith("1 job: every target is met")
    (folder / "orders.yaml").write_text(SPEC.replace("5s", "50ms"))
    assert run(["check", "orders.yaml", "--baseline", "headway.lock"]) == 3
    assert "FAILED" in capsys.readouterr().out
    assert run(["lock", "orders.yaml"]) == 3
    assert run(["check", "none.yaml"]) == 2
    assert run(["check", "orders.yaml", "--baseline", "none.lock"]) == 2


def test_a_job_outside_the_lock_fails_where_all_must_be_locked(folder: Path) -> None:
    locked(folder)
    (folder / "headway.lock").write_text(
        (folder / "headway.lock").read_text().replace("orders", "others")
    )
    assert rules(folder)[Rule.UNLOCKED] is Level.WARNING
    assert rules(folder, require_locked=True)[Rule.UNLOCKED] is Level.ERROR
    words = ["check", "orders.yaml", "--baseline", "headway.lock"]
    assert run(words) == 0
    assert run([*words, "--require-locked"]) == 4
    assert run(["check", "orders.yaml", "--require-locked"]) == 4
    (folder / "headway.lock").unlink()
    assert run(["check", "orders.yaml", "--require-locked"]) == 2


def test_the_lock_that_lock_writes_is_the_one_that_check_finds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lock", "orders.yaml"]) == 0
    assert LOCK_NAME in {path.name for path in folder.iterdir()}
    capsys.readouterr()
    assert run(["check", "orders.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["baseline"] == LOCK_NAME
    assert check(["orders.yaml"]).jobs[0].then is not None


def test_a_lock_beside_the_spec_comes_before_that_of_the_working_folder(folder: Path) -> None:
    jobs = folder / "jobs"
    jobs.mkdir()
    for name in ("orders.yaml", "orders.profile.yaml"):
        (folder / name).rename(jobs / name)
    found = lock(["jobs/orders.yaml"])
    save_lock(found, LOCK_NAME)
    assert check(["jobs/orders.yaml"]).baseline == LOCK_NAME
    save_lock(found, jobs / LOCK_NAME)
    assert check(["jobs/orders.yaml"]).baseline == str(Path("jobs") / LOCK_NAME)
    assert check(["jobs/orders.yaml"], baseline=LOCK_NAME).baseline == LOCK_NAME


def test_a_command_after_lock_says_where_check_looks(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suggested: list[str] = []
    monkeypatch.setattr("headway.cli.lock.suggest", suggested.append)
    assert run(["lock", "orders.yaml", "-o", "other.lock"]) == 0
    assert run(["lock", "orders.yaml"]) == 0
    assert suggested == [
        "headway check orders.yaml --baseline other.lock",
        "headway check orders.yaml",
    ]


def test_a_locked_setting_that_would_miss_its_target_is_said_first(folder: Path) -> None:
    locked(folder)
    (folder / "orders.yaml").write_text(SPEC.replace("5k/s", "375k/s"))
    report = check(["orders.yaml"])
    (job,) = report.jobs
    assert job.feasible
    assert job.locked_today is not None
    assert not job.locked_today.met
    first = job.findings[0]
    assert (first.rule, first.level, first.line) == (Rule.LOCKED, Level.ERROR, 6)
    assert "at 375k/s" in first.message
    assert report.headline.startswith("the locked setting misses its target today: orders; ")
    assert report.exit_code == 4


def test_a_locked_setting_is_held_to_the_target_of_today(folder: Path) -> None:
    locked(folder)
    (folder / "orders.yaml").write_text(SPEC.replace("5s", "1s"))
    report = check(["orders.yaml"])
    first = report.jobs[0].findings[0]
    assert (first.rule, first.line) == (Rule.LOCKED, 7)
    assert re.search(r"would miss p99 <= 1\.00 s \(up to [\d.]+ m?s\) at 5k/s; ", first.message)
    assert re.search(r"\d+% certain, 95% asked", first.message)
    assert "every target is met" not in report.headline


def test_a_slower_job_whose_locked_setting_misses_is_said_at_the_profile(folder: Path) -> None:
    locked(folder)
    save_profile(slower(a_profile(), 40.0), folder / "orders.profile.yaml")
    first = check(["orders.yaml"]).jobs[0].findings[0]
    assert (first.rule, first.line) == (Rule.LOCKED, 5)


def test_a_locked_rate_limit_below_the_rate_of_today_is_named(folder: Path) -> None:
    locked(folder)
    then = load_lock("headway.lock")
    job = replace(then.jobs[0], max_offsets_per_trigger=int(4_000 * then.jobs[0].trigger_s))
    save_lock(replace(then, jobs=(job,)), "headway.lock")
    first = check(["orders.yaml"]).jobs[0].findings[0]
    assert first.rule is Rule.LOCKED
    assert "falls behind at 5k/s: its rate limit of " in first.message


@pytest.mark.parametrize("rate", ["5k/s", "155k/s", "250k/s"])
@pytest.mark.parametrize("tail", ["", "  from_start: true\n", "  confidence: 0.8\n"])
def test_a_setting_that_was_just_locked_meets_its_target(
    folder: Path, rate: str, tail: str
) -> None:
    save_profile(replace(a_profile(), warm_up=A_SLOW_START), folder / "orders.profile.yaml")
    (folder / "orders.yaml").write_text(FASTER.replace("5k/s", rate) + tail)
    locked(folder)
    (job,) = check(["orders.yaml"]).jobs
    assert job.locked_today is not None
    assert job.locked_today.met
    assert job.locked_today.planned_s == pytest.approx(job.now.planned_s, rel=1e-9)


def test_a_changed_rate_is_named_although_nothing_costs_more(folder: Path) -> None:
    locked(folder)
    (folder / "orders.yaml").write_text(SPEC.replace("5k/s", "6k/s"))
    report = check(["orders.yaml"])
    (note,) = [one for one in report.findings if one.rule is Rule.RATE]
    assert (note.level, note.line) == (Level.NOTE, 6)
    assert note.message == "the rate is 6k/s, was 5k/s"
    assert report.exit_code == 0


def test_a_job_that_became_faster_is_no_regression(folder: Path) -> None:
    locked(folder)
    save_profile(slower(a_profile(), 0.5), folder / "orders.profile.yaml")
    report = check(["orders.yaml"])
    assert report.errors == ()
    (drift,) = [one for one in report.findings if one.rule is Rule.DRIFT]
    assert (drift.level, drift.line) == (Level.NOTE, 5)
    assert report.exit_code == 0


def test_an_infeasible_plan_has_no_cost_and_is_not_outside_the_calibration(folder: Path) -> None:
    locked(folder)
    (folder / "orders.yaml").write_text(SPEC.replace("5s", "50ms").replace("5k/s", "400k/s"))
    report = check(["orders.yaml"], limits=Limits(strict=True))
    assert not report.jobs[0].feasible
    assert not report.jobs[0].calibrated
    assert Rule.CALIBRATION not in {each.rule for each in report.findings}
    assert report.costs_per_month == {}
    assert "144 -\\> - per month" in FORMATS["markdown"](report)


def test_a_new_job_is_a_change_of_the_cost(folder: Path) -> None:
    locked(folder)
    (folder / "copy.yaml").write_text(SPEC.replace("orders}", "copy}"))
    report = check(["orders.yaml", "copy.yaml"])
    assert "**Headway: 288 per month (+144); " in FORMATS["markdown"](report)
    (folder / "headway.lock").unlink()
    assert "**Headway: 288 per month; " in FORMATS["markdown"](check(["orders.yaml", "copy.yaml"]))


@pytest.mark.parametrize("is_locked", [True, False])
def test_a_job_is_checked_once(folder: Path, is_locked: bool) -> None:
    if is_locked:
        locked(folder)
    with pytest.raises(InputError, match=r"orders.yaml: the job 'orders' is given twice"):
        check(["orders.yaml", "orders.yaml"])


def test_jobs_of_one_name_beside_locks_of_their_own_are_two(folder: Path) -> None:
    for name in ("test", "live"):
        (folder / name).mkdir()
        for file in ("orders.yaml", "orders.profile.yaml"):
            (folder / name / file).write_text((folder / file).read_text())
        save_lock(lock([f"{name}/orders.yaml"]), f"{name}/headway.lock")
    assert len(check(["test/orders.yaml", "live/orders.yaml"]).jobs) == 2


def test_one_path_is_enough(folder: Path) -> None:
    save_lock(lock("orders.yaml"), "headway.lock")
    assert len(check(Path("orders.yaml")).jobs) == 1


@pytest.mark.parametrize("specs", [[], None, [3], b"orders.yaml", {"orders.yaml": 1}])
def test_what_names_no_files_is_refused(specs: Any) -> None:
    for call in (check, lock):
        with pytest.raises(InputError, match=r"^specs"):
            call(specs)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"limits": {"cost_ratio": 0.1}}, "limits is {'cost_ratio': 0.1}; expected headway.Limits"),
        ({"limits": None}, "limits is None; expected headway.Limits"),
        ({"baseline": 3}, "baseline is 3; expected a lock, or the path of one"),
    ],
)
def test_other_arguments_are_of_their_kinds(
    folder: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        check("orders.yaml", **options)


def test_only_a_lock_is_saved_as_one(folder: Path) -> None:
    locked(folder)
    text = Path("headway.lock").read_text()
    with pytest.raises(InputError, match=r"lock is <JobProfile: .*>; expected a lock"):
        save_lock(cast(Any, a_profile()), "headway.lock")
    with pytest.raises(InputError, match="path is of the type Lock"):
        load_lock(cast(Any, load_lock("headway.lock")))
    assert Path("headway.lock").read_text() == text


@pytest.mark.parametrize("share", [float("nan"), float("inf"), -0.1, "5", "much", True, [0.1]])
def test_a_limit_is_a_share(share: Any) -> None:
    with pytest.raises(InputError, match="latency_ratio"):
        headway.Limits(latency_ratio=share)


def test_a_flag_of_the_limits_is_a_flag() -> None:
    with pytest.raises(InputError, match="strict is 1; expected True or False"):
        headway.Limits(strict=cast(Any, 1))


def test_no_rise_at_all_can_be_demanded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    locked(folder)
    assert Limits(cost_ratio=cast(Any, "0%")).cost_ratio == 0.0
    words = ["check", "orders.yaml", *("--max-cost", "0"), *("--max-latency", "0%")]
    assert run([*words, "--max-drift", "0"]) == 0
    (folder / "orders.yaml").write_text(SPEC.replace("0.2}", "0.2001}"))
    assert run(words) == 4
    assert "(+<1%): more expensive" in " ".join(capsys.readouterr().out.split())


def test_a_batch_job_on_more_expensive_nodes_names_their_price_at_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not only that a run costs more."""
    profile = Path(__file__).parents[2] / "examples" / "nightly-totals.profile.yaml"
    spec = f"""\
apiVersion: headway/v1
kind: BatchJob
metadata: {{name: totals}}
spec:
  profile: {profile}
  deadline: 2min
  cluster:
    node: {{name: n1, cores: 2, memory: 64Gi, price_per_hour: 0.2}}
"""
    (folder / "totals.yaml").write_text(spec)
    before = headway.plan_spec("totals.yaml").plan
    headway.save_lock(headway.lock(["totals.yaml"]), "totals.lock")
    (folder / "totals.yaml").write_text(spec.replace("0.2}", "0.3}"))
    after = headway.plan_spec("totals.yaml").plan
    assert before.cost is not None and after.cost is not None
    assert run(["check", "totals.yaml", "--baseline", "totals.lock"]) == 4
    out = " ".join(capsys.readouterr().out.split())
    assert "totals.yaml:8:11: error: " in out
    assert "more expensive; price of a node 0.2 -> 0.3 per hour: +" in out
    (cause,) = headway.diff(before, after).causes
    assert cause.cost_per_run == pytest.approx(after.cost - before.cost)
    assert cause.cost_per_month is None


@pytest.mark.parametrize("name", sorted({*FORMATS, "json"}))
def test_faults_of_a_file_are_findings_of_every_format(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (folder / "orders.yaml").write_text(SPEC.replace("5k/s", "fast").replace("p99 <= 5s", "soon"))
    assert run(["check", "orders.yaml"]) == 2
    plain = capsys.readouterr()
    assert plain.out == ""
    assert run(["check", "orders.yaml", "--format", name]) == 2
    shown = capsys.readouterr()
    assert shown.err == plain.err
    assert "spec.rate: " in shown.out
    assert "spec.target: " in shown.out
    assert "every target is met" not in shown.out
    if name == "json":
        data = json.loads(shown.out)
        assert (data["ok"], data["exit_code"]) == (False, 2)
        places = [(each["file"], each["line"], each["rule"]) for each in data["findings"]]
        assert places == [("orders.yaml", line, "invalid-spec") for line in (6, 7)]
    if name == "junit":
        assert 'tests="1" failures="1"' in shown.out


def test_a_fault_without_a_position_is_about_its_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "orders.yaml", "none.yaml", "--format", "github"]) == 2
    first, headline = capsys.readouterr().out.splitlines()
    assert first.startswith("::error file=none.yaml,line=1,col=1,title=none.yaml%3A invalid-spec")
    assert first.endswith(
        "::no such file; expected a spec file: apiVersion, kind, metadata, spec "
        "('headway init' writes one)"
    )
    assert headline == "nothing was checked: 1 fault in the files"


def test_a_file_whose_name_has_a_colon_keeps_the_place_of_its_fault() -> None:
    error = InputError("a:b.yaml:7:3: spec.rate: missing\nother.yaml:2:1: kind: missing")
    places = [
        (finding.file, finding.line, finding.column, finding.message)
        for finding in invalid_report(error, ["a:b.yaml"]).others
    ]
    assert places == [
        ("a:b.yaml", 7, 3, "spec.rate: missing"),
        ("other.yaml", 2, 1, "kind: missing"),
    ]
