"""Results on disk, a line each: what is there is not measured again."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RULE = "headway/tuner/rule"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def this_machine() -> str:
    """Short name of the machine since it was started: what it can take holds for it alone.

    Examples
    --------
    >>> this_machine() == this_machine() != ""
    True
    """
    return _BOOT_ID.read_text()[:8] if _BOOT_ID.exists() else platform.node()


def rule_tree() -> str:
    """The git tree of the tuner's rule as it is committed; empty if its files are not."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.strip()

    return "" if git("status", "--porcelain", "--", RULE) else git("rev-parse", f"HEAD:{RULE}")


def machine_of(line: Mapping[str, Any]) -> str:
    """The machine that a line was written on; empty for lines from before it was noted.

    Examples
    --------
    >>> machine_of({"machine": "30bffd3c"}), machine_of({"cell": "spread-8-0.7"})
    ('30bffd3c', '')
    """
    return str(line.get("machine", ""))


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
