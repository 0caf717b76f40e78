"""Constants of judgement: what Headway assumes if neither theory nor the logs determine a value.

Each is defined here once, by subject, with its unit, its source and what it influences. So are
Spark's own defaults on which an answer depends, but not tolerances of algorithms, nor layout.
``docs/assumptions.md`` is generated from them; ``headway explain`` lists those behind a plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Generic, TypeAlias, TypeVar

from headway.lazy_classes import dataclass
from headway.units import spark_memory_text

Value = TypeVar("Value", bound="float | tuple[float, ...]", covariant=True)
Given = TypeVar("Given", bound="float | tuple[float, ...]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption(Generic[Value]):
    """A number that was chosen by judgement.

    ``value`` is in ``unit``, such as "s", "bytes" or "rows"; "-" for a ratio, as by default.
    ``source`` is a paper, a measurement, a page of Spark's documentation; or "judgement:" with the
    reason. ``influences`` says what depends on it.

    >>> doubt = Assumption(
    ...     name="Doubt", value=0.13, source="judgement: an example", influences="nothing"
    ... )
    >>> doubt.value, doubt.text
    (0.13, '0.13')
    """

    name: str
    value: Value
    unit: str = "-"
    source: str
    influences: str

    @property
    def text(self) -> str:
        """The value with its unit, as text."""
        if self.unit == "bytes":
            assert not isinstance(self.value, tuple)
            return spark_memory_text(int(self.value))
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        unit = {"-": "", "%": "%"}.get(self.unit, f" {self.unit}")
        return ", ".join(f"{number:,.10g}" for number in values) + unit


def seconds(*, name: str, value: Given, source: str, influences: str) -> Assumption[Given]:
    """A number of seconds that was chosen by judgement."""
    return Assumption(name=name, value=value, unit="s", source=source, influences=influences)


def batches(*, name: str, value: Given, source: str, influences: str) -> Assumption[Given]:
    """A number of batches that was chosen by judgement."""
    return Assumption(name=name, value=value, unit="batches", source=source, influences=influences)


def size(*, name: str, value: Given, source: str, influences: str) -> Assumption[Given]:
    """A number of bytes that was chosen by judgement."""
    return Assumption(name=name, value=value, unit="bytes", source=source, influences=influences)


AnyAssumption: TypeAlias = Assumption[float | tuple[float, ...]]


def subjects() -> tuple[ModuleType, ...]:
    """The modules of this package, one for each subject, in the order of the page."""
    from headway.assumptions import (
        advice,
        files,
        fits,
        forecasts,
        live,
        logs,
        planning,
        predictions,
        real_time,
        resources,
        sharing,
        switches,
        tuning,
        turns,
    )

    of_plans = predictions, fits, logs, planning, resources, files, real_time
    return *of_plans, turns, live, forecasts, tuning, sharing, advice, switches


def named(subject: ModuleType) -> Iterator[tuple[str, AnyAssumption]]:
    """The assumptions of a subject, with their names in the code.

    >>> from headway.assumptions import predictions
    >>> next(named(predictions))[0]
    'SPREAD_PER_DOUBLING_RATIO'
    """
    for identifier, assumption in vars(subject).items():
        if isinstance(assumption, Assumption):
            yield identifier, assumption
