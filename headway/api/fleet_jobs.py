"""The jobs of a fleet: one function for each kind of job file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headway.api.fleet_batch import batch_needs
from headway.api.fleet_queries import queries_needs
from headway.api.fleet_streaming import streaming_needs
from headway.errors import InputError
from headway.spec.kinds import BatchJob, QuerySchedule, StreamingJob

if TYPE_CHECKING:
    from headway.api.fleet_needs import FleetJob, KnownNeeds
    from headway.spec.kinds import CapacityPlan
    from headway.spec.kinds.capacity import FleetEntry

_NEEDS_OF: dict[type, Callable[[Any, Any, int | None, KnownNeeds], FleetJob]] = {
    StreamingJob: streaming_needs,
    BatchJob: batch_needs,
    QuerySchedule: queries_needs,
}


def job_of(
    entry: FleetEntry,
    job: StreamingJob | BatchJob | QuerySchedule,
    spec: CapacityPlan,
    known_needs: KnownNeeds,
) -> FleetJob:
    """A job of a fleet, with executors of the size of its pools.

    Raises
    ------
    InputError
        If its pools have executors of different sizes.
    """
    pools = [pool for pool in spec.pools if not entry.pools or pool.name in entry.pools]
    sizes = {pool.cores_per_executor for pool in pools if pool.cores_per_executor is not None}
    if len(sizes) > 1:
        raise InputError(
            f"job {entry.name!r}: its pools have executors of {sorted(sizes)} cores; "
            "expected one size, name one pool"
        )
    return _NEEDS_OF[type(job)](entry, job, next(iter(sizes), None), known_needs)
