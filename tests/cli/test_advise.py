"""``headway profile --advise``: what to run next, in words and as data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.cli.main import run
from tests.factories import a_profile
from tests.profiler.event_log import AppLog, Query, write_plain


@pytest.mark.usefixtures("shared_session")
def test_a_log_of_one_setting_asks_for_others(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = write_plain(AppLog().add(Query()).lines, tmp_path / "log")
    assert run(["profile", str(log), "--advise"]) == 0
    text = capsys.readouterr().out
    assert ". as fast as possible, " in text
    assert "shows the cost of a shuffle partition" in text
    assert ", run twice" in text


def test_the_text_says_what_the_json_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("headway.cli.profile.profile", lambda *_, **__: a_profile())
    assert run(["profile", "log", "--advise", "--json"]) == 0
    advised = json.loads(capsys.readouterr().out)["advised_runs"]
    assert run(["profile", "log", "--advise"]) == 0
    text = capsys.readouterr().out
    assert [one["shuffle_partitions"] for one in advised] == [8, 32, 8, 8]
    assert [one["needs_larger_cluster"] for one in advised] == [False, False, False, True]
    for number, one in enumerate(advised, 1):
        trigger = f"trigger {one['trigger_s']:g}" if one["trigger_s"] else "as fast as possible"
        assert f"{number}. {trigger}" in text
        assert one["learns"] in text
    assert text.count("needs a larger cluster: the log has up to 8 slots") == 1
    assert text.index("needs a larger cluster") > text.index("4. ")


def test_a_question_gets_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("headway.cli.profile.profile", lambda *_, **__: a_profile())
    asked = ["profile", "log", "--advise", "--rate", "20k/s", "--target", "p99 <= 2s"]
    assert run([*asked, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["advised_runs"][0]
    narrowing = first["narrowing"]
    assert narrowing["statistic"] == "p99"
    assert narrowing["error_after_ratio"] < narrowing["error_now_ratio"]
    assert run(asked) == 0
    assert "   would narrow p99 to " in capsys.readouterr().out


def test_a_question_of_a_larger_cluster_says_that_it_needs_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("headway.cli.profile.profile", lambda *_, **__: a_profile())
    asked = ["profile", "log", "--advise", "--rate", "900k/s", "--target", "p99 <= 5s"]
    assert run([*asked, "--json"]) == 0
    advised = json.loads(capsys.readouterr().out)["advised_runs"]
    sizes = [one["executors"] * one["cores_per_executor"] for one in advised]
    assert max(sizes) > 8
    assert [one["needs_larger_cluster"] for one in advised] == [size > 8 for size in sizes]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--advise", "--target", "p99 <= 2s"], "a target needs the rate"),
        (["--rate", "20k/s"], "the question belongs to --advise"),
        (["--advise", "--rate", "20k/s", "--check"], "--advise can be combined with"),
    ],
)
def test_half_a_question_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    message: str,
) -> None:
    monkeypatch.setattr("headway.cli.profile.profile", lambda *_, **__: a_profile())
    assert run(["profile", "log", *more]) == 2
    assert message in capsys.readouterr().err
