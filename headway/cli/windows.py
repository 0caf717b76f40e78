"""``headway windows``."""

from __future__ import annotations

from pathlib import Path

import click

from headway.api.results import as_data, as_text
from headway.api.windows import fusions_of, windows
from headway.cli.options import EXECUTORS, RATE, ROWS, Command, json_option, setting_options
from headway.cli.terminal import show, suggest
from headway.errors import ExitCode
from headway.formats.as_json import json_text
from headway.report.sharing import fusions_json, fusions_text


@click.command("windows", cls=Command)
@click.argument("profile", metavar="PROFILE")
@click.option(
    "--window",
    "asked",
    multiple=True,
    help="Windows to count, e.g. '1h every 5m'; repeatable. As profiled by default.",
)
@click.option(
    "--queries",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Spec file of the kind SharedWindows: several queries on one stream, each with its "
    "windows.",
)
@click.option("--rate", type=RATE, help="Input rate, e.g. 50k/s.")
@click.option(
    "--num-keys",
    type=ROWS,
    help="Number of distinct keys in the stream. By default it grows with the rows as profiled.",
)
@setting_options
@click.option("--executors", type=EXECUTORS, help="Executors.")
@click.option(
    "--explain",
    "plan",
    type=click.Path(path_type=Path),
    help="Output of df.explain(): shows which of its exchanges one exchange could replace.",
)
@json_option
def command(
    profile: str,
    asked: tuple[str, ...],
    queries: Path | None,
    rate: float | None,
    num_keys: int | None,
    trigger: float | None,
    executors: int | None,
    cores: int | None,
    partitions: int | None,
    plan: Path | None,
    as_json: bool,
) -> int:
    """Predict what counting overlapping windows from shared panes would save.

    \b
    headway windows job.profile.yaml
    headway windows job.profile.yaml --window '1h every 5m' --window 10m --json
    headway windows job.profile.yaml --queries clicks.windows.yaml

    PROFILE is that of the query as it is now, with Spark's own windows; for a query in update mode,
    only the ways that support it are compared. With --queries, sharing is compared with all of them
    running separately. Exits with 3 if no way of sharing pays.
    """
    gain = windows(
        profile,
        asked,
        queries=queries,
        rate=rate,
        num_keys=num_keys,
        trigger=trigger,
        executors=executors,
        cores=cores,
        partitions=partitions,
    )
    fusions = () if plan is None else fusions_of(plan)
    if as_json:
        more = {} if plan is None else {"fusions": fusions_json(fusions)}
        click.echo(json_text(as_data(gain) | more))
    else:
        appendix = "" if plan is None else f"\n\n{fusions_text(fusions)}"
        show(as_text(gain) + appendix, is_met=gain.paying)
        suggest(f"headway plan {profile} --rate 50k/s --target 'window p99 <= 20s'")
    return ExitCode.OK if gain.paying else ExitCode.INFEASIBLE
