"""``headway diff``."""

from __future__ import annotations

import click

from headway.api.diff import diff
from headway.cli.options import Command, json_option
from headway.cli.progress import Progress
from headway.cli.terminal import answer, suggest
from headway.errors import ExitCode


@click.command("diff", cls=Command)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@json_option
def command(before: str, after: str, as_json: bool) -> int:
    """Compare two plans, profiles or logs: what changed, what it costs, and why.

    \b
    headway diff monday.json friday.json              two plans, of 'headway plan --json'
    headway diff plan.json orders.yaml                a plan and a spec file, which is planned
    headway diff old.profile.yaml new.profile.yaml    two profiles
    headway diff /logs/app-1 /logs/app-2              two event logs

    Profiles and logs are compared in the last profiled configuration of B. Exits with 3 if B is
    infeasible. To fail a build, use 'headway check'.
    """
    with Progress() as progress:
        difference = diff(before, after, progress=progress.tell)
    answer(difference, as_json=as_json)
    if not as_json and not difference.is_none and difference.kind == "plan":
        suggest(f"headway explain {after}")
    infeasible = difference.feasible is not None and not difference.feasible[1]
    return ExitCode.INFEASIBLE if infeasible else ExitCode.OK
