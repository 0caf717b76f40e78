"""Pages made of what the program says of itself are fresh, and hooks name what there is."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from headway.cli.main import run

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.statistical)])
def test_the_pages_are_fresh(every: bool) -> None:
    # A Spark session of this process keeps scripts from the folder that they are in.
    shell = {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}
    if every:
        shell["HEADWAY_ALL_EXAMPLES"] = "1"
    done = subprocess.run(
        [sys.executable, "scripts/refresh_docs.py", "--check"],
        cwd=ROOT, env=shell, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_hooks_name_commands_that_exist() -> None:
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()):
        assert run([*shlex.split(hook["entry"])[1:2], "--help"]) == 0
