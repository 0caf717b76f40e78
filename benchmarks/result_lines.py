"""Results on disk, a line each: what is there is not measured again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def lines_of(file: Path) -> list[dict[str, Any]]:
    """Its lines; none if there is no such file yet, and without one that was cut."""
    if not file.exists():
        return []
    whole = file.read_text(encoding="utf-8").rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def keep(file: Path, line: Mapping[str, Any]) -> None:
    """Append a line, on the disk before anything else is measured."""
    file.parent.mkdir(parents=True, exist_ok=True)
    cut = file.exists() and not file.read_bytes().endswith(b"\n") and file.stat().st_size > 0
    if cut:
        whole = file.read_bytes().rpartition(b"\n")[0]
        file.write_bytes(whole + b"\n" if whole else b"")
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
        out.flush()
        os.fsync(out.fileno())
