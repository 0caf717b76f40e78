"""The files and entries that a job's spec names: its profile, its cluster, its nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.domain import Deadline, NodeType
from headway.domain.backlog import ending_job
from headway.domain.node_type import Platform
from headway.domain.writes import CheckpointStore, StorePrice
from headway.errors import InputError
from headway.formats.profile_file import load_any_profile, load_profile
from headway.spec.declared import declared_profile
from headway.spec.kinds.catalog import Cluster, NodeCatalog, NodeEntry, ReserveEntry
from headway.spec.kinds.jobs import BatchJob, StreamingJob
from headway.spec.spec_file import load_spec_of, parse_spec, spec_of
from headway.units import HOURS_PER_MONTH, counted, parse_size_bytes

if TYPE_CHECKING:
    from headway.domain import EndingJob, JobProfile
    from headway.spec.kinds.capacity import PoolEntry
    from headway.spec.kinds.schedule import ScheduledJob

_CATALOG = "nodes.yaml"
_ONE_EXECUTOR_PER_NODE = ("databricks",)


def profile_of(name: str, job: StreamingJob | ScheduledJob) -> JobProfile:
    """The profile of a streaming job: from its file, or from declared figures.

    Raises InputError if the file is not a profile.
    """
    if job.profile is not None:
        return load_profile(job.profile)
    assert job.declared is not None
    return declared_profile(name, job.declared, job.rate)


def ending_job_of(name: str, job: BatchJob) -> EndingJob:
    """A job that ends: the profile from its file, or declared figures.

    Raises InputError if the file is no profile, is that of a stream that did not end, or has
    ``rows`` without being one.
    """
    if job.profile is not None:
        deadline = Deadline(limit_s=job.deadline_s)
        return ending_job(load_any_profile(job.profile), deadline, job.rows)
    from headway.spec.declared_batch import declared_application

    assert job.declared is not None
    return declared_application(name, job.declared, job.deadline_s)


#: What reads the profile of a job, by the kind of its file.
PROFILE_OF: Mapping[str, Callable[[str, Any], Any]] = {
    "StreamingJob": profile_of,
    "BatchJob": ending_job_of,
}


def cluster_of(job: StreamingJob | BatchJob) -> Cluster | None:
    if isinstance(job.cluster, Path):
        return load_spec_of(job.cluster, Cluster)
    return job.cluster


def node_of(cluster: Cluster) -> NodeEntry:
    """The node of a cluster; a name is looked up in the catalogue that comes with Headway.

    Raises InputError if there is no such node.
    """
    if isinstance(cluster.node, NodeEntry):
        return cluster.node
    nodes = {node.name: node for node in built_in_catalog().nodes}
    if cluster.node in nodes:
        return nodes[cluster.node]
    close = get_close_matches(cluster.node, nodes, n=1)
    some = f"expected a node of the catalogue, e.g. {', '.join(list(nodes)[:4])}, or its figures"
    hint = f"did you mean {close[0]!r}?" if close else some
    raise InputError(f"node: got {cluster.node!r}; {hint}")


def node_cores(cluster: Cluster) -> int:
    """Cores of a node that Spark may use.

    Raises InputError if nothing is left, or not enough for an executor.
    """
    node = node_of(cluster)
    available_cores, _ = _left_of(cluster)
    if available_cores < (cluster.cores_per_executor or 1):
        is_by_platform = cluster.reserved_cores is None
        remedy = f" on {cluster.platform}; reserved_cores says otherwise" if is_by_platform else ""
        raise InputError(
            f"a node {node.name} of {counted(node.cores, 'core')} less "
            f"{node.cores - available_cores} for the system has no room for an "
            f"executor of {cluster.cores_per_executor or 1}{remedy}"
        )
    return available_cores


def node_type_of(cluster: Cluster) -> NodeType:
    """The node of a cluster as the planner uses it: what is left of it for Spark.

    Raises InputError if an executor of the cluster's size does not fit.
    """
    node, cores = node_of(cluster), node_cores(cluster)
    _, memory_bytes = _left_of(cluster)
    if memory_bytes < 1:
        raise InputError(f"a node {node.name} has no memory left for executors")
    is_stated = cluster.reserved_cores is not None and cluster.reserved_memory_bytes is not None
    node_type = _node_type(
        node,
        cluster.platform,
        cores,
        memory_bytes,
        reserved_by="the cluster's file" if is_stated else _reserved_by(cluster.platform, None),
        currency=built_in_catalog().currency if isinstance(cluster.node, str) else "",
    )
    if cluster.cores_per_executor is None or cluster.executor_memory_bytes is None:
        return node_type
    executors = executors_that_fit(
        node, node_type, cluster.cores_per_executor, cluster.executor_memory_bytes
    )
    if executors < 1:
        raise InputError(f"an executor with its memory does not fit on a node {node.name}")
    allowed_executors = node_type.executors_per_node or executors
    return replace(node_type, executors_per_node=min(executors, allowed_executors))


def reserve_of(platform: str, catalog: NodeCatalog | None = None) -> ReserveEntry | None:
    """What a platform reserves on a node, None for a platform without nodes of its own."""
    stated_reserve = None if catalog is None else catalog.reserve_of(platform)
    return stated_reserve or built_in_catalog().reserve_of(platform)


def store_price(store: CheckpointStore, catalog: NodeCatalog | None = None) -> StorePrice | None:
    """What a store charges: by a catalogue, or by the one that comes with Headway.

    None if only the latter has the store, in another currency.

    >>> store_price("disk").price_per_write
    0.0
    """
    for known_catalog in (catalog or built_in_catalog(), built_in_catalog()):
        entry = next((entry for entry in known_catalog.stores if entry.name == store), None)
        if entry is not None:
            return StorePrice(
                store=store,
                price_per_write=entry.price_per_million_writes / 1e6,
                byte_price_per_hour=entry.price_per_gb_month / 1e9 / HOURS_PER_MONTH,
                date=known_catalog.date,
                currency=known_catalog.currency,
                requests_in_place=entry.requests_in_place,
                requests_renamed=entry.requests_renamed,
                lists_in_place=entry.lists_in_place,
                lists_renamed=entry.lists_renamed,
                lists_by_file_system=entry.lists_by_file_system,
            )
        if known_catalog.currency != built_in_catalog().currency:
            return None
    return None


def _node_type(
    node: NodeEntry, platform: str, cores: int, memory_bytes: int, reserved_by: str, currency: str
) -> NodeType:
    return NodeType(
        name=node.name,
        cores=cores,
        memory_bytes=memory_bytes,
        price_per_hour=node.price_per_hour or None,
        core_speed_ratio=node.core_speed_ratio,
        executors_per_node=1 if platform in _ONE_EXECUTOR_PER_NODE else None,
        reserved_cores=node.cores - cores,
        reserved_memory_bytes=node.memory_bytes - memory_bytes,
        reserved_by=reserved_by,
        currency=currency,
    )


def _reserved_by(platform: str, catalog: NodeCatalog | None) -> str:
    reserve = reserve_of(platform, catalog)
    return platform if reserve is None else f"{platform}, figures of {reserve.date}"


def _left_by(reserve: ReserveEntry | None, node: NodeEntry) -> tuple[int, int]:
    """Cores and memory [bytes] of a node that a reserve leaves."""
    if reserve is None:
        return node.cores, node.memory_bytes
    return reserve.cores_left(node.cores), reserve.memory_left_bytes(node.memory_bytes)


def _left_of(cluster: Cluster) -> tuple[int, int]:
    """Cores and memory [bytes] of a node of a cluster that its file or its platform leaves."""
    node = node_of(cluster)
    cores, memory_bytes = _left_by(reserve_of(cluster.platform), node)
    if cluster.reserved_cores is not None:
        cores = node.cores - cluster.reserved_cores
    if cluster.reserved_memory_bytes is not None:
        memory_bytes = node.memory_bytes - cluster.reserved_memory_bytes
    return cores, memory_bytes


def node_type_named(name: str, catalog: str | Path | None, platform: Platform) -> NodeType:
    """What a platform leaves of a node type of a catalogue, by default Headway's, or InputError."""
    node_catalog = catalog_at(catalog)
    nodes = {node.name: node for node in node_catalog.nodes}
    if name not in nodes:
        where = "Headway's catalogue" if catalog is None else str(catalog)
        close_names = get_close_matches(name, nodes, n=1)
        figures = f"describe it, e.g. {name}:cores=4,memory=14g,price=0.192"
        hint = f"did you mean {close_names[0]!r}?" if close_names else figures
        raise InputError(f"node type {name!r} is not in {where}; {hint}")
    cores, memory_bytes = _left_by(reserve_of(platform, node_catalog), nodes[name])
    if cores < 1 or memory_bytes < 1:
        raise InputError(f"a node {name} has nothing left for executors on {platform}")
    reserved_by = _reserved_by(platform, node_catalog)
    return _node_type(
        nodes[name], platform, cores, memory_bytes, reserved_by, node_catalog.currency
    )


def catalog_at(path: NodeCatalog | str | Path | None) -> NodeCatalog:
    """The catalogue of a file or itself, by default the one that comes with Headway."""
    if isinstance(path, NodeCatalog):
        return path
    return built_in_catalog() if path is None else load_spec_of(Path(path), NodeCatalog)


@cache
def built_in_catalog() -> NodeCatalog:
    """The catalogue that comes with Headway: a dated sample of three clouds and on-premises."""
    text = (Path(__file__).parent / "catalogs" / _CATALOG).read_text(encoding="utf-8")
    return spec_of(parse_spec(text, name=_CATALOG, folder=Path()), NodeCatalog)


def executors_that_fit(
    node: NodeEntry, reserve: NodeType | PoolEntry, cores: int, heap_bytes: int | None
) -> int:
    """Executors that fit on a node beside a reserve: by cores, and memory with Spark's overhead.

    >>> node = NodeEntry(name="n", cores=16, memory_bytes=64 * 2**30, price_per_hour=1.0)
    >>> executors_that_fit(node, NodeType(name="n", cores=16), cores=4, heap_bytes=28 * 2**30)
    2
    """
    by_cores = (node.cores - reserve.reserved_cores) // cores
    if heap_bytes is None:
        return max(by_cores, 0)
    left_bytes = node.memory_bytes - reserve.reserved_memory_bytes
    by_memory = math.floor(left_bytes / container_memory_bytes(heap_bytes))
    return max(min(by_cores, by_memory), 0)


def container_memory_bytes(heap_bytes: int) -> int:
    """Memory of an executor's container: its heap and what Spark adds to it, a tenth at least."""
    return heap_bytes + max(heap_bytes // 10, parse_size_bytes("384m"))
