"""What was found about a setting, as data: a code and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from headway.lazy_classes import dataclass


class FindingCode(StrEnum):
    """What kind of finding it is; its numbers are named beside it."""

    OVER_CAPACITY = "over_capacity"
    """``rate_per_s``, ``stable_up_to_per_s``; ``is_sure`` is 0 if durations at the low end of their
    range are short enough."""
    TOO_CLOSE_TO_SATURATION = "too_close_to_saturation"
    """``rate_per_s``, ``utilization_ratio``, ``offered_load_ratio``, ``told_up_to_per_s``,
    ``stable_up_to_per_s``."""
    STABILITY_NOT_KNOWN = "stability_not_known"
    """``rate_per_s``, ``stable_up_to_per_s``, ``largest_rows`` of profiled batches of one size."""
    MOSTLY_OVERRUNS = "mostly_overruns"
    """``overrun_probability``; ``enough_trigger_s``, ``enough_slots`` if these would avoid it."""
    RATE_LIMIT_TOO_LOW = "rate_limit_too_low"
    """``limit_rows``, ``passed_per_s``, ``rate_per_s``; ``enough_rows`` where any number is."""
    RATE_LIMIT_LEAVES_LITTLE = "rate_limit_leaves_little"
    """``limit_rows``, ``catch_up_ratio``."""
    TRIGGERS_WAIT = "triggers_wait"
    """``min_rows`` of a batch, ``trigger_s``, ``interval_s`` at which batches start."""
    MORE_NODES_LESS_SURE = "more_nodes_less_sure"
    """``nodes`` after which more promise no less, ``planned_s`` and ``mean_s`` there,
    ``lowest_mean_s`` of more, ``seen_slots``."""
    MODEL_RISES = "model_rises"
    """``nodes`` from which the model says longer than for fewer, ``ratio`` by how much at most."""
    STATE_GROWS = "state_grows"
    """``growth_per_s``, ``state_rows``, ``batch_s_per_million_rows``."""
    JOIN_NOT_FULL = "join_not_full"
    """``state_rows`` in the log, ``full_state_rows`` that the plan is made for."""
    STATE_BREAKS_PROMISE = "state_breaks_promise"
    """``missed_after_s``, ``growth_per_s``, ``state_rows``, ``state_rows_then``."""
    BATCHES_GROW = "batches_grow"
    """``first_s`` and ``last_s`` of a batch in the profiled run, ``span_s`` between them,
    ``is_same_load`` and ``is_foreseeable`` (1 or 0)."""
    GROWTH_CAUSE = "growth_cause"
    """``first_s``, ``last_s`` of a batch, ``part_first_s``, ``part_last_s``, and if they grew
    ``state_first_rows``, ``state_last_rows``, ``largest_first_share``, ``largest_last_share``,
    ``gc_first_s``, ``gc_last_s``; named: ``part``, and ``causes`` as of `GrowthCause`."""
    SLOW_BATCHES_LEFT_OUT = "slow_batches_left_out"
    """``num_left_out`` batches of the profiled run that ran other stages, of ``num_batches``, their
    mean ``left_out_mean_s``, and that of the others, ``usual_mean_s``."""
    GROWTH_ENDS_PROMISE = "growth_ends_promise"
    """``span_s`` of the profiled growth, ``part_rise_ratio``, ``held_s`` after the run, and
    ``is_missed`` after that (1), or not known (0); named: ``part``, ``until``."""
    SLOW_GROWTH = "slow_growth"
    """``span_s`` in which it was seen, ``rise_per_day`` with the ends of its 90% interval,
    ``rise_low_per_day`` and ``rise_high_per_day``, ``every_batches``; named: ``part`` and
    ``measure``."""
    SLOW_GROWTH_ENDS_PROMISE = "slow_growth_ends_promise"
    """``held_s`` after the profiled run; named: ``until``, the day."""
    OUTAGE_SURVIVED = "outage_survived"
    """``outage_s``, the longest one after which no row is lost, with the ``retention_s`` of the
    source, ``first_batch_s``, and if it is known ``restart_s``."""
    RETENTION_LOSES_ROWS = "retention_loses_rows"
    """``planned_outage_s``, and those of `OUTAGE_SURVIVED`."""
    DECLARED = "declared"
    """Nothing of the job was measured."""
    SLOTS_FAR_OFF = "slots_far_off"
    """``slots``, ``least`` and ``most`` profiled, ``reach_doublings`` of the evidence."""
    PARTITIONS_FAR_OFF = "partitions_far_off"
    """``shuffle_partitions``, ``least`` and ``most`` profiled, ``reach_doublings``."""
    ROWS_FAR_OFF = "rows_far_off"
    """``batch_rows``, ``least`` and ``most`` profiled, ``reach_doublings``."""
    BATCH_SIZE_FAR_OFF = "batch_size_far_off"
    """``rows_ratio`` over the profiled batches of one size, ``reach_doublings``."""
    CONCURRENT_JOBS_NOT_PROFILED = "concurrent_jobs_not_profiled"
    """``concurrent_jobs``, ``profiled_concurrent_jobs``."""
    NO_OUTPUT_MODE = "no_output_mode"
    """Without it the window latency is unknown."""
    NO_WATERMARK_DELAY = "no_watermark_delay"
    """Without it the window latency is unknown."""
    NO_EMITTED_WINDOWS = "no_emitted_windows"
    """The plan shows windows, but not those of the last aggregation: its latency is unknown."""
    WATERMARK_BEHIND_UNKNOWN = "watermark_behind_unknown"
    """A join in front of the windows holds the watermark back: by how much is not recorded."""
    WATERMARK_BEHIND = "watermark_behind"
    """``behind_s`` by which joins hold the watermark of the windows back."""
    EVENT_TIMES_OLD = "event_times_old"
    """``lag_s`` of the newest rows behind the triggers that read them, longer than any window."""
    NO_EVENT_TIMES = "no_event_times"
    """Without them the window latency is unknown."""
    ROW_COST_UNKNOWN = "row_cost_unknown"
    """Batches of one size were profiled, and another is asked about."""
    BACKLOG_WHEN_PROFILED = "backlog_when_profiled"
    """``shortest_delay_s``."""
    BATCHES_MAY_OVERTAKE = "batches_may_overtake"
    """Several jobs run at a time."""
    BACKPRESSURE_WHEN_PROFILED = "backpressure_when_profiled"
    """Rows that it held back waited at the source."""
    RATE_OF_PROFILE = "rate_of_profile"
    """``rate_per_s``, which was not asked for."""
    TARGET_OF_PROFILE = "target_of_profile"
    """Named: the ``target`` that the profiled setting meets, which was not asked for."""
    RATE_LIMIT_OF_KAFKA_ONLY = "rate_limit_of_kafka_only"
    """Named: ``key``."""
    ROWS_NOT_COUNTED = "rows_not_counted"
    """The log counts no rows."""
    CHECKPOINT_WOULD_DO = "checkpoint_would_do"
    """The existing one with its ``partitions``: ``latency_s`` planned; named: ``statistic``."""
    IDLE_SLOTS = "idle_slots"
    """``source_tasks`` of a stage, ``slots``; named: ``stage``."""
    IDLE_CORES = "idle_cores"
    """``idle_cores`` of an executor's ``cores_per_executor``, ``task_cpus``."""
    NODE_RESERVE = "node_reserve"
    """Of a node, as of `NodeType`: ``cores``, ``reserved_cores``, and where memory is kept
    ``memory_bytes``, ``reserved_memory_bytes``; named: ``node_type``, ``reserved_by``."""
    CORE_SPEED_ASSUMED = "core_speed_assumed"
    """``core_speed_ratio`` over the figures of the profile; named: ``node_type``, their
    ``provenance``."""
    NO_MEMORY_PEAKS = "no_memory_peaks"
    """How much heap the tasks need is unknown."""
    LOCAL_MEMORY_PEAKS = "local_memory_peaks"
    """Peaks of a JVM that the driver was in."""
    HEAP_BELOW_NEED = "heap_below_need"
    """``heap_bytes``, ``needed_heap_bytes``; named: ``reason`` for the heap, and the ``need``."""
    PYTHON_MEMORY_UNKNOWN = "python_memory_unknown"
    """``overhead_bytes``; named: ``key`` that plans it."""
    TOPIC_HAS_MORE_PARTITIONS = "topic_has_more_partitions"
    """``source_partitions`` that were asked for, ``topic_partitions`` of Kafka."""
    SOURCE_TO_REPARTITION = "source_to_repartition"
    """``source_partitions`` that were asked for, which no option of a reader sets."""
    RATE_LIMIT_BEYOND_PROFILE = "rate_limit_beyond_profile"
    """``batch_rows``, ``profiled_ratio`` over the batches known; named: ``provenance``."""
    RATE_LIMIT_OF_EACH_SOURCE = "rate_limit_of_each_source"
    """``batch_rows`` that meet the target, ``num_sources``."""
    RATE_LIMIT_NOT_OFFERED = "rate_limit_not_offered"
    """``batch_rows`` that meet the target; named: ``why`` the source offers none."""
    RATE_LIMIT_BY_PARTITION = "rate_limit_by_partition"
    """``batch_rows`` that meet the target, ``num_source_partitions``; named: ``source``."""
    RATE_LIMIT_BY_FILE = "rate_limit_by_file"
    """``batch_rows`` that meet the target, ``file_rows``; named: ``source``."""
    MODEL_FAR_OFF = "model_far_off"
    """``modelled_ratio``: the profiled run over the model of its stages."""
    LOG_INCOMPLETE = "log_incomplete"
    """``missing_tasks`` of ``expected_tasks``, ``has_start`` and ``has_end`` (1 or 0);
    ``last_job_failed`` (1) if so."""
    EXECUTORS_VARIED = "executors_varied"
    """``executors`` at most in the profiled run, and their mean number, ``executors_mean``."""
    JOBS_FAILED = "jobs_failed"
    """``num_jobs`` of the profiled run."""
    SWITCHES_TURNED = "switches_turned"
    """``latency_s`` of the plan, ``latency_without_s`` of the same setting without them if it has
    one; named: the ``switches``, and the ``cautions`` of what is given up, empty if nothing is."""
    SWITCH_NOT_TURNED = "switch_not_turned"
    """``gain_s`` of a batch, if it could be turned; named: ``switch``, ``why`` it could not."""
    SKEWED_STAGE = "skewed_stage"
    """``stage_id``, ``longest_s`` and ``mean_s`` of its tasks."""
    EARLIER_WORDS = "earlier_words"
    """Of a file that an earlier version wrote, which had no code for it; named: ``text``."""


#: The headline must not be shown without them.
CAUTIONS = frozenset(
    (
        *(FindingCode.STATE_BREAKS_PROMISE, FindingCode.GROWTH_ENDS_PROMISE),
        *(FindingCode.SLOW_GROWTH_ENDS_PROMISE, FindingCode.RETENTION_LOSES_ROWS),
        *(FindingCode.GROWTH_CAUSE, FindingCode.SLOW_BATCHES_LEFT_OUT),
        *(FindingCode.RATE_OF_PROFILE, FindingCode.TARGET_OF_PROFILE),
        *(FindingCode.TOPIC_HAS_MORE_PARTITIONS, FindingCode.SOURCE_TO_REPARTITION),
    )
)
#: About batches that grow, which comes before everything else.
OF_GROWTH = frozenset((FindingCode.BATCHES_GROW, FindingCode.GROWTH_CAUSE))
#: Of settings without latencies to quote although their backlog need not grow.
NOT_QUOTED = frozenset((FindingCode.TOO_CLOSE_TO_SATURATION, FindingCode.STABILITY_NOT_KNOWN))
#: They say why the numbers are outside the calibrated range of the profile.
OUTSIDE_CALIBRATION = frozenset(
    (
        *(FindingCode.DECLARED, FindingCode.SLOTS_FAR_OFF, FindingCode.PARTITIONS_FAR_OFF),
        *(FindingCode.ROWS_FAR_OFF, FindingCode.BATCH_SIZE_FAR_OFF),
        FindingCode.CONCURRENT_JOBS_NOT_PROFILED,
    )
)
#: They make all latencies of the setting uncalibrated.
AGAINST_CALIBRATION = OUTSIDE_CALIBRATION | {
    *(FindingCode.OVER_CAPACITY, FindingCode.RATE_LIMIT_TOO_LOW, FindingCode.MOSTLY_OVERRUNS),
    *(FindingCode.TOO_CLOSE_TO_SATURATION, FindingCode.STABILITY_NOT_KNOWN),
    FindingCode.LOG_INCOMPLETE,
}
#: About what the profile does not contain, rather than about the setting.
OF_PROFILE = OUTSIDE_CALIBRATION | {
    *(FindingCode.NO_OUTPUT_MODE, FindingCode.NO_WATERMARK_DELAY, FindingCode.NO_EVENT_TIMES),
    *(FindingCode.NO_EMITTED_WINDOWS, FindingCode.WATERMARK_BEHIND_UNKNOWN),
    FindingCode.SLOW_BATCHES_LEFT_OUT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A code and its numbers, in base units; it is put into words where it is shown.

    ``names`` are those of the things that it is about: a stage, a node type, a Spark property.

    >>> Finding(code=FindingCode.MOSTLY_OVERRUNS, numbers={"overrun_probability": 0.87}).code
    <FindingCode.MOSTLY_OVERRUNS: 'mostly_overruns'>
    """

    code: FindingCode
    numbers: Mapping[str, float] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
