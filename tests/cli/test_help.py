"""Help says first what a command does, and shows how it is used."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import click
import pytest

from headway import __version__
from headway.cli.main import cli, run
from headway.cli.options import Option
from headway.cli.overview import ABOUT, COMMANDS, EXAMPLES, OPTIONS, overview
from headway.cli.terminal import fitted_help
from headway.errors import EXIT_CODES
from headway.report.columns import USUAL_WIDTH, set_width


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("name", COMMANDS)
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


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_fits_one_screen(
    name: str,
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("headway.cli.terminal.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    try:
        assert run([name, "--help"]) == 0
    finally:
        set_width(USUAL_WIDTH)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40, "\n".join(lines)


def options_of(help_text: str) -> set[str]:
    """The options that a help lists under its headings, in each of their spellings."""
    listed = re.split(r"^[A-Z][a-z ]+:$", help_text, maxsplit=1, flags=re.MULTILINE)[1]
    return {
        word.rstrip(",")
        for line in listed.splitlines()
        if line.startswith("  -")
        for word in line.strip().split("  ")[0].split()
        if word.startswith("-")
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_the_full_help_has_every_option_and_the_short_one_all_but_the_rare(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = [param for param in command.params if isinstance(param, click.Option)]
    rare = [option for option in options if isinstance(option, Option) and option.is_rare]
    assert run([name, "--help"]) == 0
    short = capsys.readouterr().out
    assert run([name, "--help-all"]) == 0
    full = capsys.readouterr().out
    listed = {spelling for option in options for spelling in option.opts}
    hidden = {spelling for option in rare for spelling in option.opts}
    assert options_of(full) - {"-h", "--help", "--help-all"} == listed
    assert options_of(short) - {"-h", "--help", "--help-all"} == listed - hidden
    assert ("--help-all" in options_of(short)) == (short != full)


def test_options_stand_under_what_they_are_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--help"]) == 0
    text = capsys.readouterr().out
    order = ["What you ask:", "--target ", "What is fixed:", "--trigger ", "The nodes:",
             "--node-type ", "Output:", "--json "]  # fmt: skip
    places = [text.rindex(part) for part in order]
    assert places == sorted(places)


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_the_overview_lists_every_command(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(arguments) == 0
    out = capsys.readouterr().out
    for name, purpose in COMMANDS.items():
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


@pytest.mark.parametrize("columns", [50, 60, 78, 98])
def test_the_overview_is_laid_out_as_click_would(columns: int) -> None:
    context = click.Context(cli, info_name="headway")
    declared = [param.get_help_record(context) for param in cli.get_params(context)]
    assert list(OPTIONS.items()) == declared
    formatter = click.HelpFormatter(width=columns)
    cli.format_usage(context, formatter)
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(f"{ABOUT}\n\n\b\n{EXAMPLES}")
    rows = {
        "Options": list(OPTIONS.items()),
        "Commands": list(COMMANDS.items()),
        "Exit codes": [(str(int(code)), text) for code, text in EXIT_CODES.items()],
    }
    for title, definitions in rows.items():
        with formatter.section(title):
            formatter.write_dl(definitions)
    assert overview(columns) == fitted_help(formatter.getvalue().rstrip("\n"))


def test_the_overview_alone_comes_without_click() -> None:
    script = (
        "import sys\n"
        "from headway.__main__ import main\n"
        "sys.argv[1:] = ['--help']\n"
        "main()\n"
        "assert not set(sys.modules) & {'click', 'headway.cli.main'}\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    asked_otherwise = [sys.executable, "-m", "headway", "--help", "--no-color"]
    assert done.stdout == subprocess.run(asked_otherwise, capture_output=True, text=True).stdout
