"""Options of a command from the arguments of its question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from headway.cli.options import DURATION, LEVEL, Function, Option, Parsed, was_given
from headway.domain.argument import Argument, CommandQuestion, arguments_of
from headway.domain.argument_values import (
    CONFIDENCE_LEVEL,
    FLAG,
    Choice,
    Count,
    Duration,
    InRange,
    Positive,
)


def options_of(question: type[CommandQuestion]) -> Callable[[Function], Function]:
    """A decorator that gives a command an option for each argument of a question."""

    def with_options(command: Function) -> Function:
        for declared in reversed(arguments_of(question)):
            if declared.option is not None:
                command = _option(declared, declared.option)(command)
        return command

    return with_options


def given_options(question: type[CommandQuestion]) -> dict[str, Any]:
    """The arguments that were given on the command line, by their names in the library."""
    values = click.get_current_context().params
    return {
        declared.name: values[declared.name]
        for declared in arguments_of(question)
        if declared.option is not None and was_given(declared.name)
    }


def _option(declared: Argument, spelling: str) -> Callable[[Function], Function]:
    details: dict[str, Any] = {
        "help": declared.about,
        "required": declared.is_required,
        "metavar": declared.metavar,
        "topic": declared.topic,
        "is_rare": declared.is_rare,
    }
    if declared.value is FLAG:
        details["is_flag"] = True
    elif declared.is_repeatable:
        details["multiple"] = True
    elif declared.default is not None:
        is_share = declared.metavar == "SHARE"
        default = f"{declared.default:.0%}" if is_share else declared.default
        details |= {"default": default, "show_default": True}
    if declared.value is not FLAG:
        details["type"] = _type_of(
            getattr(declared.value, "member_value", None) or declared.value, spelling.lstrip("-")
        )
    return click.option(spelling, declared.name, cls=Option, **details)


def _type_of(value: Any, name: str) -> Any:
    """How click reads a value, and what it calls it in the help."""
    match value:
        case Count():
            return click.IntRange(value.minimum, value.maximum)
        case _ if value is CONFIDENCE_LEVEL:
            return LEVEL
        case InRange():
            return click.FloatRange(value.minimum, value.maximum)
        case Choice():
            return click.Choice([str(member) for member in value.members])
        case Positive(parse=None):
            return click.FloatRange(0, min_open=True)
        case _ if getattr(value, "parse", None) is not None:
            return Parsed(name, value.parse)
        case Duration():
            return DURATION
        case _ if getattr(value, "is_path", False):
            return click.Path(path_type=Path)
        case _:
            return click.STRING
