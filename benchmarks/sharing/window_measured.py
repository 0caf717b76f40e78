"""Runs of shared and unshared windows, each with its prediction from the direct query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean, median
from typing import Any, get_args

from result_lines import lines_of

from headway.domain import JobProfile
from headway.domain.sharing import WindowsHow
from headway.domain.window_set import WindowSet
from headway.formats.profile_file import load_profile
from headway.models.sharing.consolidation import MergePlan
from headway.models.sharing.gain import closing_share, keyed_costs
from headway.models.sharing.profiled_windows import cost_cases, setting_of
from headway.models.sharing.way_costs import batch_change

BY_HAND = "by hand"
WAYS = (*get_args(WindowsHow), BY_HAND)
_PROFILED_COPIES = 12.0
TELLING_RATIO = 0.1
"""The sign of a smaller gain is not judged."""


@dataclass(frozen=True)
class Interval:
    mid_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True)
class Cell:
    """One way at one setting: mean batch duration of each repeat, and its prediction."""

    keys: int
    rows: int
    windows: tuple[str, ...]
    store: str
    how: str
    predicted: Interval
    repeats_s: tuple[float, ...]

    @property
    def setting(self) -> tuple[int, int, tuple[str, ...], str]:
        return self.keys, self.rows, self.windows, self.store

    @property
    def words(self) -> str:
        return f"{self.keys:,} keys, {self.rows:,} rows, {self.copies:g} windows{self.beside}"

    @property
    def beside(self) -> str:
        """How checkpoints and state store differ from those of the profiled runs."""
        return f", {self.store}" if self.store else ""

    @property
    def copies(self) -> float:
        return WindowSet.parse(self.windows).num_copies

    @property
    def measured_s(self) -> float:
        return median(self.repeats_s)

    @property
    def error_ratio(self) -> float:
        return self.predicted.mid_s / self.measured_s - 1.0


def cells_of(results: Path, *, from_repeat: int = 0) -> list[Cell]:
    """All cells with a run, in the order of their first runs; incomplete lines are ignored."""
    lines = [line for line in lines_of(results) if line["repeat"] >= from_repeat]
    if not lines:
        return []
    profile = load_profile(results.with_name("profile.yaml"))
    seconds: dict[tuple[str, str], list[float]] = {}
    first: dict[str, dict[str, Any]] = {}
    for line in lines:
        first.setdefault(line["setting"], line)
        seconds.setdefault((line["setting"], line["how"]), []).append(fmean(line["batches_s"]))
    found = []
    for name, line in first.items():
        expected = predicted(profile, line["keys"], line["rows"], line["windows"])
        found += [
            Cell(
                line["keys"],
                line["rows"],
                tuple(line["windows"]),
                _beside(line),
                how,
                expected["panes" if how == BY_HAND else how],
                tuple(seconds[name, how]),
            )
            for how in WAYS
            if (name, how) in seconds
        ]
    return found


def predicted(
    profile: JobProfile, keys: int, rows: int, texts: Sequence[str]
) -> Mapping[str, Interval]:
    """Batch duration of each way, for ``rows`` rows per batch over a second of event time."""
    windows = WindowSet.parse(texts)
    configuration = replace(profile.baseline, trigger_s=1.0, max_offsets_per_trigger=rows)
    here = setting_of(profile, configuration, windows, float(rows), float(keys))
    merges = MergePlan(windows=windows, pane_ms=windows.pane_ms)
    share = closing_share(here.keys.batch_s, windows)
    direct_s = float(here.model.mean_s(here.num_rows))
    cases = list(cost_cases(here))
    found = {}
    for how in get_args(WindowsHow):
        changes = [batch_change(how, here, case, merges) for case in cases]
        times_s = [
            max(direct_s + (every_batch_s + share * closing_s), 0.0)
            for every_batch_s, closing_s in changes
        ]
        found[how] = Interval(times_s[0], min(times_s), max(times_s))
    return found


def _beside(line: Mapping[str, Any]) -> str:
    parts = []
    if line["manager"] != "local":
        parts.append(f"{line['manager']} checkpoints")
    if line["store"] == "rocksdb":
        parts.append("RocksDB")
    return ", ".join(parts)


def direct_of(cell: Cell, cells: Sequence[Cell]) -> Cell | None:
    """The direct query at the setting of a cell."""
    return next((one for one in cells if one.setting == cell.setting and one.how == "direct"), None)


def gains(cell: Cell, cells: Sequence[Cell]) -> tuple[float, float] | None:
    """Predicted and measured gain over the direct query; None for the direct query itself."""
    direct = direct_of(cell, cells)
    if direct is None or cell.how == "direct":
        return None
    return (
        1.0 - cell.predicted.mid_s / direct.predicted.mid_s,
        1.0 - cell.measured_s / direct.measured_s,
    )


def has_wrong_sign(found: tuple[float, float]) -> bool:
    """Whether a gain that is large enough was predicted as a loss, or the other way round."""
    predicted_ratio, measured_ratio = found
    return abs(measured_ratio) > TELLING_RATIO and predicted_ratio * measured_ratio < 0.0


@dataclass(frozen=True)
class OtherProfile:
    """Costs fitted to two judged direct runs instead of the profiled ones, and their error."""

    row_s: float
    state_row_s: float
    median_error_ratio: float


def other_profiles(profile: JobProfile, cells: Sequence[Cell]) -> Iterator[OtherProfile]:
    """Each pair of direct runs of the profiled kind, judged by all cells outside the pair."""
    like = [
        cell
        for cell in cells
        if cell.how == "direct" and not cell.store and cell.copies == _PROFILED_COPIES
    ]
    for pair in combinations(like, 2):
        other = replace(
            profile,
            settings=tuple(
                replace(
                    seen,
                    rows_per_batch_low=float(cell.rows),
                    rows_per_batch_high=float(cell.rows),
                    batch_duration_mean_s=cell.measured_s,
                    updated_rows=cell.copies * cell.keys,
                )
                for seen, cell in zip(profile.settings, pair, strict=True)
            ),
        )
        costs = keyed_costs(other)
        errors = [
            predicted(other, cell.keys, cell.rows, cell.windows)[cell.how].mid_s / cell.measured_s
            - 1.0
            for cell in cells
            if cell.how != BY_HAND and cell not in pair
        ]
        if costs is not None and errors:
            yield OtherProfile(*costs, median(map(abs, errors)))
