"""The target: which latency, which statistic of it, and the limit; and the bursts that it names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import field
from enum import StrEnum
from typing import TypeAlias, TypeVar

from headway.domain.checks import require_seconds
from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.units import exact_duration, exact_rate, listed, parse_duration_s, parse_rate_per_s

Part = TypeVar("Part")
_GRAMMAR = "e.g. 'p99 <= 3s', 'mean < 1s', 'batch p99 <= 2s'"


class Metric(StrEnum):
    """Which latency a target is for (definitions in docs/nomenclature.md)."""

    TUPLE = "tuple"
    BATCH = "batch"
    WINDOW = "window"


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """A higher rate for a while, once or again and again.

    ``rate_per_s`` is the total input rate while it lasts, ``length_s`` how long that is, and
    ``every_s`` from the start of one to the start of the next; None means once.

    >>> Burst.parse("150k/s for 2m every 1h")
    Burst(rate_per_s=150000.0, length_s=120.0, every_s=3600.0)
    """

    rate_per_s: float = field(metadata={"exact": True})
    length_s: float = field(metadata={"exact": True})
    every_s: float | None = field(default=None, metadata={"exact": True})

    def __post_init__(self) -> None:
        for name in ("rate_per_s", "length_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a positive number")
        if self.every_s is not None and not self.length_s < self.every_s < math.inf:
            raise ValueError(f"every_s is {self.every_s}; expected more than {self.length_s}")

    @classmethod
    def parse(cls, text: str) -> Burst:
        match = re.fullmatch(r"\s*(.+?)\s+for\s+(.+?)(?:\s+every\s+(.+?))?\s*", text)
        if match is None:
            raise InputError(
                f"{text!r} is no burst; expected e.g. '150k/s for 2m' or '150k/s for 2m every 1h'"
            )
        return cls._of(text, *match.groups())

    @classmethod
    def parse_short(cls, text: str) -> Burst:
        """Read a burst as the option ``--burst`` has it: ``RATE:DURATION[:EVERY]``.

        >>> str(Burst.parse_short("150k/s:2m:1h"))
        '150k/s for 2 min every 60 min'
        """
        parts = [part.strip() for part in text.split(":")]
        if len(parts) not in (2, 3) or not all(parts):
            raise InputError(f"{text!r} is no burst; expected e.g. 150k/s:2m or 150k/s:2m:1h")
        return cls._of(text, *parts)

    @classmethod
    def _of(cls, text: str, rate: str, length: str, interval: str | None = None) -> Burst:
        try:
            rate_per_s = parse_rate_per_s(rate)
            length_s = parse_duration_s(length)
            every_s = None if interval is None else parse_duration_s(interval)
        except InputError as error:
            raise InputError(f"burst {text!r}: {error}") from None
        if not length_s > 0:
            raise InputError(f"burst {text!r}: the duration must be above zero")
        if every_s is not None and every_s <= length_s:
            raise InputError(
                f"burst {text!r}: one begins before the last has ended; give the longer time from "
                "the start of one to the start of the next, or plan for the rate as it is always"
            )
        return cls(rate_per_s=rate_per_s, length_s=length_s, every_s=every_s)

    def __str__(self) -> str:
        again = "" if self.every_s is None else f" every {exact_duration(self.every_s)}"
        return f"{exact_rate(self.rate_per_s)} for {exact_duration(self.length_s)}{again}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A latency target.

    Parameters
    ----------
    metric : Metric
        Tuple latency by default.
    quantile : float in (0, 1) or None
        The quantile of the target; None is the mean.
    limit_s : float, > 0
        The limit [s].

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
        require_seconds(limit_s=self.limit_s)

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read a target as the command line and files have it; an InputError if it is none."""
        match = re.fullmatch(
            r"\s*(?:(?P<metric>tuple|batch|window)\s+)?(?P<statistic>mean|p\d+(?:\.\d+)?)\s*<=?\s*(?P<limit>.+?)\s*",
            text,
        )
        if match is None:
            raise _not_a_target(text)
        limit_s = _part_of(text, parse_duration_s, match["limit"])
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
        return "mean" if self.quantile is None else f"p{self.quantile * 100:.12g}"

    def __str__(self) -> str:
        metric = "" if self.metric is Metric.TUPLE else f"{self.metric} "
        return f"{metric}{self.statistic} <= {exact_duration(self.limit_s)}"


# What people write for the words of a target.
_MEANT = (
    (r"\b(avg|average)\b", "mean"),
    (r"\bmedian\b", "p50"),
    (r"\bpercentile\s*(\d+)", r"p\1"),
    (r"\blatency\b", ""),
    (r"≤|=<|⩽", "<="),
    (r"≥|=>|>=|>", "<="),
)


def _not_a_target(text: str) -> InputError:
    """What is wrong with a text, and what was probably meant by it."""
    suggestion = text.lower()
    for pattern, replacement in _MEANT:
        suggestion = re.sub(pattern, replacement, suggestion)
    suggestion = " ".join(suggestion.split())
    try:
        is_target = suggestion != text and bool(Target.parse(suggestion))
    except InputError:
        is_target = False
    if not is_target:
        return InputError(f"{text!r} is not a target; expected {_GRAMMAR}")
    why = "a target is an upper limit" if re.search("[>≥]", text) else "not a target"
    return InputError(f"{text!r}: {why}; did you mean {suggestion!r}?")


@dataclass(frozen=True, slots=True, kw_only=True)
class DuringBurst:
    """A latency target for the rows that arrive during a burst.

    >>> str(DuringBurst.parse("p99 <= 5s during 150k/s for 2m"))
    'p99 <= 5.00 s during 150k/s for 2 min'
    """

    target: Target
    burst: Burst

    @property
    def limit_s(self) -> float:
        return self.target.limit_s

    @classmethod
    def parse(cls, text: str) -> DuringBurst:
        target, _, burst = text.partition(" during ")
        return cls(target=Target.parse(target), burst=_part_of(text, Burst.parse, burst))

    def __str__(self) -> str:
        return f"{self.target} during {self.burst}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp:
    """A target for recovery: the backlog of an outage or a burst is processed in time.

    ``limit_s`` is from the end of it until batches are back to their usual size, ``after`` is how
    long nothing was read [s], or the burst.

    >>> CatchUp.parse("catch_up <= 15m after 30m")
    CatchUp(limit_s=900.0, after=1800.0)
    >>> str(CatchUp.parse("catch_up <= 1m after 150k/s for 2m"))
    'catch_up <= 1 min after 150k/s for 2 min'
    """

    limit_s: float
    after: float | Burst

    def __post_init__(self) -> None:
        require_seconds(limit_s=self.limit_s)
        if not isinstance(self.after, Burst):
            require_seconds(after=self.after)

    @classmethod
    def parse(cls, text: str) -> CatchUp:
        match = re.fullmatch(
            r"\s*catch_up\s*<=?\s*(?P<limit>.+?)\s+after\s+(?P<after>.+?)\s*", text
        )
        if match is None:
            raise InputError(
                f"{text!r} is not a target; expected e.g. 'catch_up <= 15m after 30m' (an outage) "
                "or 'catch_up <= 1m after 150k/s for 2m' (a burst)"
            )
        limit_s = _part_of(text, parse_duration_s, match["limit"])
        after: float | Burst = (
            _part_of(text, Burst.parse, match["after"])
            if " for " in match["after"]
            else _part_of(text, parse_duration_s, match["after"])
        )
        if not limit_s > 0 or after == 0.0:
            raise InputError(f"target {text!r}: both times must be above zero")
        return cls(limit_s=limit_s, after=after)

    @property
    def burst(self) -> Burst | None:
        """The burst that it is about; None if it is about an outage."""
        return self.after if isinstance(self.after, Burst) else None

    @property
    def outage_s(self) -> float | None:
        """How long nothing was read [s]; None if it is about a burst."""
        return None if isinstance(self.after, Burst) else self.after

    def __str__(self) -> str:
        after = self.after if isinstance(self.after, Burst) else exact_duration(self.after)
        return f"catch_up <= {exact_duration(self.limit_s)} after {after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A target for a job that ends by itself: it ends in time.

    >>> str(Deadline.parse("deadline <= 10m"))
    'deadline <= 10 min'
    """

    limit_s: float

    def __post_init__(self) -> None:
        require_seconds(limit_s=self.limit_s)

    @classmethod
    def parse(cls, text: str) -> Deadline:
        match = re.fullmatch(r"\s*deadline\s*<=?\s*(?P<limit>.+?)\s*", text)
        if match is None:
            raise InputError(f"{text!r} is not a target; expected e.g. 'deadline <= 10m'")
        limit_s = _part_of(text, parse_duration_s, match["limit"])
        if limit_s <= 0:
            raise InputError(f"target {text!r}: the limit must be above zero")
        return cls(limit_s=limit_s)

    def __str__(self) -> str:
        return f"deadline <= {exact_duration(self.limit_s)}"


def _part_of(text: str, parse: Callable[[str], Part], part_text: str) -> Part:
    """A duration or a burst in a target; an error names the target, too."""
    try:
        return parse(part_text)
    except InputError as error:
        raise InputError(f"target {text!r}: {error}") from None


#: What may be promised of a stream, and of any job.
Promise: TypeAlias = Target | DuringBurst | CatchUp
AnyPromise: TypeAlias = Promise | Deadline


def targets_text(promises: Iterable[AnyPromise]) -> str:
    """Targets, as a part of a sentence.

    >>> targets_text([parse_promise("p99 <= 3s"), parse_promise("catch_up <= 15m after 30m")])
    'p99 <= 3.00 s and catch_up <= 15 min after 30 min'
    """
    return listed(list(map(str, promises)))


def parse_promise(text: str) -> AnyPromise:
    """A latency target, at all times or during a burst, a target to catch up, or a deadline.

    Raises InputError if the text is none of them.

    >>> str(parse_promise("window p95 <= 5s")), str(parse_promise("catch_up < 15m after 30m"))
    ('window p95 <= 5.00 s', 'catch_up <= 15 min after 30 min')
    """
    if text.lstrip().startswith("catch_up"):
        return CatchUp.parse(text)
    if text.lstrip().startswith("deadline"):
        return Deadline.parse(text)
    if " during " in text:
        return DuringBurst.parse(text)
    return Target.parse(text)
