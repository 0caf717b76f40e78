"""``headway predict`` and ``headway plan`` with ``--mode real-time``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.cli.main import run
from headway.formats.profile_file import save_profile
from tests.factories import a_profile
from tests.planner.test_real_time import a_query

MODE = ["--mode", "real-time"]
PLAN = ["--rate", "20k/s", "--target", "p99 <= 300ms", *MODE]


@pytest.fixture
def profile(tmp_path: Path) -> str:
    path = tmp_path / "live.profile.yaml"
    save_profile(a_query(), path)
    return str(path)


def test_a_plan_says_slots_latency_and_what_to_set(
    profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", profile, *PLAN, "--verbose"]) == 0
    text = capsys.readouterr().out
    assert "meet p99 <= 300 ms at 20k/s in Real-Time Mode" in text.splitlines()[0]
    for part in ("all stages run at once", "gaps between batches", "not calibrated", "RocksDB"):
        assert part in " ".join(text.split())
    assert run(["plan", profile, *PLAN, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["mode"] == "real-time" and said["feasible"] is True
    assert said["query_options"] == {"outputMode": "update", "trigger.realTime": "300 seconds"}
    assert said["configuration"]["trigger_s"] == 300.0
    assert said["prediction"]["slots_needed"] == 8 + said["configuration"]["shuffle_partitions"]
    assert run(["plan", profile, *PLAN, "--strict"]) == 5
    capsys.readouterr()


def test_what_cannot_be_met_says_why_and_ends_with_3(
    profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", profile, "--rate", "20k/s", "--target", "p99 <= 20ms", *MODE]) == 3
    text = capsys.readouterr().out
    assert text.startswith("infeasible: no configuration meets p99 <= 20 ms at 20k/s")
    assert "on any number of nodes" in " ".join(text.split())


def test_a_file_names_all_targets(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    both = [*PLAN, "--target", "catch_up <= 1s after 30m", "--format", "spark-defaults"]
    assert run(["plan", profile, *both]) == 3
    text = capsys.readouterr().out
    targets = "p99 <= 300 ms and catch_up <= 1.00 s after 30 min"
    assert f"INFEASIBLE: no configuration meets {targets}." in text
    assert f"# target: {targets} at 20k/s, Real-Time Mode" in text


def test_a_prediction_in_text_and_json(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["predict", profile, "--rate", "20k/s", "--partitions", "20", *MODE]
    assert run(asked) == 0
    text = capsys.readouterr().out
    assert text.startswith("Real-Time Mode: stable at 20k/s, on 28 slots")
    assert run([*asked, "--json", "--path", "20ms"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["path_s"] == 0.02
    assert said["busy"] == {"scan": 0.5, "aggregate": 0.5}
    over = ["predict", profile, "--rate", "60k/s", "--partitions", "20", *MODE]
    assert "which delays" in " ".join(text.split())
    assert run(over) == 0
    text = " ".join(capsys.readouterr().out.split())
    # All rows wait, but not for the gap.
    assert "nothing is read for 300 ms; after a failure" in text and "100%" not in text
    assert run([*over, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["stable"] is False and said["tuple_latency_s"] is None


@pytest.mark.parametrize("form", ["spark-defaults", "pyspark"])
def test_what_is_emitted_can_be_used(
    profile: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", profile, *PLAN, "--format", form]) == 0
    text = capsys.readouterr().out
    assert "spark.sql.streaming.stateStore.checkpointFormatVersion" in text
    if form == "pyspark":
        names: dict[str, object] = {}
        exec(compile(text, "plan.py", "exec"), names)
        assert names["BATCH_LENGTH"] == "300 seconds"
        assert 'outputMode("update").trigger(realTime=BATCH_LENGTH)' in text


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--burst", "50k/s:1m"], "bursts of Real-Time Mode are not modelled"),
        (["--format", "spark-submit"], "expected text, json, spark-defaults or pyspark"),
        (["--checkpoint", "existing"], "needs a new checkpoint"),
        (["--target", "deadline <= 10m"], "a streaming job has no end"),
    ],
)
def test_what_is_not_for_it_is_refused(
    profile: str, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", profile, *PLAN, *more]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_query_that_spark_refuses_is_refused(
    tmp_path: Path, profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "noop.profile.yaml"
    save_profile(a_profile(), path)
    assert run(["plan", str(path), *PLAN]) == 2
    assert "OPERATOR_OR_SINK_NOT_IN_ALLOWLIST" in capsys.readouterr().err
    assert run(["plan", profile, "--rate", "5k/s", "--target", "p99 <= 3s", "--path", "2ms"]) == 2
    assert "only Real-Time Mode has one" in capsys.readouterr().err
