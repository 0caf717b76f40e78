"""Operators of a physical plan: as Spark's events list them, and as its text prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
from msgspec import field

from headway.redaction import redact

_PATH = re.compile(r"\[(?P<first>[^,\]]+)")
# Files, the folders of a partition, and the scheme of an address.
_NO_TABLE = re.compile(r"\.\w{1,10}$|=|:$")

AccumulatorId = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Outline: TypeAlias = tuple[tuple[str, str, tuple[int, ...]], ...]
"""Names of operators in pre-order, where their files are, and the positions of their children.

Batches of a query have the same, although their plans differ in versions and accumulators.
"""
_HEADING = "== Physical Plan =="
_SECTION = re.compile(r"^\((\d{1,9})\) (?=\S)", re.MULTILINE)
_BRANCH = re.compile(r"[ :]*(?:[+:]- )")
_NODE = re.compile(r"[ :]*(?:[+:]- )?(?:\*(?:\(\d{1,9}\))? ?)?!?([A-Za-z]\w{0,99})(.*)", re.ASCII)
_NUMBER = re.compile(r"\((\d{1,9})\)$")


class PlanMetric(msgspec.Struct, gc=False):
    name: str | None = None
    accumulator_id: AccumulatorId | None = field(default=None, name="accumulatorId")


class PlanNode(msgspec.Struct, gc=False):
    """An operator and those below it; ``metadata`` are Spark's notes about a scan of files."""

    name: str | None = field(default=None, name="nodeName")
    metadata: dict[str, Any] | None = None
    metrics: list[PlanMetric | None] | None = None
    children: list[PlanNode | None] | None = None


PlacedNode: TypeAlias = tuple[PlanNode, list[int]]  # and the positions of its children


_decode = msgspec.json.Decoder(PlanNode).decode


def plan_of(text: msgspec.Raw | None) -> PlanNode | None:
    """The operators of a plan; None if they are of a form that no Spark is known to write."""
    try:
        return _decode(text) if text else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def in_pre_order(plan: PlanNode) -> list[PlacedNode]:
    """The operators of a plan, each before those below it."""
    nodes = list[PlacedNode]()
    waiting: list[tuple[PlanNode, list[int]]] = [(plan, [])]
    while waiting:
        node, siblings = waiting.pop()
        siblings.append(len(nodes))
        positions: list[int] = []
        nodes.append((node, positions))
        children = reversed(node.children or ())
        waiting += [(child, positions) for child in children if child is not None]
    return nodes


def outline_of(nodes: list[PlacedNode]) -> Outline:
    """What batches with the same plan have in common."""
    return tuple(
        (node.name or "", str((node.metadata or {}).get("Location", "")), tuple(children))
        for node, children in nodes
    )


def tables_read(outline: Outline) -> list[frozenset[str]]:
    """The tables that each operator and those below it read.

    Below a scan of a table are queries that tell which of its partitions to leave out.

    >>> days = PlanNode(name="Scan parquet shop.days")
    >>> sales = PlanNode(name="Scan parquet shop.sales", children=[days])
    >>> plan = PlanNode(name="BroadcastHashJoin", children=[sales, days])
    >>> [sorted(tables) for tables in tables_read(outline_of(in_pre_order(plan)))]
    [['days', 'sales'], ['sales'], ['days'], ['days']]
    """
    tables = [frozenset[str]() for _ in outline]
    for position, (name, location, children) in reversed(list(enumerate(outline))):
        table = table_of(name, location)
        below = [tables[child] for child in children] if table is None else [frozenset({table})]
        tables[position] = frozenset[str]().union(*below)
    return tables


def is_scan(name: str) -> bool:
    """Whether an operator of a name reads a source or a table."""
    return name.split(" ", 1)[0].endswith("Scan")


def is_join(name: str) -> bool:
    return name.endswith("Join") or name == "CartesianProduct"


def table_of(name: str, location: str = "") -> str | None:
    """The table that a scan reads: its name in the catalogue, or the last folder of its files.

    >>> table_of("Scan parquet spark_catalog.shop.products")
    'products'
    """
    name = name.strip()
    if not is_scan(name):
        return None
    words = name.split()
    if words[0] == "Scan" and len(words) > 2:
        return redact(words[-1].rpartition(".")[2])
    path = _PATH.search(location)
    folder = last_folder(path["first"]) if path else None
    return None if folder is None else redact(folder)


def last_folder(path: str) -> str | None:
    """The last folder of a path that is no partition and no file; None if there are not two.

    >>> last_folder("s3://shop/orders/day=7"), last_folder("orders")
    ('orders', None)
    """
    folders = [part for part in path.split("/") if part and not _NO_TABLE.search(part)]
    return folders[-1] if len(folders) > 1 else None


class PrintedOperator(NamedTuple):
    """An operator of a plan as printed; those that it reads are printed below it, indented."""

    name: str
    detail: str
    """Rest of its line in the tree, then its numbered section."""
    indentation: int = 0

    @property
    def arguments(self) -> str:
        """What Spark prints as its arguments; all of its line if it has no section."""
        _, marker, after = self.detail.partition("\nArguments: ")
        return (after.split("\n", 1)[0] if marker else self.detail).strip()


def printed_operators(text: str) -> list[PrintedOperator]:
    """The operators from the sink down to the sources; empty for other text."""
    _, heading, plan = text.rpartition(_HEADING + "\n")
    if not heading:
        return []
    tree, _, details = plan.lstrip("\n").partition("\n\n")
    numbers_and_bodies = _SECTION.split(details)[1:]
    bodies = zip(numbers_and_bodies[::2], numbers_and_bodies[1::2], strict=True)
    sections = dict(reversed(list(bodies)))
    operators = []
    for name, line, indentation in _nodes(tree):
        number = _NUMBER.search(line)
        section = sections.get(number[1]) if number else None
        detail = line if section is None else f"\n{line}\n{section}"
        operators.append(PrintedOperator(name, detail, indentation))
    return operators


def _nodes(tree: str) -> Iterator[tuple[str, str, int]]:
    """Name of each operator of a tree, the rest of its line, and its indentation."""
    name, parts, indentation = "", list[str](), 0
    expects_root, skipped_depth = True, None
    for line in tree.split("\n"):
        if line.startswith("== "):
            break
        branch = _BRANCH.match(line)
        depth = branch.end() if branch else len(line) - len(line.lstrip(" :"))
        if skipped_depth is not None and depth >= skipped_depth:
            continue
        skipped_depth = None
        if line.endswith("== Initial Plan =="):
            # Below it is the initial plan, which was replaced by the final one above it.
            skipped_depth = depth
        elif line.endswith((" == Final Plan ==", " == Current Plan ==")):
            expects_root = True
        elif (branch or expects_root) and (node := _NODE.match(line)):
            if name:
                yield name, " ".join(parts).rstrip(), indentation
            name, parts, indentation = node[1], [node[2]], depth
            expects_root = False
        else:
            parts.append(line)  # a literal of the query contains a line break
    if name:
        yield name, " ".join(parts).rstrip(), indentation


def readers(indentations: Sequence[int]) -> list[int | None]:
    """Position of the operator that reads each printed one; None for that next to the sink.

    >>> readers([0, 3, 6, 3])
    [None, 0, 1, 0]
    """
    above = list[int]()
    positions = list[int | None]()
    for position, indentation in enumerate(indentations):
        while above and indentations[above[-1]] >= indentation:
            above.pop()
        positions.append(above[-1] if above else None)
        above.append(position)
    return positions
