"""The pairs of the split: a query, and what of it is changed between its two runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SPLIT = Path(__file__).parent.parent / "switches-split.json"
"""Pairs, times and what is judged, committed before the first run."""
BEFORE, AFTER = "before", "after"
SESSIONS = ("rocksdb", "default", "slow files", "kafka")
"""JVMs by what all their queries have in common, in the order of the runs."""


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
    repeated: bool = False
    num_keys: int = 1000
    hash_rounds: int = 10
    backlog_s: float = 0.0
    window_s: float | None = None
    watermark_s: float = 0.0
    burst_period_s: float = 1.0
    burst_share: float = 1.0

    def side(self, name: str) -> Side:
        """What is set for the runs of a side."""
        return self.before if name == BEFORE else self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRun:
    """One run of one side of a pair; repeats are numbered from 1."""

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
    warm_s: float
    measured_s: float
    allowed_ratio: float
    required: int

    @property
    def run_s(self) -> float:
        """How long a run lasts."""
        return self.warm_s + self.measured_s

    def of_session(self, session: str) -> tuple[Pair, ...]:
        """The pairs that run in JVMs of one kind."""
        return tuple(pair for pair in self.pairs if pair.session == session)


def read_split() -> Split:
    """The split as it was committed."""
    stated = json.loads(SPLIT.read_text(encoding="utf-8"))
    names = ("warm_s", "measured_s", "allowed_ratio", "required")
    return Split(pairs=tuple(map(_pair, stated["pairs"])), **{name: stated[name] for name in names})


def split_digest() -> str:
    """Digest of the split, which every line of the results contains."""
    return hashlib.sha256(SPLIT.read_bytes()).hexdigest()[:12]


def runs_of(pair: Pair, place: int) -> Iterator[PairRun]:
    """The runs of a pair in order; every other pair begins with the changed side."""
    sides = (BEFORE, AFTER) if place % 2 == 0 else (AFTER, BEFORE)
    for side in sides:
        yield PairRun(pair=pair, side=side, repeat=1)
    if pair.repeated:
        yield PairRun(pair=pair, side=BEFORE, repeat=2)


def _pair(stated: Mapping[str, Any]) -> Pair:
    sides = {name: Side(**stated[name]) for name in (BEFORE, AFTER)}
    return Pair(**{**stated, **sides})
