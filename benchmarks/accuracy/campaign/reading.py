"""What a group left behind: its event logs, read once, and what was measured."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.play import read_lines
from campaign.schedule import Group
from headway.domain import JobProfile
from headway.profiler.collect import CollectedLogs, collect
from headway.profiler.events import read_events
from headway.profiler.logs.sources import EventLog, find_event_logs
from headway.profiler.logs.unpacking import unpack
from headway.profiler.streaming.summarize import summarize
from headway.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a group left behind."""

    group: Group
    truths: Sequence[Row]
    collected: CollectedLogs
    logs: Mapping[int, EventLog]

    def of(self, workload: str) -> list[Row]:
        """The runs of one workload."""
        return [row for row in self.truths if row["workload"] == workload]

    def fitted_on(self, rows: Sequence[Row]) -> JobProfile:
        """A profile of some runs."""
        names = [row["name"] for row in rows]
        return summarize(self.collected, self.logs, names, __version__)

    def jvm_age_s(self, row: Row) -> float:
        """Of the JVM that ran it, in the middle of what was measured."""
        starts = [
            min(one.added_s for one in facts.executors if one.added_s is not None)
            for facts in self.collected.applications.values()
        ]
        began_s = max(start for start in starts if start <= row["started_s"])
        truth = row["truth"]
        middle_s = (truth["from_s"] + truth["to_s"]) / 2 if truth else row["started_s"]
        return float(middle_s - began_s)


def read_group(spark: SparkSession, group: Group, folder: Path) -> Played:
    """The event logs of a group, read once, and what was measured."""
    found = find_event_logs([folder / "log"])
    with tempfile.TemporaryDirectory() as scratch:
        logs = unpack(found.logs, Path(scratch)).logs
        print(f"{group.name}: reading", file=sys.stderr)
        collected = collect(read_events(spark, Path(scratch)).persist(), lambda *_: None)
    return Played(
        group=group,
        truths=read_lines(folder / "truth.jsonl"),
        collected=collected,
        logs=logs,
    )
