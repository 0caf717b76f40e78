"""Runs the examples of the README and writes what they print, or checks that it still does.

A ``console`` block is ``$ command``, whose lines may end with a backslash, and its output; a
``python`` block is run, and what it prints stands in the ``text`` block behind it. Blocks of
other languages are left alone.

    python scripts/refresh_readme.py            # rewrite
    python scripts/refresh_readme.py --check    # exit 1 and show the difference
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
#: Columns of what commands print: a block of code of the site has room for 95.
WIDTH = "92"
_CONSOLE = re.compile(
    r"```console\n\$ (?P<command>(?:[^\n]*\\\n)*[^\n]+)\n(?P<output>.*?)```\n", re.DOTALL
)
_PYTHON = re.compile(
    r"```python\n(?P<code>.*?)```\n(?P<between>\s*)```text\n(?P<output>.*?)```\n", re.DOTALL
)


def refreshed(text: str) -> str:
    """The README with the output of its examples as it is now."""
    text = _CONSOLE.sub(lambda match: _console(match["command"]), text)
    return _PYTHON.sub(lambda match: _python(match["code"], match["between"]), text)


def _console(command: str) -> str:
    return f"```console\n$ {command}\n{_printed(['sh', '-c', command])}```\n"


def _python(code: str, between: str) -> str:
    printed = _printed([sys.executable, "-c", code])
    return f"```python\n{code}```\n{between}```text\n{printed}```\n"


def _printed(command: list[str]) -> str:
    """What a command prints, errors too, run at the root with this Python's scripts first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": WIDTH},
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
