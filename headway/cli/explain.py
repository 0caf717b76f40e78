"""``headway explain``."""

from __future__ import annotations

import click

from headway.api.explain import explain
from headway.cli.options import Command, refuse
from headway.cli.terminal import show, suggest
from headway.report.equations import equation_text


@click.command("explain", cls=Command)
@click.argument("plan", metavar="[PLAN]", required=False)
@click.option("--equation", metavar="NUMBER", help="Show an equation instead, e.g. P2.")
def command(plan: str | None, equation: str | None) -> int:
    """Explain a plan: binding constraints, effect of every change, formula and source of numbers.

    \b
    headway explain plan.json
    headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s' --json > plan.json

    PLAN is what 'headway plan --json' printed. Numbers such as (P4) refer to equations in
    docs/theory.md; --equation P4 shows one.
    """
    if plan is None and equation is None:
        raise click.UsageError("Missing argument 'PLAN'.", click.get_current_context())
    if plan is not None and equation is not None:
        refuse(["--equation"], "shows an equation and explains no plan; give one of them")
    show(explain(plan) if plan is not None else equation_text(equation or ""))
    suggest(
        "headway explain plan.json"
        if plan is None
        else f"headway emit {plan} --format spark-defaults"
    )
    return 0
