"""Findings about a plan in words: its nodes, memory, rate limit and slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headway.digits import size_text
from headway.domain import Finding, FindingCode, NodeType
from headway.units import S_PER_HOUR, counted, format_duration
from headway.words.sentences import filled, rows_text

_NO_LIMIT = "no rate limit, though batches of up to {batch_rows:rows} meet the target: "
_WHY_LOST = (
    "the source keeps rows for {retention_s:duration}, the first batch after it takes "
    "{first_batch_s:duration}, and <the restart takes {restart_s:duration}|the restart itself is "
    "not included: its time is unknown>"
)


def _less_sure(finding: Finding) -> str:
    return filled(
        "numbers of nodes above {nodes:.0f} do not lower the planned run time of "
        f"{{planned_s:duration}}: {_expected_with_more(finding.numbers)}they are further from the "
        "profiled {seen_slots:#slot} and so more uncertain; profile a run with more slots",
        finding,
    )


def _expected_with_more(numbers: Mapping[str, float]) -> str:
    if "lowest_mean_s" not in numbers or "mean_s" not in numbers:
        return ""
    more, best = format_duration(numbers["lowest_mean_s"]), format_duration(numbers["mean_s"])
    if more == best or numbers["lowest_mean_s"] > numbers["mean_s"]:
        return ""
    return f"the run is expected to take {more} instead of {best}, but "


def _growth_ends(finding: Finding) -> str:
    per_hour_s = finding.numbers["part_rise_ratio"] * S_PER_HOUR
    unknown = "and what comes after that is not known: growth was measured for {span_s:duration}"
    after = "and missed after that" if finding.numbers["is_missed"] else unknown
    return filled(
        f"caution: {{part}} gets longer, by up to {format_duration(per_hour_s)} in an hour; if "
        "that goes on, the target is met until {until}, {held_s:duration} after the profiled run, "
        f"{after}",
        finding,
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


def _idle_slots(finding: Finding) -> str:
    tasks, slots = round(finding.numbers["source_tasks"]), round(finding.numbers["slots"])
    return (
        f"{finding.names['stage']} has {counted(tasks, 'task')}, one per source partition or split,"
        f" so {slots - tasks} of {slots} slots are idle in this stage; more source partitions "
        "would use them"
    )


def _node_reserve(finding: Finding) -> str:
    counts: dict[str, Any] = {name: round(number) for name, number in finding.numbers.items()}
    node_type = NodeType(
        name=finding.names["node_type"], reserved_by=finding.names.get("reserved_by"), **counts
    )
    return f"{node_type.reserve_text}; the driver needs additional room"


def _core_speed(finding: Finding) -> str:
    figures = "profiled cores" if finding.names["provenance"] == "measured" else "declared costs"
    text = "the core speed of {node_type} is assumed to be {core_speed_ratio:g} times that of the "
    return filled(f"{text}{figures}; profile a run on this node type to confirm it", finding)


def _limit_beyond_profile(finding: Finding) -> str:
    measured = finding.names["provenance"] == "measured"
    reference = "the largest profiled one" if measured else "those at this rate"
    return filled(
        "no rate limit: even batches of {batch_rows:rows}, {profiled_ratio:g} times "
        f"{reference}, meet the target, and the cost of larger ones is unknown",
        finding,
    )


def _skewed_stage(finding: Finding) -> str:
    # Files of earlier versions have the number of the stage only.
    return filled(
        "<{stage}|stage {stage_id:.0f}>: its longest task takes {longest_s:duration}, "
        f"{finding.numbers['longest_s'] / finding.numbers['mean_s']:.1f} times the mean: skew, "
        "which more nodes do not fix",
        finding,
    )


def _switches_turned(finding: Finding) -> str:
    text = (
        "the plan turns {switches}: the planned latency is {latency_s:duration} instead of "
        "<{latency_without_s:duration}|none, over capacity>, counting the least gain of the 90% "
        "interval"
    )
    return filled(f"{text}; {{cautions}}" if finding.names["cautions"] else text, finding)


def _switch_not_turned(finding: Finding) -> str:
    gain_s = finding.numbers.get("gain_s", 0.0)
    expected = (
        "it is expected to save {gain_s:duration} of the profiled batch, which lowers neither the "
        "nodes nor the cost"
        if gain_s >= 0.0
        else f"it is expected to add {format_duration(-gain_s)} to the profiled batch"
    )
    why = expected if "gain_s" in finding.numbers else "{why}"
    return filled(f"{{switch}} is allowed, but not part of the plan: {why}", finding)


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
    FindingCode.OUTAGE_SURVIVED: (
        f"an outage of at most {{outage_s:duration at most}} loses no row: {_WHY_LOST}"
    ),
    FindingCode.RETENTION_LOSES_ROWS: (
        "caution: an outage of {planned_outage_s:duration} loses rows, one of at most "
        f"{{outage_s:duration at most}} does not: {_WHY_LOST}; keep rows for longer (retention.ms "
        "of the topic)"
    ),
    FindingCode.RATE_OF_PROFILE: (
        "{rate_per_s:rate} is the rate of the profiled run: no other was given"
    ),
    FindingCode.TARGET_OF_PROFILE: (
        "{target} is the lowest p99 that the profiled setting meets"
        "<, {predicted_s:duration} predicted>: no other target was given"
    ),
    FindingCode.RATE_LIMIT_OF_KAFKA_ONLY: "only direct Kafka streams use {key}",
    FindingCode.ROWS_NOT_COUNTED: (
        "the log counts no rows: planned for the profiled rate, and without a rate limit"
    ),
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
    FindingCode.HEAP_BELOW_NEED: (
        "a heap of {heap_bytes:memory}, {reason}, is less than the {needed_heap_bytes:memory} of "
        "<{need}|measured peak> plus headroom"
    ),
    FindingCode.PYTHON_MEMORY_UNKNOWN: (
        "the memory of Python workers was not recorded: the overhead of {overhead_bytes:memory} is "
        "Spark's default for Python on Kubernetes; set {key} in the profiled run to plan it"
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
        "predicts; the plan is scaled by this ratio and is more uncertain"
    ),
    FindingCode.JOBS_FAILED: "{num_jobs:#job} failed in the profiled run",
    FindingCode.SKEWED_STAGE: _skewed_stage,
    FindingCode.SWITCHES_TURNED: _switches_turned,
    FindingCode.SWITCH_NOT_TURNED: _switch_not_turned,
    FindingCode.EARLIER_WORDS: "{text}",
}
