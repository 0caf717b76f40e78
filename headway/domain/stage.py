"""Costs of a stage of a micro-batch, and the shape of its query."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

from headway.domain.checks import require_count, require_not_negative, require_spread
from headway.domain.source_tasks import Coalescing, SourceTasks
from headway.domain.writes import CheckpointStore
from headway.lazy_classes import dataclass
from headway.limits import MOST_INT, MOST_RATIO


def stage_called(stage: str, work: str | None) -> str:
    """A stage by its name and what it computes, if that is known.

    >>> stage_called("stage 1", "aggregate by word"), stage_called("stage 1", None)
    ('stage 1 (aggregate by word)', 'stage 1')
    """
    return stage if work is None else f"{stage} ({work})"


def phase_called(phase: str, stage_work: Mapping[str, str]) -> str:
    """A phase by its name; stages, of which several may run at a time, with what they do.

    >>> phase_called("stage 0+stage 1", {"stage 1": "join"}), phase_called("wait", {})
    ('stage 0+stage 1 (join)', 'wait')
    """
    return "+".join(stage_called(stage, stage_work.get(stage)) for stage in phase.split("+"))


#: What determines the number of tasks of a stage. Coalesced are shuffle partitions that adaptive
#: execution merges by their size. Fixed is none of these: the files of a static table, or an
#: exchange whose tasks follow no rule that is known.
TasksRule: TypeAlias = Literal["source", "shuffle", "coalesced", "fixed"]
#: How the fixed cost of a task was separated from its cost per row, best first. Batches of other
#: size are compared, or the tasks of the same batch that had different shares of the rows. If all
#: tasks are alike, those of empty batches are used, which read no rows, and if there were none, the
#: parts that Spark reports of a task's fixed work (launch, state commit); the rest is that of the
#: rows. Of totals, it is only known how long batches of different size took.
Separation: TypeAlias = Literal["batches", "tasks", "empty", "parts", "totals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsLaw:
    """Rows that enter a stage when ``n`` enter the batch: ``static_rows + scale * n ** exponent``.

    An exponent below 1 is a partial aggregation, which sees the same keys again. ``static_rows``
    are those of static tables, which are the same in every batch.

    >>> RowsLaw(scale=2.0, exponent=1.0).rows(50.0)
    100.0
    """

    scale: float
    exponent: float
    static_rows: float = 0.0

    def __post_init__(self) -> None:
        require_not_negative("rows law", static_rows=self.static_rows)
        if not self.scale >= 0 or not 0 <= self.exponent <= 1:
            raise ValueError(
                f"rows law is {self.scale} * n ** {self.exponent}; "
                "expected scale >= 0 and an exponent in [0, 1]"
            )

    def rows(self, batch_rows: float) -> float:
        """Rows that enter the stage of a batch of ``batch_rows`` rows."""
        return self.static_rows + self.stream_rows(batch_rows)

    def stream_rows(self, batch_rows: float) -> float:
        """Those of them that come from the rows of the batch."""
        return float(self.scale * batch_rows**self.exponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageObserved:
    """Other measurements of a stage's tasks; ratios and bytes are per row that entered the stage.

    ``rows_written_ratio`` counts rows written for the next stage or the sink. ``task_per_byte_s``
    is the cost per row expressed per byte read, None if no bytes are recorded. ``cpu_ratio`` and
    ``gc_ratio`` are shares of the time that tasks ran on the executor; ``python_ratio``, None
    without Python, is the share spent in Python workers, which ``cpu_ratio`` does not include.
    ``shared_wait_ratio`` is the share of their slots' time in which tasks wait for what they share,
    processors and disks; None if code of the user may wait for anything else, or if that is not
    known. ``largest_task_ratio`` is the mean over batches of the rows of the largest task over
    those of the mean task.
    """

    rows_written_ratio: float
    input_bytes_per_row: float
    shuffle_read_bytes_per_row: float
    shuffle_write_bytes_per_row: float
    spilled_bytes_per_row: float
    task_per_byte_s: float | None = None
    cpu_ratio: float
    gc_ratio: float
    python_ratio: float | None = None
    shared_wait_ratio: float | None = None
    scheduler_delay_s: float
    largest_task_ratio: float
    peak_task_memory_bytes: int = 0

    def __post_init__(self) -> None:
        if not 0 <= (self.shared_wait_ratio or 0.0) <= 1:
            raise ValueError(
                f"shared_wait_ratio is {self.shared_wait_ratio}; expected a share from 0 to 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResources:
    """Resources for which a stage asks by a profile of its own (stage-level scheduling).

    ``needs`` are those of a task, in words. Of the slots of a configuration it has ``slots_ratio``,
    above 1 if its tasks need less than others. With ``has_own_executors``, they run on executors
    that have no other stages.
    """

    needs: str
    slots_ratio: float
    has_own_executors: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.slots_ratio <= MOST_RATIO:
            raise ValueError(
                f"slots_ratio is {self.slots_ratio}; expected above 0, up to {MOST_RATIO:g}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProfile:
    """One stage of the batch and the costs of its tasks.

    Stages of one ``level`` compete for the slots; levels follow each other. A task takes
    ``task_fixed_s + task_per_row_s * rows + task_per_partition_s * shuffle_partitions`` [s]: the
    last for stages that write for an exchange, a file or buffer for each reader. A task with state
    takes ``task_per_state_row_s`` more for every row of its store, if that could be fitted.
    ``task_noise_ratio`` is the coefficient of variation of tasks of the same batch.
    ``hot_share_ratio`` of the rows go to one task whatever the number of tasks, as the rows of one
    key do; the others are distributed evenly. ``work`` are the operators of the stage in words,
    None if the log does not name them. ``coalescing`` is how adaptive execution merges its shuffle
    partitions; ``num_source_tasks`` is then the usual number of tasks in the profiled runs, and so
    it is with ``source_tasks``, the rule of a source whose tasks follow the cores or the rows.
    ``resources`` are those for which it asks by a resource profile other than the usual one. All
    tasks of a stage with ``is_barrier`` start together, or none; None: they do not.
    """

    name: str
    work: str | None = None
    level: int
    tasks_rule: TasksRule
    num_source_tasks: int | None = None
    coalescing: Coalescing | None = None
    source_tasks: SourceTasks | None = None
    resources: StageResources | None = None
    is_barrier: bool | None = None
    rows: RowsLaw
    task_fixed_s: float
    task_per_row_s: float
    task_per_partition_s: float = 0.0
    task_per_state_row_s: float = 0.0
    task_noise_ratio: float
    hot_share_ratio: float = 0.0
    separation: Separation
    observed: StageObserved | None = None

    def __post_init__(self) -> None:
        if (self.num_source_tasks is None) != (self.tasks_rule == "shuffle"):
            raise ValueError(
                f"stage {self.name}: num_source_tasks belongs to every rule but 'shuffle'"
            )
        if (self.coalescing is None) == (self.tasks_rule == "coalesced"):
            raise ValueError(
                f"stage {self.name}: coalescing belongs to the rule 'coalesced', and to no other"
            )
        if self.source_tasks is not None and self.tasks_rule != "source":
            raise ValueError(f"stage {self.name}: source_tasks belong to the rule 'source' only")
        require_count(MOST_INT, num_source_tasks=self.num_source_tasks)
        if not 0 <= self.hot_share_ratio < 1:
            raise ValueError(
                f"stage {self.name}: hot_share_ratio is {self.hot_share_ratio}; "
                "expected 0 or more, below 1"
            )
        require_not_negative(
            f"stage {self.name}",
            level=self.level,
            task_fixed_s=self.task_fixed_s,
            task_per_row_s=self.task_per_row_s,
            task_per_partition_s=self.task_per_partition_s,
            task_per_state_row_s=self.task_per_state_row_s,
        )
        require_spread(f"stage {self.name}", task_noise_ratio=self.task_noise_ratio)

    @property
    def called(self) -> str:
        """Its name, and what it computes."""
        return stage_called(self.name, self.work)

    def tasks_s(
        self, num_tasks: int, shuffle_partitions: int, state_rows: float, batch_rows: float
    ) -> float:
        """Time of all tasks of a batch together [s]."""
        return (
            num_tasks * (self.task_fixed_s + self.task_per_partition_s * shuffle_partitions)
            + self.task_per_state_row_s * state_rows
            + self.task_per_row_s * self.rows.rows(batch_rows)
        )

    @property
    def reads_source(self) -> bool:
        """Whether the source determines its number of tasks."""
        return self.tasks_rule == "source"

    @property
    def follows_rows(self) -> bool:
        """Whether its number of tasks follows the rows of the batch."""
        rule = self.source_tasks
        return self.coalescing is not None or (rule is not None and rule.follows_rows)

    @property
    def tasks_vary(self) -> bool:
        """Whether its number of tasks follows the rows of the batch or the cores."""
        return self.coalescing is not None or self.source_tasks is not None

    @property
    def is_static(self) -> bool:
        """Whether it reads a static table: the same rows in every batch, whatever the rate."""
        return self.rows.scale == 0.0 and self.rows.static_rows > 0.0

    def num_tasks(self, shuffle_partitions: int) -> int:
        """Tasks of the stage at a number of shuffle partitions, in the profiled runs."""
        return shuffle_partitions if self.num_source_tasks is None else self.num_source_tasks

    def usable_slots(self, num_slots: int) -> int:
        """Slots that its tasks can use, of those of a configuration."""
        # A quotient of whole numbers may fall short of one by its last digit.
        return max(int(num_slots * self.slots_ratio * (1.0 + 1e-12)), 1)

    @property
    def slots_ratio(self) -> float:
        """Slots of its own resources over those of a configuration."""
        return 1.0 if self.resources is None else self.resources.slots_ratio

    def with_fewer_waits(self, idle_ratio: float) -> StageProfile:
        """The stage on a machine of which that share of the slots is not used: theory.md (T10)."""
        wait_ratio = 0.0 if self.observed is None else self.observed.shared_wait_ratio or 0.0
        return self.with_task_times(1.0 - wait_ratio * idle_ratio)

    def with_task_times(self, ratio: float) -> StageProfile:
        """The stage with the times of its tasks multiplied."""
        return replace(
            self,
            task_fixed_s=ratio * self.task_fixed_s,
            task_per_row_s=ratio * self.task_per_row_s,
            task_per_partition_s=ratio * self.task_per_partition_s,
            task_per_state_row_s=ratio * self.task_per_state_row_s,
        )

    def row_makespan_ratio(self, num_tasks: int, num_slots: int) -> float | None:  # noqa: ARG002
        """Makespan of its rows over their time on one slot, if their keys are known."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeWindow:
    """A window of event time [s]; of a session ``size_s`` is the gap that ends it."""

    kind: Literal["tumbling", "sliding", "session"]
    size_s: float
    slide_s: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.size_s < math.inf:
            raise ValueError(f"size_s is {self.size_s}; expected a positive number of seconds")
        if (self.slide_s is None) != (self.kind == "session"):
            raise ValueError(f"slide_s is {self.slide_s}; windows slide, sessions do not")
        if self.slide_s is not None and not 0 < self.slide_s <= self.size_s:
            raise ValueError(f"slide_s is {self.slide_s}; expected more than 0, at most size_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatefulOperator:
    """An operator of a query that keeps state, and how far its watermark is behind the query's.

    ``reads`` are the positions in the chain of the stateful operators whose rows it gets. An
    aggregation has the ``windows`` that it groups by, also those made by one before it; another
    operator those that are made in front of it. ``watermark_behind_s`` is None if the recorded plan
    does not show it. A join holds the watermark of the operators after it back by ``holds_back_s``,
    the longer reach of its range of event time; None of other operators, if it keeps rows for ever,
    or if that is not shown.

    >>> join = StatefulOperator(name="StreamingSymmetricHashJoin")
    >>> join.is_aggregation, join.watermark_behind_s
    (False, 0.0)
    """

    name: str
    reads: tuple[int, ...] = ()
    windows: tuple[EventTimeWindow, ...] = ()
    watermark_behind_s: float | None = 0.0
    holds_back_s: float | None = None

    def __post_init__(self) -> None:
        require_not_negative(
            f"operator {self.name}", watermark_behind_s=self.watermark_behind_s or 0.0
        )

    @property
    def is_aggregation(self) -> bool:
        """Whether it emits a row once the watermark has passed a window."""
        return self.name.endswith("StateStoreSave")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """The parts of a query; what is not recorded is None or empty.

    ``chain`` are its stateful operators, each after those that it reads. ``deals_out_buckets`` says
    whether `headway.ordered` distributes its rows to buckets, ``checkpoint_store`` where its state
    is saved.
    """

    sources: tuple[str, ...]
    sink: str
    output_mode: str | None = None
    stateful_operators: tuple[str, ...] = ()
    state_rows: int = 0
    watermarked: bool = False
    watermark_delay_s: float | None = None
    windows: tuple[EventTimeWindow, ...] = ()
    chain: tuple[StatefulOperator, ...] = ()
    joins: tuple[str, ...] = ()
    python_operators: tuple[str, ...] = ()
    deals_out_buckets: bool = False
    checkpoint_store: CheckpointStore | None = None

    @property
    def keeps_rows(self) -> bool:
        """Whether its state are the rows of two joined streams, each for a time."""
        return set(self.stateful_operators) == {"symmetricHashJoin"}

    @property
    def last_aggregation(self) -> StatefulOperator | None:
        """The stateful operator whose windows the query emits; None if the plan shows none."""
        aggregations = [operator for operator in self.chain if operator.is_aggregation]
        return aggregations[-1] if aggregations else None

    @property
    def emitted_windows(self) -> tuple[EventTimeWindow, ...]:
        """Windows of the last aggregation; without a recorded chain, all windows of the plan."""
        last = self.last_aggregation
        return self.windows if last is None else last.windows

    @property
    def watermark_behind_s(self) -> float | None:
        """How far the watermark of the emitted windows is behind the query's [s]; None: unknown."""
        last = self.last_aggregation
        return 0.0 if last is None else last.watermark_behind_s

    @property
    def windows_wait_s(self) -> float | None:
        """Event time after a window's end from which on it may be emitted [s]; None: unknown.

        The delay of the watermark, and what joins add to it: theory.md (T8).
        """
        if self.watermark_delay_s is None or self.watermark_behind_s is None:
            return None
        return self.watermark_delay_s + self.watermark_behind_s

    def with_windows(self, windows: tuple[EventTimeWindow, ...]) -> QueryShape:
        """The query with other windows in its last aggregation, and no others."""
        last = self.last_aggregation
        chain = tuple(
            replace(operator, windows=windows if operator is last else ())
            for operator in self.chain
        )
        return replace(self, windows=windows, chain=chain)
