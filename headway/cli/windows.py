"""``headway windows``."""

from __future__ import annotations

import click

from headway.api.windows import windows
from headway.cli.options import EXECUTORS, RATE, Command, json_option, setting_options
from headway.errors import ExitCode
from headway.formats.as_json import json_text
from headway.report.sharing import sharing_json, sharing_text


@click.command("windows", cls=Command)
@click.argument("profile", metavar="PROFILE")
@click.option(
    "--window",
    "asked",
    multiple=True,
    help="Windows to count, e.g. '1h every 5m'; repeatable. As profiled by default.",
)
@click.option("--rate", type=RATE, help="Input rate, e.g. 50k/s.")
@setting_options
@click.option("--executors", type=EXECUTORS, help="Executors.")
@json_option
def command(
    profile: str,
    asked: tuple[str, ...],
    rate: float | None,
    trigger: float | None,
    executors: int | None,
    cores: int | None,
    partitions: int | None,
    as_json: bool,
) -> int:
    """Predict what counting overlapping windows from shared panes would save.

    \b
    headway windows job.profile.yaml
    headway windows job.profile.yaml --window '1h every 5m' --window 10m --json

    PROFILE is of the query as it is, with Spark's own windows. Exits with 3 where no way of
    sharing pays.
    """
    gain = windows(
        profile,
        asked,
        rate=rate,
        trigger=trigger,
        executors=executors,
        cores=cores,
        partitions=partitions,
    )
    click.echo(json_text(sharing_json(gain)) if as_json else sharing_text(gain))
    return ExitCode.OK if gain.paying else ExitCode.INFEASIBLE
