"""Comparison of what must have happened, by the events themselves, with what is recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headway.assumptions.logs import LEAST_BELIEVED_RATIO, LEAST_USUAL_RATIO
from headway.domain import Coverage, Share
from headway.profiler import schema
from headway.profiler.contents import ApplicationFacts
from headway.profiler.ids import Ranges, united
from headway.profiler.logs.sources import EventLog
from headway.profiler.rows import Record
from headway.units import counted

_SHARES = ("tasks", "stages", "jobs", "batches", "executors")
# Prefixes of the names of Spark's own events.
_SPARK_EVENTS = ("SparkListener", "org.apache.spark.")


def coverage_of(facts: ApplicationFacts, batches: Sequence[Record], log: EventLog) -> Coverage:
    """The coverage of one log, including whether it is still being written or was compacted."""
    task_ids, job_ids = facts.ids_of(schema.TASK_END), facts.ids_of(schema.JOB_START)
    num_tasks, num_jobs = task_ids.num_distinct, job_ids.num_distinct
    if facts.num_lines(schema.RECORDER_START):
        # Ids that a recorder leaves out are not gaps.
        tasks, jobs = _share(num_tasks), _share(num_jobs)
    else:
        num_tasks = num_tasks or facts.num_lines(schema.TASK_END)
        tasks = _share(num_tasks, task_ids.seen)
        most_expected = max(tasks.expected - facts.num_tasks_cut, tasks.seen)
        tasks = Share(seen=tasks.seen, expected=most_expected)
        jobs = _share(num_jobs, united(job_ids.seen, facts.ids_of(schema.JOB_END).seen))
    if tasks.expected < facts.num_tasks_of_ended:
        tasks = Share(seen=tasks.seen, expected=facts.num_tasks_of_ended)
    added = {executor.executor_id for executor in facts.executors}
    # Recorders end a log that they write if all of them were stopped in order.
    is_stopped = bool(facts.recordings) and all(facts.recordings.values())
    return Coverage(
        tasks=tasks,
        stages=Share(seen=facts.num_attempts_ended, expected=facts.num_attempts),
        jobs=jobs,
        batches=_batches(batches),
        executors=Share(seen=len(added), expected=len(added | facts.task_executor_ids)),
        has_start=facts.num_lines(schema.APPLICATION_START) > 0,
        has_end=facts.num_lines(schema.APPLICATION_END) > 0 or is_stopped,
        compacted=log.compacted,
        in_progress=log.in_progress,
        damaged_lines=facts.num_damaged,
        unknown_events=sum(
            num_lines
            for event, num_lines in facts.counts.items()
            if not event.startswith(_SPARK_EVENTS) and event not in schema.READ_EVENTS
        ),
        lost_events=facts.num_lost,
        passed_over_batches=facts.num_passed_over,
        missing_parts=log.num_missing_parts,
    )


def together(coverages: Iterable[Coverage]) -> Coverage:
    """The coverage of several logs taken as one; at least one."""
    parts = list(coverages)

    def of_all(combine: Callable[[Iterable[Any]], Any], *names: str) -> dict[str, Any]:
        return {name: combine(getattr(coverage, name) for coverage in parts) for name in names}

    return Coverage(
        **of_all(sum_of_shares, *_SHARES),
        **of_all(all, "has_start", "has_end"),
        **of_all(any, "compacted", "in_progress"),
        **of_all(sum, "damaged_lines", "unknown_events", "lost_events"),
        **of_all(sum, "passed_over_batches", "missing_parts"),
    )


def sum_of_shares(shares: Iterable[Share]) -> Share:
    """One share of all together; at least one."""
    counts = zip(*((share.seen, share.expected) for share in shares), strict=True)
    num_seen, num_expected = map(sum, counts)
    return Share(seen=num_seen, expected=num_expected)


def gaps(coverage: Coverage) -> tuple[str, ...]:
    """Missing events, as text, each with what to record next time; empty if none are missing."""
    return tuple(_gaps(coverage))


def _gaps(coverage: Coverage) -> Iterable[str]:
    thin = False
    for name in _SHARES:
        share = getattr(coverage, name)
        if share.seen < share.expected:
            yield f"{share.expected - share.seen} of {share.expected} {name} missing"
        # A few always are, for instance those of stopped queries.
        thin |= share.ratio < LEAST_USUAL_RATIO.value
    cut = coverage.missing_parts or coverage.compacted
    cut = cut or not (coverage.has_start and coverage.has_end)
    if thin and not cut:
        # If a log was cut off, the lines below give the reason.
        yield (
            "events were dropped or left out; next time raise "
            "spark.scheduler.listenerbus.eventqueue.capacity, set no "
            "spark.eventLog.excludedPatterns, and keep every part of the log"
        )
    if coverage.missing_parts:
        yield (
            f"{counted(coverage.missing_parts, 'part')} of a rolling log missing, by their "
            "numbers; profile the whole folder as Spark wrote it"
        )
    if coverage.compacted:
        yield (
            "the log was compacted: finished work is gone; keep more with "
            "spark.history.fs.eventLog.rolling.maxFilesToRetain"
        )
    if not coverage.has_start:
        yield "the start of the log is missing; profile the log from its first file"
    if not coverage.has_end:
        yield (
            "the log is still being written"
            if coverage.in_progress
            else "the end of the log is missing; the application is still running, or was killed"
        )
    if coverage.damaged_lines:
        yield f"{counted(coverage.damaged_lines, 'damaged line')} left out"
    if coverage.lost_events:
        yield (
            f"{counted(coverage.lost_events, 'event')} lost while recording: the driver was too "
            "busy to deliver them"
        )
    if coverage.passed_over_batches:
        yield (
            f"tasks of {counted(coverage.passed_over_batches, 'batch', 'batches')} not recorded, "
            "so that recording costs little; for all of them: headway.record(..., "
            "max_cost_ratio=1.0)"
        )


def _share(num_seen: int, ids: Ranges = ()) -> Share:
    """Ids of one kind are consecutive, so all between first and last must exist."""
    span = ids[-1][1] - ids[0][0] + 1 if ids else 0
    is_believed = span <= num_seen / LEAST_BELIEVED_RATIO.value
    return Share(seen=num_seen, expected=max(span, num_seen) if is_believed else num_seen)


def _batches(rows: Sequence[Record]) -> Share:
    by_run: dict[tuple[str, str], set[int]] = defaultdict(set)
    for row in rows:
        by_run[row["query_id"], row["run_id"] or ""].add(row["batch_id"])
    return Share(
        seen=sum(len(ids) for ids in by_run.values()),
        expected=sum(max(ids) - min(ids) + 1 for ids in by_run.values()),
    )
