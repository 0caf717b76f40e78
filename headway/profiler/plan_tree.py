"""The operators in the text of a physical plan: names, arguments, and which reads which.

Spark prints a tree whose operators are described in numbered sections below it (since 3.0), or one
with everything on the operator's own line (2.x, and the extended explain).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_HEADING = "== Physical Plan =="
_SECTION = re.compile(r"^\((\d{1,9})\) (?=\S)", re.MULTILINE)
_BRANCH = re.compile(r"[ :]*(?:[+:]- )")
_NODE = re.compile(r"[ :]*(?:[+:]- )?(?:\*(?:\(\d{1,9}\))? ?)?!?([A-Za-z]\w{0,99})(.*)", re.ASCII)
_NUMBER = re.compile(r"\((\d{1,9})\)$")


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
