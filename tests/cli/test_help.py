"""Help says first what a command does, and shows how it is used."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from headway import __version__
from headway.cli.main import _COMMANDS, run


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("name", _COMMANDS)
def test_help_of_a_command_has_purpose_and_example(
    capsys: pytest.CaptureFixture[str], name: str, option: str
) -> None:
    assert run([name, option]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    usage, purpose, *rest = [line for line in out.splitlines() if line.strip()]
    assert usage.startswith(f"Usage: headway {name}")
    assert purpose.strip()[0].isupper()
    assert any(line.strip().startswith(f"headway {name}") for line in rest[:2])
    assert max(map(len, out.splitlines())) <= 100
    assert "\x1b" not in out
    assert "\b" not in out


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_the_overview_lists_every_command(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(arguments) == 0
    out = capsys.readouterr().out
    for name, (_, purpose) in _COMMANDS.items():
        assert f"  {name}" in out
        assert purpose in out
    assert "headway demo" in out


def test_no_command_at_all_shows_the_overview_as_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Usage: headway" in err


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"headway, version {__version__}\n"


@pytest.mark.parametrize(
    ("shell", "begin"),
    [
        ("bash", "_headway_completion()"),
        ("zsh", "#compdef headway"),
        ("fish", "function _headway_completion"),
    ],
)
def test_shells_learn_how_to_complete(shell: str, begin: str) -> None:
    assert completion(f"{shell}_source").startswith(begin)


def test_what_a_shell_completes() -> None:
    found = completion("zsh_complete", COMP_WORDS="headway pl", COMP_CWORD="1")
    assert "plan" in found.splitlines()


def completion(instruction: str, **of_shell: str) -> str:
    """What the command answers to a shell that asks for completions."""
    done = subprocess.run(
        [sys.executable, "-m", "headway"],
        env={**os.environ, "_HEADWAY_COMPLETE": instruction, **of_shell},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.lstrip()
