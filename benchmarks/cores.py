"""How busy others keep the machine while this process and what it started do their work."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class CpuTime(NamedTuple):
    """Processor time so far [s], at an instant of the monotonic clock.

    Of others, of all that runs here, and what the hypervisor gave to other machines.
    """

    at_s: float
    others_s: float
    busy_s: float
    stolen_s: float


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
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen = map(
        int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    )
    busy = user + nice + system + interrupts + soft_interrupts
    return CpuTime(
        time.monotonic(), others / _TICKS_PER_S, busy / _TICKS_PER_S, stolen / _TICKS_PER_S
    )


class Cores(NamedTuple):
    """How many cores others kept busy in between, all together, and how many were stolen."""

    of_others: float
    busy: float
    stolen: float


def cores_between(before: CpuTime, after: CpuTime) -> Cores:
    """Means over the time in between."""
    passed_s = after.at_s - before.at_s
    used = zip(after[1:], before[1:], strict=True)
    return Cores(*(max(now_s - then_s, 0.0) / passed_s for now_s, then_s in used))


def _is_own(process: int, parent: dict[int, int]) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        process = parent.get(process, 0)
    return False
