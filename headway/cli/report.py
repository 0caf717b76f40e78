"""``headway report``."""

from __future__ import annotations

import click

from headway.cli.options import Command
from headway.cli.outputs import OUTPUT_FILE
from headway.cli.pages import write_page
from headway.cli.terminal import suggest


@click.command("report", cls=Command)
@click.argument("result", metavar="RESULT")
@click.option("-o", "--output", type=OUTPUT_FILE, required=True, help="HTML file to write.")
@click.option(
    "--profile",
    metavar="PROFILE",
    help="Profile behind a plan: adds the what-if, the latency distribution and the maps.",
)
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="LOG",
    help="Event log behind a profile: adds the time line of its runs; repeatable.",
)
def command(result: str, output: str, profile: str | None, logs: tuple[str, ...]) -> None:
    """Write a result as one HTML page to share: charts, what-if sliders, configuration.

    \b
    headway report plan.json --profile job.profile.yaml -o plan.html
    headway report job.profile.yaml --log eventlog_v2_app-1 -o profile.html
    headway report backtest.json -o backtest.html

    RESULT is a profile, or what a command printed with --json: a plan, prediction, backtest,
    simulation, capacity plan, check, comparison, schedule, and so on. The page is one file: it
    loads nothing, and works offline and on paper.
    """
    if logs:
        from headway.api.seen_runs import seen_runs

        write_page(output, result, profile=profile, runs=seen_runs(logs))
    else:
        write_page(output, result, profile=profile)
    suggest(f"open {output} in a browser, or send it")
