"""Findings in words: the one place for terminal, page, JSON and emitted files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from headway.domain import Finding, FindingCode, Prediction
from headway.units import counted, format_duration, format_rate

Numbers = Mapping[str, float]


def words_of(finding: Finding) -> str:
    """A finding as one sentence, without a full stop.

    Examples
    --------
    >>> words_of(Finding(code=FindingCode.OVER_CAPACITY,
    ...     numbers={"rate_per_s": 2e5, "stable_up_to_per_s": 1.4e5}))
    'over capacity at 200k/s: the backlog grows; stable up to 140k/s'
    """
    return _WORDS[finding.code](finding.numbers)


def all_words(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Every finding as a sentence, in order."""
    return tuple(map(words_of, findings))


def prediction_warnings(prediction: Prediction) -> tuple[str, ...]:
    """All that is to be said of a prediction, in words."""
    return (*all_words(prediction.findings), *prediction.warnings)


def _over_capacity(numbers: Numbers) -> str:
    rate = format_rate(numbers["rate_per_s"])
    return f"over capacity at {rate}: the backlog grows; {_stable_up_to(numbers)}"


def _too_close(numbers: Numbers) -> str:
    known_per_s = numbers["told_up_to_per_s"]
    known = f"; predicted up to {format_rate(known_per_s)}" if known_per_s > 0 else ""
    return (
        f"too close to saturation to predict a latency at {format_rate(numbers['rate_per_s'])}: "
        f"at a utilisation of {numbers['utilization_ratio']:.0%} it depends too much on small "
        f"errors in the cost per row{known}; {_stable_up_to(numbers)}"
    )


def _stable_up_to(numbers: Numbers) -> str:
    most_per_s = numbers["stable_up_to_per_s"]
    return f"stable up to {format_rate(most_per_s)}" if most_per_s > 0 else "not stable at any rate"


def _mostly_overruns(numbers: Numbers) -> str:
    return (
        f"{numbers['overrun_probability']:.0%} of the batches overrun the trigger interval, so "
        "the query runs as fast as possible; a longer trigger interval or more slots would avoid "
        "that"
    )


def _limit_too_low(numbers: Numbers) -> str:
    enough = numbers.get("enough_rows")
    return (
        f"the rate limit of {_rows(numbers['limit_rows'])} per batch admits "
        f"{format_rate(numbers['passed_per_s'])}, less than the input rate of "
        f"{format_rate(numbers['rate_per_s'])}: the backlog grows"
        + ("" if enough is None else f"; {_rows(enough)} would suffice")
    )


def _limit_leaves_little(numbers: Numbers) -> str:
    return (
        f"the rate limit of {_rows(numbers['limit_rows'])} per batch leaves less "
        f"than {numbers['catch_up_ratio'] - 1.0:.0%} of the input rate for catching up"
    )


def _less_sure(numbers: Numbers) -> str:
    return (
        f"more than {_nodes(numbers['nodes'])} do not lower the planned run time of "
        f"{format_duration(numbers['planned_s'])}: they are expected to be as fast, but are "
        "further "
        f"from the profiled {counted(round(numbers['seen_slots']), 'slot')} and so more uncertain; "
        "profile a run with more slots"
    )


def _model_rises(numbers: Numbers) -> str:
    return (
        f"from {_nodes(numbers['nodes'])} on, the model predicts up to "
        f"{numbers['ratio'] - 1.0:.0%} more run time than with fewer: it approximates stages that "
        "compete for slots; a real run takes no longer"
    )


def _nodes(number: float) -> str:
    return counted(round(number), "node")


def _state_grows(numbers: Numbers) -> str:
    return (
        f"the state grows by {format_rate(numbers['growth_per_s'])}: this prediction is for the "
        f"{_rows(numbers['state_rows'])} at the end of the profiled run, and every further million "
        f"makes a batch {format_duration(numbers['batch_s_per_million_rows'])} longer"
    )


def _state_breaks(numbers: Numbers) -> str:
    rows_then = float(f"{numbers['state_rows_then']:.3g}")
    return (
        f"caution: the state grows by {format_rate(numbers['growth_per_s'])} at this rate; after "
        f"{format_duration(numbers['missed_after_s'])} it has {_rows(rows_then)} instead of "
        f"{_rows(numbers['state_rows'])}, and the target is missed: limit the state with a "
        "watermark or a time to live"
    )


def _rows(number: float) -> str:
    return counted(round(number), "row")


_WORDS: Mapping[FindingCode, Callable[[Numbers], str]] = {
    FindingCode.OVER_CAPACITY: _over_capacity,
    FindingCode.TOO_CLOSE_TO_SATURATION: _too_close,
    FindingCode.MOSTLY_OVERRUNS: _mostly_overruns,
    FindingCode.RATE_LIMIT_TOO_LOW: _limit_too_low,
    FindingCode.RATE_LIMIT_LEAVES_LITTLE: _limit_leaves_little,
    FindingCode.MORE_NODES_LESS_SURE: _less_sure,
    FindingCode.MODEL_RISES: _model_rises,
    FindingCode.STATE_GROWS: _state_grows,
    FindingCode.STATE_BREAKS_PROMISE: _state_breaks,
}
