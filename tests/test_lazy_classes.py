"""Classes of `headway.lazy_classes` are those of `dataclasses`, made otherwise."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from functools import partial
from typing import Any, ClassVar

import pytest

from headway.lazy_classes import changed, dataclass, frozen_dataclass


def _classes(decorated: Callable[..., Any]) -> tuple[Any, Any]:
    """A class with all kinds of fields, and one that is derived from it."""

    @decorated(frozen=True, slots=True)
    class Stage:
        """A stage."""

        unit: ClassVar[str] = "s"
        name: str
        tasks: int = 4
        rows: list[int] = field(default_factory=list)
        note: str = field(default="", kw_only=True, compare=False)
        secret: str = field(default="hush", kw_only=True, compare=False, repr=False)
        sizes: list[int] = field(default_factory=list, kw_only=True, hash=False)

        def __post_init__(self) -> None:
            if self.tasks < 1:
                raise ValueError("tasks")

    @decorated(frozen=True, slots=True, kw_only=True)
    class Shuffle(Stage):
        """A stage with partitions."""

        partitions: int

    return Stage, Shuffle


STANDARD = _classes(dataclasses.dataclass)


def _of(call: Callable[[], object]) -> str:
    """What a call returns or raises, as text in which both kinds have one name."""
    try:
        shown = repr(call())
    except (TypeError, ValueError, AttributeError) as error:
        shown = f"{type(error).__name__}: {error}"
    return shown


@pytest.mark.parametrize(
    "asked",
    [
        lambda stage, _: stage("map"),
        lambda stage, _: stage("map", 8, [1], note="warm"),
        lambda stage, _: stage(tasks=2, name="map"),
        lambda stage, _: stage("map", 0),
        lambda stage, _: stage(),
        lambda stage, _: stage("map", 8, [], "warm"),
        lambda stage, _: stage("map", size=3),
        lambda stage, _: stage("map", name="filter"),
        lambda stage, _: stage(size=3),
        lambda _, shuffle: shuffle("reduce", partitions=8),
        lambda _, shuffle: shuffle("reduce"),
        lambda stage, _: inspect.signature(stage),
        lambda _, shuffle: inspect.signature(shuffle),
        lambda stage, _: dataclasses.asdict(stage("map", note="warm")),
        lambda stage, _: dataclasses.replace(stage("map"), tasks=9),
        lambda stage, _: dataclasses.replace(stage("map"), tasks=0),
        lambda stage, _: stage("map") == stage("map", note="warm"),
        lambda stage, _: stage("map") == stage("filter"),
        lambda stage, shuffle: stage("map") == shuffle("map", partitions=1),
        lambda stage, _: stage("map") == ("map", 4, [], ""),
        lambda stage, _: hash(stage("map")),
        lambda stage, _: hash(stage("map", rows=())) == hash(("map", 4, ())),
        lambda stage, _: hash(stage("map", rows=(), sizes=[1])) == hash(stage("map", rows=())),
        lambda stage, _: stage("map", sizes=[1]) == stage("map"),
        lambda stage, _: copy.copy(stage("map", 3)),
        lambda stage, _: copy.deepcopy(stage("map", 3)),
        lambda stage, _: stage("map").rows is stage("map").rows,
        lambda stage, _: (stage.unit, stage.__slots__, stage.__match_args__),
        lambda stage, _: setattr(stage("map"), "tasks", 5),
        lambda stage, _: setattr(stage("map"), "size", 5),
        lambda stage, _: delattr(stage("map"), "tasks"),
    ],
)
def test_they_answer_alike(asked: Callable[[Any, Any], object]) -> None:
    standard = _of(partial(asked, *STANDARD))
    stage, shuffle = _classes(frozen_dataclass)
    of_first = _of(partial(asked, stage, shuffle))
    for _ in range(100):  # by then the constructors are compiled
        stage("map")
        shuffle("reduce", partitions=1)
    # Of an unknown field, both refuse to set it; Python's own message depends on the slots.
    for lazy in (of_first, _of(partial(asked, stage, shuffle))):
        assert lazy == standard or "FrozenInstanceError" in lazy


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One that can be pickled, since it stands in a module."""

    name: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OneField:
    """One whose values are not several."""

    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class WithoutSlots:
    """One of identity, with a representation of its own."""

    name: str

    def __repr__(self) -> str:
        return self.name


def test_they_are_written_and_read() -> None:
    job = Job(name="a", sizes=(1, 2))
    assert pickle.loads(pickle.dumps(job)) == job
    assert len({job, copy.copy(job), Job(name="b")}) == 2
    row = OneField(names=("a", "b"))
    assert pickle.loads(pickle.dumps(row)) == row
    assert changed(row, names=()) == OneField(names=())
    assert changed(row) == row


def test_own_methods_stay() -> None:
    noun = WithoutSlots(name="a")
    assert repr(noun) == "a"
    assert noun == noun and noun != WithoutSlots(name="a")
    with pytest.raises(FrozenInstanceError):
        noun.name = "b"  # type: ignore[misc]


def test_a_class_that_changes_is_refused() -> None:
    with pytest.raises(AssertionError):
        frozen_dataclass(frozen=False)
