"""The accuracy with one log, six runs and all runs of a query, from the committed results.

python benchmarks/run.py runs_page --output docs/how-many-runs.md
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from campaign.figures import (
    GOAL_MEAN_RATIO,
    GOAL_P99_RATIO,
    Row,
    by_setting,
    covered,
    errors,
    is_judged,
    median_size,
    regimes,
    share_within,
)
from campaign.schedule import EVERY, FIT, VARIED
from campaign_page import RESULTS, read_results
from pages import headed
from refits import refit_rows

FITTED = {
    VARIED: "one ordinary log with a varying rate",
    FIT: "three settings that `--advise` names, each twice",
    EVERY: "all available runs",
}
WORDS = """\
How much accuracy additional runs add, measured in two ways with real runs of 14 queries on two
cores.

## Batch durations, refitted on one to eight runs

The profiler is fitted to the mean task times of a few of a query's 12 to 19 runs, and judged on
the others: 40 random choices per query, and one choice with sizes far apart (the smallest and the
largest batches, and other shuffle partitions, each twice). None of these runs has a rate as low as
those that `--advise` names for running as fast as possible.

{refits}

Two runs reduce the error of one run by a third. Four achieve most of the possible accuracy, and
eight add little. Repeats of one setting differ by 12% on a trigger and by 20% as fast as possible
(docs/accuracy.md), so the choice of the four matters little here.

## Latencies

Each row profiles the same queries from more runs and compares predictions with measured settings.
Only settings on which every row can be judged are included. The fit of the last row includes the
judged runs: it shows the error that remains when more runs cannot help, not an accuracy to
expect. Half width is half the width of the 90% interval of p99 over the prediction."""


def page(results: Path) -> str:
    """The whole page."""
    runs = [
        row
        for row in read_results(results / "campaign.jsonl.gz")
        if row["fitted"]["group"] == row["group"]
    ]
    machine = json.loads((results / "campaign-machine.json").read_text())
    by_role = {
        role: [row for row in by_setting(_of_role(runs, role)) if is_judged(row)] for role in FITTED
    }
    common = set.intersection(*({_key(row) for row in rows} for rows in by_role.values()))
    refits = "\n".join(refit_rows(_of_role(runs, FIT))).rstrip()
    lines = [
        "# How many runs a profile needs",
        "",
        WORDS.format(refits=refits),
        "",
        machine["made"],
        "",
    ]
    for title, of_regime in (("All settings", None), *((name, name) for name in _REGIMES)):
        lines += [f"### {title}", "", *_table(by_role, common, of_regime)]
    return "\n".join(lines).rstrip() + "\n"


_REGIMES = ("as fast as possible", "on a trigger, below 80%")


def _table(
    by_role: dict[str, list[Row]], common: set[tuple[str, ...]], regime: str | None
) -> Iterator[str]:
    yield from headed(
        "| profiled from | runs | judged | mean | within 10% | p99 | within 15% "
        "| half width | intervals held |"
    )
    for role, words in FITTED.items():
        rows = [row for row in by_role[role] if _key(row) in common]
        if regime is not None:
            rows = regimes(rows).get(regime, [])
        mean, p99 = errors(rows, "latency", "mean"), errors(rows, "latency", "p99")
        held, count = covered(rows)
        yield (
            f"| {words} | {_runs(rows)} | {len(mean)} | {median_size(mean)} "
            f"| {share_within(mean, GOAL_MEAN_RATIO)} | {median_size(p99)} "
            f"| {share_within(p99, GOAL_P99_RATIO)} | {_half_width(rows)} | {held} of {count} |"
        )
    yield ""


def _of_role(runs: Sequence[Row], role: str) -> list[Row]:
    return [row for row in runs if row["fitted"]["role"] == role]


def _key(row: Row) -> tuple[str, ...]:
    return (row["group"], row["workload"], json.dumps(row["setting"], sort_keys=True))


def _runs(rows: Sequence[Row]) -> str:
    counts = sorted(row["fitted"]["runs"] for row in rows)
    if not counts:
        return "-"
    return f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"


def _half_width(rows: Sequence[Row]) -> str:
    widths = [
        0.5 * (ends[1] - ends[0]) / row["predicted"]["latency"]["p99"]
        for row in rows
        if (ends := row["predicted"]["latency"]["p99_90"]) is not None and ends[1] < float("inf")
    ]
    return f"{100 * statistics.median(widths):.0f}%" if widths else "-"


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results")
    parser.add_argument("--output", type=Path, required=True, help="Markdown file")


def run(given: argparse.Namespace) -> None:
    """Write the page."""
    given.output.write_text(page(given.results))
    print(given.output)
