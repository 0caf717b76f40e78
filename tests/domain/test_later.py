"""Parts of results that are made when they are asked for: once, and never noticed otherwise."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, replace

import pytest

from headway.domain.later import later, made_when_asked, with_changes


@made_when_asked("rows", "total")
@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    rows: tuple[int, ...]
    title: str = "table"
    total: int | None = None


@made_when_asked("notes")
@dataclass(frozen=True, slots=True, kw_only=True)
class Noted(_Table):
    """With a part of its own beside those of its base."""

    notes: tuple[str, ...] = ()


class Counting:
    """What is made, and how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> tuple[int, ...]:
        self.times += 1
        return (1, 2)


def test_a_part_is_made_when_it_is_read_and_then_kept() -> None:
    made = Counting()
    found = Noted(rows=later(made), notes=later(lambda: ("a",)))
    assert (found.title, found.total, made.times) == ("table", None, 0)
    assert (found.rows, found.rows, made.times) == ((1, 2), (1, 2), 1)
    assert found.notes == ("a",)
    with pytest.raises(FrozenInstanceError):
        found.rows = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    "read",
    [
        asdict,
        copy.copy,
        copy.deepcopy,
        lambda found: pickle.loads(pickle.dumps(found)),
        lambda found: replace(found, title="other"),
    ],
    ids=["asdict", "copy", "deepcopy", "pickle", "replace"],
)
def test_what_reads_the_whole_reads_values(read: Callable[[Noted], object]) -> None:
    there = Noted(rows=(1, 2), notes=("a",))
    to_come = Noted(rows=later(Counting()), notes=later(lambda: ("a",)))
    assert read(to_come) == read(there)
    assert to_come == there
    assert hash(to_come) == hash(there)


def test_changes_make_nothing() -> None:
    made = Counting()
    found = with_changes(Noted(rows=later(made)), title="other", total=later(lambda: 3))
    assert (found.title, found.total, made.times) == ("other", 3, 0)
    assert (found.rows, made.times) == ((1, 2), 1)
    assert with_changes(found, title="table", total=None) == Noted(rows=(1, 2))
