"""Rate traces in CSV files."""

from __future__ import annotations

import csv
import math
from datetime import datetime
from pathlib import Path

from headway.errors import InputError
from headway.spec.yaml_document import read_text, shown

_HOURS_PER_DAY = 24
_S_PER_HOUR = 3600.0
_COLUMNS = ("time", "rate_per_s")


def hourly_peaks_per_s(path: Path) -> tuple[float, ...]:
    """The highest rate of each hour of the day; hours without a line take the one before.

    Parameters
    ----------
    path : Path
        A CSV file with a heading and the columns ``time`` (ISO 8601, or seconds from midnight)
        and ``rate_per_s``; other columns are ignored.

    Raises
    ------
    InputError
        If it is no such file; the message names the line and column.
    """
    lines = read_text(path, expected="a rate trace").splitlines()
    rows = list(csv.reader(lines))
    heading = [name.strip() for name in rows[0]]
    missing = [name for name in _COLUMNS if name not in heading]
    if missing:
        raise InputError(
            f"{path}:1:1: no column {missing[0]!r}; expected a heading with time,rate_per_s"
        )
    time_at, rate_at = (heading.index(name) for name in _COLUMNS)
    peaks: list[float | None] = [None] * _HOURS_PER_DAY
    for number, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) <= max(time_at, rate_at):
            raise InputError(f"{path}:{number}:1: {len(row)} values; expected {len(heading)}")
        hour = _hour(path, number, row[time_at])
        peaks[hour] = max(peaks[hour] or 0.0, _rate_per_s(path, number, row[rate_at]))
    return _filled(path, peaks)


def _hour(path: Path, number: int, text: str) -> int:
    try:
        return int(float(text) // _S_PER_HOUR) % _HOURS_PER_DAY
    except (ValueError, OverflowError):
        pass
    try:
        return datetime.fromisoformat(text.strip()).hour
    except ValueError:
        raise InputError(
            f"{path}:{number}:1: time is {shown(text)}; expected e.g. 2026-11-01T13:00:00, "
            "or seconds from midnight"
        ) from None


def _rate_per_s(path: Path, number: int, text: str) -> float:
    try:
        rate_per_s = float(text)
    except ValueError:
        rate_per_s = math.nan
    if not 0 <= rate_per_s < math.inf:
        raise InputError(
            f"{path}:{number}:1: rate_per_s is {shown(text)}; expected records per second, "
            "a plain number"
        )
    return rate_per_s


def _filled(path: Path, peaks: list[float | None]) -> tuple[float, ...]:
    known = [peak for peak in peaks if peak is not None]
    if not known or max(known) <= 0:
        raise InputError(f"{path}: no rate above 0; expected lines of time,rate_per_s")
    # The day is a circle: what stands before midnight's first line is yesterday's last.
    last = next(peak for peak in reversed(peaks) if peak is not None)
    filled = []
    for peak in peaks:
        last = last if peak is None else peak
        filled.append(last)
    return tuple(filled)
