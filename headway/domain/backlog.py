"""The backlog of a stream: rows that a query reads before it ends, as with AvailableNow."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from headway.domain.argument import JobKind
from headway.domain.configuration import Configuration, Drain
from headway.domain.declared import Provenance
from headway.lazy_classes import dataclass
from headway.limits import LARGEST_NUMBER

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

    def for_deadline(self, deadline: Deadline, rows: float | None = None) -> StreamBacklog:  # noqa: ARG002
        """The same, or with other rows."""
        return self if rows is None else replace(self, backlog_rows=rows)

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
