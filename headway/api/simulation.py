"""Calls about playing a plan against a stream whose rate changes."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from headway.domain import Outage, Plan, Playback, RateTrace
from headway.errors import InputError
from headway.units import parse_duration_s, parse_rate_per_s

_MOST_POINTS = 1_000_000
_TIME_COLUMNS = ("time_s", "time", "timestamp", "t")
_RATE_COLUMNS = ("rate_per_s", "rate")
_EXPECTED = "expected a CSV file with the columns time and rate, and rows such as 10m,60k/s"


def simulate(
    plan: Plan | str | Path,
    rate_trace: RateTrace | str | Path,
    *,
    outages: Sequence[Outage | str] = (),
    runs: int = 16,
    seed: int = 1,
) -> Playback:
    """Play a plan against a rate trace: latency over time, what comes late, backlog, recovery.

    Parameters
    ----------
    plan : Plan or path
        A plan, or the file that ``headway plan --json`` printed.
    rate_trace : RateTrace or path
        Arrivals over time; a CSV file with the columns ``time`` and ``rate``.
    outages : sequence of Outage or str
        When the query stands still, e.g. ``"5m at 1h"``.
    runs : int
        Runs to play, each with its own luck.
    seed : int
        Seed of the generator.

    Raises
    ------
    InputError
        If a file or a value is not what it should be.
    """
    from headway.planner.playback import play

    if isinstance(runs, bool) or not isinstance(runs, int) or not 1 <= runs <= 1000:
        raise InputError(f"runs is {runs!r}; expected 1 to 1000")
    return play(
        plan if isinstance(plan, Plan) else load_plan(plan),
        rate_trace if isinstance(rate_trace, RateTrace) else load_rate_trace(rate_trace),
        outages=[parse_outage(one) if isinstance(one, str) else one for one in outages],
        num_runs=runs,
        seed=seed,
    )


def load_plan(path: str | Path) -> Plan:
    """Read a plan that ``headway plan --json`` printed.

    Raises
    ------
    InputError
        If the file cannot be read or is no such plan; names the file and the place in it.
    """
    from headway.report.from_json import load_plan as load

    return load(path)


def load_rate_trace(path: str | Path) -> RateTrace:
    """Read a rate trace from a CSV file.

    Each row says when a rate begins: a number of seconds, a duration such as ``10m``, or a
    timestamp such as ``2026-11-21T08:00``. The last rate holds as long as the one before it.

    Raises
    ------
    InputError
        If the file is no rate trace; names the file and the line.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {_EXPECTED}") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; {_EXPECTED}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: no text; {_EXPECTED}") from None
    try:
        return _trace(text)
    except (InputError, ValueError, csv.Error) as error:
        raise InputError(f"{path}: {error}") from None


def parse_outage(text: str) -> Outage:
    """Read an outage as it is written on the command line.

    Raises
    ------
    InputError
        If the text is no outage.

    Examples
    --------
    >>> parse_outage("5m at 1h")
    Outage(start_s=3600.0, length_s=300.0)
    """
    match = re.fullmatch(r"\s*(?P<length>.+?)\s+at\s+(?P<start>.+?)\s*", text)
    if match is None:
        raise InputError(f"{text!r} is not an outage; expected e.g. '5m at 1h'")
    try:
        length_s, start_s = parse_duration_s(match["length"]), _duration_s(match["start"])
        return Outage(start_s=start_s, length_s=length_s)
    except (InputError, ValueError) as error:
        raise InputError(f"outage {text!r}: {error}") from None


def _trace(text: str) -> RateTrace:
    rows = csv.reader(text.splitlines())
    header = [cell.strip().lower() for cell in next(rows, [])]
    time_at, rate_at = _column(header, _TIME_COLUMNS), _column(header, _RATE_COLUMNS)
    times_s: list[float] = []
    rates_per_s: list[float] = []
    for row in rows:
        if not any(cell.strip() for cell in row) or row[0].lstrip().startswith("#"):
            continue
        where = f"line {rows.line_num}"
        if len(row) <= max(time_at, rate_at):
            raise InputError(f"{where}: {len(row)} columns; {_EXPECTED}")
        time_s, rate = _moment_s(row[time_at].strip(), where), row[rate_at].strip()
        if times_s and time_s <= times_s[-1]:
            raise InputError(f"{where}: {row[time_at].strip()!r} is not after the line before it")
        times_s.append(time_s)
        rates_per_s.append(_rate_per_s(rate, where))
        if len(times_s) > _MOST_POINTS:
            raise InputError(f"more than {_MOST_POINTS:,} lines")
    if len(times_s) < 2:
        raise InputError(f"{len(times_s)} rates; {_EXPECTED}")
    start_s = times_s[0]
    times_s = [time_s - start_s for time_s in times_s]
    return RateTrace(
        times_s=tuple(times_s),
        rates_per_s=tuple(rates_per_s),
        end_s=2 * times_s[-1] - times_s[-2],
    )


def _column(header: list[str], names: Sequence[str]) -> int:
    for name in names:
        if name in header:
            return header.index(name)
    raise InputError(f"line 1: no column {names[0]!r} or {names[1]!r}; {_EXPECTED}")


def _moment_s(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        try:
            value = datetime.fromisoformat(text).timestamp()
        except ValueError:
            try:
                value = parse_duration_s(text)
            except InputError as error:
                raise InputError(f"{where}: {error}") from None
    if not math.isfinite(value):
        raise InputError(f"{where}: {text!r} is no time")
    return value


def _rate_per_s(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        try:
            value = parse_rate_per_s(text)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    if not 0 <= value < math.inf:
        raise InputError(f"{where}: {text!r} is no rate; expected 0 or more records per second")
    return value


def _duration_s(text: str) -> float:
    return 0.0 if text.strip() == "0" else parse_duration_s(text)
