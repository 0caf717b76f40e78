"""Backlogs whose rows have the event times of live ones, and the runs they are predicted from.

In the campaign of November 2026, rows of a backlog had arrived at a million per second, so a state
that follows event time held what it never holds live: two joined streams kept every row. Others ran
beside the state of a query that had ended (`campaign/left_state.py`). Here rows arrived at the rate
that the workload carries, and runs begin without the state of others. As in the campaign, profiles
are fitted on the settings of `fit-set.json`, and every repeat has a JVM of its own. What is on
record is not run again; `campaign_page.py` puts these backlogs in place of the campaign's.

    python benchmarks/run.py live_backlogs WORK_FOLDER --count
    python benchmarks/run.py live_backlogs WORK_FOLDER --workload join --minutes 8
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from campaign.backlog_table import backlog_table
from campaign.blocks import JVM_S, MAIN, Window
from campaign.figures import Row, by_setting
from campaign.kept_runs import read_lines, write_lines
from campaign.reading import MeasuredGroup, read_group
from campaign.record import RESULTS, put_back_runs
from campaign.running import PROBE_S, WARM_UP_S, run_group
from campaign.schedule import FIT, NUM_REPEATS, Run, runs_of
from campaign.workloads import WORKLOADS, Stream
from judge_campaign import judged
from result_lines import lines_of

AFFECTED = ("join", "growing", "json", "slow-checkpoint", "sliding")
"""Workloads whose backlogs held another state than live, or ran beside one that was left."""
RUNS, JUDGED = "live-backlog-runs.jsonl.gz", "live-backlogs.jsonl"


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="work folder, outside the repository")
    parser.add_argument(
        "--workload", action="append", choices=MAIN.workloads, help="default: those affected"
    )
    parser.add_argument("--minutes", type=float, help="begin only what ends within so long")
    parser.add_argument("--count", action="store_true", help="print what is left, and run nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results")


def run(given: argparse.Namespace) -> None:
    """Run what is left and there is time for, keep it, and judge it."""
    place = given.folder / MAIN.name
    put_back_runs(place, read_lines(given.results / RUNS))
    workloads = given.workload or AFFECTED
    if not given.count:
        window = Window(given.minutes)
        for repeat in range(1, NUM_REPEATS + 1):
            runs = left(place, workloads, repeat)
            if runs and window.has_room_for(_before_s(runs) + runs[0].lasts_s):
                run_group(MAIN, place, runs, window.has_room_for)
        _keep_and_judge(read_group(MAIN, place), given.results)
    for repeat in range(1, NUM_REPEATS + 1):
        runs = left(place, workloads, repeat)
        needed_s = _before_s(runs) + sum(each.lasts_s for each in runs) if runs else 0.0
        print(f"repeat {repeat}: {len(runs)} runs left, {needed_s / 60:.1f} min")


def left(place: Path, workloads: Sequence[str], repeat: int) -> list[Run]:
    """The fitted settings and the backlog of each workload that are not on record yet."""
    done = {row["name"] for row in lines_of(place / "truth.jsonl")}
    return [
        each
        for each in runs_of(MAIN)
        if each.repeat == repeat
        and each.workload in workloads
        and (each.role == FIT or each.setting.backlog)
        and each.name not in done
    ]


def _before_s(runs: Sequence[Run]) -> float:
    """The start of a JVM, and what is compiled in it before anything is measured [s]."""
    return JVM_S + WARM_UP_S + 2.0 * PROBE_S * len({each.workload for each in runs})


def _keep_and_judge(measured: MeasuredGroup, results: Path) -> None:
    write_lines(results / RUNS, _records(measured))
    rows = list(predicted_backlogs(measured))
    (results / JUDGED).write_text("".join(json.dumps(row) + "\n" for row in rows))
    print("\n".join(backlog_table(by_setting(rows))))


def _records(measured: MeasuredGroup) -> Iterator[Row]:
    for row in measured.truths:
        is_even = WORKLOADS[row["workload"]].arriving(Stream(rate_per_s=1.0)).is_even
        yield {**row, **measured.record_of(row, is_even=is_even)}


def predicted_backlogs(measured: MeasuredGroup) -> Iterable[Row]:
    """Every backlog, predicted from the fitted runs of its workload."""
    for workload in dict.fromkeys(row["workload"] for row in measured.truths):
        yield from judged(measured, measured, workload)
