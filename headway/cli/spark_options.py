"""Options of the commands that read event logs: which query, how it ran, with which Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from headway.cli.options import DURATION

Function = TypeVar("Function", bound=Callable[..., Any])


class Property(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """A Spark property as spark-submit takes it."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name and the value."""
        if not isinstance(value, str):
            return value
        name, equals, text = value.partition("=")
        if not equals or not name.startswith("spark."):
            # The rest of it may be a secret.
            self.fail(f"{name!r} is not a Spark property; expected spark.NAME=VALUE", param, ctx)
        return name, text


def reading_options(command: Function) -> Function:
    """``--query``, ``--trigger``, ``--engine``, ``--master`` and ``--conf``, under these names.

    Only ``--query``, which is repeatable, is passed on as queries.
    """
    for option in (
        click.option(
            "--conf",
            type=Property(),
            multiple=True,
            help="Spark property for the session that reads the logs, as for spark-submit. "
            "Repeatable.",
            callback=lambda _ctx, _param, pairs: dict(pairs),
        ),
        click.option(
            "--master",
            default="local[*]",
            show_default=True,
            help="Spark master for reading the logs.",
        ),
        click.option(
            "--engine",
            type=click.Choice(["auto", "in-process", "spark"]),
            default="auto",
            show_default=True,
            help="Reader of the logs. 'auto' uses Spark for remote addresses, with --master or "
            "--conf, and above 8 GB of events. Only 'spark' needs Java.",
        ),
        click.option(
            "--trigger",
            type=DURATION,
            help="Trigger interval of the queries; 0s means as fast as possible. Estimated from "
            "the "
            "log by default.",
        ),
        click.option(
            "--query",
            "queries",
            multiple=True,
            metavar="NAME_OR_ID",
            help="Query to include as a run of the job. Repeatable.",
        ),
    ):
        command = option(command)
    return command
