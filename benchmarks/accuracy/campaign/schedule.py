"""What is run where, in which order, and which runs are fitted: all fixed before looking.

A workload is fitted on three settings (batches of very different sizes, and other partitions, as
`headway profile --advise` asks for) and judged on all others. Every setting is run several
times, all of them once before any of them again: runs of one setting lie apart by what the machine
does meanwhile, and a mean over two moments tells more of the setting than one run of twice the
length. Rates are shares of the rate at which one more row costs as much time as it took to arrive,
which a probe finds first.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

FIT, JUDGE, VARIED = "fit", "judge", "varied"
EVERY = "every"
"""No role of a run: fitted on all runs of a workload, the judged one among them."""
SEED = 20261121
WARM_S = 2.5


class Setting(NamedTuple):
    """A trigger, a number of partitions, and the rate as a share of what can be carried."""

    trigger_s: float
    partitions: int
    share: float
    backlog: bool = False

    def __str__(self) -> str:
        trigger = f"{self.trigger_s:g}s" if self.trigger_s else "asap"
        load = "backlog" if self.backlog else f"{self.share:.0%}"
        return f"{trigger}-p{self.partitions}-{load}"

    @property
    def warm_s(self) -> float:
        """Left out of what is measured [s]."""
        return WARM_S + self.trigger_s

    def measured_s(self, role: str) -> float:
        """Measured after that [s]; a fit needs some batches of every trigger."""
        if role == VARIED:
            return 40.0
        return max(MEASURED_S, (5.0 if role == FIT else 4.0) * self.trigger_s)

    def lasts_s(self, role: str) -> float:
        """The whole run [s]."""
        return self.warm_s + self.measured_s(role)


FIT_SET = Path(__file__).parents[1] / "fit-set.json"
"""Which settings are fitted, how often, and how long runs are: committed before the first run, and
never changed after; every measured run names the file's digest, and runs of another one are not
judged."""
_FIXED = json.loads(FIT_SET.read_text())
FITTED = tuple(Setting(**one) for one in _FIXED["fitted"])
"""The smallest batches there are, the largest, and other partitions."""
JUDGED = (
    Setting(1.0, 2, 0.3),
    Setting(0.0, 8, 0.6),
    Setting(1.0, 4, 0.6),
    Setting(2.0, 16, 0.3),
    Setting(1.0, 2, 0.9),
    Setting(2.0, 4, 1.15),
    Setting(0.0, 2, 0.0, backlog=True),
)
FEWER = (Setting(0.0, 8, 0.6), Setting(1.0, 4, 0.6), Setting(1.0, 2, 0.9))
"""Judged in the groups that are small."""
ONCE = Setting(2.0, 4, 1.15)
"""Run once: above what can be carried no latency is predicted."""
MORE = (
    Setting(5.0, 2, 0.6),
    Setting(0.5, 2, 0.1),
    Setting(1.0, 1, 0.3),
    Setting(1.0, 32, 0.45),
)
"""All for the first workload, one for each of the others in turn."""
NUM_REPEATS = int(_FIXED["repeats"])
"""How often each of the others is run, and how often fitted settings are."""
FURTHER_REPEAT = NUM_REPEATS + 1
"""One more of the judged settings alone, where quiet hours allow it."""
MEASURED_S = float(_FIXED["measured_s"])
ORDINARY = Setting(1.0, 2, 0.35)
VARYING = ("aggregation", "json", "pandas")
"""Run once more at a rate that varies by itself, as any user's log has it; fitted on alone."""


def fit_set_digest() -> str:
    """What a measured run names its fit set by."""
    return digest_of(FIT_SET)


def digest_of(split: Path) -> str:
    """Digest of a file that fixes which runs are fitted and judged."""
    return hashlib.sha256(split.read_bytes()).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Runs that share a JVM."""

    name: str
    master: str
    workloads: tuple[str, ...]
    driver_memory: str = "2g"
    num_slots: int
    is_small: bool = True


GROUPS = {
    group.name: group
    for group in (
        Group(
            name="two-cores",
            master="local[2]",
            num_slots=2,
            is_small=False,
            workloads=(
                "aggregation",
                "slow-checkpoint",
                "rocksdb",
                "bursty",
                "json",
                "tumbling",
                "sliding",
                "sessions",
                "join",
                "deduplication",
                "pandas",
                "skewed",
                "growing",
                "bulks",
            ),
        ),
        Group(name="one-core", master="local[1]", num_slots=1, workloads=("aggregation",)),
        Group(
            name="one-executor",
            master="local-cluster[1,1,1024]",
            num_slots=1,
            workloads=("aggregation",),
        ),
        Group(
            name="two-executors",
            master="local-cluster[2,1,1024]",
            num_slots=2,
            workloads=("aggregation",),
        ),
        Group(
            name="small-heap",
            master="local[2]",
            driver_memory="1g",
            num_slots=2,
            workloads=("growing",),
        ),
        Group(name="four-slots", master="local[4]", num_slots=4, workloads=("waiting",)),
        Group(name="sixteen-slots", master="local[16]", num_slots=16, workloads=("waiting",)),
    )
}
ACROSS = (
    ("one-core", "two-cores"),
    ("one-executor", "two-executors"),
    ("four-slots", "sixteen-slots"),
)
"""Fitted in the first group, judged in the second, on the workload they share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a workload at a setting."""

    group: str
    workload: str
    setting: Setting
    role: str
    repeat: int = 1

    @property
    def lasts_s(self) -> float:
        """From its start to its end [s]."""
        return self.setting.lasts_s(self.role)

    @property
    def name(self) -> str:
        """What its query is called, in event logs and results."""
        return f"{self.workload}/{self.setting}/{self.role}/{self.repeat}"


def runs_of(group: Group) -> list[Run]:
    """All runs of a group in their order: drawn once, repeat after repeat, the further one last."""
    draw = random.Random(f"{SEED}-{group.name}")
    return [run for repeat in range(1, FURTHER_REPEAT + 1) for run in _repeat(group, repeat, draw)]


def _repeat(group: Group, repeat: int, draw: random.Random) -> list[Run]:
    runs = [
        Run(group=group.name, workload=workload, setting=setting, role=role, repeat=repeat)
        for workload in group.workloads
        for setting, role in _of_workload(group, workload)
        if repeat == 1 or (setting != ONCE and role != VARIED)
        if repeat <= NUM_REPEATS or role == JUDGE
    ]
    draw.shuffle(runs)
    return runs


def _of_workload(group: Group, workload: str) -> Iterator[tuple[Setting, str]]:
    yield from ((setting, FIT) for setting in FITTED)
    if group.is_small:
        yield from ((setting, JUDGE) for setting in FEWER)
        return
    yield from ((setting, JUDGE) for setting in JUDGED)
    place = group.workloads.index(workload)
    for setting in MORE if place == 0 else (MORE[place % len(MORE)],):
        yield setting, JUDGE
    if workload in VARYING:
        yield ORDINARY, VARIED
