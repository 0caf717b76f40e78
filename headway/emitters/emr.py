"""A plan for EMR: on EC2, on EKS, Serverless. JSON has no comments: reasons are printed."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from typing import Any

from headway.assumptions.resources import LEAST_OVERHEAD_BYTES, OVERHEAD_RATIO
from headway.domain import Answer
from headway.emitters.submission import (
    Submission,
    conf_arguments,
    executor_conf,
    other_conf,
    with_kubernetes_overhead,
)
from headway.errors import InputError
from headway.units import parse_size_bytes, spark_memory_bytes, spark_memory_text

# vCPU of a worker -> memory in GB that it may have.
_WORKERS_GB = {
    1: tuple(range(2, 9)),
    2: tuple(range(4, 17)),
    4: tuple(range(8, 31)),
    8: tuple(range(16, 61, 4)),
    16: tuple(range(32, 121, 8)),
    32: (60, 120, 244),
}
# What a container holds beside heap and overhead, where it is set.
_BESIDE = ("spark.executor.pyspark.memory", "spark.memory.offHeap.size")


def render_ec2(plan: Answer, *, version: str, submission: Submission) -> str:  # noqa: ARG001
    """The configuration of a cluster, ``aws emr create-cluster --configurations``."""
    return _json([{"Classification": "spark-defaults", "Properties": dict(plan.spark_conf)}])


def render_eks(plan: Answer, *, version: str, submission: Submission) -> str:  # noqa: ARG001
    """The part of ``aws emr-containers start-job-run`` that a plan determines."""
    plan = with_kubernetes_overhead(plan)
    release = {"releaseLabel": submission.runtime} if submission.runtime else {}
    return _job_run(plan, submission, "sparkSubmitJobDriver", executor_conf(plan), release)


def render_serverless(plan: Answer, *, version: str, submission: Submission) -> str:  # noqa: ARG001
    """The part of ``aws emr-serverless start-job-run`` that a plan determines.

    Raises InputError if there is no worker of the plan's size.
    """
    mode = {"mode": "BATCH" if plan.ends else "STREAMING"}
    return _job_run(plan, submission, "sparkSubmit", _worker_conf(plan), mode)


def _job_run(
    plan: Answer,
    submission: Submission,
    driver_key: str,
    sizes: Mapping[str, str],
    of_service: Mapping[str, str],
) -> str:
    """A job run; ``of_service`` is what only one of the two services has."""
    driver: dict[str, Any] = {
        "entryPoint": submission.main or "s3://BUCKET/app.py",
        "sparkSubmitParameters": shlex.join(conf_arguments(sizes)),
    }
    if submission.arguments:
        driver["entryPointArguments"] = list(submission.arguments)
    overrides = [{"classification": "spark-defaults", "properties": other_conf(plan)}]
    return _json(
        {
            "name": submission.slug,
            **of_service,
            "jobDriver": {driver_key: driver},
            "configurationOverrides": {"applicationConfiguration": overrides},
        }
    )


def worker_heap_bytes(
    cores: int, heap_bytes: int, *, beside_bytes: int = 0, overhead_bytes: int | None = None
) -> int:
    """The heap that fills the smallest worker of EMR Serverless with enough room for one.

    Beside it are other memory of a fixed size and the overhead, which is Spark's own, a tenth of
    the heap, unless the plan sets it. No such worker is an InputError.

    >>> worker_heap_bytes(4, 8 * 2**30) // 2**20, worker_heap_bytes(1, 2**29) // 2**20
    (8378, 1664)
    >>> worker_heap_bytes(4, 8 * 2**30, beside_bytes=2**30, overhead_bytes=2 * 2**30) // 2**30
    8
    """
    if cores not in _WORKERS_GB:
        sizes = ", ".join(map(str, _WORKERS_GB))
        raise InputError(
            f"emr-serverless: no worker of {cores} vCPU; expected executors of {sizes} cores: plan "
            "with another number of cores per executor"
        )
    mebibyte, gigabyte = parse_size_bytes("1m"), parse_size_bytes("1g")
    for memory_gb in _WORKERS_GB[cores]:
        room_bytes = memory_gb * gigabyte - beside_bytes
        if overhead_bytes is None:
            by_ratio_bytes = math.floor(room_bytes / (1.0 + OVERHEAD_RATIO.value))
            max_heap_bytes = min(room_bytes - LEAST_OVERHEAD_BYTES.value, by_ratio_bytes)
        else:
            max_heap_bytes = room_bytes - overhead_bytes
        if max_heap_bytes >= heap_bytes:
            return max_heap_bytes // mebibyte * mebibyte
    other_memory = "" if not beside_bytes else f", {spark_memory_text(beside_bytes)} beside it"
    overhead = "its overhead"
    if overhead_bytes is not None:
        overhead = f"an overhead of {spark_memory_text(overhead_bytes)}"
    raise InputError(
        f"emr-serverless: a worker of {cores} vCPU has at most {_WORKERS_GB[cores][-1]} GB, too "
        f"little for a heap of {spark_memory_text(heap_bytes)}{other_memory} and {overhead}: "
        "plan with more cores per executor"
    )


def worker_reasons(plan: Answer) -> dict[str, str]:
    """Why a worker has more heap than the plan, if it has."""
    key = "spark.executor.memory"
    planned, filled = plan.spark_conf.get(key), _worker_conf(plan).get(key)
    if planned is None or planned == filled:
        return {}
    return {key: f"fills the smallest worker with room for the planned {planned}"}


def _worker_conf(plan: Answer) -> dict[str, str]:
    sizes = executor_conf(plan)
    memory = sizes.get("spark.executor.memory")
    overhead = sizes.get("spark.executor.memoryOverhead")
    cores = int(sizes.get("spark.executor.cores", plan.cores_per_executor))
    if memory is None:
        worker_heap_bytes(cores, 0)  # the cores must be those of a worker in any case
        return sizes
    other_sizes = (plan.spark_conf[key] for key in _BESIDE if key in plan.spark_conf)
    filled_heap_bytes = worker_heap_bytes(
        cores,
        spark_memory_bytes(memory),
        beside_bytes=sum(map(spark_memory_bytes, other_sizes)),
        overhead_bytes=None if overhead is None else spark_memory_bytes(overhead),
    )
    return {**sizes, "spark.executor.memory": spark_memory_text(filled_heap_bytes)}


def _json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
