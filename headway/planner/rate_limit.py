"""How many rows a batch may take, and the option that sets it at the source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.assumptions.planning import (
    FARTHEST_LIMIT_RATIO,
    LEAST_CATCH_UP_RATIO,
    LEAST_LIMIT_RATIO,
)
from headway.domain import Z90, Finding, FindingCode, JobProfile, Metric
from headway.models.job.calibration import spread_ratio
from headway.models.job.setting import duration_model, settled_batch_rows
from headway.planner.candidates import Candidates
from headway.planner.promised import PromisedLatency
from headway.planner.question import Question
from headway.planner.recovery import limited_recovery_s
from headway.sparkconf import Counts, ReaderLimit, reader_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """The rows that a batch is held to, the reader's option that does it, and what is to be said.

    Without an option that the source understands there is no limit: ``rows`` is None.
    """

    rows: int | None = None
    option: Mapping[str, str] = field(default_factory=dict)
    finding: Finding | None = None


def planned_rate_limit(question: Question, setting: Candidates) -> RateLimit:
    """The rate limit of a setting, in the words of the job's source.

    Parameters
    ----------
    question : Question
        What is asked.
    setting : Candidates
        The one setting that was chosen.

    Notes
    -----
    theory.md (P6).
    """
    rows = largest_batch_in_time(question, setting)
    if rows is None:
        return RateLimit()
    if question.profile.declared is None:
        _, known = question.profile.rows_per_batch_range
    else:
        known = _settled_rows(question, setting)
    farthest = FARTHEST_LIMIT_RATIO.value * known
    if rows > farthest:
        numbers = {"profiled_ratio": FARTHEST_LIMIT_RATIO.value}
        return _no_limit(
            FindingCode.RATE_LIMIT_BEYOND_PROFILE,
            math.floor(farthest),
            numbers,
            provenance=str(question.profile.provenance),
        )
    return _option_of_source(question, setting, rows)


def _option_of_source(question: Question, setting: Candidates, rows: int) -> RateLimit:
    profile = question.profile
    sources = profile.shape.sources
    if len(sources) != 1:
        numbers = {"num_sources": len(sources)}
        return _no_limit(FindingCode.RATE_LIMIT_OF_EACH_SOURCE, rows, numbers)
    limit = reader_limit(sources[0])
    if limit.key is None:
        return _no_limit(FindingCode.RATE_LIMIT_NOT_OFFERED, rows, why=limit.why_none)
    if limit.counts is Counts.ROWS:
        return RateLimit(rows=rows, option={limit.key: str(rows)})
    if limit.counts.of_files:
        return _limit_in_files(question, limit, rows, _settled_rows(question, setting))
    partitions = _source_partitions(profile)
    each = rows // partitions
    if each < LEAST_LIMIT_RATIO.value * _settled_rows(question, setting) * _busiest_share(profile):
        return _no_limit(
            FindingCode.RATE_LIMIT_BY_PARTITION,
            rows,
            {"num_source_partitions": partitions},
            source=limit.source,
        )
    return RateLimit(rows=each * partitions, option={limit.key: str(each)})


def _no_limit(
    code: FindingCode, rows: int, numbers: Mapping[str, float] | None = None, **names: str
) -> RateLimit:
    """That there is no rate limit, and why."""
    return RateLimit(
        finding=Finding(code=code, numbers={"batch_rows": rows, **(numbers or {})}, names=names)
    )


def _limit_in_files(
    question: Question, limit: ReaderLimit, rows: int, settled_rows: float
) -> RateLimit:
    """In files of the mean size that was profiled, or in their bytes: theory.md (P6)."""
    arrivals = question.profile.observed_arrivals
    if arrivals is None or not arrivals.file_mean_rows or not arrivals.file_mean_bytes:
        return _no_limit(FindingCode.RATE_LIMIT_NOT_OFFERED, rows, why=limit.why_none)
    num_files = math.floor(rows / arrivals.file_mean_rows)
    held = math.floor(num_files * arrivals.file_mean_rows)
    # The source takes whole files, one at the least.
    if held < LEAST_LIMIT_RATIO.value * settled_rows:
        numbers = {"file_rows": round(arrivals.file_mean_rows)}
        return _no_limit(FindingCode.RATE_LIMIT_BY_FILE, rows, numbers, source=limit.source)
    option_value = num_files
    if limit.counts is Counts.BYTES:
        option_value = math.floor(num_files * arrivals.file_mean_bytes)
    return RateLimit(rows=held, option={limit.key or "": str(option_value)})


def largest_batch_in_time(question: Question, setting: Candidates) -> int | None:
    """The largest batch that by itself still meets the limit, to two digits: theory.md (P6).

    After an outage the backlog is worked off in batches of this size, none of which overruns the
    promise. None where it would leave too little to catch up with, or too little for a promise
    to catch up.

    Notes
    -----
    **(P22)** The rate limit is the largest `N`, to two digits, with `e^(1.645 s) D(N) ≤ L`, `s` of
    (P2) at batches of `N` rows, if it is at least 1.5 times the settled rows and 1.2 times
    `λ max(B, D(N))`, and at most 10 times the largest batch on record; else there is none. It is
    given to the source in rows, in rows of each of its partitions, or in whole files of the mean
    rows that a file on record held (in their mean bytes where the source counts those), rounded
    down; there is none where the source limits none of these, where the files of a source of files
    are on no record, or where so few whole files fall short of 1.5 times the settled rows. For
    several promises `L` is the tightest, less what is paid whatever the batch (P7), and the limit
    must let a promised recovery (P8) be kept.
    """
    rate_per_s, profile = question.rate_per_s, question.profile
    configuration = setting.configuration(0)
    slots, partitions = configuration.num_slots, configuration.shuffle_partitions
    model = duration_model(profile, slots, partitions)
    settled = _settled_rows(question, setting)
    low, high = settled, settled * 1e6
    longest_s = _longest_batch_s(question)
    for _ in range(60):
        middle = math.sqrt(low * high)
        # The larger the batch, the farther from what was profiled, the less sure its duration.
        margin = math.exp(Z90 * float(spread_ratio(profile, slots, partitions, middle)))
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
    factor, trigger_s = float(setting.planned_ratio(rate_per_s)[0]), configuration.trigger_s
    usual = float(settled_batch_rows(model, rate_per_s, trigger_s, factor))
    in_time = all(
        limited_recovery_s(model, rate_per_s, trigger_s, factor, outage_s, usual, float(limit))
        <= limit_s
        for limit_s, outage_s in question.outages
    )
    return limit if leaves_room and in_time else None


def _settled_rows(question: Question, setting: Candidates) -> float:
    configuration = setting.configuration(0)
    model = duration_model(
        question.profile, configuration.num_slots, configuration.shuffle_partitions
    )
    return float(settled_batch_rows(model, question.rate_per_s, configuration.trigger_s))


def _longest_batch_s(question: Question) -> float:
    """The longest batch that by itself breaks no promise [s]."""
    longest = []
    for target in question.latency_targets:
        promised = PromisedLatency(profile=question.profile, target=target)
        # A window in append mode waits for the batch that emits and for the one before.
        batches = 1.0 + (promised.wait_weight if target.metric is Metric.WINDOW else 0.0)
        longest.append((target.limit_s - promised.shift_s) / batches)
    return min(longest)


def _source_partitions(profile: JobProfile) -> int:
    """Partitions that the source is read by: tasks of the stages that read it."""
    return max(1, *(one.num_source_tasks or 1 for one in profile.stages if one.level == 0))


def _busiest_share(profile: JobProfile) -> float:
    """The share of the rows that the busiest partition brings; an even one where none is known."""
    arrivals = profile.observed_arrivals
    share = None if arrivals is None else arrivals.largest_partition_share
    return 1.0 / _source_partitions(profile) if share is None else share
