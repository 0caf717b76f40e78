"""Frozen data classes whose constructors are compiled only if they are called often.

Commands load two hundred classes of the domain, use a third of them, and of most make a few
instances. :func:`dataclasses.dataclass` compiles six methods for each: together that takes longer
than the start of Python with numpy. Here all methods read the fields by their names, and the
constructor is compiled once so many instances are made that this pays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from functools import cache, partial
from itertools import compress
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, TypeVar

Noun = TypeVar("Noun", bound=type)
Made = TypeVar("Made")
# Compiling takes as long as making about a hundred instances field by field.
_MADE_BEFORE_COMPILING = 80
_put = object.__setattr__


def frozen_dataclass(
    *,
    frozen: bool,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    repr: bool = True,  # noqa: A002  # as dataclasses.dataclass calls it
) -> Callable[[Noun], Noun]:
    """As :func:`dataclasses.dataclass`, for frozen classes; only such can be derived from them.

    >>> @frozen_dataclass(frozen=True, slots=True)
    ... class Interval:
    ...     low: float
    ...     high: float = 1.0
    >>> Interval(0.5), Interval(0.5) == Interval(low=0.5, high=1.0)
    (Interval(low=0.5, high=1.0), True)
    >>> Interval(0.5).low = 0.7
    Traceback (most recent call last):
    ...
    dataclasses.FrozenInstanceError: cannot assign to field 'low'
    """
    assert frozen, "a class that changes is one of dataclasses.dataclass"

    def frozen_class(described: Noun) -> Noun:
        # As stdlib's dataclass without options that compile something.
        noun: Any = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
        )(described)
        noun.__init__ = _Constructor(noun)
        noun.__setattr__, noun.__delattr__ = _refuse_setting, _refuse_deletion
        methods: dict[str, Any] = {}
        if slots:
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
        if repr:
            methods["__repr__"] = _representation
        if eq:
            methods |= _comparison(fields(noun))
        for name, method in methods.items():
            # A class with a method __eq__ has None as its hash.
            if noun.__dict__.get(name) is None:
                setattr(noun, name, method)
        return noun  # type: ignore[no-any-return]

    return frozen_class


def changed(noun: Made, **changes: Any) -> Made:
    """As :func:`dataclasses.replace`, in a fraction of the time: for thousands of copies.

    The class must have no ``__post_init__``, which is not called.

    >>> @frozen_dataclass(frozen=True, slots=True)
    ... class Interval:
    ...     low: float
    ...     high: float = 1.0
    >>> changed(Interval(0.5), high=0.7)
    Interval(low=0.5, high=0.7)
    """
    kind: Any = noun.__class__
    assert not hasattr(kind, "__post_init__"), "its fields are checked"
    names, values_of = _fields_of(kind)
    copy: Made = object.__new__(kind)
    for name, value in zip(names, values_of(noun), strict=True):
        _put(copy, name, value)
    for name, value in changes.items():
        _put(copy, name, value)
    return copy


class Identity:
    """An instance as a key of results that are remembered: of itself, not of an equal one.

    Comparing values takes longer than most results; what is frozen stays as it is.

    >>> rates = (1.0, 2.0)
    >>> Identity(rates) == Identity(rates), Identity(rates) == Identity((1.0, 2.0))
    (True, False)
    """

    __slots__ = ("nouns",)

    def __init__(self, *nouns: Any) -> None:
        self.nouns = nouns

    def __eq__(self, compared: object) -> bool:
        if not isinstance(compared, Identity):
            return NotImplemented
        return len(self.nouns) == len(compared.nouns) and all(map(is_, self.nouns, compared.nouns))

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.nouns)))


@cache
def _fields_of(noun: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """Names of the fields of a class, and what reads all of them."""
    names = tuple(member.name for member in fields(noun))
    return names, _values_of(names)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = frozen_dataclass


class _Factory:
    """The default of a field whose value is made for each instance."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


class _Constructor:
    """Takes the place of a class's constructor, for its first instances.

    It is compiled when somebody looks at it, a call is wrong, or so many are made that this pays.
    """

    __slots__ = ("defaults", "factories", "noun", "num_left", "positional")

    def __init__(self, noun: Any) -> None:
        self.noun = noun
        self.num_left = _MADE_BEFORE_COMPILING
        self.defaults: dict[str, Any] = {}
        self.factories: dict[str, Any] = {}
        self.positional: list[str] = []

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self.num_left -= 1
        # Python 3.13 asks for the signature of a class as if the class were an instance.
        if instance is None or isinstance(instance, type) or self.num_left < 0:
            return self._compiled().__get__(instance, owner)
        return partial(self._fill, instance)

    def _compiled(self) -> Any:
        self.noun.__init__ = constructor = _constructor_of(self.noun)
        return constructor

    def _fill(self, instance: Any, /, *values: Any, **by_name: Any) -> None:
        """What the constructor does, field by field."""
        if not self.defaults:
            members = fields(self.noun)
            self.factories = {member.name: member.default_factory for member in members}
            self.positional = [member.name for member in members if not member.kw_only]
            # Last, since another thread takes the rest as filled once these are.
            self.defaults = {member.name: member.default for member in members}
        stated = dict(zip(self.positional, values, strict=False)) | by_name if values else by_name
        by_field = self.defaults | stated
        is_known = len(by_field) == len(self.defaults)
        if not is_known or len(stated) < len(values) + len(by_name):
            self._compiled()(instance, *values, **by_name)  # says what is wrong
            return
        for name, value in by_field.items():
            if value is not MISSING:
                _put(instance, name, value)
            elif self.factories[name] is not MISSING:
                _put(instance, name, self.factories[name]())
            else:
                self._compiled()(instance, *values, **by_name)
                return
        if hasattr(instance, "__post_init__"):
            instance.__post_init__()


def _constructor_of(noun: Any) -> Any:
    """The constructor that takes the fields of a class."""
    names: dict[str, Any] = {"_put": _put, "_factory": _FACTORY}
    positional, by_name = ["self"], list[str]()
    lines: list[str] = []
    for member in fields(noun):
        parameter = value = member.name
        if member.default is not MISSING:
            names[f"_default_{member.name}"] = member.default
            parameter = f"{member.name}=_default_{member.name}"
        elif member.default_factory is not MISSING:
            names[f"_make_{member.name}"] = member.default_factory
            parameter = f"{member.name}=_factory"
            value = f"_make_{member.name}() if {member.name} is _factory else {member.name}"
        (by_name if member.kw_only else positional).append(parameter)
        lines.append(f"_put(self, {member.name!r}, {value})")
    if hasattr(noun, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join([*positional, *(["*", *by_name] if by_name else [])])
    body = "\n ".join(lines or ["pass"])
    exec(f"def __init__({parameters}):\n {body}", names)
    constructor = names["__init__"]
    constructor.__qualname__ = f"{noun.__qualname__}.__init__"
    constructor.__annotations__ = {member.name: member.type for member in fields(noun)}
    constructor.__annotations__["return"] = None
    return constructor


def _comparison(members: Sequence[Field[Any]]) -> dict[str, Any]:
    """Equality and hash by the fields that are compared, and by those that are hashed."""
    values = _values_of([member.name for member in members if member.compare])
    is_hashed = ((member.compare if member.hash is None else member.hash) for member in members)
    hashed = _values_of(list(compress((member.name for member in members), is_hashed)))

    def is_equal(noun: Any, compared: Any) -> Any:
        if compared.__class__ is not noun.__class__:
            return NotImplemented
        return values(noun) == values(compared)

    return {"__eq__": is_equal, "__hash__": lambda noun: hash(hashed(noun))}


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads the fields of these names."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda noun: tuple(getattr(noun, name) for name in names)


def _representation(noun: Any) -> str:
    members = (member.name for member in fields(noun) if member.repr)
    shown = (f"{name}={getattr(noun, name)!r}" for name in members)
    return f"{noun.__class__.__qualname__}({', '.join(shown)})"


def _refuse_setting(_: Any, name: str, __: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(noun: Any) -> tuple[Any, ...]:
    _, values_of = _fields_of(noun.__class__)
    return values_of(noun)


def _set_state(noun: Any, state: tuple[Any, ...]) -> None:
    names, _ = _fields_of(noun.__class__)
    for name, value in zip(names, state, strict=True):
        _put(noun, name, value)
