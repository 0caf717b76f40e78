"""``headway plan --keys``: the heaviest key as a limit of the plan, in text, JSON and Python."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import headway
from headway.cli.main import run
from headway.domain import RowsLaw
from headway.errors import InputError
from headway.formats.from_json import load_plan
from tests.factories import a_profile

ASKED = ["--rate", "8k/s", "--target", "p99 <= 4s"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job with state of its own by key, the same with a hot task on record, counts of keys."""
    monkeypatch.chdir(tmp_path)
    profile = a_profile()
    shape = replace(profile.shape, stateful_operators=("transformWithStateExec",))
    job = replace(profile, shape=shape)
    headway.save_profile(job, "job.profile.yaml")
    stages = tuple(
        replace(one, hot_share_ratio=0.4) if one.tasks_rule == "shuffle" else one
        for one in job.stages
    )
    headway.save_profile(replace(job, stages=stages), "hot.profile.yaml")
    slow = tuple(
        replace(one, rows=RowsLaw(scale=1.0, exponent=1.0), task_per_row_s=5e-4)
        if one.tasks_rule == "shuffle"
        else one
        for one in job.stages
    )
    headway.save_profile(replace(job, stages=slow), "slow.profile.yaml")
    lines = [f"u{at},{1000 / (at + 1) ** 1.1:.6f}" for at in range(300)]
    Path("keys.csv").write_text("\n".join(["key,count", *lines]) + "\n")
    Path("one.csv").write_text("key,count\nall of them,1\n")
    return tmp_path


def test_a_plan_names_its_partitions_their_p99_and_the_heaviest_key(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plan", "job.profile.yaml", *ASKED, "--keys", "keys.csv"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "skew of stage aggregate key 'u0' (" in said
    assert "alone needs" in said
    assert "shuffle partitions fullest stage mean stage p99" in said
    assert "planned" in said
    assert "300 keys placed, by headway ordered" in said


def test_json_has_it_too_and_is_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "job.profile.yaml", *ASKED, "--keys", "keys.csv", "--json"]) == 0
    text = capsys.readouterr().out
    Path("plan.json").write_text(text)
    skew = json.loads(text)["skew"]
    plan = headway.plan("job.profile.yaml", rate="8k/s", target="p99 <= 4s", keys="keys.csv")
    assert plan.skew is not None
    assert skew["planned"]["p99_s"] == pytest.approx(plan.skew.planned.p99_s, rel=1e-5)
    assert skew["planned"]["shuffle_partitions"] == plan.configuration.shuffle_partitions
    assert (skew["hottest_key"], skew["keeps_up"]) == ("u0", True)
    read = load_plan("plan.json").skew
    assert read is not None
    assert read.planned.p99_s == skew["planned"]["p99_s"]
    alone = headway.ordered_plan(
        "job.profile.yaml",
        "keys.csv",
        rate="8k/s",
        trigger=plan.configuration.trigger_s,
        executors=plan.executors,
        cores=plan.cores_per_executor,
        partitions=plan.configuration.shuffle_partitions,
    )
    assert plan.skew.hottest_share == pytest.approx(alone.hottest_share)
    assert plan.skew.planned.largest_share == pytest.approx(alone.today.largest_share)


def test_a_key_that_no_cluster_keeps_up_with_is_no_plan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plan", "slow.profile.yaml", *ASKED]) == 0
    capsys.readouterr()
    assert run(["plan", "slow.profile.yaml", *ASKED, "--keys", "one.csv"]) == 3
    assert "infeasible" in capsys.readouterr().out


def test_the_largest_task_on_record_is_named_without_a_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plan", "hot.profile.yaml", *ASKED]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "tasks are as unequal as if one key had 40.0% of the rows: it alone" in said
    assert "placed, by" not in said
    assert run(["plan", "job.profile.yaml", *ASKED]) == 0
    assert "skew of" not in capsys.readouterr().out


def test_what_is_about_the_file_needs_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    for option in (["--key-type", "long"], ["--total-rows", "9"]):
        assert run(["plan", "job.profile.yaml", *ASKED, *option]) == 2
        assert "give --keys" in capsys.readouterr().err
    with pytest.raises(InputError, match="give keys"):
        headway.plan("job.profile.yaml", rate="8k/s", target="p99 <= 4s", total_rows=9.0)
    assert run(["plan", "job.profile.yaml", *ASKED, "--keys", "no.csv"]) == 2
    assert "no.csv: no such file" in capsys.readouterr().err
