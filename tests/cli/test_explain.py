"""``headway explain`` and ``headway simulate``: what they print and how they fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.cli.main import run
from headway.domain import Outage
from headway.errors import InputError
from headway.formats.profile_file import dump_profile
from headway.formats.rate_trace import read_rate_trace
from tests.cli.conftest import printed as printed_once
from tests.factories import a_profile

TRACE = "time,rate\n0s,5k/s\n5m,8k/s\n10m,5k/s\n"


@pytest.fixture(scope="module")
def plan_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    profile = tmp_path_factory.mktemp("planned") / "job.profile.yaml"
    profile.write_text(dump_profile(a_profile()), encoding="utf-8")
    options = ("--rate", "5k/s", "--target", "p99 <= 2s", "--json")
    return printed_once("plan", str(profile), *options)


@pytest.fixture
def plan_file(tmp_path: Path, plan_text: str) -> str:
    path = tmp_path / "plan.json"
    path.write_text(plan_text, encoding="utf-8")
    return str(path)


@pytest.fixture
def trace_file(tmp_path: Path) -> str:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE, encoding="utf-8")
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(arguments) == 0
    return capsys.readouterr().out


def missed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the simulation of a trace prints that is too heavy for the plan."""
    assert run(arguments) == 3
    return capsys.readouterr().out


def test_a_plan_is_explained(capsys: pytest.CaptureFixture[str], plan_file: str) -> None:
    text = printed(capsys, "explain", plan_file)
    assert text.startswith("Answer\n")
    assert "theory.md" in text


def test_a_plan_is_simulated(
    capsys: pytest.CaptureFixture[str], plan_file: str, trace_file: str, tmp_path: Path
) -> None:
    page = tmp_path / "simulation.html"
    arguments = ["simulate", plan_file, "--rate-trace", trace_file, "--runs", "3"]
    text = missed(capsys, *arguments, "--outage", "1m at 2m", "-o", str(page))
    assert "recovery after 1 min at 2 min" in " ".join(text.split())
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    found: dict[str, Any] = json.loads(printed(capsys, *arguments, "--json"))
    assert found["num_runs"] == 3
    assert found["trace"]["end_s"] == 600


def test_a_trace_ends_with_its_last_line_or_where_it_is_asked_to(
    capsys: pytest.CaptureFixture[str], plan_file: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("time,rate\n0s,5k/s\n5m,8k/s\n10m,6k/s\n", encoding="utf-8")
    arguments = ["simulate", plan_file, "--rate-trace", str(path), "--runs", "1"]
    text = " ".join(printed(capsys, *arguments).split())
    assert "10 min of 5k/s to 8k/s, 6.5k/s on average" in text
    assert "its last line, at 10 min; a longer simulation continues with 6k/s" in text
    longer = json.loads(printed(capsys, *arguments, "--for", "15m", "--json"))["trace"]
    assert longer["rates_per_s"] == [5000, 8000, 6000]
    assert (longer["end_s"], longer["rate_at_end_per_s"]) == (900, None)
    shorter = json.loads(printed(capsys, *arguments, "--for", "4m", "--json"))["trace"]
    assert (shorter["rates_per_s"], shorter["end_s"]) == ([5000], 240)
    assert run([*arguments, "--for", "0s"]) == 2
    assert "expected more than 0" in capsys.readouterr().err
    path.write_text("time,rate\n0s,5k/s\n", encoding="utf-8")
    assert run(arguments) == 2
    assert "say how long it lasts" in capsys.readouterr().err
    assert run([*arguments, "--for", "4m"]) == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "the file is empty"),
        ("a,b\n1,2\n", "bad.csv:1:1: no column 'time'"),
        ("# rates\n\ntime,load\n1,2\n", "bad.csv:3:1: no column 'rate'"),
        ("time,rate\n", "no line of rates"),
        ("time,rate\n0,5\n", "one line of rates"),
        ("time,rate\n0,5\n0,6\n", "bad.csv:3:1: time '0' is not after"),
        ("time,rate\n0,5\n10,-6\n", "bad.csv:3:1: rate is '-6'"),
        ("time,rate\n0,5\n10,many\n", "bad.csv:3:1: rate is 'many'"),
        ("time,rate\n0,5\nlater,6\n", "bad.csv:3:1: time is 'later'"),
        ("time,rate\n0,5\n10\n", "bad.csv:3:1: 1 values; expected 2"),
        ("time,rate\n0,0\n10,0\n", "nothing to simulate"),
        ("time,rate\n0,0\n10,5\n", "no rate above 0 before its end"),
        ("time,rate\n0,5\nnan,6\n", "bad.csv:3:1: time is 'nan'"),
        ("time,rate\n0,5\n2026-01-01,6\n", "the line before it has seconds or a duration"),
    ],
)
def test_a_trace_that_is_none_is_one_line_with_its_place(
    capsys: pytest.CaptureFixture[str], plan_file: str, tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content, encoding="utf-8")
    assert run(["simulate", plan_file, "--rate-trace", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "bad.csv" in err
    assert said in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain"],
        ["explain", "no/such/plan.json"],
        ["simulate", "PLAN"],
        ["simulate", "PLAN", "--rate-trace", "no/such/trace.csv"],
        ["simulate", "PLAN", "--rate-trace", "TRACE", "--outage", "soon"],
        ["simulate", "PLAN", "--rate-trace", "TRACE", "--outage", "5m at 14m"],
        ["simulate", "PLAN", "--rate-trace", "TRACE", "--runs", "0"],
        ["simulate", "PLAN", "--rate-trace", "TRACE", "--outage", "0s at 1m"],
    ],
    ids=" ".join,
)
def test_usage_that_makes_no_sense(
    capsys: pytest.CaptureFixture[str], plan_file: str, trace_file: str, arguments: list[str]
) -> None:
    words = {"PLAN": plan_file, "TRACE": trace_file}
    assert run([words.get(word, word) for word in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("headway: ")
    assert "internal error" not in err


def test_times_may_be_seconds_durations_or_timestamps(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    for first, second in (
        ("60", "120"),
        ("1m", "2m"),
        ("2026-11-21T08:00:00", "2026-11-21T08:01:00"),
    ):
        path.write_text(f"rate,time\n5k/s,{first}\n# a remark\n\n300,{second}\n")
        trace = read_rate_trace(path).to_simulate(None)
        assert trace.times_s == (0.0,)
        assert trace.rates_per_s == (5000.0,)
        assert trace.rate_at_end_per_s == 300.0
        assert trace.end_s == 60.0


def test_lines_may_end_as_those_of_any_system(tmp_path: Path) -> None:
    lines = ["time,rate", "0s,20k/s", "10s,60k/s", ""]
    traces = []
    for line_end in ("\n", "\r\n", "\r"):
        path = tmp_path / "trace.csv"
        path.write_bytes(line_end.join(lines).encode())
        traces.append(read_rate_trace(path))
    assert traces[0].rates_per_s == (20_000.0, 60_000.0)
    assert traces == [traces[0]] * 3


def test_an_outage_at_the_start() -> None:
    assert Outage.parse("5m at 0") == Outage(start_s=0.0, length_s=300.0)
    with pytest.raises(InputError, match="is not an outage"):
        Outage.parse("5m")
