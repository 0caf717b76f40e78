"""What a campaign has measured so far, committed, so that it goes on on another machine.

A campaign takes longer than one quiet morning, and its work folder may be gone by the next. The
runs of whole blocks are committed with what each of their batches showed (`kept_runs.py`), and put
back into an empty folder before anything is run: what is on record is not measured again.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from result_lines import keep, lines_of

from campaign.kept_runs import read_lines
from campaign.schedule import GROUPS, fit_set_digest

Row = dict[str, Any]
RESULTS = Path(__file__).parents[1] / "results"
RUNS, PLANS = "kept-runs.jsonl.gz", "kept-plans.jsonl.gz"
OF_A_RECORD = ("run", "jvm_age_s", "dispersion")
"""What a line of `RUNS` has beside what was measured."""
_KEPT = "kept.jsonl"


def on_record(folder: Path) -> list[Row]:
    """Runs of a group that were put back: what their batches showed, and the age of their JVM."""
    return lines_of(folder / _KEPT)


def put_back(folder: Path, results: Path = RESULTS) -> int:
    """Into the work folder, what is committed and of the same fit set; how many runs that were."""
    committed = [row for row in read_lines(results / RUNS) if _is_alike(row)]
    num_runs = sum(
        put_back_runs(folder / group, [row for row in committed if row["group"] == group])
        for group in GROUPS
    )
    plans = folder / "planned" / "truth.jsonl"
    done = {row["name"] for row in lines_of(plans)}
    for row in read_lines(results / PLANS):
        if row["name"] not in done and _is_alike(row):
            keep(plans, row)
    return num_runs


def put_back_runs(place: Path, rows: Iterable[Row]) -> int:
    """Into the folder of a group, what is committed of its runs; how many were not there yet."""
    truths, probes = place / "truth.jsonl", place / "probes.jsonl"
    done = {row["name"] for row in lines_of(truths)}
    probed = {row["workload"] for row in lines_of(probes)}
    num_runs = 0
    for row in rows:
        if row["name"] in done:
            continue
        if row["workload"] not in probed:
            probed.add(row["workload"])
            # Where the group has fewer cores than rates are shares of, its own capacity.
            carried_per_s = row.get("limit_per_s", row["carried_per_s"])
            keep(probes, {"workload": row["workload"], "carried_per_s": carried_per_s})
        of_run = {name: row[name] for name in OF_A_RECORD}
        keep(place / _KEPT, {"name": row["name"], **of_run})
        keep(truths, {name: row[name] for name in row if name not in OF_A_RECORD})
        num_runs += 1
    return num_runs


def _is_alike(row: Row) -> bool:
    return bool(row.get("fit_set") == fit_set_digest())
