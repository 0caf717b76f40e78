"""Jobs: their input, their targets, and what is known of their costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.assumptions.planning import CONFIDENCE
from headway.domain import Promise, Target
from headway.domain.checks import (
    LABEL_PATTERN,
    LABEL_WORDS,
    SUBDOMAIN_PATTERN,
    SUBDOMAIN_WORDS,
)
from headway.limits import MOST_CORES, MOST_PARTITIONS
from headway.spec.forms import entry
from headway.spec.forms.files import FileOr, FilePath
from headway.spec.forms.kinds import Choice, Flag, ListOf, MapOf, Nested, Number, Text, Whole
from headway.spec.forms.quantities import (
    COST,
    COST_OR_ZERO,
    DURATION,
    DURATION_OR_ZERO,
    ROWS,
    SHARE,
    SIZE,
    TARGET,
    Quantity,
)
from headway.spec.kinds.cluster import Cluster
from headway.spec.kinds.rates import Rate, RateForm

_CONFIDENCE = Number(words="a confidence, 0.5 or more and below 1", low=0.5, high=0.9999)
_CLUSTER = FileOr(words="a file of the kind Cluster", noun=Cluster)


# What both kinds of jobs say, declared once; each noun needs a field of its own.
def _executor_cores() -> Any:
    return entry(Whole(low=1, high=MOST_CORES), "Cores of an executor. Default 4.", default=4)


def _executor_memory() -> Any:
    return entry(SIZE, "Heap of an executor.", key="executor_memory", default=None)


def _spark_version() -> Any:
    version = Text(pattern=r"\d+\.\d+(\..+)?", words="a Spark version in quotes, e.g. '4.0.1'")
    return entry(version, "Spark version that runs it. Default 4.0.0.", default="4.0.0")


def _profile(words: str) -> Any:
    about = "The job's profile. Either this or `declared`."
    return entry(FilePath(words=words), about, default=None)


def _confidence(of: str) -> Any:
    return entry(
        _CONFIDENCE,
        f"Confidence level for the {of}. Default {CONFIDENCE.value}.",
        default=CONFIDENCE.value,
    )


def _cluster() -> Any:
    return entry(
        _CLUSTER, "Cluster to run on: a file of the kind Cluster, or its figures.", default=None
    )


def _application() -> Any:
    about = "What to submit, for `headway emit`."
    return entry(Nested(ApplicationEntry), about, default=ApplicationEntry())


def _labels() -> Any:
    return entry(MapOf(value=Text()), "Free labels.", default={})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredStream:
    """Costs of a micro-batch, declared before there is a log."""

    task_per_row_s: Quantity = entry(
        COST, "Core time per record in the first stage.", key="task_per_row"
    )
    task_fixed_s: Quantity = entry(
        COST_OR_ZERO, "Core time of a task without records. Default 10ms.",
        key="task_fixed", default=COST.about(0.01),
    )  # fmt: skip
    driver_s: Quantity = entry(
        COST, "Driver time per batch: planning and logs. Default 150ms.",
        key="driver", default=COST.about(0.15),
    )  # fmt: skip
    source_partitions: int = entry(
        Whole(low=1, high=MOST_PARTITIONS), "Partitions of the source: tasks of the first stage."
    )
    stateful: bool = entry(Flag(), "Whether the query is stateful. Default true.", default=True)
    shuffle_ratio: float = entry(
        SHARE, "Share of the records that reach the stage after the exchange. Default 100%.",
        key="shuffled_share", default=1.0,
    )  # fmt: skip
    shuffle_task_per_row_s: Quantity | None = entry(
        COST, "Core time per record after the exchange; without it there is no exchange.",
        key="shuffle_task_per_row", default=None,
    )  # fmt: skip
    shuffle_partitions: int | None = entry(
        Whole(low=1, high=MOST_PARTITIONS),
        "Current shuffle partitions, if there is a checkpoint to keep.",
        default=None,
    )
    cores_per_executor: int = _executor_cores()
    executor_memory_bytes: int | None = _executor_memory()
    spark_version: str = _spark_version()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredBatch:
    """Costs of a batch job, declared before there is a log."""

    work_s: Quantity = entry(COST, "Core time of all tasks together, e.g. 40h.", key="work")
    driver_s: Quantity = entry(
        COST_OR_ZERO, "Time in which no task runs. Default 30s.",
        key="driver", default=COST.about(30.0),
    )  # fmt: skip
    num_tasks: int = entry(
        Whole(low=1, high=10_000_000), "Tasks of the widest stage, which limits the useful cores.",
        key="tasks",
    )  # fmt: skip
    num_stages: int = entry(
        Whole(low=1, high=100), "Number of consecutive stages. Default 1.",
        key="stages", default=1,
    )  # fmt: skip
    cores_per_executor: int = _executor_cores()
    executor_memory_bytes: int | None = _executor_memory()
    spark_version: str = _spark_version()


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
        Whole(low=1, high=MOST_PARTITIONS),
        "Shuffle partitions, e.g. those of the checkpoint.",
        default=None,
    )
    trigger_s: float | None = entry(
        DURATION_OR_ZERO, "Trigger interval; 0s is as fast as possible.",
        key="trigger", default=None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingJob:
    """A streaming query and its latency target."""

    profile: Path | None = _profile("a job profile as 'headway profile' writes it")
    declared: DeclaredStream | None = entry(
        Nested(DeclaredStream), "Declared costs, if there is no log yet.", default=None
    )
    rate: Rate = entry(RateForm(), "Input rate; the plan is made for its maximum.")
    targets: tuple[Promise, ...] = entry(
        ListOf(item=TARGET, least=1, most=10, or_one=True),
        "Target, e.g. `p99 <= 3s`, or a list of targets, which must all be met.",
        key="target",
    )
    confidence: float = _confidence("durations")
    checkpoint: str | None = entry(
        Choice(("new", "existing")),
        "Whether the query starts from its checkpoint, which fixes the shuffle partitions. "
        "Default: the current number is preferred, not fixed.",
        default=None,
    )
    pinned: Pinned = entry(Nested(Pinned), "Settings that are fixed.", default=Pinned())
    from_start: bool = entry(
        Flag(),
        "Plan for batches that always take as long as in a fresh JVM, as after a restart. "
        "Default false.",
        default=False,
    )
    cluster: Cluster | Path | None = _cluster()
    application: ApplicationEntry = _application()
    labels: dict[str, str] = _labels()

    def __post_init__(self) -> None:
        _require_one_source(self.profile is not None, self.declared is not None)
        if not any(isinstance(target, Target) for target in self.targets):
            raise ValueError("no target is a latency; add one, e.g. 'p99 <= 3s'")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob:
    """A batch job, or a streaming query that reads a backlog and ends, and its deadline."""

    profile: Path | None = _profile(
        "the profile of a batch application, or of a streaming query that read a backlog and ended"
    )
    declared: DeclaredBatch | None = entry(
        Nested(DeclaredBatch), "Declared costs, if there is no log yet.", default=None
    )
    deadline_s: float = entry(DURATION, "Maximum run time, e.g. 45min.", key="deadline")
    rows: float | None = entry(
        ROWS,
        "Backlog that a streaming query reads in a run, e.g. 40M. Default: as profiled.",
        default=None,
    )
    start_hour: int = entry(
        Whole(low=0, high=23), "Hour of the day at which it starts. Default 0.", default=0
    )
    confidence: float = _confidence("run time")
    cluster: Cluster | Path | None = _cluster()
    application: ApplicationEntry = _application()
    labels: dict[str, str] = _labels()

    def __post_init__(self) -> None:
        _require_one_source(self.profile is not None, self.declared is not None)
        if self.rows is not None and self.profile is None:
            raise ValueError("rows are for the profile of a streaming query that read a backlog")


def _require_one_source(has_profile: bool, has_declared: bool) -> None:
    if has_profile == has_declared:
        sources_text = "both" if has_profile else "neither"
        raise ValueError(f"{sources_text} of profile and declared; expected one of the two")
