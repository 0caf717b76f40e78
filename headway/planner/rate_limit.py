"""The maximum number of rows per batch, and the source's option for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from headway.assumptions.planning import (
    FARTHEST_LIMIT_RATIO,
    LEAST_CATCH_UP_RATIO,
    LEAST_LIMIT_RATIO,
)
from headway.domain import Z90, CatchUp, Finding, FindingCode, JobProfile, Metric
from headway.models.job.calibration import spread_ratio
from headway.models.job.setting import duration_model
from headway.planner.candidates import Candidates
from headway.planner.recovery import Pace, limited_recovery_s, start_after_outage
from headway.sparkconf import Counts, ReaderLimit, reader_limit

RateLimit: TypeAlias = tuple[int, Mapping[str, str]]
"""The maximum number of rows of a batch, and the reader's option for it."""


def planned_rate_limit(setting: Candidates) -> RateLimit | Finding | None:
    """The rate limit of one setting, or why its source has no option for one: theory.md (P22).

    None if every limit would leave too little capacity.
    """
    rows, profile = largest_batch_in_time(setting), setting.question.profile
    if rows is None:
        return None
    reference_rows = (
        profile.rows_per_batch_range[1] if profile.declared is None else _settled_rows(setting)
    )
    farthest = FARTHEST_LIMIT_RATIO.value * reference_rows
    if rows > farthest:
        return _no_limit(
            FindingCode.RATE_LIMIT_BEYOND_PROFILE,
            math.floor(farthest),
            {"profiled_ratio": FARTHEST_LIMIT_RATIO.value},
            provenance=profile.provenance,
        )
    return _option_of_source(setting, rows)


def _option_of_source(setting: Candidates, rows: int) -> RateLimit | Finding:
    profile = setting.question.profile
    sources = profile.shape.sources
    if len(sources) != 1:
        numbers = {"num_sources": len(sources)}
        return _no_limit(FindingCode.RATE_LIMIT_OF_EACH_SOURCE, rows, numbers)
    limit = reader_limit(sources[0])
    if limit.key is None:
        return _no_limit(FindingCode.RATE_LIMIT_NOT_OFFERED, rows, why=limit.why_none)
    if limit.counts is Counts.ROWS:
        return rows, {limit.key: str(rows)}
    if limit.counts.of_files:
        return _limit_in_files(setting, limit, rows)
    partitions = _source_partitions(profile)
    partition_rows = rows // partitions
    least_rows = LEAST_LIMIT_RATIO.value * _settled_rows(setting) * _busiest_share(profile)
    if partition_rows < least_rows:
        return _no_limit(
            FindingCode.RATE_LIMIT_BY_PARTITION,
            rows,
            {"num_source_partitions": partitions},
            source=limit.source,
        )
    return partition_rows * partitions, {limit.key: str(partition_rows)}


def _no_limit(
    code: FindingCode, rows: int, numbers: Mapping[str, float] | None = None, **names: str
) -> Finding:
    """Why there is no rate limit."""
    return Finding(code=code, numbers={"batch_rows": rows, **(numbers or {})}, names=names)


def _limit_in_files(setting: Candidates, limit: ReaderLimit, rows: int) -> RateLimit | Finding:
    """In files of the mean profiled size, or in their bytes: theory.md (P22)."""
    arrivals = setting.question.profile.observed_arrivals
    if arrivals is None or not arrivals.file_mean_rows or not arrivals.file_mean_bytes:
        return _no_limit(FindingCode.RATE_LIMIT_NOT_OFFERED, rows, why=limit.why_none)
    num_files = math.floor(rows / arrivals.file_mean_rows)
    whole_file_rows = math.floor(num_files * arrivals.file_mean_rows)
    # The source takes whole files, at least one.
    if whole_file_rows < LEAST_LIMIT_RATIO.value * _settled_rows(setting):
        numbers = {"file_rows": round(arrivals.file_mean_rows)}
        return _no_limit(FindingCode.RATE_LIMIT_BY_FILE, rows, numbers, source=limit.source)
    option_value = num_files
    if limit.counts is Counts.BYTES:
        option_value = math.floor(num_files * arrivals.file_mean_bytes)
    return whole_file_rows, {limit.key or "": str(option_value)}


def largest_batch_in_time(setting: Candidates) -> int | None:
    """The largest batch that still meets the limit on its own, to two digits: theory.md (P22).

    After an outage, the backlog is processed in batches of this size, none of which exceeds the
    limit. None if it would leave too little capacity to catch up, or to meet a target on catching
    up.

    **(P22)** The rate limit is the largest `N`, to two digits, with `e^(1.645 s) D(N) ≤ L`, with
    `s` of (P2) at batches of `N` rows, if it is at least 1.5 times the settled rows and 1.2 times
    `λ max(B, D(N))`, and at most 10 times the largest recorded batch; else there is none. It is set
    at the source in rows, in rows of each of its partitions, or in whole files with the mean number
    of rows per recorded file (in their mean bytes if the source counts those), rounded down. There
    is none if the source limits none of these, if the files of a file source are not recorded, or
    if the whole files have less than 1.5 times the settled rows. For several targets, `L` is the
    tightest limit, minus the part that does not depend on the batch (P7), and the rate limit must
    allow a target on recovery (P8) to be met.
    """
    rate_per_s, profile = setting.question.rate_per_s, setting.question.profile
    configuration = setting.configuration(0)
    slots, partitions = configuration.size
    model = duration_model(profile, slots, partitions)
    settled = _settled_rows(setting)
    low, high = settled, settled * 1e6
    longest_s = _longest_batch_s(setting)
    for _ in range(60):
        middle = math.sqrt(low * high)
        # A larger batch is further from the profiled ones, so its duration is less certain.
        spread = spread_ratio(profile, slots, partitions, middle, model=model, score=Z90)
        margin = math.exp(Z90 * float(spread))
        fits = margin * float(model.mean_s(middle)) <= longest_s
        low, high = (middle, high) if fits else (low, middle)
    if low < max(LEAST_LIMIT_RATIO.value * settled, 1.0):
        return None
    unit = 10.0 ** max(math.floor(math.log10(low)) - 1, 0)
    rounded = int(math.floor(low / unit) * unit)
    limit = rounded if rounded >= LEAST_LIMIT_RATIO.value * settled else int(low)
    interval_s = max(configuration.trigger_s, float(model.mean_s(float(limit))))
    leaves_room = limit >= max(
        float(setting.most_burst_rows(rate_per_s)[0]),
        LEAST_LIMIT_RATIO.value * settled,
        LEAST_CATCH_UP_RATIO.value * rate_per_s * interval_s,
    )
    return limit if leaves_room and recovers_in_time(setting, limit) else None


def recovers_in_time(setting: Candidates, limit_rows: float) -> bool:
    """Whether the targets on outages are met if no batch takes more rows: theory.md (P8)."""
    question, configuration = setting.question, setting.configuration(0)
    factor = float(setting.planned_ratio(question.rate_per_s)[0])
    pace = Pace.of(question.profile, configuration, factor)
    start = start_after_outage(question.profile, configuration.size, pace)
    return all(
        limited_recovery_s(pace, promise.outage_s, limit_rows, start) <= promise.limit_s
        for promise in question.also
        if isinstance(promise, CatchUp) and promise.outage_s is not None
    )


def _settled_rows(setting: Candidates) -> float:
    return float(Pace.of(setting.question.profile, setting.configuration(0)).usual_rows)


def _longest_batch_s(setting: Candidates) -> float:
    """The longest batch that misses no target on its own [s]."""
    longest_batches_s = []
    for target in setting.question.latency_targets:
        promised = setting.promised(target)
        # A window in append mode waits for the batch that emits it and for the one before.
        batches = 1.0 + (promised.wait_weight if target.metric is Metric.WINDOW else 0.0)
        longest_batches_s.append((target.limit_s - promised.shift_s) / batches)
    return min(longest_batches_s)


def _source_partitions(profile: JobProfile) -> int:
    """Partitions of the source: tasks of the stages that read it."""
    readers = (stage.num_source_tasks or 1 for stage in profile.stages if stage.reads_source)
    return max(readers, default=1)


def _busiest_share(profile: JobProfile) -> float:
    """The share of rows of the busiest partition; an even share if unknown."""
    arrivals = profile.observed_arrivals
    share = None if arrivals is None else arrivals.largest_partition_share
    return 1.0 / _source_partitions(profile) if share is None else share
