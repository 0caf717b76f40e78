"""Findings about a setting in words: what it will do, and what the profile knows about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from headway.domain import Finding, FindingCode
from headway.units import (
    counted,
    duration_beside,
    exact_duration,
    format_duration,
    format_durations,
    format_rate,
    parse_duration_s,
)
from headway.words.sentences import filled, rows_text, stable_up_to

MAY_BE_SHORTER = (
    "batches may be shorter than expected, since runs differ, most of all outside what was profiled"
)


def _over_capacity(finding: Finding) -> str:
    text = "over capacity at {rate_per_s:rate}: the backlog grows; {stable_up_to_per_s:stability}"
    # Files of earlier versions do not say.
    is_sure = finding.numbers.get("is_sure", 1.0)
    return filled(text if is_sure else f"{text}; {MAY_BE_SHORTER}", finding)


def _too_close(finding: Finding) -> str:
    numbers = finding.numbers
    if "rate_per_s" not in numbers:  # rows are not counted
        return "too close to saturation to predict a latency"
    predicted_text, stable_text = "", stable_up_to(numbers["stable_up_to_per_s"])
    if numbers["told_up_to_per_s"] > 0:
        rate = format_rate(numbers["told_up_to_per_s"])
        predicted_text = f"; predicted up to {rate}"
        if stable_text == f"stable up to {rate}":
            predicted_text, stable_text = "", f"predicted and stable up to {rate}"
    load = numbers.get("offered_load_ratio", numbers["utilization_ratio"])  # in earlier files
    return (
        f"too close to saturation to predict a latency at {format_rate(numbers['rate_per_s'])}: "
        f"at an offered load of {load:.0%} it depends too much on small "
        f"errors in the cost per row{predicted_text}; {stable_text}"
    )


def _mostly_overruns(finding: Finding) -> str:
    numbers = finding.numbers
    text = (
        f"{numbers['overrun_probability']:.0%} of the batches overrun the trigger interval, so the "
        "query runs as fast as possible"
    )
    cures = []
    if "enough_trigger_s" in numbers:
        cures.append(f"a trigger interval of {format_duration(numbers['enough_trigger_s'])}")
    if "enough_slots" in numbers:
        cures.append(counted(round(numbers["enough_slots"]), "slot"))
    return f"{text}; {' or '.join(cures)} would avoid that" if cures else text


def _limit_too_low(finding: Finding) -> str:
    numbers = finding.numbers
    enough = numbers.get("enough_rows")
    return (
        f"the rate limit of {rows_text(numbers['limit_rows'])} per batch admits "
        f"{format_rate(numbers['passed_per_s'])}, less than the input rate of "
        f"{format_rate(numbers['rate_per_s'])}: the backlog grows"
        + ("" if enough is None else f"; {rows_text(enough)} would suffice")
    )


def _batches_grow(finding: Finding) -> str:
    numbers = finding.numbers
    load = "at a constant rate" if numbers["is_same_load"] else "for the same rows"
    # Files of earlier versions do not say whether it can be foreseen.
    is_foreseeable = numbers.get("is_foreseeable", 0.0)
    outlook = "a plan holds until a date only," if is_foreseeable else "no plan holds"
    return (
        f"batches grew from {format_duration(numbers['first_s'])} to "
        f"{format_duration(numbers['last_s'])} in {format_duration(numbers['span_s'])} {load}; "
        f"{outlook} unless that stops"
    )


def _growth_cause(finding: Finding) -> str:
    numbers = finding.numbers
    part_s = numbers["part_last_s"] - numbers["part_first_s"]
    share = part_s / (numbers["last_s"] - numbers["first_s"])
    causes = [filled(_CAUSES[cause], finding) for cause in finding.names["causes"].split()]
    why = f"likely cause: {' and '.join(causes)}" if causes else "the log does not show why"
    return (
        f"{min(share, 1.0):.0%} of the growth is in {finding.names['part']}, which grew from "
        f"{format_duration(numbers['part_first_s'])} to {format_duration(numbers['part_last_s'])} "
        f"per batch; {why}; stop the growth, and profile a run after that"
    )


#: By `GrowthCause`.
_CAUSES: Mapping[str, str] = {
    "state_rows": (
        "the state grew from {state_first_rows:rows} to {state_last_rows:rows}, which a watermark "
        "or a time to live would limit"
    ),
    "largest_task": (
        "the rows of its largest task grew from {largest_first_share:.0%} to "
        "{largest_last_share:.0%} of all, as they do if few keys get most of the rows"
    ),
    "gc": (
        "garbage collection in its tasks grew from {gc_first_s:duration} to {gc_last_s:duration} "
        "per batch, as it does if memory runs short"
    ),
    "listing": (
        "the folder of the source has more and more files to list, which cleanSource would remove"
    ),
    "sink_log": (
        "the file sink keeps a log of all files that it ever wrote, which the option retention "
        "would limit"
    ),
    "checkpoint": "the file system takes longer and longer to write the files of the checkpoint",
}


def _slots_far_off(finding: Finding) -> str:
    slots, why = finding.numbers["slots"], "tasks on so few slots were not profiled"
    if slots > finding.numbers["most"]:
        why = "contention between tasks and the network load of so many executors were not profiled"
    return _far_off(finding, counted(round(slots), "slot"), why)


def _partitions_far_off(finding: Finding) -> str:
    return _far_off(
        finding,
        counted(round(finding.numbers["shuffle_partitions"]), "shuffle partition"),
        "the cost per shuffle partition is extrapolated",
    )


def _rows_far_off(finding: Finding) -> str:
    rows = finding.numbers["batch_rows"]
    batch_size_text = f"{_rounded(rows)} {'row' if rows == 1 else 'rows'} per batch"
    if "row_cost_half_range_ratio" in finding.numbers:
        above = rows > finding.numbers["most"]
        size, bound = ("larger", "most") if above else ("smaller", "least")
        return (
            f"{batch_size_text}: their time is not known, no batch was {size} than "
            f"{rows_text(finding.numbers[bound])}, and batches of one size do not show how much of "
            "their time is for the rows; the interval covers what is possible"
        )
    return _far_off(finding, batch_size_text, "the cost per row is extrapolated")


def _far_off(finding: Finding, requested: str, why: str) -> str:
    numbers = finding.numbers
    smallest, largest, reach = numbers["least"], numbers["most"], numbers["reach_doublings"]
    profiled = _rounded(smallest)
    if smallest != largest:
        profiled += f" to {_rounded(largest)}"
    if not reach:
        why = "no tasks were recorded, only progress events"
    return f"{requested}, {_beyond(reach)} the profiled {profiled}: {why}"


def _beyond(reach_doublings: float) -> str:
    return f"more than {2.0**reach_doublings:g} times outside" if reach_doublings else "outside"


def _rounded(value: float) -> str:
    return f"{float(f'{value:.4g}'):,.10g}"


def _batch_size_far_off(finding: Finding) -> str:
    ratio, reach = finding.numbers["rows_ratio"], finding.numbers["reach_doublings"]
    return f"batches of {ratio:.3g} times the profiled rows, {_beyond(reach)} the profiled 1"


def duration_against(seconds: float, limit_s: float) -> str:
    """A duration with as many digits as show on which side of a limit it is, in its unit.

    >>> duration_against(2.0013, 2.0), duration_against(1.9, 2.0), duration_against(211.2, 262.0)
    ('2.001 s', '1.90 s', '211 s')
    """
    text = duration_beside(seconds, limit_s)
    for digits in range(4, 10):
        if math.isinf(seconds) or (parse_duration_s(text) > limit_s) == (seconds > limit_s):
            break
        text = exact_duration(float(f"{seconds:.{digits}g}"))
    return text


def with_limit(seconds: float, limit_s: float) -> tuple[str, str]:
    """A duration, with digits as `duration_against`, and its limit in the same unit.

    >>> with_limit(0.948, 1.5), with_limit(2.0013, 2.0), with_limit(211.2, 262.0)
    (('0.948 s', '1.50 s'), ('2.001 s', '2.00 s'), ('211 s', '262 s'))
    """
    against, (text, limit) = duration_against(seconds, limit_s), format_durations(seconds, limit_s)
    if duration_beside(limit_s, limit_s) != format_duration(limit_s):
        return against, exact_duration(limit_s)
    return text if against == format_duration(seconds) else against, limit


#: By the code of a finding about a setting: a sentence with places, or what makes one.
OF_PREDICTIONS: Mapping[FindingCode, Callable[[Finding], str] | str] = {
    FindingCode.OVER_CAPACITY: _over_capacity,
    FindingCode.TOO_CLOSE_TO_SATURATION: _too_close,
    FindingCode.STABILITY_NOT_KNOWN: (
        "whether {rate_per_s:rate} is stable is not known: no batch was larger than "
        "{largest_rows:rows}, and batches of one size do not show how much of their time is for "
        "the rows; {stable_up_to_per_s:stability} as far as is known"
    ),
    FindingCode.MOSTLY_OVERRUNS: _mostly_overruns,
    FindingCode.TRIGGERS_WAIT: (
        "batches start every {interval_s:duration}, since triggers wait for {min_rows:,.0f} rows "
        "(minOffsetsPerTrigger)"
    ),
    FindingCode.RATE_LIMIT_TOO_LOW: _limit_too_low,
    FindingCode.RATE_LIMIT_LEAVES_LITTLE: (
        "the rate limit of {limit_rows:rows} per batch leaves less than {catch_up_ratio:above 1} "
        "of the input rate for catching up"
    ),
    FindingCode.STATE_GROWS: (
        "the state grows by {growth_per_s:rate}: this prediction is for the {state_rows:rows} at "
        "the end of the profiled run, and every further million makes a batch "
        "{batch_s_per_million_rows:duration} longer"
    ),
    FindingCode.BATCHES_GROW: _batches_grow,
    FindingCode.GROWTH_CAUSE: _growth_cause,
    FindingCode.SLOW_BATCHES_LEFT_OUT: (
        "{num_left_out:.0f} of {num_batches:.0f} profiled batches ran other stages and took "
        "{left_out_mean_s:duration} on average, the others {usual_mean_s:duration}: all latencies "
        "and durations are those of the others alone, so real ones are longer"
    ),
    FindingCode.DECLARED: "based on declared costs: nothing of this job was measured",
    FindingCode.SLOTS_FAR_OFF: _slots_far_off,
    FindingCode.PARTITIONS_FAR_OFF: _partitions_far_off,
    FindingCode.ROWS_FAR_OFF: _rows_far_off,
    FindingCode.BATCH_SIZE_FAR_OFF: _batch_size_far_off,
    FindingCode.CONCURRENT_JOBS_NOT_PROFILED: (
        "{concurrent_jobs:#job} at a time, profiled with {profiled_concurrent_jobs:.0f}: how jobs "
        "share the slots is estimated"
    ),
    FindingCode.NO_OUTPUT_MODE: (
        "window latency is unavailable: the recorded plan has no output mode"
    ),
    FindingCode.NO_WATERMARK_DELAY: (
        "window latency is unavailable: the recorded plan has no watermark delay"
    ),
    FindingCode.NO_EMITTED_WINDOWS: (
        "window latency is unavailable: the recorded plan does not show the windows of the last "
        "aggregation, only those of operators before it"
    ),
    FindingCode.WATERMARK_BEHIND_UNKNOWN: (
        "window latency is unavailable: the recorded plan does not show by how much the join of "
        "two streams in front of the windows holds their watermark back"
    ),
    FindingCode.WATERMARK_BEHIND: (
        "window latency contains {behind_s:duration} in addition to the watermark delay: a join of "
        "two streams in front of the windows holds their watermark back by its range of event "
        "time, at any setting"
    ),
    FindingCode.EVENT_TIMES_OLD: (
        "window latency contains {lag_s:duration} by which the event times of the newest rows were "
        "behind their triggers, as those of old data that is read again: of current data it is "
        "shorter by as much"
    ),
    FindingCode.NO_EVENT_TIMES: "window latency is unavailable: no event times were recorded",
    FindingCode.ROW_COST_UNKNOWN: (
        "profiled with batches of one size, so the cost of a row is unknown: the expected value "
        "is half way between no task time and all of it, and plans assume the worse end"
    ),
    FindingCode.BACKLOG_WHEN_PROFILED: (
        "every recorded batch waited {shortest_delay_s:duration} or longer for earlier batches: "
        "latencies here do not include such a backlog"
    ),
    FindingCode.BATCHES_MAY_OVERTAKE: (
        "several jobs run at a time (spark.streaming.concurrentJobs): batches may end in "
        "a different order from that in which they arrived"
    ),
    FindingCode.BACKPRESSURE_WHEN_PROFILED: (
        "backpressure was on: rows that it held back waited at the source, and the latencies "
        "here do not include that wait"
    ),
}
