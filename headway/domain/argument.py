"""Arguments of a command, declared once: what a value must be, its help, and which jobs have it.

A question is a frozen dataclass whose fields are made by :func:`argument_of`. The call of the
library, the options of the command line, what is refused for which kind of job, and the reference
are derived from that one declaration, as keys of files are from `headway.spec.forms`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import Field, field, fields, replace
from enum import StrEnum
from functools import lru_cache, wraps
from inspect import Parameter, signature
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

from headway.errors import RefusedArgumentError, argument
from headway.lazy_classes import dataclass


class JobKind(StrEnum):
    """Kinds of jobs, as far as they can be asked different things."""

    QUERY = "query in micro-batches"
    REAL_TIME = "query in Real-Time Mode"
    DSTREAMS = "DStreams application"
    ENDING = "job with a deadline"
    PIPELINE = "pipeline"


#: What arguments are about: the headings under which help lists their options, in order.
Topic: TypeAlias = Literal["What you ask", "What is fixed", "The nodes", "Output"]


@dataclass(frozen=True, kw_only=True)
class CommandQuestion:
    """What a command asks: a field for each argument, and the names of those that were given.

    Questions have no slots, so that one can have the arguments of two others.
    """

    named_arguments: frozenset[str] = frozenset()


AnyQuestion = TypeVar("AnyQuestion", bound=CommandQuestion)
Call = TypeVar("Call", bound=Callable[..., Any])


class Value(Protocol):
    """What an argument must be."""

    def read(self, value: Any, name: str, /) -> Any:
        """The value of what was given, in base units.

        Raises InputError, which names the argument, what was given and what is expected.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument: its name in the library, its option, its value, and the jobs it is not for."""

    field_name: str
    name: str
    option: str | None
    value: Value
    about: str
    default: Any
    not_for: Mapping[StrEnum, str]
    is_repeatable: bool
    is_required: bool
    is_first: bool
    metavar: str | None
    topic: Topic
    is_rare: bool


def argument_of(
    value: Value,
    about: str,
    *,
    name: str | None = None,
    option: str | None = "",
    default: Any = None,
    not_for: Mapping[Any, str] | None = None,
    is_repeatable: bool = False,
    is_required: bool = False,
    is_first: bool = False,
    metavar: str | None = None,
    topic: Topic = "What you ask",
    is_rare: bool = False,
) -> Any:
    """A field of a question: how its ``value`` is read, and ``about`` as its help.

    ``name`` is its name in the library, if it is not that of the field: ``rate`` for
    ``rate_per_s``; ``option`` its option on the command line, if it is not spelt as the name, None
    if it has none. ``default`` is its value when it is not given, ``not_for`` says for which kinds
    of jobs it means nothing, and why. Its option may be given several times if ``is_repeatable``,
    and its value is a list then; it must be given if ``is_required``. It comes before all others in
    help and reference if ``is_first``; ``metavar`` is what the help calls its value. Help lists it
    under its ``topic``, and only the full help does if it ``is_rare``.
    """
    declared = Argument(
        field_name="", name=name or "", option=option, value=value, about=about, default=default,
        not_for=not_for or {}, is_repeatable=is_repeatable, is_required=is_required,
        is_first=is_first, metavar=metavar, topic=topic, is_rare=is_rare,
    )  # fmt: skip
    return field(default=default, metadata={"argument": declared})


def as_in(question: type[CommandQuestion], field_name: str) -> Any:
    """A field of a question that is the same argument as that of another one."""
    declared = question.__dataclass_fields__[field_name]
    return field(default=declared.default, metadata=declared.metadata)


def arguments_of(question: type[CommandQuestion]) -> tuple[Argument, ...]:
    """The arguments of a question in the order of its fields, those first that are to be."""
    return _arguments_of(cast("Hashable", question))


@lru_cache
def _arguments_of(question: Any) -> tuple[Argument, ...]:
    declared = [_named_as(member) for member in fields(question) if "argument" in member.metadata]
    return tuple(sorted(declared, key=lambda argument: not argument.is_first))


def _named_as(member: Field[Any]) -> Argument:
    """The argument of a field, by whose name it is called unless it was declared otherwise."""
    declared: Argument = member.metadata["argument"]
    name = declared.name or member.name
    option = f"--{name.replace('_', '-')}" if declared.option == "" else declared.option
    return replace(declared, field_name=member.name, name=name, option=option)


def given_names(options: Mapping[str, Any]) -> frozenset[str]:
    """Names of the options that say something: None, False and empty lists do not; zero does.

    >>> sorted(given_names({"rate": 0, "cores": None, "bursts": [], "from_start": False}))
    ['rate']
    """
    return frozenset(name for name, value in options.items() if _says_something(value))


def _says_something(value: object) -> bool:
    return not (value is None or value is False or (isinstance(value, list | tuple) and not value))


def takes(question: type[CommandQuestion]) -> Callable[[Call], Call]:
    """A decorator for a call whose ``**options`` are the arguments of a question, and no others.

    Its signature shows them. Arguments that the call itself names are passed as they are.
    """

    def with_arguments(call: Call) -> Call:
        named = {
            name: parameter
            for name, parameter in signature(call).parameters.items()
            if parameter.kind is not Parameter.VAR_KEYWORD
        }
        options = {
            declared.name: Parameter(
                declared.name, Parameter.KEYWORD_ONLY, default=declared.default
            )
            for declared in arguments_of(question)
            if declared.name not in named
        }

        @wraps(call)
        def checked(*values: Any, **given_options: Any) -> Any:
            for name in given_options:
                if name not in named and name not in options:
                    raise TypeError(
                        f"{call.__name__}() got an unexpected keyword argument {name!r}"
                    )
            return call(*values, **given_options)

        shown = signature(call).replace(parameters=[*named.values(), *options.values()])
        checked.__signature__ = shown  # type: ignore[attr-defined]  # what inspect reads
        return cast("Call", checked)

    return with_arguments


def question_for(
    kind: StrEnum, question: type[AnyQuestion], options: Mapping[str, Any]
) -> AnyQuestion:
    """The question about a job of a kind, after what means nothing for it has been refused.

    Raises InputError as `refuse_for` and `read_question` do.
    """
    refuse_for(kind, question, options)
    return read_question(question, options)


def read_question(question: type[AnyQuestion], options: Mapping[str, Any]) -> AnyQuestion:
    """The question with the values of its arguments, read and checked.

    Raises InputError if one is invalid.
    """
    values = {
        declared.field_name: declared.value.read(options[declared.name], declared.name)
        for declared in arguments_of(question)
        if options.get(declared.name) is not None
    }
    return question(named_arguments=given_names(options), **values)


def refuse_for(kind: StrEnum, question: type[CommandQuestion], options: Mapping[str, Any]) -> None:
    """Refuse given arguments that mean nothing for jobs of a kind.

    Raises RefusedArgumentError, which names the first of them, others for which the reason is the
    same, and that reason.
    """
    names = given_names(options)
    reasons = {
        declared.name: declared.not_for[kind]
        for declared in arguments_of(question)
        if declared.name in names and kind in declared.not_for
    }
    for why in reasons.values():
        refused = ", ".join(argument(name) for name, reason in reasons.items() if reason == why)
        raise RefusedArgumentError(f"{refused}: {why}")
