"""A plan as ``spark-defaults.conf``."""

from __future__ import annotations

from headway.domain import Answer
from headway.emitters.wording import container_lines, header_lines, query_option_lines, reasons
from headway.sparkconf import render_properties


def render(plan: Answer, *, version: str) -> str:
    """The text of a properties file for ``spark-submit --properties-file``.

    Trigger and rate limit are in a comment: Spark configuration cannot contain them. A plan that
    misses its target is rendered with a warning on top.

    Raises
    ------
    ValueError
        If a value begins or ends with a blank, which this format cannot represent.
    """
    return render_properties(
        plan.spark_conf,
        header=[
            *header_lines(plan, version=version),
            *query_option_lines(plan),
            *container_lines(plan),
        ],
        comments=reasons(plan),
    )
