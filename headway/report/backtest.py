"""Backtests in words and as data."""

from __future__ import annotations

from collections.abc import Iterator

from headway.domain import Backtest, HeldOut
from headway.domain.sheet import Kind, Section, Sheet
from headway.formats.as_json import prediction_json
from headway.formats.codec import data_of
from headway.redaction import one_line
from headway.report.charts import dot_charts
from headway.report.comparison import compared
from headway.units import counted, format_duration, format_rate

_HEAD = ("rate", "slots", "parts", "trigger", "mean", "was", "error", "p99", "was", "error", "run")
_OUTSIDE = "!"
_MOST_CHARTS = 12


def backtest_headline(backtest: Backtest) -> str:
    """The median errors of mean and p99 over the runs, in a sentence."""
    runs = counted(len(backtest.runs), "held-out run")
    errors = [f"of the {name} {error:.1%}" for name, error in _median_errors(backtest)]
    if not errors:
        return f"{runs}: no latency could be predicted"
    return f"median error {', '.join(errors)} in {runs}"


def _median_errors(backtest: Backtest) -> list[tuple[str, float]]:
    errors = [(name, backtest.median_error_ratio(name)) for name in ("mean", "p99")]
    return [(name, error) for name, error in errors if error is not None]


def backtest_sheet(backtest: Backtest) -> Sheet:
    """The errors, a line per run that was left out, and a summary."""
    headline, errors = backtest_headline(backtest), _median_errors(backtest)
    num_held, num_intervals = backtest.intervals_held
    comparisons = [
        compared(one_line(run.label), run.prediction.tuple_latency, run.observed_latency)
        for run in backtest.runs[:_MOST_CHARTS]
        if run.prediction.tuple_latency is not None
    ]
    return Sheet(
        about="Headway backtest",
        headline=headline[:1].upper() + headline[1:],
        key_figures=(
            *((f"median error of the {name}", f"{error:.1%}", "") for name, error in errors),
            ("intervals that hold", f"{num_held} of {num_intervals}", "90% is expected"),
        ),
        sections=(
            Section(texts=(f"{backtest.rule}:",), close=True),
            Section(
                head=_HEAD, rows=tuple(map(_row, backtest.runs)), right=tuple(range(len(_HEAD) - 1))
            ),
            Section(texts=tuple(_together(backtest))),
            Section(lead="note", texts=backtest.notes, close=True),
            Section(
                title="predicted and measured", charts=dot_charts(comparisons, "tuple latency")
            ),
        ),
    )


def backtest_json(backtest: Backtest) -> dict[str, object]:
    """A backtest as data for :func:`headway.formats.as_json.json_text`."""
    num_held, num_intervals = backtest.intervals_held
    return {
        "rule": backtest.rule,
        "median_error_mean": backtest.median_error_ratio("mean"),
        "median_error_p99": backtest.median_error_ratio("p99"),
        "intervals90_held": num_held,
        "intervals90": num_intervals,
        "called_unstable": backtest.num_called_unstable,
        "too_close_to_saturation": backtest.num_too_close,
        "notes": list(backtest.notes),
        "runs": [
            {
                "run": run.label,
                "batches": run.num_batches,
                "error_mean": run.error_ratio("mean"),
                "error_p99": run.error_ratio("p99"),
                "observed_tuple_latency_s": data_of(run.observed_latency.statistics_s),
                "observed_batch_duration_s": data_of(run.observed_duration.statistics_s),
                "predicted": prediction_json(run.prediction),
            }
            for run in backtest.runs
        ],
    }


def _row(run: HeldOut) -> tuple[str, ...]:
    configuration = run.prediction.configuration
    mean_held, p99_held = run.intervals_held or (True, True)
    return (
        format_rate(run.prediction.arrivals.rate_per_s),
        str(configuration.num_slots),
        str(configuration.shuffle_partitions),
        format_duration(configuration.trigger_s) if configuration.trigger_s else "none",
        *_beside(run, "mean", mean_held),
        *_beside(run, "p99", p99_held),
        run.label,
    )


def _beside(run: HeldOut, statistic: str, is_held: bool) -> tuple[str, str, str]:
    """A statistic: predicted, measured, and the error."""
    predicted, error_ratio = run.prediction.tuple_latency, run.error_ratio(statistic)
    observed = format_duration(run.observed_latency.statistics_s[statistic])
    if predicted is None or error_ratio is None:
        return "none", observed, ""
    error = f"{error_ratio:+z.0%}" if is_held else f"{error_ratio:+z.0%} {_OUTSIDE}"
    return format_duration(predicted.statistics_s[statistic]), observed, error


def _together(backtest: Backtest) -> Iterator[str]:
    num_held, num_intervals = backtest.intervals_held
    if num_intervals:
        share = f"{num_held} of {num_intervals} 90% intervals"
        yield f"{share} contain the measured value ({_OUTSIDE}: outside)."
    if backtest.num_called_unstable:
        runs = counted(backtest.num_called_unstable, "run")
        yield f"{runs} predicted to be unstable (none), although it was recorded."
    if backtest.num_too_close:
        runs = counted(backtest.num_too_close, "run")
        yield f"{runs} too close to saturation to predict a latency (none)."


KINDS = {
    "backtest": Kind(
        headline=backtest_headline,
        sheet=backtest_sheet,
        data=backtest_json,
        main="runs",
        is_read_back=True,
    )
}
