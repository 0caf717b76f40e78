"""The pairs of the split: a query, what of it is changed, and in which order both sides run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

SPLIT = Path(__file__).parent.parent / "switches-split.json"
"""Pairs, times and what is judged, committed before the first run."""
SIDES = BEFORE, AFTER = "before", "after"
SESSIONS = ("rocksdb", "default", "slow files", "kafka")
"""JVMs by what all their queries have in common, in the order of the runs."""

_NUM_RUNS = 4
_BETWEEN_S = 0.3
"""How long a run takes beside its own time."""
_SETTLE_RATIO = 0.1
_MISSING: Mapping[str, Any] = {"truth": None}

Row = Mapping[str, Any]
"""A line of the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What is set for the runs of one side: Spark's settings, options, shuffle partitions."""

    conf: Mapping[str, str] = field(default_factory=dict)
    writer: Mapping[str, str] = field(default_factory=dict)
    reader: Mapping[str, str] = field(default_factory=dict)
    partitions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A query at one rate, before and after a switch was turned."""

    name: str
    switch: str
    session: str
    job: str
    trigger_s: float
    rate_per_s: float
    partitions: int
    before: Side
    after: Side
    num_keys: int = 1000
    hash_rounds: int = 10
    backlog_s: float = 0.0
    window_s: float | None = None
    watermark_s: float = 0.0
    burst_period_s: float = 1.0
    burst_share: float = 1.0

    @property
    def settle_s(self) -> float:
        """How much longer than others its runs take until they are steady: it has a backlog."""
        return _SETTLE_RATIO * self.backlog_s

    @property
    def emit_s(self) -> float:
        """How much longer its runs last so that the windows of the measured time are emitted."""
        return 0.0 if self.window_s is None else self.burst_period_s

    def side(self, name: str) -> Side:
        """What is set for the runs of a side."""
        return self.before if name == BEFORE else self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRun:
    """One run of one side of a pair; repeats are numbered from 1, what is thrown away is 0."""

    pair: Pair
    side: str
    repeat: int

    @property
    def name(self) -> str:
        """Name of the run in the results."""
        return f"{self.pair.name}/{self.side}/{self.repeat}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The pairs, how long their runs last, and what is asked of the predictions."""

    pairs: tuple[Pair, ...]
    warm_up_s: float
    warm_s: float
    measured_s: float
    allowed_ratio: float
    required: int
    most_others_cores: float

    def takes_s(self, pair: Pair) -> float:
        """How long all runs of a pair last."""
        run_s = self.warm_s + pair.settle_s + self.measured_s + pair.emit_s
        return len(SIDES) * (self.warm_up_s + _BETWEEN_S) + _NUM_RUNS * (run_s + _BETWEEN_S)


def read_split() -> Split:
    """The split as it was committed."""
    stated = json.loads(SPLIT.read_text(encoding="utf-8"))
    names = (
        *("warm_up_s", "warm_s", "measured_s"),
        *("allowed_ratio", "required", "most_others_cores"),
    )
    return Split(pairs=tuple(map(_pair, stated["pairs"])), **{name: stated[name] for name in names})


def split_digest() -> str:
    """Digest of the split, which every line of the results contains."""
    return hashlib.sha256(SPLIT.read_bytes()).hexdigest()[:12]


def warm_up_runs(pair: Pair) -> Iterator[PairRun]:
    """Runs that make a JVM compile what both sides do: as fast as possible, without a backlog."""
    eager = replace(pair, trigger_s=0.0, backlog_s=0.0)
    for side in SIDES:
        yield PairRun(pair=eager, side=side, repeat=0)


def runs_of(pair: Pair, place: int) -> tuple[PairRun, ...]:
    """The runs of a pair that count, in order; every other pair begins with the changed side.

    What changes evenly with the age of the JVM does not change the difference of the sides.
    """
    outer, inner = (BEFORE, AFTER) if place % 2 == 0 else (AFTER, BEFORE)
    order = ((outer, 1), (inner, 1), (inner, 2), (outer, 2))
    return tuple(PairRun(pair=pair, side=side, repeat=repeat) for side, repeat in order)


def measured_runs(split: Split, lines: Iterable[Row]) -> dict[str, tuple[Row, ...]]:
    """The runs of each pair in order, if all of them succeeded undisturbed in one JVM."""
    digest = split_digest()
    last = {line["run"]: line for line in lines if line["split"] == digest}
    complete = {}
    for place, pair in enumerate(split.pairs):
        rows = tuple(last.get(run.name, _MISSING) for run in runs_of(pair, place))
        is_undisturbed = all(
            row["truth"] and row["cores_of_others"] <= split.most_others_cores for row in rows
        )
        if is_undisturbed and len({row["jvm"] for row in rows}) == 1:
            complete[pair.name] = rows
    return complete


def _pair(stated: Mapping[str, Any]) -> Pair:
    sides = {name: Side(**stated[name]) for name in (BEFORE, AFTER)}
    return Pair(**{**stated, **sides})
