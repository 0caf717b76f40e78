"""Stages of an application from their attempts: heaviest listed, others summed."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from headway.domain.application_profile import (
    MOST_STAGES,
    SAME_MOMENT_S,
    OtherStages,
    RecordedStage,
)
from headway.lazy_classes import dataclass
from headway.profiler.operators import Operator, operators_in_words
from headway.profiler.rows import Record
from headway.profiler.stage_totals import SUMS_OF_TASKS
from headway.profiler.streaming.observations import share

# Numbers beyond these are damaged, not measured: the years 1970 and 9999, three years.
_LATEST_S = 253_402_300_799.0
_LONGEST_S = 1e8
_MOST_TASKS = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSums:
    """One stage: sums over the finished tasks of all attempts, times in seconds.

    ``span_s`` are the instants of its start and end, None if unknown. ``squares_s2`` are the
    squared deviations of task times from their mean, with ``freedoms`` degrees of freedom.
    """

    stage_id: int
    job_id: int | None
    operators: tuple[Operator, ...]
    scopes: tuple[str, ...]
    call: str | None
    dstream_batch_s: float | None
    parent_ids: frozenset[int]
    num_attempts: int
    ended: bool
    failed: bool
    span_s: tuple[float, float] | None
    num_tasks: int
    num_finished: int
    num_failed: int
    task_time_s: float
    squares_s2: float
    freedoms: int
    task_max_s: float
    outside_run_s: float
    run_s: float
    cpu_s: float
    gc_s: float
    python_s: float | None
    rows_read: float
    rows_written: float
    largest_task_ratio: float | None
    input_bytes: float
    shuffle_read_bytes: float
    shuffle_write_bytes: float
    spilled_bytes: float
    peak_memory_bytes: float
    peak_heap_bytes: float


def stage_sums(stage_runs: Sequence[Record]) -> list[StageSums]:
    """The stages of an application in the order of their ids, from
    :func:`headway.profiler.contents.stage_records`.
    """
    attempts: dict[int, list[Record]] = defaultdict(list)
    for row in stage_runs:
        attempts[row["stage_id"]].append(row)
    return [
        _sums_of(sorted(attempts[stage_id], key=lambda row: row["attempt_id"]))
        for stage_id in sorted(attempts)
    ]


def is_instant(at_s: float | None) -> TypeGuard[float]:
    """Whether it is a plausible instant."""
    return at_s is not None and 0 < at_s < _LATEST_S


def num_damaged(stage_runs: Sequence[Record]) -> int:
    """Attempts whose tasks finished at implausible times, which are not in any sum."""
    return sum(bool(row["num_finished"]) and not _is_measured(row) for row in stage_runs)


def heaviest(stages: Iterable[StageSums]) -> list[StageSums]:
    """The stages with the most task time, as many as a profile lists."""
    finished = [stage for stage in stages if stage.num_finished and stage.span_s is not None]
    return sorted(finished, key=lambda stage: (-stage.task_time_s, stage.stage_id))[:MOST_STAGES]


def recorded_stages(
    listed: Sequence[StageSums], all_stages: Sequence[StageSums], started_s: float
) -> tuple[RecordedStage, ...]:
    """The listed stages in order of submission, none before its parents (listed or not)."""
    parents = _listed_parents({stage.stage_id for stage in listed}, all_stages)
    # With a clock that was set back, stages would precede their parents.
    since: dict[int, float] = {}
    for stage in sorted(listed, key=lambda stage: stage.stage_id):
        submitted_s = stage.span_s[0] - started_s if stage.span_s else 0.0
        above_s = [since[parent] for parent in parents[stage.stage_id]]
        since[stage.stage_id] = max([submitted_s, *above_s])
    in_order = sorted(listed, key=lambda stage: (since[stage.stage_id], stage.stage_id))
    indices = {stage.stage_id: index for index, stage in enumerate(in_order)}
    return tuple(
        recorded_stage(
            stage,
            parents=tuple(sorted(indices[parent] for parent in parents[stage.stage_id])),
            span_s=_span_since(stage, started_s),
        )
        for stage in in_order
    )


def recorded_stage(
    stage: StageSums, *, parents: tuple[int, ...], span_s: tuple[float, float]
) -> RecordedStage:
    """One stage, which must have a finished task; ``span_s`` is in seconds since the start."""
    return RecordedStage(
        id=stage.stage_id,
        job=stage.job_id,
        work=operators_in_words(stage.operators, stage.scopes, of_stream=False) or stage.call,
        parents=parents,
        num_tasks=stage.num_tasks,
        num_finished=stage.num_finished,
        num_failed=stage.num_failed,
        num_attempts=stage.num_attempts,
        task_mean_s=stage.task_time_s / stage.num_finished,
        task_sd_s=math.sqrt(stage.squares_s2 / stage.freedoms) if stage.freedoms else None,
        task_max_s=stage.task_max_s,
        task_fixed_s=stage.outside_run_s / stage.num_finished,
        submitted_s=span_s[0],
        completed_s=span_s[1],
        rows_read=round(stage.rows_read),
        rows_written=round(stage.rows_written),
        largest_task_ratio=stage.largest_task_ratio,
        input_bytes=round(stage.input_bytes),
        shuffle_read_bytes=round(stage.shuffle_read_bytes),
        shuffle_write_bytes=round(stage.shuffle_write_bytes),
        peak_task_bytes=round(stage.peak_memory_bytes),
        spilled_bytes=round(stage.spilled_bytes),
        gc_ratio=share(stage.gc_s, stage.run_s),
        # Versions before 2.1 do not measure it.
        cpu_ratio=share(stage.cpu_s, stage.run_s) if stage.cpu_s > 0 else None,
        python_ratio=None if stage.python_s is None else share(stage.python_s, stage.run_s),
    )


def other_stages(stages: Sequence[StageSums], chain_s: float | None = None) -> OtherStages:
    return OtherStages(
        chain_s=chain_s if stages else None,
        num_stages=len(stages),
        num_tasks=sum(stage.num_finished for stage in stages),
        num_failed=sum(stage.num_failed for stage in stages),
        task_time_s=math.fsum(stage.task_time_s for stage in stages),
        input_bytes=round(sum(stage.input_bytes for stage in stages)),
        shuffle_read_bytes=round(sum(stage.shuffle_read_bytes for stage in stages)),
        shuffle_write_bytes=round(sum(stage.shuffle_write_bytes for stage in stages)),
        spilled_bytes=round(sum(stage.spilled_bytes for stage in stages)),
    )


def longest_chain_s(stages: Iterable[StageSums]) -> float:
    """Time of the longest chain of stages if each takes its longest task [s].

    A stage none of whose parents ran waits for the one that ended last before it began, since jobs
    follow each other as the driver's program submits them: theory.md (P16). A task that outlived
    its stage was not waited for.
    """
    spans = [(*stage.span_s, stage) for stage in stages if stage.span_s is not None]
    spans.sort(key=lambda span: (span[0], span[2].stage_id))
    in_order_of_end = sorted(spans, key=lambda span: span[1])
    ends_s = [end_s for _, end_s, _ in in_order_of_end]
    chains_s: dict[int, float] = {}
    for start_s, end_s, stage in spans:
        above = [chains_s[parent] for parent in stage.parent_ids if parent in chains_s]
        num_ended = bisect_right(ends_s, start_s + SAME_MOMENT_S)
        if not above and num_ended:
            above = [chains_s.get(in_order_of_end[num_ended - 1][2].stage_id, 0.0)]
        longest_task_s = min(stage.task_max_s, end_s - start_s)
        chains_s[stage.stage_id] = max(above, default=0.0) + longest_task_s
    return max(chains_s.values(), default=0.0)


def _sums_of(attempts: Sequence[Record]) -> StageSums:
    """One stage; the last of its attempts, in order, determines whether it failed."""
    first, last = attempts[0], attempts[-1]
    spans = [span for row in attempts if (span := _span(row)) is not None]
    finished = [row for row in attempts if _is_measured(row)]
    num_finished = sum(row["num_finished"] for row in finished)
    task_time_s = math.fsum(row["num_finished"] * row["task_mean_s"] for row in finished)
    mean_s = task_time_s / num_finished if num_finished else 0.0
    stated = [row["num_tasks"] for row in attempts if 0 < (row["num_tasks"] or 0) <= _MOST_TASKS]
    python_s = [row["python_s"] for row in finished if row["python_s"] is not None]

    def total(name: str) -> Any:
        return float(sum(max(row[name] or 0.0, 0.0) for row in finished))

    def most(name: str) -> float:
        return max((max(row[name] or 0.0, 0.0) for row in finished), default=0.0)

    largest_task_ratio = None
    if (rows_read := total("rows_read")) > 0:
        largest_task_ratio = most("rows_largest") * num_finished / rows_read
    return StageSums(
        stage_id=first["stage_id"],
        job_id=first["job_id"],
        # Operators that no row passed are not recorded.
        operators=max((row["operators"] or () for row in attempts), key=len),
        scopes=max((row["scopes"] or () for row in attempts), key=len),
        call=next((row["call"] for row in attempts if row["call"]), None),
        dstream_batch_s=first["dstream_batch_s"],
        # Spark numbers a stage after its parents.
        parent_ids=frozenset(
            parent
            for row in attempts
            for parent in row["parent_ids"] or ()
            if parent is not None and parent < row["stage_id"]
        ),
        num_attempts=len(attempts),
        ended=last["completed_s"] is not None,
        failed=bool(last["failed"]),
        span_s=(min(start_s for start_s, _ in spans), max(end_s for _, end_s in spans))
        if spans
        else None,
        # A later attempt has only the tasks that were lost.
        num_tasks=max(stated, default=num_finished),
        num_finished=num_finished,
        num_failed=sum(row["num_failed"] or 0 for row in attempts),
        task_time_s=task_time_s,
        squares_s2=math.fsum(
            (row["num_finished"] - 1) * (row["task_sd_s"] or 0.0) ** 2
            + row["num_finished"] * (row["task_mean_s"] - mean_s) ** 2
            for row in finished
        ),
        freedoms=max(num_finished - 1, 0),
        task_max_s=most("task_max_s"),
        outside_run_s=max(task_time_s - total("run_s"), 0.0),
        python_s=max(math.fsum(python_s), 0.0) if python_s else None,
        largest_task_ratio=largest_task_ratio,
        peak_memory_bytes=most("peak_memory_bytes"),
        peak_heap_bytes=most("peak_heap_bytes"),
        **{name: total(name) for name in SUMS_OF_TASKS},
    )


def _is_measured(row: Record) -> bool:
    return bool(row["num_finished"]) and row["launch_to_finish_s"] <= _LONGEST_S


def _span(row: Record) -> tuple[float, float] | None:
    """When an attempt was submitted and completed, or else when its tasks ran."""
    launched_s, launch_to_finish_s = row["first_launch_s"], row["launch_to_finish_s"]
    of_tasks = None
    if launched_s is not None:
        of_tasks = _plausible(launched_s, launched_s + launch_to_finish_s)
    submitted_s, completed_s = row["submitted_s"], row["completed_s"]
    if of_tasks is not None:
        submitted_s = of_tasks[0] if submitted_s is None else submitted_s
        completed_s = of_tasks[1] if completed_s is None else completed_s
    # The clock may have been set back in between.
    return _plausible(submitted_s, completed_s) or of_tasks


def _plausible(start_s: Any, end_s: Any) -> tuple[float, float] | None:
    if not is_instant(start_s) or not is_instant(end_s) or not 0 <= end_s - start_s <= _LONGEST_S:
        return None
    return start_s, end_s


def _listed_parents(listed: set[int], stages: Sequence[StageSums]) -> Mapping[int, frozenset[int]]:
    """By stage, the listed stages that it waits for, also through unlisted ones."""
    listed_parents: dict[int, frozenset[int]] = {}
    for stage in stages:  # in the order of ids, which is parents first
        above: set[int] = set()
        for parent in stage.parent_ids:
            above |= {parent} if parent in listed else listed_parents.get(parent, frozenset())
        listed_parents[stage.stage_id] = frozenset(above)
    return listed_parents


def _span_since(stage: StageSums, started_s: float) -> tuple[float, float]:
    """When the stage was submitted and completed, since a start."""
    assert stage.span_s is not None, "listed stages have times"
    return max(stage.span_s[0] - started_s, 0.0), max(stage.span_s[1] - started_s, 0.0)
