"""Rate traces in files: the reader for `simulate` and for specs.

**CSV**: the heading names a column of times (``time``, ``time_s``, ``timestamp`` or ``t``) and one
of rates (``rate`` or ``rate_per_s``); other columns, empty lines and lines that begin with ``#``
are ignored. Each line contains the start of a rate, in order: seconds (``600``), durations
(``10m``) or timestamps (``2026-11-21T08:00``). A rate is a number of records per second, or has a
unit (``20k/s``). It is in force until the next line; the trace ends with the last line.

**JSON of Prometheus**: the answer to ``/api/v1/query_range`` for records per second. Several series
are added up; a missing sample, or one that is no number, is 0.

**JSON of progress**: ``StreamingQueryProgress`` as Spark writes it, one a line, in a list, or
inside the events of a listener, an event log or ``headway.record``. The rows of a batch have
arrived since the start of the batch before it, provided that the query kept up.
"""

from __future__ import annotations

import csv
import io
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import headway.units as units
from headway.domain import RateTrace
from headway.errors import InputError, argument
from headway.formats.own_files import parse_json, read_text
from headway.formats.yaml_document import shown
from headway.limits import LARGEST_NUMBER, LONGEST_S

_WORDS = "a CSV file with the columns time and rate, and lines such as 10m,60k/s"
_JSON_WORDS = (
    "the answer of Prometheus to a query over a range, or the progress of a streaming query, "
    "one JSON object a line"
)
Sample: TypeAlias = tuple[float, float]

_TIME_COLUMNS = ("time", "time_s", "timestamp", "t")
_RATE_COLUMNS = ("rate", "rate_per_s")
_S_PER_DAY = units.HOURS_PER_DAY * units.S_PER_HOUR
_LARGEST_BYTES = units.parse_size_bytes("64m")
_MOST_LINES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTrace:
    """The content of a trace file; messages call it ``name``.

    ``since_midnight_s`` is the time of day of the first line, for seconds and durations as written.
    Each of ``rates_per_s`` starts at one of ``times_s``, which are counted from the first line.
    """

    name: str
    since_midnight_s: float
    times_s: tuple[float, ...]
    rates_per_s: tuple[float, ...]

    def to_simulate(self, length_s: float | None = None) -> RateTrace:
        """The trace to simulate: until its last line, or for ``length_s``; the last rate continues.

        Raises InputError if it has one line and no length, or no rate above 0.
        """
        if length_s is None and len(self.times_s) < 2:
            raise InputError(
                f"{self.name}: one line of rates, and the last line is where a trace ends; "
                f"add a line with its end, or say how long it lasts ({argument('length')} 30m)"
            )
        end_s = self.times_s[-1] if length_s is None else length_s
        num_begun = bisect_left(self.times_s, end_s)
        rates_per_s = self.rates_per_s[:num_begun]
        if not any(rates_per_s):
            raise InputError(f"{self.name}: no rate above 0 before its end; nothing to simulate")
        last_per_s = self.rates_per_s[-1]
        is_cut = length_s is None and last_per_s != rates_per_s[-1]
        return RateTrace(
            times_s=self.times_s[:num_begun],
            rates_per_s=rates_per_s,
            end_s=end_s,
            rate_at_end_per_s=last_per_s if is_cut else None,
        )

    def hourly_peaks_per_s(self) -> tuple[float, ...]:
        """The highest rate in each hour of the day, over all days, or an InputError.

        Hours outside a trace that is shorter than a day get its last rate.
        """
        if not any(self.rates_per_s):
            raise InputError(f"{self.name}: no rate above 0; expected {_WORDS}")
        peaks: list[float | None] = [None] * units.HOURS_PER_DAY
        ends_s = (*self.times_s[1:], self.times_s[-1])
        for begin_s, end_s, rate_per_s in zip(self.times_s, ends_s, self.rates_per_s, strict=True):
            for hour in _hours(self.since_midnight_s + begin_s, self.since_midnight_s + end_s):
                peaks[hour] = max(peaks[hour] or 0.0, rate_per_s)
        return tuple(self.rates_per_s[-1] if peak is None else peak for peak in peaks)


def read_rate_trace(path: str | Path) -> WrittenTrace:
    """Read a rate trace, or raise an InputError as ``file:line:column: what, expected``.

    >>> read_rate_trace("no/such.csv")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: no/such.csv: no such file; expected a rate trace: a CSV file with...
    """
    text = read_text(Path(path), expected=f"a rate trace: {_WORDS}", largest_bytes=_LARGEST_BYTES)
    if text.lstrip()[:1] in ("{", "["):
        return _sampled(_json_samples(text, str(path)), str(path))
    return _written(text, str(path))


def _sampled(samples: Sequence[Sample], name: str) -> WrittenTrace:
    """A trace with timestamps since 1970, whose days begin at midnight UTC."""
    if len(samples) > _MOST_LINES:
        raise InputError(f"{name}: more than {_MOST_LINES:,} samples")
    first_s = samples[0][0]
    for time_s, rate_per_s in samples:
        if not (math.isfinite(time_s) and time_s - first_s <= LONGEST_S):
            raise InputError(f"{name}: time {time_s:g}; expected seconds since 1970, of ten years")
        if rate_per_s > LARGEST_NUMBER:
            raise InputError(
                f"{name}: rate {rate_per_s:g} at {time_s:g}; expected up to {LARGEST_NUMBER:g} "
                "records per second"
            )
    return WrittenTrace(
        name=name,
        since_midnight_s=first_s % _S_PER_DAY,
        times_s=tuple(time_s - first_s for time_s, _ in samples),
        rates_per_s=tuple(rate_per_s for _, rate_per_s in samples),
    )


def _written(text: str, name: str) -> WrittenTrace:
    lines = _lines(text, name)
    number, heading = next(lines, (1, []))
    columns = [cell.strip().lower() for cell in heading]
    time_at, rate_at = (
        _column(columns, names, f"{name}:{number}:1") for names in (_TIME_COLUMNS, _RATE_COLUMNS)
    )
    times_s: list[float] = []
    rates_per_s: list[float] = []
    first_since_midnight_s, has_dates = 0.0, False
    for number, row in lines:
        where = f"{name}:{number}:1"
        if len(row) <= max(time_at, rate_at):
            raise InputError(f"{where}: {len(row)} values; expected {len(columns)}")
        time_text = row[time_at].strip()
        time_s, since_midnight_s, is_date = _moment(time_text, where)
        if not times_s:
            first_since_midnight_s, has_dates = since_midnight_s, is_date
        elif is_date != has_dates:
            raise InputError(
                f"{where}: time is {shown(time_text)}, and the line before it has "
                f"{'a timestamp' if has_dates else 'seconds or a duration'}; expected one of both"
            )
        elif time_s <= times_s[-1]:
            raise InputError(f"{where}: time {shown(time_text)} is not after the line before it")
        times_s.append(time_s)
        rates_per_s.append(_rate_per_s(row[rate_at].strip(), where))
        if len(times_s) > _MOST_LINES:
            raise InputError(f"{where}: more than {_MOST_LINES:,} lines")
    if not times_s:
        raise InputError(f"{name}: no line of rates; expected {_WORDS}")
    return WrittenTrace(
        name=name,
        since_midnight_s=first_since_midnight_s,
        times_s=tuple(time_s - times_s[0] for time_s in times_s),
        rates_per_s=tuple(rates_per_s),
    )


def _lines(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Lines with content, numbered as in the file."""
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        for row in rows:
            if any(cell.strip() for cell in row) and not row[0].lstrip().startswith("#"):
                yield rows.line_num, row
    except csv.Error as error:
        raise InputError(f"{name}:{rows.line_num}: {error}; expected {_WORDS}") from None


def _column(columns: Sequence[str], names: Sequence[str], where: str) -> int:
    for name in names:
        if name in columns:
            return columns.index(name)
    raise InputError(f"{where}: no column {names[0]!r}; expected {_WORDS}")


def _moment(text: str, where: str) -> tuple[float, float, bool]:
    """Seconds on the clock of the file, and since midnight, and whether the text has a date."""
    seconds = _number(text, units.parse_duration_s)
    if math.isfinite(seconds):
        return seconds, seconds % _S_PER_DAY, False
    try:
        stamp = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{where}: time is {shown(text)}; expected seconds, a duration such as 10m, or a "
            "timestamp such as 2026-11-01T13:00:00"
        ) from None
    midnight = stamp.replace(hour=0, minute=0, second=0, microsecond=0)
    return _unix_time_s(stamp), (stamp - midnight).total_seconds(), True


def _unix_time_s(stamp: datetime) -> float:
    """A time of a record; without a zone it is UTC, so that every day has 24 hours."""
    return (stamp if stamp.tzinfo is not None else stamp.replace(tzinfo=UTC)).timestamp()


def _rate_per_s(text: str, where: str) -> float:
    rate_per_s = _number(text, partial(units.parse_rate_per_s, may_be_zero=True))
    if not 0 <= rate_per_s <= LARGEST_NUMBER:
        raise InputError(
            f"{where}: rate is {shown(text)}; expected 0 or more records per second, e.g. 800 or "
            "20k/s"
        )
    return rate_per_s


def _number(text: str, parse: Callable[[str], float]) -> float:
    """A plain number, or one with a unit; nan for anything else."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return parse(text)
    except InputError:
        return math.nan


def _hours(begin_s: float, end_s: float) -> Iterator[int]:
    """Hours of the day from one moment up to another; at least the hour of the first."""
    first = int(begin_s // units.S_PER_HOUR)
    last = max(math.ceil(end_s / units.S_PER_HOUR), first + 1)
    for hour in range(first, min(last, first + units.HOURS_PER_DAY)):
        yield hour % units.HOURS_PER_DAY


def _json_samples(text: str, name: str) -> list[Sample]:
    """When each rate begins, in seconds since 1970, and the rate [records/s], or an InputError.

    >>> import json
    >>> answer = {"data": {"result": [{"values": [[60, "5"], [120, "7.5"]]}]}}
    >>> _json_samples(json.dumps(answer), "rates.json")
    [(60.0, 5.0), (120.0, 7.5)]
    """
    objects = _objects(text, name)
    series = [values for _, json_object in objects for values in _series(json_object)]
    try:
        samples = _added(series) if series else _between(_progress(objects))
    except (TypeError, ValueError, OverflowError):
        samples = []
    if not samples:
        raise InputError(f"{name}: no rates in this JSON; expected {_JSON_WORDS}")
    return samples


def _objects(text: str, name: str) -> list[tuple[str, Any]]:
    """The objects of the file, and where they are: one value or a list, or one per line."""
    try:
        whole = parse_json(text, name=name, expected=_JSON_WORDS)
        if not isinstance(whole, list):
            return [(name, whole)]
        return [(f"{name}: entry {number}", entry) for number, entry in enumerate(whole, start=1)]
    except InputError:
        pass
    lines = ((f"{name}:{number}", line) for number, line in enumerate(text.split("\n"), start=1))
    return [
        (where, parse_json(line, name=where, expected=_JSON_WORDS))
        for where, line in lines
        if line.strip()
    ]


def _series(answer: Any) -> Iterator[Sequence[Sequence[Any]]]:
    data = answer.get("data") if isinstance(answer, Mapping) else None
    results = data.get("result") if isinstance(data, Mapping) else None
    for series in results if isinstance(results, list) else []:
        if isinstance(series, Mapping) and isinstance(series.get("values"), list):
            yield series["values"]


def _added(series: Sequence[Sequence[Sequence[Any]]]) -> list[Sample]:
    total: dict[float, float] = {}
    for values in series:
        for time_s, value in values:
            rate_per_s = float(value)
            finite_per_s = rate_per_s if math.isfinite(rate_per_s) else 0.0
            total[float(time_s)] = total.get(float(time_s), 0.0) + max(finite_per_s, 0.0)
    return sorted(total.items())


def _progress(objects: Sequence[tuple[str, Any]]) -> list[tuple[float, float]]:
    """Start and rows of each batch, in order; of several queries, the one with the most batches."""
    by_query: dict[str, dict[float, float]] = {}
    for where, event in objects:
        progress = event.get("progress", event) if isinstance(event, Mapping) else None
        if isinstance(progress, str):
            progress = parse_json(progress, name=f"{where}: progress", expected=_JSON_WORDS)
        if not isinstance(progress, Mapping) or "timestamp" not in progress:
            continue
        batches = by_query.setdefault(str(progress.get("runId", "")), {})
        batches[_started_s(progress["timestamp"], where)] = _num_rows(progress, where)
    longest = max(by_query.values(), key=len, default={})
    return sorted(longest.items())


def _started_s(timestamp: Any, where: str) -> float:
    try:
        return _unix_time_s(datetime.fromisoformat(timestamp))
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{where}: timestamp is {shown(str(timestamp))}; expected a time such as "
            "2026-11-01T13:00:00.000Z"
        ) from None


def _num_rows(progress: Mapping[str, Any], where: str) -> float:
    # Events contain the sum of rows, in some versions only those of each source.
    counts = [progress] if "numInputRows" in progress else progress.get("sources")
    try:
        num_rows = sum(float(count["numInputRows"]) for count in counts or ())
    except (KeyError, TypeError, ValueError):
        num_rows = math.nan
    if not (counts and 0.0 <= num_rows <= LARGEST_NUMBER):
        raise InputError(f"{where}: numInputRows is no number of rows; expected 0 or more")
    return num_rows


def _between(batches: Sequence[tuple[float, float]]) -> list[Sample]:
    """Rates from the start of each batch to that of the next, which reads the arrived rows."""
    samples = [
        (begin_s, rows / (end_s - begin_s)) for (begin_s, _), (end_s, rows) in pairwise(batches)
    ]
    return [*samples, (batches[-1][0], samples[-1][1])] if samples else []
