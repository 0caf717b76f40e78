"""``headway ordered``: the answer first, the table, code to paste, and the limit of a hot key."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

import headway
from headway.cli.main import run
from headway.domain import RowsLaw
from tests.factories import a_profile


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile with work behind an exchange, and two counts of keys."""
    monkeypatch.chdir(tmp_path)
    profile = a_profile()
    stages = tuple(
        replace(one, task_per_row_s=1e-4, rows=RowsLaw(scale=1.0, exponent=1.0))
        if one.tasks_rule == "shuffle"
        else one
        for one in profile.stages
    )
    shape = replace(profile.shape, stateful_operators=("transformWithStateExec",))
    job = replace(profile, stages=stages, shape=shape)
    headway.save_profile(job, tmp_path / "job.profile.yaml")
    lines = [f"u{at},{1000 / (at + 1) ** 0.4:.6f}" for at in range(300)]
    (tmp_path / "keys.csv").write_text("\n".join(["key,count", *lines]) + "\n")
    (tmp_path / "hot.jsonl").write_text('{"key":"x","count":99}\n{"key":"y","count":1}\n')
    return tmp_path


ASKED = ["--rate", "40k/s", "--executors", "4", "--trigger", "2s"]


@pytest.mark.usefixtures("folder")
def test_the_answer_first_then_the_table_then_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ordered", "job.profile.yaml", "--keys", "keys.csv", *ASKED]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("stage ")
    assert lines[0].endswith("shuffle partitions with placed keys")
    assert lines[1].startswith("  without placing ")
    assert lines[3].split() == ["shuffle", "partitions", "fullest", "stage", "mean", "stage", "p99"]
    assert any(line.endswith("today") or "today," in line for line in lines)
    assert any("key 'u0'" in line and "alone needs" in " ".join(lines) for line in lines)
    assert any('spark.conf.set("spark.sql.shuffle.partitions"' in line for line in lines)
    assert any("headway.ordered(df" in line for line in lines)
    assert any('place="placed.csv", checkpoint=' in line for line in lines)
    assert lines[-1] == "-o placed.csv writes the table of placed keys"


@pytest.mark.usefixtures("folder")
def test_json_is_what_the_call_gives(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ordered", "job.profile.yaml", "--keys", "keys.csv", *ASKED, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    plan = headway.ordered_plan(
        "job.profile.yaml", "keys.csv", rate="40k/s", executors=4, trigger="2s"
    )
    assert printed["best"]["stage_p99_s"] == pytest.approx(plan.best.p99_s)
    assert printed["placed"]["shuffle_partitions"] == plan.placed.choice.shuffle_partitions
    assert printed["placed"]["buckets"][0]["key"] == "u0"
    assert printed["hottest"]["key"] == "u0"
    assert len(printed["placed"]["buckets"]) == 300
    assert sum(one["share"] for one in printed["placed"]["buckets"]) == pytest.approx(1.0)


@pytest.mark.usefixtures("folder")
def test_the_table_of_placed_keys_is_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["ordered", "job.profile.yaml", "--keys", "keys.csv", *ASKED, "-o", "placed.csv"]
    assert run(line) == 0
    out, err = capsys.readouterr()
    assert "wrote placed.csv" in err
    assert "writes the table" not in out
    with Path("placed.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    plan = headway.ordered_plan(
        "job.profile.yaml", "keys.csv", rate="40k/s", executors=4, trigger="2s"
    )
    assert [row["key"] for row in rows] == list(plan.placed.keys)
    assert [int(row["bucket"]) for row in rows] == list(plan.placed.buckets)
    assert sum(float(row["share"]) for row in rows) == pytest.approx(1.0)


@pytest.mark.usefixtures("folder")
def test_a_key_that_no_cluster_keeps_up_with_exits_with_3(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["--rate", "12k/s", "--executors", "4", "--trigger", "1s"]
    assert run(["ordered", "job.profile.yaml", "--keys", "hot.jsonl", *asked]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "key 'x' (99.0% of the rows) alone needs" in said
    assert "batches overrun on any cluster; split the key, or do less per row" in said


@pytest.mark.usefixtures("folder")
def test_faults_of_the_file_have_a_place(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.csv").write_text("key,count\na,1\nb,x\n")
    assert run(["ordered", "job.profile.yaml", "--keys", "bad.csv"]) == 2
    assert "bad.csv:3: count is 'x'; expected a number" in capsys.readouterr().err
