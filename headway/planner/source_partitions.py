"""A stated number of tasks that read the source: what it takes to get them, as a part of a plan."""

from __future__ import annotations

from collections.abc import Iterator

from headway.domain import Change, Finding, FindingCode, JobProfile, StreamAnswer
from headway.domain.later import with_changes
from headway.planner.checkpoint import when_applied
from headway.planner.spark_settings import planned_settings
from headway.sparkconf import KNOBS_BY_KEY
from headway.sparkconf.reader_limits import KAFKA, MIN_PARTITIONS_KEY, reader_limit

_KNOB = KNOBS_BY_KEY[MIN_PARTITIONS_KEY]


def with_stated_partitions(
    plan: StreamAnswer, profile: JobProfile, source_partitions: int | None
) -> StreamAnswer:
    """A plan for a stated number of source partitions, with what sets them: theory.md (P14).

    ``profile`` is that of the job as it was profiled, with its own number of them. Kafka's
    ``minPartitions`` splits the partitions of topics that have fewer; everything else is done at
    the source. None states none.
    """
    if source_partitions is None:
        return plan
    options = _reader_option(profile, source_partitions)
    settings = planned_settings(options, {}, lambda knob: when_applied(knob, profile))
    return with_changes(
        plan,
        source_partitions=source_partitions,
        prediction=with_changes(plan.prediction, source_partitions=source_partitions),
        query_options={**plan.query_options, **options},
        settings=(*plan.settings, *settings),
        changes=(*plan.changes, *_changes(profile, source_partitions)),
        findings=(*_findings(profile, source_partitions), *plan.findings),
    )


def _changes(profile: JobProfile, source_partitions: int) -> Iterator[Change]:
    """The change against the profiled run; a declared job has none to compare with."""
    before = " and ".join(map(str, sorted(_profiled_tasks(profile))))
    if profile.provenance == "measured" and before != str(source_partitions):
        applies = when_applied(_KNOB, profile)
        yield Change(
            setting=_KNOB.label, before=before, after=str(source_partitions), applies=applies
        )


def _reader_option(profile: JobProfile, source_partitions: int) -> dict[str, str]:
    """The option of Kafka's reader; it has none for fewer tasks than the topic has partitions."""
    is_needed = source_partitions > _topic_partitions(profile)
    return {MIN_PARTITIONS_KEY: str(source_partitions)} if _has_kafka(profile) and is_needed else {}


def _findings(profile: JobProfile, source_partitions: int) -> Iterator[Finding]:
    """What has to be done at the source itself, where no option of its reader does it."""
    numbers = {"source_partitions": source_partitions}
    topic_partitions = _topic_partitions(profile)
    if _has_kafka(profile):
        if source_partitions < topic_partitions:
            numbers["topic_partitions"] = topic_partitions
            yield Finding(code=FindingCode.TOPIC_HAS_MORE_PARTITIONS, numbers=numbers)
    elif _profiled_tasks(profile) != {source_partitions}:
        yield Finding(code=FindingCode.SOURCE_TO_REPARTITION, numbers=numbers)


def _has_kafka(profile: JobProfile) -> bool:
    return any(reader_limit(source) is KAFKA for source in profile.shape.sources)


def _profiled_tasks(profile: JobProfile) -> set[int]:
    """The numbers of tasks with which stages read the source in the profiled run."""
    return {stage.num_source_tasks or 1 for stage in profile.stages if stage.reads_source}


def _topic_partitions(profile: JobProfile) -> int:
    """Partitions of the topic; of several, or if they are not recorded, by the tasks of stages."""
    if profile.source_partitions is not None and len(profile.shape.sources) == 1:
        return profile.source_partitions
    return max(_profiled_tasks(profile), default=1)
