"""What is measured: queries that run together, and the ways in which they are scheduled."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WINDOW_S = 5.0
TARGET_S = 3.0
TARGETS = {
    "windowed": f"window p99 <= {TARGET_S:g}s",
    "stateless": f"p99 <= {TARGET_S:g}s",
    "join": "p99 <= 5s",
}
"""Kinds of queries, each with the target that the gate is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Queries that run together; the load is the share of the rows that the cores can take."""

    name: str
    num_windowed: int
    load: float
    aligned: bool = False
    num_stateless: int = 0
    num_joins: int = 0

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each query."""
        return (
            *("windowed",) * self.num_windowed,
            *("stateless",) * self.num_stateless,
            *("join",) * self.num_joins,
        )

    @property
    def queries(self) -> str:
        """Which queries run, at whatever load and whenever their windows end.

        >>> Cell(name="c", num_windowed=4, load=0.5, num_joins=1).queries
        '4 windowed, 1 join'
        """
        found = dict.fromkeys(self.kinds)
        return ", ".join(f"{self.kinds.count(kind)} {kind}" for kind in found)

    def window_start_s(self, number: int) -> float:
        """Where the windows of a windowed query end, from the epoch grid [s].

        >>> [Cell(name="c", num_windowed=4, load=0.5).window_start_s(at) for at in range(4)]
        [0.0, 1.25, 2.5, 3.75]
        """
        return 0.0 if self.aligned else WINDOW_S * number / self.num_windowed

    def rates_per_s(self, capacities_per_s: Mapping[str, float]) -> tuple[float, ...]:
        """Rows per second of each query: each has the same share of the work.

        >>> mix = Cell(name="c", num_windowed=1, load=0.5, num_joins=1)
        >>> mix.rates_per_s({"windowed": 1000.0, "join": 400.0})
        (250.0, 100.0)
        """
        share = self.load / len(self.kinds)
        return tuple(share * capacities_per_s[kind] for kind in self.kinds)


CELLS = (
    Cell(name="spread-8-0.7", num_windowed=8, load=0.7),
    Cell(name="aligned-8-0.7", num_windowed=8, load=0.7, aligned=True),
    Cell(name="mix-8-0.7", num_windowed=4, load=0.7, num_stateless=3, num_joins=1),
    Cell(name="spread-8-0.5", num_windowed=8, load=0.5),
    Cell(name="spread-8-0.9", num_windowed=8, load=0.9),
    Cell(name="spread-4-0.7", num_windowed=4, load=0.7),
    Cell(name="spread-12-0.7", num_windowed=12, load=0.7),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to schedule a cell: Spark's own, by trigger and pools, or a policy of the gate."""

    name: str
    words: str
    trigger_s: float = 1.0
    in_pools: bool = False
    policy: str | None = None

    @property
    def is_fixed_trigger(self) -> bool:
        """Whether Spark goes by a trigger that has to be chosen."""
        return self.policy is None and self.trigger_s > 0.0


WAYS = (
    Way(name="fifo", words="Spark as it is, FIFO", trigger_s=0.0),
    Way(name="fair", words="Spark as it is, FAIR, a pool each", trigger_s=0.0, in_pools=True),
    Way(name="trigger-500ms", words="trigger of 500 ms", trigger_s=0.5),
    Way(name="trigger-1s", words="trigger of 1 s", trigger_s=1.0),
    Way(name="trigger-2s", words="trigger of 2 s", trigger_s=2.0),
    Way(name="stagger", words="stagger", policy="stagger"),
    Way(name="fcfs", words="fcfs", policy="fcfs"),
    Way(name="promise", words="promise", policy="promise"),
    Way(name="auto", words="auto", policy="auto"),
)
WAY_OF = {way.name: way for way in WAYS}
_RUNS_OF_ALL_TRIGGERS, _RUNS_OF_ALL_WAYS = 1, 2
_REPEATED_RATIO = 1.5
"""Over the best mean of its side, Spark's own or policies: up to it a way may yet be the best."""
_ALWAYS = "promise"
"""The policy that the claims are about."""


def ways_of_run(
    cell: Cell, run: int, asked: Sequence[str], means_s: Mapping[str, float], seed: int
) -> list[Way]:
    """The ways of one run of a cell, in random order.

    ``means_s`` are those of earlier runs. From the second run on only the fixed trigger with the
    least mean is repeated, from the third on only ways that may yet be the best of their side, and
    the policy that the claims are about.

    >>> names = ["fifo", "fair", "trigger-1s", "trigger-2s", "promise", "auto", "stagger"]
    >>> means = {"fifo": 3.0, "fair": 5.0, "trigger-1s": 3.5, "trigger-2s": 3.4}
    >>> means |= {"promise": 1.0, "auto": 0.5, "stagger": 2.0}
    >>> [len(ways_of_run(CELLS[0], run, names, means, 1)) for run in range(3)]
    [7, 6, 4]
    >>> sorted(way.name for way in ways_of_run(CELLS[0], 2, names, means, 1))
    ['auto', 'fifo', 'promise', 'trigger-2s']
    """
    ways = [WAY_OF[name] for name in asked]
    measured = [way for way in ways if way.is_fixed_trigger and way.name in means_s]
    if run >= _RUNS_OF_ALL_TRIGGERS and measured:
        best = min(measured, key=lambda way: means_s[way.name])
        ways = [way for way in ways if not way.is_fixed_trigger or way is best]
    if run >= _RUNS_OF_ALL_WAYS:
        ways = [way for way in ways if way.name == _ALWAYS or _may_be_best(way, ways, means_s)]
    random.Random(f"{seed}/{cell.name}/{run}").shuffle(ways)
    return ways


def _may_be_best(way: Way, ways: Sequence[Way], means_s: Mapping[str, float]) -> bool:
    side = [one for one in ways if (one.policy is None) == (way.policy is None)]
    least_s = min((means_s[one.name] for one in side if one.name in means_s), default=0.0)
    return means_s.get(way.name, 0.0) <= _REPEATED_RATIO * least_s
