"""What a group left behind: its event logs, read once, and what was measured."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from read_logs import LogsOfRuns, read_logs_of_runs
from result_lines import lines_of

from campaign.schedule import FIT_SET, Group, fit_set_digest
from headway.domain import JobProfile
from headway.errors import HeadwayError
from headway.profiler.streaming.job_runs import runs_of_job
from headway.profiler.streaming.samples import QueryRun

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGroup:
    """What a group left behind."""

    group: Group
    truths: Sequence[Row]
    log: LogsOfRuns
    _runs: dict[str, QueryRun | None] = field(default_factory=dict, repr=False)

    def of(self, workload: str) -> list[Row]:
        """The runs of one workload."""
        return [row for row in self.truths if row["workload"] == workload]

    def fitted_on(self, rows: Sequence[Row]) -> JobProfile:
        """A profile of some runs."""
        return self.log.profile([_query_of(row) for row in rows])

    def run_of(self, row: Row) -> QueryRun | None:
        """The steady batches of one run; None if they are too few."""
        name = _query_of(row)
        if name not in self._runs:
            try:
                self._runs[name] = runs_of_job(self.log.collected, self.log.logs, [name]).runs[0]
            except HeadwayError:
                self._runs[name] = None
        return self._runs[name]

    def jvm_age_s(self, row: Row) -> float:
        """Of the JVM that ran it, in the middle of what was measured."""
        began_s = max(start for start in self.log.jvm_starts_s if start <= row["started_s"])
        truth = row["truth"]
        middle_s = (truth["from_s"] + truth["to_s"]) / 2 if truth else row["started_s"]
        return float(middle_s - began_s)


def _query_of(row: Row) -> str:
    """What its query is called in the log: one that was cut has the number of another process."""
    return str(row.get("query", row["name"]))


def read_group(group: Group, folder: Path) -> MeasuredGroup:
    """The event logs of a group, read once, and what was measured."""
    print(f"{group.name}: reading", file=sys.stderr)
    truths = lines_of(folder / "truth.jsonl")
    others = [row["name"] for row in truths if row.get("fit_set") != fit_set_digest()]
    if others:
        raise HeadwayError(
            f"{folder}: {len(others)} runs are of another fit set than {FIT_SET.name} "
            f"(first: {others[0]}); the settings that are fitted are never changed after a run"
        )
    return MeasuredGroup(
        group=group,
        truths=truths,
        log=read_logs_of_runs(folder / "log"),
    )
