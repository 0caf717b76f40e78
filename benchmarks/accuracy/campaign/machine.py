"""How busy the machine is, and how much of that is this process and what it started."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class CpuTime(NamedTuple):
    """Processor time since the start of the machine [s], at an instant of the monotonic clock."""

    at_s: float
    everybody_s: float
    own_s: float


def cpu_time() -> CpuTime:
    """Processor time used by all processes, and by this one with its descendants."""
    busy = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, *_ = (int(ticks) for ticks in busy)
    everybody = user + nice + system + irq + softirq
    return CpuTime(time.monotonic(), everybody / _TICKS_PER_S, _own_ticks() / _TICKS_PER_S)


def cores_of_others(before: CpuTime, after: CpuTime) -> float:
    """Cores that others kept busy in between."""
    others_s = (after.everybody_s - before.everybody_s) - (after.own_s - before.own_s)
    return max(others_s / (after.at_s - before.at_s), 0.0)


def _own_ticks() -> int:
    ticks, parent = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended just now
        process = int(folder.name)
        parent[process] = int(fields[1])
        # Children that ended count with the one who waited for them.
        ticks[process] = sum(int(field) for field in fields[11:15])
    return sum(used for process, used in ticks.items() if _is_own(process, parent))


def _is_own(process: int, parent: dict[int, int]) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        process = parent.get(process, 0)
    return False
