"""The package as it is written: each module with its lines and its syntax tree, parsed once."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "headway"


@cache
def modules() -> Mapping[str, ast.Module]:
    """Every module's tree, by its path inside the package."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def num_lines(name: str) -> int:
    """Lines of a module, blank ones and comments too."""
    return len((PACKAGE / name).read_text(encoding="utf-8").splitlines())


def imported(tree: ast.AST) -> Iterator[str]:
    """Names of all modules that are imported anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
