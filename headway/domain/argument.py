"""Arguments of a command, declared once: what a value must be, its help, and which jobs have it.

A question is a frozen dataclass whose fields are made by :func:`argument_of`. The call of the
library, the options of the command line, what is refused for which kind of job, and the reference
are derived from that one declaration, as keys of files are from `headway.spec.forms`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import StrEnum
from functools import lru_cache
from inspect import Parameter, Signature
from typing import Any, ClassVar, Protocol, TypeVar

from headway.errors import RefusedArgumentError, argument


class JobKind(StrEnum):
    """Kinds of jobs, as far as they can be asked different things."""

    QUERY = "query in micro-batches"
    REAL_TIME = "query in Real-Time Mode"
    DSTREAMS = "DStreams application"
    ENDING = "job with a deadline"
    PIPELINE = "pipeline"


class Question(Protocol):
    """What a command asks: a frozen dataclass with a field for each argument, and one more."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init__(self, *, named_arguments: frozenset[str], **values: Any) -> None: ...

    @property
    def named_arguments(self) -> frozenset[str]:
        """Names of the arguments that were given."""


AnyQuestion = TypeVar("AnyQuestion", bound=Question)


class Value(Protocol):
    """What an argument must be."""

    def read(self, value: Any, name: str) -> Any:
        """The value of what was given, in base units.

        Raises
        ------
        InputError
            Names the argument, what was given and what is expected.
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
    not_for: Mapping[JobKind, str]
    is_repeatable: bool
    is_first: bool


def argument_of(
    value: Value,
    about: str,
    *,
    name: str | None = None,
    option: str | None = "",
    default: Any = None,
    not_for: Mapping[JobKind, str] | None = None,
    is_repeatable: bool = False,
    is_first: bool = False,
) -> Any:
    """A field of a question.

    Parameters
    ----------
    value : Value
        How it is read.
    about : str
        Its help.
    name : str, optional
        Its name in the library, if it is not that of the field: ``rate`` for ``rate_per_s``.
    option : str, optional
        Its option on the command line, if it is not spelt as the name; None if it has none.
    default : optional
        Its value when it is not given.
    not_for : mapping, optional
        Kinds of jobs that it means nothing for, and why.
    is_repeatable : bool
        Whether its option may be given several times; its value is a list then.
    is_first : bool
        Whether it comes before all others in help and reference.
    """
    metadata = {
        "value": value, "about": about, "name": name, "option": option,
        "not_for": not_for or {}, "is_repeatable": is_repeatable, "is_first": is_first,
    }  # fmt: skip
    return field(default=default, metadata=metadata)


@lru_cache
def arguments_of(question: type[Question]) -> tuple[Argument, ...]:
    """The arguments of a question in the order of its fields, those first that are to be."""
    declared = [_argument(member) for member in fields(question) if "value" in member.metadata]
    return tuple(sorted(declared, key=lambda argument: not argument.is_first))


def _argument(declared: Field[Any]) -> Argument:
    name = declared.metadata["name"] or declared.name
    option = declared.metadata["option"]
    return Argument(
        field_name=declared.name,
        name=name,
        option=f"--{name.replace('_', '-')}" if option == "" else option,
        value=declared.metadata["value"],
        about=declared.metadata["about"],
        default=None if declared.default is MISSING else declared.default,
        not_for=declared.metadata["not_for"],
        is_repeatable=declared.metadata["is_repeatable"],
        is_first=declared.metadata["is_first"],
    )


def given_names(options: Mapping[str, Any]) -> frozenset[str]:
    """Names of the options that say something: None, False and empty lists do not; zero does.

    Examples
    --------
    >>> sorted(given_names({"rate": 0, "cores": None, "bursts": [], "from_start": False}))
    ['rate']
    """
    return frozenset(name for name, value in options.items() if _says_something(value))


def _says_something(value: object) -> bool:
    return not (value is None or value is False or (isinstance(value, list | tuple) and not value))


def require_arguments_of(question: type[Question], options: Mapping[str, Any], call: str) -> None:
    """Refuse names that are no arguments of a question, as Python refuses them for any call.

    Raises
    ------
    TypeError
        Names the first of them.
    """
    names = {declared.name for declared in arguments_of(question)}
    for name in options:
        if name not in names:
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}")


def question_for(
    kind: JobKind, question: type[AnyQuestion], options: Mapping[str, Any]
) -> AnyQuestion:
    """The question about a job of a kind, after what means nothing for it has been refused.

    Raises
    ------
    InputError
        As `refuse_for` and `read_question` do.
    """
    refuse_for(kind, question, options)
    return read_question(question, options)


def read_question(question: type[AnyQuestion], options: Mapping[str, Any]) -> AnyQuestion:
    """The question with the values of its arguments, read and checked.

    Raises
    ------
    InputError
        If one is invalid.
    """
    values = {
        declared.field_name: declared.value.read(options[declared.name], declared.name)
        for declared in arguments_of(question)
        if options.get(declared.name) is not None
    }
    return question(named_arguments=given_names(options), **values)


def refuse_for(kind: JobKind, question: type[Question], options: Mapping[str, Any]) -> None:
    """Refuse given arguments that mean nothing for jobs of a kind.

    Raises
    ------
    RefusedArgumentError
        Names the first of them, others for which the reason is the same, and that reason.
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


def signature_of(question: type[Question]) -> Signature:
    """The signature of a call that takes a job and the arguments of a question, by name."""
    job = Parameter("profile", Parameter.POSITIONAL_OR_KEYWORD)
    options = [
        Parameter(declared.name, Parameter.KEYWORD_ONLY, default=declared.default)
        for declared in arguments_of(question)
    ]
    return Signature([job, *options])
