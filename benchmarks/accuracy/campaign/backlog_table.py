"""Backlogs that were worked off: how fast, as predicted and as measured, and what repeats say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pages import headed

from campaign.figures import GOAL_MEAN_RATIO, Row, repeats_of, share_within


def backlog_table(rows: Sequence[Row]) -> Iterator[str]:
    """One line per backlog, then how many are close, beside the floor of the repeats."""
    yield from headed(
        "| workload | rows arrived at | rows per batch | predicted | measured | repeats | error |"
    )
    for row in rows:
        predicted, true = row["predicted"]["rows_per_s"], row["truth"]["rows_per_s"]
        repeats = ", ".join(f"{run['truth']['rows_per_s']:,.0f}" for run in repeats_of([row]))
        yield (
            f"| {row['workload']} | {row['rate_per_s']:,.0f}/s | {row['max_rows']:,} "
            f"| {predicted:,.0f}/s | {true:,.0f}/s | {repeats} | {predicted / true - 1:+.1%} |"
        )
    yield ""
    errors = [row["predicted"]["rows_per_s"] / row["truth"]["rows_per_s"] - 1 for row in rows]
    within = sum(abs(error) <= GOAL_MEAN_RATIO for error in errors)
    floor = backlog_floor(rows)
    yield (
        f"{within} of {len(errors)} are within {GOAL_MEAN_RATIO:.0%}. One repeat as the prediction "
        f"of the other is within {GOAL_MEAN_RATIO:.0%} in {share_within(floor, GOAL_MEAN_RATIO)} "
        "of the cases."
    )
    yield ""


def backlog_floor(rows: Sequence[Row]) -> list[float]:
    """Of backlogs with repeats: one repeat over the other, less one, both ways."""
    ratios = []
    for row in rows:
        rates = [run["truth"]["rows_per_s"] for run in repeats_of([row])]
        ratios += [
            other / rate - 1
            for place, rate in enumerate(rates)
            for other_place, other in enumerate(rates)
            if place != other_place
        ]
    return ratios
