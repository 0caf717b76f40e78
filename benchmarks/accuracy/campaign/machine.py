"""How busy others keep the machine while this process and what it started do their work."""

from __future__ import annotations

import os
import platform
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from headway.version import __version__

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def made_by(command: str) -> str:
    """When, by which command and on what machine results were made."""
    return (
        f"Made {datetime.now(UTC):%Y-%m-%d} by `{command}`, headway {__version__}, PySpark "
        f"{version('pyspark')}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{platform.machine()}, {platform.system()}."
    )


class CpuTime(NamedTuple):
    """Processor time of others so far [s], at an instant of the monotonic clock."""

    at_s: float
    others_s: float


def cpu_time() -> CpuTime:
    """Processor time of all processes that are neither this one nor its descendants.

    Those that ended count with the one who waited for them.
    """
    ticks, parent = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended just now
        process = int(folder.name)
        parent[process] = int(fields[1])
        ticks[process] = sum(int(field) for field in fields[11:15])
    others = sum(used for process, used in ticks.items() if not _is_own(process, parent))
    return CpuTime(time.monotonic(), others / _TICKS_PER_S)


def cores_of_others(before: CpuTime, after: CpuTime) -> float:
    """Cores that others kept busy in between."""
    return max((after.others_s - before.others_s) / (after.at_s - before.at_s), 0.0)


def _is_own(process: int, parent: dict[int, int]) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        process = parent.get(process, 0)
    return False
