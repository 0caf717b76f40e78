"""Pipelines whose output keeps the order of their input, and the placement of keys of a job."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from headway.domain.checks import require_count, require_seconds
from headway.domain.plan_parts import PartitionChoice
from headway.domain.result import Result
from headway.lazy_classes import dataclass
from headway.limits import MOST_CORES, MOST_INT, MOST_PARTITIONS, MOST_RATIO, MOST_SPREAD_RATIO

#: How many workers an operator can use: any number, one per partition, one.
OperatorType: TypeAlias = Literal["stateless", "partitioned", "stateful"]
#: How the workers of a partitioned operator get their tuples: from one queue, where a tuple is
#: taken and its partition locked in one step; from a queue for each partition, a worker for each;
#: from a queue for each partition, and one that says which is next.
QueueScheme: TypeAlias = Literal["shared", "partitioned", "hybrid"]
#: How outputs of several workers are put in order.
ReorderScheme: TypeAlias = Literal["lock", "non-blocking"]
#: Which operator a free worker takes: the one with the lowest throughput in the current window; the
#: same, but a worker stays on an operator of few workers while it has a slice of input; the same as
#: CT, with the divisor that the paper prints; the last that has input; the one whose input would
#: take longest; the first whose output queue is below its limit.
Scheduler: TypeAlias = Literal["CT", "CT keep", "CT as printed", "LP", "ET", "QST"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator of a pipeline: the cost of a tuple, and its outputs.

    ``selectivity_ratio`` is outputs per input; ``cost_spread_ratio`` the coefficient of variation.
    Only a partitioned operator has partitions, queue and keys: the k-th most frequent of
    ``num_keys`` has a share in proportion to ``k ** -exponent``. If it is None, the partitions get
    even shares.
    """

    name: str
    type: OperatorType
    cost_s: float
    selectivity_ratio: float = 1.0
    cost_spread_ratio: float = 0.0
    partitions: int = 100
    queue: QueueScheme = "hybrid"
    num_keys: int | None = None
    exponent: float = 0.0

    def __post_init__(self) -> None:
        require_seconds(cost_s=self.cost_s)
        if not 0 < self.selectivity_ratio <= MOST_RATIO:
            raise ValueError(
                f"selectivity_ratio is {self.selectivity_ratio}; expected more than 0, since "
                "nothing would reach the next operator"
            )
        if not 0 <= self.cost_spread_ratio <= MOST_SPREAD_RATIO:
            raise ValueError(
                f"cost_spread_ratio is {self.cost_spread_ratio}; expected 0 to "
                f"{MOST_SPREAD_RATIO:g}"
            )
        require_count(MOST_PARTITIONS, partitions=self.partitions)
        require_count(MOST_INT, num_keys=self.num_keys)
        if not 0 <= self.exponent <= 10:
            raise ValueError(f"exponent is {self.exponent}; expected 0 (all alike) to 10")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reordering:
    """How outputs are put in order, and what that costs.

    ``store_s`` is the time to put an output into the buffer, ``send_s`` that to send it to the next
    operator, ``lock_s`` that to take the lock.
    """

    scheme: ReorderScheme = "non-blocking"
    num_buffered: int = 64
    store_s: float = 1e-7
    send_s: float = 5e-7
    lock_s: float = 1e-7

    def __post_init__(self) -> None:
        require_count(MOST_INT, num_buffered=self.num_buffered)
        for name in ("store_s", "send_s", "lock_s"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; expected 0 or more seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedPipeline:
    """A chain of operators on workers of one machine, with its output in the order of its input.

    ``rate_per_s`` is None if the source always has tuples. ``compare`` are the schedulers to
    simulate.

    >>> parse = Operator(name="parse", type="stateless", cost_s=1e-5)
    >>> OrderedPipeline(num_workers=4, operators=(parse,)).slice_s
    0.001
    """

    num_workers: int
    operators: tuple[Operator, ...]
    slice_s: float = 1e-3
    rate_per_s: float | None = None
    reordering: Reordering = field(default_factory=Reordering)
    compare: tuple[Scheduler, ...] = ("CT", "LP", "ET", "QST")

    def __post_init__(self) -> None:
        require_count(MOST_CORES, num_workers=self.num_workers)
        require_seconds(slice_s=self.slice_s)
        if self.rate_per_s is not None and not 0 < self.rate_per_s < math.inf:
            raise ValueError(f"rate_per_s is {self.rate_per_s}; expected more than 0, or None")
        if not self.operators:
            raise ValueError("a pipeline needs at least one operator")
        names = [operator.name for operator in self.operators]
        if len(set(names)) < len(names):
            raise ValueError("the operators of a pipeline have different names")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCounts:
    """Keys of a job, heaviest first, and the rows of each.

    ``kind`` is Spark's type of the key column: "string", "int" or "long". ``other_rows`` are rows
    of keys that are not listed.
    """

    keys: tuple[str | int, ...]
    num_rows: tuple[float, ...]
    kind: str = "string"
    other_rows: float = 0.0

    def __post_init__(self) -> None:
        if not self.keys or len(self.keys) != len(self.num_rows):
            raise ValueError("need at least one key, and a number of rows for each")
        if not min(self.num_rows) > 0 or not 0 <= self.other_rows < math.inf:
            raise ValueError("rows of keys must be above 0, and other_rows at least 0")
        if sorted(self.num_rows, reverse=True) != list(self.num_rows):
            raise ValueError("keys must be listed heaviest first")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPlacement:
    """Buckets of the heaviest keys, chosen so that the load of the partitions is even.

    A row of ``keys[i]`` goes to bucket ``buckets[i]``, a row of any other key to
    ``spread_ids[pmod(xxhash64(key), len(spread_ids))]``; both are integers whose hash is in the
    intended partition. ``key_share`` are the placed keys' shares of the rows.
    """

    keys: tuple[str | int, ...]
    key_share: tuple[float, ...]
    buckets: tuple[int, ...]
    spread_ids: tuple[int, ...]
    choice: PartitionChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTimeSlots:
    """Tasks of each stage with which the slots of Real-Time Mode carry the most rows."""

    stages: tuple[str, ...]
    num_tasks: tuple[int, ...]
    rate_per_s: float
    one_number_rate_per_s: float
    bound_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OrderedPlan(Result):
    """Number of partitions, placement of keys and limits of a stage that keeps rows in order.

    ``serial_s`` is the time that the rows of the hottest key take per batch: no number of
    partitions makes the stage faster. ``num_keys`` are those of the file; ``known_share`` is their
    share of all rows. ``num_map_tasks`` combine rows of a key before the stage, as aggregations do;
    shares then refer to the combined rows, and 0 tasks combine nothing. ``stage_work`` says what
    the stages of the query compute, as far as it is known.
    """

    result_kind = "keys"
    stage: str
    stage_work: Mapping[str, str] = field(default_factory=dict)
    rate_per_s: float
    trigger_s: float
    batch_rows: float = field(metadata={"key": "stage_rows"})
    num_slots: int = field(metadata={"key": "slots"})
    task_fixed_s: float
    task_per_row_s: float
    num_keys: int = field(metadata={"key": "keys"})
    known_share: float
    num_map_tasks: int = field(metadata={"key": "combining_tasks"})
    hottest_key: str | int = field(metadata={"key": "hottest.key"})
    hottest_share: float = field(metadata={"key": "hottest.share"})
    serial_s: float = field(
        metadata={"key": "hottest.needs_s", "then": {"hottest.keeps_up": "keeps_up"}}
    )
    today: PartitionChoice = field(metadata={"key": None})
    choices: tuple[PartitionChoice, ...] = field(metadata={"key": None})
    best: PartitionChoice = field(metadata={"key": None})
    placed: KeyPlacement = field(metadata={"key": None})
    real_time: RealTimeSlots | None = field(metadata={"key": None})

    @property
    def keeps_up(self) -> bool:
        return self.trigger_s == 0.0 or self.serial_s < self.trigger_s
