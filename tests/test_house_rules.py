"""Rules of the house that no linter knows, and by name what breaks them still.

Each list of exceptions holds what breaks its rule and nothing else, and may only become shorter:
mend one, take it off its list, and lower the number beside it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.sources import ROOT, modules, num_lines

MOST_LINES, FEWEST_LINES = 400, 60
MOST_IMPORTS_IN_FUNCTIONS = 200

# Rooms of many things of one kind, where a small thing is a module all the same.
ROOMS_OF_SMALL_THINGS = ("api/", "cli/", "ci/formats/", "emitters/", "spec/kinds/")
NAMES_THAT_SAY_NOTHING = {"common", "helper", "helpers", "misc", "tools", "util", "utils"}

TOO_LONG: set[str] = set()
NUM_TOO_LONG = 0

TOO_SHORT: set[str] = set()
NUM_TOO_SHORT = 0

# Names of variables and parameters that say that something was found, and not what it is.
EMPTY_NAMES = frozenset(
    (
        *("ahead", "alone", "asked", "beside", "each", "every", "found", "given", "had", "here"),
        *("kept", "known", "left", "many", "one", "own", "place", "places", "rest", "seen"),
        *("such", "there", "what"),
    )
)
# Fields and parameters that users or protocols have named so, by room; they only become fewer.
MOST_EMPTY_NAMES = {
    "api": 2,
    "cli": 1,
    "domain": 2,
    "profiler": 3,
    "runtime": 1,
    "tuner": 1,
}

UNITS = (
    *("_s", "_per_s", "_per_hour", "_per_run", "_bytes", "_bytes_per_row", "_rows", "_keys"),
    *("_ratio", "_share", "_probability", "_per_batch", "_per_write", "_per_day"),
    *("_cores", "_queries", "_batches"),
)
# They have no unit and need none: powers, probabilities, correlations.
PURE_NUMBERS = {
    *("autocorrelation", "confidence", "quantile", "scale"),
    *("exponent", "driver_exponent", "rate_exponent"),
    *("minimum", "maximum"),  # of a number of any unit
}
WITHOUT_UNIT = {
    "CatchUp.after",
    "Cluster.executors_mean",
    "Finding.numbers",
    "Interval.high",
    "Interval.low",
    "NearestTarget.numbers",
    "ObservedSetting.rows_per_batch_high",
    "ObservedSetting.rows_per_batch_low",
    "Optimality.relaxed_nodes",
    "Playback.late_ratio_worst_run",
    # Of all units: the names are those of Spark, which has them.
    "StateOperatorProfile.store_metrics",
}
NUM_WITHOUT_UNIT = 11

# Functions of models that are used outside their sub-room, and whose docstring lacks a section.
_NOT_FULLY_DOCUMENTED = {
    "arrays.py": "any_probability open_probability",
    "pipeline/as_published.py": "published_tuple_latency published_window_latency",
    "pipeline/corrected.py": "tuple_latency window_latency",
    "pipeline/parameters.py": "pipeline_loads",
    "simulation/pipeline.py": "simulate_pipeline",
}
NOT_FULLY_DOCUMENTED = {
    f"{name}: {function}"
    for name, functions in _NOT_FULLY_DOCUMENTED.items()
    for function in functions.split()
}
NUM_NOT_FULLY_DOCUMENTED = 8


def holds(found: set[str], exceptions: set[str], most: int, rule: str) -> None:
    """Only the exceptions break the rule; all of them do; there are no more than there were."""
    assert not found - exceptions, f"{rule}: {sorted(found - exceptions)}"
    assert not exceptions - found, (
        f"mended, or renamed: {sorted(exceptions - found)}; take them off the list"
    )
    assert len(exceptions) == most, "a list only becomes shorter: lower the number beside it"


def test_no_module_is_long() -> None:
    found = {name for name in modules() if num_lines(name) > MOST_LINES}
    holds(found, TOO_LONG, NUM_TOO_LONG, f"more than {MOST_LINES} lines; part them by what they do")


def test_no_module_is_too_small_to_be_one() -> None:
    found = {
        name
        for name in modules()
        if num_lines(name) < FEWEST_LINES
        and not name.endswith(("__init__.py", "__main__.py", "version.py"))
        and not name.startswith(ROOMS_OF_SMALL_THINGS)
        and "/" in name  # a floor of its own, however small
    }
    holds(found, TOO_SHORT, NUM_TOO_SHORT, f"less than {FEWEST_LINES} lines; put them where used")


def test_no_module_is_named_after_nothing() -> None:
    words = {name: set(re.split(r"[/_.]", name)) for name in modules()}
    assert not [name for name, found in words.items() if found & NAMES_THAT_SAY_NOTHING]


def test_few_imports_wait_for_a_call() -> None:
    imports = {
        (name, node.lineno)
        for name, tree in modules().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert len(imports) <= MOST_IMPORTS_IN_FUNCTIONS, "only what few calls need, or takes long"


def test_quantities_of_the_domain_carry_their_unit() -> None:
    found = {
        f"{noun}.{field}"
        for noun, field in numbers_of_the_domain()
        if not field.endswith(UNITS) and field not in PURE_NUMBERS
    }
    holds(found, WITHOUT_UNIT, NUM_WITHOUT_UNIT, f"no unit in the name; expected {UNITS}")


def numbers_of_the_domain() -> Iterator[tuple[str, str]]:
    """Classes and their fields that are real numbers; whole ones count what their name says."""
    for name, tree in modules().items():
        for noun in ast.walk(tree) if name.startswith("domain/") else ():
            if not (isinstance(noun, ast.ClassDef) and noun.decorator_list):
                continue
            for field in noun.body:
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and re.search(r"\bfloat\b", ast.unparse(field.annotation))
                ):
                    yield noun.name, field.target.id


def empty_names(tree: ast.AST) -> list[str]:
    """Variables, parameters and fields of a module whose name is empty."""
    names = [
        node.arg if isinstance(node, ast.arg) else node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    ]
    return [name for name in names if name in EMPTY_NAMES]


def test_names_say_what_a_thing_is() -> None:
    where = [f"{name}: {empty}" for name, tree in modules().items() for empty in empty_names(tree)]
    counts = Counter(name.split("/")[0] for name in where)
    assert counts == MOST_EMPTY_NAMES, f"more names say nothing, or fewer than listed: {where}"


def test_an_empty_name_is_found_wherever_it_is_bound() -> None:
    assert empty_names(ast.parse("found = [one for one in rows]")) == ["found", "one"]
    assert empty_names(ast.parse("def plan(asked, *, rate): ...")) == ["asked"]
    assert not empty_names(ast.parse("plan.found = one + rate"))


# What a function returns is in its annotation: a section says what that does not say.
SECTIONS = {
    "parameters": r"^Parameters\n-+$",
    # An equation, its number behind the first sentence, or in the notes such a number, a year of
    # publication, or what else it rests on.
    "source": (
        r"\A[^\n]*\([A-Z]\d+[a-z]?\)|^\*\*\([A-Z]\d+\)\*\* |"
        r"^Notes\n-+\n(.|\n)*?(\([A-Z]\d+[a-z]?\b|\b(19|20)\d\d\b|theory\.md|adr/)"
    ),
    "example": r"^>>> ",
}


def test_models_say_what_they_take_and_give_where_it_is_from_and_an_example() -> None:
    found = {
        f"{name.removeprefix('models/')}: {function.name}"
        for name, tree in modules().items()
        if name.startswith("models/")
        for function in tree.body
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_")
        if lacking_sections(function) and is_used_outside(function.name, name)
    }
    holds(found, NOT_FULLY_DOCUMENTED, NUM_NOT_FULLY_DOCUMENTED, f"expected sections {[*SECTIONS]}")


def is_used_outside(function: str, name: str) -> bool:
    """Whether a function is called in another sub-room than that of its module."""
    room = "/".join(name.split("/")[:2])
    return any(
        function in words_of_module(other)
        for other in modules()
        if not other.startswith(f"{room}/") and other != name
    )


@cache
def words_of_module(name: str) -> frozenset[str]:
    """Every word that stands in a module."""
    return frozenset(re.findall(r"\w+", (ROOT / "headway" / name).read_text(encoding="utf-8")))


def lacking_sections(function: ast.FunctionDef) -> list[str]:
    """Sections that its docstring lacks."""
    docstring = ast.get_docstring(function) or ""
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    takes = [one for one in parameters if not is_a_noun(ast.unparse(one.annotation or one))]
    return [
        section
        for section, pattern in SECTIONS.items()
        if not re.search(pattern, docstring, re.MULTILINE) and (takes or section != "parameters")
    ]


def is_a_noun(annotation: str) -> bool:
    """Whether a parameter is of a class, whose docstring says what it is; not a number or array."""
    return bool(re.fullmatch(r"(?!Array|Numeric)[A-Z]\w+", annotation))


def test_an_exception_that_no_longer_breaks_its_rule_is_reported() -> None:
    holds({"a"}, {"a"}, 1, "no vowels")
    with pytest.raises(AssertionError, match=r"no vowels: \['e'\]"):
        holds({"a", "e"}, {"a"}, 1, "no vowels")
    with pytest.raises(AssertionError, match=r"mended, or renamed: \['a'\]"):
        holds(set(), {"a"}, 1, "no vowels")
    with pytest.raises(AssertionError, match="only becomes shorter"):
        holds({"a", "e"}, {"a", "e"}, 1, "no vowels")


def test_what_needs_shared_data_has_a_stand_in_that_is_committed() -> None:
    files = {*(ROOT / "tests").rglob("*.py")} - {Path(__file__)}
    tests = {path: path.read_text(encoding="utf-8") for path in files}
    places = {
        path.name
        for path, text in tests.items()
        if re.search(r'\b(parents?|ROOT)\b.*/ "shared"', text)
    }
    assert places == {"shared_data.py"}, "tests take what lies beside the checkout from there"
    texts = [re.sub(r'"\s*\n\s*"', "", text) for text in tests.values()]
    stand_ins = [one for text in texts for one in re.findall(r'stand_in="([^":]+)::(\w+)"', text)]
    assert len(stand_ins) > 9
    for name, function in stand_ins:
        assert f"def {function}(" in (ROOT / name).read_text(encoding="utf-8"), function


def test_no_test_passes_without_having_looked() -> None:
    """A random case that has nothing to show is counted with the others, not returned from."""
    silent = [
        f"{path.relative_to(ROOT)}:{end.lineno} {test.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for test in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(test, ast.FunctionDef) and test.name.startswith("test_")
        for end in ends_unasserted(test.body)
    ]
    assert not silent, f"assert before the return, or count the cases that went through: {silent}"


def ends_unasserted(block: list[ast.stmt], asserted: bool = False) -> Iterator[ast.Return]:
    """The returns of a test that are reached before anything was asserted."""
    for statement in block:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        if isinstance(statement, ast.Return) and not asserted:
            yield statement
        for inner in blocks_of(statement):
            yield from ends_unasserted(inner, asserted)
        asserted = asserted or asserts(statement)


def blocks_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks inside a statement: branches, loops, handlers."""
    for inner in ast.iter_child_nodes(statement):
        if isinstance(inner, ast.ExceptHandler | ast.match_case):
            yield inner.body
    for field in ("body", "orelse", "finalbody"):
        yield getattr(statement, field, [])


def asserts(statement: ast.stmt) -> bool:
    """Whether something is asserted whenever a statement is executed."""
    if isinstance(statement, ast.With):
        refuses = any("raises" in ast.unparse(one.context_expr) for one in statement.items)
        return refuses or any(map(asserts, statement.body))
    return isinstance(statement, ast.Assert)


def test_a_return_before_any_assertion_is_found() -> None:
    def found(code: str) -> list[int]:
        return [end.lineno for end in ends_unasserted(ast.parse(code).body)]

    assert found("if a:\n    return\nassert b") == [2]
    assert found("try:\n    b = a()\nexcept Error:\n    return\nassert b") == [4]
    assert found("if a:\n    assert b\n    return\nassert c") == []
    assert found("if a:\n    assert b\nif c:\n    return") == [4]
    assert found("with raises(Error):\n    a()\nif b:\n    return") == []
    assert found("def inner():\n    return 1\nassert inner()") == []


def test_xdist_sees_the_groups_of_tests(request: pytest.FixtureRequest) -> None:
    """It lost them once, in silence: each process then started a Spark of its own."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("only `make tests` has groups")
    assert request.node.nodeid.endswith("@source")


def test_what_is_begun_early_is_there() -> None:
    """A module that moved would begin late again, in silence."""
    conftest = (ROOT / "tests/conftest.py").read_text(encoding="utf-8")
    named = re.findall(r'"(tests/[\w/]+\.py)"', conftest)
    assert len(named) > 9
    assert not [name for name in named if not (ROOT / name).is_file()]
