"""Draws the figures of the documentation from the example profile, by the models themselves.

``docs/img/concept-*.svg`` by formulas; ``docs/img/plan-page.png`` is the first screen of a plan's
page in Chromium, the system's own where there is one.

    python scripts/figures.py           # the SVG files
    python scripts/figures.py --page    # the screenshot, too
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
IMAGES = ROOT / "docs" / "img"
PROFILE = ROOT / "examples" / "word-count.profile.yaml"
_STYLE = """<style>
text { font: 13px sans-serif; fill: #222 } .axis { stroke: #888 } .grid { stroke: #8884 }
.a { stroke: #0072b2; fill: none; stroke-width: 2.5 } .b { stroke: #d55e00; fill: none;
stroke-width: 2.5; stroke-dasharray: 7 4 } .limit { stroke: #555; stroke-dasharray: 3 4 }
.wait { fill: #56b4e980 } .run { fill: #0072b2 } .over { fill: #d55e00 } .dot { fill: #0072b2 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .limit { stroke: #aaa } }
</style>"""
_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 20, 560, 240
_TRIGGER_S, _NUM_ARRIVALS = 1.0, 3
_RATE_STEP_PER_S = 50e3
Point = tuple[float, float]


def svg(title: str, height: int, parts: Sequence[str]) -> str:
    """A picture with a title for those who do not see it."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" role="img">\n'
        f"<title>{title}</title>\n{_STYLE}\n{body}\n</svg>\n"
    )


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def bar(kind: str, x: float, y: float, width: float, height: float) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" {place}/>'


def line(points: Sequence[Point], kind: str) -> str:
    listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="{kind}" points="{listed}"/>'


def axes(
    x_name: str, x_marks: Sequence[tuple[float, str]], y_marks: Sequence[tuple[float, str]]
) -> list[str]:
    """Axes with marks at shares of their lengths."""
    right, bottom = _LEFT + _WIDTH, _TOP + _HEIGHT
    parts = [line([(_LEFT, _TOP), (_LEFT, bottom), (right, bottom)], 'axis" fill="none')]
    for share, words in x_marks:
        parts.append(text(_LEFT + share * _WIDTH, bottom + 18, words, "middle"))
    for share, words in y_marks:
        y = bottom - share * _HEIGHT
        parts += [line([(_LEFT, y), (right, y)], "grid"), text(_LEFT - 8, y + 4, words, "end")]
    return [*parts, text(_LEFT + _WIDTH / 2, bottom + 40, x_name, "middle")]


def batches() -> str:
    """Rows that wait for the trigger, then for their batch: durations of the example."""
    import headway

    prediction = headway.predict(PROFILE, rate="24k/s", trigger=_TRIGGER_S)
    assert prediction.batch_duration is not None
    duration_s = prediction.batch_duration.mean_s
    parts, scale = [], 150.0
    for number in range(4):
        start = 60 + number * scale * _TRIGGER_S
        parts.append(line([(start, 20), (start, 150)], "limit"))
        parts.append(text(start, 14, f"{number} s", "middle"))
        if number < _NUM_ARRIVALS + 1:
            parts.append(bar("run", start, 120, duration_s * scale, 24))
    for number, share in enumerate((0.15, 0.5, 0.85)):
        y, arrived = 40 + 22 * number, 60 + scale * share
        until = 60 + scale
        parts += [
            bar("wait", arrived, y, until - arrived, 12),
            bar("run", until, y, duration_s * scale, 12),
            f'<circle class="dot" cx="{arrived:.1f}" cy="{y + 6}" r="5"/>',
        ]
    committed = 60 + scale + duration_s * scale
    parts.append(line([(committed, 30), (committed, 150)], "limit"))
    parts += [
        text(committed + 6, 46, "committed"),
        text(60, 172, "batches, one at each trigger"),
        text(330, 68, "light: waits for the trigger"),
        text(330, 90, "dark: its batch runs"),
        text(10, 46, "rows"),
    ]
    return svg("Rows wait for the trigger, then their batch runs", 185, parts)


def saturation() -> str:
    """p99 against the rate for one and two nodes of the example, as fast as possible."""
    import headway
    from headway.digits import format_rate_down

    highest_per_s, highest_s = 300e3, 4.0
    parts = axes(
        "input rate",
        [(rate / highest_per_s, f"{rate / 1e3:.0f}k/s") for rate in (0, 1e5, 2e5, 3e5)],
        [(share, f"{share * highest_s:.0f} s") for share in (0, 0.25, 0.5, 0.75, 1)],
    )
    for executors, kind in ((1, "a"), (2, "b")):
        points = []
        for step in range(1, 61):
            rate_per_s = step * highest_per_s / 60
            predicted = headway.predict(PROFILE, rate=rate_per_s, trigger=1.0, executors=executors)
            latency, stable_per_s = predicted.tuple_latency, predicted.sustainable_rate_per_s
            if latency is None or latency.p99_s > highest_s:
                break
            points.append(_place(rate_per_s / highest_per_s, latency.p99_s / highest_s))
        parts.append(line(points, kind))
        x, y = points[-1]
        words = f"{executors} node{'s' if executors > 1 else ''}"
        stable = f"{words}: stable up to {format_rate_down(stable_per_s)}"
        parts.append(text(x - 6, y - 10, stable, "end"))
    parts += [
        line([_place(0, 0.5), _place(1, 0.5)], "limit"),
        text(_LEFT + 8, _TOP + 114, "target 2 s"),
        text(8, 14, "p99"),
    ]
    return svg("p99 tuple latency against the input rate", 310, parts)


def frontier() -> str:
    """Max rate within target by number of nodes."""
    import headway

    plan = headway.plan(PROFILE, rate="120k/s", target="p99 <= 2s", max_nodes=6)
    rates = {point.nodes: point.sustainable_rate_per_s for point in plan.frontier}
    highest_per_s = _RATE_STEP_PER_S * (math.ceil(max(rates.values()) / _RATE_STEP_PER_S) + 0.5)
    asked = plan.rate_per_s / highest_per_s
    most = max(rates)
    marks = [((nodes - 0.5) / most, f"{nodes}") for nodes in rates]
    num_steps = int(highest_per_s / _RATE_STEP_PER_S)
    ticks_per_s = [_RATE_STEP_PER_S * step for step in range(num_steps + 1)]
    parts = axes(
        "nodes", marks, [(rate / highest_per_s, f"{rate / 1e3:.0f}k/s") for rate in ticks_per_s]
    )
    for nodes, rate_per_s in rates.items():
        x, y = _place((nodes - 0.8) / most, rate_per_s / highest_per_s)
        kind = "run" if rate_per_s >= plan.rate_per_s else "wait"
        height = _TOP + _HEIGHT - y
        parts.append(bar(kind, x, y, 0.6 * _WIDTH / most, height))
    parts.append(line([_place(0, asked), _place(1, asked)], "limit"))
    requested = f"line: the requested {plan.rate_per_s / 1e3:.0f}k/s; the plan: {plan.nodes} nodes"
    parts.append(text(_LEFT + 8, _TOP + 14, requested))
    return svg("Max rate within target by number of nodes", 310, parts)


def _place(x_share: float, y_share: float) -> Point:
    return _LEFT + x_share * _WIDTH, _TOP + _HEIGHT * (1 - y_share)


def screenshot(path: Path) -> None:
    """The first screen of the page of the plan that the README shows."""
    from playwright.sync_api import sync_playwright

    import headway

    plan = headway.plan(PROFILE, rate="24k/s", target="p99 <= 2s")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 620})
        page.set_content(headway.page(plan, profile=PROFILE))
        page.screenshot(path=str(path))
        browser.close()


def main() -> None:
    """Write the figures."""
    for draw in (batches, saturation, frontier):
        name = f"concept-{draw.__name__}.svg"
        (IMAGES / name).write_text(draw(), encoding="utf-8")
    if "--page" in sys.argv:
        screenshot(IMAGES / "plan-page.png")


if __name__ == "__main__":
    main()
