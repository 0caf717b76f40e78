"""Memory of an executor's container: as Spark computes it, and as a plan assumes it.

Also quantities as Kubernetes writes them: cores such as ``1500m``, memory such as ``5Gi``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from headway.assumptions.resources import LEAST_OVERHEAD_BYTES, OVERHEAD_RATIO
from headway.domain import Answer
from headway.domain.plan_parts import PlannedResources
from headway.errors import InputError
from headway.sparkconf.knobs import task_cpus_of
from headway.units import spark_memory_bytes

HEAP_KEY = "spark.executor.memory"
PYTHON_MEMORY_KEY = "spark.executor.pyspark.memory"
OVERHEAD_KEY = "spark.executor.memoryOverhead"
OFF_HEAP_KEY = "spark.memory.offHeap.enabled"
OFF_HEAP_SIZE_KEY = "spark.memory.offHeap.size"
#: Spark reads the first of these that is set.
OVERHEAD_KEYS = (OVERHEAD_KEY, "spark.yarn.executor.memoryOverhead")
OVERHEAD_FACTOR_KEY = "spark.executor.memoryOverheadFactor"
KUBERNETES_FACTOR_KEY = "spark.kubernetes.memoryOverheadFactor"
MIN_OVERHEAD_KEY = "spark.executor.minMemoryOverhead"
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
# The operator of kubeflow takes Java's spellings too, which are binary.
_JAVA = {"k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30, "t": 40, "tb": 40}
_OF_CORES = {unit: Decimal(2) ** power for unit, power in _BINARY.items()} | {
    unit: Decimal(10) ** power for unit, power in _DECIMAL.items()
}
_OF_MEMORY = _OF_CORES | {unit: Decimal(2) ** power for unit, power in _JAVA.items()}
_QUANTITY = r"(?P<number>\d+(?:\.\d*)?|\.\d+)(?P<unit>[A-Za-z]*)"


def usual_overhead_bytes(
    heap_bytes: int,
    ratio: float = OVERHEAD_RATIO.value,
    least_bytes: int = LEAST_OVERHEAD_BYTES.value,
) -> int:
    """Overhead if no size is set: a share of the heap, and a minimum [bytes].

    >>> usual_overhead_bytes(8 * 2**30) == round(0.8 * 2**30)
    True
    """
    return max(round(ratio * heap_bytes), least_bytes)


def memory_setting_bytes(text: str | None) -> int | None:
    """A memory setting as Spark reads it; None if it is not set, or is not a size."""
    try:
        return None if text is None else spark_memory_bytes(text)
    except InputError:
        return None


def overhead_setting_bytes(conf: Mapping[str, str]) -> int | None:
    """The overhead that a configuration sets in either spelling; None if in neither."""
    sizes = (memory_setting_bytes(conf.get(key)) for key in OVERHEAD_KEYS)
    return next((size for size in sizes if size is not None), None)


def overhead_factor(conf: Mapping[str, str]) -> float | None:
    """The share of the heap that a configuration sets as overhead; None if it sets none."""
    for key in (OVERHEAD_FACTOR_KEY, KUBERNETES_FACTOR_KEY):
        try:
            ratio = float(conf[key])
        except (KeyError, ValueError):
            continue
        if 0.0 < ratio < 100.0:
            return ratio
    return None


def off_heap_setting_bytes(conf: Mapping[str, str]) -> int:
    """Memory off the heap; unlike other sizes, its unit is bytes if it has none.

    >>> off_heap_setting_bytes({OFF_HEAP_SIZE_KEY: "1g"})
    0
    >>> off_heap_setting_bytes({OFF_HEAP_KEY: "true", OFF_HEAP_SIZE_KEY: "4096"})
    4096
    """
    if conf.get(OFF_HEAP_KEY, "").strip().lower() != "true":
        return 0
    bare = conf.get(OFF_HEAP_SIZE_KEY, "").strip()
    return int(bare) if bare.isdecimal() else memory_setting_bytes(bare) or 0


def effective_overhead_bytes(
    conf: Mapping[str, str], heap_bytes: int, usual_ratio: float = OVERHEAD_RATIO.value
) -> int:
    """The overhead that Spark reserves for a heap [bytes].

    ``usual_ratio`` is the share of the heap if neither a size nor a share is set; on Kubernetes it
    is larger for jobs that are not JVM ones.

    >>> effective_overhead_bytes({OVERHEAD_FACTOR_KEY: "0.5"}, 4 * 2**30) == 2 * 2**30
    True
    """
    size_bytes = overhead_setting_bytes(conf)
    if size_bytes is not None:
        return size_bytes
    ratio = overhead_factor(conf)
    least_bytes = memory_setting_bytes(conf.get(MIN_OVERHEAD_KEY))
    return usual_overhead_bytes(
        heap_bytes,
        usual_ratio if ratio is None else ratio,
        LEAST_OVERHEAD_BYTES.value if least_bytes is None else least_bytes,
    )


def container_bytes(
    conf: Mapping[str, str], usual_ratio: float = OVERHEAD_RATIO.value
) -> int | None:
    """Memory that Spark requests for an executor [bytes]; None if the heap is not set."""
    heap_bytes = memory_setting_bytes(conf.get(HEAP_KEY))
    if heap_bytes is None:
        return None
    python_bytes = memory_setting_bytes(conf.get(PYTHON_MEMORY_KEY)) or 0
    overhead_bytes = effective_overhead_bytes(conf, heap_bytes, usual_ratio)
    return heap_bytes + overhead_bytes + python_bytes + off_heap_setting_bytes(conf)


def planned_resources(plan: Answer) -> PlannedResources:
    """The slots, cores and memory that a plan assumes.

    The size of a container is assumed if the plan computed one, or checked that it fits on a node,
    or sets a part of it. Otherwise the plan has a heap at most, and what is set besides it stays.
    """
    conf = plan.spark_conf
    heap_bytes = memory_setting_bytes(conf.get(HEAP_KEY))
    overhead_bytes = _overhead_bytes(plan, heap_bytes)
    python_bytes = memory_setting_bytes(conf.get(PYTHON_MEMORY_KEY))
    off_heap_bytes = off_heap_setting_bytes(conf) or None
    if overhead_bytes is not None:
        python_bytes, off_heap_bytes = python_bytes or 0, off_heap_bytes or 0
    return PlannedResources(
        nodes=plan.nodes,
        executors=plan.executors,
        cores_per_executor=plan.cores_per_executor,
        task_cpus=task_cpus_of(conf),
        heap_bytes=heap_bytes,
        overhead_bytes=overhead_bytes,
        python_bytes=python_bytes,
        off_heap_bytes=off_heap_bytes,
    )


def _overhead_bytes(plan: Answer, heap_bytes: int | None) -> int | None:
    if plan.memory is not None:
        return plan.memory.overhead_bytes
    stated_bytes = overhead_setting_bytes(plan.spark_conf)
    if stated_bytes is not None:
        return stated_bytes
    node_type = plan.node_type
    if heap_bytes is None or node_type is None or node_type.memory_bytes is None:
        return None
    return usual_overhead_bytes(heap_bytes)


def cores_of(text: str) -> float | None:
    """Cores of a quantity; None if it is none.

    >>> cores_of("1500m"), cores_of("2"), cores_of("two")
    (1.5, 2.0, None)
    """
    number = _plain(text, _OF_CORES)
    return None if number is None else float(number)


def memory_bytes_of(text: str) -> int | None:
    """Bytes of a quantity; None if it is none.

    Java's ``5g`` and ``512m`` are read as the operator of kubeflow reads them.

    >>> memory_bytes_of("1Gi") == memory_bytes_of("1g") == 2**30
    True
    >>> memory_bytes_of("1G"), memory_bytes_of("lots")
    (1000000000, None)
    """
    number = _plain(text, _OF_MEMORY)
    return None if number is None else int(number)


def memory_quantity(size_bytes: int) -> str:
    """A memory size in whole ``Mi``, rounded up.

    >>> memory_quantity(2**30 + 1)
    '1025Mi'
    """
    return f"{-(-size_bytes // 2 ** _BINARY['Mi'])}Mi"


def _plain(text: str, units: Mapping[str, Decimal]) -> Decimal | None:
    """The number that a quantity stands for."""
    match = re.fullmatch(_QUANTITY, text.strip())
    if match is None or match["unit"] not in units:
        return None
    return Decimal(match["number"]) * units[match["unit"]]
