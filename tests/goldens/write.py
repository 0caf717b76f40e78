"""Writes what is on record anew: ``python -m tests.goldens.write``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.goldens.calls import lines
from tests.goldens.commands import COMMANDS, output_of, prepare
from tests.goldens.test_goldens import CALLS, RECORD


def main() -> None:
    """Write a file for each command, and one for all calls."""
    RECORD.mkdir(exist_ok=True)
    for path in RECORD.glob("*.txt"):
        path.unlink()
    with tempfile.TemporaryDirectory(prefix="headway-goldens-") as folder:
        prepare(Path(folder))
        for name in COMMANDS:
            print(name, file=sys.stderr)
            text = output_of(name, Path(folder))
            (RECORD / f"{name}.txt").write_text(text, encoding="utf-8")
    CALLS.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")


if __name__ == "__main__":
    main()
