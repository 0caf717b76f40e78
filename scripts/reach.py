"""``docs/models.md``: every model, and the commands that ask it; what none asks has a reason.

Followed in the text of the package: a command reaches the modules that it imports, at the top or
inside functions, and they theirs; a function of a model is asked where its name stands in a module
outside of ``models``, or in a function of a model that is asked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_MODELS = "headway.models."
_GATE = "the gate between queries of one application"
_JUDGE = "nothing: its inverse, or the law that it is a part of, is judged by it"
_REPRODUCED = "nothing: benchmarks reproduce the figures of papers with it"

#: What no command asks yet, by module or function below ``models``, and what will ask it. Whoever
#: wires one takes it off; a test holds the list to the code.
WAITING: Mapping[str, str] = {
    "stages.shared_resources.alternating_slowdown": _JUDGE,
    "simulation.real_time": _JUDGE,
    "ordered.queues.gaussian_shares": _REPRODUCED,
    "simulation.ordered_reordering": _REPRODUCED,
    "stages.skew.max_load_bound": _JUDGE,
    "scheduling.d_over": _GATE,
    "scheduling.memory.rows_removed": _GATE,
    "scheduling.order.slack_s": _GATE,
    "scheduling.progress": _GATE,
    "scheduling.punctual": _GATE,
    "scheduling.stagger.never_collide": _GATE,
    "scheduling.stagger.can_be_apart": _GATE,
    "scheduling.subset": _GATE,
    "simulation.operator_scheduling": _REPRODUCED,
    "simulation.tuple_scheduling": _REPRODUCED,
    "laws.uniform_mixture.uniform_mixture_cdf": _JUDGE,
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
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value.split(":")[0])
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
        one.id if isinstance(one, ast.Name) else one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Name | ast.Attribute)
    }


def models() -> list[str]:
    """Modules of models."""
    return [name for name in trees() if name.startswith(_MODELS) and definitions(name)]


@cache
def asked() -> frozenset[tuple[str, str]]:
    """Functions and classes of models that code outside of the models leads to."""
    outside = set()
    for module, tree in trees().items():
        if not module.startswith(_MODELS):
            outside |= {
                (source, name)
                for source in imported(module)
                if source.startswith(_MODELS)
                for name in names_in(tree)
            }
    found: set[tuple[str, str]] = set()
    ahead = [one for one in outside if one[1] in definitions(one[0])]
    while ahead:
        here = ahead.pop()
        if here in found:
            continue
        found.add(here)
        module, name = here
        loose = [node for node in trees()[module].body if name not in definitions(module)]
        used = names_in(definitions(module)[name]).union(*map(names_in, loose))
        ahead += [
            (source, one)
            for source in {module, *imported(module)}
            if source.startswith(_MODELS)
            for one in used & set(definitions(source))
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
    from headway.cli.main import _COMMANDS

    return {
        name: {one for one in reached(module) if one.startswith(_MODELS)}
        for name, (module, _) in _COMMANDS.items()
    }


def models_page() -> str:
    """The page of all models."""
    by_command = commands()
    lines = [
        "# Models",
        "",
        "Every function of `headway/models` and the commands that reach its module, made of the",
        "code by `scripts/refresh_docs.py`. What no command asks yet waits for what is named;",
        "nothing else stands on the shelf (`tests/test_models_asked.py`). Equations:",
        "[theory.md](theory.md).",
        "",
        "| module | functions | commands |",
        "|---|---|---|",
    ]
    waiting = set(unasked())
    for module in models():
        short = module.removeprefix(_MODELS)
        public = [
            f"`{name}`" + ("*" if f"{short}.{name}" in waiting else "")
            for name, node in definitions(module).items()
            if isinstance(node, ast.FunctionDef) and not name.startswith("_")
        ]
        if not public:
            continue
        asked_by = [name for name, found in by_command.items() if module in found]
        why = WAITING.get(short)
        lines.append(
            f"| `{short}` | {' '.join(public)} | {f'waits: {why}' if why else ' '.join(asked_by)} |"
        )
    lines += ["", "\\* waits:", ""]
    lines += [f"* `{name}`: {why}" for name, why in WAITING.items() if name in waiting]
    return "\n".join([*lines, ""])
