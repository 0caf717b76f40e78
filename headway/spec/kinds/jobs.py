"""Jobs: their input, their targets, and what is known of their costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import headway.spec.forms.quantities as values
from headway.assumptions.planning import CONFIDENCE
from headway.domain import Promise, Target
from headway.domain.checks import LABEL_PATTERN, LABEL_WORDS, SUBDOMAIN_PATTERN, SUBDOMAIN_WORDS
from headway.domain.switches import Switch
from headway.domain.writes import STORES, CheckpointStore, FilesLimit
from headway.spec.forms import as_in, entry
from headway.spec.forms.kinds import (
    Choice,
    FilePath,
    Flag,
    ListOf,
    MapOf,
    NameOr,
    Nested,
    Number,
    Text,
    whole,
)
from headway.spec.kinds.catalog import Cluster
from headway.spec.kinds.rates import Rate, RateForm

_CONFIDENCE = Number(words="a confidence, 0.5 or more and below 1", low=0.5, high=0.9999)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredStream:
    """Costs of a micro-batch, declared before there is a log."""

    task_per_row_s: values.Quantity = entry(
        values.COST_PER_ROW, "Core time per record in the first stage."
    )
    task_fixed_s: values.Quantity = entry(
        values.COST_OR_ZERO,
        "Core time of a task without records. Default 10ms.",
        default=values.COST.about(0.01),
    )
    driver_s: values.Quantity = entry(
        values.COST,
        "Driver time per batch: planning and logs. Default 150ms.",
        default=values.COST.about(0.15),
    )
    source_partitions: int = entry(
        values.PARTITIONS, "Partitions of the source: tasks of the first stage."
    )
    stateful: bool = entry(Flag(), "Whether the query is stateful. Default true.", default=True)
    shuffle_ratio: float = entry(
        values.SHARE, "Share of the records that reach the stage after the exchange. Default 100%.",
        key="shuffled_share", default=1.0,
    )  # fmt: skip
    shuffle_task_per_row_s: values.Quantity | None = entry(
        values.COST_PER_ROW,
        "Core time per record after the exchange; without it there is no exchange.",
        default=None,
    )
    shuffle_partitions: int | None = entry(
        values.PARTITIONS,
        "Current shuffle partitions, if there is a checkpoint to keep.",
        default=None,
    )
    cores_per_executor: int = entry(values.CORES, "Cores of an executor. Default 4.", default=4)
    executor_memory_bytes: int | None = entry(values.SIZE, "Heap of an executor.", default=None)
    spark_version: str = entry(
        values.SPARK_VERSION, "Spark version that runs it. Default 4.0.0.", default="4.0.0"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredBatch:
    """Costs of a batch job, declared before there is a log."""

    work_s: values.Quantity = entry(values.COST, "Core time of all tasks together, e.g. 40h.")
    driver_s: values.Quantity = entry(
        values.COST_OR_ZERO,
        "Time in which no task runs. Default 30s.",
        default=values.COST.about(30.0),
    )
    num_tasks: int = entry(
        whole(low=1, high=10_000_000), "Tasks of the widest stage, which limits the useful cores.",
        key="tasks",
    )  # fmt: skip
    num_stages: int = entry(
        whole(low=1, high=100), "Number of consecutive stages. Default 1.", key="stages", default=1
    )
    cores_per_executor: int = as_in(DeclaredStream, "cores_per_executor")
    executor_memory_bytes: int | None = as_in(DeclaredStream, "executor_memory_bytes")
    spark_version: str = as_in(DeclaredStream, "spark_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationEntry:
    """What is submitted: names for the files that `headway emit` writes."""

    main: str | None = entry(
        Text(), "The application's file, e.g. `local:///opt/app/orders.py`.", default=None
    )
    arguments: tuple[str, ...] = entry(ListOf(item=Text()), "Its arguments.", default=())
    image: str | None = entry(Text(), "Container image, for Kubernetes.", default=None)
    namespace: str | None = entry(
        Text(words=LABEL_WORDS, pattern=LABEL_PATTERN), "Namespace, for Kubernetes.", default=None
    )
    service_account: str | None = entry(
        Text(words=SUBDOMAIN_WORDS, pattern=SUBDOMAIN_PATTERN),
        "Service account of the driver.",
        default=None,
    )
    runtime: str | None = entry(
        Text(), "The platform's release, e.g. `17.3.x-scala2.13` or `emr-7.10.0`.", default=None
    )
    node_type: str | None = entry(
        Text(), "Node type as the platform calls it; default: the cluster's node.", default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """Settings that Headway must not change."""

    shuffle_partitions: int | None = entry(
        values.PARTITIONS, "Shuffle partitions, e.g. those of the checkpoint.", default=None
    )
    trigger_s: float | None = entry(
        values.TRIGGER_OR_ZERO, "Trigger interval; 0s is as fast as possible.", default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingJob:
    """A streaming query and its latency target."""

    profile: Path | None = entry(
        values.PROFILE_FILE, "The job's profile. Either this or `declared`.", default=None
    )
    declared: DeclaredStream | None = entry(
        Nested(DeclaredStream), "Declared costs, if there is no log yet.", default=None
    )
    rate: Rate = entry(RateForm(), "Input rate; the plan is made for its maximum.")
    targets: tuple[Promise, ...] = entry(
        ListOf(item=values.TARGET, least=1, most=10, or_one=True),
        "Target, e.g. `p99 <= 3s`, or a list of targets, which must all be met.",
        key="target",
    )
    confidence: float = entry(
        _CONFIDENCE,
        f"Confidence level for the durations. Default {CONFIDENCE.value}.",
        default=CONFIDENCE.value,
    )
    checkpoint: Literal["new", "existing"] | None = entry(
        Choice(("new", "existing")),
        "Whether the query starts from its checkpoint, which fixes the shuffle partitions. "
        "Default: the current number is preferred, not fixed.",
        default=None,
    )
    checkpoint_store: CheckpointStore | None = entry(
        Choice(STORES),
        "Store of the checkpoint, whose write requests are then part of the cost. Default: as in "
        "the profile.",
        default=None,
    )
    retention_s: float | None = entry(
        values.DURATION,
        "How long the source keeps rows, e.g. 7d for `retention.ms` of a Kafka topic. The plan "
        "says which outages lose none; a `catch_up` after a longer one is refused.",
        default=None,
    )
    limits: tuple[FilesLimit, ...] = entry(
        ListOf(item=values.FILES_LIMIT, least=1, most=10, or_one=True),
        "Limit beside the targets, `files <= 500/h`: the maximum number of files that are written.",
        key="limit",
        default=(),
    )
    allowed: tuple[str, ...] = entry(
        ListOf(item=Choice(tuple(map(str, Switch))), least=1, most=len(Switch), or_one=True),
        "Switch of Spark that the plan may turn, or a list of such.",
        key="allow",
        default=(),
    )
    pinned: Pinned = entry(Nested(Pinned), "Settings that are fixed.", default=Pinned())
    from_start: bool = entry(
        Flag(),
        "Plan for batches that always take as long as in a fresh JVM, as after a restart. "
        "Default false.",
        default=False,
    )
    cluster: Cluster | Path | None = entry(
        NameOr(FilePath("a file of the kind Cluster"), Cluster),
        "Cluster to run on: a file of the kind Cluster, or its figures.",
        default=None,
    )
    application: ApplicationEntry = entry(
        Nested(ApplicationEntry), "What to submit, for `headway emit`.", default=ApplicationEntry()
    )
    labels: dict[str, str] = entry(MapOf(value=Text()), "Free labels.", default={})

    def __post_init__(self) -> None:
        require_one_source(self.profile, self.declared)
        if not any(isinstance(target, Target) for target in self.targets):
            raise ValueError("no target is a latency; add one, e.g. 'p99 <= 3s'")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob:
    """A batch job, or a streaming query that reads a backlog and ends, and its deadline."""

    profile: Path | None = entry(
        FilePath(
            "the profile of a batch application, or of a streaming query that read a backlog and "
            "ended"
        ),
        "The job's profile. Either this or `declared`.",
        default=None,
    )
    declared: DeclaredBatch | None = entry(
        Nested(DeclaredBatch), "Declared costs, if there is no log yet.", default=None
    )
    deadline_s: float = entry(values.DURATION, "Maximum run time, e.g. 45min.")
    rows: float | None = entry(
        values.ROWS,
        "Backlog that a streaming query reads in a run, e.g. 40M. Default: as profiled.",
        default=None,
    )
    start_hour: int = entry(
        whole(low=0, high=23), "Hour of the day at which it starts. Default 0.", default=0
    )
    confidence: float = entry(
        _CONFIDENCE,
        f"Confidence level for the run time. Default {CONFIDENCE.value}.",
        default=CONFIDENCE.value,
    )
    cluster: Cluster | Path | None = as_in(StreamingJob, "cluster")
    application: ApplicationEntry = as_in(StreamingJob, "application")
    labels: dict[str, str] = as_in(StreamingJob, "labels")

    def __post_init__(self) -> None:
        require_one_source(self.profile, self.declared)
        if self.rows is not None and self.profile is None:
            raise ValueError("rows are for the profile of a streaming query that read a backlog")


def require_one_source(profile: Path | None, declared: object) -> None:
    """Refuse a job with both a profile and declared costs, or with neither, as a ValueError."""
    if (profile is None) == (declared is None):
        sources_text = "neither" if profile is None else "both"
        raise ValueError(f"{sources_text} of profile and declared; expected one of the two")
