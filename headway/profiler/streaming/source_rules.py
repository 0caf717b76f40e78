"""The rule by which the tasks that read a source follow the cores or rows, if it has one.

And what a log says of a source that may decide it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from headway.assumptions.logs import SOURCE_TASKS_RATIO
from headway.assumptions.resources import MOST_SPLIT_BYTES, OPEN_COST_BYTES
from headway.domain import (
    Configuration,
    DefaultParallelism,
    FileSplits,
    RecordSplits,
    SourceTasks,
    StageProfile,
)
from headway.limits import MOST_LONG
from headway.models.stages.task_counts import source_tasks
from headway.profiler.offsets import num_source_partitions, rows_between
from headway.profiler.rows import Record
from headway.profiler.streaming.adaptive import count_of, setting_size_text, size_bytes_of
from headway.profiler.streaming.batch_samples import source_samples
from headway.profiler.streaming.samples import BatchSample, QueryRun, SourceFacts
from headway.units import counted

_MOST_SCANS = 8
_RATE = re.compile(r"Rate\w*\[.*\bnumPartitions=(\d{1,9}|default)")
_SOCKET = "TextSocket"
# Formats whose files Spark splits, compressed or not.
_SPLIT_FORMATS = re.compile(r"\b(?:parquet|orc|avro)\b")
_PARALLELISM = "spark.default.parallelism"
_LOCAL = re.compile(r"local-\d")

_Count: TypeAlias = tuple[QueryRun, BatchSample, int]
_Reading: TypeAlias = tuple[SourceTasks | None, str | None]
_UNKNOWN: _Reading = (None, None)


def source_facts(
    properties: Mapping[str, str],
    application_id: str | None,
    configuration: Configuration,
    reports: Sequence[Record],
) -> SourceFacts:
    """What a log says of the source of a run that may decide the tasks that read it.

    >>> setting = Configuration(executors=1, cores_per_executor=2, shuffle_partitions=2,
    ...                         trigger_s=1.0)
    >>> source_facts({"spark.default.parallelism": "3"}, "local-1", setting, []).parallelism.stated
    3
    """
    parallelism = DefaultParallelism(
        stated=count_of(properties.get(_PARALLELISM)),
        at_least=1 if _LOCAL.match(application_id or "") else 2,
        cores_per_slot_ratio=configuration.executors
        * configuration.cores_per_executor
        / configuration.num_slots,
    )
    of_files = count_of(properties.get("spark.sql.files.minPartitionNum"))
    split_bytes = size_bytes_of(properties.get("spark.sql.files.maxPartitionBytes"))
    open_bytes = size_bytes_of(properties.get("spark.sql.files.openCostInBytes"))
    return SourceFacts(
        parallelism=parallelism,
        file_parallelism=parallelism if of_files is None else DefaultParallelism(stated=of_files),
        max_split_bytes=split_bytes or MOST_SPLIT_BYTES.value,
        open_cost_bytes=open_bytes or OPEN_COST_BYTES.value,
        partition_rows={
            report["batch_id"]: rows
            for report in reports
            if (rows := _partition_rows(report)) is not None
        },
    )


def _partition_rows(report: Record) -> tuple[int, ...] | None:
    """Rows of each topic partition that has any; None if the offsets do not tell."""
    rows: list[int] = []
    for source in source_samples(report):
        advanced = rows_between(source.start, source.end)
        if num_source_partitions(source.end) is None or len(advanced) < len(source.end or ()):
            return None
        rows += [number for number in advanced.values() if number > 0]
    return tuple(sorted(rows)) or None


def source_reading(runs: Sequence[QueryRun], stage_index: int) -> _Reading:
    """What decides the tasks of a stage that reads the source: the rule, and the reason in words.

    The rule is None if the number is fixed. It follows from the source's description, its offsets
    and its files, and from the numbers of tasks, which have to agree with it.
    """
    counts = [
        (run, batch, batch.stages[stage_index].num_tasks) for run in runs for batch in run.batches
    ]
    sources = runs[-1].shape.sources
    if any(run.source is None for run in runs) or not sources:
        return _UNKNOWN
    if len(sources) > 1:
        return _of_several(sources, counts)
    if any(_facts(run).partition_rows for run in runs):
        return _of_topics(counts)
    if runs[-1].mean_file is not None:
        return _of_files(runs, stage_index, counts)
    return _of_cores(sources[0], counts)


def source_notes(runs: Sequence[QueryRun], stages: Sequence[StageProfile]) -> Iterator[str]:
    """What the profile says of the stages that read the source, of those alike in one note."""
    stages_of: dict[str, list[str]] = {}
    for stage_index, stage in enumerate(stages):
        reason = source_reading(runs, stage_index)[1] if stage.reads_source else None
        if reason is not None:
            stages_of.setdefault(reason, []).append(stage.called)
    for reason, names in stages_of.items():
        yield f"{', '.join(names)}: source tasks {reason}"


def _of_cores(description: str, counts: Sequence[_Count]) -> _Reading:
    """Sources that are read by as many tasks as the default parallelism, unless set otherwise."""
    option = _RATE.match(description)
    runs = _runs_of(counts).values()
    numbers = {_facts(run).parallelism.number(run.configuration.num_slots) for run in runs}
    kind = description.split("[", 1)[0]
    if option is not None and option[1] != "default" and any(n != int(option[1]) for n in numbers):
        return None, f"are fixed by numPartitions={option[1]} of {kind}"
    varies = len(numbers) > 1
    if option is None and not description.startswith(_SOCKET) and not varies:
        return _UNKNOWN
    facts = _facts(counts[-1][0])
    rule = _agreeing(SourceTasks(parallelism=facts.parallelism), counts)
    if rule is None:
        return _UNKNOWN
    stated = facts.parallelism.stated
    if stated is not None:
        return rule, f"are spark.default.parallelism={stated}, whatever the cores"
    why = f"{kind} without numPartitions"
    if option is None:
        why = f"{kind}, as the runs show"
    elif option[1] != "default" and not varies:
        why = (
            f"{kind} has numPartitions={option[1]}, as by default on these cores; if the option is "
            "set, state --source-partitions"
        )
    return rule, f"follow the cores: {why}"


def _of_several(descriptions: Sequence[str], counts: Sequence[_Count]) -> _Reading:
    """Several sources: the rule of all of them, since no event says which one a stage reads."""
    readings = [_of_cores(description, counts) for description in descriptions]
    rules = {rule for rule, _ in readings}
    if len(rules) == 1 and None not in rules:
        return readings[0]
    number = counted(len(descriptions), "source")
    return None, (
        f"are taken as in the profiled runs, whatever the cores: the query has {number}, and the "
        "log does not say which of them this stage reads"
    )


def _of_topics(counts: Sequence[_Count]) -> _Reading:
    """Kafka: a task per topic partition, unless ``minPartitions`` or rows split them further."""
    rows_and_tasks = [
        (rows, number)
        for run, batch, number in counts
        if (rows := _facts(run).partition_rows.get(batch.batch_id)) is not None
    ]
    if not rows_and_tasks:
        return _UNKNOWN
    num_topic_partitions = max(len(rows) for rows, _ in rows_and_tasks)
    if all(number == len(rows) for rows, number in rows_and_tasks):
        of_each = f"each of {num_topic_partitions} topic partitions"
        which = "the only topic partition" if num_topic_partitions == 1 else of_each
        return None, f"are fixed: one for {which}"
    numbers = {number for _, number in rows_and_tasks}
    if len(numbers) == 1:
        number = numbers.pop()
        if number < num_topic_partitions:
            return _UNKNOWN
        topics = counted(num_topic_partitions, "topic partition")
        cause = "by minPartitions, or by several reads of the source"
        return None, f"are fixed, {number} for {topics}, as {cause}"
    most_rows = _rows_of_task(rows_and_tasks)
    if most_rows is None:
        return _UNKNOWN
    records = RecordSplits(topic_partitions=num_topic_partitions, max_records=most_rows)
    reason = (
        f"follow the rows of a batch: one for every {most_rows:,} rows of a topic partition, "
        "as by maxRecordsPerPartition"
    )
    return SourceTasks(records=records), reason


def _rows_of_task(rows_and_tasks: Sequence[tuple[tuple[int, ...], int]]) -> int | None:
    """The roundest maximum of rows that gives the numbers of tasks of all batches, if any does."""
    low = max(_fewest_rows(rows, number) for rows, number in rows_and_tasks)
    high = min(_fewest_rows(rows, number - 1) - 1 for rows, number in rows_and_tasks)
    if low > high:
        return None
    units = (int(10**power) for power in range(18, -1, -1))
    return next(number for unit in units if (number := -(-low // unit) * unit) <= high)


def _fewest_rows(rows: Sequence[int], num_tasks: int) -> int:
    """The least maximum of rows of a task at which partitions make no more tasks than given."""
    if num_tasks < len(rows):
        return MOST_LONG
    return 1 + bisect_left(
        range(1, max(rows) + 1),
        -num_tasks,
        key=lambda max_rows: -sum(-(-of_partition // max_rows) for of_partition in rows),
    )


def _of_files(runs: Sequence[QueryRun], stage_index: int, counts: Sequence[_Count]) -> _Reading:
    """Files: Spark packs small ones, and splits large ones of some formats."""
    rules = {}
    for splits_files in (False, True):
        rule = _agreeing(_rule_of_files(runs[-1], splits_files=splits_files), counts)
        if rule is not None:
            rules[splits_files] = rule
    if not rules:
        return _UNKNOWN
    misfits = {splits: _misfit(rule, counts) for splits, rule in rules.items()}
    is_shown = len(misfits) < 2 or misfits[True] != misfits[False]
    splits_files = min(misfits, key=lambda splits: misfits[splits])
    if not is_shown:
        splits_files = any(map(_SPLIT_FORMATS.search, _names(runs, stage_index)))
    facts, (_, file_bytes) = _facts(runs[-1]), runs[-1].mean_file or (0.0, 0.0)
    aim = "as many as there are cores"
    if facts.file_parallelism.stated is not None:
        aim = counted(facts.file_parallelism.stated, "task")
    split_text = "large files are split" if splits_files else "a file is read by one task"
    if not (is_shown or splits_files):
        split_text = (
            "no file was so large that it shows whether such are split; they are taken not to be"
        )
    opening, split = map(setting_size_text, (facts.open_cost_bytes, facts.max_split_bytes))
    reason = (
        f"follow the files of a batch and the cores: {aim}, unless a task would read less than "
        f"{opening} (openCostInBytes, counted for each file, too) or more than {split}; files "
        f"of {file_bytes / 2**10:,.0f}k on average; {split_text}"
    )
    return rules[splits_files], reason


def _rule_of_files(run: QueryRun, *, splits_files: bool) -> SourceTasks:
    assert run.mean_file is not None
    facts, (file_rows, file_bytes) = _facts(run), run.mean_file
    return SourceTasks(
        parallelism=facts.file_parallelism,
        files=FileSplits(
            file_rows=file_rows,
            file_bytes=file_bytes,
            max_split_bytes=facts.max_split_bytes,
            open_cost_bytes=facts.open_cost_bytes,
            splits_files=splits_files,
        ),
    )


def _names(runs: Sequence[QueryRun], stage_index: int) -> Iterator[str]:
    """Names of the operators of a stage, which contain the format of its files."""
    for run in runs:
        for batch in run.batches:
            yield from batch.kinds[stage_index].scopes
            yield from (operator.name for operator in batch.stages[stage_index].operators)


def _facts(run: QueryRun) -> SourceFacts:
    assert run.source is not None  # checked by source_reading
    return run.source


def _agreeing(rule: SourceTasks, counts: Sequence[_Count]) -> SourceTasks | None:
    """The rule, with the number of scans at which it agrees with the tasks; None if at none."""
    total = sum(number for _, _, number in counts)
    expected = sum(_expected(rule, counts))
    num_scans = min(max(round(total / expected), 1), _MOST_SCANS)
    scanned = replace(rule, num_scans=num_scans)
    # Sizes of files differ; cores do not.
    max_misfit = 0.0 if rule.files is None else SOURCE_TASKS_RATIO.value * total
    return scanned if _misfit(scanned, counts) <= max_misfit else None


def _misfit(rule: SourceTasks, counts: Sequence[_Count]) -> int:
    pairs = zip(counts, _expected(rule, counts), strict=True)
    return sum(abs(number - by_rule) for (_, _, number), by_rule in pairs)


def _expected(rule: SourceTasks, counts: Sequence[_Count]) -> list[int]:
    """Tasks of each batch, by the rule at the settings of its run."""
    rules = {run_id: _at_settings(rule, run) for run_id, run in _runs_of(counts).items()}
    return [
        source_tasks(rules[id(run)], batch.num_rows, run.configuration.num_slots)
        for run, batch, _ in counts
    ]


def _runs_of(counts: Sequence[_Count]) -> dict[int, QueryRun]:
    return {id(run): run for run, _, _ in counts}


def _at_settings(rule: SourceTasks, run: QueryRun) -> SourceTasks:
    of_run = SourceTasks(parallelism=_facts(run).parallelism)
    if rule.files is not None and run.mean_file is not None:
        of_run = _rule_of_files(run, splits_files=rule.files.splits_files)
    return replace(of_run, num_scans=rule.num_scans)
