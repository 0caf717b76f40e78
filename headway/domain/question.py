"""What a plan and a prediction are asked for: every argument of both, declared once.

A new argument is a field here and its use in the planner; the call, the command, its help and what
is refused for which kind of job follow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import headway.domain.argument_values as values
from headway.assumptions.planning import CONFIDENCE, MOST_NODES_OF_PLAN
from headway.assumptions.resources import LEAST_HEAP_BYTES
from headway.domain.argument import CommandQuestion, JobKind, argument_of
from headway.domain.configuration import TaskCores
from headway.domain.node_type import PLATFORMS, NodeType, Objective, Platform
from headway.domain.switches import Switch
from headway.domain.target import AnyPromise, Burst
from headway.domain.writes import STORES, CheckpointStore, FilesLimit
from headway.errors import argument
from headway.lazy_classes import dataclass
from headway.limits import MOST_CORES, MOST_EXECUTORS, MOST_LONG, MOST_NODES, MOST_PARTITIONS
from headway.units import spark_memory_text

if TYPE_CHECKING:
    from headway.domain.ordered import KeyCounts


#: Execution mode of a streaming query.
Mode: TypeAlias = Literal["micro-batch", "real-time"]
#: Whether a plan starts from the existing checkpoint, or from a new one.
Checkpoint: TypeAlias = Literal["existing", "new"]
#: Spark's types of key columns.
KeyType: TypeAlias = Literal["string", "int", "long"]
NOT_FOR_PIPELINES = "not for pipelines"
# Of jobs of all kinds but pipelines, unless it says otherwise.
_of_jobs = partial(argument_of, not_for={JobKind.PIPELINE: NOT_FOR_PIPELINES})
# Where help lists an option, and whether it does so only if all of them are asked for.
_fixed = partial(_of_jobs, topic="What is fixed")
_rarely_fixed = partial(_fixed, is_rare=True)
_of_nodes = partial(_of_jobs, topic="The nodes")
_rarely_of_nodes = partial(_of_nodes, is_rare=True)
_rare = partial(_of_jobs, is_rare=True)
_MODE: values.Choice[Mode] = values.Choice(get_args(Mode))
# With less Spark does not start.
_HEAP = values.InRange(
    minimum=LEAST_HEAP_BYTES.value,
    maximum=MOST_LONG,
    expected=f"a number of bytes, at least {LEAST_HEAP_BYTES.value} "
    f"({spark_memory_text(LEAST_HEAP_BYTES.value)})",
    convert=int,
)
#: Jobs that DStreams run at a time, at most.
MOST_CONCURRENT_JOBS = 1000


def not_for(
    *, query: str = "", real_time: str = "", dstreams: str = "", ending: str = ""
) -> Mapping[JobKind, str]:
    """Reasons why an argument means nothing for kinds of jobs; pipelines have few arguments."""
    reasons = {
        JobKind.QUERY: query,
        JobKind.REAL_TIME: real_time,
        JobKind.DSTREAMS: dstreams,
        JobKind.ENDING: ending,
        JobKind.PIPELINE: NOT_FOR_PIPELINES,
    }
    return {kind: why for kind, why in reasons.items() if why}


_DEADLINE = "not with a deadline"
_ONLY_DEADLINE = "only with a deadline, e.g. 'deadline <= 10m'"
_ONLY_DSTREAMS = "only DStreams run several jobs at a time"
_ONLY_REAL_TIME = f"only Real-Time Mode has one: {argument('mode')} real-time"
_LARGEST_TASK = "in Real-Time Mode the recorded share of the largest task is used"
_KEYS_OF_DSTREAMS = "keys of DStreams are not modelled"
WARM_UP_REAL_TIME = "the warm-up of Real-Time Mode is not modelled"
WARM_UP_DSTREAMS = "the warm-up of DStreams batches is not modelled"
_NOT_MODELLED = "their gains are not modelled"
_WRITES_REAL_TIME = "what Real-Time Mode writes to its checkpoint is not modelled"
_WRITES_DSTREAMS = "what DStreams write to checkpoints is not modelled"
_OUTAGES = "rows that outages lose are modelled for queries in micro-batches"
_NOT_FOR_WRITES = not_for(ending=_DEADLINE, real_time=_WRITES_REAL_TIME, dstreams=_WRITES_DSTREAMS)
_NOT_FOR_KEYS = not_for(ending=_DEADLINE, real_time=_LARGEST_TASK, dstreams=_KEYS_OF_DSTREAMS)
_SOURCE_OF_DSTREAMS = "the tasks that read DStreams are as profiled"
_SHUFFLE_OF_DSTREAMS = "in DStreams the application's own code sets the number of shuffle tasks"

_NO_MINIMUM = not_for(
    real_time="Real-Time Mode reads each row as it comes",
    dstreams="DStreams start a batch in each interval",
)


@dataclass(frozen=True, kw_only=True)
class SettingQuestion(CommandQuestion):
    """A setting of any job, of which a plan may fix a part."""

    trigger_s: float | None = _fixed(
        values.TRIGGER,
        "Trigger interval; 0s means as fast as possible.",
        name="trigger",
        not_for=not_for(ending=_DEADLINE),
    )
    cores: int | None = _fixed(
        values.Count(maximum=MOST_CORES),
        "Cores per executor; local[n] is one executor with n cores.",
    )
    shuffle_partitions: int | None = _fixed(
        values.Count(maximum=MOST_PARTITIONS),
        "Shuffle partitions.",
        name="partitions",
        not_for=not_for(ending=_DEADLINE, dstreams=_SHUFFLE_OF_DSTREAMS),
    )
    task_cpus: TaskCores | None = _rarely_fixed(
        values.TASK_CORES, "Cores per task (spark.task.cpus); as profiled by default."
    )


@dataclass(frozen=True, kw_only=True)
class RunQuestion(SettingQuestion):
    """A setting that runs at a rate; None is as profiled."""

    rate_per_s: float | None = argument_of(
        values.RATE, "Input rate, e.g. 50k/s.", name="rate", is_first=True
    )
    executors: int | None = _fixed(values.Count(maximum=MOST_EXECUTORS), "Executors.")


@dataclass(frozen=True, kw_only=True)
class JobQuestion(SettingQuestion):
    """What plans and predictions are asked for alike; ``queries`` are those of an event log."""

    queries: tuple[str, ...] = _of_jobs(
        values.QUERIES,
        "Query of an event log; all by default. Repeatable.",
        option="--query",
        default=(),
        is_repeatable=True,
        metavar="NAME_OR_ID",
    )
    source_partitions: int | None = _rarely_fixed(
        values.Count(maximum=MOST_PARTITIONS),
        "Number of source partitions (or input splits); as profiled by default.",
        not_for=not_for(ending=_DEADLINE, dstreams=_SOURCE_OF_DSTREAMS),
    )
    mode: Mode = _rarely_fixed(
        _MODE,
        "Execution mode of the query; in Real-Time Mode --trigger is the batch length.",
        default="micro-batch",
    )
    path_s: float | None = _rarely_fixed(
        values.Duration(),
        "Real-Time Mode: time of a row from the source and to the sink; 2ms by default.",
        name="path",
        not_for=not_for(query=_ONLY_REAL_TIME, dstreams=_ONLY_REAL_TIME, ending=_ONLY_REAL_TIME),
    )
    concurrent_jobs: int | None = _rarely_fixed(
        values.Count(maximum=MOST_CONCURRENT_JOBS),
        "DStreams: jobs that run at a time (spark.streaming.concurrentJobs).",
        not_for=not_for(query=_ONLY_DSTREAMS, real_time=_ONLY_DSTREAMS, ending=_DEADLINE),
    )


@dataclass(frozen=True, kw_only=True)
class PredictQuestion(JobQuestion, RunQuestion):
    """What a prediction is asked for; None is as profiled.

    >>> from headway.domain.argument import read_question
    >>> read_question(PredictQuestion, {"trigger": 0, "cores": 4}).cores
    4
    """

    max_offsets: int | None = _fixed(
        values.Count(maximum=MOST_LONG),
        "Rate limit: maximum records per batch (maxOffsetsPerTrigger).",
        not_for=not_for(
            real_time="Real-Time Mode reads all available rows; Spark has no rate limit for it",
            dstreams="DStreams limit rows per second, in the Spark configuration that plan prints",
        ),
    )
    min_offsets: int | None = _rarely_fixed(
        values.Count(maximum=MOST_LONG),
        "Minimum records per batch (minOffsetsPerTrigger): a trigger waits for so many.",
        not_for=_NO_MINIMUM,
    )
    max_trigger_delay_s: float | None = _rarely_fixed(
        values.Duration(),
        "With --min-offsets: how long a trigger waits at most (maxTriggerDelay); 15min by default.",
        name="max_trigger_delay",
        not_for=_NO_MINIMUM,
    )
    jvm_age_s: float | None = _rarely_fixed(
        values.Duration(),
        "Age of the executor JVMs, e.g. 2min.",
        name="jvm_age",
        not_for=not_for(real_time=WARM_UP_REAL_TIME, dstreams=WARM_UP_DSTREAMS),
    )


@dataclass(frozen=True, kw_only=True)
class PlanQuestion(JobQuestion):
    """What a plan is asked for.

    Fields are in base units, None where nothing was given. ``node_types`` and ``keys`` are read
    when they are used, since their values stand in files.

    >>> from headway.domain.argument import read_question
    >>> question = read_question(PlanQuestion, {"rate": "50k/s", "trigger": "2s"})
    >>> question.rate_per_s, question.trigger_s, question.max_nodes
    (50000.0, 2.0, 50)
    """

    rate_per_s: float | None = argument_of(
        values.RATE,
        "Input rate, e.g. 50k/s; as profiled by default.",
        name="rate",
        not_for={JobKind.ENDING: _DEADLINE},
        is_first=True,
    )
    targets: tuple[AnyPromise, ...] = argument_of(
        values.PROMISES,
        "Target, e.g. 'p99 <= 3s'; repeatable. By default the lowest that the profiled setting "
        "meets.",
        name="target",
        default=(),
        is_repeatable=True,
        is_first=True,
    )
    backlog_rows: float | None = _rare(
        values.ROWS,
        "With a deadline: backlog that a streaming query reads, e.g. 40M; as profiled by default.",
        name="rows",
        not_for=not_for(
            query=_ONLY_DEADLINE,
            real_time="in Real-Time Mode a query has no end",
            dstreams=_ONLY_DEADLINE,
        ),
    )
    max_nodes: int = argument_of(
        values.Count(maximum=MOST_NODES),
        "Maximum number of nodes.",
        default=MOST_NODES_OF_PLAN.value,
        topic="The nodes",
    )
    node_cores: int | None = _rarely_of_nodes(
        values.Count(maximum=MOST_CORES), "Cores per node; those of an executor by default."
    )
    node_types: tuple[NodeType | str, ...] = _of_nodes(
        values.ListOf(
            members=NodeType,
            expected="a list of names, or of texts such as "
            "'m6i.xlarge:cores=4,memory=14g,price=0.192'",
        ),
        "Node type: a name in the catalogue, or name:cores=4,memory=14g,price=0.192; repeatable.",
        option="--node-type",
        default=(),
        is_repeatable=True,
    )
    catalog: str | Path | None = _rarely_of_nodes(
        values.PATH_READ_LATER,
        "Node catalogue (a spec file of kind NodeCatalog); Headway's own by default.",
    )
    platform: Platform = _rarely_of_nodes(
        values.Choice(PLATFORMS),
        "Platform that runs Spark; it reserves part of each catalogue node.",
        default="kubernetes",
    )
    objective: Objective = _rarely_of_nodes(
        values.Choice(get_args(Objective)), "Quantity to minimise.", default="nodes"
    )
    budget_per_hour: float | None = _rarely_of_nodes(
        values.Positive(words="a positive price per hour"),
        "Maximum cost per hour: nodes, and write requests if their price is known.",
        name="budget",
    )
    checkpoint: Checkpoint | None = _fixed(
        values.Choice(get_args(Checkpoint)),
        "Start from the existing checkpoint, which fixes the shuffle partitions, or from a new "
        "one.",
        not_for=not_for(
            ending=_DEADLINE,
            real_time="in Real-Time Mode state is kept in format 2, which needs a new checkpoint",
            dstreams="what checkpoints of DStreams fix is not modelled",
        ),
    )
    checkpoint_store: CheckpointStore | None = _rare(
        values.Choice(STORES),
        "Store of the checkpoint, whose write requests count in the cost; by default as logged.",
        not_for=_NOT_FOR_WRITES,
    )
    retention_s: float | None = _rare(
        values.Duration(),
        "How long the source keeps rows, e.g. 7d (retention.ms of Kafka): which outages lose none.",
        name="retention",
        not_for=not_for(ending=_DEADLINE, real_time=_OUTAGES, dstreams=_OUTAGES),
    )
    limits: tuple[FilesLimit, ...] = _rare(
        values.FILES_LIMITS,
        "Limit beside the targets: the files written per hour, e.g. 'files <= 500/h'.",
        name="limit",
        default=(),
        is_repeatable=True,
        not_for=_NOT_FOR_WRITES,
    )
    allowed: tuple[Switch, ...] = _rare(
        values.SWITCHES,
        f"Switch of Spark that the plan may turn; repeatable: {', '.join(Switch)}.",
        name="allow",
        default=(),
        is_repeatable=True,
        not_for=not_for(ending=_DEADLINE, real_time=_NOT_MODELLED, dstreams="DStreams have none"),
    )
    bursts: tuple[Burst, ...] = _rare(
        values.BURSTS,
        "Burst during which the target must be met: RATE:DURATION[:EVERY]; repeatable.",
        option="--burst",
        default=(),
        is_repeatable=True,
        not_for=not_for(
            ending=_DEADLINE,
            real_time="bursts of Real-Time Mode are not modelled; give the burst's rate as "
            f"{argument('rate')}",
            dstreams="bursts of DStreams are not modelled; give the burst's rate as "
            f"{argument('rate')}",
        ),
    )
    relaxation: bool = _rare(
        values.FLAG,
        "Also compute the lower bound on nodes by convex relaxation; slower.",
        default=False,
        not_for=not_for(
            ending=_DEADLINE,
            real_time="there is no such bound for Real-Time Mode",
            dstreams="there is no such bound for DStreams",
        ),
    )
    lower_memory: bool = _rarely_of_nodes(
        values.FLAG,
        "Allow less heap than in the profiled run, down to the measured peak plus headroom.",
        default=False,
    )
    executor_memory_bytes: int | None = _of_jobs(
        _HEAP, "Heap of an executor, if it is fixed.", option=None
    )
    from_start: bool = _rare(
        values.FLAG,
        "Plan for the batch durations of a freshly started JVM.",
        default=False,
        not_for=not_for(ending=_DEADLINE, real_time=WARM_UP_REAL_TIME, dstreams=WARM_UP_DSTREAMS),
    )
    keys: KeyCounts | str | Path | None = _rare(
        values.PATH_READ_LATER,
        "How often each key occurs, as for headway ordered; all rows of a key go to one task.",
        not_for=_NOT_FOR_KEYS,
    )
    key_type: KeyType | None = _rare(
        values.Choice(get_args(KeyType)),
        "Spark's type of the key column; by default long for numbers in JSON, else string.",
        not_for=_NOT_FOR_KEYS,
    )
    total_rows: float | None = _rare(
        values.TOTAL_ROWS,
        "Rows of all keys, if the file has only the most frequent ones.",
        not_for=_NOT_FOR_KEYS,
    )
    confidence: float = _rare(
        values.CONFIDENCE_LEVEL,
        "Confidence level at which the targets must be met, e.g. 0.95 or 95%.",
        default=CONFIDENCE.value,
    )

    @property
    def most_files_per_hour(self) -> float:
        """The lowest limit of files; infinite without one."""
        return min((limit.files_per_hour for limit in self.limits), default=math.inf)


def asks_for_real_time(options: Mapping[str, Any]) -> bool:
    """Whether the execution mode that is asked for is Real-Time Mode.

    >>> asks_for_real_time({"mode": "real-time"}), asks_for_real_time({})
    (True, False)
    """
    mode = options.get("mode")
    return mode is not None and _MODE.read(mode, "mode") == "real-time"
