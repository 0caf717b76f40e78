"""``headway predict``: what it prints and how it exits."""

from __future__ import annotations

import pytest

from headway.cli.main import run
from tests.cli.conftest import printed_json

LATENCY_KEYS = {"mean", "p50", "p95", "p99"}


def test_json_has_the_keys_of_the_contract(
    capsys: pytest.CaptureFixture[str], profile_file: str
) -> None:
    assert run(["predict", profile_file, "--json"]) == 0
    found = printed_json(capsys)
    assert found.keys() == {
        "schema",
        "stable",
        "utilization",
        "calibrated",
        "warnings",
        "source_partitions",
        "arrivals",
        "sustainable_rate_per_s",
        "overrun_probability",
        "gain_ratio",
        "offered_load",
        "provenance",
        "findings",
        "batch_duration_s",
        "tuple_latency_s",
        "window_latency_s",
        "phases_s",
        "stage_work",
        "configuration",
        "restart",
        "next_run",
    }
    assert found["schema"] == "headway.prediction/v1"
    assert found["stable"] is True
    assert found["batch_duration_s"].keys() >= LATENCY_KEYS
    assert found["tuple_latency_s"].keys() == LATENCY_KEYS | {"interval90"}
    assert found["tuple_latency_s"]["interval90"].keys() == {"mean", "p99"}
    low, high = found["tuple_latency_s"]["interval90"]["p99"]
    assert low <= found["tuple_latency_s"]["p99"] <= high
    assert found["window_latency_s"] is None
    assert found["phases_s"].keys() >= {"wait"}
    assert sum(found["phases_s"].values()) == pytest.approx(
        found["tuple_latency_s"]["mean"], rel=1e-3
    )
    assert found["configuration"] == {
        "executors": 2,
        "cores_per_executor": 4,
        "shuffle_partitions": 8,
        "trigger_s": 1.0,
        "max_offsets_per_trigger": None,
        "task_cpus": 1,
        "tasks_per_executor": None,
    }


def test_options_change_the_setting_and_nothing_else(
    capsys: pytest.CaptureFixture[str], profile_file: str
) -> None:
    options = "--executors 3 --cores 5 --partitions 16 --trigger 2s --max-offsets 90000 --rate 6k/s"
    assert run(["predict", profile_file, "--json", *options.split()]) == 0
    found = printed_json(capsys)
    assert found["configuration"] == {
        "executors": 3,
        "cores_per_executor": 5,
        "shuffle_partitions": 16,
        "trigger_s": 2.0,
        "max_offsets_per_trigger": 90000,
        "task_cpus": 1,
        "tasks_per_executor": None,
    }
    assert found["arrivals"]["rate_per_s"] == 6000.0


@pytest.mark.parametrize("trigger", ["0s", "0"])
def test_trigger_zero_is_as_fast_as_possible(
    capsys: pytest.CaptureFixture[str], profile_file: str, trigger: str
) -> None:
    assert run(["predict", profile_file, "--json", "--trigger", trigger]) == 0
    assert printed_json(capsys)["configuration"]["trigger_s"] == 0.0


def test_over_capacity_there_is_no_latency_but_a_rate_that_fits(
    capsys: pytest.CaptureFixture[str], profile_file: str
) -> None:
    assert run(["predict", profile_file, "--json", "--rate", "900M/s"]) == 0
    found = printed_json(capsys)
    assert found["stable"] is False
    assert found["tuple_latency_s"] is None
    assert found["batch_duration_s"] is None
    assert 0 < found["sustainable_rate_per_s"] < 900e6
    assert run(["predict", profile_file, "--rate", "900M/s"]) == 0
    assert "Not stable at 900M/s" in capsys.readouterr().out


def test_strict_refuses_what_the_profile_has_not_seen(
    capsys: pytest.CaptureFixture[str], profile_file: str
) -> None:
    far = ["predict", profile_file, "--rate", "9k/s", "--executors", "40", "--trigger", "60s"]
    assert run([*far, "--json"]) == 0
    found = printed_json(capsys)
    assert found["calibrated"] is False
    assert found["warnings"]
    assert run([*far, "--strict"]) == 5
    assert "Extrapolated" in capsys.readouterr().out
    assert run(["predict", profile_file, "--strict"]) == 0


def test_text_has_neither_colour_nor_markup(
    capsys: pytest.CaptureFixture[str], profile_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variables in ({"NO_COLOR": "1"}, {"FORCE_COLOR": "1", "TERM": "xterm-256color"}):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert run(["predict", profile_file]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert "\x1b" not in out
        assert "Stable at 5k/s" in out
