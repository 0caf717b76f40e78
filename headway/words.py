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
    told_per_s = numbers["told_up_to_per_s"]
    told = f"; it can be told up to {format_rate(told_per_s)}" if told_per_s > 0 else ""
    return (
        f"too close to saturation to tell a latency at {format_rate(numbers['rate_per_s'])}: "
        f"utilisation {numbers['utilization_ratio']:.0%}, and a small error in the cost per row "
        f"moves it a lot{told}; {_stable_up_to(numbers)}"
    )


def _stable_up_to(numbers: Numbers) -> str:
    most_per_s = numbers["stable_up_to_per_s"]
    return f"stable up to {format_rate(most_per_s)}" if most_per_s > 0 else "stable at no rate"


def _mostly_overruns(numbers: Numbers) -> str:
    return (
        f"{numbers['overrun_probability']:.0%} of the batches overrun the trigger interval: the "
        "query runs as fast as it can; a longer trigger or more slots would bring it back on its "
        "grid"
    )


def _limit_too_low(numbers: Numbers) -> str:
    enough = numbers.get("enough_rows")
    return (
        f"the rate limit of {_rows(numbers['limit_rows'])} per batch lets through "
        f"{format_rate(numbers['passed_per_s'])}, less than the "
        f"{format_rate(numbers['rate_per_s'])} that arrive: the backlog grows"
        + ("" if enough is None else f"; {_rows(enough)} would do")
    )


def _limit_leaves_little(numbers: Numbers) -> str:
    return (
        f"the rate limit of {_rows(numbers['limit_rows'])} per batch leaves under "
        f"{numbers['catch_up_ratio'] - 1.0:.0%} to catch up with"
    )


def _less_sure(numbers: Numbers) -> str:
    return (
        f"more than {_nodes(numbers['nodes'])} are expected to take no longer but promise no less "
        f"than {format_duration(numbers['planned_s'])}: they are further from the "
        f"{counted(round(numbers['seen_slots']), 'slot')} profiled, so less sure; a run profiled "
        "with more would tell, and nodes can be left idle"
    )


def _model_rises(numbers: Numbers) -> str:
    return (
        f"from {_nodes(numbers['nodes'])} on the model says up to {numbers['ratio'] - 1.0:.0%} "
        "longer than for fewer: stages that compete for slots are followed approximately; a run "
        "takes no longer, since nodes can be left idle"
    )


def _nodes(number: float) -> str:
    return counted(round(number), "node")


def _state_grows(numbers: Numbers) -> str:
    return (
        f"the state grows by {format_rate(numbers['growth_per_s'])}: this is for the "
        f"{_rows(numbers['state_rows'])} it was left with, and every million more makes a batch "
        f"{format_duration(numbers['batch_s_per_million_rows'])} longer"
    )


def _state_breaks(numbers: Numbers) -> str:
    rows_then = float(f"{numbers['state_rows_then']:.3g}")
    return (
        f"caution: the state grows by {format_rate(numbers['growth_per_s'])} at this rate; in "
        f"{format_duration(numbers['missed_after_s'])} it has "
        f"{_rows(rows_then)} instead of "
        f"{_rows(numbers['state_rows'])}, and the promise is missed: bound it, with a watermark or "
        "a time to live"
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
