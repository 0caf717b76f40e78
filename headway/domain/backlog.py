"""The backlog of a stream: rows that a query reads before it ends, as with AvailableNow."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, ClassVar, TypeAlias, cast

from headway.domain.argument import JobKind
from headway.domain.configuration import Configuration, Drain
from headway.domain.declared import Provenance
from headway.errors import InputError, argument
from headway.lazy_classes import dataclass
from headway.limits import LARGEST_NUMBER
from headway.units import format_duration

if TYPE_CHECKING:
    from headway.domain.application_profile import ApplicationProfile
    from headway.domain.profile import Application, JobProfile
    from headway.domain.target import AnyPromise, Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBacklog:
    """Rows of a planned run, and the batches that read them, of which the last may be smaller."""

    backlog_rows: float
    batch_rows: float
    num_batches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBacklog:
    """A streaming query that reads ``backlog_rows`` and ends: it has a run time, as batch jobs do.

    ``drain`` is what the profiled run read. No figures are declared, since declared ones contain no
    backlog; all else is that of the query.
    """

    job_kind: ClassVar[JobKind] = JobKind.ENDING
    declared: ClassVar[None] = None
    profile: JobProfile
    drain: Drain
    backlog_rows: float

    def __post_init__(self) -> None:
        if not 0 < self.backlog_rows <= LARGEST_NUMBER:
            raise ValueError(f"backlog_rows is {self.backlog_rows!r}; expected a positive number")

    @property
    def planned(self) -> PlannedBacklog:
        """Its batches, each as large as in the profiled run, since what limits them stays."""
        batch_rows = min(self.drain.batch_rows, self.backlog_rows)
        # A remainder of rounding is no batch.
        num_batches = max(ceil(self.backlog_rows / batch_rows - 1e-9), 1)
        return PlannedBacklog(
            backlog_rows=self.backlog_rows, batch_rows=batch_rows, num_batches=num_batches
        )

    @property
    def backlog(self) -> StreamBacklog:
        """Itself: a batch job has none."""
        return self

    @property
    def application(self) -> Application:
        return self.profile.application

    @property
    def applications(self) -> tuple[Application, ...]:
        return self.profile.applications

    @property
    def called(self) -> str:
        return self.profile.called

    @property
    def slots(self) -> Configuration:
        return self.profile.baseline

    @property
    def provenance(self) -> Provenance:
        return self.profile.provenance

    def require_can_promise(self, promise: AnyPromise) -> None:
        self.profile.require_can_promise(promise)


#: A job that ends by itself, and so may have a deadline: a batch job, or the backlog of a stream.
EndingJob: TypeAlias = "ApplicationProfile | StreamBacklog"


def ending_job(
    job: JobProfile | EndingJob, deadline: Deadline, rows: float | None = None
) -> EndingJob:
    """The job as one that ends; ``rows`` are the backlog that a streaming query reads.

    Raises InputError if it does not end by itself, or has no backlog but is given one.
    """
    job.require_can_promise(deadline)
    if job.job_kind is JobKind.QUERY:
        query = cast("JobProfile", job)
        assert query.drain is not None  # it can have a deadline
        if query.growth is not None:
            first, last = map(format_duration, (query.growth.first_s, query.growth.last_s))
            raise InputError(
                f"target '{deadline}': batches of the profiled query grew from {first} to {last} "
                "for the same rows, so the time of other runs is unknown; 'headway profile' names "
                "the likely cause"
            )
        backlog_rows = query.drain.backlog_rows if rows is None else rows
        return StreamBacklog(profile=query, drain=query.drain, backlog_rows=backlog_rows)
    ending = cast("EndingJob", job)
    if rows is None:
        return ending
    if ending.backlog is None:
        raise InputError(
            f"{argument('rows')}: only for a streaming query that read a backlog; this is the "
            "profile of a batch job"
        )
    return replace(ending.backlog, backlog_rows=rows)
