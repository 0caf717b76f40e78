"""The event log of runs, read once, and profiles of some of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.domain import JobProfile
from headway.profiler.collect import collect
from headway.profiler.contents import CollectedLogs
from headway.profiler.engines.in_process import read_in_process
from headway.profiler.logs.sources import EventLog, find_event_logs
from headway.profiler.logs.unpacking import unpack
from headway.profiler.pieces import pieces_of
from headway.profiler.streaming.summarize import summarize
from headway.version import __version__


@dataclass(frozen=True, slots=True)
class LogsOfRuns:
    """What the logs hold, by number of the log."""

    logs: Mapping[int, EventLog]
    collected: CollectedLogs

    def profile(self, queries: Sequence[str]) -> JobProfile:
        """Fitted on some of the runs, by the names or ids of their queries."""
        return summarize(self.collected, self.logs, queries, __version__)

    @property
    def jvm_starts_s(self) -> list[float]:
        """When the first executor of each log started, since 1970."""
        return [
            min(one.added_s for one in facts.executors if one.added_s is not None)
            for facts in self.collected.applications.values()
        ]


def read_logs_of_runs(path: Path, tell: Callable[[str], None] = lambda _step: None) -> LogsOfRuns:
    """Read an event log, or a folder of them; ``tell`` hears each step."""
    found = find_event_logs([path])
    with tempfile.TemporaryDirectory() as scratch:
        logs = unpack(found.logs, Path(scratch)).logs
        tell("reading events")
        collected = collect(pieces_of(Path(scratch)), read_in_process)
    return LogsOfRuns(logs, collected)
