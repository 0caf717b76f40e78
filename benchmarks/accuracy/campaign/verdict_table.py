"""Runs that the prediction itself leaves out, in a row of their own and in the total."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pages import headed

from campaign.figures import (
    GOAL_MEAN_RATIO,
    GOAL_P99_RATIO,
    Row,
    errors_of_all,
    is_judged,
    is_steady,
    median_size,
    regimes,
    repeats_of,
    share_within,
)

_SHOWN = (
    "all",
    "as fast as possible",
    "on a trigger, below 80%",
    "80% of what can be carried, and more",
)
_SAID = """\
Runs that kept up although their prediction warns of saturation or states no latency. They are
judged in no other table. The total includes them, and a latency that is not stated counts as a
miss."""


def verdict_table(rows: Sequence[Row]) -> Iterator[str]:
    """Single runs: those that are judged, those left out, and both; by regime."""
    yield _SAID
    yield ""
    yield from headed("| runs | number | no latency | mean | within | p99 | within |")
    groups = {"all": list(rows), **regimes(rows)}
    for name in _SHOWN:
        steady = [run for run in repeats_of(groups[name]) if is_steady(run)]
        judged = [run for run in steady if is_judged(run)]
        left_out = [run for run in steady if not is_judged(run)]
        for what, of in (("judged", judged), ("left out", left_out), ("in total", steady)):
            yield _line(f"{name}: {what}", of)
    yield ""


def _line(name: str, runs: Sequence[Row]) -> str:
    mean, p99 = errors_of_all(runs, "mean"), errors_of_all(runs, "p99")
    missing = sum(math.isinf(error) for error in mean)
    cells = [
        cell
        for of, goal in ((mean, GOAL_MEAN_RATIO), (p99, GOAL_P99_RATIO))
        for cell in (_median(of), share_within(of, goal))
    ]
    return f"| {name} | {len(runs)} | {missing} | {' | '.join(cells)} |"


def _median(errors: Sequence[float]) -> str:
    """Of those too without a latency, as long as they are the smaller part."""
    sizes = sorted(abs(error) for error in errors)
    middle_is_known = bool(sizes) and math.isfinite(sizes[len(sizes) // 2])
    return median_size(errors) if middle_is_known else "-"
