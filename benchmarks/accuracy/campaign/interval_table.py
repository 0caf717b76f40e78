"""How often 90% intervals contain what was measured, by regime, beside what chance allows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from pages import headed

from campaign.figures import INTERVAL_OF, Row, covered, is_judged, repeats_of

_STATED = 0.9


def interval_table(groups: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Single runs of each regime: the mean, the p99 and both."""
    yield from headed("| regime | runs | mean | p99 | both | standard error |")
    for regime, rows in groups.items():
        num_runs = sum(is_judged(run) for run in repeats_of(rows))
        if num_runs:
            shares = [_share(rows, [figure]) for figure in INTERVAL_OF]
            error_ratio = math.sqrt(_STATED * (1.0 - _STATED) / num_runs)
            yield (
                f"| {regime} | {num_runs} | {' | '.join(shares)} | {_share(rows, INTERVAL_OF)} "
                f"| {100 * error_ratio:.0f}% |"
            )
    yield ""


def _share(rows: Sequence[Row], figures: Collection[str]) -> str:
    held, num_intervals = covered(rows, figures)
    return f"{100 * held / num_intervals:.0f}%" if num_intervals else "-"
