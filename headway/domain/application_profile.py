"""What is known of an application without a streaming query: batch and DStreams."""

from __future__ import annotations

import math
from dataclasses import asdict, field
from typing import ClassVar, Literal

from headway.domain.argument import JobKind
from headway.domain.checks import require_count, require_not_negative
from headway.domain.configuration import Cluster
from headway.domain.declared import DeclaredWork, Provenance
from headway.domain.profile import APPLICATION_PROFILE_SCHEMA, Application
from headway.domain.recorded import Coverage, MemoryProfile
from headway.domain.result import Result
from headway.domain.stage import stage_called
from headway.domain.target import AnyPromise, Deadline
from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.limits import MOST_INT

MOST_STAGES = 100
SAME_MOMENT_S = 0.001
"""A stage that begins so soon after the end of another may have waited for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStage:
    """One stage as it ran, over all its attempts; times and sums are of the tasks that finished.

    ``id`` is Spark's number of the stage. ``parents`` are the positions, in the profile's list, of
    the stages that it had to wait for; a stage in between that is not listed is replaced by its own
    parents. ``job`` is the number of the first job that needed the stage: jobs follow each other as
    the driver's program submits them, which ``parents`` do not show. Under adaptive execution each
    stage of a query is a job of its own. ``work`` are its operators in words, None if unknown.

    ``num_tasks`` are the tasks that it needs. A task takes ``task_mean_s`` from launch to finish,
    ``task_fixed_s`` of it outside the executor's run: launch, deserialization, sending the result.
    ``task_sd_s`` is None for a single task. The stage was submitted and completed in seconds since
    the start. Rows are those from files and from the stages around it; ``largest_task_ratio`` is
    rows of the largest task over those of the mean task, None if nothing was read. Bytes were read
    from outside, read from other stages, and written for them. ``peak_task_bytes`` is the maximum
    execution memory of a task, ``spilled_bytes`` what all of them spilled from it. The last three
    are shares of the time that tasks ran on the executor, None if not recorded; ``cpu_ratio`` does
    not include the Python workers.
    """

    id: int
    job: int | None = None
    work: str | None = None
    parents: tuple[int, ...] = ()
    num_tasks: int = field(metadata={"key": "tasks.num_tasks"})
    num_finished: int = field(metadata={"key": "tasks.num_finished"})
    num_failed: int = field(metadata={"key": "tasks.num_failed"})
    num_attempts: int = field(metadata={"key": "tasks.num_attempts"})
    task_mean_s: float = field(metadata={"key": "task_time.mean_s"})
    task_sd_s: float | None = field(default=None, metadata={"key": "task_time.sd_s"})
    task_max_s: float = field(metadata={"key": "task_time.max_s"})
    task_fixed_s: float = field(metadata={"key": "task_time.fixed_s"})
    submitted_s: float = field(metadata={"key": "wall_clock.submitted_s"})
    completed_s: float = field(metadata={"key": "wall_clock.completed_s"})
    rows_read: int = field(metadata={"key": "rows.read"})
    rows_written: int = field(metadata={"key": "rows.written"})
    largest_task_ratio: float | None = field(
        default=None, metadata={"key": "rows.largest_task_ratio"}
    )
    input_bytes: int = field(metadata={"key": "volume.input_bytes"})
    shuffle_read_bytes: int = field(metadata={"key": "volume.shuffle_read_bytes"})
    shuffle_write_bytes: int = field(metadata={"key": "volume.shuffle_write_bytes"})
    peak_task_bytes: int = field(metadata={"key": "memory.peak_task_bytes"})
    spilled_bytes: int = field(metadata={"key": "memory.spilled_bytes"})
    gc_ratio: float = field(metadata={"key": "run_time.gc_ratio"})
    cpu_ratio: float | None = field(default=None, metadata={"key": "run_time.cpu_ratio"})
    python_ratio: float | None = field(default=None, metadata={"key": "run_time.python_ratio"})

    def __post_init__(self) -> None:
        require_count(MOST_INT, num_tasks=self.num_tasks, num_finished=self.num_finished)
        require_not_negative(
            f"stage {self.id}",
            num_failed=self.num_failed,
            task_mean_s=self.task_mean_s,
            task_sd_s=self.task_sd_s,
            task_max_s=self.task_max_s,
            task_fixed_s=self.task_fixed_s,
            submitted_s=self.submitted_s,
        )
        if not self.submitted_s <= self.completed_s < math.inf:
            fault = f"completed_s is {self.completed_s}; expected {self.submitted_s} or more"
            raise ValueError(fault)

    @property
    def called(self) -> str:
        return stage_called(f"stage {self.id}", self.work)

    @property
    def task_time_s(self) -> float:
        """Time of all tasks that finished [s]."""
        return self.task_mean_s * self.num_finished


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherStages:
    """Sums over the stages that are not listed: light ones, and those that finished no task.

    ``chain_s`` is the longest chain of all stages that waited for each other, listed ones among
    them, if each takes its longest recorded task [s]; None if all are listed, or unknown.
    """

    num_stages: int = 0
    num_tasks: int = 0
    num_failed: int = 0
    task_time_s: float = 0.0
    input_bytes: int = 0
    shuffle_read_bytes: int = 0
    shuffle_write_bytes: int = 0
    spilled_bytes: int = 0
    chain_s: float | None = None

    def __post_init__(self) -> None:
        if self.chain_s is not None:
            require_not_negative("other stages", chain_s=self.chain_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Mean, spread and quantiles of some durations [s]; earlier profiles lack the shortest."""

    mean_s: float
    sd_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    max_s: float
    min_s: float | None = None

    def __post_init__(self) -> None:
        require_not_negative("durations", **asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class DStreamsProfile:
    """The batches of a DStreams application, which a clock starts and a queue holds.

    ``batch_interval_s`` is the most frequent distance of batch times; None if there is only one
    batch. The times are of ``num_batches``, after ``num_batches_cut`` that were cut as warm-up,
    without the incomplete ones, of which a stage failed or a part is missing from the log. Each of
    ``num_receivers`` occupies one core as long as the application runs. ``processing_time`` is from
    the submission of a batch's first stage to the completion of its last, ``scheduling_delay`` from
    a batch's own time to the submission of its first stage. ``rows_per_batch`` are mean rows of the
    job with the most rows in each batch, since every output operation reads the rows again; None if
    Spark counted none. Stages of the profile are means over typical batches, which have the same.
    """

    batch_interval_s: float | None = None
    num_batches: int
    num_batches_cut: int
    num_batches_incomplete: int
    num_receivers: int
    processing_time: Spread
    scheduling_delay: Spread
    rows_per_batch: float | None = None
    num_typical_batches: int

    def __post_init__(self) -> None:
        if not 1 <= self.num_typical_batches <= self.num_batches:
            raise ValueError(
                f"num_typical_batches is {self.num_typical_batches} of {self.num_batches}; "
                "expected at least 1"
            )
        if self.batch_interval_s is not None and not 0 < self.batch_interval_s < math.inf:
            fault = f"batch_interval_s is {self.batch_interval_s}; expected a positive number"
            raise ValueError(fault)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ApplicationProfile(Result):
    """Everything that is known of one batch or DStreams application.

    Its own program keeps a batch application running, and the clock of DStreams the other kind.
    ``started`` is an instant in UTC, ``driver_only_s`` the time in which no stage ran (receivers
    aside), ``num_jobs_failed`` the jobs of which a stage failed for good. ``last_job_failed`` is
    the number of the last job of a batch application if it failed: the program may have ended with
    it.

    ``stages`` are the heaviest by task time, at most `MOST_STAGES`, in order of submission, none
    before its parents; for DStreams those of a typical batch: means over its batches, numbered by
    position, timed from the submission of the first. ``other_stages`` sums up all stages that are
    not in the list, for DStreams all that ran outside the typical batches. ``declared`` are the
    figures that people stated if nothing ran; the cluster and the times of the stages then follow
    from them. Growth is looked for in streaming queries only, and no batch job has a backlog.

    Read and written as YAML by :mod:`headway.formats.profile_file`.
    """

    result_kind = "application-profile"
    growth: ClassVar[None] = None
    backlog: ClassVar[None] = None
    schema: str = APPLICATION_PROFILE_SCHEMA
    headway_version: str
    kind: Literal["batch", "dstreams"]
    application: Application
    cluster: Cluster
    started: str
    duration_s: float
    driver_only_s: float
    num_jobs: int
    num_jobs_failed: int
    last_job_failed: int | None = None
    dstreams: DStreamsProfile | None = None
    stages: tuple[RecordedStage, ...]
    other_stages: OtherStages = field(default_factory=OtherStages)
    memory: MemoryProfile
    coverage: Coverage
    notes: tuple[str, ...] = field(default=())
    declared: DeclaredWork | None = None

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("a profile needs at least one stage")
        if len(self.stages) > MOST_STAGES:
            raise ValueError(f"{len(self.stages)} stages; expected at most {MOST_STAGES}")
        if (self.dstreams is not None) != (self.kind == "dstreams"):
            raise ValueError(f"kind is {self.kind}; dstreams belongs to the kind 'dstreams' only")
        if not 0 <= self.driver_only_s <= self.duration_s < math.inf:
            raise ValueError(
                f"driver_only_s is {self.driver_only_s} of {self.duration_s}; "
                "expected between 0 and duration_s"
            )
        require_not_negative("jobs", num_jobs=self.num_jobs, num_jobs_failed=self.num_jobs_failed)
        for index, stage in enumerate(self.stages):
            if not all(0 <= parent < index for parent in stage.parents):
                raise ValueError(
                    f"stage {stage.id}: parents are {list(stage.parents)}; "
                    f"expected places before its own, {index}"
                )

    @property
    def called(self) -> str:
        return "a DStreams application" if self.kind == "dstreams" else "a batch application"

    @property
    def job_kind(self) -> JobKind:
        return JobKind.DSTREAMS if self.kind == "dstreams" else JobKind.ENDING

    @property
    def provenance(self) -> Provenance:
        return "measured" if self.declared is None else "declared"

    @property
    def applications(self) -> tuple[Application, ...]:
        return (self.application,)

    @property
    def slots(self) -> Cluster:
        return self.cluster

    def require_can_promise(self, promise: AnyPromise) -> None:
        """Refuse everything except a deadline of a batch job."""
        if self.kind != "batch":
            fault = f"target '{promise}': {self.called} has no end; a deadline is for batch jobs"
            raise InputError(fault)
        if not isinstance(promise, Deadline):
            raise InputError(f"target '{promise}': a batch job has a deadline only")
