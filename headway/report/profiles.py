"""Profiles, and the contents of logs, in words for terminals and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.digits import size_text
from headway.domain import ApplicationProfile, JobProfile
from headway.formats.as_json import json_text
from headway.formats.codec import plain_data
from headway.profiler.coverage import gaps
from headway.redaction import printable
from headway.report.columns import paragraph, paragraphs
from headway.report.wording import percent
from headway.units import counted, format_duration, format_rate
from headway.words import as_sentence, words_of

if TYPE_CHECKING:
    from headway.domain import EventTimeWindow, StatefulOperator, StateOperatorProfile
    from headway.profiler.logs.sources import LogFailure
    from headway.profiler.recorded_queries import RecordedQuery
    from headway.profiler.survey import LogSurvey


# Parts of a commit of RocksDB, in milliseconds.
_COMMIT_PART = re.compile(r"rocksdbCommit([A-Z][A-Za-z]*?)Latency(?:Ms)?")
_MOST_COMMIT_PARTS = 3
_OPERATORS = {
    "StreamingSymmetricHashJoin": "stream-stream join",
    "StateStoreSave": "aggregation",
    "SessionWindowStateStoreSave": "session aggregation",
    "StreamingDeduplicate": "deduplication",
    "StreamingDeduplicateWithinWatermark": "deduplication within the watermark",
}
_MOST_QUERIES = 20
_MOST_STAGES = 5
_MOST_NOTES = 3
_OF_QUERY, _NUMBER = re.compile(r"query [^:]+: "), re.compile(r"\d[\d.,]*")


def profile_summary(profile: JobProfile | ApplicationProfile) -> str:
    """The profile in a few lines."""
    lines = _LINES_OF[profile.result_kind](profile)
    return "\n".join([*lines, *(f"note: {note}" for note in _notes_to_print(profile.notes))])


def _notes_to_print(notes: Sequence[str]) -> Iterator[str]:
    """Notes, of those that say the same of several queries the first, and of how many others.

    >>> notes = [f"query q{number}: cut {number} of 9 batches" for number in range(5)]
    >>> list(_notes_to_print(notes))
    ['query q0: cut 0 of 9 batches', 'the same of 4 more queries, with other numbers']
    """
    alike: dict[str, list[str]] = {}
    for note in notes:
        of_query = _OF_QUERY.match(note)
        key = note if of_query is None else _NUMBER.sub("#", note[of_query.end() :])
        alike.setdefault(key, []).append(printable(note))
    for first_note, *further_notes in alike.values():
        yield first_note
        if len(further_notes) < _MOST_NOTES:
            yield from further_notes
        else:
            yield f"the same of {len(further_notes)} more queries, with other numbers"


def profile_origin(profile: JobProfile | ApplicationProfile) -> str:
    """What a profile is made of, and its most important notes, without the costs of each part."""
    parts = [line for line in _LINES_OF[profile.result_kind](profile) if not line.startswith(" ")]
    # Warm-up is cut from most runs; what else there is to say tells more about a job.
    notes = sorted(profile.notes, key=lambda note: "as warm-up" in note)
    parts += [f"note: {printable(note)}" for note in notes[:_MOST_NOTES]]
    if len(notes) > _MOST_NOTES:
        further = counted(len(notes) - _MOST_NOTES, "more note")
        parts.append(f"{further}, which 'headway profile' prints")
    return "\n".join(parts)


def survey_as_text(logs: Sequence[LogSurvey]) -> str:
    """Contents of each log, what is missing, and what its profile is made from."""
    return "\n".join(line for log in logs for line in _survey_lines(log))


def survey_as_json(logs: Sequence[LogSurvey], failures: Sequence[LogFailure]) -> str:
    """The same for machines; shares as seen and expected."""
    document = {
        "schema": "headway.survey/v1",
        "logs": [
            {
                "name": log.name,
                "application": plain_data(log.application),
                "counts": plain_data(log.counts),
                "coverage": plain_data(log.coverage),
                "queries": plain_data(log.queries),
                "gaps": list(gaps(log.coverage)) if log.coverage else [],
                "profiled": log.profile is not None,
                "why_not": log.why_not or None,
                "notes": list(log.profile.notes) if log.profile else [],
                "growth": plain_data(log.profile and log.profile.growth),
                "slow_growth": plain_data(getattr(log.profile, "slow_growth", ())),
            }
            for log in logs
        ],
        "failures": [{"name": failure.name, "why": failure.why} for failure in failures],
    }
    return json_text(document)


def _survey_lines(log: LogSurvey) -> Iterator[str]:
    yield printable(log.name)
    missing: tuple[str, ...] = ()
    if log.application and log.counts and log.coverage:
        application = log.application
        named = f"{application.id} ({application.name}), Spark {application.spark_version}"
        yield f"  application {printable(named)}"
        counts = log.counts
        yield (
            f"  contains {counted(counts.jobs, 'job')}, {counted(counts.stages, 'stage')}, "
            f"{counted(counts.tasks, 'task')} ({counts.failed_tasks} failed), "
            f"{counted(counts.sql_executions, 'SQL execution')}, "
            f"{counted(counts.progress, 'progress event')}"
        )
        yield from _query_lines(log.queries)
        missing = gaps(log.coverage)
        yield "  nothing is missing" if not missing else "  missing:"
        yield from paragraphs(*missing, lead="    ")
        if log.coverage.unknown_events:
            yield f"  skipped {log.coverage.unknown_events} events that Spark does not write"
    if log.profile is None:
        yield f"  no profile: {printable(log.why_not)}"
        return
    yield "  profile:"
    for line in profile_summary(log.profile).splitlines():
        if line.removeprefix("note: ") not in missing:
            text = line.lstrip()
            yield from paragraph(text, lead=" " * (4 + len(line) - len(text)))


def _query_lines(queries: Sequence[RecordedQuery]) -> Iterator[str]:
    """Every run of a query, if there are several or one is of no use."""
    if len(queries) > 1 or any(query.why_not for query in queries):
        yield f"  {counted(len(queries), 'run')} of streaming queries:"
        yield from paragraphs(*(query.text for query in queries[:_MOST_QUERIES]), lead="    ")
        if len(queries) > _MOST_QUERIES:
            yield f"    and {len(queries) - _MOST_QUERIES} more, which --json lists"


def _job_lines(profile: JobProfile) -> Iterator[str]:
    if profile.growth is not None:
        yield from (as_sentence(words_of(finding)) for finding in profile.growth.findings)
    yield from (as_sentence(words_of(growth.finding)) for growth in profile.slow_growth)
    num_batches = sum(setting.num_batches for setting in profile.settings)
    rate = format_rate(profile.arrivals.rate_per_s)
    last = f"last at {rate}" if profile.drain is None else f"last reading a backlog at {rate}"
    runs, batches = counted(len(profile.settings), "run"), counted(num_batches, "batch", "batches")
    yield f"{runs}, {batches}, {counted(len(profile.stages), 'stage')} per batch, {last}"
    for phase in profile.driver_phases:
        if phase.mean_s >= 0.001:
            yield f"  {phase.name}: {format_duration(phase.mean_s)} per batch"
    for stage in profile.stages:
        fixed, per_row = map(format_duration, (stage.task_fixed_s, stage.task_per_row_s))
        text, resources = f"  {stage.called}: {fixed} per task, {per_row} per row", stage.resources
        if stage.is_static:
            rows = counted(round(stage.rows.static_rows), "row")
            text += f"; it reads {rows} in every batch, whatever the rate"
        if resources is not None:
            text += f"; {resources.needs}: {resources.slots_ratio:.3g} times the slots"
        if stage.is_barrier:
            text += "; a barrier stage: a slot for each of its tasks, which start together"
        yield text
    # In the order in which rows pass them; Spark lists the one next to the sink first.
    for operator in reversed(profile.state.operators if profile.state else ()):
        yield f"  {_state_text(operator)}"
    if len(profile.shape.chain) > 1:
        operators = ", then ".join(map(_operator_text, profile.shape.chain))
        yield f"  stateful operators, in order: {operators}"


def _operator_text(operator: StatefulOperator) -> str:
    """An operator in words, its windows, and its watermark if that is not the query's."""
    facts = [_window_text(window) for window in operator.windows]
    if operator.watermark_behind_s is None:
        facts.append("watermark behind by an unknown time")
    elif operator.watermark_behind_s > 0.0:
        facts.append(f"watermark {format_duration(operator.watermark_behind_s)} behind")
    name = _OPERATORS.get(operator.name, printable(operator.name))
    return f"{name} ({', '.join(facts)})" if facts else name


def _window_text(window: EventTimeWindow) -> str:
    size = format_duration(window.size_s)
    if window.slide_s is None:
        return f"sessions with gaps of {size}"
    if window.slide_s == window.size_s:
        return f"windows of {size}"
    return f"windows of {size} every {format_duration(window.slide_s)}"


def _state_text(operator: StateOperatorProfile) -> str:
    """How much state an operator has, and what takes the time of its commits."""
    parts_s = {
        part.group(1): mean / 1000.0
        for name, mean in operator.store_metrics.items()
        if (part := _COMMIT_PART.fullmatch(name)) and mean >= 1.0
    }
    longest = sorted(parts_s, key=lambda part: -parts_s[part])[:_MOST_COMMIT_PARTS]
    parts = ", ".join(f"{_in_words(part)} {format_duration(parts_s[part])}" for part in longest)
    return (
        f"state of {printable(operator.name)}: {counted(operator.rows, 'row')}, "
        f"{size_text(operator.memory_bytes)} in {counted(operator.num_stores, 'store')}; "
        f"its commits take {format_duration(operator.commit_s)} of task time per batch"
        + (f" ({parts})" if parts else "")
    )


def _in_words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def _application_lines(profile: ApplicationProfile) -> Iterator[str]:
    jobs = f"{counted(profile.num_jobs, 'job')} in {format_duration(profile.duration_s)}"
    yield f"{profile.kind} application: {jobs}, {counted(len(profile.stages), 'stage')} listed"
    if profile.kind == "batch" and profile.duration_s > 0.0:
        share = percent(profile.driver_only_s / profile.duration_s)
        driver_only = format_duration(profile.driver_only_s)
        yield f"  the driver alone, without a running stage: {driver_only}, {share} of the run time"
    total_s = profile.other_stages.task_time_s + sum(stage.task_time_s for stage in profile.stages)
    for stage in sorted(profile.stages, key=lambda stage: -stage.task_time_s)[:_MOST_STAGES]:
        if stage.task_time_s > 0.0:
            share = f"{percent(stage.task_time_s / total_s)} of all task time"
            tasks = f"{counted(stage.num_finished, 'task')} of {format_duration(stage.task_mean_s)}"
            yield f"  {printable(stage.called)}: {share}, {tasks}"


_LINES_OF: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "profile": _job_lines,
    "application-profile": _application_lines,
}
