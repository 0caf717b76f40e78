"""What the page on shared windows says of the real runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median

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
from headway.models.sharing.keyed import keyed_costs
from headway.units import counted

GOAL_RATIO = 0.1
_Gains = list[tuple[Cell, tuple[float, float]]]
REPEATS, NUM_SETTINGS = 3, 8
BEST_GOAL, PANES_GOAL = 2.0, 1.5

HOW_MEASURED = """\
Spark on `local[2]`, two cores with nothing beside it, two shuffle partitions, all as fast as
possible. The source `rate-micro-batch` gives each batch as many rows, a second of event time;
counts and sums of equally frequent keys go to a sink that does nothing. Two settings of the direct
query were profiled (300,000 rows of 1,000 keys and 30,000 of 10,000, 12 windows a row, 300 batches
each: rows and keys far apart, so that their costs can be separated). Eight others were run {times}
times each for 60 batches after at least 30, all ways of a setting in one JVM, another way first in
each repeat. Predicted is from those two profiled runs, given the rows and the keys (`--num-keys` of
`headway windows`), and nothing else: checkpoints and state store are taken for those that were
profiled. "By hand" are two windowed aggregations in a row, as people write them; they are held
against what is predicted for panes, and count in no error. Measured is the median of the
repeats."""

NOT_BLIND = """\
What is blind: **the third repeat**. The law by rows and state rows, (H10), is that of the design,
from before all runs. The time of rows that are held and of those that closing panes write, (H11),
of a second state in a stage, and the assumed costs of a shuffled row and of a log's files were
formed on the first two repeats; the third repeat and the profile were run after that. The log's
first two repeats were run anew in the JVMs of the third one, between its other ways: until then it
made roll-ups of its own choice, and looked up the schema of its files in jobs of their own, a fifth
of a second of each batch that closed a pane."""


def section(
    cells: Sequence[Cell], profile: JobProfile | None = None, blind: Sequence[Cell] = ()
) -> Iterator[str]:
    """Goals first, then pictures, errors, the whole table."""
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
    yield "Batch time by setting and way; bars are predicted, dots measured:"
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
    """How many times as fast, where the issue is most worth it."""
    mine = [cell for cell in cells if cell.keys == 10_000 and cell.copies == 12.0]
    for setting in dict.fromkeys(cell.setting for cell in mine):
        ways = {cell.how: cell for cell in mine if cell.setting == setting}
        direct, panes = ways.get(WindowsHow.DIRECT), ways.get(WindowsHow.PANES)
        shared = [ways[how] for how in WindowsHow if how in ways and how is not WindowsHow.DIRECT]
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
        f"**Errors** of the batch time over {len(judged)} ways at settings: median {typical:.1%} "
        f"(goal {GOAL_RATIO:.0%}: {_met(typical <= GOAL_RATIO)}; a repeat is off the median of the "
        f"others of its cell by {_floor(judged):.1%} in the median), {_like(judged):.1%} over "
        "those with the checkpoints and the store that were profiled. "
        f"Wrong signs: {len(wrong)} of "
        f"{len(telling)} gains or losses above {TELLING_RATIO:.0%} (goal 0: {_met(not wrong)}); "
        f"the other {len(pairs) - len(telling)} are smaller. The gain itself is off by "
        f"{100 * median(abs(p - m) for _, (p, m) in pairs):.0f} points in the median."
    )
    yield ""
    for cell, (expected, won) in wrong:
        yield f"* wrong sign: {cell.how} at {cell.words}: {expected:+.0%}, measured {won:+.0%}"
    if wrong:
        yield ""
    yield from headed("| way | settings | median error | mean error | within 10% | gain off by |")
    for how in WindowsHow:
        mine = [cell for cell in judged if cell.how == how]
        if not mine:
            continue
        errors = [cell.error_ratio for cell in mine]
        off = [abs(p - m) for cell, (p, m) in pairs if cell.how == how]
        yield (
            f"| {how.value} | {len(mine)} | {median(map(abs, errors)):.1%} | "
            f"{fmean(errors):+.1%} | {sum(abs(error) <= GOAL_RATIO for error in errors)} | "
            f"{f'{100 * median(off):.0f} points' if off else '-'} |"
        )
    yield ""
    yield _left_out(cells)
    yield ""


def _judged(cells: Sequence[Cell]) -> tuple[list[Cell], _Gains, _Gains, _Gains]:
    """Cells that count, those with a gain, those with one that tells, and those of a wrong sign."""
    judged = [cell for cell in cells if cell.how != BY_HAND]
    pairs = [(cell, found) for cell in judged if (found := gains(cell, cells)) is not None]
    telling = [(cell, found) for cell, found in pairs if abs(found[1]) > TELLING_RATIO]
    return judged, pairs, telling, [each for each in telling if has_wrong_sign(each[1])]


def _blind(cells: Sequence[Cell]) -> Iterator[str]:
    """The same errors, of the repeat that nothing was formed on."""
    if not cells:
        return
    judged, _, telling, wrong = _judged(cells)
    errors = [cell.error_ratio for cell in judged]
    yield (
        f"**The third repeat alone**, on which nothing was formed: median error "
        f"{median(map(abs, errors)):.1%} over {len(errors)} ways at settings, "
        f"{_like(judged):.1%} over those with the checkpoints and the store that were profiled; "
        f"wrong signs {len(wrong)} of {len(telling)}."
    )
    yield ""


def _like(cells: Sequence[Cell]) -> float:
    """Median error of cells with the checkpoints and the store of the profiled runs."""
    return median(abs(cell.error_ratio) for cell in cells if not cell.store)


def _floor(cells: Sequence[Cell]) -> float:
    """Error of one repeat as a prediction of the median of the others, in the median."""
    errors = [
        abs(one / median(others) - 1.0)
        for cell in cells
        for place, one in enumerate(cell.repeats_s)
        if (others := [*cell.repeats_s[:place], *cell.repeats_s[place + 1 :]])
    ]
    return median(errors) if errors else 0.0


def _mechanism(cells: Sequence[Cell], profile: JobProfile) -> Iterator[str]:
    """Whether the form is wrong or what it was fitted on."""
    costs, others = keyed_costs(profile), list(other_profiles(profile, cells))
    if costs is None or not others:
        return
    rows_us = [1e6 * other.costs.row_s for other in others]
    states_us = [1e6 * other.costs.state_row_s for other in others]
    errors = [other.median_error_ratio for other in others]
    yield (
        f"**Mechanism.** By the two profiled runs a row takes {1e6 * costs.row_s:.2f} us of the "
        f"batch, a state row {1e6 * costs.state_row_s:.1f} us. By the {len(others)} pairs of the "
        f"judged direct runs of the same kind it takes {min(rows_us):.2f} to {max(rows_us):.2f} "
        f"us, a state row {min(states_us):.1f} to {max(states_us):.1f} us, and the same model, "
        f"fitted to one of these pairs, misses the other ways and settings by {min(errors):.0%} to "
        f"{max(errors):.0%} in the median: what two runs tell of a machine whose speed differs "
        "from run to run. The rest is that of the model, and of settings whose checkpoints or "
        "store were not profiled."
    )
    yield ""


def _left_out(cells: Sequence[Cell]) -> str:
    """What the errors do not rest on."""
    settings = len({cell.setting for cell in cells})
    short = sum(len(cell.repeats_s) < REPEATS for cell in cells)
    spread = median(
        max(cell.repeats_s) / min(cell.repeats_s) - 1.0 for cell in cells if len(cell.repeats_s) > 1
    ) if any(len(cell.repeats_s) > 1 for cell in cells) else 0.0  # fmt: skip
    return (
        f"Left out: {counted(NUM_SETTINGS - settings, 'setting')} of {NUM_SETTINGS} not run; "
        f"{counted(short, 'cell')} of {len(cells)} with fewer than {REPEATS} repeats, counted all "
        f"the same. Repeats of a cell lie {spread:.0%} apart in the median (longest over shortest)."
    )


def _table(cells: Sequence[Cell]) -> Iterator[str]:
    yield from headed(
        "| keys | rows a batch | windows | way | predicted | measured (repeats) | error | gain "
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
