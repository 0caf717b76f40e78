"""What a group left behind: its event logs, read once, and what was measured.

Of runs of an earlier session the logs are gone; their batches are on record (`record.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from read_logs import LogsOfRuns, read_logs_of_runs
from result_lines import lines_of

from campaign.kept_runs import kept_run, run_of
from campaign.record import OF_A_RECORD, on_record
from campaign.schedule import FIT_SET, Group, digest_of
from headway.domain import Application, JobProfile
from headway.errors import HeadwayError
from headway.profiler.streaming.job_runs import runs_of_job, same_stages
from headway.profiler.streaming.samples import QueryRun
from headway.profiler.streaming.summarize import profile_of_runs
from headway.version import __version__

Row = dict[str, Any]
_APPLICATION = Application(id="on-record", name="on record", spark_version="unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGroup:
    """What a group left behind; ``kept`` are the runs without a log, by name."""

    group: Group
    truths: Sequence[Row]
    log: LogsOfRuns | None
    kept: Mapping[str, Row] = field(default_factory=dict)
    _runs: dict[str, QueryRun | None] = field(default_factory=dict, repr=False)

    def of(self, workload: str) -> list[Row]:
        """The runs of one workload."""
        return [row for row in self.truths if row["workload"] == workload]

    def fitted_on(self, rows: Sequence[Row]) -> JobProfile:
        """A profile of some runs."""
        if self.log is not None and not any(row["name"] in self.kept for row in rows):
            return self.log.profile([_query_of(row) for row in rows])
        runs = [run for row in rows if (run := self.run_of(row)) is not None]
        runs.sort(key=lambda run: run.batches[0].started_s)
        notes: list[str] = []
        alike = same_stages(runs, notes)
        # As Spark calls applications whose driver and executors are one process.
        prefix = "local-" if self.group.master.startswith("local[") else ""
        application = replace(_APPLICATION, id=prefix + _APPLICATION.id)
        return profile_of_runs(alike, (application,), __version__, notes=notes)

    def run_of(self, row: Row) -> QueryRun | None:
        """The steady batches of one run; None if they are too few."""
        name = _query_of(row)
        if name not in self._runs:
            self._runs[name] = self._found(row, name)
        return self._runs[name]

    def _found(self, row: Row, query: str) -> QueryRun | None:
        if row["name"] in self.kept:
            run = self.kept[row["name"]]["run"]
            return None if run is None else run_of(run)
        if self.log is None:
            return None
        try:
            runs, _, _ = runs_of_job(self.log.collected, self.log.logs, [query])
            return runs[0]
        except HeadwayError:
            return None

    def jvm_age_s(self, row: Row) -> float:
        """Of the JVM that ran it, in the middle of what was measured."""
        if row["name"] in self.kept:
            return float(self.kept[row["name"]]["jvm_age_s"])
        if self.log is None:
            raise HeadwayError(f"{row['name']}: neither its log nor its record is there")
        began_s = max(start for start in self.log.jvm_starts_s if start <= row["started_s"])
        truth = row["truth"]
        middle_s = (truth["from_s"] + truth["to_s"]) / 2 if truth else row["started_s"]
        return float(middle_s - began_s)

    def record_of(self, row: Row, *, is_even: bool = False) -> Row:
        """What is committed of a run beside its line; what was on record stays as it was.

        ``is_even`` is for workloads whose rows arrive evenly: their dispersion is not estimated.
        """
        if row["name"] in self.kept:
            before = self.kept[row["name"]]
            return {name: before[name] for name in OF_A_RECORD}
        run = self.run_of(row) if row["truth"] is not None else None
        return {
            "jvm_age_s": self.jvm_age_s(row),
            "dispersion": 0.0 if is_even or run is None else run.arrivals.dispersion_ratio,
            "run": None if run is None else kept_run(run),
        }


def _query_of(row: Row) -> str:
    """What its query is called in the log: one that was cut has the number of another process."""
    return str(row.get("query", row["name"]))


def read_group(group: Group, folder: Path, split: Path = FIT_SET) -> MeasuredGroup:
    """The event logs of a group, read once, and what was measured of the split of a file."""
    print(f"{group.name}: reading", file=sys.stderr)
    truths = lines_of(folder / "truth.jsonl")
    others = [row["name"] for row in truths if row.get("fit_set") != digest_of(split)]
    if others:
        raise HeadwayError(
            f"{folder}: {len(others)} runs are of another fit set than {split.name} "
            f"(first: {others[0]}); the settings that are fitted are never changed after a run"
        )
    return MeasuredGroup(
        group=group,
        truths=truths,
        log=read_logs_of_runs(folder / "log") if (folder / "log").exists() else None,
        kept={row["name"]: row for row in on_record(folder)},
    )
