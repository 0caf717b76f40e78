"""What the Makefile runs commands with: they tell what goes on, and change nothing else."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.sources import ROOT


def done(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("script", ["scripts/telling.sh", "scripts/cpu-minutes.sh"])
def test_output_and_exit_code_are_those_of_the_command(script: str) -> None:
    command = done(script, "counting", "sh", "-c", "echo one two; echo three >&2; exit 3")
    assert (command.returncode, command.stdout) == (3, "one two\n")
    assert "three\n" in command.stderr
    assert "counting" in command.stderr


def test_it_is_said_at_once_what_goes_on() -> None:
    # The pipe closes with the command: nothing that the script started holds it open.
    assert done("scripts/telling.sh", "installing", "true").stderr == "installing\n"


def test_processor_time_is_that_of_the_command_and_its_processes() -> None:
    spin = "import subprocess, sys, time\nwhile time.process_time() < 0.6: pass\n"
    outer = f"{spin}subprocess.run([sys.executable, '-c', {spin!r}])"
    said = done("scripts/cpu-minutes.sh", "spinning", "python3", "-c", outer).stderr
    minutes = re.fullmatch(r"spinning: ([\d.]+) CPU minutes\n", said)
    assert minutes is not None, said
    # Twice 0.6 s, and what Python takes to start; of the command alone it would be 0.01.
    assert 0.02 <= float(minutes[1]) <= 0.03
