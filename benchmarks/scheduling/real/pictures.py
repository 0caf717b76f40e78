"""Latencies of windows under each way, as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from real.cells import WAYS
from real.comparison import Runs, quantile_s

_COLUMNS = 4


def _pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("svg")
    # The same results make the same file.
    mpl.rcParams["svg.hashsalt"] = "headway"
    from matplotlib import pyplot

    return pyplot


def _panels(pyplot: Any, num: int) -> tuple[Any, list[Any]]:
    rows = -(-num // _COLUMNS)
    columns = min(num, _COLUMNS)
    picture, grid = pyplot.subplots(
        rows, columns, figsize=(3.4 * columns, 3.0 * rows), layout="constrained", squeeze=False
    )
    panels = list(grid.flat)
    for empty in panels[num:]:
        empty.set_axis_off()
    return picture, panels[:num]


def ways_picture(cells: Mapping[str, Mapping[str, Runs]], path: Path) -> None:
    """Of each cell the mean (dot) and p99 (line's end) of window latency under each way."""
    pyplot = _pyplot()
    picture, panels = _panels(pyplot, len(cells))
    for panel, (cell, runs) in zip(panels, cells.items(), strict=True):
        names = [way.name for way in WAYS if runs.get(way.name)]
        for place, name in enumerate(reversed(names)):
            means = [float(one.mean()) for one in runs[name].values()]
            panel.plot([0.0, quantile_s(runs[name], 0.99)], [place, place], color="0.8", zorder=1)
            panel.scatter(means, [place] * len(means), s=14, color="tab:blue", zorder=2)
        panel.set_yticks(range(len(names)), labels=list(reversed(names)), fontsize=8)
        panel.set(title=cell, xlabel="window latency, means of runs and p99 [s]", xlim=(0.0, None))
        panel.xaxis.label.set_size(8)
        panel.title.set_size(9)
    picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)


def distributions_picture(cells: Mapping[str, Mapping[str, Runs]], path: Path) -> None:
    """Of each cell the share of windows up to a latency, under each way."""
    pyplot = _pyplot()
    picture, panels = _panels(pyplot, len(cells))
    handles: dict[str, Any] = {}
    for panel, (cell, runs) in zip(panels, cells.items(), strict=True):
        for place, way in enumerate(WAYS):
            if not runs.get(way.name):
                continue
            found = np.sort(np.concatenate(list(runs[way.name].values())))
            shares = np.arange(1, len(found) + 1) / len(found)
            (handles[way.name],) = panel.step(
                found,
                shares,
                where="post",
                color=f"C{place}",
                linestyle="--" if way.policy is None else "-",
            )
        panel.set(title=cell, xlabel="window latency [s]", ylim=(0.0, 1.0), xlim=(0.0, None))
        panel.title.set_size(9)
    picture.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=5, frameon=False
    )
    picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)


def gains_picture(
    predicted: Mapping[str, float], measured: Mapping[str, float], path: Path
) -> None:
    """Predicted gain of each cell against the measured one."""
    pyplot = _pyplot()
    picture, panel = pyplot.subplots(figsize=(4.6, 4.2), layout="constrained")
    ends = np.array([-1.0, 1.0])
    panel.plot(ends, ends, color="0.4", linewidth=1)
    panel.fill_between(ends, ends - 0.15, ends + 0.15, color="0.9", label="within 15 points")
    for cell in predicted:
        panel.scatter(predicted[cell], measured[cell], s=24)
        panel.annotate(cell, (predicted[cell], measured[cell]), fontsize=7)
    values = [*predicted.values(), *measured.values(), 0.0]
    low, high = min(values) - 0.1, max(values) + 0.1
    panel.set(xlim=(low, high), ylim=(low, high), xlabel="predicted gain", ylabel="measured gain")
    panel.legend(frameon=False, fontsize=8)
    picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)


def shedding_picture(means: Mapping[tuple[float, str], tuple[float, float]], path: Path) -> None:
    """Share of rows in time, measured (bars) and predicted (lines), by load and way."""
    pyplot = _pyplot()
    picture, panel = pyplot.subplots(figsize=(6.0, 3.4), layout="constrained")
    for place, (measured, predicted) in enumerate(means.values()):
        panel.bar(place, measured, width=0.7, color="tab:blue")
        panel.plot([place - 0.45, place + 0.45], [predicted, predicted], color="black")
    labels = [f"{way}\n{load:g}x" for load, way in means]
    panel.set_xticks(range(len(labels)), labels=labels, fontsize=8)
    panel.set(ylabel="rows in time", ylim=(0.0, 1.0), title="measured, and predicted (lines)")
    picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)
