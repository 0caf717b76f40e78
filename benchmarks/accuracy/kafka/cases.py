"""What is run: jobs, topics and settings, and which runs are fitted. Fixed before anything ran."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Job(StrEnum):
    """What a query does between two topics."""

    TRANSFORM = "transform"
    COUNT = "count"
    DEDUPLICATE = "deduplicate"


class Mode(StrEnum):
    """How the query runs."""

    PLAIN = "plain"
    ASYNC_PROGRESS = "asynchronous progress"
    OUTAGE = "outage"
    REAL_TIME = "real time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run.

    ``is_fitted`` marks the runs that profiles are fitted on: three of each job, all on four even
    partitions, one at each trigger. All others are predicted.
    """

    job: Job
    partitions: int
    rate_per_s: float
    trigger_s: float
    first_share: float | None = None
    max_offsets: int | None = None
    mode: Mode = Mode.PLAIN
    is_fitted: bool = False
    repeat: int = 0
    shuffle_partitions: int | None = None

    @property
    def name(self) -> str:
        """Name of the query and of its topics: letters, digits and dashes."""
        parts = [
            self.job.value,
            f"p{self.partitions}",
            f"r{self.rate_per_s:g}",
            f"t{self.trigger_s:g}".replace(".", "_"),
        ]
        if self.first_share is not None:
            parts.append("skewed")
        if self.max_offsets is not None:
            parts.append(f"max{self.max_offsets}")
        if self.mode is not Mode.PLAIN:
            parts.append(self.mode.value.split()[0])
        if self.shuffle_partitions is not None:
            parts.append(f"s{self.shuffle_partitions}")
        if self.repeat:
            parts.append(f"again{self.repeat}")
        return "-".join(parts)


_T, _C, _D = Job.TRANSFORM, Job.COUNT, Job.DEDUPLICATE
_SKEW = 0.6

MICRO_BATCH_CASES = (
    Case(job=_T, partitions=4, rate_per_s=4000, trigger_s=0.0, is_fitted=True),
    Case(job=_T, partitions=4, rate_per_s=4000, trigger_s=1.0, is_fitted=True),
    Case(job=_T, partitions=4, rate_per_s=12000, trigger_s=2.0, is_fitted=True),
    Case(job=_T, partitions=4, rate_per_s=12000, trigger_s=0.0),
    Case(job=_T, partitions=4, rate_per_s=12000, trigger_s=1.0),
    Case(job=_T, partitions=1, rate_per_s=4000, trigger_s=1.0),
    Case(job=_T, partitions=12, rate_per_s=4000, trigger_s=0.0),
    Case(job=_T, partitions=12, rate_per_s=12000, trigger_s=2.0),
    Case(job=_T, partitions=4, rate_per_s=12000, trigger_s=1.0, first_share=_SKEW),
    Case(job=_T, partitions=4, rate_per_s=4000, trigger_s=1.0, max_offsets=5000),
    Case(job=_T, partitions=4, rate_per_s=4000, trigger_s=1.0, max_offsets=12000, mode=Mode.OUTAGE),
    Case(job=_T, partitions=4, rate_per_s=4000, trigger_s=0.0, mode=Mode.ASYNC_PROGRESS),
    Case(job=_T, partitions=4, rate_per_s=4000, trigger_s=1.0, mode=Mode.ASYNC_PROGRESS),
    Case(job=_T, partitions=4, rate_per_s=4000, trigger_s=1.0, repeat=1),
    Case(job=_C, partitions=4, rate_per_s=4000, trigger_s=0.0, is_fitted=True),
    Case(job=_C, partitions=4, rate_per_s=4000, trigger_s=1.0, is_fitted=True),
    Case(job=_C, partitions=4, rate_per_s=12000, trigger_s=2.0, is_fitted=True),
    Case(job=_C, partitions=4, rate_per_s=12000, trigger_s=0.0),
    Case(job=_C, partitions=1, rate_per_s=4000, trigger_s=0.0),
    Case(job=_C, partitions=12, rate_per_s=12000, trigger_s=2.0),
    Case(job=_C, partitions=4, rate_per_s=12000, trigger_s=1.0, first_share=_SKEW),
    Case(job=_C, partitions=4, rate_per_s=8000, trigger_s=1.0, mode=Mode.OUTAGE),
    Case(job=_C, partitions=4, rate_per_s=4000, trigger_s=1.0, repeat=1),
)

# The trigger is here the duration of a batch.
REAL_TIME_CASES = (
    Case(job=_T, partitions=1, rate_per_s=1000, trigger_s=5.0, mode=Mode.REAL_TIME),
    Case(job=_T, partitions=4, rate_per_s=4000, trigger_s=5.0, mode=Mode.REAL_TIME),
    Case(job=_D, partitions=2, rate_per_s=1000, trigger_s=5.0, mode=Mode.REAL_TIME),
    Case(job=_C, partitions=2, rate_per_s=1000, trigger_s=5.0, mode=Mode.REAL_TIME),
)
