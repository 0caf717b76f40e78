"""Two plans side by side: differences, their cost, and their causes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from headway.assumptions.advice import SHOWN_CHANGE_RATIO
from headway.domain import AnyAnswer, Applies
from headway.domain.node_type import currency_of
from headway.domain.result import Result
from headway.domain.stage import phase_called
from headway.domain.target import targets_text
from headway.planner.explain.causes import (
    UNCHANGED_RATIO,
    Cause,
    Needs,
    Sized,
    causes,
    cost_per_hour_of_run,
    frontier_needs,
)
from headway.sparkconf import KNOBS_BY_KEY
from headway.sparkconf.reader_limits import MIN_PARTITIONS_KEY
from headway.units import HOURS_PER_MONTH

Unit: TypeAlias = Literal["s", "rows/s", "count", "per month", "per hour", "per run", "share"]
_Quantity: TypeAlias = tuple[str, Unit, Callable[[Any], float | None]]
"""Name and unit of a figure of a plan, and how it is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One quantity of both plans; None if unavailable.

    >>> Figure(name="nodes", unit="count", before=2.0, after=3.0).change_ratio
    0.5
    """

    name: str
    unit: Unit
    before: float | None
    after: float | None = field(metadata={"then": {"change_ratio": "change_ratio"}})

    @property
    def change_ratio(self) -> float | None:
        """Relative increase over before; None if undefined."""
        if self.before is None or self.after is None or not 0 < self.before < math.inf:
            return None
        return self.after / self.before - 1.0

    @property
    def is_same(self) -> bool:
        """Whether it is unchanged, to the precision of files."""
        ratio = self.change_ratio
        return self.before == self.after if ratio is None else abs(ratio) < UNCHANGED_RATIO


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedValue:
    """A text or Spark setting that differs, and when a change applies."""

    name: str
    before: str
    after: str
    applies: Applies | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Time of one phase or stage in both [s]; None if there is none with its name."""

    name: str
    before_s: float | None
    after_s: float | None

    @property
    def change_s(self) -> float:
        """How much longer it takes."""
        return (self.after_s or 0.0) - (self.before_s or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Difference(Result):
    """Two plans, or two profiles, side by side.

    ``names`` are the names of both, ``parts`` divide the time called ``parts_of``. ``feasible`` is
    None for profiles; ``currency`` is empty if unknown, or if both have another. For profiles,
    ``compared_at`` is the rate and the setting of both, ``no_time`` says why one has no time there.
    """

    result_kind = "diff"
    kind: str
    names: tuple[str, str]
    feasible: tuple[bool, bool] | None = None
    figures: tuple[Figure, ...]
    values: tuple[ChangedValue, ...]
    causes: tuple[Cause, ...] = ()
    parts: tuple[Part, ...] = ()
    parts_of: str = ""
    currency: str = ""
    compared_at: str = ""
    no_time: str = ""

    def figure(self, name: str) -> Figure | None:
        return next((figure for figure in self.figures if figure.name == name), None)

    @property
    def is_none(self) -> bool:
        """Whether nothing differs."""
        return (
            not self.values
            and all(figure.is_same for figure in self.figures)
            and (self.feasible is None or self.feasible[0] == self.feasible[1])
        )


def plan_difference(
    before: AnyAnswer, after: AnyAnswer, *, names: tuple[str, str], needs: Needs | None = None
) -> Difference:
    """Differences between two plans for streams, or two for batch jobs.

    ``needs`` are the nodes that the job of ``after`` needs for other questions; by default from its
    frontier.
    """
    both_feasible = before.feasible and after.feasible
    sizes = (sized(before), sized(after))
    plan_causes = causes(*sizes, needs or frontier_needs(after))
    currencies = {size.currency for size in sizes if size.currency}
    is_comparable = before.ends or (before.rate_per_s, before.prediction.configuration) == (
        after.rate_per_s,
        None if after.prediction is None else after.prediction.configuration,
    )
    quantity = "run time" if after.ends else "mean tuple latency"
    return Difference(
        kind="plan",
        names=names,
        feasible=(before.feasible, after.feasible),
        figures=tuple(_figures(before, after)),
        values=tuple(_changed_values(before, after)),
        causes=plan_causes if both_feasible else (),
        parts=parts(_parts_s(before), _parts_s(after))
        if before.ends or after.ends
        else parts_by_work(
            before.prediction.phases_s,
            after.prediction.phases_s,
            before.prediction.stage_work,
            after.prediction.stage_work,
        ),
        parts_of=quantity if is_comparable else f"{quantity}, each in its own configuration",
        currency=currencies.pop() if len(currencies) == 1 else "",
    )


def sized(plan: AnyAnswer) -> Sized:
    """The question of a plan, and its size; batch jobs cost something while they run."""
    currency = currency_of(plan.node_type)
    if plan.cost is None and not plan.ends and plan.writes is not None:
        currency = plan.writes.currency
    return Sized(
        rate_per_s=plan.rate_per_s,
        promises=plan.promises,
        nodes=plan.nodes,
        cost_per_hour=cost_per_hour_of_run(plan.cost, plan.expected_s)
        if plan.ends
        else plan.cost_per_hour,
        run_time_s=plan.expected_s if plan.ends else None,
        store_cost_per_hour=None if plan.ends else _store_cost(plan),
        currency=currency,
    )


def _figures(before: AnyAnswer, after: AnyAnswer) -> Iterator[Figure]:
    """Figures of two plans of the same kind, of those that one of them has."""
    for name, unit, of in _quantities(before, after):
        then, now = of(before), of(after)
        if then is not None or now is not None:
            yield Figure(name=name, unit=unit, before=then, after=now)


def _quantities(before: Any, after: Any) -> list[_Quantity]:
    """The compared quantities of two plans of the same kind: name, unit, and how each is read."""
    if after.ends:
        return [
            ("nodes", "count", lambda plan: plan.nodes),
            ("cost", "per run", lambda plan: plan.cost),
            ("planned run time", "s", lambda plan: plan.planned_s),
            ("predicted run time", "s", lambda plan: plan.expected_s),
        ]
    statistic = after.target.statistic
    latencies: list[_Quantity] = []
    if (before.target.metric, before.target.statistic) == (after.target.metric, statistic):
        latencies = [
            (f"planned {statistic}", "s", lambda plan: _finite(plan.planned_s)),
            (f"predicted {statistic}", "s", lambda plan: plan.expected_s),
        ]
    return [
        ("rate", "rows/s", lambda plan: plan.rate_per_s),
        ("nodes", "count", lambda plan: plan.nodes),
        ("cost", "per month", lambda plan: per_month(plan.cost)),
        ("checkpoint store", "per month", lambda plan: per_month(_store_cost(plan))),
        ("files", "per hour", lambda plan: plan.writes and plan.writes.files_per_hour),
        *latencies,
        ("utilisation", "share", lambda plan: plan.prediction.utilization_ratio),
        ("max rate within target", "rows/s", lambda plan: plan.max_rate_per_s),
        ("stable up to", "rows/s", lambda plan: plan.prediction.sustainable_rate_per_s),
    ]


def _store_cost(plan: Any) -> float | None:
    """Cost per hour of the write requests and the space of the checkpoint store."""
    return None if plan.writes is None else plan.writes.bill_per_hour


def _finite(value_s: float) -> float | None:
    return value_s if math.isfinite(value_s) else None


def per_month(cost_per_hour: float | None) -> float | None:
    """Hourly cost, converted to a month."""
    return None if cost_per_hour is None else cost_per_hour * HOURS_PER_MONTH


def _changed_values(before: AnyAnswer, after: AnyAnswer) -> Iterator[ChangedValue]:
    """Targets, node types and lines of Spark's configuration that differ."""
    yield from changed_texts(_texts(before), _texts(after))
    applies = {setting.key: setting.applies for setting in after.settings}
    lines = [
        # The number itself: only Kafka's reader has an option for it.
        {**plan.spark_conf, **plan.query_options, MIN_PARTITIONS_KEY: _source_partitions(plan)}
        for plan in (before, after)
    ]
    for line in changed_texts(*lines, if_missing="none"):
        knob = KNOBS_BY_KEY.get(line.name)
        yield replace(
            line,
            name=line.name if knob is None else knob.label,
            applies=applies.get(line.name, None if knob is None else knob.applies),
        )


def _source_partitions(plan: AnyAnswer) -> str:
    number = None if plan.ends else plan.source_partitions
    return "as profiled" if number is None else str(number)


def _texts(plan: AnyAnswer) -> dict[str, str]:
    return {
        "target": targets_text(plan.promises),
        "node type": "-" if plan.node_type is None else plan.node_type.name,
        "confidence": f"{plan.confidence:.3g}",
        "Spark version": plan.spark_version or "-",
    }


def changed_texts(
    before: Mapping[str, str], after: Mapping[str, str], *, if_missing: str = "-"
) -> Iterator[ChangedValue]:
    """The texts that differ, by their names."""
    for name in dict.fromkeys((*before, *after)):
        then, now = before.get(name, if_missing), after.get(name, if_missing)
        if then != now:
            yield ChangedValue(name=name, before=then, after=now)


def _parts_s(plan: AnyAnswer) -> Mapping[str, float]:
    return plan.parts_s if plan.ends else plan.prediction.phases_s


def parts_by_work(
    before_s: Mapping[str, float],
    after_s: Mapping[str, float],
    work_before: Mapping[str, str],
    work_after: Mapping[str, str],
) -> tuple[Part, ...]:
    """The phases that changed; stages are named by what they compute, which is given by name.

    Stages of both that compute something else are different ones, whatever their numbers are.

    >>> for part in parts_by_work(
    ...     {"wait": 0.1, "stage 0": 0.2}, {"wait": 0.4, "stage 0": 0.9},
    ...     {"stage 0": "join"}, {"stage 0": "read"},
    ... ):
    ...     print(part.name, part.before_s, part.after_s)
    stage 0 (read) None 0.9
    wait 0.1 0.4
    stage 0 (join) 0.2 None
    """
    all_work = {**work_before, **work_after}

    def is_shared(phase: str) -> bool:
        """Whether its stages may be the same in both: nothing else is on record."""
        both = work_before.keys() & work_after.keys()
        stages = both.intersection(phase.split("+"))
        return all(work_before[stage] == work_after[stage] for stage in stages)

    then, now = (
        {phase_called(name, all_work if is_shared(name) else work): time_s[name] for name in time_s}
        for time_s, work in ((before_s, work_before), (after_s, work_after))
    )
    return parts(then, now)


def parts(before_s: Mapping[str, float], after_s: Mapping[str, float]) -> tuple[Part, ...]:
    """The parts that changed, largest change first.

    >>> [part.name for part in parts({"wait": 0.5, "stage 0": 0.1}, {"wait": 0.5, "stage 0": 0.2})]
    ['stage 0']
    """
    all_parts = [
        Part(name=name, before_s=before_s.get(name), after_s=after_s.get(name))
        for name in dict.fromkeys((*before_s, *after_s))
    ]
    least_s = SHOWN_CHANGE_RATIO.value * max(sum(before_s.values()), sum(after_s.values()))
    changed = [part for part in all_parts if abs(part.change_s) >= max(least_s, 1e-9)]
    return tuple(sorted(changed, key=lambda part: -abs(part.change_s)))
