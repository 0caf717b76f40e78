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
            self.fail(f"{name!r} is no Spark property; expected spark.NAME=VALUE", param, ctx)
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
            help="Property of the Spark that reads the logs, as spark-submit takes it. Repeatable.",
            callback=lambda _ctx, _param, pairs: dict(pairs),
        ),
        click.option(
            "--master", default="local[*]", show_default=True, help="Spark to read the logs with."
        ),
        click.option(
            "--engine",
            type=click.Choice(["auto", "in-process", "spark"]),
            default="auto",
            show_default=True,
            help="What reads the logs; auto takes Spark for remote addresses, for --master and "
            "--conf, and beyond 8 GB of events. Only Spark needs Java.",
        ),
        click.option(
            "--trigger",
            type=DURATION,
            help="Trigger interval of the queries, 0s for as fast as possible. By default it is "
            "read off the log.",
        ),
        click.option(
            "--query",
            "queries",
            multiple=True,
            metavar="NAME_OR_ID",
            help="Queries that are runs of one job. Repeatable.",
        ),
    ):
        command = option(command)
    return command
