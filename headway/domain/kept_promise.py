"""Targets as stored in files: exact numbers in base units; their text is for people.

Plans (``headway plan --json``) and locks contain this form, which has its own version.
"""

from __future__ import annotations

import math
from dataclasses import field
from functools import partial
from typing import Literal, TypeAlias

from headway.domain.target import Burst, CatchUp, Deadline, DuringBurst, Metric, Promise, Target
from headway.lazy_classes import dataclass

PROMISE_FORM = "headway.promise/v1"
# Writers of files round what was reckoned, not what was asked for.
_EXACT = {"exact": True}
_THREE_DIGITS_RATIO = 0.0051
PromiseKind: TypeAlias = Literal["latency", "during_burst", "catch_up", "deadline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPromise:
    """One target in a file; its ``kind`` determines the other fields.

    ``form`` is the version of this form, ``text`` the target in words, which nothing reads back.
    ``metric``, ``quantile`` and ``limit_s`` are as in `Target`; the other kinds have a ``limit_s``,
    too. ``after_s`` is the outage after which a query must catch up, ``burst`` the burst during or
    after which the target applies.

    >>> kept_promise = KeptPromise.of(CatchUp(limit_s=1.2349, after=1800.0))
    >>> kept_promise.limit_s, kept_promise.after_s, kept_promise.text
    (1.2349, 1800.0, 'catch_up <= 1.2349 s after 30 min')
    >>> kept_promise.promise() == CatchUp(limit_s=1.2349, after=1800.0)
    True
    """

    form: str = PROMISE_FORM
    kind: PromiseKind
    text: str
    metric: Metric | None = None
    quantile: float | None = field(default=None, metadata=_EXACT)
    limit_s: float = field(metadata=_EXACT)
    after_s: float | None = field(default=None, metadata=_EXACT)
    burst: Burst | None = None

    def __post_init__(self) -> None:
        if self.form != PROMISE_FORM:
            fault = f"form is {self.form!r}; this Headway reads {PROMISE_FORM}: make the file anew"
            raise ValueError(fault)
        self.promise()

    @classmethod
    def of(cls, promise: Promise | Deadline) -> KeptPromise:
        stored = partial(cls, text=str(promise), limit_s=promise.limit_s)
        match promise:
            case Target(metric=metric, quantile=quantile):
                return stored(kind="latency", metric=metric, quantile=quantile)
            case DuringBurst(target=Target(metric=metric, quantile=quantile), burst=burst):
                return stored(kind="during_burst", metric=metric, quantile=quantile, burst=burst)
            case CatchUp(outage_s=after_s, burst=burst):
                return stored(kind="catch_up", after_s=after_s, burst=burst)
            case Deadline():
                return stored(kind="deadline")

    def promise(self) -> Promise | Deadline:
        """The stored target; a ValueError if something that its kind needs is missing."""
        if self.kind == "deadline":
            return Deadline(limit_s=self.limit_s)
        if self.kind == "catch_up":
            after = self.after_s if self.burst is None else self.burst
            if after is None:
                raise ValueError("a promise to catch up needs after_s or burst")
            return CatchUp(limit_s=self.limit_s, after=after)
        if self.metric is None:
            raise ValueError(f"a promise of the kind {self.kind} needs a metric")
        target = Target(metric=self.metric, quantile=self.quantile, limit_s=self.limit_s)
        if self.kind == "latency":
            return target
        if self.burst is None:
            raise ValueError("a promise during a burst needs burst")
        return DuringBurst(target=target, burst=self.burst)


def is_about(first: KeptPromise, second: KeptPromise) -> bool:
    """Whether two targets are the same except for rounding to three digits.

    >>> fine, coarse = (KeptPromise.of(Deadline(limit_s=limit_s)) for limit_s in (1.2349, 1.23))
    >>> is_about(fine, coarse)
    True
    >>> from headway.domain.target import Target
    >>> is_about(*(KeptPromise.of(Target.parse(f"{name} <= 3s")) for name in ("p99", "p99.5")))
    False
    """
    if (first.kind, first.metric) != (second.kind, second.metric):
        return False
    # Shares of all rows are not printed with three digits: p99 and p99.5 are two targets.
    if not _are_close(first.quantile, second.quantile, rel_tol=1e-9):
        return False
    numbers = zip(_numbers(first), _numbers(second), strict=True)
    return all(_are_close(*pair, rel_tol=_THREE_DIGITS_RATIO) for pair in numbers)


def _are_close(first: float | None, second: float | None, *, rel_tol: float) -> bool:
    if first is None or second is None:
        return first == second
    return math.isclose(first, second, rel_tol=rel_tol)


def _numbers(promise: KeptPromise) -> tuple[float | None, ...]:
    burst = promise.burst
    of_burst = (None,) * 3 if burst is None else (burst.rate_per_s, burst.length_s, burst.every_s)
    return promise.limit_s, promise.after_s, *of_burst
