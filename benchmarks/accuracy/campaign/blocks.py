"""The campaign in blocks, each whole by itself: all repeats of its workloads, and their plans.

Workloads on two cores are drawn into four blocks, each repeat of a block runs in a JVM of its own,
and the promises of its workloads are planned and run after them. The small groups are two more
blocks, the machine's speed is the last. What a block takes is known before it begins, so that a
window of quiet hours is filled with whole blocks.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from result_lines import lines_of

from campaign.running import PROBE_S, WARM_UP_S
from campaign.schedule import (
    FURTHER_REPEAT,
    GROUPS,
    NUM_REPEATS,
    SEED,
    Group,
    Run,
    runs_of,
)

MAIN = GROUPS["two-cores"]
SPEED = "speed"
_NUM_OF_MAIN = 4
_SMALL = (
    ("one-core", "one-executor", "two-executors"),
    ("small-heap", "four-slots", "sixteen-slots"),
)
JVM_S = 12.0
"""Until a JVM of its own runs its first query, and until it is gone [s]."""
BETWEEN_S = 0.2
"""Between two runs of one JVM [s]: 0.1 to 0.15 in the campaign before."""
SPEED_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Workloads of some groups, all repeats of them."""

    name: str
    groups: tuple[Group, ...]
    workloads: tuple[str, ...]

    @property
    def has_plans(self) -> bool:
        """Whether promises are planned on its profiles and run."""
        return MAIN in self.groups

    def of(self, workloads: Sequence[str]) -> Block:
        """Some of its workloads alone."""
        return replace(self, workloads=tuple(one for one in self.workloads if one in workloads))

    def legs(self, repeats: Sequence[int]) -> Iterator[Leg]:
        """Its JVMs in their order: every group before any of them again."""
        for repeat in repeats:
            for group in self.groups:
                workloads = tuple(one for one in group.workloads if one in self.workloads)
                if not workloads:
                    continue
                yield Leg(group=group, workloads=workloads, repeat=repeat)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """What one JVM does: one repeat of some workloads of a group."""

    group: Group
    workloads: tuple[str, ...]
    repeat: int

    def left(self, folder: Path) -> list[Run]:
        """The runs that are not on record yet, in their order."""
        done = {row["name"] for row in lines_of(folder / self.group.name / "truth.jsonl")}
        return [
            run
            for run in runs_of(self.group)
            if run.repeat == self.repeat and run.workload in self.workloads and run.name not in done
        ]

    def left_s(self, folder: Path) -> float:
        """What they take, with the start of the JVM and what is compiled before them [s]."""
        runs = self.left(folder)
        if not runs:
            return 0.0
        probes = lines_of(folder / self.group.name / "probes.jsonl")
        probed = {row["workload"] for row in probes}
        # The first repeat of a workload finds its rate by two backlogs, others warm up by one.
        before = sum(1 if one in probed or self.repeat > 1 else 2 for one in self.workloads)
        each_s = sum(run.lasts_s + BETWEEN_S for run in runs)
        return JVM_S + WARM_UP_S + PROBE_S * before + each_s


def _blocks() -> Iterator[Block]:
    names = list(MAIN.workloads)
    random.Random(f"{SEED}-blocks").shuffle(names)
    for place in range(_NUM_OF_MAIN):
        of_block = tuple(names[place::_NUM_OF_MAIN])
        yield Block(name=f"main-{place + 1}", groups=(MAIN,), workloads=of_block)
    for place, of_small in enumerate(_SMALL, start=1):
        groups = tuple(GROUPS[name] for name in of_small)
        workloads = tuple(dict.fromkeys(one for group in groups for one in group.workloads))
        yield Block(name=f"small-{place}", groups=groups, workloads=workloads)
    yield Block(name=SPEED, groups=(), workloads=())


BLOCKS = tuple(_blocks())


def repeats(*, further: bool) -> tuple[int, ...]:
    """The repeats that are run: all that belong to the campaign, or the one beyond them."""
    return (FURTHER_REPEAT,) if further else tuple(range(1, NUM_REPEATS + 1))


class Window:
    """Quiet time: what would not end within it is not begun."""

    def __init__(self, minutes: float | None) -> None:
        self._until_s = float("inf") if minutes is None else time.time() + 60.0 * minutes

    def has_room_for(self, needed_s: float) -> bool:
        """Whether that is over before the end."""
        return time.time() + needed_s <= self._until_s
