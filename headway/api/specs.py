"""Spec files: plans of their jobs, and checks of all files that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.api.plan import plan
from headway.assumptions.planning import MOST_NODES_OF_PLAN
from headway.domain import AnyPromise, Deadline
from headway.errors import InputError, SpecError
from headway.formats.yaml_document import route_text
from headway.spec.forms import place
from headway.spec.kinds.jobs import BatchJob, StreamingJob
from headway.spec.kinds.rates import peak_rate
from headway.spec.parts import (
    PROFILE_OF,
    catalog_at,
    cluster_of,
    node_cores,
    node_of,
    node_type_of,
    profile_of,
)
from headway.spec.spec_file import Planned, PlannedOf, SpecFile, load_spec, require_kind

if TYPE_CHECKING:
    from headway.domain import AnyAnswer
    from headway.planner.explain.causes import Needs


def plan_spec(path: str | Path, **changes: Any) -> Planned:
    """Plan a job from its spec file, with optional changes: a what-if.

    Parameters
    ----------
    path : str or Path
        A file of the kind StreamingJob or BatchJob.
    changes
        Arguments of :func:`headway.plan` that replace values of the file, e.g. ``rate="30k/s"``.

    Raises
    ------
    InputError
        If the file, or one that it names, is invalid. A target that cannot be met is no error: the
        plan then has ``feasible=False``, and says why.
    """
    return plan_file(load_spec(path), **changes)


def plan_file(file: SpecFile, **changes: Any) -> Planned:
    """Plan a job whose spec file has been read; ``changes`` are as of `plan_spec`."""
    try:
        require_kind(file, *PROFILE_OF)
        profile = PROFILE_OF[file.kind](file.metadata.name, file.spec)
        arguments = _arguments_of(file.spec, ends=file.kind == "BatchJob")
        answer = plan(profile, **{**arguments, **changes})
        return PlannedOf(file=file, profile=profile, plan=answer)
    except InputError as error:
        raise SpecError("\n".join(placed(file, ("spec",), str(error)))) from None


def _arguments_of(job: Any, *, ends: bool) -> dict[str, Any]:
    """Arguments of a job's plan: of one that ends for its deadline, else at its highest rate."""
    arguments = {"confidence": job.confidence, **_cluster_arguments(job)}
    if ends:
        return {"target": Deadline(limit_s=job.deadline_s), **arguments}
    return {
        "rate": peak_rate(job.rate).high,
        "target": job.targets,
        "partitions": job.pinned.shuffle_partitions,
        "trigger": job.pinned.trigger_s,
        "checkpoint": job.checkpoint,
        "checkpoint_store": job.checkpoint_store,
        "retention": job.retention_s,
        "limit": job.limits,
        "allow": job.allowed,
        "from_start": job.from_start,
        **arguments,
    }


def _cluster_arguments(job: StreamingJob | BatchJob) -> dict[str, Any]:
    """Arguments of a plan from the cluster of a job."""
    cluster = cluster_of(job)
    if cluster is None:
        return {"max_nodes": MOST_NODES_OF_PLAN.value}
    return {
        "max_nodes": cluster.max_nodes,
        "node_types": [node_type_of(cluster)],
        "cores": cluster.cores_per_executor,
        "executor_memory_bytes": cluster.executor_memory_bytes,
        "lower_memory": cluster.lower_memory,
    }


def replanned(planned: Planned) -> Needs:
    """The nodes that a planned job needs for other questions: it is planned again for each."""
    job, ends = planned.file.spec, planned.plan.ends

    def needs(rate_per_s: float | None, promises: tuple[AnyPromise, ...]) -> int | None:
        changes: dict[str, Any] = (
            {"deadline_s": promises[0].limit_s} if ends else {"targets": promises}
        )
        try:
            arguments = _arguments_of(replace(job, **changes), ends=ends)
            if not ends:
                arguments["rate"] = rate_per_s
            answer: AnyAnswer = plan(planned.profile, **arguments)
        except (InputError, ValueError):
            return None
        return answer.nodes if answer.feasible else None

    return needs


def submission_fields(planned: Planned) -> dict[str, Any]:
    """Submission of a planned job from its files, by the fields of ``Submission``."""
    job = planned.file.spec
    cluster = cluster_of(job)
    fields = {
        "name": planned.name,
        "main": job.application.main,
        "arguments": job.application.arguments or None,
        "image": job.application.image,
        "namespace": job.application.namespace,
        "service_account": job.application.service_account,
        "runtime": job.application.runtime,
        "node_type": job.application.node_type or (cluster and node_of(cluster).name),
        "spark_version": (cluster and cluster.spark_version)
        or planned.profile.application.spark_version,
    }
    return {key: value for key, value in fields.items() if value is not None}


def placed(file: SpecFile, route: tuple[str | int, ...], message: str) -> list[str]:
    """Lines that have a position keep it; others get that of ``route``."""
    where = place(file.documents, route)
    return [
        line if re.match(r"[^:\n]+:\d+:\d+: ", line) else f"{where}: {route_text(route)}: {line}"
        for line in message.splitlines()
    ]


def validate(path: str | Path) -> SpecFile:
    """Read a spec file and everything that it names: profiles, clusters, catalogues, jobs.

    Raises InputError with one line per fault in all of these files.
    """
    file = load_spec(path)
    faults: list[str] = []
    for route, read_part in _parts(file):
        try:
            read_part()
        except InputError as error:
            faults += placed(file, route, str(error))
    if faults:
        raise SpecError("\n".join(dict.fromkeys(faults)))
    return file


def _parts(file: SpecFile) -> Iterator[tuple[tuple[str | int, ...], Callable[[], Any]]]:
    """Files named by a file, each with its position and its reader."""
    # By the name of the kind: kinds that are not met are not loaded.
    spec, name = file.spec, file.metadata.name
    if file.kind in PROFILE_OF:
        if spec.profile is not None:
            yield ("spec", "profile"), partial(PROFILE_OF[file.kind], name, spec)
        yield ("spec", "cluster"), lambda: _check_cluster(cluster_of(spec))
    elif file.kind == "Cluster":
        yield ("spec", "node"), partial(_check_cluster, spec)
    elif file.kind == "CapacityPlan":
        yield ("spec", "catalog"), partial(_check_fleet, file)
        for index, entry in enumerate(spec.jobs):
            if entry.file is not None:
                yield ("spec", "jobs", index, "file"), partial(validate, entry.file)
    elif file.kind == "QuerySchedule":
        for index, query in enumerate(spec.queries):
            if query.profile is not None:
                route = ("spec", "queries", index, "profile")
                yield route, partial(profile_of, query.name, query)


def _check_fleet(file: SpecFile) -> None:
    from headway.spec.fleet_references import require_references

    require_references(file, catalog_at(file.spec.catalog))


def _check_cluster(cluster: Any) -> None:
    if cluster is not None:
        node_cores(cluster)
