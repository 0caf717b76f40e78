"""Predicted against measured, and stated probabilities against outcomes, as pictures."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from pages import save_svg, svg_pyplot

from campaign.figures import GOAL_MEAN_RATIO, GOAL_P99_RATIO, Row, grouped
from campaign.reliability import Outcome, by_class, chance_ratio

_MARKS = "osv^<>DPX*hdp"
_FEWEST_OF_A_PANEL, _PANELS_OF_A_ROW = 50, 3


def scatter(rows: Sequence[Row], path: Path) -> None:
    """Mean and p99 tuple latency of judged settings, one mark each and shape per workload."""
    from matplotlib import ticker

    pyplot = svg_pyplot()
    picture, panels = pyplot.subplots(1, 2, figsize=(11, 5.6), layout="constrained")
    for panel, figure, goal in zip(
        panels, ("mean", "p99"), (GOAL_MEAN_RATIO, GOAL_P99_RATIO), strict=True
    ):
        pairs = [_pair(row, figure) for row in rows]
        low, high = min(map(min, pairs)) * 0.8, max(map(max, pairs)) * 1.25
        ends = [low, high]
        panel.plot(ends, ends, color="0.4", linewidth=1)
        panel.fill_between(
            ends,
            [end * (1 - goal) for end in ends],
            [end * (1 + goal) for end in ends],
            color="0.9",
            label=f"within {goal:.0%}",
        )
        for mark, (workload, of) in zip(
            _MARKS * 3, grouped(rows, lambda row: str(row["workload"])).items(), strict=False
        ):
            points = [_pair(row, figure) for row in of]
            panel.scatter(*zip(*points, strict=True), s=22, marker=mark, label=workload, alpha=0.8)
        panel.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        panel.set(xlabel=f"measured {figure} [s]", ylabel=f"predicted {figure} [s]")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(ticker.NullFormatter())
        panel.set_aspect("equal")
        panel.set_title(f"{figure} tuple latency, {len(rows)} settings that were not fitted")
    handles, labels = panels[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    save_svg(picture, path)


def reliability_diagram(groups: Mapping[str, Sequence[Outcome]], path: Path) -> None:
    """Share of promises that were kept, by stated probability, with two standard errors."""
    from matplotlib import ticker

    shown = {name: of for name, of in groups.items() if len(of) >= _FEWEST_OF_A_PANEL}
    num_rows = -(-len(shown) // _PANELS_OF_A_ROW)
    pyplot = svg_pyplot()
    picture, panels = pyplot.subplots(
        num_rows, _PANELS_OF_A_ROW, figsize=(11, 3.6 * num_rows), layout="constrained",
        squeeze=False,
    )  # fmt: skip
    for panel in panels.flat[len(shown) :]:
        panel.set_visible(False)
    for panel, (name, outcomes) in zip(panels.flat, shown.items(), strict=False):
        classes = [of for of in by_class(outcomes).values() if of]
        stated = [statistics.fmean(one.probability for one in of) for of in classes]
        kept = [statistics.fmean(one.kept for one in of) for of in classes]
        panel.plot([0.0, 1.0], [0.0, 1.0], color="0.4", linewidth=1)
        errors = [2.0 * chance_ratio(of) for of in classes]
        panel.errorbar(stated, kept, yerr=errors, fmt="o", capsize=3)
        for at, share, of in zip(stated, kept, classes, strict=True):
            panel.annotate(
                f"{len(of)}", (at, share), (7, -11), textcoords="offset points", fontsize=8
            )
        panel.set(xlim=(-0.03, 1.06), ylim=(-0.05, 1.08))
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(ticker.PercentFormatter(1.0))
        panel.set_title(f"{textwrap.fill(name, 34)}\n{len(outcomes)} promises", fontsize=9)
    picture.supxlabel("stated probability")
    picture.supylabel("share of promises kept, with two standard errors")
    save_svg(picture, path)


def _pair(row: Row, figure: str) -> tuple[float, float]:
    return row["truth"]["latency"][figure], row["predicted"]["latency"][figure]
