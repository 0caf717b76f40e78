"""Results of real queries: committed as they come, and read as one figure a run."""

from __future__ import annotations

import math
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from real.measured import starves

Line = Mapping[str, Any]
EARLIER = ("kinds-alone", "first-pass")
"""Folders of runs at loads that are shares of what each kind of query takes alone."""

AUTO_MENDED = "2026-11-26T20:48:00+00:00"
"""Until then `auto` chose before it knew what rows cost; such runs say nothing about it."""


def commit(folder: Path, message: str) -> None:
    """Commit a folder of results, and nothing else."""
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "add", "."], check=True)
    unchanged = subprocess.run([*git, "diff", "--cached", "--quiet", "--", "."], check=False)
    if unchanged.returncode:
        subprocess.run([*git, "commit", "--quiet", "-m", message, "--", "."], check=True)


def last_measured(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each cell, run and way: of a part that was cut and measured anew, the last."""
    counting = [one for one in lines if one["way"] != "auto" or one["at"] > AUTO_MENDED]
    return list({(one["cell"], one["run"], one["way"]): one for one in counting}.values())


def mean_of_ways_s(lines: Sequence[dict[str, Any]], cell: str, before: int) -> dict[str, float]:
    """Mean window latency of each way of a cell, over the runs before one [s].

    Infinite for a way that has starved a query: it is not the best, whatever the others gain.
    """
    earlier = [line for line in last_measured(lines) if line["run"] < before]
    latencies_s: dict[str, list[float]] = defaultdict(list)
    for line in earlier:
        if line["cell"] == cell:
            latencies_s[line["way"]] += windows_s(line)
    means_s = {way: float(np.mean(found)) for way, found in latencies_s.items() if found}
    return means_s | dict.fromkeys(starving_ways(earlier, cell), math.inf)


def starving_ways(lines: Sequence[Line], cell: str) -> set[str]:
    """Ways that have starved a query of a cell in some run."""
    return {line["way"] for line in lines if line["cell"] == cell and starves(line)}


def windows_s(line: Line) -> list[float]:
    """Latencies of all windows of a run [s]."""
    return [one for query in line["queries"] for one in query["windows_s"]]
