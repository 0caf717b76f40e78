"""What a log says of the source of a run that may decide the tasks that read it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from headway.assumptions.resources import MOST_SPLIT_BYTES, OPEN_COST_BYTES
from headway.domain import Configuration, DefaultParallelism
from headway.profiler.offsets import num_source_partitions, rows_between
from headway.profiler.rows import Record
from headway.profiler.streaming.adaptive_settings import count_of, size_bytes_of
from headway.profiler.streaming.batch_samples import source_samples
from headway.profiler.streaming.samples import SourceFacts

_PARALLELISM = "spark.default.parallelism"
_LOCAL = re.compile(r"local-\d")


def source_facts(
    properties: Mapping[str, str],
    application_id: str | None,
    configuration: Configuration,
    reports: Sequence[Record],
) -> SourceFacts:
    """The facts of a run.

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
