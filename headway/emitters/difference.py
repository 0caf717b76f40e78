"""A plan compared with the current settings: differences, settings to add, and both merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.domain import Answer
from headway.domain.later import with_changes
from headway.emitters.patch_place import refusal_message
from headway.emitters.submission import SomePlan, is_executor_size
from headway.emitters.wording import header_lines, reasons
from headway.errors import InputError
from headway.redaction import printable
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

    ``current`` is what the job is submitted with, besides the plan's settings. Raises InputError if
    a current setting contradicts the plan and no value sets it right.
    """
    # On Kubernetes the overhead depends on the job's language, which settings do not contain.
    ratio = overhead_ratio_of(is_on_kubernetes=is_on_kubernetes(current.conf), is_jvm_job=False)
    contradictions = conflicts(planned_resources(plan), current.conf, usual_overhead_ratio=ratio)
    refusals = [
        (current.place(conflict.key), f"{conflict.key} is {conflict.current}: {conflict.reason}")
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


def is_as_planned(key: str, planned: str, current: Mapping[str, str]) -> bool:
    """Whether a key already has its planned value, however it is written: ``8g`` is ``8192m``."""
    if key not in current:
        return False
    before, after = current[key].strip(), planned.strip()
    if before == after:
        return True
    if key.endswith(_SIZES):
        try:
            return spark_memory_bytes(before) == spark_memory_bytes(after)
        except InputError:
            return False
    return before.lower() == after.lower() and after.lower() in ("true", "false")


def only_what_differs(
    plan: SomePlan, current: Mapping[str, str], *, keeps_sizes: bool = False
) -> SomePlan:
    """The plan without the Spark configuration that is already as planned.

    Query options stay in, since the configuration does not contain them. So do the sizes of
    executors, with ``keeps_sizes``, for platforms that use their own sizes if a file has none.
    """
    conf = {
        key: value
        for key, value in plan.spark_conf.items()
        if not is_as_planned(key, value, current) or (keeps_sizes and is_executor_size(key))
    }
    return with_changes(plan, spark_conf=conf)


def must_set_text(plan: Answer, current: Mapping[str, str], *, version: str) -> str:
    """The properties file with only the settings to add to the current file."""
    return render_properties(
        only_what_differs(plan, current).spark_conf,
        header=["What must be set; all else is as planned already.", f"headway {version}"],
        comments=_comments(plan, current),
    )


def merged_text(plan: Answer, current: Mapping[str, str], *, version: str) -> str:
    """The properties file of the current settings, overridden by the plan's."""
    return render_properties(
        {**current, **plan.spark_conf},
        header=["The current settings with the plan's over them.", f"headway {version}"],
        comments=_comments(plan, current),
    )


def reasons_text(plan: Answer, current: Mapping[str, str], *, version: str) -> str:
    """For people: each setting, what happens to it, and why."""
    why = reasons(plan)
    lines = [*header_lines(plan, version=version), ""]
    for key, value in plan.spark_conf.items():
        if key not in current:
            change = f"set to {value}; not set before"
        elif is_as_planned(key, value, current):
            change = f"stays {current[key]}"
        else:
            change = f"{current[key]} -> {value}"
        lines.append(f"{key}: {change}" + (f" ({why[key]})" if key in why else ""))
    for key, value in plan.query_options.items():
        lines.append(f"{key}: {value}, in the query" + (f" ({why[key]})" if key in why else ""))
    return "".join(f"{printable(line)}\n" for line in lines)


def _comments(plan: Answer, current: Mapping[str, str]) -> dict[str, str]:
    was = {
        key: printable(f"was {current[key]} in the current settings")
        for key, value in plan.spark_conf.items()
        if key in current and not is_as_planned(key, value, current)
    }
    return {**reasons(plan), **was}
