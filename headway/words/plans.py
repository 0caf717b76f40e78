"""Findings about a plan in words: its nodes, memory, rate limit and slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headway.assumptions.advice import LONGEST_TASK_RATIO
from headway.digits import format_money, rounded_down, size_text
from headway.domain import Finding, FindingCode, NodeType
from headway.units import (
    HOURS_PER_MONTH,
    S_PER_HOUR,
    counted,
    format_duration,
    listed,
    spark_memory_text,
)
from headway.words.sentences import rows_text

_NO_LIMIT = "no rate limit, though batches of up to {batch_rows:rows} meet the target: "


def _less_sure(finding: Finding) -> str:
    numbers = finding.numbers
    return (
        f"numbers of nodes above {round(numbers['nodes'])} do not lower the planned run time of "
        f"{format_duration(numbers['planned_s'])}: {_expected_with_more(numbers)}they are further "
        f"from the profiled {counted(round(numbers['seen_slots']), 'slot')} and so more uncertain; "
        "profile a run with more slots"
    )


def _expected_with_more(numbers: Mapping[str, float]) -> str:
    """The gain that is expected of more nodes, if there is one."""
    if "lowest_mean_s" not in numbers or "mean_s" not in numbers:
        return ""
    more, best = format_duration(numbers["lowest_mean_s"]), format_duration(numbers["mean_s"])
    if more == best or numbers["lowest_mean_s"] > numbers["mean_s"]:
        return ""
    return f"the run is expected to take {more} instead of {best}, but "


def _growth_ends(finding: Finding) -> str:
    numbers, until = finding.numbers, finding.names["until"]
    per_hour_s = numbers["part_rise_ratio"] * S_PER_HOUR
    after = "and missed after that"
    if not numbers["is_missed"]:
        span = format_duration(numbers["span_s"])
        after = f"and what comes after that is not known: growth was measured for {span}"
    return (
        f"caution: {finding.names['part']} gets longer, by up to {format_duration(per_hour_s)} in "
        f"an hour; if that goes on, the target is met until {until}, "
        f"{format_duration(numbers['held_s'])} after the profiled run, {after}"
    )


def _slow_growth(finding: Finding) -> str:
    numbers, measure = finding.numbers, finding.names["measure"]
    amount = {"state_rows": rows_text, "state_bytes": size_text}.get(measure, format_duration)
    part, low = finding.names["part"], numbers["rise_low_per_day"]
    if measure == "compaction":
        interval = round(numbers["every_batches"])
        tens, ending = interval // 10 % 10, {1: "st", 2: "nd", 3: "rd"}.get(interval % 10, "th")
        nth = f"{interval}{'th' if tens == 1 else ending}"
        part = f"the compaction of a log in every {nth} batch, which is part of {part},"
    elif measure != "phase":
        part = f"the {part}"
    rise, high = amount(numbers["rise_per_day"]), amount(numbers["rise_high_per_day"])
    if low <= 0.0:
        return f"{part} does not grow for certain: by up to {high} a day"
    return f"{part} grows by {rise} a day (90% interval {amount(low)} to {high})"


def _outage_survived(finding: Finding) -> str:
    return f"an outage of at most {_longest_outage(finding)} loses no row: {_why_lost(finding)}"


def _retention_loses(finding: Finding) -> str:
    planned = format_duration(finding.numbers["planned_outage_s"])
    return (
        f"caution: an outage of {planned} loses rows, one of at most {_longest_outage(finding)} "
        f"does not: {_why_lost(finding)}; keep rows for longer (retention.ms of the topic)"
    )


def _longest_outage(finding: Finding) -> str:
    return format_duration(rounded_down(finding.numbers["outage_s"]))


def _why_lost(finding: Finding) -> str:
    numbers, restart = finding.numbers, "the restart itself is not included: its time is unknown"
    if "restart_s" in numbers:
        restart = f"the restart takes {format_duration(numbers['restart_s'])}"
    return (
        f"the source keeps rows for {format_duration(numbers['retention_s'])}, the first batch "
        f"after it takes {format_duration(numbers['first_batch_s'])}, and {restart}"
    )


def _target_of_profile(finding: Finding) -> str:
    predicted_s = finding.numbers.get("predicted_s")
    predicted = "" if predicted_s is None else f", {format_duration(predicted_s)} predicted"
    target = finding.names["target"]
    statistic = target.partition(" <= ")[0]
    return (
        f"{target} is the lowest {statistic} that the profiled setting meets{predicted}: no other "
        "target was given"
    )


def with_checkpoint_text(finding: Finding) -> str:
    """What the plan would be with the existing checkpoint: its latency, nodes and cost.

    The nodes and the cost are mentioned only where they differ from those of the plan.
    """
    numbers, names = finding.numbers, finding.names
    text = f"{names['statistic']} up to {format_duration(numbers['latency_s'])}"
    if "nodes" in numbers:
        text += f" on {counted(round(numbers['nodes']), 'node')}"
    added_per_hour = numbers.get("added_cost_per_hour")
    if added_per_hour is not None:
        by_month = abs(added_per_hour) * HOURS_PER_MONTH
        amount = format_money(by_month, currency=names["currency"])
        text += f", for {amount} per month {'more' if added_per_hour > 0 else 'less'}"
    return text


def _checkpoint_would_do(finding: Finding) -> str:
    partitions = counted(round(finding.numbers["partitions"]), "shuffle partition")
    return (
        f"the existing checkpoint, with {partitions} and its state, also meets the target: "
        f"{with_checkpoint_text(finding)}, with headway plan --checkpoint existing"
    )


def _idle_slots(finding: Finding) -> str:
    tasks, slots = round(finding.numbers["source_tasks"]), round(finding.numbers["slots"])
    idle_text, pronoun = (
        ("slots are idle", "them") if slots - tasks > 1 else ("slots is idle", "it")
    )
    return (
        f"{finding.names['stage']} has {counted(tasks, 'task')}, one per source partition or "
        f"split, so {slots - tasks} of {slots} {idle_text} in this stage; more source partitions "
        f"would use {pronoun}"
    )


def _node_reserve(finding: Finding) -> str:
    counts: dict[str, Any] = {name: round(number) for name, number in finding.numbers.items()}
    node_type = NodeType(
        name=finding.names["node_type"], reserved_by=finding.names.get("reserved_by"), **counts
    )
    return f"{node_type.reserve_text}; the driver needs additional room"


def _core_speed(finding: Finding) -> str:
    node_type, ratio = finding.names["node_type"], finding.numbers["core_speed_ratio"]
    figures = "profiled cores" if finding.names["provenance"] == "measured" else "declared costs"
    return (
        f"the core speed of {node_type} is assumed to be {ratio:g} times that of the {figures}; "
        "profile a run on this node type to confirm it"
    )


def _heap_below_need(finding: Finding) -> str:
    return (
        f"a heap of {_memory(finding, 'heap_bytes')}, {finding.names['reason']}, is less than the "
        f"{_memory(finding, 'needed_heap_bytes')} of {finding.names.get('need', 'measured peak')} "
        "plus headroom"
    )


def _memory(finding: Finding, name: str) -> str:
    return spark_memory_text(round(finding.numbers[name]))


def _limit_beyond_profile(finding: Finding) -> str:
    measured = finding.names["provenance"] == "measured"
    reference_text = "the largest profiled one" if measured else "those at this rate"
    return (
        f"no rate limit: even batches of {rows_text(finding.numbers['batch_rows'])}, "
        f"{finding.numbers['profiled_ratio']:g} times {reference_text}, meet the target, and the "
        "cost of larger ones is unknown"
    )


def _log_incomplete(finding: Finding) -> str:
    numbers = finding.numbers
    missing = [f"its {end}" for end in ("start", "end") if not numbers[f"has_{end}"]]
    if numbers["missing_tasks"]:
        expected = counted(round(numbers["expected_tasks"]), "task")
        missing.append(f"{numbers['missing_tasks']:,.0f} of {expected}")
    lacks = f"the log lacks {listed(missing)}" if missing else "the log has gaps"
    to_profile = "a finished run"
    if numbers.get("last_job_failed"):
        unfinished = f" and {missing[-1]} did not finish" if numbers["missing_tasks"] else ""
        lacks = f"the last job failed{unfinished}, so that the run may have ended early"
        to_profile = "a run whose jobs succeed"
    return (
        f"{lacks}: the plan covers the recorded work only and is not calibrated, and the whole job "
        f"may take longer; profile {to_profile}"
    )


def _skewed_stage(finding: Finding) -> str:
    longest_s, mean_s = finding.numbers["longest_s"], finding.numbers["mean_s"]
    # Files of earlier versions have its number only.
    stage = finding.names.get("stage", f"stage {finding.numbers['stage_id']:.0f}")
    longest = f"{format_duration(longest_s)}, {longest_s / mean_s:.1f} times the mean"
    rows_ratio = finding.numbers.get("rows_ratio")
    if rows_ratio is None:
        cause = ": skew or a slow start"
    elif rows_ratio > LONGEST_TASK_RATIO.value:
        cause = ": skew"
    else:
        cause = (
            f", but no task read more than {rows_ratio:.1f} times the mean rows: a slow start, or "
            "rows that take longer"
        )
    return f"{stage}: its longest task takes {longest}{cause}, which more nodes do not fix"


def _switches_turned(finding: Finding) -> str:
    numbers, names = finding.numbers, finding.names
    without_s = numbers.get("latency_without_s")
    without = "none, over capacity" if without_s is None else format_duration(without_s)
    cautions = f"; {names['cautions']}" if names["cautions"] else ""
    return (
        f"the plan turns {names['switches']}: the planned latency is "
        f"{format_duration(numbers['latency_s'])} instead of {without}, counting the least gain of "
        f"the 90% interval{cautions}"
    )


def _switch_not_turned(finding: Finding) -> str:
    gain_s = finding.numbers.get("gain_s")
    if gain_s is None:
        why = finding.names["why"]
    elif gain_s >= 0.0:
        why = (
            f"it is expected to save {format_duration(gain_s)} of the profiled batch, which lowers "
            "neither the nodes nor the cost"
        )
    else:
        why = f"it is expected to add {format_duration(-gain_s)} to the profiled batch"
    return f"{finding.names['switch']} is allowed, but not part of the plan: {why}"


#: By the code of a finding about a plan: a sentence with places, or what makes one.
OF_PLANS: Mapping[FindingCode, Callable[[Finding], str] | str] = {
    FindingCode.MORE_NODES_LESS_SURE: _less_sure,
    FindingCode.MODEL_RISES: (
        "from {nodes:#node} on, the model predicts up to {ratio:above 1} more run time than with "
        "fewer: it approximates stages that compete for slots; a real run takes no longer"
    ),
    FindingCode.JOIN_NOT_FULL: (
        "the state of the join was not full in the log: it had {state_rows:rows}, and is planned "
        "with the {full_state_rows:about rows} that its watermark and range keep at this rate"
    ),
    FindingCode.STATE_BREAKS_PROMISE: (
        "caution: the state grows by {growth_per_s:rate} at this rate; after "
        "{missed_after_s:duration} it has {state_rows_then:about rows} instead of "
        "{state_rows:rows}, and the target is missed: limit the state with a watermark or a time "
        "to live"
    ),
    FindingCode.GROWTH_ENDS_PROMISE: _growth_ends,
    FindingCode.SLOW_GROWTH: _slow_growth,
    FindingCode.SLOW_GROWTH_ENDS_PROMISE: (
        "caution: if what grows slowly goes on, the target is missed from {until} on, "
        "{held_s:duration} after the profiled run: see the notes"
    ),
    FindingCode.OUTAGE_SURVIVED: _outage_survived,
    FindingCode.RETENTION_LOSES_ROWS: _retention_loses,
    FindingCode.RATE_OF_PROFILE: (
        "{rate_per_s:rate} is the rate of the profiled run: no other was given"
    ),
    FindingCode.TARGET_OF_PROFILE: _target_of_profile,
    FindingCode.RATE_LIMIT_OF_KAFKA_ONLY: "only direct Kafka streams use {key}",
    FindingCode.ROWS_NOT_COUNTED: (
        "the log counts no rows: planned for the profiled rate, and without a rate limit"
    ),
    FindingCode.CHECKPOINT_WOULD_DO: _checkpoint_would_do,
    FindingCode.IDLE_SLOTS: _idle_slots,
    FindingCode.IDLE_CORES: (
        "{idle_cores:#core} of the {cores_per_executor:.0f} cores of an executor stay idle, "
        "because each task takes {task_cpus:g} (spark.task.cpus)"
    ),
    FindingCode.NODE_RESERVE: _node_reserve,
    FindingCode.CORE_SPEED_ASSUMED: _core_speed,
    FindingCode.NO_MEMORY_PEAKS: (
        "no memory peaks were recorded, so the heap that the tasks need is unknown"
    ),
    FindingCode.LOCAL_MEMORY_PEAKS: (
        "memory peaks were measured in one JVM together with the driver (local[n]), which says "
        "little about an executor: they do not lower its heap; profile a run on a cluster"
    ),
    FindingCode.HEAP_BELOW_NEED: _heap_below_need,
    FindingCode.PYTHON_MEMORY_UNKNOWN: (
        "the memory of Python workers was not recorded: the overhead of {overhead_bytes:memory} is "
        "Spark's default for Python on Kubernetes; set {key} in the profiled run to plan it"
    ),
    FindingCode.TOPIC_HAS_MORE_PARTITIONS: (
        "the plan is for {source_partitions:#task} that read the source, and the topic has "
        "{topic_partitions:#partition}: minPartitions of Kafka's reader is a minimum, so this "
        "needs a topic with {source_partitions:#partition}"
    ),
    FindingCode.SOURCE_TO_REPARTITION: (
        "the plan is for {source_partitions:#source partition}: repartition the source first, "
        "since no option of its reader is known to split them"
    ),
    FindingCode.RATE_LIMIT_BEYOND_PROFILE: _limit_beyond_profile,
    FindingCode.RATE_LIMIT_OF_EACH_SOURCE: (
        f"{_NO_LIMIT}each of the {{num_sources:.0f}} sources has its own rate limit; divide the "
        "rows among them by their input rates"
    ),
    FindingCode.RATE_LIMIT_NOT_OFFERED: f"{_NO_LIMIT}{{why}}",
    FindingCode.RATE_LIMIT_BY_PARTITION: (
        f"{_NO_LIMIT}{{source}} limits each of its {{num_source_partitions:#partition}} "
        "separately, and the busiest one would fall behind"
    ),
    FindingCode.RATE_LIMIT_BY_FILE: (
        f"{_NO_LIMIT}{{source}} takes whole files, of {{file_rows:rows}} on average, and fewer "
        "files than that would let the query fall behind; write smaller files"
    ),
    FindingCode.MODEL_FAR_OFF: (
        "the profiled run took {modelled_ratio:.2g} times as long as the model of its stages "
        "predicts; the plan is scaled to that run and is more uncertain"
    ),
    FindingCode.LOG_INCOMPLETE: _log_incomplete,
    FindingCode.EXECUTORS_VARIED: (
        "the profiled run allocated executors dynamically, {executors:#executor} at most and "
        "{executors_mean:.1f} on average; the plan takes all of them as present from start to end, "
        "so that a fixed number may be faster; profile a run with a fixed number"
    ),
    FindingCode.JOBS_FAILED: "{num_jobs:#job} failed in the profiled run",
    FindingCode.SKEWED_STAGE: _skewed_stage,
    FindingCode.SWITCHES_TURNED: _switches_turned,
    FindingCode.SWITCH_NOT_TURNED: _switch_not_turned,
    FindingCode.EARLIER_WORDS: "{text}",
}
