"""What is asked of event logs: which queries, how they ran, and with what they are read."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import headway.domain.argument_values as values
from headway.domain.argument import CommandQuestion, argument_of
from headway.errors import InputError, argument
from headway.lazy_classes import dataclass

DEFAULT_MASTER = "local[*]"
#: What reads logs; by default, Spark reads what one machine cannot.
LogEngine: TypeAlias = Literal["auto", "in-process", "spark"]


def parse_property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        # The rest of it may be a secret.
        raise InputError(f"{name!r} is not a Spark property; expected spark.NAME=VALUE")
    return name, value


def _properties(value: Any, name: str) -> tuple[tuple[str, str], ...]:
    """Spark properties from a mapping, or from pairs of name and value.

    >>> _properties({"spark.app.name": "x"}, "conf")
    (('spark.app.name', 'x'),)
    """
    try:
        pairs = dict(value).items()
    except (TypeError, ValueError):
        raise values.not_expected(name, value, "a mapping of Spark properties") from None
    for key, _ in pairs:
        if not str(key).startswith("spark."):
            raise InputError(f"{argument(name)}: {key!r} is not a Spark property")
    return tuple(pairs)


@dataclass(frozen=True, kw_only=True)
class LogsQuestion(CommandQuestion):
    """With what logs are read."""

    engine: LogEngine = argument_of(
        values.Choice(get_args(LogEngine)),
        "Reader of the logs. 'auto' uses Spark for remote addresses, with --master or --conf, and "
        "above 8 GB of events. Only 'spark' needs Java.",
        default="auto",
        is_rare=True,
    )
    master: str = argument_of(
        values.of_class(str, "a text"),
        "Spark master for reading the logs.",
        default=DEFAULT_MASTER,
        is_rare=True,
    )
    conf: tuple[tuple[str, str], ...] = argument_of(
        values.ReadBy(_properties, parse=parse_property),
        "Spark property for the session that reads the logs, as for spark-submit. Repeatable.",
        default=(),
        is_repeatable=True,
        metavar="NAME=VALUE",
        is_rare=True,
    )
    session: Any = argument_of(values.READ_LATER, "A running session that reads them.", option=None)
    progress: Any = argument_of(values.READ_LATER, "Called with what is being done.", option=None)


@dataclass(frozen=True, kw_only=True)
class ProfileQuestion(LogsQuestion):
    """What logs are profiled for, or predictions from them judged."""

    queries: tuple[str, ...] = argument_of(
        values.QUERIES,
        "Query to include as a run of the job. Repeatable.",
        option="--query",
        default=(),
        is_repeatable=True,
        is_first=True,
        metavar="NAME_OR_ID",
    )
    trigger_s: float | None = argument_of(
        values.TRIGGER,
        "Trigger interval of the queries; 0s means as fast as possible. Estimated from the log by "
        "default.",
        name="trigger",
        is_first=True,
    )
