"""Fixed work, timed over and over beside a run: how fast the machine itself is meanwhile.

A process of its own does the same loop of the interpreter, the same copy in memory and the same
hash once a second, and writes down the processor time each took.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = ("interpreter_s", "memory_s", "hash_s")
SAME_MACHINE_RATIO = 1.5
"""Up to how many times longer the loop of the interpreter takes on what counts as one machine."""
_EVERY_S = 1.0
_LOOPS, _COPIED_BYTES, _HASHED_BYTES = 40_000, 16 << 20, 4 << 20


@dataclass(frozen=True, slots=True)
class FixedWork:
    """What the process has written so far."""

    path: Path

    def between(self, from_s: float, to_s: float) -> dict[str, float] | None:
        """Mean processor time of each kind between two instants of the epoch [s]; None unseen."""
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        seen = [line for line in lines if from_s <= line["at_s"] <= to_s]
        if not seen:
            return None
        return {kind: statistics.fmean(line[kind] for line in seen) for kind in KINDS}


@contextmanager
def fixed_work(path: Path) -> Iterator[FixedWork]:
    """The process, for as long as the context lasts; what it finds is in ``path``."""
    path.write_text("")
    process = subprocess.Popen([sys.executable, __file__, str(path)])
    try:
        yield FixedWork(path)
    finally:
        process.terminate()
        process.wait()


def loop_s_now() -> float:
    """How long the loop of the interpreter takes on this machine now, at its best [s]."""
    return min(_processor_s(_loop) for _ in range(5))


def mean_loop_s(rows: Iterable[Mapping[str, Any]]) -> float | None:
    """How long the loop took beside some runs, on average [s]; None where it was not done."""
    loops_s = [row["fixed_work"]["interpreter_s"] for row in rows if row.get("fixed_work")]
    return statistics.fmean(loops_s) if loops_s else None


def slower_ratio(row: Mapping[str, Any], beside_fit_s: float | None) -> float | None:
    """How much slower the loop was beside a run than beside those fitted; None if unknown."""
    work = row.get("fixed_work")
    return work["interpreter_s"] / beside_fit_s if work and beside_fit_s else None


def is_same_machine(loop_s: float, other_loop_s: float) -> bool:
    """Whether two times of the loop may be of one machine [s].

    Examples
    --------
    >>> is_same_machine(0.0047, 0.0042), is_same_machine(0.0047, 0.0018)
    (True, False)
    """
    return max(loop_s, other_loop_s) <= SAME_MACHINE_RATIO * min(loop_s, other_loop_s)


def _loop() -> int:
    return sum(number * number % 7 for number in range(_LOOPS))


def _processor_s(work: Callable[[], object]) -> float:
    before_s = time.thread_time()
    work()
    return time.thread_time() - before_s


def _work_on(path: Path) -> None:
    copied, hashed = bytearray(_COPIED_BYTES), bytes(_HASHED_BYTES)
    works = (
        _loop,
        lambda: bytes(copied),
        lambda: hashlib.sha256(hashed).digest(),
    )
    with path.open("a", buffering=1) as lines:
        while True:
            took_s = map(_processor_s, works)
            seen = {"at_s": time.time(), **dict(zip(KINDS, took_s, strict=True))}
            lines.write(json.dumps(seen) + "\n")
            time.sleep(_EVERY_S)


if __name__ == "__main__":
    _work_on(Path(sys.argv[1]))
