"""Predicted against measured, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from campaign.figures import GOAL_MEAN_RATIO, GOAL_P99_RATIO, Row, grouped

_MARKS = "osv^<>DPX*hdp"


def scatter(rows: Sequence[Row], path: Path) -> None:
    """Mean and p99 tuple latency of judged settings, one mark each and shape per workload."""
    import matplotlib as mpl

    mpl.use("svg")
    # The same results make the same file.
    mpl.rcParams["svg.hashsalt"] = "headway"
    from matplotlib import pyplot, ticker

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
    picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)


def _pair(row: Row, figure: str) -> tuple[float, float]:
    return row["truth"]["latency"][figure], row["predicted"]["latency"][figure]
