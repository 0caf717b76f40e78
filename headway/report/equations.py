"""The numbered equations, read from the docstrings of the functions that compute them.

A paragraph of a docstring that begins with ``**(B3)**`` is equation B3. ``docs/theory.md`` is
generated from them, and ``headway explain --equation B3`` shows one.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headway.errors import InputError
from headway.report.columns import width

_PACKAGE = Path(__file__).parents[1]
ROOMS = tuple(_PACKAGE / name for name in ("models", "planner", "profiler", "tuner", "turns"))
_EQUATION = re.compile(r"^\*\*\(([A-Z]\d+)\)\*\* (.*)", re.DOTALL)


class Equation(NamedTuple):
    """A numbered statement, and the function or class whose docstring contains it."""

    number: str
    text: str
    path: Path
    name: str


def equations(rooms: tuple[Path, ...] = ROOMS) -> Iterator[Equation]:
    """Every numbered equation, in the order of modules."""
    for room in rooms:
        for path in sorted(room.rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            for name, docstring in _docstrings(ast.parse(source)) if "**(" in source else ():
                for paragraph in re.sub(r"Notes\n-+\n", "", docstring).split("\n\n"):
                    if match := _EQUATION.match(paragraph):
                        yield Equation(match[1], " ".join(match[2].split()), path, name)


def _docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Name and docstring of each function, class and method."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    yield f"{node.name}.{method.name}", ast.get_docstring(method) or ""


def equation_text(number: str) -> str:
    """An equation and the function that computes it; InputError if there is none of that number.

    >>> print(equation_text("B12"))
    (B12) With at most `N` rows per batch a query keeps up if and only if `λ max(B, a+bN) < N`.
    <BLANKLINE>
    Computed by headway.models.job.capacity.Capacity.limit_findings
    """
    wanted_number = number.strip("() ").upper()
    for equation in equations():
        if equation.number == wanted_number:
            module = ".".join(equation.path.relative_to(_PACKAGE.parent).with_suffix("").parts)
            text = textwrap.fill(f"({equation.number}) {equation.text}", width())
            return f"{text}\n\nComputed by {module}.{equation.name}"
    raise InputError(f"equation {number!r} does not exist; expected a number such as P2 or B3")
