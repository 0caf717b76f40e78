"""The page about real steps of load, from the lines of their runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pages import headed, on_days
from result_lines import machine_of
from tuning_figures import (
    DECIDED_WITHIN_S,
    Figure,
    changes_of,
    decision_goal_s,
    decision_s,
    figures_of,
    floor_ratio_of,
    late_share,
    off_ratio_of,
)
from tuning_pictures import draw
from tuning_steps import (
    MODES,
    PARTS,
    REPEATS,
    Line,
    Part,
    all_runs_of,
    earlier_runs_of,
    finished_runs_of,
    is_formed,
)

from headway.units import counted

WITHIN_RATIO = 0.3
_FORMED = {
    "trigger": "(A18) in theory.md was made: it corrects what a restart is expected to show",
    "executors": "(A19) in theory.md was made: it adds the backlog to what a change is expected to "
    "show, and the tuner read old batches again after it had added executors",
}
_PICTURE = "img/tuning-real.svg"


def page_of(lines: Sequence[Line], folder: Path | None) -> str:
    """The page; with a folder, its picture goes there."""
    figures = {part.name: _figures_of([*finished_runs_of(part, lines)]) for part in PARTS.values()}
    if folder is not None and any(one.off_ratio is not None for one in _all(figures)):
        draw(figures, folder / _PICTURE, WITHIN_RATIO)
    return "\n".join(_page(lines, figures)) + "\n"


def _page(lines: Sequence[Line], figures: Mapping[str, Sequence[Figure]]) -> Iterator[str]:
    yield "# Steps of load for real\n"
    yield (
        "Made by `make tuning-real-page` from `benchmarks/tuning/results/tuning-real.jsonl`, which "
        "`make tuning-real` measures.\n"
    )
    runs = [one for one in lines if "mode" in one]
    if not runs:
        yield "Not measured yet: run `make tuning-real` on a quiet machine, twice for 95 minutes."
        return
    yield (
        "The load of one query steps from 20 to 60 and back to 20% of its capacity. Capacity and "
        "target come from a profile that was made before the first of these runs. Rows arrive "
        "whether or not the query reads them. Part `trigger`: a word count on `local[2]`; trigger "
        "interval and rate limit are changed by a restart. Part `executors`: tasks that wait, on a "
        "local cluster; executors are added while it runs. Each part has three modes, in random "
        f"order. {_when(runs)}\n"
    )
    if any(one.off_ratio is not None for one in _all(figures)):
        yield f"![Each figure, measured over predicted, of every run in act]({_PICTURE})\n"
    for part in PARTS.values():
        of = [*finished_runs_of(part, lines)]
        if of:
            yield from _of_part(part, of, newest_rule=runs[-1].get("rule"))
        else:
            yield f"## Part {part.name}\n\nNot measured yet.\n"
    yield from _left_out(lines)


def _when(runs: Sequence[Line]) -> str:
    """On which days the runs were made, and on how many machines."""
    days = (time.strftime("%Y-%m-%d", time.gmtime(one["started_s"])) for one in runs)
    machines = counted(len({machine_of(one) for one in runs}), "machine")
    return f"Measured {on_days(days)} on {machines} with 2 cores."


def _figures_of(runs: Sequence[Line]) -> list[Figure]:
    return [figure for run in runs if run["mode"] == "act" for figure in figures_of(run)]


def _all(figures: Mapping[str, Sequence[Figure]]) -> Iterator[Figure]:
    return (one for of in figures.values() for one in of)


def _of_part(part: Part, runs: Sequence[Line], *, newest_rule: str | None) -> Iterator[str]:
    acted = [one for one in runs if one["mode"] == "act"]
    targets = list(dict.fromkeys(one["target"] for one in runs))
    yield f"## Part {part.name}: {' or '.join(targets)}\n"
    if len(targets) > 1:
        yield "Each machine has its own profile, and with it its own capacity and target.\n"
    if runs[-1].get("rule") != newest_rule:
        yield "Measured with an earlier rule than the newest on this page.\n"
    planned = len(MODES) * REPEATS
    if len(runs) < planned:
        rest = planned - len(runs)
        yield f"{len(runs)} of {planned} runs; the other {rest} are not measured yet.\n"
    if acted:
        yield from _acted(acted)
    else:
        yield "No run in act is measured yet, so predictions cannot be compared with anything.\n"
    if acted and part.waits_ms:
        yield f"{_reaction(acted)}\n"
    yield from _modes(runs)
    for one in runs:
        if "note" in one:
            yield f"Repeat {one['repeat']}, {one['mode']}: {one['note']}.\n"


def _acted(acted: Sequence[Line]) -> Iterator[str]:
    """Predicted and measured figures of each run in act, and both over the runs."""
    found = _figures_of(acted)
    yield from headed("| repeat | change | figure | predicted | measured | off by |")
    for run in acted:
        changes = changes_of(run)
        given_up = [one["change"] for one in run["audit"] if one["event"] == "failed"]
        said = "none, tried and given up" if given_up else "none"
        if changes:
            said = "; ".join(f"{one['kind']}, {one['reason']}" for one in changes)
        for one in figures_of(run):
            yield f"| {run['repeat']} | {said} | {one.name} | {_shown(one)} |"
    yield ""
    yield (
        "Off by, over the runs: the median distance of measurements from their predictions, as a "
        "share of the prediction. The floor is the same median with the mean of the other runs as "
        "the prediction: how much runs of one setting differ from each other. It needs three "
        "runs.\n"
    )
    yield from headed("| figure | runs | not measured | as predicted | off by | floor | expected |")
    for name in dict.fromkeys(one.name for one in found):
        of = [one for one in found if one.name == name]
        kept = [one for one in of if one.is_met(WITHIN_RATIO)]
        none = sum(one.measured is None for one in of)
        verdict = "met" if len(kept) == len(of) else "missed"
        off, floor = _ratio(off_ratio_of(of)), _ratio(floor_ratio_of(of))
        yield f"| {name} | {len(of)} | {none} | {len(kept)} | {off} | {floor} | {verdict} |"
    yield (
        "\nAs predicted means within 30%; for `kept again` it means no later than predicted, since "
        "that is a bound. If there is more than one change, the decision is the first; the other "
        "figures are of the last, which replaces what was expected of the one before.\n"
    )


def _reaction(acted: Sequence[Line]) -> str:
    """Whether the first change after the step up came as soon as it should."""
    decisions_s = [(decision_s(run), decision_goal_s(run)) for run in acted]
    num_met = sum(after_s is not None and after_s <= goal_s for after_s, goal_s in decisions_s)
    verdict = "met" if num_met == len(acted) else "missed"
    return (
        f"Goal: the first change comes within {DECIDED_WITHIN_S:g} s of the step up, or within the "
        f"first batch after it if that takes longer. {num_met} of {len(acted)} runs: {verdict}. "
        "The rule waits for two bins of 15 s with a rate above its band, and decides once for each "
        "bin (A2), (A9), since only the second one shows whether the rate has jumped, and how far. "
        "So a step up is answered after 15 to 45 s, depending on where in a bin it comes."
    )


def _modes(runs: Sequence[Line]) -> Iterator[str]:
    yield from headed("| mode | runs | changes | late rows at 20% | at 60% | at 20% again |")
    for mode in MODES:
        of_mode = [one for one in runs if one["mode"] == mode]
        if of_mode:
            shares = [
                f"{statistics.median(late_share(one, at) for one in of_mode):.1%}"
                for at in range(3)
            ]
            changes = sum(len(changes_of(one)) for one in of_mode)
            yield f"| {mode} | {len(of_mode)} | {changes} | {' | '.join(shares)} |"
    yield ""


def _shown(one: Figure) -> str:
    if one.predicted is None or one.measured is None:
        return f"{_seconds(one.predicted)} | {_seconds(one.measured)} | -"
    off = "-" if one.off_ratio is None else f"{one.off_ratio:+.0%}"
    return f"{_seconds(one.predicted)} | {_seconds(one.measured)} | {off}"


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f} s"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _left_out(lines: Sequence[Line]) -> Iterator[str]:
    yield "## What is left out\n"
    for part in PARTS.values():
        runs = [*finished_runs_of(part, lines)]
        acted = [one for one in runs if one["mode"] == "act"]
        unchanged = sum(not changes_of(one) for one in acted)
        planned = len(MODES) * REPEATS
        said = f"- Part `{part.name}`: {planned - len(runs)} of {planned} runs are not measured"
        if acted:
            said += f"; {unchanged} of {len(acted)} in act made no change"
        yield f"{said}{', so only the decision is judged there' if unchanged else ''}."
        if formed := sum(map(is_formed, all_runs_of(part, lines))):
            yield (
                f"- Part `{part.name}`: {counted(formed, 'earlier run')} in act, from which "
                f"{_FORMED[part.name]}. That cannot be judged by the same run."
            )
        if earlier := earlier_runs_of(part, lines):
            after_s = [s for run in earlier if (s := decision_s(run)) is not None]
            yield (
                f"- Part `{part.name}`: {counted(len(earlier), 'run')} with rules before this one; "
                f"the first change came {min(after_s):.0f} to {max(after_s):.0f} s after the step."
            )
        void = [one["void"] for one in all_runs_of(part, lines) if "void" in one]
        for why in dict.fromkeys(void):
            yield f"- Part `{part.name}`: {counted(void.count(why), 'void run')}: {why}."
    yield (
        "\n**The step down to fewer executors is not measured.** After any change the rule keeps "
        "the number of executors for at least half an hour, and a run takes less than six minutes: "
        "when the load falls back to 20%, the tuner does nothing. What it would do later is only "
        "simulated, on [another page](tuning-simulated.md). The executors that a run added are "
        "removed at its end by `stop(restore=True)`; that is not a decision of the rule. Tasks "
        "that wait show what more executors can carry, not what work on two cores gains. Pauses "
        "and delays are those of one machine."
    )
