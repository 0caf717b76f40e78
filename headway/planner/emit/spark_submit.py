"""A plan as a ``spark-submit`` command."""

from __future__ import annotations

import shlex

from headway.domain import Plan
from headway.planner.emit.wording import header_lines, query_option_lines, reasons


def render(plan: Plan, *, version: str) -> str:
    """A shell command with one ``--conf`` per line; the application is a placeholder.

    Comments stand above the command, since one between its lines would end it there.

    Parameters
    ----------
    plan : Plan
        The plan; a plan that misses its target is rendered with a warning on top.
    version : str
        The Headway that made it.
    """
    why = reasons(plan)
    comments = [
        *header_lines(plan, version=version),
        *query_option_lines(plan),
        *(f"{key}: {why[key]}" for key in plan.spark_conf if key in why),
    ]
    command = [
        "spark-submit",
        *(f"  --conf {shlex.quote(f'{key}={value}')}" for key, value in plan.spark_conf.items()),
        "  app.py",
    ]
    return "".join(f"# {line}\n" for line in comments) + " \\\n".join(command) + "\n"
