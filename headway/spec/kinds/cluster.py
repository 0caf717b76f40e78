"""The cluster on which jobs run."""

from __future__ import annotations

from dataclasses import dataclass

from headway.assumptions.planning import MOST_NODES_OF_PLAN
from headway.domain import PLATFORMS
from headway.spec.forms import entry
from headway.spec.forms.kinds import Choice, Flag, NameOr
from headway.spec.forms.quantities import (
    CORES,
    CORES_OR_ZERO,
    NAME,
    NODES,
    SIZE,
    SIZE_OR_ZERO,
    SPARK_VERSION,
)
from headway.spec.kinds.catalog import NodeEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The nodes that jobs get, and how executors fill them."""

    platform: str = entry(
        Choice(PLATFORMS), "Platform that runs Spark. Default `standalone`.", default="standalone"
    )
    spark_version: str | None = entry(
        SPARK_VERSION,
        "Spark version, which determines property names. Default: as profiled.",
        default=None,
    )
    node: str | NodeEntry = entry(
        NameOr(NAME, NodeEntry), "A node of the catalogue by its name, or its figures written out."
    )
    max_nodes: int = entry(
        NODES,
        f"Maximum number of nodes. Default {MOST_NODES_OF_PLAN.value}.",
        default=MOST_NODES_OF_PLAN.value,
    )
    cores_per_executor: int | None = entry(
        CORES, "Cores of an executor. Default: as profiled.", default=None
    )
    executor_memory_bytes: int | None = entry(
        SIZE, "Heap of an executor. Default: as profiled.", default=None
    )
    lower_memory: bool = entry(
        Flag(),
        "Whether executors may have less heap than the profiled ones, down to what was measured. "
        "Default false.",
        default=False,
    )
    reserved_cores: int | None = entry(
        CORES_OR_ZERO,
        "Cores of each node that are reserved for the system. Default: by platform, as in the "
        "catalogue that comes with Headway.",
        default=None,
    )
    reserved_memory_bytes: int | None = entry(
        SIZE_OR_ZERO,
        "Memory of each node that is reserved for the system. Default: by platform.",
        default=None,
    )
