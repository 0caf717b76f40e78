"""A plan as keyword arguments of Airflow's ``SparkSubmitOperator``."""

from __future__ import annotations

from headway.domain import Answer
from headway.emitters.submission import Submission
from headway.emitters.wording import comment_lines, entry_lines, python_literal, reasons


def render(plan: Answer, *, version: str, submission: Submission) -> str:
    """Python with one dictionary: ``SparkSubmitOperator(**SPARK_SUBMIT)``.

    All sizes are in ``conf``, so that one dictionary contains the plan.
    """
    comments = comment_lines(plan, version=version, fits_any_cluster=True)
    lines = [
        *(f"# {line}" for line in comments),
        "#",
        "# from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator",
        "# SparkSubmitOperator(**SPARK_SUBMIT)",
        "SPARK_SUBMIT = {",
        f'    "task_id": {python_literal(submission.identifier)},',
        f'    "name": {python_literal(submission.name)},',
        f'    "application": {python_literal(submission.main or "app.py")},',
    ]
    if submission.arguments:
        arguments = ", ".join(map(python_literal, submission.arguments))
        lines.append(f'    "application_args": [{arguments}],')
    entries = entry_lines(plan.spark_conf, reasons(plan), " " * 8)
    return "\n".join([*lines, '    "conf": {', *entries, "    },", "}"]) + "\n"
