"""The files and entries that a fleet's spec names: its catalogue, its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headway.errors import InputError
from headway.spec.kinds.capacity import CapacityPlan, FleetEntry
from headway.spec.kinds.catalog import NodeCatalog
from headway.spec.kinds.jobs import BatchJob, StreamingJob
from headway.spec.kinds.schedule import QuerySchedule
from headway.spec.parts import built_in_catalog
from headway.spec.spec_file import SpecFile, load_spec, load_spec_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMember:
    """A job of a fleet with its own file, if it has one."""

    entry: FleetEntry
    job: StreamingJob | BatchJob | QuerySchedule
    file: SpecFile | None


def catalog_of(plan: CapacityPlan) -> NodeCatalog:
    """The catalogue of a capacity plan."""
    if isinstance(plan.catalog, Path):
        return load_spec_of(plan.catalog, NodeCatalog)
    return plan.catalog or built_in_catalog()


def fleet_members(plan: CapacityPlan) -> Iterator[FleetMember]:
    """The jobs of a fleet, read from their files where they have some."""
    for entry in plan.jobs:
        if entry.file is None:
            job = entry.streaming or entry.batch
            assert job is not None
            yield FleetMember(entry=entry, job=job, file=None)
            continue
        file = load_spec(entry.file)
        if not isinstance(file.spec, StreamingJob | BatchJob | QuerySchedule):
            raise InputError(
                f"{file.sources.value_place(('kind',))}: kind: got {file.kind!r}; the fleet's job "
                f"{entry.name!r} needs a StreamingJob, a BatchJob or a QuerySchedule"
            )
        if entry.turns != "none" and not isinstance(file.spec, QuerySchedule):
            raise InputError(
                f"{file.sources.value_place(('kind',))}: kind: got {file.kind!r}; the fleet's job "
                f"{entry.name!r} has 'turns: {entry.turns}', which needs a QuerySchedule"
            )
        yield FleetMember(entry=entry, job=file.spec, file=file)
