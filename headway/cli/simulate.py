"""``headway simulate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from headway.api.simulate import parse_outage, simulate
from headway.cli.options import DURATION, Command, Parsed, json_option
from headway.cli.outputs import OutputFile
from headway.domain import Outage
from headway.formats.as_json import json_text
from headway.formats.from_json import load_plan
from headway.formats.text_file import write_text
from headway.report.playback import playback_json, playback_page, playback_text

OUTAGE = Parsed("outage", parse_outage)


@click.command("simulate", cls=Command)
@click.argument("plan", metavar="PLAN")
@click.option(
    "--rate-trace",
    type=click.Path(path_type=Path),
    required=True,
    help="CSV file with the columns time and rate.",
)
@click.option(
    "--for",
    "length",
    type=DURATION,
    help="Duration to simulate; until the last line of the trace by default.",
)
@click.option(
    "--outage",
    "outages",
    type=OUTAGE,
    multiple=True,
    help="Outage during which the query stands still, e.g. '5m at 1h'; repeatable.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 1000),
    default=16,
    show_default=True,
    help="Number of simulated runs.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Random seed.")
@click.option("-o", "--output", type=OutputFile(), help="Write an HTML page with charts over time.")
@json_option
def command(
    plan: str,
    rate_trace: Path,
    length: float | None,
    outages: Sequence[Outage],
    runs: int,
    seed: int,
    output: str | None,
    as_json: bool,
) -> int:
    """Simulate a plan under a rate trace: latency over time, late rows, backlog, recovery.

    \b
    headway simulate plan.json --rate-trace day.csv -o day.html
    headway simulate plan.json --rate-trace burst.csv --outage '5m at 1h'

    PLAN is what 'headway plan --json' printed. The trace is a CSV file with a line for each change
    of the rate, e.g. 'time,rate', '0s,20k/s', '10m,60k/s', '15m,20k/s'. It ends with its last line,
    here after 15 minutes; --for 30m continues with the last rate until then.
    """
    planned = load_plan(plan)
    playback = simulate(planned, rate_trace, length=length, outages=outages, runs=runs, seed=seed)
    if output is not None:
        write_text(output, playback_page(planned, playback), what="the page")
        click.echo(f"wrote {output}", err=True)
    if as_json:
        click.echo(json_text(playback_json(playback)))
    else:
        click.echo(playback_text(planned, playback))
    return 0
