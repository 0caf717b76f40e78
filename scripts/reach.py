"""``docs/models.md``: every model, and the commands and calls that ask it.

Followed in the text of the package: a command or a call reaches the modules that it imports, at the
top or inside functions, and they theirs; a function of a model is asked where its name stands in a
module outside of ``models``, or in a function of a model that is asked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_MODELS = "headway.models."

#: One side of a law whose other side is asked, by the same code: tests and benchmarks hold the two
#: against each other. A test holds the list to the code.
OTHER_SIDES: Mapping[str, str] = {
    "stages.shared_resources.alternating_slowdown": (
        "threads that rest after their work; asked are those whose work comes by the clock"
    ),
}


@cache
def trees() -> Mapping[str, ast.Module]:
    """Every module of the package, parsed, by its dotted name."""
    found = {}
    for path in sorted((ROOT / "headway").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


@cache
def imported(module: str) -> frozenset[str]:
    """Modules that a module imports, or names in a text: rooms load theirs when they are used."""
    found = set()
    for node in ast.walk(trees()[module]):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            named = node.value.split(":")[0]  # "headway" alone is the name of the program
            found |= {named, named.rpartition(".")[0]} - {"headway"}
    # What a result does by itself, in a notebook, is no command's.
    return frozenset(found & set(trees()) - {"headway.api.results"})


def reached(start: str) -> set[str]:
    """Modules that a module leads to."""
    seen: set[str] = set()
    ahead = [start]
    while ahead:
        here = ahead.pop()
        if here not in seen:
            seen.add(here)
            ahead += imported(here) - {start}
    return seen


@cache
def definitions(module: str) -> Mapping[str, ast.FunctionDef | ast.ClassDef]:
    """Functions and classes of a module, by their names."""
    return {
        node.name: node
        for node in trees()[module].body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def names_in(node: ast.AST) -> set[str]:
    """Names that are read in a piece of code."""
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


@cache
def names_of_module(module: str) -> frozenset[str]:
    """Names that are read anywhere in a module."""
    return frozenset(names_in(trees()[module]))


@cache
def names_outside_definitions(module: str) -> frozenset[str]:
    """Names that a module reads beside its functions and classes."""
    defined = set(definitions(module).values())
    return frozenset().union(
        *(names_in(node) for node in trees()[module].body if node not in defined)
    )


def models() -> list[str]:
    """Modules of models."""
    return [name for name in trees() if name.startswith(_MODELS) and definitions(name)]


@cache
def asked() -> frozenset[tuple[str, str]]:
    """Functions and classes of models that code outside of the models leads to."""
    outside = set()
    for module in trees():
        if not module.startswith(_MODELS):
            outside |= {
                (source, name)
                for source in imported(module)
                if source.startswith(_MODELS)
                for name in names_of_module(module) & definitions(source).keys()
            }
    found: set[tuple[str, str]] = set()
    ahead = [*outside]
    while ahead:
        here = ahead.pop()
        if here in found:
            continue
        found.add(here)
        module, name = here
        used = names_in(definitions(module)[name]) | names_outside_definitions(module)
        ahead += [
            (source, function)
            for source in {module, *imported(module)}
            if source.startswith(_MODELS)
            for function in used & definitions(source).keys()
        ]
    return frozenset(found)


def unasked() -> Iterator[str]:
    """Public functions of models that nothing asks, below ``models``."""
    for module in models():
        for name, node in definitions(module).items():
            is_function = isinstance(node, ast.FunctionDef)
            if is_function and not name.startswith("_") and (module, name) not in asked():
                yield f"{module.removeprefix(_MODELS)}.{name}"


def commands() -> Mapping[str, set[str]]:
    """The models that each command reaches."""
    from headway.cli.overview import COMMANDS

    return {name: _models_of(f"headway.cli.{name}") for name in COMMANDS}


def calls() -> Mapping[str, set[str]]:
    """The models that each call of the library reaches."""
    from headway import _HOMES

    return {
        f"headway.{name}": _models_of(home)
        for home, names in _HOMES.items()
        for name in names.split()
    }


def _models_of(module: str) -> set[str]:
    return {name for name in reached(module) if name.startswith(_MODELS)}


def models_page() -> str:
    """The page of all models."""
    by_command, by_call = commands(), calls()
    lines = [
        "# Models",
        "",
        "The functions that compute the answers, and the commands that use them, or the calls",
        "of the library where no command does. Their equations are in the [theory](theory.md);",
        "`headway explain --equation` prints one:",
        "",
        "```console\n$ headway explain --equation M1\n```",
        "",
        "| module | functions | commands and calls |",
        "|---|---|---|",
    ]
    sides = set(unasked())
    for module in models():
        short = module.removeprefix(_MODELS)
        public = [
            f"`{name}`" + ("*" if f"{short}.{name}" in sides else "")
            for name, node in definitions(module).items()
            if isinstance(node, ast.FunctionDef) and not name.startswith("_")
        ]
        if not public:
            continue
        asked_by = [name for name, found in by_command.items() if module in found]
        asked_by = asked_by or [f"`{name}`" for name, found in by_call.items() if module in found]
        lines.append(f"| `{short}` | {' '.join(public)} | {' '.join(asked_by)} |")
    lines += ["", "\\* the other side of a function that is used:", ""]
    lines += [f"* `{name}`: {why}" for name, why in OTHER_SIDES.items()]
    return "\n".join([*lines, ""])
