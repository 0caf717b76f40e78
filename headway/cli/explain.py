"""``headway explain``."""

from __future__ import annotations

import click

from headway.api.explain import explain
from headway.cli.jobs import profiled
from headway.cli.options import Command, given, json_option, refuse
from headway.cli.terminal import show, suggest
from headway.formats.as_json import json_text
from headway.report.equations import equation_text


@click.command("explain", cls=Command)
@click.argument("source", metavar="[PLAN|LOG]", required=False)
@click.option("--equation", metavar="NUMBER", help="Show an equation instead, e.g. P2.")
@json_option
def command(source: str | None, equation: str | None, as_json: bool) -> int:
    """Explain a plan: binding constraints, effect of every change, formula and source of numbers.

    \b
    headway explain plan.json
    headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s' --json > plan.json
    headway explain eventlog_v2_app-1             what the job meets today

    PLAN is what 'headway plan --json' printed; an event log is profiled and planned first. Numbers
    such as (P4) refer to equations in docs/theory.md; --equation P4 shows one.
    """
    if source is None and equation is None:
        raise click.UsageError("Missing argument 'PLAN'.", click.get_current_context())
    if source is None:
        text, next_step = equation_text(equation or ""), "headway explain plan.json"
    else:
        refuse(given("equation"), "shows an equation and explains no plan; give one of them")
        text, next_step = _explained(source)
    if as_json:
        click.echo(json_text({"schema": "headway.explanation/v1", "text": text}))
    else:
        show(text)
        suggest(next_step)
    return 0


def _explained(source: str) -> tuple[str, str]:
    """The explanation of a plan or of the plan of a log, and what to type next."""
    profile = profiled(source)
    if isinstance(profile, str):
        return explain(profile), f"headway emit {source} --format spark-defaults"
    from headway.api.plan import plan

    again = f"headway plan {source} --rate 50k/s --target 'p99 <= 3s' --verbose"
    return explain(plan(profile)), again
