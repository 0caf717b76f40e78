"""The executors of a job that ends, or of DStreams, as Spark configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headway.domain import Change, Job, PlannedSetting
from headway.planner.profiled_memory import (
    before_words,
    beside_heap_conf,
    profiled_sizes,
    same_value,
)
from headway.planner.space import NodeSpace
from headway.sparkconf import KNOBS, STREAMING, knob_of, resource_settings
from headway.units import spark_memory_text


def executor_conf(profile: Job, executors: int, space: NodeSpace) -> dict[str, str]:
    """Keys of the executors, with what the recorded run set besides their heap and cores.

    Cores per task are left out if they are Spark's default of one and were before.
    """
    conf = {
        KNOBS["executors"].key: str(executors),
        KNOBS["cores_per_executor"].key: str(space.cores_per_executor),
    }
    if not space.task_cpus == profile.slots.task_cpus == 1:
        conf[KNOBS["task_cpus"].key] = str(space.task_cpus)
    if space.executor_memory_bytes is not None:
        conf[KNOBS["executor_memory"].key] = spark_memory_text(space.executor_memory_bytes)
    conf |= beside_heap_conf(profile.application)
    conf["spark.dynamicAllocation.enabled"] = "false"
    return conf | resource_settings(profile.application.properties)


def _profiled_values(profile: Job) -> dict[str, str]:
    """Values of a plan's keys in the recorded run, by Spark's key, as far as known."""
    if profile.provenance == "declared":
        return {}
    slots = profile.slots
    counts = {
        KNOBS["executors"].key: slots.executors,
        KNOBS["cores_per_executor"].key: slots.cores_per_executor,
        KNOBS["task_cpus"].key: slots.task_cpus,
    }
    slot_values = {key: str(count) for key, count in counts.items() if count is not None}
    properties = profile.application.properties
    streaming = {key: properties[key] for key in STREAMING if key in properties}
    amounts = resource_settings(properties)
    return slot_values | streaming | profiled_sizes(profile.application) | amounts


def planned_settings(profile: Job, conf: Mapping[str, str]) -> Iterator[PlannedSetting]:
    """Every key of the plan, with its value in the recorded run."""
    profiled = _profiled_values(profile)
    for key, value in conf.items():
        knob = knob_of(key)
        yield PlannedSetting(
            setting=knob.label,
            key=key,
            value=value,
            applies=knob.applies,
            profiled=value if same_value(key, profiled.get(key), value) else profiled.get(key),
        )


def changes_of(
    settings: Sequence[PlannedSetting], if_unknown: str | None = None
) -> Iterator[Change]:
    """Settings with which the next run is submitted instead of those of the recorded run.

    A value that is not recorded is called ``if_unknown``, or what its key says about that.
    """
    for setting in settings:
        if setting.profiled != setting.value:
            yield Change(
                setting=setting.setting,
                before=setting.profiled or if_unknown or before_words(setting.key, {}),
                after=setting.value,
                applies=setting.applies,
            )
