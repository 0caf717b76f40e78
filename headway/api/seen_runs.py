"""The batches of profiled runs, for time lines: those that the profile uses, and the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headway.api.profile import NO_CONF, reading
from headway.report.profile_page import SeenBatch, SeenRun


def seen_runs(logs: Sequence[str | Path]) -> tuple[SeenRun, ...]:
    """The batches of the runs in some logs, including those that a profile leaves out.

    Raises
    ------
    EventLogError
        If no log can be read, or none contains a streaming query.
    """
    from headway.profiler.streaming.batch_samples import is_timed, known_rows
    from headway.profiler.streaming.job_runs import runs_of_job

    with reading(list(logs), "auto", "local[*]", NO_CONF, None, None) as read:
        found, reports = runs_of_job(read.collected, read.logs, ()), read.collected.batches
    shown = []
    for run in found.runs:
        used = {one.batch_id for one in run.batches}
        timed = {
            one["batch_id"]: one
            for one in reports
            if one["query_id"] == run.query_id and is_timed(one) and known_rows(one) > 0
        }
        first_s = min(one["started_s"] for one in timed.values())
        batches = tuple(
            SeenBatch(
                started_s=one["started_s"] - first_s,
                duration_s=one["phases_s"]["triggerExecution"],
                num_rows=int(known_rows(one)),
                is_used=batch_id in used,
            )
            for batch_id, one in sorted(timed.items())
        )
        shown.append(SeenRun(name=run.query_name or run.query_id, batches=batches))
    return tuple(shown)
