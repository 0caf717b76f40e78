"""A plan as a ``spark-submit`` command."""

from __future__ import annotations

import shlex

from headway.domain import Answer
from headway.emitters.submission import Submission
from headway.emitters.wording import container_lines, header_lines, query_option_lines, reasons


def render(plan: Answer, *, version: str) -> str:
    """A shell command with one ``--conf`` per line; the application is a placeholder.

    Comments are above the command, since a comment between its lines would end it.

    A plan that misses its target is rendered with a warning on top.
    """
    return render_for(plan, version=version, submission=Submission())


def render_for(plan: Answer, *, version: str, submission: Submission) -> str:
    """As `render`, with the application that is submitted."""
    why = reasons(plan)
    comments = [
        *header_lines(plan, version=version),
        *query_option_lines(plan),
        *container_lines(plan),
        *(f"{key}: {why[key]}" for key in plan.spark_conf if key in why),
    ]
    application = shlex.join([submission.main or "app.py", *submission.arguments])
    command = [
        "spark-submit",
        *(f"  --conf {shlex.quote(f'{key}={value}')}" for key, value in plan.spark_conf.items()),
        f"  {application}",
    ]
    return "".join(f"# {line}\n" for line in comments) + " \\\n".join(command) + "\n"
