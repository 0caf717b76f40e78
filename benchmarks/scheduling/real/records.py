"""Results on disk: what is there is not measured again."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Line = Mapping[str, Any]


def lines_of(file: Path) -> list[dict[str, Any]]:
    """Its lines; none if there is no such file yet, and without one that was cut."""
    if not file.exists():
        return []
    whole = file.read_text(encoding="utf-8").rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def keep(file: Path, line: Line) -> None:
    """Append a line, on the disk before anything else is measured."""
    file.parent.mkdir(parents=True, exist_ok=True)
    cut = file.exists() and not file.read_bytes().endswith(b"\n") and file.stat().st_size > 0
    if cut:
        file.write_bytes(file.read_bytes().rpartition(b"\n")[0] + b"\n")
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
        out.flush()
        os.fsync(out.fileno())


def commit(folder: Path, message: str) -> None:
    """Commit a folder of results, and nothing else."""
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "add", "."], check=True)
    unchanged = subprocess.run([*git, "diff", "--cached", "--quiet", "--", "."], check=False)
    if unchanged.returncode:
        subprocess.run([*git, "commit", "--quiet", "-m", message, "--", "."], check=True)


def mean_of_ways_s(lines: list[dict[str, Any]], cell: str) -> dict[str, float]:
    """Mean window latency of each way of a cell, over its runs [s]."""
    latencies_s: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        if line["cell"] == cell:
            latencies_s[line["way"]] += windows_s(line)
    return {way: float(np.mean(found)) for way, found in latencies_s.items() if found}


def windows_s(line: Line) -> list[float]:
    """Latencies of all windows of a run [s]."""
    return [one for query in line["queries"] for one in query["windows_s"]]
