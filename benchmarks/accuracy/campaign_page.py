"""The published accuracy page, from the committed results of a campaign and of plans that were run.

python benchmarks/run.py campaign_page --output docs/accuracy.md
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from campaign.backlog_table import backlog_table
from campaign.figures import (
    GOAL_MEAN_RATIO,
    GOAL_P99_RATIO,
    LONGEST,
    Row,
    by_setting,
    covered,
    error_ratio,
    errors,
    fell_behind,
    grouped,
    halves,
    is_backlog,
    is_judged,
    is_undisturbed,
    is_warned,
    largest,
    measured,
    median_size,
    regimes,
    repeat_errors,
    repeats_of,
    setting_name,
    share_within,
)
from campaign.headline import headline
from campaign.interval_table import interval_table
from campaign.kept_runs import read_lines
from campaign.left_state import left_state_tables
from campaign.missed_table import missed_table
from campaign.plan_tables import plan_tables
from campaign.plots import reliability_diagram, scatter
from campaign.record import RUNS
from campaign.reliability import Outcome, regime_table, reliability_table
from campaign.schedule import EVERY, FIT, MEASURED_S, VARIED
from campaign.speed_table import (
    corrected_by_speed,
    latencies_by_speed,
    speed_beside_runs,
    speed_table,
)
from campaign.verdict_table import verdict_table
from campaign.words import (
    BACKLOG_WORDS,
    EVERY_WORDS,
    FINDINGS,
    INTERVAL_WORDS,
    OTHER_WORDS,
    RELIABILITY_WORDS,
    VARYING_WORDS,
    preface,
)
from error_parts import parts_tables
from ordinary.record import JUDGED as ORDINARY
from ordinary.tables import FITTED, judged_lines_of
from pages import headed
from result_lines import lines_of

RESULTS = Path(__file__).parent / "results"
LIVE_BACKLOGS, LEFT_STATES = "live-backlogs.jsonl", "left-states.jsonl"


def read_results(path: Path) -> list[Row]:
    """Lines of committed results."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def judged_settings(results: Path) -> list[Row]:
    """Those whose figures are quoted, of the groups that were fitted themselves."""
    return [row for row in _fitted_settings(results) if is_judged(row)]


def _fitted_settings(results: Path) -> list[Row]:
    runs = read_results(results / "campaign.jsonl.gz")
    return by_setting(row for row in _of_own_group(runs) if row["fitted"]["role"] == FIT)


def _of_own_group(runs: Sequence[Row]) -> list[Row]:
    return [row for row in runs if row["fitted"]["group"] == row["group"]]


def page(results: Path) -> str:
    """The whole page."""
    runs = read_results(results / "campaign.jsonl.gz")
    machine = json.loads((results / "campaign-machine.json").read_text())
    fitted, every, ordinary = (
        by_setting(row for row in _of_own_group(runs) if row["fitted"]["role"] == role)
        for role in (FIT, EVERY, VARIED)
    )
    across = by_setting(row for row in runs if row["fitted"]["group"] != row["group"])
    lines = [
        "# Accuracy of the predictions",
        "",
        preface(measured_s=MEASURED_S),
        machine["made"],
        "",
        "![Predicted against measured latency](img/accuracy-scatter.svg)",
        "",
        *headline(fitted),
        "## Left out by the prediction's own verdict",
        "",
        *verdict_table(fitted),
        "## By workload",
        "",
        *_error_table("workload", grouped(fitted, _workload)),
        "## By regime",
        "",
        *_error_table("regime", {**regimes(fitted), **halves(fitted)}),
        "## Intervals",
        "",
        INTERVAL_WORDS,
        "",
        *interval_table({"all": fitted, **regimes(fitted)}),
        "## Other figures",
        "",
        OTHER_WORDS,
        "",
        *_other_figures(fitted, {row["workload"] for row in lines_of(results / LIVE_BACKLOGS)}),
        "## How far a fit can go",
        "",
        EVERY_WORDS,
        "",
        *_error_table("fitted on every run", {"all": every, **regimes(every)}),
        "## Settings that miss",
        "",
        *missed_table(fitted, every),
        "## Windows",
        "",
        *_windows_by_regime(fitted),
        *_window_table(fitted),
        "## Plans that were run",
        "",
        *plan_tables(
            read_results(results / "planned.jsonl.gz"),
            {row["name"]: row for row in read_results(results / "planned-anew.jsonl.gz")},
        ),
        *_reliability(fitted, results),
        "## Over capacity, and called so",
        "",
        *_saturation(repeats_of(fitted)),
        f"Without figures: {'; '.join(machine['left_out']) or 'none'}.",
        "",
        "## Working off a backlog",
        "",
        BACKLOG_WORDS,
        "",
        *backlog_table(_backlogs(fitted, results / LIVE_BACKLOGS)),
        "## Fitted on one ordinary run whose rate varies",
        "",
        VARYING_WORDS,
        "",
        *_error_table("workload", grouped(ordinary, _workload)),
        "## Fitted on fewer slots",
        "",
        *_error_table(
            "fitted, judged",
            grouped(across, lambda row: f"{row['fitted']['group']}, {row['group']}"),
        ),
        "## The same batch, again and again",
        "",
        *speed_table(lines_of(results / "machine-speed.jsonl")[1:]),
        *speed_beside_runs(repeats_of(fitted)),
        *corrected_by_speed(repeats_of(fitted)),
        *latencies_by_speed(repeats_of(fitted)),
        "## Beside the state of a query that has ended",
        "",
        *left_state_tables(
            list(read_lines(results / RUNS)), fitted, lines_of(results / LEFT_STATES)
        ),
        "## What the errors are made of",
        "",
        *parts_tables(repeats_of(fitted)),
        FINDINGS,
        "",
        "## Every judged setting",
        "",
        *_details(fitted),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _workload(row: Row) -> str:
    return str(
        row["workload"] if row["group"] == "two-cores" else f"{row['workload']}, {row['group']}"
    )


def promised_outcomes(rows: Sequence[Row]) -> list[Outcome]:
    """Random promises about judged runs, with their probabilities and outcomes."""
    return [
        Outcome(probability, bool(kept))
        for run in repeats_of(rows)
        if is_judged(run)
        for probability, kept, *_ in run.get("promises") or ()
    ]


def promises_by_group(rows: Sequence[Row], results: Path) -> dict[str, list[Outcome]]:
    """Those about the campaign, by regime, and those about ordinary jobs, by what was fitted."""
    groups = {"all": rows, **regimes(rows)}
    if (results / ORDINARY).exists():
        ordinary = read_results(results / ORDINARY)
        for role, fitted in FITTED.items():
            groups[f"ordinary jobs, fitted on {fitted}"] = judged_lines_of(ordinary, role)
    outcomes = {name: promised_outcomes(of) for name, of in groups.items()}
    return {name: of for name, of in outcomes.items() if of}


def _reliability(rows: Sequence[Row], results: Path) -> Iterator[str]:
    """Random promises about judged runs; none in results of before."""
    groups = promises_by_group(rows, results)
    if "all" in groups:
        yield "## Calibration of probabilities"
        yield ""
        yield RELIABILITY_WORDS
        yield ""
        yield "![Stated probability and share of promises kept](img/accuracy-reliability.svg)"
        yield ""
        yield from reliability_table(groups["all"])
        yield from regime_table(groups)


def _error_table(first: str, groups: dict[str, list[Row]]) -> Iterator[str]:
    yield from headed(
        f"| {first} | judged | mean | within | p99 | within | largest: mean | p99 | duration "
        "| intervals held | floor: mean | within | p99 | within |"
    )
    for name, rows in groups.items():
        runs = repeats_of(rows)
        mean, p99 = errors(runs, "latency", "mean"), errors(runs, "latency", "p99")
        floors = (repeat_errors(rows, "latency", figure) for figure in ("mean", "p99"))
        held, num_intervals = covered(rows)
        yield (
            f"| {name} | {len(mean)} | {_median_and_share(mean, p99)} | {largest(mean)} "
            f"| {largest(p99)} | {median_size(errors(runs, 'duration', 'mean'))} "
            f"| {held} of {num_intervals} | {_median_and_share(*floors)} |"
        )
    yield ""


def _median_and_share(mean: Sequence[float], p99: Sequence[float]) -> str:
    return (
        f"{median_size(mean)} | {share_within(mean, GOAL_MEAN_RATIO)} "
        f"| {median_size(p99)} | {share_within(p99, GOAL_P99_RATIO)}"
    )


def _other_figures(rows: Sequence[Row], live: Container[str]) -> Iterator[str]:
    """Median errors of what the tables above leave out, by workload and regime.

    Workloads whose backlog was measured with ``live`` event times later have no rate here: that
    backlog is predicted from runs of its own.
    """
    columns = {
        "p50": ("latency", "p50"),
        "p95": ("latency", "p95"),
        "batch, mean": ("duration", "mean"),
        "batch, p50": ("duration", "p50"),
        "batch, p99": ("duration", "p99"),
        "window, mean": ("windows", "mean"),
        "window, p50": ("windows", "p50"),
        "window, longest": ("windows", LONGEST),
    }
    yield from headed(
        f"| | judged | {' | '.join(columns)} | sustainable rate, over what a backlog ran at |"
    )
    ran_per_s = {
        _workload(row): row["truth"]["rows_per_s"]
        for row in rows
        if row["setting"]["backlog"] and row["workload"] not in live
    }
    for name, of in {**grouped(rows, _workload), **regimes(rows)}.items():
        cells = [median_size(errors(of, what, figure)) for what, figure in columns.values()]
        ratios = [
            row["predicted"]["sustainable_rate_per_s"] / ran_per_s[_workload(row)]
            for row in of
            if is_judged(row) and _workload(row) in ran_per_s
        ]
        rate = f"{100 * statistics.median(ratios):.0f}%" if ratios else "-"
        judged = sum(is_judged(row) for row in of)
        yield f"| {name} | {judged} | {' | '.join(cells)} | {rate} |"
    yield ""


def _windows_by_regime(rows: Sequence[Row]) -> Iterator[str]:
    """Mean latency of windows beside what one repeat says of another."""
    yield from headed("| regime | judged | mean | within 10% | floor: mean | within 10% |")
    for name, of in {"all": list(rows), **regimes(rows)}.items():
        error, floor = (
            errors(repeats_of(of), "windows", "mean"),
            repeat_errors(of, "windows", "mean"),
        )
        if error:
            yield (
                f"| {name} | {len(error)} | {median_size(error)} "
                f"| {share_within(error, GOAL_MEAN_RATIO)} | {median_size(floor)} "
                f"| {share_within(floor, GOAL_MEAN_RATIO)} |"
            )
    yield ""


def _window_table(rows: Sequence[Row]) -> Iterator[str]:
    yield from headed(
        "| setting | windows | mean: predicted | measured | error "
        "| longest: predicted | measured | error |"
    )
    for row in rows:
        true, predicted = row["truth"]["windows"], row["predicted"].get("windows")
        if not is_judged(row) or true is None:
            continue
        figures = (
            f"{predicted[figure]:.2f} s | {measured(row, 'windows', figure):.2f} s "
            f"| {error_ratio(row, 'windows', figure):+.1%}"
            if predicted
            else f"not predicted | {measured(row, 'windows', figure):.2f} s | "
            for figure in ("mean", LONGEST)
        )
        count = sum(
            (repeat["truth"]["windows"] or {}).get("count", 0) for repeat in repeats_of([row])
        )
        yield f"| {setting_name(row)} | {count} | {' | '.join(figures)} |"
    yield ""


def _backlogs(fitted: Sequence[Row], live: Path) -> list[Row]:
    """Those of the campaign, and in their place those whose rows have event times of live ones."""
    as_live = {row["workload"]: row for row in by_setting(lines_of(live))}
    return [as_live.get(row["workload"], row) for row in fitted if is_backlog(row)]


def _saturation(rows: Sequence[Row]) -> Iterator[str]:
    """Of runs on a stream, each by itself: did they keep up, and were they called stable."""
    open_runs = [row for row in rows if not is_backlog(row) and is_undisturbed(row)]
    counts = {
        (kept_up, stable): [
            row["name"]
            for row in open_runs
            if fell_behind(row) is not kept_up and row["predicted"]["stable"] is stable
        ]
        for kept_up in (True, False)
        for stable in (True, False)
    }
    yield from headed("| | called stable | called unstable |")
    for kept_up, name in ((True, "kept up"), (False, "fell behind")):
        yield f"| {name} | {len(counts[kept_up, True])} | {len(counts[kept_up, False])} |"
    yield ""
    for kept_up, stable, what in (
        (False, True, "Fell behind although called stable"),
        (True, False, "Kept up although called unstable"),
    ):
        names = counts[kept_up, stable]
        yield f"{what}: {', '.join(names) if names else 'none'}."
        yield ""
    warned = [
        f"{row['name']} ({error_ratio(row, 'latency', 'mean'):+.0%})"
        for row in open_runs
        if _is_warned_of(row)
    ]
    yield (
        "Close to saturation according to their own prediction and therefore not judged above, "
        f"with the error of the mean: {', '.join(warned) or 'none'}."
    )
    yield ""
    disturbed = [row["name"] for row in rows if not is_undisturbed(row)]
    yield f"Disturbed by other processes, so not judged: {', '.join(disturbed) or 'none'}."
    yield ""


def _is_warned_of(row: Row) -> bool:
    return is_warned(row) and row["predicted"]["latency"] is not None and not fell_behind(row)


def _details(rows: Sequence[Row]) -> Iterator[str]:
    yield from headed(
        "| setting | rows/s | others' cores | mean: predicted | measured | repeats | error "
        "| p99: predicted | measured | repeats | error |"
    )
    for row in rows:
        if not is_judged(row):
            continue
        repeats = repeats_of([row])
        figures = (_figure_cells(row, repeats, figure) for figure in ("mean", "p99"))
        others = max(repeat["cores_of_others"] for repeat in repeats)
        yield (
            f"| {setting_name(row)}, {row['group']} | {row['rate_per_s']:,.0f} | {others:.2f} "
            f"| {' | '.join(figures)} |"
        )
    yield ""


def _figure_cells(row: Row, repeats: Sequence[Row], figure: str) -> str:
    predicted, true = row["predicted"]["latency"][figure], row["truth"]["latency"][figure]
    each = ", ".join(f"{repeat['truth']['latency'][figure]:.2f}" for repeat in repeats)
    return f"{predicted:.2f} s | {true:.2f} s | {each} | {predicted / true - 1:+.1%}"


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results")
    parser.add_argument("--output", type=Path, required=True, help="Markdown file")


def run(given: argparse.Namespace) -> None:
    """Write the page and its pictures."""
    plots = given.output.parent / "img"
    plots.mkdir(parents=True, exist_ok=True)
    scatter(judged_settings(given.results), plots / "accuracy-scatter.svg")
    if groups := promises_by_group(_fitted_settings(given.results), given.results):
        reliability_diagram(groups, plots / "accuracy-reliability.svg")
    given.output.write_text(page(given.results))
    print(given.output)
