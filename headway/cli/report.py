"""``headway report``."""

from __future__ import annotations

import click

from headway.cli.jobs import profiled
from headway.cli.options import Command, given, output_option, refuse
from headway.cli.outputs import OUTPUT_FILE
from headway.cli.pages import write_page
from headway.cli.terminal import suggest
from headway.domain.sheet import Section


@click.command("report", cls=Command)
@click.argument("result", metavar="RESULT")
@output_option("HTML file to write.", type=OUTPUT_FILE, required=True)
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
    headway report eventlog_v2_app-1 -o profile.html

    RESULT is an event log, a profile, or what a command printed with --json: a plan, prediction,
    backtest, simulation, capacity plan, check, comparison, schedule, and so on. The page is one
    file: it loads nothing, and works offline and on paper.
    """
    shown = profiled(result)
    if not isinstance(shown, str):
        refuse(
            given("profile", "logs"), f"{result} is an event log, whose page needs no other file"
        )
        # Batch applications have no runs of a query.
        logs = (result,) if shown.result_kind == "profile" else ()
    runs: tuple[Section, ...] = ()
    if logs:
        from headway.api.seen_runs import seen_runs

        runs = seen_runs(logs)
    profile_file = None if shown is result else result
    write_page(output, shown, profile=profile, profile_file=profile_file, runs=runs)
    suggest(f"open {output} in a browser, or send it")
