"""The page about real queries under each policy, from the committed results.

    python benchmarks/run.py real_gate_page --output docs/scheduling-real.md

Tables and pictures; nothing is measured. Without results the page says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pages import headed, on_days, yes_or_no
from real.busy import busy_ratio, measured_busy_ratio
from real.cells import CELLS, TARGET_S, WAY_OF, WAYS
from real.comparison import (
    Difference,
    Runs,
    best_of_sparks,
    difference,
    mean_s,
    quantile_s,
    runs_of_ways,
)
from real.judged import Judged, judged_verdicts, means_table, verdict_table
from real.measured import starves
from real.records import AUTO_MENDED, EARLIER, last_measured, starving_ways
from real_gate import NUM_CORES, RESULTS
from result_lines import lines_of, machine_of

from headway.units import counted

PICTURES = Path(__file__).parents[2] / "docs" / "img"
GOAL_RATIO, FALSIFIED_RATIO = -0.40, -0.25

HEAD = f"""\
# Real queries that take turns

Made by `make scheduling-real-page` from `benchmarks/scheduling/results`, which
`make scheduling-real` writes. Queries count the views of each advertising campaign in windows of
5 s, as in the Yahoo benchmark, on Spark with 2 cores. The load of a cell is its input rate over the
rate at which its queries together process a backlog, in batches with some seconds of rows. Window
latency is measured from the end of the window until its result is in the sink, minus the watermark
delay. A window that is still open at the end of a run, more than {TARGET_S:g} s after it was due,
counts with its latency so far. One session runs all ways of a cell in random order. *Busy by
profile* is the work of the batches and rows of a run, including that of the driver, according to
the profile of each kind of query alone, over the available core time; *measured* is the measured
share of busy cores. Under FAIR, pools without a running task tie, and Spark then orders them by
name: the last ones starve if the first ones run as fast as possible. The best of Spark's own ways
(*) is the one with the least mean among those that starve no query, in other words, those in which
each query reads at least half of its rows. Simulations are in [scheduling.md](scheduling.md).
"""
NOTHING_YET = (
    "Nothing has been measured yet: it takes some hours on a machine without other load.\n"
)


def options(parser: argparse.ArgumentParser) -> None:
    """What may be asked."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results")
    parser.add_argument("--pictures", type=Path, default=PICTURES, help="folder of pictures")


def text(given: argparse.Namespace) -> str:
    """The page."""
    folder = given.results
    lines = last_measured(lines_of(folder / "runs.jsonl"))
    verdicts = lines_of(folder / "verdicts.jsonl")
    num_new = len(lines)
    for earlier in EARLIER:
        there = {one["cell"] for one in lines}
        before = last_measured(lines_of(folder / earlier / "runs.jsonl"))
        lines += [one for one in before if one["cell"] not in there]
        verdicts += lines_of(folder / earlier / "verdicts.jsonl")
    new_cells = {one["cell"] for one in lines[:num_new]}
    cells = {}
    for cell in CELLS:
        runs = runs_of_ways([one for one in lines if not one["failed"]], cell.name)
        if any(len(one) for of in runs.values() for one in of.values()):
            cells[cell.name] = runs
    shed = lines_of(given.results / "shedding.jsonl")
    if not cells:
        return "\n".join([HEAD, NOTHING_YET, *_shedding(shed, given.pictures)]).rstrip() + "\n"
    judged = [*judged_verdicts(lines, verdicts)]
    parts = [HEAD, _lengths(lines), _earlier([name for name in cells if name not in new_cells])]
    parts += [*_left_out(cells), *_starved(lines)]
    parts += _goal(cells, lines)
    parts += _pictures(cells, judged, given.pictures)
    for name, runs in cells.items():
        parts += _cell_table(name, runs, lines, folder)
    parts += verdict_table(judged)
    parts += means_table(judged)
    parts += _gate_table(lines)
    parts += _shedding(shed, given.pictures)
    return "\n".join(parts) + "\n"


def _lengths(lines: Sequence[Mapping[str, Any]]) -> str:
    """How long was measured, and when."""
    counted_s = sorted(one["counted_s"] for one in lines)
    load = max(one["load_average"] for one in lines)
    when = on_days(one["at"][:10] for one in lines)
    runs = counted(1 + max(one["run"] for one in lines), "run")
    num_machines = len({machine_of(one) for one in lines})
    on = "" if num_machines == 1 else f" on {counted(num_machines, 'machine')}"
    return (
        f"Measured {when}{on}, with at most {runs} of each way and cell; "
        f"{counted_s[0]:.0f} to {counted_s[-1]:.0f} s of a run count. The load average of the "
        f"machine was at most {load:.1f}. A single run has no interval; it shows which cells are "
        "worth repeating.\n"
    )


def _earlier(cells: Sequence[str]) -> str:
    """Which cells were measured at other loads only."""
    if not cells:
        return ""
    return (
        f"For {', '.join(cells)} there are only earlier runs, whose load is relative to what each "
        "kind of query processes alone. Together, queries process less (see *busy*), so some of "
        "these runs were close to capacity or above it, where latency grows with the length of the "
        "run.\n"
    )


def _left_out(cells: Mapping[str, Mapping[str, Runs]]) -> Iterator[str]:
    """Cells and ways of which there is no run."""
    missing = [
        f"{way.name} of {cell.name}"
        for cell in CELLS
        for way in WAYS
        if way.name not in cells.get(cell.name, {})
    ]
    if missing:
        yield f"Not measured: {', '.join(missing)}.\n"


def _starved(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Runs in which some query read less than half of its rows, except under FAIR."""
    found = [
        f"{line['way']} of {line['cell']}, run {line['run'] + 1}"
        for line in lines
        if not WAY_OF[line["way"]].in_pools and starves(line)
    ]
    if found:
        yield (
            "A query read less than half of its rows, without a failure and for a reason that is "
            f"not known yet, in {counted(len(found), 'run')}: {', '.join(found)}. The run counts "
            "with its open windows.\n"
        )


def _goal(
    cells: Mapping[str, Mapping[str, Runs]], lines: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """What was to be shown: spread ends at a load of 0.7 and more."""
    yield "## The goal\n"
    yield (
        "With spread window ends and a load of 0.7 or more, the mean window latency under "
        "`promise` is to be at least 40% below that of the best of Spark's own ways; less than 25% "
        "falsifies the claim. Intervals are 95% intervals by bootstrap over paired runs and their "
        "windows. The p99 must not be higher, and the share of offered rows that are read must not "
        "be lower.\n"
    )
    yield from headed(
        "| cell | best of Spark's own | mean | promise | mean | difference | interval | verdict | "
        "p99 | promise | rows of offered | promise |"
    )
    for cell in CELLS:
        runs = cells.get(cell.name)
        if runs is None or cell.aligned or cell.load < 0.7 or cell.num_stateless:
            continue
        best = best_of_sparks(runs, starving_ways(lines, cell.name))
        found = None if best is None else _difference(runs, "promise", best)
        if best is None or found is None:
            continue
        yield (
            f"| {cell.name} | {best} | {mean_s(runs[best]):.2f} s | promise | "
            f"{mean_s(runs['promise']):.2f} s | {found.ratio:+.0%} | {_interval(found)} | "
            f"{_goal_words(found)} | {quantile_s(runs[best], 0.99):.2f} s | "
            f"{quantile_s(runs['promise'], 0.99):.2f} s | "
            f"{_rows_ratio(lines, cell.name, best):.1%} | "
            f"{_rows_ratio(lines, cell.name, 'promise'):.1%} |"
        )
    yield ""


def _goal_words(found: Difference) -> str:
    if found.high is None:
        return "one run: no interval"
    if found.ratio <= GOAL_RATIO and found.high < 0.0:
        return "met"
    if found.ratio <= FALSIFIED_RATIO and found.high < 0.0:
        return "missed, not falsified"
    return "falsified"


def _pictures(
    cells: Mapping[str, Mapping[str, Runs]], judged: Sequence[Judged], folder: Path
) -> Iterator[str]:
    from real.pictures import distributions_picture, gains_picture, ways_picture

    folder.mkdir(parents=True, exist_ok=True)
    ways_picture(cells, folder / "scheduling-ways.svg")
    distributions_picture(cells, folder / "scheduling-distributions.svg")
    yield "Means of runs (dots) and p99 (end of the line) of each way:\n"
    yield "![Window latency of each way](img/scheduling-ways.svg)\n"
    yield "Share of windows up to a given latency (Spark's own ways dashed):\n"
    yield "![Distribution of window latency](img/scheduling-distributions.svg)\n"
    if judged:
        gains_picture(
            {one.name: one.predicted_gain_ratio for one in judged},
            {one.name: one.measured_gain_ratio for one in judged},
            folder / "scheduling-gains.svg",
        )
        yield "Predicted against measured gain over the best of Spark's own ways:\n"
        yield "![Predicted and measured gain](img/scheduling-gains.svg)\n"


def _cell_table(
    name: str, runs: Mapping[str, Runs], lines: Sequence[Mapping[str, Any]], folder: Path
) -> Iterator[str]:
    best = best_of_sparks(runs, starving_ways(lines, name))
    yield f"## {name}\n"
    yield from headed(
        "| way | runs | windows | mean | p90 | p99 | late | open | rows of offered | rows, mean | "
        "batches/s | busy by profile | measured | against Spark's best | interval |"
    )
    for way in WAYS:
        of = runs.get(way.name)
        if not of:
            continue
        mine = [one for one in lines if one["cell"] == name and one["way"] == way.name]
        all_s = np.concatenate(list(of.values()))
        queries = [query for line in mine for query in line["queries"]]
        row_means = [one["row_mean_s"] for one in queries if one["row_mean_s"] is not None]
        found = None if best in (None, way.name) else _difference(runs, way.name, str(best))
        cells = (
            way.words + (" *" if way.name == best else ""),
            len(of),
            len(all_s),
            f"{mean_s(of):.2f} s",
            f"{quantile_s(of, 0.9):.2f} s",
            f"{quantile_s(of, 0.99):.2f} s",
            f"{np.mean(all_s > TARGET_S):.0%}",
            sum(one["num_open"] for one in queries),
            f"{_rows_ratio(lines, name, way.name):.1%}",
            f"{np.mean(row_means):.2f} s" if row_means else "-",
            f"{_batches_per_s(mine):.1f}",
            _share(busy_ratio(mine, folder, NUM_CORES)),
            _share(measured_busy_ratio(mine, NUM_CORES)),
            "-" if found is None else f"{found.ratio:+.0%}",
            "-" if found is None else _interval(found),
        )
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""


def _batches_per_s(lines: Sequence[Mapping[str, Any]]) -> float:
    """Of all queries together."""
    batches = sum(query["num_batches"] for line in lines for query in line["queries"])
    return float(batches / sum(line["counted_s"] for line in lines))


def _share(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.0%}"


def _rows_ratio(lines: Sequence[Mapping[str, Any]], cell: str, way: str) -> float:
    """Rows read of those that were offered."""
    mine = [one for one in lines if (one["cell"], one["way"]) == (cell, way)]
    queries = [query for line in mine for query in line["queries"]]
    return float(sum(one["rows"] for one in queries) / sum(one["offered_rows"] for one in queries))


def _difference(runs: Mapping[str, Runs], way: str, other: str) -> Difference | None:
    return difference(runs[way], runs[other]) if way in runs and other in runs else None


def _interval(found: Difference) -> str:
    if found.low is None or found.high is None:
        return "-"
    return f"{found.low:+.0%} to {found.high:+.0%}"


def _gate_table(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What the gate itself takes, and its errors of durations."""
    reports = [line for line in lines if line["report"] is not None]
    if not reports:
        return
    yield "## The gate itself\n"
    yield (
        "Decisions are timed from the moment that a query is idle until the grants are given. "
        f"Runs of `auto` before {AUTO_MENDED[:16].replace('T', ', ')} UTC do not count: it chose a "
        "policy before it knew what rows cost.\n"
    )
    yield from headed(
        "| way | runs | decisions | p50 | p99 | policies in force | "
        "predicted duration over measured |"
    )
    for way in WAYS:
        mine = [line["report"] for line in reports if line["way"] == way.name]
        if not mine:
            continue
        pairs = [
            (predicted, observed)
            for one in mine
            for predicted, observed in zip(
                one["predicted_duration_s"], one["observed_duration_s"], strict=True
            )
            if observed
        ]
        ratio = np.mean([one for one, _ in pairs]) / np.mean([one for _, one in pairs])
        policies = ", ".join(sorted({one["policy"] for one in mine}))
        yield (
            f"| {way.name} | {len(mine)} | {sum(one['num_decisions'] for one in mine)} | "
            f"{1000 * np.median([one['decision_p50_s'] for one in mine]):.1f} ms | "
            f"{1000 * max(one['decision_p99_s'] for one in mine):.1f} ms | {policies} | "
            f"{ratio:.2f} |"
        )


def _shedding(lines: Sequence[Mapping[str, Any]], pictures: Path) -> Iterator[str]:
    """Rows in time beyond capacity, beside the formula."""
    if not lines:
        return
    from real.pictures import shedding_picture

    yield "\n## Rows shed above capacity\n"
    yield (
        "A windowed count in which one row in five is expensive. A row is in time up to 2 s after "
        "its arrival. `none` sheds no rows, `blind` sheds by age alone, `by-cost` sheds expensive "
        "rows first. Goals: the share in time is within 5 points of the prediction, `by-cost` is "
        "above `blind` and `blind` above `none`, and no row is lost or counted twice.\n"
    )
    yield from headed(
        "| load | way | runs | in time | predicted | within 5 points | shed | rows that differ |"
    )
    means: dict[tuple[float, str], tuple[float, float]] = {}
    for load in sorted({line["load"] for line in lines}):
        for way in dict.fromkeys(line["way"] for line in lines):
            mine = [line for line in lines if (line["load"], line["way"]) == (load, way)]
            if not mine:
                continue
            found = float(np.mean([line["in_time_ratio"] for line in mine]))
            predicted = float(np.mean([line["predicted_ratio"] for line in mine]))
            means[load, way] = found, predicted
            rows = sum(line["rows"] for line in mine)
            yield (
                f"| {load:g} | {way} | {len(mine)} | {found:.1%} | {predicted:.1%} | "
                f"{yes_or_no(abs(found - predicted) <= 0.05)} | "
                f"{sum(line['shed'] for line in mine) / max(rows, 1):.1%} | "
                f"{sum(line['differing'] for line in mine)} |"
            )
    pictures.mkdir(parents=True, exist_ok=True)
    shedding_picture(means, pictures / "shedding.svg")
    yield "\n![Rows in time above capacity](img/shedding.svg)\n"
