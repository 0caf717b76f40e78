"""Places for a plan in manifests of either Kubernetes operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headway.domain import Answer
from headway.domain.plan_parts import PlannedResources
from headway.emitters.kubernetes import kubeflow_executor
from headway.emitters.patch_place import Place, applications_in, conf_changes
from headway.emitters.submission import other_conf
from headway.formats.yaml_lines import Tree
from headway.formats.yaml_patch import items_of, line_of, scalars_of, text_at, value_at
from headway.sparkconf.conflicts import (
    LIMIT_CORES_KEY,
    REQUEST_CORES_KEY,
    conflicts,
    limits_cores,
    overhead_ratio_of,
    requests_other_cores,
)
from headway.sparkconf.container import (
    HEAP_KEY,
    KUBERNETES_FACTOR_KEY,
    OVERHEAD_KEY,
    container_bytes,
    memory_bytes_of,
    memory_quantity,
    planned_resources,
)

#: Fields of an executor in kubeflow's manifests, which override the configuration.
_FIELDS = {
    "memory": HEAP_KEY,
    "memoryOverhead": OVERHEAD_KEY,
    "coreLimit": LIMIT_CORES_KEY,
    "coreRequest": REQUEST_CORES_KEY,
}
_EXECUTOR_CONTAINER = "spark-kubernetes-executor"
_CONTAINER_NAME_KEY = "spark.kubernetes.executor.podTemplateContainerName"
_INSTANCES = ("initExecutors", "minExecutors", "maxExecutors")


def manifest_places(node: Any, plan: Answer) -> Iterator[Place]:
    """The applications of a document: a manifest, or a list of manifests."""
    for label, application, below in applications_in(node):
        if below is None:
            yield _apache_place(label, application, plan)
        else:
            yield _kubeflow_place(label, application, below, plan)


def _kubeflow_place(label: str, node: Any, below: tuple[str, ...], plan: Answer) -> Place:
    """Sizes are put where the file has them: the operator's own fields override ``sparkConf``."""
    spec = value_at(node, ("spec", *below))
    resources = planned_resources(plan)
    is_jvm_job = text_at(spec, ("type",)) in ("Java", "Scala")
    ratio = overhead_ratio_of(is_on_kubernetes=True, is_jvm_job=is_jvm_job)
    executor = kubeflow_executor(plan)
    conf_node = value_at(spec, ("sparkConf",))
    values, refusals, notes = conf_changes(conf_node, resources, ratio)
    current = scalars_of(conf_node)
    conf = {
        **other_conf(plan),
        **{key: value for key, value in {**plan.spark_conf, **values}.items() if key in current},
    }
    of_executor = scalars_of(value_at(spec, ("executor",)))
    fields = {field: value for field, value in of_executor.items() if field in _FIELDS}
    factor = text_at(spec, ("memoryOverheadFactor",))
    if factor is not None:
        fields["memoryOverheadFactor"] = factor
    stated = {_FIELDS[field]: field for field in _FIELDS if field in fields}
    for conflict in conflicts(resources, current | _as_conf(fields), usual_overhead_ratio=ratio):
        field = stated.get(conflict.key)
        if field is None and conflict.key == OVERHEAD_KEY and conflict.current is None:
            field = "memoryOverhead"
        if field is not None and conflict.planned is not None:
            executor[field] = conflict.planned
    container = current | _as_conf(fields) | conf | _as_conf(executor) | dict(plan.spark_conf)
    room_bytes = container_bytes(container, ratio)
    limit = text_at(spec, ("executor", "memoryLimit"))
    if limit is not None and room_bytes is not None and _limits_memory(limit, room_bytes):
        executor["memoryLimit"] = memory_quantity(room_bytes)
    template = value_at(spec, ("executor", "template"))
    container_name = current.get(_CONTAINER_NAME_KEY, _EXECUTOR_CONTAINER)
    if changes := _template_changes(template, resources, room_bytes, container_name):
        executor["template"] = changes
    tree: dict[str, Tree] = {"sparkConf": conf, "executor": executor}
    if text_at(spec, ("dynamicAllocation", "enabled")) is not None:
        tree["dynamicAllocation"] = {"enabled": False}
    return Place(
        labels=(label,),
        node=node,
        changes={"spec": {below[0]: tree} if below else tree},
        refusals=tuple(refusals),
        notes=(*notes, *_unseen_maps(spec)),
    )


def _as_conf(fields: Mapping[str, Tree]) -> dict[str, str]:
    """Fields of an executor as the configuration that the operator makes of them."""
    keys = {**_FIELDS, "memoryOverheadFactor": KUBERNETES_FACTOR_KEY}
    return {keys[field]: str(value) for field, value in fields.items() if field in keys}


def _apache_place(label: str, node: Any, plan: Answer) -> Place:
    """All is configuration; limits may be in the executors' pod template."""
    spec = value_at(node, ("spec",))
    resources = planned_resources(plan)
    is_jvm_job = not any(text_at(spec, (key,)) for key in ("pyFiles", "sparkRFiles"))
    ratio = overhead_ratio_of(is_on_kubernetes=True, is_jvm_job=is_jvm_job)
    conf_node = value_at(spec, ("sparkConf",))
    values, refusals, notes = conf_changes(conf_node, resources, ratio)
    current = scalars_of(conf_node)
    conf = {**plan.spark_conf, **values}
    tree: dict[str, Tree] = {"sparkConf": conf}
    template = value_at(spec, ("executorSpec", "podTemplateSpec"))
    room_bytes = container_bytes(current | conf, ratio)
    container_name = current.get(_CONTAINER_NAME_KEY)
    if changes := _template_changes(template, resources, room_bytes, container_name):
        tree["executorSpec"] = {"podTemplateSpec": changes}
    counts = scalars_of(value_at(spec, ("applicationTolerations", "instanceConfig")))
    corrections = {
        key: plan.executors
        for key in _INSTANCES
        if key in counts and not _is_count(counts[key], key, plan.executors)
    }
    if corrections:
        tree["applicationTolerations"] = {"instanceConfig": corrections}
    changed: dict[str, Tree] = {"spec": tree}
    return Place(
        labels=(label,), node=node, changes=changed, refusals=tuple(refusals), notes=tuple(notes)
    )


def _is_count(text: str, key: str, executors: int) -> bool:
    """Whether a number of executors that the operator waits for is that of the plan."""
    if not text.isdecimal():
        return False
    # Zero switches the check off.
    return int(text) in (0, executors) or (key == "minExecutors" and int(text) < executors)


def _template_changes(
    template: Any, resources: PlannedResources, room_bytes: int | None, container_name: str | None
) -> dict[str, Tree]:
    """Limits and requests of the executors' container in a pod template that are not the plan's."""
    containers = items_of(value_at(template, ("spec", "containers")))
    names = [text_at(container, ("name",)) for container in containers]
    if not containers:
        return {}
    # Spark takes the first container if none has the name.
    container_index = names.index(container_name) if container_name in names else 0
    limits = scalars_of(value_at(containers[container_index], ("resources", "limits")))
    requests = scalars_of(value_at(containers[container_index], ("resources", "requests")))
    cores = str(resources.cores_per_executor)
    corrections: dict[str, dict[str, Tree]] = {"limits": {}, "requests": {}}
    if "cpu" in limits and limits_cores(limits["cpu"], resources):
        corrections["limits"]["cpu"] = cores
    if "cpu" in requests and requests_other_cores(requests["cpu"], resources):
        corrections["requests"]["cpu"] = cores
    if room_bytes is not None:
        quantity = memory_quantity(room_bytes)
        if "memory" in limits and _limits_memory(limits["memory"], room_bytes):
            corrections["limits"]["memory"] = quantity
        if "memory" in requests:
            request_bytes = memory_bytes_of(requests["memory"])
            if request_bytes is None or memory_quantity(request_bytes) != quantity:
                corrections["requests"]["memory"] = quantity
    changed: dict[str, Tree] = {key: value for key, value in corrections.items() if value}
    if not changed:
        return {}
    return {"spec": {"containers": {str(container_index): {"resources": changed}}}}


def _limits_memory(stated: str, room_bytes: int) -> bool:
    """Whether a limit of memory is below what Spark requests."""
    limit_bytes = memory_bytes_of(stated)
    return limit_bytes is None or limit_bytes < room_bytes


def _unseen_maps(spec: Any) -> Iterator[str]:
    """Fields that take settings from another object of the cluster."""
    if text_at(spec, ("sparkConfigMap",)) is not None:
        yield (
            f"sparkConfigMap in line {line_of(spec, 'sparkConfigMap')} names another object, which "
            "was not checked: settings in it must not contradict the plan"
        )
