"""A plan compared with the current settings: differences, settings to add, and both merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.domain import Answer
from headway.domain.later import with_changes
from headway.emitters.patch_place import refusal_message
from headway.emitters.submission import SomePlan, is_executor_size
from headway.emitters.wording import header_lines, one_line, reasons
from headway.errors import InputError
from headway.sparkconf import render_properties
from headway.sparkconf.conflicts import (
    conflicts,
    is_on_kubernetes,
    overhead_ratio_of,
    unseen_settings,
)
from headway.sparkconf.container import planned_resources
from headway.units import spark_memory_bytes

_SIZES = (".memory", ".memoryOverhead")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Changes of the current settings by a plan.

    ``added``, ``changed`` and ``same`` are keys of the plan, in its order.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    same: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentSettings:
    """The Spark configuration of today: a file's name, its settings, and the line of each key."""

    name: str
    conf: Mapping[str, str]
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about other files that it names, which were not checked."""
        return tuple(f"{self.place(key)}: {text}" for key, text in unseen_settings(self.conf))

    def place(self, key: str) -> str:
        """Where a key is set, for messages."""
        return f"{self.name}:{self.lines[key]}" if key in self.lines else self.name


def with_assumptions(plan: SomePlan, current: CurrentSettings) -> SomePlan:
    """The plan with the settings without which the current ones contradict its assumptions.

    Parameters
    ----------
    plan : Plan
        The plan.
    current : CurrentSettings
        What the job is submitted with, besides the plan's settings.

    Raises
    ------
    InputError
        If a current setting contradicts the plan and no value sets it right.
    """
    # On Kubernetes the overhead depends on the job's language, which settings do not contain.
    ratio = overhead_ratio_of(is_on_kubernetes=is_on_kubernetes(current.conf), is_jvm_job=False)
    contradictions = conflicts(planned_resources(plan), current.conf, usual_overhead_ratio=ratio)
    refusals = [
        (
            current.place(conflict.key),
            f"{conflict.key} is {conflict.current}: {conflict.reason}",
        )
        for conflict in contradictions
        if conflict.planned is None
    ]
    if refusals:
        raise InputError(refusal_message(refusals))
    settings = {
        conflict.key: conflict.planned
        for conflict in contradictions
        if conflict.key not in plan.spark_conf
    }
    return with_changes(plan, spark_conf={**plan.spark_conf, **settings})


def difference(current: Mapping[str, str], planned: Mapping[str, str]) -> Difference:
    """Compare configurations by value: ``8g`` equals ``8192m``.

    Examples
    --------
    >>> current = {"spark.executor.memory": "8192m", "spark.executor.cores": "2"}
    >>> difference(current, {"spark.executor.memory": "8g", "spark.executor.cores": "4"})
    Difference(added=(), changed=('spark.executor.cores',), same=('spark.executor.memory',))
    """
    added = tuple(key for key in planned if key not in current)
    same = tuple(
        key for key, value in planned.items() if key in current and _equal(key, current[key], value)
    )
    changed = tuple(key for key in planned if key in current and key not in same)
    return Difference(added=added, changed=changed, same=same)


def only_what_differs(
    plan: SomePlan, current: Mapping[str, str], *, keeps_sizes: bool = False
) -> SomePlan:
    """The plan without the Spark configuration that is already as planned.

    Query options stay in, since the configuration does not contain them. So do the sizes of
    executors, with ``keeps_sizes``, for platforms that use their own sizes if a file has none.
    """
    same = difference(current, plan.spark_conf).same
    conf = {
        key: value
        for key, value in plan.spark_conf.items()
        if key not in same or (keeps_sizes and is_executor_size(key))
    }
    return with_changes(plan, spark_conf=conf)


def must_set_text(plan: Answer, current: Mapping[str, str], *, version: str) -> str:
    """The properties file with only the settings to add to the current file."""
    changed = only_what_differs(plan, current)
    return render_properties(
        changed.spark_conf,
        header=["What must be set; all else is as planned already.", f"headway {version}"],
        comments=_comments(plan, current),
    )


def merged_text(plan: Answer, current: Mapping[str, str], *, version: str) -> str:
    """The properties file of the current settings, overridden by the plan's."""
    merged = {**current, **plan.spark_conf}
    return render_properties(
        merged,
        header=["The current settings with the plan's over them.", f"headway {version}"],
        comments=_comments(plan, current),
    )


def reasons_text(plan: Answer, current: Mapping[str, str], *, version: str) -> str:
    """For people: each setting, what happens to it, and why."""
    comparison = difference(current, plan.spark_conf)
    why = reasons(plan)
    lines = [*header_lines(plan, version=version), ""]
    for key, value in plan.spark_conf.items():
        if key in comparison.added:
            change = f"set to {value}; not set before"
        elif key in comparison.changed:
            change = f"{current[key]} -> {value}"
        else:
            change = f"stays {current[key]}"
        lines.append(f"{key}: {change}" + (f" ({why[key]})" if key in why else ""))
    for key, value in plan.query_options.items():
        lines.append(f"{key}: {value}, in the query" + (f" ({why[key]})" if key in why else ""))
    return "".join(f"{one_line(line)}\n" for line in lines)


def _comments(plan: Answer, current: Mapping[str, str]) -> dict[str, str]:
    why = reasons(plan)
    comments = {}
    for key in difference(current, plan.spark_conf).changed:
        comments[key] = one_line(f"was {current[key]} in the current settings")
    return {**why, **comments}


def _equal(key: str, before: str, after: str) -> bool:
    before, after = before.strip(), after.strip()
    if before == after:
        return True
    if key.endswith(_SIZES):
        try:
            return spark_memory_bytes(before) == spark_memory_bytes(after)
        except InputError:
            return False
    return before.lower() == after.lower() and after.lower() in ("true", "false")
