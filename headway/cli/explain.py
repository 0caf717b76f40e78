"""``headway explain``."""

from __future__ import annotations

import click

from headway.cli.options import Command
from headway.formats.from_json import load_plan
from headway.report.explanation import explanation_text


@click.command("explain", cls=Command)
@click.argument("plan", metavar="PLAN")
def command(plan: str) -> int:
    """Explain a plan: binding constraints, effect of every change, formula and source of numbers.

    \b
    headway explain plan.json
    headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s' --json > plan.json

    PLAN is what 'headway plan --json' printed. Numbers such as (P4) refer to equations in
    docs/theory.md.
    """
    click.echo(explanation_text(load_plan(plan)))
    return 0
