"""Runs under load steps: each measured figure over its prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pages import save_svg, svg_pyplot
from tuning_figures import Figure


def draw(figures: Mapping[str, Sequence[Figure]], path: Path, within_ratio: float) -> None:
    """A panel for each part, a dot for each run; figures without a measurement have no dot."""
    pyplot = svg_pyplot()
    shown = {part: [one for one in of if one.off_ratio is not None] for part, of in figures.items()}
    shown = {part: of for part, of in shown.items() if of}
    picture, panels = pyplot.subplots(
        1, len(shown), figsize=(9, 3.2), layout="constrained", squeeze=False
    )
    for panel, (part, of) in zip(panels[0], shown.items(), strict=True):
        names = list(dict.fromkeys(one.name for one in of))
        panel.axvspan(1.0 - within_ratio, 1.0 + within_ratio, color="0.9")
        panel.axvline(1.0, color="0.4", linewidth=1)
        ratios = [1.0 + (one.off_ratio or 0.0) for one in of]
        panel.scatter(ratios, [names.index(one.name) for one in of], s=26)
        panel.set_yticks(range(len(names)), names)
        panel.set(
            xlabel="measured / predicted", title=f"part {part}", ylim=(-0.5, len(names) - 0.5)
        )
        # Later stages of a change below earlier ones.
        panel.invert_yaxis()
    path.parent.mkdir(parents=True, exist_ok=True)
    save_svg(picture, path)
