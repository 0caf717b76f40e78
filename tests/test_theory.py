"""Equations stand where they are computed, once each; page, references and symbols follow them."""

from __future__ import annotations

import ast
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.cli.main import run
from headway.report.equations import ROOMS, equations
from tests.sources import modules

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
EQUATIONS = list(equations((*ROOMS, ROOT / "tests" / "oracles")))
NUMBERS = [one.number for one in EQUATIONS]

# What stands in formulas and is no symbol.
NAMES = {
    *("E", "Murmur", "P", "Poisson", "Var", "and", "arctan", "clip", "cv", "det", "else", "exp"),
    *("gcd", "if", "iff", "inf", "is", "ln", "log", "max", "min", "mod", "pmod", "sqrt", "tr"),
    *("active", "after", "first", "from", "input", "key", "later", "load", "model", "rows"),
    *("span", "start", "of", "mean"),
}


def test_each_equation_stands_in_one_place_and_on_the_page() -> None:
    from equations import PLACE, TEMPLATE  # type: ignore[import-not-found]

    places = PLACE.findall(TEMPLATE.read_text(encoding="utf-8"))
    assert sorted(NUMBERS) == sorted(set(NUMBERS)), "an equation stands twice"
    assert sorted(places) == sorted(set(places)), "a place stands twice"
    assert set(places) - set(NUMBERS) == set(), "no docstring holds it"
    assert set(NUMBERS) - set(places) == set(), "no place in docs/theory.in.md"


def test_the_page_is_fresh() -> None:
    from equations import theory_page

    page = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    assert page == theory_page(), "run scripts/refresh_docs.py"


def referred() -> Iterator[tuple[str, str]]:
    """Module and number of each reference to an equation, in docstrings and in what is printed."""
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for number in re.findall(r"\(([A-Z]\d{1,2})[a-z]?\)", node.value):
                    yield module, number


def test_each_reference_is_to_an_equation_that_stands() -> None:
    assert not {(module, number) for module, number in referred() if number not in NUMBERS}


def symbols(text: str) -> Iterator[str]:
    """The symbols of the formulas of a statement, without accents and indices."""
    for span in re.findall(r"`([^`]+)`", text):
        if re.fullmatch(
            r"[A-Za-z]{3,}_\w+|\w*_\w{3,}|spark\..*|[A-Za-z]{4,}(\(\))?|\S*\.(py|md)", span
        ):
            continue  # a name of the code, a file
        for found in re.findall(r"[A-Za-zα-ωΑ-Ω]+(?:_\w+)?", without_accents(span)):
            yield found.split("_")[0]


def without_accents(text: str) -> str:
    apart = unicodedata.normalize("NFD", text)
    return "".join(one for one in apart if not unicodedata.combining(one))


def test_each_symbol_stands_in_the_nomenclature() -> None:
    page = (ROOT / "docs" / "nomenclature.md").read_text(encoding="utf-8")
    column = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    known = NAMES | set(re.findall(r"[A-Za-zα-ωΑ-Ω]+", without_accents(" ".join(column))))

    def is_known(symbol: str) -> bool:
        # Symbols side by side are a product: bn, 2ar.
        return symbol in known or (len(symbol) <= 3 and all(one in known for one in symbol))

    lacking = {
        (one.number, symbol)
        for one in EQUATIONS
        for symbol in symbols(one.text)
        if not is_known(symbol)
    }
    assert not lacking


# Public functions of models that say of no equation and no publication that they rest on it.
WITHOUT_SOURCE = {
    "models/arrays.py: any_probability",
    "models/arrays.py: open_probability",
}
NUM_WITHOUT_SOURCE = 2


def test_each_model_function_has_an_equation_or_a_source() -> None:
    found = {
        f"{module}: {node.name}"
        for module, tree in modules().items()
        if module.startswith("models/")
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        if not re.search(r"\([A-Z]\d+[a-z]?\)|\b(18|19|20)\d\d\b", ast.get_docstring(node) or "")
    }
    assert found == WITHOUT_SOURCE
    assert len(WITHOUT_SOURCE) == NUM_WITHOUT_SOURCE, "the list only becomes shorter"


def test_an_equation_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--equation", "b12"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("(B12)")
    assert "headway.models.job.capacity" in printed
    assert run(["explain", "--equation", "Z9"]) == 2
    assert run(["explain"]) == 2
    assert run(["explain", "plan.json", "--equation", "B12"]) == 2
