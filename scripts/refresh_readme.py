"""Runs the examples of the README and writes what they print, or checks that it still does.

A ``console`` block is ``$ command``, whose lines may end with a backslash, and its output; a
``python`` block is run, and what it prints stands in the ``text`` block behind it. Blocks of
other languages are left alone. Commands of Headway run in this process, equal ones once, so that
none computes what another has computed; with HEADWAY_ALL_EXAMPLES each starts a Python of its own,
as for users.

    python scripts/refresh_readme.py            # rewrite
    python scripts/refresh_readme.py --check    # exit 1 and show the difference
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
README = ROOT / "README.md"
#: Columns of what commands print: a block of code of the site has room for 95.
WIDTH = "92"
_CONSOLE = re.compile(
    r"```console\n\$ (?P<command>(?:[^\n]*\\\n)*[^\n]+)\n(?P<output>.*?)```\n", re.DOTALL
)
_PYTHON = re.compile(
    r"```python\n(?P<code>.*?)```\n(?P<between>\s*)```text\n(?P<output>.*?)```\n", re.DOTALL
)
_COMMAND = re.compile(
    r"headway (?P<words>(?:[^|;&<>$`*']|'[^']*')*?)(?P<quiet> 2>/dev/null)?(?: \| (?P<rest>.*))?"
)


def refreshed(text: str) -> str:
    """The README with the output of its examples as it is now."""
    text = _CONSOLE.sub(lambda match: _console(match["command"]), text)
    return _PYTHON.sub(lambda match: _python(match["code"], match["between"]), text)


def _console(command: str) -> str:
    of_headway = _COMMAND.fullmatch(re.sub(r"\\\n\s*", "", command))
    if of_headway is None or os.environ.get("HEADWAY_ALL_EXAMPLES"):
        printed = _printed(["sh", "-c", command])
    else:
        printed, messages = _printed_here(*shlex.split(of_headway["words"]))
        if of_headway["rest"] is not None:
            printed = _printed(["sh", "-c", of_headway["rest"]], printed)
        if of_headway["quiet"] is None:
            # Messages are written at once, and what is printed when a command ends.
            printed = messages + printed
    return f"```console\n$ {command}\n{printed}```\n"


@cache
def _printed_here(*words: str) -> tuple[str, str]:
    """What Headway prints, and its messages, for a command that is run in this process."""
    from headway.cli.main import run

    printed, messages = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(ROOT),
        mock.patch.dict(os.environ, COLUMNS=WIDTH),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(messages),
    ):
        run(words)
    return printed.getvalue(), messages.getvalue()


def _python(code: str, between: str) -> str:
    printed = _printed([sys.executable, "-c", code])
    return f"```python\n{code}```\n{between}```text\n{printed}```\n"


def _printed(command: list[str], given: str | None = None) -> str:
    """What a command prints, errors too, run at the root with this Python's scripts first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": WIDTH},
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def main() -> int:
    """Rewrite or check; the exit code."""
    old = README.read_text()
    new = refreshed(old)
    if "--check" not in sys.argv:
        README.write_text(new)
        return 0
    difference = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), "README.md", "as it is now"
    )
    sys.stdout.writelines(difference)
    return int(old != new)


if __name__ == "__main__":
    sys.exit(main())
