"""Promises that were planned and run, as tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from pages import headed

from campaign.figures import Row, is_undisturbed
from campaign.promises import (
    FLOOR_RATIO,
    KEPT_HEADER,
    answer_text,
    kept_row,
    measured_s,
    of_limit,
    setting_text,
)
from campaign.reliability import SAID, Outcome, chance_ratio

MOST_REFUSED_RATIO = 0.25
MOST_ERRORS_OF_CHANCE = 2.0


def plan_tables(rows: Sequence[Row], anew: Mapping[str, Row]) -> Iterator[str]:
    """Of random promises: planned as feasible or not, and kept or not when the plan was run."""
    measured_rows = [row for row in rows if row["truth"] is not None and is_undisturbed(row)]
    yield (
        f"{len(measured_rows)} random targets (mean, p95 or p99 of the tuple latency, 0.25 to 5 s, "
        "at 10 to 85% of the capacity of the workload, some with fixed shuffle partitions), "
        "planned for this machine at the default confidence level of 95%. Each plan was run, an "
        "infeasible one in the nearest configuration."
    )
    yield ""
    yield from KEPT_HEADER
    if all(row.get("verdict") for row in measured_rows):
        for verdict, name in SAID.items():
            yield kept_row(name, (row for row in measured_rows if row["verdict"] == verdict))
        yield ""
        yield from _must_hold(measured_rows)
    else:
        for feasible, name in ((True, "planned as feasible"), (False, "planned as infeasible")):
            yield kept_row(name, (row for row in measured_rows if row["feasible"] is feasible))
        yield ""
    yield from _planned_anew(measured_rows, anew)
    yield from headed(
        "| plan | promise | rows/s | planned | probability | setting | measured | of the limit |"
    )
    for row in measured_rows:
        yield (
            f"| {row['name'].removeprefix('plan/')} | {row['target']} | {row['rate_per_s']:,.0f} "
            f"| {answer_text(row['planned_latency_s'], feasible=row['feasible'])} "
            f"| {_probability(row)} "
            f"| {setting_text(row['setting'])} | {measured_s(row):.2f} s "
            f"| {of_limit(row):.0%} |"
        )
    yield ""


def _must_hold(rows: Sequence[Row]) -> Iterator[str]:
    """What promises are held to, and how they did."""
    said = {verdict: [row for row in rows if row["verdict"] == verdict] for verdict in SAID}
    missed = [row for row in said["kept"] if of_limit(row) > 1 + FLOOR_RATIO]
    could = [row for row in rows if of_limit(row) <= 1]
    refused = [row for row in could if row["verdict"] == "not kept"]
    yield (
        f"* No target that is called met may be missed by more than {FLOOR_RATIO:.0%}: "
        f"{len(missed)} of {len(said['kept'])} are, {_goal(not missed)}."
    )
    most = MOST_REFUSED_RATIO * len(could)
    yield (
        f"* Of the targets that were met when run, at most {MOST_REFUSED_RATIO:.0%} may be refused "
        f"outright: {len(refused)} of {len(could)} are, {_goal(len(refused) <= most)}."
    )
    yield from _open_verdicts(said["too close to tell"])
    yield ""


def _open_verdicts(rows: Sequence[Row]) -> Iterator[str]:
    """Whether probabilities of open verdicts are right within the error of so few."""
    if not rows:
        yield '* No target was called "too close to tell".'
        return
    outcomes = [Outcome(row["kept_probability"], of_limit(row) <= 1) for row in rows]
    said, kept = (statistics.fmean(values) for values in zip(*outcomes, strict=True))
    chance = chance_ratio(outcomes)
    is_right = abs(kept - said) <= MOST_ERRORS_OF_CHANCE * chance
    yield (
        f'* {len(rows)} targets were called "too close to tell", with a mean probability of '
        f"{said:.0%}: {kept:.0%} were met (standard error {chance:.0%}), {_goal(is_right)}."
    )


def _goal(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


def _planned_anew(measured_rows: Sequence[Row], anew: Mapping[str, Row]) -> Iterator[str]:
    """What made plans infeasible that were kept: the margin, or what was expected."""
    if not anew:
        return
    refused = [row for row in measured_rows if not row["feasible"]]
    kept = [row for row in refused if of_limit(row) <= 1]
    by_margin = [row for row in kept if _is_expected_to_hold(row, anew[row["name"]])]
    missed = [row for row in refused if of_limit(row) > 1]
    missed_too = [row for row in missed if _is_expected_to_hold(row, anew[row["name"]])]
    found = [row for row in measured_rows if anew[row["name"]]["feasible"]]
    newly = [row for row in found if not row["feasible"]]
    lost = [row for row in measured_rows if row["feasible"] and not anew[row["name"]]["feasible"]]
    same = [row for row in newly if _is_same_setting(row, anew[row["name"]])]
    yield (
        f"Why targets that were met had been refused: for {len(by_margin)} of these {len(kept)}, "
        "the profile, as it is fitted now, predicts without a safety margin that the target is met "
        "in the configuration that was run, so it was the margin that refused them (durations that "
        "only one profile in twenty would exceed). For the others it predicts that the target is "
        "missed: durations are predicted too long, and close to capacity that error counts several "
        f"times. Of the {len(missed)} targets that were refused and missed, it predicts "
        f"{len(missed_too)} to be met. Planned again with the profile as it is fitted now, "
        f"{len(found)} targets are feasible; {len(newly)} of them were refused before, and "
        f"{len(lost)} that were feasible before are refused now"
        + (
            f"; {len(same)} of the newly feasible plans have the configuration that was run, which "
            f"met the target in {sum(of_limit(row) <= 1 for row in same)}."
            if same
            else "; none of the newly feasible plans has a configuration that was run, so none is "
            "judged."
        )
    )
    yield ""


def _probability(row: Row) -> str:
    """As it was stated before the run; not in results of before."""
    probability = row.get("kept_probability")
    return "-" if probability is None else f"{probability:.0%}"


def _is_expected_to_hold(row: Row, anew: Row) -> bool:
    return anew["expected_s"] is not None and anew["expected_s"] <= row["limit_s"]


def _is_same_setting(row: Row, anew: Row) -> bool:
    ran = {name: row["setting"][name] for name in anew["setting"]}
    return bool(ran == anew["setting"])
