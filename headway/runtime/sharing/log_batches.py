"""Processing of a batch in a log of partial windows, and which windows are due."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from headway.domain.window_set import WindowSet, WindowSpec
from headway.errors import InputError
from headway.models.sharing.consolidation import MergePlan, Piece
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.log_state import (
    Contents,
    LogState,
    ReaderWindows,
    pane_path,
    window_path,
)

if TYPE_CHECKING:
    from headway.runtime.sharing.log_store import SparkStore

Emit: TypeAlias = Literal["exact", "early", "update"]
_PiecesOf: TypeAlias = dict[tuple[WindowSet, WindowSpec, int], tuple[Piece, ...]]
_Windows: TypeAlias = list[tuple[int, int]]
"""Windows by size and end."""


class WindowLog:
    """Runs batches of a log: store partial results, emit due windows, then commit.

    Nothing takes effect before the commit: an interrupted batch is repeated, and writes the same
    data to the same places. A committed batch is skipped.
    """

    def __init__(
        self,
        files: SparkFiles,
        root: str,
        windows: WindowSet,
        *,
        contents: Contents,
        delay_ms: int,
        emit: Emit,
        rollups: tuple[WindowSpec, ...] = (),
    ) -> None:
        self.files, self.root = files, root
        self._delay_ms, self._emit = delay_ms, emit
        self._wanted = dict[str, tuple[WindowSpec, ...]]()
        self._pieces_of: _PiecesOf = {}
        try:
            plan = MergePlan(windows=windows, pane_ms=windows.pane_ms, rollups=rollups)
        except ValueError as error:
            raise InputError(f"rollups: {error}") from None
        self._rollups = plan.rollups
        self.state = self._last_state(plan.pane_ms, contents)
        self.state.contents.require_same(contents, root)
        if plan.pane_ms % self.state.pane_ms:
            raise InputError(
                f"the store has panes of {self.state.pane_ms} ms, which do not divide {windows}; "
                "use another store"
            )
        # That of the first windows of the store, regardless of the current ones.
        self.pane_ms = self.state.pane_ms

    def add(self, name: str, windows: Sequence[WindowSpec]) -> None:
        """Pass windows to a reader from the next batch on, if they begin from then on."""
        log_specs = {spec for specs in self._wanted.values() for spec in specs}
        for spec in windows:
            if any(length_ms % self.pane_ms for length_ms in astuple(spec)):
                raise InputError(
                    f"{spec}: the log has panes of {self.pane_ms} ms, which do not divide it; "
                    "name it when the log is made"
                )
            if any(spec.size_ms == other.size_ms and spec != other for other in log_specs):
                raise InputError(f"{spec}: the log has windows of that size with another slide")
        self._wanted[name] = tuple(windows)

    def run_batch(
        self, batch: int, store: SparkStore, *, watermark_ms: int, query_id: str = ""
    ) -> None:
        """Store a batch, emit due windows, commit; one that is committed is only read again.

        ``watermark_ms`` is Spark's for the batch, from the rows of the batches before.
        """
        if batch <= self.state.batch:
            store.read_again()
            return
        before = replace(self.state, query_id=query_id, readers=self._readers())
        touched, newest_ms = store.write_batch(f"panes/{batch}")
        until_ms = max(before.closed_ms, watermark_ms)
        if self._emit == "early" and newest_ms is not None:
            until_ms = max(until_ms, newest_ms - self._delay_ms)
        run = _BatchRun(batch, store, self._plan(before), before, until_ms, self._pieces_of)
        run.add_panes(touched)
        if self._emit == "update":
            # Before parts are compacted, after which new rows are no longer distinguishable.
            made = run.make_changed(touched)
            run.compact()
        else:
            run.compact()
            made = run.make_due()
        _deliver(store, before.readers, made)
        after = run.after()
        self.files.write_new(f"{self.root}/log/{batch:012}.json", after.to_json())
        self.state = after
        self._forget(before)

    def _readers(self) -> dict[str, ReaderWindows]:
        """The current readers; new windows only begin where nothing was dropped."""
        before = self.state.readers
        new_from_ms = None if self.state.batch < 0 else self.state.closed_ms
        return {
            name: {spec: before.get(name, {}).get(spec, new_from_ms) for spec in specs}
            for name, specs in self._wanted.items()
        }

    def _plan(self, state: LogState) -> MergePlan:
        specs = {spec for windows in state.readers.values() for spec in windows}
        sizes = {spec.size_ms for spec in specs}
        rollups = tuple(roll for roll in self._rollups if roll.size_ms not in sizes)
        return MergePlan(windows=WindowSet.of(specs), pane_ms=self.pane_ms, rollups=rollups)

    def _last_state(self, pane_ms: int, contents: Contents) -> LogState:
        names = [n for n in self.files.names(f"{self.root}/log") if n.endswith(".json")]
        if not names:
            return LogState(pane_ms=pane_ms, contents=contents)
        return LogState.from_json(self.files.read(f"{self.root}/log/{max(names)}"))

    def _forget(self, before: LogState) -> None:
        """Delete what is no longer needed after the commit, or after an earlier interruption."""
        for name in self.files.names(f"{self.root}/log"):
            if name < f"{before.batch:012}.json":
                self.files.delete(f"{self.root}/log/{name}")
        needed_folders = self.state.folders
        for room in ("panes", "windows"):
            for name in self.files.names(f"{self.root}/{room}"):
                if f"{room}/{name}" not in needed_folders:
                    self.files.delete(f"{self.root}/{room}/{name}")


@dataclass
class _BatchRun:
    """A batch while it is stored and its windows are made.

    ``panes`` and ``pieces`` are those of the state ``before``, with what the batch adds; windows
    that end by ``until_ms`` are due. ``pieces_of`` is kept for all batches.
    """

    number: int
    store: SparkStore
    plan: MergePlan
    before: LogState
    until_ms: int
    pieces_of: _PiecesOf

    def __post_init__(self) -> None:
        self.panes = dict(self.before.panes)
        self.pieces = dict(self.before.pieces)
        self.pane_ms = self.plan.pane_ms

    def add_panes(self, starts_ms: Iterable[int]) -> None:
        """Add the parts that the batch has written of panes that an open window needs."""
        part = (f"panes/{self.number}", self.number)
        for start_ms in starts_ms:
            if self._last_end_ms(start_ms) > self.before.closed_ms:
                self.panes[start_ms] = (*self.panes.get(start_ms, ()), part)

    def compact(self) -> None:
        """Merge the parts of panes that end now, since they get few rows from here on."""
        closing = {
            start_ms: [pane_path(folder, start_ms) for folder, _ in parts]
            for start_ms, parts in self.panes.items()
            if len(parts) > 1 and self.before.closed_ms < start_ms + self.pane_ms <= self.until_ms
        }
        if closing:
            folder = f"panes/{self.number}-compacted"
            self.store.write_compacted(folder, closing)
            self.panes |= dict.fromkeys(closing, ((folder, self.number),))

    def make_due(self) -> _Windows:
        """Windows that end now; smaller ones, which larger ones use, first."""
        made: _Windows = []
        for spec in self.plan.made:
            size_ms, folder = spec.size_ms, f"windows/{self.number}-{spec.size_ms}"
            ends = self._ends(spec, self.panes, self.until_ms)
            if not ends:
                continue
            sources = {end: list(self._paths(spec, end - size_ms)) for end in ends}
            keep = [end for end in ends if self._is_used(size_ms, end, self.before.closed_ms)]
            self.store.make_windows(folder, size_ms, sources, keep)
            self.pieces |= {(size_ms, end): (folder, self.number) for end in keep}
            made += [(size_ms, end) for end in ends]
        return made

    def make_changed(self, touched: Sequence[int]) -> _Windows:
        """Current state of the windows with rows of the batch."""
        made: _Windows = []
        for spec in self.plan.windows.windows:
            ends = self._ends(spec, touched, math.inf)
            if not ends:
                continue
            parts = [
                (number, pane_path(folder, pane_ms))
                for pane_ms in sorted(self.panes)
                if not self._ends_with(spec, pane_ms).isdisjoint(ends)
                for folder, number in self.panes[pane_ms]
            ]
            before = [path for number, path in parts if number != self.number]
            now = [path for number, path in parts if number == self.number]
            self.store.make_changed(spec, ends, before, now)
            made += [(spec.size_ms, end) for end in ends]
        return made

    def after(self) -> LogState:
        """The log after the batch, without what no open window needs."""
        return replace(
            self.before,
            batch=self.number,
            closed_ms=self.until_ms,
            panes={p: q for p, q in self.panes.items() if self._last_end_ms(p) > self.until_ms},
            pieces={
                window: part
                for window, part in self.pieces.items()
                if self._is_used(*window, self.until_ms)
            },
        )

    def _ends_with(self, spec: WindowSpec, pane_ms: int) -> set[int]:
        """Ends of the windows that a pane is part of."""
        starts_ms = spec.starts_with(pane_ms, pane_ms + self.pane_ms)
        return {start_ms + spec.size_ms for start_ms in starts_ms}

    def _last_end_ms(self, pane_ms: int) -> int:
        """End of the last window that a pane is part of."""
        return max(
            spec.starts_with(pane_ms, pane_ms + self.pane_ms)[-1] + spec.size_ms
            for spec in self.plan.windows.windows
        )

    def _ends(self, spec: WindowSpec, panes: Iterable[int], until_ms: float) -> list[int]:
        """Ends of the open windows with rows in some panes that end by a time."""
        readers = self.before.readers.values()
        starts = [windows[spec] for windows in readers if spec in windows]
        # A roll-up has no reader, since it is only a piece of others.
        from_ms = min((-math.inf if s is None else s for s in starts), default=-math.inf)
        ends = {end for pane_ms in panes for end in self._ends_with(spec, pane_ms)}
        open_ends = (end for end in ends if self.before.closed_ms < end <= until_ms)
        return sorted(end for end in open_ends if end - spec.size_ms >= from_ms)

    def _paths(self, spec: WindowSpec, start_ms: int) -> Iterator[str]:
        """Parts of a window: pieces with their late rows, and panes where there is no piece."""
        for begin_ms, length_ms in self._pieces(spec, start_ms):
            end_ms = begin_ms + length_ms
            piece = self.pieces.get((length_ms, end_ms)) if length_ms > self.pane_ms else None
            since = -1
            if piece is not None:
                folder, since = piece
                yield window_path(folder, length_ms, end_ms)
            for pane_ms in range(begin_ms, end_ms, self.pane_ms):
                for folder, number in self.panes.get(pane_ms, ()):
                    if number > since:
                        yield pane_path(folder, pane_ms)

    def _pieces(self, spec: WindowSpec, start_ms: int) -> list[Piece]:
        """Pieces of a window, equal for all windows with the same position between slides."""
        smaller = (other.slide_ms for other in self.plan.made if other.size_ms < spec.size_ms)
        phase_ms = start_ms % math.lcm(self.pane_ms, *smaller)
        phase_key = (self.plan.windows, spec, phase_ms)
        if phase_key not in self.pieces_of:
            self.pieces_of[phase_key] = self.plan.pieces(spec, phase_ms)
        pieces = self.pieces_of[phase_key]
        return [Piece(start_ms + at_ms - phase_ms, length_ms) for at_ms, length_ms in pieces]

    def _is_used(self, size_ms: int, end_ms: int, closed_ms: int) -> bool:
        """Whether a larger window, not closed yet, uses this one."""
        return size_ms > self.pane_ms and any(
            start_ms + spec.size_ms > closed_ms
            and (end_ms - size_ms, size_ms) in self._pieces(spec, start_ms)
            for spec in self.plan.made
            if spec.size_ms > size_ms
            for start_ms in spec.starts_with(end_ms - size_ms, end_ms)
        )


def _deliver(store: SparkStore, readers: Mapping[str, ReaderWindows], made: _Windows) -> None:
    """Pass to each reader its windows, from its first one on."""
    for name, windows in readers.items():
        from_ms = {
            spec.size_ms: -math.inf if start_ms is None else start_ms
            for spec, start_ms in windows.items()
        }
        mine = [(size, end) for size, end in made if end - size >= from_ms.get(size, math.inf)]
        if mine:
            store.deliver(name, mine)
