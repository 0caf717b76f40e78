"""The rate of a running query: what it is, what it will be, and when it has jumped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median

from headway.assumptions import forecasts, live
from headway.models.laws.normal import MAD_TO_SD

_MOST_BINS = 128
_MOST_CORRELATED = 0.9
_LEAST_PER_S = 1e-9


def trend_line(rates_per_s: Sequence[float]) -> tuple[float, float]:
    r"""Level at the newest bin and trend per bin, of the line through the newest bins.

    Rates are those of bins, oldest first. Both are 0 if the slope is not significant.

    **(A1)** Forecast of a rate from bins of 15 s: the mean of the last 8, or of the last 30 or 120
    if their own forecasts, 5 bins ahead, have erred at least 5% less. If the least-squares line
    through the last 30 has a slope of more than 3 of its standard errors, that line is used
    instead, continued over the lead `t`: `λ + m t`. Successive residuals with a correlation `ρ > 0`
    count as `(1-ρ)/(1+ρ)` as many. Least squares: Draper and Smith (1998), chapters 1 and 7.

    >>> trend_line([100.0 + 2.0 * number for number in range(30)])
    (158.0, 2.0)
    >>> trend_line([100.0, 110.0] * 15)
    (0.0, 0.0)
    """
    window = list(rates_per_s[-forecasts.TREND_BINS.value :])
    num_bins = len(window)
    if num_bins < forecasts.TREND_BINS.value // 2:
        return 0.0, 0.0
    middle, mean = 0.5 * (num_bins - 1), fmean(window)
    spread = num_bins * (num_bins * num_bins - 1) / 12.0
    slope = sum((index - middle) * rate for index, rate in enumerate(window)) / spread
    residuals = [rate - mean - slope * (index - middle) for index, rate in enumerate(window)]
    misfit = sum(residual * residual for residual in residuals)
    error = math.sqrt(misfit * _lasting(residuals) / (num_bins - 2) / spread)
    if abs(slope) <= forecasts.TREND_ERRORS.value * error or slope == 0.0:
        return 0.0, 0.0
    return max(mean + slope * middle, 0.0), slope


def _lasting(residuals: Sequence[float]) -> float:
    """Variance of the residuals' mean over that of as many independent ones: (A1)."""
    square_sum = sum(residual * residual for residual in residuals)
    lagged_sum = sum(residual * later for residual, later in pairwise(residuals))
    correlation = (
        min(max(lagged_sum / square_sum, 0.0), _MOST_CORRELATED) if square_sum > 0.0 else 0.0
    )
    return (1.0 + correlation) / (1.0 - correlation)


def error_spread(errors: Sequence[float]) -> float:
    r"""Standard deviation of forecast errors, by their median, which a jump does not widen.

    ``errors`` are logarithms of the rate over its forecast for the next bin. The result is at least
    0.02, and a tenth if fewer than 8 errors are known.

    **(A2)** Jump of a rate: two bins in a row are beyond `λ e^(±4σ)` on the same side, with `σ`
    1.4826 times the median of the absolute errors of the forecasts in use (Rousseeuw and Croux
    1993). Errors are those of logarithms, since noise multiplies a rate and never makes it
    negative. No jump is found before 8 errors are known. After a jump, older bins are dropped. The
    level is that of the two bins, or of the second alone if the first is beyond the same band
    around it, since the first may contain a part of the time before.

    >>> round(error_spread([0.1, -0.1, 0.1, -0.1, 0.1, -0.1, 0.1, -0.1, 9.0]), 3)
    0.148
    """
    if len(errors) < forecasts.FEWEST_FORECAST_ERRORS.value:
        return forecasts.FIRST_ERRORS_RATIO.value
    return max(MAD_TO_SD * median(map(abs, errors)), forecasts.LEAST_SPREAD_RATIO.value)


@dataclass(frozen=True, slots=True)
class RateForecast:
    """Bins of arrivals, and the errors of the forecasts that were made of them."""

    rates_per_s: tuple[float, ...] = ()  # Of bins since the last jump, oldest first. [rows/s]
    errors: tuple[float, ...] = ()  # Of forecasts in use: logarithms of rate over forecast. [-]
    window_errors: tuple[tuple[float, ...], ...] = ((), (), ())
    """Absolute errors of the means over 8, 30 and 120 bins, 5 bins ahead. [rows/s]"""
    num_outside: int = 0  # Bins in a row beyond the band; negative below it.
    num_bins: int = 0  # Number of all closed bins.
    jumped_at_bin: int = -1  # Number of the bin in which the last jump was certain; -1 without one.
    seen_s: float = math.nan  # When arrivals were last counted. [s]
    seen_rows: float = 0.0  # The count then. [rows]
    bin_s: float = math.nan  # Start of the open bin. [s]
    bin_rows: float = 0.0  # The count at that time. [rows]

    @property
    def is_known(self) -> bool:
        """Whether a bin has been closed."""
        return bool(self.rates_per_s)

    @property
    def is_jump(self) -> bool:
        """Whether the bin just closed made a jump certain."""
        return self.num_bins > 0 and self.jumped_at_bin == self.num_bins

    @property
    def tells_spread(self) -> bool:
        """Whether enough forecasts have been compared with the rates that followed."""
        return len(self.errors) >= forecasts.FEWEST_FORECAST_ERRORS.value

    @property
    def spread_ratio(self) -> float:
        """Spread of the forecast errors: theory.md (A2). [-]"""
        return error_spread(self.errors)

    def level_per_s(self) -> float:
        """Mean over the window with the best forecasts: theory.md (A1). [rows/s]"""
        short, *longer = forecasts.FORECAST_WINDOWS.value
        of_short, best = self.window_errors[0], short
        least_ratio = forecasts.BETTER_FORECAST_RATIO.value
        for number, window in enumerate(longer, start=1):
            errors = self.window_errors[number]
            has_few_errors = len(errors) < forecasts.FEWEST_FORECAST_ERRORS.value
            if len(self.rates_per_s) < window or has_few_errors:
                break
            # Over the same bins, so that a calm hour favours neither.
            error_ratio = fmean(errors) / max(fmean(of_short[-len(errors) :]), 1e-9)
            if error_ratio <= least_ratio:
                best, least_ratio = window, error_ratio
        return fmean(self.rates_per_s[-best:])

    def line(self) -> tuple[float, float]:
        """Level at the newest bin, and trend per bin, if there is one."""
        level_per_s, trend_per_bin = trend_line(self.rates_per_s)
        return (level_per_s, trend_per_bin) if trend_per_bin else (self.level_per_s(), 0.0)

    def forecast_per_s(self, lead_s: float) -> float:
        """The rate that is expected after a time: theory.md (A1). [rows/s]"""
        level_per_s, trend_per_bin = self.line()
        return max(level_per_s + trend_per_bin * lead_s / live.BIN_S.value, 0.0)


def with_arrivals(forecast: RateForecast, at_s: float, arrived_rows: float) -> RateForecast:
    r"""The forecast after the source was asked once more (A1).

    All bins are closed that have ended since; rows count as even in between. A count that has
    fallen is of another source: everything starts anew.

    Parameters
    ----------
    at_s : float, when the source was asked [s]
    arrived_rows : float, >= 0, rows that had arrived by then, since any fixed moment [rows]

    >>> forecast = with_arrivals(RateForecast(), 0.0, 0.0)
    >>> with_arrivals(forecast, 31.0, 310.0).rates_per_s
    (10.0, 10.0)
    """
    if math.isnan(forecast.seen_s) or arrived_rows < forecast.seen_rows:
        return RateForecast(seen_s=at_s, seen_rows=arrived_rows, bin_s=at_s, bin_rows=arrived_rows)
    updated_forecast, width_s = forecast, live.BIN_S.value
    if at_s <= forecast.seen_s:
        return forecast
    per_s = (arrived_rows - forecast.seen_rows) / (at_s - forecast.seen_s)
    begin_s, begin_rows = forecast.bin_s, forecast.bin_rows
    while begin_s + width_s <= at_s:
        end_rows = forecast.seen_rows + per_s * (begin_s + width_s - forecast.seen_s)
        updated_forecast = with_bin(updated_forecast, max(end_rows - begin_rows, 0.0) / width_s)
        begin_s, begin_rows = begin_s + width_s, end_rows
    return replace(
        updated_forecast, seen_s=at_s, seen_rows=arrived_rows, bin_s=begin_s, bin_rows=begin_rows
    )


def with_bin(forecast: RateForecast, rate_per_s: float) -> RateForecast:
    r"""The forecast after one more bin, without the older ones if the rate has jumped (A1), (A2).

    >>> even = RateForecast(rates_per_s=(100.0,) * 8, errors=(0.01,) * 8)
    >>> once = with_bin(even, 200.0)
    >>> len(once.rates_per_s), with_bin(once, 210.0).rates_per_s
    (9, (200.0, 210.0))
    """
    number = forecast.num_bins + 1
    if not forecast.is_known:
        return replace(forecast, rates_per_s=(rate_per_s,), num_bins=number)
    rates = forecast.rates_per_s
    expected = forecast.forecast_per_s(live.BIN_S.value)
    error = _log_ratio(rate_per_s, expected)
    band = forecasts.JUMP_SPREADS.value * forecast.spread_ratio
    is_outside = forecast.tells_spread and abs(error) > band
    side = 1 if error > 0.0 else -1
    run = forecast.num_outside if forecast.num_outside * side > 0 else 0
    num_outside = run + side if is_outside else 0
    if abs(num_outside) >= forecasts.JUMP_BINS.value:
        # The first of the two may contain a part of the time before.
        is_part = abs(_log_ratio(rate_per_s, rates[-1])) > band
        return replace(
            forecast,
            rates_per_s=(rate_per_s,) if is_part else (rates[-1], rate_per_s),
            window_errors=((), (), ()),
            num_outside=0,
            num_bins=number,
            jumped_at_bin=number,
        )
    windows, num_kept = forecasts.FORECAST_WINDOWS.value, forecasts.FORECAST_ERRORS_KEPT.value
    window_errors = tuple(
        (*errors, abs(rate_per_s - _mean_before(rates, window)))[-num_kept:]
        if len(rates) >= window + forecasts.FORECAST_LEAD_BINS.value - 1
        else errors
        for window, errors in zip(windows, forecast.window_errors, strict=True)
    )
    return replace(
        forecast,
        rates_per_s=(*rates, rate_per_s)[-_MOST_BINS:],
        errors=(*forecast.errors, error)[-num_kept:],
        window_errors=window_errors,
        num_outside=num_outside,
        num_bins=number,
    )


def _log_ratio(rate_per_s: float, expected_per_s: float) -> float:
    return math.log(max(rate_per_s, _LEAST_PER_S) / max(expected_per_s, _LEAST_PER_S))


def _mean_before(rates_per_s: Sequence[float], window: int) -> float:
    """The mean of a window at the time of its forecast of the next bin: a lead before it."""
    end = len(rates_per_s) - forecasts.FORECAST_LEAD_BINS.value + 1
    return fmean(rates_per_s[end - window : end])
