"""Pipelines whose output keeps the order of its input: operators, queues, reordering, workers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from headway.domain.checks import require_count, require_seconds, require_spread
from headway.domain.target import Target
from headway.limits import MOST_CORES, MOST_INT, MOST_PARTITIONS, MOST_RATIO

_MOST_EXPONENT = 10.0


class OperatorType(StrEnum):
    """How many workers an operator may have at a time."""

    STATELESS = "stateless"
    """Any number."""
    PARTITIONED = "partitioned"
    """One for each of its partitions."""
    STATEFUL = "stateful"
    """One."""


class QueueScheme(StrEnum):
    """How tuples wait before a partitioned operator."""

    SHARED = "shared"
    """One queue for all partitions."""
    PARTITIONED = "partitioned"
    """A queue for each partition, whose worker stays with it."""
    HYBRID = "hybrid"
    """A queue for each partition, and one of the partitions that have work, for all workers."""


class ReorderScheme(StrEnum):
    """How outputs are brought back into order."""

    LOCK = "lock"
    NON_BLOCKING = "non-blocking"


class Scheduler(StrEnum):
    """What picks the operator that a worker turns to after its slice."""

    CT = "CT"
    """The operator that has worked off the fewest tuples of the source in the current window."""
    CT_KEEP = "CT keep"
    """The same, but a worker stays with an operator of few workers while it has input."""
    LP = "LP"
    """The last operator that has input."""
    ET = "ET"
    """The one whose input takes the longest to work off."""
    QST = "QST"
    """The first whose output queue is below its limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFrequencies:
    """Keys of which the k-th most frequent has a share in proportion to ``k**-exponent``.

    Examples
    --------
    >>> KeyFrequencies(num_keys=1000, exponent=1.0).num_keys
    1000
    """

    num_keys: int
    exponent: float = 0.0

    def __post_init__(self) -> None:
        require_count(MOST_INT, num_keys=self.num_keys)
        if not 0.0 <= self.exponent <= _MOST_EXPONENT:
            raise ValueError(
                f"exponent is {self.exponent}; expected 0 or more, up to {_MOST_EXPONENT:g}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator.

    Parameters
    ----------
    name : str
        What it is called; different from all others.
    type : OperatorType
        How many workers it may have.
    cost_s : float, > 0
        Mean time of a worker per input tuple. [s]
    cost_spread_ratio : float, >= 0
        Standard deviation of that time over its mean. [-]
    selectivity_ratio : float, > 0
        Outputs per input tuple. [-]
    after : tuple of str
        Operators whose output it reads; the one before it in the list if empty.
    num_partitions : int or None, >= 1
        Partitions of a partitioned operator.
    queue : QueueScheme
        How tuples wait before a partitioned operator.
    keys : KeyFrequencies or None
        Keys that its partitions are made of; None takes all partitions as equally full.
    """

    name: str
    type: OperatorType
    cost_s: float
    cost_spread_ratio: float = 0.0
    selectivity_ratio: float = 1.0
    after: tuple[str, ...] = ()
    num_partitions: int | None = None
    queue: QueueScheme = QueueScheme.HYBRID
    keys: KeyFrequencies | None = None

    def __post_init__(self) -> None:
        where = f"operator {self.name!r}"
        require_seconds(cost_s=self.cost_s)
        require_spread(where, cost_spread_ratio=self.cost_spread_ratio)
        if not 0.0 < self.selectivity_ratio <= MOST_RATIO:
            raise ValueError(
                f"{where}: selectivity is {self.selectivity_ratio:g}; expected more than 0: "
                "an operator without output ends the pipeline, leave out what follows it"
            )
        if (self.type is OperatorType.PARTITIONED) != (self.num_partitions is not None):
            found = "is missing" if self.num_partitions is None else "is for partitioned operators"
            raise ValueError(f"{where}: the number of partitions {found}")
        if self.num_partitions is not None:
            require_count(MOST_PARTITIONS, num_partitions=self.num_partitions)

    @property
    def most_workers(self) -> float:
        """Workers that it may have at a time; infinite for a stateless one."""
        if self.type is OperatorType.STATELESS:
            return math.inf
        return float(self.num_partitions or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reordering:
    """What brings outputs back into order, and what its steps take.

    Parameters
    ----------
    scheme : ReorderScheme
        By a lock, or without.
    num_places : int, >= 1
        Outputs that may wait for earlier ones.
    store_s, send_s, lock_s : float, >= 0
        Time to store an output, to send one on, and to take a lock and give it back. [s]
    """

    scheme: ReorderScheme = ReorderScheme.NON_BLOCKING
    num_places: int = 64
    store_s: float = 0.0
    send_s: float = 0.0
    lock_s: float = 0.0

    def __post_init__(self) -> None:
        require_count(MOST_INT, num_places=self.num_places)
        for name in ("store_s", "send_s", "lock_s"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; expected 0 or more seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedPipeline:
    """Operators that workers share, in the order in which tuples flow through them.

    Parameters
    ----------
    operators : tuple of Operator
        Each reads the output of operators before it, so that tuples flow one way.
    num_workers : int, >= 1
        Workers, one per core.
    slice_s : float, > 0
        How long a worker stays with an operator before it asks the scheduler. [s]
    rate_per_s : float or None, > 0
        Tuples of the source per second; None is as many as the pipeline takes. [tuples/s]
    reordering : Reordering
        How outputs are brought back into order.
    schedulers : tuple of Scheduler
        Those to compare; the first is the one that is in use.
    target : Target or None
        Limit of the latency of a tuple.

    Examples
    --------
    >>> parse = Operator(name="parse", type=OperatorType.STATELESS, cost_s=10e-6)
    >>> top = Operator(name="top", type=OperatorType.STATEFUL, cost_s=4e-6)
    >>> OrderedPipeline(operators=(parse, top), num_workers=2).demands_s
    (1e-05, 4e-06)
    """

    operators: tuple[Operator, ...]
    num_workers: int
    slice_s: float = 1e-3
    rate_per_s: float | None = None
    reordering: Reordering = field(default_factory=Reordering)
    schedulers: tuple[Scheduler, ...] = (Scheduler.CT,)
    target: Target | None = None

    def __post_init__(self) -> None:
        if not self.operators:
            raise ValueError("a pipeline without operators; expected at least one")
        if not self.schedulers or len(set(self.schedulers)) < len(self.schedulers):
            raise ValueError("expected at least one scheduler, and each once")
        require_count(MOST_CORES, num_workers=self.num_workers)
        require_seconds(slice_s=self.slice_s)
        if self.rate_per_s is not None and not 0.0 < self.rate_per_s < math.inf:
            raise ValueError(f"rate_per_s is {self.rate_per_s}; expected more than 0")
        for at, fault in order_faults(self.operators).items():
            raise ValueError(f"operator {self.operators[at].name!r}: {fault}")

    @property
    def inputs_per_tuple(self) -> tuple[float, ...]:
        """Input tuples of each operator per tuple of the source."""
        inputs: list[float] = []
        for at, sources in enumerate(self.sources):
            flow = sum(inputs[one] * self.operators[one].selectivity_ratio for one in sources)
            inputs.append(flow if at else 1.0)
        return tuple(inputs)

    @property
    def demands_s(self) -> tuple[float, ...]:
        """Time of a worker that each operator takes per tuple of the source. [s]"""
        return tuple(
            one.cost_s * inputs
            for one, inputs in zip(self.operators, self.inputs_per_tuple, strict=True)
        )

    @property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        """Places of the operators that each one reads from; none for the first."""
        places = {one.name: at for at, one in enumerate(self.operators)}
        return tuple(
            tuple(places[name] for name in one.after) or ((at - 1,) if at else ())
            for at, one in enumerate(self.operators)
        )

    @property
    def is_chain(self) -> bool:
        """Whether each operator reads from the one before it and from no other."""
        return all(sources == ((at - 1,) if at else ()) for at, sources in enumerate(self.sources))


def order_faults(operators: tuple[Operator, ...]) -> dict[int, str]:
    """What keeps tuples from flowing one way, by the place of the operator.

    A cycle has an operator that reads from one further down, so it is found here.
    """
    faults: dict[int, str] = {}
    above: list[str] = []
    for at, one in enumerate(operators):
        below = [name for name in one.after if name not in above]
        if one.name in above:
            faults[at] = "two operators have this name; expected different names"
        elif one.after and not at:
            faults[at] = "the first operator reads the source; it comes after no other"
        elif below:
            faults[at] = (
                f"comes after {below[0]!r}, which is no operator above it; expected one above, so "
                "that tuples flow one way, without a cycle"
            )
        elif len(set(one.after)) < len(one.after):
            faults[at] = "comes after one operator twice"
        above.append(one.name)
    return faults
