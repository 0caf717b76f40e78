"""The promise: which latency, which statistic of it, and the limit."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum

from headway.errors import InputError
from headway.units import format_duration, parse_duration_s

_GRAMMAR = "e.g. 'p99 <= 3s', 'mean < 1s', 'batch p99 <= 2s'"


class Metric(StrEnum):
    """Which latency a target speaks of (definitions in docs/nomenclature.md)."""

    TUPLE = "tuple"
    BATCH = "batch"
    WINDOW = "window"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A latency promise.

    Parameters
    ----------
    metric : Metric
        Tuple latency unless said otherwise.
    quantile : float in (0, 1) or None
        The quantile the promise is about; None is the mean.
    limit_s : float, > 0
        The limit [s].

    Examples
    --------
    >>> Target.parse("p99 <= 3s")
    Target(metric=<Metric.TUPLE: 'tuple'>, quantile=0.99, limit_s=3.0)
    >>> str(Target.parse("batch mean < 500ms"))
    'batch mean <= 500 ms'
    """

    metric: Metric = Metric.TUPLE
    quantile: float | None
    limit_s: float

    def __post_init__(self) -> None:
        if self.quantile is not None and not 0 < self.quantile < 1:
            raise ValueError(f"quantile is {self.quantile}; expected between 0 and 1")
        if not 0 < self.limit_s < math.inf:
            raise ValueError(f"limit_s is {self.limit_s}; expected a positive number of seconds")

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read a target as it is written on the command line and in files.

        Raises
        ------
        InputError
            If the text is not a target.
        """
        match = re.fullmatch(
            r"\s*(?:(?P<metric>tuple|batch|window)\s+)?(?P<statistic>mean|p\d+(?:\.\d+)?)\s*<=?\s*(?P<limit>.+?)\s*",
            text,
        )
        if match is None:
            raise InputError(f"{text!r} is not a target; expected {_GRAMMAR}")
        limit_s = _duration_in(text, match["limit"])
        quantile = None if match["statistic"] == "mean" else float(match["statistic"][1:]) / 100
        if quantile is not None and not 0 < quantile < 1:
            raise InputError(
                f"target {text!r}: {match['statistic']} is no percentile; "
                "expected above p0 and below p100"
            )
        if limit_s <= 0:
            raise InputError(f"target {text!r}: the limit must be above zero")
        return cls(metric=Metric(match["metric"] or "tuple"), quantile=quantile, limit_s=limit_s)

    @property
    def statistic(self) -> str:
        """``mean`` or the percentile, as written."""
        return "mean" if self.quantile is None else f"p{self.quantile * 100:g}"

    def __str__(self) -> str:
        metric = "" if self.metric is Metric.TUPLE else f"{self.metric} "
        return f"{metric}{self.statistic} <= {format_duration(self.limit_s)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp:
    """A promise about recovery: the backlog of an outage is worked off in time.

    Parameters
    ----------
    limit_s : float, > 0
        From the end of the outage until batches are back to their usual size [s].
    outage_s : float, > 0
        How long nothing was read [s].

    Examples
    --------
    >>> CatchUp.parse("catch_up <= 15m after 30m")
    CatchUp(limit_s=900.0, outage_s=1800.0)
    """

    limit_s: float
    outage_s: float

    def __post_init__(self) -> None:
        for name in ("limit_s", "outage_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; expected a positive number of seconds"
                )

    @classmethod
    def parse(cls, text: str) -> CatchUp:
        """Read the promise as it is written on the command line and in files.

        Raises
        ------
        InputError
            If the text is no such promise.
        """
        match = re.fullmatch(
            r"\s*catch_up\s*<=?\s*(?P<limit>.+?)\s+after\s+(?P<outage>.+?)\s*", text
        )
        if match is None:
            raise InputError(f"{text!r} is not a target; expected e.g. 'catch_up <= 15m after 30m'")
        limit_s, outage_s = (_duration_in(text, match[name]) for name in ("limit", "outage"))
        if not (limit_s > 0 and outage_s > 0):
            raise InputError(f"target {text!r}: both times must be above zero")
        return cls(limit_s=limit_s, outage_s=outage_s)

    def __str__(self) -> str:
        limit, outage = format_duration(self.limit_s), format_duration(self.outage_s)
        return f"catch_up <= {limit} after {outage}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A promise about a batch job: it is done in time.

    Examples
    --------
    >>> str(Deadline.parse("deadline <= 10m"))
    'deadline <= 10 min'
    """

    limit_s: float

    def __post_init__(self) -> None:
        if not 0 < self.limit_s < math.inf:
            raise ValueError(f"limit_s is {self.limit_s}; expected a positive number of seconds")

    @classmethod
    def parse(cls, text: str) -> Deadline:
        """Read the promise as it is written on the command line and in files.

        Raises
        ------
        InputError
            If the text is no such promise.
        """
        match = re.fullmatch(r"\s*deadline\s*<=?\s*(?P<limit>.+?)\s*", text)
        if match is None:
            raise InputError(f"{text!r} is not a target; expected e.g. 'deadline <= 10m'")
        limit_s = _duration_in(text, match["limit"])
        if limit_s <= 0:
            raise InputError(f"target {text!r}: the limit must be above zero")
        return cls(limit_s=limit_s)

    def __str__(self) -> str:
        return f"deadline <= {format_duration(self.limit_s)}"


def _duration_in(text: str, part: str) -> float:
    """A duration that a promise names [s]; where it is none, the promise is named too."""
    try:
        return parse_duration_s(part)
    except InputError as error:
        raise InputError(f"target {text!r}: {error}") from None


def parse_promise(text: str) -> Target | CatchUp | Deadline:
    """A latency target, the promise to catch up after an outage, or a batch job's deadline.

    Raises
    ------
    InputError
        If the text is none of them.

    Examples
    --------
    >>> str(parse_promise("window p95 <= 5s")), str(parse_promise("catch_up < 15m after 30m"))
    ('window p95 <= 5.00 s', 'catch_up <= 15 min after 30 min')
    """
    if text.lstrip().startswith("catch_up"):
        return CatchUp.parse(text)
    if text.lstrip().startswith("deadline"):
        return Deadline.parse(text)
    return Target.parse(text)
