"""What Spark, Kubernetes and Databricks make of a file: an independent reading, for tests.

Written from the platforms' documentation; shares no code with what it checks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Executors that come of a file; memory in MiB. None is unlimited, or is not said."""

    executors: int
    slots_per_executor: int
    container_mib: int
    cpu_request: float
    cpu_limit: float | None
    memory_limit_mib: float | None
    shuffle_partitions: int

    @property
    def is_admitted(self) -> bool:
        """Whether Kubernetes takes the pods: no limit is below its request."""
        cpu_fits = self.cpu_limit is None or self.cpu_limit >= self.cpu_request
        limit_mib = self.memory_limit_mib
        return cpu_fits and (limit_mib is None or limit_mib >= self.container_mib)


def spark_mib(text: str) -> int:
    """A size of Spark's in MiB, rounded up; MiB is also its unit if it has none."""
    match = re.fullmatch(r"(\d+)\s*([kmgt]?)(?:i?b)?i?", text.strip().lower())
    assert match is not None, text
    exponent = {"k": -1, "m": 0, "": 0, "g": 1, "t": 2}[match[2]]
    return math.ceil(int(match[1]) * 1024.0**exponent)


def quantity(text: str) -> float:
    """A quantity of Kubernetes."""
    match = re.fullmatch(r"([\d.]+)(m|[kMGT]|[KMGT]i|)", text.strip())
    assert match is not None, text
    powers = {"m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    powers |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
    return float(match[1]) * powers[match[2]]


def container_mib(conf: Mapping[str, str], *, factor: float) -> int:
    """Heap, overhead, Python workers, and memory off the heap."""
    heap_mib = spark_mib(conf.get("spark.executor.memory", "1g"))
    stated = conf.get(
        "spark.executor.memoryOverhead", conf.get("spark.yarn.executor.memoryOverhead")
    )
    for key in ("spark.kubernetes.memoryOverheadFactor", "spark.executor.memoryOverheadFactor"):
        factor = float(conf.get(key, factor))
    least_mib = spark_mib(conf.get("spark.executor.minMemoryOverhead", "384m"))
    overhead_mib = max(int(factor * heap_mib), least_mib) if stated is None else spark_mib(stated)
    off_heap_mib = 0
    if conf.get("spark.memory.offHeap.enabled", "false").lower() == "true":
        size = conf.get("spark.memory.offHeap.size", "0")
        off_heap_mib = math.ceil(int(size) / MIB) if size.isdecimal() else spark_mib(size)
    python_mib = spark_mib(conf.get("spark.executor.pyspark.memory", "0"))
    return heap_mib + overhead_mib + off_heap_mib + python_mib


def of_conf(conf: Mapping[str, str], *, factor: float = 0.1, cores: int = 1) -> Cluster:
    """Executors of a configuration; ``cores`` of one if it does not say."""
    assert not conf.get("spark.master", "").startswith("local")
    assert conf.get("spark.databricks.cluster.profile") != "singleNode"
    for key in ("spark.dynamicAllocation.enabled", "spark.streaming.dynamicAllocation.enabled"):
        assert conf.get(key, "false").lower() == "false", key
    cores = int(conf.get("spark.executor.cores", cores))
    executors = int(conf.get("spark.executor.instances", 2))
    if "spark.cores.max" in conf:
        executors = min(executors, int(conf["spark.cores.max"]) // cores)
    limit = conf.get("spark.kubernetes.executor.limit.cores")
    return Cluster(
        executors=executors,
        slots_per_executor=cores // int(conf.get("spark.task.cpus", 1)),
        container_mib=container_mib(conf, factor=factor),
        cpu_request=quantity(conf.get("spark.kubernetes.executor.request.cores", str(cores))),
        cpu_limit=None if limit is None else quantity(limit),
        memory_limit_mib=None,
        shuffle_partitions=int(conf.get("spark.sql.shuffle.partitions", 200)),
    )


def of_application(manifest: Any) -> Cluster:
    """Executors of a SparkApplication of either operator, or a scheduled one."""
    spec = manifest["spec"]
    if manifest["kind"] == "ScheduledSparkApplication":
        spec = spec["template"]
    conf = {key: text(value) for key, value in (spec.get("sparkConf") or {}).items()}
    if manifest["apiVersion"].startswith("spark.apache.org/"):
        template = spec.get("executorSpec", {}).get("podTemplateSpec")
        is_python = "pyFiles" in spec
        executor: dict[str, Any] = {}
        tolerations = spec.get("applicationTolerations", {}).get("instanceConfig", {})
        assert tolerations.get("minExecutors", 0) <= int(conf["spark.executor.instances"])
    else:
        is_python = spec.get("type") in ("Python", "R")
        executor = spec["executor"]
        template = executor.get("template")
        assert not (spec.get("dynamicAllocation") or {}).get("enabled", False)
        if "memoryOverheadFactor" in spec:
            conf["spark.kubernetes.memoryOverheadFactor"] = text(spec["memoryOverheadFactor"])
        for field, key in {
            "instances": "spark.executor.instances",
            "cores": "spark.executor.cores",
            "memory": "spark.executor.memory",
            "memoryOverhead": "spark.executor.memoryOverhead",
            "coreLimit": "spark.kubernetes.executor.limit.cores",
            "coreRequest": "spark.kubernetes.executor.request.cores",
        }.items():
            if field in executor:
                conf[key] = text(executor[field])
    cluster = of_conf(conf, factor=0.4 if is_python else 0.1)
    return with_limits(cluster, executor.get("memoryLimit"), template)


def with_limits(cluster: Cluster, memory_limit: str | None, template: Any) -> Cluster:
    """A pod template's limit of cores holds if no other is set; Spark sets that of memory."""
    values = dict(vars(cluster))
    if memory_limit is not None:
        size = quantity(memory_limit) if memory_limit[-1] in "iMG" else 0
        values["memory_limit_mib"] = size / MIB if size else spark_mib(memory_limit)
    containers = ((template or {}).get("spec") or {}).get("containers") or [{}]
    limits = containers[0].get("resources", {}).get("limits", {})
    if "cpu" in limits and cluster.cpu_limit is None:
        values["cpu_limit"] = quantity(text(limits["cpu"]))
    if "memory" in limits and memory_limit is None:
        values["memory_limit_mib"] = quantity(text(limits["memory"])) / MIB
    return Cluster(**values)


def of_databricks_cluster(cluster: Any, *, worker_cores: int, conf: Any = None) -> Cluster:
    """One executor for each worker, of all its cores."""
    assert "autoscale" not in cluster
    assert not cluster.get("is_single_node", False)
    assert cluster.get("custom_tags", {}).get("ResourceClass") != "SingleNode"
    stated = {**(cluster.get("spark_conf") or {}), **(conf or {})}
    settings = {key: text(value) for key, value in stated.items()}
    settings["spark.executor.instances"] = text(cluster.get("num_workers", 0))
    return of_conf(settings, cores=worker_cores)


def text(value: object) -> str:
    """A scalar of YAML as the platforms read it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def application_in(text_of_file: str) -> Any:
    """The first application of a file."""
    documents = [each for each in yaml.safe_load_all(text_of_file) if each]
    items = [item for each in documents for item in each.get("items", [each])]
    return next(each for each in items if str(each.get("kind", "")).endswith("SparkApplication"))
