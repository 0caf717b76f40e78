"""Pictures of batch durations and gains of shared windows, predicted and measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pages import save_svg, svg_pyplot
from window_measured import WAYS, Cell, gains

TIMES, GAINS = "window-sharing-times.svg", "window-sharing-gains.svg"
_COLUMNS = 4


def draw(cells: Sequence[Cell], folder: Path) -> None:
    """Both pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    pyplot = svg_pyplot()
    _times(pyplot, cells, folder / TIMES)
    _gains(pyplot, cells, folder / GAINS)


def _times(pyplot: Any, cells: Sequence[Cell], path: Path) -> None:
    """For each setting, repeats as dots, and predictions as bars with the range of their costs."""
    settings = list(dict.fromkeys(cell.setting for cell in cells))
    rows = -(-len(settings) // _COLUMNS)
    columns = min(len(settings), _COLUMNS)
    picture, grid = pyplot.subplots(
        rows, columns, figsize=(3.2 * columns, 2.6 * rows), layout="constrained", squeeze=False
    )
    panels = list(grid.flat)
    for panel in panels[len(settings) :]:
        panel.set_axis_off()
    for panel, setting in zip(panels, settings, strict=False):
        mine = [cell for cell in cells if cell.setting == setting]
        for place, cell in enumerate(mine):
            expected = cell.predicted
            panel.bar(place, 1e3 * expected.mid_s, width=0.7, color="0.85", zorder=1)
            panel.plot([place] * 2, [1e3 * expected.low_s, 1e3 * expected.high_s], color="0.5")
            panel.scatter(
                [place] * len(cell.repeats_s), [1e3 * s for s in cell.repeats_s], s=14,
                color="tab:blue", zorder=3,
            )  # fmt: skip
        panel.set_xticks(range(len(mine)), labels=[cell.how for cell in mine], fontsize=7)
        panel.set_title(mine[0].words, fontsize=7)
        panel.set_ylabel("batch [ms]", fontsize=7)
        panel.tick_params(axis="y", labelsize=7)
    save_svg(picture, path)


def _gains(pyplot: Any, cells: Sequence[Cell], path: Path) -> None:
    """Predicted gain over the direct query against the measured one, by way."""
    picture, panel = pyplot.subplots(figsize=(4.6, 4.2), layout="constrained")
    both = [0.0, 0.0]
    for place, how in enumerate(WAYS[1:]):
        pairs = [found for cell in cells if cell.how == how and (found := gains(cell, cells))]
        if pairs:
            panel.scatter(*zip(*pairs, strict=True), s=22, label=how, color=f"C{place}", zorder=2)
            both += [value for pair in pairs for value in pair]
    ends = [min(both) - 0.1, max(both) + 0.1]
    panel.plot(ends, ends, color="0.4", linewidth=1, zorder=1)
    panel.axhline(0.0, color="0.8", linewidth=1, zorder=0)
    panel.axvline(0.0, color="0.8", linewidth=1, zorder=0)
    panel.set(xlim=ends, ylim=ends, xlabel="predicted gain", ylabel="measured gain")
    panel.legend(frameon=False, fontsize=8)
    save_svg(picture, path)
