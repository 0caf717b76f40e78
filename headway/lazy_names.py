"""Names and functions that are loaded only when they are first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def loads_when_used(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose names live in modules that may never be needed.

    >>> find = loads_when_used("headway", {"headway.errors": "InputError SpecError"})
    >>> find("InputError").__name__
    'InputError'
    >>> find("Colour")
    Traceback (most recent call last):
    ...
    AttributeError: module 'headway' has no attribute 'Colour'
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(home_of[name]), name)

    return find


def loads_when_called(dotted_path: str) -> Callable[..., Any]:
    """A function of a module that may never be needed.

    >>> loads_when_called("math.floor")(2.5)
    2
    """
    module, _, name = dotted_path.rpartition(".")

    def call(*arguments: Any, **keywords: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*arguments, **keywords)

    return call
