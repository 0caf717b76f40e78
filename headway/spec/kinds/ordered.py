"""Pipelines of operators whose output keeps the order of the input."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

from headway.domain.ordered import (
    Operator,
    OperatorType,
    QueueScheme,
    Reordering,
    ReorderScheme,
    Scheduler,
)
from headway.domain.ordered import OrderedPipeline as Pipeline
from headway.domain.target import Target
from headway.formats.yaml_document import Route
from headway.spec.forms import Reader, entry
from headway.spec.forms.kinds import Choice, ListOf, Nested, Number, whole
from headway.spec.forms.quantities import (
    CORES,
    DURATION,
    DURATION_OR_ZERO,
    DURATION_PER_ROW,
    NAME,
    PARTITIONS,
    RATE,
    is_countable,
)
from headway.spec.kinds.pipelines import EXPONENT, LATENCY_TARGET, PER_ROW, require_modelled
from headway.units import parse_rate_per_s

_MOST_OPERATORS = 200
_SCHEDULER = Choice(get_args(Scheduler))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysEntry:
    """Keys of a partitioned operator."""

    number: int = entry(whole(low=1), "Keys.")
    zipf: float = entry(
        EXPONENT, "Zipf exponent of their frequencies; 0 is uniform. Default 0.", default=0.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorEntry:
    """An operator of an ordered pipeline."""

    name: str = entry(NAME, "What it is called.")
    type: OperatorType = entry(
        Choice(get_args(OperatorType)),
        "`stateless`: any number of workers; `partitioned`: one per partition; `stateful`: one.",
    )
    cost_s: float = entry(DURATION_PER_ROW, "Time of a worker per input tuple.")
    spread_ratio: float = entry(
        Number(words="standard deviation over mean, 0 to 3", high=3.0),
        "Standard deviation of that time over its mean. Default 0.",
        default=0.0,
    )
    selectivity: float = entry(PER_ROW, "Outputs per input tuple. Default 1.", default=1.0)
    after: str | None = entry(
        NAME,
        "The operator whose output it reads, which must be the one above. Default: that one.",
        default=None,
    )
    partitions: int | None = entry(
        PARTITIONS, "Number of partitions; required for a partitioned operator.", default=None
    )
    queue: QueueScheme = entry(
        Choice(get_args(QueueScheme)),
        "How tuples queue before a partitioned operator. Default `hybrid`.",
        default="hybrid",
    )
    keys: KeysEntry | None = entry(
        Nested(KeysEntry), "Keys of a partitioned operator. Default: partitions get equal shares.",
        default=None,
    )  # fmt: skip

    def __post_init__(self) -> None:
        partitioned = self.type == "partitioned"
        if partitioned and self.partitions is None:
            raise ValueError("partitions: missing; expected a number for a partitioned operator")
        if not partitioned and (self.partitions is not None or self.keys is not None):
            key = "keys" if self.partitions is None else "partitions"
            raise ValueError(f"{key}: only of a partitioned operator; leave it out")

    def operator(self) -> Operator:
        """The same as the models take it."""
        keys = self.keys
        return Operator(
            name=self.name,
            type=self.type,
            cost_s=self.cost_s,
            cost_spread_ratio=self.spread_ratio,
            selectivity_ratio=self.selectivity,
            partitions=self.partitions or 1,
            queue=self.queue,
            num_keys=None if keys is None else keys.number,
            exponent=0.0 if keys is None else keys.zipf,
        )


def _tell_no_chain(reader: Reader, route: Route, operators: tuple[OperatorEntry, ...]) -> None:
    """Report operators that do not each read from the one above: from below is a cycle."""
    names = [operator.name for operator in operators]
    for index, operator in enumerate(operators):
        name_above = names[index - 1] if index else None
        if operator.name in names[:index]:
            reader.fault((*route, index, "name"), f"a second operator is called {operator.name!r}")
        if operator.after is not None and operator.after != name_above:
            fault = _not_above(operator.after, names, index)
            reader.fault((*route, index, "after"), f"got {operator.after!r}, {fault}")


def _not_above(after: str, names: list[str], index: int) -> str:
    """The fault of an operator that names another predecessor than the operator above it."""
    expected = (
        f"expected {names[index - 1]!r}, the operator above" if index else "the first has none"
    )
    if after not in names:
        return f"no operator of that name; {expected}"
    if names.index(after) >= index:
        return f"which would make a cycle; {expected}"
    return f"which would make a branch, and only chains are modelled; {expected}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorderingEntry:
    """How outputs are brought back into order, and the times of its steps."""

    scheme: ReorderScheme = entry(
        Choice(get_args(ReorderScheme)), "Default `non-blocking`.", default="non-blocking"
    )
    buffer: int = entry(
        whole(low=1), "Outputs that may wait for earlier ones. Default 64.", default=64
    )
    store_s: float = entry(
        DURATION_OR_ZERO, "Time to store an output. Default 0.1us.", default=1e-7
    )
    send_s: float = entry(
        DURATION_OR_ZERO, "Time to send an output on. Default 0.5us.", default=5e-7
    )
    lock_s: float = entry(
        DURATION_OR_ZERO, "Time to take a lock and give it back. Default 0.1us.", default=1e-7
    )

    def reordering(self) -> Reordering:
        """The same as the models take it."""
        return Reordering(
            scheme=self.scheme,
            num_buffered=self.buffer,
            store_s=self.store_s,
            send_s=self.send_s,
            lock_s=self.lock_s,
        )


_RATE_OR_SATURATED = replace(
    RATE,
    words=f"{RATE.words}; or saturated",
    parse=lambda text: None if text == "saturated" else parse_rate_per_s(text),
    is_valid=lambda rate_per_s: rate_per_s is None or is_countable(rate_per_s),
    examples=(*RATE.examples, "saturated"),
    pattern=f"^saturated$|{RATE.pattern}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedPipeline:
    """Operators that workers share, and whose output keeps the order of the input."""

    workers: int = entry(CORES, "Workers, one per core.")
    slice_s: float = entry(
        DURATION, "How long a worker stays with an operator. Default 1ms.", default=1e-3
    )
    rate_per_s: float | None = entry(
        _RATE_OR_SATURATED, "Input rate; `saturated` is as much as the pipeline can process."
    )
    target: Target | None = entry(LATENCY_TARGET, "Target, e.g. `p99 <= 50ms`.", default=None)
    reorder: ReorderingEntry = entry(
        Nested(ReorderingEntry),
        "How outputs are brought back into order.",
        default=ReorderingEntry(),
    )
    operators: tuple[OperatorEntry, ...] = entry(
        ListOf(
            item=Nested(OperatorEntry), least=1, most=_MOST_OPERATORS, tell_faults=_tell_no_chain
        ),
        "The operators, in the order of flow.",
    )
    compare: tuple[Scheduler, ...] = entry(
        ListOf(item=_SCHEDULER, least=1, most=len(_SCHEDULER.choices), or_one=True),
        "Schedulers to simulate. Default [CT, LP, ET, QST].",
        default=("CT", "LP", "ET", "QST"),
    )

    def __post_init__(self) -> None:
        if len(set(self.compare)) < len(self.compare):
            raise ValueError("compare: a scheduler is given twice; expected each once")
        if self.target is not None:
            require_modelled(self.target, windowed=False)

    def pipeline(self) -> Pipeline:
        """The same as the models take it."""
        return Pipeline(
            operators=tuple(operator.operator() for operator in self.operators),
            num_workers=self.workers,
            slice_s=self.slice_s,
            rate_per_s=self.rate_per_s,
            reordering=self.reorder.reordering(),
            compare=self.compare,
        )
