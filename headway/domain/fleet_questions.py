"""What is asked about several jobs: the capacity that they need, and what fails their check."""

from __future__ import annotations

import re
from typing import Any

from headway.domain.argument import CommandQuestion, argument_of, arguments_of
from headway.domain.argument_values import FLAG, Positive, ReadBy, not_expected, parse_share
from headway.errors import InputError, argument
from headway.lazy_classes import dataclass


def parse_growth(text: str) -> float:
    try:
        return float(text.strip().removesuffix("x"))
    except ValueError:
        raise InputError(f"{text!r} is no growth; expected a ratio, e.g. 1.5x") from None


def read_month(value: Any, name: str) -> int:
    """The number of months since year 0 until a month such as ``2027-06``.

    >>> read_month("2027-06", "by") - read_month("2026-12", "by")
    6
    """
    match = isinstance(value, str) and re.fullmatch(r"(\d{4})-(\d{1,2})", value)
    if not match:
        raise not_expected(name, value, "a month, e.g. 2027-06")
    year, month = map(int, match.groups())
    if not 1 <= month <= 12:
        fault = f"{argument(name)} {value}: there is no month {month}; expected e.g. {match[1]}-06"
        raise InputError(fault)
    return year * 12 + month - 1


_SHARE = Positive(words="a share, e.g. 15% or 0.15", parse=parse_share, may_be_zero=True)
_GROWTH = Positive(words="a ratio, e.g. 1.5x", parse=parse_growth, maximum=1e6)


@dataclass(frozen=True, kw_only=True)
class CapacityQuestion(CommandQuestion):
    """What the capacity of a fleet is asked for."""

    growth_ratio: float | None = argument_of(
        _GROWTH, "Multiply all rates by this, e.g. 1.5x.", name="growth"
    )
    by_month: int | None = argument_of(
        ReadBy(read_month), "Month by which the rates will have grown, e.g. 2027-06.", name="by"
    )


@dataclass(frozen=True, kw_only=True)
class Limits(CommandQuestion):
    """How much worse than the lock counts as a regression, as shares such as 0.05 or ``"5%"``.

    A share of 0 allows no rise at all. Anything that is no share is an InputError.

    >>> Limits().cost_ratio, Limits(cost_ratio="2%", latency_ratio=0).cost_ratio
    (0.05, 0.02)
    """

    cost_ratio: float = argument_of(
        _SHARE,
        "Fail if the cost rises by more than this.",
        name="max_cost",
        default=0.05,
        metavar="SHARE",
    )
    latency_ratio: float = argument_of(
        _SHARE,
        "Fail if the planned latency or run time rises by more than this.",
        name="max_latency",
        default=0.1,
        metavar="SHARE",
    )
    drift_ratio: float = argument_of(
        _SHARE,
        "Fail if batches in the locked configuration become longer by more than this.",
        name="max_drift",
        default=0.2,
        metavar="SHARE",
    )
    require_locked: bool = argument_of(
        FLAG, "Fail if a job is not in the lock file.", default=False
    )
    strict: bool = argument_of(
        FLAG, "Exit with 5 if the answer is outside the calibrated range.", default=False
    )

    def __post_init__(self) -> None:
        for declared in arguments_of(type(self)):
            name = declared.field_name
            object.__setattr__(self, name, declared.value.read(getattr(self, name), name))
