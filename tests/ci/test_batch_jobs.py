"""Batch jobs in the gate, beside streaming jobs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from headway.api.check import check
from headway.api.lock import lock
from headway.ci.nouns import Level, Rule
from headway.cli.main import run
from headway.domain import DeadlinePlan
from headway.domain.fleet_questions import Limits
from headway.errors import InfeasibleError, InputError
from headway.formats.lock_file import load_lock, save_lock
from headway.formats.profile_file import save_profile
from headway.pytest_plugin import assert_meets
from tests.ci.test_formats import ALL_FORMATS
from tests.planner.test_deadline import a_long_job

SPEC = """\
apiVersion: headway/v1
kind: BatchJob
metadata: {name: nightly}
spec:
  profile: nightly.profile.yaml
  deadline: 150s
  cluster:
    node: {name: n4, cores: 4, memory: 32Gi, price_per_hour: 0.2}
    cores_per_executor: 4
    executor_memory: 6g
"""


@pytest.fixture
def nightly(folder: Path) -> Path:
    """Beside ``orders.yaml`` stands ``nightly.yaml``, and both are locked."""
    save_profile(a_long_job(), folder / "nightly.profile.yaml")
    (folder / "nightly.yaml").write_text(SPEC)
    save_lock(lock(["orders.yaml", "nightly.yaml"]), "headway.lock")
    return folder


def rules(**limits: float) -> dict[Rule, Level]:
    report = check(["nightly.yaml"], baseline="headway.lock", limits=Limits(**limits))  # type: ignore[arg-type]  # by name
    return {finding.rule: finding.level for finding in report.findings if finding.job == "nightly"}


def relocked(**changes: object) -> None:
    then = load_lock("headway.lock")
    (job,) = then.batch_jobs
    changed = replace(job, **changes)  # type: ignore[arg-type]  # by name
    save_lock(replace(then, batch_jobs=(changed,)), "headway.lock")


def test_both_kinds_pass_their_own_lock(nightly: Path) -> None:
    report = check(["orders.yaml", "nightly.yaml"], baseline="headway.lock")
    assert report.exit_code == 0
    assert list(report.findings) == []
    then = load_lock("headway.lock")
    assert [job.name for job in then.all_jobs] == ["orders", "nightly"]
    assert then.batch_jobs[0].spark_conf["spark.executor.memory"] == "6g"
    assert then.batch_jobs[0].verdict == "kept"
    assert (then.batch_jobs[0].kept_probability or 0.0) >= 0.95


@pytest.mark.parametrize("name", ALL_FORMATS)
def test_both_kinds_stand_in_one_report(nightly: Path, name: str) -> None:
    report = check(["orders.yaml", "nightly.yaml"], baseline="headway.lock")
    text = ALL_FORMATS[name](report)
    assert "nightly" in text or name in ("github", "sarif")
    if name == "markdown":
        assert "per run | " in text
        assert "per month | " in text
    if name == "json":
        assert json.loads(text)["jobs"][1]["now"]["run_time_s"] > 0


def test_a_deadline_that_cannot_be_kept_is_reported_at_its_place(nightly: Path) -> None:
    Path("nightly.yaml").write_text(SPEC.replace("150s", "20s"))
    report = check(["nightly.yaml"], baseline="headway.lock")
    locked_setting, error = report.errors
    assert locked_setting.rule is Rule.LOCKED
    assert (error.rule, error.file, error.line) == (Rule.TARGET, "nightly.yaml", 6)
    assert report.exit_code == 3
    with pytest.raises(InfeasibleError, match=r"nightly\.yaml:6:13: nightly: infeasible"):
        lock(["nightly.yaml"])


def test_more_expensive_slower_and_other_sizes(nightly: Path) -> None:
    (job,) = load_lock("headway.lock").batch_jobs
    assert job.cost_per_run is not None
    relocked(cost_per_run=job.cost_per_run / 2)
    assert rules()[Rule.COST] is Level.ERROR
    relocked(cost_per_run=job.cost_per_run, planned_run_time_s=job.run_time_s / 2)
    assert rules()[Rule.LATENCY] is Level.ERROR
    assert rules(latency_ratio=9.0)[Rule.LATENCY] is Level.NOTE
    Path("nightly.yaml").write_text(SPEC.replace("150s", "120s"))
    reported = check(["nightly.yaml"], baseline="headway.lock").findings
    assert any("executors 5 ->" in each.message for each in reported if each.rule is Rule.SETTINGS)


@pytest.mark.parametrize(("deadline", "slots"), [("150s", 24), ("120s", 36)])
def test_only_sizes_beyond_the_evidence_fail_under_strict(
    nightly: Path, deadline: str, slots: int
) -> None:
    Path("headway.lock").unlink()
    Path("nightly.yaml").write_text(SPEC.replace("150s", deadline))
    is_far = slots > 4 * 8
    report = check(["nightly.yaml"])
    reported = [each for each in report.findings if each.rule is Rule.CALIBRATION]
    assert bool(reported) == is_far
    assert report.exit_code == 0
    if is_far:
        assert f"{slots} slots, more than 4 times outside the profiled 8" in reported[0].message
    assert run(["plan", "nightly.yaml", "--strict"]) == (5 if is_far else 0)


def test_a_profile_that_drifted(nightly: Path) -> None:
    (job,) = load_lock("headway.lock").batch_jobs
    relocked(run_time_s=job.run_time_s * 0.7)
    report = check(["nightly.yaml"], baseline="headway.lock")
    (drift,) = [each for each in report.errors if each.rule is Rule.DRIFT]
    assert drift.line == 5
    assert "a run of the locked size takes" in drift.message
    assert report.exit_code == 4
    assert Rule.DRIFT not in rules(drift_ratio=9.0)


def test_a_job_of_another_kind_is_not_compared(nightly: Path) -> None:
    orders = Path("orders.yaml")
    orders.write_text(SPEC.replace("name: nightly", "name: orders"))
    report = check(["orders.yaml"], baseline="headway.lock")
    assert any("another kind of job" in each.message for each in report.findings)
    assert report.exit_code == 0


def test_what_is_declared_fails_under_strict_only(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "n.yaml").write_text(
        SPEC.replace("profile: nightly.profile.yaml", "declared: {work: 1h, tasks: 300}")
    )
    assert run(["check", "n.yaml"]) == 0
    assert run(["check", "n.yaml", "--strict"]) == 5
    assert run(["plan", "n.yaml", "--strict"]) == 5
    assert "nothing of this job was measured" in capsys.readouterr().out


def test_the_assertion_holds_deadlines(nightly: Path) -> None:
    from headway.api.specs import plan_spec

    plan = plan_spec("nightly.yaml").plan
    assert isinstance(plan, DeadlinePlan)
    assert_meets(plan, "deadline <= 3min")
    with pytest.raises(AssertionError, match=r"deadline <= 10\.0 s is missed: up to"):
        assert_meets(plan, "deadline <= 10s")
    with pytest.raises(InputError, match="a batch job has a deadline only"):
        assert_meets(plan, "p99 <= 2s")


def test_lines_of_the_commands(nightly: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lock", "orders.yaml", "nightly.yaml", "-o", "b.lock"]) == 0
    assert "nightly: 5 nodes, deadline <= 2.5 min" in capsys.readouterr().out
    assert run(["check", "nightly.yaml", "--baseline", "b.lock"]) == 0
    assert "planned run time" in capsys.readouterr().out


def test_the_locked_size_is_held_to_the_deadline_of_today(nightly: Path) -> None:
    (job,) = check(["nightly.yaml"]).jobs
    assert job.locked_today is not None
    assert job.locked_today.met
    Path("nightly.yaml").write_text(SPEC.replace("150s", "120s"))
    report = check(["nightly.yaml"])
    first = report.jobs[0].findings[0]
    assert (first.rule, first.line) == (Rule.LOCKED, 6)
    assert re.search(r"would miss deadline <= 2 min \(up to [\d.]+ min\); ", first.message)
    assert report.exit_code == 4
    assert report.jobs[0].feasible


def test_a_run_that_became_shorter_is_no_regression(nightly: Path) -> None:
    (job,) = load_lock("headway.lock").batch_jobs
    relocked(run_time_s=job.run_time_s * 2.0)
    assert rules()[Rule.DRIFT] is Level.NOTE
