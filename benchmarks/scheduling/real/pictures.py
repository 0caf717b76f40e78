"""Latencies of windows under each way, as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pages import save_svg, svg_pyplot

from real.cells import WAYS
from real.comparison import Runs, quantile_s

_COLUMNS = 3
_MARKERS = "osD^vPX"
_LATENCIES_S = (0.1, 100.0)
_LATENCY_TICKS_S = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_LEGEND_COLUMNS = 5


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


def _percent() -> Any:
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(1.0, decimals=0)


def _set_latency_axis(panel: Any) -> None:
    """Logarithmic: a starved query's windows are a hundred times later than those of a policy."""
    panel.set_xscale("log")
    panel.set_xlim(*_LATENCIES_S)
    panel.set_xticks(_LATENCY_TICKS_S, labels=[f"{tick:g}" for tick in _LATENCY_TICKS_S])
    panel.minorticks_off()


def _small_text(panel: Any) -> None:
    panel.tick_params(labelsize=8)
    panel.xaxis.label.set_size(8)
    panel.yaxis.label.set_size(8)
    panel.title.set_size(9)


def ways_picture(cells: Mapping[str, Mapping[str, Runs]], path: Path) -> None:
    """Of each cell the mean (dot) and p99 (line's end) of window latency under each way."""
    pyplot = svg_pyplot()
    picture, panels = _panels(pyplot, len(cells))
    for panel, (cell, runs) in zip(panels, cells.items(), strict=True):
        names = [way.name for way in WAYS if runs.get(way.name)]
        for place, name in enumerate(reversed(names)):
            means = [float(one.mean()) for one in runs[name].values()]
            ends = [min(means), quantile_s(runs[name], 0.99)]
            panel.plot(ends, [place, place], color="0.6", zorder=1)
            panel.scatter(means, [place] * len(means), s=14, color="tab:blue", zorder=2)
        panel.set_yticks(range(len(names)), labels=list(reversed(names)), fontsize=8)
        panel.set(title=cell, xlabel="window latency: mean (dot), p99 (end) [s]")
        _set_latency_axis(panel)
        _small_text(panel)
    save_svg(picture, path)


def distributions_picture(cells: Mapping[str, Mapping[str, Runs]], path: Path) -> None:
    """Of each cell the share of windows up to a latency, under each way."""
    pyplot = svg_pyplot()
    picture, panels = _panels(pyplot, len(cells))
    handles: dict[str, Any] = {}
    for place_of_panel, (panel, (cell, runs)) in enumerate(zip(panels, cells.items(), strict=True)):
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
        panel.set(title=cell, xlabel="window latency [s]", ylim=(0.0, 1.0))
        _set_latency_axis(panel)
        if place_of_panel % _COLUMNS == 0:
            panel.set_ylabel("share of windows")
        panel.yaxis.set_major_formatter(_percent())
        _small_text(panel)
    names = [way.name for way in WAYS if way.name in handles]
    picture.legend(
        [handles[name] for name in names],
        names,
        loc="outside lower center",
        ncols=_LEGEND_COLUMNS,
        frameon=False,
    )
    save_svg(picture, path)


def gains_picture(
    predicted: Mapping[str, float], measured: Mapping[str, float], path: Path
) -> None:
    """Predicted gain of each cell against the measured one."""
    pyplot = svg_pyplot()
    picture, panel = pyplot.subplots(figsize=(6.0, 4.2), layout="constrained")
    ends = np.array([-1.0, 1.0])
    panel.plot(ends, ends, color="0.4", linewidth=1)
    panel.fill_between(ends, ends - 0.15, ends + 0.15, color="0.9", label="within 15 points")
    values = [*predicted.values(), *measured.values(), 0.0]
    low, high = min(values) - 0.1, max(values) + 0.1
    panel.set(
        xlim=(low, high),
        ylim=(low, high),
        xlabel="predicted gain in mean window latency",
        ylabel="measured gain",
    )
    # In the legend and not at the dots, which may lie close together.
    for place, cell in enumerate(predicted):
        marker = _MARKERS[place % len(_MARKERS)]
        panel.scatter(predicted[cell], measured[cell], s=30, marker=marker, label=cell, zorder=3)
    panel.xaxis.set_major_formatter(_percent())
    panel.yaxis.set_major_formatter(_percent())
    picture.legend(loc="outside right upper", frameon=False, fontsize=8)
    save_svg(picture, path)


def shedding_picture(means: Mapping[tuple[float, str], tuple[float, float]], path: Path) -> None:
    """Share of rows in time, measured (bars) and predicted (lines), by load and way."""
    pyplot = svg_pyplot()
    picture, panel = pyplot.subplots(figsize=(6.0, 3.4), layout="constrained")
    for place, (measured, predicted) in enumerate(means.values()):
        panel.bar(place, measured, width=0.7, color="tab:blue")
        panel.plot([place - 0.45, place + 0.45], [predicted, predicted], color="black")
    labels = [f"{way}\n{load:g}x" for load, way in means]
    panel.set_xticks(range(len(labels)), labels=labels, fontsize=8)
    panel.yaxis.set_major_formatter(_percent())
    panel.set(ylabel="rows in time", ylim=(0.0, 1.0), title="measured, and predicted (lines)")
    save_svg(picture, path)
