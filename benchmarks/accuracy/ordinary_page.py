"""The page about ordinary jobs, from the committed lines of `judge_ordinary.py`.

python benchmarks/run.py ordinary_page --output docs/ordinary-jobs.md
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from campaign.figures import is_judged
from campaign.record import RESULTS
from campaign.speed_table import corrected_by_speed, latencies_by_speed
from error_parts import parts_tables
from judge_ordinary import judged_lines
from ordinary.jobs import JOBS
from ordinary.limits import AskedRate, decided
from ordinary.mechanisms import mechanisms_table
from ordinary.split import ADVISED, MOST_ADVISED, split_digest
from ordinary.tables import (
    GOALS,
    by_table,
    floor_table,
    judged_lines_of,
    left_out_table,
    stability_table,
    stages_table,
    summary_table,
)
from pages import headed

from headway.errors import HeadwayError

Row = dict[str, Any]


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results")


def text(given: argparse.Namespace) -> str:
    """The page; an error before a block was judged."""
    rows = judged_lines(given.results)
    if not rows:
        raise HeadwayError("no results yet: make ordinary-jobs BLOCK=1 on a quiet machine first")
    others = {row["fit_set"] for row in rows if "fit_set" in row} - {split_digest()}
    if others:
        raise HeadwayError(f"results of split {', '.join(sorted(others))}, not {split_digest()}")
    machine = json.loads((given.results / "ordinary-machine.json").read_text(encoding="utf-8"))
    lines = page_lines(rows, decided(given.results), machine["made"])
    return "\n".join(lines).rstrip() + "\n"


def page_lines(rows: list[Row], decided: Mapping[AskedRate, bool], made: str) -> Iterator[str]:
    """The whole page."""
    ran = sorted({str(row["workload"]) for row in rows})
    yield "# Ordinary jobs\n"
    yield (
        f"{len(ran)} of {len(JOBS)} jobs so far, as production has them, with Spark's own "
        "defaults (adaptive execution on): queries of Nexmark, and jobs of a shop with files, "
        "static tables, a broker and state that Python keeps. Each was run once at one rate, then "
        f"as `headway profile --advise` asked for after that run alone ({MOST_ADVISED} runs at "
        "most), and predicted at settings never seen: another rate, another trigger interval, "
        "fewer cores. Which settings these are was drawn before the first run "
        "(`benchmarks/accuracy/ordinary-split.json`).\n"
    )
    yield from summary_table(rows)
    yield (
        "Promises are drawn around each prediction without a look at what was measured. The errors "
        "of the first block (nexmark-q8 and q11, shop-kafka and shop-two-sinks) led to a "
        "correction of how durations fall with the age of a JVM (E6), so its runs are no longer "
        "unseen; those of the other jobs are.\n"
    )
    yield "## Stability\n"
    yield from stability_table(rows, decided)
    yield (
        "The capacity is that of a backlog, whose batches a probe enlarges until they take 1.5 s "
        "and become no faster. Headway calls a setting stable up to nine tenths of its capacity "
        'and is asked at 81% and at 110% of the probe: a false "not stable" is one at 81%, a false '
        '"stable" one at 110%, and where a profile cannot tell, Headway says so (not known). '
        "Where a verdict contradicts the probe, a run of a minute at that very rate decides, if "
        "Spark itself makes the stream or files land, and at most a million rows per second are "
        "asked for: the last columns count what is still by the probe alone, and what such a run "
        "says otherwise. Such runs showed where probes go wrong: shop-files carries its 341,000 "
        "rows/s, since a backlog of small files costs more than the larger ones that land at that"
        " rate, and shop-deduplicate its 221,000 rows/s, at which another day's run filled the "
        "heap with its state: Headway plans memory for the state, but does not predict such a "
        "failure. A topic that is read to its end has no producer beside it. Verdicts are those of "
        "which Headway is sure: durations at the ends of 90% intervals say the same (P32). Runs "
        "that differ by 12%, and a fit to four of them, leave 0.78 to 1.27 of a capacity open, so "
        "that even a profile that is exactly right decides neither of the two questions beside it; "
        "the second table has those further away. Too close to saturation, between nine tenths of "
        "the load and all of it, is no verdict. Two jobs of the first block, shop-kafka and "
        "shop-two-sinks, were run anew with at least 24 batches in each advised run, and only these"
        " are fitted; the rates of its "
        "other two are shares of a capacity that a shorter probe found much too low, so they have "
        "little load. Predictions for one core are from runs on two, of one "
        "machine: the correction for fewer slots (T10) was found in these very runs, so its part "
        "of the error is that of a fit. Runs of "
        "fewer than ten batches are not counted here: a merge into a Delta table takes 7 s "
        "whatever its rows, so that neither 70 s of it nor its probe show a trend.\n"
    )
    yield "## The floor\n"
    yield from floor_table(rows)
    yield (
        "The machine itself is not always equally fast: beside each run, a loop of the interpreter "
        "is timed once a second.\n"
    )
    judged = [row for row in judged_lines_of(rows, ADVISED) if is_judged(row)]
    yield from corrected_by_speed(judged)
    yield from latencies_by_speed(judged, GOALS)
    yield "## By what was never seen\n"
    yield from by_table(rows, "why", "judged at")
    yield "## By job\n"
    yield from by_table(rows, "workload", "job")
    yield "## What the errors are made of\n"
    yield from parts_tables(judged_lines_of(rows, ADVISED))
    yield from stages_table(rows)
    yield "## Where large errors come from\n"
    yield (
        "The means that were off by more than 15% on 2026-11-29 after the advised runs, and the "
        "false verdicts, were traced to their parts in the logs.\n"
    )
    yield from mechanisms_table()
    yield "## Left out\n"
    yield from left_out_table(rows)
    yield "## The jobs\n"
    yield from headed("| job | what it does |")
    yield from (f"| {name} | {JOBS[name].does} |" for name in ran)
    yield f"\n{made} The page by `make ordinary-page`."
