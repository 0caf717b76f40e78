"""Input rates: one number, a range, a curve over the day, or a trace in a CSV file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headway.errors import InputError
from headway.formats.rate_trace import read_rate_trace
from headway.formats.yaml_document import Plain, Route
from headway.spec.forms import FAULTY, Reader, entry
from headway.spec.forms.entries import JsonSchema, ValueKind
from headway.spec.forms.kinds import FilePath, ListOf, Nested
from headway.spec.forms.quantities import RATE, RATE_OR_ZERO, RATIO, Quantity, Uncertain
from headway.units import HOURS_PER_DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyCurve:
    """The rate in each hour of a day."""

    hourly: tuple[Quantity, ...] = entry(
        ListOf(item=Uncertain(RATE_OR_ZERO), least=HOURS_PER_DAY, most=HOURS_PER_DAY),
        "24 rates: the highest of each hour, from midnight; 0 for an hour without input.",
        key="daily",
    )
    scale_ratio: float = entry(RATIO, "Factor on all rates, e.g. 1.5x. Default 1.", default=1.0)

    def __post_init__(self) -> None:
        if not any(rate.high > 0 for rate in self.hourly):
            raise ValueError("daily: all 24 rates are 0; expected a rate above 0 in some hour")
        for hour, rate in enumerate(self.hourly):
            if rate.low == 0 < rate.high:
                raise ValueError(
                    f"daily: hour {hour}: a range from 0 to {rate.high:g} records per second; "
                    "expected 0, or a range that is above 0"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTrace:
    """Rates over time from a CSV file, as for `simulate`; the highest rate of each hour counts."""

    trace: Path = entry(
        FilePath("a CSV file with the columns time and rate"),
        "CSV file with a heading and the columns `time` (seconds or durations from midnight, or "
        "ISO 8601) and `rate` (records per second, or e.g. `20k/s`); each rate holds until the "
        "next line.",
    )
    scale_ratio: float = entry(RATIO, "Factor on all rates, e.g. 1.5x. Default 1.", default=1.0)
    peaks_per_s: tuple[float, ...] = ()


Rate = Quantity | DailyCurve | RateTrace


@dataclass(frozen=True, slots=True)
class RateForm:
    """A rate in any of its forms."""

    words: str = f"{RATE.words}; {{low, mid, high}}; {{daily: 24 rates}}; or {{trace: FILE.csv}}"

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        if isinstance(value, dict) and "daily" in value:
            return Nested(DailyCurve).read(reader, route, value)
        if not (isinstance(value, dict) and "trace" in value):
            return Uncertain(RATE).read(reader, route, value)
        trace = Nested(RateTrace).read(reader, route, value)
        if trace is FAULTY:
            return FAULTY
        try:
            return replace(trace, peaks_per_s=read_rate_trace(trace.trace).hourly_peaks_per_s())
        except InputError as error:
            return reader.fault((*route, "trace"), str(error))

    def json_schema(self) -> JsonSchema:
        forms: list[ValueKind] = [Uncertain(RATE), Nested(DailyCurve), Nested(RateTrace)]
        return {"anyOf": [form.json_schema() for form in forms]}


def hourly_rates(rate: Rate) -> tuple[Quantity, ...]:
    """The rate in each hour of the day, for any form [records/s].

    >>> len(hourly_rates(Quantity.exactly(500.0)))
    24
    """
    if isinstance(rate, Quantity):
        return (rate,) * HOURS_PER_DAY
    if isinstance(rate, DailyCurve):
        return tuple(hour.scaled(rate.scale_ratio) for hour in rate.hourly)
    return tuple(Quantity.exactly(peak * rate.scale_ratio) for peak in rate.peaks_per_s)


def peak_rate(rate: Rate) -> Quantity:
    """The rate of the busiest hour [records/s]."""
    return max(hourly_rates(rate), key=lambda hour: (hour.high, hour.mid))
