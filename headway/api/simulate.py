"""A plan simulated under a rate that changes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast, overload

from headway.api.arguments import job_from, positive_seconds
from headway.api.pipelines import is_pipeline, simulate_pipeline
from headway.domain import (
    JobProfile,
    Outage,
    Playback,
    RateTrace,
    StreamAnswer,
)
from headway.domain.live import PolicyComparison
from headway.errors import InputError
from headway.formats.from_json import load_plan
from headway.formats.rate_trace import read_rate_trace
from headway.planner.live.loop import POLICIES, compare_policies
from headway.planner.playback import simulate_plan
from headway.units import parse_duration_s

if TYPE_CHECKING:
    from headway.api.pipelines import AnyPipeline, AnyPipelineRuns


@overload
def simulate(
    plan: AnyPipeline,
    *,
    rate: float | str | None = ...,
    runs: int | None = ...,
    seed: int = ...,
    length: float | str | None = ...,
) -> AnyPipelineRuns: ...


@overload
def simulate(
    plan: StreamAnswer | str | Path,
    rate_trace: RateTrace | str | Path | None = ...,
    *,
    rate: float | str | None = ...,
    outages: Sequence[Outage | str] = ...,
    runs: int | None = ...,
    seed: int = ...,
    length: float | str | None = ...,
) -> Playback: ...


def simulate(
    plan: StreamAnswer | AnyPipeline | str | Path,
    rate_trace: RateTrace | str | Path | None = None,
    *,
    rate: float | str | None = None,
    outages: Sequence[Outage | str] = (),
    runs: int | None = None,
    seed: int = 1,
    length: float | str | None = None,
) -> Playback | AnyPipelineRuns:
    """Simulate a plan under a rate trace: latency over time, late rows, backlog, recovery.

    Or simulate a pipeline event by event, compared with its prediction.

    Parameters
    ----------
    plan : Plan, MicroBatchPipeline, OrderedPipeline or path
        A plan, or the file that ``headway plan --json`` printed; or a pipeline, or its spec file,
        for which the result is that of `headway.api.pipelines.simulate_pipeline`.
    rate_trace : RateTrace or path
        Input rate over time: a CSV file with the columns ``time`` and ``rate``, the JSON answer of
        Prometheus, or the progress of a query as JSON. Required for a plan.
    rate : float or str
        Input rate of a pipeline; by default that of its file.
    outages : sequence of Outage or str
        Outages, during which the query does not run, e.g. ``"5m at 1h"``.
    runs : int
        Number of simulated runs, which differ in their random draws; 16 by default, 2 of a
        pipeline.
    seed : int
        Random seed.
    length : float or str
        Simulated time, seconds or e.g. ``"30m"``: a shorter one ends the trace early, a longer one
        continues its last rate. By default the simulation ends with the last line.

    Raises
    ------
    InputError
        If a file or a value is invalid.
    """
    if is_pipeline(plan):
        if rate_trace is not None or outages:
            raise InputError("rate_trace and outages are not for pipelines; expected rate")
        return simulate_pipeline(
            cast("AnyPipeline", plan),
            rate=rate,
            runs=2 if runs is None else runs,
            seed=seed,
            length=length,
        )
    if rate_trace is None:
        raise InputError("rate_trace is missing; expected a RateTrace or the path of a CSV file")
    if rate is not None:
        raise InputError("rate is for pipelines; a plan is simulated under its rate_trace")

    plan = cast("StreamAnswer | str | Path", plan)
    runs = 16 if runs is None else runs
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
        outages=[parse_outage(outage) if isinstance(outage, str) else outage for outage in outages],
        num_runs=runs,
        seed=seed,
    )


def simulate_policies(
    plan: StreamAnswer | str | Path,
    rate_trace: RateTrace | str | Path,
    *,
    profile: JobProfile | str | Path,
    policies: Sequence[str] = ("headway", "hpa", "flink", "ds2", "static", "optimum"),
    executors: tuple[int, int] | None = None,
    triggers: Sequence[float | str] = (),
    outages: Sequence[Outage | str] = (),
    runs: int = 2,
    seed: int = 1,
    length: float | str | None = None,
) -> PolicyComparison:
    """Simulate a plan under a rate trace while policies change its executors, or its trigger.

    Parameters
    ----------
    plan : Plan or path
        A plan, or the file that ``headway plan --json`` printed.
    rate_trace : RateTrace or path
        A trace, or a CSV file as :func:`load_rate_trace` reads it.
    profile : JobProfile or path
        The profile that the plan was made from, for batch durations with other executors.
    policies : sequence of str
        Names, with a constant behind a colon unless it is the default: ``"hpa:50%"``,
        ``"flink:0.7"``, ``"ds2:1.2"``, ``"static:8"``.
    executors : (int, int), optional
        Minimum and maximum; by default 1 to 1.5 times what the highest rate needs.
    triggers : sequence of float or str
        Trigger intervals that Headway's rule may use besides the plan's, e.g. ``["1s"]``.
    outages : sequence of Outage or str
        When the query does not run, e.g. ``"5m at 1h"``.
    runs, seed : int
        Runs of each policy, and the random seed.
    length : float or str
        Length of the trace; until its last line by default.

    Raises
    ------
    InputError
        If an argument is invalid.
    """

    trace = rate_trace
    if not isinstance(trace, RateTrace):
        trace = load_rate_trace(trace, length=length)
    return compare_policies(
        load_plan(plan) if isinstance(plan, str | Path) else plan,
        job_from(profile),
        trace,
        [parse_policy(policy) for policy in policies],
        executors=executors,
        triggers_s=[positive_seconds(trigger, "triggers") for trigger in triggers],
        outages=[parse_outage(outage) if isinstance(outage, str) else outage for outage in outages],
        num_runs=runs,
        seed=seed,
    )


def parse_policy(text: str) -> tuple[str, float | None]:
    """Read a policy as it is written on the command line.

    Raises
    ------
    InputError
        If there is no such policy, or it has no such constant.

    Examples
    --------
    >>> parse_policy("hpa:50%"), parse_policy("headway")
    (('hpa', 0.5), ('headway', None))
    """

    name, _, constant = text.strip().partition(":")
    if name not in POLICIES:
        raise InputError(f"no policy {name!r}; expected one of {', '.join(POLICIES)}")
    if not constant:
        return name, None
    if name in ("headway", "optimum"):
        raise InputError(f"policy {text!r}: {name} has no constant; write {name}")
    try:
        value = float(constant.removesuffix("%")) / (100.0 if constant.endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    max_constant = {"hpa": 1.0, "flink": 1.0}.get(name, math.inf)
    if not 0.0 < value <= max_constant or (name == "static" and value != int(value)):
        expected = {"hpa": "50%", "flink": "70%", "ds2": "1.2", "static": "8"}[name]
        raise InputError(f"policy {text!r}: expected a constant such as {name}:{expected}")
    return name, value


def parse_executors(text: str) -> tuple[int, int]:
    """Read the minimum and maximum of executors as written on the command line.

    Raises
    ------
    InputError
        If the text is not a range.

    Examples
    --------
    >>> parse_executors("2..12")
    (2, 12)
    """
    match = re.fullmatch(r"\s*(\d{1,5})\s*\.\.\s*(\d{1,5})\s*", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"{text!r} is not a range of executors; expected e.g. 2..12")
    return int(match[1]), int(match[2])


def load_rate_trace(path: str | Path, *, length: float | str | None = None) -> RateTrace:
    """Read a rate trace from a file, in the same form as for specs.

    JSON of Prometheus or of a query's progress; or CSV, in which each line contains the start of a
    rate: a number of seconds, a duration such as ``10m``, or a timestamp such as
    ``2026-11-21T08:00``. The trace ends with its last line.

    Parameters
    ----------
    path : path
        The file.
    length : float or str
        Another length of the trace, seconds or e.g. ``"30m"``; its last rate continues.

    Raises
    ------
    InputError
        If the file is no rate trace; names the file and the line.
    """

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
