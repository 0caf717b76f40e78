"""``headway profile`` and ``headway backtest`` on logs: what is asked for is done, or refused."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headway.api.backtest import backtest
from headway.api.profile import profile_and_tables
from headway.cli.main import run
from headway.formats.profile_file import load_profile
from tests.profiler.event_log import EPOCH_S, AppLog, Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = Query(num_batches=16, trigger_s=1.0, source="FileStreamSource[file:/data/a]")
# The same query on another folder, as fast as possible for what the log tells.
LATER = replace(
    ORDERS,
    source="FileStreamSource[file:/data/b]",
    rate_per_s=9_000.0,
    started_s=EPOCH_S + 200,
    seed=2,
)


@pytest.fixture
def log(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs of one query whose sources differ; commands read with the session of the tests."""
    for place, door in (
        ("headway.cli.profile.profile_and_tables", profile_and_tables),
        ("headway.cli.backtest.backtest", backtest),
    ):
        monkeypatch.setattr(place, partial(door, session=spark))
    path = tmp_path / "app-1"
    path.write_text("\n".join(AppLog().add(ORDERS).add(LATER).lines), encoding="utf-8")
    return path


def test_profile_and_tables_are_both_written(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile, tables = tmp_path / "x.yaml", tmp_path / "tables"
    options = ["-o", str(profile), "--tables", str(tables), "--query", "orders"]
    assert run(["profile", str(log), *options, "--trigger", "3s"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == str(profile)
    assert str(tables / "batches") in printed.out
    assert (tables / "batches" / "_SUCCESS").exists()
    found = load_profile(profile)
    assert [setting.configuration.trigger_s for setting in found.settings] == [3.0, 3.0]
    # What holds for both runs is one note.
    (note,) = (note for note in found.notes if "contradicts the stated trigger" in note)
    assert "runs 1 and 2 of 2: the log contradicts the stated trigger (3.00 s)" in note
    assert "batches start on the grid of 1.00 s; taken as stated" in note
    assert "contradicts the stated trigger" in printed.err


def test_runs_with_other_sources_are_taken_together_when_named(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["backtest", str(log)]) == 2
    refused = capsys.readouterr().err
    assert "the queries are different jobs" in refused
    assert "if they are runs of one job, take them together with --query orders, else" in refused
    assert run(["profile", str(log), "--check"]) == 0
    checked = " ".join(capsys.readouterr().out.split())
    assert "if they are runs of one job, take them together with --query orders, else" in checked
    assert run(["backtest", str(log), "--query", "orders"]) == 0
    assert "in 2 held-out runs" in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--query", "orders"], ["--trigger", "5s"]])
@pytest.mark.parametrize("others", [["--check"], ["--tables", "t"], ["-o", "profiles/"]])
def test_options_of_one_profile_are_refused_beside_a_look_at_each_log(
    option: list[str], others: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["profile", "log", *option, *others]) == 2
    assert "one profile of all logs" in capsys.readouterr().err
