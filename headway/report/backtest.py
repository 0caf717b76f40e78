"""Backtests as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator

from headway.domain import Backtest, HeldOut
from headway.formats.as_json import prediction_json
from headway.formats.codec import data_of
from headway.report.columns import aligned, paragraph
from headway.units import counted, format_duration, format_rate

BACKTEST_SCHEMA = "headway.backtest/v1"
_HEAD = (
    "rate", "slots", "parts", "trigger", "mean", "was", "error", "p99", "was", "error", "run",
)  # fmt: skip
_OUTSIDE = "!"


def backtest_headline(backtest: Backtest) -> str:
    """The median errors of mean and p99 over the runs, in a sentence."""
    runs = counted(len(backtest.runs), "held-out run")
    errors = (("mean", backtest.median_mean_error_ratio), ("p99", backtest.median_p99_error_ratio))
    error_texts = [f"of the {name} {error:.1%}" for name, error in errors if error is not None]
    if not error_texts:
        return f"{runs}: no latency could be predicted"
    return f"median error {', '.join(error_texts)} in {runs}"


def backtest_text(backtest: Backtest) -> str:
    """The errors, a line per run that was left out, and a summary."""
    headline = backtest_headline(backtest)
    rows = [_HEAD, *(_row(run) for run in backtest.runs)]
    numbers = range(_HEAD.index("run"))
    lines = [
        *paragraph(headline[:1].upper() + headline[1:]),
        f"{backtest.rule}:",
        "",
        *aligned(rows, right=numbers, indent=0),
        "",
    ]
    lines += [line for sentence in _together(backtest) for line in paragraph(sentence)]
    return "\n".join(lines)


def backtest_json(backtest: Backtest) -> dict[str, object]:
    """A backtest as data for :func:`headway.formats.as_json.json_text`."""
    num_held, num_intervals = backtest.intervals_held
    return {
        "schema": BACKTEST_SCHEMA,
        "headline": backtest_headline(backtest),
        "rule": backtest.rule,
        "median_error_mean": backtest.median_mean_error_ratio,
        "median_error_p99": backtest.median_p99_error_ratio,
        "intervals90_held": num_held,
        "intervals90": num_intervals,
        "called_unstable": backtest.num_called_unstable,
        "too_close_to_saturation": backtest.num_too_close,
        "notes": list(backtest.notes),
        "runs": [
            {
                "run": run.label,
                "batches": run.num_batches,
                "error_mean": run.mean_error_ratio,
                "error_p99": run.p99_error_ratio,
                "observed_tuple_latency_s": data_of(run.observed_latency.statistics_s),
                "observed_batch_duration_s": data_of(run.observed_duration.statistics_s),
                "predicted": prediction_json(run.prediction),
            }
            for run in backtest.runs
        ],
    }


def _row(run: HeldOut) -> tuple[str, ...]:
    predicted, configuration = run.prediction.tuple_latency, run.prediction.configuration
    mean_s, p99_s = (None, None) if predicted is None else (predicted.mean_s, predicted.p99_s)
    mean_held, p99_held = run.intervals_held or (True, True)
    return (
        format_rate(run.prediction.arrivals.rate_per_s),
        str(configuration.num_slots),
        str(configuration.shuffle_partitions),
        format_duration(configuration.trigger_s) if configuration.trigger_s else "none",
        *_beside(mean_s, run.observed_latency.mean_s, run.mean_error_ratio, mean_held),
        *_beside(p99_s, run.observed_latency.p99_s, run.p99_error_ratio, p99_held),
        run.label,
    )


def _beside(
    predicted_s: float | None, observed_s: float, error_ratio: float | None, is_held: bool
) -> tuple[str, str, str]:
    if predicted_s is None or error_ratio is None:
        return "none", format_duration(observed_s), ""
    error = f"{error_ratio:+.0%}"
    return (
        format_duration(predicted_s),
        format_duration(observed_s),
        error if is_held else f"{error} {_OUTSIDE}",
    )


def _together(backtest: Backtest) -> Iterator[str]:
    num_held, num_intervals = backtest.intervals_held
    if num_intervals:
        yield (
            f"{num_held} of {num_intervals} 90% intervals contain the measured value ({_OUTSIDE}: "
            "outside)."
        )
    if backtest.num_called_unstable:
        yield (
            f"{counted(backtest.num_called_unstable, 'run')} predicted to be unstable "
            "(none), although it was recorded."
        )
    if backtest.num_too_close:
        yield (
            f"{counted(backtest.num_too_close, 'run')} too close to saturation to predict a "
            "latency (none)."
        )
    yield from (f"note: {note}" for note in backtest.notes)
