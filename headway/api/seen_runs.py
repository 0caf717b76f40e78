"""The batches of profiled runs over time: those that the profile uses, and the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headway.api.profile import reading
from headway.domain.log_questions import LogsQuestion
from headway.domain.sheet import Section
from headway.profiler.streaming.batch_samples import is_timed, known_rows
from headway.profiler.streaming.job_runs import runs_of_job
from headway.report.profile_sheet import time_line


def seen_runs(logs: Sequence[str | Path]) -> tuple[Section, ...]:
    """The batches of the runs in some logs, including those that a profile leaves out.

    Raises EventLogError if no log can be read, or none contains a streaming query.
    """
    with reading(list(logs), LogsQuestion()) as logs_read:
        runs, _, _ = runs_of_job(logs_read.collected, logs_read.logs, ())
        reports = logs_read.collected.batches
    lines = []
    for run in runs:
        used = {batch.batch_id for batch in run.batches}
        timed = {
            report["batch_id"]: report
            for report in reports
            if report["query_id"] == run.query_id and is_timed(report) and known_rows(report) > 0
        }
        first_s = min(report["started_s"] for report in timed.values())
        batches = [
            (
                report["started_s"] - first_s,
                report["phases_s"]["triggerExecution"],
                int(known_rows(report)),
                batch_id in used,
            )
            for batch_id, report in sorted(timed.items())
        ]
        lines.append(time_line(run.query_name or run.query_id, *zip(*batches, strict=True)))
    return tuple(lines)
