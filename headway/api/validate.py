"""Checks of spec files and of all files that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from headway.api.specs import placed
from headway.errors import InputError, SpecError
from headway.spec.parts import PROFILE_OF, catalog_at, cluster_of, node_cores, profile_of
from headway.spec.spec_file import SpecFile, load_spec


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
