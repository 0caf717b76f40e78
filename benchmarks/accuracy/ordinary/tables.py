"""The tables of the page about ordinary jobs, from judged lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from campaign.figures import (
    by_setting,
    covered,
    errors,
    fell_behind,
    grouped,
    is_judged,
    is_undisturbed,
    is_warned,
    median_size,
    repeat_errors,
    share_within,
)
from pages import headed

from ordinary.judging import (
    AROUND_LIMIT,
    FAR_FROM_LIMIT,
    NOT_KNOWN,
    NOT_STABLE,
    STABLE,
    left_out_reasons,
)
from ordinary.limits import AskedRate, contradictions
from ordinary.split import ADVISED, PRODUCTION

Row = dict[str, Any]
FITTED = {PRODUCTION: "one run, as production has it", ADVISED: "that and the advised runs"}
GOALS = {"mean": 0.15, "p99": 0.20}
LEAST_PROBABILITY = 0.95
LEAST_BATCHES_OF_TREND = 10
"""Runs with fewer batches do not show whether a query keeps up."""


def judged_lines_of(rows: Iterable[Row], role: str) -> list[Row]:
    """The lines of one profile that have a prediction."""
    return [row for row in rows if not row.get("left_out") and row["fitted"]["role"] == role]


def summary_table(rows: Sequence[Row]) -> Iterator[str]:
    """The figures of the issue, from one run and from the advised runs."""
    yield from headed(
        "| profiled from | judged runs | mean: median error | within 15% | p99: median error "
        "| within 20% | 90% intervals that held | promises of 95% and more "
        "| missed by more than 5% |"
    )
    for role, words in FITTED.items():
        of_role = judged_lines_of(rows, role)
        mean, p99 = errors(of_role, "latency", "mean"), errors(of_role, "latency", "p99")
        held, num_intervals = covered(of_role)
        missed, num_sure = sure_promises(of_role)
        yield (
            f"| {words} | {len(mean)} | {median_size(mean)} | {share_within(mean, GOALS['mean'])} "
            f"| {median_size(p99)} | {share_within(p99, GOALS['p99'])} "
            f"| {share_text(held, num_intervals)} | {num_sure} | {share_text(missed, num_sure)} |"
        )
    yield ""


def stability_table(rows: Sequence[Row], decided: Mapping[AskedRate, bool]) -> Iterator[str]:
    """What is called stable, against the judged runs and around the capacity of each job."""
    yield from headed(
        "| profiled from | judged runs | called stable, fell behind | called not stable, kept up "
        '| asked around the capacity | false "stable" | false "not stable" '
        "| by the probe alone | a run says otherwise | not known |"
    )
    of_roles = {words: judged_lines_of(rows, role) for role, words in FITTED.items()}
    for words, of_role in of_roles.items():
        wrong_stable, wrong_unstable, num_runs = wrong_of_runs(of_role)
        verdicts = against_capacity(of_role, decided)
        yield (
            f"| {words} | {num_runs} | {wrong_stable} | {wrong_unstable} | {verdicts.num_asked} "
            f"| {share_text(verdicts.false_stable, verdicts.num_asked)} "
            f"| {share_text(verdicts.false_unstable, verdicts.num_asked)} "
            f"| {verdicts.by_probe_alone} | {verdicts.cleared} "
            f"| {share_text(verdicts.num_open, verdicts.num_asked)} |"
        )
    yield ""
    said = (STABLE, NOT_KNOWN, NOT_STABLE)
    yield from headed(f"| profiled from | asked at | {' | '.join(said)} |")
    for words, of_role in of_roles.items():
        for share, counts in verdicts_by_share(of_role).items():
            cells = (share_text(counts[verdict], counts.total()) for verdict in said)
            yield f"| {words} | {100 * share:.0f}% of the capacity | {' | '.join(cells)} |"
    yield ""


def verdicts_by_share(rows: Iterable[Row]) -> dict[float, Counter[str]]:
    """What is said at each share of the capacity."""
    counts: dict[float, Counter[str]] = {}
    for row in rows:
        if shows_trend(row):
            shares = (*AROUND_LIMIT, *FAR_FROM_LIMIT)
            for share, verdict in zip(shares, row["verdicts"] + row["far_verdicts"], strict=True):
                counts.setdefault(share, Counter())[verdict] += 1
    return dict(sorted(counts.items()))


def wrong_of_runs(rows: Iterable[Row]) -> tuple[int, int, int]:
    """Runs called stable that fell behind, called not stable that kept up, and all runs."""
    said = Counter((row["verdict"], fell_behind(row)) for row in rows if shows_trend(row))
    return said[STABLE, True], said[NOT_STABLE, False], said.total()


def shows_trend(row: Row) -> bool:
    """Whether a run tells if its query keeps up, and the probe of its job how much it carries.

    The probe, too, has too few batches where each takes many seconds whatever its rows.
    """
    return is_undisturbed(row) and row["truth"]["num_batches"] >= LEAST_BATCHES_OF_TREND


class AgainstCapacity(NamedTuple):
    """Counts of verdicts around the capacity of each job.

    ``false_stable`` and ``false_unstable`` are those that contradict the probe and no run at that
    rate clears; ``by_probe_alone`` are those of them that no run decided.
    """

    false_stable: int
    false_unstable: int
    by_probe_alone: int
    cleared: int
    num_open: int
    num_asked: int


def against_capacity(rows: Iterable[Row], decided: Mapping[AskedRate, bool]) -> AgainstCapacity:
    """Each setting is asked twice, a tenth below its capacity and a tenth above it."""
    asked = [row for row in rows if shows_trend(row)]
    contradicting = [pair for row in asked for pair in contradictions(row)]
    cleared = [
        verdict
        for rate, verdict in contradicting
        if rate in decided and decided[rate] is (verdict == STABLE)
    ]
    all_of, cleared_of = Counter(verdict for _, verdict in contradicting), Counter(cleared)
    return AgainstCapacity(
        false_stable=all_of[STABLE] - cleared_of[STABLE],
        false_unstable=all_of[NOT_STABLE] - cleared_of[NOT_STABLE],
        by_probe_alone=sum(rate not in decided for rate, _ in contradicting),
        cleared=len(cleared),
        num_open=sum(verdict == NOT_KNOWN for row in asked for verdict in row["verdicts"]),
        num_asked=2 * len(asked),
    )


def sure_promises(rows: Iterable[Row]) -> tuple[int, int]:
    """Promises that were sure to be met and were missed by more than 5%, and all that were sure."""
    sure = [
        missed
        for row in rows
        if is_undisturbed(row)
        for probability, _, missed in row["promises"]
        if probability >= LEAST_PROBABILITY
    ]
    return int(sum(sure)), len(sure)


def share_text(part: int, whole: int) -> str:
    """A share with its counts.

    Examples
    --------
    >>> share_text(9, 10), share_text(0, 0)
    ('90% (9 of 10)', '-')
    """
    return f"{100 * part / whole:.0f}% ({part} of {whole})" if whole else "-"


def floor_table(rows: Sequence[Row]) -> Iterator[str]:
    """What one repeat of a setting says of the other, as an error of the model is counted."""
    settings = by_setting(judged_lines_of(rows, PRODUCTION))
    as_fast, on_trigger = (
        [row for row in settings if (row["setting"]["trigger_s"] > 0) is waits]
        for waits in (False, True)
    )
    yield from headed("| a repeat against its repeat | pairs | median | within the goal |")
    for figure, goal_ratio in GOALS.items():
        for chosen, words in (
            (settings, figure),
            (as_fast, f"{figure}, as fast as possible"),
            (on_trigger, f"{figure}, on a trigger"),
        ):
            of = repeat_errors(chosen, "latency", figure)
            yield f"| {words} | {len(of)} | {median_size(of)} | {share_within(of, goal_ratio)} |"
    yield ""


def by_table(rows: Sequence[Row], key: str, title: str) -> Iterator[str]:
    """Errors by a property of the run, from both profiles."""
    yield from headed(f"| {title} | one run: mean | p99 | judged | advised: mean | p99 | judged |")
    every = {role: judged_lines_of(rows, role) for role in FITTED}
    for name in sorted({str(row[key]) for of in every.values() for row in of}):
        cells = []
        for of in every.values():
            chosen = [row for row in of if str(row[key]) == name]
            cells += [median_size(errors(chosen, "latency", figure)) for figure in GOALS]
            cells.append(str(len(errors(chosen, "latency", "mean"))))
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""


def largest_part(row: Row) -> tuple[str, float]:
    """The part of a batch with the largest error, and that error over the batch's duration."""
    parts = row["parts"]
    duration_s = parts["duration"][1]
    off = {
        name: (parts[name][0] - parts[name][1]) / duration_s for name in ("checkpoint", "driver")
    }
    for level, called in zip(parts["levels"], row["stages"], strict=False):
        predicted_s, seen_s = level["span"]
        off[called] = off.get(called, 0.0) + (predicted_s - seen_s) / duration_s
    name = max(off, key=lambda part: abs(off[part]))
    return name, off[name]


def stages_table(rows: Sequence[Row]) -> Iterator[str]:
    """Which stage, or which part of the driver, is off most, job by job."""
    yield from headed("| job | runs | part with the largest error | how often | error of a batch |")
    judged = judged_lines_of(rows, ADVISED)
    with_parts = [row for row in judged if row["parts"] and is_judged(row)]
    for job, of in grouped(with_parts, lambda row: str(row["workload"])).items():
        largest = [largest_part(row) for row in of]
        (name, count), *_ = Counter(name for name, _ in largest).most_common(1)
        off = [error for part, error in largest if part == name]
        yield (
            f"| {job} | {len(of)} | {name} | {share_text(count, len(of))} "
            f"| {100 * sum(off) / len(off):+.0f}% |"
        )
    yield ""


def left_out_table(rows: Sequence[Row]) -> Iterator[str]:
    """What no error is counted of, and why."""
    counts: dict[str, int] = {}
    for role, words in FITTED.items():
        for row in judged_lines_of(rows, role):
            if (reason := _why_not_judged(row)) is not None:
                counts[f"{words}: {reason}"] = counts.get(f"{words}: {reason}", 0) + 1
    yield from headed("| left out | lines |")
    for role, words in FITTED.items():
        num_short = sum(not shows_trend(row) for row in judged_lines_of(rows, role))
        if num_short:
            reason = f"fewer than {LEAST_BATCHES_OF_TREND} batches, not judged on stability"
            counts[f"{words}: {reason}"] = num_short
    all_counts: Mapping[str, int] = {**left_out_reasons(rows), **counts}
    for reason, count in sorted(all_counts.items()):
        yield f"| {reason} | {count} |"
    yield ""


def _why_not_judged(row: Row) -> str | None:
    if is_judged(row):
        return None
    if not is_undisturbed(row):
        return "other processes used the machine"
    if fell_behind(row):
        return "the query fell behind"
    if is_warned(row):
        return "the prediction says itself that it is too close to saturation"
    return "no latency is predicted: called not stable"
