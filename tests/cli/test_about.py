"""``headway FILE``: every kind of file is recognised, and its commands are ones that there are."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.cli.main import run
from headway.cli.overview import COMMANDS
from headway.formats.exploration_file import ExplorationState, save_state
from headway.formats.profile_file import save_profile
from headway.spec.kinds import KINDS
from headway.spec.spec_file import scaffold
from tests.factories import a_profile
from tests.profiler.event_log import (
    EPOCH_S,
    AppLog,
    DStreams,
    Query,
    Work,
    write_gzip,
    write_plain,
    write_rolling,
    write_zstd,
)

ROOT = Path(__file__).parents[2]
TARGET = ("--rate", "5k/s", "--target", "p99 <= 3s")


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are short there, so that no line is wrapped."""
    monkeypatch.chdir(tmp_path)


def streaming() -> list[str]:
    return AppLog().add(Query(num_batches=40, noise=0.1)).lines


def batch() -> list[str]:
    log = AppLog()
    ended_s = log.add_job([Work(task_s=(1.0, 2.0), rows=(100, 200))], EPOCH_S + 30.0)
    return log.end(ended_s + 2).lines


def dstreams() -> list[str]:
    return AppLog().add_dstreams(DStreams(num_batches=40)).lines


def rolling(lines: list[str], place: Path) -> Path:
    place.mkdir()
    write_rolling(lines, place / "eventlog_v2_app")
    return place


def described(file: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, list[str]]:
    """What a file is, and the commands that are named."""
    assert run([file]) == 0, capsys.readouterr()
    first, _, lines = capsys.readouterr().out.partition("\n")
    commands = re.findall(r"^  headway (\w+) ", lines, re.MULTILINE)
    assert commands
    assert set(commands) <= set(COMMANDS)
    assert first.startswith(f"{file}: ")
    return first.removeprefix(f"{file}: "), commands


@pytest.mark.parametrize("write", [write_plain, write_gzip, write_zstd, rolling])
@pytest.mark.parametrize(
    ("lines", "what", "commands"),
    [
        (streaming, "an event log of a streaming query", ["plan", "predict", "report"]),
        (batch, "an event log of a batch application", ["plan", "report", "diff"]),
        (dstreams, "an event log of a DStreams application", ["plan", "predict", "report"]),
    ],
)
def test_event_logs_of_every_kind_in_every_form(
    lines: Callable[[], list[str]],
    what: str,
    commands: list[str],
    write: Callable[[list[str], Path], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(lines(), Path("log"))
    assert described("log", capsys) == (what, commands)


@pytest.mark.parametrize(
    ("name", "what", "first"),
    [
        ("examples/word-count.profile.yaml", "the profile of a streaming query", "plan"),
        ("examples/nightly-totals.profile.yaml", "the profile of a batch application", "plan"),
        ("configs/headway.lock", "a lock that Headway wrote", "check"),
        ("configs/nodes.yaml", "a spec file of the kind NodeCatalog", "plan"),
        ("examples/pipelines/word-count.yaml", "of the kind MicroBatchPipeline", "predict"),
    ],
)
def test_files_of_our_own(
    name: str,
    what: str,
    first: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    description, commands = described(name, capsys)
    assert what in description
    assert commands[0] == first


@pytest.mark.parametrize("kind", KINDS)
def test_spec_files_of_every_kind(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("spec.yaml").write_text(scaffold(kind, name="example", file="spec.yaml"))
    description, commands = described("spec.yaml", capsys)
    assert description == f"a spec file of the kind {kind}"
    assert commands[-1] == "validate"


def test_results_and_states(capsys: pytest.CaptureFixture[str]) -> None:
    profile = str(ROOT / "examples/word-count.profile.yaml")
    for name, command in (("a.json", ["plan", profile, *TARGET]), ("b.json", ["predict", profile])):
        assert run([*command, "--json"]) == 0
        Path(name).write_text(capsys.readouterr().out)
    save_state(ExplorationState(rate_per_s=4000.0, target="p99 <= 3.00 s"), Path("c.json"))
    assert described("a.json", capsys) == (
        "a plan that Headway wrote",
        ["explain", "emit", "report"],
    )
    assert described("b.json", capsys) == ("a prediction that Headway wrote", ["report"])
    assert described("c.json", capsys) == ("an exploration that Headway wrote", ["explore"])


@pytest.mark.parametrize(
    "text",
    [
        "hello\n",
        "time,rate\n0s,20k/s\n",
        '{"rows": 5}\n',
        "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\n",
    ],
)
def test_what_is_none_of_these_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("other").write_text(text)
    assert run(["other"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("headway: other: not a file that Headway reads; expected an event log")
    assert len(err.splitlines()) == 1


def test_long_commands_are_not_broken_and_name_the_chosen_query(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ("a-folder-with-a-name-that-is-longer-than-most-terminals-" * 2)
    folder.mkdir()
    log = write_plain(streaming(), folder / "log")
    assert run([str(log), "--query", "orders"]) == 0
    lines = capsys.readouterr().out.splitlines()
    command = f"  headway predict {log} --query orders --executors 4"
    assert lines[lines.index(command) - 1] == "  # latency at another setting"
    assert run(["predict", str(log), "--query", "orders", "--executors", "4"]) == 0


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("is_sorted", [False, True])
def test_the_json_of_a_profile_is_a_profile_everywhere(
    is_sorted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    save_profile(a_profile(), "job.profile.yaml")
    data = a_profile().to_dict()
    Path("prof.json").write_text(json.dumps(data, indent=2, sort_keys=is_sorted))
    assert run(["prof.json"]) == 0
    shown = capsys.readouterr().out
    assert "the profile of" in shown
    (page_command,) = re.findall(r"^  (headway report .*\.html)", shown, re.MULTILINE)
    assert run(shlex.split(page_command)[1:]) == 0
    assert "<html" in Path("profile.html").read_text()
    assert run(["diff", "prof.json", "job.profile.yaml"]) == 0
    assert "no difference" in capsys.readouterr().out
