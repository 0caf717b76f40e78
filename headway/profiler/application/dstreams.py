"""Stages of a DStreams application -> its batches: their times, and the stages of a typical one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from headway.domain.application_profile import DStreamsProfile, RecordedStage, Spread
from headway.lazy_classes import dataclass
from headway.models.arrays import Array
from headway.models.estimation.warm_up import slow_start_length
from headway.profiler.application.application_stages import StageSums, recorded_stage
from headway.profiler.stage_totals import SUMS_OF_TASKS
from headway.units import counted

_MS_PER_S = 1000


@dataclass(frozen=True)
class Batch:
    """One batch: its scheduled time, an instant in seconds, and its stages by job and number."""

    time_s: float
    stages: tuple[StageSums, ...]

    @cached_property
    def start_s(self) -> float:
        return min((stage.span_s[0] for stage in self.stages if stage.span_s), default=0.0)

    @cached_property
    def end_s(self) -> float:
        return max((stage.span_s[1] for stage in self.stages if stage.span_s), default=0.0)

    @cached_property
    def num_jobs(self) -> int:
        return len({stage.job_id for stage in self.stages})

    @property
    def is_complete(self) -> bool:
        """Whether all its stages are known to have done their work."""
        return all(
            stage.ended and not stage.failed and stage.num_finished and stage.span_s is not None
            for stage in self.stages
        )

    @property
    def rows(self) -> float:
        """Input rows; every output operation (a job) reads them again."""
        by_job: dict[int | None, float] = defaultdict(float)
        for stage in self.stages:
            if not stage.parent_ids:
                by_job[stage.job_id] += stage.rows_read
        return max(by_job.values(), default=0.0)

    @property
    def signature(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """By stage, the indices of its job and unskipped parents; equal for batches of one kind."""
        jobs = list(dict.fromkeys(stage.job_id for stage in self.stages))
        indices = {stage.stage_id: index for index, stage in enumerate(self.stages)}
        return tuple(
            (
                jobs.index(stage.job_id),
                tuple(sorted(indices[parent] for parent in stage.parent_ids if parent in indices)),
            )
            for stage in self.stages
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyBatches:
    """The batches of an application after warm-up."""

    kept: tuple[Batch, ...]
    typical: tuple[Batch, ...]
    num_cut: int
    num_incomplete: int
    interval_s: float | None


def steady_batches(stages: Sequence[StageSums]) -> SteadyBatches | None:
    """The steady part of a DStreams application; None if no batch is complete."""
    batches = _batches(stages)
    complete = _without_torn_ends([batch for batch in batches if batch.is_complete])
    if not complete:
        return None
    num_cut = slow_start_length(np.array([batch.end_s - batch.start_s for batch in complete]))
    steady = complete[num_cut:]
    signatures = Counter(batch.signature for batch in steady)
    (usual, _), *_ = signatures.most_common(1)
    return SteadyBatches(
        kept=tuple(steady),
        typical=tuple(batch for batch in steady if batch.signature == usual),
        num_cut=num_cut,
        num_incomplete=len(batches) - len(complete),
        interval_s=_interval_s([batch.time_s for batch in batches]),
    )


def dstreams_profile(steady: SteadyBatches, num_receivers: int) -> DStreamsProfile:
    rows = float(np.mean([batch.rows for batch in steady.kept]))
    return DStreamsProfile(
        batch_interval_s=steady.interval_s,
        num_batches=len(steady.kept),
        num_batches_cut=steady.num_cut,
        num_batches_incomplete=steady.num_incomplete,
        num_receivers=num_receivers,
        processing_time=_spread(np.array([batch.end_s - batch.start_s for batch in steady.kept])),
        scheduling_delay=_spread(_delays_s(steady)),
        rows_per_batch=rows if rows > 0 else None,
        num_typical_batches=len(steady.typical),
    )


def typical_stages(steady: SteadyBatches) -> tuple[RecordedStage, ...]:
    """The stages of a typical batch, each the mean over the typical batches."""
    batches = steady.typical
    of_stages = zip(*(batch.stages for batch in batches), strict=True)
    numbered = enumerate(zip(of_stages, batches[0].signature, strict=True))
    return tuple(
        recorded_stage(
            _mean_stage(index, job, samples), parents=parents, span_s=_mean_span_s(batches, samples)
        )
        for index, (samples, (job, parents)) in numbered
    )


def receivers(stages: Sequence[StageSums]) -> list[StageSums]:
    """Stages that occupy a core throughout, with one endless task each."""
    spans = [stage.span_s for stage in stages if stage.dstream_batch_s is not None and stage.span_s]
    least_s = (max(end_s for _, end_s in spans) - min(spans)[0]) / 2
    return [
        stage
        for stage in stages
        if stage.dstream_batch_s is None
        and stage.num_tasks == 1
        and stage.span_s is not None
        and stage.span_s[1] - stage.span_s[0] > least_s
    ]


def dstreams_notes(steady: SteadyBatches) -> Iterator[str]:
    if steady.num_cut:
        yield f"cut {counted(steady.num_cut, 'batch', 'batches')} as warm-up"
    if steady.num_incomplete:
        yield (
            f"{counted(steady.num_incomplete, 'batch', 'batches')} left out: a stage failed, or "
            "the log does not contain all of them"
        )
    if num_others := len(steady.kept) - len(steady.typical):
        yield (
            f"{num_others} of {len(steady.kept)} batches ran other stages than the typical ones "
            "listed"
        )
    delays_s = _delays_s(steady)
    quarter = len(delays_s) // 4
    if quarter and steady.interval_s is not None:
        grown_s = float(np.mean(delays_s[-quarter:]) - np.mean(delays_s[:quarter]))
        if grown_s > steady.interval_s:
            yield (
                f"batches waited {grown_s:.1f} s longer at the end than at the beginning: "
                "the application could not keep up"
            )


def _batches(stages: Sequence[StageSums]) -> list[Batch]:
    by_time: dict[float, list[StageSums]] = defaultdict(list)
    for stage in stages:
        if stage.dstream_batch_s is not None:
            by_time[stage.dstream_batch_s].append(stage)
    for of_batch in by_time.values():
        of_batch.sort(key=lambda stage: (stage.job_id or 0, stage.stage_id))
    return [Batch(time_s, tuple(by_time[time_s])) for time_s in sorted(by_time)]


def _without_torn_ends(batches: list[Batch]) -> list[Batch]:
    """Without the first and last batch, if the log may contain only some of their jobs."""
    if len(batches) < 3:
        return batches
    usual = float(np.median([batch.num_jobs for batch in batches]))
    first = 1 if batches[0].num_jobs < usual else 0
    last = len(batches) - (1 if batches[-1].num_jobs < usual else 0)
    return batches[first:last]


def _interval_s(times_s: Sequence[float]) -> float | None:
    """The most frequent distance, since batches without stages leave gaps."""
    steps_ms = [round(_MS_PER_S * (end_s - start_s)) for start_s, end_s in pairwise(times_s)]
    counts = Counter(step for step in steps_ms if step > 0)
    if not counts:
        return None
    highest_count = max(counts.values())
    return min(step for step, count in counts.items() if count == highest_count) / _MS_PER_S


def _delays_s(steady: SteadyBatches) -> Array:
    return np.array([max(batch.start_s - batch.time_s, 0.0) for batch in steady.kept])


def _spread(times_s: Array) -> Spread:
    p50_s, p95_s, p99_s = np.quantile(times_s, [0.5, 0.95, 0.99]).tolist()
    return Spread(
        mean_s=float(times_s.mean()),
        sd_s=float(times_s.std()),
        p50_s=p50_s,
        p95_s=p95_s,
        p99_s=p99_s,
        max_s=float(times_s.max()),
        min_s=float(times_s.min()),
    )


def _mean_stage(index: int, job: int, samples: Sequence[StageSums]) -> StageSums:
    """The same stage of several batches as one; tasks are compared within a batch, not between."""
    num_batches = len(samples)

    def mean(name: str) -> Any:
        return float(np.mean([getattr(stage, name) for stage in samples]))

    num_finished = max(round(mean("num_finished")), 1)
    num_all = sum(stage.num_finished for stage in samples)
    ratios = [s.largest_task_ratio for s in samples if s.largest_task_ratio is not None]
    python_s = [stage.python_s for stage in samples if stage.python_s is not None]
    return replace(
        samples[0],
        stage_id=index,
        job_id=job,
        num_attempts=max(round(mean("num_attempts")), 1),
        num_tasks=max(round(mean("num_tasks")), 1),
        num_finished=num_finished,
        num_failed=round(mean("num_failed")),
        task_time_s=mean("task_time_s") * num_batches / num_all * num_finished,
        outside_run_s=mean("outside_run_s") * num_batches / num_all * num_finished,
        squares_s2=sum(stage.squares_s2 for stage in samples),
        freedoms=sum(stage.freedoms for stage in samples),
        python_s=sum(python_s) / num_batches if python_s else None,
        largest_task_ratio=float(np.mean(ratios)) if ratios else None,
        peak_memory_bytes=max(stage.peak_memory_bytes for stage in samples),
        task_max_s=mean("task_max_s"),
        **{name: mean(name) for name in SUMS_OF_TASKS},
    )


def _mean_span_s(batches: Sequence[Batch], samples: Sequence[StageSums]) -> tuple[float, float]:
    """Start and end of the stage, since the first stage of its batch."""
    starts_s, ends_s = [], []
    for batch, stage in zip(batches, samples, strict=True):
        assert stage.span_s is not None, "batches are complete"
        starts_s.append(stage.span_s[0] - batch.start_s)
        ends_s.append(stage.span_s[1] - batch.start_s)
    return float(np.mean(starts_s)), float(np.mean(ends_s))
