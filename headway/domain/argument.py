"""Arguments of a command, declared once: for calls, options, refusals, help and reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, Field, field, fields, replace
from enum import StrEnum
from functools import cache, wraps
from inspect import Parameter, signature
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, cast

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
class Question:
    """What a command asks: a field for each argument, and the names of those that were given.

    Questions have no slots, so that one can have the arguments of two others.
    """

    named_arguments: frozenset[str] = frozenset()


AnyQuestion = TypeVar("AnyQuestion", bound=Question)
Call = TypeVar("Call", bound=Callable[..., Any])
Declared = ParamSpec("Declared")


class Value(Protocol):
    """What an argument must be."""

    def read(self, value: Any, name: str, /) -> Any:
        """The value of what was given, in base units; an InputError names what was expected."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: how its ``value`` is read, and ``about`` as its help.

    ``name`` is its name in the library, if it is not that of the field: ``rate`` for
    ``rate_per_s``; ``option`` its option on the command line, if it is not spelt as the name, None
    if it has none. ``not_for`` says for which kinds of jobs it means nothing, and why. Help and
    reference list it before all others if ``is_first``, under its ``topic``, and only the full help
    does if it ``is_rare``; ``metavar`` is what help calls its value.
    """

    value: Value
    about: str
    _: KW_ONLY
    field_name: str = ""
    name: str = ""
    option: str | None = ""
    default: Any = None
    not_for: Mapping[Any, str] = field(default_factory=dict)
    is_required: bool = False
    is_first: bool = False
    metavar: str | None = None
    topic: Topic = "What you ask"
    is_rare: bool = False

    @property
    def is_repeatable(self) -> bool:
        """Whether its option may be given several times: its value is a list then."""
        return self.default == ()


def _field_of(argument: Callable[Declared, Argument]) -> Callable[Declared, Any]:
    def declare(*values: Declared.args, **by_name: Declared.kwargs) -> Any:
        declared = argument(*values, **by_name)
        return field(default=declared.default, metadata={"argument": declared})

    return declare


#: A field of a question, declared as an `Argument` is.
argument_of = _field_of(Argument)


def as_in(question: type[Question], field_name: str) -> Any:
    """A field of a question that is the same argument as that of another one."""
    declared = question.__dataclass_fields__[field_name]
    return field(default=declared.default, metadata=declared.metadata)


def _arguments_of(question: Any) -> tuple[Argument, ...]:
    declared = [_named_as(member) for member in fields(question) if "argument" in member.metadata]
    return tuple(sorted(declared, key=lambda argument: not argument.is_first))


#: The arguments of a class of questions, called as their fields unless they say otherwise.
arguments_of: Callable[[Any], tuple[Argument, ...]] = cache(_arguments_of)


def _named_as(member: Field[Any]) -> Argument:
    declared: Argument = member.metadata["argument"]
    name = declared.name or member.name
    option = f"--{name.replace('_', '-')}" if declared.option == "" else declared.option
    return replace(declared, field_name=member.name, name=name, option=option)


def given_names(options: Mapping[str, Any]) -> frozenset[str]:
    """Names of the options that say something: None, False and empty lists do not; zero does.

    >>> sorted(given_names({"rate": 0, "cores": None, "bursts": [], "from_start": False}))
    ['rate']
    """
    return frozenset(
        name
        for name, value in options.items()
        if not (value is None or value is False or (isinstance(value, list | tuple) and not value))
    )


def takes(question: type[Question]) -> Callable[[Call], Call]:
    """A decorator for a call whose ``**options`` are the arguments of a question."""

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
    refuse_for(kind, question, options)
    return read_question(question, options)


def read_question(question: type[AnyQuestion], options: Mapping[str, Any]) -> AnyQuestion:
    """The question with the values of its arguments; an InputError if one is invalid."""
    values = {
        declared.field_name: declared.value.read(options[declared.name], declared.name)
        for declared in arguments_of(question)
        if options.get(declared.name) is not None
    }
    return question(named_arguments=given_names(options), **values)


def refuse_for(kind: StrEnum, question: type[Question], options: Mapping[str, Any]) -> None:
    """Refuse arguments that mean nothing for jobs of a kind, as a RefusedArgumentError."""
    names = given_names(options)
    reasons = {
        declared.name: declared.not_for[kind]
        for declared in arguments_of(question)
        if declared.name in names and kind in declared.not_for
    }
    for why in reasons.values():
        refused = ", ".join(argument(name) for name, reason in reasons.items() if reason == why)
        raise RefusedArgumentError(f"{refused}: {why}")
