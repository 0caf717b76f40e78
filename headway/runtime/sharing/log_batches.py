"""Processing of a batch in a log of partial windows, and which windows are due."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from headway.domain.window_set import WindowSet, WindowSpec
from headway.errors import InputError
from headway.models.sharing.consolidation import MergePlan, Piece
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.log_state import (
    Contents,
    LogState,
    Part,
    ReaderWindows,
    pane_path,
    window_path,
)

if TYPE_CHECKING:
    from headway.runtime.sharing.log_store import SparkStore

Emit: TypeAlias = Literal["exact", "early", "update"]


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
        self._files, self._root = files, root
        self._delay_ms, self._emit = delay_ms, emit
        self._wanted = dict[str, tuple[WindowSpec, ...]]()
        self._made_of = dict[tuple[WindowSet, WindowSpec, int], tuple[Piece, ...]]()
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
            parts = (spec.size_ms, spec.slide_ms, spec.offset_ms)
            if any(part % self.pane_ms for part in parts):
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

        ``watermark_ms`` is Spark's for the batch, from the rows of the batches before, and
        ``query_id`` is that of the streaming query.
        """
        if batch <= self.state.batch:
            store.read_again()
            return
        before = replace(self.state, query_id=query_id, readers=self._readers())
        plan = self._plan(before)
        folder = f"panes/{batch}"
        touched, newest_ms = store.write_batch(folder)
        panes = dict(before.panes)
        for start_ms in touched:
            if self._last_end_ms(plan, start_ms) > before.closed_ms:
                panes[start_ms] = (*panes.get(start_ms, ()), (folder, batch))
        until_ms = max(before.closed_ms, watermark_ms)
        if self._emit == "early" and newest_ms is not None:
            until_ms = max(until_ms, newest_ms - self._delay_ms)
        pieces = dict(before.pieces)
        if self._emit == "update":
            # Before parts are compacted, after which new rows are no longer distinguishable.
            made = self._make_changed(store, batch, plan, before, touched, panes)
            self._compact(store, batch, panes, before.closed_ms, until_ms)
        else:
            self._compact(store, batch, panes, before.closed_ms, until_ms)
            made = self._make_due(store, batch, plan, before, panes, pieces, until_ms)
        _deliver(store, before.readers, made)
        after = replace(
            before,
            batch=batch,
            closed_ms=until_ms,
            panes={p: q for p, q in panes.items() if self._last_end_ms(plan, p) > until_ms},
            pieces={
                (size_ms, end_ms): part
                for (size_ms, end_ms), part in pieces.items()
                if any(self._uses(plan, size_ms, end_ms, until_ms))
            },
        )
        self._files.write_new(f"{self._root}/log/{batch:012}.json", after.to_json())
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
        return MergePlan(
            windows=WindowSet.of(specs),
            pane_ms=self.pane_ms,
            rollups=tuple(roll for roll in self._rollups if roll.size_ms not in sizes),
        )

    def _last_end_ms(self, plan: MergePlan, start_ms: int) -> int:
        """End of the last window that a pane is part of."""
        return max(
            spec.starts_with(start_ms, start_ms + self.pane_ms)[-1] + spec.size_ms
            for spec in plan.windows.windows
        )

    def _compact(
        self,
        store: SparkStore,
        batch: int,
        panes: dict[int, tuple[Part, ...]],
        closed_ms: int,
        until_ms: int,
    ) -> None:
        """Merge the parts of panes that end now, since they get few rows from here on."""
        closing = {
            start_ms: [pane_path(folder, start_ms) for folder, _ in parts]
            for start_ms, parts in panes.items()
            if len(parts) > 1 and closed_ms < start_ms + self.pane_ms <= until_ms
        }
        if closing:
            folder = f"panes/{batch}-compacted"
            store.write_compacted(folder, closing)
            panes |= dict.fromkeys(closing, ((folder, batch),))

    def _make_due(
        self,
        store: SparkStore,
        batch: int,
        plan: MergePlan,
        before: LogState,
        panes: Mapping[int, tuple[Part, ...]],
        pieces: dict[tuple[int, int], Part],
        until_ms: int,
    ) -> list[tuple[int, int]]:
        """Windows that end now, by size and end; smaller ones, which larger ones use, first."""
        made = list[tuple[int, int]]()
        for spec in plan.made:
            folder = f"windows/{batch}-{spec.size_ms}"
            ends = self._ends(spec, panes, before, until_ms)
            if not ends:
                continue
            sources = {
                end: list(self._paths(plan, spec, end - spec.size_ms, panes, pieces))
                for end in ends
            }
            keep = [
                end for end in ends if any(self._uses(plan, spec.size_ms, end, before.closed_ms))
            ]
            store.make_windows(folder, spec.size_ms, sources, keep)
            pieces |= {(spec.size_ms, end): (folder, batch) for end in keep}
            made += [(spec.size_ms, end) for end in ends]
        return made

    def _make_changed(
        self,
        store: SparkStore,
        batch: int,
        plan: MergePlan,
        before: LogState,
        touched: Sequence[int],
        panes: Mapping[int, tuple[Part, ...]],
    ) -> list[tuple[int, int]]:
        """Current state of the windows with rows of the batch, by size and end."""
        made = list[tuple[int, int]]()
        for spec in plan.windows.windows:
            ends = self._ends(spec, touched, before, math.inf)
            if not ends:
                continue
            parts = [
                (number, pane_path(folder, pane_ms))
                for pane_ms in sorted(panes)
                if any(
                    start_ms + spec.size_ms in ends
                    for start_ms in spec.starts_with(pane_ms, pane_ms + self.pane_ms)
                )
                for folder, number in panes[pane_ms]
            ]
            store.make_changed(
                spec,
                ends,
                [path for number, path in parts if number != batch],
                [path for number, path in parts if number == batch],
            )
            made += [(spec.size_ms, end) for end in ends]
        return made

    def _ends(
        self, spec: WindowSpec, panes: Iterable[int], before: LogState, until_ms: float
    ) -> list[int]:
        """Ends of the open windows with rows in some panes that end by a time."""
        starts = [windows[spec] for windows in before.readers.values() if spec in windows]
        # A roll-up has no reader, since it is only a piece of others.
        from_ms = min((-math.inf if s is None else s for s in starts), default=-math.inf)
        ends = {
            start_ms + spec.size_ms
            for pane_ms in panes
            for start_ms in spec.starts_with(pane_ms, pane_ms + self.pane_ms)
            if before.closed_ms < start_ms + spec.size_ms <= until_ms and start_ms >= from_ms
        }
        return sorted(ends)

    def _paths(
        self,
        plan: MergePlan,
        spec: WindowSpec,
        start_ms: int,
        panes: Mapping[int, tuple[Part, ...]],
        pieces: Mapping[tuple[int, int], Part],
    ) -> Iterator[str]:
        """Parts of a window: pieces with their late rows, and panes where there is no piece."""
        for begin_ms, length_ms in self._pieces(plan, spec, start_ms):
            end_ms = begin_ms + length_ms
            piece = pieces.get((length_ms, end_ms)) if length_ms > self.pane_ms else None
            since = -1
            if piece is not None:
                folder, since = piece
                yield window_path(folder, length_ms, end_ms)
            for pane_ms in range(begin_ms, end_ms, self.pane_ms):
                for folder, number in panes.get(pane_ms, ()):
                    if number > since:
                        yield pane_path(folder, pane_ms)

    def _pieces(self, plan: MergePlan, spec: WindowSpec, start_ms: int) -> list[Piece]:
        """Pieces of a window, equal for all windows with the same position between slides."""
        smaller = (other.slide_ms for other in plan.made if other.size_ms < spec.size_ms)
        phase_ms = start_ms % math.lcm(self.pane_ms, *smaller)
        phase_key = (plan.windows, spec, phase_ms)
        if phase_key not in self._made_of:
            self._made_of[phase_key] = plan.pieces(spec, phase_ms)
        return [Piece(start_ms + at - phase_ms, length) for at, length in self._made_of[phase_key]]

    def _uses(
        self, plan: MergePlan, size_ms: int, end_ms: int, closed_ms: int
    ) -> Iterator[WindowSpec]:
        """Larger windows, not closed yet, that use this one."""
        if size_ms <= self.pane_ms:
            return
        for spec in plan.made:
            if spec.size_ms <= size_ms:
                continue
            for start_ms in spec.starts_with(end_ms - size_ms, end_ms):
                made_of = self._pieces(plan, spec, start_ms)
                if start_ms + spec.size_ms > closed_ms and (end_ms - size_ms, size_ms) in made_of:
                    yield spec

    def _last_state(self, pane_ms: int, contents: Contents) -> LogState:
        names = [n for n in self._files.names(f"{self._root}/log") if n.endswith(".json")]
        if not names:
            return LogState(pane_ms=pane_ms, contents=contents)
        return LogState.from_json(self._files.read(f"{self._root}/log/{max(names)}"))

    def _forget(self, before: LogState) -> None:
        """Delete what is no longer needed after the commit, or after an earlier interruption."""
        for name in self._files.names(f"{self._root}/log"):
            if name < f"{before.batch:012}.json":
                self._files.delete(f"{self._root}/log/{name}")
        needed_folders = self.state.folders
        for room in ("panes", "windows"):
            for name in self._files.names(f"{self._root}/{room}"):
                if f"{room}/{name}" not in needed_folders:
                    self._files.delete(f"{self._root}/{room}/{name}")


def _deliver(
    store: SparkStore, readers: Mapping[str, ReaderWindows], made: Sequence[tuple[int, int]]
) -> None:
    """Pass to each reader its windows, from its first one on."""
    for name, windows in readers.items():
        from_ms = {
            spec.size_ms: -math.inf if start_ms is None else start_ms
            for spec, start_ms in windows.items()
        }
        mine = [(size, end) for size, end in made if end - size >= from_ms.get(size, math.inf)]
        if mine:
            store.deliver(name, mine)
