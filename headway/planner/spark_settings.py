"""The settings of a plan in Spark's terms, with their values in the profiled run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from headway.domain import Applies, Change, Job, PlannedSetting
from headway.planner.profiled_memory import (
    before_words,
    beside_heap_conf,
    profiled_sizes,
    same_value,
)
from headway.planner.question import SearchSpace
from headway.sparkconf import KNOBS, Knob, knob_of, resource_settings
from headway.sparkconf.reader_limits import STREAMING_KEYS
from headway.units import spark_memory_text


def executor_conf(profile: Job, executors: int, space: SearchSpace) -> dict[str, str]:
    """Keys of the executors of a job that ends, or of DStreams.

    They have what the recorded run set besides their heap and cores. Cores per task are left out if
    they are Spark's default of one and were before.
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


def profiled_values(profile: Job) -> dict[str, str]:
    """Values of a plan's keys in the recorded run, by Spark's key, as far as known.

    Those that only a query has are left out.
    """
    if profile.provenance == "declared":
        return {}
    slots, properties = profile.slots, profile.application.properties
    counts = {
        KNOBS["executors"].key: slots.executors,
        KNOBS["cores_per_executor"].key: slots.cores_per_executor,
        KNOBS["task_cpus"].key: slots.task_cpus,
    }
    slot_values = {key: str(count) for key, count in counts.items() if count is not None}
    streaming = {key: properties[key] for key in STREAMING_KEYS if key in properties}
    sizes = profiled_sizes(profile.application)
    return slot_values | streaming | sizes | resource_settings(properties)


def planned_settings(
    conf: Mapping[str, str],
    profiled: Mapping[str, str],
    applies_of: Callable[[Knob], Applies] = lambda knob: knob.applies,
    *,
    keeps_checkpoint: bool = False,
) -> tuple[PlannedSetting, ...]:
    """Every key of a plan with its value in the profiled run, when it applies, and what fixes it.

    ``applies_of`` says when the setting of a knob applies to the job; ``keeps_checkpoint`` is for a
    plan that starts from the existing one.
    """
    settings = []
    for key, value in conf.items():
        knob, before = knob_of(key), profiled.get(key)
        applies = applies_of(knob)
        is_pinned = keeps_checkpoint and applies == "new checkpoint"
        settings.append(
            PlannedSetting(
                setting=knob.label,
                key=key,
                value=value,
                applies=applies,
                pinned_by="the existing checkpoint" if is_pinned else None,
                profiled=value if same_value(key, before, value) else before,
            )
        )
    return tuple(settings)


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
