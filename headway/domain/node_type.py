"""What can be bought: a kind of node, with its size and cost."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal, TypeAlias, get_args

from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.limits import MOST_CORES, MOST_LONG
from headway.units import parse_size_bytes, spark_memory_text

#: What runs Spark, and keeps part of each node for itself.
Platform: TypeAlias = Literal[
    "kubernetes", "databricks", "emr", "emr-eks", "emr-serverless", "dataproc", "yarn", "standalone"
]
#: Their names.
PLATFORMS: tuple[Platform, ...] = get_args(Platform)
#: Quantity that a plan minimises.
Objective: TypeAlias = Literal["nodes", "cost", "latency"]
_EXAMPLE = "e.g. m6i.xlarge:cores=4,memory=14g,price=0.192"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """A kind of node, by the provider's name, with what Spark may use of it.

    ``memory_bytes`` is for Spark's containers; None is not checked. ``price_per_hour`` is in any
    ``currency``, which is empty if unknown; None is an unknown price. ``core_speed_ratio`` is
    relative to the profiled cores. If ``executors_per_node`` is None, the planner fills the node
    with executors like the profiled ones. Besides ``cores`` and ``memory_bytes`` the node has
    ``reserved_cores`` and ``reserved_memory_bytes`` for the system; ``reserved_by`` says by whom.

    >>> NodeType(name="m6i.xlarge", cores=4, memory_bytes=14 * 2**30, price_per_hour=0.192).cores
    4
    """

    name: str
    cores: int
    memory_bytes: int | None = None
    price_per_hour: float | None = None
    core_speed_ratio: float = field(default=1.0, metadata={"key": "relative_core_speed"})
    executors_per_node: int | None = None
    reserved_cores: int = 0
    reserved_memory_bytes: int = 0
    reserved_by: str | None = None
    currency: str = ""

    def cost_per_hour(self, nodes: int) -> float | None:
        """Price of a number of nodes for an hour; None if unknown."""
        return None if self.price_per_hour is None else nodes * self.price_per_hour

    @property
    def reserve_text(self) -> str | None:
        """The reserved part of the node, in words; None if nothing is reserved.

        >>> NodeType(name="n", cores=3, reserved_cores=1, reserved_by="kubernetes").reserve_text
        '1 of 4 cores of n is left to the system (kubernetes)'
        """
        parts = []
        if self.reserved_cores:
            total = self.cores + self.reserved_cores
            parts.append(f"{self.reserved_cores} of {total} cores")
        if self.reserved_memory_bytes and self.memory_bytes is not None:
            reserved_text = spark_memory_text(self.reserved_memory_bytes)
            total_text = spark_memory_text(self.memory_bytes + self.reserved_memory_bytes)
            parts.append(f"{reserved_text} of {total_text}")
        if not parts:
            return None
        verb = "is" if len(parts) == 1 and self.reserved_cores <= 1 else "are"
        by = "" if self.reserved_by is None else f" ({self.reserved_by})"
        return f"{' and '.join(parts)} of {self.name} {verb} left to the system{by}"

    @classmethod
    def parse(cls, text: str) -> NodeType:
        """Read a node type as written on the command line; an InputError if it is not possible.

        >>> NodeType.parse("m6i.xlarge:cores=4,memory=14g,price=0.192").price_per_hour
        0.192
        """
        name, colon, figures_text = text.partition(":")
        where = f"node type {name.strip()!r}"
        if not colon:
            raise InputError(f"{where} is not known; describe it, {_EXAMPLE}")
        fields: dict[str, object] = {}
        for part in filter(None, (figure_text.strip() for figure_text in figures_text.split(","))):
            key, _, value = (side.strip() for side in part.partition("="))
            if key not in _FIELDS:
                key_names = ", ".join(_FIELDS)
                raise InputError(f"{where}: {part!r} is not one of {key_names}; {_EXAMPLE}")
            field, read = _FIELDS[key]
            if field in fields:
                raise InputError(f"{where}: {key} is given twice")
            try:
                fields[field] = read(value)
            except (ValueError, InputError) as error:
                why = str(error) if isinstance(error, InputError) else f"{value!r} is no number"
                raise InputError(f"{where}: {key}: {why}") from None
        if "cores" not in fields:
            raise InputError(f"{where}: cores are missing; {_EXAMPLE}")
        try:
            return cls(name=name.strip(), **fields)  # type: ignore[arg-type]  # read field by field
        except ValueError as error:
            raise InputError(str(error)) from None

    def __post_init__(self) -> None:
        where = f"node type {self.name!r}"
        if not self.name.strip():
            raise ValueError("a node type has no name")
        if not 1 <= self.cores <= MOST_CORES:
            raise ValueError(
                f"{where}: cores is {self.cores}; expected at least 1 and at most {MOST_CORES:,}"
            )
        if self.memory_bytes is not None and not 1 <= self.memory_bytes <= MOST_LONG:
            fault = f"{where}: memory is {self.memory_bytes}; expected a positive size below 8 EiB"
            raise ValueError(fault)
        if self.price_per_hour is not None and not 0 < self.price_per_hour < math.inf:
            raise ValueError(
                f"{where}: price is {self.price_per_hour:g}; expected more than 0 per hour, "
                "or no price at all"
            )
        if not 0 < self.core_speed_ratio < math.inf:
            raise ValueError(
                f"{where}: core speed is {self.core_speed_ratio:g}; expected more than 0, "
                "1 being the profiled cores"
            )
        if self.executors_per_node is not None and not 1 <= self.executors_per_node <= self.cores:
            raise ValueError(
                f"{where}: {self.executors_per_node} executors per node of {self.cores} cores; "
                "expected at least 1, and a core for each"
            )


def currency_of(node_type: NodeType | None) -> str:
    """The currency of the price of a node type; empty if it is unknown."""
    return "" if node_type is None else node_type.currency


def _whole(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", text):
        raise InputError(f"{text!r} is no whole number")
    return int(text)


_FIELDS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "cores": ("cores", _whole),
    "memory": ("memory_bytes", parse_size_bytes),
    "price": ("price_per_hour", float),
    "speed": ("core_speed_ratio", float),
    "executors": ("executors_per_node", _whole),
}
