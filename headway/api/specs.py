"""Calls about spec files: check them, plan them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.domain import Plan
from headway.errors import InputError

if TYPE_CHECKING:
    from headway.domain import JobProfile
    from headway.spec.kinds import StreamingJob
    from headway.spec.spec_file import SpecFile


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """A streaming job's file, its profile and its plan."""

    file: SpecFile
    profile: JobProfile
    plan: Plan

    @property
    def name(self) -> str:
        """The job's name."""
        return self.file.metadata.name


def load_spec(path: str | Path) -> SpecFile:
    """Read a spec file of any kind.

    Raises
    ------
    InputError
        One line per fault, as ``file:line:column: path: what, expected``.
    """
    from headway.spec.spec_file import load_spec as load

    return load(path)


def checked_spec(path: str | Path) -> SpecFile:
    """Read a spec file and everything that it names: profiles, clusters, catalogues, jobs.

    Raises
    ------
    InputError
        One line per fault in all of these files.
    """
    file = load_spec(path)
    faults: list[str] = []
    for route, read in _parts(file):
        try:
            read()
        except InputError as error:
            faults += _placed(file, route, str(error))
    if faults:
        raise InputError("\n".join(dict.fromkeys(faults)))
    return file


def plan_spec(path: str | Path) -> PlannedJob:
    """Plan a streaming job as its spec file says.

    Parameters
    ----------
    path : str or Path
        A file of the kind StreamingJob.

    Raises
    ------
    InputError
        If the file, or one that it names, is not what it should be. A target that cannot be met
        is no error: the plan then says ``feasible=False``, and why.
    """
    return plan_file(load_spec(path))


def plan_file(file: SpecFile) -> PlannedJob:
    """Plan a streaming job whose spec file has been read."""
    from headway.spec.kinds import StreamingJob
    from headway.spec.parts import profile_of
    from headway.spec.spec_file import spec_of

    job = spec_of(file, StreamingJob)
    profile = profile_of(file.metadata.name, job)
    try:
        return PlannedJob(file=file, profile=profile, plan=plan_job(profile, job))
    except InputError as error:
        raise InputError("\n".join(_placed(file, ("spec",), str(error)))) from None


def plan_job(profile: JobProfile, job: StreamingJob, *, rate_per_s: float | None = None) -> Plan:
    """Plan a streaming job at its highest rate, or at the rate given.

    A plan from declared figures is never called calibrated.
    """
    from headway.api.settings import plan
    from headway.spec.declared import NOTE, is_declared
    from headway.spec.kinds.rates import peak_rate
    from headway.spec.parts import cluster_of, node_cores

    cluster = cluster_of(job)
    asked = peak_rate(job.rate).high if rate_per_s is None else rate_per_s
    found = plan(
        profile,
        rate=asked,
        target=job.target,
        max_nodes=50 if cluster is None else cluster.max_nodes,
        node_cores=None if cluster is None else node_cores(cluster),
        cores=None if cluster is None else cluster.cores_per_executor,
        partitions=_pinned_partitions(profile, job),
        trigger=job.pinned.trigger_s,
        confidence=job.confidence,
    )
    if cluster is not None and cluster.executor_memory_bytes is not None:
        found = _with_memory(found, cluster.executor_memory_bytes)
    if is_declared(profile):
        found = replace(
            found,
            warnings=(NOTE, *found.warnings),
            prediction=replace(found.prediction, calibrated=False),
        )
    return found


def _pinned_partitions(profile: JobProfile, job: StreamingJob) -> int | None:
    """Shuffle partitions that the plan must keep: as said, or as the checkpoint has them."""
    if job.pinned.shuffle_partitions is not None:
        return job.pinned.shuffle_partitions
    if job.checkpoint == "existing" and profile.shape.stateful_operators:
        return profile.pins.state_partitions or profile.baseline.shuffle_partitions
    return None


def _with_memory(plan: Plan, memory_bytes: int) -> Plan:
    from headway.units import spark_memory_text

    key = "spark.executor.memory"
    conf = {**plan.spark_conf, key: spark_memory_text(memory_bytes)}
    ordered = dict(sorted(conf.items(), key=lambda item: _conf_order(item[0])))
    return replace(plan, spark_conf=ordered)


def _conf_order(key: str) -> tuple[int, str]:
    order = ("instances", "cores", "memory")
    last = key.rsplit(".", 1)[-1]
    return (order.index(last) if key.startswith("spark.executor.") and last in order else 9, key)


def _parts(file: SpecFile) -> Iterator[tuple[tuple[str | int, ...], Callable[[], Any]]]:
    """What a file names, each with its place and what reads it."""
    from headway.spec import parts
    from headway.spec.kinds import BatchJob, CapacityPlan, Cluster, StreamingJob

    spec = file.spec
    if isinstance(spec, StreamingJob | BatchJob):
        if isinstance(spec, BatchJob):
            yield ("spec", "profile"), lambda: parts.application_profile_of(spec)
        elif spec.profile is not None:
            yield ("spec", "profile"), lambda: parts.profile_of(file.metadata.name, spec)
        yield ("spec", "cluster"), lambda: _check_cluster(parts.cluster_of(spec))
    elif isinstance(spec, Cluster):
        yield ("spec", "node"), lambda: _check_cluster(spec)
    elif isinstance(spec, CapacityPlan):
        yield ("spec", "catalog"), lambda: parts.catalog_of(spec)
        for at, entry in enumerate(spec.jobs):
            if entry.file is not None:
                yield ("spec", "jobs", at, "file"), _checking(entry.file)


def _checking(path: Path) -> Callable[[], Any]:
    return lambda: checked_spec(path)


def _check_cluster(cluster: Any) -> None:
    from headway.spec.parts import node_cores

    if cluster is not None:
        node_cores(cluster)


def _placed(file: SpecFile, route: tuple[str | int, ...], message: str) -> list[str]:
    """Lines that have a place of their own keep it; others get that of ``route``."""
    import re

    where = file.sources.value_place(route)
    from headway.spec.yaml_document import route_text

    return [
        line if re.match(r"[^:\n]+:\d+:\d+: ", line) else f"{where}: {route_text(route)}: {line}"
        for line in message.splitlines()
    ]
