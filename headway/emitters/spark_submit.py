"""A plan as a ``spark-submit`` command."""

from __future__ import annotations

import shlex

from headway.domain import Answer
from headway.emitters.submission import Submission
from headway.emitters.wording import command_text, comment_lines


def render(plan: Answer, *, version: str, submission: Submission | None = None) -> str:
    """A shell command with one ``--conf`` per line; without a submission it has a placeholder.

    Comments are above the command, since a comment between its lines would end it.
    """
    submission = submission or Submission()
    command = [
        "spark-submit",
        *(f"  --conf {shlex.quote(f'{key}={value}')}" for key, value in plan.spark_conf.items()),
        f"  {shlex.join([submission.main or 'app.py', *submission.arguments])}",
    ]
    comments = comment_lines(plan, version=version, fits_any_cluster=True)
    return command_text(plan, comments, command)
