"""A plan simulated under a changing rate, and its outcome."""

from __future__ import annotations

import math
import re
from dataclasses import field
from itertools import pairwise

from headway.domain.checks import require_not_negative
from headway.domain.result import Result
from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.units import parse_duration_s, round_step_s

_MOST_STEPS = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A period of the trace in which the query starts no batch; rows keep arriving [s].

    >>> Outage.parse("5m at 1h")
    Outage(start_s=3600.0, length_s=300.0)
    """

    start_s: float
    length_s: float

    def __post_init__(self) -> None:
        require_not_negative("outage", start_s=self.start_s)
        if not 0 < self.length_s < math.inf:
            raise ValueError(f"outage: length_s is {self.length_s}; expected more than 0")

    @classmethod
    def parse(cls, text: str) -> Outage:
        match = re.fullmatch(r"\s*(?P<length>.+?)\s+at\s+(?P<start>.+?)\s*", text)
        if match is None:
            raise InputError(f"{text!r} is not an outage; expected e.g. '5m at 1h'")
        try:
            start_s = 0.0 if match["start"] == "0" else parse_duration_s(match["start"])
            return cls(start_s=start_s, length_s=parse_duration_s(match["length"]))
        except (InputError, ValueError) as error:
            raise InputError(f"outage {text!r}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTrace:
    """Arrivals whose rate changes at known moments.

    Each rate begins at one of ``times_s``, of which the first is the start of the simulation, and
    the last ends at ``end_s``. ``rate_at_end_per_s`` begins there, and is not simulated.

    >>> RateTrace(times_s=(0.0, 60.0), rates_per_s=(100.0, 300.0), end_s=90.0).mean_rate_per_s
    166.66666666666666
    """

    times_s: tuple[float, ...]
    rates_per_s: tuple[float, ...]
    end_s: float
    rate_at_end_per_s: float | None = None

    def __post_init__(self) -> None:
        if not self.times_s or len(self.times_s) != len(self.rates_per_s):
            raise ValueError("a rate trace needs a rate for each of at least one time")
        edges = (*self.times_s, self.end_s)
        if not all(math.isfinite(late) and early < late for early, late in pairwise(edges)):
            raise ValueError("the times of a rate trace must increase, and end after the last")
        for rate_per_s in self.rates_per_s:
            if not 0 <= rate_per_s < math.inf:
                raise ValueError(f"rate is {rate_per_s}; expected 0 or more")
        if not any(self.rates_per_s):
            raise ValueError("a rate trace without any row has nothing to simulate")

    @property
    def length_s(self) -> float:
        """From its first time to its end [s]."""
        return self.end_s - self.times_s[0]

    @property
    def mean_rate_per_s(self) -> float:
        """Rows over time [records/s]."""
        edges = (*self.times_s, self.end_s)
        lengths_s = (late - early for early, late in pairwise(edges))
        rows = sum(
            rate * length_s for rate, length_s in zip(self.rates_per_s, lengths_s, strict=True)
        )
        return rows / self.length_s

    @property
    def round_step_s(self) -> float:
        """The smallest round step of time of which the trace has no more than a table rows [s]."""
        return round_step_s(self.length_s / _MOST_STEPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStretch:
    """Results of one stretch of the trace, over all runs.

    It ends where the next one begins, the last one with the trace.
    Latencies are of the rows that arrived in it and were read, None if none was. ``late_ratio`` is
    the share above the limit (of rows or of batches, depending on the target), including rows that
    still waited at the end for longer than the limit; None if there are no such rows.
    ``backlog_rows`` is the maximum that was in no batch yet, in the median run.
    """

    start_s: float
    rate_per_s: float
    p50_s: float | None
    p99_s: float | None
    late_ratio: float | None
    backlog_rows: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Time from the end of an outage until rows are in time again [s]: median and worst run.

    They are once those of a batch meet the target; if it is one on windows, the predicted p99.
    ``inf`` if a run did not recover within the trace.
    """

    outage: Outage
    median_s: float
    worst_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTarget:
    """A target of the plan under the trace.

    ``value_s`` is what the trace gave for it: the statistic of all runs, or for a recovery the
    worst run; ``inf`` if the query did not catch up. None if the simulation says nothing about it:
    ``reason`` says why. [s]
    """

    target: str
    limit_s: float
    value_s: float | None
    reason: str = field(default="", metadata={"then": {"met": "met"}})

    @property
    def met(self) -> bool | None:
        """Whether it is met; None if that is unavailable."""
        return None if self.value_s is None else self.value_s <= self.limit_s


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Playback(Result):
    """A plan simulated under a rate trace in several runs of equal weight.

    ``targets`` are those of the plan, each with the value under this trace; empty in files of
    earlier versions.
    Latencies and late rows include those of rows that still waited at the end for longer than the
    limit, with their wait until then.
    ``late_ratio`` is that of all rows; ``late_ratio_worst_run`` that of the worst run.
    ``longest_late_s`` is the longest time during which arriving rows were late, in the median run.
    ``ends_behind`` says that more rows arrive at the end than the setting can process;
    ``growth_left_out`` that batches grow for another reason than the state, and were simulated as
    if they did not.
    """

    result_kind = "playback"
    trace: RateTrace
    outages: tuple[Outage, ...]
    num_runs: int
    num_batches: int
    limit_s: float | None
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    max_s: float
    late_ratio: float
    late_ratio_worst_run: float
    longest_late_s: float
    peak_backlog_rows: float
    ends_behind: bool
    recoveries: tuple[Recovery, ...]
    stretches: tuple[TraceStretch, ...]
    targets: tuple[SimulatedTarget, ...] = ()
    growth_left_out: bool = False

    @property
    def missed(self) -> tuple[SimulatedTarget, ...]:
        return tuple(target for target in self.targets if target.met is False)

    @property
    def feasible(self) -> bool | None:
        """Whether the plan meets its targets under this trace; None if that is unavailable.

        It does not if the backlog still grows at the end, whatever the rows took until then.
        """
        if self.ends_behind or self.missed:
            return False
        return True if any(target.met for target in self.targets) else None
