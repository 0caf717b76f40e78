"""Results of real queries: committed as they come, and read as one figure a run."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Line = Mapping[str, Any]


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
