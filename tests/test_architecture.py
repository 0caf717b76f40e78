"""ARCHITECTURE.md is true: what it names is there, and its walks follow the imports."""

from __future__ import annotations

import importlib
import re
import tomllib
from functools import reduce
from itertools import pairwise
from pathlib import Path

import pytest

from tests.sources import modules

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROOMS = {path.stem for path in (ROOT / "headway").iterdir() if not path.name.startswith("_")}
MOST_HOPS, MOST_FORMS = 8, 4

_STEP = re.compile(r"^(\d+)\. (?:-> )?`([\w.]+)`", re.MULTILINE)
_FORM = re.compile(r"^   - ", re.MULTILINE)


def walks() -> dict[str, str]:
    """The walks of the page, by what is followed."""
    _, _, rest = PAGE.partition("## Three walks")
    text, _, _ = rest.partition("\n## ")
    parts = re.split(r"^\*\*(.+?)\*\*", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def places() -> list[str]:
    """Dotted names on the page that begin with a room."""
    return sorted(
        name
        for name in set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", PAGE))
        if name.split(".")[0] in ROOMS
    )


def home_of(place: str) -> str:
    """The module that a dotted name begins with."""
    parts = place.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(["headway", *parts[:length]])
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        return name
    raise AssertionError(f"no module {place}")


def test_what_the_page_names_is_there() -> None:
    for place in places():
        home = home_of(place)
        rest = f"headway.{place}".removeprefix(home).strip(".")
        reduce(getattr, filter(None, rest.split(".")), importlib.import_module(home))


@pytest.mark.parametrize("walk", walks())
def test_a_walk_is_short_and_follows_the_imports(walk: str) -> None:
    text = walks()[walk]
    homes = [home_of(place) for _, place in _STEP.findall(text)]
    assert 3 <= len(homes) <= MOST_HOPS + 1
    assert 1 <= len(_FORM.findall(text)) <= MOST_FORMS - 1, "beside the text that was typed"
    for before, home in pairwise(homes):
        # Behind the model one is back in a module that was passed before.
        passed = homes[: homes.index(before) + 1]
        assert any(imports(one, home) for one in passed), f"nothing on the way imports {home}"


def imports(one: str, other: str) -> bool:
    """Whether a module names another one, or the package that holds out its names."""
    file = ROOT / Path(*one.split(".")).with_suffix(".py")
    text = file.read_text(encoding="utf-8")
    return any(
        re.search(rf"^\s*from {re.escape(name)} import", text, re.MULTILINE) is not None
        for name in (other, other.rpartition(".")[0])
    )


def test_the_floors_of_the_page_are_those_that_are_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (floors,) = (
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    for floor in floors:
        assert re.search(rf"^{re.escape(floor)}(  |\n)", PAGE, re.MULTILINE), floor
    assert {room.split("/")[0].removesuffix(".py") for room in modules()} - ROOMS <= {
        "__init__",
        "__main__",
    }
