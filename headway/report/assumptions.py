"""The constants of judgement that a plan is based on, and no others, for ``headway explain``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from headway.assumptions import (
    AnyAssumption,
    advice,
    files,
    fits,
    logs,
    planning,
    predictions,
    resources,
)
from headway.domain import (
    AnyAnswer,
    BatchAnswer,
    CatchUp,
    DuringBurst,
    FindingCode,
    InfeasiblePlan,
    StatedRange,
    StreamAnswer,
)
from headway.domain.plan_parts import MemoryPlan
from headway.report.columns import paragraphs
from headway.units import parse_size_bytes

_MIB = parse_size_bytes("1m")
_OF_MEASURED_DURATIONS = (
    predictions.USUAL_RUN_TO_RUN_RATIO,
    predictions.SPREAD_PER_DOUBLING_RATIO,
    predictions.CALIBRATED_DOUBLINGS,
)
_OF_DRIVER = (resources.DRIVER_CPU_RATIO, resources.MOST_DRIVER_RATIO, resources.DRIVER_LIVE_RATIO)


def assumption_lines(plan: AnyAnswer) -> list[str]:
    """What the plan assumes, one item each: name, value, source."""
    assumptions = batch_assumptions_of(plan) if plan.ends else assumptions_of(plan)
    texts = [f"{stated.name}: {stated.text} ({stated.source})." for stated in assumptions]
    if plan.node_type is not None and plan.node_type.reserve_text is not None:
        texts.insert(0, f"{plan.node_type.reserve_text}.")
    return paragraphs(*texts)


def assumptions_of(plan: StreamAnswer) -> Iterator[AnyAssumption]:
    """The assumptions that affect this plan, in the order of their use.

    Constants that only bound the search, or decide about advice that this plan does not have, are
    not among them.
    """
    costs = plan.declared
    if costs is None:
        yield from (fits.LEAST_BATCHES_TO_CUT, fits.HUBER_SCORE, *_OF_MEASURED_DURATIONS)
        yield predictions.SPREAD_PER_DOUBLING_OF_PARTITIONS_RATIO
    else:
        yield from _of_ranges((costs.driver, costs.task_fixed, *costs.task_per_row))
        yield predictions.DECLARED_BATCH_NOISE_RATIO
        yield predictions.DECLARED_TASK_NOISE_RATIO
    yield predictions.HIGHEST_QUOTED_UTILIZATION_RATIO
    yield resources.LAUNCHES_PER_S
    yield from _of_the_choice(plan) if plan.feasible else _of_the_nearest(plan)
    yield from _of_promises(plan)
    if plan.memory is not None:
        yield from _of_memory(plan.memory)
    if plan.writes is not None and plan.writes.cost_per_hour:
        yield from (files.COMMITS_PER_SNAPSHOT, files.MAINTENANCE_INTERVAL_S)
        yield from (files.TABLES_PER_SNAPSHOT, files.RETAINED_BATCHES)
    if any(key.startswith("spark.driver.") for key in plan.spark_conf):
        yield from _OF_DRIVER
    if plan.feasible and plan.rules:
        yield resources.BACKLOG_TIMEOUT_S
    if plan.sensitivities:
        yield planning.SENSITIVITY_RATIO
    if any(improvement.latency_s is not None for improvement in plan.advice):
        yield planning.WORTHWHILE_LATENCY_RATIO
    if plan.prediction.overrun_probability >= advice.OVERRUNS_SHOWN_RATIO.value:
        yield advice.OVERRUNS_SHOWN_RATIO


def batch_assumptions_of(plan: BatchAnswer) -> Iterator[AnyAssumption]:
    """As `assumptions_of`, for the plan of a batch job."""
    if plan.declared is None:
        yield from _OF_MEASURED_DURATIONS
    else:
        yield from _of_ranges((plan.declared.work, plan.declared.driver))
        yield predictions.DECLARED_TASK_NOISE_RATIO
    codes = {finding.code for finding in plan.findings}
    if FindingCode.MODEL_FAR_OFF in codes:
        yield advice.FAR_OFF_RATIO
    if FindingCode.LOG_INCOMPLETE in codes:
        yield from (logs.LEAST_USUAL_RATIO, logs.LEAST_TASKS_RATIO)
    if codes & {FindingCode.MODEL_RISES, FindingCode.MORE_NODES_LESS_SURE}:
        yield planning.SAME_FIGURE_RATIO


def _of_ranges(figures: Sequence[StatedRange]) -> Iterator[AnyAssumption]:
    """The range of a figure that was declared without one, if there is such a figure."""
    factor = predictions.DECLARED_RANGE_RATIO.value
    if any(
        figure.mid_s > 0 and math.isclose(figure.high_s, factor * figure.mid_s)
        for figure in figures
    ):
        yield predictions.DECLARED_RANGE_RATIO


def _of_the_choice(plan: StreamAnswer) -> Iterator[AnyAssumption]:
    yield from (planning.CALM_TRIGGER_S, planning.SELDOM_RATIO, planning.ROOM_RATIO)
    if plan.optimality is not None and not plan.optimality.proved:
        yield planning.MANY_NODES_MARGIN_RATIO
        yield planning.NODE_COUNTS_TRIED
    if plan.configuration.max_offsets_per_trigger is not None:
        yield from (planning.LEAST_LIMIT_RATIO, planning.LEAST_CATCH_UP_RATIO)
        yield planning.FARTHEST_LIMIT_RATIO


def _of_the_nearest(plan: InfeasiblePlan) -> Iterator[AnyAssumption]:
    yield planning.CLOSE_TO_FLOOR_RATIO
    if plan.nearest:
        yield planning.TIMES_THE_NODES
        yield planning.LEAST_CONFIDENCE_PERCENT


def _of_promises(plan: StreamAnswer) -> Iterator[AnyAssumption]:
    if any(isinstance(promise, CatchUp | DuringBurst) for promise in plan.promises):
        yield planning.USUAL_BATCH_RATIO
        yield planning.MOST_BATCHES_TO_RECOVER
    codes = {finding.code for finding in plan.findings}
    if FindingCode.GROWTH_ENDS_PROMISE in codes:
        yield planning.MOST_GROWTH_SPANS
        yield fits.MOST_RISE_ERROR_RATIO
        yield fits.LEAST_GROWN_PART_RATIO
    if FindingCode.SLOW_GROWTH_ENDS_PROMISE in codes:
        yield fits.LEAST_SLOW_SPAN_S
        yield fits.LEAST_TREND_SCORE
    start = plan.after_start if plan.feasible else None
    if start is not None and start.evidence == "measured":
        yield fits.FRESH_JVM_S
        yield planning.SAME_AFTER_START_RATIO
        if start.restart is not None:
            yield resources.JVM_START_S


def _of_memory(memory: MemoryPlan) -> Iterator[AnyAssumption]:
    yield from (resources.HEAP_ROOM_RATIO, resources.RESERVED_BYTES, resources.UNIFIED_RATIO)
    # None of them where the profiled run set the overhead itself.
    base_overhead_bytes = memory.overhead_bytes - memory.native_bytes
    if base_overhead_bytes == resources.LEAST_OVERHEAD_BYTES.value:
        yield resources.LEAST_OVERHEAD_BYTES
    for assumption in (resources.OVERHEAD_RATIO, resources.PYTHON_OVERHEAD_RATIO):
        if abs(base_overhead_bytes - assumption.value * memory.heap_bytes) < _MIB:
            yield assumption
    if memory.heap_bytes >= resources.LARGEST_USEFUL_HEAP_BYTES.value:
        yield resources.LARGEST_USEFUL_HEAP_BYTES
    if memory.rocksdb is not None:
        yield from (resources.ROCKSDB_BITS_PER_KEY, resources.ROCKSDB_BUFFERED_ROW_BYTES)
        yield resources.ROCKSDB_ROOM_RATIO
