"""Input rates: one number, a range, a curve over the day, or a trace in a CSV file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.errors import InputError
from headway.formats.yaml_document import Plain, Route
from headway.spec.forms import entry
from headway.spec.forms.files import FilePath
from headway.spec.forms.kinds import JsonSchema, Kind, ListOf, Nested
from headway.spec.forms.quantities import RATE, RATIO, Quantity, Uncertain
from headway.spec.forms.reader import FAULTY, Reader
from headway.units import HOURS_PER_DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyCurve:
    """The rate in each hour of a day."""

    hourly: tuple[Quantity, ...] = entry(
        ListOf(item=Uncertain(RATE), least=HOURS_PER_DAY, most=HOURS_PER_DAY),
        "24 rates: the highest of each hour, from midnight.",
        key="daily",
    )
    scale_ratio: float = entry(
        RATIO, "Factor on all rates, e.g. 1.5x. Default 1.", key="scale", default=1.0
    )

    def hourly_rates(self) -> tuple[Quantity, ...]:
        """The rate in each hour [records/s]."""
        return tuple(rate.scaled(self.scale_ratio) for rate in self.hourly)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTrace:
    """Rates over time from a CSV file, as for `simulate`; the highest rate of each hour counts."""

    trace: Path = entry(
        FilePath(words="a CSV file with the columns time and rate"),
        "CSV file with a heading and the columns `time` (seconds or durations from midnight, or "
        "ISO 8601) and `rate` (records per second, or e.g. `20k/s`); each rate holds until the "
        "next line.",
    )
    scale_ratio: float = entry(
        RATIO, "Factor on all rates, e.g. 1.5x. Default 1.", key="scale", default=1.0
    )
    peaks_per_s: tuple[float, ...] = ()

    def hourly_rates(self) -> tuple[Quantity, ...]:
        """The highest rate of each hour of the day [records/s]."""
        return tuple(Quantity.exactly(peak * self.scale_ratio) for peak in self.peaks_per_s)


Rate = Quantity | DailyCurve | RateTrace


@dataclass(frozen=True, slots=True)
class RateForm:
    """A rate in any of its forms."""

    @property
    def words(self) -> str:
        return f"{RATE.words}; {{low, mid, high}}; {{daily: 24 rates}}; or {{trace: FILE.csv}}"

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        if isinstance(value, dict) and "daily" in value:
            return Nested(DailyCurve).read(reader, route, value)
        if isinstance(value, dict) and "trace" in value:
            trace = Nested(RateTrace).read(reader, route, value)
            return FAULTY if trace is FAULTY else _with_peaks(reader, route, trace)
        return Uncertain(RATE).read(reader, route, value)

    def json_schema(self) -> JsonSchema:
        forms: list[Kind] = [Uncertain(RATE), Nested(DailyCurve), Nested(RateTrace)]
        return {"anyOf": [form.json_schema() for form in forms]}


def hourly_rates(rate: Rate) -> tuple[Quantity, ...]:
    """The rate in each hour of the day, for any form [records/s].

    Examples
    --------
    >>> len(hourly_rates(Quantity.exactly(500.0)))
    24
    """
    if isinstance(rate, Quantity):
        return (rate,) * HOURS_PER_DAY
    return rate.hourly_rates()


def peak_rate(rate: Rate) -> Quantity:
    """The rate of the busiest hour [records/s]."""
    return max(hourly_rates(rate), key=lambda hour: (hour.high, hour.mid))


def _with_peaks(reader: Reader, route: Route, trace: RateTrace) -> Any:
    from dataclasses import replace

    from headway.formats.rate_trace import read_rate_trace

    try:
        peaks_per_s = read_rate_trace(trace.trace).hourly_peaks_per_s()
    except InputError as error:
        reader.fault((*route, "trace"), str(error))
        return FAULTY
    return replace(trace, peaks_per_s=peaks_per_s)
