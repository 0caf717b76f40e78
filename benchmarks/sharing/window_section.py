"""The section about real runs on the page on shared windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median
from typing import get_args

from pages import headed
from window_measured import (
    BY_HAND,
    TELLING_RATIO,
    Cell,
    gains,
    has_wrong_sign,
    other_profiles,
)
from window_pictures import GAINS, TIMES

from headway.domain import JobProfile
from headway.domain.sharing import WindowsHow
from headway.models.sharing.gain import keyed_costs
from headway.units import counted

GOAL_RATIO = 0.1
_Gains = list[tuple[Cell, tuple[float, float]]]
REPEATS, NUM_SETTINGS = 3, 8
BEST_GOAL, PANES_GOAL = 2.0, 1.5

HOW_MEASURED = """\
Spark ran on `local[2]`, on two cores without other load, with two shuffle partitions and as fast as
possible. The source `rate-micro-batch` gives every batch the same number of rows and one second of
event time. Counts and sums of equally frequent keys go to a sink that does nothing. The direct
query was profiled at two settings (300,000 rows of 1,000 keys and 30,000 rows of 10,000 keys, with
12 windows per row and 300 batches each). Their rows and keys differ widely, so that the costs of
both can be separated. Eight other settings were run {times} times each, for 60 batches after a
warm-up of at least 30. All ways of a setting ran in one JVM, with a different way first in each
repeat. The predictions use the two profiled runs and the numbers of rows and keys (`--num-keys` of
`headway windows`), and nothing else: checkpoints and state store are assumed to be the profiled
ones. "By hand" means two chained windowed aggregations without Headway; they are compared with the
prediction for panes and are not part of any error. Measured values are medians of the repeats."""

NOT_BLIND = """\
Only **the third repeat** is a blind test. The formula by rows and state rows, (H10), is from the
design, before all runs. The first two repeats were used to derive the time of rows that are held in
state and of rows that closing panes write, (H11), the time of a second state in a stage, and the
assumed costs of a shuffled row and of a log's files. The third repeat and the profile were run
after that. The first two repeats of the log were run again in the JVMs of the third one, between
its other ways. Until then, the log chose its own roll-ups, and looked up the schema of its files in
separate jobs, which took a fifth of a second of each batch that closed a pane."""


def section(
    cells: Sequence[Cell], profile: JobProfile | None = None, blind: Sequence[Cell] = ()
) -> Iterator[str]:
    """Goals first, then pictures, errors and the whole table."""
    yield "## Predicted and measured on Spark"
    yield ""
    if not cells:
        yield "Not measured yet: `make window-runs` on a quiet machine."
        return
    yield HOW_MEASURED.format(times=max(len(cell.repeats_s) for cell in cells))
    yield ""
    yield NOT_BLIND
    yield ""
    yield from _speed(cells)
    yield "Batch duration by setting and way; bars are predicted, dots measured:"
    yield ""
    yield f"![Batch times](img/{TIMES})"
    yield ""
    yield "Gain over the direct query:"
    yield ""
    yield f"![Predicted against measured gain](img/{GAINS})"
    yield ""
    yield from _errors(cells)
    yield from _blind(blind)
    if profile is not None:
        yield from _mechanism(cells, profile)
    yield from _table(cells)


def _speed(cells: Sequence[Cell]) -> Iterator[str]:
    """Speed relative to the direct query, at the settings that the goals name."""
    mine = [cell for cell in cells if cell.keys == 10_000 and cell.copies == 12.0]
    for setting in dict.fromkeys(cell.setting for cell in mine):
        ways = {cell.how: cell for cell in mine if cell.setting == setting}
        direct, panes = ways.get("direct"), ways.get("panes")
        shared = [ways[how] for how in get_args(WindowsHow) if how in ways and how != "direct"]
        if direct is None or panes is None or not shared:
            continue
        best = min(shared, key=lambda cell: cell.measured_s)
        best_ratio, panes_ratio = (direct.measured_s / cell.measured_s for cell in (best, panes))
        hand = ways.get(BY_HAND)
        beside = (
            f" Panes written by hand: {direct.measured_s / hand.measured_s:.2f} times."
            if hand is not None
            else ""
        )
        yield (
            f"**Speed**, {direct.words}: {best.how} {best_ratio:.2f} times as fast as the direct "
            f"query (goal {BEST_GOAL:g}: {_met(best_ratio >= BEST_GOAL)}), panes {panes_ratio:.2f} "
            f"times (goal {PANES_GOAL:g}: {_met(panes_ratio >= PANES_GOAL)}).{beside}"
        )
        yield ""


def _errors(cells: Sequence[Cell]) -> Iterator[str]:
    judged, pairs, telling, wrong = _judged(cells)
    typical = median(abs(cell.error_ratio) for cell in judged)
    yield (
        f"**Errors** of the batch duration over {len(judged)} combinations of way and setting: "
        f"median {typical:.1%} (goal {GOAL_RATIO:.0%}: {_met(typical <= GOAL_RATIO)}; a repeat "
        f"differs from the median of the others of its cell by {_floor(judged):.1%} in the "
        f"median), and {_like(judged):.1%} over those with the profiled checkpoints and state "
        f"store. Wrong signs: {len(wrong)} of "
        f"{len(telling)} gains or losses above {TELLING_RATIO:.0%} (goal 0: {_met(not wrong)}); "
        f"the other {len(pairs) - len(telling)} are smaller. The median error of the gain is "
        f"{100 * median(abs(p - m) for _, (p, m) in pairs):.0f} percentage points."
    )
    yield ""
    for cell, (expected, won) in wrong:
        yield f"* wrong sign: {cell.how} at {cell.words}: {expected:+.0%}, measured {won:+.0%}"
    if wrong:
        yield ""
    yield from headed(
        "| way | settings | median error | mean error | within 10% | error of the gain |"
    )
    for how in get_args(WindowsHow):
        mine = [cell for cell in judged if cell.how == how]
        if not mine:
            continue
        errors = [cell.error_ratio for cell in mine]
        off = [abs(p - m) for cell, (p, m) in pairs if cell.how == how]
        yield (
            f"| {how} | {len(mine)} | {median(map(abs, errors)):.1%} | "
            f"{fmean(errors):+.1%} | {sum(abs(error) <= GOAL_RATIO for error in errors)} | "
            f"{f'{100 * median(off):.0f} points' if off else '-'} |"
        )
    yield ""
    yield _left_out(cells)
    yield ""


def _judged(cells: Sequence[Cell]) -> tuple[list[Cell], _Gains, _Gains, _Gains]:
    """Cells that count, those with a gain, with a gain that is large enough, with a wrong sign."""
    judged = [cell for cell in cells if cell.how != BY_HAND]
    pairs = [(cell, found) for cell in judged if (found := gains(cell, cells)) is not None]
    telling = [(cell, found) for cell, found in pairs if abs(found[1]) > TELLING_RATIO]
    return judged, pairs, telling, [each for each in telling if has_wrong_sign(each[1])]


def _blind(cells: Sequence[Cell]) -> Iterator[str]:
    """The same errors for the repeat from which nothing was derived."""
    if not cells:
        return
    judged, _, telling, wrong = _judged(cells)
    errors = [cell.error_ratio for cell in judged]
    yield (
        f"**The third repeat alone**, from which nothing was derived: median error "
        f"{median(map(abs, errors)):.1%} over {len(errors)} combinations of way and setting, "
        f"{_like(judged):.1%} over those with the profiled checkpoints and state store; "
        f"wrong signs {len(wrong)} of {len(telling)}."
    )
    yield ""


def _like(cells: Sequence[Cell]) -> float:
    """Median error of cells with the checkpoints and the store of the profiled runs."""
    return median(abs(cell.error_ratio) for cell in cells if not cell.store)


def _floor(cells: Sequence[Cell]) -> float:
    """Median error of one repeat as a prediction of the median of the others."""
    errors = [
        abs(one / median(others) - 1.0)
        for cell in cells
        for place, one in enumerate(cell.repeats_s)
        if (others := [*cell.repeats_s[:place], *cell.repeats_s[place + 1 :]])
    ]
    return median(errors) if errors else 0.0


def _mechanism(cells: Sequence[Cell], profile: JobProfile) -> Iterator[str]:
    """Whether the error is due to the form of the model or to the runs it was fitted to."""
    costs, others = keyed_costs(profile), list(other_profiles(profile, cells))
    if costs is None or not others:
        return
    rows_us = [1e6 * other.row_s for other in others]
    states_us = [1e6 * other.state_row_s for other in others]
    errors = [other.median_error_ratio for other in others]
    yield (
        f"**Mechanism.** According to the two profiled runs, a row takes {1e6 * costs[0]:.2f} "
        f"us of a batch and a state row {1e6 * costs[1]:.1f} us. According to the "
        f"{len(others)} pairs of judged direct runs of the same kind, a row takes "
        f"{min(rows_us):.2f} to {max(rows_us):.2f} us and a state row {min(states_us):.1f} to "
        f"{max(states_us):.1f} us. Fitted to one of these pairs, the same model has a median error "
        f"of {min(errors):.0%} to {max(errors):.0%} over the other ways and settings. That much is "
        "due to fitting two runs on a machine whose speed differs from run to run. The rest is due "
        "to the model, and to settings whose checkpoints or state store were not profiled."
    )
    yield ""


def _left_out(cells: Sequence[Cell]) -> str:
    """Settings and repeats that are missing."""
    settings = len({cell.setting for cell in cells})
    short = sum(len(cell.repeats_s) < REPEATS for cell in cells)
    spread = median(
        max(cell.repeats_s) / min(cell.repeats_s) - 1.0 for cell in cells if len(cell.repeats_s) > 1
    ) if any(len(cell.repeats_s) > 1 for cell in cells) else 0.0  # fmt: skip
    return (
        f"Missing: {counted(NUM_SETTINGS - settings, 'setting')} of {NUM_SETTINGS} not run; "
        f"{counted(short, 'cell')} of {len(cells)} with fewer than {REPEATS} repeats, which are "
        f"counted nevertheless. Repeats of a cell differ by {spread:.0%} in the median (longest "
        "over shortest)."
    )


def _table(cells: Sequence[Cell]) -> Iterator[str]:
    yield from headed(
        "| keys | rows per batch | windows | way | predicted | measured (repeats) | error | gain "
        "predicted | measured |"
    )
    for cell in cells:
        found = gains(cell, cells)
        repeats = ", ".join(f"{1e3 * each:.0f}" for each in cell.repeats_s)
        gain = "| | |" if found is None else f"| {found[0]:+.0%} | {found[1]:+.0%} |"
        yield (
            f"| {cell.keys:,} | {cell.rows:,} | {', '.join(cell.windows)}{cell.beside} | "
            f"{cell.how} | {_predicted(cell)} | {1e3 * cell.measured_s:.0f} ms ({repeats}) | "
            f"{cell.error_ratio:+.0%} {gain}"
        )


def _predicted(cell: Cell) -> str:
    mid_ms, low_ms, high_ms = (
        1e3 * seconds
        for seconds in (cell.predicted.mid_s, cell.predicted.low_s, cell.predicted.high_s)
    )
    return f"{mid_ms:.0f} ms ({low_ms:.0f} to {high_ms:.0f})"


def _met(is_so: bool) -> str:
    return "met" if is_so else "missed"
