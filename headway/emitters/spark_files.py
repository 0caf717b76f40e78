"""A plan as ``spark-defaults.conf``, and as a ``spark-submit`` command."""

from __future__ import annotations

import shlex

from headway.domain import Answer
from headway.emitters.submission import Submission
from headway.emitters.wording import command_text, comment_lines, reasons
from headway.sparkconf import render_properties


def render_defaults(plan: Answer, *, version: str, submission: Submission | None = None) -> str:  # noqa: ARG001
    """The text of a properties file for ``spark-submit --properties-file``.

    Trigger and rate limit are in a comment: Spark configuration cannot contain them. Raises
    ValueError if a value begins or ends with a blank, which this format cannot represent.
    """
    header = comment_lines(plan, version=version, fits_any_cluster=True)
    return render_properties(plan.spark_conf, header=header, comments=reasons(plan))


def render_submit(plan: Answer, *, version: str, submission: Submission | None = None) -> str:
    """A shell command with one ``--conf`` per line; without a submission it has a placeholder."""
    submission = submission or Submission()
    command = [
        "spark-submit",
        *(f"  --conf {shlex.quote(f'{key}={value}')}" for key, value in plan.spark_conf.items()),
        f"  {shlex.join([submission.main or 'app.py', *submission.arguments])}",
    ]
    comments = comment_lines(plan, version=version, fits_any_cluster=True)
    return command_text(plan, comments, command)
