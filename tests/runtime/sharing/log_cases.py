"""A log of windows over plain files, and Spark's rules simulated row by row: the oracle of both."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from headway.domain.window_set import WindowSet, WindowSpec
from headway.models.sharing.consolidation import MergePlan, with_rollups
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.log_batches import Emit, WindowLog
from headway.runtime.sharing.log_state import Contents, pane_path, window_path

if TYPE_CHECKING:
    from headway.runtime.sharing.log_store import SparkStore

Row = tuple[int, str]
"""Event time [ms] and key; results count rows."""
COUNTS = Contents(time="ts", key=(("k", "string"),), aggregates=(("n", "count(*)"),), columns=())
Result = dict[tuple[int, int, int, str], int]
"""(batch, size, end, key) to rows."""


@dataclass(frozen=True)
class Case:
    windows: tuple[WindowSpec, ...]
    delay_ms: int
    batches: tuple[tuple[Row, ...], ...]

    @property
    def window_set(self) -> WindowSet:
        return WindowSet.of(self.windows)


def a_case(seeded: random.Random) -> Case:
    """Random windows on a grid of a few units, rows in jumps, late and early ones among them."""
    unit = seeded.choice([1, 5, 1000])
    sizes = seeded.sample(range(1, 13), seeded.randint(1, 3))
    windows = []
    for size in sizes:
        slide = seeded.randint(1, size)
        windows.append(
            WindowSpec(
                size_ms=size * unit,
                slide_ms=slide * unit,
                offset_ms=seeded.choice([0, 0, seeded.randrange(slide)]) * unit,
            )
        )
    now, batches = seeded.randrange(50) * unit, []
    for _ in range(seeded.randint(1, 9)):
        now += seeded.choice([0, 1, 1, 3, 12, 30]) * unit
        batches.append(
            tuple(
                (max(now - seeded.choice([0, 0, 1, 2, 6, 15]) * unit + seeded.randrange(unit), 0),
                 seeded.choice("ab"))
                for _ in range(seeded.choice([0, 1, 3, 6]))
            )
        )  # fmt: skip
    delay = seeded.choice([0, 0, 1, 4]) * unit
    return Case(tuple(windows), delay, tuple(batches))


def watermarks(case: Case) -> list[int]:
    """Spark's watermark of each batch, and of the one after the last."""
    found = [0]
    for rows in case.batches:
        newest = max((at for at, _ in rows), default=None)
        moved = found[-1] if newest is None else newest - case.delay_ms
        found.append(max(found[-1], moved))
    return found


def direct(case: Case, emit: Emit = "exact") -> Result:
    """The direct query: a window takes rows until it is emitted.

    ``exact`` is Spark without no-data batches; ``early`` with them, each counted as part of the
    batch before, whose rows it follows without any of its own. ``update`` is update mode: what a
    batch has rows for, as it stands then; windows end as in ``exact``, and are not given again.
    """
    marks, results = watermarks(case), Result()
    counts: Counter[tuple[int, int, str]] = Counter()
    closed = 0
    for batch, rows in enumerate(case.batches):
        changed = set[tuple[int, int, str]]()
        for at, key in rows:
            for spec in case.windows:
                for start in spec.starts_with(at, at + 1):
                    if start + spec.size_ms > closed:
                        counts[spec.size_ms, start + spec.size_ms, key] += 1
                        changed.add((spec.size_ms, start + spec.size_ms, key))
        closed = marks[batch + 1] if emit == "early" else marks[batch]
        ended = {each: counts[each] for each in counts if each[1] <= closed}
        given = {each: counts[each] for each in changed} if emit == "update" else ended
        results |= {(batch, size, end, key): number for (size, end, key), number in given.items()}
        for each in ended:
            del counts[each]
    return results


def panes(case: Case) -> Result:
    """Two aggregations: a pane takes rows until it is emitted, to all its windows at once."""
    marks, results, pane_ms = watermarks(case), Result(), case.window_set.pane_ms
    open_panes: Counter[tuple[int, str]] = Counter()
    counts: Counter[tuple[int, int, str]] = Counter()
    closed = 0
    for batch, rows in enumerate(case.batches):
        for at, key in rows:
            start = at - at % case.window_set.pane_ms
            if start + pane_ms > closed:
                open_panes[start, key] += 1
        late, closed = closed, marks[batch]
        for start, key in [each for each in open_panes if each[0] + pane_ms <= closed]:
            number = open_panes.pop((start, key))
            for spec in case.windows:
                for begin in spec.starts_with(start, start + pane_ms):
                    assert begin + spec.size_ms > late
                    counts[spec.size_ms, begin + spec.size_ms, key] += number
        for size, end, key in [each for each in counts if each[1] <= closed]:
            results[batch, size, end, key] = counts.pop((size, end, key))
    return results


def on_time(case: Case) -> Case:
    """The case without rows that come after their pane was closed."""
    marks, closed, pane_ms = watermarks(case), 0, case.window_set.pane_ms
    kept = []
    for batch, rows in enumerate(case.batches):
        kept.append(tuple(row for row in rows if row[0] - row[0] % pane_ms + pane_ms > closed))
        closed = marks[batch]
    return Case(case.windows, case.delay_ms, tuple(kept))


class PlainFiles(SparkFiles):
    """Files on this machine; ``before_write`` may end the process."""

    def __init__(self, before_write: Callable[[], None] = lambda: None) -> None:
        self.before_write = before_write

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def read(self, path: str) -> str:
        return Path(path).read_text()

    def write_new(self, path: str, text: str) -> None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        assert not target.exists(), path
        draft = target.with_name(f".{target.name}")
        self.before_write()
        draft.write_text(text)
        self.before_write()
        draft.rename(target)

    def names(self, folder: str) -> list[str]:
        found = sorted(each.name for each in Path(folder).iterdir()) if self.exists(folder) else []
        return [name for name in found if not name.startswith(".")]

    def delete(self, path: str) -> None:
        target = Path(path)
        for each in sorted(target.rglob("*"), reverse=True):
            self.before_write()
            each.rmdir() if each.is_dir() else each.unlink()
        self.before_write()
        if target.exists():
            target.rmdir() if target.is_dir() else target.unlink()


class MemoryFiles(SparkFiles):
    """Files in a dictionary."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def exists(self, path: str) -> bool:
        return any(name == path or name.startswith(f"{path}/") for name in self.texts)

    def read(self, path: str) -> str:
        return self.texts[path]

    def write_new(self, path: str, text: str) -> None:
        assert path not in self.texts, path
        self.texts[path] = text

    def names(self, folder: str) -> list[str]:
        inside = (n[len(folder) + 1 :] for n in self.texts if n.startswith(f"{folder}/"))
        return sorted({name.split("/")[0] for name in inside})

    def delete(self, path: str) -> None:
        for name in [n for n in self.texts if n == path or n.startswith(f"{path}/")]:
            del self.texts[name]


@dataclass
class CountingStore:
    """Counts of keys as JSON files: what Spark does for the log of a stream."""

    files: SparkFiles
    root: str
    pane_ms: int
    batch: int
    rows: Sequence[Row]
    results: Result
    made: dict[tuple[int, int], Counter[str]] = field(default_factory=dict)

    def _replace(self, folder: str, parts: Mapping[str, Counter[str]]) -> None:
        """As Spark overwrites: the whole folder."""
        if self.files.exists(f"{self.root}/{folder}"):
            self.files.delete(f"{self.root}/{folder}")
        for path, counts in parts.items():
            assert path.startswith(f"{folder}/")
            self.files.write_new(f"{self.root}/{path}/part", json.dumps(counts))

    def _sum(self, paths: Sequence[str]) -> Counter[str]:
        total: Counter[str] = Counter()
        assert len(set(paths)) == len(paths)
        for path in paths:
            total.update(json.loads(self.files.read(f"{self.root}/{path}/part")))
        return total

    def read_again(self) -> None:
        """Nothing: the watermark of a case is known."""

    def write_batch(self, folder: str) -> tuple[list[int], int | None]:
        by_pane: dict[int, Counter[str]] = {}
        for at, key in self.rows:
            by_pane.setdefault(at - at % self.pane_ms, Counter())[key] += 1
        self._replace(folder, {pane_path(folder, at): counts for at, counts in by_pane.items()})
        return list(by_pane), max((at for at, _ in self.rows), default=None)

    def write_compacted(self, folder: str, panes: Mapping[int, Sequence[str]]) -> None:
        self._replace(
            folder, {pane_path(folder, at): self._sum(parts) for at, parts in panes.items()}
        )

    def make_windows(
        self, folder: str, size_ms: int, ends: Mapping[int, Sequence[str]], keep: Sequence[int]
    ) -> None:
        for end, paths in ends.items():
            self.made[size_ms, end] = self._sum(paths)
        if keep:
            self._replace(
                folder, {window_path(folder, size_ms, end): self.made[size_ms, end] for end in keep}
            )

    def make_changed(
        self, spec: WindowSpec, ends: Sequence[int], before: Sequence[str], now: Sequence[str]
    ) -> None:
        by_end = {end: (Counter[str](), set[str]()) for end in ends}
        for path in (*before, *now):
            pane = int(path.rpartition("=")[2])
            rows = self._sum([path])
            for start in spec.starts_with(pane, pane + self.pane_ms):
                if start + spec.size_ms in by_end:
                    total, changed = by_end[start + spec.size_ms]
                    total.update(rows)
                    changed.update(rows if path in now else ())
        for end, (total, changed) in by_end.items():
            self.made[spec.size_ms, end] = Counter({key: total[key] for key in changed})

    def deliver(self, reader: str, made: Sequence[tuple[int, int]]) -> None:
        for size, end in made:
            for key, number in self.made[size, end].items():
                self.results[self.batch, size, end, key] = number


def through_log(
    case: Case,
    emit: Emit,
    files: SparkFiles,
    root: str,
    results: Result,
    restarts: Callable[[], bool] = lambda: False,
) -> None:
    """All batches through a log; begun again on what it kept where ``restarts`` says so.

    Every other number of batches has the roll-ups of fewest merges.
    """
    windows = case.window_set
    plan = MergePlan(windows=windows, pane_ms=windows.pane_ms)
    rollups = with_rollups(plan).rollups if len(case.batches) % 2 else ()

    def opened() -> WindowLog:
        log = WindowLog(
            files, root, windows, contents=COUNTS, delay_ms=case.delay_ms, emit=emit,
            rollups=rollups,
        )  # fmt: skip
        log.add("all", case.windows)
        return log

    log, marks = opened(), watermarks(case)
    for batch, rows in enumerate(case.batches):
        store = CountingStore(files, root, case.window_set.pane_ms, batch, rows, results)
        log.run_batch(batch, cast("SparkStore", store), watermark_ms=marks[batch])
        if restarts():
            log = opened()
