"""Advised runs in words and as JSON: what to run, and what it would show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from headway.assumptions.advice import LEAST_NARROWING_RATIO
from headway.domain import (
    AdvisedRun,
    Configuration,
    Explored,
    Interval,
    JobProfile,
    Narrowing,
    Prediction,
    QuerySetting,
    StreamAnswer,
    Verdict,
)
from headway.domain.sheet import Kind, Section, Sheet
from headway.formats.as_json import json_text, plan_json
from headway.formats.codec import data_of
from headway.report.wording import interval_text
from headway.units import counted, format_duration, format_durations, format_rate
from headway.words import certainty_text

_TIMES = {1: "", 2: ", run twice"}


def advice_as_json(runs: Sequence[AdvisedRun], profile: JobProfile) -> str:
    """The runs as JSON, and whether each needs a larger cluster than those of the profile."""
    most_slots = _most_slots(profile)
    return json_text({"advised_runs": [_run_as_data(run, most_slots) for run in runs]})


def advice_as_text(runs: Sequence[AdvisedRun], profile: JobProfile) -> str:
    """The runs for people, a paragraph each, which says if one needs a larger cluster."""
    if not runs:
        return "no run to recommend: none would make the answer more certain by 2%"
    most_slots = _most_slots(profile)
    return "\n".join(
        line for number, run in enumerate(runs, 1) for line in _lines(number, run, most_slots)
    )


def _most_slots(profile: JobProfile) -> int:
    """Slots of the largest cluster in the logs."""
    return max(setting.configuration.num_slots for setting in profile.settings)


def next_run_texts(prediction: Prediction) -> tuple[str, ...]:
    """The run that would narrow a latency most, and to what; none if none would."""
    run = prediction.next_run if prediction.stable else None
    if run is None or run.narrowing is None:
        return ()
    return (f"next run: {narrowing_text(run, prediction.configuration)}",)


def narrowing_text(
    run: AdvisedRun, configuration: Configuration, *, with_interval_now: bool = True
) -> str:
    """How a run would narrow the answer about a setting, as a sentence without a full stop.

    Besides its pace, only what differs from the setting in question is named.
    """
    setting, differences = run.configuration, []
    if setting.num_slots != configuration.num_slots:
        differences.append(counted(setting.num_slots, "slot"))
    if setting.shuffle_partitions != configuration.shuffle_partitions:
        differences.append(counted(setting.shuffle_partitions, "shuffle partition"))
    size = f" with {' and '.join(differences)}" if differences else ""
    pace = _pace(setting)
    if setting.trigger_s:
        pace = f"on a trigger of {format_duration(setting.trigger_s)}"
    assert run.narrowing is not None
    gain = _gain_text(run.narrowing, with_interval_now)
    length, rate = format_duration(run.duration_s), format_rate(run.rate_per_s)
    return f"{length} at {rate} {pace}{size}{_times(run)}, would {gain}"


def run_text(setting: QuerySetting) -> str:
    """A setting as what is run: its pace, its shuffle partitions and its rate."""
    configuration = setting.configuration
    partitions = counted(configuration.shuffle_partitions, "shuffle partition")
    return f"{_pace(configuration)}, {partitions}, {setting.rate_per_s or 0.0:,.0f} rows/s"


def asked_interval(answer: StreamAnswer) -> tuple[str, Interval | None]:
    """The statistic that a target is about, and its 90% interval; of other percentiles the p99's.

    The interval is None if no latency can be quoted.
    """
    statistic = "mean" if answer.target.quantile is None else "p99"
    latency = answer.prediction.latency(answer.target.metric)
    return statistic, None if latency is None else latency.intervals90_s.get(statistic)


def lesson_text(
    *,
    measured_p99_s: float | None,
    predicted_p99_s: float | None,
    before: StreamAnswer | None,
    after: StreamAnswer | None,
) -> str:
    """What a run showed, beside what had been predicted, and how it changed the answer."""
    measured, predicted = "p99 unknown", "not predicted before"
    if measured_p99_s is not None:
        measured = f"p99 {format_duration(measured_p99_s)} measured"
    if predicted_p99_s is not None:
        predicted = f"{format_duration(predicted_p99_s)} predicted before"
    statistic, interval = ("", None) if after is None else asked_interval(after)
    if after is None or interval is None:
        return f"{measured}, {predicted}; no answer yet"
    answer = f"{statistic} at {format_rate(after.rate_per_s)} {interval_text(interval)}"
    interval_before = None if before is None else asked_interval(before)[1]
    was = "" if interval_before is None else f", was {interval_text(interval_before)}"
    return f"{measured}, {predicted}; {answer}{was} (90% interval)"


def exploration_sheet(exploration: Explored) -> Sheet:
    """The result of an exploration, in a few lines: the answer is in the plan of its profile."""
    answer = exploration.plan
    width = "no latency can be quoted yet"
    if math.isfinite(exploration.width_ratio):
        width = f"the 90% interval is {exploration.width_ratio:.0%} wide on either side"
    enough = "narrow enough" if exploration.is_answered else "the budget is spent"
    runs = f"{counted(exploration.num_runs, 'run')} in {format_duration(exploration.spent_s)}"
    texts = (
        f"{answer.target} at {format_rate(answer.rate_per_s)}: {_outcome(answer)}",
        *next_run_texts(answer.prediction),
        f"the profile of all runs: {exploration.folder / 'profile.yaml'}",
    )
    return Sheet(
        about="Headway exploration",
        headline=f"{runs}: {width}, {enough}",
        verdict=answer.feasible,
        sections=(Section(texts=texts, close=True),),
    )


def _outcome(answer: StreamAnswer) -> str:
    """Whether the target of an exploration is met, missed, or too close to tell."""
    if answer.feasible:
        return f"met by {counted(answer.nodes, 'node')}"
    if answer.verdict is Verdict.TOO_CLOSE and answer.kept_probability is not None:
        certainty = certainty_text(answer.kept_probability, answer.confidence)
        return f"too close to tell, {certainty}"
    return "met by none of the settings"


def exploration_json(exploration: Explored) -> dict[str, object]:
    """The same for machines, with the plan."""
    return {
        "folder": str(exploration.folder),
        "num_runs": exploration.num_runs,
        "spent_s": exploration.spent_s,
        "width_ratio": exploration.width_ratio,
        "answered": exploration.is_answered,
        "plan": plan_json(exploration.plan),
    }


def _gain_text(gain: Narrowing, with_interval_now: bool = True) -> str:
    now_s, after_s = gain.interval_now_s, gain.interval_after_s
    if (
        now_s is not None
        and after_s is not None
        and _width(after_s) < _width(now_s) * (1.0 - LEAST_NARROWING_RATIO.value)
        and _interval_text(after_s) != _interval_text(now_s)
    ):
        now = f" (90% interval, now {_interval_text(now_s)})" if with_interval_now else ""
        return f"narrow {gain.statistic} to {_interval_text(after_s)}{now}"
    errors = f"from {gain.error_now_ratio:.1%} to {gain.error_after_ratio:.1%}"
    return f"bring the error of the predicted batch duration {errors}"


def _width(interval_s: Interval) -> float:
    return interval_s.high - interval_s.low


def _interval_text(interval_s: Interval) -> str:
    low, high = format_durations(interval_s.low, interval_s.high)
    if low != high:
        return f"{low} - {high}"
    return f"{low} ± {format_duration(_width(interval_s) / 2.0)}"


def _lines(number: int, run: AdvisedRun, most_slots: int) -> Iterator[str]:
    setting = run.configuration
    checkpoint = ", a new checkpoint" if run.new_checkpoint else ""
    yield (
        f"{number}. {_pace(setting)}, {counted(setting.shuffle_partitions, 'shuffle partition')}, "
        f"{counted(setting.num_slots, 'slot')}, about {run.rate_per_s:,.0f} rows/s, "
        f"{counted(run.num_batches, 'batch', 'batches')} after the warm-up{_times(run)}{checkpoint}"
    )
    if setting.num_slots > most_slots:
        yield f"   needs a larger cluster: the log has up to {counted(most_slots, 'slot')}"
    yield f"   shows {run.learns} ({run.why})"
    if run.narrowing is not None:
        after = "" if number == 1 else "after the runs above, "
        yield f"   {after}would {_gain_text(run.narrowing)}"


def _pace(setting: Configuration) -> str:
    if not setting.trigger_s:
        return "as fast as possible"
    return f"trigger {format_duration(setting.trigger_s)}"


def _times(run: AdvisedRun) -> str:
    return _TIMES.get(run.num_repeats, f", run {run.num_repeats} times")


def _run_as_data(run: AdvisedRun, most_slots: int) -> dict[str, object]:
    setting = run.configuration
    return {
        "learns": run.learns,
        "why": run.why,
        "executors": setting.executors,
        "cores_per_executor": setting.cores_per_executor,
        "needs_larger_cluster": setting.num_slots > most_slots,
        "shuffle_partitions": setting.shuffle_partitions,
        "trigger_s": setting.trigger_s,
        "rate_per_s": run.rate_per_s,
        "num_rows": run.num_rows,
        "num_batches": run.num_batches,
        "num_repeats": run.num_repeats,
        "duration_s": run.duration_s,
        "new_checkpoint": run.new_checkpoint,
        "narrowing": data_of(run.narrowing),
    }


KINDS = {"explored": Kind(sheet=exploration_sheet, data=exploration_json, main="plan.frontier")}
