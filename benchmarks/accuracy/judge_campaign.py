"""Fits profiles on the fitted runs of a campaign and predicts all others.

Reads the work folder of `run_campaign`, and what is on record of it; writes one line per judged
run, truth and prediction, from which `campaign_page.py` makes the page at any time.

    python benchmarks/run.py judge_campaign WORK_FOLDER --output results/campaign.jsonl.gz
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from campaign.blocks import MAIN
from campaign.figures import is_backlog, is_undisturbed
from campaign.fixed_work import mean_loop_s, slower_ratio
from campaign.predicting import arrivals_of, errors_by_part, predicted_of, promises_of
from campaign.reading import MeasuredGroup, read_group
from campaign.record import put_back
from campaign.schedule import ACROSS, EVERY, FIT, GROUPS, VARIED, Setting
from campaign.workloads import WORKLOADS, Stream
from pages import made_by
from planned_anew import planned_anew
from planned_runs import plan_rows
from run_campaign import SPEED_FILE

from headway.domain import JobProfile
from headway.errors import HeadwayError

Row = dict[str, Any]


def judged(
    fitted: MeasuredGroup, measured: MeasuredGroup, workload: str, role: str = FIT
) -> Iterator[Row]:
    """Every run of a workload that was not fitted, predicted."""
    known = list(_known(fitted, workload, role))
    if not known:
        return
    profile = fitted.fitted_on(known)
    for row in measured.of(workload):
        if row["role"] in (FIT, VARIED) or row["truth"] is None:
            continue
        asked, beside_fit_s = _at_its_state(profile, row), mean_loop_s(known)
        slower = slower_ratio(row, beside_fit_s) if role == FIT else None
        arrivals = arrivals_of(asked, row, is_even=_is_even(row))
        yield {
            **row,
            "fitted": {
                "group": fitted.group.name,
                "role": role,
                "runs": len(known),
                "interpreter_s": beside_fit_s,
            },
            "predicted": predicted_of(asked, measured, row, arrivals, slower),
            "promises": promises_of(asked, measured, row, arrivals) if role == FIT else None,
            "parts": errors_by_part(asked, measured, row, arrivals) if role == FIT else None,
        }


def _at_its_state(profile: JobProfile, row: Row) -> JobProfile:
    """A state that grows, as a user could tell it: from nothing, to the middle of what is measured.

    One that follows the rate is the profile's to tell, and that of a backlog changes by the batch.
    """
    state = profile.state
    if state is None or state.rate_exponent > 0 or is_backlog(row):
        return profile
    asked = replace(profile, arrivals=replace(profile.arrivals, rate_per_s=row["rate_per_s"]))
    setting = Setting(**row["setting"])
    grown = asked.state_growth_per_s * (setting.warm_s + 0.5 * setting.measured_s(row["role"]))
    # What hardly grows is as large as it was.
    return (
        replace(profile, state=replace(state, rows=round(max(grown, 0.0))))
        if grown > (0.2 * state.rows)
        else profile
    )


def _known(fitted: MeasuredGroup, workload: str, role: str) -> Iterator[Row]:
    """The runs a profile is fitted on: those of a role, or every one that nobody disturbed."""
    for row in fitted.of(workload):
        if row["truth"] is None:
            continue
        of_every = row["role"] != VARIED and not is_backlog(row) and is_undisturbed(row)
        if role == row["role"] or (role == EVERY and of_every and fitted.run_of(row) is not None):
            yield row


def _is_even(row: Row) -> bool:
    """Whether the rows of a run arrive one by one at equal distances."""
    return WORKLOADS[row["workload"]].arriving(Stream(rate_per_s=row["rate_per_s"])).is_even


def left_out(measured: Mapping[str, MeasuredGroup]) -> Iterator[str]:
    """Runs that tell no latency, and why."""
    for one in measured.values():
        for row in one.truths:
            if row["truth"] is None:
                why = row.get("failed", "fewer than two batches after the warm-up")
                yield f"{row['name']}, {one.group.name}: {why}"


def read_groups(folder: Path) -> dict[str, MeasuredGroup]:
    """What the groups of a campaign left behind, by name."""
    present = [group for group in GROUPS.values() if (folder / group.name / "truth.jsonl").exists()]
    if not present:
        raise HeadwayError(f"{folder}: no group of a campaign in it; run run_campaign.py first")
    return {group.name: read_group(group, folder / group.name) for group in present}


def all_judged(measured: Mapping[str, MeasuredGroup]) -> Iterator[Row]:
    """All predictions of a campaign."""
    for one in measured.values():
        for workload in one.group.workloads:
            yield from judged(one, one, workload)
            yield from judged(one, one, workload, VARIED)
            yield from judged(one, one, workload, EVERY)
    for first, second in ACROSS:
        if first in measured and second in measured:
            for workload in GROUPS[first].workloads:
                yield from judged(measured[first], measured[second], workload)


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="work folder of run_campaign")
    parser.add_argument("--output", type=Path, required=True, help="gzipped JSON lines")


def run(given: argparse.Namespace) -> None:
    """Write the lines."""
    given.output.parent.mkdir(parents=True, exist_ok=True)
    put_back(given.folder)
    measured = read_groups(given.folder)
    lines = _write(given.output, all_judged(measured))
    plans = plan_rows(given.folder)
    if plans and MAIN.name in measured:
        _write(given.output.with_name("planned.jsonl.gz"), plans)
        anew = planned_anew(measured[MAIN.name], plans)
        _write(given.output.with_name("planned-anew.jsonl.gz"), anew)
    speed = given.folder / SPEED_FILE
    if speed.exists():
        given.output.with_name(SPEED_FILE).write_bytes(speed.read_bytes())
    given.output.with_name("campaign-machine.json").write_text(
        json.dumps(
            {
                "made": made_by("make accuracy-campaign", "PySpark")
                + " The page by `make accuracy`.",
                "left_out": list(left_out(measured)),
            },
            indent=2,
        )
        + "\n"
    )
    print(f"{given.output}: {lines} predictions")


def _write(path: Path, rows: Iterable[Row]) -> int:
    """How many lines were written; without a date in its header the same make the same file."""
    lines = [json.dumps(row) for row in rows]
    path.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", mtime=0))
    return len(lines)
