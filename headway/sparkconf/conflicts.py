"""Settings that contradict what a plan assumes: one rule for each assumption.

Slots, cores, the number of executors, the size of their containers, Kubernetes' limits, the master.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from headway.assumptions.resources import OVERHEAD_RATIO, PYTHON_OVERHEAD_RATIO
from headway.domain.plan_parts import PlannedResources
from headway.lazy_classes import dataclass
from headway.sparkconf import container
from headway.sparkconf.task_resources import tasks_by_amounts
from headway.units import counted, parse_size_bytes, spark_memory_text

TASK_CPUS_KEY = "spark.task.cpus"
CORES_MAX_KEY = "spark.cores.max"
MASTER_KEY = "spark.master"
LIMIT_CORES_KEY = "spark.kubernetes.executor.limit.cores"
REQUEST_CORES_KEY = "spark.kubernetes.executor.request.cores"
POD_TEMPLATE_KEY = "spark.kubernetes.executor.podTemplateFile"
DRIVER_CORES_KEY, DRIVER_HEAP_KEY = "spark.driver.cores", "spark.driver.memory"
_DYNAMIC_KEYS = ("spark.dynamicAllocation.enabled", "spark.streaming.dynamicAllocation.enabled")
_PROFILE_KEY = "spark.databricks.cluster.profile"
_TASK_RESOURCE = r"spark\.task\.resource\.(?P<name>.+)\.amount"
_MIB = parse_size_bytes("1m")

#: Why a plan sets these keys, though it contains no value for them by itself.
REASONS: Mapping[str, str] = MappingProxyType(
    {
        TASK_CPUS_KEY: "cores per task that the plan assumes",
        CORES_MAX_KEY: "cores of all executors of the plan",
        LIMIT_CORES_KEY: "not below the cores of an executor",
        REQUEST_CORES_KEY: "the cores of an executor",
        DRIVER_CORES_KEY: "cores that the queries need of their driver",
        DRIVER_HEAP_KEY: "heap that the driver needs for its queries",
        **dict.fromkeys(container.OVERHEAD_KEYS, "memory besides the heap that the plan assumes"),
        **dict.fromkeys(_DYNAMIC_KEYS, "the plan assumes a fixed number of executors"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A setting that contradicts the plan.

    ``current`` is its value, None if it is not set and Spark's default contradicts. ``planned`` is
    the value with which it no longer does; None if no value would do, and it must be taken out.
    """

    key: str
    current: str | None
    planned: str | None
    reason: str


def conflicts(
    resources: PlannedResources,
    current: Mapping[str, str],
    *,
    usual_overhead_ratio: float = OVERHEAD_RATIO.value,
) -> tuple[Conflict, ...]:
    """Current settings that contradict what a plan assumes.

    Keys that the plan sets itself are among them if their current value contradicts it.
    ``usual_overhead_ratio`` is the overhead as a share of the heap if nothing is set. [-]

    >>> resources = PlannedResources(nodes=1, executors=1, cores_per_executor=4, task_cpus=1)
    >>> contradictions = conflicts(resources, {"spark.task.cpus": "2"})
    >>> [(conflict.key, conflict.planned) for conflict in contradictions]
    [('spark.task.cpus', '1')]
    """
    return tuple(
        conflict
        for rule in (
            _task_cpus,
            _task_resources,
            _cores_max,
            _dynamic_allocation,
            _master,
            _kubernetes_cores,
            _beside_heap,
        )
        for conflict in rule(resources, current)
    ) + tuple(_overhead(resources, current, usual_overhead_ratio))


def is_on_kubernetes(conf: Mapping[str, str]) -> bool:
    """Whether a configuration is for Kubernetes, as far as it says."""
    return conf.get(MASTER_KEY, "").strip().startswith("k8s:") or any(
        key.startswith("spark.kubernetes.") for key in conf
    )


def overhead_ratio_of(*, is_on_kubernetes: bool, is_jvm_job: bool) -> float:
    """Overhead of containers as a share of the heap, where a configuration sets none.

    >>> overhead_ratio_of(is_on_kubernetes=True, is_jvm_job=False)
    0.4
    """
    is_larger = is_on_kubernetes and not is_jvm_job
    return PYTHON_OVERHEAD_RATIO.value if is_larger else OVERHEAD_RATIO.value


def unseen_settings(conf: Mapping[str, str]) -> list[tuple[str, str]]:
    """Keys that name other files, which may contradict a plan, each with a sentence about it."""
    if POD_TEMPLATE_KEY not in conf:
        return []
    sentence = (
        f"{POD_TEMPLATE_KEY} names another file, which was not checked: a CPU limit in it must not "
        "be below the cores of an executor"
    )
    return [(POD_TEMPLATE_KEY, sentence)]


def _contradicting(key: str, current: Mapping[str, str], planned: str) -> Conflict:
    """The conflict of a key for which a plan has a value."""
    return Conflict(key=key, current=current.get(key), planned=planned, reason=REASONS[key])


def _task_cpus(resources: PlannedResources, current: Mapping[str, str]) -> Iterator[Conflict]:
    planned = str(resources.task_cpus)
    if current.get(TASK_CPUS_KEY, planned).strip() != planned:
        yield _contradicting(TASK_CPUS_KEY, current, planned)


def _task_resources(resources: PlannedResources, current: Mapping[str, str]) -> Iterator[Conflict]:
    """GPUs and the like, of which tasks need a share: Spark then counts the fewer slots."""
    for key, stated in current.items():
        match = re.fullmatch(_TASK_RESOURCE, key)
        if match is None:
            continue
        available = current.get(f"spark.executor.resource.{match['name']}.amount")
        slots = _slots_of_resource(stated, available)
        if slots is not None and slots < resources.slots_per_executor:
            yield Conflict(
                key=key,
                current=stated,
                planned=None,
                reason=f"an executor runs {counted(slots, 'task')} at a time with it, the plan "
                f"assumes {resources.slots_per_executor}",
            )


def _slots_of_resource(per_task: str, per_executor: str | None) -> int | None:
    """Tasks at a time by a resource, as Spark counts them; None if either is no number."""
    try:
        amount, available = float(per_task), float(per_executor or "")
    except ValueError:
        return None
    if math.isfinite(amount) and amount > available:
        return 0
    return tasks_by_amounts(amount, available)


def _cores_max(resources: PlannedResources, current: Mapping[str, str]) -> Iterator[Conflict]:
    """A standalone cluster ignores the number of executors: it goes by the cores of all."""
    stated = current.get(CORES_MAX_KEY)
    planned = str(resources.num_cores)
    is_standalone = current.get(MASTER_KEY, "").strip().startswith("spark:")
    if (stated is None and is_standalone) or (stated is not None and stated.strip() != planned):
        yield _contradicting(CORES_MAX_KEY, current, planned)


def _dynamic_allocation(_: PlannedResources, current: Mapping[str, str]) -> Iterator[Conflict]:
    for key in _DYNAMIC_KEYS:
        if current.get(key, "false").strip().lower() != "false":
            yield _contradicting(key, current, "false")


def _master(resources: PlannedResources, current: Mapping[str, str]) -> Iterator[Conflict]:
    """One JVM without executors is no cluster, and reads no memory of executors."""
    needs = f"the plan needs {counted(resources.executors, 'executor')}"
    master = current.get(MASTER_KEY)
    if master is not None and re.match(r"local\b", master.strip()):
        reason = f"a local master has no executors, {needs}"
        yield Conflict(key=MASTER_KEY, current=master, planned=None, reason=reason)
    profile = current.get(_PROFILE_KEY)
    if profile is not None and profile.strip().lower() == "singlenode":
        reason = f"a single node has no workers, {needs}"
        yield Conflict(key=_PROFILE_KEY, current=profile, planned=None, reason=reason)


def _kubernetes_cores(
    resources: PlannedResources, current: Mapping[str, str]
) -> Iterator[Conflict]:
    """The request is an executor's cores; Kubernetes refuses a pod whose limit is below it."""
    for key, contradicts in (
        (LIMIT_CORES_KEY, limits_cores),
        (REQUEST_CORES_KEY, requests_other_cores),
    ):
        if key in current and contradicts(current[key], resources):
            yield _contradicting(key, current, str(resources.cores_per_executor))


def limits_cores(stated: str, resources: PlannedResources) -> bool:
    """Whether a limit of cores, as Kubernetes writes it, is below those of an executor."""
    cores = container.cores_of(stated)
    return cores is None or cores < resources.cores_per_executor


def requests_other_cores(stated: str, resources: PlannedResources) -> bool:
    """Whether a request of cores, as Kubernetes writes it, is not for those of an executor."""
    return container.cores_of(stated) != resources.cores_per_executor


def _beside_heap(resources: PlannedResources, current: Mapping[str, str]) -> Iterator[Conflict]:
    """Memory of the container that the plan has no room for.

    It is refused, not switched off: native engines do not start without memory off the heap.
    """
    room_bytes = resources.container_bytes
    if room_bytes is None:
        return
    for key, planned_bytes, stated_bytes in (
        (
            container.OFF_HEAP_KEY,
            resources.off_heap_bytes,
            container.off_heap_setting_bytes(current),
        ),
        (
            container.PYTHON_MEMORY_KEY,
            resources.python_bytes,
            container.memory_setting_bytes(current.get(container.PYTHON_MEMORY_KEY)),
        ),
    ):
        if stated_bytes and not planned_bytes:
            reason = (
                f"it adds {spark_memory_text(stated_bytes)} to each container, and the plan, "
                f"made without it, assumes {spark_memory_text(room_bytes)}"
            )
            yield Conflict(key=key, current=current[key], planned=None, reason=reason)


def _overhead(
    resources: PlannedResources, current: Mapping[str, str], usual_ratio: float
) -> Iterator[Conflict]:
    """Every spelling that is set; the usual one if only a share of the heap contradicts."""
    planned_bytes, heap_bytes = resources.overhead_bytes, resources.heap_bytes
    if planned_bytes is None or heap_bytes is None:
        return
    planned = spark_memory_text(planned_bytes)
    stated_keys = [key for key in container.OVERHEAD_KEYS if key in current]
    for key in stated_keys:
        size_bytes = container.memory_setting_bytes(current[key])
        if size_bytes is None or not _is_same_size(size_bytes, planned_bytes):
            yield _contradicting(key, current, planned)
    default_bytes = container.effective_overhead_bytes(current, heap_bytes, usual_ratio)
    if not stated_keys and not _is_same_size(default_bytes, planned_bytes):
        yield _contradicting(container.OVERHEAD_KEY, current, planned)


def _is_same_size(size_bytes: int, planned_bytes: int) -> bool:
    """Sizes are the same if they are in whole mebibytes, to which Spark rounds them."""
    return abs(size_bytes - planned_bytes) < _MIB
