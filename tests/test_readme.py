"""The README's examples are run, and print what it says."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_examples_print_what_the_readme_says() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/refresh_readme.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_check_finds_a_stale_example() -> None:
    refreshed = runpy.run_path(str(ROOT / "scripts" / "refresh_readme.py"))["refreshed"]
    stale = "```console\n$ echo fresh\nstale\n```\n"
    assert refreshed(stale) == "```console\n$ echo fresh\nfresh\n```\n"
    code = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    assert refreshed(code) == "```python\nprint(1 + 1)\n```\n\n```text\n2\n```\n"


def test_readme_opens_with_what_it_does_and_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.index("make demo") < 6000
    assert "make test" in text
