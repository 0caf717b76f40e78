"""``headway explain``."""

from __future__ import annotations

import click

from headway.api.explain import explain
from headway.cli.options import Command


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
    click.echo(explain(plan))
    return 0
