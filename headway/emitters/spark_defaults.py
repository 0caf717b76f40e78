"""A plan as ``spark-defaults.conf``."""

from __future__ import annotations

from headway.domain import Answer
from headway.emitters.submission import Submission
from headway.emitters.wording import comment_lines, reasons
from headway.sparkconf import render_properties


def render(plan: Answer, *, version: str, submission: Submission | None = None) -> str:  # noqa: ARG001
    """The text of a properties file for ``spark-submit --properties-file``.

    Trigger and rate limit are in a comment: Spark configuration cannot contain them. Raises
    ValueError if a value begins or ends with a blank, which this format cannot represent.
    """
    header = comment_lines(plan, version=version, fits_any_cluster=True)
    return render_properties(plan.spark_conf, header=header, comments=reasons(plan))
