"""``headway plan``: what it prints and how it exits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headway.cli.main import run
from tests.cli.conftest import printed_json
from tests.formats.test_as_json import MORE_KEYS, PLAN_KEYS


def planned(
    capsys: pytest.CaptureFixture[str], profile_file: str, *options: str, exit_code: int = 0
) -> dict[str, Any]:
    assert run(["plan", profile_file, "--rate", "5k/s", "--json", *options]) == exit_code
    return printed_json(capsys)


def test_json_has_the_keys_of_the_contract(
    capsys: pytest.CaptureFixture[str], profile_file: str
) -> None:
    found = planned(capsys, profile_file, "--target", "p99 <= 5s")
    assert found.keys() == PLAN_KEYS | MORE_KEYS
    assert found["schema"] == "headway.plan/v1"
    assert found["feasible"] is True
    assert found["nodes"] >= 1
    assert all(isinstance(value, str) for value in found["spark_conf"].values())
    assert found["query_options"]["trigger"].endswith(("second", "seconds", "milliseconds"))
    assert [point["nodes"] for point in found["frontier"]] == sorted(
        point["nodes"] for point in found["frontier"]
    )
    for point in found["frontier"]:
        assert point.keys() >= {"nodes", "sustainable_rate_per_s", "configuration"}
    assert found["prediction"]["schema"] == "headway.prediction/v1"
    assert found["prediction"]["configuration"] == found["configuration"]


def test_format_json_is_json(capsys: pytest.CaptureFixture[str], profile_file: str) -> None:
    expected = planned(capsys, profile_file, "--target", "p99 <= 5s")
    arguments = ["plan", profile_file, "--rate", "5k/s", "--target", "p99 <= 5s"]
    assert run([*arguments, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == expected


def test_below_the_floor_the_nearest_plan_is_named(
    capsys: pytest.CaptureFixture[str], profile_file: str
) -> None:
    found = planned(capsys, profile_file, "--target", "p99 <= 1ms", exit_code=3)
    assert found["feasible"] is False
    assert found["floor_s"] > 0.001
    assert run(["plan", profile_file, "--rate", "5k/s", "--target", "p99 <= 1ms"]) == 3
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("infeasible: no configuration meets p99 <= 1 ms at 5k/s")
    assert "lowest possible p99" in out
    assert "nearest plan" in out


def test_strict_refuses_a_plan_that_the_profile_has_not_seen(
    capsys: pytest.CaptureFixture[str], profile_file: str
) -> None:
    pinned = ["--target", "p99 <= 200s", "--trigger", "100s"]
    found = planned(capsys, profile_file, *pinned)
    assert found["prediction"]["calibrated"] is False
    assert planned(capsys, profile_file, *pinned, "--strict", exit_code=5)["feasible"] is True


def test_what_is_pinned_stays(capsys: pytest.CaptureFixture[str], profile_file: str) -> None:
    options = ["--target", "p99 <= 9s", "--partitions", "16", "--trigger", "2s", "--cores", "2"]
    configuration = planned(capsys, profile_file, *options)["configuration"]
    assert configuration["shuffle_partitions"] == 16
    assert configuration["trigger_s"] == 2.0
    assert configuration["cores_per_executor"] == 2


@pytest.mark.parametrize("output_format", ["text", "spark-defaults", "spark-submit", "pyspark"])
def test_every_format_is_plain_text_on_stdout(
    capsys: pytest.CaptureFixture[str],
    profile_file: str,
    output_format: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    arguments = ["plan", profile_file, "--rate", "5k/s", "--target", "p99 <= 5s"]
    assert run([*arguments, "--format", output_format]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    assert out.endswith("\n")
    assert not out.endswith("\n\n")
    assert "spark.executor.cores" in out
