"""One table of exit codes: what is missing or cannot be written has one message everywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from headway.cli.main import run
from headway.cli.overview import COMMANDS
from headway.errors import EXIT_CODES, ExitCode
from headway.formats.profile_file import save_profile
from tests.ci.conftest import SPEC
from tests.cli.conftest import printed
from tests.factories import a_profile
from tests.planner.jobs import SLIDING, windowed

ROOT = Path(__file__).parents[2]
PROMISE = ["--rate", "5k/s", "--target", "p99 <= 3s"]

#: Every way in which a command is given a file to read; ``MISSING`` is not there.
READS: list[list[str]] = [
    ["profile", "MISSING"],
    ["profile", "MISSING", "--check"],
    ["profile", "MISSING", "--advise"],
    ["profile", "MISSING", "--tables", "t"],
    ["profile", "MISSING", "-o", "each/"],
    ["profile", "MISSING.headway.jsonl"],
    ["explore", "MISSING"],
    ["watch", "MISSING", "--profile", "orders.profile.yaml", *PROMISE[2:], "--once"],
    ["watch", "orders.yaml", "--profile", "MISSING", *PROMISE[2:], "--once"],
    ["tune", "MISSING"],
    ["predict", "MISSING"],
    ["windows", "MISSING"],
    ["windows", "windows.profile.yaml", "--explain", "MISSING"],
    ["ordered", "MISSING", "--keys", "keys.csv"],
    ["ordered", "orders.profile.yaml", "--keys", "MISSING"],
    ["schedule", "MISSING"],
    ["schedule", "--decisions", "MISSING"],
    ["backtest", "MISSING"],
    ["plan", "MISSING"],
    ["plan", "MISSING", *PROMISE],
    ["plan", "MISSING", "--target", "deadline <= 1m"],
    ["plan", "orders.profile.yaml", *PROMISE, "--node-type", "m6i.large", "--catalog", "MISSING"],
    ["explain", "MISSING"],
    ["diff", "MISSING", "orders.yaml"],
    ["diff", "orders.yaml", "MISSING"],
    ["simulate", "MISSING", "--rate-trace", "trace.csv"],
    ["simulate", "plan.json", "--rate-trace", "MISSING"],
    ["emit", "MISSING", "--format", "pyspark"],
    ["emit", "MISSING.yaml", "--format", "pyspark"],
    ["emit", "orders.yaml", "--format", "pyspark", "--diff-from", "MISSING"],
    ["emit", "orders.yaml", "--patch", "MISSING"],
    ["emit", "orders.yaml", "--patch", "MISSING", "--write"],
    ["emit", "orders.yaml", "--files", "f", "--diff-from", "MISSING"],
    ["capacity", "MISSING"],
    ["lock", "MISSING"],
    ["lock", "orders.yaml", "MISSING"],
    ["check", "MISSING"],
    ["check", "orders.yaml", "--baseline", "MISSING"],
    ["validate", "MISSING"],
    ["report", "MISSING", "-o", "page.html"],
    ["report", "MISSING.yaml", "-o", "page.html"],
    ["report", "plan.json", "-o", "page.html", "--profile", "MISSING"],
    ["report", "orders.profile.yaml", "-o", "page.html", "--log", "MISSING"],
]
#: Every way in which a command learns where to write a file; the input is never there, so that
#: what is said of the output is said before the work.
WRITES_FILES: list[list[str]] = [
    ["profile", "MISSING", "-o", "OUTPUT"],
    ["simulate", "MISSING", "--rate-trace", "MISSING", "-o", "OUTPUT"],
    ["emit", "MISSING", "--patch", "OUTPUT", "--write"],
    ["lock", "MISSING", "-o", "OUTPUT"],
    ["ordered", "MISSING", "--keys", "MISSING", "-o", "OUTPUT"],
    ["init", "OUTPUT"],
    ["report", "MISSING", "-o", "OUTPUT"],
    ["plan", "MISSING", *PROMISE, "-o", "OUTPUT"],
]
WRITES_FOLDERS: list[list[str]] = [
    ["profile", "MISSING", "-o", "OUTPUT/"],
    ["profile", "MISSING", "--tables", "OUTPUT"],
    ["emit", "MISSING", "--files", "OUTPUT", "--diff-from", "MISSING"],
    ["demo", "-o", "OUTPUT"],
    ["explore", "MISSING", "--folder", "OUTPUT"],
]
#: Commands that read no file, or write none.
NO_INPUT = {"demo", "init", "mcp", "schema"}
NO_OUTPUT = {
    "mcp",
    "watch",
    "tune",
    "windows",
    "schedule",
    "predict",
    "backtest",
    "explain",
    "diff",
    "capacity",
    "check",
    "validate",
    "schema",
}

Fails = Callable[[Sequence[str], int], str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a spec, its profile, a plan and a rate trace."""
    monkeypatch.chdir(tmp_path)
    save_profile(a_profile(), tmp_path / "orders.profile.yaml")
    save_profile(windowed(windows=(SLIDING,)), tmp_path / "windows.profile.yaml")
    (tmp_path / "orders.yaml").write_text(SPEC)
    (tmp_path / "trace.csv").write_text("time,rate\n0,5000\n60,5000\n")
    return tmp_path


@pytest.fixture
def plan_file(folder: Path) -> None:
    profile = str(ROOT / "examples" / "word-count.profile.yaml")
    (folder / "plan.json").write_text(printed("plan", profile, *PROMISE, "--json"))


def said(capsys: pytest.CaptureFixture[str], arguments: Sequence[str], exit_code: int) -> str:
    """What a command says that must fail so; it prints nothing else and leaves nothing behind."""
    before = sorted(Path().rglob("*"))
    assert run(arguments) == exit_code
    out, err = capsys.readouterr()
    assert "internal error" not in err
    assert sorted(Path().rglob("*")) == before
    return out + err


def test_every_command_is_in_the_tables() -> None:
    assert {arguments[0] for arguments in READS} | NO_INPUT == set(COMMANDS)
    written = {arguments[0] for arguments in WRITES_FILES + WRITES_FOLDERS}
    assert written | NO_OUTPUT == set(COMMANDS)


@pytest.mark.usefixtures("plan_file")
@pytest.mark.parametrize("arguments", READS, ids=" ".join)
def test_a_missing_input_is_bad_input_in_every_command(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    named = [word.replace("MISSING", "no/such") for word in arguments]
    text = said(capsys, named, ExitCode.INVALID)
    assert "no/such" in text
    assert "no such file" in text or "does not exist; create it" in text


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "output", "complaint"),
    [
        (arguments, output, complaint)
        for arguments in WRITES_FILES
        for output, complaint in (
            ("a-folder", "it is a folder; expected a file"),
            ("none/file", "does not exist; create it"),
            ("orders.yaml/file", "orders.yaml is not a folder"),
        )
        # There it writes a file for each application.
        if not (arguments[0] == "profile" and output == "a-folder")
    ],
)
def test_an_output_that_cannot_be_is_reported_before_the_work(
    arguments: list[str], output: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a-folder").mkdir()
    named = [word.replace("MISSING", "no/such").replace("OUTPUT", output) for word in arguments]
    text = said(capsys, named, ExitCode.INVALID)
    assert complaint in text
    assert "no/such" not in text


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("arguments", WRITES_FOLDERS, ids=" ".join)
@pytest.mark.parametrize("output", ["orders.yaml", "orders.yaml/below"])
def test_a_file_is_no_folder_to_write_to(
    arguments: list[str], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [word.replace("MISSING", "no/such").replace("OUTPUT", output) for word in arguments]
    text = said(capsys, named, ExitCode.INVALID)
    assert "a file; expected a folder" in text
    assert "no/such" not in text


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("arguments", WRITES_FILES + WRITES_FOLDERS, ids=" ".join)
def test_a_folder_of_somebody_else_is_reported_before_the_work(
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    named = [word.replace("MISSING", "no/such").replace("OUTPUT", "new") for word in arguments]
    text = said(capsys, named, ExitCode.INVALID)
    assert "no permission to write to" in text


@pytest.mark.usefixtures("folder")
def test_a_lock_of_what_is_infeasible_is_infeasible(capsys: pytest.CaptureFixture[str]) -> None:
    Path("tight.yaml").write_text(SPEC.replace("5s", "50ms").replace("orders}", "tight}"))
    text = said(capsys, ["lock", "orders.yaml", "tight.yaml"], ExitCode.INFEASIBLE)
    assert "tight.yaml:7:11: tight: infeasible" in text


def test_the_table_is_what_the_help_and_its_page_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    help_text = capsys.readouterr().out
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for code, text in EXIT_CODES.items():
        assert f"  {int(code)}  {text}\n" in help_text
        assert f"  {int(code)}  {text}\n" in page
    assert set(EXIT_CODES) == set(ExitCode)


@pytest.mark.parametrize("name", COMMANDS)
def test_codes_that_a_command_names_are_in_the_table(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([name, "--help"]) == 0
    named = re.findall(r"[Ee]xits? with (\d+)", " ".join(capsys.readouterr().out.split()))
    assert all(int(code) in list(ExitCode) for code in named)


def test_the_codes_of_the_gate_are_in_the_table() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    codes = [int(code) for code in re.findall(r"^\| (\d+) \|", page, flags=re.MULTILINE)]
    assert codes
    assert set(codes) <= set(ExitCode)
