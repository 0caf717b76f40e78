"""Backtests as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator

from headway.domain import Backtest, HeldOut, LatencyDistribution
from headway.report.as_json import measured_json, prediction_json
from headway.report.columns import aligned, paragraph
from headway.report.wording import brief_setting_text
from headway.units import counted, format_duration, format_rate

BACKTEST_SCHEMA = "headway.backtest/v1"
_HEAD = (
    "run", "rate", "setting", "mean: predicted", "observed", "error",
    "p99: predicted", "observed", "error", "90 % interval held",
)  # fmt: skip


def backtest_text(backtest: Backtest) -> str:
    """A line per run that was left out, and what they say together."""
    rows = [_HEAD, *(_row(run) for run in backtest.runs)]
    lines = [f"{backtest.rule}:", "", *aligned(rows, right=(1, 3, 4, 5, 6, 7, 8)), ""]
    lines += [line for sentence in _together(backtest) for line in paragraph(sentence)]
    return "\n".join(lines)


def backtest_json(backtest: Backtest) -> dict[str, object]:
    """A backtest as data for :func:`headway.report.as_json.json_text`."""
    held, num_intervals = backtest.intervals_held
    return {
        "schema": BACKTEST_SCHEMA,
        "rule": backtest.rule,
        "median_error_mean": backtest.median_mean_error_ratio,
        "median_error_p99": backtest.median_p99_error_ratio,
        "intervals90_held": held,
        "intervals90": num_intervals,
        "called_unstable": backtest.num_called_unstable,
        "notes": list(backtest.notes),
        "runs": [
            {
                "run": run.label,
                "batches": run.num_batches,
                "error_mean": run.mean_error_ratio,
                "error_p99": run.p99_error_ratio,
                "observed_tuple_latency_s": measured_json(run.observed_latency),
                "observed_batch_duration_s": measured_json(run.observed_duration),
                "predicted": prediction_json(run.prediction),
            }
            for run in backtest.runs
        ],
    }


def _row(run: HeldOut) -> tuple[str, ...]:
    predicted = run.prediction.tuple_latency
    held = run.intervals_held
    return (
        run.label,
        format_rate(run.prediction.arrivals.rate_per_s),
        brief_setting_text(run.prediction.configuration),
        *_beside(predicted, run.observed_latency, "mean_s", run.mean_error_ratio),
        *_beside(predicted, run.observed_latency, "p99_s", run.p99_error_ratio),
        "" if held is None else f"mean {_yes(held[0])}, p99 {_yes(held[1])}",
    )


def _beside(
    predicted: LatencyDistribution | None,
    observed: LatencyDistribution,
    name: str,
    error_ratio: float | None,
) -> tuple[str, str, str]:
    observed_text = format_duration(getattr(observed, name))
    if predicted is None or error_ratio is None:
        return "unstable", observed_text, ""
    return format_duration(getattr(predicted, name)), observed_text, f"{100 * error_ratio:+.1f} %"


def _together(backtest: Backtest) -> Iterator[str]:
    mean, p99 = backtest.median_mean_error_ratio, backtest.median_p99_error_ratio
    if mean is not None and p99 is not None:
        held, num_intervals = backtest.intervals_held
        yield (
            f"{counted(len(backtest.runs), 'run')} left out; median error of the mean "
            f"{100 * mean:.1f} %, of the p99 {100 * p99:.1f} %; {held} of {num_intervals} 90 % "
            "intervals held."
        )
    if backtest.num_called_unstable:
        yield (
            f"{counted(backtest.num_called_unstable, 'run')} called unstable, whose batches are on "
            "record all the same."
        )
    yield from (f"note: {note}" for note in backtest.notes)


def _yes(held: bool) -> str:
    return "yes" if held else "no"
