"""``headway simulate --policy``: policies side by side, as text, data and a page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.api.simulate import parse_policy, simulate_policies
from headway.cli.main import run
from headway.errors import InputError
from headway.formats.profile_file import dump_profile
from headway.report.policies import headline
from tests.cli.conftest import printed
from tests.planner.live_cases import waves_profile

TRACE = "time,rate\n0s,60k/s\n10m,150k/s\n20m,60k/s\n40m,60k/s\n"


@pytest.fixture(scope="module")
def plan_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    profile = tmp_path_factory.mktemp("planned") / "job.profile.yaml"
    profile.write_text(dump_profile(waves_profile()), encoding="utf-8")
    options = ("--rate", "80k/s", "--target", "p99 <= 3s", "--node-cores", "4", "--json")
    return printed("plan", str(profile), *options, "--trigger", "1500ms", "--partitions", "48")


@pytest.fixture
def files(tmp_path: Path, plan_text: str) -> dict[str, str]:
    """Profile, plan and trace."""
    made = {name: str(tmp_path / name) for name in ("job.profile.yaml", "plan.json", "day.csv")}
    Path(made["job.profile.yaml"]).write_text(dump_profile(waves_profile()), encoding="utf-8")
    Path(made["day.csv"]).write_text(TRACE, encoding="utf-8")
    Path(made["plan.json"]).write_text(plan_text, encoding="utf-8")
    return made


def arguments(files: dict[str, str], policies: str = "headway,hpa:50%,static") -> list[str]:
    return [
        "simulate", files["plan.json"], "--rate-trace", files["day.csv"], "--policy", policies,
        "--profile", files["job.profile.yaml"],
    ]  # fmt: skip


def test_policies_stand_side_by_side(
    files: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "policies.html"
    # None of the three meets the target under this trace, and the answer says so.
    assert run([*arguments(files), "--executors", "1..12", "-o", str(page)]) == 3
    text = capsys.readouterr().out
    for part in ("headway", "CPU 50%", "static", "node-hours", "windows kept", "2 runs of each"):
        assert part in text
    assert all(len(line) <= 100 for line in text.splitlines())
    drawn = page.read_text(encoding="utf-8")
    assert drawn.startswith("<!doctype html>")
    assert drawn.count("<polyline") >= 7
    assert "<title>plan.json: " in drawn
    assert "met by no policy" in text
    assert run([*arguments(files), "--executors", "1..12", "--json"]) == 3
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["schema"] == "headway.policies/v1"
    headway, _, static = found["outcomes"]
    assert static["node_hours"] == pytest.approx(static["executor_s"] / 3600.0)
    assert static["changes_per_run"] == 0
    assert headway["steps"][0]["executors"] >= 1
    assert len(headway["stretch_late_ratio"]) == 96


def test_one_size_is_no_range(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    run([*arguments(files, "static:3"), "--executors", "3..3", "--runs", "1"])
    assert re.search(r"^ +executors +3$", capsys.readouterr().out, re.MULTILINE)


def test_the_same_by_the_api(files: dict[str, str]) -> None:
    found = simulate_policies(
        files["plan.json"], files["day.csv"], profile=files["job.profile.yaml"],
        policies=["static:9", "ds2:1.2"], outages=["1m at 5m"], runs=1,
    )  # fmt: skip
    assert [one.constant for one in found.outcomes] == ["9 executors", "factor 1.2"]
    assert found.outcomes[0].late_ratio > 0.0
    met = [replace(outcome, late_ratio=0.0) for outcome in (found.outcomes * 2)[:3]]
    assert ": met by static, ds2 and static; " in headline(replace(found, outcomes=tuple(met)))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--policy", "vpa"], "no policy 'vpa'"),
        (["--policy", "hpa:fast"], "expected a constant such as hpa:50%"),
        (["--policy", "headway:2"], "headway has no constant"),
        (["--policy", ","], "--policy names none"),
        (["--policy", "headway"], "--policy needs --profile"),
        (["--profile", "p.yaml"], "is used with --policy"),
        (["--executors", "1..4"], "is used with --policy"),
        (["--trigger", "1s"], "is used with --policy"),
        (
            ["--policy", "hpa", "--profile", "p.yaml", "--trigger", "1s"],
            "--trigger: is for --policy headway",
        ),
        (
            ["--policy", "hpa", "--executors", "4..1"],
            "--executors is '4..1'; expected the fewest first",
        ),
        (["--policy", "hpa", "--profile", "missing.yaml"], "missing.yaml"),
    ],
)
def test_bad_usage_is_one_line(
    files: dict[str, str], capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    plain = ["simulate", files["plan.json"], "--rate-trace", files["day.csv"]]
    assert run([*plain, *more]) == 2
    assert message in capsys.readouterr().err


def test_words_of_the_command_line() -> None:
    assert parse_policy("static:8") == ("static", 8.0)
    with pytest.raises(InputError, match="no policy"):
        parse_policy("")


def test_a_trace_that_is_too_heavy_is_said_first_and_exits_with_3(
    files: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace = tmp_path / "heavy.csv"
    trace.write_text("time,rate\n0,60k/s\n2m,3M/s\n4m,60k/s\n9m,60k/s\n")
    words = ["simulate", files["plan.json"], "--rate-trace", str(trace), "--runs", "2"]
    assert run(words) == 3
    assert capsys.readouterr().out.startswith("p99 <= 3.00 s missed under 9 min")
    assert run([*words, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["feasible"] is False
    assert run([*words, "--for", "1m"]) == 0
    assert capsys.readouterr().out.startswith("p99 <= 3.00 s met under 1 min of 60k/s: p99 ")


def test_policies_that_all_miss_the_target_exit_with_3(
    files: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "policies.html"
    assert run([*arguments(files, "static:1"), "--executors", "1..1", "-o", str(page)]) == 3
    text = capsys.readouterr().out
    assert re.search(r"static +1 executor ", text)
    for title in ("Executors with static, 1 executor", "Late rows with static, 1 executor"):
        assert f"{title}</h2>" in page.read_text(encoding="utf-8")
    assert ": met by no policy; node-hours over 40 min: static " in " ".join(text.split())
    assert "missed" in text
