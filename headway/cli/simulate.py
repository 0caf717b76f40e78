"""``headway simulate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from headway.api.simulate import load_rate_trace, parse_outage, simulate
from headway.cli.options import DURATION, Command, Parsed, json_option
from headway.cli.outputs import OutputFile
from headway.cli.progress import Progress
from headway.domain import Outage, RateTrace, StreamAnswer
from headway.formats.as_json import json_text
from headway.formats.from_json import load_plan
from headway.formats.text_file import write_text
from headway.report.playback import playback_json, playback_page, playback_text
from headway.units import counted, format_duration

_MANY_BATCHES = 2_000_000  # more take longer than a person waits without a word

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
    trace = load_rate_trace(rate_trace, length=length)
    _say_if_long(planned, trace, str(rate_trace), runs)
    with Progress() as progress:
        progress.step(f"simulating {counted(runs, 'run')} of {format_duration(trace.length_s)}")
        playback = simulate(planned, trace, outages=outages, runs=runs, seed=seed)
    if output is not None:
        write_text(output, playback_page(planned, playback), what="the page")
        click.echo(f"wrote {output}", err=True)
    if as_json:
        click.echo(json_text(playback_json(playback)))
    else:
        click.echo(playback_text(planned, playback))
    return 0


def _say_if_long(plan: StreamAnswer, trace: RateTrace, name: str, runs: int) -> None:
    """Before a long wait, what makes it long and what to type instead."""
    trigger_s = plan.configuration.trigger_s
    num_batches = runs * trace.length_s / trigger_s if trigger_s > 0 else 0.0
    if num_batches <= _MANY_BATCHES:
        return
    fewer = max(int(runs * _MANY_BATCHES / num_batches), 1)
    shorter = format_duration(trace.length_s * _MANY_BATCHES / num_batches).replace(" ", "")
    click.echo(
        f"headway: {name}: {format_duration(trace.length_s)} with a batch every "
        f"{format_duration(trigger_s)} are {num_batches / 1e6:.3g} million batches in "
        f"{counted(runs, 'run')}, which takes minutes; --runs {fewer} or --for {shorter} is "
        "quicker",
        err=True,
    )
