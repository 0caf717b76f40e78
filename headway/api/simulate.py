"""A plan simulated under a rate that changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from headway.api.arguments import positive_seconds
from headway.domain import (
    Outage,
    Playback,
    RateTrace,
    StreamAnswer,
)
from headway.errors import InputError
from headway.formats.from_json import load_plan
from headway.units import parse_duration_s


def simulate(
    plan: StreamAnswer | str | Path,
    rate_trace: RateTrace | str | Path,
    *,
    outages: Sequence[Outage | str] = (),
    runs: int = 16,
    seed: int = 1,
    length: float | str | None = None,
) -> Playback:
    """Simulate a plan under a rate trace: latency over time, what comes late, backlog, recovery.

    Parameters
    ----------
    plan : Plan or path
        A plan, or the file that ``headway plan --json`` printed.
    rate_trace : RateTrace or path
        Arrivals over time; a CSV file with the columns ``time`` and ``rate``.
    outages : sequence of Outage or str
        Outages, during which the query stands still, e.g. ``"5m at 1h"``.
    runs : int
        Number of simulated runs, which differ in their random draws.
    seed : int
        Seed of the generator.
    length : float or str
        Simulated time, seconds or e.g. ``"30m"``: shorter cuts the trace, longer holds its last
        rate. By default the simulation ends with the last line.

    Raises
    ------
    InputError
        If a file or a value is not what it should be.
    """
    from headway.planner.playback import simulate_plan

    if isinstance(runs, bool) or not isinstance(runs, int) or not 1 <= runs <= 1000:
        raise InputError(f"runs is {runs!r}; expected 1 to 1000")
    if isinstance(rate_trace, RateTrace):
        if length is not None:
            raise InputError("length is for trace files; a RateTrace has its own end")
        trace = rate_trace
    else:
        trace = load_rate_trace(rate_trace, length=length)
    return simulate_plan(
        load_plan(plan) if isinstance(plan, str | Path) else plan,
        trace,
        outages=[parse_outage(one) if isinstance(one, str) else one for one in outages],
        num_runs=runs,
        seed=seed,
    )


def load_rate_trace(path: str | Path, *, length: float | str | None = None) -> RateTrace:
    """Read a rate trace from a CSV file, the same that specs name.

    Each line says when a rate begins: a number of seconds, a duration such as ``10m``, or a
    timestamp such as ``2026-11-21T08:00``. The trace ends with its last line.

    Parameters
    ----------
    path : path
        The file.
    length : float or str
        How long the trace lasts instead, seconds or e.g. ``"30m"``; its last rate holds.

    Raises
    ------
    InputError
        If the file is no rate trace; names the file and the line.
    """
    from headway.formats.rate_trace import read_rate_trace

    length_s = None if length is None else positive_seconds(length, "length")
    return read_rate_trace(path).to_simulate(length_s)


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


def _duration_s(text: str) -> float:
    return 0.0 if text.strip() == "0" else parse_duration_s(text)
